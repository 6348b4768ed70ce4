"""
Predictions where a rate is neither given nor measured.

A command offers them with `offer`; the questions of `cli/asking.py` fall back to them. Nothing heavy is loaded unless
model and GPU are named, so that answers from flags alone stay quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.equations import matching
from rlsize.estimates.working import apply
from rlsize.facts.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rlsize.commands.plans import Said
    from rlsize.estimates.calibrating import Predict
    from rlsize.estimates.constants import Stage
    from rlsize.facts.calibration import CalibrationSetting
    from rlsize.shell.inputs import Inputs

_SEED = 0  # of the spread of a prediction; the same for all questions of a command
HINT = "; or name a scenario with model, GPU and lengths, for a prediction"


def offer(inputs: Inputs, calibration: str | None, **said: str | None) -> None:
    """
    Let a command fall back to predictions.

    Args:
        inputs: Flags, scenario and profiles.
        calibration: What `--calibration` says.
        said: What flags say that are asked later: `model`, `gpu`, and quantities by key.
    """
    inputs.offered = (calibration, said)


def wanted(inputs: Inputs) -> bool:
    """Whether a prediction is offered, and model and GPU are named."""
    if inputs.offered is None:
        return False
    said = inputs.offered[1]
    model = said.get("model") or inputs.said("model")
    gpu = said.get("gpu") or inputs.said("cluster.gpu") or inputs.said("cluster.profile")
    return isinstance(model, str) and gpu is not None


def instance_rate(inputs: Inputs, known: Figure) -> Figure:
    """Response tokens per second of an instance that is kept full: as it is known, else predicted."""
    if known.known or not wanted(inputs):
        return known

    def make(ask: Inputs, said: Said) -> tuple[Predict, Sequence[Stage], CalibrationSetting, str]:
        from rlsize.commands.plans import rollout_plan, rollout_setting
        from rlsize.estimates import planned

        plan = rollout_plan(ask, said)
        concurrency = inputs.said("rollout.concurrency")
        predict = plan.rate(float(concurrency) if concurrency else planned.ALL_THAT_FIT)
        load = f"{concurrency:g} in flight" if concurrency else "as many in flight as fit"
        return predict, planned.ROLLOUT_STAGES, rollout_setting(plan), f"by rollout_batch.steady_rate, {load}"

    return _predicted(inputs, "instance_tokens_per_second", known, make)


def train_seconds(inputs: Inputs, known: Figure) -> Figure:
    """Busy trainer seconds of a step: as they are known, else predicted."""
    if known.known or not wanted(inputs):
        return known

    def make(ask: Inputs, said: Said) -> tuple[Predict, Sequence[Stage], CalibrationSetting, str]:
        from rlsize.commands.plans import train_plan, train_setting
        from rlsize.estimates import planned

        question = train_plan(ask, said)
        how = f"by train_step.trainer_busy_time, {question.gpus:.0f} GPUs"
        colocated = inputs.said("placement.mode") == "colocated"
        return planned.train_seconds(question, colocated=colocated), planned.TRAIN_STAGES, train_setting(question), how

    return _predicted(inputs, "train_seconds", known, make)


def consumption(inputs: Inputs, batch: Figure, known: Figure) -> Figure:
    """Response tokens trained per second, from a step that is predicted where nobody says how long it takes."""
    train = train_seconds(inputs, known) if batch.known else known
    key = "consumption_tokens_per_second"
    return apply(key, matching.consumption, tokens_per_step=batch, train_seconds=train)


def step_seconds(inputs: Inputs, known: Figure) -> Figure:
    """Wall clock of an optimizer step: as it is known, else that of the scenario's loop, predicted."""
    if known.known or not wanted(inputs):
        return known

    def make(ask: Inputs, said: Said) -> tuple[Predict, Sequence[Stage], CalibrationSetting, str]:
        from rlsize.commands.step_plan import step_plan, step_setting
        from rlsize.estimates import planned

        question = step_plan(ask, said)
        predict = planned.phase_seconds(question, "seconds")
        return predict, planned.STEP_STAGES, step_setting(question), f"by rl_step.whole_step, {question.loop}"

    return _predicted(inputs, "step_seconds", known, make)


