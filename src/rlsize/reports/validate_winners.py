"""What to say about pairs of records that did the same work in two ways."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.reports.report import Column, Table
from rlsize.verdicts.contests import CLOSE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.reports.report import Cell
    from rlsize.verdicts.contests import Contest


def winners_table(contests: Sequence[Contest]) -> Table:
    """How often the faster of two ways is named."""
    rows: list[dict[str, Cell]] = []
    for name in sorted({contest.class_name for contest in contests}):
        own = [contest for contest in contests if contest.class_name == name]
        clear = [contest for contest in own if contest.clear]
        wrong = [f"{contest.one} and {contest.other}" for contest in clear if not contest.right]
        rows.append(
            {
                "class": name,
                "clear_pairs": len(clear),
                "right_pairs": len(clear) - len(wrong),
                "doubtful_pairs": sum(contest.doubtful for contest in clear),
                "close_pairs": len(own) - len(clear),
                "wrong_pairs": "; ".join(wrong),
            }
        )
    return Table(
        title="The faster of two ways to do the same work",
        columns=(
            Column("class", "class", "left"),
            Column("clear_pairs", "pairs"),
            Column("right_pairs", "right"),
            Column("doubtful_pairs", "of which predicted close"),
            Column("close_pairs", "too close to call"),
        ),
        rows=tuple(rows),
        note=f"a measured gap up to {CLOSE:.0%} is too close to call",
    )
