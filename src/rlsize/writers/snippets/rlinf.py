"""RLinf: YAML; components stand on ranks of accelerators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.writers.snippets.snippet import Framework, KeyGroup, Keys, Snippet

if TYPE_CHECKING:
    from rlsize.writers.snippets.split import Split

_PLACE = "cluster.component_placement"
_UNREAD = ("no key for staleness of language models was read", "--mode sync")


def snippet(split: Split) -> Snippet:
    """The YAML of a split: the fleet on the first ranks, where engines begin as nodes do; rewards on the trainer's."""
    split.only("tensor")
    split.equal_updates()
    split.runs("sglang", "vllm")
    split.syncs_every_step()
    pool = split.pool(split.gpus, "--trainer-gpus", "GPUs of both sides")
    split.fits(min(split.node, split.rollout_gpus))
    apart = not split.shared
    keys: Keys = {
        "cluster.num_nodes": pool.nodes,
        f"{_PLACE}.actor,rollout,reward": f"0-{split.gpus - 1}" if split.shared else None,
        f"{_PLACE}.rollout": f"0-{split.rollout_gpus - 1}" if apart else None,
        f"{_PLACE}.actor,reward": f"{split.rollout_gpus}-{split.gpus - 1}" if apart else None,
        "rollout.tensor_parallel_size": split.tensor,
        "data.rollout_batch_size": split.prompts,
        "algorithm.group_size": split.group,
        "algorithm.n_minibatches": split.said.mini_batches,
    }
    note = "No inference component: a plan counts old and reference log-probabilities on the trainer's GPUs."
    return Snippet(KeyGroup("configuration", "yaml", keys), notes=(*([note] if apart else []), *split.trainer_note()))


FRAMEWORK = Framework(
    name="rlinf",
    title="RLinf",
    source="RLinf (commit a3816b59, 2026-08-22; placement as of 0.3.0)",
    variants={"collocated": ("colocated",), "disaggregated": ("synchronous",)},
    refused={"async": _UNREAD, "one-step-off": _UNREAD},
    snippet=snippet,
)
