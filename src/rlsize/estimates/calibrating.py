"""
Measured over predicted, stage by stage.

A stage takes part as soon as its prediction is in the mapping that the caller hands over; this version predicts weight
syncs only.
"""

from __future__ import annotations

from math import log1p
from typing import TYPE_CHECKING

from rlsize.facts.calibration import Calibration, StageFactor
from rlsize.facts.measured import STAGES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.facts.figure import Figure
    from rlsize.facts.measured import Scatter, Stage
    from rlsize.facts.rates import Rates


def measured_stages(rates: Rates) -> dict[Stage, tuple[float, Scatter | None]]:
    """
    Seconds of each stage that a rates file holds, with their scatter.

    A rollout is compared by the engine step at the concurrency whose rate it gives, a train step by one optimizer step,
    a weight sync by its fastest way.
    """
    found: dict[Stage, tuple[float, Scatter | None]] = {}
    if rates.rollout is not None:
        top = rates.rollout.levels[-1]
        if top.seconds_per_step is not None:
            found["rollout"] = (top.seconds_per_step, top.scatter)
    if rates.train is not None:
        found["train"] = (rates.train.train_seconds, rates.train.scatter)
    if rates.sync is not None and rates.sync.methods:
        best = min(rates.sync.methods, key=lambda method: method.seconds)
        found["sync"] = (best.seconds, best.scatter)
    return found


def calibration(rates: Rates, source: str, predictions: Mapping[Stage, Figure]) -> Calibration:
    """
    The factor of each stage that was measured and is predicted.

    Args:
        rates: The measurement.
        source: Its file.
        predictions: Predicted seconds by stage; a stage without one is left out.
    """
    measured = measured_stages(rates)
    return Calibration(
        measured_at=rates.measured_at,
        source=source,
        model=rates.conditions.model,
        gpus=list(rates.machine.gpus) if rates.machine else [],
        stages=[
            _factor(stage, *measured[stage], predictions[stage])
            for stage in STAGES
            if stage in measured and stage in predictions and predictions[stage].known
        ],
    )


def _factor(stage: Stage, seconds: float, scatter: Scatter | None, predicted: Figure) -> StageFactor:
    spread = log1p(scatter.cv**2 / scatter.parts) ** 0.5 if scatter else 0.0
    return StageFactor(
        stage=stage,
        measured_seconds=seconds,
        predicted_seconds=predicted.number,
        factor=seconds / predicted.number,
        spread=spread,
        equation=predicted.equation,
    )
