"""What `rlsize calibrate` gathers: points, what cannot be used, and the plans of a scenario; points of flags."""

from __future__ import annotations

from dataclasses import field, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from rlsize.equations import kernel_time
from rlsize.errors import InputError, Refused
from rlsize.estimates import rollout_outlook, step_prediction
from rlsize.estimates.belief import prior
from rlsize.estimates.calibrating import SCATTER, Measurable, Point
from rlsize.estimates.constants_step import STAGE as STEP
from rlsize.estimates.constants_sync import STAGE as SYNC
from rlsize.estimates.constants_train import STAGE as TRAIN
from rlsize.estimates.engine_memory import check_room
from rlsize.estimates.figures import numbers
from rlsize.estimates.generation import StepBatch, lengths_of
from rlsize.estimates.rollout_prediction import engine, steady
from rlsize.estimates.simulated_engine import ALL_THAT_FIT
from rlsize.estimates.step_prediction import sync_in_loop
from rlsize.estimates.sync_prediction import SyncTimeQuestion
from rlsize.estimates.train_prediction import train_step
from rlsize.facts.calibration import CalibrationSetting
from rlsize.facts.figure import Figure, absent
from rlsize.frozen import dataclass
from rlsize.loop.instance import instance
from rlsize.loop.lengths import hits, lengths
from rlsize.loop.models import model_and_gpu
from rlsize.loop.pools import LOOPS
from rlsize.loop.resolve import resolve, setting_of
from rlsize.loop.sync import sync_by_itself
from rlsize.loop.trainer import trainer_by_itself
from rlsize.planner.choices import moved
from rlsize.planner.evaluation import bare_trainer, worked
from rlsize.planner.step_parts import ready_engine
from rlsize.shell.beliefs import rollout_layout, trainer_layout

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rlsize.equations._ops import Real
    from rlsize.estimates.engine_work import EngineQuestion
    from rlsize.estimates.step_assembly import Loop
    from rlsize.estimates.train_prediction import TrainQuestion
    from rlsize.planner.options import Placement
    from rlsize.planner.outlook import Terms
    from rlsize.shell.inputs import Inputs

SYNC_STAGES = (SYNC, STEP)
_TRAIN_STAGES = (TRAIN, STEP)
_OTHER: Mapping[Loop, Loop] = MappingProxyType(
    {"colocated": "async", "synchronous": "async", "one-step-off": "synchronous", "async": "synchronous"}
)
"""The loop that tells most beside one: in turn where phases overlap, overlapping where they take turns."""

_MOST_SCATTER = 3.0  # of a logarithm: what is known to a factor of twenty says nothing
PHASES = MappingProxyType(
    {
        "step": ("step_seconds", "step"),
        "generation": ("generation_seconds", "generation of a step"),
        "train": ("train_seconds", "training of a step"),
        "sync": ("sync_seconds", "weight sync of a step"),
    }
)
"""Keys of a loop's answer, and what they are, by what flags say."""


class LoadedInstance(NamedTuple):
    """One instance and the samples that it works on, whose lengths count and not how many they are."""

    question: EngineQuestion
    batch: StepBatch


