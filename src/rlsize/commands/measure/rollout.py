"""The rollout stage of `measure`: engines started or reached, load run, its record put together."""

from __future__ import annotations

import os
import secrets
import sys
from contextlib import suppress
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from rlsize.commands.measure.asked import KV_DTYPES, TORCH_DTYPES
from rlsize.errors import Fault, InputError, UnfinishedError
from rlsize.facts.measured import RolloutMeasured
from rlsize.facts.rates import MeasuredInstance, RateConditions
from rlsize.frozen import dataclass
from rlsize.measure.instances import Launch, started
from rlsize.measure.jobs import StageResult, command
from rlsize.readers.http_pages import TOKEN_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from rlsize.commands.measure.asked import Measurement, OwnEngine
    from rlsize.facts.counters import EngineCounters, PhaseRun
    from rlsize.measure.instances import Instance
    from rlsize.measure.rollout import Journal, Record, RolloutPlan
    from rlsize.readers.http_pages import Target


UNKNOWN_VOCABULARY = 1000  # token ids that every model has
REACH = 3.0  # time-outs until a server counts as out of reach: it is asked for three pages
VISIBLE = "CUDA_VISIBLE_DEVICES"
ROOM = 8  # tokens more than the longest sample that an engine is given


def scrape_as(name: str) -> Callable[[str], EngineCounters | None]:
    """What turns an engine's metrics page into counters, those of its ranks added up; None where it cannot."""
    from rlsize.estimates.counter_growth import together
    from rlsize.readers.metrics.kinds import text_engines

    def scrape(text: str) -> EngineCounters | None:
        if not text.strip():
            return None
        with suppress(InputError):
            return together(text_engines(text, name))
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
        if self.asked.targets:
            say(f"reaching {len(self.asked.targets)} server(s)", 0.0)
            patience = REACH * self.asked.access.seconds
            self.instances += started([self._reached(target) for target in self.asked.targets], patience)
            _check_context(self.plan, self.instances)
        else:
            shares = engine_shares(self.asked.engine, on_gpus=self.asked.device != "cpu")
            say(f"{len(shares)} engines load" if len(shares) > 1 else "the engine loads", 0.0)
            self.instances += self.engines(self.asked.engine.most)
        return self.instances

    def end(self) -> None:
        """End all processes."""
        for instance in self.instances:
            instance.child.end()

    def engines(self, most: int | None) -> list[Instance]:
        """Engines of our own, each with a limit on running samples."""
        shares = engine_shares(self.asked.engine, on_gpus=self.asked.device != "cpu")
        job = {
            "engine": engine_arguments(self.asked, self.plan, most),
            "temperature": self.asked.work.temperature,
            "seed": self.asked.seed,
        }
        launches = []
        for number, share in enumerate(shares, start=1):
            name = f"engine {number}" if len(shares) > 1 else "engine"
            place = self._place("engine")
            argv = command(self.asked.engine.python, "rollout_offline", job, place)
            launches.append(Launch(name, argv, place, scrape_as(name), share))
        return started(launches, self.asked.start_seconds)

    def _reached(self, target: Target) -> Launch:
        place, access = self._place("client"), self.asked.access
        profile = self.asked.model.profile if self.asked.model else None
        job = {
            "base": target.url.removesuffix("/metrics").rstrip("/"),
            "login": access.login_of(target),
            "temperature": self.asked.work.temperature,
            "vocabulary": profile.architecture.vocab_size if profile else UNKNOWN_VOCABULARY,
            "timeout_seconds": access.seconds,
            "authority": access.authority,
            "insecure": access.insecure,
        }
        argv = command(sys.executable, "rollout_online", job, place)
        token = {TOKEN_VARIABLE: access.token}  # in the environment: it is no file
        return Launch(target.shown, argv, place, scrape_as(target.shown), token)

    def _place(self, kind: str) -> Path:
        """An empty folder for the next engine, or client of a server."""
        self.started += 1
        place = self.folder / f"{kind}-{self.started}"
        place.mkdir(parents=True)
        return place


