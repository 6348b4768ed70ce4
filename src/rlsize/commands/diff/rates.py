"""Two rates files compared: what was measured, under which conditions, and what that does to a loop."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from rlsize.commands.diff.files import both, main_of
from rlsize.errors import InputError
from rlsize.facts.figure import Figure
from rlsize.loop.rates import instance_rate
from rlsize.loop.seed import random_for, seed_of
from rlsize.shell.failures import in_own_words
from rlsize.shell.inputs import Inputs
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import typer

    from rlsize.commands.diff.scenarios import Side
    from rlsize.facts.rates import Rates
    from rlsize.readers.yaml_documents import Document
    from rlsize.reports.report import Report
    from rlsize.verdicts.difference import Difference, Draws

_MATCH = ("matched_instances", "matched_instances_exact")
_DETAILS = frozenset({"source", "instances", "rollout", "train", "sync", "machine", "doubts"})
"""Parts of a rates file that say how it was measured; JSON has what changed in them."""


@dataclass(frozen=True, slots=True)
class _Loops:
    """What a scenario gives with either file: its loop, the fleet that matches, and what there is to say of them."""

    differences: tuple[Difference, ...] = ()
    results: tuple[Figure, ...] = ()
    refused: dict[str, str] | None = None
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


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
    loops = _loops(said, context, named, scenario) if scenario is not None else _Loops()
    told = (*rates, *loops.differences)
    fallback = next((one.quantity for one in rates if one.before.known and one.after.known), "")
    compared = Compared(
        how="that of a change with each rate's own spread, all else drawn once for both",
        before=before,
        after=after,
        inputs=leaves,
        details=frozenset(leaf.key for leaf in leaves if leaf.path[0] in _DETAILS or leaf.path[-1] == "why"),
        differences=told,
        of=main_of(of, told) if loops.differences or of or not fallback else fallback,
        results=loops.results,
        refused=loops.refused,
    )
    notes = (*_age(first, second), *_doubts((before, first), (after, second)), *loops.notes)
    return diff_report(compared, loops.warnings, notes)


def _read(path: str) -> tuple[Rates, Document, Rates]:
    """
    A file: in response tokens, as a document, and as it is written.

    Raises:
        InputError: What is wrong with it.
    """
    from rlsize.facts.rates import Rates
    from rlsize.readers.rates import rates_of
    from rlsize.readers.validation import opened, validated
    from rlsize.readers.yaml_documents import read_document

    document = read_document(path)
    converted, inside = rates_of(document), opened(document, "rates")
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

    return {
        key: replace(figure, band=interval(drawn[key])) if figure.deviation else figure
        for key, figure in figures.items()
    }


def _loops(said: Inputs, context: typer.Context, files: tuple[str, str], scenario: str) -> _Loops:
    """
    The scenario with either file.

    Raises:
        InputError: It cannot be worked out with one of them.
    """
    from rlsize.commands.diff.scenarios import differences_of, notes_of, warnings_of
    from rlsize.verdicts.difference import differences

    sides = [_with_rates(said, scenario, file) for file in files]
    matches, lacking = _matches(sides)
    try:
        first, second = _sides(files, [side.apart() for side in sides], context, scenario)
    except InputError as error:
        if lacking:
            raise
        told = "; ".join(dict.fromkeys(fault.what for fault in error.faults))
        return _Loops(
            differences=differences(*matches),
            results=tuple(matches[1].values()),
            notes=(f"The loop is not worked out: {told}.",),
        )
    return _Loops(
        differences=(*differences(*matches), *differences_of(first, second)),
        results=tuple({**second.found.placement, **second.found.results, **matches[1]}.values()),
        refused={side.name: side.found.refused for side in (first, second) if side.found.refused},
        warnings=tuple(warnings_of(first, second)),
        notes=(*([lacking] if lacking else []), *notes_of(first, second)),
    )


def _with_rates(said: Inputs, scenario: str, file: str) -> Inputs:
    """The scenario with a rates file."""
    found = said.instead(instance_tokens_per_second=file)
    found.read(scenario)
    return found


def _matches(sides: Sequence[Inputs]) -> tuple[tuple[dict[str, Figure], dict[str, Figure]], str]:
    """The fleets that match the trainer; without any, why."""
    from rlsize.loop.rates import busy_seconds, consumed, waste
    from rlsize.loop.workload import batch_tokens
    from rlsize.planner.fleet import FleetQuestion, size_fleet

    found: list[dict[str, Figure]] = []
    try:
        for side in (one.apart() for one in sides):
            rate, headroom = instance_rate(side)
            batch = batch_tokens(side)
            consumption = consumed(side, batch, busy_seconds(side))
            for figure, todo in ((consumption, "give --consume"), (rate, "give --per-instance")):
                side.need(figure, todo)
            side.settle()
            question = FleetQuestion(
                consumption=consumption,
                instance_rate=rate,
                headroom=headroom,
                tokens_generated_per_trained_token=waste(side),
            )
            answer = size_fleet(question, random_for(side, question))
            found.append({figure.key: figure for figure in answer.results if figure.key in _MATCH})
    except InputError as error:
        told = "; ".join(dict.fromkeys(fault.what for fault in error.faults))
        return ({}, {}), f"The fleet that matches is not worked out: {told}."
    return (found[0], found[1]), ""


def _sides(
    files: tuple[str, str], with_rates: Sequence[Inputs], context: typer.Context, scenario: str
) -> tuple[Side, Side]:
    """
    The loop of the scenario with either file, on the same draws.

    Raises:
        InputError: What is wrong with it.
    """
    from rlsize.commands.diff.scenarios import evaluated_side

    found: list[Side] = []
    for file, inputs in zip(files, with_rates, strict=True):
        try:
            found.append(evaluated_side(file, inputs, found[0] if found else None))
        except InputError as error:
            raise InputError(*in_own_words(error.faults, context, scenario)) from None
    return found[0], found[1]


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
