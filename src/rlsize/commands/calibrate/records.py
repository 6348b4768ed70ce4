"""Records of runs, and measured rates, as points of a calibration."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from rlsize.commands.calibrate.points import (
    PHASES,
    SYNC_STAGES,
    Gathered,
    LoadedInstance,
    PlacedLoop,
    bounded,
    rate_of,
    rollout_of,
    train_point,
)
from rlsize.equations import train_step, weight_sync
from rlsize.equations.long_tail import assumed_cap
from rlsize.errors import Fault, InputError, Refused
from rlsize.estimates.belief import prior
from rlsize.estimates.calibrating import SCATTER, Measurable, Point
from rlsize.estimates.figures import numbers
from rlsize.estimates.generation import StepBatch
from rlsize.estimates.recorded import registry, rl_step
from rlsize.estimates.simulated_engine import ALL_THAT_FIT
from rlsize.estimates.train_prediction import TrainQuestion
from rlsize.facts.calibration import CalibrationSetting
from rlsize.facts.figure import Figure, absent
from rlsize.facts.inference_engines import inference_engine
from rlsize.facts.records import EngineRecord, StepRecord, TrainRecord
from rlsize.loop.models import model_and_gpu
from rlsize.planner.choices import fleet_of, trainer_of
from rlsize.planner.options import LoopProblem, Offer, Placement
from rlsize.planner.outlook import outlook_of
from rlsize.planner.rounding import rounded_down
from rlsize.quantities.table import QUANTITIES
from rlsize.quantities.workload import MOST_MEAN_LENGTHS, RESPONSE_CV
from rlsize.readers.names import gpu_named, model_named
from rlsize.readers.records.listing import profiles_of, read_records
from rlsize.shell.beliefs import rollout_layout, trainer_layout
from rlsize.verdicts.predictions import asked, positive

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.estimates.recorded.registry import Predictor, Profiles
    from rlsize.estimates.step_prediction import StepQuestion
    from rlsize.facts.figure import Value
    from rlsize.facts.measured import Scatter, SyncMeasured, TrainMeasured
    from rlsize.facts.rates import Rates
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

_RECOMPUTED = ("none", "selective", "full")


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


def of_rates(inputs: Inputs, found: Gathered, name: str, rates: Rates, bandwidth: Figure) -> None:
    """
    Points of a rates file.

    Args:
        inputs: Flags, scenario and profiles.
        found: Takes the points.
        name: The file.
        rates: What it says.
        bandwidth: Of the link that its weight sync went over.
    """
    if rates.machine is not None and not rates.machine.gpus and (rates.rollout or rates.train):
        found.unused.append((f"rollout and train step of {name}", "it ran on a CPU, and GPUs are predicted"))
        rates = replace(rates, rollout=None, instance_tokens_per_second=None, train=None)
    said = inputs.instead(**_conditions(inputs, name, rates))
    if (rates.rollout is not None and rates.rollout.levels) or rates.instance_tokens_per_second is not None:
        one = found.tried(f"rollout rates of {name}", lambda: rollout_of(said.apart()))
        if one is not None:
            found.rollout = found.rollout or one
            found.tried(f"rollout rates of {name}", lambda: found.points.extend(_levels(one, name, rates)))
    if rates.train is not None:
        measured = rates.train
        question = found.tried(f"train step of {name}", lambda: _trained(said.apart(), rates, measured))
        if question is not None:
            found.train = found.train or question
            found.points.append(train_point(name, question, measured.train_seconds, _scatter(measured.scatter)))
    if rates.sync is not None and rates.sync.methods:
        _sync_point(found, name, rates.sync, rates.conditions.model, bandwidth)


def _conditions(inputs: Inputs, name: str, rates: Rates) -> dict[str, Value]:
    """What a measurement says about itself, by key; it goes before the scenario."""
    seen = rates.conditions
    gpus = rates.machine.gpus if rates.machine is not None else []
    size = rates.gpus_per_instance
    cap, mean, hits = seen.max_response_tokens, seen.mean_response_tokens, seen.prefix_cache_hit_fraction
    most = QUANTITIES["hit_fraction"].quantity.most or 1.0
    found = {
        "model": _named(inputs, name, ("model", model_named), seen.model),
        "gpu": _named(inputs, name, ("cluster.gpu", gpu_named), gpus[0] if gpus else None),
        "prompt_tokens": seen.mean_prompt_tokens,
        "response_tokens": mean,
        "response_cv": seen.response_cv,
        "max_response_tokens": None if cap is None else max(cap, mean or 0.0),
        "hit_fraction": None if hits is None else min(hits, most),
        "group_size": seen.group_size,
        "rollout_tensor_parallel": seen.tensor_parallel or (round(size) if size and size >= 1 else None),
        "rollout_dtype": _dtype("rollout_dtype", seen.dtype),
        "kv_dtype": _dtype("kv_dtype", seen.kv_dtype),
        "engine": inference_engine(rates.source.engine).name if rates.source.engine else None,
    }
    return {key: value for key, value in found.items() if value is not None}


def _dtype(key: str, text: str | None) -> str | None:
    """A number type by the name that engines give it; None, for the scenario's, where none is said."""
    name = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}.get(text or "", text)
    return name if name in QUANTITIES[key].words else None


