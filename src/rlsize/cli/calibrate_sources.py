"""What `rlsize calibrate` was given, as points: rates files, records of runs, and what flags say of a scenario."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from rlsize.cli.plans import Said, rollout_plan, rollout_setting, sync_plan, sync_setting, train_plan, train_setting
from rlsize.errors import Fault, InputError
from rlsize.estimates import planned
from rlsize.estimates.calibrating import SCATTER, Point
from rlsize.estimates.recorded import registry
from rlsize.facts.calibration import CalibrationSetting
from rlsize.facts.records.base import Refused
from rlsize.readers.records.names import gpu_named, model_named

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlsize.cli.inputs import Inputs
    from rlsize.estimates.planned import RolloutPlan
    from rlsize.estimates.sync_prediction import SyncTimeQuestion
    from rlsize.estimates.train_prediction import TrainQuestion
    from rlsize.facts.figure import Figure
    from rlsize.facts.measured import Scatter
    from rlsize.facts.rates import Rates

_RECOMPUTED = ("none", "selective", "full")
_UNITS = {"_s": "s", "_ms": "ms", "_pct": "%", "_gb": "GB", "_gib": "GiB"}  # of records, by the end of a field's name


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
    said = _conditions(inputs, rates)
    levels = rates.rollout.levels if rates.rollout is not None else []
    if levels or rates.instance_tokens_per_second is not None:
        plan = found.tried(f"rollout rates of {name}", lambda: rollout_plan(inputs.apart(), said))
        if plan is not None:
            found.rollout = found.rollout or plan
            found.tried(f"rollout rates of {name}", lambda: found.points.extend(_levels(plan, name, rates)))
    if rates.train is not None:
        question = found.tried(f"train step of {name}", lambda: _trained(inputs, said, rates))
        if question is not None:
            found.train = found.train or question
            found.points.append(
                _train_point(name, question, rates.train.train_seconds, _scatter(rates.train.scatter))
            )
    if rates.sync is not None and rates.sync.methods:
        _sync_point(found, name, rates, bandwidth)


def _conditions(inputs: Inputs, rates: Rates) -> Said:
    """What a measurement says about itself."""
    seen = rates.conditions
    model = _named(inputs, model_named, seen.model)
    gpu = _named(inputs, gpu_named, rates.machine.gpus[0] if rates.machine and rates.machine.gpus else None)
    if rates.machine is not None and not rates.machine.gpus:
        gpu = "none: it ran on a CPU"
    return Said(
        model=model,
        gpu=gpu,
        numbers={
            "prompt_tokens": seen.mean_prompt_tokens,
            "response_tokens": seen.mean_response_tokens,
            "response_cv": seen.response_cv,
            "max_response_tokens": seen.max_response_tokens,
            "prefix_cache_hit_fraction": seen.prefix_cache_hit_fraction,
            "group_size": seen.group_size,
            "rollout_tensor_parallel": seen.tensor_parallel,
            "gpus_per_instance": rates.gpus_per_instance,
        },
        words={"dtype": seen.dtype, "kv_dtype": seen.kv_dtype, "engine": rates.source.engine},
    )


def _named(inputs: Inputs, find: Any, text: str | None) -> str | None:  # noqa: ANN401 (of models or of GPUs)
    """The profile behind a name that an engine or a driver uses; the scenario's where there is none."""
    if text is None:
        return None
    try:
        name: str = find(text, inputs.catalogue)[0]
    except Refused:
        return None
    return name


def _levels(plan: RolloutPlan, name: str, rates: Rates) -> list[Point]:
    stage = planned.ROLLOUT_STAGES[0]

    def point(what: str, rate: float, scatter: float, concurrency: float) -> Point:
        return Point(
            what=what,
            source=name,
            unit="token/s",
            measured=rate,
            scatter=scatter,
            noise=stage.noise,
            predict=plan.rate(concurrency),
            stages=planned.ROLLOUT_STAGES,
            setting=rollout_setting(plan),
            series=f"{name}: rate of an instance",
            place=concurrency,
        )

    levels = rates.rollout.levels if rates.rollout is not None else []
    found = [
        point(f"rate at {one.concurrency} in flight", one.tokens_per_second, _scatter(one.scatter), one.concurrency)
        for one in levels
        if one.tokens_per_second > 0
    ]
    whole = rates.instance_tokens_per_second
    if not levels and whole is not None and not whole.lower_bound:
        error = whole.standard_error or 0.0
        found.append(point("rate of an instance", whole.mean, max(SCATTER, error / whole.mean), planned.ALL_THAT_FIT))
    return found


def _scatter(scatter: Scatter | None) -> float:
    """Standard error of a mean over equal parts, at least that of a run against another."""
    return max(SCATTER, scatter.cv / max(1, scatter.parts) ** 0.5) if scatter is not None else SCATTER


