"""prime-rl: TOML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.writers.snippets.snippet import Framework, KeyGroup, Keys, Snippet

if TYPE_CHECKING:
    from rlsize.writers.snippets.split import Split


def snippet(split: Split) -> Snippet:
    """The TOML of a split: parts of one node, or whole nodes for each side."""
    split.only("tensor")
    split.runs("vllm")
    split.syncs_every_step()
    split.updates_once()
    split.whole_nodes("each side")
    keys: Keys = {
        "deployment.type": "single_node",
        "deployment.num_train_gpus": split.trainer_gpus,
        "deployment.num_infer_gpus": split.rollout_gpus,
    }
    if split.gpus > split.node:
        split.fits(split.node)
        keys = {
            "deployment.type": "multi_node",
            "deployment.num_train_nodes": split.trainer_gpus // split.node,
            "deployment.num_infer_nodes": split.rollout_gpus // split.node,
            "deployment.gpus_per_node": split.node,
            "deployment.num_infer_replicas": 1,
        }
    keys |= {
        "inference.vllm.tensor_parallel_size": split.tensor,
        "orchestrator.max_off_policy_steps": split.staleness,
        "orchestrator.batch_size": split.samples,
        "orchestrator.rollouts_per_example": split.group,
    }
    return Snippet(KeyGroup("configuration", "toml", keys), notes=split.trainer_note())


FRAMEWORK = Framework(
    name="prime-rl",
    title="prime-rl",
    source="prime-rl (commit 559b4477, 2026-08-21)",
    variants={"async": ("async", "one-step-off")},
    refused={
        "colocated": ("trainer and inference have GPUs of their own", "--mode one-step-off"),
        "synchronous": ("the orchestrator always generates ahead", "--mode one-step-off"),
    },
    unread=("orchestrator.batch_size", "orchestrator.rollouts_per_example"),
    snippet=snippet,
)
