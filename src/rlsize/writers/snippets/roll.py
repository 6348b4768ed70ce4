"""ROLL: YAML; each role has a list of devices."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from rlsize.writers.snippets.snippet import Part, Setting, Snippet

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.writers.snippets.split import Split

NAME = "roll"
TITLE = "ROLL"
SOURCE = "ROLL (commit 8eb27cc2, 2026-08-19)"
VARIANTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"colocated": ("colocated",), "sync": ("synchronous",), "async": ("async", "one-step-off")}
)
REFUSED: Mapping[str, tuple[str, str]] = MappingProxyType({})


def snippet(split: Split) -> Snippet:
    """The YAML of a split: the trainer on the first devices, the fleet on those behind them."""
    split.only("tensor")
    split.syncs_every_step(TITLE)
    split.updates_once(TITLE)
    first = 0 if split.shared else split.trainer_gpus
    _aligned(split, first)
    settings = [
        Setting("num_gpus_per_node", split.node),
        Setting("actor_train.device_mapping", _devices(0, split.trainer_gpus)),
        Setting("actor_infer.device_mapping", _devices(first, split.rollout_gpus)),
        Setting("actor_infer.strategy_args.strategy_config.tensor_parallel_size", split.tensor),
        Setting("rollout_batch_size", split.prompts, read=False),
        Setting("num_return_sequences_in_group", split.group, read=False),
        Setting("async_generation_ratio", split.staleness),
    ]
    part = Part(title="configuration", form="yaml", settings=tuple(settings))
    notes = ("Reference and reward workers need a device_mapping too; a plan counts them on the trainer's GPUs.",)
    return Snippet(parts=(part,), notes=(*notes, *split.trainer_note()))


def _devices(first: int, count: int) -> str:
    return f"list(range({first},{first + count}))"


def _aligned(split: Split, first: int) -> None:
    """Refuse engines that would begin in the middle of another's place in a node."""
    split.fits(split.node)
    unit = min(split.size, split.node)
    if first % unit:
        near = [count for count in (first - first % unit, first + unit - first % unit) if count]
        what = f"engines of {split.size} GPUs behind {first} trainer GPUs would lie across nodes"
        split.refuse(what, "--trainer-gpus", f"nearest: --trainer-gpus {' or '.join(map(str, near))}")
