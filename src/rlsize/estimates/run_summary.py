"""A training log as means of its settled steps: warm-up and outliers set apart, rows of several steps divided."""

from __future__ import annotations

from dataclasses import fields
from statistics import fmean, median, pstdev
from typing import TYPE_CHECKING

from rlsize.equations import loop_time, matching, train_step
from rlsize.estimates.block_bootstrap import standard_error
from rlsize.estimates.figures import alike, apply
from rlsize.estimates.figures import known as known_figures
from rlsize.facts.figure import Figure, absent
from rlsize.facts.run_log import RunSummary, SetApart, StepRecord
from rlsize.units import listed, some_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rlsize.facts.run_log import RunLog

WARM_UP = 10  # steps at the start that may be slow: compilation, filling caches, the first weight sync
SLOW = 1.5  # a step of warm-up, or an outlier, takes more than so many times the median ...
DEVIATIONS = 6.0  # ... and an outlier lies more than so many median absolute deviations above it
ENOUGH_FOR_OUTLIERS = 8
MOST = 1e15  # of anything that a step can have; a log that says more has said nothing
_ROUNDED = 1e-9  # of a step: parts that make it up leave so much by rounding
_PER_UPDATE = (  # what is summed over the optimizer steps of a row
    *("reward_seconds", "validation_seconds", "checkpoint_seconds"),
    *("step_seconds", "generation_seconds", "wait_seconds", "logprob_seconds", "update_seconds", "sync_seconds"),
    *("samples", "prompt_tokens", "response_tokens", "total_tokens", "dropped_samples"),
)
_COUNTED_UP = ("samples", "prompt_tokens", "response_tokens", "total_tokens", "dropped_samples")  # by some frameworks
_MEANS = {  # figures that are plain means, with the columns behind them
    **{key: key for key in _PER_UPDATE[:9]},
    "train_seconds": "train_seconds",
    "other_seconds": "other_seconds",
    "batch_tokens": "response_tokens",
    "prompt_tokens_per_step": "prompt_tokens",
    "total_tokens_per_step": "total_tokens",
    "samples_per_step": "samples",
    "mean_response_tokens": "mean_response_tokens",
    "longest_response_tokens": "longest_response_tokens",
    "mean_prompt_tokens": "mean_prompt_tokens",
    "clipped_fraction": "clipped_fraction",
    "reported_trainer_idle_fraction": "trainer_idle_fraction",
    "reported_rollout_idle_fraction": "rollout_idle_fraction",
    "staleness_steps": "staleness_steps",
    "largest_staleness_steps": "largest_staleness_steps",
    "mfu": "mfu",
    "queued_samples": "queued_samples",
    "dropped_samples_per_step": "dropped_samples",
    "prefix_cache_hit_fraction": "prefix_cache_hit_fraction",
    "reported_rollout_tokens_per_second": "rollout_tokens_per_second",
    "reported_trainer_tokens_per_second": "trainer_tokens_per_second",
    "rollout_gpus": "rollout_gpus",
    "trainer_gpus": "trainer_gpus",
    "generation_tools_seconds": "generation_tools_seconds",
    "sample_tools_seconds": "sample_tools_seconds",
    "turns": "turns",
}
_PEAKS = ("peak_allocated_bytes", "peak_reserved_bytes")
_BUSY = ("logprob_seconds", "update_seconds")
_RATED = (  # rates go by them: a log in which all of them are 0 has not measured them
    *("step_seconds", "generation_seconds", "update_seconds", "response_tokens"),
)
_PARTS_TOLD = ("step_seconds", "generation_seconds", "update_seconds", "logprob_seconds", "sync_seconds")
_OVER = 1.05  # times its step, from which a phase is no part of it
_SHOWN = 8
_GUESSES = 4
_SOMETIMES = ("reward_seconds", "validation_seconds", "checkpoint_seconds")  # of which most steps have nothing
_PARTS = ("wait_seconds", "generation_seconds", "train_seconds", "sync_seconds", *_SOMETIMES)


