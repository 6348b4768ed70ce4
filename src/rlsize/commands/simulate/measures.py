"""The measures of a simulation: their order, their names for people, and how their values are written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from rlsize.reports.wording import words
from rlsize.units import show, time_unit

if TYPE_CHECKING:
    from collections.abc import Iterable


class Measure(NamedTuple):
    """What people call a measure (a dash: part of the one above; empty: as its key says), and when they see it."""

    what: str = ""
    seen: Literal["always", "unless zero", "in JSON"] = "always"


MEASURES = {
    "step_seconds": Measure(),
    "step_p50_seconds": Measure("- median"),
    "step_p95_seconds": Measure("- 95th percentile"),
    "steps_per_day": Measure(seen="in JSON"),
    "trainer_idle_fraction": Measure(),
    "waiting_for_samples_fraction": Measure("- waiting for samples"),
    "sync_fraction": Measure("- weight sync"),
    "overhead_fraction": Measure("- overhead", "unless zero"),
    "failure_fraction": Measure("- failure", "unless zero"),
    "rollout_unused_fraction": Measure("rollout unused"),
    "rollout_idle_fraction": Measure("- without samples", "unless zero"),
    "tail_idle_fraction": Measure("- of it, in a tail", "unless zero"),
    "rollout_paused_fraction": Measure("- paused"),
    "rollout_lost_fraction": Measure("- lost", "unless zero"),
    "slots_busy_fraction": Measure(),
    "backlog_samples": Measure(),
    "backlog_steps": Measure(seen="in JSON"),
    "oldest_age_steps": Measure(),
    "oldest_age_max_steps": Measure(seen="in JSON"),
    "staleness_mean_steps": Measure("staleness"),
    "staleness_p95_steps": Measure("- 95th percentile"),
    "staleness_max_steps": Measure(seen="in JSON"),
    "token_staleness_mean_steps": Measure(seen="in JSON"),
    "over_cap_fraction": Measure(seen="unless zero"),
    "dropped_fraction": Measure(seen="unless zero"),
    "tokens_generated_per_trained_token": Measure("tokens per trained token"),
    "preemptions_per_step": Measure("preemptions per step", "unless zero"),
    "trained_tokens_per_second": Measure(),
    "goodput_tokens_per_gpu_second": Measure(),
    "cost_per_step_usd": Measure(),
    "gpu_hours_per_run": Measure("GPU-hours of the run"),
    "cost_per_run_usd": Measure("cost of the run"),
}
"""What a run measures, in the order in which it is read."""
SHORT = {
    "step_seconds": "step",
    "trainer_idle_fraction": "idle",
    "rollout_unused_fraction": "unused",
    "staleness_mean_steps": "staleness",
    "over_cap_fraction": "over cap",
    "tokens_generated_per_trained_token": "tokens",
    "cost_per_step_usd": "cost",
}
"""Headings of measures that stand side by side."""
_MEANT = {
    "trainer_idle_fraction": "idle: of the trainer's time",
    "rollout_unused_fraction": "unused: of the fleet's rate",
    "tokens_generated_per_trained_token": "tokens: generated per trained one",
}
_TWO_DIGITS = 10.0  # from here on, whole numbers have enough of them
_PLAIN = {"staleness_mean_steps", "staleness_p95_steps", "oldest_age_steps", "tokens_generated_per_trained_token"}
_COUNTS = {"backlog_samples", "preemptions_per_step"}


def key_of(name: str) -> str:
    """The key of a measure in an answer: of the simulated clock, so that closed forms keep theirs."""
    return f"simulated_{name}"


def measure_name(name: str) -> str:
    """What people call a measure."""
    return MEASURES[name].what or words(name)


def meaning(names: Iterable[str]) -> str:
    """What the short headings leave out, in a line."""
    return "; ".join(_MEANT[name] for name in names if name in _MEANT)


def number_shown(value: float, name: str, beside: float | None = None) -> str:
    """A value for people, short enough for a table of many; a time in the unit of the one that it stands beside."""
    if name.endswith("_fraction"):
        return f"{value:.1%}".replace("%", " %")
    if name in _PLAIN:
        return f"{value:.2f}"
    if name in _COUNTS:
        return f"{value:,.0f}"
    if name.endswith("_seconds") and beside:
        factor, unit = time_unit(beside)
        return f"{show(value * factor, '')} {unit}"
    return show(value, name)


def half_shown(half: float, name: str, mean: float) -> str:
    """Half of a confidence interval, in the unit of its mean; empty where there is none."""
    if half <= 0.0:
        return ""
    if name.endswith("_fraction"):
        return f"± {half:.1%}".replace("%", " %")
    factor, unit = time_unit(mean) if name.endswith("_seconds") else (1.0, "")
    size = half * factor
    dollars = "$" if name.endswith("_usd") else ""
    return f"± {dollars}{f'{size:,.0f}' if size >= _TWO_DIGITS else f'{size:.2g}'} {unit}".rstrip()
