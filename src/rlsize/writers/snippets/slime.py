"""slime: flags of train.py and train_async.py."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from rlsize.writers.snippets.snippet import Part, Setting, Snippet

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.writers.snippets.split import Split

NAME = "slime"
TITLE = "slime"
SOURCE = "slime 0.3.1 (commit 624b824a, 2026-08-21)"
VARIANTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"colocate": ("colocated",), "train": ("synchronous",), "train-async": ("one-step-off",)}
)
REFUSED: Mapping[str, tuple[str, str]] = MappingProxyType(
    {"async": ("train_async.py generates one batch ahead, and no key for more was read", "--mode one-step-off")}
)


def snippet(split: Split) -> Snippet:
    """The flags of a split."""
    split.only("tensor")
    split.equal_updates()
    split.runs(TITLE, "sglang")
    pool = split.trainer_pool()
    settings = [
        Setting("actor-num-nodes", pool.nodes),
        Setting("actor-num-gpus-per-node", pool.per_node),
    ]
    if split.shared:
        split.fits(pool.per_node)
        settings.append(Setting("colocate", value=True))
    else:
        split.fits(min(split.node, split.rollout_gpus))
        settings.append(Setting("rollout-num-gpus", split.rollout_gpus))
    settings += [
        Setting("rollout-num-gpus-per-engine", split.size),
        Setting("rollout-batch-size", split.prompts, read=False),
        Setting("n-samples-per-prompt", split.group, read=False),
        Setting("global-batch-size", split.samples // split.mini_batches, read=False),
    ]
    if split.variant == "train-async":
        settings.append(Setting("update-weights-interval", split.sync_every))
    elif split.sync_every != 1:
        what = f"train.py updates weights after every batch, not every {split.sync_every}"
        split.refuse(what, "--sync-every", "nearest: --sync-every 1, or --mode one-step-off")
    script = "train_async.py" if split.variant == "train-async" else "train.py"
    part = Part(title="flags", form="flags", command=f"python3 {script}", settings=tuple(settings))
    return Snippet(parts=(part,), notes=split.trainer_note())
