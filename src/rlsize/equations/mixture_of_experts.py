"""Mixture of experts: what a layer holds, what works on each token, and what a batch touches."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlsize.equations._ops import Real


def router_params(hidden_size: Real, experts: Real) -> Real:
    """
    Weights of a router: one score per expert.

    N = h E

    Args:
        hidden_size: Width of the residual stream, h. [param/expert]
        experts: Routed experts, E. [expert]

    Returns:
        N. [param]

    Assumes a linear router without bias.
    Source: Shazeer et al., Outrageously large neural networks, section 2.1.

    >>> router_params(hidden_size=2048, experts=128)
    262144
    """
    return hidden_size * experts


def moe_layer_params(experts: Real, expert_params: Real, shared_params: Real, router_params: Real) -> Real:
    """
    Parameters that a mixture-of-experts layer holds.

    N = E N_e + N_s + N_r

    Args:
        experts: Routed experts, E. [expert]
        expert_params: Parameters of one of them, N_e. [param/expert]
        shared_params: Parameters of what works on every token (shared experts and their gate), N_s. [param]
        router_params: Parameters of the router, N_r. [param]

    Returns:
        N. [param]

    Assumes routed experts of one size.
    Source: DeepSeekMoE, section 3.

    >>> moe_layer_params(experts=128, expert_params=4718592, shared_params=0, router_params=262144)
    604241920
    """
    return experts * expert_params + shared_params + router_params


def moe_layer_active_params(
    experts_per_token: Real, expert_params: Real, shared_params: Real, router_params: Real
) -> Real:
    """
    Parameters of a mixture-of-experts layer that work on one token.

    N_act = k N_e + N_s + N_r

    Args:
        experts_per_token: Routed experts that the router picks, k. [expert]
        expert_params: Parameters of one of them, N_e. [param/expert]
        shared_params: Parameters of what works on every token (shared experts and their gate), N_s. [param]
        router_params: Parameters of the router, N_r. [param]

    Returns:
        N_act. [param]

    Assumes that every token is routed to exactly k experts and none is dropped.
    Source: DeepSeekMoE, section 3.

    >>> moe_layer_active_params(experts_per_token=8, expert_params=4718592, shared_params=0, router_params=262144)
    38010880
    """
    return experts_per_token * expert_params + shared_params + router_params


def working_width(
    experts_per_token: Real, intermediate_size: Real, shared_experts: Real, shared_intermediate_size: Real
) -> Real:
    """
    Inner width of the experts that work on one token: side by side they are one wide MLP.

    f = k f_e + n_s f_s

    Args:
        experts_per_token: Routed experts that the router picks, k; 0 for the shared ones alone. [expert]
        intermediate_size: Inner width of a routed expert, f_e. [1/expert]
        shared_experts: Experts that work on every token, n_s. [expert]
        shared_intermediate_size: Inner width of a shared expert, f_s. [1/expert]

    Returns:
        f. [1]

    Assumes experts of one kind have one width.
    Source: DeepSeekMoE, section 3.

    >>> working_width(experts_per_token=8, intermediate_size=2048, shared_experts=1, shared_intermediate_size=2048)
    18432
    """
    return experts_per_token * intermediate_size + shared_experts * shared_intermediate_size


def experts_touched(experts: Real, experts_per_token: Real, batch_tokens: Real) -> Real:
    """
    Experts of one layer whose weights a batch of tokens reads.

    E_b = E (1 - (1 - k / E)^b)

    Args:
        experts: Routed experts, E. [expert]
        experts_per_token: Routed experts per token, k. [expert]
        batch_tokens: Tokens of the forward pass that share the expert weights, b; it stands in an exponent. [1]

    Returns:
        E_b. [expert]

    Assumes uniform independent routing, the safe bound: skewed routing touches fewer. With expert parallelism the batch
    is that of all ranks together.
    Source: occupancy of E cells, k at a time (Feller, An introduction to probability theory, volume I, chapter IV).

    >>> round(experts_touched(experts=128, experts_per_token=8, batch_tokens=16), 2)
    82.42
    """
    return experts * (1.0 - (1.0 - experts_per_token / experts) ** batch_tokens)


def copies_sent(experts_per_token: Real, ranks: Real) -> Real:
    """
    Copies of a token that are sent to others, one for each that has an expert for it.

    c = (n - 1) (1 - (1 - 1/n)^k)

    Args:
        experts_per_token: Experts that work on each token, k. [1]
        ranks: Those over which a group of experts is spread, n: GPUs inside the fast network, nodes beyond it. [1]

    Returns:
        c. [1]

    Assumes every expert is as likely as any other, and that who gets a copy hands it on to its experts, as DeepEP does;
    a plain all-to-all sends one for each expert (`copies_for_each_expert`), and a gather one to every rank
    (`copies_gathered`).
    Source: DeepSeek-V3 (arXiv:2412.19437), section 3.2.2 (each token goes to few nodes, once over the network).

    >>> copies_sent(experts_per_token=2, ranks=2)
    0.75
    >>> copies_sent(experts_per_token=8, ranks=1)
    0.0
    """
    return (ranks - 1) * (1.0 - (1.0 - 1.0 / ranks) ** experts_per_token)


def copies_for_each_expert(experts_per_token: Real, ranks: Real) -> Real:
    """
    Copies of a token that are sent to others by a plain all-to-all, one for each expert that works on it elsewhere.

    c = k (n - 1) / n

    Args:
        experts_per_token: Experts that work on each token, k. [1]
        ranks: Those over which a group of experts is spread, n: GPUs inside the fast network, nodes beyond it. [1]

    Returns:
        c. [1]

    Assumes every expert is as likely as any other.
    Source: Lepikhin et al., GShard (arXiv:2006.16668), section 3.1: a buffer for each expert, exchanged whole.

    >>> copies_for_each_expert(experts_per_token=8, ranks=8)
    7.0
    """
    return experts_per_token * (ranks - 1) / ranks


def copies_gathered(ranks: Real) -> Real:
    """
    Copies of a token that are sent to others where all ranks gather all tokens, with or without an expert for them.

    c = n - 1

    Args:
        ranks: Those over which the experts are spread, n. [1]

    Returns:
        c. [1]

    Assumes as much comes back: results are reduced and scattered.
    Source: definition of an all-gather; vLLM (all2all backend allgather_reducescatter).

    >>> copies_gathered(ranks=8)
    7
    """
    return ranks - 1
