"""What `rlsize calibrate` gathers: points, what cannot be used, and the plans of a scenario; points of flags."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from rlsize.cli.plans import Said, rollout_plan, rollout_setting, sync_plan, sync_setting, train_plan, train_setting
from rlsize.errors import InputError
from rlsize.estimates import planned
from rlsize.estimates.calibrating import SCATTER, Point
from rlsize.facts.calibration import CalibrationSetting
from rlsize.facts.records.base import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlsize.cli.inputs import Inputs
    from rlsize.estimates.planned import RolloutPlan
    from rlsize.estimates.sync_prediction import SyncTimeQuestion
    from rlsize.estimates.train_prediction import TrainQuestion
    from rlsize.facts.figure import Figure


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
    """

    points: list[Point] = field(default_factory=list)
    unused: list[tuple[str, str]] = field(default_factory=list)
    rollout: RolloutPlan | None = None
    concurrency: float = planned.ALL_THAT_FIT
    train: TrainQuestion | None = None
    sync: SyncTimeQuestion | None = None

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


def train_point(name: str, question: TrainQuestion, seconds: float, scatter: float) -> Point:
    return Point(
        what=f"train step on {question.gpus:.0f} GPUs",
        source=name,
        unit="s",
        measured=seconds,
        scatter=scatter,
        noise=planned.TRAIN_STAGES[0].noise,
        predict=planned.train_seconds(question),
        stages=planned.TRAIN_STAGES,
        setting=train_setting(question),
        series=f"train step of {question.sequences:g} samples of {question.tokens:g} tokens, {question.model.name}",
        place=float(question.gpus),  # type: ignore[arg-type]  # a bare question
        rising=False,
    )


def of_flags(inputs: Inputs, found: Gathered, rates: list[tuple[float, Figure]], times: Mapping[str, Figure]) -> None:
    """
    Points of what flags say about the scenario.

    Args:
        inputs: Flags, scenario and profiles.
        found: Takes the points.
        rates: Concurrency and rate of an instance.
        times: Seconds by stage: step, generation, train, sync.
    """
    if rates:
        plan = found.tried("--rate", lambda: rollout_plan(inputs.apart(), Said()))
        for concurrency, rate in rates if plan is not None else []:
            made = found.tried("--rate", lambda c=concurrency, r=rate: _flag_rate(plan, c, r))  # type: ignore[misc]  # bound now
            found.points += [made] if made is not None else []
    train, sync = times["train"], times["sync"]
    if train.known:
        question = found.tried("--train-seconds", lambda: train_plan(inputs.apart(), Said()))
        if question is not None:
            found.points.append(train_point(train.source, question, train.number, _said_scatter(train)))
    if sync.known:
        asked = found.tried("--sync-seconds", lambda: sync_plan(inputs.apart(), Said()))
        if asked is not None:
            found.points.append(_flag_sync(asked, sync))


def _flag_sync(asked: SyncTimeQuestion, sync: Figure) -> Point:
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
        what=f"rate at {concurrency:g} in flight",
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
    return max(SCATTER, figure.deviation / figure.number)


def settings(points: list[Point]) -> list[CalibrationSetting]:
    """What was measured, each setting once; what one source says of both sides stays apart."""
    found = dict.fromkeys(point.setting for point in points)
    return [replace(one) for one in found if one != CalibrationSetting()]
