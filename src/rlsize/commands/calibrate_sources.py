"""What `rlsize calibrate` gathers: points, what cannot be used, and the plans of a scenario; points of flags."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rlsize.commands.plans import (
    Said,
    rollout_plan,
    rollout_setting,
    sync_plan,
    sync_setting,
    train_plan,
    train_setting,
)
from rlsize.commands.step_plan import step_plan, step_setting
from rlsize.errors import InputError
from rlsize.estimates import planned
from rlsize.estimates.belief import prior
from rlsize.estimates.calibrating import SCATTER, Point
from rlsize.facts.calibration import CalibrationSetting
from rlsize.facts.records.record import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlsize.estimates.calibrating import Predict
    from rlsize.estimates.planned import RolloutPlan
    from rlsize.estimates.step_prediction import StepQuestion
    from rlsize.estimates.sync_prediction import SyncTimeQuestion
    from rlsize.estimates.train_prediction import TrainQuestion
    from rlsize.facts.figure import Figure
    from rlsize.shell.inputs import Inputs


MOST_SCATTER = 3.0  # of a logarithm
PHASES = MappingProxyType(
    {
        "step": ("seconds", "step"),
        "generation": ("generation_seconds", "generation of a step"),
        "train": ("train_seconds", "training of a step"),
        "sync": ("sync_seconds", "weight sync of a step"),
    }
)
"""Fields of a predicted step, and what they are, by what flags say."""


@dataclass(slots=True, kw_only=True)
class Gathered:
    """
    What sources gave.

    Args:
        points: Measurements that are predicted.
        unused: What was measured and cannot be used, with the reason.
        rollout: The instance that is planned, or was measured.
        concurrency: Its samples in flight; all that fit where nobody says. [1]
        train: The train step.
        sync: The weight sync.
        step: The loop.
        seen: What was measured of loops, as candidates for a further measurement are called.
    """

    points: list[Point] = field(default_factory=list)
    unused: list[tuple[str, str]] = field(default_factory=list)
    rollout: RolloutPlan | None = None
    concurrency: float = planned.ALL_THAT_FIT
    train: TrainQuestion | None = None
    sync: SyncTimeQuestion | None = None
    step: StepQuestion | None = None
    seen: set[str] = field(default_factory=set)

    def tried(self, what: str, make: Callable[[], Any]) -> Any:
        """What a function makes; None where it cannot, with the reason kept."""
        try:
            return make()
        except InputError as error:
            reasons = [f"{fault.what} ({fault.where})" if fault.where else fault.what for fault in error.faults]
            self.unused.append((what, "; ".join(dict.fromkeys(reasons))))
        except Refused as refusal:
            self.unused.append((what, str(refusal)))
        return None


def plan_scenario(inputs: Inputs, found: Gathered) -> None:
    """Plans of the scenario; what it does not say enough for stays None."""
    silent = Gathered()
    found.rollout = silent.tried("rollout", lambda: rollout_plan(inputs.apart(), Said()))
    said = inputs.said("rollout.concurrency")
    found.concurrency = float(said) if said else planned.ALL_THAT_FIT
    found.train = silent.tried("train", lambda: train_plan(inputs.apart(), Said()))
    found.sync = silent.tried("sync", lambda: sync_plan(inputs.apart(), Said()))
    found.step = silent.tried("step", lambda: step_plan(inputs.apart(), Said()))
    if found.step is not None:
        found.step = silent.tried("step", lambda: _runs(found.step))


def _runs(question: StepQuestion | None) -> StepQuestion | None:
    """
    A loop that can be predicted.

    Raises:
        Refused: It cannot run so.
    """
    if question is not None:
        planned.phase_seconds(question, "seconds")(prior(*planned.STEP_STAGES).central())
    return question


def train_point(name: str, question: TrainQuestion, measured: tuple[float, float], predict: Predict) -> Point:
    """
    A measured train step.

    Args:
        name: Who says so.
        question: What ran.
        measured: Its seconds, and the scatter of their logarithm.
        predict: Its prediction.
    """
    series = f"train step of {question.sequences:g} samples of {question.tokens:g} tokens, {question.model.name}"
    return Point(
        what=f"train step on {question.gpus:.0f} GPUs",
        source=name,
        unit="s",
        measured=measured[0],
        scatter=measured[1],
        noise=planned.TRAIN_STAGES[0].noise,
        predict=predict,
        stages=planned.TRAIN_STAGES,
        setting=train_setting(question),
        series=series,
        place=float(question.gpus),
        rising=False,
    )


def of_flags(inputs: Inputs, found: Gathered, rates: list[tuple[float, Figure]], times: Mapping[str, Figure]) -> None:
    """
    Points of what flags say about the scenario.

    Args:
        inputs: Flags, scenario and profiles.
        found: Takes the points; has the scenario's plans.
        rates: Concurrency and rate of an instance.
        times: Seconds by phase: step, generation, train, sync.
    """
    if rates:
        plan = found.tried("--rate", lambda: rollout_plan(inputs.apart(), Said()))
        for concurrency, rate in rates if plan is not None else []:
            made = found.tried("--rate", partial(_flag_rate, plan, concurrency, rate))
            found.points += [made] if made is not None else []
    for phase, figure in times.items():
        if figure.known:
            made = found.tried(figure.source, partial(_phase, inputs, found, phase, figure))
            found.points += [made] if made is not None else []


def _phase(inputs: Inputs, found: Gathered, phase: str, figure: Figure) -> Point:
    """
    The step of the scenario's loop, or a phase of it; train step and weight sync by themselves where it has no loop.

    Raises:
        InputError: What is missing for a prediction.
        Refused: The loop cannot run so.
    """
    alone = {"train": lambda: _train(inputs, figure), "sync": lambda: _sync(inputs, figure)}
    if found.step is None and phase in alone:
        return alone[phase]()
    question = found.step or _runs(step_plan(inputs.apart(), Said()))
    if question is None:
        raise Refused("the scenario has no loop")
    field, what = PHASES[phase]
    return Point(
        what=f"{what}, {question.loop}",
        source=figure.source,
        unit="s",
        measured=figure.number,
        scatter=_said_scatter(figure),
        noise=planned.STEP_STAGES[0].noise,
        predict=planned.phase_seconds(question, field),
        stages=planned.STEP_STAGES,
        setting=step_setting(question),
    )


def _train(inputs: Inputs, figure: Figure) -> Point:
    question = train_plan(inputs.apart(), Said())
    return train_point(figure.source, question, (figure.number, _said_scatter(figure)), planned.train_seconds(question))


def _sync(inputs: Inputs, sync: Figure) -> Point:
    asked = sync_plan(inputs.apart(), Said())
    return Point(
        what=f"{asked.transport} weight sync",
        source=sync.source,
        unit="s",
        measured=sync.number,
        scatter=_said_scatter(sync),
        noise=planned.SYNC_STAGES[0].noise,
        predict=planned.sync_seconds(asked),
        stages=planned.SYNC_STAGES,
        setting=sync_setting(asked),
    )


def _flag_rate(plan: RolloutPlan, concurrency: float, rate: Figure) -> Point:
    return Point(
        what=f"rate with {concurrency:g} in flight",
        source="--rate",
        unit="token/s",
        measured=rate.number,
        scatter=_said_scatter(rate),
        noise=planned.ROLLOUT_STAGES[0].noise,
        predict=plan.rate(concurrency),
        stages=planned.ROLLOUT_STAGES,
        setting=rollout_setting(plan),
        series="--rate",
        place=concurrency,
    )


def _said_scatter(figure: Figure) -> float:
    """Of a value with a ±; one that is known to a factor of twenty says nothing."""
    return min(max(SCATTER, figure.deviation / figure.number), MOST_SCATTER)


def settings(points: list[Point]) -> list[CalibrationSetting]:
    """What was measured, each setting once; what one source says of both sides stays apart."""
    found = dict.fromkeys(point.setting for point in points)
    return [replace(one) for one in found if one != CalibrationSetting()]
