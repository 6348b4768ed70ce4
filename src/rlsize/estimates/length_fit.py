"""
The distribution of response lengths from a histogram's buckets: the capped lognormal that scenarios have.

Its mean is the exact one, from the histogram's sum and count; the spread is the likeliest one for the counts of the
buckets; the cap is the one that was asked for where the engine counts that, else the likeliest.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from statistics import NormalDist
from typing import TYPE_CHECKING

from rlsize.equations.batch_drain import finished_share, uncapped_mean
from rlsize.equations.lengths import lognormal_quantile
from rlsize.facts.counters import LengthCounts, LengthFit
from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

FEWEST = 30.0  # samples below which a spread is not worth naming
CAPPED_FEWEST = 3.0  # samples at a cap from which one is believed to be there
MISFIT = 0.1  # difference of shares from which lengths are said to be of another kind
WORSE = 2.0  # loss of log likelihood that nobody can tell from chance (95 %)
BETTER = 4.0  # gain of log likelihood from which a cap that nobody counted is believed
ABORTED = 0.01  # share of broken-off samples from which lengths are said to be cut
SHARES = (0.5, 0.9, 0.99)
_NARROWEST, _WIDEST = 0.02, 10.0
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
_HALVINGS = 28
_CAPS = 12  # caps that are tried within a bucket
_HALF = 0.5  # lengths are whole: those up to 100 tokens are those that rounding takes to 100 at most
_TINY = 1e-12
# steps of the caps that people choose, roundest first
_ROUND = (2**14, 2**13, 2**12, 5000, 2**11, 2**10, 1000, 500, 100)


@dataclass(frozen=True, slots=True)
class _Seen:
    """Samples between bounds; the first cell is open below, the last above."""

    bounds: tuple[float, ...]
    cells: tuple[float, ...]
    mean: float

    @property
    def samples(self) -> float:
        """How many there are."""
        return sum(self.cells)

    @property
    def top(self) -> tuple[float, float]:
        """The bounds of the highest cell with samples."""
        last = max(index for index, count in enumerate(self.cells) if count > 0)
        return (self.bounds[last - 1] if last else 0.0, self.bounds[last] if last < len(self.bounds) else math.inf)

    def shares(self, cv: float, cap: float | None) -> list[float]:
        """Share of samples up to each bound that a distribution with the seen mean has."""
        limit = cap if cap is not None else self.mean * 1e9
        centre = float(uncapped_mean(self.mean, cv, limit)) if cap is not None else self.mean
        return [
            1.0 if bound >= limit else float(finished_share(bound + _HALF, centre, cv, math.inf))
            for bound in self.bounds
        ]

    def likelihood(self, cv: float, cap: float | None) -> float:
        """Logarithm of the likelihood."""
        shares = [0.0, *self.shares(cv, cap), 1.0]
        return sum(
            count * math.log(max(above - below, _TINY))
            for count, (below, above) in zip(self.cells, pairwise(shares), strict=True)
            if count > 0
        )


def length_fit(counts: LengthCounts) -> LengthFit:
    """
    The distribution of what a histogram counted.

    Args:
        counts: Lengths of the samples that finished; at least one.
    """
    cumulative = (0.0, *counts.buckets.counts)
    cells = tuple(max(0.0, after - before) for before, after in pairwise(cumulative))
    seen = _Seen(counts.buckets.bounds, cells, counts.tokens / counts.samples)
    found = LengthFit(samples=counts.samples, mean=seen.mean)
    if counts.samples < FEWEST:
        return replace(found, why=f"{FEWEST:.0f} finished samples; {counts.samples:.0f} are too few")
    low, high = seen.top
    if sum(1 for count in seen.cells if count > 0) == 1:
        return replace(found, why=f"finer buckets: all samples lie between {low:,.0f} and {high:,.0f} tokens")
    cap, why = _cap(seen, counts)
    cv = _best(lambda value: seen.likelihood(value, cap))
    return replace(
        found,
        cv=cv,
        cv_error=_error(seen, cv, cap),
        cap=cap,
        cap_from=why,
        quantiles=_quantiles(seen.mean, cv, cap),
        misfit=_misfit(seen, cv, cap),
    )


def length_doubts(counts: LengthCounts, fit: LengthFit) -> list[str]:
    """What the reader must know before planning with these lengths."""
    doubts = []
    if fit.misfit is not None and fit.misfit > MISFIT:
        doubts.append(
            f"the lengths are not lognormal: the fit is off by {100 * fit.misfit:.0f} % of samples at some bucket; "
            "give `simulate` a file of lengths"
        )
    if counts.aborted and counts.aborted > ABORTED * (counts.samples + counts.aborted):
        doubts.append(
            f"{counts.aborted:,.0f} samples were broken off: what they would have come to is missing from the lengths"
        )
    return doubts


def _cap(seen: _Seen, counts: LengthCounts) -> tuple[float | None, str]:
    """The cap, and where it comes from; None where nothing shows that samples were cut at one."""
    low, high = seen.top
    if counts.asked is not None and counts.asked > max(low, seen.mean):
        return counts.asked, "the cap that requests asked for, on average"
    if counts.capped is not None and counts.capped < CAPPED_FEWEST:
        return None, ""
    if math.isinf(high):
        return None, ""
    return _likeliest_cap(seen, counted=counts.capped is not None)


def _likeliest_cap(seen: _Seen, *, counted: bool) -> tuple[float | None, str]:
    """The cap within the highest bucket that the buckets speak for, as round as they allow."""
    low, high = max(seen.top[0], seen.mean * 1.02), seen.top[1]
    bare = _spread_likelihood(seen, None)
    tried = {low + (high - low) * (step + 1) / _CAPS: 0.0 for step in range(_CAPS)}
    tried |= dict.fromkeys(_round_caps(low, high), 0.0)
    likely = {cap: _spread_likelihood(seen, cap) for cap in tried}
    best = max(likely, key=lambda cap: likely[cap])
    if not counted and likely[best] < bare + BETTER:
        return None, ""
    good = [cap for cap, value in likely.items() if value >= likely[best] - WORSE]
    chosen = next((cap for cap in _round_caps(low, high) if cap in good), best)
    return chosen, f"samples pile up between {min(good):,.0f} and {max(good):,.0f} tokens"


def _round_caps(low: float, high: float) -> list[float]:
    """Caps that people choose in a range, the roundest first."""
    powers = [2.0**power for power in range(4, 24) if low < 2.0**power <= high]
    for step in _ROUND:
        first, last = math.floor(low / step) + 1, math.floor(high / step)
        if first <= last:
            return [*powers, *(float(step * count) for count in range(first, min(last, first + 4) + 1))]
    return powers


def _spread_likelihood(seen: _Seen, cap: float | None) -> float:
    return seen.likelihood(_best(lambda value: seen.likelihood(value, cap)), cap)


def _best(likelihood: Callable[[float], float]) -> float:
    """The likeliest coefficient of variation, by golden section on its logarithm."""
    low, high = math.log(_NARROWEST), math.log(_WIDEST)
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = likelihood(math.exp(left)), likelihood(math.exp(right))
    for _ in range(_HALVINGS):
        if at_left >= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = likelihood(math.exp(left))
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = likelihood(math.exp(right))
    return math.exp((low + high) / 2.0)


def _error(seen: _Seen, cv: float, cap: float | None) -> float | None:
    """Standard error of the coefficient of variation, from how sharp the likelihood's peak is."""
    step = 0.02 * cv
    curve = seen.likelihood(cv + step, cap) - 2.0 * seen.likelihood(cv, cap) + seen.likelihood(cv - step, cap)
    return step / math.sqrt(-curve) if curve < 0 else None


