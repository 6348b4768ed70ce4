"""A decode step of an engine: its parts put together, and the affine form that calculations use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.equations._ops import maximum, minimum, where

if TYPE_CHECKING:
    from rlsize.equations._ops import Real


def sequences_per_rank(sequences: Real, data_parallel: Real) -> Real:
    """
    Sequences whose attention one rank computes.

    b = c / d

    Args:
        sequences: Sequences of the instance, c. [1]
        data_parallel: Data-parallel ranks of attention, d; 1 without. [1]

    Returns:
        b. [1]

    Assumes they are spread evenly.
    Source: definition.

    >>> sequences_per_rank(sequences=1024, data_parallel=8)
    128.0
    """
    return sequences / data_parallel


def step_tokens(sequences: Real, drafts: Real) -> Real:
    """
    Tokens that one step of the model works on where others are drafted.

    b_t = b (1 + k)

    Args:
        sequences: Sequences, b. [1]
        drafts: Tokens that are drafted for each of them, k; 0 without. [1]

    Returns:
        b_t. [1]

    Assumes a chain of drafts, not a tree.
    Source: Leviathan et al., Fast Inference from Transformers via Speculative Decoding (arXiv:2211.17192), section 2.

    >>> step_tokens(sequences=64, drafts=3)
    256
    """
    return sequences * (1 + drafts)


def drafting_time(drafts: Real, layers: Real, layer_seconds: Real, head: Real, sampling: Real) -> Real:
    """
    Time to draft the tokens that a step checks.

    T_d = k (T_l / L + T_h + T_s)

    Args:
        drafts: Tokens that are drafted for each sequence, k. [1]
        layers: Layers of the model, L. [1]
        layer_seconds: Time of a step in all of them, T_l. [s]
        head: Its output head, T_h. [s]
        sampling: Logits to tokens, T_s. [s]

    Returns:
        T_d. [s]

    Assumes a drafter of one layer like the model's, with the model's head, run once for each token: a module for
    multi-token prediction, or EAGLE.
    Source: DeepSeek-V3 report (arXiv:2412.19437), section 2.2.

    >>> drafting_time(drafts=2, layers=60, layer_seconds=0.03, head=0.001, sampling=0.0005)
    0.004
    """
    return drafts * (layer_seconds / layers + head + sampling)


def time_per_token(step_seconds: Real, drafts: Real, acceptance: Real) -> Real:
    """
    Time in which each sequence grows by a token where some are drafted.

    T = T_v / (1 + k a)

    Args:
        step_seconds: A step, which drafts and checks, T_v. [s]
        drafts: Tokens that are drafted for each sequence, k. [1]
        acceptance: Share of drafted tokens that are accepted, a. [1]

    Returns:
        T. [s]

    Assumes all sequences go on together, those with fewer accepted ones too.
    Source: Leviathan et al. (arXiv:2211.17192), section 3.1, with the mean of what is accepted.

    >>> time_per_token(step_seconds=0.02, drafts=2, acceptance=0.5)
    0.01
    """
    return step_seconds / (1 + drafts * acceptance)


def distinct_tokens(tokens: Real, diversity: Real) -> Real:
    """
    Tokens that would touch as many experts if they were routed evenly.

    b' = b^s

    Args:
        tokens: Tokens in the step, b. [1]
        diversity: How much of each doubling of them counts, s; 1 where routing is even. [1]

    Returns:
        b'. [1]

    Assumes a single token has as many experts as even routing gives it, and that popular ones are shared ever more.
    Source: times of experts with power-law routing of exponent 1.2, which give 3.7, 13 and 36 of 4, 16 and 64 tokens
    (aiconfigurator-core 0.12.0, moe tables of B200, 256 experts).

    >>> distinct_tokens(tokens=64, diversity=0.5)
    8.0
    """
    return tokens**diversity


def touched_expert_bytes(experts_touched: Real, bytes_per_expert: Real) -> Real:
    """
    Weights of routed experts that one GPU reads in a step.

    W = E b_E

    Args:
        experts_touched: Experts of a layer that any token uses, E. [1]
        bytes_per_expert: One expert of each layer, as far as it lies on this GPU, b_E. [B]

    Returns:
        W. [B]

    Assumes the touched experts are spread evenly over the GPUs.
    Source: definition.

    >>> touched_expert_bytes(experts_touched=100, bytes_per_expert=1e7)
    1000000000.0
    """
    return experts_touched * bytes_per_expert


def live_kv_bytes(sequences: Real, sequence_bytes: Real) -> Real:
    """
    Keys, values and states that a step reads on one GPU.

    K = b k

    Args:
        sequences: Sequences on this GPU, b. [1]
        sequence_bytes: What the mean live sequence keeps, as far as this GPU reads it, k. [B]

    Returns:
        K. [B]

    Assumes attention reads all that is kept.
    Source: definition.

    >>> live_kv_bytes(sequences=64, sequence_bytes=5e8)
    32000000000.0
    """
    return sequences * sequence_bytes


def tokens_read(context_tokens: Real, most_tokens: Real) -> Real:
    """
    Tokens of a context that attention reads: all, or those that sparse attention lets through.

    s' = s, or min(s, m) with sparse attention

    Args:
        context_tokens: Length of the context, s. [token]
        most_tokens: Tokens that sparse attention reads at most, m; 0 where it reads all. [token]

    Returns:
        s'. [token]

    Assumes the indexer fills its budget.
    Source: DeepSeek-V3.2 report, section 2.

    >>> tokens_read(context_tokens=8000, most_tokens=2048), tokens_read(context_tokens=8000, most_tokens=0)
    (2048, 8000)
    """
    return where(most_tokens > 0, minimum(context_tokens, most_tokens), context_tokens)


def index_bytes(context_tokens: Real, bytes_per_token: Real) -> Real:
    """
    Indexer keys that sparse attention reads for a sequence.

    I = s i

    Args:
        context_tokens: Length of the context, s. [token]
        bytes_per_token: Indexer keys of a token, all layers, i. [B/token]

    Returns:
        I. [B]

    Assumes the indexer looks at every token.
    Source: DeepSeek-V3.2 report, section 2.

    >>> index_bytes(context_tokens=1000, bytes_per_token=15616)
    15616000
    """
    return context_tokens * bytes_per_token


def live_flops(sequences: Real, sequence_flops: Real) -> Real:
    """
    Work of latent attention in a step on one GPU.

    F = b f

    Args:
        sequences: Sequences on this GPU, b. [1]
        sequence_flops: Work of one, f. [FLOP]

    Returns:
        F. [FLOP]

    Assumes contexts of similar length.
    Source: definition.

    >>> live_flops(sequences=64, sequence_flops=1e9)
    64000000000.0
    """
    return sequences * sequence_flops


def both_times(first: Real, second: Real) -> Real:
    """
    Time of two kernels, one after the other.

    t = t_1 + t_2

    Args:
        first: Time of the one, t_1. [s]
        second: Time of the other, t_2. [s]

    Returns:
        t. [s]

    Assumes no overlap.
    Source: sum.

    >>> both_times(first=0.5, second=0.25)
    0.75
    """
    return first + second


def host_time(step_seconds: Real, sequences: Real, sequence_seconds: Real, slowdown: Real, exposed_share: Real) -> Real:
    """
    Time of a step in which the GPU waits for the host: scheduling, sampling parameters, detokenising, sending.

    t = min(x, 1) s (t_0 + b t_1)

    Args:
        step_seconds: Host work of a step, t_0. [s]
        sequences: Sequences in the step, b. [1]
        sequence_seconds: Host work of each sequence, t_1. [s]
        slowdown: How much slower this host is than the one the times are of, s. [1]
        exposed_share: Share that is not hidden behind the GPU, x; 1 for an engine that schedules in between. [1]

    Returns:
        t. [s]

    Assumes the hidden share does not depend on the batch.
    Source: structure of the engines' loops; constants are fitted.

    >>> host_time(step_seconds=1e-3, sequences=100, sequence_seconds=1e-5, slowdown=1, exposed_share=0.5)
    0.001
    """
    return minimum(exposed_share, 1.0) * slowdown * (step_seconds + sequences * sequence_seconds)


def host_time_without_graphs(
    scheduling_seconds: Real, layers: Real, layer_seconds: Real, slowdown: Real, gpu_seconds: Real
) -> Real:
    """
    Time of a step in which the GPU waits for a host that launches every kernel by itself.

    t = t_s + max(0, s L t_l - T_g)

    Args:
        scheduling_seconds: What it waits for where a step is one graph, t_s. [s]
        layers: Layers, L. [1]
        layer_seconds: Host time to launch the kernels of a layer, t_l. [s]
        slowdown: How much slower this host is than the one that time is of, s. [1]
        gpu_seconds: Time of the kernels, T_g. [s]

    Returns:
        t. [s]

    Assumes launches run ahead of the GPU as far as it takes.
    Source: definition.

    >>> host_time_without_graphs(scheduling_seconds=1.0, layers=10, layer_seconds=0.5, slowdown=1, gpu_seconds=2.0)
    4.0
    """
    return scheduling_seconds + maximum(0.0, slowdown * layers * layer_seconds - gpu_seconds)


def step_of_parts(
    matmul: Real,
    head: Real,
    experts: Real,
    attention: Real,
    recurrence: Real,
    all_reduce: Real,
    exchange: Real,
    small_operations: Real,
    sampling: Real,
    host: Real,
    drafting: Real,
) -> Real:
    """
    Time of one decode step.

    T = sum of its parts

    Args:
        matmul: Matrix products outside routed experts and output head. [s]
        head: Output head. [s]
        experts: Routed experts. [s]
        attention: Attention over the KV cache. [s]
        recurrence: Linear-attention and Mamba states. [s]
        all_reduce: Tensor-parallel all-reduces. [s]
        exchange: Expert-parallel exchange. [s]
        small_operations: Norms and other small kernels. [s]
        sampling: Logits to tokens. [s]
        host: Host work that is not hidden. [s]
        drafting: Tokens that a drafter proposes. [s]

    Returns:
        T. [s]

    Assumes nothing overlaps on the GPU; what engines overlap shows as a share of host work.
    Source: sum.

    >>> step_of_parts(matmul=0.5, head=0.25, experts=0, attention=0.25, recurrence=0, all_reduce=0.5, exchange=0,
    ...               small_operations=0.25, sampling=0, host=0.25, drafting=0)
    2.0
    """
    kernels = matmul + head + experts + attention + recurrence + all_reduce + exchange + small_operations
    return kernels + sampling + host + drafting
