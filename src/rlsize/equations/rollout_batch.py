"""Rates and times of many samples: steady load, an offline batch, a batch that waits for its longest sample."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.equations._ops import maximum, minimum, where

if TYPE_CHECKING:
    from rlsize.equations._ops import Real


def steady_rate(batch: Real, response_tokens: Real, prefill_seconds: Real, step_seconds: Real) -> Real:
    """
    Response tokens per second of an instance whose batch stays full.

    r = b l / (b P + l T)

    Args:
        batch: Samples in flight, b. [1]
        response_tokens: Mean response length, l. [token]
        prefill_seconds: Engine time that one prompt takes, P. [s]
        step_seconds: Decode step at this batch, one token for each sample, T. [s/token]

    Returns:
        r. [token/s]

    Assumes prefill takes engine time from decoding, whether in steps of its own or in chunks that ride along.
    Source: conservation of work: while l steps run, b samples finish and as many prompts are prefilled.

    >>> steady_rate(batch=100, response_tokens=1000, prefill_seconds=0.01, step_seconds=0.019)
    5000.0
    """
    return batch * response_tokens / (batch * prefill_seconds + response_tokens * step_seconds)


def below_ceiling(rate: Real, ceiling: Real) -> Real:
    """
    A rate that something else limits, with a smooth corner.

    r' = (r^-8 + c^-8)^(-1/8)

    Args:
        rate: What the engine would reach, r. [token/s]
        ceiling: What passes at most, c. [token/s]

    Returns:
        r'. [token/s]

    Assumes the two stages hardly disturb each other until one is nearly full.
    Source: smooth minimum; the exponent is a choice.

    >>> round(below_ceiling(rate=1000.0, ceiling=4000.0), 3)
    999.998
    """
    share = rate / ceiling
    return rate / (1 + share**8) ** 0.125


def front_end_ceiling(token_seconds: Real, request_seconds: Real, response_tokens: Real) -> Real:
    """
    Response tokens per second that a server's front end passes on at most.

    c = 1 / max(t_t, t_r / l)

    Args:
        token_seconds: Front-end time of a streamed token, t_t. [s/token]
        request_seconds: Front-end time of a request, t_r. [s]
        response_tokens: Mean response length, l. [token]

    Returns:
        c. [token/s]

    Assumes one process that handles requests and tokens one after the other.
    Source: fitted to servers whose throughput stops growing with concurrency and with GPUs at once.

    >>> front_end_ceiling(token_seconds=1e-4, request_seconds=0.02, response_tokens=100)
    5000.0
    """
    return 1 / maximum(token_seconds, request_seconds / response_tokens)


def share_of(part: Real, whole: Real) -> Real:
    """
    Share of a time.

    f = t / T

    Args:
        part: The part, t. [s]
        whole: The whole, T. [s]

    Returns:
        f. [1]

    Assumes the part is one of the whole.
    Source: definition.

    >>> share_of(part=0.01, whole=0.04)
    0.25
    """
    return part / whole


def offline_waves(requests: Real, batch: Real, fixed_share: Real) -> Real:
    """
    Response lengths that pass while a fixed number of requests is worked off.

    w = 1 for N <= b, else N / b + f / 2

    Args:
        requests: Requests, N. [1]
        batch: Samples in flight at most, b. [1]
        fixed_share: Share of the decode step that does not shrink with the batch, f. [1]

    Returns:
        w. [1]

    Assumes all responses have the same length; as the last samples finish, the batch shrinks and its fixed time is
    spread over fewer: half a length if starts are staggered, nothing if the last wave is full.
    Source: ramp-down of a queue with refill.

    >>> offline_waves(requests=3000, batch=1000, fixed_share=0.5)
    3.25
    >>> offline_waves(requests=500, batch=1000, fixed_share=0.5)
    1.0
    """
    return where(requests <= batch, 1.0, requests / batch + fixed_share / 2)


def offline_rate(requests: Real, response_tokens: Real, prefill_seconds: Real, waves: Real, step_seconds: Real) -> Real:
    """
    Response tokens per second over a whole offline run.

    r = N l / (N P + w l T)

    Args:
        requests: Requests, N. [1]
        response_tokens: Response length, l. [token]
        prefill_seconds: Engine time that one prompt takes, P. [s]
        waves: Response lengths that pass, w. [1]
        step_seconds: Decode step, one token for each sample, T. [s/token]

    Returns:
        r. [token/s]

    Assumes what `offline_waves` does.
    Source: conservation of work.

    >>> offline_rate(requests=1000, response_tokens=100, prefill_seconds=0.01, waves=5, step_seconds=0.02)
    5000.0
    """
    return requests * response_tokens / (requests * prefill_seconds + waves * response_tokens * step_seconds)


def cycle_time(batch: Real, response_tokens: Real, rate: Real) -> Real:
    """
    Time from a request's arrival to its last token, at fixed concurrency.

    R = c l / r

    Args:
        batch: Requests in the system, waiting ones included, c. [1]
        response_tokens: Response length, l. [token]
        rate: Response tokens per second of the instance, r. [token/s]

    Returns:
        R. [s]

    Assumes each finished request is replaced at once.
    Source: Little's law.

    >>> cycle_time(batch=64, response_tokens=1000, rate=3200.0)
    20.0
    """
    return batch * response_tokens / rate


def time_to_first_token(
    cycle_seconds: Real, concurrency: Real, batch: Real, prefill_seconds: Real, arrival_share: Real, step_seconds: Real
) -> Real:
    """
    Time from a request's arrival to its first token, at fixed concurrency.

    t = R (1 - b / c) + a b^(1/2) P + P + T

    Args:
        cycle_seconds: Time from arrival to the last token, R. [s]
        concurrency: Requests in the system, c. [1]
        batch: Of these, in flight, b. [1]
        prefill_seconds: Engine time that one prompt takes, P. [s]
        arrival_share: Prompts that stand before one's own, over the root of the batch, a: 0 for arrivals one by one;
            half of that root for the mean of a wave. [1]
        step_seconds: Decode step under way, T. [s]

    Returns:
        t. [s]

    Assumes waiting requests stand in one queue, and that others clump by chance: as the root of their number. How
    requests arrive decides the split between first and later tokens, not their sum.
    Source: Little's law for the queue; the root holds from 8 to 128 requests in published closed loops.

    >>> time_to_first_token(cycle_seconds=10, concurrency=64, batch=64, prefill_seconds=0.02, arrival_share=0.25,
    ...                     step_seconds=0.03)
    0.09
    """
    return (
        cycle_seconds * (1 - batch / concurrency)
        + arrival_share * batch**0.5 * prefill_seconds
        + prefill_seconds
        + step_seconds
    )


def time_per_output_token(cycle_seconds: Real, first_token_seconds: Real, response_tokens: Real) -> Real:
    """
    Mean time between the tokens of a response.

    t = (R - t_1) / l

    Args:
        cycle_seconds: Time from arrival to the last token, R. [s]
        first_token_seconds: Time to the first token, t_1. [s]
        response_tokens: Response length, l. [token]

    Returns:
        t. [s/token]

    Assumes a response of more than one token.
    Source: definition.

    >>> time_per_output_token(cycle_seconds=20.4, first_token_seconds=0.4, response_tokens=1000)
    0.02
    """
    return (cycle_seconds - first_token_seconds) / response_tokens


def closed_loop_rate(
    concurrency: Real, response_tokens: Real, first_token_seconds: Real, output_token_seconds: Real
) -> Real:
    """
    Response tokens per second of a closed loop, from its two latencies.

    r = c l / (t_1 + l t_2)

    Args:
        concurrency: Requests in the system, c. [1]
        response_tokens: Response length, l. [token]
        first_token_seconds: Time to the first token, t_1. [s]
        output_token_seconds: Mean time between tokens, t_2. [s/token]

    Returns:
        r. [token/s]

    Assumes each finished request is replaced at once.
    Source: Little's law.

    >>> closed_loop_rate(concurrency=64, response_tokens=1000, first_token_seconds=2, output_token_seconds=0.03)
    2000.0
    """
    return concurrency * response_tokens / (first_token_seconds + response_tokens * output_token_seconds)


def samples_in_flight(concurrency: Real, capacity: Real, engine_limit: Real) -> Real:
    """
    Samples that an instance really works on at once.

    b = max(1, min(c, K, m))

    Args:
        concurrency: Samples offered to it, c. [1]
        capacity: Samples that fit into its KV cache, K. [1]
        engine_limit: The engine's own limit on its batch, m. [1]

    Returns:
        b. [1]

    Assumes a cache for at least one sample; whether there is one is asked before.
    Source: definition.

    >>> samples_in_flight(concurrency=512, capacity=190.5, engine_limit=256)
    190.5
    """
    return maximum(1.0, minimum(minimum(concurrency, capacity), engine_limit))


def per_instance(amount: Real, instances: Real) -> Real:
    """
    Share of one instance.

    a = A / n

    Args:
        amount: What the fleet has, A. [1]
        instances: Instances, n. [1]

    Returns:
        a. [1]

    Assumes it is shared out evenly.
    Source: definition.

    >>> per_instance(amount=2048, instances=16)
    128.0
    """
    return amount / instances


def instances_of_groups(instances: Real, groups: Real) -> Real:
    """
    Instances that have samples where those of a group stay together.

    m = min(n, g), at least 1

    Args:
        instances: Instances, n. [1]
        groups: Groups under way, g. [1]

    Returns:
        m. [1]

    Assumes each instance has a group before any has two.
    Source: definition.

    >>> instances_of_groups(instances=16.0, groups=8.0)
    8.0
    """
    return maximum(1.0, minimum(instances, groups))


def half(amount: Real) -> Real:
    """
    Half of something.

    a = A / 2

    Args:
        amount: The whole, A. [token]

    Returns:
        a. [token]

    Assumes nothing.
    Source: definition.

    >>> half(amount=100)
    50.0
    """
    return amount / 2


def fleet_time(samples: Real, response_tokens: Real, instances: Real, instance_rate: Real) -> Real:
    """
    Time in which a fleet with refilled slots finishes as many samples as a step needs.

    t = S l / (n r)

    Args:
        samples: Samples, S. [1]
        response_tokens: Mean response length, l. [token]
        instances: Instances, n. [1]
        instance_rate: Response tokens per second of one, r. [token/s]

    Returns:
        t. [s]

    Assumes a steady state, in which as many samples start as finish.
    Source: conservation of tokens.

    >>> fleet_time(samples=1000, response_tokens=2000, instances=10, instance_rate=4000)
    50.0
    """
    return samples * response_tokens / (instances * instance_rate)


def packed_time(samples: Real, response_tokens: Real, batch: Real, step_seconds: Real, prefill_seconds: Real) -> Real:
    """
    Time of a batch on one instance if its slots were busy to the end.

    t = S l / b T + S P

    Args:
        samples: Samples of the batch on one instance, S. [1]
        response_tokens: Mean response length, l. [token]
        batch: Samples in flight, b. [1]
        step_seconds: Decode step at this batch, T. [s/token]
        prefill_seconds: Engine time that one prompt takes, P. [s]

    Returns:
        t. [s]

    Assumes all responses end together; the difference to the real time is what the tail costs.
    Source: conservation of work.

    >>> packed_time(samples=100, response_tokens=1000, batch=100, step_seconds=0.02, prefill_seconds=0.01)
    21.0
    """
    return samples * response_tokens / batch * step_seconds + samples * prefill_seconds


def beyond(whole: Real, part: Real) -> Real:
    """
    What one time has beyond another.

    d = max(0, t - t_p)

    Args:
        whole: The one, t. [s]
        part: The other, t_p. [s]

    Returns:
        d. [s]

    Assumes both start together.
    Source: definition.

    >>> beyond(whole=30.0, part=21.0)
    9.0
    """
    return maximum(0.0, whole - part)


def batch_rate(samples: Real, response_tokens: Real, seconds: Real) -> Real:
    """
    Response tokens per second over the whole time of a batch.

    r = S l / t

    Args:
        samples: Samples of the batch, S. [1]
        response_tokens: Mean response length, l. [token]
        seconds: Time of the batch, t. [s]

    Returns:
        r. [token/s]

    Assumes nothing.
    Source: definition.

    >>> batch_rate(samples=100, response_tokens=1000, seconds=25.0)
    4000.0
    """
    return samples * response_tokens / seconds
