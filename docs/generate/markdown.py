"""Markdown tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    r"""
    A Markdown table; cells are escaped, code in backticks is left alone.

    >>> print(table(["a", "b"], [["1", "x|y"]]), end="")
    | a | b |
    | --- | --- |
    | 1 | x\|y |
    """
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
