"""A rates file as points of a calibration: rates at each concurrency, the train step, the weight sync."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rlsize.commands.calibrate.points import (
    SYNC_STAGES,
    Gathered,
    LoadedInstance,
    bounded,
    rate_of,
    rollout_of,
    train_point,
)
from rlsize.equations import train_step, weight_sync
from rlsize.estimates.calibrating import SCATTER, Measurable, Point
from rlsize.estimates.figures import numbers
from rlsize.estimates.simulated_engine import ALL_THAT_FIT
from rlsize.estimates.train_prediction import TrainQuestion
from rlsize.facts.calibration import CalibrationSetting
from rlsize.facts.inference_engines import inference_engine
from rlsize.facts.records import Refused
from rlsize.loop.models import model_and_gpu
from rlsize.quantities.table import QUANTITIES
from rlsize.readers.names import gpu_named, model_named

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.facts.figure import Figure, Value
    from rlsize.facts.measured import Scatter, SyncMeasured, TrainMeasured
    from rlsize.facts.rates import Rates
    from rlsize.shell.inputs import Inputs

_RECOMPUTED = ("none", "selective", "full")


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
