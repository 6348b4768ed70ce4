"""What a placed loop gives: step, cost, idle shares, staleness and memory, each with its band."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rlsize.equations import iteration, loop_time, matching, money, rollout_batch, train_step, train_step_traffic
from rlsize.estimates.figures import DRAWS, apply
from rlsize.estimates.step_assembly import assembled, idle_fractions
from rlsize.facts.figure import Figure, absent
from rlsize.planner.bands import band_of
from rlsize.planner.memory_left import MEMORY_KEYS, memory_of
from rlsize.planner.step_parts import loop_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from rlsize.estimates.step_assembly import Step
    from rlsize.estimates.train_prediction import TrainQuestion
    from rlsize.planner.options import Placement
    from rlsize.planner.outlook import Outlook
    from rlsize.planner.setting import Setting

    Details = Callable[[Setting, Placement, Step], Mapping[str, Any]]

_UNKNOWN_MEMORY = "--model and --gpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """
    What a loop gives.

    Args:
        placement: Mode, GPUs and layouts of both sides, by key.
        results: What comes of it, by key, with bands; what lacks an input says which.
        warnings: What the reader must know before trusting it.
        notes: What explains it.
        refused: Why the loop cannot run so; empty where it can. There are no results then.
        draws: The joint draws behind the bands, by key.
    """

    placement: Mapping[str, Figure]
    results: Mapping[str, Figure]
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    refused: str = ""
    draws: Mapping[str, NDArray[np.float64]] = field(default_factory=dict, compare=False, repr=False)


def evaluation(outlook: Outlook, place: Placement, name: str, details: Details | None = None) -> Evaluation:
    """
    What a placement gives, with bands.

    Args:
        outlook: How it is worked out.
        place: The placement.
        name: What tells it from others, so that each has a scatter of its own.
        details: What else is told of its step, by key; figures, numbers or arrays, as the step is.

    Raises:
        Refused: The loop cannot run so.
    """
    figures = _all_results(outlook.explained, place, 1.0, details)
    spread = _all_results(outlook.drawn, place, outlook.noise(name), details)
    banded = {key: _banded(figure, spread.get(key)) for key, figure in figures.items()}
    draws = {key: np.broadcast_to(np.asarray(value, dtype=np.float64), (DRAWS,)) for key, value in spread.items()}
    return Evaluation(placement=placed(place), results=banded, draws=draws)


def worked(setting: Setting, place: Placement, noise: Any = 1.0) -> dict[str, Any]:  # noqa: ANN401 (a number or an array)
    """
    What a placement gives by key, memory apart, in numbers or arrays.

    Raises:
        Refused: The loop cannot run so.
    """
    return results_of(setting, place, assembled(setting.work, loop_parts(setting, place)), noise)


def _all_results(setting: Setting, place: Placement, noise: Any, details: Details | None) -> dict[str, Any]:  # noqa: ANN401 (a number or an array)
    work = setting.work
    step = assembled(work, loop_parts(setting, place))
    found = results_of(setting, place, step, noise) | dict(details(setting, place, step) if details else {})
    memory = memory_of(setting.bare if setting.work is apply else setting, place)
    if setting.work is apply:
        lacking = {key: absent(key, _UNKNOWN_MEMORY) for key in MEMORY_KEYS if key not in memory}
        told = {key: _count(work, key, value) for key, value in found.items()}
        return told | lacking | {key: _memory_figure(key, value) for key, value in memory.items()}
    return found | memory


def results_of(setting: Setting, place: Placement, step: Step, noise: Any = 1.0) -> dict[str, Any]:  # noqa: ANN401 (a number or an array)
    """
    What comes of a step, by key; what lacks an input is absent as a figure, and left out as a number.

    Args:
        setting: Who works it out.
        place: The placement.
        step: Its step.
        noise: Factor on the step, for draws.
    """
    work, problem = setting.work, setting.problem
    seconds = step.seconds if work is apply else step.seconds * noise
    rollout, trainer = idle_fractions(work, place.loop, step)
    response = setting.said(problem.response_tokens)
    rate = work(
        "loop_tokens_per_second",
        rollout_batch.batch_rate,
        samples=setting.said(problem.samples),
        response_tokens=response,
        seconds=seconds,
    )
    gpus = place.gpus
    return {
        "step_seconds": seconds,
        "steps_per_day": work("steps_per_day", iteration.iterations_per_day, iteration_seconds=seconds),
        **step_costs(setting, place, seconds),
        "trainer_idle_fraction": trainer,
        "rollout_idle_fraction": rollout,
        "staleness_steps": _count(work, "staleness_steps", place.staleness),
        "sync_fraction": work(
            "sync_fraction", train_step.time_share, part=step.sync_exposed_seconds, whole=step.seconds
        ),
        "gpus": _count(work, "gpus", gpus),
        "rollout_gpus": _count(work, "rollout_gpus", place.rollout_gpus),
        "trainer_gpus": _count(work, "trainer_gpus", place.trainer_gpus),
        "loop_tokens_per_second": rate,
        "loop_tokens_per_gpu_second": work("loop_tokens_per_gpu_second", matching.rate_per_gpu, rate=rate, gpus=gpus),
        "generation_seconds": step.generation_seconds,
        "tail_seconds": step.tail_seconds,
        "train_seconds": step.train_seconds,
        "sync_seconds": _one_sync(setting, step),
        "sync_exposed_seconds": step.sync_exposed_seconds,
        "overhead_seconds": step.overhead_seconds,
    }


def _one_sync(setting: Setting, step: Step) -> Any:  # noqa: ANN401 (a number, an array or a figure)
    """Seconds of one weight sync; a step has its part of them."""
    every = setting.problem.sync_every
    if every == 1:
        return step.sync_seconds
    if not isinstance(step.sync_seconds, Figure):
        return train_step_traffic.repeated_time(seconds=step.sync_seconds, times=every)
    return replace(step.sync_seconds.inputs["exposed_sync_seconds"], key="sync_seconds")


def _count(work: Any, key: str, value: Any) -> Any:  # noqa: ANN401 (a number, an array or a figure)
    """A number of the placement as a figure where figures are wanted."""
    if isinstance(value, Figure):
        return value if value.key == key else replace(value, key=key)
    if work is not apply:
        return value
    return Figure(key=key, value=value, source="the placement")


def step_costs(setting: Setting, place: Placement, seconds: Any) -> dict[str, Any]:  # noqa: ANN401 (as `work` makes them)
    """GPU-hours and dollars of a step and of the run."""
    work, problem = setting.work, setting.problem
    found = {
        "gpu_hours_per_step": work("gpu_hours_per_step", money.gpu_hours, gpus=place.gpus, seconds=seconds),
        "cost_per_step_usd": _step_cost(setting, place, seconds),
    }
    steps = problem.steps
    if steps.known:
        found["run_seconds"] = work("run_seconds", loop_time.run_time, step_seconds=seconds, steps=setting.said(steps))
        if found["cost_per_step_usd"] is not None:
            found["cost_per_run_usd"] = work(
                "cost_per_run_usd",
                money.cost_per_run,
                cost_per_step=found["cost_per_step_usd"],
                steps=setting.said(steps),
            )
    if work is not apply:
        return {key: value for key, value in found.items() if value is not None}
    lacking = {"run_seconds": steps, "cost_per_run_usd": steps}
    return found | {key: absent(key, figure.missing) for key, figure in lacking.items() if key not in found}


def _step_cost(setting: Setting, place: Placement, seconds: Any) -> Any:  # noqa: ANN401 (as `work` makes them)
    """Cost of a step; absent without prices: a figure that says so, or None among numbers."""
    prices = (place.fleet.gpu_hour, place.trainer.gpu_hour)
    needed = prices[1:] if place.shared else prices
    lacking = next((price for price in needed if not price.known), None)
    if lacking is not None:
        return absent("cost_per_step_usd", lacking.missing) if setting.work is apply else None
    return setting.work(
        "cost_per_step_usd",
        money.cost_per_step,
        rollout_gpus=0.0 if place.shared else place.rollout_gpus,
        rollout_gpu_hour=0.0 if place.shared else setting.said(prices[0]),
        trainer_gpus=place.trainer_gpus,
        trainer_gpu_hour=setting.said(prices[1]),
        step_seconds=seconds,
    )


def _memory_figure(key: str, value: Any) -> Figure:  # noqa: ANN401 (a number)
    source = "peak of memory on a GPU, as rlsize validate grades it" if "trainer" in key else "cache beyond the longest"
    return Figure(key=key, value=float(value), provenance="predicted", source=source)


def placed(place: Placement) -> dict[str, Figure]:
    """Mode, GPUs and layouts of a placement, by key."""
    words: dict[str, Any] = {
        "mode": place.loop,
        "gpus": place.gpus,
        "rollout_gpus": place.rollout_gpus,
        "trainer_gpus": place.trainer_gpus,
        "instances": place.instances,
        "gpus_per_instance": place.fleet.gpus,
        "max_staleness": place.max_staleness,
        "transport": place.transport,
        "rollout_gpu": place.fleet.gpu or None,
        "trainer_gpu": place.trainer.gpu or None,
        **{f"rollout_{name}_parallel": degree for name, degree in place.fleet.layout.items()},
        **_trainer_words(place.trainer.question),
    }
    return {
        key: Figure(key=key, value=value, provenance="predicted", source="the plan")
        for key, value in words.items()
        if value is not None
    }


def _trainer_words(question: TrainQuestion | None) -> dict[str, Any]:
    if question is None:
        return {}

    asked = question.bare()
    return {
        "tensor_parallel": asked.tensor,
        "pipeline_parallel": asked.pipeline,
        "context_parallel": asked.context,
        "expert_parallel": asked.expert,
        "sharding": asked.sharding,
        "recompute": asked.recompute,
        "micro_batch_tokens": asked.micro_batch_tokens,
    }


def _banded(figure: Figure, spread: Any) -> Figure:  # noqa: ANN401 (a number, an array or nothing)
    """With the 80 % interval of the draws."""
    if spread is None or not figure.known or np.ndim(spread) == 0:
        return figure
    return replace(figure, band=band_of(np.broadcast_to(np.asarray(spread, dtype=np.float64), (DRAWS,))))
