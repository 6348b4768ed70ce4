"""
OpenRLHF: synchronous and asynchronous PPO.

Source: openrlhf/trainer/ppo_trainer.py and ppo_trainer_async.py, v0.11.0. Synchronous, `timing/step_total` is the sum
of the parts; asynchronous, generation overlaps the rest and `timing/step_total` is the wall clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.readers.logs.figures import Figure, plain, product
from rlsize.readers.logs.mapping import Framework, pools_not_told

if TYPE_CHECKING:
    from rlsize.facts.run_log import RunMode
    from rlsize.readers.logs.mapping import Values

_PARTS = ("timing/generation", "timing/make_experience", "timing/ppo_train", "timing/broadcast")
_STEP = "timing/step_total"
_SAMPLES = ("rollout/num_samples",)
_RESPONSE = ("rollout/response_length_mean", "response_length")
_OVERLAP = 0.98  # of the sum of the parts; timers of a synchronous step lose less than that


def _waited(step: float, generation: float, experience: float, train: float, broadcast: float) -> float | None:
    """What an asynchronous step has left beside the trainer's own work."""
    busy = experience + train + broadcast
    return max(0.0, step - busy) if step < _OVERLAP * (busy + generation) else None


def _prompts(samples: float, total: float, response: float) -> float:
    """Prompt tokens of all samples."""
    return samples * max(0.0, total - response)


_FIGURES = (
    plain("step_seconds", _STEP),
    plain("generation_seconds", "timing/generation"),
    plain("logprob_seconds", "timing/make_experience"),
    plain("update_seconds", "timing/ppo_train"),
    plain("sync_seconds", "timing/broadcast"),
    Figure(
        field="wait_seconds",
        of=((_STEP,), *((key,) for key in _PARTS)),
        how=_waited,
        says="{0} - {2} - {3} - {4}",
        counts="what is left of the step beside the trainer's own work",
    ),
    plain("samples", *_SAMPLES),
    product("response_tokens", _SAMPLES, _RESPONSE),
    Figure(
        field="prompt_tokens",
        of=(_SAMPLES, ("total_length",), ("response_length",)),
        how=_prompts,
        says="{0} x ({1} - {2})",
    ),
    product("total_tokens", _SAMPLES, ("total_length",)),
    plain("mean_response_tokens", *_RESPONSE),
    plain("clipped_fraction", "rollout/truncated_rate"),
)


def _mode(values: Values) -> RunMode:
    prefix = "" if _STEP in values else "train/"
    step = values.get(prefix + _STEP)
    parts = [values.get(prefix + key) for key in _PARTS]
    if step is None or parts[0] is None:
        return "unknown"
    return "async" if step < _OVERLAP * sum(part or 0.0 for part in parts) else "synchronous"


FRAMEWORK = Framework(
    name="openrlhf",
    figures=_FIGURES,
    mode=_mode,
    mode_by_row=True,
    steps=("step", "global_step"),
    prefixes=("", "train/"),
    warn=pools_not_told(_mode),
)