def engine_shares(engine: OwnEngine, *, on_gpus: bool) -> list[dict[str, str]]:
    """
    The environment of each engine: which of the visible GPUs it has, where there is more than one.

    Raises:
        InputError: There are not GPUs enough for so many engines.
    """
    from rlsize.measure.machine_state import gpu_states

    if engine.engines == 1:
        return [{}]
    found = len(gpu_states()) if on_gpus else 0
    count = engine.engines or max(1, found // engine.gpus)
    if not found:
        return [{}] * count
    if count * engine.gpus > found:
        what = f"{count} engines of {engine.gpus} GPUs need {count * engine.gpus}, and {found} can be seen"
        raise InputError(Fault(what, "--engines", "start fewer, or all"))
    said = os.environ.get(VISIBLE)
    words = said.split(",") if said is not None else [str(index) for index in range(found)]
    return [{VISIBLE: ",".join(words[place * engine.gpus : (place + 1) * engine.gpus])} for place in range(count)]


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
        "max_model_len": plan.context() + ROOM,
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
    needed = plan.context()
    for instance in instances:
        longest = instance.facts.get("max_model_len")
        if longest and needed > longest:
            what = f"takes {longest:,} tokens at most, and prompt and longest response have {needed:,}"
            raise InputError(Fault(what, instance.name, "lower --max-response-tokens, or raise its --max-model-len"))


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutResult(StageResult[RolloutMeasured]):
    """What a rollout gave: figures, conditions, and what the engine said of itself."""

    conditions: RateConditions
    instances: list[MeasuredInstance]
    engine: str | None
    gpus_per_instance: float | None
    asked_concurrency: int


def run_rollout(
    asked: Measurement, folder: Path, say: Callable[[str, float], None], journal: Journal | None = None
) -> RolloutResult:
    """
    Measure rollouts on engines of our own, or on servers that run already.

    Args:
        asked: What was asked for.
        folder: An empty folder for files of the engines.
        say: Told how far it has come.
        journal: Has what an earlier run measured, and keeps what this one does.

    Raises:
        UnfinishedError: No engine could be measured.
        InputError: The servers cannot take the workload.
    """
    from rlsize.measure.rollout import measure_rollout

    plan = rollout_plan(asked)
    engines = MeasuredEngines(asked, plan, folder)
    try:
        instances = engines.start(say)
        record = measure_rollout(instances, plan, say, engines.engines if not asked.targets else None, journal)
    finally:
        engines.end()
    return _outcome(asked, engines, record)


def rollout_plan(asked: Measurement) -> RolloutPlan:
    """What a rollout runs of the workload."""
    from rlsize.measure.rollout import RolloutPlan, Workload

    work = {one.name: getattr(asked.work, one.name) for one in fields(Workload)}
    return RolloutPlan(
        **{**work, "prompts": asked.work.prompts_per_instance},
        concurrencies=asked.engine.concurrencies,
        most=asked.engine.most,
        seconds=asked.seconds,
        seed=asked.seed,
        quick=asked.quick,
        within=asked.within,
        nonce=secrets.token_hex(4) if asked.targets else "",
    )


def _outcome(asked: Measurement, engines: MeasuredEngines, record: Record) -> RolloutResult:
    from rlsize.estimates.rollout_summary import rollout_doubts, rollout_measured

    facts: Mapping[str, Any] = engines.instances[0].facts
    gpus = [gpu for instance in engines.instances for gpu in instance.facts.get("gpus") or []]
    if asked.targets:  # a server does not tell its GPUs, and an engine on a CPU has none
        size = float(asked.engine.gpus) if asked.engine.tensor_parallel else None
    else:
        size = float(facts["gpus_per_instance"]) if gpus else None
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
    return RolloutResult(
        measured=measured,
        conditions=_conditions(asked, facts, measured, record),
        instances=_each(levels[measured.at_concurrency], record),
        engine=next(run.snapshots[0].counters.engine for runs in levels.values() for run in runs) if own else None,
        gpus_per_instance=size,
        gpus=gpus,
        versions=dict(facts.get("versions") or {}),
        doubts=[*record.doubts, *_placement(asked, facts), *rollout_doubts(levels, record.batch, measured)],
        partial=record.partial,
        asked_concurrency=max(asked.engine.concurrencies or (record.limit,)),
    )


def _conditions(
    asked: Measurement, facts: Mapping[str, Any], measured: RolloutMeasured, record: Record
) -> RateConditions:
    lengths, model = record.work.response_tokens, asked.model
    return replace(
        asked.conditions,
        model=model.name if model else facts.get("model"),
        mean_response_tokens=sum(lengths) / len(lengths),
        prefix_cache_hit_fraction=measured.prefix_cache_hit_fraction,
        kv_cache_tokens=measured.kv_cache_tokens,
        temperature=asked.work.temperature,
        dtype=facts.get("dtype"),
        kv_dtype=facts.get("kv_dtype"),
        tensor_parallel=asked.engine.tensor_parallel or (None if asked.targets else 1),
        dummy_weights=None if asked.targets or model is None else model.dummy,
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
    if model and model.dummy and model.profile and model.profile.architecture.moe and not asked.targets:
        yield "random weights send tokens to all experts evenly, which trained ones do not: a step reads more of them"
