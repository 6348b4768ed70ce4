"""The measures of a simulation: their order, their names for people, and how their values are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.reports.wording import words
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Iterable

MEASURES = (
    "step_seconds", "step_p50_seconds", "step_p95_seconds", "steps_per_day",
    "trainer_idle_fraction", "waiting_for_samples_fraction", "sync_fraction", "failure_fraction",
    "rollout_unused_fraction", "rollout_idle_fraction", "tail_idle_fraction", "rollout_paused_fraction",
    "rollout_lost_fraction",
    "slots_busy_fraction",
    "backlog_samples", "backlog_steps", "oldest_age_steps", "oldest_age_max_steps",
    "staleness_mean_steps", "staleness_p95_steps", "staleness_max_steps", "token_staleness_mean_steps",
    "over_cap_fraction", "dropped_fraction", "tokens_generated_per_trained_token", "preemptions_per_step",
    "trained_tokens_per_second", "goodput_tokens_per_gpu_second", "cost_per_step_usd",
)  # fmt: skip
"""What a run measures, in the order in which it is read."""

UNSEEN = frozenset(
    {"backlog_steps", "oldest_age_max_steps", "staleness_max_steps", "token_staleness_mean_steps", "steps_per_day"}
)  # in JSON only
UNLESS_ZERO = frozenset(
    {
        "failure_fraction", "rollout_idle_fraction", "tail_idle_fraction", "rollout_lost_fraction", "over_cap_fraction",
        "dropped_fraction", "preemptions_per_step",
    }
)  # fmt: skip
_NAMES = {
    "waiting_for_samples_fraction": "- waiting for samples",
    "sync_fraction": "- weight sync",
    "failure_fraction": "- failure",
    "tail_idle_fraction": "- of it, in a tail",
    "rollout_unused_fraction": "rollout unused",
    "rollout_idle_fraction": "- without samples",
    "rollout_paused_fraction": "- paused",
    "rollout_lost_fraction": "- lost",
    "step_p50_seconds": "- median",
    "step_p95_seconds": "- 95th percentile",
    "staleness_p95_steps": "- 95th percentile",
    "staleness_mean_steps": "staleness",
    "tokens_generated_per_trained_token": "tokens per trained token",
    "preemptions_per_step": "preemptions per step",
}
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
    """What people call a measure; a dash says that it is part of the one above."""
    return _NAMES.get(name, words(name))


def meaning(names: Iterable[str]) -> str:
    """What the short headings leave out, in a line."""
    return "; ".join(_MEANT[name] for name in names if name in _MEANT)


def number_shown(value: float, name: str) -> str:
    """A value for people, short enough for a table of many."""
    if name.endswith("_fraction"):
        return f"{value:.1%}".replace("%", " %")
    if name in _PLAIN:
        return f"{value:.2f}"
    if name in _COUNTS:
        return f"{value:,.0f}"
    return show(value, name)


def half_shown(half: float, name: str) -> str:
    """Half of a confidence interval; empty where there is none."""
    if half <= 0.0:
        return ""
    if name.endswith("_seconds"):
        return f"± {half:.2g} s"
    if name.endswith("_usd"):
        return f"± ${half:.2g}"
    if name.endswith("_fraction"):
        return f"± {half:.1%}".replace("%", " %")
    return f"± {half:,.0f}" if half >= _TWO_DIGITS else f"± {half:.2g}"
