"""slime: flags of train.py and train_async.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.writers.snippets.snippet import Framework, KeyGroup, Keys, Snippet

if TYPE_CHECKING:
    from rlsize.writers.snippets.split import Split


def snippet(split: Split) -> Snippet:
    """The flags of a split."""
    split.only("tensor")
    split.equal_updates()
    split.runs("sglang")
    pool = split.trainer_pool()
    split.fits(pool.per_node if split.shared else min(split.node, split.rollout_gpus))
    asynchronous = split.variant == "train-async"
    if not asynchronous and split.said.sync_every != 1:
        what = f"train.py updates weights after every batch, not every {split.said.sync_every}"
        split.refuse(what, "--sync-every", "nearest: --sync-every 1, or --mode one-step-off")
    keys: Keys = {
        "actor-num-nodes": pool.nodes,
        "actor-num-gpus-per-node": pool.per_node,
        "colocate": split.shared or None,
        "rollout-num-gpus": None if split.shared else split.rollout_gpus,
        "rollout-num-gpus-per-engine": split.size,
        "rollout-batch-size": split.prompts,
        "n-samples-per-prompt": split.group,
        "global-batch-size": split.samples // split.said.mini_batches,
        "update-weights-interval": split.said.sync_every if asynchronous else None,
    }
    script = "train_async.py" if asynchronous else "train.py"
    return Snippet(KeyGroup("flags", "flags", keys, f"python3 {script}"), notes=split.trainer_note())


FRAMEWORK = Framework(
    name="slime",
    title="slime",
    source="slime 0.3.1 (commit 624b824a, 2026-08-21)",
    variants={"colocate": ("colocated",), "train": ("synchronous",), "train-async": ("one-step-off",)},
    refused={
        "async": ("train_async.py generates one batch ahead, and no key for more was read", "--mode one-step-off")
    },
    unread=("rollout-batch-size", "n-samples-per-prompt", "global-batch-size"),
    snippet=snippet,
)
