"""RLinf: YAML; components stand on ranks of accelerators."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from rlsize.writers.snippets.snippet import Part, Setting, Snippet

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.writers.snippets.split import Split

NAME = "rlinf"
TITLE = "RLinf"
SOURCE = "RLinf (commit a3816b59, 2026-08-22; placement as of 0.3.0)"
VARIANTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"collocated": ("colocated",), "disaggregated": ("synchronous",)}
)
REFUSED: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "async": ("no key for staleness of language models was read", "--mode sync"),
        "one-step-off": ("no key for staleness of language models was read", "--mode sync"),
    }
)


def snippet(split: Split) -> Snippet:
    """The YAML of a split."""
    split.only("tensor")
    split.equal_updates()
    split.runs(TITLE, "sglang", "vllm")
    split.syncs_every_step(TITLE)
    pool = split.pool(split.gpus, "--trainer-gpus", "GPUs of both sides")
    split.fits(min(split.node, split.rollout_gpus))
    settings = [
        Setting("cluster.num_nodes", pool.nodes),
        *_placed(split),
        Setting("rollout.tensor_parallel_size", split.tensor),
        Setting("data.rollout_batch_size", split.prompts),
        Setting("algorithm.group_size", split.group),
        Setting("algorithm.n_minibatches", split.mini_batches),
    ]
    part = Part(title="configuration", form="yaml", settings=tuple(settings))
    note = "No inference component: a plan counts old and reference log-probabilities on the trainer's GPUs."
    return Snippet(parts=(part,), notes=(*([] if split.shared else [note]), *split.trainer_note()))


def _placed(split: Split) -> list[Setting]:
    """The fleet on the first ranks, so that engines begin where nodes do; rewards on the trainer's."""
    place = "cluster.component_placement"
    if split.shared:
        return [Setting(f"{place}.actor,rollout,reward", f"0-{split.gpus - 1}")]
    return [
        Setting(f"{place}.rollout", f"0-{split.rollout_gpus - 1}"),
        Setting(f"{place}.actor,reward", f"{split.rollout_gpus}-{split.gpus - 1}"),
    ]
