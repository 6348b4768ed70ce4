"""
ROLL: RLVR and agentic pipelines.

Source: roll/utils/metrics/metrics_manager.py and roll/pipeline, commit 8eb27cc2. The rates of `actor_infer` count
prompts, unless their key says response.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.readers.logs.figures import gpus, plain, pool, response_share, summed
from rlsize.readers.logs.mapping import Framework

if TYPE_CHECKING:
    from rlsize.facts.run_log import RunMode
    from rlsize.readers.logs.mapping import Values

_STEP = "time/step_total"
_GENERATION = ("time/step_generate", "time/step_rollout")
_LOGPROBS = ("time/ref_log_probs_values", "time/old_log_probs", "time/values")
_RESPONSE = ("token/response_length/mean",)
_PROMPT = ("token/prompt_length/mean",)
_ALL = (("system/tps",), ("system/tps_gpu",))
_FLEET = (("system/actor_infer/tps",), ("system/actor_infer/tps_gpu",))
_OVERLAP = 0.9  # of the sum of the parts
_FIGURES = (
    plain("step_seconds", _STEP),
    plain("generation_seconds", *_GENERATION),
    summed("logprob_seconds", *_LOGPROBS),
    plain("update_seconds", "time/step_train"),
    plain("sync_seconds", "time/step_model_update"),
    plain("mean_response_tokens", *_RESPONSE),
    plain("mean_prompt_tokens", *_PROMPT),
    plain("longest_response_tokens", "token/response_length/max"),
    pool("gpus", *_ALL),
    pool("rollout_gpus", *_FLEET),
    response_share("rollout_tokens_per_second", *_FLEET[0], *_RESPONSE, *_PROMPT),
    plain("rollout_tokens_per_second_per_gpu", "system/actor_infer/response/tps_gpu"),
    response_share("rollout_tokens_per_second_per_gpu", *_FLEET[1], *_RESPONSE, *_PROMPT),
    plain("trainer_tokens_per_second_per_gpu", "system/actor_train/tps_gpu", counts="prompt and response tokens"),
)


def _mode(values: Values) -> RunMode:
    generation = next((values[key] for key in _GENERATION if key in values), 0.0)
    parts = generation + sum(values.get(key, 0.0) for key in ("time/step_train", "time/step_model_update"))
    if values.get(_STEP, parts) < _OVERLAP * parts:
        return "async"
    everywhere, fleet = (gpus(values.get(rate[0], 0.0), values.get(each[0], 0.0)) for rate, each in (_ALL, _FLEET))
    if everywhere is None or fleet is None:
        return "unknown"
    return "colocated" if fleet >= everywhere else "synchronous"


FRAMEWORK = Framework(
    name="roll",
    figures=_FIGURES,
    mode=_mode,
    mode_by_row=True,
    marks=("token/", "system/"),
    steps=("step", "system/step", "global_step"),
)
