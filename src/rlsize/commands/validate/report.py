"""What to say about predictions graded against measurements."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rlsize.facts.figure import Figure
from rlsize.reports.chart import Chart, Series
from rlsize.reports.report import Column, Report, Table, Unseen, tables_of
from rlsize.reports.wording import counted
from rlsize.units import short, show
from rlsize.verdicts.board import worsened
from rlsize.verdicts.contests import CLOSE
from rlsize.verdicts.grading import worse, worst

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rlsize.facts.board import Board, BoardCell
    from rlsize.facts.records.listing import RefusedRecord
    from rlsize.reports.report import Cell
    from rlsize.shell.inputs import Inputs
    from rlsize.verdicts.contests import Contest
    from rlsize.verdicts.grading import ClassGrade, Limits, TransferGrade
    from rlsize.verdicts.predictions import PredictedRecord
    from rlsize.verdicts.scores import Score
    from rlsize.verdicts.transfer import Transfer

_WORST = 3  # rows of each class
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_NEAR = 0.25  # how far off the lines beside the diagonal are
_MARGIN = 1.5  # of the picture
_COLUMNS = {
    column.key: column
    for column in (
        Column("class", "class", "left"),
        Column("cell", "of these", "left", wide=True),
        Column("field", "field", "left", wide=True),
        Column("relation", "the two have", "left", wide=True),
        Column("records", "n"),
        Column("sources", "from"),
        Column("pairs", "pairs"),
        Column("families", "families"),
        Column("median_error_fraction", "median"),
        Column("p90_error_fraction", "p90"),
        Column("bias_fraction", "bias"),
        Column("coverage_fraction", "in band"),
        Column("coverage_interval", "interval", "left"),
        Column("band_ratio", "ends"),
        Column("calibrated", "after"),
        Column("calibrated_by_family", "by family"),
        Column("uncalibrated", "before"),
        Column("time_as_gpus", "1/GPUs"),
        Column("time_unchanged", "unchanged"),
    )
}
"""What is told of scores, by its key."""
_ERRORS = ("median_error_fraction", "p90_error_fraction")


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
        board: The trusted records by class, part, GPU, engine or framework, and number type.
        before: A board that was saved.
    """

    records: Sequence[PredictedRecord]
    refused: Sequence[RefusedRecord]
    grades: Sequence[ClassGrade]
    limits: Limits = (None, None)
    moved: Transfer | None = None
    transfer_grades: Sequence[TransferGrade] = ()
    contests: Sequence[Contest] = ()
    board: Sequence[BoardCell] = ()
    before: Board | None = None

    @property
    def worsened(self) -> Sequence[tuple[BoardCell, BoardCell | None]]:
        """Cells that are worse than they were, by more than their noise."""
        return worsened(self.before.cells, self.board) if self.before is not None else ()


def validate_report(found: Grading, inputs: Inputs, warnings: Iterable[str]) -> Report:
    """
    The report of `rlsize validate`; its answer is no where a class is worse than allowed.

    Args:
        found: What was found.
        inputs: What was asked.
        warnings: What casts doubt.
    """
    tables = tables_of(
        classes=_classes(found.grades),
        cells=_cells(found.grades),
        board=_board(found.board) if found.board else None,
        worsened=_worsened(found.worsened) if found.worsened else None,
        fields=_fields(found.grades),
        **(_transfer_tables(found.transfer_grades) if found.moved is not None else {}),
        winners=_winners_table(found.contests) if found.contests else None,
        worst=_worst(found.records),
        refused=_refused(found.refused) if found.refused else None,
    )
    results = _results(found)
    return Report(
        headline=_headline(found),
        results=results,
        tables=tables,
        chart=_chart(found.records),
        no=bool(worse(found.grades, found.limits) or found.worsened),
        quiet=frozenset(figure.key for figure in results),
        **inputs.told(first=(*_class_notes(found), *_transfer_notes(found.moved)), warnings=warnings),
    )


def _headline(found: Grading) -> str:
    total = len(found.records) + len(found.refused)
    text = f"{len(found.records)} of {total} records predicted"
    graded = [grade for grade in found.grades if grade.trusted]
    if not graded:
        return f"{text}, none of high or medium trust, so none is graded."
    bad = worse(found.grades, found.limits)
    if found.worsened:
        text = f"{text}; {len(found.worsened)} cells are worse than before by more than their noise"
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
    return counted(values, "")


