"""PipelineRL: hydra overrides; GPUs are shared out by fractions."""

from __future__ import annotations

from math import gcd
from types import MappingProxyType
from typing import TYPE_CHECKING

from rlsize.writers.snippets.snippet import Part, Setting, Snippet

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.writers.snippets.split import Split

NAME = "pipeline-rl"
TITLE = "PipelineRL"
SOURCE = "PipelineRL (commit 58d39345, 2026-06-19)"
VARIANTS: Mapping[str, tuple[str, ...]] = MappingProxyType({"async": ("async", "one-step-off")})
REFUSED: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "colocated": ("actors and trainer have GPUs of their own", "--mode async"),
        "synchronous": ("actors never wait for the trainer: weights change while they generate", "--mode async"),
    }
)

_REFERENCE = (
    "the plan keeps a reference model on the trainer's GPUs; PipelineRL runs one on the preprocessor's, which has none"
)


def snippet(split: Split) -> Snippet:
    """The overrides of a split; the fractions are its GPUs over what both sides have in common."""
    split.only("tensor")
    split.runs(TITLE, "vllm")
    split.syncs_every_step(TITLE)
    split.updates_once(TITLE)
    if split.gpus > split.node:
        for gpus, flag, what in (
            (split.rollout_gpus, "--rollout-gpus", "rollout GPUs"),
            (split.trainer_gpus, "--trainer-gpus", "trainer GPUs"),
        ):
            split.divided(what, gpus, split.node, flag, f"beyond one node of {split.node} each side has whole nodes")
    split.fits(min(split.node, split.rollout_gpus))
    unit = gcd(split.rollout_gpus, split.trainer_gpus)
    settings = (
        Setting("world.replicas", 1),
        Setting("world.actor_fraction", split.rollout_gpus // unit),
        Setting("world.preprocessor_fraction", 0),
        Setting("world.finetune_fraction", split.trainer_gpus // unit),
        Setting("vllm_config.vllm_kwargs.tensor-parallel-size", split.tensor),
        Setting("attempts", split.group, read=False),
        Setting("max_lag", split.staleness * split.samples),
    )
    part = Part(title="overrides", form="overrides", settings=settings)
    return Snippet(
        parts=(part,),
        warnings=(_REFERENCE,) if split.reference else (),
        notes=(
            f"The fractions share out {split.gpus} GPUs: start it on exactly as many.",
            f"Taken for granted, not read: max_lag counts samples, {split.samples} to an optimizer step.",
            f"Not set: the batch of {split.samples} samples; its key was not read.",
            *split.trainer_note(),
        ),
    )