def run_summary(log: RunLog, warm_up: int | None = None) -> RunSummary:
    """
    The means of a log's settled steps.

    Args:
        log: What was read.
        warm_up: Rows at the start to leave out; None to find them.

    Returns:
        Figures per optimizer step; those that the log cannot tell are missing from them.
    """
    settled, apart = _settled(log.steps, warm_up)
    columns = _columns(settled)
    means = {
        key: _mean(key, columns[name], _source(log, name, columns)) for key, name in _MEANS.items() if name in columns
    }
    means |= {key: _peak(key, columns[key], log.keys.get(key, key)) for key in _PEAKS if key in columns}
    few: tuple[str, ...] = ()
    if 0 < len(settled) < ENOUGH_FOR_OUTLIERS:
        few = (f"only {len(settled)} settled step{'s' if len(settled) > 1 else ''}: means may move a lot",)
    own = {
        "steps": tuple(record.step for record in settled),
        "columns": columns,
        "figures": {**means, **_ratios(log, means)},
        "set_apart": apart,
        "warnings": (*log.warnings, *_guesses(log), *_gaps(settled, columns), *_longer(log, means), *few),
    }
    return RunSummary(**alike(log, RunSummary) | own)


def _guesses(log: RunLog) -> list[str]:
    """What the reader of a log must look at: what was guessed, and what was not."""
    guessed = some_of([f"{name} = {says}" for name, says in log.guessed.items()], _GUESSES)
    found = [f"guessed by the names of keys: {guessed}; --map QUANTITY=KEY corrects it"] if log.guessed else []
    if log.unread and (log.guessed or not _timed(log)):
        some = some_of(log.unread, _SHOWN)
        first = next((name for name in _PARTS_TOLD if name not in log.keys), _PARTS_TOLD[0])
        found.append(
            f"keys that look like times and are not understood: {some}; say it: --map '{first}={log.unread[0]}'"
        )
    return found


def _gaps(settled: Sequence[StepRecord], columns: Iterable[str]) -> list[str]:
    """Which figures are those of some steps only, as the others lack them."""
    named = {entry.name for entry in fields(StepRecord)} - {*_SOMETIMES}
    lacking = [name for name in columns if name in named and any(getattr(one, name) is None for one in settled)]
    return [f"not all settled steps have {some_of(lacking, _SHOWN)}: means are of those that do"] if lacking else []


def _longer(log: RunLog, means: Mapping[str, Figure]) -> list[str]:
    """Phases that take longer than the step of a loop whose phases follow each other."""
    step = means.get("step_seconds")
    if step is None or log.mode not in {"colocated", "synchronous"}:
        return []
    found = [
        log.keys.get(key, key) for key in _PARTS_TOLD[1:] if key in means and means[key].number > _OVER * step.number
    ]
    told = f"longer than the step ({log.keys.get('step_seconds', 'step_seconds')}): {listed(found)}"
    return [f"{told}; phases overlap, or a key means something else (--map)"] if found else []


def _timed(log: RunLog) -> bool:
    """Whether the step and the training of it are timed."""
    return {"step_seconds", "update_seconds"} <= log.keys.keys()


def _settled(steps: Sequence[StepRecord], warm_up: int | None) -> tuple[list[StepRecord], tuple[SetApart, ...]]:
    """The steps that count, and those that do not."""
    seconds = [record.step_seconds / record.updates for record in steps if record.step_seconds is not None]
    typical = median(seconds) if seconds else 0.0
    first = _first_settled(steps, typical) if warm_up is None else min(warm_up, max(0, len(steps) - 1))
    begun = first or not _begins_to_count(steps)
    first = first if begun else 1
    rest = steps[first:]
    deviation = median(abs(value - typical) for value in seconds) if seconds else 0.0
    limit = max(SLOW * typical, typical + DEVIATIONS * deviation)
    odd = [record for record in rest if (record.step_seconds or 0.0) / record.updates > limit]
    if len(rest) < ENOUGH_FOR_OUTLIERS:
        odd = []
    marked = {id(record) for record in odd}
    apart = [
        SetApart(
            why=why,
            steps=tuple(record.step for record in some),
            seconds=sum(record.step_seconds or 0.0 for record in some),
        )
        for why, some in (
            ("warm-up" if begun else "the first row, before which nothing is counted", steps[:first]),
            ("far slower than the others", odd),
        )
        if some
    ]
    return [record for record in rest if id(record) not in marked], tuple(apart)


def _begins_to_count(steps: Sequence[StepRecord]) -> bool:
    """Whether the first row lacks what all others have: differences of what the log counts up begin with the second."""
    if len(steps) < 2:  # noqa: PLR2004 (one row is all there is)
        return False
    lacking = [name for name in _COUNTED_UP if getattr(steps[0], name) is None]
    return any(all(getattr(record, name) is not None for record in steps[1:]) for name in lacking)


