"""`rlsize diff`: what changed between two scenarios, plans or rates files, and what that did to every result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from rlsize.errors import Fault, InputError, noting, refuse, suggestion
from rlsize.reports.report import Report
from rlsize.shell.command import argument, option
from rlsize.shell.inputs import Inputs
from rlsize.shell.quantity_flags import ANSWER, PRICES, asks

if TYPE_CHECKING:
    from rlsize.readers.yaml_documents import Document
    from rlsize.verdicts.causes import Difference

_INSTEAD = "name two scenarios, two saved plans, or two rates files"
_OF_LOOPS = (*PRICES, "steps", "calibration", "accept_lower_bound")

T = TypeVar("T")
_USUAL = ("cost_per_step_usd", "step_seconds")


@asks(beside_files=True, Prices=PRICES, Run=("steps",), Inputs=(*ANSWER, "accept_lower_bound"))
def diff(
    inputs: Inputs,
    context: typer.Context,
    before: Annotated[str, argument("BEFORE", "A scenario, a saved plan, or a rates file.")],
    after: Annotated[str, argument("AFTER", "Another one of the same kind.")],
    of: str | None = option(
        "--of",
        "The result to tell first; cost_per_step_usd where prices are known, else step_seconds.",
        metavar="KEY",
    ),
    scenario: str | None = option(
        "--scenario", "For rates files: the scenario whose loop they change.", metavar="FILE"
    ),
) -> Report:
    """
    What changed between two files, and what that did to every result.

    Example:  rlsize diff examples/unmeasured-8b.yaml examples/longer-8b.yaml
    """
    from rlsize.commands.diff.scenarios import rates_compared, scenarios_compared
    from rlsize.loop.seed import seed_of
    from rlsize.readers.yaml_documents import read_document

    rates = _are_rates(*both(read_document, before, after))
    if scenario is not None and not rates:
        inputs.fault("says nothing about two scenario files", "--scenario", "leave it out")
    for key in [key for key in inputs.texts if key in _OF_LOOPS] if scenario is None and rates else ():
        todo = "name one with --scenario FILE"
        inputs.fault("says something about a loop, and rates files have none", inputs.flag(key), todo)
    inputs.settle()
    seed_of(inputs)  # refuses a seed that is no whole number
    if rates:
        return rates_compared(inputs, context, (before, after), scenario, of)
    return scenarios_compared(inputs, context, (before, after), of)


def _are_rates(before: Document, after: Document) -> bool:
    """
    Whether both files are rates; else each is a scenario, or a plan, which holds the scenario that resolves to it.

    Raises:
        InputError: They differ, or cannot be compared.
    """
    kinds = before.kind, after.kind
    for document, kind in zip((before, after), kinds, strict=True):
        if kind is None:
            todo = "its first line should be such as `rlsize: {kind: scenario, version: 1}`"
            raise InputError(Fault("does not say what kind of file it is", document.name, todo))
    names = [f"a {str(kind)[:40]} file" for kind in kinds]
    if {*map(str, kinds)} <= {"scenario", "plan"}:
        return False
    if kinds[0] != kinds[1]:
        what = f"is {names[1]}, and {before.name} is {names[0]}"
        raise InputError(Fault(what, after.name, _INSTEAD))
    if kinds[0] != "rates":
        raise InputError(Fault(f"is {names[0]}, which cannot be compared", before.name, _INSTEAD))
    return True


def both(read: Callable[[str], T], before: str, after: str) -> tuple[T, T]:
    """
    Two files, read.

    Args:
        read: Reads one.
        before: The first.
        after: The second; it may be the same.

    Raises:
        InputError: What is wrong with either.
    """
    found: list[T] = []
    faults: list[Fault] = []
    for path in (before, after):
        with noting(faults):
            found.append(read(path))
    refuse(dict.fromkeys(faults))
    return found[0], found[1]


def main_of(of: str | None, told: Sequence[Difference], lacking: Callable[[str], str] = str) -> str:
    """
    The result to tell first: the one that was asked for, else the cost, else the time of a step.

    Args:
        of: What was asked for.
        told: The results that there are.
        lacking: What a result needs that there is not; empty where there is no such result.

    Raises:
        InputError: There is no such result.
    """
    known = [one.quantity for one in told if one.before.known and one.after.known]
    names = [one.quantity for one in told]
    if of is None:
        return next((key for key in _USUAL if key in known), known[0] if known else _USUAL[-1])
    if of in names or not told:
        return of
    missing = lacking(of)
    if missing:
        raise InputError(Fault(f"{of} is not known", "--of", f"it needs {missing}"))
    raise InputError(Fault(f"there is no result {of[:40]!r}", "--of", suggestion(of[:40], names)))