@dataclass(frozen=True, slots=True)
class PlacedLoop:
    """A loop on its GPUs, and the terms of its work in central numbers; nothing of it counts as measured."""

    terms: Terms
    place: Placement

    @property
    def engine(self) -> EngineQuestion:
        """Its instance."""
        return ready_engine(self.place.fleet, shared=self.place.shared).question

    @property
    def train(self) -> TrainQuestion:
        """
        Its trainer, in bare numbers.

        Raises:
            Refused: The trainer is not known.
        """
        found = bare_trainer(self.place)
        if found is None:
            raise Refused("the trainer is not known")
        return found


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
    rollout: LoadedInstance | None = None
    concurrency: float = ALL_THAT_FIT
    train: TrainQuestion | None = None
    sync: SyncTimeQuestion | None = None
    step: PlacedLoop | None = None
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

    def plan(self, inputs: Inputs) -> None:
        """Plans of a scenario; what it does not say enough for stays None."""
        silent, said = Gathered(), inputs.said("rollout.concurrency")
        self.concurrency = float(said) if said else ALL_THAT_FIT
        step = self.step = silent.tried("step", lambda: loop_of(inputs.apart()))
        self.rollout = silent.tried("rollout", lambda: rollout_of(inputs.apart(), step))
        self.train = silent.tried("train", lambda: _train(inputs.apart()) if step is None else step.train)
        self.sync = silent.tried("sync", lambda: sync_by_itself(inputs.apart()))

    def add_flags(self, inputs: Inputs, rates: Sequence[tuple[float, Figure]], times: Mapping[str, Figure]) -> None:
        """
        Points of what flags say about the scenario.

        Args:
            inputs: Scenario and profiles.
            rates: Concurrency and rate of an instance.
            times: Seconds by phase: step, generation, train, sync.
        """
        if rates:
            one = self.tried("--rate", lambda: self.rollout or rollout_of(inputs.apart()))
            for concurrency, rate in rates if one is not None else ():
                what = self.tried("--rate", partial(rate_of, one, concurrency))
                if what is not None:
                    self.points.append(
                        Point(
                            of=what,
                            source="--rate",
                            measured=rate.number,
                            scatter=bounded(rate.deviation / rate.number),
                            series="--rate",
                            place=concurrency,
                        )
                    )
        for phase, figure in times.items():
            if figure.known:
                made = self.tried(figure.source, partial(self._phase, inputs, phase, figure))
                self.points += [made] if made is not None else []

    def _phase(self, inputs: Inputs, phase: str, figure: Figure) -> Point:
        """
        The step of the scenario's loop, or a phase of it; train and sync by themselves where it has no loop.

        Raises:
            InputError: What is missing for a prediction.
            Refused: The loop cannot run so.
        """
        scatter = bounded(figure.deviation / figure.number)
        if self.step is None and phase == "train":
            return train_point(figure.source, _train(inputs.apart()), figure.number, scatter, in_loop=True)
        if self.step is None and phase == "sync":
            what = sync_of(sync_by_itself(inputs.apart()))
        else:
            what = phase_of(self.step or loop_of(inputs.apart()), phase)
        return Point(of=what, source=figure.source, measured=figure.number, scatter=scatter)


def bounded(scatter: float) -> float:
    """The scatter of a measurement, at least that of a run against another. [1]"""
    return min(max(SCATTER, scatter), _MOST_SCATTER)


def rate_of(one: LoadedInstance, concurrency: float) -> Measurable:
    """
    Response tokens per second of an instance in its steady state.

    Raises:
        Refused: It does not fit, or cannot run so.
    """
    stages = rollout_outlook.STAGES
    asked, length = engine(one.question), lengths_of(numbers, one.batch)
    check_room(asked.question, length.live, prior(*stages).central())
    spread = one.question.layout
    load = "as many in flight as fit" if concurrency == ALL_THAT_FIT else f"{concurrency:g} in flight"
    return Measurable(
        what=f"rate with {load}",
        unit="token/s",
        predict=lambda values: steady(numbers, asked, concurrency, length, values).rate,
        stages=stages,
        noise=stages[0].noise,
        setting=CalibrationSetting(
            model=one.question.model.name,
            gpu=one.question.gpu.name,
            engine=one.question.engine,
            rollout_layout=rollout_layout(spread.tensor, spread.pipeline, spread.data),
        ),
    )


def train_of(question: TrainQuestion, *, in_loop: bool = False) -> Measurable:
    """Busy seconds of a trainer, by itself or in a loop of two pools."""

    def predict(values: Mapping[str, Real]) -> Any:
        seconds = train_step(numbers, question, values).train_seconds
        slowdown = values["step_train"]
        return numbers("train_seconds", kernel_time.slowed, seconds=seconds, slowdown=slowdown) if in_loop else seconds

    return Measurable(
        what=f"train step on {question.gpus:.0f} GPUs",
        predict=predict,
        stages=_TRAIN_STAGES,
        noise=TRAIN.noise,
        setting=CalibrationSetting(
            model=question.model.name,
            gpu=question.gpu.name,
            trainer_layout=trainer_layout(question.tensor, question.pipeline, question.context, question.expert),
        ),
    )


def sync_of(question: SyncTimeQuestion) -> Measurable:
    """Seconds of a weight sync in a loop."""
    return Measurable(
        what=f"{question.transport} weight sync",
        predict=partial(sync_in_loop, numbers, question),
        stages=SYNC_STAGES,
        noise=SYNC.noise,
        setting=CalibrationSetting(model=question.model.name, gpu=question.gpu.name),
    )


