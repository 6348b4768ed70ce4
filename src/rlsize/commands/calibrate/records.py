"""Records of runs as points of a calibration, in the form that `rlsize validate` grades."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from rlsize.commands.calibrate.sources import PHASES
from rlsize.errors import Fault, InputError
from rlsize.estimates.belief import prior
from rlsize.estimates.calibrating import Point
from rlsize.estimates.recorded import registry, rl_step
from rlsize.estimates.stage_predictions import RolloutPlan
from rlsize.facts.calibration import CalibrationSetting
from rlsize.facts.records.engine import EngineRecord
from rlsize.facts.records.record import Refused
from rlsize.facts.records.rl_step import StepRecord
from rlsize.facts.records.train import TrainRecord
from rlsize.quantities.workload import RESPONSE_CV
from rlsize.readers.records.listing import profiles_of, read_records
from rlsize.shell.beliefs import rollout_layout, trainer_layout
from rlsize.verdicts.predictions import asked, positive

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rlsize.commands.calibrate.sources import Gathered
    from rlsize.estimates.recorded.named import Profiles
    from rlsize.estimates.recorded.registry import Predictor
    from rlsize.facts.records.record import Layout, Record
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
        _agree(predictor, records, path)
        for record in records:
            profiles = found.tried(record.id, partial(look_up, record))
            if profiles is not None:
                _plan(found, record, profiles)
                found.points += [one for one in _points(predictor, record, profiles, path) if _predictable(found, one)]


def _plan(found: Gathered, record: Record, profiles: Profiles) -> None:
    """What may be planned is what ran, and what of it was measured need not be measured next."""
    if not isinstance(record, StepRecord):
        return
    question = found.tried(record.id, lambda: rl_step.question(record, profiles))
    if question is not None:
        found.step = found.step or question
        found.train = found.train or question.train
        found.rollout = found.rollout or RolloutPlan(
            question=question.engine.question,
            prompt=record.prompt_tokens,
            response=record.response_tokens,
            response_cv=RESPONSE_CV,
            longest=question.max_tokens,
        )
        found.seen |= {f"{PHASES[phase][1]}, {question.way.loop}" for name, phase in _PHASES if name in record.measured}


def _agree(predictor: Predictor, records: Sequence[Record], path: str) -> None:
    for place, reason in registry.contradictions(predictor, records).items():
        what = f"{records[place].id} contradicts its neighbours: {reason}"
        raise InputError(Fault(what, path, "measure it again, or leave it out"))


def _points(predictor: Predictor, record: Record, profiles: Profiles, path: str) -> list[Point]:
    """The measured fields that a calibration of its class uses."""

    def predict(name: str) -> Callable[[Mapping[str, Any]], Any]:
        return lambda values: asked(predictor, record, profiles, values)[name]

    return [
        Point(
            what=f"{record.id}: {name}",
            source=path,
            unit=next((unit for part, unit in _UNITS if part in name), ""),
            measured=float(record.measured[name]),
            scatter=0.0,  # the noise of a class holds it
            noise=predictor.noise(record),
            predict=predict(name),
            stages=predictor.STAGES,
            setting=_setting(record),
        )
        for name in _fields(predictor, record)
        if positive(record.measured.get(name))
    ]


def _fields(predictor: Predictor, record: Record) -> tuple[str, ...]:
    """The measured fields to use: of a loop the step and its phases, whose rates say the same again."""
    times = tuple(name for name in record.measured if name.endswith("_s") and isinstance(record, StepRecord))
    return tuple(name for name in times if "tokens" not in name) or registry.calibrates_on(predictor, record)


def _setting(record: Any) -> CalibrationSetting:
    """What a record ran: engines have a layout, trainers too, loops have both."""
    setting = CalibrationSetting(model=record.model, gpu=record.gpu or None)
    if isinstance(record, EngineRecord):
        return replace(setting, engine=record.stack, rollout_layout=_instance(record.layout))
    if isinstance(record, TrainRecord):
        return replace(setting, trainer_layout=_trainer(record.layout))
    if isinstance(record, StepRecord):
        own = {"rollout_layout": _instance(record.rollout), "trainer_layout": _trainer(record.trainer)}
        return replace(setting, engine=record.engine, **own)
    return setting


def _instance(spread: Layout) -> str:
    return rollout_layout(spread.tensor, spread.pipeline, spread.data)


def _trainer(spread: Layout) -> str:
    return trainer_layout(spread.tensor, spread.pipeline, spread.context, spread.expert)


def _predictable(found: Gathered, point: Point) -> bool:
    try:
        point.predict(prior(*point.stages).central())
    except Refused as refusal:
        found.unused.append((point.what, str(refusal)))
        return False
    return True
