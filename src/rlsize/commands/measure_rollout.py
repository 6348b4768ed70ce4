"""The rollout stage of `measure`: engines started or reached, load run, its record put together."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlsize.commands.measure_engines import Fleet
from rlsize.errors import Fault
from rlsize.facts.rates import MeasuredInstance, RateConditions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from rlsize.commands.measure_setting import Setting
    from rlsize.facts.measured import RolloutMeasured
    from rlsize.facts.rollout_run import PhaseRun
    from rlsize.measure.rollout import Record, RolloutPlan


@dataclass(slots=True)
class RolloutOutcome:
    """What a rollout gave: figures, conditions, and what the engine said of itself."""

    measured: RolloutMeasured
    conditions: RateConditions
    instances: list[MeasuredInstance]
    engine: str | None
    gpus_per_instance: float | None
    gpus: list[str]
    versions: dict[str, str]
    doubts: list[str]
    partial: str
    interrupted: bool
    asked_concurrency: int


def run_rollout(
    setting: Setting, folder: Path, say: Callable[[str, float], None], log: Callable[[Path], None]
) -> RolloutOutcome:
    """
    Measure rollouts on engines of our own, or on servers that run already.

    Args:
        setting: What was asked for.
        folder: An empty folder for files of the engines.
        say: Told how far it has come.
        log: Given the log of each engine when it has ended.

    Raises:
        UnfinishedError: No engine could be measured.
        InputError: The servers cannot take the workload.
    """
    from rlsize.measure.rollout import measure_rollout

    plan = rollout_plan(setting)
    fleet = Fleet(setting, plan, folder)
    try:
        instances = fleet.start(say)
        record = measure_rollout(instances, plan, say, fleet.restart if not setting.servers.targets else None)
    finally:
        fleet.end(log)
    return _outcome(setting, plan, fleet, record)


def rollout_plan(setting: Setting) -> RolloutPlan:
    """What a rollout runs of the workload."""
    from rlsize.measure.rollout import RolloutPlan

    work = setting.work
    return RolloutPlan(
        prompts=work.prompts_per_instance,
        group_size=work.group_size,
        prompt_tokens=work.prompt_tokens,
        mean=work.mean,
        cv=work.cv,
        cap=work.cap,
        concurrencies=setting.engine.concurrencies,
        most=setting.engine.most,
        seconds=setting.seconds,
        seed=setting.seed,
        quick=setting.quick,
        nonce=secrets.token_hex(4) if setting.servers.targets else "",
    )


def _outcome(setting: Setting, plan: RolloutPlan, fleet: Fleet, record: Record) -> RolloutOutcome:
    from rlsize.errors import UnfinishedError
    from rlsize.estimates.rollout_summary import rollout_doubts, rollout_measured

    facts: Mapping[str, Any] = fleet.instances[0].facts
    gpus = list(facts.get("gpus") or [])
    size = _instance_gpus(setting, facts, gpus)
    levels = {name: runs for name, runs in record.levels.items() if runs}
    measured = rollout_measured(
        levels,
        record.batch,
        record.work,
        batch_prompts=record.batch_prompts,
        batch_fraction=record.batch_fraction,
        limit=record.limit,
        limited_by=record.limited_by,
        gpus_per_instance=size,
    )
    if measured is None:
        if record.interrupted:
            raise KeyboardInterrupt
        why = record.partial or "no concurrency reached a steady state"
        raise UnfinishedError(Fault(why, "rollout", "give it more time with --seconds"))
    own = all(run.own_counters for runs in levels.values() for run in runs)
    return RolloutOutcome(
        measured=measured,
        conditions=_conditions(setting, plan, facts, measured, record),
        instances=_each(levels[measured.at_concurrency], record),
        engine=_engine(levels) if own else None,
        gpus_per_instance=size,
        gpus=gpus,
        versions=dict(facts.get("versions") or {}),
        doubts=[*record.doubts, *_placement(setting, facts), *rollout_doubts(levels, record.batch, measured)],
        partial=record.partial,
        interrupted=record.interrupted,
        asked_concurrency=max(setting.engine.concurrencies or (record.limit,)),
    )


def _engine(levels: Mapping[int, list[PhaseRun]]) -> str:
    """The engine whose counters were read."""
    return next(run.snapshots[0].counters.engine for runs in levels.values() for run in runs)


def _instance_gpus(setting: Setting, facts: Mapping[str, Any], gpus: list[str]) -> float | None:
    """GPUs of an instance: as the engine says, or as the user says of a server; none on a CPU."""
    if setting.servers.targets:
        return float(setting.engine.gpus) if setting.engine.tensor_parallel else None
    return float(facts["gpus_per_instance"]) if gpus else None


def _conditions(
    setting: Setting, plan: RolloutPlan, facts: Mapping[str, Any], measured: RolloutMeasured, record: Record
) -> RateConditions:
    lengths = record.work.response_tokens
    model = setting.model
    return RateConditions(
        model=model.name if model else facts.get("model"),
        mean_response_tokens=sum(lengths) / len(lengths),
        mean_prompt_tokens=float(plan.prompt_tokens),
        group_size=float(plan.group_size),
        prefix_cache_hit_fraction=measured.prefix_cache_hit_fraction,
        kv_cache_tokens=measured.kv_cache_tokens,
        response_cv=plan.cv,
        max_response_tokens=plan.cap,
        temperature=setting.work.temperature,
        dtype=facts.get("dtype"),
        kv_dtype=facts.get("kv_dtype"),
        tensor_parallel=setting.engine.tensor_parallel or (None if setting.servers.targets else 1),
        dummy_weights=None if setting.servers.targets or model is None else model.dummy,
    )


def _each(runs: list[PhaseRun], record: Record) -> list[MeasuredInstance]:
    from rlsize.estimates.rollout_rate import level

    found = [(run.instance, level([run], record.work)) for run in runs]
    return [
        MeasuredInstance(instance=name, tokens_per_second=one.tokens_per_second, saturated_fraction=1.0)
        for name, one in found
        if one is not None
    ]


def _placement(setting: Setting, facts: Mapping[str, Any]) -> Iterator[str]:
    """Doubts about what the engine ran, and on what."""
    if "gpus" in facts and not facts["gpus"]:
        yield "the engine ran on a CPU: its rate sizes no GPU fleet"
    model = setting.model
    if model and model.dummy and model.profile and model.profile.architecture.moe and not setting.servers.targets:
        yield "random weights send tokens to all experts evenly, which trained ones do not: a step reads more of them"
