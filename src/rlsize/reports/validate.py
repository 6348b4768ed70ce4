"""What to say about predictions graded against measurements."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlsize.facts.figure import Figure
from rlsize.reports.report import Column, Report, Table
from rlsize.reports.validate_chart import validate_chart
from rlsize.reports.validate_transfer import transfer_notes, transfer_tables
from rlsize.reports.validate_winners import winners_table
from rlsize.units import short, show
from rlsize.verdicts.grading import worse, worst

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.facts.records.listing import RefusedRecord
    from rlsize.reports.report import Cell
    from rlsize.verdicts.contests import Contest
    from rlsize.verdicts.grading import ClassGrade, Limits, TransferGrade
    from rlsize.verdicts.predictions import PredictedRecord
    from rlsize.verdicts.scores import Score
    from rlsize.verdicts.transfer import Transfer

_WORST = 3  # rows of each class
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_ERRORS = (Column("median_error_fraction", "median"), Column("p90_error_fraction", "p90"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Grading:
    """
    All that a validation found.

    Args:
        records: Records with their predictions.
        refused: Rows that could not be read or predicted.
        grades: The score of each class.
        limits: Largest median and 90th percentile that were allowed.
        moved: Pairs of records, where they were asked for.
        transfer_grades: Their scores.
        contests: Pairs of records that did the same work in two ways.
    """

    records: Sequence[PredictedRecord]
    refused: Sequence[RefusedRecord]
    grades: Sequence[ClassGrade]
    limits: Limits = (None, None)
    moved: Transfer | None = None
    transfer_grades: Sequence[TransferGrade] = ()
    contests: Sequence[Contest] = ()


def validate_report(
    found: Grading, inputs: Sequence[Figure] = (), warnings: Sequence[str] = (), notes: Sequence[str] = ()
) -> Report:
    """
    The report of `rlsize validate`; its answer is no where a class is worse than allowed.

    Args:
        found: What was found.
        inputs: What was asked.
        warnings: What casts doubt.
        notes: What happened on the way.
    """
    tables = {"classes": _classes(found.grades), "cells": _cells(found.grades), "fields": _fields(found.grades)}
    if found.moved is not None:
        tables |= transfer_tables(found.transfer_grades)
    if found.contests:
        tables["winners"] = winners_table(found.contests)
    tables["worst"] = _worst(found.records)
    if found.refused:
        tables["refused"] = _refused(found.refused)
    said = [*_class_notes(found), *(transfer_notes(found.moved) if found.moved else []), *notes]
    results = _results(found)
    return Report(
        command="validate",
        headline=_headline(found),
        results=results,
        inputs=tuple(inputs),
        tables=tables,
        warnings=tuple(warnings),
        notes=tuple(said),
        chart=validate_chart(found.records),
        no=bool(worse(found.grades, found.limits)),
        quiet=frozenset(figure.key for figure in results),
    )


def _headline(found: Grading) -> str:
    total = len(found.records) + len(found.refused)
    text = f"{len(found.records)} of {total} records predicted"
    graded = [grade for grade in found.grades if grade.trusted]
    if not graded:
        return f"{text}, none of high or medium trust, so none is graded."
    bad = worse(found.grades, found.limits)
    if bad:
        over = "; ".join(_errors(grade) for grade in bad)
        return f"{text}; worse than allowed: {over}."
    return f"{text}; median and 90th percentile error: {'; '.join(_errors(grade) for grade in graded)}."


def _errors(grade: ClassGrade) -> str:
    own = grade.headline
    return f"{grade.class_name} {show(own.median, 'error_fraction')} and {show(own.p90, 'error_fraction')}"


def _results(found: Grading) -> tuple[Figure, ...]:
    graded = [grade.headline for grade in found.grades if grade.trusted]
    values: dict[str, float] = {
        "predicted_records": len(found.records),
        "graded_records": sum(own.n for own in graded),
        "refused_records": len(found.refused),
    }
    if graded:
        values["largest_median_error_fraction"] = max(own.median for own in graded)
        values["largest_p90_error_fraction"] = max(own.p90 for own in graded)
    return tuple(Figure(key=key, value=value, provenance="predicted") for key, value in values.items())


def scored(own: Score) -> dict[str, Cell]:
    """The cells of a score."""
    low, high = own.coverage_interval or (None, None)
    interval = "-" if low is None or high is None else f"{100 * low:.0f}-{100 * high:.0f} %"
    return {
        "records": own.n,
        "sources": own.sources,
        "families": own.families,
        "median_error_fraction": own.median,
        "p90_error_fraction": own.p90,
        "bias_fraction": round(math.expm1(own.bias), 3),
        "bias_log": own.bias,
        "banded_records": own.banded,
        "coverage_fraction": own.coverage,
        "coverage_interval": interval,
        "coverage_low_fraction": low,
        "coverage_high_fraction": high,
        "resampled": own.resampled,
        "band_ratio": float(f"{own.width:.3g}") if own.width else None,
    }


def _classes(grades: Sequence[ClassGrade]) -> Table:
    rows = tuple(
        {
            "class": _class_name(grade),
            "trust": "high, medium" if grade.trusted else "low, or out of order",
            "graded_fields": ", ".join(grade.names),
            **scored(grade.headline),
        }
        for grade in grades
    )
    columns = (
        Column("class", "class", "left"),
        Column("records", "n"),
        Column("sources", "from"),
        *_ERRORS,
        Column("bias_fraction", "bias"),
        Column("coverage_fraction", "in band"),
        Column("coverage_interval", "interval", "left"),
        Column("band_ratio", "ends"),
    )
    note = (
        "from: how many sources; errors are |predicted/measured - 1|, bias their median\n"
        "with its sign; bands are meant to hold 80 %, the interval of that is 95 %;\n"
        "ends: upper over lower"
    )
    return Table(title="Each class, by the field that counts", columns=columns, rows=rows, note=note)


def _class_name(grade: ClassGrade) -> str:
    return grade.class_name if grade.trusted else f"{grade.class_name} *"


def _cells(grades: Sequence[ClassGrade]) -> Table:
    """Parts of each class, trusted records only."""
    rows = tuple(
        {"class": grade.class_name, "cell": name, **scored(own)}
        for grade in grades
        if grade.trusted
        for name, own in grade.cells.items()
    )
    columns = (
        Column("class", "class", "left"),
        Column("cell", "of these", "left", wide=True),
        Column("records", "n"),
        *_ERRORS,
        Column("bias_fraction", "bias"),
        Column("coverage_fraction", "in band"),
    )
    return Table(title="By kind of model", columns=columns, rows=rows)


def _fields(grades: Sequence[ClassGrade]) -> Table:
    """Each measured field, the ones that count first."""
    rows: list[Mapping[str, Cell]] = []
    for grade in grades:
        names = [*grade.names, *(name for name in grade.fields if name not in grade.names)]
        rows += [
            {
                "class": _class_name(grade),
                "trust": "high, medium" if grade.trusted else "low, or out of order",
                "field": name,
                "counts": name in grade.names,
                **scored(grade.fields[name]),
            }
            for name in names
        ]
    columns = (
        Column("class", "class", "left"),
        Column("field", "field", "left", wide=True),
        Column("records", "n"),
        *_ERRORS,
        Column("coverage_fraction", "in band"),
    )
    return Table(title="Each measured field", columns=columns, rows=tuple(rows))


def _worst(records: Sequence[PredictedRecord]) -> Table:
    rows: list[dict[str, Cell]] = []
    for record in worst(records, _WORST):
        field = record.fields[0]
        rows.append(
            {
                "id": record.record.id,
                "class": record.class_name,
                "field": field.name,
                "measured": field.measured,
                "predicted": field.predicted,
                "low": field.low,
                "high": field.high,
                "band": "-"
                if field.low is None or field.high is None
                else f"{short(field.low)} to {short(field.high)}",
                "error_fraction": abs(field.predicted / field.measured - 1),
            }
        )
    columns = (
        Column("id", "record", "left", wide=True),
        Column("measured", "measured"),
        Column("predicted", "predicted"),
        Column("band", "80 % band", "left"),
        Column("error_fraction", "error"),
    )
    note = "each in the unit of the field that counts"
    return Table(title=f"The worst {_WORST} of each class", columns=columns, rows=tuple(rows), note=note)


def _refused(refused: Sequence[RefusedRecord]) -> Table:
    """Refusals by reason; those that differ only in their numbers stand together."""
    alike: dict[tuple[str, str], list[RefusedRecord]] = {}
    for row in refused:
        alike.setdefault((row.class_name, _NUMBER.sub("#", row.reason)), []).append(row)
    rows: list[dict[str, Cell]] = []
    for (name, _), same in sorted(alike.items(), key=lambda item: (item[0][0], -len(item[1]), item[0][1])):
        reasons = list(dict.fromkeys(row.reason for row in same))
        rows.append(
            {
                "class": name or "-",
                "records": len(same),
                "reason": reasons[0] + (" (others alike)" if len(reasons) > 1 else ""),
                "shown_ids": same[0].id + (f" and {len(same) - 1} more" if len(same) > 1 else ""),
                "ids": ", ".join(row.id for row in same),
                "reasons": "; ".join(reasons),
            }
        )
    columns = (
        Column("class", "class", "left"),
        Column("records", "n"),
        Column("reason", "reason", "left", wide=True),
        Column("shown_ids", "records", "left", wide=True),
    )
    return Table(title="Refused", columns=columns, rows=tuple(rows))


def _class_notes(found: Grading) -> list[str]:
    notes = []
    alone = [
        f"{grade.class_name} (by {grade.headline.resampled})"
        for grade in found.grades
        if grade.trusted and grade.headline.resampled != "source" and grade.headline.banded
    ]
    if alone:
        notes.append(f"The interval resamples sources; with one source only, smaller groups: {', '.join(alone)}.")
    assumed = sum(bool(record.record.assumed) for record in found.records)
    if assumed:
        notes.append(f"{assumed} records leave something out that was assumed; --rows FILE.jsonl says what.")
    if any(not grade.trusted for grade in found.grades):
        notes.append("* Records of low trust, or out of order with their neighbours; no limit counts them.")
    return notes
