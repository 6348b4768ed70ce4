"""Rows of figures as cells of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.facts.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Mapping


def without_reasons(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with empty cells where an input is missing: one column of it says for all of them which."""
    return {key: None if isinstance(cell, Figure) and not cell.known else cell for key, cell in row.items()}