def _scored(own: Score) -> dict[str, Cell]:
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
        {**_named(grade), "graded_fields": ", ".join(grade.names), **_scored(grade.headline)} for grade in grades
    )
    keys = ("class", "records", "sources", *_ERRORS, "bias_fraction", "coverage_fraction", "coverage_interval")
    note = (
        "from: how many sources; errors are |predicted/measured - 1|, bias their median\n"
        "with its sign; bands are meant to hold 80 %, the interval of that is 95 %;\n"
        "ends: upper over lower"
    )
    return _table("Each class, by the field that counts", (*keys, "band_ratio"), rows, note)


def _table(title: str, keys: Iterable[str], rows: Sequence[Mapping[str, Cell]], note: str = "") -> Table:
    return Table(title=title, columns=tuple(_COLUMNS[key] for key in keys), rows=tuple(rows), note=note)


def _named(grade: ClassGrade) -> dict[str, Cell]:
    """The cells that say which records a grade is of."""
    if grade.trusted:
        return {"class": grade.class_name, "trust": "high, medium"}
    return {"class": f"{grade.class_name} *", "trust": "low, or out of order"}


def _cells(grades: Sequence[ClassGrade]) -> Table:
    """Parts of each class, trusted records only."""
    rows = tuple(
        {"class": grade.class_name, "cell": name, **_scored(own)}
        for grade in grades
        if grade.trusted
        for name, own in grade.cells.items()
    )
    return _table(
        "By kind of model", ("class", "cell", "records", *_ERRORS, "bias_fraction", "coverage_fraction"), rows
    )


def _named_by(cell: Callable[[Any], BoardCell]) -> tuple[Column | Unseen, ...]:
    """The columns that name a cell of the board."""
    return (
        _COLUMNS["class"]._replace(of=lambda one: cell(one).class_name),
        _COLUMNS["cell"]._replace(of=lambda one: cell(one).part),
        Column("measured_on", "on", "left", wide=True, of=lambda one: " ".join(cell(one).key[2:]).rstrip()),
        Unseen("gpu", of=lambda one: cell(one).gpu),
        Unseen("stack", of=lambda one: cell(one).stack),
        Unseen("dtype", of=lambda one: cell(one).dtype),
    )


def _board(cells: Sequence[BoardCell]) -> Table:
    """Every cell, beside the guess without a model."""
    columns: tuple[Column | Unseen, ...] = (
        *_named_by(lambda cell: cell),
        Column("records", "n"),
        Unseen("sources"),
        Column("median_error_fraction", "median", of=lambda cell: cell.median),
        Column("p90_error_fraction", "p90", of=lambda cell: cell.p90),
        Unseen("noise_fraction", lambda cell: cell.noise),
        Column("coverage_fraction", "in band", of=lambda cell: cell.coverage),
        Column("guess_median_error_fraction", "guess", of=lambda cell: cell.guess),
    )
    note = (
        "guess, without a model: what other sources have in the median, in proportion to\n"
        "GPUs, their peak and the active parameters (sizes of weights where they travel)"
    )
    return Table.of("By GPU, engine or framework, and number type", cells, columns, note=note)


def _worsened(pairs: Sequence[tuple[BoardCell, BoardCell | None]]) -> Table:
    """Cells that are worse than their baseline."""
    columns = (
        *_named_by(lambda pair: pair[0]),
        Column("before_median_error_fraction", "before", of=lambda pair: pair[0].median),
        Column("noise_fraction", "noise", of=lambda pair: pair[0].noise),
        Column("median_error_fraction", "now", of=lambda pair: pair[1].median if pair[1] else None),
    )
    return Table.of("Worse than the baseline", pairs, columns, note="now is empty where no record is predicted")


def _fields(grades: Sequence[ClassGrade]) -> Table:
    """Each measured field, the ones that count first."""
    rows = [
        {**_named(grade), "field": name, "counts": name in grade.names, **_scored(grade.fields[name])}
        for grade in grades
        for name in dict.fromkeys((*grade.names, *grade.fields))
    ]
    return _table("Each measured field", ("class", "field", "records", *_ERRORS, "coverage_fraction"), rows)


