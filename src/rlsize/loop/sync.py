"""How new weights reach the fleet of a loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.estimates.sync_prediction import TRANSPORTS
from rlsize.facts.figure import Figure
from rlsize.facts.quantisation import WIDTHS

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
