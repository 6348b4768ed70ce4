"""Which equations a page's widget works with, for each way in which the phases of a loop follow each other."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from rlsize.equations import iteration, loop_time, matching, money, rl_step
from rlsize.reports.sliders import Formula

if TYPE_CHECKING:
    from collections.abc import Callable

Loop: TypeAlias = Literal["overlapped", "in turn", "colocated"]
"""How the phases of a step follow each other: both at once, one after the other, or so on the same GPUs."""
CONSTANTS = {"one_gpu": 1.0, "no_gpus": 0.0}
"""What formulas need beside sliders and what a plan holds."""


def loop_formulas(loop: Loop, priced: bool) -> tuple[Formula, ...]:
    """
    What follows from a loop's sliders, in the order in which it is worked out.

    Args:
        loop: How its phases follow each other.
        priced: Whether there is a price.
    """
    together = loop == "colocated"
    rollout, trainer = ("gpus", "gpus") if together else ("rollout_gpus", "trainer_gpus")
    paid = {"rollout_gpus": rollout, "trainer_gpus": "no_gpus" if together else trainer}
    prices = {"rollout_gpu_hour": "gpu_hour", "trainer_gpu_hour": "gpu_hour"}
    return (
        *(() if together else _pools()),
        _formula("tokens_per_step", matching.tokens_per_step, prompts="prompts_per_step"),
        _formula("samples_per_step", matching.samples_per_step, prompts="prompts_per_step"),
        _formula("rollout_rate", matching.trained_token_supply, gpus=rollout, gpu_rate="rollout_gpu_rate"),
        _formula("trainer_rate", matching.pool_rate, gpus=trainer, gpu_rate="trainer_gpu_rate"),
        _formula("completions_per_second", loop_time.completions_from_tokens, supply="rollout_rate"),
        _formula("rollout_seconds", iteration.rollout_seconds),
        _formula("train_seconds", matching.train_time, consumption="trainer_rate"),
        *{"overlapped": _overlapped, "in turn": _in_turn, "colocated": _colocated}[loop](),
        _formula("steps_per_day", iteration.iterations_per_day, iteration_seconds="step_seconds"),
        *((_formula("cost_per_step", money.cost_per_step, **paid, **prices),) if priced else ()),
    )


def _pools() -> tuple[Formula, ...]:
    return (
        _formula("rollout_gpus", matching.pool_gpus, fraction="rollout_fraction"),
        _formula("trainer_gpus", matching.remaining_gpus),
    )


def _overlapped() -> tuple[Formula, ...]:
    return (
        _formula("full_rate", matching.loop_throughput),
        _with_exposed(),
        _formula("step_seconds", iteration.overlapped_iteration_time, exposed_sync_seconds="exposed_seconds"),
        *_idle(),
        _trained_rate(),
        _formula("balanced_rollout_gpus", matching.balanced_rollout_gpus, rollout_gpu_rate="rollout_trained_rate"),
        _formula("balanced_trainer_gpus", matching.remaining_gpus, rollout_gpus="balanced_rollout_gpus"),
        _formula("in_flight", rl_step.allowed_in_flight),
    )


def _in_turn() -> tuple[Formula, ...]:
    return (
        _formula("step_seconds", iteration.synchronous_iteration_time, exposed_sync_seconds="exposed_seconds"),
        *_idle(),
        _formula("goodput", money.goodput),
        _formula("loop_rate", matching.pool_rate, gpu_rate="goodput"),
    )


def _colocated() -> tuple[Formula, ...]:
    return (
        _trained_rate(),
        _formula("full_rate", matching.colocated_throughput, rollout_gpu_rate="rollout_trained_rate"),
        _with_exposed(),
        _formula("step_seconds", iteration.colocated_iteration_time, swap_seconds="exposed_seconds"),
    )


def _idle() -> tuple[Formula, ...]:
    """GPUs of each pool that wait, on average over a step."""
    step = {"iteration_seconds": "step_seconds"}
    return (
        _formula("rollout_idle_fraction", loop_time.waiting_fraction, busy_seconds="rollout_seconds", **step),
        _formula("trainer_idle_fraction", loop_time.waiting_fraction, busy_seconds="train_seconds", **step),
        _formula("rollout_idle_gpus", matching.idle_gpus, gpus="rollout_gpus", idle_fraction="rollout_idle_fraction"),
        _formula("trainer_idle_gpus", matching.idle_gpus, gpus="trainer_gpus", idle_fraction="trainer_idle_fraction"),
        _formula("idle_gpus", rl_step.gpus_of_both, rollout_gpus="rollout_idle_gpus", trainer_gpus="trainer_idle_gpus"),
    )


def _trained_rate() -> Formula:
    """What one rollout GPU feeds the trainer with."""
    return _formula("rollout_trained_rate", matching.trained_token_supply, gpus="one_gpu", gpu_rate="rollout_gpu_rate")


def _with_exposed() -> Formula:
    return _formula("loop_rate", matching.throughput_with_swap, throughput="full_rate", swap_seconds="exposed_seconds")


def _formula(key: str, equation: Callable[..., Any], **renamed: str) -> Formula:
    """A formula whose arguments are called like what goes into them, but for some."""
    return Formula(
        key=key, equation=equation, inputs={name: renamed.get(name, name) for name in signature(equation).parameters}
    )
