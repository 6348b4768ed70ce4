"""
Whether an engine was asked for all that it can do.

A rate read from a running engine is demand until something shows that more was wanted than the engine gave. A constant
batch shows nothing: engines held back by their queue run at a constant batch too, and a fleet sized from that demand
grows with every round.
"""

from __future__ import annotations

from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.facts.counters import EngineCounters, Snapshot

ENOUGH = 0.9  # an instance saturated for less of the window gives a lower bound
NEAR_PLATEAU = 0.95  # share of the plateau at which a batch counts as full
FULL_STEPS = 0.9  # share of the batch at both ends that the mean step must have run, where nobody looked in between
BLIND_SECONDS = 15.5  # two looks further apart say nothing about the time between; Prometheus looks every 15 s or so
SURE_MOMENTS = 3  # moments with requests waiting from which a plateau is read, if they are half of all moments


@dataclass(frozen=True, slots=True, kw_only=True)
class Saturation:
    """
    How much of a window an engine was saturated.

    Args:
        fraction: Share of the window; None where more than a tenth of it is unknown.
        why: What showed it.
    """

    fraction: float | None
    why: str

    @property
    def enough(self) -> bool:
        """Whether the rate is what the engine can do, not only what it was asked for."""
        return self.fraction is not None and self.fraction >= ENOUGH


def saturation(snapshots: Sequence[Snapshot], largest_batch: float | None = None) -> Saturation:
    """
    How much of the time between the first and the last snapshot the engine was saturated.

    An interval is saturated when at both its ends requests wait for capacity, or the batch is at its plateau: at the
    engine's limit where the caller knows it, else at the median batch of the moments with requests waiting, if those
    are half of all moments. Over an interval in which nobody looked for long, the mean step must have run a full batch
    as well.

    Args:
        snapshots: Two or more, in the order of time.
        largest_batch: The engine's limit on running requests (`--max-num-seqs`), where known.
    """
    plateau = _plateau(snapshots, largest_batch)
    spans: dict[bool | None, float] = {True: 0.0, False: 0.0, None: 0.0}
    for first, second in pairwise(snapshots):
        spans[_interval(first, second, plateau)] += second.seconds - first.seconds
    whole = sum(spans.values())
    unknown = spans[None] / whole
    fraction = None if unknown > 1.0 - ENOUGH else spans[True] / whole
    if len(snapshots) == 2:  # noqa: PLR2004 (a first and a last look)
        return Saturation(fraction=fraction, why=_why_of_two(snapshots[0], snapshots[1], plateau))
    return Saturation(fraction=fraction, why=_why_of_many(snapshots, plateau, fraction, unknown))


def _waiting(counters: EngineCounters) -> float | None:
    """Requests that wait for room; those held back for another reason would wait beside an idle engine too."""
    known = counters.requests_waiting_for_capacity
    return counters.requests_waiting if known is None else known


def _plateau(snapshots: Sequence[Snapshot], largest_batch: float | None) -> float | None:
    if largest_batch is not None:
        return largest_batch
    batches = [
        snapshot.counters.requests_running
        for snapshot in snapshots
        if _waiting(snapshot.counters) and snapshot.counters.requests_running is not None
    ]
    sure = len(batches) >= max(SURE_MOMENTS, len(snapshots) / 2)
    return median(batches) or None if sure else None


def _full(counters: EngineCounters, plateau: float | None) -> bool | None:
    waiting = _waiting(counters)
    if waiting:
        return True
    if plateau is not None and counters.requests_running is not None:
        return counters.requests_running >= NEAR_PLATEAU * plateau
    return None if waiting is None else False


def _interval(first: Snapshot, second: Snapshot, plateau: float | None) -> bool | None:
    ends = (_full(first.counters, plateau), _full(second.counters, plateau))
    if None in ends:
        return None
    blind = second.seconds - first.seconds > BLIND_SECONDS
    if all(ends):
        return True if not blind or _ran_full(first, second) else None
    return None if blind else False  # nobody saw what ran in between


