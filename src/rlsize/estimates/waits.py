"""What a trainer waits for, by what its engines did while it waited: a few long samples, or all that they can make."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rlsize.estimates.block_bootstrap import standard_error
from rlsize.facts.figure import Figure, absent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.facts.counters import Snapshot

KEY = "tail_of_wait_fraction"
_FULLEST = 0.95  # quantile of the samples that run, which is taken for all that do when engines are as full as they get
_PLACES = 200  # moments of a wait, or of a window, at which the engines are looked at
_WIDE = 1.2816  # standard deviations to the ends of an 80 % interval


def tail_of_wait(
    histories: Mapping[str, Sequence[Snapshot]], ends: Sequence[float], steps: Sequence[float], waits: Sequence[float],
    gap: float,
) -> Figure:  # fmt: skip
    """
    The share of a trainer's waiting in which slots of its engines stood empty: more instances shorten the rest only.

    A slot is empty as far as fewer samples run than when the engines are at their fullest, and none waits. A step
    begins with its wait, as frameworks have it. It is seen to end up to a gap late: the figure is that of half of it,
    and its bounds those of all of it and of none, and of the scatter of the steps. Where no step is seen they are those
    of a wait that lies wherever it may in the window.

    Args:
        histories: Snapshots of each instance, in the order of time.
        ends: When each step was seen to have ended; none where steps are not seen. [s]
        steps: How long each took. [s]
        waits: How long the trainer waited in it; without ends, the share of the window. [s]
        gap: How late an end may be seen. [s]
    """
    told = {name: each for name, each in histories.items() if any(_running(one) is not None for one in each)}
    if not told or sum(waits) <= 0:
        return absent(KEY, "running requests and waits over time")
    first = min(each[0].seconds for each in told.values())
    last = max(each[-1].seconds for each in told.values())
    grid = np.linspace(first, last, _PLACES)
    fullest = float(np.quantile(_total(told, grid, "requests_running"), _FULLEST))
    if fullest <= 0:
        return absent(KEY, "requests that run")

    def empty(moments: np.ndarray) -> np.ndarray:
        running, queued = (_total(told, moments, f"requests_{name}") for name in ("running", "waiting"))
        return np.where(queued >= len(told), 0.0, np.clip(1.0 - running / fullest, 0.0, 1.0))

    if not ends:
        free, share = float(empty(grid).mean()), min(1.0, float(np.mean(waits)))
        low, high = max(0.0, share + free - 1.0) / share, min(share, free) / share
        return _measured(free, (high - low) / 2, "over the window")
    starts = [end - step for end, step in zip(ends, steps, strict=True)]
    shares = np.array([
        [float(empty(np.linspace(start - late, start - late + wait, _PLACES)).mean()) for late in (0, gap / 2, gap)]
        for start, wait in zip(starts, waits, strict=True)
    ])  # fmt: skip
    weights = np.asarray(waits)[:, None] / float(np.mean(waits))
    means = (shares * weights).mean(axis=0)
    spread = _WIDE * (standard_error(list((shares * weights)[:, 1])) or 0.0)
    return _measured(
        float(means[1]), max(means[1] - means.min(), means.max() - means[1]) + spread, f"{len(ends)} waits"
    )


def _measured(share: float, around: float, where: str) -> Figure:
    return Figure(
        key=KEY,
        value=min(1.0, share),
        provenance="measured",
        source=f"running requests, {where}",
        deviation=float(around) / _WIDE,
        least=0.0,
        most=1.0,
    )


def _running(one: Snapshot) -> float | None:
    return one.counters.requests_running


def _total(histories: Mapping[str, Sequence[Snapshot]], moments: np.ndarray, name: str) -> np.ndarray:
    """A gauge of all instances together, at some moments, by lines between looks."""
    found = np.zeros(len(moments))
    for each in histories.values():
        pairs = [(one.seconds, value) for one in each if (value := getattr(one.counters, name)) is not None]
        if pairs:
            found += np.interp(moments, [at for at, _ in pairs], [value for _, value in pairs])
    return found
