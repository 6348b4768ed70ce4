"""What a placed loop gives: step, cost, idle shares, staleness and memory, each with its band."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rlsize.equations import (
    iteration,
    long_tail,
    loop_time,
    matching,
    money,
    rollout_batch,
    train_step,
    train_step_traffic,
)
from rlsize.estimates.figures import DRAWS, apply
from rlsize.estimates.step_assembly import assembled, idle_fractions
from rlsize.facts.figure import Figure, absent
from rlsize.facts.plan import Plan, PlanFigure
from rlsize.planner.options import SHARING
from rlsize.planner.outlook import band_of
from rlsize.planner.step_parts import loop_parts, ready_engine
from rlsize.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from numpy.typing import NDArray

    from rlsize.estimates.rollout_prediction import Engine
    from rlsize.estimates.step_assembly import Step
    from rlsize.estimates.train_prediction import TrainQuestion
    from rlsize.planner.options import Placement, TrainerOption
    from rlsize.planner.outlook import Outlook, Terms

    Details = Callable[[Terms, Placement, Step], Mapping[str, Any]]

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


def worked(terms: Terms, place: Placement, noise: Any = 1.0) -> dict[str, Any]:  # noqa: ANN401 (a number or an array)
    """
    What a placement gives by key, memory apart, in numbers or arrays.

    Raises:
        Refused: The loop cannot run so.
    """
    return results_of(terms, place, assembled(terms.work, loop_parts(terms, place)), noise)


def _all_results(terms: Terms, place: Placement, noise: Any, details: Details | None) -> dict[str, Any]:  # noqa: ANN401 (a number or an array)
    work = terms.work
    step = assembled(work, loop_parts(terms, place))
    found = results_of(terms, place, step, noise) | dict(details(terms, place, step) if details else {})
    memory = memory_of(terms.bare if terms.work is apply else terms, place)
    if terms.work is apply:
        lacking = {key: absent(key, _UNKNOWN_MEMORY) for key in MEMORY_KEYS if key not in memory}
        told = {key: _count(work, key, value) for key, value in found.items()}
        return told | lacking | {key: _memory_figure(key, value) for key, value in memory.items()}
    return found | memory


def results_of(terms: Terms, place: Placement, step: Step, noise: Any = 1.0) -> dict[str, Any]:  # noqa: ANN401 (a number or an array)
    """
    What comes of a step, by key; what lacks an input is absent as a figure, and left out as a number.

    Args:
        terms: In which it is worked out.
        place: The placement.
        step: Its step.
        noise: Factor on the step, for draws.
    """
    work, problem = terms.work, terms.problem
    seconds = step.seconds if work is apply else step.seconds * noise
    rollout, trainer = idle_fractions(work, place.loop, step)
    response = terms.said(problem.response_tokens)
    rate = work(
        "loop_tokens_per_second",
        rollout_batch.batch_rate,
        samples=terms.said(problem.samples),
        response_tokens=response,
        seconds=seconds,
    )
    gpus = place.gpus
    return {
        "step_seconds": seconds,
        "steps_per_day": work("steps_per_day", iteration.iterations_per_day, iteration_seconds=seconds),
        **step_costs(terms, place, seconds),
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
        "sync_seconds": _one_sync(terms, step),
        "sync_exposed_seconds": step.sync_exposed_seconds,
        "overhead_seconds": step.overhead_seconds,
    }


def _one_sync(terms: Terms, step: Step) -> Any:  # noqa: ANN401 (a number, an array or a figure)
    """Seconds of one weight sync; a step has its part of them."""
    every = terms.problem.sync_every
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


def step_costs(terms: Terms, place: Placement, seconds: Any) -> dict[str, Any]:  # noqa: ANN401 (as `work` makes them)
    """GPU-hours and dollars of a step and of the run."""
    work, problem = terms.work, terms.problem
    found = {
        "gpu_hours_per_step": work("gpu_hours_per_step", money.gpu_hours, gpus=place.gpus, seconds=seconds),
        "cost_per_step_usd": _step_cost(terms, place, seconds),
    }
    steps = problem.steps
    if steps.known:
        found["run_seconds"] = work("run_seconds", loop_time.run_time, step_seconds=seconds, steps=terms.said(steps))
        if found["cost_per_step_usd"] is not None:
            found["cost_per_run_usd"] = work(
                "cost_per_run_usd",
                money.cost_per_run,
                cost_per_step=found["cost_per_step_usd"],
                steps=terms.said(steps),
            )
    if work is not apply:
        return {key: value for key, value in found.items() if value is not None}
    lacking = {"run_seconds": steps, "cost_per_run_usd": steps}
    return found | {key: absent(key, figure.missing) for key, figure in lacking.items() if key not in found}


def _step_cost(terms: Terms, place: Placement, seconds: Any) -> Any:  # noqa: ANN401 (as `work` makes them)
    """Cost of a step; absent without prices: a figure that says so, or None among numbers."""
    prices = (place.fleet.gpu_hour, place.trainer.gpu_hour)
    needed = prices[1:] if place.shared else prices
    lacking = next((price for price in needed if not price.known), None)
    if lacking is not None:
        return absent("cost_per_step_usd", lacking.missing) if terms.work is apply else None
    return terms.work(
        "cost_per_step_usd",
        money.cost_per_step,
        rollout_gpus=0.0 if place.shared else place.rollout_gpus,
        rollout_gpu_hour=0.0 if place.shared else terms.said(prices[0]),
        trainer_gpus=place.trainer_gpus,
        trainer_gpu_hour=terms.said(prices[1]),
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
    from rlsize.estimates.train_prediction_question import bare_question

    asked = bare_question(question)
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


MEMORY_KEYS = ("rollout_memory_headroom_fraction", "trainer_memory_headroom_fraction")


def memory_of(terms: Terms, place: Placement) -> dict[str, Any]:
    """Shares of memory that are left on both sides, as far as models and GPUs are known; numbers or arrays."""
    if not place.fleet.engines and place.trainer.question is None:
        return {}
    from rlsize.estimates.loop_memory import fleet_headroom, headroom_beside
    from rlsize.estimates.trainer_fit import bare_trainer_memory, headroom_at

    rollout, trainer = MEMORY_KEYS
    found, longest = {}, longest_tokens(terms)
    engine = known_engine(place, shared=place.shared)
    if engine is not None:
        found[rollout] = fleet_headroom(engine, longest, terms.values)
    question = bare_trainer(place)
    held = None if question is None else bare_trainer_memory(question, longest, terms.values)
    if question is not None and held is not None:
        found[trainer] = headroom_at(question, held.peak)
    lent = known_engine(place, shared=True) if place.loop in SHARING else None
    if lent is not None:
        found[rollout] = np.minimum(found.get(rollout, np.inf), fleet_headroom(lent, longest, terms.values))
        if held is not None:
            found[trainer] = np.minimum(found[trainer], headroom_beside(held.states, lent))
    return found


def known_engine(place: Placement, *, shared: bool) -> Engine | None:
    """
    The instance on shared GPUs, or on its own; None where its rate was measured and nobody says how it is built.

    Raises:
        Refused: It does not fit, and no measured rate says otherwise.
    """
    found = place.fleet.engines.get(shared)
    if place.fleet.rate.known and (found is None or isinstance(found, str)):
        return None
    return ready_engine(place.fleet, shared=shared)


def bare_trainer(place: Placement) -> TrainQuestion | None:
    """The trainer in bare numbers, on its GPUs."""
    asked = bare_asked(place.trainer)
    return None if asked is None else replace(asked, gpus=place.trainer_gpus)


def bare_asked(trainer: TrainerOption) -> TrainQuestion | None:
    """The trainer in bare numbers; None where only its time is known."""
    if trainer.question is None:
        return None
    from rlsize.estimates.train_prediction_question import bare_question

    return bare_question(trainer.question)


def longest_tokens(terms: Terms) -> float:
    """The longest sequence, prompt and response: up to the cap where one is given, else as long as a step's longest."""
    from rlsize.estimates.generation_batch import StepBatch, longest_sequence

    problem = terms.problem
    prompt = problem.prompt_tokens.number if problem.prompt_tokens.known else 0.0
    cap = problem.max_tokens
    capped = cap.known and cap.provenance == "given"
    if not (capped or problem.predicted):
        return float(long_tail.context_of(prompt_tokens=prompt, response_tokens=problem.response_tokens.number))
    batch = StepBatch(
        samples=problem.samples.number,
        instances=1.0,
        prompt_tokens=prompt,
        response_tokens=problem.response_tokens.number,
        response_cv=problem.response_cv.number if problem.response_cv.known else terms.bare.values["step_length_cv"],
        max_tokens=cap.number if cap.known else None,
    )
    return longest_sequence(batch, capped=capped)


