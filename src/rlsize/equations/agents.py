"""Turns, tools, environments and verifiers: what samples wait for outside the GPUs, and the pools that hold them up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.equations._ops import exp, log, maximum, minimum, where

if TYPE_CHECKING:
    from rlsize.equations._ops import Real

_NEVER = 1e-5  # a chance below which no turn ends a sample


def mean_turns(most_turns: Real, end_fraction: Real) -> Real:
    """
    Turns of the mean sample.

    k = (1 - (1 - q)^n) / q, n where q = 0

    Args:
        most_turns: Turns at most, n. [1]
        end_fraction: Chance that a turn is the last one, q. [1]

    Returns:
        k. [1]

    Assumes every turn but the last one ends a sample with the same chance.
    Source: mean of a geometric distribution that is cut off.

    >>> mean_turns(most_turns=3, end_fraction=0.5)
    1.75
    """
    ends = maximum(end_fraction, _NEVER)
    mean = (1 - (1 - ends) ** most_turns) / ends
    return where(end_fraction > _NEVER, minimum(maximum(mean, 1.0), most_turns), most_turns)  # rounding is no turn


def turns_variance(most_turns: Real, end_fraction: Real) -> Real:
    """
    Variance of the turns of a sample.

    s = k + 2 r (1 - n r^(n - 1) + (n - 1) r^n) / q^2 - k^2 with r = 1 - q, 0 where q = 0

    Args:
        most_turns: Turns at most, n. [1]
        end_fraction: Chance that a turn is the last one, q. [1]

    Returns:
        s. [1]

    Assumes what `mean_turns` does.
    Source: second moment of a geometric distribution that is cut off.

    >>> turns_variance(most_turns=3, end_fraction=0.5)
    0.6875
    """
    ends = maximum(end_fraction, _NEVER)
    goes_on, mean = 1 - ends, mean_turns(most_turns, end_fraction)
    first = goes_on * (1 - most_turns * goes_on ** (most_turns - 1) + (most_turns - 1) * goes_on**most_turns)
    return where(end_fraction > _NEVER, mean + 2 * first / ends**2 - mean**2, 0.0)


def call_time(tool_seconds: Real, environment_seconds: Real, failed_fraction: Real) -> Real:
    """
    Time until a tool has answered, calls that a failing environment makes it repeat included.

    c = (t + f s) / (1 - f)

    Args:
        tool_seconds: Mean time of a call, t. [s]
        environment_seconds: Until an environment has started, s. [s]
        failed_fraction: Chance that it fails in a call, f. [1]

    Returns:
        c. [s]

    Assumes each call fails with the same chance, at its end.
    Source: mean of a geometric distribution.

    >>> call_time(tool_seconds=8.0, environment_seconds=20.0, failed_fraction=0.2)
    15.0
    """
    return (tool_seconds + failed_fraction * environment_seconds) / (1 - failed_fraction)


def call_variance(tool_seconds: Real, tool_cv: Real, environment_seconds: Real, failed_fraction: Real) -> Real:
    """
    Variance of the time until a tool has answered.

    v = (t c)^2 (1 + f) / (1 - f)^2 + (t + s)^2 f / (1 - f)^2

    Args:
        tool_seconds: Mean time of a call, t. [s]
        tool_cv: Its coefficient of variation, c. [1]
        environment_seconds: Until an environment has started, s. [s]
        failed_fraction: Chance that it fails in a call, f. [1]

    Returns:
        v. [s^2]

    Assumes a call that is repeated takes as long as it did.
    Source: law of total variance over the failures, (1 + n) t + n s.

    >>> call_variance(tool_seconds=2.0, tool_cv=0.5, environment_seconds=8.0, failed_fraction=0.0)
    1.0
    """
    odds = failed_fraction / (1 - failed_fraction) ** 2
    again = (1 + failed_fraction) / (1 - failed_fraction) ** 2
    return (tool_seconds * tool_cv) ** 2 * again + (tool_seconds + environment_seconds) ** 2 * odds


def running_share(running_seconds: Real, outside_seconds: Real) -> Real:
    """
    Share of its time in which a sample has a slot of an engine.

    f = r / (r + z)

    Args:
        running_seconds: Time in which it generates, r. [s]
        outside_seconds: Time in which it waits for what is not on the GPUs, z. [s]

    Returns:
        f. [1]

    Assumes a sample that waits leaves its slot.
    Source: machine repairman with as many repairmen as machines; definition.

    >>> running_share(running_seconds=30.0, outside_seconds=10.0)
    0.75
    """
    return running_seconds / (running_seconds + outside_seconds)


def token_time(step_seconds: Real, wait_seconds: Real, running_share: Real) -> Real:
    """
    Time in which samples come a token further, of which some run and others wait.

    t = f T + (1 - f) w

    Args:
        step_seconds: Engine step, T. [s]
        wait_seconds: Time of a wait that counts as a token, w. [s]
        running_share: Share of them that run, f. [1]

    Returns:
        t. [s]

    Assumes that a wait lasts as long however many samples run meanwhile.
    Source: definition.

    >>> token_time(step_seconds=0.02, wait_seconds=0.01, running_share=0.5)
    0.015
    """
    return running_share * step_seconds + (1 - running_share) * wait_seconds


def waited_in_pause(pause_seconds: Real, wait_seconds: Real, waiting_share: Real) -> Real:
    """
    Time by which the mean sample under way comes further while engines pause: waits outside the GPUs go on.

    h = f w (1 - exp(-p / w))

    Args:
        pause_seconds: The pause, p. [s]
        wait_seconds: A wait, w; more than nothing. [s]
        waiting_share: Share of the samples under way that wait, f. [1]

    Returns:
        h. [s]

    Assumes waits that end at any time as likely as at any other; a sample whose wait has ended stands still.
    Source: mean of the lesser of an exponential time and a constant one.

    >>> round(waited_in_pause(pause_seconds=5.0, wait_seconds=10.0, waiting_share=0.5), 4)
    1.9673
    """
    return waiting_share * wait_seconds * (1 - exp(-pause_seconds / wait_seconds))


def contexts_at_calls(
    calls: Real, call_pairs: Real, prompt_tokens: Real, response_tokens: Real, tool_tokens: Real
) -> Real:
    """
    Contexts of a sample at all of its tool calls.

    q = k (p + l / 2) + m a

    Args:
        calls: Mean calls, k. [1]
        call_pairs: Mean pairs of a call and an earlier one, m. [1]
        prompt_tokens: What it has of its prompt by itself, p. [token]
        response_tokens: Its response, in parts as many as turns, l. [token]
        tool_tokens: What a tool answers, a. [token]

    Returns:
        q. [token]

    Assumes a response that does not depend on the turns.
    Source: sum over the calls.

    >>> contexts_at_calls(calls=3, call_pairs=3, prompt_tokens=100, response_tokens=800, tool_tokens=200)
    2100.0
    """
    return calls * (prompt_tokens + response_tokens / 2) + call_pairs * tool_tokens


def left_behind(
    sample_rate: Real, called_tokens: Real, called_seconds: Real, ended_tokens: Real, kept_seconds: Real
) -> Real:
    """
    KV in a cache that samples have left behind, for tools or for ever.

    M = x (q r + e w)

    Args:
        sample_rate: Samples that end in a time, x. [1/s]
        called_tokens: Contexts of one of them at all of its tool calls, q. [token]
        called_seconds: Time until its tool has answered or its KV is thrown out, r. [s]
        ended_tokens: What it has when it ends, e. [token]
        kept_seconds: Time after which what nobody has taken up is thrown out, w. [s]

    Returns:
        M. [token]

    Assumes that what was left longest ago goes first, so all of it is kept for the same time.
    Source: Che, Tung, Wang, Hierarchical web caching systems (2002), section III: characteristic time of a cache that
    replaces the least recently used; Little's law.

    >>> left_behind(sample_rate=2.0, called_tokens=1000, called_seconds=3.0, ended_tokens=500, kept_seconds=4.0)
    10000.0
    """
    return sample_rate * (called_tokens * called_seconds + ended_tokens * kept_seconds)


def pool_time(samples: Real, hold_seconds: Real, size: Real) -> Real:
    """
    Time in which a pool serves the samples of a step.

    t = N h / W

    Args:
        samples: Samples, N. [1]
        hold_seconds: How long one of them holds its place, h. [s]
        size: Places, W. [1]

    Returns:
        t. [s]

    Assumes no place is empty while a sample waits.
    Source: utilisation law.

    >>> pool_time(samples=512, hold_seconds=10.0, size=64)
    80.0
    """
    return samples * hold_seconds / size


def served_beside(seconds: Real, pool_seconds: Real) -> Real:
    """
    Time of a step's samples where a pool serves them as they come.

    T = max(t, u)

    Args:
        seconds: Time without the pool's limit, t. [s]
        pool_seconds: Time in which the pool serves them, u. [s]

    Returns:
        T. [s]

    Assumes the longer one hides the other.
    Source: bottleneck bound of a closed network of queues.

    >>> served_beside(seconds=60.0, pool_seconds=80.0)
    80.0
    """
    return maximum(seconds, pool_seconds)


def just_finished(finished_share: Real, done: Real, started: Real, log_ways: Real) -> Real:
    """
    Chance that of a group's samples just so many have finished.

    P = exp(w + j ln F + (n - j) ln(1 - F))

    Args:
        finished_share: Share of samples that have finished by then, F; between 0 and 1. [1]
        done: Samples that have finished, j. [1]
        started: Samples that the group begins with, n. [1]
        log_ways: Logarithm of the ways to choose them, w = ln(n over j): of thousands there are too many to count. [1]

    Returns:
        P. [1]

    Assumes independent samples that begin together.
    Source: binomial distribution.

    >>> round(just_finished(finished_share=0.5, done=1, started=2, log_ways=0.6931471805599453), 12)
    0.5
    """
    return exp(log_ways + done * log(finished_share) + (started - done) * log(1 - finished_share))


def scores_under_way(seconds: Real, cv: Real, verifiers: Real) -> Real:
    """
    What scores under way still take on average when the last one begins: that one, and others, met at any time.

    r = s (1 + v^2) / 2 + (s - s (1 + v^2) / 2) / k

    Args:
        seconds: Mean time of a score, s. [s]
        cv: Its coefficient of variation, v. [1]
        verifiers: Verifiers that score at once, k. [1]

    Returns:
        r. [s]

    Assumes that all verifiers are busy; what is met at any time is half over, longer ones more often.
    Source: residual life in renewal theory.

    >>> scores_under_way(seconds=10.0, cv=0.0, verifiers=5)
    6.0
    """
    rest = seconds * (1.0 + cv**2) / 2.0
    return rest + (seconds - rest) / verifiers


def scored_as_they_come(come_seconds: Real, verifiers: Real, score_seconds: Real, samples: Real) -> Real:
    """
    Share of the time of their scores within which samples come, at most all of it.

    q = min(1, k c / (s n))

    Args:
        come_seconds: Time in which all samples come, c. [s]
        verifiers: Verifiers that score at once, k. [1]
        score_seconds: Mean time of a score, s. [s]
        samples: Samples, n. [1]

    Returns:
        q. [1]

    Assumes that verifiers are busy once the first sample has come.
    Source: own sum.

    >>> scored_as_they_come(come_seconds=20.0, verifiers=4, score_seconds=10.0, samples=16)
    0.5
    """
    return minimum(1.0, verifiers * come_seconds / (score_seconds * samples))


def quicker_training(seconds: Real, taken_share: Real) -> Real:
    """
    Training time where the samples that end first are taken.

    u = a t

    Args:
        seconds: Time for samples of mean length, t. [s]
        taken_share: Mean length of those that are taken over that of all, a. [1]

    Returns:
        u. [s]

    Assumes time in proportion to tokens.
    Source: definition.

    >>> quicker_training(seconds=40.0, taken_share=0.75)
    30.0
    """
    return taken_share * seconds
