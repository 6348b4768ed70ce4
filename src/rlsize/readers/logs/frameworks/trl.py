"""
TRL: GRPO and AsyncGRPO.

Source: trl/trainer/grpo_trainer.py and trl/experimental/async_grpo, v1.9.0. `num_tokens` counts prompts and
completions from the start of the run; all else is a mean over the steps since the last row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.readers.logs.figures import plain
from rlsize.readers.logs.mapping import Framework

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.facts.run_log import RunMode
    from rlsize.readers.logs.mapping import Fields, Sighting, Values

_PREFIXES = ("", "train/")
_ASYNC = ("queue_wait_time_s", "weight_sync_time_s", "generation_tok_per_s")
_TIMES = ("step_seconds", "wait_seconds", "sync_seconds")
_FIGURES = (
    plain("step_seconds", "step_time"),
    plain("wait_seconds", "queue_wait_time_s"),
    plain("sync_seconds", "weight_sync_time_s"),
    plain("mean_response_tokens", "completions/mean_length"),
    plain("longest_response_tokens", "completions/max_length"),
    plain("clipped_fraction", "completions/clipped_ratio"),
    plain("queued_samples", "buffer_qsize"),
    plain("rollout_tokens_per_second", "generation_tok_per_s"),
    plain("trainer_tokens_per_second", "training_tok/s"),
)


def _mode(values: Values) -> RunMode:
    return "async" if any(prefix + key in values for key in _ASYNC for prefix in _PREFIXES) else "unknown"


def _tokens(row: Sighting) -> float | None:
    return next(
        (row.values[prefix + "num_tokens"] for prefix in _PREFIXES if prefix + "num_tokens" in row.values), None
    )


def _follow(fields: Fields, row: Sighting, before: Sighting | None) -> None:
    """The steps that a row stands for, its means as sums over them, and the tokens since the last row."""
    if not row.numbered:
        return
    updates = row.step - before.step if before is not None and before.numbered else row.step if row.step == 1 else 0
    if updates <= 0:
        return
    fields["updates"] = float(updates)
    for name in _TIMES:
        if name in fields:
            fields[name] *= updates
    now, then = _tokens(row), _tokens(before) if before is not None else 0.0
    if now is not None and then is not None and now >= then:
        fields["total_tokens"] = now - then


def _warnings(last: Sighting, keys: Mapping[str, str]) -> Sequence[str]:
    found = []
    if not last.numbered:
        found.append(
            "without step numbers the tokens of a step are not known: trainer_state.json, beside every checkpoint, "
            "has both"
        )
    if "step_seconds" not in keys:
        found.append("no step_time in this log: how long a step takes is not known")
    return found


FRAMEWORK = Framework(
    name="trl",
    figures=_FIGURES,
    mode=_mode,
    marks=("num_tokens", "train/num_tokens", "frac_reward_zero_std", "completions/"),
    steps=("step", "_step", "global_step"),
    prefixes=_PREFIXES,
    follow=_follow,
    follows={"total_tokens": "num_tokens, from row to row", "updates": "step, from row to row"},
    warn=_warnings,
)
