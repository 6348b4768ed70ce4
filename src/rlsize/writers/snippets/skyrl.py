"""SkyRL: dotted overrides."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from rlsize.writers.snippets.snippet import Part, Setting, Snippet

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.writers.snippets.split import Split

NAME = "skyrl"
TITLE = "SkyRL"
SOURCE = "SkyRL (commit a9564572, 2026-08-21; constraints as of 0.4.0)"
VARIANTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"colocated": ("colocated",), "sync": ("synchronous",), "fully-async": ("async", "one-step-off")}
)
REFUSED: Mapping[str, tuple[str, str]] = MappingProxyType({})
_ENGINE = "generator.inference_engine"


def snippet(split: Split) -> Snippet:
    """
    The overrides of a split.

    Fully async training takes one mini batch a step, and has as many generation workers as its staleness lets groups
    of samples be ahead.
    """
    split.only("tensor", "pipeline", "data")
    split.whole_batches()
    split.runs(TITLE, "vllm")
    split.syncs_every_step(TITLE)
    pool = split.trainer_pool()
    split.fits(pool.per_node if split.shared else min(split.node, split.rollout_gpus))
    settings = [
        Setting("trainer.placement.colocate_all", split.shared),
        Setting("trainer.placement.policy_num_nodes", pool.nodes),
        Setting("trainer.placement.policy_num_gpus_per_node", pool.per_node),
        Setting(f"{_ENGINE}.num_engines", split.instances),
        Setting(f"{_ENGINE}.tensor_parallel_size", split.tensor),
    ]
    degrees = split.rollout.said("pipeline", "data")
    settings += [Setting(f"{_ENGINE}.{name}_parallel_size", degree) for name, degree in degrees.items()]
    if split.memory_fraction is not None:
        settings.append(Setting(f"{_ENGINE}.gpu_memory_utilization", split.memory_fraction))
    settings += [
        Setting("trainer.train_batch_size", split.prompts),
        Setting("trainer.policy_mini_batch_size", split.mini_batch),
        Setting("generator.n_samples_per_prompt", split.group),
    ]
    if split.variant == "fully-async":
        if split.mini_batches != 1:
            what = f"fully async training makes one update of each batch, not {split.mini_batches}"
            split.refuse(what, "--mini-batches", "nearest: --mini-batches 1")
        workers = split.prompts * (split.staleness + 1)
        settings += [
            Setting("trainer.fully_async.enabled", value=True),
            Setting("trainer.fully_async.max_staleness_steps", split.staleness),
            Setting("trainer.fully_async.num_parallel_generation_workers", workers),
        ]
    part = Part(title="overrides", form="overrides", settings=tuple(settings))
    note = "Workers are groups of samples in flight: between one batch and (1 + staleness) batches; this is the most."
    notes = (note,) if split.variant == "fully-async" else ()
    return Snippet(parts=(part,), notes=(*notes, *split.trainer_note()))