def _named(inputs: Inputs, file: str, kind: tuple[str, Any], text: str | None) -> str | None:
    """The profile behind a name that an engine or a driver uses; None, for the scenario's, where there is none."""
    key, find = kind
    if text is None:
        return None
    try:
        name: str = find(text, inputs.catalogue)[0]
    except Refused:
        planned_name = inputs.said(key)
        if isinstance(planned_name, str):
            inputs.warnings.append(f"{file}: no profile is called {text[:60]!r}; it is taken for {planned_name}")
        return None
    return name


def _levels(one: LoadedInstance, name: str, rates: Rates) -> list[Point]:
    levels = rates.rollout.levels if rates.rollout is not None else []
    seen = [
        (float(level.concurrency), level.tokens_per_second, _scatter(level.scatter))
        for level in levels
        if level.tokens_per_second > 0
    ]
    whole = rates.instance_tokens_per_second
    if not levels and whole is not None and not whole.lower_bound:
        seen = [(ALL_THAT_FIT, whole.mean, bounded((whole.standard_error or 0.0) / whole.mean))]
    series = f"{name}: rate of an instance"
    return [
        Point(of=rate_of(one, load), source=name, measured=rate, scatter=scatter, series=series, place=load)
        for load, rate, scatter in seen
    ]


def _trained(said: Inputs, rates: Rates, measured: TrainMeasured) -> TrainQuestion:
    """The step that was measured: a plain sharded trainer without a reference model."""
    model, gpu = model_and_gpu(said, "trainer")
    seen = rates.conditions
    lengths = {"prompt_tokens": seen.mean_prompt_tokens or 0.0, "response_tokens": seen.mean_response_tokens or 1.0}
    recompute = measured.setting.get("recompute", "full")
    return TrainQuestion(
        model=said.settled(model),
        gpu=said.settled(gpu),
        gpus=float(measured.gpus),
        sequences=float(measured.step_samples),
        tokens=measured.step_total_tokens / measured.step_samples,
        tokens_cv=train_step.trained_sequence_cv(response_cv=seen.response_cv or 0.0, **lengths),
        micro_batch_tokens=float(measured.micro_batch_tokens),
        recompute=recompute if recompute in _RECOMPUTED else "full",
        passes=("old_logprob",) if any(phase.name == "logprob" for phase in measured.phases) else (),
    )


def _sync_point(found: Gathered, name: str, measured: SyncMeasured, model: str | None, bandwidth: Figure) -> None:
    """The quickest way that was measured, beside the bytes over the link."""
    if not bandwidth.known:
        found.unused.append((f"weight sync of {name}", "needs --link or --bandwidth: which link it went over"))
        return
    best = min(measured.methods, key=lambda method: method.seconds)

    def predict(values: Mapping[str, Any]) -> Any:
        reached = numbers(
            "expected_bandwidth",
            weight_sync.achieved_bandwidth,
            bandwidth=bandwidth.number,
            achievable_fraction=values["sync_link_share"],
        )
        return numbers(
            "sync_seconds", weight_sync.transfer_time, sync_bytes=measured.bytes, bandwidth=reached, latency=0.0
        )

    what = Measurable(
        what=f"{best.method} weight sync",
        predict=predict,
        stages=SYNC_STAGES,
        noise=SYNC_STAGES[0].noise,
        setting=CalibrationSetting(model=model),
    )
    found.points.append(Point(of=what, source=name, measured=best.seconds, scatter=_scatter(best.scatter)))


def _scatter(scatter: Scatter | None) -> float:
    """Standard error of a mean over equal parts."""
    return SCATTER if scatter is None else bounded(scatter.cv / max(1, scatter.parts) ** 0.5)
