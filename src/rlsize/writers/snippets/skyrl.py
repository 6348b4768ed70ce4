"""SkyRL: dotted overrides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.writers.snippets.snippet import Framework, KeyGroup, Keys, Snippet

if TYPE_CHECKING:
    from rlsize.writers.snippets.split import Split

_ENGINE = "generator.inference_engine"
_WORKERS = "Workers are groups of samples in flight: between one batch and (1 + staleness) batches; this is the most."


def snippet(split: Split) -> Snippet:
    """
    The overrides of a split.

    Fully async training takes one mini batch a step, and has as many generation workers as its staleness lets groups
    of samples be ahead.
    """
    split.only("tensor", "pipeline", "data")
    split.whole_batches()
    split.runs("vllm")
    split.syncs_every_step()
    pool = split.trainer_pool()
    split.fits(pool.per_node if split.shared else min(split.node, split.rollout_gpus))
    asynchronous = split.variant == "fully-async"
    if asynchronous and split.said.mini_batches != 1:
        what = f"fully async training makes one update of each batch, not {split.said.mini_batches}"
        split.refuse(what, "--mini-batches", "nearest: --mini-batches 1")
    degrees = split.said.rollout.said("pipeline", "data")
    keys: Keys = {
        "trainer.placement.colocate_all": split.shared,
        "trainer.placement.policy_num_nodes": pool.nodes,
        "trainer.placement.policy_num_gpus_per_node": pool.per_node,
        f"{_ENGINE}.num_engines": split.instances,
        f"{_ENGINE}.tensor_parallel_size": split.tensor,
        f"{_ENGINE}.pipeline_parallel_size": degrees.get("pipeline"),
        f"{_ENGINE}.data_parallel_size": degrees.get("data"),
        f"{_ENGINE}.gpu_memory_utilization": split.said.memory_fraction,
        "trainer.train_batch_size": split.prompts,
        "trainer.policy_mini_batch_size": split.mini_batch,
        "generator.n_samples_per_prompt": split.group,
    }
    if asynchronous:
        keys |= {
            "trainer.fully_async.enabled": True,
            "trainer.fully_async.max_staleness_steps": split.staleness,
            "trainer.fully_async.num_parallel_generation_workers": split.prompts * (split.staleness + 1),
        }
    notes = (_WORKERS,) if asynchronous else ()
    return Snippet(KeyGroup("overrides", "overrides", keys), notes=(*notes, *split.trainer_note()))


FRAMEWORK = Framework(
    name="skyrl",
    title="SkyRL",
    source="SkyRL (commit a9564572, 2026-08-21; constraints as of 0.4.0)",
    variants={"colocated": ("colocated",), "sync": ("synchronous",), "fully-async": ("async", "one-step-off")},
    snippet=snippet,
)
