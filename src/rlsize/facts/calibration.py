"""A calibration: what measurements say about predictions, stage by stage."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from rlsize.facts.fields import Quantity, Says

CalibratedStage = Literal["rollout", "train", "sync"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StageFactor:
    """One stage: measured over predicted time."""

    stage: Annotated[CalibratedStage, Says("rollout, train or sync")]
    measured_seconds: Annotated[float, Quantity("s", "as it was measured")]
    predicted_seconds: Annotated[float, Quantity("s", "as it is predicted without calibration")]
    factor: Annotated[float, Quantity("1", "measured over predicted: what a prediction is to be multiplied by")]
    spread: Annotated[
        float,
        Quantity("1", "standard deviation of its logarithm, from the measurement's scatter", least=0),
    ] = 0.0
    equation: Annotated[str, Says("the equation that predicts it")] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """A calibration file."""

    measured_at: Annotated[str, Says("when, as an ISO 8601 date and time")]
    source: Annotated[str, Says("the file that holds the measurement")]
    model: Annotated[str | None, Says("the model that was measured")] = None
    gpus: Annotated[list[str], Says("the GPUs that it was measured on")] = field(default_factory=list)
    stages: Annotated[list[StageFactor], Says("the factor of each stage that was both measured and predicted")] = field(
        default_factory=list
    )
