"""The engines of a measurement: started with what was asked for, or reached where they run already."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from rlsize.commands.measure_parts import KV_DTYPES, TORCH_DTYPES
from rlsize.errors import Fault, InputError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rlsize.commands.measure_setting import Setting
    from rlsize.facts.counters import EngineCounters
    from rlsize.measure.instances import Instance
    from rlsize.measure.rollout import RolloutPlan
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


class Fleet:
    """The instances of one measurement, from start to end."""

    def __init__(self, setting: Setting, plan: RolloutPlan, folder: Path) -> None:
        self.setting, self.plan, self.folder = setting, plan, folder
        self.started = 0
        self.instances: list[Instance] = []

    def start(self, say: Callable[[str, float], None]) -> list[Instance]:
        """Start an engine, or reach the servers."""
        if self.setting.servers.targets:
            say(f"reaching {len(self.setting.servers.targets)} server(s)", 0.0)
            for target in self.setting.servers.targets:
                self.instances.append(self._reached(target))
            _check_context(self.plan, self.instances)
        else:
            say("the engine loads", 0.0)
            self.instances.append(self._engine(self.setting.engine.most))
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
            "engine": engine_arguments(self.setting, self.plan, most),
            "temperature": self.setting.work.temperature,
            "seed": self.setting.seed,
        }
        place = self.folder / f"engine-{self.started}"
        return offline(job, self.setting.engine.python, place, scrape_as("engine"), self.setting.start_seconds)

    def _reached(self, target: Target) -> Instance:
        from rlsize.measure.instances import online

        self.started += 1
        model = self.setting.model
        profile = model.profile if model else None
        job = {
            "base": target.url.removesuffix("/metrics").rstrip("/"),
            "login": target.login,
            "model": None,
            "temperature": self.setting.work.temperature,
            "vocabulary": profile.architecture.vocab_size if profile else UNKNOWN_VOCABULARY,
            "timeout_seconds": self.setting.servers.timeout,
            "authority": self.setting.servers.authority,
            "insecure": self.setting.servers.insecure,
        }
        place = self.folder / f"client-{self.started}"
        return online(target.shown, job, sys.executable, place, scrape_as(target.shown), self.setting.servers.token)


def engine_arguments(setting: Setting, plan: RolloutPlan, most: int | None) -> dict[str, Any]:
    """Arguments of vLLM's `LLM`; what nobody said is left to its own defaults."""
    model = setting.named_model
    said: dict[str, Any] = {
        "model": model.source,
        "load_format": "dummy" if model.dummy else None,
        "dtype": TORCH_DTYPES[setting.engine.dtype],
        "quantization": "fp8" if setting.engine.dtype == "fp8" else None,
        "kv_cache_dtype": KV_DTYPES[setting.engine.kv_dtype],
        "tensor_parallel_size": setting.engine.tensor_parallel or 1,
        "pipeline_parallel_size": setting.engine.pipeline_parallel,
        "max_model_len": plan.prompt_tokens + plan.longest() + ROOM,
        "max_num_seqs": most,
        "gpu_memory_utilization": setting.engine.memory_fraction,
    }
    return {name: value for name, value in said.items() if value is not None} | dict(setting.engine.arguments)


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
