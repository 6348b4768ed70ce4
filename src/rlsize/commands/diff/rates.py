"""Two rates files compared: what was measured, under which conditions, and what that does to a loop."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from rlsize.commands.diff import both, main_of
from rlsize.errors import InputError
from rlsize.facts.figure import Figure
from rlsize.facts.records import Refused
from rlsize.loop.rates import instance_rate
from rlsize.loop.seed import seed_of
from rlsize.loop.sides import sides
from rlsize.planner.fleet import size_fleet
from rlsize.shell.command import in_own_words
from rlsize.shell.inputs import Inputs
from rlsize.shell.rates import fleet_question
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import typer

    from rlsize.commands.diff.report import Compared
    from rlsize.facts.rates import Rates
    from rlsize.readers.yaml_documents import Document
    from rlsize.reports.report import Report
    from rlsize.verdicts.difference import Difference, Draws

    _Loops = tuple[Compared, tuple[str, ...], tuple[str, ...]]

_MATCH = ("matched_instances", "matched_instances_exact")
_DETAILS = frozenset({"source", "instances", "rollout", "train", "sync", "machine", "doubts"})
"""Parts of a rates file that say how it was measured; JSON has what changed in them."""


def rates_compared(
    said: Inputs, context: typer.Context, named: tuple[str, str], scenario: str | None, of: str | None
) -> Report:
    """
    The comparison of two rates files.

    Args:
        said: What flags say.
        context: Of the command.
        named: The files.
        scenario: The scenario whose loop they change.
        of: The result to tell first.

    Raises:
        InputError: What is wrong with them, or with the scenario.
    """
    from rlsize.commands.diff.report import Compared, diff_report
    from rlsize.readers.scenario_changes import changed_leaves

    before, after = named
    (first, one, as_written), (second, other, as_written_after) = both(_read, before, after)
    leaves = changed_leaves(one, other, (as_written, as_written_after))
    if not leaves:
        return diff_report(Compared(before=before, after=after))
    rates = _rates_compared((before, first), (after, second), seed_of(said))
    nothing: _Loops = (Compared(before=before, after=after), (), ())
    loops, warnings, notes = nothing if scenario is None else _loops(said, context, named, scenario)
    told = (*rates, *loops.differences)
    fallback = next((one.quantity for one in rates if one.before.known and one.after.known), "")
    compared = replace(
        loops,
        how="that of a change with each rate's own spread, all else drawn once for both",
        inputs=leaves,
        details=frozenset(leaf.key for leaf in leaves if leaf.path[0] in _DETAILS or leaf.path[-1] == "why"),
        differences=told,
        of=main_of(of, told) if loops.differences or of or not fallback else fallback,
    )
    return diff_report(compared, warnings, (*_age(first, second), *_doubts((before, first), (after, second)), *notes))


def _read(path: str) -> tuple[Rates, Document, Rates]:
    """
    A file: in response tokens, as a document, and as it is written.

    Raises:
        InputError: What is wrong with it.
    """
    from rlsize.facts.rates import Rates
    from rlsize.readers.saved_files import read_rates
    from rlsize.readers.validation import opened, validated
    from rlsize.readers.yaml_documents import read_document

    document = read_document(path)
    converted, inside = read_rates(document), opened(document, "rates")
    return converted, inside, validated(Rates, inside)


def _rates_compared(first: tuple[str, Rates], second: tuple[str, Rates], seed: int) -> tuple[Difference, ...]:
    """The rates of both, each drawn from its own spread, as they were measured apart."""
    from rlsize.verdicts.difference import bounded, differences

    same = first[1].instance_tokens_per_second == second[1].instance_tokens_per_second
    figures = _figures(*first), _figures(first[0] if same else second[0], second[1])  # one source, one draw
    draws = _draws(figures, seed)
    told = differences(_with_bands(figures[0], draws[0]), _with_bands(figures[1], draws[1]), draws)
    bounds = [_is_bound(rates) for _, rates in (first, second)]
    return tuple(
        bounded(one, before=bounds[0], after=bounds[1]) if one.quantity == "instance_tokens_per_second" else one
        for one in told
    )


def _is_bound(rates: Rates) -> bool:
    """Whether the engines were not asked for all that they can do."""
    return rates.instance_tokens_per_second is not None and rates.instance_tokens_per_second.lower_bound


def _figures(name: str, rates: Rates) -> dict[str, Figure]:
    """What was measured, as figures in response tokens."""
    inputs = Inputs(None)
    inputs.rates, inputs.rates_name = rates, name
    found = {}
    if rates.instance_tokens_per_second is not None:
        found["instance_tokens_per_second"] = instance_rate(inputs, full=1.0)[0]
    for key in ("train_seconds", "consumption_tokens_per_second"):
        value = getattr(rates, key)
        if value is not None:
            found[key] = Figure(key=key, value=value, provenance="measured", source=name)
    return found


def _draws(figures: tuple[Mapping[str, Figure], Mapping[str, Figure]], seed: int) -> tuple[Draws, Draws]:
    """Draws of both sides, by key."""
    import numpy as np

    from rlsize.estimates.figures import DRAWS
    from rlsize.planner.outlook import draws

    joint = draws(seed)
    first, second = (
        {key: np.broadcast_to(np.asarray(joint.of(figure), dtype=float), (DRAWS,)) for key, figure in side.items()}
        for side in figures
    )
    return first, second


def _with_bands(figures: Mapping[str, Figure], drawn: Draws) -> dict[str, Figure]:
    from rlsize.estimates.belief import interval

    banded = {key: replace(one, band=interval(drawn[key])) for key, one in figures.items() if one.deviation}
    return {**figures, **banded}


def _loops(said: Inputs, context: typer.Context, files: tuple[str, str], scenario: str) -> _Loops:
    """
    What the scenario gives with either file: its loop on the same draws, and the fleet that matches.

    Returns:
        Both, with warnings and notes.

    Raises:
        InputError: It cannot be worked out with one of them.
    """
    from rlsize.commands.diff.report import Compared
    from rlsize.commands.diff.scenarios import evaluated_side, notes_of, sides_compared, warnings_of
    from rlsize.verdicts.difference import differences

    with_rates = [said.instead(instance_tokens_per_second=file) for file in files]
    for inputs in with_rates:
        inputs.read(scenario)
    matches, lacking = _matches(*with_rates)
    fleets, results = differences(*matches), tuple(matches[1].values())
    try:
        first = evaluated_side(files[0], with_rates[0].apart(), None)
        second = evaluated_side(files[1], with_rates[1].apart(), first)
    except InputError as error:
        told = InputError(*in_own_words(error.faults, context, scenario))
        if lacking:
            raise told from None
        note = f"The loop is not worked out: {told.brief}."
        return Compared(before=files[0], after=files[1], differences=fleets, results=results), (), (note,)
    found = sides_compared(first, second)
    by_key = {figure.key: figure for figure in (*found.results, *results)}
    found = replace(found, differences=(*fleets, *found.differences), results=tuple(by_key.values()))
    notes = notes_of(first, second)
    return found, tuple(warnings_of(first, second)), (*((lacking,) if lacking else ()), *notes)


def _matches(before: Inputs, after: Inputs) -> tuple[tuple[dict[str, Figure], dict[str, Figure]], str]:
    """The fleets that match the trainer, as `fleet` sizes them; without any, why."""
    try:
        return (_match(before.apart()), _match(after.apart())), ""
    except InputError as error:
        why = error.brief
    except Refused as refusal:
        why = str(refusal)
    return ({}, {}), f"The fleet that matches is not worked out: {why}."


def _match(side: Inputs) -> dict[str, Figure]:
    """
    The fleet that matches the trainer.

    Raises:
        InputError: What is missing, or wrong.
        Refused: The loop cannot run.
    """
    both = sides(side)
    if both.refused:
        raise Refused(both.refused)
    question = fleet_question(side, both)
    side.settle()
    answer = size_fleet(question, both.draws(side, question))
    return {figure.key: figure for figure in answer.results if figure.key in _MATCH}


def _age(first: Rates, second: Rates) -> Iterator[str]:
    """How long lies between the two measurements."""
    if first.measured_at == second.measured_at:
        return
    moments = [datetime.fromisoformat(rates.measured_at) for rates in (first, second)]
    if any(moment.tzinfo is None for moment in moments):
        moments = [moment.replace(tzinfo=None) for moment in moments]
    seconds = (moments[1] - moments[0]).total_seconds()
    way = "later" if seconds > 0 else "earlier"
    yield f"Measured {first.measured_at}, then {second.measured_at}: {show(abs(seconds), 'age_seconds')} {way}."


def _doubts(*sides: tuple[str, Rates]) -> Iterator[str]:
    """Lower bounds and partial measurements."""
    for name, rates in sides:
        rate = rates.instance_tokens_per_second
        if rate is not None and _is_bound(rates):
            yield f"The rate in {name} is a lower bound: {rate.why or 'the engines were not saturated'}."
        if rates.partial:
            yield f"{name} is partial: {rates.partial}."