def phase_of(loop: PlacedLoop, phase: str) -> Measurable:
    """Seconds of a loop's step, or of a part of it."""
    key, what = PHASES[phase]

    def predict(values: Mapping[str, Real]) -> Any:
        return worked(replace(loop.terms, values=values, central=values), loop.place)[key]

    return Measurable(
        what=f"{what}, {loop.place.loop}",
        predict=predict,
        stages=step_prediction.STAGES,
        noise=STEP.noise,
        setting=setting_of(loop.engine, loop.train),
    )


def train_point(
    source: str, question: TrainQuestion, measured: float, scatter: float, *, in_loop: bool = False
) -> Point:
    """A measured train step; those of the same samples are neighbours."""
    return Point(
        of=train_of(question, in_loop=in_loop),
        source=source,
        measured=measured,
        scatter=scatter,
        series=f"train step of {question.sequences:g} samples of {question.tokens:g} tokens, {question.model.name}",
        place=float(question.gpus),
        rising=False,
    )


def loop_of(inputs: Inputs) -> PlacedLoop:
    """
    The loop that every command asks, with what is known of it left to be predicted.

    Raises:
        InputError: What is missing for a prediction.
        Refused: It cannot run so.
    """
    loop = resolve(inputs)
    if loop.place is None or loop.stages is None:
        raise Refused(loop.refused or "no model is named, so nothing is predicted")
    place, terms = loop.place, loop.outlook.central
    one = ready_engine(place.fleet, shared=place.shared)
    fleet = replace(
        place.fleet,
        rate=absent("instance_tokens_per_second", "--per-instance"),
        engines=dict.fromkeys((True, False), one),  # of this instance in other modes
    )
    bare = replace(
        place, fleet=fleet, trainer=replace(place.trainer, seconds=absent("train_seconds", "--train-seconds"))
    )
    problem = replace(terms.problem, sync_seconds=absent("sync_seconds", "--sync-seconds"))
    return PlacedLoop(replace(terms, problem=problem), moved(bare, place.loop, place.rollout_gpus, place.trainer_gpus))


def other_mode(loop: PlacedLoop) -> PlacedLoop:
    """The same work on the same GPUs in another mode."""
    place = loop.place
    half = max(1.0, place.instances // 2) if place.shared else place.instances
    return replace(loop, place=replace(place, loop=_OTHER[place.loop], instances=half))


def rollout_of(inputs: Inputs, loop: PlacedLoop | None = None) -> LoadedInstance:
    """
    One instance and its load.

    Args:
        inputs: What was said.
        loop: The loop, whose instance it is where nobody says its size.

    Raises:
        InputError: What is missing for a prediction.
    """
    model, gpu = model_and_gpu(inputs, "rollout")
    found = inputs.settled(instance(inputs, model, gpu, shared=_shared(inputs)))
    length = lengths(inputs, model)
    inputs.need(length.response, "give the mean response length")
    if not found.stated and loop is None:
        inputs.fault("the size of an instance is not known", "--rollout-tensor-parallel", "say how many GPUs it has")
    inputs.settle()
    asked = found.question if found.stated or loop is None else loop.engine
    one = Figure(key="instances", value=1, provenance="default", source="one instance")
    batch = StepBatch(
        samples=1.0,
        instances=1.0,
        prompt_tokens=length.prompt.number,
        response_tokens=length.response.number,
        response_cv=length.cv.number,
        max_tokens=length.cap.number,
        hit_ratio=hits(inputs, asked.engine, length.prompt, one).number,
    )
    return LoadedInstance(asked, batch)


def _shared(inputs: Inputs) -> bool:
    return inputs.apart().choose("mode", LOOPS, default="async") == "colocated"


def _train(inputs: Inputs) -> TrainQuestion:
    """
    The train step, in bare numbers.

    Raises:
        InputError: What is missing for a prediction, or why there can be no such trainer.
    """
    own, total = inputs.ask("trainer_gpus"), inputs.ask("gpus")
    pool = own if own.known or not _shared(inputs) else replace(total, key="trainer_gpus")
    return trainer_by_itself(inputs, pool).bare()
