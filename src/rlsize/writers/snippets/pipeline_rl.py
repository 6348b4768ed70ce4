"""PipelineRL: hydra overrides; GPUs are shared out by fractions."""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING

from rlsize.writers.snippets.snippet import Framework, KeyGroup, Keys, Snippet

if TYPE_CHECKING:
    from rlsize.writers.snippets.split import Split

_REFERENCE = (
    "the plan keeps a reference model on the trainer's GPUs; PipelineRL runs one on the preprocessor's, which has none"
)


def snippet(split: Split) -> Snippet:
    """The overrides of a split; the fractions are its GPUs over what both sides have in common."""
    split.only("tensor")
    split.runs("vllm")
    split.syncs_every_step()
    split.updates_once()
    split.whole_nodes("each side")
    split.fits(min(split.node, split.rollout_gpus))
    unit = gcd(split.rollout_gpus, split.trainer_gpus)
    keys: Keys = {
        "world.replicas": 1,
        "world.actor_fraction": split.rollout_gpus // unit,
        "world.preprocessor_fraction": 0,
        "world.finetune_fraction": split.trainer_gpus // unit,
        "vllm_config.vllm_kwargs.tensor-parallel-size": split.tensor,
        "attempts": split.group,
        "max_lag": split.staleness * split.samples,
    }
    return Snippet(
        KeyGroup("overrides", "overrides", keys),
        warnings=(_REFERENCE,) if split.said.reference else (),
        notes=(
            f"The fractions share out {split.gpus} GPUs: start it on exactly as many.",
            f"Taken for granted, not read: max_lag counts samples, {split.samples} to an optimizer step.",
            f"Not set: the batch of {split.samples} samples; its key was not read.",
            *split.trainer_note(),
        ),
    )


FRAMEWORK = Framework(
    name="pipeline-rl",
    title="PipelineRL",
    source="PipelineRL (commit 58d39345, 2026-06-19)",
    variants={"async": ("async", "one-step-off")},
    refused={
        "colocated": ("actors and trainer have GPUs of their own", "--mode async"),
        "synchronous": ("actors never wait for the trainer: weights change while they generate", "--mode async"),
    },
    unread=("attempts",),
    snippet=snippet,
)
