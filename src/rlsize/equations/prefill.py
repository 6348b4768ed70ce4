"""Prefill: what a prompt costs the engine that generates at the same time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.equations._ops import maximum, minimum

if TYPE_CHECKING:
    from rlsize.equations._ops import Real


def token_flops(tokens: Real, flops_per_token: Real) -> Real:
    """
    Floating-point work of some tokens.

    F = n f

    Args:
        tokens: Tokens, n. [token]
        flops_per_token: Work of one, as far as it is done on this GPU, f. [FLOP/token]

    Returns:
        F. [FLOP]

    Assumes all tokens cost the same.
    Source: definition.

    >>> token_flops(tokens=1000, flops_per_token=1.6e10)
    16000000000000.0
    """
    return tokens * flops_per_token


def compute_time(flops: Real, compute_rate: Real) -> Real:
    """
    Time of work that is bound by compute.

    t = F / r

    Args:
        flops: Work, F. [FLOP]
        compute_rate: FLOP/s that the kernels reach, r. [FLOP/s]

    Returns:
        t. [s]

    Assumes products wide enough to be bound by compute.
    Source: definition.

    >>> compute_time(flops=8e12, compute_rate=8e14)
    0.01
    """
    return flops / compute_rate


def tokens_per_rank(tokens: Real, data_parallel: Real) -> Real:
    """
    Prompt tokens that one data-parallel rank computes, of prompts that the ranks share out.

    n = p / d

    Args:
        tokens: Prompt tokens, p. [token]
        data_parallel: Data-parallel ranks of attention, d; 1 without. [1]

    Returns:
        n. [token]

    Assumes as many prompts on every rank.
    Source: definition.

    >>> tokens_per_rank(tokens=1000, data_parallel=8)
    125.0
    """
    return tokens / data_parallel


def pair_flops(pairs: Real, flops_per_pair: Real, sliding_pairs: Real, sliding_flops_per_pair: Real) -> Real:
    """
    Floating-point work of causal attention over a prompt, in full and in sliding layers.

    F = P f + P_w f_w

    Args:
        pairs: Pairs of a query and a key in full layers, P. [token^2]
        flops_per_pair: Work of a pair, all full layers and heads on this GPU, f. [FLOP/token^2]
        sliding_pairs: Pairs in sliding layers, P_w. [token^2]
        sliding_flops_per_pair: Work of a pair, all sliding layers, f_w. [FLOP/token^2]

    Returns:
        F. [FLOP]

    Assumes masked pairs cost nothing.
    Source: definition.

    >>> pair_flops(pairs=5e5, flops_per_pair=1e6, sliding_pairs=1e5, sliding_flops_per_pair=1e6)
    600000000000.0
    """
    return pairs * flops_per_pair + sliding_pairs * sliding_flops_per_pair


def experts_read_time(
    steps: Real,
    experts: Real,
    decode_touched: Real,
    joint: Real,
    bytes_per_expert: Real,
    memory_rate: Real,
    data_parallel: Real,
) -> Real:
    """
    Time to read the experts that a prompt needs and decode steps do not read anyway.

    t = n (E - j E_d) b_E / (B e d)

    Args:
        steps: Steps with prefill for the prompt, n. [1]
        experts: Routed experts of a layer, E. [1]
        decode_touched: Of these, those that the decode step uses, E_d. [1]
        joint: 1 where both are one step, 0 where prompts have steps of their own, j. [1]
        bytes_per_expert: One expert of each layer, as far as it lies on this GPU, b_E. [B]
        memory_rate: What experts reach of the bandwidth, B e. [B/s]
        data_parallel: Ranks whose prompts share a step, d. [1]

    Returns:
        t. [s]

    Assumes a prompt of some hundred tokens, which uses all experts.
    Source: kernels of experts take the time of their bytes and of their work one after the other
    (ai-dynamo/aiconfigurator@095f58a5, moe tables).

    >>> experts_read_time(steps=1, experts=128, decode_touched=28, joint=1, bytes_per_expert=2e8, memory_rate=2e12,
    ...                   data_parallel=1)
    0.01
    """
    return steps * (experts - joint * decode_touched) * bytes_per_expert / (memory_rate * data_parallel)


def walk_time(tokens: Real, seconds_per_token: Real, length: Real, seconds_per_pair: Real) -> Real:
    """
    GPU time of what goes through a prompt token by token: linear attention, and the indexer of sparse attention.

    t = p (t_t + s / 2 t_p)

    Args:
        tokens: Prompt tokens, p. [token]
        seconds_per_token: Time of one, all layers, t_t. [s/token]
        length: Tokens of a prompt, s: an indexer scores all before each of them. [token]
        seconds_per_pair: Time of such a score, all layers, t_p; 0 without an indexer. [s/token^2]

    Returns:
        t. [s]

    Assumes one prompt fills a step, so that its chunks wait for each other.
    Source: fits to measured kernels, aiconfigurator-core 0.12.0, linear_attention and sparse_attention tables.

    >>> walk_time(tokens=1000, seconds_per_token=0.5, length=1000, seconds_per_pair=0.25)
    125500.0
    """
    return tokens * (seconds_per_token + length / 2 * seconds_per_pair)


def prompt_of_parts(
    matmul: Real,
    experts: Real,
    experts_read: Real,
    attention: Real,
    recurrence: Real,
    all_reduce: Real,
    exchange: Real,
    small_operations: Real,
) -> Real:
    """
    GPU time of a prompt.

    t_G = sum of its parts

    Args:
        matmul: Matrix products outside routed experts. [s]
        experts: Routed experts. [s]
        experts_read: Their weights, beyond those that decode reads. [s]
        attention: Causal attention. [s]
        recurrence: Linear attention, and indexers of sparse attention. [s]
        all_reduce: Tensor-parallel all-reduces. [s]
        exchange: Expert-parallel exchange. [s]
        small_operations: Norms and other small kernels. [s]

    Returns:
        t_G. [s]

    Assumes nothing overlaps on the GPU; the output head works on the last token only, which is not counted.
    Source: sum.

    >>> prompt_of_parts(matmul=0.5, experts=0.25, experts_read=0, attention=0.125, recurrence=0, all_reduce=0.125,
    ...                 exchange=0, small_operations=0)
    1.0
    """
    return matmul + experts + experts_read + attention + recurrence + all_reduce + exchange + small_operations


def prompt_attention_time(flops: Real, compute_rate: Real, half_length: Real, prompt_tokens: Real) -> Real:
    """
    Time of causal attention over a prompt, slower for short ones.

    t = F / r (1 + s_h / s)

    Args:
        flops: Causal work of the prompt on this GPU, F. [FLOP]
        compute_rate: FLOP/s that long prompts reach, r. [FLOP/s]
        half_length: Prompt length that reaches half of it, s_h. [token]
        prompt_tokens: Length of the prompt, s. [token]

    Returns:
        t. [s]

    Assumes the prompt is prefilled whole; chunks read the keys of earlier ones once more.
    Source: fits to measured prefill attention, ai-dynamo/aiconfigurator@095f58a5, systems data.

    >>> prompt_attention_time(flops=1e13, compute_rate=5e14, half_length=1000, prompt_tokens=4000)
    0.025
    """
    return flops / compute_rate * (1 + half_length / prompt_tokens)


def prefill_steps(prompt_tokens: Real, chunk_tokens: Real, response_tokens: Real, batch: Real) -> Real:
    """
    Engine steps with prefill in them, for each prompt.

    n = min(max(1, p / c), max(l / b, p / c))

    Args:
        prompt_tokens: Prompt tokens that are computed, p. [token]
        chunk_tokens: Tokens that one step prefills at most, c. [token]
        response_tokens: Mean response length, l. [token]
        batch: Samples in flight, b: one starts every l / b steps. [token]

    Returns:
        n. [1]

    Assumes a prompt starts as soon as a sample has finished; where more than one would start in a step, they share it.
    Source: count of chunked prefill (Agrawal et al., Sarathi-Serve, section 4).

    >>> prefill_steps(prompt_tokens=1000, chunk_tokens=8000, response_tokens=100, batch=200)
    0.5
    >>> prefill_steps(prompt_tokens=16000, chunk_tokens=8000, response_tokens=100, batch=200)
    2.0
    """
    chunks = prompt_tokens / chunk_tokens
    return minimum(maximum(1.0, chunks), maximum(response_tokens / batch, chunks))


def launch_time(
    steps: Real,
    layers: Real,
    layer_seconds: Real,
    moe_layers: Real,
    moe_layer_seconds: Real,
    index_seconds: Real,
    slowdown: Real,
) -> Real:
    """
    Host time to launch the kernels of a prompt's prefill, which run outside CUDA graphs.

    t = n s (L t_L + L_m t_m) + n t_I

    Args:
        steps: Steps with prefill for the prompt, n. [1]
        layers: Layers, L. [1]
        layer_seconds: Launches of a layer, t_L. [s]
        moe_layers: Layers with experts, L_m. [1]
        moe_layer_seconds: Further launches of such a layer, t_m. [s]
        index_seconds: Launches of the indexers of sparse attention on this host, t_I. [s]
        slowdown: How much slower this host launches than the one the times are of, s. [1]

    Returns:
        t. [s]

    Assumes the number of launches does not depend on the number of tokens.
    Source: measured launches outside graphs, ai-dynamo/aiconfigurator@095f58a5: 20 to 50 us each; counts are fitted.

    >>> launch_time(steps=1, layers=64, layer_seconds=2e-4, moe_layers=0, moe_layer_seconds=5e-4, index_seconds=0,
    ...             slowdown=1)
    0.0128
    """
    return steps * (slowdown * (layers * layer_seconds + moe_layers * moe_layer_seconds) + index_seconds)


def prefill_time(gpu_seconds: Real, launch_seconds: Real, request_seconds: Real, data_parallel: Real) -> Real:
    """
    Engine time that one prompt takes from the samples in flight.

    t = (t_G^3 + (t_H / d)^3)^(1/3) + q / d

    Args:
        gpu_seconds: GPU time of the prompt, t_G. [s]
        launch_seconds: Host time to launch it, t_H. [s]
        request_seconds: Host work of a request that nothing hides, q. [s]
        data_parallel: Data-parallel ranks of attention, each with a host process of its own, d. [1]

    Returns:
        t. [s]

    Assumes launches run ahead of the GPU, so the longer of both counts, with a smooth passage between them.
    Source: asynchronous launches; the exponent is a choice.

    >>> round(prefill_time(gpu_seconds=0.02, launch_seconds=0.01, request_seconds=0.001, data_parallel=1), 6)
    0.021801
    """
    return (gpu_seconds**3 + (launch_seconds / data_parallel) ** 3) ** (1.0 / 3.0) + request_seconds / data_parallel


def group_prefill_tokens(prompt_tokens: Real, hit_ratio: Real) -> Real:
    """
    Prompt tokens that are computed for each sample, with prefix caching.

    p' = p (1 - h)

    Args:
        prompt_tokens: Mean prompt length, p. [token]
        hit_ratio: Share of prompt tokens found in the cache, h. [1]

    Returns:
        p'. [token]

    Assumes what is found costs nothing.
    Source: definition.

    >>> group_prefill_tokens(prompt_tokens=1000, hit_ratio=0.75)
    250.0
    """
    return prompt_tokens * (1 - hit_ratio)


def prefill_in_step(batch: Real, response_tokens: Real, prefill_seconds: Real) -> Real:
    """
    Engine time for prompts that falls on one decode step.

    t = b P / l

    Args:
        batch: Samples in flight, b. [1]
        response_tokens: Mean response length, which is the number of steps of a sample, l. [1]
        prefill_seconds: Engine time that one prompt takes, P. [s]

    Returns:
        t. [s]

    Assumes a batch that stays full: while l steps run, b prompts are prefilled.
    Source: conservation of work.

    >>> prefill_in_step(batch=100, response_tokens=1000, prefill_seconds=0.02)
    0.002
    """
    return batch * prefill_seconds / response_tokens
