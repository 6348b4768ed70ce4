"""
A report as one JSON object: flat results in base units, named rows, and an explanation of each result.

Predictions of records are JSON lines, under the record's own field names and in its own units.
"""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rlsize.reports.equation_page import page
from rlsize.reports.report import Cell, Report, cell_value
from rlsize.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlsize.facts.figure import Figure
    from rlsize.facts.records import RefusedRecord
    from rlsize.verdicts.predictions import PredictedRecord

SCHEMA_VERSION = 1


def json_text(report: Report, facts_digest: str) -> str:
    """
    The report as JSON text.

    Args:
        report: What to write.
        facts_digest: Digest of the facts and equations behind it.

    Returns:
        One object; never NaN or Infinity, but null with a reason in `explain`.
    """
    return json.dumps(json_object(report, facts_digest), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def json_object(report: Report, facts_digest: str) -> dict[str, Any]:
    """The report as plain data."""
    if report.of:
        report = replace(report, of="", results=tuple(replace(one, key=report.of + one.key) for one in report.results))
    # An entry for each input and result; an input that a result has the key of stands under `inputs.KEY`
    results = {figure.key: figure for figure in report.results}
    asked = {f"inputs.{f.key}" if f.key in results and results[f.key] != f else f.key: f for f in report.inputs}
    return {
        "schema_version": SCHEMA_VERSION,
        "command": report.command,
        "rlsize_version": VERSION,
        "facts_digest": facts_digest,
        "inputs": {figure.key: _finite(figure) for figure in report.inputs},
        "results": {figure.key: _finite(figure) for figure in report.results},
        "rows": {
            name: [{key: _finite(cell) for key, cell in row.items() if key[:1] != "_"} for row in table.rows]
            for name, table in report.tables.items()
        },
        "explain": {name: _explanation(figure) for name, figure in (asked | results).items()},
        "warnings": list(report.warnings),
        "headline": report.headline,
        "notes": list(report.notes),
    }


def _finite(cell: Cell) -> Any:  # noqa: ANN401 (a JSON scalar)
    value = cell_value(cell)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _explanation(figure: Figure) -> dict[str, Any]:
    reason = None if figure.known else f"needs {figure.missing}"
    if figure.known and _finite(figure) is None:
        reason = f"{figure.value} is not a finite number"
    found: dict[str, Any] = {
        "provenance": figure.provenance if figure.known else None,
        "source": figure.source,
        "band": list(figure.band) if figure.band else None,
        "deviation": figure.deviation or None,
        "reason": reason,
        "verified": None if figure.verified else False,
        "inputs": {name: _finite(value) for name, value in figure.inputs.items()},
    }
    if figure.equation:
        entry = page(figure.equation)
        found |= {
            "equation": figure.equation,
            "formula": entry.formula,
            "unit": entry.unit,
            "assumes": entry.assumes,
            "source": entry.source,
        }
    return {key: value for key, value in found.items() if value not in (None, "", {})}


def rows_text(records: Iterable[PredictedRecord], refused: Iterable[RefusedRecord]) -> str:
    """
    Every record as a line, in the order in which they were read.

    Returns:
        Lines with `id`, `class` and either `fields` (for each measured field `predicted`, `low`, `high` and `measured`;
        low and high are null without a band) or `refused` with the reason.
    """
    lines = [(entry.place, _predicted(entry)) for entry in records]
    lines += [(one.place, {"id": one.id, "class": one.class_name or None, "refused": one.reason}) for one in refused]
    ordered = sorted(lines, key=lambda line: line[0])
    return "".join(f"{json.dumps(line, ensure_ascii=False, allow_nan=False)}\n" for _, line in ordered)


def _shortened(value: float | None) -> float | None:
    """Twelve digits: the last ones of a float are the processor's, and the file is compared with others."""
    return None if value is None else float(f"{value:.12g}")


def _predicted(entry: PredictedRecord) -> dict[str, Any]:
    record = entry.record
    return {
        "id": record.id,
        "class": entry.class_name,
        "source_id": record.source_id,
        "trust": record.trust,
        "graded": entry.fields[0].name,
        "fields": {
            field.name: {
                "predicted": _shortened(field.predicted),
                "low": _shortened(field.low),
                "high": _shortened(field.high),
                "measured": field.measured,
            }
            for field in entry.fields
        },
        "assumed": list(record.assumed),
        "out_of_order": entry.out_of_order or None,
    }


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
    rows = ([f.key, _safe(f.value), f.provenance, _safe(f.equation or f.source)] for f in report.results)
    return _written(header, rows)


def _safe(value: Any) -> Any:  # noqa: ANN401 (a CSV scalar)
    """Text that a spreadsheet would run as a formula is quoted as text; numbers stay as they are."""
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value


def _written(header: list[str], rows: Iterable[list[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()
