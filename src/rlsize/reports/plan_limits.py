"""What limits and constraints made of a search: what they left out, and how the plan keeps them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.equations import planning
from rlsize.planner.space import REASONS
from rlsize.reports.report import Column, Table
from rlsize.reports.wording import words
from rlsize.units import show

if TYPE_CHECKING:
    from rlsize.planner.choice import Choice
    from rlsize.planner.plan import Planned
    from rlsize.reports.report import Cell


def rejections(answer: Planned) -> Table:
    """What each constraint left out, and the narrowest of it."""
    rejected = answer.found.rejected
    limits = {limit.key: limit for limit in answer.space.limits}
    rows: list[dict[str, Cell]] = []
    for reason, count in rejected.counts.most_common():
        narrow = rejected.nearest.get(reason)
        limit = limits.get(reason)
        text = REASONS.get(reason) or f"{reason} {'below' if limit and limit.least else 'above'} the limit"
        rows.append(
            {
                "constraint": reason,
                "_constraint": text,
                "left_out": float(count),
                "nearest": narrow.what if narrow else None,
                "short_fraction": narrow.short if narrow else None,
                "_short": f"{narrow.short:.1%}" if narrow else "",
                "_nearest": narrow.what if narrow else "",
            }
        )
    columns = (
        Column("_constraint", "left out because", "left", wide=True),
        Column("left_out", "how many"),
        Column("_short", "nearest miss by"),
        Column("_nearest", "which", "left", wide=True),
    )
    return Table(title="What was left out", columns=columns, rows=tuple(rows))


def limits_table(answer: Planned, chosen: Choice) -> Table | None:
    """The limits that were set, and what the plan makes of them; None without limits."""
    rows = []
    for limit in answer.space.limits:
        figure = chosen.evaluation.results.get(limit.key)
        if figure is None or not figure.known:
            continue
        beyond = float(planning.overshoot(value=figure.number, limit=limit.value)) if limit.value else 0.0
        rows.append(
            {
                "quantity": limit.key,
                "_quantity": words(limit.key),
                "bound": "at least" if limit.least else "at most",
                "_limit": show(limit.value, limit.key),
                "limit": limit.value,
                "value": figure.number,
                "_value": show(figure.value, figure.key),
                "_margin": f"{abs(beyond):.1%}",
                "margin_fraction": beyond if limit.least else -beyond,
                "source": limit.source,
            }
        )
    columns = (
        Column("_quantity", "limit on", "left"),
        Column("bound", "", "left"),
        Column("_limit", "limit"),
        Column("_value", "plan"),
        Column("_margin", "room"),
        Column("source", "from", "left", wide=True),
    )
    return Table(title="Limits, all kept", columns=columns, rows=tuple(rows)) if rows else None
