"""The picture of a validation: predicted against measured, with bands, and how far off 25 percent is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.reports.chart import Chart, Series

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.verdicts.predictions import PredictedRecord

NEAR = 0.25
"""How far off the lines beside the diagonal are."""

_MARGIN = 1.5


def validate_chart(records: Sequence[PredictedRecord]) -> Chart | None:
    """Dots for trusted records, a colour for each class; None where there are none."""
    trusted = [record for record in records if record.trusted]
    if not trusted:
        return None
    names = sorted({record.class_name for record in trusted})
    measured = [record.fields[0].measured for record in trusted]
    ends = (min(measured) / _MARGIN, max(measured) * _MARGIN)
    near = sum(abs(record.fields[0].predicted / record.fields[0].measured - 1) <= NEAR for record in trusted)
    lines = (("as measured", 1.0), (f"{NEAR:.0%} more", 1 + NEAR), (f"{NEAR:.0%} less", 1 - NEAR))
    return Chart(
        title=f"{near} of {len(trusted)} predictions lie within {NEAR:.0%} of the measurement",
        subtitle="each record in the unit of the field that counts; bars are 80 % bands",
        x_label="measured",
        y_label="predicted",
        log_x=True,
        log_y=True,
        series=(
            *(_dots(name, [record for record in trusted if record.class_name == name]) for name in names),
            *(
                Series(name=name, xs=ends, ys=(ends[0] * factor, ends[1] * factor), role="limit")
                for name, factor in lines
            ),
        ),
    )


def _dots(name: str, records: Sequence[PredictedRecord]) -> Series:
    fields = [record.fields[0] for record in records]
    return Series(
        name=name,
        xs=tuple(field.measured for field in fields),
        ys=tuple(field.predicted for field in fields),
        bands=tuple((field.low, field.high) if field.low and field.high else None for field in fields),
        dots=True,
    )
