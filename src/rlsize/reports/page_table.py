"""What stands in and below the tables of a page: bands, and who says what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.facts.figure import Figure
from rlsize.reports.wording import band, origin_word

if TYPE_CHECKING:
    from rlsize.reports.report import Cell, Table


def basis(cell: Cell, table: Table) -> str:
    """The band of a figure, after who says so where not all figures of its table have it from the same."""
    if not isinstance(cell, Figure) or not cell.known:
        return ""
    origin = origin_word(cell) if len(_origins(table)) > 1 else ""
    return ", ".join(filter(None, [origin, band(cell)]))


def table_notes(table: Table) -> list[str]:
    """The lines below a table: its own, who says so, and what bands are."""
    origins = _origins(table)
    alike = f"All figures are {origins[0]}." if len(origins) == 1 else ""
    banded = "Beside a value stands its 80 % band." if any(figure.band for figure in _figures(table)) else ""
    return [note for note in (table.note, " ".join(filter(None, [alike, banded]))) if note]


def _figures(table: Table) -> list[Figure]:
    """What a table has in cells that are seen."""
    cells = (row.get(column.key) for row in table.seen for column in table.columns)
    return [cell for cell in cells if isinstance(cell, Figure) and cell.known]


def _origins(table: Table) -> list[str]:
    return list(dict.fromkeys(map(origin_word, _figures(table))))
