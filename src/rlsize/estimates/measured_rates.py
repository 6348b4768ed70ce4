"""Measurements of rollout, train step and weight sync put together into rates that `fleet` takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.equations.headroom import standard_error
from rlsize.equations.matching import consumption
from rlsize.facts.rates import InstanceRate, MeasuredInstance, RateConditions, Rates, RateSource

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.facts.measured import Machine, RolloutLevel, RolloutMeasured, SyncMeasured, TrainMeasured

COUNTERS: Mapping[str, str] = {"vllm": "vllm:generation_tokens_total", "sglang": "sglang:realtime_tokens_total"}


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
    return Rates(
        measured_at=measured_at,
        source=RateSource(method="measure", engine=engine, keys=_keys(engine)),
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
    return InstanceRate(
        mean=top.tokens_per_second,
        spread=top.spread_tokens_per_second,
        instances=top.instances,
        standard_error=_standard_error(top),
        lower_bound=short,
        saturated_fraction=1.0,
        why=(
            f"{many} kept at {top.concurrency} samples in flight, of {asked} asked for"
            if short
            else f"{many} kept at {top.concurrency} samples in flight"
        ),
    )


def _standard_error(level: RolloutLevel) -> float | None:
    """Of a single instance's mean, from the scatter over the parts of its window. [token/s]"""
    if level.scatter is None or level.instances > 1:
        return None
    return float(standard_error(level.scatter.cv * level.tokens_per_second, level.scatter.parts))


def _keys(engine: str | None) -> dict[str, str]:
    """The metric behind the rate; none where the client counted."""
    return {"generation_tokens": COUNTERS[engine]} if engine is not None and engine in COUNTERS else {}
