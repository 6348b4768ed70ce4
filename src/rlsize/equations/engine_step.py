"""The engine step: how long one takes, and what rate that makes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.equations._ops import maximum, minimum
from rlsize.equations.lengths import normal_share

if TYPE_CHECKING:
    from rlsize.equations._ops import Real


def engine_step_time(
    fixed_seconds: Real,
    seconds_per_sample: Real,
    seconds_per_kv_token: Real,
    seconds_per_prefill_token: Real,
    batch: Real,
    live_kv_tokens: Real,
    prefill_tokens: Real,
) -> Real:
    """
    Time of one engine step, in which each sample of the batch advances by one token.

    T = t_0 + t_1 b + t_2 K + t_3 p

    Args:
        fixed_seconds: Weights read, launches, scheduling, t_0. [s]
        seconds_per_sample: Of each sample in the batch, t_1. [s]
        seconds_per_kv_token: Of each token in the KV cache that attention reads, t_2. [s/token]
        seconds_per_prefill_token: Of each prompt token that is computed in the step, t_3. [s/token]
        batch: Samples in the step, b. [1]
        live_kv_tokens: Tokens of all their contexts, K. [token]
        prefill_tokens: Prompt tokens computed in the step, p. [token]

    Returns:
        T. [s]

    Assumes the batch lies within the range in which the coefficients were measured: matrix products become
    compute-bound at large batches, and there T bends upwards.
    Source: roofline of a decode step: weights and KV cache are read once, work grows with the batch (Austin et al., How
    to scale your model, chapter on inference); measured steps are fitted to it.

    >>> engine_step_time(fixed_seconds=0.01, seconds_per_sample=5e-5, seconds_per_kv_token=1e-8,
    ...                  seconds_per_prefill_token=1e-5, batch=200, live_kv_tokens=400_000, prefill_tokens=100)
    0.025
    """
    return (
        fixed_seconds
        + seconds_per_sample * batch
        + seconds_per_kv_token * live_kv_tokens
        + seconds_per_prefill_token * prefill_tokens
    )


def live_kv_tokens(cache_tokens: Real, batch: Real, group_size: Real, cacheable_prompt_tokens: Real) -> Real:
    """
    Tokens that attention reads in a step, from the tokens that the KV cache holds.

    K = C + b (1 - 1/G) c

    Args:
        cache_tokens: Tokens held, a prompt that several samples share counted once, C. [token]
        batch: Samples in the batch, b. [1]
        group_size: Samples of one prompt, G. [1]
        cacheable_prompt_tokens: Whole blocks of a prompt, which its samples share, c. [token]

    Returns:
        K. [token]

    Assumes groups are in flight whole, and attention reads a shared prompt once for every sample, as it does without
    cascade attention.
    Source: own derivation from Kwon et al., PagedAttention, section 4.4 (parallel sampling shares prompt blocks).

    >>> live_kv_tokens(cache_tokens=10_000, batch=16, group_size=8, cacheable_prompt_tokens=288)
    14032.0
    """
    return cache_tokens + batch * (1.0 - 1.0 / group_size) * cacheable_prompt_tokens


def held_tokens(live_tokens: Real, prompt_tokens: Real, computed_tokens: Real) -> Real:
    """
    Cache tokens of a sample in flight, where prompt tokens that others hold are there already.

    s = L - (p - p')

    Args:
        live_tokens: Context of the mean sample in flight, L. [token]
        prompt_tokens: Mean prompt length, p. [token]
        computed_tokens: Of it, what is not found in the prefix cache, p'. [token]

    Returns:
        s. [token]

    Assumes those that share a prompt are in flight at the same time.
    Source: Kwon et al., PagedAttention, section 4.4 (parallel sampling shares prompt blocks).

    >>> held_tokens(live_tokens=3000, prompt_tokens=1000, computed_tokens=250)
    2250
    """
    return live_tokens - (prompt_tokens - computed_tokens)


def cohort_concurrency(steady: Real, cohort: Real, samples: Real) -> Real:
    """
    Samples that a KV cache holds of a batch whose samples start together, as far as it can.

    b = b_c for S <= b_c, else (b_c b_c + b_s (S - b_c)) / S

    Args:
        steady: Samples of all ages that it holds, b_s. [1]
        cohort: Samples that may start together, which grow while some finish, before it runs full, b_c. [1]
        samples: Samples of the batch on one instance, S. [1]

    Returns:
        b. [1]

    Assumes that as many as fit start together, and the others run among samples of all ages.
    Source: own derivation.

    >>> cohort_concurrency(steady=100, cohort=200, samples=400)
    150.0
    """
    share = minimum(1.0, cohort / samples)
    return share * cohort + (1.0 - share) * steady


def recomputed_share(prompt_ratio: Real, samples: Real, brought_ratio: Real) -> Real:
    """
    Tokens that an engine computes anew for each token that it generates while its KV cache is full and samples wait.

    r = u (u + q sqrt(b)), u = sqrt(1 + h^2) - h, h = (p + q) sqrt(b) / 2

    Args:
        prompt_ratio: KV of a sample's prompt, of which samples of a group have one, over that of its response, p. [1]
        samples: Samples that the cache holds, b. [1]
        brought_ratio: What a sample that joins computes beside its prompt, over a response, q. [1]

    Returns:
        r. [1]

    Assumes that what a sample leaves is taken at once, so a token that grows throws another out. Samples that joined
    last go first: v of them, of c tokens and their prompts, between two that end, v (p l + c) = l. Each of them moves
    up by a place meanwhile, so it has grown v times by l / b tokens, c = q l + v l / b, and r = v c / l. Prompts are
    cached.
    Source: own derivation.

    >>> recomputed_share(prompt_ratio=0.15, samples=100, brought_ratio=0.0)
    0.25
    """
    half = (prompt_ratio + brought_ratio) * samples**0.5 / 2.0
    gone = (1.0 + half**2) ** 0.5 - half
    return gone * (gone + brought_ratio * samples**0.5)


def full_share(samples: Real, room: Real) -> Real:
    """
    Share of the time in which some samples need more KV than the cache has.

    f = Phi((b - K) / sqrt(K))

    Args:
        samples: Samples that run at once, b. [1]
        room: Samples of mean context that the cache holds, K. [1]

    Returns:
        f. [1]

    Assumes that contexts vary independently, by about as much as they are long.
    Source: central limit theorem.

    >>> round(full_share(samples=110.0, room=100.0), 4)
    0.8413
    """
    return normal_share(deviate=(samples - room) / room**0.5)


def tokens_in_queue(response_tokens: Real, prompt_tokens: Real, samples: Real) -> Real:
    """
    Tokens by which samples that have begun lag as they wait for room in a full KV cache.

    q = l (l / p) / sqrt(b)

    Args:
        response_tokens: Mean response, l. [token]
        prompt_tokens: KV of a sample's prompt, of which samples of a group have one, p; above 0. [token]
        samples: Samples that the cache holds, b. [1]

    Returns:
        q. [token]

    Assumes that what the cache holds varies by the root of its samples, and that room for one response lets l / p
    samples begin, which have nothing but their prompts; they are thrown out as others grow, and run on as they come.
    Source: own derivation: sqrt(b) l / p samples wait, of which b end while one grows by l tokens.

    >>> tokens_in_queue(response_tokens=1000.0, prompt_tokens=200.0, samples=100.0)
    500.0
    """
    return response_tokens * (response_tokens / prompt_tokens) / samples**0.5


def cache_concurrency(cache_tokens: Real, live_tokens: Real) -> Real:
    """
    Samples that a KV cache of a known number of tokens holds while others wait for room.

    b = C / s - 1/2, at least half of C / s

    Args:
        cache_tokens: Tokens that the cache holds, C. [token]
        live_tokens: Cache tokens of a sample in flight, in the mean, s. [token]

    Returns:
        b. [1]

    Assumes that samples are whole: when one more does not fit, half of what one needs is empty in the mean.
    Source: Kwon et al., PagedAttention, section 4.5 (samples are preempted when no block is left); the rest of a
    division is spread evenly.

    >>> cache_concurrency(cache_tokens=301_500, live_tokens=3000)
    100.0
    """
    room = cache_tokens / live_tokens
    return maximum(room - 0.5, room / 2.0)


def step_time_of_rate(batch: Real, rate: Real) -> Real:
    """
    Time of one engine step, from the rate that a full batch reaches.

    T = b / r

    Args:
        batch: Samples in the step, b. [1]
        rate: Response tokens per second of the instance, r. [token/s]

    Returns:
        T. [s/token]

    Assumes a token for each sample in each step, and a rate that holds what prompts cost.
    Source: definition of the engine step.

    >>> step_time_of_rate(batch=64, rate=4000.0)
    0.016
    """
    return batch / rate
