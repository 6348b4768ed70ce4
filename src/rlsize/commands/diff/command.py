"""`rlsize diff`: what changed between two scenarios, plans or rates files, and what that did to every result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from rlsize.commands.diff.files import both
from rlsize.errors import Fault, InputError, suggestion
from rlsize.reports.report import Report
from rlsize.shell.command import argument, option
from rlsize.shell.inputs import Inputs
from rlsize.shell.quantity_flags import ANSWER, PRICES, asks_beside_files

if TYPE_CHECKING:
    from rlsize.readers.yaml_documents import Document

KINDS = ("scenario", "plan", "rates")
SPLITS = ("alone", "shapley")
_INSTEAD = "name two scenarios, two saved plans, or two rates files"
_OF_LOOPS = (*PRICES, "steps", "calibration", "accept_lower_bound")
_FOR: Mapping[str, tuple[str, ...]] = {"--split": ("scenario",), "--scenario": ("rates",)}
"""The kinds of files that a flag of this command alone says something about, where it is not for all."""


@asks_beside_files(Prices=PRICES, Run=("steps",), Inputs=(*ANSWER, "accept_lower_bound"))
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
    split: str | None = option(
        "--split", "alone (each change by itself), or shapley (fair shares too).", metavar="NAME"
    ),
    scenario: str | None = option(
        "--scenario", "For rates files: the scenario whose loop they change.", metavar="FILE"
    ),
) -> Report:
    """
    What changed between two files, and what that did to every result.

    Example:  rlsize diff examples/unmeasured-8b.yaml examples/longer-8b.yaml
    """
    from rlsize.commands.diff.rates import rates_compared
    from rlsize.commands.diff.saved_plans import plans_compared
    from rlsize.commands.diff.scenarios import scenarios_compared
    from rlsize.loop.seed import seed_of
    from rlsize.readers.yaml_documents import read_document

    kind = _kind(*both(read_document, before, after))
    given = [flag for flag, text in (("--split", split), ("--scenario", scenario)) if text is not None]
    wrong = [flag for flag in given if kind not in _FOR[flag]]
    of_loops = [inputs.flag(key) for key in inputs.texts if key in _OF_LOOPS]
    wrong += of_loops if kind == "plan" else []
    for flag in wrong:
        inputs.fault(f"says nothing about two {kind} files", flag, "leave it out")
    for flag in of_loops if kind == "rates" and scenario is None else ():
        inputs.fault("says something about a loop, and rates files have none", flag, "name one with --scenario FILE")
    if split is not None and split not in SPLITS:
        inputs.fault(f"{split[:40]!r} is unknown", "--split", suggestion(split[:40], SPLITS))
    inputs.settle()
    seed_of(inputs)  # refuses a seed that is no whole number
    if kind == "plan":
        return plans_compared(before, after, of)
    if kind == "rates":
        return rates_compared(inputs, context, (before, after), scenario, of)
    return scenarios_compared(inputs, context, (before, after), of, fair=split == "shapley")


def _kind(before: Document, after: Document) -> str:
    """
    What both files are.

    Raises:
        InputError: They differ, or cannot be compared.
    """
    kinds = before.kind, after.kind
    for document, kind in zip((before, after), kinds, strict=True):
        if kind is None:
            todo = "its first line should be such as `rlsize: {kind: scenario, version: 1}`"
            raise InputError(Fault("does not say what kind of file it is", document.name, todo))
    names = [f"a {str(kind)[:40]} file" for kind in kinds]
    if {*map(str, kinds)} == {"scenario", "plan"}:
        return "scenario"  # a plan holds the scenario that resolves to it
    if kinds[0] != kinds[1]:
        what = f"is {names[1]}, and {before.name} is {names[0]}"
        raise InputError(Fault(what, after.name, _INSTEAD))
    if kinds[0] not in KINDS:
        raise InputError(Fault(f"is {names[0]}, which cannot be compared", before.name, _INSTEAD))
    return str(kinds[0])
