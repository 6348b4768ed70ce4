"""Two scenarios, or two files of rates, compared: on the same draws, with what lies in between."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from rlsize.commands.diff import both, main_of
from rlsize.errors import InputError, Refused, noting
from rlsize.facts.figure import Figure
from rlsize.loop.rates import instance_rate
from rlsize.loop.seed import seed_of
from rlsize.loop.sides import sides
from rlsize.planner.fleet import size_fleet
from rlsize.shell.command import in_own_words
from rlsize.shell.inputs import Inputs
from rlsize.shell.rates import fleet_question
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    import typer

    from rlsize.commands.diff.report import Compared
    from rlsize.errors import Fault
    from rlsize.facts.rates import Rates
    from rlsize.loop.resolve import Loop
    from rlsize.planner.evaluation import Evaluation
    from rlsize.readers.scenario_changes import Leaf
    from rlsize.readers.scenarios import ScenarioFile
    from rlsize.readers.yaml_documents import Document
    from rlsize.reports.report import Report
    from rlsize.verdicts.causes import Difference, Draws, Outcome, Split

    _Loops = tuple[Compared, tuple[str, ...], tuple[str, ...]]

_GPUS = ("cluster.", "placement.", "rollout.tensor_parallel", "rollout.pipeline_parallel", "trainer.parallelism.")


_MATCH = ("matched_instances", "matched_instances_exact")
_DETAILS = frozenset({"source", "instances", "rollout", "train", "sync", "machine", "doubts"})
"""Parts of a rates file that say how it was measured; JSON has what changed in them."""


class Side(NamedTuple):
    """
    One loop, worked out.

    Args:
        name: Of its file.
        inputs: What it was worked out from, with its warnings and notes.
        loop: The loop.
        found: What it gives.
    """

    name: str
    inputs: Inputs
    loop: Loop
    found: Evaluation


def scenarios_compared(inputs: Inputs, context: typer.Context, named: tuple[str, str], of: str | None) -> Report:
    """
    The comparison of two scenarios.

    Args:
        inputs: What flags say of both.
        context: Of the command.
        named: The files.
        of: The result to tell first.

    Raises:
        InputError: What is wrong with them.
    """
    from rlsize.commands.diff.report import Compared, diff_report
    from rlsize.readers.scenario_changes import changed_scenario
    from rlsize.readers.scenarios import read_scenario

    before, after = named
    files = both(partial(read_scenario, flags=inputs.texts), before, after)
    doubts = tuple(warning for file in files for warning in file.warnings)
    leaves = changed_scenario(*files)
    if not leaves:
        return diff_report(Compared(before=before, after=after), doubts)
    mixer = Mixer(files, leaves, inputs, context)
    first, second = mixer.sides()
    compared = sides_compared(first, second)

    def missing_for(key: str) -> str:
        """What a result needs that neither side has; empty where there is no such result."""
        found = (side.found.results.get(key) for side in (first, second))
        return next((figure.missing for figure in found if figure is not None and figure.missing), "")

    compared = replace(
        compared,
        inputs=leaves,
        of=main_of(of, compared.differences, missing_for),
        split=mixer.split() if not first.found.refused else None,
    )
    said_so = {leaf.key.rpartition(".")[2] for leaf in leaves}
    return diff_report(compared, (*doubts, *warnings_of(first, second)), tuple(notes_of(first, second, said_so)))


class Mixer:
    """
    Two scenarios, and all between them.

    Args:
        files: The scenarios.
        leaves: What differs.
        inputs: What the flags say of all of them.
        context: Of the command.
    """

    def __init__(
        self, files: tuple[ScenarioFile, ScenarioFile], leaves: Sequence[Leaf], inputs: Inputs, context: typer.Context
    ) -> None:
        self._files, self._inputs_of_all, self._context = files, inputs, context
        self._leaves = {leaf.key: leaf for leaf in leaves}
        _ = inputs.catalogue  # read once for all

    def sides(self) -> tuple[Side, Side]:
        """
        Both loops, on the same draws: what they share has the same source, and so the same draw.

        Raises:
            InputError: What is missing for either.
        """
        before, after = self._files
        faults: list[Fault] = []
        first = second = None
        with noting(faults):
            first = self._side(before.document.name, lambda: before, None)
        with noting(faults):
            second = self._side(after.document.name, lambda: self._mixed(frozenset(self._leaves)), first)
        if first is None or second is None:
            raise InputError(*dict.fromkeys(faults))
        return first, second

    def _side(self, name: str, file: Callable[[], ScenarioFile], other: Side | None) -> Side:
        """
        A loop.

        Raises:
            InputError: What is wrong with it, told of the file that it is in.
        """
        try:
            return evaluated_side(name, self._inputs(file()), other)
        except InputError as error:
            told = in_own_words(error.faults, self._context, name)
            raise InputError(*(fault if fault.where else fault._replace(where=name) for fault in told)) from None

    def _mixed(self, keys: frozenset[str]) -> ScenarioFile:
        from rlsize.readers.scenario_changes import mixed

        return mixed(*self._files, (leaf for key, leaf in self._leaves.items() if key in keys))

    def _inputs(self, file: ScenarioFile) -> Inputs:
        inputs = self._inputs_of_all.apart()
        inputs.file, inputs.used = file, {}
        return inputs

    def outcome(self, keys: frozenset[str]) -> Outcome:
        """What the first scenario gives with some values of the second, in central numbers."""
        from rlsize.loop.resolve import resolve
        from rlsize.planner.evaluation import central_results, memory_of
        from rlsize.verdicts.causes import Outcome

        try:
            loop = resolve(self._inputs(self._mixed(keys)))
            if loop.place is None:
                return Outcome(refused=loop.refused)
            left = memory_of(loop.outlook.central, loop.place)
            memory = {key: float(value) for key, value in left.items()}
            return Outcome(results=central_results(loop.outlook, loop.place) | memory)
        except InputError as error:
            return Outcome(refused=error.brief)
        except Refused as refusal:
            return Outcome(refused=str(refusal))

    def split(self) -> Split:
        """Which change does what."""
        from rlsize.shell.progress import patient_progress
        from rlsize.verdicts.causes import Outcomes, split

        keys = list(self._leaves)
        done = 0
        with patient_progress() as say:

            def told(asked: frozenset[str]) -> Outcome:
                nonlocal done
                done += 1
                say("working out the changes by themselves and together", done / (done + len(keys)))
                return self.outcome(asked)

            return split(keys, Outcomes(told), topic)


def topic(key: str) -> str:
    """What a key is about: the numbers of GPUs belong together, wherever they stand."""
    return "GPUs" if key.startswith(_GPUS) else key.partition(".")[0]


def evaluated_side(name: str, inputs: Inputs, other: Side | None) -> Side:
    """
    A loop with bands; on the draws of another one where there is one.

    Raises:
        InputError: What is missing.
    """
    from rlsize.loop.answer import answer_of
    from rlsize.loop.resolve import resolve
    from rlsize.reports.running_loop import dropped_words

    loop = resolve(inputs)
    if other is not None and other.loop.place is not None:
        loop = replace(loop, outlook=replace(loop.outlook, joint=other.loop.outlook.joint))
    if loop.bound:
        inputs.warnings.append(f"a step takes longer than it says: {loop.bound}")
    found = answer_of(loop)
    inputs.warnings += dropped_words(found.results)
    return Side(name=name, inputs=inputs, loop=loop, found=found)


def sides_compared(first: Side, second: Side) -> Compared:
    """What became of each result, and what the second loop gives."""
    from rlsize.commands.diff.report import Compared
    from rlsize.verdicts.causes import differences

    one, other = first.found, second.found
    return Compared(
        before=first.name,
        after=second.name,
        differences=differences(one.results, other.results, (one.draws, other.draws)),
        results=tuple({**other.placement, **other.results}.values()),
        refused={side.name: side.found.refused for side in (first, second) if side.found.refused},
    )


def warnings_of(first: Side, second: Side) -> Iterator[str]:
    """What casts doubt on both sides, or on one of them, which it names."""
    yield from _of_both(first, second, first.inputs.warnings, second.inputs.warnings)


def notes_of(first: Side, second: Side, said: Collection[str] = ()) -> Iterator[str]:
    """
    How the placements differ, and what explains the answer.

    Args:
        first: One loop.
        second: The other.
        said: What of the placements is told elsewhere.
    """
    from rlsize.reports.wording import words

    placed = (first.found.placement, second.found.placement)
    moved = [
        f"{words(key)} {show(placed[0][key].value)}, then {show(placed[1][key].value)}"
        for key in placed[0]
        if key not in said and key in placed[1] and placed[0][key].value != placed[1][key].value
    ]
    if moved:
        yield f"Placement: {'; '.join(moved)}."
    yield from _of_both(first, second, first.inputs.notes, second.inputs.notes)


def _of_both(first: Side, second: Side, before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    for text in dict.fromkeys((*before, *after)):
        only = first.name if text not in after else second.name if text not in before else ""
        yield f"{only}: {text}" if only and not text.startswith(only) else text


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
    from rlsize.verdicts.causes import bounded, differences

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
    from rlsize.planner import outlook

    joint = outlook.Draws(seed)
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
    from rlsize.verdicts.causes import differences

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
