"""
SkyRL: synchronous and fully async.

Source: skyrl/train/trainer.py and fully_async_trainer.py, commit a9564572.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.readers.logs.figures import plain, product
from rlsize.readers.logs.mapping import Framework, pools_not_told

if TYPE_CHECKING:
    from rlsize.facts.run_log import RunMode
    from rlsize.readers.logs.mapping import Values

_WAIT = "timing/wait_for_generation_buffer"
_SAMPLES = ("generate/batch_num_seq",)
_MEAN = ("generate/avg_num_tokens",)
_FIGURES = (
    plain("step_seconds", "timing/step"),
    plain("generation_seconds", "timing/generate"),
    plain("wait_seconds", _WAIT),
    plain("logprob_seconds", "timing/fwd_logprobs_values_reward"),
    plain("update_seconds", "timing/train_critic_and_policy"),
    plain("sync_seconds", "timing/sync_weights"),
    plain("samples", *_SAMPLES),
    product("response_tokens", _SAMPLES, _MEAN),
    plain("mean_response_tokens", *_MEAN),
    plain("longest_response_tokens", "generate/max_num_tokens"),
    plain("staleness_steps", "async/staleness_mean"),
    plain("largest_staleness_steps", "async/staleness_max"),
    plain(
        "queued_samples",
        "async/gen_buffer_qsize_at_wait_start",
        counts="entries of the generation buffer, each the samples of one prompt",
    ),
    plain(
        "trainer_tokens_per_second_per_gpu",
        "trainer/tokens_per_second_per_gpu",
        counts="prompt and response tokens over the training time",
    ),
)


def _mode(values: Values) -> RunMode:
    return "async" if _WAIT in values else "synchronous" if "timing/generate" in values else "unknown"


FRAMEWORK = Framework(
    name="skyrl",
    figures=_FIGURES,
    mode=_mode,
    marks=("timing/run_training", "timing/convert_to_training_input", "async/keep_rate", "generate/min_num_tokens"),
    steps=("step", "trainer/global_step"),
    warn=pools_not_told(_mode),
)
