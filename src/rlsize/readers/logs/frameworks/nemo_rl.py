"""
NeMo-RL: GRPO, synchronous and asynchronous.

Source: nemo_rl/algorithms/grpo.py and utils.py, v0.7.0. Its `training_worker_idle_time_ratio` is 0 whenever the
exposed generation takes more than 0.1 s, so it is not used; its generation rate counts prompts as well, and in
asynchronous runs divides by the step's time, which is a lower bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.dataclass import replace
from rlsize.readers.logs.figures import (
    Figure,
    gpus,
    plain,
    pool,
    product,
    ratio,
    response_share,
    rounded_product,
    shared_out,
)
from rlsize.readers.logs.mapping import Framework

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.facts.run_log import RunMode
    from rlsize.readers.logs.mapping import Values

_STEP = ("timing/train/total_step_time",)
_EXPOSED = ("timing/train/exposed_generation",)
_TOTAL = ("train/total_num_tokens",)
_RESPONSE = ("train/mean_gen_tokens_per_sample",)
_PROMPT = ("train/mean_prompt_length",)
_SAMPLES = ("performance/samples_per_sec",)
_TOKENS = ("performance/tokens_per_sec",)
_FLEET = ("performance/generation_tokens_per_sec",)
_FLEET_GPU = ("performance/generation_tokens_per_sec_per_gpu",)
_TRAINER = ("performance/training_worker_group_tokens_per_sec",)
_TRAINER_GPU = ("performance/training_worker_group_tokens_per_sec_per_gpu",)


def _response_tokens(samples: float, seconds: float, mean: float) -> float:
    """Of a log that prints rates and no sums."""
    return float(round(samples * seconds)) * mean


_RATES = (
    response_share("rollout_tokens_per_second", *_FLEET, *_RESPONSE, *_PROMPT),
    response_share("rollout_tokens_per_second_per_gpu", *_FLEET_GPU, *_RESPONSE, *_PROMPT),
)
_SHARED = (
    plain("step_seconds", *_STEP),
    plain("logprob_seconds", "timing/train/policy_and_reference_logprobs"),
    plain("update_seconds", "timing/train/policy_training"),
    plain(
        "sync_seconds",
        "timing/train/weight_sync",
        "timing/train/prepare_for_generation/transfer_and_update_weights",
    ),
    plain("reward_seconds", "timing/train/reward_calculation"),
    plain("checkpoint_seconds", "timing/train/checkpointing"),
    plain("turns", "train/avg_turns_per_sample"),
    plain("total_tokens", *_TOTAL),
    product("total_tokens", _TOKENS, _STEP),
    *shared_out(_TOTAL, _RESPONSE, _PROMPT),
    Figure(field="response_tokens", of=(_SAMPLES, _STEP, _RESPONSE), how=_response_tokens, says="{0} x {1} x {2}"),
    Figure(field="samples", of=(_SAMPLES, _STEP), how=rounded_product, says="{0} x {1}"),
    plain("mean_response_tokens", *_RESPONSE),
    plain("mean_prompt_tokens", *_PROMPT),
    plain("mean_total_tokens", "train/mean_total_tokens_per_sample"),
    plain("clipped_fraction", "train/truncation_rate"),
    plain("staleness_steps", "train/avg_trajectory_age"),
    plain("mfu", "performance/train_fp_utilization"),
    pool("gpus", _TOKENS, ("performance/tokens_per_sec_per_gpu",)),
    pool("rollout_gpus", _FLEET, _FLEET_GPU),
    pool("trainer_gpus", _TRAINER, _TRAINER_GPU),
    plain(
        "trainer_tokens_per_second",
        *_TRAINER,
        counts="prompt and response tokens over log-probs and training together",
    ),
    plain(
        "trainer_tokens_per_second_per_gpu",
        *_TRAINER_GPU,
        "performance/policy_training_tokens_per_sec_per_gpu",
        counts="prompt and response tokens",
    ),
)
_SYNCHRONOUS = (plain("generation_seconds", "timing/train/generation"), *_SHARED, *_RATES)
_ASYNC = (
    plain("wait_seconds", *_EXPOSED, counts="generation that training did not hide"),
    Figure(
        field="trainer_idle_fraction",
        of=(_EXPOSED, _STEP),
        how=ratio,
        says="{0} / {1}",
        counts="worked out from the times, as the log's own ratio is 0 where the trainer waits",
    ),
    *_SHARED,
    *(replace(rate, counts=f"{rate.counts} and divides by the step's time: a lower bound") for rate in _RATES),
)


def _figures(values: Values) -> Sequence[Figure]:
    return _ASYNC if _mode(values) == "async" else _SYNCHRONOUS


def _mode(values: Values) -> RunMode:
    if _EXPOSED[0] in values:
        return "async"
    pools = [
        gpus(values.get(rate, 0.0), values.get(each, 0.0))
        for rate, each in (
            (_TOKENS[0], "performance/tokens_per_sec_per_gpu"),
            (_FLEET[0], _FLEET_GPU[0]),
            (_TRAINER[0], _TRAINER_GPU[0]),
        )
    ]
    return "colocated" if pools[0] is not None and len(set(pools)) == 1 else "synchronous"


FRAMEWORK = Framework(
    name="nemo-rl",
    figures=(*_SYNCHRONOUS, *_ASYNC),
    chosen=_figures,
    mode=_mode,
    mode_by_row=True,
    marks=("timing/train/", "train/mean_total_tokens_per_sample", "train/global_valid_toks"),
)
