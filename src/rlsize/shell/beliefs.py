"""What a command believes about the constants: the prior, or what a calibration file says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.facts.calibration import CalibrationSetting
from rlsize.quantities.table import QUANTITIES

if TYPE_CHECKING:
    from rlsize.estimates.belief import Belief
    from rlsize.estimates.constants import Stage
    from rlsize.shell.inputs import Inputs

_WORDS = {
    "model": "model",
    "gpu": "GPU",
    "engine": "engine",
    "rollout_layout": "layout of an instance",
    "trainer_layout": "layout of the trainer",
}


def belief_of(inputs: Inputs, *stages: Stage, planned: CalibrationSetting | None = None) -> Belief:
    """
    What is believed about the constants of some stages.

    Args:
        inputs: What was asked: model, GPU and layout are looked up there; notes and warnings go there.
        stages: The stages that the command predicts with.
        planned: What is predicted, where the caller knows it better than the inputs.

    Raises:
        InputError: The file is no calibration, or was made with other constants.
    """
    from rlsize.estimates.belief import prior

    calibration, _ = inputs.name("calibration")
    found = inputs.calibration()
    if found is None:
        return prior(*stages)
    from rlsize.estimates.calibration_belief import believed, differences, widened
    from rlsize.version import VERSION

    belief = believed(found, *stages)
    doubts = [f"{calibration} is of rlsize {found.made_by}; equations may have changed since"]
    doubts = doubts if found.made_by != VERSION else []
    other = differences(found, planned or _planned_setting(inputs, *stages))
    for field, (seen, plan) in other.items():
        doubts.append(
            f"{calibration} was made for the {_WORDS[field]} {seen}, and here it is {plan}: its constants are used, "
            f"those that stand for software with {'all' if field == 'model' else 'half'} of their spread back"
        )
    inputs.warnings += [doubt for doubt in doubts if doubt not in inputs.warnings]  # commands ask more than once
    return widened(belief, stages, list(other)) if other else belief


def _planned_setting(inputs: Inputs, *stages: Stage) -> CalibrationSetting:
    """What is predicted, from what was asked so far and the scenario."""
    names = {stage.name for stage in stages}
    rollout, trainer = ("tensor", "pipeline", "data"), ("tensor", "pipeline", "context", "expert")
    one = [_degree(inputs, f"rollout_{axis}_parallel") for axis in rollout if "rollout" in names]
    other = [_degree(inputs, f"{axis}_parallel") for axis in trainer if "train" in names]
    return CalibrationSetting(
        model=_word(inputs, "model"),
        gpu=_word(inputs, "gpu"),
        engine=_word(inputs, "engine"),
        rollout_layout=rollout_layout(*(degree or 1 for degree in one)) if one and one[0] else None,
        trainer_layout=trainer_layout(*(degree or 1 for degree in other)) if other else None,
    )


def _word(inputs: Inputs, key: str) -> str | None:
    figure = inputs.used.get(key)
    value = figure.value if figure is not None else inputs.said(QUANTITIES[key].scenario)
    return value if isinstance(value, str) else None


def _degree(inputs: Inputs, key: str) -> float | None:
    figure = inputs.used.get(key)
    if figure is not None and figure.known:
        return figure.number
    said = inputs.said(QUANTITIES[key].scenario)
    return float(said) if said is not None else None


def rollout_layout(tensor: float, pipeline: float = 1, data: float = 1) -> str:
    """The layout of an instance as calibrations name it."""
    return f"TP{tensor:.0f} PP{pipeline:.0f} DP{data:.0f}"


def trainer_layout(tensor: float, pipeline: float = 1, context: float = 1, expert: float = 1) -> str:
    """The layout of a trainer as calibrations name it; its data ranks follow from its GPUs."""
    return f"TP{tensor:.0f} PP{pipeline:.0f} CP{context:.0f} EP{expert:.0f}"
