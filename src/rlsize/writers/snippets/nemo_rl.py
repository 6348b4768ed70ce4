"""NeMo-RL: YAML of GRPO."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from rlsize.writers.snippets.snippet import Part, Setting, Snippet

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.writers.snippets.split import Split

NAME = "nemo-rl"
TITLE = "NeMo-RL"
SOURCE = "NeMo-RL 0.7.0 (commit 7ea279ab, 2026-08-22)"
VARIANTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"colocated": ("colocated",), "sync": ("synchronous",), "async": ("async", "one-step-off")}
)
REFUSED: Mapping[str, tuple[str, str]] = MappingProxyType({})


def snippet(split: Split) -> Snippet:
    """The YAML of a split; its cluster is both pools together."""
    split.only("tensor")
    split.equal_updates()
    split.syncs_every_step(TITLE)
    split.runs(TITLE, "vllm")
    asynchronous = split.variant == "async"
    settings = [
        *_pools(split),
        Setting("policy.generation.backend", "vllm", read=False),
        Setting("policy.generation.vllm_cfg.tensor_parallel_size", split.tensor),
        Setting("policy.generation.vllm_cfg.async_engine", asynchronous),
    ]
    if split.memory_fraction is not None:
        settings.append(Setting("policy.generation.vllm_cfg.gpu_memory_utilization", split.memory_fraction))
    settings += [
        Setting("policy.train_global_batch_size", split.samples // split.mini_batches, read=False),
        Setting("grpo.num_prompts_per_step", split.prompts, read=False),
        Setting("grpo.num_generations_per_prompt", split.group, read=False),
        Setting("grpo.async_grpo.enabled", asynchronous),
    ]
    if asynchronous:
        settings.append(Setting("grpo.async_grpo.max_trajectory_age_steps", split.staleness))
        settings.append(Setting("grpo.async_grpo.in_flight_weight_updates", split.in_flight))
    part = Part(title="configuration of GRPO", form="yaml", settings=tuple(settings))
    return Snippet(parts=(part,), notes=split.trainer_note())


def _pools(split: Split) -> list[Setting]:
    """Both pools on one node, or each on whole ones: the trainer has what generation leaves."""
    prefix = "policy.generation.colocated"
    if split.shared:
        pool = split.trainer_pool()
        split.fits(pool.per_node)
        return [
            Setting("cluster.num_nodes", pool.nodes),
            Setting("cluster.gpus_per_node", pool.per_node),
            Setting(f"{prefix}.enabled", value=True),
        ]
    if split.gpus <= split.node:
        nodes, per_node, rollout_nodes, rollout_per_node = 1, split.gpus, 1, split.rollout_gpus
    else:
        for gpus, flag, what in (
            (split.rollout_gpus, "--rollout-gpus", "rollout GPUs"),
            (split.trainer_gpus, "--trainer-gpus", "trainer GPUs"),
        ):
            split.divided(what, gpus, split.node, flag, f"beyond one node of {split.node} each pool has whole nodes")
        nodes, per_node = split.gpus // split.node, split.node
        rollout_nodes, rollout_per_node = split.rollout_gpus // split.node, split.node
    split.fits(rollout_per_node)
    return [
        Setting("cluster.num_nodes", nodes),
        Setting("cluster.gpus_per_node", per_node),
        Setting(f"{prefix}.enabled", value=False),
        Setting(f"{prefix}.resources.num_nodes", rollout_nodes),
        Setting(f"{prefix}.resources.gpus_per_node", rollout_per_node),
    ]
