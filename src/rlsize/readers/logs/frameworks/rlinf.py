"""
RLinf: the reasoning runner, whose pools may share GPUs, or not, or work in a pipeline.

Source: rlinf/runners/reasoning_runner.py, commit a3816b59.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.readers.logs.figures import Figure, plain, summed
from rlsize.readers.logs.mapping import Framework

if TYPE_CHECKING:
    from rlsize.facts.run_log import RunMode
    from rlsize.readers.logs.mapping import Values

_STEP = "time/step"
_PARTS = ("time/rollout", "time/actor/training", "time/sync_weights")
_OVERLAP = 0.9  # of the sum of the parts
_FIGURES = (
    plain("step_seconds", _STEP),
    plain("generation_seconds", "time/rollout"),
    Figure(field="logprob_seconds", of=(("time/actor/inference", "time/inference"), ("time/critic/inference",))),
    summed("update_seconds", "time/actor/training", "time/critic/training"),
    plain("sync_seconds", "time/sync_weights"),
    plain("reward_seconds", "time/reward"),
    plain("mean_response_tokens", "rollout/response_length"),
    plain("mean_prompt_tokens", "rollout/prompt_length"),
)


def _mode(values: Values) -> RunMode:
    parts = sum(values.get(key, 0.0) for key in _PARTS)
    return "async" if values.get(_STEP, parts) < _OVERLAP * parts else "unknown"


FRAMEWORK = Framework(
    name="rlinf",
    figures=_FIGURES,
    mode=_mode,
    mode_by_row=True,
    marks=("time/prepare_data", "rollout/prompt_length", "rollout_tflops_per_gpu"),
)
