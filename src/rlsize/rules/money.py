"""What a step costs by pool, and with it a sample, a million tokens, a day and a run; goodput."""

from __future__ import annotations

from rlsize.equations import imbalance, iteration, loop_time, matching, money, rollout_batch
from rlsize.estimates.flow import rule

_USEFUL = "effective_preemptible_gpu_hour_usd"
_EACH = {"on_demand_gpu_hour": "rollout_gpu_hour_usd", "preemptible_gpu_hour": _USEFUL}

PRICES = (
    rule(_USEFUL, money.effective_gpu_hour, gpu_hour="preemptible_gpu_hour_usd"),
    rule("mean_rollout_gpu_hour_usd", money.blended_gpu_hour, **_EACH),
)
"""The price of a rollout GPU-hour where some are preemptible, what preemption loses included."""


_ROLLOUT = {"rollout_gpus": "rollout_gpus", "rollout_gpu_hour": "paid_rollout_gpu_hour_usd"}
_TRAINER = {"trainer_gpus": "trainer_gpus", "trainer_gpu_hour": "paid_trainer_gpu_hour_usd"}
_ON_DEMAND = _ROLLOUT | {"rollout_gpu_hour": "rollout_gpu_hour_usd"}
_NO_ROLLOUT, _NO_TRAINER = dict.fromkeys(_ROLLOUT, 0.0), dict.fromkeys(_TRAINER, 0.0)
_STEP = {"step_seconds": "step_seconds"}
_IDLE = {
    pool: {
        "gpus": f"{pool}_gpus",
        "gpu_hour": f"paid_{pool}_gpu_hour_usd",
        "idle_fraction": f"{pool}_idle_fraction",
    }
    for pool in ("rollout", "trainer")
}

COSTS = (
    rule("step_seconds", imbalance.step_time_with_idle, idle_fraction="trainer_idle_fraction"),
    rule("gpu_hours_per_step", money.gpu_hours, seconds="step_seconds"),
    rule("rollout_gpu_hours_per_step", money.gpu_hours, gpus="rollout_gpus", seconds="step_seconds"),
    rule("trainer_gpu_hours_per_step", money.gpu_hours, gpus="trainer_gpus", seconds="step_seconds"),
    rule("cost_per_step_usd", money.cost_per_step, **_ROLLOUT, **_TRAINER, **_STEP),
    rule("rollout_cost_per_step_usd", money.cost_per_step, **_ROLLOUT, **_NO_TRAINER, **_STEP),
    rule("trainer_cost_per_step_usd", money.cost_per_step, **_TRAINER, **_NO_ROLLOUT, **_STEP),
    rule("on_demand_rollout_cost_per_step_usd", money.cost_per_step, **_ON_DEMAND, **_NO_TRAINER, **_STEP),
    rule("rollout_idle_cost_per_step_usd", money.idle_cost_per_step, **_IDLE["rollout"]),
    rule("trainer_idle_cost_per_step_usd", money.idle_cost_per_step, **_IDLE["trainer"]),
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
