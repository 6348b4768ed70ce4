"""TRL: a vLLM server, the launcher's arguments, and the trainer's configuration; GPU counts belong to the first two."""

from __future__ import annotations

from math import gcd
from types import MappingProxyType
from typing import TYPE_CHECKING

from rlsize.writers.snippets.snippet import Part, Setting, Snippet

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.writers.snippets.split import Split

NAME = "trl"
TITLE = "TRL"
SOURCE = "TRL 1.9.0 (commit f2cd5771, 2026-07-24)"
VARIANTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"colocate": ("colocated",), "server": ("synchronous",), "async-grpo": ("async", "one-step-off")}
)
REFUSED: Mapping[str, tuple[str, str]] = MappingProxyType({})
_PRODUCT = "per_device_train_batch_size x gradient_accumulation_steps may be split otherwise; keep their product."
_EXPERIMENTAL = (
    "max_staleness counts weight syncs; AsyncGRPO is experimental. Its server needs vLLM's weight-transfer settings, "
    "which are not set here."
)
_VERSIONS = ("--max-staleness", "AsyncGRPO counts staleness in weight syncs")


def snippet(split: Split) -> Snippet:
    """The commands and the configuration of a split."""
    split.only("tensor")
    split.runs(TITLE, "vllm")
    if split.group < 2 and split.variant != "async-grpo":  # noqa: PLR2004 (an advantage needs another sample)
        split.refuse("GRPO compares samples of a prompt, and there is one", "--group", "nearest: --group 2")
    pool = split.trainer_pool()
    launcher = [Setting("num_processes", split.trainer_gpus)]
    if pool.nodes > 1:
        launcher.append(Setting("num_machines", pool.nodes, read=False))
    parts = [] if split.shared else [_server(split)]
    parts.append(Part(title="launcher", form="flags", command="accelerate launch", settings=tuple(launcher)))
    asynchronous = split.variant == "async-grpo"
    name = "AsyncGRPOConfig" if asynchronous else "GRPOConfig"
    settings = _async(split) if asynchronous else _grpo(split)
    parts.append(Part(title=f"fields of {name}", form="yaml", settings=settings))
    return Snippet(parts=tuple(parts), notes=(*_notes(split), *split.trainer_note()))


def _server(split: Split) -> Part:
    """One server with an engine to each data-parallel rank; it is on one node."""
    if split.rollout_gpus > split.node:
        what = f"one server has {split.rollout_gpus} GPUs, and a node {split.node}"
        fitting = split.node - split.node % split.size
        smaller = "" if fitting else f" --rollout-tensor-parallel {split.node}"
        split.refuse(what, "--rollout-gpus", f"nearest: --rollout-gpus {fitting or split.node}{smaller}")
    if split.variant == "server" and split.instances > 1 and split.mixture is not True:
        what = f"{split.instances} engines in one server: TRL's data-parallel ranks are for models with experts only"
        most = min(split.rollout_gpus, split.node)
        todo = f"nearest: one engine (--instances 1 --rollout-tensor-parallel {most}), or --mode colocated"
        split.refuse(what, "--instances", todo)
    dashed = split.variant == "async-grpo"  # `vllm serve` spells its flags with hyphens
    names = ("tensor-parallel-size", "data-parallel-size") if dashed else ("tensor_parallel_size", "data_parallel_size")
    settings = [Setting(names[0], split.tensor), Setting(names[1], split.instances)]
    if split.memory_fraction is not None:
        name = "gpu-memory-utilization" if dashed else "gpu_memory_utilization"
        settings.append(Setting(name, split.memory_fraction))
    command = "vllm serve MODEL" if dashed else "trl vllm-serve --model MODEL"
    return Part(title="server, on the rollout GPUs", form="flags", command=command, settings=tuple(settings))


def _accumulation(split: Split) -> int:
    """Micro steps of one sample on each GPU that make an update."""
    by = split.trainer_gpus * split.mini_batches
    prompts = by // gcd(by, split.group)
    reason = f"each of {split.trainer_gpus} GPUs trains on as many samples of each update"
    split.divided("prompts", split.prompts, prompts, "--prompts", reason)
    return max(1, split.samples // by)


def _grpo(split: Split) -> tuple[Setting, ...]:
    split.syncs_every_step(TITLE)
    accumulation = _accumulation(split)
    mode = "colocate" if split.shared else "server"
    settings = [Setting("use_vllm", value=True), Setting("vllm_mode", mode)]
    if split.shared:
        settings.append(Setting("vllm_tensor_parallel_size", split.tensor))
        if split.memory_fraction is not None:
            settings.append(Setting("vllm_gpu_memory_utilization", split.memory_fraction))
    return (
        *settings,
        Setting("num_generations", split.group),
        Setting("per_device_train_batch_size", 1),
        Setting("gradient_accumulation_steps", accumulation),
        Setting("steps_per_generation", accumulation * split.mini_batches),
    )


def _async(split: Split) -> tuple[Setting, ...]:
    return (
        Setting("num_generations", split.group),
        Setting("per_device_train_batch_size", 1),
        Setting("gradient_accumulation_steps", _accumulation(split)),
        Setting("max_staleness", split.divided("steps of staleness", split.staleness, split.sync_every, *_VERSIONS)),
        Setting("weight_sync_steps", split.sync_every * split.mini_batches),
    )


def _notes(split: Split) -> tuple[str, ...]:
    return (_PRODUCT, _EXPERIMENTAL) if split.variant == "async-grpo" else (_PRODUCT,)
