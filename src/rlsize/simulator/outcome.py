"""What a run came to: warm-up cut off, means of what is left, and how sure several seeds make them."""

from __future__ import annotations

import itertools
from dataclasses import field
from math import isfinite, sqrt
from typing import TYPE_CHECKING

import numpy as np

from rlsize.equations import iteration
from rlsize.frozen import dataclass
from rlsize.simulator.first_order import mean_rate
from rlsize.simulator.resizing import held_seconds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from rlsize.simulator.first_order import Pools
    from rlsize.simulator.ledger import Ledger
    from rlsize.simulator.setting import Setting

    Floats = NDArray[np.float64]
    Rows = Mapping[str, Floats]

_BATCH = 5  # steps whose mean is one value of the warm-up search
_FEWEST = 20  # steps below which no warm-up is cut beyond the first
_PARTS = 40  # of a run, over which means are kept
_NEARLY = 1.1  # of the smallest squared standard error
_GROWS = 0.5  # batches by which the backlog grows over the last half, from which it is said to
# Two-sided 95 % points of Student's t for 1, 2, ... degrees of freedom (any table of it), then the normal's.
_STUDENT = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
_NORMAL = 1.960
_TRAINER_WAITS = ("waiting", "sync", "overhead", "failure")  # columns beside training


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """
    What one run came to.

    Args:
        seed: Its seed.
        steps: Optimizer steps that it made. [1]
        warm_up: Of them, the first ones that are not counted. [1]
        measures: Means over the others, by name; the unit is the name's ending.
        staleness: Share of trained samples by staleness.
        grows: Samples by which the backlog grows per step; 0 where it is steady. [1]
        over_time: Means over parts of the run, warm-up included, by name; `steps` is the last step of each.
    """

    seed: int
    steps: int
    warm_up: int
    measures: dict[str, float]
    staleness: dict[int, float] = field(default_factory=dict)
    grows: float = 0.0
    over_time: dict[str, list[float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Spread:
    """
    The mean over seeds, and its 95 % confidence interval.

    Args:
        mean: Over seeds.
        low: Low end; the mean itself where there is one seed.
        high: High end.
    """

    mean: float
    low: float
    high: float


def outcome_of(ledger: Ledger, setting: Setting, pools: Pools, seed: int) -> Outcome:
    """
    What a run came to.

    Args:
        ledger: Its accounts.
        setting: What was simulated.
        pools: GPUs and prices.
        seed: Its seed.
    """
    rows = {name: np.frombuffer(column, dtype=float) for name, column in ledger.columns.items()}
    steps = len(ledger)
    cut = max(warm_up(np.diff(rows["end_seconds"], prepend=0.0)), warm_up(_mean_staleness(rows)))
    staleness = _histogram(ledger, cut)
    return Outcome(
        seed=seed,
        steps=steps,
        warm_up=cut,
        measures=_measures(rows, cut, setting, pools, staleness),
        staleness=staleness,
        grows=_growth(rows["backlog_samples"], setting.work.samples),
        over_time=_over_time(rows),
    )


def warm_up(series: Floats) -> int:
    """
    How many values at the beginning of a series to leave out.

    The rule is MSER-5: the cut that makes the standard error of the mean of what is left the smallest, over means of
    five, within the first half (White, An effective truncation heuristic, Simulation 69, 1997); or the first cut that
    is nearly as good, so that noise does not cut half a run. At least the first value goes.

    Args:
        series: Values in the order of time.
    """
    count = len(series)
    if count < _FEWEST:
        return min(1, count - 1)
    means = series[: count // _BATCH * _BATCH].reshape(-1, _BATCH).mean(axis=1)
    left = np.arange(len(means), 0, -1)
    tail = np.cumsum(means[::-1])[::-1]
    squares = np.cumsum(means[::-1] ** 2)[::-1]
    error = np.maximum(squares / left - (tail / left) ** 2, 0.0) / left
    half = max(1, len(means) // 2)
    best = int(np.argmax(error[:half] <= _NEARLY * error[:half].min() + 1e-12))
    return max(1, best * _BATCH)


def spread_over(outcomes: Sequence[Outcome], name: str) -> Spread:
    """
    A measure over seeds.

    Args:
        outcomes: One for each seed.
        name: The measure.
    """
    values = [outcome.measures[name] for outcome in outcomes]
    count = len(values)
    mean = sum(values) / count
    if count == 1:
        return Spread(mean, mean, mean)
    deviation = sqrt(sum((value - mean) ** 2 for value in values) / (count - 1))
    half = (_STUDENT[count - 2] if count - 2 < len(_STUDENT) else _NORMAL) * deviation / sqrt(count)
    return Spread(mean, mean - half, mean + half)


def _measures(rows: Rows, cut: int, setting: Setting, pools: Pools, staleness: Mapping[int, float]) -> dict[str, float]:
    ends = rows["end_seconds"]
    start = float(ends[cut - 1]) if cut else 0.0
    count, seconds = len(ends) - cut, float(ends[-1]) - start
    step = seconds / count
    times, fleet = ends.tolist(), setting.instances
    held = pools.with_fleet(held_seconds(setting, times, start) / (fleet * seconds))
    whole = pools.with_fleet(held_seconds(setting, times, 0.0) / (fleet * times[-1]))
    trained = float(rows["trained_tokens"][cut:].sum())
    generated = _grown(rows["generated_tokens"], cut)
    found = {
        "step_seconds": step,
        "step_p50_seconds": float(np.quantile(np.diff(ends, prepend=0.0)[cut:], 0.5)),
        "step_p95_seconds": float(np.quantile(np.diff(ends, prepend=0.0)[cut:], 0.95)),
        **_trainer(rows, cut, seconds, shared=setting.rules.mode == "colocated"),
        **_fleet(rows, cut, setting, generated),
        **_waiting(rows, cut, setting),
        **_staleness(rows, cut, staleness),
        "dropped_fraction": _ratio(_grown(rows["dropped_tokens"], cut), generated),
        "tokens_generated_per_trained_token": _ratio(generated, trained),
        "trained_tokens_per_second": trained / seconds,
        "preemptions_per_step": _grown(rows["preemptions"], cut) / count,
        "steps_per_day": float(iteration.iterations_per_day(iteration_seconds=step)),
    }
    extra = {
        "goodput_tokens_per_gpu_second": held.goodput(trained / count, step),
        "cost_per_step_usd": held.cost(step),
        "gpu_hours_per_run": whole.gpu_hours(times[-1]),
        "cost_per_run_usd": whole.cost(times[-1]),
    }
    return {**found, **{name: value for name, value in extra.items() if value is not None and isfinite(value)}}


def _trainer(rows: Rows, cut: int, seconds: float, *, shared: bool) -> dict[str, float]:
    """Shares of the trainer's time by what it did; where GPUs are shared, generating is no waiting."""
    parts = {name: float(rows[f"{name}_seconds"][cut:].sum()) / seconds for name in _TRAINER_WAITS}
    if shared:
        parts["waiting"] = 0.0
    return {
        "trainer_idle_fraction": sum(parts.values()),
        "waiting_for_samples_fraction": parts["waiting"],
        "sync_fraction": parts["sync"],
        "overhead_fraction": parts["overhead"],
        "failure_fraction": parts["failure"],
    }


def _fleet(rows: Rows, cut: int, setting: Setting, generated: float) -> dict[str, float]:
    states = {name: _grown(rows[f"{name}_seconds"], cut) for name in ("generating", "paused", "down", "idle", "tail")}
    whole = states["generating"] + states["paused"] + states["down"] + states["idle"]
    idle = states["idle"]
    if setting.rules.mode == "colocated":  # the same GPUs train and change over in the meantime
        other = sum(float(rows[f"{name}_seconds"][cut:].sum()) for name in ("train", "sync", "overhead", "failure"))
        idle = max(0.0, idle - other * setting.instances)
    barrier = setting.rules.mode != "async"
    nameplate = mean_rate(setting)  # lent ones count while they are there
    return {
        # a first step begins with more in flight than the loop keeps up, and makes more than its mean rate
        "rollout_unused_fraction": max(0.0, 1.0 - generated / (nameplate * whole)),
        "rollout_idle_fraction": idle / whole,
        "tail_idle_fraction": states["tail"] / whole if barrier else 0.0,
        "rollout_paused_fraction": states["paused"] / whole,
        "rollout_lost_fraction": states["down"] / whole,
        "slots_busy_fraction": _grown(rows["slot_seconds"], cut) / (whole * (setting.slots / setting.instances)),
    }


def _waiting(rows: Rows, cut: int, setting: Setting) -> dict[str, float]:
    backlog = rows["backlog_samples"][cut:]
    return {
        "backlog_samples": float(backlog.mean()),
        "backlog_steps": float(backlog.mean()) / setting.work.samples,
        "oldest_age_steps": float(rows["oldest_age_steps"][cut:].mean()),
        "oldest_age_max_steps": float(rows["oldest_age_steps"][cut:].max()),
    }


def _staleness(rows: Rows, cut: int, shares: Mapping[int, float]) -> dict[str, float]:
    samples = float(rows["trained_samples"][cut:].sum())
    reached, p95 = 0.0, 0
    for lag, share in sorted(shares.items()):
        reached, p95 = reached + share, lag
        if reached >= 0.95 - 1e-12:
            break
    tokens = float(rows["trained_tokens"][cut:].sum())
    return {
        "staleness_mean_steps": float(rows["staleness_sum"][cut:].sum()) / samples,
        "staleness_p95_steps": float(p95),
        "staleness_max_steps": float(rows["most_stale"][cut:].max()),
        "token_staleness_mean_steps": float(rows["token_staleness_sum"][cut:].sum()) / tokens,
        "over_cap_fraction": float(rows["over_cap_samples"][cut:].sum()) / samples,
    }


def _histogram(ledger: Ledger, cut: int) -> dict[int, float]:
    counts: dict[int, int] = {}
    for step in ledger.staleness[cut:]:
        for lag, count in step.items():
            counts[lag] = counts.get(lag, 0) + count
    whole = sum(counts.values())
    return {lag: count / whole for lag, count in sorted(counts.items())}


def _mean_staleness(rows: Rows) -> Floats:
    return rows["staleness_sum"] / np.maximum(rows["trained_samples"], 1.0)


def _over_time(rows: Rows) -> dict[str, list[float]]:
    """What a picture of a run shows, in a few parts of equal length."""
    series = {
        "step_seconds": np.diff(rows["end_seconds"], prepend=0.0),
        "waiting_seconds": rows["waiting_seconds"],
        "backlog_samples": rows["backlog_samples"],
        "oldest_age_steps": rows["oldest_age_steps"],
        "staleness_mean_steps": _mean_staleness(rows),
    }
    count = len(rows["end_seconds"])
    edges = np.unique(np.linspace(0, count, min(count, _PARTS) + 1).round().astype(int))
    parts = {
        name: [float(values[start:end].mean()) for start, end in itertools.pairwise(edges)]
        for name, values in series.items()
    }
    return {"steps": [float(end) for end in edges[1:]], **parts}


def _growth(backlog: Floats, samples: int) -> float:
    """Samples per step by which the backlog grew over the last half, where that is more than its ups and downs."""
    half = len(backlog) // 2
    if half < _FEWEST // 2:
        return 0.0
    third, last = backlog[half : half + half // 2].mean(), backlog[half + half // 2 :].mean()
    return float(last - third) / (half / 2) if last - third > _GROWS * samples else 0.0


def _grown(column: Floats, cut: int) -> float:
    """By how much a running total grew after the cut."""
    return float(column[-1]) - (float(column[cut - 1]) if cut else 0.0)


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
