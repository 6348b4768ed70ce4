"""Where an optimizer step goes: parts that add up to it, and what makes each of them shorter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlsize.equations import rl_step, rollout_batch, train_step
from rlsize.estimates.figures import apply
from rlsize.estimates.step_assembly import OVERLAPPING
from rlsize.facts.figure import Figure

if TYPE_CHECKING:
    from rlsize.estimates.step_assembly import Loop, Step

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


def step_parts(step: Step, loop: Loop) -> tuple[StepPart, ...]:
    """
    The parts of a step in the order in which they come; those that take no time are left out.

    Args:
        step: The step in figures.
        loop: How its phases follow each other.
    """
    overhead = _overhead(step)
    parts = [
        *_generation(step, loop),
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
        if isinstance(seconds, Figure) and seconds.number > 0  # what is known to take no time is a bare 0
    )


def _generation(step: Step, loop: Loop) -> list[tuple[str, Figure, str]]:
    """Generation that the trainer waits for; where phases take turns, its tail apart."""
    if loop in OVERLAPPING:
        return [("waiting", step.generation_exposed_seconds, ROLLOUT)]
    full = apply("generation_seconds", rollout_batch.beyond, whole=step.generation_seconds, part=step.tail_seconds)
    return [("generation", full, ROLLOUT), ("tail", step.tail_seconds, NOTHING)]


def _overhead(step: Step) -> dict[str, Figure]:
    """The overhead by what it grows with."""
    values = step.overhead_seconds.inputs
    none = {"fixed_seconds": 0.0, "sample_seconds": 0.0, "samples": 0.0, "param_seconds": 0.0, "params": 0.0}
    kinds = {
        "fixed": ("fixed_seconds",),
        "samples": ("sample_seconds", "samples"),
        "params": ("param_seconds", "params"),
    }
    return {
        name: apply("overhead_seconds", rl_step.step_overhead, **{**none, **{key: values[key] for key in keys}})
        for name, keys in kinds.items()
    }
