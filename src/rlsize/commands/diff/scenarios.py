"""Two scenarios compared: both loops on the same draws, and scenarios in between to tell which change does what."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from rlsize.commands.diff import both, main_of
from rlsize.errors import InputError, noting
from rlsize.facts.records import Refused
from rlsize.shell.command import in_own_words

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    import typer

    from rlsize.commands.diff.report import Compared
    from rlsize.errors import Fault
    from rlsize.loop.resolve import Loop
    from rlsize.planner.evaluation import Evaluation
    from rlsize.readers.scenario_changes import Leaf
    from rlsize.readers.scenarios import ScenarioFile
    from rlsize.reports.report import Report
    from rlsize.shell.inputs import Inputs
    from rlsize.verdicts.causes import Outcome, Split

_GPUS = ("cluster.", "placement.", "rollout.tensor_parallel", "rollout.pipeline_parallel", "trainer.parallelism.")


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


def scenarios_compared(
    inputs: Inputs, context: typer.Context, named: tuple[str, str], of: str | None, *, fair: bool
) -> Report:
    """
    The comparison of two scenarios.

    Args:
        inputs: What flags say of both.
        context: Of the command.
        named: The files.
        of: The result to tell first.
        fair: Whether changes get fair shares too.

    Raises:
        InputError: What is wrong with them.
    """
    from rlsize.commands.diff.report import Compared, diff_report
    from rlsize.readers.scenario_changes import changed_scenario
    from rlsize.readers.scenarios import read_scenario

    before, after = named
    files = both(read_scenario, before, after)
    leaves = changed_scenario(*files)
    if not leaves:
        return diff_report(Compared(before=before, after=after))
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
        split=mixer.split(fair=fair) if not first.found.refused else None,
    )
    said_so = {leaf.key.rpartition(".")[2] for leaf in leaves}
    return diff_report(compared, tuple(warnings_of(first, second)), tuple(notes_of(first, second, said_so)))


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

    def split(self, *, fair: bool) -> Split:
        """Which change does what."""
        from random import Random

        from rlsize.loop.seed import seed_of
        from rlsize.shell.progress import patient_progress
        from rlsize.verdicts.causes import Outcomes, split, with_fair_shares

        keys = list(self._leaves)
        done = 0
        with patient_progress() as say:

            def told(asked: frozenset[str]) -> Outcome:
                nonlocal done
                done += 1
                say("working out the changes by themselves and together", done / (done + len(keys)))
                return self.outcome(asked)

            outcomes = Outcomes(told)
            found = split(keys, outcomes, topic)
            if not fair:
                return found
            random = Random(seed_of(self._inputs_of_all))  # noqa: S311 (orders of changes, not a secret)
            return with_fair_shares(found, outcomes, random)


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
    from rlsize.reports.plan import dropped_words

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
    from rlsize.verdicts.difference import differences

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
    from rlsize.units import show

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
