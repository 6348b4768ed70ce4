"""What an optimizer step costs by pool, and with it a sample, a million tokens, a day and a run; goodput."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlsize.equations import imbalance, iteration, loop_time, money
from rlsize.estimates.figures import apply, total, with_bands
from rlsize.facts.figure import Figure, absent

if TYPE_CHECKING:
    from random import Random

    from rlsize.estimates.figures import Draw

POOLS = ("rollout", "trainer")


@dataclass(frozen=True, slots=True, kw_only=True)
class CostQuestion:
    """
    What is known about two pools of GPUs and the steps that they make.

    Args:
        rollout_gpus: GPUs of the rollout fleet; 0 where the loop is colocated. [gpu]
        trainer_gpus: GPUs of the trainer. [gpu]
        step_seconds: Wall clock of one optimizer step, all in, where it was said. [s/step]
        train_seconds: Busy trainer seconds per optimizer step, which the trainer's wait stretches. [s/step]
        rollout_gpu_hour: Price of a rollout GPU that is not preemptible. [usd/gpu/hour]
        trainer_gpu_hour: Price of a trainer GPU. [usd/gpu/hour]
        preemptible_gpu_hour: Price of a preemptible rollout GPU. [usd/gpu/hour]
        preemptible_fraction: Share of the rollout GPUs that is preemptible. [1]
        lost_fraction: Share of their time that preemption throws away. [1]
        rollout_idle: Share of the step that rollout GPUs wait. [1]
        trainer_idle: Share of the step that trainer GPUs wait. [1]
        samples: Samples per optimizer step. [sample/step]
        batch_tokens: Response tokens per optimizer step. [token/step]
        steps: Optimizer steps of the run. [step]
    """

    rollout_gpus: Figure
    trainer_gpus: Figure
    preemptible_fraction: Figure
    lost_fraction: Figure
    step_seconds: Figure = absent("step_seconds", "--step-seconds")
    train_seconds: Figure = absent("train_seconds", "--train-seconds")
    rollout_gpu_hour: Figure = absent("rollout_gpu_hour_usd", "--rollout-gpu-hour")
    trainer_gpu_hour: Figure = absent("trainer_gpu_hour_usd", "--trainer-gpu-hour")
    preemptible_gpu_hour: Figure = absent("preemptible_gpu_hour_usd", "--preemptible-gpu-hour")
    rollout_idle: Figure = absent("rollout_idle_fraction", "--rollout-idle")
    trainer_idle: Figure = absent("trainer_idle_fraction", "--trainer-idle")
    samples: Figure = absent("samples_per_step", "--samples")
    batch_tokens: Figure = absent("batch_tokens", "--batch-tokens")
    steps: Figure = absent("steps", "--steps")


@dataclass(frozen=True, slots=True, kw_only=True)
class CostAnswer:
    """
    What a step and a run cost.

    Args:
        question: What was asked.
        results: Figures about the step, the run and goodput.
        pools: Rows of figures: each pool, and both.
        on_demand_usd: Rollout cost per step without a preemptible share.
    """

    question: CostQuestion
    results: tuple[Figure, ...]
    pools: tuple[dict[str, Any], ...]
    on_demand_usd: Figure


def price_step(question: CostQuestion, random: Random | tuple[Draw, ...] | None = None) -> CostAnswer:
    """
    What a step and a run cost; figures whose price is missing say which flag would give it.

    Args:
        question: What is known.
        random: Generator for the bands of uncertain inputs; None for central values only.
    """
    return CostAnswer(
        question=question,
        results=tuple(with_bands(_results, question, random)),
        pools=tuple(pool_row(question, pool) for pool in (*POOLS, "both")),
        on_demand_usd=_pool_cost("on_demand_rollout_cost_per_step_usd", question, "rollout", question.rollout_gpu_hour),
    )


def step_time(question: CostQuestion) -> Figure:
    """Wall clock of a step: said, or train seconds stretched by the trainer's wait."""
    if question.step_seconds.known:
        return question.step_seconds
    return apply(
        "step_seconds",
        imbalance.step_time_with_idle,
        train_seconds=question.train_seconds,
        idle_fraction=question.trainer_idle,
    )


def gpu_hour(question: CostQuestion, pool: str) -> Figure:
    """Mean price of a pool's GPU-hour: for rollouts blended from both kinds, what preemption loses included."""
    if pool == "trainer":
        return question.trainer_gpu_hour
    if question.preemptible_fraction.value == 0:
        return question.rollout_gpu_hour
    useful = apply(
        "effective_preemptible_gpu_hour_usd",
        money.effective_gpu_hour,
        gpu_hour=question.preemptible_gpu_hour,
        lost_fraction=question.lost_fraction,
    )
    if question.preemptible_fraction.value == 1:
        return useful
    return apply(
        "mean_rollout_gpu_hour_usd",
        money.blended_gpu_hour,
        on_demand_gpu_hour=question.rollout_gpu_hour,
        preemptible_gpu_hour=useful,
        preemptible_fraction=question.preemptible_fraction,
    )


