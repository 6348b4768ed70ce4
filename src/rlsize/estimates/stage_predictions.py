"""What a plan predicts, as functions of the constants: rates, train step, weight sync, and the step of a loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlsize.equations import kernel_time
from rlsize.equations.long_tail import assumed_cap
from rlsize.estimates import step_prediction
from rlsize.estimates.belief import prior
from rlsize.estimates.constants_memory import STAGE as MEMORY
from rlsize.estimates.constants_rollout import STAGE as ROLLOUT
from rlsize.estimates.constants_step import STAGE as STEP
from rlsize.estimates.constants_sync import STAGE as SYNC
from rlsize.estimates.constants_train import STAGE as TRAIN
from rlsize.estimates.figures import numbers
from rlsize.estimates.generation import StepBatch, lengths_of
from rlsize.estimates.rollout_prediction import check_fits, engine, steady
from rlsize.estimates.step_prediction import predicted_step, sync_in_loop
from rlsize.estimates.train_prediction import train_step

if TYPE_CHECKING:
    from rlsize.estimates.calibrating import Predict
    from rlsize.estimates.engine_work import EngineQuestion
    from rlsize.estimates.rollout_prediction import Lengths
    from rlsize.estimates.step_prediction import StepQuestion
    from rlsize.estimates.sync_prediction import SyncTimeQuestion
    from rlsize.estimates.train_prediction import TrainQuestion

ROLLOUT_STAGES = (ROLLOUT, MEMORY)
TRAIN_STAGES = (TRAIN, STEP)
SYNC_STAGES = (SYNC, STEP)
STEP_STAGES = step_prediction.STAGES
ALL_THAT_FIT = 1e9  # samples in flight that no engine can hold
_MEAN_LENGTHS = 32.0  # mean lengths beyond which hardly a sample goes


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutPlan:
    """
    One instance and its load.

    Args:
        question: The instance.
        prompt: Mean prompt length. [token]
        response: Mean response length. [token]
        response_cv: Standard deviation of response lengths over their mean. [1]
        longest: Longest response; what the model can hold where None. [token]
        hits: Share of prompt tokens found in the prefix cache. [1]
    """

    question: EngineQuestion
    prompt: float
    response: float
    response_cv: float
    longest: float | None = None
    hits: float = 0.0

    @property
    def cap(self) -> float:
        """The longest response. [token]"""
        if self.longest is not None:
            return self.longest
        return float(
            assumed_cap(
                max_context=float(self.question.model.architecture.max_context),
                prompt_tokens=self.prompt,
                mean_tokens=self.response,
                mean_lengths=_MEAN_LENGTHS,
            )
        )

    def lengths(self, hits: float) -> Lengths:
        """
        The lengths of its samples, for an engine at steady load.

        Args:
            hits: Share of prompt tokens found in the prefix cache. [1]
        """
        batch = StepBatch(
            samples=1.0,
            instances=1.0,
            prompt_tokens=self.prompt,
            response_tokens=self.response,
            response_cv=self.response_cv,
            max_tokens=self.cap,
            hit_ratio=hits,
        )
        return lengths_of(numbers, batch)

    def rate(self, concurrency: float = ALL_THAT_FIT) -> Predict:
        """
        Response tokens per second of the instance in its steady state.

        Raises:
            Refused: It does not fit, or cannot run so.
        """
        asked, lengths = engine(self.question), self.lengths(self.hits)
        check_fits(asked, lengths, prior(*ROLLOUT_STAGES).central())
        return lambda values: steady(numbers, asked, concurrency, lengths, values).rate


def train_alone(question: TrainQuestion) -> Predict:
    """Busy seconds of a trainer by itself, from a question in bare numbers."""
    return lambda values: train_step(numbers, question, values).train_seconds


def train_seconds(question: TrainQuestion) -> Predict:
    """Busy seconds of the trainer of a loop, on GPUs of its own."""
    return lambda values: kernel_time.slowed(
        seconds=train_step(numbers, question, values).train_seconds, slowdown=values["step_train_disaggregated"]
    )


def sync_seconds(question: SyncTimeQuestion) -> Predict:
    """Seconds of a weight sync in a loop."""
    return lambda values: sync_in_loop(numbers, question, values)


def phase_seconds(question: StepQuestion, phase: str) -> Predict:
    """
    Seconds of a loop's step, or of a part of it.

    Args:
        question: The loop.
        phase: A field of `step_assembly.Step`, such as `seconds` or `generation_seconds`.
    """
    return lambda values: getattr(predicted_step(question, values), phase)