def _trained(inputs: Inputs, said: Said, rates: Rates) -> TrainQuestion:
    """The step that was measured: a plain sharded trainer without a reference model."""
    from rlsize.cli.plans import profiles_of
    from rlsize.equations import train_step
    from rlsize.estimates.train_prediction import TrainQuestion

    measured = rates.train
    if measured is None:
        raise Refused("holds no train step")
    model, gpu = profiles_of(inputs.apart(), said)
    seen = rates.conditions
    lengths = {"prompt_tokens": seen.mean_prompt_tokens or 0.0, "response_tokens": seen.mean_response_tokens or 1.0}
    recompute = measured.setting.get("recompute", "full")
    return TrainQuestion(
        model=model,
        gpu=gpu,
        gpus=float(measured.gpus),
        sequences=float(measured.step_samples),
        tokens=measured.step_total_tokens / measured.step_samples,
        tokens_cv=train_step.trained_sequence_cv(response_cv=seen.response_cv or 0.0, **lengths),
        micro_batch_tokens=float(measured.micro_batch_tokens),
        recompute=recompute if recompute in _RECOMPUTED else "full",
        passes=("old_logprob",) if any(phase.name == "logprob" for phase in measured.phases) else (),
    )


def _train_point(name: str, question: TrainQuestion, seconds: float, scatter: float) -> Point:
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


def _sync_point(found: Gathered, name: str, rates: Rates, bandwidth: Figure) -> None:
    """The quickest way that was measured, beside the bytes over the link."""
    from rlsize.equations import weight_sync
    from rlsize.estimates.working import numbers

    measured = rates.sync
    if measured is None:
        return
    if not bandwidth.known:
        found.unused.append((f"weight sync of {name}", "needs --link or --bandwidth: which link it went over"))
        return
    best = min(measured.methods, key=lambda method: method.seconds)

    def predict(values: Mapping[str, Any]) -> Any:  # noqa: ANN401 (a number or an array, as the values are)
        reached = numbers(
            "expected_bandwidth",
            weight_sync.achieved_bandwidth,
            bandwidth=bandwidth.number,
            achievable_fraction=values["sync_link_share"],
        )
        return numbers(
            "sync_seconds", weight_sync.transfer_time, sync_bytes=measured.bytes, bandwidth=reached, latency=0.0
        )

    found.points.append(
        Point(
            what=f"{best.method} weight sync",
            source=name,
            unit="s",
            measured=best.seconds,
            scatter=_scatter(best.scatter),
            noise=planned.SYNC_STAGES[0].noise,
            predict=predict,
            stages=planned.SYNC_STAGES,
            setting=CalibrationSetting(model=rates.conditions.model),
        )
    )


def of_records(inputs: Inputs, found: Gathered, path: str) -> None:
    """
    Points of a file of records.

    Raises:
        InputError: A record contradicts its neighbours.
    """
    from rlsize.readers.records.listing import profiles_of, read_records
    from rlsize.verdicts.predictions import asked, positive

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
            raise InputError(Fault(f"{records[place].id} contradicts its neighbours: {reason}", path, "measure it again"))
        for record in records:

            def points(record: Any = record, predictor: Any = predictor) -> list[Point]:  # noqa: ANN401 (each class has a record of its own)
                profiles = look_up(record)
                names = [n for n in registry.calibrates_on(predictor, record) if positive(record.measured.get(n))]

                def predict(name: str) -> Callable[[Mapping[str, Any]], Any]:
                    return lambda values: asked(predictor, record, profiles, values)[name]

                return [
                    Point(
                        what=f"{record.id}: {name}",
                        source=path,
                        unit=next((unit for end, unit in _UNITS.items() if name.endswith(end)), ""),
                        measured=float(record.measured[name]),
                        scatter=0.0,
                        noise=predictor.noise(record),
                        predict=predict(name),
                        stages=predictor.STAGES,
                        setting=CalibrationSetting(model=record.model, gpu=record.gpu or None),
                    )
                    for name in names
                ]

            made = found.tried(record.id, points)
            found.points += [point for point in made or [] if _predictable(found, point)]


def _predictable(found: Gathered, point: Point) -> bool:
    from rlsize.estimates.belief import prior

    try:
        point.predict(prior(*point.stages).central())
    except Refused as refusal:
        found.unused.append((point.what, str(refusal)))
        return False
    return True


def of_flags(
    inputs: Inputs, found: Gathered, rates: list[tuple[float, Figure]], train: Figure, sync: Figure
) -> None:
    """
    Points of what flags say about the scenario.

    Args:
        inputs: Flags, scenario and profiles.
        found: Takes the points; its plans are those of the scenario.
        rates: Concurrency and rate of an instance.
        train: Seconds of a train step.
        sync: Seconds of a weight sync.
    """
    if rates:
        plan = found.tried("--rate", lambda: rollout_plan(inputs.apart(), Said()))
        for concurrency, rate in rates if plan is not None else []:
            made = found.tried("--rate", lambda c=concurrency, r=rate: _flag_rate(plan, c, r))  # type: ignore[misc]  # bound now
            found.points += [made] if made is not None else []
    if train.known:
        question = found.tried("--train-seconds", lambda: train_plan(inputs.apart(), Said()))
        if question is not None:
            found.points.append(_train_point(train.source, question, train.number, _said_scatter(train)))
    if sync.known:
        asked = found.tried("--sync-seconds", lambda: sync_plan(inputs.apart(), Said()))
        if asked is not None:
            found.points.append(
                Point(
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
