"""One prediction per record as JSON lines, under the record's own field names and in its own units."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlsize.facts.records.listing import RefusedRecord
    from rlsize.verdicts.predictions import PredictedRecord


def rows_text(records: Iterable[PredictedRecord], refused: Iterable[RefusedRecord]) -> str:
    """
    Every record as a line, in the order in which they were read.

    Returns:
        Lines with `id`, `class` and either `fields` (for each measured field `predicted`, `low`, `high` and `measured`;
        low and high are null without a band) or `refused` with the reason.
    """
    lines = [(entry.place, _predicted(entry)) for entry in records]
    lines += [(entry.place, _refused(entry)) for entry in refused]
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


def _refused(entry: RefusedRecord) -> dict[str, Any]:
    return {"id": entry.id, "class": entry.class_name or None, "refused": entry.reason}
