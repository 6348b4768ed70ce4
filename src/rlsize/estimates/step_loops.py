"""An RL loop as it was asked for, its numbers as figures, and the other ways to run it on the same GPUs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from rlsize.equations import rl_step
from rlsize.estimates.figures import DRAWS, Draw, uncertain
from rlsize.estimates.generation import StepBatch, longest_sequence
from rlsize.estimates.loop_memory import check_engine
from rlsize.estimates.step_prediction import StepQuestion
from rlsize.estimates.train_prediction_question import bare_question, stated
from rlsize.estimates.trainer_fit import check_trainer
from rlsize.facts.records.record import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.estimates.rollout_prediction import Replica
    from rlsize.estimates.step_assembly import Loop
    from rlsize.estimates.train_prediction import TrainQuestion
    from rlsize.facts.figure import Figure

_NUMBERS = (
    "samples",
    "group_size",
    "prompt_tokens",
    "response_tokens",
    "response_cv",
    "max_tokens",
    "max_staleness",
)
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
    engines: Mapping[bool, Replica | str]
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

    @property
    def stated(self) -> dict[str, Figure]:
        """Its numbers that have a value."""
        return {name: getattr(self, name) for name in _NUMBERS if getattr(self, name).known}

    def engine(self, way: Way) -> Replica:
        """
        The instance of a way.

        Raises:
            Refused: There is none, with the reason.
        """
        found = self.engines[way.shared]
        if isinstance(found, str):
            raise Refused(found)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """
    The numbers of a plan: floats, or arrays of joint draws where an input is uncertain.

    Args:
        own: Of the loop.
        train: Of the trainer's question.
    """

    own: Mapping[str, Any]
    train: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


def bare(plan: LoopPlan) -> Numbers:
    """The central numbers."""
    return Numbers(own={name: figure.number for name, figure in plan.stated.items()})


def drawn(plan: LoopPlan, seed: int) -> Numbers:
    """The same; those with a standard deviation, or worked out from one that has, as arrays of joint draws."""
    random = Random(seed)  # noqa: S311 (draws for a band, not for a secret)
    own = {name: figure for name, figure in plan.stated.items() if uncertain(figure)}
    train = {name: figure for name, figure in stated(plan.train).items() if uncertain(figure)}
    joint = [Draw(random) for _ in range(DRAWS if own or train else 0)]

    def arrays(figures: Mapping[str, Figure]) -> dict[str, Any]:
        return {name: np.array([draw.of(figure).number for draw in joint]) for name, figure in figures.items()}

    return Numbers(own={**bare(plan).own, **arrays(own)}, train=arrays(train))


def step_question(plan: LoopPlan, way: Way, said: Numbers) -> StepQuestion:
    """
    The question about one way to run the loop.

    Raises:
        Refused: There is no instance for it.
    """
    trained = replace(bare_question(plan.train, said.train), gpus=way.trainer_gpus)
    return StepQuestion(
        engine=plan.engine(way),
        train=trained,
        loop=way.loop,
        rollout_gpus=way.rollout_gpus,
        samples=said.own["samples"],
        group_size=said.own["group_size"],
        prompt_tokens=said.own["prompt_tokens"],
        response_tokens=said.own["response_tokens"],
        response_cv=said.own.get("response_cv"),
        max_tokens=said.own.get("max_tokens"),
        max_staleness=said.own["max_staleness"],
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
    said = bare(plan).own
    batch = StepBatch(
        samples=said["samples"],
        instances=1.0,
        prompt_tokens=said["prompt_tokens"],
        response_tokens=said["response_tokens"],
        response_cv=said.get("response_cv", values["step_length_cv"]),
        max_tokens=said.get("max_tokens"),
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
    check_trainer(replace(bare_question(plan.train), gpus=way.trainer_gpus), longest, values)
