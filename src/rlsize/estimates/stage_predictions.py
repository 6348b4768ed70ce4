"""What a plan predicts, as functions of the constants: rates, train step, weight sync, and the step of a loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlsize.equations import kernel_time, rl_step
from rlsize.equations.long_tail import assumed_cap
from rlsize.estimates.belief import prior
from rlsize.estimates.constants_memory import STAGE as MEMORY
from rlsize.estimates.constants_rollout import STAGE as ROLLOUT
from rlsize.estimates.constants_step import STAGE as STEP
from rlsize.estimates.constants_sync import STAGE as SYNC
from rlsize.estimates.constants_train import STAGE as TRAIN
from rlsize.estimates.figures import numbers
from rlsize.estimates.generation import StepBatch, lengths_of
from rlsize.estimates.rollout_prediction import check_fits, engine, steady
from rlsize.estimates.step_prediction import predicted_step
from rlsize.estimates.sync_prediction import sync_time
from rlsize.estimates.train_prediction import train_step

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.calibrating import Predict
    from rlsize.estimates.engine_work import EngineQuestion
    from rlsize.estimates.rollout_prediction import Lengths
    from rlsize.estimates.step_prediction import StepQuestion
    from rlsize.estimates.sync_prediction import SyncTimeQuestion
    from rlsize.estimates.train_prediction import TrainQuestion

ROLLOUT_STAGES = (ROLLOUT, MEMORY)
TRAIN_STAGES = (TRAIN, STEP)
SYNC_STAGES = (SYNC, STEP)
STEP_STAGES = (STEP, ROLLOUT, TRAIN, SYNC, MEMORY)
ALL_THAT_FIT = 1e9  # samples in flight that no engine can hold
_MEAN_LENGTHS = 32.0  # mean lengths beyond which hardly a sample goes
_SYNC_GPUS = 8.0  # of the trainers whose weight syncs the rates of handling are of


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

        def predict(values: Mapping[str, Real]) -> Any:  # noqa: ANN401 (a number or an array, as the values are)
            return steady(numbers, asked, concurrency, lengths, values).rate

        return predict


def train_alone(question: TrainQuestion) -> Predict:
    """Busy seconds of a trainer by itself, from a question in bare numbers."""

    def predict(values: Mapping[str, Real]) -> Any:  # noqa: ANN401 (a number or an array, as the values are)
        return train_step(numbers, question, values).train_seconds

    return predict


def train_seconds(question: TrainQuestion, *, colocated: bool = False) -> Predict:
    """Busy seconds of the trainer of a loop."""
    name = "step_train_colocated" if colocated else "step_train_disaggregated"

    def predict(values: Mapping[str, Real]) -> Any:  # noqa: ANN401 (a number or an array, as the values are)
        seconds = train_step(numbers, question, values).train_seconds
        return numbers("train_seconds", kernel_time.slowed, seconds=seconds, slowdown=values[name])

    return predict


def sync_seconds(question: SyncTimeQuestion) -> Predict:
    """Seconds of a weight sync in a loop."""

    def predict(values: Mapping[str, Real]) -> Any:  # noqa: ANN401 (a number or an array, as the values are)
        return numbers(
            "sync_seconds",
            rl_step.shared_out_sync,
            seconds=sync_time(numbers, question, values),
            gpus=question.trainer_gpus,
            usual_gpus=_SYNC_GPUS,
            exponent=values["step_sync_shared"],
        )

    return predict


def phase_seconds(question: StepQuestion, phase: str) -> Predict:
    """
    Seconds of a loop's step, or of a part of it.

    Args:
        question: The loop.
        phase: A field of `step_prediction.Step`, such as `seconds` or `generation_seconds`.
    """

    def predict(values: Mapping[str, Real]) -> Any:  # noqa: ANN401 (a number or an array, as the values are)
        return getattr(predicted_step(question, values), phase)

    return predict
