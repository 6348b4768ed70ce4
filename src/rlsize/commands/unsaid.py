"""Inputs that count as nothing when nobody says them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.facts.figure import Figure

if TYPE_CHECKING:
    from rlsize.facts.fields import Quantity
    from rlsize.shell.inputs import Inputs


def zero_unless_said(inputs: Inputs, key: str, flag: str, text: str | None, kind: Quantity) -> Figure:
    """What the flag says, else 0; a 0 that nobody said is not worth a mention among the inputs."""
    said = inputs.number(key, flag, text, kind)
    return said if said.known else Figure(key=key, value=0.0, provenance="default", source=f"default of {flag}")
