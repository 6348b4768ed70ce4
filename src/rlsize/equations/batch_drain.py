"""A batch as it drains: how many samples still run when their responses have reached some length."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.equations._ops import ceil, exp, log, maximum, minimum, sqrt, where
from rlsize.equations.lengths import capped_mean, lognormal_sigma, normal_share

if TYPE_CHECKING:
    from rlsize.equations._ops import Real

_HALVINGS = 60
_RARE = 1e-12  # a share of samples that is none


def uncapped_mean(mean_tokens: Real, length_cv: Real, max_tokens: Real) -> Real:
    """
    Mean length without the cap, from the mean that is seen with it.

    l_0 such that E[min(X, m)] = l

    Args:
        mean_tokens: Mean length that is seen, samples cut at the cap included, l. [token]
        length_cv: Coefficient of variation without the cap, c. [1]
        max_tokens: The cap, m; above the mean. [token]

    Returns:
        l_0. [token]

    Assumes lognormal lengths; a mean within 2 % of the cap is taken as 2 % below it.
    Source: inverse of the limited expected value (`lengths.capped_mean`), by bisection.

    >>> round(float(uncapped_mean(mean_tokens=873.123, length_cv=1.0, max_tokens=2000.0)), 1)
    1000.0
    """
    seen = minimum(mean_tokens, 0.98 * max_tokens)
    low, high = log(seen), log(max_tokens) + 9.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        short = capped_mean(exp(middle), length_cv, max_tokens) < seen
        low, high = where(short, middle, low), where(short, high, middle)
    return exp((low + high) / 2)


def finished_share(tokens: Real, mean_tokens: Real, length_cv: Real, max_tokens: Real) -> Real:
    """
    Share of responses that are no longer than some length.

    F = Phi((ln(x / l_0) + s^2 / 2) / s), 1 from the cap on

    Args:
        tokens: The length, x. [token]
        mean_tokens: Mean length without the cap, l_0. [token]
        length_cv: Coefficient of variation without the cap, with s^2 = ln(1 + c^2). [1]
        max_tokens: The cap. [token]

    Returns:
        F. [1]

    Assumes lognormal lengths.
    Source: distribution function of the lognormal.

    >>> round(finished_share(tokens=1000.0, mean_tokens=1000.0, length_cv=1.0, max_tokens=8000.0), 4)
    0.6614
    """
    sigma = maximum(lognormal_sigma(length_cv), 1e-3)
    share = normal_share((log(tokens / mean_tokens) + sigma**2 / 2) / sigma)
    return where(tokens < max_tokens, share, 1.0)


def mean_of_longer(tokens: Real, mean_tokens: Real, length_cv: Real, max_tokens: Real) -> Real:
    """
    Mean length of the samples that are longer than some tokens.

    l_x = min(m, x + (E[min(X, m)] - E[min(X, x)]) / (1 - F))

    Args:
        tokens: Tokens that they have got to, x; between nothing and the cap. [token]
        mean_tokens: Mean length without the cap. [token]
        length_cv: Coefficient of variation without the cap. [1]
        max_tokens: The cap, m. [token]

    Returns:
        l_x. [token]

    Assumes lognormal lengths, cut off at the cap.
    Source: mean excess, from the limited expected value (`lengths.capped_mean`).

    >>> round(float(mean_of_longer(tokens=1000.0, mean_tokens=1000.0, length_cv=1.0, max_tokens=2000.0)), 1)
    1578.6
    """
    longer = maximum(1 - finished_share(tokens, mean_tokens, length_cv, max_tokens), _RARE)
    excess = capped_mean(mean_tokens, length_cv, max_tokens) - capped_mean(mean_tokens, length_cv, tokens)
    return minimum(max_tokens, tokens + maximum(excess, 0.0) / longer)


def finished_share_in_flight(tokens: Real, mean_tokens: Real, length_cv: Real, max_tokens: Real) -> Real:
    """
    Share of samples in flight that finish within some more tokens.

    F_e = E[min(X, x)] / E[min(X, m)]

    Args:
        tokens: Further tokens, x. [token]
        mean_tokens: Mean length without the cap. [token]
        length_cv: Coefficient of variation without the cap. [1]
        max_tokens: The cap, m. [token]

    Returns:
        F_e. [1]

    Assumes lognormal lengths, and samples of all ages.
    Source: distribution of residual life (Cox, Renewal theory, section 5.2).

    >>> round(finished_share_in_flight(tokens=1000.0, mean_tokens=1000.0, length_cv=0.0, max_tokens=8000.0), 4)
    1.0
    """
    reached = minimum(tokens, max_tokens)
    return capped_mean(mean_tokens, length_cv, reached) / capped_mean(mean_tokens, length_cv, max_tokens)


def chance_of_any(finished_share: Real, samples: Real) -> Real:
    """
    Chance that at least one of some samples still runs.

    P = 1 - F^n

    Args:
        finished_share: Share that has finished by then, F. [1]
        samples: Samples, n. [1]

    Returns:
        P. [1]

    Assumes independent samples; correlation within a group lowers it.
    Source: largest order statistic.

    >>> round(chance_of_any(finished_share=0.99, samples=100), 4)
    0.634
    """
    return 1 - finished_share**samples


def still_running(finished_share: Real, samples: Real, chance: Real) -> Real:
    """
    Samples that still run, given that any does.

    h = n (1 - F) / P, at least 1

    Args:
        finished_share: Share that has finished by then, F. [1]
        samples: Samples, n. [1]
        chance: Chance that any still runs, P. [1]

    Returns:
        h. [1]

    Assumes independent samples.
    Source: conditional mean.

    >>> still_running(finished_share=0.5, samples=100, chance=1.0)
    50.0
    """
    return maximum(1.0, samples * (1 - finished_share) / maximum(chance, 1e-12))


def full_steps(samples: Real, slots: Real, mean_tokens: Real, mean_remaining: Real) -> Real:
    """
    Engine steps with all slots busy, before a batch that is larger than its slots begins to drain.

    n = l (sqrt(q^2 + 4 x) - q) / 2 with q = l_r / l - x and x = max(0, S / H - 1)

    Args:
        samples: Samples of the batch on one instance, S. [1]
        slots: Samples in flight at most, H. [1]
        mean_tokens: Mean response length, l. [token]
        mean_remaining: Mean remaining length of a sample in flight, l_r. [token]

    Returns:
        n. [token]

    Assumes slots are refilled until no sample waits, and work is conserved: n = S l / H - (1 - w) l - w l_r, with w the
    share of samples that are of all ages by then (`aged_share`); far more samples than slots need S l / H - l_r.
    Source: conservation of work and renewal theory.

    >>> round(full_steps(samples=1024, slots=256, mean_tokens=1000, mean_remaining=625), 1)
    3287.5
    """
    more = maximum(0.0, samples / slots - 1.0)
    fewer = mean_remaining / mean_tokens - more
    return mean_tokens * (sqrt(fewer * fewer + 4.0 * more) - fewer) / 2.0


def aged_share(full_steps: Real, mean_tokens: Real) -> Real:
    """
    Share of a draining batch that is of all ages, as its slots were refilled; the rest has started together.

    w = n / (n + l)

    Args:
        full_steps: Steps with all slots busy, n. [token]
        mean_tokens: Mean response length, l. [token]

    Returns:
        w. [1]

    Assumes that a slot forgets when it started after some mean lengths.
    Source: own approximation of renewal theory.

    >>> aged_share(full_steps=3000, mean_tokens=1000)
    0.75
    """
    return full_steps / (full_steps + mean_tokens)


def drained_time(
    full_steps: Real, full_step_seconds: Real, draining_seconds: Real, samples: Real, prefill_seconds: Real
) -> Real:
    """
    Time of a batch that waits for its last sample.

    t = n T + t_d + S P

    Args:
        full_steps: Steps with all slots busy, n. [token]
        full_step_seconds: One of them, T. [s/token]
        draining_seconds: Steps while the batch drains, t_d. [s]
        samples: Samples of the batch on one instance, S. [1]
        prefill_seconds: Engine time that one prompt takes, P. [s]

    Returns:
        t. [s]

    Assumes prefill takes engine time from decoding.
    Source: sum.

    >>> drained_time(full_steps=1000, full_step_seconds=0.02, draining_seconds=10, samples=100, prefill_seconds=0.01)
    31.0
    """
    return full_steps * full_step_seconds + draining_seconds + samples * prefill_seconds


def reached_tokens(seconds: Real, sample_seconds: Real, mean_tokens: Real, max_tokens: Real) -> Real:
    """
    Length that a sample gets to in some time.

    x = min(t l / t_l, m), at least l / 1,000

    Args:
        seconds: The time, t. [s]
        sample_seconds: Time of a sample of mean length, t_l. [s]
        mean_tokens: Mean response length, l. [token]
        max_tokens: The cap, m. [token]

    Returns:
        x. [token]

    Assumes each token takes as long as any other.
    Source: proportion.

    >>> reached_tokens(seconds=80.0, sample_seconds=40.0, mean_tokens=1000.0, max_tokens=8000.0)
    2000.0
    """
    return maximum(minimum(mean_tokens * seconds / sample_seconds, max_tokens), 1e-3 * mean_tokens)


def kept_tokens(generated_tokens: Real, reached_tokens: Real, finished_share: Real, group_size: Real) -> Real:
    """
    Mean tokens of a sample that are trained on, where groups with a sample that is not finished by then are dropped.

    f = F^(G-1) (g - (1 - F) x)

    Args:
        generated_tokens: Mean tokens that a sample has got to, g = E[min(X, x)]. [token]
        reached_tokens: The length at which unfinished samples are dropped, x. [token]
        finished_share: Share of samples that are no longer than that, F. [1]
        group_size: Samples that are dropped together, G; 1 where each stands for itself. [1]

    Returns:
        f. [token]

    Assumes independent lengths; correlation within a group raises it.
    Source: partial expectation, times the chance that all others of the group have finished.

    >>> kept_tokens(generated_tokens=800.0, reached_tokens=1600.0, finished_share=0.9, group_size=1)
    640.0
    """
    return finished_share ** (group_size - 1) * maximum(0.0, generated_tokens - (1 - finished_share) * reached_tokens)


def groups_lacking(unfinished: Real, complete_share: Real, max_staleness: Real) -> Real:
    """
    Groups that must be under way beside those which are, just after a batch is taken, if late ones are dropped; over
    those that begin after each sync. Above 0 samples must wait longer.

    d = k F - U

    Args:
        unfinished: Groups under way, of all ages, U, over those that begin after each sync. [1]
        complete_share: Share of the oldest that may still be trained on which is complete, F. [1]
        max_staleness: Staleness cap, k. [1]

    Returns:
        d. [1]

    Assumes 1 / F batches that begin after each sync, of which one is trained on; what is late is dropped as it ends.
    Source: balance of the groups that the cap lets in: k + 1 batches, of which one has just been taken.

    >>> groups_lacking(unfinished=1.5, complete_share=0.75, max_staleness=2.0)
    0.0
    """
    return max_staleness * complete_share - unfinished


def syncs_to_end(running: Real, kept_share: Real, max_staleness: Real) -> Real:
    """
    Syncs within which a group must end to be trained on, where the trainer never waits and drops what is late.

    g = r + ceil(k) - f (k - 1/2), between 1 and ceil(k)

    Args:
        running: Groups that have not ended, over those that begin from one sync to the next, on average, r. [1]
        kept_share: Share of groups that are trained on, f. [1]
        max_staleness: Cap on staleness, k. [1]

    Returns:
        g. [1]

    Assumes that groups which have ended queue for the trainer in that order. What the cap lets be under way and does
    not run stands in this queue, late groups until they are dropped; those that run fall evenly between two syncs.
    Source: balance of groups that have begun, and of those that run, queue and have been trained on.

    >>> syncs_to_end(running=1.0, kept_share=1.0, max_staleness=4.0)
    1.5
    """
    most = ceil(max_staleness)
    return minimum(maximum(running + most - kept_share * (max_staleness - 0.5), 1.0), most)


def tokens_per_kept_token(generated_tokens: Real, kept_tokens: Real) -> Real:
    """
    Response tokens generated for each that is trained on, where some samples are dropped.

    w = g / f, at most 1,000

    Args:
        generated_tokens: Mean tokens that a sample has got to, g. [token]
        kept_tokens: Mean tokens of it that are trained on, f. [token]

    Returns:
        w. [1]

    Assumes lengths do not depend on when a sample starts.
    Source: definition.

    >>> tokens_per_kept_token(generated_tokens=800.0, kept_tokens=640.0)
    1.25
    """
    return generated_tokens / maximum(kept_tokens, 1e-3 * generated_tokens)


def dropped_share(tokens_per_kept_token: Real) -> Real:
    """
    Share of generated tokens that are in samples which are dropped.

    d = (w - 1) / w

    Args:
        tokens_per_kept_token: Response tokens generated for each that is trained on, w. [1]

    Returns:
        d. [1]

    Assumes nothing.
    Source: definition.

    >>> dropped_share(tokens_per_kept_token=1.25)
    0.2
    """
    return (tokens_per_kept_token - 1) / tokens_per_kept_token


def tokens_of_slot(full_steps: Real, drained_tokens: Real, unfinished: Real, slots: Real, aged_tokens: Real) -> Real:
    """
    Tokens of a batch that one slot generates and that are not dropped, where the batch closes before all have finished.

    f = n + g - min(q / H, 1) a

    Args:
        full_steps: Steps with all slots busy, n. [token]
        drained_tokens: Mean tokens that count of those from then on, g. [token]
        unfinished: Samples that are dropped, those that never started among them, q; 0 for all that is generated. [1]
        slots: Samples in flight when no more wait, H. [1]
        aged_tokens: Mean tokens that one in flight had by then, a; 0 where all start at once. [token]

    Returns:
        f. [token]

    Assumes dropped samples are of the age of the others.
    Source: sum.

    >>> tokens_of_slot(full_steps=1000, drained_tokens=700.0, unfinished=20, slots=100, aged_tokens=500.0)
    1600.0
    """
    return full_steps + drained_tokens - minimum(unfinished / slots, 1.0) * aged_tokens


def least_trained(made_tokens: Real, wanted: Real, slots: Real) -> Real:
    """
    Tokens of a slot that are trained on at least, where a batch closes long before those in flight have finished.

    f = m W / (W + H)

    Args:
        made_tokens: Tokens that one slot generates until then, m. [token]
        wanted: Samples that the batch closes with, W. [1]
        slots: Samples in flight, all of which are dropped, H. [1]

    Returns:
        f. [token]

    Assumes those dropped have got no further than those that finished.
    Source: shares of the samples that were begun.

    >>> least_trained(made_tokens=400.0, wanted=100, slots=300)
    100.0
    """
    return made_tokens * wanted / (wanted + slots)


def carried_in_flight(started: Real, wanted: Real, mean_tokens: Real, longest_tokens: Real) -> Real:
    """
    Mean samples that run while a batch is generated whose unfinished groups go on in the next one.

    h = (S - W / 2) l / M

    Args:
        started: Samples under way when it begins, those carried over among them, S. [1]
        wanted: Samples that it closes with, W. [1]
        mean_tokens: Mean response length, l. [token]
        longest_tokens: Expected longest response of a group, M. [token]

    Returns:
        h. [1]

    Assumes groups finish at an even pace, and a sample of an open group runs for its share of the group's time.
    Source: work is conserved, batch after batch; within 20 % of the simulator for groups of 1 to 8.

    >>> carried_in_flight(started=160, wanted=128, mean_tokens=1000.0, longest_tokens=2000.0)
    48.0
    """
    return (started - wanted / 2) * mean_tokens / longest_tokens
