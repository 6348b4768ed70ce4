"""
Whether a change helped: the settled steps of a run against those of a recorded one, better, worse or within noise.

Steps remember each other, so both series are drawn anew in blocks; a change counts where the 95 % interval of its ratio
leaves 1 out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np

from rlsize.equations import money, train_step
from rlsize.estimates.block_bootstrap import FEWEST_STEPS, above_zero, mean_change

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.estimates.block_bootstrap import MeanChange
    from rlsize.facts.observations import ObservedAllocation, ObservedPrices

Outcome: TypeAlias = Literal["better", "worse", "within noise", "too few steps", "only before", "only after"]
Columns: TypeAlias = "Mapping[str, Sequence[float]]"
_SMALL_IDLE = 0.02  # shares of a step below this are no waiting to speak of, and their ratio says nothing
JUDGED = ("step_seconds", "trainer_idle_fraction", "cost_per_step_usd", "gpu_hours_per_step", "staleness_steps")
"""What is compared; less is better for each."""


class Side(NamedTuple):
    """
    One side of a comparison.

    Args:
        columns: One value per settled step, by field.
        allocation: The pools.
        prices: What an hour of their GPUs costs.
    """

    columns: Columns
    allocation: ObservedAllocation
    prices: ObservedPrices


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """
    One quantity, before and after.

    Args:
        quantity: Its key.
        outcome: What can be said.
        before: Mean before; None where it was not recorded.
        after: Mean after.
        change: The change with its interval; None where there are too few steps.
    """

    quantity: str
    outcome: Outcome
    before: float | None = None
    after: float | None = None
    change: MeanChange | None = None


def compared(before: Side, after: Side, random: np.random.Generator) -> tuple[Compared, ...]:
    """
    Every quantity that either side has.

    Args:
        before: The recorded run.
        after: The run of now.
        random: Generator of the bootstrap draws.
    """
    first, second = _series(before), _series(after)
    priced = "cost_per_step_usd" in first and "cost_per_step_usd" in second
    keys = [key for key in JUDGED if key in first or key in second]
    left_out = "gpu_hours_per_step" if priced else "cost_per_step_usd"
    return tuple(_judged(key, first.get(key), second.get(key), random) for key in keys if key != left_out)


def _series(side: Side) -> dict[str, Sequence[float]]:
    """The quantities of one side, step by step."""
    columns = side.columns
    kept = ("step_seconds", "staleness_steps", "trainer_idle_fraction")
    found: dict[str, Sequence[float]] = {key: columns[key] for key in kept if columns.get(key)}
    step = np.asarray(columns.get("step_seconds", ()), dtype=float)
    if "wait_seconds" in columns and len(step) and step.all():
        wait = np.asarray(columns["wait_seconds"], dtype=float)
        found["trainer_idle_fraction"] = list(train_step.time_share(part=wait, whole=step))
    return {**found, **_costs(side, step)}


def _costs(side: Side, step: np.ndarray[tuple[int], np.dtype[np.float64]]) -> dict[str, Sequence[float]]:
    """What each step cost, in GPU-hours and in dollars."""
    rollout, trainer = side.allocation.rollout_gpus, side.allocation.trainer_gpus
    if rollout is None or trainer is None or not len(step):
        return {}
    hours = list(money.gpu_hours(gpus=rollout + trainer, seconds=step))
    prices = (side.prices.rollout_gpu_hour_usd, side.prices.trainer_gpu_hour_usd)
    if prices[0] is None or prices[1] is None:
        return {"gpu_hours_per_step": hours}
    pools = {"rollout_gpus": rollout, "trainer_gpus": trainer}
    cost = money.cost_per_step(**pools, step_seconds=step, rollout_gpu_hour=prices[0], trainer_gpu_hour=prices[1])
    return {"gpu_hours_per_step": hours, "cost_per_step_usd": list(cost)}


def _judged(
    key: str, before: Sequence[float] | None, after: Sequence[float] | None, random: np.random.Generator
) -> Compared:
    first, second = (None if side is None else float(np.mean(side)) for side in (before, after))
    one = Compared(quantity=key, before=first, after=second, outcome="within noise")
    if before is None or after is None or first is None or second is None:
        return replace(one, outcome="only before" if second is None else "only after")
    if key == "trainer_idle_fraction" and max(first, second) < _SMALL_IDLE:
        return one
    change = mean_change(before, after, random)
    if change is not None:
        outcome: Outcome = "better" if change.fraction < 0 else "worse"
        return replace(one, outcome=outcome if change.told else "within noise", change=change)
    if first == 0.0 and len(before) >= FEWEST_STEPS and above_zero(after, random):
        return replace(one, outcome="worse")
    return one if first == second else replace(one, outcome="too few steps")
