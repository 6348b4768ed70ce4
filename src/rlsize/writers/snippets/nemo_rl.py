"""NeMo-RL: YAML of GRPO."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.writers.snippets.snippet import Framework, KeyGroup, Keys, Snippet

if TYPE_CHECKING:
    from rlsize.writers.snippets.split import Split


def snippet(split: Split) -> Snippet:
    """The YAML of a split; its cluster is both pools together."""
    split.only("tensor")
    split.equal_updates()
    split.syncs_every_step()
    split.runs("vllm")
    asynchronous = split.variant == "async"
    keys: Keys = {
        **_pools(split),
        "policy.generation.backend": "vllm",
        "policy.generation.vllm_cfg.tensor_parallel_size": split.tensor,
        "policy.generation.vllm_cfg.async_engine": asynchronous,
        "policy.generation.vllm_cfg.gpu_memory_utilization": split.said.memory_fraction,
        "policy.train_global_batch_size": split.samples // split.said.mini_batches,
        "grpo.num_prompts_per_step": split.prompts,
        "grpo.num_generations_per_prompt": split.group,
        "grpo.async_grpo.enabled": asynchronous,
        "grpo.async_grpo.max_trajectory_age_steps": split.staleness if asynchronous else None,
        "grpo.async_grpo.in_flight_weight_updates": split.said.in_flight if asynchronous else None,
    }
    return Snippet(KeyGroup("configuration of GRPO", "yaml", keys), notes=split.trainer_note())


def _pools(split: Split) -> Keys:
    """Both pools on one node, or each on whole ones: the trainer has what generation leaves."""
    prefix = "policy.generation.colocated"
    if split.shared:
        pool = split.trainer_pool()
        split.fits(pool.per_node)
        return {
            "cluster.num_nodes": pool.nodes,
            "cluster.gpus_per_node": pool.per_node,
            f"{prefix}.enabled": True,
        }
    split.whole_nodes("each pool")
    whole = split.gpus > split.node
    per_node = split.node if whole else split.rollout_gpus
    split.fits(per_node)
    return {
        "cluster.num_nodes": split.gpus // split.node if whole else 1,
        "cluster.gpus_per_node": split.node if whole else split.gpus,
        f"{prefix}.enabled": False,
        f"{prefix}.resources.num_nodes": split.rollout_gpus // split.node if whole else 1,
        f"{prefix}.resources.gpus_per_node": per_node,
    }


FRAMEWORK = Framework(
    name="nemo-rl",
    title="NeMo-RL",
    source="NeMo-RL 0.7.0 (commit 7ea279ab, 2026-08-22)",
    variants={"colocated": ("colocated",), "sync": ("synchronous",), "async": ("async", "one-step-off")},
    unread=(
        "policy.generation.backend", "policy.train_global_batch_size", "grpo.num_prompts_per_step",
        "grpo.num_generations_per_prompt",
    ),
    snippet=snippet,
)  # fmt: skip