def sync_seconds(inputs: Inputs, known: Figure) -> Figure:
    """Seconds of a weight sync, predicted where nobody says and other rates of the answer are predicted too."""
    others = [figure for figure in inputs.used.values() if figure.provenance == "predicted" and figure.deviation]
    if (known.known and known.provenance != "default") or not wanted(inputs) or not others:
        return known

    def make(ask: Inputs, said: Said) -> tuple[Predict, Sequence[Stage], CalibrationSetting, str]:
        from rlsize.commands.plans import sync_plan, sync_setting
        from rlsize.estimates import planned

        question = sync_plan(ask, said)
        how = f"by sync_classes.handled_sync_time, {question.transport}"
        return planned.sync_seconds(question), planned.SYNC_STAGES, sync_setting(question), how

    return _predicted(inputs, "sync_seconds", known, make)


def _predicted(
    inputs: Inputs,
    key: str,
    known: Figure,
    make: Callable[[Inputs, Said], tuple[Predict, Sequence[Stage], CalibrationSetting, str]],
) -> Figure:
    """The prediction as a figure with its spread; what was known where there can be none, with the reason noted."""
    from rlsize.commands.plans import Said
    from rlsize.errors import InputError
    from rlsize.facts.records.record import Refused

    calibration, flags = inputs.offered or (None, {})
    numbers = {name: text for name, text in flags.items() if name not in {"model", "gpu"}}
    said = Said(model=flags.get("model"), gpu=flags.get("gpu"), numbers=numbers)
    ask = inputs.apart()
    try:
        predict, stages, setting, how = make(ask, said)
    except InputError as error:
        inputs.unpredicted[key] = "; ".join(
            f"{one.what} ({one.where})" if one.where else one.what for one in error.faults
        )
        return known
    except Refused as refusal:
        inputs.unpredicted[key] = str(refusal)
        return known
    try:
        value, deviation = _spread(inputs, calibration, predict, stages, setting)
    except Refused as refusal:
        inputs.unpredicted[key] = str(refusal)
        return known
    trust = f"calibrated by {calibration}" if calibration else "uncalibrated"
    source = f"{how}, {setting.model} on {setting.gpu}; {trust}"
    _note(inputs, trust)
    figure = Figure(key=key, value=value, provenance="predicted", source=source, deviation=deviation, least=0.0)
    return inputs.keep(figure)


def _spread(
    inputs: Inputs, calibration: str | None, predict: Predict, stages: Sequence[Stage], setting: CalibrationSetting
) -> tuple[float, float]:
    """The central prediction and its standard deviation, the scatter of a measurement included."""
    import math

    import numpy as np

    from rlsize.shell.beliefs import belief_of

    belief = belief_of(inputs, calibration, *stages, planned=setting)
    central: Any = predict(belief.central())
    draws: Any = predict(belief.drawn(_SEED))
    spread = math.hypot(float(np.std(np.log(draws))), stages[0].noise)
    return float(central), float(central) * math.sqrt(math.expm1(spread**2))


def _note(inputs: Inputs, trust: str) -> None:
    """Say once that rates are predicted."""
    text = (
        f"Rates that nobody gave are predicted, {trust}: `rlsize predict` builds them up, a measurement replaces them."
    )
    if text not in inputs.notes:
        inputs.notes.append(text)


def why_not(inputs: Inputs, key: str) -> str:
    """What to add to a message that asks for a rate: why it is not predicted."""
    if inputs.offered is None:
        return ""
    reason = inputs.unpredicted.get(key)
    return f"; it is not predicted, as {reason}" if reason else HINT