def _worst(records: Sequence[PredictedRecord]) -> Table:
    def band(record: PredictedRecord) -> str:
        low, high = record.fields[0].low, record.fields[0].high
        return "-" if low is None or high is None else f"{short(low)} to {short(high)}"

    cells = (
        Column("id", "record", "left", wide=True, of=lambda one: one.record.id),
        Unseen("class", lambda one: one.class_name),
        Unseen("field", lambda one: one.fields[0].name),
        Column("measured", "measured", of=lambda one: one.fields[0].measured),
        Column("predicted", "predicted", of=lambda one: one.fields[0].predicted),
        Unseen("low", lambda one: one.fields[0].low),
        Unseen("high", lambda one: one.fields[0].high),
        Column("band", "80 % band", "left", of=band),
        Column("error_fraction", "error", of=_error),
    )
    note = "each in the unit of the field that counts"
    return Table.of(f"The worst {_WORST} of each class", worst(records, _WORST), cells, note=note)


def _error(record: PredictedRecord) -> float:
    """How far off the field that counts is, as a share of what was measured."""
    return abs(record.fields[0].predicted / record.fields[0].measured - 1)


def _refused(refused: Sequence[RefusedRecord]) -> Table:
    """Refusals by reason; those that differ only in their numbers stand together."""
    alike: dict[tuple[str, str], list[RefusedRecord]] = {}
    for row in refused:
        alike.setdefault((row.class_name, _NUMBER.sub("#", row.reason)), []).append(row)
    groups = [same for _, same in sorted(alike.items(), key=lambda item: (item[0][0], -len(item[1]), item[0][1]))]

    def reasons(same: Sequence[RefusedRecord]) -> list[str]:
        return list(dict.fromkeys(row.reason for row in same))

    cells = (
        Column("class", "class", "left", of=lambda same: same[0].class_name or "-"),
        Column("records", "n", of=len),
        Column(
            "reason", "reason", "left", wide=True,
            of=lambda same: same[0].reason + (" (others alike)" if len(reasons(same)) > 1 else ""),
        ),
        Column(
            "shown_ids", "records", "left", wide=True,
            of=lambda same: same[0].id + (f" and {len(same) - 1} more" if len(same) > 1 else ""),
        ),
        Unseen("ids", lambda same: ", ".join(row.id for row in same)),
        Unseen("reasons", lambda same: "; ".join(reasons(same))),
    )  # fmt: skip
    return Table.of("Refused", groups, cells)


def _class_notes(found: Grading) -> Iterator[str]:
    alone = [
        f"{grade.class_name} (by {grade.headline.resampled})"
        for grade in found.grades
        if grade.trusted and grade.headline.resampled != "source" and grade.headline.banded
    ]
    if alone:
        yield f"The interval resamples sources; with one source only, smaller groups: {', '.join(alone)}."
    assumed = sum(bool(record.record.assumed) for record in found.records)
    if assumed:
        yield f"{assumed} records leave something out that was assumed; --rows FILE.jsonl says what."
    if any(not grade.trusted for grade in found.grades):
        yield "* Records of low trust, or out of order with their neighbours; no limit counts them."


def _transfer_tables(grades: Sequence[TransferGrade]) -> dict[str, Table]:
    """The table of calibrated predictions, and that of the guesses beside them."""
    rows = tuple(_transfer_row(grade) for grade in grades)
    pair, guesses = ("class", "relation"), ("uncalibrated", "time_as_gpus", "time_unchanged")
    note = (
        "after and before calibration; by family: after it, each family counted once;\n"
        "1/GPUs and unchanged: the other record's time goes as 1/GPUs, or stays"
    )
    after, beside = (*pair, "pairs", "families", *_ERRORS, "coverage_fraction"), ("calibrated", "calibrated_by_family")
    return {
        "transfer": _table("Calibrated on one record, predicting another of its family", after, rows),
        "transfer_beside": _table(
            "The same pairs, median/p90 of the error in percent", (*pair, *beside, *guesses), rows, note
        ),
    }


