"""
verl: synchronous (colocated), one-step-off, fully async, and V1's modes.

Source: verl/trainer/ppo/metric_utils.py, verl/experimental/fully_async_policy, v0.9.0. In every mode with a fleet of
its own, `timing_s/gen` is how long the trainer waits for a batch, not how long that takes to generate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.readers.logs.figures import GIB, Figure, known, plain, shared_out, summed
from rlsize.readers.logs.mapping import Framework

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.facts.run_log import RunMode
    from rlsize.readers.logs.mapping import Fields, Sighting, Values

_TOTAL = ("perf/total_num_tokens",)
_RESPONSE = ("response_length/mean",)
_PROMPT = ("prompt_length/mean",)
_TIME = ("perf/time_per_step",)
_THROUGHPUT = ("perf/throughput",)
_TOOLS = "timing_s/agent_loop/tool_calls/mean"
_VERSION = "fully_async/count/current_param_version"
_DROPPED = "fully_async/count/dropped_stale_samples"
_UPDATE = "training/global_step"
_FULLY_ASYNC = (_VERSION, "fully_async/trainer/idle_ratio", "trainer/idle_ratio", "rollouter/idle_ratio")
_ONE_STEP_OFF = ("timing_s/wait_prev_gen", "timing_s/sync_rollout_weights", "timing_s/param_sync")
_SEPARATE = "separate_async/"


_SUMMED = (
    "verl's fully async rows sum times and tokens over trigger_parameter_sync_step updates, a number that this log "
    "does not tell: times per step here are per weight sync; rates and shares are right"
)


def _gpus(total: float, seconds: float, throughput: float) -> float | None:
    """All GPUs, by which the throughput was divided."""
    spent = seconds * throughput
    return float(round(total / spent)) if spent > 0 and 1 <= round(total / spent, 3) < 2.0**53 else None


_OF_THROUGHPUT = (_TOTAL, _TIME, _THROUGHPUT)
_SAYS_GPUS = "{0} / ({1} x {2})"
_SHARED = (
    plain("mean_response_tokens", *_RESPONSE),
    plain("mean_prompt_tokens", *_PROMPT),
    plain("longest_response_tokens", "response_length/max"),
    plain("clipped_fraction", "response_length/clip_ratio"),
    plain("total_tokens", *_TOTAL),
    Figure(
        field="logprob_seconds",
        of=(("timing_s/old_log_prob",), ("timing_s/ref", "timing_s/ref_log_prob"), ("timing_s/values",)),
    ),
    summed("update_seconds", "timing_s/update_actor", "timing_s/update_critic"),
    plain("sync_seconds", "timing_s/update_weights", "timing_s/param_sync", "timing_s/sync_rollout_weights"),
    plain("reward_seconds", "timing_s/reward"),
    plain("generation_tools_seconds", "timing_s/agent_loop/slowest/tool_calls", _TOOLS),
    plain("sample_tools_seconds", _TOOLS),
    plain("turns", "num_turns/mean", scale=0.5, counts="the model's half of the messages"),
    plain("peak_allocated_bytes", "perf/max_memory_allocated_gb", scale=GIB),
    plain("peak_reserved_bytes", "perf/max_memory_reserved_gb", scale=GIB),
    plain("validation_seconds", "timing_s/testing"),
    plain("checkpoint_seconds", "timing_s/save_checkpoint"),
    Figure(field="mfu", of=(("perf/mfu/actor", "mfu/actor"),), how=known),
    *shared_out(_TOTAL, _RESPONSE, _PROMPT),
    Figure(field="gpus", of=_OF_THROUGHPUT, how=_gpus, says=_SAYS_GPUS),
    plain("staleness_steps", "training/off_policy/trajectory_staleness/mean"),
    plain(
        "largest_staleness_steps",
        "training/off_policy/trajectory_staleness_worst/max",
        "training/off_policy/trajectory_staleness/max",
    ),
)
_COLOCATED = (
    plain("step_seconds", "timing_s/step", *_TIME),
    plain("generation_seconds", "timing_s/gen"),
    Figure(field="rollout_gpus", of=_OF_THROUGHPUT, how=_gpus, says=_SAYS_GPUS, counts="GPUs that both pools share"),
    Figure(field="trainer_gpus", of=_OF_THROUGHPUT, how=_gpus, says=_SAYS_GPUS, counts="GPUs that both pools share"),
    *_SHARED,
)
_APART = (
    plain(
        "wait_seconds",
        "timing_s/wait_prev_gen",
        "timing_s/gen",
        counts="how long the trainer waited for a batch; the log does not time its generation by this key",
    ),
    *_SHARED,
)
_OFF = (plain("step_seconds", "timing_s/step", *_TIME), *_APART)
_ASYNC = (
    Figure(field="step_seconds", of=(("timing_s/step",), _TIME), how=max, says="the larger of {0} and {1}"),
    plain("step_seconds", "timing_s/step", *_TIME),
    plain(
        "generation_seconds",
        "fully_async/rollouter/active_time",
        "rollouter/active_time",
        counts="how long the fleet was generating while this row's updates ran",
    ),
    plain("trainer_idle_fraction", "fully_async/trainer/idle_ratio", "trainer/idle_ratio"),
    plain("rollout_idle_fraction", "fully_async/rollouter/idle_ratio", "rollouter/idle_ratio"),
    *_APART,
)


def _figures(values: Values) -> Sequence[Figure]:
    if _is_fully_async(values):
        return _ASYNC
    return _OFF if _mode(values) == "async" else _COLOCATED


def _is_fully_async(values: Values) -> bool:
    return any(key in values for key in _FULLY_ASYNC)


def _mode(values: Values) -> RunMode:
    apart = any(key in values for key in _ONE_STEP_OFF) or any(key.startswith(_SEPARATE) for key in values)
    return "async" if apart or _is_fully_async(values) else "colocated"


def _follow(fields: Fields, row: Sighting, before: Sighting | None) -> None:
    """What counts on: versions and updates, whose quotient is the updates of a row, and samples thrown away."""
    if before is None or _VERSION not in row.values or _VERSION not in before.values:
        return
    versions = row.values[_VERSION] - before.values[_VERSION]
    updates = row.values.get(_UPDATE, 0.0) - before.values.get(_UPDATE, 0.0)
    if versions == 1 < updates and updates.is_integer():
        fields["updates"] = updates
    dropped = row.values.get(_DROPPED, -1.0) - before.values.get(_DROPPED, 0.0)
    if versions > 0 and dropped >= 0:
        fields["dropped_samples"] = dropped


def _warnings(last: Sighting, keys: Mapping[str, str]) -> Sequence[str]:
    return (_SUMMED,) if _is_fully_async(last.values) and "updates" not in keys else ()


FRAMEWORK = Framework(
    name="verl",
    figures=(*_COLOCATED, *_OFF, *_ASYNC),
    chosen=_figures,
    mode=_mode,
    marks=(
        *("val-core/", "val-aux/", "actor/", "timing_s/", "timing_per_token_ms/", "fully_async/", "critic/"),
        *(_VERSION, _DROPPED),
    ),
    steps=("step", _UPDATE),
    follow=_follow,
    follows={
        "updates": f"{_UPDATE}, from row to row",
        "dropped_samples": f"{_DROPPED}, from row to row",
    },
    warn=_warnings,
)
