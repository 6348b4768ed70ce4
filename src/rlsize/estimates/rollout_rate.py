"""Rates, step times and tails out of what a rollout recorded."""

from __future__ import annotations

from itertools import pairwise
from statistics import fmean, median, stdev
from typing import TYPE_CHECKING

from rlsize.equations.engine_step import engine_step_time, live_kv_tokens
from rlsize.equations.redundancy import cacheable_prompt_tokens
from rlsize.estimates.counter_growth import grown, hit_fraction
from rlsize.estimates.latency import latency
from rlsize.estimates.scatter import scatter
from rlsize.facts.measured import FiniteBatch, RolloutLevel, StepTimeFit
from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from rlsize.facts.counters import PhaseRun, RolloutWork, Snapshot

FULL = 0.95  # share of the plateau below which the batch drains
PARTS = 10  # equal parts of a window whose scatter is shown
SETTLING = 1  # intervals after the batch is full that still hold the last prompts' prefill
NEAR_BEST = 0.95  # share of the best rate that the knee must reach
SURE = 2.0  # a coefficient of the fit within so many of its standard errors of zero cannot be told from it
SPARE = 3  # intervals more than coefficients that the fit needs
_FIXED = 0  # place of the fixed time among the coefficients


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """
    The time between two pages.

    Args:
        seconds: Its length. [s]
        tokens: Response tokens generated in it. [token]
        steps: Engine steps; 0 where the page does not count them. [1]
        batch: Samples in the mean step. [1]
        live_tokens: Tokens of all contexts in the mean step; None where the page does not say. [token]
        prefill_tokens: Prompt tokens computed in the mean step. [token]
    """

    seconds: float
    tokens: float
    steps: float
    batch: float
    live_tokens: float | None
    prefill_tokens: float

    @property
    def step_seconds(self) -> float:
        """The mean engine step. [s]"""
        return self.seconds / self.steps


def intervals(snapshots: Sequence[Snapshot], work: RolloutWork) -> list[Interval]:
    """The times between pages, those without progress left out."""
    found = []
    for first, second in pairwise(snapshots):
        ends = [(first.counters, second.counters)]
        tokens, seconds = grown(ends, "generation_tokens") or 0.0, second.seconds - first.seconds
        if tokens <= 0 or seconds <= 0:
            continue
        before, after = first.counters.step_tokens, second.counters.step_tokens
        steps = after.count - before.count if before is not None and after is not None else 0.0
        batch = tokens / steps if steps else 0.0
        computed = grown(ends, "computed_prompt_tokens") or 0.0
        found.append(
            Interval(
                seconds=seconds,
                tokens=tokens,
                steps=steps,
                batch=batch,
                live_tokens=_live_tokens(first, second, batch, work),
                prefill_tokens=computed / steps if steps else 0.0,
            )
        )
    return found


def _live_tokens(first: Snapshot, second: Snapshot, batch: float, work: RolloutWork) -> float | None:
    held = [
        snapshot.counters.kv_cache_usage_fraction * snapshot.counters.kv_cache_tokens
        for snapshot in (first, second)
        if snapshot.counters.kv_cache_usage_fraction is not None and snapshot.counters.kv_cache_tokens
    ]
    if len(held) < 2:  # noqa: PLR2004 (both ends)
        return None
    shared = cacheable_prompt_tokens(work.prompt_tokens, work.block_tokens)
    return float(live_kv_tokens(fmean(held), batch, work.group_size, shared))


def steady(run: PhaseRun) -> tuple[Snapshot, ...]:
    """The snapshots of its steady state: from a full batch to before it drains; none where it never was full."""
    if run.full is None:
        return ()
    window = [snapshot for snapshot in run.snapshots if snapshot.seconds >= run.full][SETTLING:]
    known = [batch for snapshot in window if (batch := snapshot.counters.requests_running) is not None]
    least = FULL * median(known) if known else 0.0
    while window and (window[-1].counters.requests_running or 0.0) < least:
        window.pop()
    return tuple(window)


def relative_error(run: PhaseRun) -> float | None:
    """How well the steady rate is known: the standard error over its mean; None before there is enough to tell."""
    rates = _part_rates(steady(run))
    if len(rates) < PARTS:
        return None
    return stdev(rates) / len(rates) ** 0.5 / fmean(rates) if fmean(rates) else None


def _part_rates(snapshots: Sequence[Snapshot]) -> list[float]:
    """The rates of up to ten equal parts of a window. [token/s]"""
    parts = min(PARTS, len(snapshots) - 1)
    if parts < 1:
        return []
    cuts = [snapshots[round(part * (len(snapshots) - 1) / parts)] for part in range(parts + 1)]
    return [
        (second.counters.generation_tokens - first.counters.generation_tokens) / (second.seconds - first.seconds)
        for first, second in pairwise(cuts)
        if second.seconds > first.seconds
    ]


