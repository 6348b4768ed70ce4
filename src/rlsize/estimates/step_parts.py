"""Where an optimizer step goes: parts that add up to it, and what makes each of them shorter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlsize.equations import rl_step, rollout_batch, train_step
from rlsize.estimates.model_size import model_size
from rlsize.estimates.step_assembly import OVERLAPPING
from rlsize.estimates.working import apply

if TYPE_CHECKING:
    from rlsize.estimates.step_figures import Worked
    from rlsize.estimates.step_loops import LoopPlan, Way
    from rlsize.facts.figure import Figure

ROLLOUT, TRAINER, NOTHING = "rollout GPUs", "trainer GPUs", "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPart:
    """
    A part of the wall clock.

    Args:
        name: Which.
        seconds: Its time.
        share: That over the step.
        scales: What shortens it: more rollout GPUs, more trainer GPUs, or nothing.
    """

    name: str
    seconds: Figure
    share: Figure
    scales: str


def step_parts(plan: LoopPlan, way: Way, found: Worked) -> tuple[StepPart, ...]:
    """
    The parts of a step in the order in which they come.

    Args:
        plan: The loop.
        way: How it is run.
        found: Its step in figures.
    """
    step = found.step
    overhead = _overhead(plan, way, found)
    parts = [
        *_generation(way, found),
        ("logprobs", step.logprob_seconds, TRAINER),
        ("update", step.update_seconds, TRAINER),
        ("sync", step.sync_exposed_seconds, TRAINER),
        *((name, seconds, NOTHING) for name, seconds in overhead.items()),
    ]
    return tuple(
        StepPart(
            name=name,
            seconds=seconds,
            share=apply("share_fraction", train_step.time_share, part=seconds, whole=step.seconds),
            scales=scales,
        )
        for name, seconds, scales in parts
    )


def _generation(way: Way, found: Worked) -> list[tuple[str, Figure, str]]:
    """Generation that the trainer waits for; where phases take turns, its tail apart."""
    step = found.step
    if way.loop in OVERLAPPING:
        return [("waiting", step.generation_exposed_seconds, ROLLOUT)]
    full = apply("generation_seconds", rollout_batch.beyond, whole=step.generation_seconds, part=step.tail_seconds)
    return [("generation", full, ROLLOUT), ("tail", step.tail_seconds, NOTHING)]


def _overhead(plan: LoopPlan, way: Way, found: Worked) -> dict[str, Figure]:
    """The overhead by what it grows with."""
    values = found.step.overhead_seconds.inputs
    none = {"fixed_seconds": 0.0, "sample_seconds": 0.0, "samples": 0.0, "param_seconds": 0.0, "params": 0.0}
    params = model_size(plan.engine(way).question.model).params.number
    kinds = {
        "fixed": {"fixed_seconds": values["fixed_seconds"]},
        "samples": {"sample_seconds": values["sample_seconds"], "samples": plan.samples},
        "params": {"param_seconds": values["param_seconds"], "params": params},
    }
    return {name: apply("overhead_seconds", rl_step.step_overhead, **{**none, **own}) for name, own in kinds.items()}
