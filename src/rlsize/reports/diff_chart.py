"""The picture of a comparison: how the changes lead from one result to the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.reports import diff_words as say
from rlsize.reports.chart import Bar, Gantt
from rlsize.reports.diff_causes import UNEXPLAINED, ranked
from rlsize.reports.plan_chart import AXES
from rlsize.reports.wording import words
from rlsize.units import show

if TYPE_CHECKING:
    from rlsize.reports.chart import Role
    from rlsize.verdicts.causes import Split
    from rlsize.verdicts.difference import Difference

_LANES = 12
_INVISIBLE = 1e-6  # of the result
_WIDEST = 34  # characters of a lane's name


def causes_chart(split: Split | None, main: Difference | None) -> Gantt | None:
    """
    A bar for each cause, each from where the one before it ends; None where there is nothing to lead anywhere.

    Args:
        split: The causes.
        main: The result.
    """
    if split is None or main is None or not (main.before.known and main.after.known):
        return None
    least = _INVISIBLE * max(abs(main.before.number), abs(main.after.number))
    steps = [(name, step) for name, step in _steps(split, main.quantity) if abs(step) > least]
    if not steps:
        return None
    at = main.before.number
    lanes: list[str] = []
    bars: list[Bar] = []
    for name, step in steps:
        lane = f"{_brief(name)}, {say.moved(step, main.quantity)}"
        lane += " " * sum(other.rstrip() == lane for other in lanes)  # two lanes of one name would be one
        start, at = at, at + step
        lanes.append(lane)
        bars.append(_bar(lane, start, at))
    first, last = (show(side.value, main.quantity) for side in (main.before, main.after))
    name = words(main.quantity)
    return Gantt(
        title=f"How the changes lead from {first} to {last}",
        subtitle=f"{name}; {'fair shares' if split.orders else 'each change by itself, and what that leaves'}",
        x_label=AXES.get(main.quantity, f"{name} [fraction]" if say.in_points(main.quantity) else name),
        lanes=tuple(lanes),
        spans=tuple(bars),
    )


def _steps(split: Split, of: str) -> list[tuple[str, float]]:
    """Causes and what they do, largest first; what they leave comes last, so that the sum is the whole change."""
    if split.orders:
        return [(say.causes(cause.keys), cause.shares[of]) for cause in ranked(split, of) if of in cause.shares]
    if of not in split.unexplained:
        return []
    told = [(say.causes(cause.keys), cause.effects[of]) for cause in ranked(split, of)]
    rest = [("the rest", sum(step for _, step in told[_LANES:]))] if len(told) > _LANES else []
    left = [(UNEXPLAINED, split.unexplained[of])] if len(told) > 1 else []
    return [*told[:_LANES], *rest, *left]


def _bar(lane: str, start: float, end: float) -> Bar:
    role: Role = "trainer" if end > start else "rollout"
    return Bar(lane=lane, start=min(start, end), end=max(start, end), name="more" if end > start else "less", role=role)


def _brief(name: str) -> str:
    """The end of a long name, which tells more than its beginning."""
    return name if len(name) <= _WIDEST else f"...{name[3 - _WIDEST :]}"
