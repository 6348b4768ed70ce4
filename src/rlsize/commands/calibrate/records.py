"""Records of runs as points of a calibration, in the form that `rlsize validate` grades."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from rlsize.commands.calibrate.points import PHASES, LoadedInstance, PlacedLoop
from rlsize.equations.long_tail import assumed_cap
from rlsize.errors import Fault, InputError
from rlsize.estimates.belief import prior
from rlsize.estimates.calibrating import Measurable, Point
from rlsize.estimates.generation import StepBatch
from rlsize.estimates.recorded import registry, rl_step
from rlsize.facts.calibration import CalibrationSetting
from rlsize.facts.figure import Figure, absent
from rlsize.facts.records import EngineRecord, StepRecord, TrainRecord
from rlsize.planner.choices import fleet_of, trainer_of
from rlsize.planner.options import LoopProblem, Offer, Placement
from rlsize.planner.outlook import outlook_of
from rlsize.planner.rounding import rounded_down
from rlsize.quantities.workload import MOST_MEAN_LENGTHS, RESPONSE_CV
from rlsize.readers.records.listing import profiles_of, read_records
from rlsize.shell.beliefs import rollout_layout, trainer_layout
from rlsize.verdicts.predictions import asked, positive

if TYPE_CHECKING:
    from rlsize.commands.calibrate.points import Gathered
    from rlsize.estimates.recorded.registry import Predictor, Profiles
    from rlsize.estimates.step_prediction import StepQuestion
    from rlsize.facts.records import Record
    from rlsize.shell.inputs import Inputs

_UNITS = (  # by what is in a field's name
    ("tok_s", "token/s"),
    ("tokens_per_s", "token/s"),
    ("tokens", "token"),
    ("_pct", "%"),
    ("tflops", "TFLOP/s"),
    ("_ms", "ms"),
    ("_s", "s"),
)
_PHASES = (  # of records, by what flags call them
    ("step_time_s", "step"),
    ("generation_time_s", "generation"),
    ("train_time_s", "train"),
    ("weight_sync_time_s", "sync"),
)


def of_records(inputs: Inputs, found: Gathered, path: str) -> None:
    """
    Points of a file of records.

    Args:
        inputs: Profiles.
        found: Takes the points.
        path: The file.

    Raises:
        InputError: A record contradicts its neighbours.
    """
    listing = read_records([path], inputs.catalogue)
    known, look_up = registry.predictors(), profiles_of(inputs.catalogue)
    found.unused += [(row.id, row.reason) for row in listing.refused]
    for class_name in dict.fromkeys(entry.class_name for entry in listing.records):
        records = [entry.record for entry in listing.records if entry.class_name == class_name]
        if class_name not in known:
            found.unused += [(record.id, "nothing predicts records of its class") for record in records]
            continue
        predictor = known[class_name]
        for place, reason in registry.contradictions(predictor, records).items():
            what = f"{records[place].id} contradicts its neighbours: {reason}"
            raise InputError(Fault(what, path, "measure it again, or leave it out"))
        for record in records:
            profiles = found.tried(record.id, partial(look_up, record))
            if profiles is not None:
                _plan(found, record, profiles)
                points = _points(predictor, record, profiles, path)
                found.points += [one for one in points if found.tried(one.of.what, partial(_central, one)) is not None]


def _central(point: Point) -> float:
    return point.of.central


def _plan(found: Gathered, record: Record, profiles: Profiles) -> None:
    """What may be planned is what ran, and what of it was measured need not be measured next."""
    if not isinstance(record, StepRecord):
        return
    question = found.tried(record.id, lambda: rl_step.question(record, profiles))
    if question is None:
        return
    longest = question.max_tokens or assumed_cap(
        max_context=float(profiles.model.architecture.max_context),
        prompt_tokens=record.prompt_tokens,
        mean_tokens=record.response_tokens,
        mean_lengths=MOST_MEAN_LENGTHS,
    )
    batch = StepBatch(
        samples=1.0,
        instances=1.0,
        prompt_tokens=record.prompt_tokens,
        response_tokens=record.response_tokens,
        response_cv=RESPONSE_CV,
        max_tokens=longest,
    )
    found.step = found.step or _placed(question)
    found.train = found.train or question.train
    found.rollout = found.rollout or LoadedInstance(question.engine.question, batch)
    found.seen |= {f"{PHASES[phase][1]}, {question.loop}" for name, phase in _PHASES if name in record.measured}


def _placed(question: StepQuestion) -> PlacedLoop:
    """A loop that was recorded, as one that is described has it."""

    def said(key: str, value: float | None) -> Figure:
        return absent(key, "") if value is None else Figure(key=key, value=value)

    ready = question.engine
    offer, size = Offer(gpu=ready.question.gpu), float(ready.gpus)
    problem = LoopProblem(
        samples=said("samples_per_step", question.samples),
        group_size=said("group_size", question.group_size),
        prompt_tokens=said("prompt_tokens", question.prompt_tokens),
        response_tokens=said("response_tokens", question.response_tokens),
        response_cv=said("response_cv", question.response_cv),
        max_tokens=said("max_response_tokens", question.max_tokens),
        wire_dtype=question.wire_dtype,
        model=ready.question.model,
    )
    place = Placement(
        loop=question.loop,
        fleet=fleet_of(dict.fromkeys((True, False), ready), size, offer),
        instances=float(rounded_down(question.rollout_gpus / size)),
        trainer=trainer_of(question.train, offer),
        trainer_gpus=float(question.train.gpus),
        max_staleness=question.max_staleness,
        transport=question.transport,
    )
    return PlacedLoop(outlook_of(problem, prior(*rl_step.STAGES)).central, place)


def _points(predictor: Predictor, record: Record, profiles: Profiles, path: str) -> list[Point]:
    """The measured fields that a calibration of its class uses; of a loop the times, whose rates say the same again."""

    def measurable(name: str) -> Measurable:
        return Measurable(
            what=f"{record.id}: {name}",
            unit=next((unit for part, unit in _UNITS if part in name), ""),
            predict=lambda values: asked(predictor, record, profiles, values)[name],
            stages=predictor.STAGES,
            noise=predictor.noise(record),
            setting=_setting(record),
        )

    names: tuple[str, ...] = ()
    if isinstance(record, StepRecord):
        names = tuple(name for name in record.measured if name.endswith("_s") and "tokens" not in name)
    return [  # the noise of a class holds the scatter of its measurements
        Point(of=measurable(name), source=path, measured=float(record.measured[name]), scatter=0.0)
        for name in names or registry.calibrates_on(predictor, record)
        if positive(record.measured.get(name))
    ]


def _setting(record: Any) -> CalibrationSetting:
    """What a record ran: engines have a layout, trainers too, loops have both."""
    setting = CalibrationSetting(model=record.model, gpu=record.gpu or None)
    rollout, trainer = None, None
    if isinstance(record, EngineRecord):
        setting, rollout = replace(setting, engine=record.stack), record.layout
    elif isinstance(record, TrainRecord):
        trainer = record.layout
    elif isinstance(record, StepRecord):
        setting, rollout, trainer = replace(setting, engine=record.engine), record.rollout, record.trainer
    return replace(
        setting,
        rollout_layout=rollout_layout(rollout.tensor, rollout.pipeline, rollout.data) if rollout else None,
        trainer_layout=trainer_layout(trainer.tensor, trainer.pipeline, trainer.context, trainer.expert)
        if trainer
        else None,
    )
