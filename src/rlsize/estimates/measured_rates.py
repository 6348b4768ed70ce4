"""Measurements put together into rates that `fleet` takes: of rollout, train step, weight sync, and a training log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.dataclass import replace
from rlsize.equations.headroom import standard_error
from rlsize.equations.matching import consumption
from rlsize.facts.rates import InstanceRate, MeasuredInstance, RateConditions, Rates, RateSource

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.facts.measured import Machine, RolloutLevel, RolloutMeasured, SyncMeasured, TrainMeasured
    from rlsize.facts.run_log import RunSummary

_COUNTERS: Mapping[str, str] = {"vllm": "vllm:generation_tokens_total", "sglang": "sglang:realtime_tokens_total"}


def measured_rates(
    *,
    measured_at: str,
    conditions: RateConditions,
    machine: Machine,
    rollout: RolloutMeasured | None = None,
    instances: Sequence[MeasuredInstance] = (),
    engine: str | None = None,
    gpus_per_instance: float | None = None,
    train: TrainMeasured | None = None,
    sync: SyncMeasured | None = None,
    doubts: Sequence[str] = (),
    partial: str = "",
    asked_concurrency: int | None = None,
) -> Rates:
    """
    A rates file.

    Args:
        measured_at: When, as an ISO 8601 date and time.
        conditions: What the rates hold for.
        machine: On what and with what it was measured.
        rollout: The rollout's part.
        instances: The instances one by one.
        engine: The inference engine whose counters were read; None for the client's own count.
        gpus_per_instance: GPUs of an instance. [1]
        train: The train step's part.
        sync: The weight sync's part.
        doubts: What the reader must know.
        partial: Why not all was measured.
        asked_concurrency: The highest concurrency that was to be measured. [1]

    Returns:
        Rates of which the instance rate includes no part of headroom: the steady state holds neither filling nor
        tail, and no weights were synced in it.
    """
    top = rollout.levels[-1] if rollout else None
    counter = _COUNTERS.get(engine or "")  # none where the client counted
    return Rates(
        measured_at=measured_at,
        source=RateSource(method="measure", engine=engine, keys={"generation_tokens": counter} if counter else {}),
        instance_tokens_per_second=None if top is None else _instance_rate(top, asked_concurrency),
        includes=["stragglers"] if top is not None and top.instances > 1 else [],
        gpus_per_instance=gpus_per_instance,
        window_seconds=None if top is None else top.window_seconds,
        train_seconds=None if train is None else train.train_seconds,
        consumption_tokens_per_second=(
            None if train is None else float(consumption(train.step_response_tokens, train.train_seconds))
        ),
        conditions=conditions,
        instances=list(instances),
        trainer_gpus=None if train is None else train.gpus,
        rollout=rollout,
        train=train,
        sync=sync,
        machine=machine,
        doubts=list(doubts),
        partial=partial,
    )


def _instance_rate(top: RolloutLevel, asked: int | None) -> InstanceRate:
    short = asked is not None and top.concurrency < asked
    many = f"{top.instances} instances" if top.instances > 1 else "one instance"
    error = None  # of a single instance's mean, from the scatter over the parts of its window [token/s]
    if top.scatter is not None and top.instances == 1:
        error = float(standard_error(top.scatter.cv * top.tokens_per_second, top.scatter.parts))
    return InstanceRate(
        mean=top.tokens_per_second,
        spread=top.spread_tokens_per_second,
        instances=top.instances,
        standard_error=error,
        lower_bound=short,
        saturated_fraction=1.0,
        why=f"{many} kept at {top.concurrency} samples in flight{f', of {asked} asked for' if short else ''}",
    )


def with_trainer(
    fleet: Rates | None, run: RunSummary, *, measured_at: str, trainer_gpus: float | None = None
) -> Rates | None:
    """
    The rates of both sides.

    Args:
        fleet: Those of an instance; None where no engine was read.
        run: The training log, summed up.
        measured_at: When, as an ISO 8601 date and time.
        trainer_gpus: GPUs of the trainer; else as the log says. [1]

    Returns:
        Both, or the one that is known; None where neither is.
    """
    logged = {key: figure.number for key, figure in run.figures.items() if figure.known}
    if logged.keys().isdisjoint({"train_seconds", "consumption_tokens_per_second"}):
        return fleet
    gpus = trainer_gpus if trainer_gpus is not None else logged.get("trainer_gpus")
    whole = round(gpus) if gpus is not None and gpus == round(gpus) else None
    if fleet is None:
        conditions = RateConditions(mean_response_tokens=logged.get("mean_response_tokens"))
        fleet = Rates(measured_at=measured_at, source=RateSource(method="observe"), conditions=conditions)
    read = {key: run.keys[key] for key in run.keys if key.endswith("_seconds")}
    return replace(
        fleet,
        source=replace(fleet.source, keys={**fleet.source.keys, **read}),
        train_seconds=logged.get("train_seconds", fleet.train_seconds),
        consumption_tokens_per_second=logged.get("consumption_tokens_per_second", fleet.consumption_tokens_per_second),
        trainer_gpus=whole,
        doubts=[*fleet.doubts, *run.warnings],
    )
