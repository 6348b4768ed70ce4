"""What a step costs by pool, and with it a sample, a million tokens, a day and a run; goodput."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.equations import imbalance, iteration, loop_time, matching, money, rollout_batch
from rlsize.flow import rule

if TYPE_CHECKING:
    from rlsize.flow import Rule

PRICES = (
    rule("effective_preemptible_gpu_hour_usd", money.effective_gpu_hour, gpu_hour="preemptible_gpu_hour_usd"),
    rule(
        "mean_rollout_gpu_hour_usd",
        money.blended_gpu_hour,
        on_demand_gpu_hour="rollout_gpu_hour_usd",
        preemptible_gpu_hour="effective_preemptible_gpu_hour_usd",
    ),
)
"""The price of a rollout GPU-hour where some are preemptible, what preemption loses included."""


def _of_pool(pool: str, price: str) -> dict[str, str]:
    return {f"{pool}_gpus": f"{pool}_gpus", f"{pool}_gpu_hour": price}


_ROLLOUT = _of_pool("rollout", "paid_rollout_gpu_hour_usd")
_TRAINER = _of_pool("trainer", "paid_trainer_gpu_hour_usd")
_NO_ROLLOUT, _NO_TRAINER = dict.fromkeys(_ROLLOUT, 0.0), dict.fromkeys(_TRAINER, 0.0)
_STEP = {"step_seconds": "step_seconds"}


def _pool(pool: str) -> tuple[Rule, ...]:
    """GPU-hours of a pool, and what its waiting costs."""
    gpus = f"{pool}_gpus"
    return (
        rule(f"{pool}_gpu_hours_per_step", money.gpu_hours, gpus=gpus, seconds="step_seconds"),
        rule(
            f"{pool}_idle_cost_per_step_usd",
            money.idle_cost_per_step,
            gpus=gpus,
            gpu_hour=f"paid_{pool}_gpu_hour_usd",
            idle_fraction=f"{pool}_idle_fraction",
        ),
    )


COSTS = (
    rule("step_seconds", imbalance.step_time_with_idle, idle_fraction="trainer_idle_fraction"),
    *_pool("rollout"),
    *_pool("trainer"),
    rule("gpu_hours_per_step", money.gpu_hours, seconds="step_seconds"),
    rule("cost_per_step_usd", money.cost_per_step, **_ROLLOUT, **_TRAINER, **_STEP),
    rule("rollout_cost_per_step_usd", money.cost_per_step, **_ROLLOUT, **_NO_TRAINER, **_STEP),
    rule("trainer_cost_per_step_usd", money.cost_per_step, **_TRAINER, **_NO_ROLLOUT, **_STEP),
    rule(
        "on_demand_rollout_cost_per_step_usd",
        money.cost_per_step,
        **_of_pool("rollout", "rollout_gpu_hour_usd"),
        **_NO_TRAINER,
        **_STEP,
    ),
    rule("cost_per_sample_usd", money.cost_per_sample),
    rule("cost_per_million_trained_tokens_usd", money.cost_per_million_trained_tokens),
    rule("steps_per_day", iteration.iterations_per_day, iteration_seconds="step_seconds"),
    rule("cost_per_day_usd", money.cost_per_run, steps="steps_per_day"),
    rule("cost_per_run_usd", money.cost_per_run),
    rule("run_seconds", loop_time.run_time),
    rule("gpu_hours_per_run", money.gpu_hours, seconds="run_seconds"),
    rule("goodput_tokens_per_gpu_second", money.goodput),
)

PLACED = (
    *COSTS,
    rule("loop_tokens_per_second", rollout_batch.batch_rate, samples="samples_per_step", seconds="step_seconds"),
    rule("loop_tokens_per_gpu_second", matching.rate_per_gpu, rate="loop_tokens_per_second"),
)
"""What a placed loop of a known step does and costs."""
