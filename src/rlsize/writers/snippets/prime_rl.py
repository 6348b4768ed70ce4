"""prime-rl: TOML."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from rlsize.writers.snippets.snippet import Part, Setting, Snippet

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.writers.snippets.split import Split

NAME = "prime-rl"
TITLE = "prime-rl"
SOURCE = "prime-rl (commit 559b4477, 2026-08-21)"
VARIANTS: Mapping[str, tuple[str, ...]] = MappingProxyType({"async": ("async", "one-step-off")})
REFUSED: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "colocated": ("trainer and inference have GPUs of their own", "--mode one-step-off"),
        "synchronous": ("the orchestrator always generates ahead", "--mode one-step-off"),
    }
)


def snippet(split: Split) -> Snippet:
    """The TOML of a split: parts of one node, or whole nodes for each side."""
    split.only("tensor")
    split.runs(TITLE, "vllm")
    split.syncs_every_step(TITLE)
    split.updates_once(TITLE)
    settings = [
        *_deployment(split),
        Setting("inference.vllm.tensor_parallel_size", split.tensor),
        Setting("orchestrator.max_off_policy_steps", split.staleness),
        Setting("orchestrator.batch_size", split.samples, read=False),
        Setting("orchestrator.rollouts_per_example", split.group, read=False),
    ]
    part = Part(title="configuration", form="toml", settings=tuple(settings))
    return Snippet(parts=(part,), notes=split.trainer_note())


def _deployment(split: Split) -> list[Setting]:
    if split.gpus <= split.node:
        return [
            Setting("deployment.type", "single_node"),
            Setting("deployment.num_train_gpus", split.trainer_gpus),
            Setting("deployment.num_infer_gpus", split.rollout_gpus),
        ]
    reason = f"beyond one node of {split.node} each side has whole nodes"
    trainer = split.divided("trainer GPUs", split.trainer_gpus, split.node, "--trainer-gpus", reason)
    rollout = split.divided("rollout GPUs", split.rollout_gpus, split.node, "--rollout-gpus", reason)
    split.fits(split.node)
    return [
        Setting("deployment.type", "multi_node"),
        Setting("deployment.num_train_nodes", trainer),
        Setting("deployment.num_infer_nodes", rollout),
        Setting("deployment.gpus_per_node", split.node),
        Setting("deployment.num_infer_replicas", 1),
    ]
