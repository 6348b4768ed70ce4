"""The rollout stage of `measure`: engines started or reached, load run, its record put together."""

from __future__ import annotations

import secrets
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlsize.commands.measure.asked import KV_DTYPES, TORCH_DTYPES
from rlsize.errors import Fault, InputError, UnfinishedError
from rlsize.facts.rates import MeasuredInstance, RateConditions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from rlsize.commands.measure.asked import Measurement
    from rlsize.facts.counters import EngineCounters
    from rlsize.facts.measured import RolloutMeasured
    from rlsize.facts.rollout_run import PhaseRun
    from rlsize.measure.instances import Instance
    from rlsize.measure.rollout import Record, RolloutPlan
    from rlsize.readers.http_targets import Target


UNKNOWN_VOCABULARY = 1000  # token ids that every model has
ROOM = 8  # tokens more than the longest sample that an engine is given


def scrape_as(name: str) -> Callable[[str], EngineCounters | None]:
    """What turns an engine's metrics page into counters, those of its ranks added up; None where it cannot."""
    from rlsize.estimates.ranks import together
    from rlsize.readers.metrics.sglang import sglang_counters
    from rlsize.readers.metrics.vllm import vllm_counters

    def scrape(text: str) -> EngineCounters | None:
        if not text.strip():
            return None
        with suppress(InputError):
            return together(vllm_counters(text, name))
        with suppress(InputError):
            return sglang_counters(text, name)
        return None

    return scrape


class MeasuredEngines:
    """The instances of one measurement, from start to end."""

    def __init__(self, asked: Measurement, plan: RolloutPlan, folder: Path) -> None:
        self.asked, self.plan, self.folder = asked, plan, folder
        self.started = 0
        self.instances: list[Instance] = []

    def start(self, say: Callable[[str, float], None]) -> list[Instance]:
        """Start an engine, or reach the servers."""
        if self.asked.servers.targets:
            say(f"reaching {len(self.asked.servers.targets)} server(s)", 0.0)
            for target in self.asked.servers.targets:
                self.instances.append(self._reached(target))
            _check_context(self.plan, self.instances)
        else:
            say("the engine loads", 0.0)
            self.instances.append(self._engine(self.asked.engine.most))
        return self.instances

    def restart(self, most: int) -> Instance:
        """The engine anew, with a smaller limit on running samples."""
        return self._engine(most)

    def end(self, log: Callable[[Path], None]) -> None:
        """End all processes, and keep their logs."""
        for instance in self.instances:
            instance.child.end()
        for place in sorted(self.folder.glob("*/log")):
            log(place)

    def _engine(self, most: int | None) -> Instance:
        from rlsize.measure.instances import offline

        self.started += 1
        job = {
            "engine": engine_arguments(self.asked, self.plan, most),
            "temperature": self.asked.work.temperature,
            "seed": self.asked.seed,
        }
        place = self.folder / f"engine-{self.started}"
        return offline(job, self.asked.engine.python, place, scrape_as("engine"), self.asked.start_seconds)

    def _reached(self, target: Target) -> Instance:
        from rlsize.measure.instances import online

        self.started += 1
        model = self.asked.model
        profile = model.profile if model else None
        job = {
            "base": target.url.removesuffix("/metrics").rstrip("/"),
            "login": target.login,
            "model": None,
            "temperature": self.asked.work.temperature,
            "vocabulary": profile.architecture.vocab_size if profile else UNKNOWN_VOCABULARY,
            "timeout_seconds": self.asked.servers.timeout,
            "authority": self.asked.servers.authority,
            "insecure": self.asked.servers.insecure,
        }
        place = self.folder / f"client-{self.started}"
        return online(target.shown, job, sys.executable, place, scrape_as(target.shown), self.asked.servers.token)


def engine_arguments(asked: Measurement, plan: RolloutPlan, most: int | None) -> dict[str, Any]:
    """Arguments of vLLM's `LLM`; what nobody said is left to its own defaults."""
    model = asked.named_model
    said: dict[str, Any] = {
        "model": model.source,
        "load_format": "dummy" if model.dummy else None,
        "dtype": TORCH_DTYPES[asked.engine.dtype],
        "quantization": "fp8" if asked.engine.dtype == "fp8" else None,
        "kv_cache_dtype": KV_DTYPES[asked.engine.kv_dtype],
        "tensor_parallel_size": asked.engine.tensor_parallel or 1,
        "pipeline_parallel_size": asked.engine.pipeline_parallel,
        "max_model_len": plan.prompt_tokens + plan.longest() + ROOM,
        "max_num_seqs": most,
        "gpu_memory_utilization": asked.engine.memory_fraction,
    }
    return {name: value for name, value in said.items() if value is not None} | dict(asked.engine.arguments)