def pool_row(question: CostQuestion, pool: str) -> dict[str, Any]:
    """GPUs, price, GPU-hours, cost and idle cost of a pool, or of both."""
    if pool == "both":
        return {"pool": "both"} | {
            figure.key: figure
            for figure in (_all_gpus(question), _hours(question), step_cost(question), _idle_cost(question))
        }
    gpus, price = _gpus(question, pool), gpu_hour(question, pool)
    return {
        "pool": pool,
        "gpus": gpus,
        "gpu_hour_usd": price,
        "gpu_hours_per_step": apply("gpu_hours_per_step", money.gpu_hours, gpus=gpus, seconds=step_time(question)),
        "cost_per_step_usd": _pool_cost("cost_per_step_usd", question, pool, price),
        "idle_cost_per_step_usd": _pool_idle_cost("idle_cost_per_step_usd", question, pool),
    }


def step_cost(question: CostQuestion) -> Figure:
    """Cost of one optimizer step, both pools."""
    return apply(
        "cost_per_step_usd",
        money.cost_per_step,
        rollout_gpus=question.rollout_gpus,
        rollout_gpu_hour=_price_of(question, "rollout"),
        trainer_gpus=question.trainer_gpus,
        trainer_gpu_hour=_price_of(question, "trainer"),
        step_seconds=step_time(question),
    )


def _results(question: CostQuestion) -> list[Figure]:
    step = step_cost(question)
    per_day = apply("steps_per_day", iteration.iterations_per_day, iteration_seconds=step_time(question))
    run = apply("run_seconds", loop_time.run_time, step_seconds=step_time(question), steps=question.steps)
    return [
        step,
        *(_pool_cost(f"{pool}_cost_per_step_usd", question, pool, gpu_hour(question, pool)) for pool in POOLS),
        apply("cost_per_sample_usd", money.cost_per_sample, cost_per_step=step, samples_per_step=question.samples),
        apply(
            "cost_per_million_trained_tokens_usd",
            money.cost_per_million_trained_tokens,
            cost_per_step=step,
            tokens_per_step=question.batch_tokens,
        ),
        apply("cost_per_day_usd", money.cost_per_run, cost_per_step=step, steps=per_day),
        apply("cost_per_run_usd", money.cost_per_run, cost_per_step=step, steps=question.steps),
        *(_pool_idle_cost(f"{pool}_idle_cost_per_step_usd", question, pool) for pool in POOLS),
        _hours(question),
        step_time(question),
        per_day,
        run,
        apply("gpu_hours_per_run", money.gpu_hours, gpus=_all_gpus(question), seconds=run),
        apply(
            "goodput_tokens_per_gpu_second",
            money.goodput,
            tokens_per_step=question.batch_tokens,
            step_seconds=step_time(question),
            rollout_gpus=question.rollout_gpus,
            trainer_gpus=question.trainer_gpus,
        ),
    ]


def _gpus(question: CostQuestion, pool: str) -> Figure:
    return question.rollout_gpus if pool == "rollout" else question.trainer_gpus


def _price_of(question: CostQuestion, pool: str) -> Figure | float:
    """The price that a sum of both pools takes: that of an empty pool does not matter."""
    return 0.0 if _gpus(question, pool).value == 0 else gpu_hour(question, pool)


def _all_gpus(question: CostQuestion) -> Figure:
    return total("gpus", [question.rollout_gpus, question.trainer_gpus])


def _hours(question: CostQuestion) -> Figure:
    return apply("gpu_hours_per_step", money.gpu_hours, gpus=_all_gpus(question), seconds=step_time(question))


def _pool_cost(key: str, question: CostQuestion, pool: str, price: Figure) -> Figure:
    """Cost of one pool: that of a step in which the other has no GPUs."""
    mine, other = pool, POOLS[1 - POOLS.index(pool)]
    gpus = _gpus(question, pool)
    return apply(
        key,
        money.cost_per_step,
        **{f"{mine}_gpus": gpus, f"{mine}_gpu_hour": 0.0 if gpus.value == 0 else price},
        **{f"{other}_gpus": 0.0, f"{other}_gpu_hour": 0.0},
        step_seconds=step_time(question),
    )


def _pool_idle_cost(key: str, question: CostQuestion, pool: str) -> Figure:
    idle = question.rollout_idle if pool == "rollout" else question.trainer_idle
    gpus = _gpus(question, pool)
    price = 0.0 if gpus.value == 0 else gpu_hour(question, pool)
    return apply(
        key, money.idle_cost_per_step, gpus=gpus, gpu_hour=price, idle_fraction=idle, step_seconds=step_time(question)
    )


def _idle_cost(question: CostQuestion) -> Figure:
    parts = [_pool_idle_cost(f"{pool}_idle_cost_per_step_usd", question, pool) for pool in POOLS]
    lacking = next((part for part in parts if not part.known), None)
    return absent("idle_cost_per_step_usd", lacking.missing) if lacking else total("idle_cost_per_step_usd", parts)
