"""The best plans as the simulator ranks them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.reports.report import Column, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.planner.choice import Alternative, Choice
    from rlsize.planner.simulation import Ranked


def simulated_ranks(chosen: Choice, ranked: Sequence[Ranked]) -> Table:
    """The best plans as the simulator ranks them."""
    order = sorted((one for one in ranked if not one.refused), key=lambda one: one.step_seconds)
    order += [one for one in ranked if one.refused]
    rows = tuple(
        {
            "plan": entry.one.place.words,
            "predicted_rank": float(place_of(chosen, entry.one)),
            "predicted_step_seconds": entry.one.results["step_seconds"],
            "simulated_step_seconds": None if entry.refused else entry.step_seconds,
            "simulated_low_seconds": None if entry.refused else entry.low,
            "simulated_high_seconds": None if entry.refused else entry.high,
            "refused": entry.refused or None,
        }
        for entry in order
    )
    columns = (
        Column("plan", "plan", "left", wide=True),
        Column("predicted_rank", "rank"),
        Column("predicted_step_seconds", "predicted"),
        Column("simulated_step_seconds", "simulated"),
        Column("simulated_low_seconds", "low"),
        Column("simulated_high_seconds", "high"),
    )
    return Table(title="As the simulator ranks them", columns=columns, rows=rows, note="low and high: 95 % over seeds")


def place_of(chosen: Choice, one: Alternative) -> int:
    """The rank of a plan by the prediction, from 1."""
    return 1 + [chosen.best, *chosen.others].index(one)


def rank_words(chosen: Choice, ranked: Sequence[Ranked]) -> tuple[str, bool]:
    """What the simulator's order says, and whether it doubts the choice; nothing where it ranked no plan."""
    able = [entry for entry in ranked if not entry.refused]
    if not able:
        return "", False
    quickest = min(able, key=lambda entry: entry.step_seconds)
    if [entry.step_seconds for entry in able] == sorted(entry.step_seconds for entry in able):
        return f"The simulator keeps the order of the best {len(able)}.", False
    if quickest.one is chosen.best:
        return "The simulator changes the order behind the best plan.", False
    words = quickest.one.place.words
    return f"the simulator changes the order: {words} has the shortest step there", True