def level(runs: Sequence[PhaseRun], work: RolloutWork) -> RolloutLevel | None:
    """
    One concurrency, from the runs of all instances; None where no steady state was seen.

    Args:
        runs: One for each instance.
        work: The workload.
    """
    windows = [window for run in runs if len(window := steady(run)) > 1]
    if len(windows) < len(runs) or not runs:
        return None
    ends = [(window[0].counters, window[-1].counters) for window in windows]
    spans = [window[-1].seconds - window[0].seconds for window in windows]
    rates = [(grown([end], "generation_tokens") or 0.0) / span for end, span in zip(ends, spans, strict=True)]
    parts = [intervals(window, work) for window in windows]
    all_parts = [part for each in parts for part in each if part.steps]
    steps = sum(part.steps for part in all_parts)
    live = [(part.live_tokens, part.steps) for part in all_parts if part.live_tokens is not None]
    pooled = [rate for window in windows for rate in _part_rates(window)]
    return RolloutLevel(
        concurrency=runs[0].concurrency,
        tokens_per_second=fmean(rates),
        scatter=scatter(pooled) if len(pooled) > 1 else None,
        window_seconds=max(spans),
        instances=len(runs),
        spread_tokens_per_second=stdev(rates) if len(rates) > 1 else None,
        mean_batch=sum(part.tokens for part in all_parts) / steps if steps else None,
        seconds_per_step=sum(part.seconds for part in all_parts) / steps if steps else None,
        live_kv_tokens=sum(tokens * n for tokens, n in live) / sum(n for _, n in live) if live else None,
        prefix_cache_hit_fraction=hit_fraction(ends),
        preemptions=round(grown(ends, "preemptions") or 0.0),
        finished_samples=sum(
            done.samples
            for run, window in zip(runs, windows, strict=True)
            for done in run.finished
            if done.last and window[0].seconds <= done.seconds <= window[-1].seconds
        ),
        latency=latency(runs),
    )


def finite_batch(runs: Sequence[PhaseRun], prompts: int, step_fraction: float) -> FiniteBatch | None:
    """
    A batch that was waited for to its last sample; None where it broke off.

    Args:
        runs: One for each instance that worked on it; all began together.
        prompts: Groups in the batch, over all instances. [1]
        step_fraction: Share of an optimizer step's samples that the batch holds. [1]
    """
    if not runs or any(run.ended is None or not run.finished for run in runs):
        return None
    ends = sorted(
        (one.seconds - run.begun, one.samples if one.last else 0, one.tokens) for run in runs for one in run.finished
    )
    samples = sum(count for _, count, _ in ends)
    return FiniteBatch(
        prompts=prompts,
        samples=samples,
        response_tokens=float(sum(tokens for _, _, tokens in ends)),
        longest_response_tokens=max(one.tokens / one.samples for run in runs for one in run.finished),
        seconds=ends[-1][0],
        **{f"seconds_to_{share}_percent": _time_to(ends, share / 100 * samples) for share in (50, 90, 99)},
        step_fraction=step_fraction,
        instances=len(runs),
        latency=latency(runs),
    )


def _time_to(ends: Sequence[tuple[float, int, int]], samples: float) -> float:
    done = 0
    for seconds, count, _ in ends:
        done += count
        if done >= samples:
            return seconds
    return ends[-1][0]


def knee(levels: Sequence[RolloutLevel]) -> int | None:
    """The smallest concurrency whose rate comes within 5 % of the best; None where there is no curve."""
    if len(levels) < 2:  # noqa: PLR2004 (one point is no curve)
        return None
    best = max(entry.tokens_per_second for entry in levels)
    return min(entry.concurrency for entry in levels if entry.tokens_per_second >= NEAR_BEST * best)


def step_time_fit(intervals: Sequence[Interval]) -> StepTimeFit | None:
    """
    Seconds per engine step against batch, live KV tokens and prompt tokens, by least squares of the relative error.

    Coefficients that come out negative, or cannot be told from zero, are left out one by one, the least certain first;
    the fixed time stays as long as it is positive.

    Args:
        intervals: Mean steps between two pages; a mean of steps obeys the same law as one step, as the law is linear.

    Returns:
        The fit; None where there are too few intervals to make one.
    """
    import numpy as np

    used = [entry for entry in intervals if entry.steps and entry.live_tokens is not None]
    if len(used) < 4 + SPARE:
        return None
    seconds = np.array([entry.step_seconds for entry in used])
    columns = np.array([[1.0, entry.batch, entry.live_tokens or 0.0, entry.prefill_tokens] for entry in used])
    coefficients = _solved(columns, seconds)
    fitted = engine_step_time(*coefficients, *columns[:, 1:].T)
    residual = float(np.sqrt(np.mean((fitted / seconds - 1.0) ** 2)))
    return StepTimeFit(
        **{f"t{place}_seconds": float(value) for place, value in enumerate(coefficients)},
        residual_fraction=residual,
        intervals=len(used),
        smallest_batch=min(entry.batch for entry in used),
        largest_batch=max(entry.batch for entry in used),
    )


def _solved(columns: NDArray[np.float64], seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """The coefficients; those that are left out are zero."""
    import numpy as np

    kept = [index for index in range(columns.shape[1]) if np.ptp(columns[:, index]) > 0 or index == _FIXED]
    while True:
        scale = np.abs(columns[:, kept]).max(axis=0)
        matrix = columns[:, kept] / scale / seconds[:, None]
        found, *_ = np.linalg.lstsq(matrix, np.ones(len(seconds)), rcond=None)
        left = np.ones(len(matrix)) - matrix @ found
        variance = float(left @ left) / max(1, len(matrix) - len(found))
        errors = np.sqrt(np.maximum(0.0, np.diag(np.linalg.pinv(matrix.T @ matrix)) * variance))
        certain = found / np.maximum(errors, 1e-12)
        weak = [
            place
            for place, index in enumerate(kept)
            if found[place] <= 0 or (index != _FIXED and certain[place] < SURE)
        ]
        if not weak or len(kept) == 1:
            break
        kept.pop(min(weak, key=lambda place: certain[place]))
    result = np.zeros(columns.shape[1])
    result[kept] = np.maximum(found / scale, 0.0)
    return result