def _ran_full(first: Snapshot, second: Snapshot) -> bool:
    """Whether the mean step between two looks ran nearly the batch of its ends, and steps filled the time."""
    batch, mean = _end_batch(first, second), _mean_batch(first, second)
    stepping = _stepping_fraction(first, second)
    return bool(batch and mean and mean >= FULL_STEPS * batch and (stepping is None or stepping >= FULL_STEPS))


def _end_batch(first: Snapshot, second: Snapshot) -> float | None:
    ends = (first.counters.requests_running, second.counters.requests_running)
    return None if ends[0] is None or ends[1] is None else (ends[0] + ends[1]) / 2.0


def _sample_steps(first: Snapshot, second: Snapshot) -> float:
    """Engine steps summed over samples: the tokens, less those that speculation added to a step."""
    tokens = second.counters.generation_tokens - first.counters.generation_tokens
    drafts = [snapshot.counters.accepted_draft_tokens or 0.0 for snapshot in (first, second)]
    return tokens - (drafts[1] - drafts[0])


def _steps(first: Snapshot, second: Snapshot) -> float | None:
    before, after = first.counters.step_tokens, second.counters.step_tokens
    return None if before is None or after is None else (after.count - before.count) or None


def _mean_batch(first: Snapshot, second: Snapshot) -> float | None:
    steps = _steps(first, second)
    return None if steps is None else _sample_steps(first, second) / steps


def _stepping_fraction(first: Snapshot, second: Snapshot) -> float | None:
    """
    Share of the time that engine steps filled; None where the page cannot tell.

    A mean batch counts steps only, so it does not see an engine that stood still between two bursts; the time between
    tokens does.
    """
    before, after = (one.counters.inter_token_seconds for one in (first, second))
    steps = _steps(first, second)
    if before is None or after is None or steps is None:
        return None
    gaps = after.count - before.count
    # an older histogram of this name counts samples, not tokens
    if gaps < _sample_steps(first, second) / 2.0 or gaps <= 0:
        return None
    return steps * (after.sum - before.sum) / gaps / (second.seconds - first.seconds)


def _why_of_two(first: Snapshot, second: Snapshot, plateau: float | None) -> str:
    waiting = (_waiting(first.counters), _waiting(second.counters))
    if waiting[0] is None or waiting[1] is None:
        return "unknown: the page does not say how many requests wait"
    queue = f"{waiting[0]:.0f} and {waiting[1]:.0f} requests waited at the two ends"
    ends = [_full(snapshot.counters, plateau) for snapshot in (first, second)]
    if not any(ends):
        blind = second.seconds - first.seconds > BLIND_SECONDS
        return f"unknown: {queue}, and nobody looked in between" if blind else f"not saturated: {queue}"
    if not all(ends):
        return f"unknown: {queue}"
    verdict = "saturated" if _interval(first, second, plateau) else "unknown"
    steps, mean, batch = _steps(first, second), _mean_batch(first, second), _end_batch(first, second)
    if steps is None or mean is None or batch is None:
        return f"{verdict}: {queue}; the pages do not say what ran in between"
    ran = f"the mean of {steps:,.0f} steps ran {mean:.1f} of {batch:.1f} requests"
    stepping = _stepping_fraction(first, second)
    filled = (
        "" if stepping is None or stepping >= FULL_STEPS else f", and steps filled {100 * stepping:.0f} % of the time"
    )
    return f"{verdict}: {queue}, and {ran}{filled}"


def _why_of_many(snapshots: Sequence[Snapshot], plateau: float | None, fraction: float | None, unknown: float) -> str:
    queues = [_waiting(snapshot.counters) for snapshot in snapshots]
    if all(queue is None for queue in queues):
        return "unknown: the page does not say how many requests wait"
    waited = sum(1 for queue in queues if queue)
    text = f"requests waited at {waited} of {len(snapshots)} moments"
    if plateau is not None:
        text += f", the batch's plateau is {plateau:.0f}"
    if fraction is None:
        return f"unknown for {100 * unknown:.0f} % of the window: {text}"
    return f"saturated for {100 * fraction:.0f} % of the window: {text}"