def _check_context(plan: RolloutPlan, instances: list[Instance]) -> None:
    """
    Refuse a workload that a server would cut.

    Raises:
        InputError: Its context is too short.
    """
    needed = plan.prompt_tokens + plan.longest()
    for instance in instances:
        longest = instance.facts.get("max_model_len")
        if longest and needed > longest:
            what = f"takes {longest:,} tokens at most, and prompt and longest response have {needed:,}"
            raise InputError(Fault(what, instance.name, "lower --max-response-tokens, or raise its --max-model-len"))


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
    asked: Measurement, folder: Path, say: Callable[[str, float], None], log: Callable[[Path], None]
) -> RolloutOutcome:
    """
    Measure rollouts on engines of our own, or on servers that run already.

    Args:
        asked: What was asked for.
        folder: An empty folder for files of the engines.
        say: Told how far it has come.
        log: Given the log of each engine when it has ended.

    Raises:
        UnfinishedError: No engine could be measured.
        InputError: The servers cannot take the workload.
    """
    from rlsize.measure.rollout import measure_rollout

    plan = rollout_plan(asked)
    engines = MeasuredEngines(asked, plan, folder)
    try:
        instances = engines.start(say)
        record = measure_rollout(instances, plan, say, engines.restart if not asked.servers.targets else None)
    finally:
        engines.end(log)
    return _outcome(asked, plan, engines, record)


def rollout_plan(asked: Measurement) -> RolloutPlan:
    """What a rollout runs of the workload."""
    from rlsize.measure.rollout import RolloutPlan

    work = asked.work
    return RolloutPlan(
        prompts=work.prompts_per_instance,
        group_size=work.group_size,
        prompt_tokens=work.prompt_tokens,
        mean=work.mean,
        cv=work.cv,
        cap=work.cap,
        concurrencies=asked.engine.concurrencies,
        most=asked.engine.most,
        seconds=asked.seconds,
        seed=asked.seed,
        quick=asked.quick,
        nonce=secrets.token_hex(4) if asked.servers.targets else "",
    )


def _outcome(asked: Measurement, plan: RolloutPlan, engines: MeasuredEngines, record: Record) -> RolloutOutcome:
    from rlsize.estimates.rollout_summary import rollout_doubts, rollout_measured

    facts: Mapping[str, Any] = engines.instances[0].facts
    gpus = list(facts.get("gpus") or [])
    size = _instance_gpus(asked, facts, gpus)
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
        conditions=_conditions(asked, plan, facts, measured, record),
        instances=_each(levels[measured.at_concurrency], record),
        engine=next(run.snapshots[0].counters.engine for runs in levels.values() for run in runs) if own else None,
        gpus_per_instance=size,
        gpus=gpus,
        versions=dict(facts.get("versions") or {}),
        doubts=[*record.doubts, *_placement(asked, facts), *rollout_doubts(levels, record.batch, measured)],
        partial=record.partial,
        interrupted=record.interrupted,
        asked_concurrency=max(asked.engine.concurrencies or (record.limit,)),
    )


def _instance_gpus(asked: Measurement, facts: Mapping[str, Any], gpus: list[str]) -> float | None:
    """GPUs of an instance: as the engine says, or as the user says of a server; none on a CPU."""
    if asked.servers.targets:
        return float(asked.engine.gpus) if asked.engine.tensor_parallel else None
    return float(facts["gpus_per_instance"]) if gpus else None


def _conditions(
    asked: Measurement, plan: RolloutPlan, facts: Mapping[str, Any], measured: RolloutMeasured, record: Record
) -> RateConditions:
    lengths = record.work.response_tokens
    model = asked.model
    return RateConditions(
        model=model.name if model else facts.get("model"),
        mean_response_tokens=sum(lengths) / len(lengths),
        mean_prompt_tokens=float(plan.prompt_tokens),
        group_size=float(plan.group_size),
        prefix_cache_hit_fraction=measured.prefix_cache_hit_fraction,
        kv_cache_tokens=measured.kv_cache_tokens,
        response_cv=plan.cv,
        max_response_tokens=plan.cap,
        temperature=asked.work.temperature,
        dtype=facts.get("dtype"),
        kv_dtype=facts.get("kv_dtype"),
        tensor_parallel=asked.engine.tensor_parallel or (None if asked.servers.targets else 1),
        dummy_weights=None if asked.servers.targets or model is None else model.dummy,
    )


def _each(runs: list[PhaseRun], record: Record) -> list[MeasuredInstance]:
    from rlsize.estimates.rollout_rate import level

    found = [(run.instance, level([run], record.work)) for run in runs]
    return [
        MeasuredInstance(instance=name, tokens_per_second=one.tokens_per_second, saturated_fraction=1.0)
        for name, one in found
        if one is not None
    ]


def _placement(asked: Measurement, facts: Mapping[str, Any]) -> Iterator[str]:
    """Doubts about what the engine ran, and on what."""
    if "gpus" in facts and not facts["gpus"]:
        yield "the engine ran on a CPU: its rate sizes no GPU fleet"
    model = asked.model
    if model and model.dummy and model.profile and model.profile.architecture.moe and not asked.servers.targets:
        yield "random weights send tokens to all experts evenly, which trained ones do not: a step reads more of them"