def _transfer_notes(moved: Transfer | None) -> list[str]:
    """What was left out of the pairs, and why."""
    notes = (
        ()
        if moved is None
        else (
            ("Families with many records give a seeded choice of their pairs", moved.chosen),
            ("Records without another in their family give no pair", moved.alone),
            ("Records that contradict their neighbours calibrate nothing", moved.odd),
            ("Pairs that could not be calibrated or predicted", moved.left_out),
        )
    )
    return [
        f"{text}: {', '.join(f'{name} {count}' for name, count in sorted(counts.items()))}."
        for text, counts in notes
        if counts
    ]


def _transfer_row(grade: TransferGrade) -> dict[str, Cell]:
    left_out = {"records", "bias_fraction", "banded_records", "band_ratio"}
    row: dict[str, Cell] = {"class": grade.class_name, "relation": grade.relation, "pairs": grade.after.n}
    row |= {key: cell for key, cell in _scored(grade.after).items() if key not in left_out}
    row["calibrated"] = _both(grade.after)
    for shown, name, own in (
        ("calibrated_by_family", "by_family", grade.by_family),
        ("uncalibrated", "uncalibrated", grade.before),
        ("time_as_gpus", "time_as_gpus", grade.as_gpus),
        ("time_unchanged", "time_unchanged", grade.unchanged),
    ):
        median, p90 = (own.median, own.p90) if own else (None, None)
        row |= {shown: _both(own), f"{name}_median_error_fraction": median, f"{name}_p90_error_fraction": p90}
    return row


def _both(own: Score | None) -> str:
    return "-" if own is None else f"{_percent(own.median)}/{_percent(own.p90)}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}" if share < 0.0995 else f"{100 * share:.0f}"  # noqa: PLR2004 (tenths matter below 10 %)


def _winners_table(contests: Sequence[Contest]) -> Table:
    """How often the faster of two ways is named."""
    own: dict[str, list[Contest]] = {}
    for contest in sorted(contests, key=lambda one: one.class_name):
        own.setdefault(contest.class_name, []).append(contest)
    clear = {name: [contest for contest in known if contest.clear] for name, known in own.items()}
    wrong = {name: [f"{one.one} and {one.other}" for one in known if not one.right] for name, known in clear.items()}
    cells = (
        Column("class", "class", "left", of=str),
        Column("clear_pairs", "pairs", of=lambda name: len(clear[name])),
        Column("right_pairs", "right", of=lambda name: len(clear[name]) - len(wrong[name])),
        Column("doubtful_pairs", "of which predicted close", of=lambda name: sum(one.doubtful for one in clear[name])),
        Column("close_pairs", "too close to call", of=lambda name: len(own[name]) - len(clear[name])),
        Unseen("wrong_pairs", lambda name: "; ".join(wrong[name])),
    )
    note = f"a measured gap up to {CLOSE:.0%} is too close to call"
    return Table.of("The faster of two ways to do the same work", own, cells, note=note)


def _chart(records: Sequence[PredictedRecord]) -> Chart | None:
    """Dots for trusted records, a colour for each class; None where there are none."""
    trusted = [record for record in records if record.trusted]
    if not trusted:
        return None
    names = sorted({record.class_name for record in trusted})
    measured = [record.fields[0].measured for record in trusted]
    ends = (min(measured) / _MARGIN, max(measured) * _MARGIN)
    near = sum(_error(record) <= _NEAR for record in trusted)
    lines = (("as measured", 1.0), (f"{_NEAR:.0%} more", 1 + _NEAR), (f"{_NEAR:.0%} less", 1 - _NEAR))
    return Chart(
        title=f"{near} of {len(trusted)} predictions lie within {_NEAR:.0%} of the measurement",
        subtitle="each record in the unit of the field that counts; bars are 80 % bands",
        x_label="measured",
        y_label="predicted",
        log_x=True,
        log_y=True,
        series=(
            *(_dots(name, [record for record in trusted if record.class_name == name]) for name in names),
            *(Series.of(name, ((end, end * factor) for end in ends), "limit") for name, factor in lines),
        ),
    )


def _dots(name: str, records: Sequence[PredictedRecord]) -> Series:
    fields = [record.fields[0] for record in records]
    dots = Series.of(name, ((field.measured, field.predicted) for field in fields), dots=True)
    return replace(dots, bands=tuple((one.low, one.high) if one.low and one.high else None for one in fields))
