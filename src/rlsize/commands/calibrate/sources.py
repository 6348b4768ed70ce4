"""What `rlsize calibrate` gathers: points, what cannot be used, and the plans of a scenario; points of flags."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rlsize.equations import matching
from rlsize.errors import InputError
from rlsize.estimates import stage_predictions
from rlsize.estimates.calibrating import SCATTER, Point
from rlsize.estimates.stage_predictions import RolloutPlan
from rlsize.estimates.step_prediction import Way
from rlsize.estimates.sync_prediction import TRANSPORTS, SyncTimeQuestion
from rlsize.facts.calibration import CalibrationSetting
from rlsize.facts.figure import Figure
from rlsize.facts.records.record import Refused
from rlsize.loop.instance import instance
from rlsize.loop.instance_count import instance_gpus
from rlsize.loop.pools import LOOPS
from rlsize.loop.resolve import resolve, setting_of
from rlsize.loop.sync import transport, wire_dtype
from rlsize.loop.trainer import train_question
from rlsize.loop.workload import hits, lengths, samples
from rlsize.shell.beliefs import rollout_layout, trainer_layout

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlsize.estimates.calibrating import Predict
    from rlsize.estimates.step_assembly import Loop
    from rlsize.estimates.step_prediction import StepQuestion
    from rlsize.estimates.train_prediction import TrainQuestion
    from rlsize.facts.gpu import Gpu
    from rlsize.facts.model import Model
    from rlsize.shell.inputs import Inputs


OTHER: Mapping[Loop, Loop] = MappingProxyType(
    {"colocated": "async", "synchronous": "async", "one-step-off": "synchronous", "async": "synchronous"}
)
"""The loop that tells most beside one: in turn where phases overlap, overlapping where they take turns."""

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
    concurrency: float = stage_predictions.ALL_THAT_FIT
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
    silent, said = Gathered(), inputs.said("rollout.concurrency")
    found.concurrency = float(said) if said else stage_predictions.ALL_THAT_FIT
    found.step = silent.tried("step", lambda: loop_of(inputs.apart()))
    step = found.step
    found.rollout = silent.tried("rollout", lambda: rollout_of(inputs.apart(), step))
    found.train = silent.tried("train", lambda: train_of(inputs.apart())) if step is None else step.train
    found.sync = silent.tried("sync", lambda: sync_of(inputs.apart()))


def loop_of(inputs: Inputs) -> StepQuestion:
    """
    The loop that every command asks, in bare numbers.

    Raises:
        InputError: What is missing for a prediction.
        Refused: It cannot run so.
    """
    loop = resolve(inputs)
    if loop.place is None or loop.stages is None:
        raise Refused(loop.refused or "no model is named, so nothing is predicted")
    place = loop.place
    way = Way(loop=place.loop, rollout_gpus=float(place.rollout_gpus), trainer_gpus=float(place.trainer_gpus))
    question = loop.stages.plan.bare.on(way)
    return replace(question, engines=dict.fromkeys((True, False), question.engine))  # of this instance in other modes


def other_mode(question: StepQuestion) -> StepQuestion:
    """The same work on the same GPUs in another mode."""
    way, size = question.way, question.engine.numbers.gpus
    other = replace(way, loop=OTHER[way.loop])
    if way.shared:
        other = replace(other, rollout_gpus=size * max(1.0, float(way.rollout_gpus) // 2 // size))
    return replace(question, way=other)


def profiles_of(inputs: Inputs, side: str) -> tuple[Model, Gpu]:
    """
    The model and the GPU of a side.

    Raises:
        InputError: One is missing or unknown.
    """
    model, gpu = inputs.model(), inputs.gpu(side)
    if model is None and not inputs.faults:
        inputs.fault("the model is missing", "--model", "name a profile or a config.json in the scenario")
    if gpu is None and not inputs.faults:
        inputs.fault("the gpu is missing", "--gpu", "name a profile in the scenario, such as h100-sxm")
    return inputs.settled(model), inputs.settled(gpu)


def rollout_of(inputs: Inputs, loop: StepQuestion | None = None) -> RolloutPlan:
    """
    One instance and its load.

    Args:
        inputs: What was said.
        loop: The loop, whose instance it is where nobody says its size.

    Raises:
        InputError: What is missing for a prediction.
    """
    model, gpu = profiles_of(inputs, "rollout")
    found = inputs.settled(instance(inputs, model, gpu, shared=_shared(inputs)))
    length = lengths(inputs, model)
    inputs.need(length.response, "give the mean response length")
    if not found.stated and loop is None:
        inputs.fault("the size of an instance is not known", "--rollout-tensor-parallel", "say how many GPUs it has")
    inputs.settle()
    asked = found.question if found.stated or loop is None else loop.engine.question
    one = Figure(key="instances", value=1, provenance="default", source="one instance")
    return RolloutPlan(
        question=asked,
        prompt=length.prompt.number,
        response=length.response.number,
        response_cv=length.cv.number,
        longest=length.cap.number,
        hits=hits(inputs, asked.engine, length.prompt, one).number,
    )


def _shared(inputs: Inputs) -> bool:
    return inputs.apart().choose("mode", LOOPS, default="async") == "colocated"


def train_of(inputs: Inputs) -> TrainQuestion:
    """
    The train step, in bare numbers.

    Raises:
        InputError: What is missing for a prediction, or why there can be no such trainer.
    """
    model, gpu = profiles_of(inputs, "trainer")
    own, total = inputs.ask("trainer_gpus"), inputs.ask("gpus")
    pool = own if own.known or not _shared(inputs) else replace(total, key="trainer_gpus")
    length, many = lengths(inputs, model), samples(inputs)
    inputs.need(length.response, "give the mean response length")
    inputs.need(many, "give prompts and group")
    return inputs.settled(train_question(inputs, model, gpu, length, many, pool)).bare()


def sync_of(inputs: Inputs) -> SyncTimeQuestion:
    """
    The weight sync; between two nodes where nobody says how many GPUs there are.

    Raises:
        InputError: What is missing for a prediction.
    """
    model, gpu = profiles_of(inputs, "trainer")
    way, wire, size = transport(inputs, shared=_shared(inputs)), wire_dtype(inputs), instance_gpus(inputs)
    total, trainer, rollout = (inputs.ask(key) for key in ("gpus", "trainer_gpus", "rollout_gpus"))
    inputs.settle()
    node = float(gpu.specification.gpus_per_node.value)
    trains = trainer.number if trainer.known else total.number if total.known else node
    rest = matching.remaining_gpus(gpus=total.number, rollout_gpus=trains) if total.known else 0.0
    generates = rollout.number if rollout.known else rest if rest > 0 else trains
    generates = trains if TRANSPORTS[way].colocated else generates
    return SyncTimeQuestion(
        model=model,
        gpu=gpu,
        transport=way,
        dtype=wire,
        trainer_gpus=trains,
        rollout_gpus=generates,
        instance_gpus=min(size.number if size.known else 1.0, generates),
    )


def rollout_setting(plan: RolloutPlan) -> CalibrationSetting:
    """What an instance is, as calibrations name it."""
    asked = plan.question
    return CalibrationSetting(
        model=asked.model.name,
        gpu=asked.gpu.name,
        engine=asked.engine,
        rollout_layout=rollout_layout(asked.layout.tensor, asked.layout.pipeline, asked.layout.data),
    )


def train_setting(question: TrainQuestion) -> CalibrationSetting:
    """What a trainer is, as calibrations name it."""
    return CalibrationSetting(
        model=question.model.name,
        gpu=question.gpu.name,
        trainer_layout=trainer_layout(question.tensor, question.pipeline, question.context, question.expert),
    )


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
        noise=stage_predictions.TRAIN_STAGES[0].noise,
        predict=predict,
        stages=stage_predictions.TRAIN_STAGES,
        setting=train_setting(question),
        series=series,
        place=float(question.gpus),
        rising=False,
    )


def of_flags(inputs: Inputs, found: Gathered, rates: list[tuple[float, Figure]], times: Mapping[str, Figure]) -> None:
    """
    Points of what flags say about the scenario.

    Args:
        inputs: Scenario and profiles.
        found: Takes the points; has the scenario's plans.
        rates: Concurrency and rate of an instance.
        times: Seconds by phase: step, generation, train, sync.
    """
    if rates:
        plan = found.tried("--rate", lambda: found.rollout or rollout_of(inputs.apart()))
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
    question = found.step or loop_of(inputs.apart())
    field, what = PHASES[phase]
    return Point(
        what=f"{what}, {question.way.loop}",
        source=figure.source,
        unit="s",
        measured=figure.number,
        scatter=_said_scatter(figure),
        noise=stage_predictions.STEP_STAGES[0].noise,
        predict=stage_predictions.phase_seconds(question, field),
        stages=stage_predictions.STEP_STAGES,
        setting=setting_of(question.engine.question, question.train),
    )


def _train(inputs: Inputs, figure: Figure) -> Point:
    question = train_of(inputs.apart())
    return train_point(
        figure.source, question, (figure.number, _said_scatter(figure)), stage_predictions.train_seconds(question)
    )


def _sync(inputs: Inputs, sync: Figure) -> Point:
    asked = sync_of(inputs.apart())
    return Point(
        what=f"{asked.transport} weight sync",
        source=sync.source,
        unit="s",
        measured=sync.number,
        scatter=_said_scatter(sync),
        noise=stage_predictions.SYNC_STAGES[0].noise,
        predict=stage_predictions.sync_seconds(asked),
        stages=stage_predictions.SYNC_STAGES,
        setting=CalibrationSetting(model=asked.model.name, gpu=asked.gpu.name),
    )


def _flag_rate(plan: RolloutPlan, concurrency: float, rate: Figure) -> Point:
    return Point(
        what=f"rate with {concurrency:g} in flight",
        source="--rate",
        unit="token/s",
        measured=rate.number,
        scatter=_said_scatter(rate),
        noise=stage_predictions.ROLLOUT_STAGES[0].noise,
        predict=plan.rate(concurrency),
        stages=stage_predictions.ROLLOUT_STAGES,
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
