"""What an optimizer step costs by pool, and with it a sample, a million tokens, a day and a run; goodput."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.estimates.figures import total, with_bands
from rlsize.estimates.flow import Flow
from rlsize.facts.figure import Figure, absent
from rlsize.rules.money import COSTS, PRICES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from random import Random

    from rlsize.estimates.figures import Draw

POOLS = ("rollout", "trainer")
_TOLD = (
    "cost_per_step_usd", "rollout_cost_per_step_usd", "trainer_cost_per_step_usd", "cost_per_sample_usd",
    "cost_per_million_trained_tokens_usd", "cost_per_day_usd", "cost_per_run_usd", "rollout_idle_cost_per_step_usd",
    "trainer_idle_cost_per_step_usd", "gpu_hours_per_step", "step_seconds", "steps_per_day", "run_seconds",
    "gpu_hours_per_run", "goodput_tokens_per_gpu_second",
)  # fmt: skip


def price_step(known: Mapping[str, Figure], random: Random | tuple[Draw, ...] | None = None) -> tuple[Figure, ...]:
    """
    What a step and a run cost; figures whose price is missing say which flag would give it.

    Args:
        known: As `costs` takes it.
        random: Generator for the bands of uncertain inputs; None for central values only.
    """
    flow = costs(known)
    return with_bands([flow[key] for key in _TOLD], random)


def costs(known: Mapping[str, Figure]) -> Flow:
    """
    What follows from the GPUs and prices of both pools and the time of a step.

    Args:
        known: By key: `rollout_gpus` (0 where the loop is colocated) and `trainer_gpus`, `preemptible_fraction` and
            `lost_fraction`; as far as they are known prices, `step_seconds` or `train_seconds` with
            `trainer_idle_fraction`, `rollout_idle_fraction`, `samples_per_step`, `batch_tokens` and `steps`.
    """
    usual: dict[object, str] = {0: "rollout_gpu_hour_usd", 1: "effective_preemptible_gpu_hour_usd"}
    kind = usual.get(known["preemptible_fraction"].value, "mean_rollout_gpu_hour_usd")
    prices = {"rollout": Flow(PRICES, known)[kind], "trainer": known["trainer_gpu_hour_usd"]}
    decided: dict[str, Any] = {"gpus": total("gpus", [known[f"{pool}_gpus"] for pool in POOLS])}
    for pool, price in prices.items():
        decided[f"{pool}_price"] = price
        decided[f"paid_{pool}_gpu_hour_usd"] = 0.0 if known[f"{pool}_gpus"].value == 0 else price  # of no GPUs, any
    return Flow(COSTS, {**known, **decided})


def pool_rows(flow: Flow) -> tuple[dict[str, Any], ...]:
    """GPUs, price, GPU-hours, cost and idle cost of each pool, and of both."""
    each = [
        {
            "pool": pool,
            "gpus": flow[f"{pool}_gpus"],
            "gpu_hour_usd": flow[f"{pool}_price"],
            **{
                key: flow[f"{pool}_{key}"]
                for key in ("gpu_hours_per_step", "cost_per_step_usd", "idle_cost_per_step_usd")
            },
        }
        for pool in POOLS
    ]
    both = {key: flow[key] for key in ("gpus", "gpu_hours_per_step", "cost_per_step_usd")}
    idle = [flow[f"{pool}_idle_cost_per_step_usd"] for pool in POOLS]
    lacking = next((part for part in idle if not part.known), None)
    key = "idle_cost_per_step_usd"
    of_both = absent(key, lacking.missing) if lacking else total(key, idle)
    return (*each, {"pool": "both", **both, key: of_both})
