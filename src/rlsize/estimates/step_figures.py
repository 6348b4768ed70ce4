"""The predicted step as figures that explain themselves, and as draws."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rlsize.equations import decode_step, iteration, matching, rollout_batch
from rlsize.estimates.stages import all_constants
from rlsize.estimates.step_assembly import REFILLING, idle_fractions
from rlsize.estimates.step_loops import bare, check_way, step_question
from rlsize.estimates.step_prediction import (
    Phases,
    fleet_generation,
    instances_of,
    put_together,
    sync_of,
)
from rlsize.estimates.train_prediction import train_step
from rlsize.estimates.working import apply, numbers
from rlsize.facts.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.belief import Belief
    from rlsize.estimates.generation import Generation
    from rlsize.estimates.step_assembly import Step
    from rlsize.estimates.step_loops import LoopPlan, Way
    from rlsize.estimates.step_prediction import StepQuestion

    Work = Callable[..., Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Worked:
    """
    A step, worked out.

    Args:
        step: Its parts.
        generation: What the fleet makes of its samples, engines by themselves.
        results: What is told of it, by key.
    """

    step: Step
    generation: Generation
    results: Mapping[str, Any]


def constants(belief: Belief) -> dict[str, Figure]:
    """The constants as figures that say where they come from."""
    return {name: _constant(belief, name, value) for name, value in belief.central().items()}


def _constant(belief: Belief, name: str, value: float) -> Figure:
    known = all_constants()[name]
    narrowed = belief.spread(name) < known.spread * (1 - 1e-6)
    how = "calibrated" if narrowed else known.basis
    source = f"{known.meaning} ({how}: {known.source})"
    return Figure(key=name, value=value, provenance="measured" if narrowed else "default", source=source)


def worked(question: StepQuestion, gpus: float, values: Mapping[str, Real]) -> Worked:
    """
    A step in numbers, or in arrays of draws.

    Args:
        question: The loop.
        gpus: GPUs of both sides.
        values: Constants by name.

    Raises:
        Refused: The loop cannot run so.
    """
    fleet = fleet_generation(question, values)
    phases = Phases(
        generation=fleet.seconds,
        tail=fleet.tail_seconds,
        train=train_step(numbers, question.train, values),
        sync=sync_of(numbers, question, values),
    )
    step = put_together(numbers, question, phases, values)
    return Worked(step=step, generation=fleet, results=told(numbers, question, gpus, step, fleet))


def explained(plan: LoopPlan, way: Way, belief: Belief) -> Worked:
    """
    The central step in figures.

    Args:
        plan: The loop.
        way: How it is run.
        belief: What is believed about the constants.

    Raises:
        Refused: The loop cannot run so.
    """
    check_way(plan, way, belief.central())
    bare_one = step_question(plan, way, bare(plan))
    fleet = fleet_generation(bare_one, belief.central())
    question = replace(bare_one, samples=plan.samples, response_tokens=plan.response_tokens)
    values = constants(belief)
    pool = Figure(key="trainer_gpus", value=way.trainer_gpus, source="GPUs of the trainer")
    lengths = {"samples": plan.samples, "response_tokens": plan.response_tokens}
    refill = bare_one.loop in REFILLING
    generated, tail = generated_figures(fleet, instances_of(bare_one), lengths, refill=refill)
    phases = Phases(
        generation=generated,
        tail=tail,
        train=train_step(apply, replace(plan.train, gpus=pool), values),
        sync=sync_of(apply, bare_one, values),
    )
    step = put_together(apply, question, phases, values)
    return Worked(step=step, generation=fleet, results=told(apply, question, way.gpus, step, fleet))


def generated_figures(
    fleet: Generation, instances: float, lengths: Mapping[str, Figure], *, refill: bool
) -> tuple[Figure, Figure]:
    """
    Time of the fleet as a figure, and its tail; the integral over the drain is told as the time that it adds.

    Args:
        fleet: What it makes of its samples, in central numbers.
        instances: Rollout instances.
        lengths: Figures of `samples` and `response_tokens`.
        refill: Whether finished samples are replaced at once.
    """
    key = "generation_seconds"
    tail = Figure(
        key="tail_seconds",
        value=float(fleet.tail_seconds),
        provenance="predicted",
        source="integral of the engine step over the lengths that are left as the batch drains",
    )
    if refill:
        rate = Figure(
            key="instance_tokens_per_second",
            value=float(fleet.rate),
            provenance="predicted",
            source="rollout_batch.steady_rate, as rlsize predict rollout explains it",
        )
        made = apply(key, rollout_batch.fleet_time, instances=instances, instance_rate=rate, **lengths)
        return made, replace(tail, source="finished samples are replaced at once")
    if fleet.tail_seconds <= 0:
        source = "integral of the engine step as the batch drains"
        return Figure(key=key, value=float(fleet.seconds), provenance="predicted", source=source), tail
    packed = Figure(
        key="packed_seconds",
        value=float(fleet.full_seconds),
        provenance="predicted",
        source="rollout_batch.packed_time: all samples at the batch's own rate",
    )
    return apply(key, decode_step.both_times, first=packed, second=tail), tail


def told(work: Work, question: StepQuestion, gpus: float, step: Step, fleet: Generation) -> dict[str, Any]:
    """What is told of a step by key: figures, numbers or arrays."""
    rate = work(
        "loop_tokens_per_second",
        rollout_batch.batch_rate,
        samples=question.samples,
        response_tokens=question.response_tokens,
        seconds=step.seconds,
    )
    per_gpu = "loop_tokens_per_gpu_second"
    rollout, trainer = idle_fractions(work, question.loop, step)
    found = {
        "step_seconds": step.seconds,
        "generation_seconds": step.generation_seconds,
        "generation_exposed_seconds": step.generation_exposed_seconds,
        "tail_seconds": step.tail_seconds,
        "train_seconds": step.train_seconds,
        "update_seconds": step.update_seconds,
        "logprob_seconds": step.logprob_seconds,
        "sync_seconds": step.sync_seconds,
        "sync_exposed_seconds": step.sync_exposed_seconds,
        "overhead_seconds": step.overhead_seconds,
        "trainer_idle_fraction": trainer,
        "rollout_idle_fraction": rollout,
        "loop_tokens_per_second": rate,
        per_gpu: work(per_gpu, matching.rate_per_gpu, rate=rate, gpus=gpus),
        "steps_per_day": work("steps_per_day", iteration.iterations_per_day, iteration_seconds=step.seconds),
        "longest_response_tokens": _leaf(work, "longest_response_tokens", fleet.longest_tokens, "mean of the longest"),
        "samples_in_flight": _leaf(work, "samples_in_flight", fleet.batch, "offered, as far as cache and engine allow"),
        "cache_concurrency": _leaf(work, "cache_concurrency", fleet.capacity, "samples that the KV cache holds"),
    }
    if question.loop == "async":  # where a batch drains, its last samples run in ever shorter steps
        key = "longest_response_seconds"
        lasting = rollout_batch.cycle_time(batch=fleet.batch, response_tokens=fleet.longest_tokens, rate=fleet.rate)
        found[key] = _leaf(work, key, lasting, "rollout_batch.cycle_time: its tokens at the rate of a full batch")
    return found


def _leaf(work: Work, key: str, value: Any, source: str) -> Any:  # noqa: ANN401 (a number or an array)
    """A number of the fleet's as a figure where figures are wanted."""
    if work is not apply:
        return value
    return Figure(key=key, value=float(value), provenance="predicted", source=source)
