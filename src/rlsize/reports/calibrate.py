"""What to say about a calibration: what was measured, what was predicted, and the factor in between."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.facts.measured import STAGES
from rlsize.reports.report import Column, Report, Table
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.facts.calibration import Calibration
    from rlsize.facts.figure import Figure
    from rlsize.facts.measured import Scatter, Stage


def calibrate_report(
    found: Calibration,
    measured: Mapping[Stage, tuple[float, Scatter | None]],
    missing: Mapping[Stage, str],
    inputs: Sequence[Figure] = (),
    warnings: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> Report:
    """
    The report of `rlsize calibrate`.

    Args:
        found: The calibration.
        measured: Seconds of each stage that was measured.
        missing: Why a stage has no prediction.
        inputs: What was asked.
        warnings: What casts doubt.
        notes: What happened on the way.
    """
    return Report(
        command="calibrate",
        headline=_headline(found),
        inputs=tuple(inputs),
        tables={"stages": _table(found, measured, missing)},
        warnings=tuple(warnings),
        notes=tuple(notes),
    )


def _headline(found: Calibration) -> str:
    if not found.stages:
        return "Nothing to calibrate yet: no stage of this file has been both measured and predicted."
    parts = [f"{entry.stage} takes {show(entry.factor)} times as long as predicted" for entry in found.stages]
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}."


def _table(
    found: Calibration, measured: Mapping[Stage, tuple[float, Scatter | None]], missing: Mapping[Stage, str]
) -> Table:
    factors = {entry.stage: entry for entry in found.stages}
    rows = []
    for stage in STAGES:
        entry = factors.get(stage)
        rows.append(
            {
                "stage": stage,
                "measured_seconds": measured[stage][0] if stage in measured else None,
                "predicted_seconds": entry.predicted_seconds if entry else None,
                "factor": entry.factor if entry else None,
                "reason": "" if entry else missing.get(stage, "") if stage in measured else "not measured",
            }
        )
    return Table(
        title="Measured over predicted",
        columns=(
            Column("stage", "stage", "left"),
            Column("measured_seconds", "measured"),
            Column("predicted_seconds", "predicted"),
            Column("factor", "factor"),
            Column("reason", "", "left", wide=True),
        ),
        rows=tuple(rows),
    )
