"""OpenRLHF: flags of its PPO trainer on Ray."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.writers.snippets.snippet import Framework, KeyGroup, Keys, Snippet

if TYPE_CHECKING:
    from rlsize.writers.snippets.split import Split

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
    split.runs("vllm")
    split.syncs_every_step()
    pool = split.trainer_pool()
    split.fits(pool.per_node if split.shared else min(split.node, split.rollout_gpus))
    asynchronous = split.variant == "async"
    keys: Keys = {
        "actor.num_nodes": pool.nodes,
        "actor.num_gpus_per_node": pool.per_node,
        "vllm.num_engines": split.instances,
        "vllm.tensor_parallel_size": split.tensor,
        "vllm.gpu_memory_utilization": split.said.memory_fraction,
        "rollout.batch_size": split.prompts,
        "rollout.n_samples_per_prompt": split.group,
        "train.batch_size": split.samples // split.said.mini_batches,
        "train.colocate_all": split.shared or None,
        "train.async_enable": asynchronous or None,
        "train.async_queue_size": split.staleness if asynchronous else None,
        "train.partial_rollout_enable": (asynchronous and split.said.in_flight) or None,
        "algo.kl.init_coef": 0 if split.said.reference is False else None,
        "ref.num_nodes": pool.nodes if split.said.reference else None,
        "ref.num_gpus_per_node": pool.per_node if split.said.reference else None,
        "train.colocate_actor_ref": (split.said.reference and not split.shared) or None,
    }
    group = KeyGroup("flags", "flags", keys, "python3 -m openrlhf.cli.train_ppo_ray")
    return Snippet(group, notes=split.trainer_note(), warnings=(_UNSAID,) if split.said.reference is None else ())


FRAMEWORK = Framework(
    name="openrlhf",
    title="OpenRLHF",
    source="OpenRLHF 0.11.0 (commit 3c3be623, 2026-08-13)",
    variants={"colocated": ("colocated",), "sync": ("synchronous",), "async": ("async", "one-step-off")},
    snippet=snippet,
)
