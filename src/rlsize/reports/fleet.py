"""What to say about a fleet: the match, its neighbours, and the picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.reports.chart import Chart, Mark, Series
from rlsize.reports.report import Column, Report, Table
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.facts.figure import Figure
    from rlsize.planner.fleet import FleetAnswer

_QUIET = frozenset({"matched_instances_exact"})


def fleet_report(
    answer: FleetAnswer,
    inputs: Sequence[Figure],
    warnings: Sequence[str],
    notes: Sequence[str] = (),
    savings: Sequence[Figure] = (),
) -> Report:
    """
    The report of `rlsize fleet`.

    Args:
        answer: The match and its neighbours.
        inputs: What it was worked out from.
        warnings: What the reader must know first.
        notes: Why an input is what it is.
        savings: What prefix caching would save, where the prompts are known.
    """
    figures = {figure.key: figure for figure in answer.results}
    return Report(
        command="fleet",
        headline=_headline(answer, figures, inputs),
        results=(*answer.results, *savings),
        inputs=tuple(inputs),
        tables={"neighbours": neighbours_table(answer)},
        warnings=tuple(warnings),
        notes=(*notes, *_observed_note(answer, figures), *_caching_note(savings, answer.matched)),
        chart=fleet_chart(answer, next(figure for figure in inputs if figure.key == "headroom")),
        quiet=_QUIET | {figure.key for figure in savings if not figure.known},
    )


def _headline(answer: FleetAnswer, figures: dict[str, Figure], inputs: Sequence[Figure]) -> str:
    given = {figure.key: figure for figure in inputs}
    required = show(figures["required_tokens_per_second"].value, "_tokens_per_second")
    rate = show(given["instance_tokens_per_second"].value, "_tokens_per_second")
    noun = "instance matches" if answer.matched == 1 else "instances match"
    noun = "instances suffice" if answer.held_back else noun
    match = (
        f"{answer.matched:,} rollout {noun}: {required} needed, {rate} each, headroom {show(given['headroom'].value)}."
    )
    if answer.judged == answer.matched:
        return match
    return f"{match} With {answer.judged}: {_judgement(figures)}."


def _judgement(figures: dict[str, Figure]) -> str:
    idle, growth = figures["expected_trainer_idle_fraction"], figures["expected_backlog_tokens_per_second"]
    if idle.number > 0:
        return f"the trainer is expected to wait {show(idle.value, idle.key)} of every step"
    if growth.number > 0:
        return f"a backlog of {show(growth.value, growth.key)} is expected without backpressure"
    return "neither side waits"


def _observed_note(answer: FleetAnswer, figures: dict[str, Figure]) -> list[str]:
    """Why a lower bound does not ask for more instances than were observed."""
    if not answer.held_back:
        return []
    bound = figures["matched_instances_exact"]
    text = (
        f"The observed fleet met the demand with {answer.matched} instances, held back: no more are needed, though its "
        f"rate, taken for all that they can do, would ask for {bound.number:.3g}. Idle and growth below take that rate "
        "and look worse than they are. To learn whether fewer would do, measure under load."
    )
    return [text]


def _caching_note(savings: Sequence[Figure], matched: int) -> list[str]:
    """What the hit ratio to expect means for the match, before anybody buys GPUs."""
    found = {figure.key: figure for figure in savings}
    expected = found.get("expected_prefix_cache_hit_fraction")
    if expected is None or not expected.known:
        return []
    text = f"Prefix caching: expect {show(expected.value, expected.key)} of prompt tokens from the cache"
    after = found["matched_instances_after_caching"]
    if not after.known:
        return [f"{text}; give {after.missing} to see the match once the cache reaches it."]
    if after.number >= matched:
        return [f"{text}; the match stays at {matched} once it does."]
    return [
        f"{text}; once it does, {show(after.value)} instances match. Fix that before adding GPUs, then measure again."
    ]


def neighbours_table(answer: FleetAnswer) -> Table:
    """One row for each instance count around the match."""
    columns = [
        Column("instances", "inst."),
        Column("trainer_idle_fraction", "idle"),
        Column("backlog_tokens_per_second", "growth"),
        Column("expected_trainer_idle_fraction", "exp. idle"),
        Column("expected_backlog_tokens_per_second", "exp. growth"),
    ]
    cost = answer.neighbours[0]["expected_cost_per_step_usd"]
    note = "nameplate takes the rate as it is; expected (exp.) derates it by the headroom"
    if cost.known:
        columns.append(Column("expected_cost_per_step_usd", "exp. cost/step"))
    else:
        note += f"\ncost per step needs {cost.missing}"
    marked = next(index for index, row in enumerate(answer.neighbours) if row["instances"].value == answer.matched)
    return Table(
        title="One more, one fewer",
        columns=tuple(columns),
        rows=answer.neighbours,
        marked=marked,
        note=note,
    )


def fleet_chart(answer: FleetAnswer, headroom: Figure) -> Chart:
    """Nameplate and expected supply against the instance count, with what is needed and the match marked."""
    counts = tuple(row["instances"].number for row in answer.neighbours)
    required = next(figure for figure in answer.results if figure.key == "required_tokens_per_second")

    def supply(key: str) -> tuple[float, ...]:
        return tuple(row[key].number for row in answer.neighbours)

    return Chart(
        title=f"{answer.matched} rollout instances cover the trainer at headroom {show(headroom.value)}",
        x_label="rollout instances",
        y_label="response tokens per second",
        series=(
            Series(
                name="nameplate supply", xs=counts, ys=supply("nameplate_supply_tokens_per_second"), role="nameplate"
            ),
            Series(name="expected supply", xs=counts, ys=supply("expected_supply_tokens_per_second"), role="expected"),
        ),
        marks=(
            Mark(at=required.number, label=f"needed: {show(required.value, '_tokens_per_second')}", axis="y"),
            Mark(at=float(answer.matched), label=f"match: {answer.matched}"),
            *(
                (Mark(at=float(answer.judged), label=f"asked: {answer.judged}"),)
                if answer.judged != answer.matched
                else ()
            ),
        ),
    )
