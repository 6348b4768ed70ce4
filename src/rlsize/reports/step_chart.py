"""The picture of a predicted step: the wall clock of each mode, part by part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.estimates.step_assembly import step_parts
from rlsize.reports.chart import Chart, Series
from rlsize.units import show

if TYPE_CHECKING:
    from rlsize.estimates.train_prediction import TrainQuestion
    from rlsize.loop.modes import StepOutlook

PARTS = {
    "generation": "generation",
    "waiting": "waiting for generation",
    "tail": "tail of generation",
    "logprobs": "log-probs and scores",
    "update": "update",
    "sync": "weight sync",
    "fixed": "switching, fixed",
    "samples": "handling of samples",
    "params": "handling of parameters",
}
"""What each part is called."""

_BARS = {
    "generation": ("generation", "waiting"),
    "tail of generation": ("tail",),
    "log-probs and scores": ("logprobs",),
    "update": ("update",),
    "weight sync": ("sync",),
    "overhead": ("fixed", "samples", "params"),
}


def step_chart(outlook: StepOutlook, train: TrainQuestion) -> Chart:
    """Stacked bars, one for each mode that can run."""
    heights = {
        mode.way.loop: {part.name: part.seconds.number for part in step_parts(mode.step, mode.way.loop)}
        for mode in outlook.modes
        if mode.step is not None
    }
    series = [
        Series(
            name=bar,
            xs=tuple(heights),
            ys=tuple(sum(parts.get(name, 0.0) for name in names) for parts in heights.values()),
        )
        for bar, names in _BARS.items()
    ]
    step, own = outlook.results["step_seconds"], outlook.modes[0].way.loop
    return Chart(
        title=_takeaway(outlook),
        x_label="",
        y_label="seconds of a step that nothing hides",
        series=tuple(entry for entry in series if any(entry.ys)),
        kind="stacked",
        subtitle=f"{train.model.title} on {train.gpu.name}; as asked, {own}: {show(step.value, step.key)}",
    )


def _takeaway(outlook: StepOutlook) -> str:
    best = outlook.quickest
    seconds = best.seconds.number if best.seconds else 0.0
    close = [mode.way.loop for mode in outlook.modes if mode.close]
    if close:
        return f"{best.way.loop} takes {show(seconds, '_seconds')}; {', '.join(close)} may be as quick"
    return f"{best.way.loop} is the quickest: {show(seconds, '_seconds')} a step"
