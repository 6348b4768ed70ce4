"""What the lines of a scenario file say beside their values, and what stands in those that nobody answered."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Note(NamedTuple):
    """
    A comment.

    Args:
        text: What it says; empty where the key says enough.
        example: What stands in the line, behind a `#`, where nobody answered; without it the line is left out.
    """

    text: str
    example: str = ""


NOTES: Mapping[str, Note] = MappingProxyType(
    {
        "model": Note("a profile, the path of a config.json, or {params: 70B}", "qwen3-32b"),
        "cluster.gpu": Note("a profile; `rlsize profiles list gpu` names them", "h100-sxm"),
        "cluster.gpus": Note("of both sides", "64"),
        "cluster.gpus_per_node": Note("what the GPU's profile says, when not given", "8"),
        "cluster.interconnect": Note("the link between nodes; `rlsize profiles list link`", "infiniband-400g"),
        "algorithm.name": Note("ppo adds a critic", "grpo"),
        "algorithm.reference": Note("a frozen copy for the KL term", "true"),
        "algorithm.tokens_generated_per_trained_token": Note(
            "over 1 with over-sampling, filtered groups or dropped samples", "1.0"
        ),
        "workload": Note("one optimizer step"),
        "workload.prompts_per_step": Note("", "64"),
        "workload.group_size": Note("samples of one prompt", "8"),
        "workload.prompt_tokens": Note("mean", "300"),
        "workload.response_tokens.mean": Note("", "1536"),
        "workload.response_tokens.cv": Note("standard deviation over mean", "0.8"),
        "workload.response_tokens.max": Note("where generation is cut off", "8k"),
        "placement": Note("`rlsize plan` chooses what is not said"),
        "placement.mode": Note("colocated, sync, one-step-off, async, ...", "async"),
        "placement.max_staleness": Note("of async: the cap, in optimizer steps", "2"),
        "placement.rollout_gpus": Note("GPUs of the rollout fleet", "48"),
        "placement.trainer_gpus": Note("GPUs of the trainer", "16"),
        "rollout.engine": Note("", "vllm"),
        "rollout.tensor_parallel": Note("GPUs of one instance", "2"),
        "rollout.memory_fraction": Note("of a GPU; 0.5 to 0.6 is usual where colocated", "0.9"),
        "rollout.routing": Note("a group stays on one instance, so its prompt is prefilled once", "affine"),
        "trainer.parallelism.fsdp": Note("ranks that shard all training states", "16"),
        "trainer.optimizer": Note("", "adamw"),
        "trainer.gradients": Note("fp32 gradients make 18 bytes a parameter of 16", "bf16"),
        "trainer.recompute": Note("activations: none, selective or full", "full"),
        "weight_sync.transport": Note("", "nccl-broadcast"),
        "weight_sync.every": Note("optimizer steps from one sync to the next", "1"),
        "weight_sync.link": Note("the slowest on the way", "infiniband-400g"),
        "rates": Note("measured; `rlsize observe` and `rlsize measure` write rates files"),
        "rates.instance_tokens_per_second": Note("response tokens of one instance, or a rates file", "4000"),
        "rates.train_seconds": Note("busy trainer seconds per step, without waiting and sync", "20"),
        "prices": Note("no price is ever assumed"),
        "prices.gpu_hour": Note("dollars", "2.5"),
        "prices.as_of": Note("the day of the price", '"2026-11-01"'),
        "prices.region": Note("", "any"),
        "budget": Note("limits that `rlsize check` judges; `rlsize schema budget` has all"),
        "budget.cost_per_step_usd": Note("at most", "2.5"),
        "budget.trainer_idle_fraction": Note("at most", "5%"),
        "budget.staleness_steps": Note("mean, at most", "2"),
        "budget.steps_per_day": Note("at least", "1800"),
    }
)
