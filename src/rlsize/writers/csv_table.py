"""The main table of a report as CSV, in base units; where a report has no table, its results as one row each."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

from rlsize.reports.report import Report, cell_value

if TYPE_CHECKING:
    from collections.abc import Iterable


def csv_text(report: Report) -> str:
    """
    The report as CSV text.

    Returns:
        The first table with all its keys as columns; without one, `key,value,provenance,source` for each result.
    """
    table = next(iter(report.tables.values()), None)
    if table is not None:
        keys = list(dict.fromkeys(key for row in table.rows for key in row if not key.startswith("_")))
        return _written(keys, ([_safe(cell_value(row.get(key))) for key in keys] for row in table.rows))
    header = ["key", "value", "provenance", "source"]
    return _written(
        header, ([f.key, _safe(f.value), f.provenance, _safe(f.equation or f.source)] for f in report.results)
    )


def _safe(value: Any) -> Any:  # noqa: ANN401 (a CSV scalar)
    """Text that a spreadsheet would run as a formula is quoted as text; numbers stay as they are."""
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value


def _written(header: list[str], rows: Iterable[list[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()
