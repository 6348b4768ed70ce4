"""
prime-rl: the trainer and the orchestrator each log their part of a step.

Source: src/prime_rl/trainer/rl/train.py and src/prime_rl/orchestrator, commit 559b4477. Throughput and MFU are over
forward_backward since pull request 2376, MFU is in percent, and the tokens are packed lengths with their padding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.readers.logs.figures import GIB, Figure, count, plain, pool, product
from rlsize.readers.logs.mapping import Framework

if TYPE_CHECKING:
    from rlsize.readers.logs.mapping import Fields, Sighting, Values

_RATE = ("perf/throughput", "Throughput")
_BUSY = ("time/forward_backward",)
_ORCHESTRATED = (("orchestrator throughput",), ("orchestrator step time",))
_ALL = "progress/total_tokens"
_PACKED = "packed sequences, padding included, while the trainer computes"
_TRAINER = ("time/forward_backward", "time/wait_for_batch", "perf/mfu", "Throughput", "MFU", "Loss")
_ORCHESTRATOR = ("time/wait_for_policy", "progress/num_samples", "off_policy/mean", "Reward", "Max Off-Policy")
_LATER = "orchestrator time/step"


def _samples(rate: float, seconds: float, length: float) -> float | None:
    """Samples of a step whose rate and mean length are logged."""
    return count(rate * seconds, length)


_FIGURES = (
    plain("step_seconds", "time/step", "trainer step time", _LATER, "orchestrator step time"),
    plain("wait_seconds", "time/wait_for_batch"),
    plain("update_seconds", *_BUSY),
    plain("sync_seconds", "time/broadcast_weights"),
    plain("checkpoint_seconds", "time/save_ckpt"),
    plain("samples", "progress/num_samples"),
    plain("prompt_tokens", "progress/input_tokens"),
    plain("response_tokens", "progress/output_tokens"),
    plain("total_tokens", "progress/num_tokens"),
    product("total_tokens", _RATE, _BUSY, counts=_PACKED),
    product("total_tokens", *_ORCHESTRATED),
    Figure(field="samples", of=(*_ORCHESTRATED, ("Seq. Length",)), how=_samples, says="{0} x {1} / {2}"),
    plain("mean_total_tokens", "Seq. Length"),
    plain("mfu", "perf/mfu", "MFU", scale=0.01),
    plain("peak_reserved_bytes", "perf/peak_memory", "Peak Mem.", scale=GIB),
    plain("trainer_tokens_per_second", *_RATE, counts=_PACKED),
    plain("trainer_tokens_per_second_per_gpu", "perf/throughput_per_gpu", counts=_PACKED),
    pool("trainer_gpus", _RATE, ("perf/throughput_per_gpu",)),
    plain("staleness_steps", "off_policy/mean"),
    plain("largest_staleness_steps", "off_policy/max", "Max Off-Policy"),
    plain("dropped_samples", "off_policy/dropped"),
    plain("clipped_fraction", "Truncation", scale=0.01),
    plain("requests_running", "inference/agg/num_requests_running/mean"),
    plain("requests_waiting", "inference/agg/num_requests_waiting/mean"),
    plain("prefix_cache_hit_fraction", "inference/agg/prefix_cache_hit_rate/pooled"),
)


def _prepare(values: Values) -> Values:
    """The orchestrator's step is not the trainer's, though its key is the same."""
    if "time/step" not in values or any(key in values for key in _TRAINER):
        return values
    return {_LATER if key == "time/step" else key: value for key, value in values.items()}


def _follow(fields: Fields, row: Sighting, before: Sighting | None) -> None:
    """The tokens since the row before."""
    if before is None or row.step != before.step + 1 or "progress/num_tokens" in row.values:
        return
    if _ALL in row.values and _ALL in before.values and row.values[_ALL] >= before.values[_ALL]:
        fields["total_tokens"] = row.values[_ALL] - before.values[_ALL]


FRAMEWORK = Framework(
    name="prime-rl",
    figures=_FIGURES,
    mode="async",
    marks=("off_policy/", "inference/agg/", "time/wait_for_policy", "Reward", _ALL),
    halves=(_TRAINER, _ORCHESTRATOR),
    prepare=_prepare,
    follow=_follow,
    follows={"total_tokens": f"{_ALL}, from row to row"},
)
