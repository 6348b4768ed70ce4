"""How new weights reach the fleet of a loop."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rlsize.errors import InputError
from rlsize.estimates.constants_memory import STAGE as MEMORY
from rlsize.estimates.engine_memory import kv_capacity
from rlsize.estimates.engine_work import EngineQuestion
from rlsize.estimates.figures import numbers
from rlsize.estimates.sync_prediction import TRANSPORTS, SyncTimeQuestion
from rlsize.facts.figure import Figure, absent
from rlsize.facts.layout import Layout
from rlsize.facts.quantisation import WIDTHS, uniform
from rlsize.loop.instance import degrees
from rlsize.loop.instance_count import instance_gpus
from rlsize.loop.models import model_and_gpu
from rlsize.loop.pools import node_gpus, two_pools

if TYPE_CHECKING:
    from rlsize.loop.said import Said

DEFAULT_TRANSPORT = "nccl-broadcast"
_METHODS = {  # of `rlsize sync`, by the class that is like it
    **{name: name for name in TRANSPORTS},
    "fp8": "nccl-broadcast",
    "rdma": "nccl-reshard",
    "disk": "store",
    "object-store": "store",
}


def transport(said: Said, *, shared: bool) -> str:
    """
    The class of transport: as said, the one that is like the method that was said, else by placement.

    Args:
        said: What was said.
        shared: Whether both sides have the same GPUs.
    """
    name, where = said.name("transport")
    usual = "colocated" if shared else DEFAULT_TRANSPORT
    if name is None:
        why = "weights stay on the GPU" if shared else "the usual way between two pools"
        said.keep(Figure(key="transport", value=usual, provenance="default", source=why))
        return usual
    like = _METHODS.get(str(name))
    if like is None:
        todo = f"known: {', '.join(TRANSPORTS)}"
        said.fault(f"no class of transport predicts {str(name)[:40]!r}", where, todo)
        return usual
    said.keep(Figure(key="transport", value=like, source=where))
    return like


def wire_dtype(said: Said) -> str:
    """The type on the wire: of the sync, else of the rollout weights, else bf16."""
    method, _ = said.name("transport")
    if method == "fp8" and not said.gives("wire_dtype"):
        return said.choose("wire_dtype", WIDTHS, default="fp8", why="weight_sync.transport is fp8")
    rollout = said.apart().choose("rollout_dtype", WIDTHS, default="bf16")
    why = "as the rollout weights" if said.gives("rollout_dtype") else "bf16 weights are sent as they are"
    return said.choose("wire_dtype", WIDTHS, default=rollout, why=why)


def sync_by_itself(said: Said) -> SyncTimeQuestion:
    """
    A weight sync without its loop: between the pools that are said, of a node each where nobody says.

    Raises:
        InputError: All that is missing or wrong.
    """
    model, gpu = model_and_gpu(said, "trainer")
    colocated = said.gives("mode") and said.choose("mode") == "colocated"
    name, width = transport(said, shared=colocated), wire_dtype(said)
    shared = TRANSPORTS[name].colocated
    total, rollout, trainer = two_pools(said) if not shared else _shared(said)
    if not trainer.known:
        usual, why = node_gpus(said.apart(), gpu).if_known, "a node"
        if total.known:
            usual, why = (
                (total.number, "both sides share the GPUs") if shared else (max(1, total.number // 2), "half of them")
            )
        trainer = said.ask("trainer_gpus", default=usual, why=why)
    if not rollout.known:
        many = "as many as the trainer"
        rollout = trainer if shared else said.ask("rollout_gpus", default=trainer.if_known, why=many)
    size, bucket = instance_gpus(said), said.ask("bucket_bytes")
    said.settle()
    if model is None or gpu is None:
        raise InputError(*said.faults)
    if not size.known:
        least = _holding(EngineQuestion(model=model, gpu=gpu, weights=uniform(width)))
        why = "the fewest that hold the weights"
        size = said.keep(Figure(key="gpus_per_instance", value=least, provenance="default", source=why))
    return SyncTimeQuestion(
        model=model,
        gpu=gpu,
        transport=name,
        dtype=width,
        trainer_gpus=trainer.number,
        rollout_gpus=rollout.number,
        instance_gpus=min(size.number, rollout.number),
        bucket_bytes=bucket.number,
    )


def _holding(asked: EngineQuestion) -> int:
    """The fewest GPUs that hold an engine's weights by tensor parallelism; the most that it can have where none do."""
    values, possible = {one.name: one.value for one in MEMORY.constants}, degrees(asked.model)
    room = (kv_capacity(numbers, replace(asked, layout=Layout(tensor=one)), values, 1.0).kv_bytes for one in possible)
    return next((one for one, left in zip(possible, room, strict=True) if left > 0), possible[-1])


def _shared(said: Said) -> tuple[Figure, Figure, Figure]:
    """GPUs in all, of the fleet and of the trainer where both are the same; two sizes are of two jobs on them."""
    trainer = said.ask("trainer_gpus")
    total = absent("gpus", "--gpus") if trainer.known else said.ask("gpus")
    rollout = said.ask("rollout_gpus") if said.by_flag("rollout_gpus") else absent("rollout_gpus", "--rollout-gpus")
    return total, rollout, trainer
