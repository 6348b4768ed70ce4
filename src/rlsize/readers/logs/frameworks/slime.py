"""
slime (and its fork miles): every rollout is logged twice, by the rollout manager and by the trainer, under one
number.

Source: slime/observability/rollout_metrics.py and train_metric_utils.py, v0.3.1. step_time = train_wait_time +
train_time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.readers.logs.figures import plain, product, summed
from rlsize.readers.logs.mapping import Framework

if TYPE_CHECKING:
    from rlsize.facts.run_log import RunMode
    from rlsize.readers.logs.mapping import Values

_ROLLOUT = "perf/rollout_time"
_WAIT = "perf/train_wait_time"
_RATE = ("perf/actor_train_tok_per_s",)
_TOOLS = "perf/non_generation_time/mean"
_TRAIN = ("perf/actor_train_time",)
_SLEEPS = ("perf/sleep_time", "perf/wake_up_time")
_HIDDEN = 0.9  # a trainer that waits for less than this share of a rollout works beside it
_FIGURES = (
    plain("step_seconds", "perf/step_time"),
    plain("generation_seconds", _ROLLOUT),
    plain("wait_seconds", _WAIT),
    summed("logprob_seconds", "perf/log_probs_time", "perf/ref_log_probs_time"),
    plain("update_seconds", *_TRAIN),
    plain("sync_seconds", "perf/update_weights_time"),
    product("total_tokens", _RATE, _TRAIN),
    plain("trainer_tokens_per_second", *_RATE, counts="prompt and response tokens while the policy is updated"),
    plain("rollout_tokens_per_second_per_gpu", "perf/tokens_per_gpu_per_sec"),
    plain("generation_tools_seconds", _TOOLS),
    plain("sample_tools_seconds", _TOOLS),
    plain("mean_response_tokens", "rollout/response_len/mean"),
    plain("longest_response_tokens", "rollout/response_len/max"),
    plain("clipped_fraction", "rollout/truncated_ratio"),
    plain("prefix_cache_hit_fraction", "rollout/prefix_cache_hit_rate"),
    plain("trainer_idle_fraction", "perf/wait_time_ratio"),
)


def _mode(values: Values) -> RunMode:
    if any(key in values for key in _SLEEPS):
        return "colocated"
    rollout, wait = values.get(_ROLLOUT), values.get(_WAIT)
    if rollout is None or wait is None:
        return "unknown"
    return "async" if wait < _HIDDEN * rollout else "synchronous"


FRAMEWORK = Framework(
    name="slime",
    figures=_FIGURES,
    mode=_mode,
    mode_by_row=True,
    steps=("step", "rollout/step", "train/step"),
    together=True,
    halves=((_ROLLOUT, "rollout/response_len/mean"), ("perf/step_time", "perf/train_time", *_TRAIN)),
)
