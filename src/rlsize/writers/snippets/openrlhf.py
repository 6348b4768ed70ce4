"""OpenRLHF: flags of its PPO trainer on Ray."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from rlsize.writers.snippets.snippet import Part, Setting, Snippet

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.writers.snippets.split import Nodes, Split

NAME = "openrlhf"
TITLE = "OpenRLHF"
SOURCE = "OpenRLHF 0.11.0 (commit 3c3be623, 2026-08-13)"
VARIANTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"colocated": ("colocated",), "sync": ("synchronous",), "async": ("async", "one-step-off")}
)
REFUSED: Mapping[str, tuple[str, str]] = MappingProxyType({})
_UNSAID = (
    "nobody says whether a reference model is kept: by default OpenRLHF has one, on 8 GPUs of its own that no plan "
    "counts; give --train.colocate_actor_ref, or --algo.kl.init_coef 0"
)


def snippet(split: Split) -> Snippet:
    """
    The flags of a split.

    A slot of the queue is free again when the trainer takes a batch, so a queue of k batches lets samples be k steps
    old; the reference model has GPUs of its own, 8 by default, unless it shares those of the actor.
    """
    split.only("tensor")
    split.equal_updates()
    split.runs(TITLE, "vllm")
    split.syncs_every_step(TITLE)
    pool = split.trainer_pool()
    split.fits(pool.per_node if split.shared else min(split.node, split.rollout_gpus))
    settings = [
        Setting("actor.num_nodes", pool.nodes),
        Setting("actor.num_gpus_per_node", pool.per_node),
        Setting("vllm.num_engines", split.instances),
        Setting("vllm.tensor_parallel_size", split.tensor),
    ]
    if split.memory_fraction is not None:
        settings.append(Setting("vllm.gpu_memory_utilization", split.memory_fraction))
    settings += [
        Setting("rollout.batch_size", split.prompts),
        Setting("rollout.n_samples_per_prompt", split.group),
        Setting("train.batch_size", split.samples // split.mini_batches),
    ]
    settings += [*_mode(split), *_reference(split, pool)]
    part = Part(title="flags", form="flags", command="python3 -m openrlhf.cli.train_ppo_ray", settings=tuple(settings))
    warnings = (_UNSAID,) if split.reference is None else ()
    return Snippet(parts=(part,), notes=split.trainer_note(), warnings=warnings)


def _mode(split: Split) -> list[Setting]:
    if split.shared:
        return [Setting("train.colocate_all", value=True)]
    if split.variant != "async":
        return []
    settings = [Setting("train.async_enable", value=True), Setting("train.async_queue_size", split.staleness)]
    return [*settings, Setting("train.partial_rollout_enable", value=True)] if split.in_flight else settings


def _reference(split: Split, pool: Nodes) -> list[Setting]:
    """The reference model on the actor's GPUs, where a plan counts it; none where there is none."""
    if split.reference is None:
        return []
    if not split.reference:
        return [Setting("algo.kl.init_coef", 0)]
    settings = [Setting("ref.num_nodes", pool.nodes), Setting("ref.num_gpus_per_node", pool.per_node)]
    return settings if split.shared else [*settings, Setting("train.colocate_actor_ref", value=True)]