def _first_settled(steps: Sequence[StepRecord], typical: float) -> int:
    """How many steps at the start are slow in a row; at most a tenth of all, and never all."""
    most = min(WARM_UP, len(steps) // 10 if len(steps) >= WARM_UP else 1 if len(steps) > 2 else 0)  # noqa: PLR2004 (of two steps, neither is odd)
    for index in range(most):
        record = steps[index]
        if (record.step_seconds or 0.0) / record.updates <= SLOW * typical:
            return index
    return most


def _columns(settled: Sequence[StepRecord]) -> dict[str, tuple[float, ...]]:
    """
    Every field that most settled steps have, per optimizer step; with the times that follow from others.

    Steps that lack it count as the others' mean, so that what they say of other fields is not lost.
    """
    names = [entry.name for entry in fields(StepRecord) if entry.name not in {"step", "updates"}]
    found: dict[str, tuple[float, ...]] = {}
    for name in names:
        values = [getattr(record, name) for record in settled]
        if name in _SOMETIMES and any(values):
            values = [value or 0.0 for value in values]
        updates = [record.updates if name in _PER_UPDATE else 1.0 for record in settled]
        said = [
            None if value is None or value > MOST else float(value) / count
            for value, count in zip(values, updates, strict=True)
        ]
        known = [value for value in said if value is not None]
        if known and 2 * len(known) >= len(said):
            usual = fmean(known)
            found[name] = tuple(usual if value is None else value for value in said)
    found = {name: values for name, values in found.items() if any(values) or name not in _RATED}
    busy = [found[name] for name in _BUSY if name in found]
    if "update_seconds" in found:
        found["train_seconds"] = tuple(map(sum, zip(*busy, strict=True)))
    parts = [found[name] for name in _PARTS if name in found]
    if "step_seconds" in found and "train_seconds" in found:
        spent = map(sum, zip(*parts, strict=True))
        found["other_seconds"] = tuple(
            whole - part if whole - part > _ROUNDED * whole else 0.0
            for whole, part in zip(found["step_seconds"], spent, strict=True)
        )
    return found


def _source(log: RunLog, name: str, columns: Mapping[str, Sequence[float]]) -> str:
    """The keys behind a column; of one that follows from others, those of the others."""
    if name == "train_seconds":
        return " + ".join(log.keys.get(part, part) for part in _BUSY if part in columns)
    return "the step less its parts" if name == "other_seconds" else log.keys.get(name, name)


def _mean(key: str, values: Sequence[float], source: str) -> Figure:
    name = f"{source}, mean of {len(values)} steps" if len(values) > 1 else f"{source}, one step"
    return Figure(
        key=key, value=fmean(values), provenance="measured", source=name, deviation=standard_error(values), least=0.0
    )


def _peak(key: str, values: Sequence[float], source: str) -> Figure:
    """The most of all steps, as so much must fit, with their standard deviation."""
    name = f"{source}, most of {len(values)} steps"
    return Figure(key=key, value=max(values), provenance="measured", source=name, deviation=pstdev(values), least=0.0)


def _ratios(log: RunLog, means: Mapping[str, Figure]) -> dict[str, Figure]:
    """What follows from the means, each through its equation."""

    def of(key: str) -> Figure:
        return means.get(key, absent(key, f"a log that has {key}"))

    step = of("step_seconds")
    times = {"consumption": of("train_seconds"), "trained": step}
    if log.mode in {"colocated", "synchronous"}:
        times["fleet"] = of("generation_seconds")
    rates = [
        apply(f"{name}_tokens_per_second", matching.consumption, tokens_per_step=of("batch_tokens"), train_seconds=time)
        for name, time in times.items()
    ]
    paused = apply("sync_pause_fraction", train_step.time_share, part=of("sync_seconds"), whole=step)
    return known_figures(*rates, paused, _idle(log, of))


def _idle(log: RunLog, of: Callable[[str], Figure]) -> Figure:
    """Share of the step in which the trainer waits: what it logs as waiting; in turn, all that it does not work."""
    key, step = "trainer_idle_fraction", of("step_seconds")
    if log.mode == "colocated":
        return absent(key, "pools of their own")
    if of("wait_seconds").known:
        return apply(key, train_step.time_share, part=of("wait_seconds"), whole=step)
    if log.mode == "synchronous" and of("generation_seconds").known:
        return apply(key, train_step.time_share, part=of("generation_seconds"), whole=step)
    reported = of("reported_trainer_idle_fraction")
    if reported.known:
        return apply(key, loop_time.waiting_fraction, busy_seconds=1.0 - reported.number, iteration_seconds=1.0)
    return absent(key, "a log that says how long the trainer waits")
