"""ROLL: YAML; each role has a list of devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.writers.snippets.snippet import Framework, KeyGroup, Keys, Snippet
from rlsize.writers.snippets.split import nearest

if TYPE_CHECKING:
    from rlsize.writers.snippets.split import Split


def snippet(split: Split) -> Snippet:
    """The YAML of a split: the trainer on the first devices, the fleet on those behind them."""
    split.only("tensor")
    split.syncs_every_step()
    split.updates_once()
    first = 0 if split.shared else split.trainer_gpus
    split.fits(split.node)
    unit = min(split.size, split.node)
    if first % unit:  # engines would begin in the middle of another's place in a node
        what = f"engines of {split.size} GPUs behind {first} trainer GPUs would lie across nodes"
        split.refuse(what, "--trainer-gpus", f"nearest: --trainer-gpus {nearest(first, unit)}")
    keys: Keys = {
        "num_gpus_per_node": split.node,
        "actor_train.device_mapping": _devices(0, split.trainer_gpus),
        "actor_infer.device_mapping": _devices(first, split.rollout_gpus),
        "actor_infer.strategy_args.strategy_config.tensor_parallel_size": split.tensor,
        "rollout_batch_size": split.prompts,
        "num_return_sequences_in_group": split.group,
        "async_generation_ratio": split.staleness,
    }
    note = "Reference and reward workers need a device_mapping too; a plan counts them on the trainer's GPUs."
    return Snippet(KeyGroup("configuration", "yaml", keys), notes=(note, *split.trainer_note()))


def _devices(first: int, count: int) -> str:
    return f"list(range({first},{first + count}))"


FRAMEWORK = Framework(
    name="roll",
    title="ROLL",
    source="ROLL (commit 8eb27cc2, 2026-08-19)",
    variants={"colocated": ("colocated",), "sync": ("synchronous",), "async": ("async", "one-step-off")},
    unread=("rollout_batch_size", "num_return_sequences_in_group"),
    snippet=snippet,
)
