"""What a placed loop gives: step, cost, idle shares, staleness and memory, each with its band."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rlsize.equations import (
    long_tail,
    train_step,
    train_step_traffic,
)
from rlsize.estimates.figures import DRAWS, apply
from rlsize.estimates.flow import Flow
from rlsize.estimates.step_assembly import assembled, idle_fractions
from rlsize.facts.figure import Figure, absent
from rlsize.planner.options import SHARING
from rlsize.planner.outlook import band_of
from rlsize.planner.step_parts import loop_parts, ready_engine
from rlsize.rules import money

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from rlsize.estimates.figures import Worked
    from rlsize.estimates.rollout_prediction import Replica
    from rlsize.estimates.step_assembly import Step
    from rlsize.estimates.train_prediction import TrainQuestion
    from rlsize.planner.options import Placement, TrainerOption
    from rlsize.planner.outlook import Outlook, Terms

    Details = Callable[[Terms, Placement, Step], Mapping[str, Any]]

_UNKNOWN_MEMORY = "--model and --gpu"
MEMORY_KEYS = ("rollout_memory_headroom_fraction", "trainer_memory_headroom_fraction")
PLACED = "the placement"
"""The source of what a placement says of itself."""
_MEMORY_SOURCES = ("cache beyond the longest", "peak of memory on a GPU, as rlsize validate grades it")


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """
    What a loop gives.

    Args:
        placement: Mode, GPUs and layouts of both sides, by key.
        results: What comes of it, by key, with bands; what lacks an input says which.
        refused: Why the loop cannot run so; empty where it can. There are no results then.
        draws: The joint draws behind the bands, by key.
    """

    placement: Mapping[str, Figure]
    results: Mapping[str, Figure]
    refused: str = ""
    draws: Mapping[str, NDArray[np.float64]] = field(default_factory=dict, compare=False, repr=False)


def evaluation(outlook: Outlook, place: Placement, details: Details | None = None) -> Evaluation:
    """
    What a placement gives, with bands.

    Args:
        outlook: How it is worked out.
        place: The placement.
        details: What else is told of its step, by key; figures, numbers or arrays, as the step is.

    Raises:
        Refused: The loop cannot run so.
    """
    figures = _all_results(outlook.explained, place, 1.0, details)
    spread = _all_results(outlook.drawn, place, outlook.noise(place), details)
    banded = {key: _banded(figure, spread.get(key)) for key, figure in figures.items()}
    draws = {key: np.broadcast_to(np.asarray(value, dtype=np.float64), (DRAWS,)) for key, value in spread.items()}
    return Evaluation(placement=placed(place), results=banded, draws=draws)


def worked(terms: Terms, place: Placement, noise: Worked = 1.0) -> dict[str, Any]:
    """
    What a placement gives by key, memory apart, in numbers or arrays.

    Raises:
        Refused: The loop cannot run so.
    """
    return results_of(terms, place, assembled(terms.work, loop_parts(terms, place)), noise)


def central_results(outlook: Outlook, place: Placement) -> dict[str, float]:
    """
    The same in central numbers; what lacks an input is left out.

    Raises:
        Refused: The loop cannot run so.
    """
    return {key: float(value) for key, value in worked(outlook.central, place).items()}


def _all_results(terms: Terms, place: Placement, noise: Worked, details: Details | None) -> dict[str, Any]:
    step = assembled(terms.work, loop_parts(terms, place))
    found = results_of(terms, place, step, noise) | dict(details(terms, place, step) if details else {})
    if terms.work is not apply:
        return found | memory_of(terms, place)
    memory = memory_of(terms.bare, place)
    told = {key: _figure(key, value) for key, value in found.items()}
    for key, source in zip(MEMORY_KEYS, _MEMORY_SOURCES, strict=True):
        told[key] = absent(key, _UNKNOWN_MEMORY)
        if key in memory:
            told[key] = Figure(key=key, value=float(memory[key]), provenance="predicted", source=source)
    return told


def results_of(terms: Terms, place: Placement, step: Step, noise: Worked = 1.0) -> dict[str, Any]:
    """
    What comes of a step, by key; what lacks an input is absent as a figure, and left out as a number.

    Args:
        terms: In which it is worked out.
        place: The placement.
        step: Its step.
        noise: Factor on the step, for draws.
    """
    work = terms.work
    seconds = step.seconds if work is apply else step.seconds * noise
    rollout, trainer = idle_fractions(work, place.loop, step)
    flow = placed_flow(terms, place, seconds)
    shares = {"part": step.sync_exposed_seconds, "whole": step.seconds}
    return {
        "step_seconds": seconds,
        "steps_per_day": flow["steps_per_day"],
        **_costs(terms, flow),
        **({"late_dropped_fraction": step.dropped_fraction} if terms.problem.late_rule(place.loop) == "drop" else {}),
        "trainer_idle_fraction": trainer,
        "rollout_idle_fraction": rollout,
        "staleness_steps": place.staleness,
        "sync_fraction": work("sync_fraction", train_step.time_share, **shares),
        "gpus": place.gpus,
        "rollout_gpus": place.rollout_gpus,
        "trainer_gpus": place.trainer_gpus,
        "loop_tokens_per_second": flow["loop_tokens_per_second"],
        "loop_tokens_per_gpu_second": flow["loop_tokens_per_gpu_second"],
        "generation_seconds": step.generation_seconds,
        "tail_seconds": step.tail_seconds,
        "train_seconds": step.train_seconds,
        "sync_seconds": _one_sync(terms, step),
        "sync_exposed_seconds": step.sync_exposed_seconds,
        "overhead_seconds": step.overhead_seconds,
    }


def placed_flow(terms: Terms, place: Placement, seconds: Worked) -> Flow:
    """What follows from GPUs, prices and work of a placement, and the time of its step. [s]"""
    own = not place.shared  # GPUs that are shared are paid for once
    pools = {
        "step_seconds": seconds,
        "gpus": place.gpus,
        "rollout_gpus": place.rollout_gpus if own else 0.0,
        "trainer_gpus": place.trainer_gpus,
        "paid_rollout_gpu_hour_usd": terms.value(place.fleet.gpu_hour) if own else 0.0,
        "paid_trainer_gpu_hour_usd": terms.value(place.trainer.gpu_hour),
    }
    return Flow(money.PLACED, terms.known | pools, terms.work)


def _costs(terms: Terms, flow: Flow) -> dict[str, Any]:
    """GPU-hours and dollars of a step and of the run; what lacks an input is absent as a figure, else left out."""
    found = {key: flow[key] for key in ("gpu_hours_per_step", "cost_per_step_usd", "run_seconds", "cost_per_run_usd")}
    if terms.work is not apply:
        return {key: value for key, value in found.items() if value is not None}
    cost, steps = found["cost_per_step_usd"], terms.problem.steps
    found["cost_per_step_usd"] = cost if cost.known else absent(cost.key, cost.missing)
    lacking = () if steps.known else ("run_seconds", "cost_per_run_usd")
    return found | {key: absent(key, steps.missing) for key in lacking}


def _one_sync(terms: Terms, step: Step) -> Worked:
    """Seconds of one weight sync; a step has its part of them."""
    every = terms.problem.sync_every
    if every == 1:
        return step.sync_seconds
    if not isinstance(step.sync_seconds, Figure):
        return train_step_traffic.repeated_time(seconds=step.sync_seconds, times=every)
    return replace(step.sync_seconds.inputs["exposed_sync_seconds"], key="sync_seconds")


def _figure(key: str, value: Any) -> Figure:  # noqa: ANN401 (a number or a figure)
    """A result under its key; a number is one of the placement."""
    if isinstance(value, Figure):
        return value if value.key == key else replace(value, key=key)
    return Figure(key=key, value=value, source=PLACED)


def placed(place: Placement) -> dict[str, Figure]:
    """Mode, GPUs and layouts of a placement, by key."""
    rated = place.fleet.rate.known
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
        "memory_fraction": place.fleet.memory_fraction(shared=True) if place.shared and not rated else None,
    }
    asked = bare_asked(place.trainer)
    if asked is not None:
        words |= {f"{name}_parallel": getattr(asked, name) for name in ("tensor", "pipeline", "context", "expert")}
        words |= {name: getattr(asked, name) for name in ("sharding", "recompute", "micro_batch_tokens")}
        words |= {
            key: True
            for key, saves in (("offload", asked.offload), ("chunked_loss", asked.keeps.chunked_loss))
            if saves
        }
    return {
        key: Figure(key=key, value=value, provenance="predicted", source="the plan")
        for key, value in words.items()
        if value is not None
    }


def _banded(figure: Figure, spread: Any) -> Figure:  # noqa: ANN401 (a number, an array or nothing)
    """With the 80 % interval of the draws."""
    if spread is None or not figure.known or np.ndim(spread) == 0:
        return figure
    return replace(figure, band=band_of(np.broadcast_to(np.asarray(spread, dtype=np.float64), (DRAWS,))))


def memory_of(terms: Terms, place: Placement) -> dict[str, Any]:
    """Shares of memory that are left on both sides, as far as models and GPUs are known; numbers or arrays."""
    if not place.fleet.engines and place.trainer.question is None:
        return {}
    from rlsize.estimates.loop_memory import bare_trainer_memory, fleet_headroom, headroom_at

    rollout, trainer = MEMORY_KEYS
    found, longest = {}, longest_tokens(terms)
    engine = known_engine(place, shared=place.shared)
    if engine is not None:
        found[rollout] = fleet_headroom(engine, longest, terms.values)
    question = bare_trainer(place)
    if question is not None:
        found[trainer] = headroom_at(question, bare_trainer_memory(question, longest, terms.values).peak)
    lent = known_engine(place, shared=True) if place.loop in SHARING else None
    if lent is not None:
        found[rollout] = np.minimum(found.get(rollout, np.inf), fleet_headroom(lent, longest, terms.values))
    return found


def fitting_step(terms: Terms, place: Placement, longest: float) -> float:
    """
    The step of a placed loop whose instances have room for a sample; those whose rate was measured have shown it.

    Args:
        terms: In central numbers.
        place: The placement.
        longest: The longest sequence, which memory must hold whole. [token]

    Raises:
        Refused: They have none, with the reason.
    """
    seconds = float(assembled(terms.work, loop_parts(terms, place)).seconds)
    engine = None if place.fleet.rate.known else known_engine(place, shared=place.shared)
    if engine is not None:
        from rlsize.estimates.engine_memory import check_room

        check_room(engine.question, max(longest, engine.question.promised_tokens), terms.values)
    return seconds


def known_engine(place: Placement, *, shared: bool) -> Replica | None:
    """
    The instance on shared GPUs, or on its own; None where its rate was measured and nobody says how it is built.

    Raises:
        Refused: It does not fit, and no measured rate says otherwise.
    """
    known = place.fleet.rate.known
    return place.fleet.ready(shared=shared) if known else ready_engine(place.fleet, shared=shared)


def bare_trainer(place: Placement) -> TrainQuestion | None:
    """The trainer in bare numbers, on its GPUs."""
    asked = bare_asked(place.trainer)
    return None if asked is None else replace(asked, gpus=place.trainer_gpus)


def bare_asked(trainer: TrainerOption) -> TrainQuestion | None:
    """The trainer in bare numbers; None where only its time is known."""
    return None if trainer.question is None else trainer.question.bare()


def longest_tokens(terms: Terms) -> float:
    """The longest sequence, prompt and response: up to the cap where one is given, else as long as a step's longest."""
    from rlsize.estimates.generation import StepBatch, longest_sequence

    problem = terms.problem
    longest_prompt = problem.max_prompt_tokens if problem.max_prompt_tokens.known else problem.prompt_tokens
    prompt = longest_prompt.number if longest_prompt.known else 0.0
    cap = problem.max_tokens
    capped = cap.known and cap.provenance == "given"
    if not (capped or problem.predicted):
        return float(long_tail.context_of(prompt_tokens=prompt, response_tokens=problem.response_tokens.number))
    batch = StepBatch(
        samples=problem.samples.number,
        instances=1.0,
        prompt_tokens=prompt,
        response_tokens=problem.response_tokens.number,
        response_cv=terms.bare.response_cv,
        max_tokens=cap.if_known,
    )
    return longest_sequence(batch, capped=capped)