def _quantiles(mean: float, cv: float, cap: float | None) -> tuple[float, float, float]:
    centre = float(uncapped_mean(mean, cv, cap)) if cap is not None else mean
    raw = [float(lognormal_quantile(centre, cv, NormalDist().inv_cdf(share))) for share in SHARES]
    half, nine, most = (min(value, cap) if cap is not None else value for value in raw)
    return half, nine, most


def _misfit(seen: _Seen, cv: float, cap: float | None) -> float:
    below, largest = 0.0, 0.0
    for count, share in zip(seen.cells, seen.shares(cv, cap), strict=False):
        below += count
        largest = max(largest, abs(below / seen.samples - share))
    return largest


def pasted(fit: LengthFit) -> str:
    """
    The line of a scenario's `workload` that says this distribution; empty where there is none.

    >>> pasted(LengthFit(samples=900, mean=3484.2, cv=0.918, cap=16384.0))
    'response_tokens: {mean: 3484, cv: 0.92, max: 16384}'
    """
    if fit.cv is None:
        return ""
    parts = [f"mean: {fit.mean:.0f}", f"cv: {fit.cv:.2f}", *([f"max: {fit.cap:.0f}"] if fit.cap is not None else [])]
    return f"response_tokens: {{{', '.join(parts)}}}"
