"""TRL: a vLLM server, the launcher's arguments, and the trainer's configuration; GPU counts belong to the first two."""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING

from rlsize.writers.snippets.snippet import Framework, KeyGroup, Keys, Snippet

if TYPE_CHECKING:
    from rlsize.writers.snippets.split import Split

_PRODUCT = "per_device_train_batch_size x gradient_accumulation_steps may be split otherwise; keep their product."
_EXPERIMENTAL = (
    "max_staleness counts weight syncs; AsyncGRPO is experimental. Its server needs vLLM's weight-transfer settings, "
    "which are not set here."
)


def snippet(split: Split) -> Snippet:
    """The commands and the configuration of a split."""
    split.only("tensor")
    split.runs("vllm")
    asynchronous = split.variant == "async-grpo"
    if split.group < 2 and not asynchronous:  # noqa: PLR2004 (an advantage needs another sample)
        split.refuse("GRPO compares samples of a prompt, and there is one", "--group", "nearest: --group 2")
    pool = split.trainer_pool()
    launcher = {"num_processes": split.trainer_gpus, "num_machines": pool.nodes if pool.nodes > 1 else None}
    servers = () if split.shared else (_server(split),)
    return Snippet(
        *servers,
        KeyGroup("launcher", "flags", launcher, "accelerate launch"),
        KeyGroup(f"fields of {'Async' if asynchronous else ''}GRPOConfig", "yaml", _fields(split)),
        notes=(_PRODUCT, *([_EXPERIMENTAL] if asynchronous else []), *split.trainer_note()),
    )


def _server(split: Split) -> KeyGroup:
    """One server with an engine to each data-parallel rank; it is on one node."""
    if split.rollout_gpus > split.node:
        what = f"one server has {split.rollout_gpus} GPUs, and a node {split.node}"
        fitting = split.node - split.node % split.size
        smaller = "" if fitting else f" --rollout-tensor-parallel {split.node}"
        split.refuse(what, "--rollout-gpus", f"nearest: --rollout-gpus {fitting or split.node}{smaller}")
    if split.variant == "server" and split.instances > 1 and split.said.mixture is not True:
        what = f"{split.instances} engines in one server: TRL's data-parallel ranks are for models with experts only"
        most = min(split.rollout_gpus, split.node)
        todo = f"nearest: one engine (--instances 1 --rollout-tensor-parallel {most}), or --mode colocated"
        split.refuse(what, "--instances", todo)
    keys: Keys = {
        "tensor_parallel_size": split.tensor,
        "data_parallel_size": split.instances,
        "gpu_memory_utilization": split.said.memory_fraction,
    }
    command = "trl vllm-serve --model MODEL"
    if split.variant == "async-grpo":  # `vllm serve` spells its flags with hyphens
        keys = {key.replace("_", "-"): value for key, value in keys.items()}
        command = "vllm serve MODEL"
    return KeyGroup("server, on the rollout GPUs", "flags", keys, command)


def _fields(split: Split) -> Keys:
    if split.variant == "async-grpo":
        reason = "AsyncGRPO counts staleness in weight syncs"
        return {
            "num_generations": split.group,
            "per_device_train_batch_size": 1,
            "gradient_accumulation_steps": _accumulation(split),
            "max_staleness": split.divided(
                "steps of staleness", split.staleness, split.said.sync_every, "--max-staleness", reason
            ),
            "weight_sync_steps": split.said.sync_every * split.said.mini_batches,
        }
    split.syncs_every_step()
    accumulation = _accumulation(split)
    return {
        "use_vllm": True,
        "vllm_mode": "colocate" if split.shared else "server",
        "vllm_tensor_parallel_size": split.tensor if split.shared else None,
        "vllm_gpu_memory_utilization": split.said.memory_fraction if split.shared else None,
        "num_generations": split.group,
        "per_device_train_batch_size": 1,
        "gradient_accumulation_steps": accumulation,
        "steps_per_generation": accumulation * split.said.mini_batches,
    }


def _accumulation(split: Split) -> int:
    """Micro steps of one sample on each GPU that make an update."""
    by = split.trainer_gpus * split.said.mini_batches
    prompts = by // gcd(by, split.group)
    reason = f"each of {split.trainer_gpus} GPUs trains on as many samples of each update"
    split.divided("prompts", split.prompts, prompts, "--prompts", reason)
    return max(1, split.samples // by)


FRAMEWORK = Framework(
    name="trl",
    title="TRL",
    source="TRL 1.9.0 (commit f2cd5771, 2026-07-24)",
    variants={"colocate": ("colocated",), "server": ("synchronous",), "async-grpo": ("async", "one-step-off")},
    unread=("num_machines",),
    snippet=snippet,
)
