"""An RL loop as it was asked for, its numbers as figures, and the other ways to run it on the same GPUs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rlsize.equations import rl_step
from rlsize.estimates.generation_batch import StepBatch, longest_sequence
from rlsize.estimates.loop_memory import check_engine
from rlsize.estimates.step_prediction import StepQuestion
from rlsize.estimates.trainer_fit import check_trainer
from rlsize.facts.records.record import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.estimates.rollout_prediction import Engine
    from rlsize.estimates.step_assembly import Loop
    from rlsize.estimates.train_prediction import TrainQuestion
    from rlsize.facts.figure import Figure

LOOPS: tuple[Loop, ...] = ("colocated", "synchronous", "one-step-off", "async")
"""Every way to lay a loop out in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """
    One way to run a loop.

    Args:
        loop: How the phases follow each other.
        rollout_gpus: GPUs that generate. [1]
        trainer_gpus: GPUs that train; the same ones where colocated. [1]
    """

    loop: Loop
    rollout_gpus: float
    trainer_gpus: float

    @property
    def shared(self) -> bool:
        """Whether both sides take turns on the same GPUs."""
        return self.loop == "colocated"

    @property
    def gpus(self) -> float:
        """GPUs of both sides."""
        if self.shared:
            return self.trainer_gpus
        return float(rl_step.gpus_of_both(rollout_gpus=self.rollout_gpus, trainer_gpus=self.trainer_gpus))


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopPlan:
    """
    A loop that is asked for.

    Args:
        way: How it is run.
        engines: One rollout instance where GPUs are shared (True) and where they are not (False), or why there is none.
        train: The trainer and its work; its numbers as figures.
        samples: Samples that are generated for a step. [1]
        group_size: Samples of one prompt. [1]
        prompt_tokens: Mean prompt length. [token]
        response_tokens: Mean response length. [token]
        response_cv: Its coefficient of variation; the constant's where it lacks a value. [1]
        max_tokens: Cap on the response length. [token]
        max_staleness: Staleness cap in steps. [1]
        transport: Class of the weight sync.
        wire_dtype: Number type of weights on the wire.
    """

    way: Way
    engines: Mapping[bool, Engine | str]
    train: TrainQuestion
    samples: Figure
    group_size: Figure
    prompt_tokens: Figure
    response_tokens: Figure
    response_cv: Figure
    max_tokens: Figure
    max_staleness: Figure
    transport: str = "nccl-broadcast"
    wire_dtype: str = "bf16"

    def engine(self, way: Way) -> Engine:
        """
        The instance of a way.

        Raises:
            Refused: There is none, with the reason.
        """
        found = self.engines[way.shared]
        if isinstance(found, str):
            raise Refused(found)
        return found


def step_question(plan: LoopPlan, way: Way) -> StepQuestion:
    """
    The question about one way to run the loop.

    Raises:
        Refused: There is no instance for it.
    """
    return StepQuestion(
        engine=plan.engine(way),
        train=replace(plan.train.bare(), gpus=way.trainer_gpus),
        loop=way.loop,
        rollout_gpus=way.rollout_gpus,
        samples=plan.samples.number,
        group_size=plan.group_size.number,
        prompt_tokens=plan.prompt_tokens.number,
        response_tokens=plan.response_tokens.number,
        response_cv=plan.response_cv.number if plan.response_cv.known else None,
        max_tokens=plan.max_tokens.number if plan.max_tokens.known else None,
        max_staleness=plan.max_staleness.number,
        transport=plan.transport,
        wire_dtype=plan.wire_dtype,
    )


def longest_tokens(plan: LoopPlan, values: Mapping[str, Any]) -> float:
    """
    The longest sequence of a loop, which memory must hold whole. [token]

    Args:
        plan: The loop.
        values: Central values of the constants, for a spread of lengths that nobody gave.
    """
    batch = StepBatch(
        samples=plan.samples.number,
        instances=1.0,
        prompt_tokens=plan.prompt_tokens.number,
        response_tokens=plan.response_tokens.number,
        response_cv=plan.response_cv.number if plan.response_cv.known else values["step_length_cv"],
        max_tokens=plan.max_tokens.number if plan.max_tokens.known else None,
    )
    return longest_sequence(batch, capped=plan.max_tokens.provenance == "given")


def check_way(plan: LoopPlan, way: Way, values: Mapping[str, Any]) -> None:
    """
    Refuse a way to run a loop that memory does not allow.

    Args:
        plan: The loop.
        way: How it is run.
        values: Central values of the constants.

    Raises:
        Refused: There is no instance for it, or the trainer does not fit on its GPUs.
    """
    longest = longest_tokens(plan, values)
    check_engine(plan.engine(way), longest, values)
    check_trainer(replace(plan.train.bare(), gpus=way.trainer_gpus), longest, values)