def central_results(outlook: Outlook, place: Placement) -> dict[str, float]:
    """
    What a placement gives by key, in central numbers; what lacks an input is left out.

    Raises:
        Refused: The loop cannot run so.
    """
    found = worked(outlook.central, place) | memory_of(outlook.central, place)
    return {key: float(value) for key, value in found.items()}


def saved_plan(
    command: str,
    found: Evaluation,
    inputs: Iterable[Figure],
    *,
    facts_digest: str,
    scenario: dict[str, Any] | None = None,
    as_of: str = "",
    region: str = "",
) -> Plan:
    """
    The plan of a loop; what is unknown of it is left out.

    Args:
        command: The command that makes it.
        found: What the loop gives.
        inputs: What it was worked out from.
        facts_digest: Digest of the facts and equations behind it.
        scenario: The loop as a scenario has it, section by section; None where a scenario cannot say it.
        as_of: Day of the prices.
        region: Region of the prices.
    """
    return Plan(
        command=command,
        rlsize_version=VERSION,
        facts_digest=facts_digest,
        placement=_figures(found.placement.values()),
        results=_figures(found.results.values()),
        inputs=_figures(inputs),
        scenario=scenario,
        prices_as_of=as_of,
        prices_region=region,
    )


def _figures(figures: Iterable[Figure]) -> dict[str, PlanFigure]:
    return {figure.key: _figure(figure) for figure in figures if figure.known}


def _figure(figure: Figure) -> PlanFigure:
    low, high = figure.band or (None, None)
    source = figure.equation or figure.source
    return PlanFigure(value=figure.value, low=low, high=high, provenance=figure.provenance, source=source)
