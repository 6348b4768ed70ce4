"""
AReaL: asynchronous; the trainer's step is the sum of its timers.

Source: areal/trainer and areal/utils/stats_tracker.py, v1.0.4. `timeperf/rollout` is how long the trainer waits for a
batch; no key tells the whole step, tokens per second or MFU.
"""

from __future__ import annotations

from rlsize.readers.logs.figures import Figure, plain, product, summed
from rlsize.readers.logs.mapping import Framework

_TIMERS = (
    *("rollout", "recompute_logp", "ref_logp", "critic_values", "compute_advantage", "train_step", "critic_train_step"),
    *("update_weights", "save", "checkpoint_for_recover", "eval", "clear_batches"),
)
_SAMPLES = ("ppo_actor/n_seqs",)
_LENGTH = ("ppo_actor/seq_len/avg",)
_PROMPT = ("ppo_actor/prompt_len/avg",)


def _rest(length: float, prompt: float) -> float:
    """What of a sequence is no prompt."""
    return max(0.0, length - prompt)


_FIGURES = (
    summed(
        "step_seconds",
        *(f"timeperf/{timer}" for timer in _TIMERS),
        counts="the sum of the trainer's timers, as the log does not time the step",
    ),
    plain("wait_seconds", "timeperf/rollout", counts="how long the trainer waited for a batch"),
    summed("logprob_seconds", "timeperf/recompute_logp", "timeperf/ref_logp", "timeperf/critic_values"),
    summed("update_seconds", "timeperf/train_step", "timeperf/critic_train_step"),
    plain("sync_seconds", "timeperf/update_weights"),
    plain("validation_seconds", "timeperf/eval"),
    summed("checkpoint_seconds", "timeperf/save", "timeperf/checkpoint_for_recover"),
    plain("samples", *_SAMPLES),
    plain("response_tokens", "ppo_actor/n_valid_tokens", counts="tokens that the loss counts"),
    product("prompt_tokens", _SAMPLES, _PROMPT),
    product("total_tokens", _SAMPLES, _LENGTH),
    plain("mean_prompt_tokens", *_PROMPT),
    plain("mean_total_tokens", *_LENGTH),
    Figure(field="mean_response_tokens", of=(_LENGTH, _PROMPT), how=_rest, says="{0} - {1}"),
)


FRAMEWORK = Framework(
    name="areal",
    figures=_FIGURES,
    mode="async",
    marks=("timeperf/", "ppo_actor/"),
)
