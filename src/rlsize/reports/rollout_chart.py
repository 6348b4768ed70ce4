"""The picture of a predicted rollout: time per step against concurrency by part, with the rate on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.reports.chart import Chart, Mark, Series
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.estimates.rollout_outlook import RolloutOutlook

PARTS = {
    "matmul": "matrix products",
    "experts": "experts",
    "attention": "reading the KV cache",
    "recurrence": "recurrent states",
    "all_reduce": "tensor parallelism",
    "exchange": "expert exchange",
    "prefill": "prompts",
    "host": "waiting for the host",
    "small_operations": "small operations",
    "head": "output head",
    "sampling": "sampling",
}
"""Parts of a step, in the order in which a picture stacks them, and what they are called."""

_SMALL = 0.04  # share of the step below which a part is drawn with the others
_REST = "the rest"
_MILLISECONDS = 1e3
_INSIDE = 0.92  # of the picture's width; a mark further right would have no room for its label


def rollout_chart(outlook: RolloutOutlook) -> Chart:
    """Areas of milliseconds by part, a line for the rate, marks at the knee and at the load that was asked about."""
    curve, engine = outlook.sweep.curve, outlook.question.engine
    areas = _areas(curve.parts)
    rate = Series(name="tok/s (right)", xs=curve.concurrency, ys=curve.tokens_per_second, role="limit", right=True)
    level = outlook.sweep.asked
    largest = max(level.parts, key=lambda name: level.parts[name])
    share = level.parts[largest] / sum(level.parts.values())
    label = PARTS[largest]
    verb = "take" if label.endswith("s") else "takes"
    gpus = engine.layout.tensor * engine.layout.data * engine.layout.pipeline
    lengths = [show(figure.value) for figure in (outlook.question.prompt_tokens, outlook.question.response_tokens)]
    at = f"{show(share, '_fraction')} of a step at {show(level.concurrency)} samples"
    return Chart(
        title=f"{label[0].upper()}{label[1:]} {verb} {at}",
        subtitle=f"{engine.model.title} on {gpus} {engine.gpu.name}, {engine.engine}; {' + '.join(lengths)} tokens",
        x_label="samples at once",
        y_label="milliseconds of a step",
        right_label="response tokens per second",
        series=(*(Series(name=name, xs=curve.concurrency, ys=ys) for name, ys in areas), rate),
        kind="areas",
        marks=_marks(outlook),
    )


def _areas(parts: Mapping[str, Sequence[float]]) -> list[tuple[str, tuple[float, ...]]]:
    """Parts in milliseconds, in their order; those that are small everywhere as one."""
    wholes = [sum(at) for at in zip(*parts.values(), strict=True)]
    large, small = [], []
    for name, title in PARTS.items():
        heights = tuple(_MILLISECONDS * seconds for seconds in parts.get(name, ()))
        told = any(height > _SMALL * _MILLISECONDS * whole for height, whole in zip(heights, wholes, strict=False))
        if told:
            large.append((title, heights))
        elif any(heights):
            small.append(heights)
    rest = [(_REST, tuple(sum(at) for at in zip(*small, strict=True)))] if small else []
    return [*large, *rest]


def _marks(outlook: RolloutOutlook) -> tuple[Mark, ...]:
    last = outlook.sweep.curve.concurrency[-1]
    knee = outlook.sweep.knee.number
    return (Mark(at=knee, label="knee"),) if knee < _INSIDE * last else ()
