"""Files of response lengths: one length a line, or a length and how often it came; also as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rlsize.errors import Fault, InputError, refuse
from rlsize.readers.yaml_documents import read_text

if TYPE_CHECKING:
    from pathlib import Path

MOST_BYTES = 64 * 2**20
_MOST_TOKENS = 1e8
_POINTS = 10_000  # quantiles that are kept of a longer list
_PAIR = 2  # a length and its count
_INSTEAD = f"give tokens, 1 to {_MOST_TOKENS:.0e}"


def read_lengths(path: str | Path) -> tuple[float, ...]:
    """
    Response lengths, sorted, each as likely as any other.

    Args:
        path: Text with one length a line (a heading is skipped), or `length,count` a line; or a JSON list of either.

    Raises:
        InputError: It cannot be read, or a line holds something else.
    """
    import numpy as np

    text = read_text(path, MOST_BYTES)
    rows = _json_rows(text, str(path)) if text.lstrip().startswith("[") else _lines(text, str(path))
    lengths = np.array([row[0] for row in rows])
    counts = np.array([row[1] for row in rows])
    if not counts.sum():
        raise InputError(Fault("holds no lengths", str(path), "give one length a line, or a length and a count"))
    order = np.argsort(lengths)
    below = np.cumsum(counts[order]) / counts.sum()
    points = max(1, min(_POINTS, int(counts.sum())))
    shares = (np.arange(points) + 0.5) / points
    return tuple(float(value) for value in lengths[order][np.searchsorted(below, shares)])


def _lines(text: str, path: str) -> list[tuple[float, float]]:
    rows, faults, heading = [], [], False
    for number, line in enumerate(text.splitlines(), start=1):
        cells = line.replace(",", " ").replace(";", " ").split()
        if not cells or line.lstrip().startswith("#"):
            continue
        row = _row(cells)
        if row is not None:
            rows.append(row)
        elif rows or heading or _number(cells[0]) is not None:
            faults.append(Fault(f"{line.strip()[:60]!r} is no length", f"{path}, line {number}", _INSTEAD))
        else:
            heading = True
    refuse(faults[:5])
    return rows


def _json_rows(text: str, path: str) -> list[tuple[float, float]]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(Fault(f"is no JSON: {error}", path, "give a list of lengths")) from None
    rows = []
    for index, entry in enumerate(found):
        row = _row(entry if isinstance(entry, list) else [entry])
        if row is None:
            raise InputError(Fault(f"{str(entry)[:60]} is no length", f"{path}, entry {index}", _INSTEAD))
        rows.append(row)
    return rows


def _row(cells: list[Any]) -> tuple[float, float] | None:
    """A length and its count; None where the cells say something else."""
    if not 0 < len(cells) <= _PAIR:
        return None
    length, count = (_number(cell) for cell in (*cells, 1.0)[:_PAIR])
    if length is None or count is None:
        return None
    return (length, count) if 1.0 <= length <= _MOST_TOKENS and 0.0 <= count <= _MOST_TOKENS else None


def _number(cell: Any) -> float | None:  # noqa: ANN401 (whatever a file holds)
    """A cell as a number; None where it is none."""
    if isinstance(cell, bool):
        return None
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return None
