"""What a command believes about the constants: the prior, or what a calibration file says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rlsize.facts.calibration import CalibrationSetting

if TYPE_CHECKING:
    from rlsize.estimates.belief import Belief
    from rlsize.estimates.constants import Stage
    from rlsize.shell.inputs import Inputs

CalibrationFile = Annotated[
    str | None,
    typer.Option(
        "--calibration",
        metavar="FILE",
        help="What measurements say about the constants: a file from `rlsize calibrate --save`.",
        rich_help_panel="Inputs",
        show_default=False,
    ),
]
"""The flag of every command that predicts."""

_WORDS = {
    "model": "model",
    "gpu": "GPU",
    "engine": "engine",
    "rollout_layout": "layout of an instance",
    "trainer_layout": "layout of the trainer",
}


def belief_of(
    inputs: Inputs, calibration: str | None, *stages: Stage, planned: CalibrationSetting | None = None
) -> Belief:
    """
    What is believed about the constants of some stages.

    Args:
        inputs: What was asked: model, GPU and layout are looked up there; notes and warnings go there.
        calibration: Path of a calibration file; None where there is none.
        stages: The stages that the command predicts with.
        planned: What is predicted, where the caller knows it better than the inputs.

    Raises:
        InputError: The file is no calibration, or was made with other constants.
    """
    from rlsize.estimates.belief import prior

    if calibration is None:
        return prior(*stages)
    from rlsize.estimates.calibration_belief import believed, differences, widened
    from rlsize.readers.saved_files import read_calibration
    from rlsize.version import VERSION

    found = read_calibration(calibration)
    belief = believed(found, *stages)
    if found.made_by != VERSION:
        _say(inputs, f"{calibration} is of rlsize {found.made_by}; equations may have changed since")
    other = differences(found, planned or planned_setting(inputs, *stages))
    for field, (seen, plan) in other.items():
        _say(
            inputs,
            f"{calibration} was made for the {_WORDS[field]} {seen}, and here it is {plan}: its constants are used, "
            f"those that stand for software with {'all' if field == 'model' else 'half'} of their spread back",
        )
    return widened(belief, stages, list(other)) if other else belief


def _say(inputs: Inputs, text: str) -> None:
    """Warn once, however often a command asks."""
    if text not in inputs.warnings:
        inputs.warnings.append(text)


def planned_setting(inputs: Inputs, *stages: Stage) -> CalibrationSetting:
    """What is predicted, from what was asked so far and the scenario."""
    names = {stage.name for stage in stages}
    return CalibrationSetting(
        model=_word(inputs, "model", "model"),
        gpu=_word(inputs, "gpu", "cluster.gpu"),
        engine=_word(inputs, "engine", "rollout.engine"),
        rollout_layout=_rollout_layout(inputs, alone="train" not in names) if "rollout" in names else None,
        trainer_layout=_trainer_layout(inputs, alone="rollout" not in names) if "train" in names else None,
    )


def rollout_layout(tensor: float, pipeline: float = 1, data: float = 1) -> str:
    """The layout of an instance as calibrations name it."""
    return f"TP{tensor:.0f} PP{pipeline:.0f} DP{data:.0f}"


def trainer_layout(tensor: float, pipeline: float = 1, context: float = 1, expert: float = 1) -> str:
    """The layout of a trainer as calibrations name it; its data ranks follow from its GPUs."""
    return f"TP{tensor:.0f} PP{pipeline:.0f} CP{context:.0f} EP{expert:.0f}"


def _word(inputs: Inputs, key: str, scenario: str) -> str | None:
    figure = inputs.used.get(key)
    value = figure.value if figure is not None else inputs.said(scenario)
    return value if isinstance(value, str) else None


def _degree(inputs: Inputs, key: str, scenario: str, *, alone: bool) -> float | None:
    """A degree of parallelism; of what was asked only where one side was, as both sides use the same words."""
    figure = inputs.used.get(key) if alone else None
    if figure is not None and figure.known:
        return figure.number
    said = inputs.said(scenario)
    return float(said) if said is not None else None


def _rollout_layout(inputs: Inputs, *, alone: bool) -> str | None:
    tensor = _degree(inputs, "rollout_tensor_parallel", "rollout.tensor_parallel", alone=alone)
    pipeline = _degree(inputs, "rollout_pipeline_parallel", "rollout.pipeline_parallel", alone=alone)
    data = _degree(inputs, "rollout_data_parallel", "rollout.data_parallel", alone=alone)
    return None if tensor is None else rollout_layout(tensor, pipeline or 1, data or 1)


def _trainer_layout(inputs: Inputs, *, alone: bool) -> str | None:
    degrees = [
        _degree(inputs, f"{axis}_parallel", f"trainer.parallelism.{axis}", alone=alone)
        for axis in ("tensor", "pipeline", "context", "expert")
    ]
    return trainer_layout(*(degree or 1 for degree in degrees))
