"""What to say about predictions that were calibrated on another record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.reports.report import Column, Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.reports.report import Cell
    from rlsize.verdicts.grading import TransferGrade
    from rlsize.verdicts.scores import Score
    from rlsize.verdicts.transfer import Transfer

_PAIR = (Column("class", "class", "left"), Column("relation", "the two have", "left", wide=True))


def transfer_tables(grades: Sequence[TransferGrade]) -> dict[str, Table]:
    """The table of calibrated predictions, and that of the guesses beside them."""
    rows = tuple(_row(grade) for grade in grades)
    after = Table(
        title="Calibrated on one record, predicting another of its family",
        columns=(
            *_PAIR,
            Column("pairs", "pairs"),
            Column("families", "families"),
            Column("median_error_fraction", "median"),
            Column("p90_error_fraction", "p90"),
            Column("coverage_fraction", "in band"),
        ),
        rows=rows,
    )
    beside = Table(
        title="The same pairs, median/p90 of the error in percent",
        columns=(
            *_PAIR,
            Column("calibrated", "after"),
            Column("calibrated_by_family", "by family"),
            Column("uncalibrated", "before"),
            Column("time_as_gpus", "1/GPUs"),
            Column("time_unchanged", "unchanged"),
        ),
        rows=rows,
        note=(
            "after and before calibration; by family: after it, each family counted once;\n"
            "1/GPUs and unchanged: the other record's time goes as 1/GPUs, or stays"
        ),
    )
    return {"transfer": after, "transfer_beside": beside}


def transfer_notes(moved: Transfer) -> list[str]:
    """What was left out of the pairs, and why."""
    notes = []
    if moved.chosen:
        told = _counted(moved.chosen)
        notes.append(f"Families with many records give a seeded choice of their pairs: {told}.")
    if moved.alone:
        notes.append(f"Records without another in their family give no pair: {_counted(moved.alone)}.")
    if moved.odd:
        notes.append(f"Records that contradict their neighbours calibrate nothing: {_counted(moved.odd)}.")
    lost = {name: count for name, count in moved.left_out.items() if count}
    if lost:
        notes.append(f"Pairs that could not be calibrated or predicted: {_counted(lost)}.")
    return notes


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))


def _row(grade: TransferGrade) -> dict[str, Cell]:
    after = grade.after
    low, high = after.coverage_interval or (None, None)
    interval = "-" if low is None or high is None else f"{100 * low:.0f}-{100 * high:.0f} %"
    return {
        "class": grade.class_name,
        "relation": grade.relation,
        "pairs": after.n,
        "families": after.families,
        "sources": after.sources,
        "median_error_fraction": after.median,
        "p90_error_fraction": after.p90,
        "bias_log": after.bias,
        "coverage_fraction": after.coverage,
        "coverage_interval": interval,
        "coverage_low_fraction": low,
        "coverage_high_fraction": high,
        "resampled": after.resampled,
        "calibrated": _both(after),
        "calibrated_by_family": _both(grade.by_family),
        "uncalibrated": _both(grade.before),
        "time_as_gpus": _both(grade.as_gpus),
        "time_unchanged": _both(grade.unchanged),
        **_numbers("by_family", grade.by_family),
        **_numbers("uncalibrated", grade.before),
        **_numbers("time_as_gpus", grade.as_gpus),
        **_numbers("time_unchanged", grade.unchanged),
    }


def _both(own: Score | None) -> str:
    return "-" if own is None else f"{_percent(own.median)}/{_percent(own.p90)}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}" if share < 0.0995 else f"{100 * share:.0f}"  # noqa: PLR2004 (tenths matter below 10 %)


def _numbers(name: str, own: Score | None) -> dict[str, Cell]:
    return {
        f"{name}_median_error_fraction": own.median if own else None,
        f"{name}_p90_error_fraction": own.p90 if own else None,
    }
