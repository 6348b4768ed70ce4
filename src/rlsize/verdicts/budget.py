"""
Whether a loop keeps its budget: each limit with its value, its margin, and pass, warn or fail.

A band keeps a limit when both of its ends do. Where a limit follows from a baseline, low is compared with low and high
with high: the same draws of the same constants stand behind both bands, so what is uncertain in both is no change.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from rlsize.equations import budget as equations
from rlsize.estimates.figures import apply, ends, numbers
from rlsize.facts.budget import Bound, Change, Limit, set_limits
from rlsize.facts.figure import Figure, absent
from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlsize.estimates.figures import Worked
    from rlsize.facts.budget import Budget
    from rlsize.facts.plan import Plan

Status = Literal["fail", "warn", "pass", "unknown"]
Lacking = Literal["", "value", "baseline", "value in the baseline"]

BASELINE_FLAG = "--baseline"
_ROUNDING = 1e-9  # of the limit: sums of floats that are equal on paper


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """
    One limit, judged.

    Args:
        quantity: Key of the quantity; its ending says the unit of value, limit, margin and baseline.
        bound: The kind of limit.
        asked: What the budget says.
        value: The quantity.
        limit: The amount that it must keep; worked out from the baseline where a change is limited.
        margin: Room to the limit; negative where it is broken.
        margin_fraction: The same as a share of the limit; unknown where the limit is 0.
        status: `fail` where the central value breaks the limit, `warn` where only its band does, `pass`, or `unknown`.
        lacking: What a line that is unknown lacks.
        baseline: The quantity in the baseline; None where there is none.
        implied: Whether nobody set the limit: memory that is not there cannot be used.
        change: Change from the baseline; unknown where there is none.
        change_fraction: The same as a share of the baseline; unknown where that is 0.
    """

    quantity: str
    bound: Bound
    asked: float | Change
    value: Figure
    limit: Figure
    margin: Figure
    margin_fraction: Figure
    status: Status
    lacking: Lacking = ""
    baseline: Figure | None = None
    implied: bool = False
    change: Figure = absent("change", BASELINE_FLAG)
    change_fraction: Figure = absent("change_fraction", BASELINE_FLAG)

    @property
    def name(self) -> str:
        """Quantity and kind of limit."""
        return f"{self.quantity} {self.bound}"

    @property
    def relative(self) -> bool:
        """Whether it limits a change against the baseline."""
        return isinstance(self.asked, Change)

    def refused(self, *, strict: bool) -> bool:
        """Whether the answer is no: broken, or in doubt where that is asked for."""
        return self.status == "fail" or (strict and self.status == "warn")


def judged(results: Mapping[str, Figure], budget: Budget, baseline: Plan | None = None) -> tuple[Line, ...]:
    """
    Every limit of a budget, judged.

    Args:
        results: What is expected of the loop, by key.
        budget: The limits.
        baseline: What it is compared with; None where there is nothing.

    Returns:
        A line for each limit, in the order of the budget's quantities.
    """
    return tuple(
        _line(results.get(quantity, absent(quantity, "")), budget.limits[quantity], bound, _before(baseline, quantity))
        for quantity, bound in set_limits(budget)
    )


def memory_line(held: Figure, memory: float) -> Line:
    """
    Memory that is there, as a limit that nobody has to set.

    Args:
        held: What each GPU holds in the fullest phase. [B]
        memory: What processes see of a GPU. [B]
    """
    return replace(_line(held, Limit(max=memory), "max", None), implied=True)


def _before(baseline: Plan | None, quantity: str) -> Figure | None:
    """A quantity of the baseline; without a value where the baseline lacks it, None where there is no baseline."""
    if baseline is None:
        return None
    found = baseline.results.get(quantity)
    if found is None or not _is_number(found.value):
        return absent(quantity, "the baseline")
    return found.figure(quantity)


def _line(value: Figure, limit: Limit, bound: Bound, before: Figure | None) -> Line:
    asked: float | Change = getattr(limit, bound)
    line = Line(
        quantity=value.key,
        bound=bound,
        asked=asked,
        value=value,
        limit=_limit(value.key, bound, asked, before),
        margin=absent(value.key, value.missing),
        margin_fraction=absent("margin_fraction", value.missing),
        status="unknown",
        baseline=before,
    )
    if not _is_number(value.value):
        return replace(line, lacking="value")
    line = _with_change(line)
    if not line.limit.known:
        return replace(line, lacking="baseline" if before is None else "value in the baseline")
    # The line with its margin, and what follows from it
    room = equations.margin_below if line.bound in {"max", "max_increase"} else equations.margin_above
    margin = apply(line.quantity, room, limit=line.limit, value=line.value)
    pairs = zip(ends(line.limit), ends(line.value), strict=True)
    low, high = sorted(room(limit=limit, value=value) for limit, value in pairs)
    scale = max(abs(line.limit.number), abs(line.baseline.number) if line.relative and line.baseline else 0.0)
    least = -_ROUNDING * scale
    status: Status = "fail" if margin.number < least else "warn" if low < least else "pass"
    share = absent("margin_fraction", "")
    if line.limit.number:
        share = apply("margin_fraction", equations.margin_fraction, margin=margin, limit=line.limit)
    banded = line.value.band is not None or line.limit.band is not None
    margin = replace(margin, band=(low, high)) if banded else margin
    return replace(line, margin=margin, margin_fraction=share, status=status)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and not math.isnan(value)


def _limit(key: str, bound: Bound, asked: float | Change, before: Figure | None) -> Figure:
    """The amount that a quantity must keep; with a band where it follows from a baseline that has one."""
    if not isinstance(asked, Change):
        return Figure(key=key, value=asked, source="budget")
    if before is None or not before.known:
        return absent(key, BASELINE_FLAG if before is None else before.missing)
    limit: Figure = _after_change(apply, key, bound, asked, before)
    if before.band is None:
        return limit
    low, high = (_after_change(numbers, key, bound, asked, end) for end in before.band)
    return replace(limit, band=(low, high))


def _after_change(work: Callable[..., Any], key: str, bound: Bound, asked: Change, before: Figure | float) -> Worked:
    """What a quantity may be after the change that is allowed."""
    change = asked.value
    if asked.relative:
        change = work(key, equations.allowed_change, baseline=before, change_fraction=asked.value)
    towards = equations.highest_after_change if bound == "max_increase" else equations.lowest_after_change
    return work(key, towards, baseline=before, change=change)


def _with_change(line: Line) -> Line:
    """The line with what it says of the baseline."""
    before = line.baseline
    if before is None or not before.known:
        return line
    moved, share = changed(line.quantity, line.value, before)
    # the baseline was worked out elsewhere: another processor rounds otherwise
    if share.known and abs(share.number) <= _ROUNDING:
        moved, share = (replace(figure, value=0.0) for figure in (moved, share))
    return replace(line, change=moved, change_fraction=share)


def changed(key: str, value: Figure, baseline: Figure) -> tuple[Figure, Figure]:
    """By how much a value differs from a baseline, and by which share of it; of a baseline of 0 there is none."""
    moved = apply(key, equations.change_from_baseline, value=value, baseline=baseline)
    if not baseline.number:
        return moved, absent("change_fraction", "")
    return moved, apply("change_fraction", equations.relative_change, value=value, baseline=baseline)
