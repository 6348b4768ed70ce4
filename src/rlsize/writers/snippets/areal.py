"""AReaL: YAML; how each side is spread is one string."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.writers.snippets.snippet import Framework, KeyGroup, Keys, Snippet

if TYPE_CHECKING:
    from rlsize.writers.snippets.split import Split


def snippet(split: Split) -> Snippet:
    """The YAML of a split."""
    split.only("tensor", "pipeline")
    split.whole_batches()
    if split.said.engine not in {"vllm", "sglang"}:
        what = (
            f"AReaL runs vllm or sglang, not {split.said.engine}"
            if split.said.engine
            else "which engine? AReaL names it"
        )
        split.refuse(what, "--engine", "nearest: --engine sglang")
    split.syncs_every_step()
    pool = split.pool(split.gpus, "--rollout-gpus", "GPUs of both sides")
    split.fits(min(split.node, split.rollout_gpus))
    keys: Keys = {
        "cluster.n_nodes": pool.nodes,
        "cluster.n_gpus_per_node": pool.per_node,
        "rollout.backend": f"{split.said.engine}:d{split.instances}p{split.said.rollout.pipeline or 1}t{split.tensor}",
        "rollout.max_head_offpolicyness": split.staleness,
        "rollout.consumer_batch_size": split.prompts,
        "actor.backend": _trainer(split),
        "actor.ppo_n_minibatches": split.said.mini_batches,
        "gconfig.n_samples": split.group,
        "train_dataset.batch_size": split.prompts,
    }
    note = "AReaL before 1.0 had one key for both: allocation_mode, with a plus between the two strings."
    return Snippet(KeyGroup("configuration", "yaml", keys), notes=(note,))


def _trainer(split: Split) -> str:
    """The trainer's string: Megatron where it has stages or experts apart, else FSDP."""
    degrees = split.said.trainer.said()
    tensor, stages, context = (degrees.get(name, 1) for name in ("tensor", "pipeline", "context"))
    backend = "megatron" if stages > 1 or "expert" in degrees else "fsdp"
    reason = "each replica of the trainer has tensor x pipeline x context GPUs"
    data = split.divided("trainer GPUs", split.trainer_gpus, tensor * stages * context, "--trainer-gpus", reason)
    more = (f"c{context}" if context > 1 else "") + (f"e{degrees['expert']}" if "expert" in degrees else "")
    return f"{backend}:d{data}p{stages}t{tensor}{more}"


FRAMEWORK = Framework(
    name="areal",
    title="AReaL",
    source="AReaL 1.0.4 (commit 4aef98d8, 2026-05-21)",
    variants={"async": ("async", "one-step-off", "synchronous")},
    refused={"colocated": ("no key for engines on the trainer's GPUs was read", "--mode sync with two pools")},
    snippet=snippet,
)
