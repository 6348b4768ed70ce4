"""Class of transport and number type on the wire of a planned sync, as commands ask that are not converted yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.loop import sync

if TYPE_CHECKING:
    from rlsize.shell.inputs import Inputs


def transport_class(inputs: Inputs, text: str | None) -> str:
    """The class: of the flag, else the one that is like the scenario's method, else by placement."""
    shared = inputs.said("placement.mode") == "colocated"
    return sync.transport(inputs if text is None else inputs.instead(transport=text), shared=shared)


def wire_dtype(inputs: Inputs, text: str | None) -> str:
    """The type on the wire: of the sync, else of the rollout weights, else bf16."""
    return sync.wire_dtype(inputs if text is None else inputs.instead(wire_dtype=text))
