"""
Where signals of the trainer come from: the series of `rlsize export`, else an exporter that a framework has.

verl as of 0.9.1 with rl_insight 0.3 (`verl/utils/tracking.py`: a gauge for each key of its log, `/` as `_`); SkyRL as
of 0.4 (`skyrl/train/utils/metrics.py`, of its fully async trainer alone: a gauge that is 1 in the phase that runs; Ray
shows it with `ray_` in front); prime-rl as of autumn 2026. SkyRL's buffer counts groups; prime-rl's tokens per second
are over its passes alone and count padding, so its steps count, at the tokens that a step is planned to train.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rlsize.facts.published import AGE, QUEUED, STEP, SYNC, TRAINED, WAIT

if TYPE_CHECKING:
    from collections.abc import Mapping

_VERL = "rl_insight_monitor_"
_VERL_STEP = f"avg_over_time({_VERL}timing_s_step{{$T}}[$W])"
_VERL_TRAINED = (
    f"sum(avg_over_time({_VERL}perf_total_num_tokens{{$T}}[$W]) / {_VERL_STEP}\n"
    f"  * avg_over_time({_VERL}response_length_mean{{$T}}[$W])\n"
    f"  / (avg_over_time({_VERL}response_length_mean{{$T}}[$W])"
    f" + avg_over_time({_VERL}prompt_length_mean{{$T}}[$W])))"
)


def _phase(name: str) -> str:
    """The share of its time that SkyRL's trainer is in a phase."""
    return f'sum(avg_over_time({{__name__=~"(ray_)?skyrl_training_phase",phase="{name}",$T}}[$W]))'


class TrainerExpression(NamedTuple):
    """
    Where a signal of the trainer comes from.

    Args:
        ours: The expression over the series that `rlsize export` publishes.
        aggregate: How several series of an expression of the user's own become one.
        theirs: Expressions over what frameworks export, taken where ours has no value; $F is a factor of the plan.
        factor: The figures of the plan whose product is $F; without them they are left out.
    """

    ours: str
    aggregate: str
    theirs: tuple[str, ...] = ()
    factor: tuple[str, ...] = ()


EXPRESSIONS: Mapping[str, TrainerExpression] = {
    "idle": TrainerExpression(
        f"sum(rate({WAIT}{{$T}}[$W]))\n  / sum(rate({STEP}{{$T}}[$W]))",
        "avg",
        (
            f"avg(avg_over_time({_VERL}timing_s_gen{{$T}}[$W])\n  / {_VERL_STEP})",
            _phase("wait_for_generation_buffer"),
        ),
    ),
    "sync": TrainerExpression(
        f"sum(rate({SYNC}{{$T}}[$W]))\n  / sum(rate({STEP}{{$T}}[$W]))",
        "avg",
        (f"avg(avg_over_time({_VERL}timing_s_update_weights{{$T}}[$W])\n  / {_VERL_STEP})", _phase("sync_weights")),
    ),
    "queue": TrainerExpression(
        f"sum({QUEUED}{{$T}})",
        "sum",
        ('sum({__name__=~"(ray_)?skyrl_gen_buffer_qsize",$T}) * $F',),
        factor=("group_size",),
    ),
    "age": TrainerExpression(
        f"max({AGE}{{$T}})", "max", (f"max({_VERL}training_off_policy_trajectory_staleness_worst_max{{$T}})",)
    ),
    "trained": TrainerExpression(
        f"sum(rate({TRAINED}{{$T}}[$W]))",
        "sum",
        (_VERL_TRAINED, "max(deriv(trainer_step{$T}[$W])) * $F"),
        factor=("loop_tokens_per_second", "step_seconds"),
    ),
}
"""What is told by the trainer, and what `--metric` may replace."""
