"""`rlsize diff`: what changed between two scenarios, plans or rates files, and what that did to every result."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from rlsize.errors import Fault, InputError, noting, refuse, suggestion
from rlsize.facts.figure import Figure
from rlsize.reports.report import Report
from rlsize.shell.command import argument, option
from rlsize.shell.inputs import Inputs
from rlsize.shell.quantity_flags import ANSWER, PRICES, asks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlsize.facts.plan import Plan, PlanFigure
    from rlsize.readers.scenario_changes import Leaf
    from rlsize.readers.yaml_documents import Document
    from rlsize.verdicts.causes import Difference

KINDS = ("scenario", "plan", "rates")
_INSTEAD = "name two scenarios, two saved plans, or two rates files"
_OF_LOOPS = (*PRICES, "steps", "calibration", "accept_lower_bound")

T = TypeVar("T")
_USUAL = ("cost_per_step_usd", "step_seconds")

_FROM_FILE = re.compile(r"(?P<file>[^\x00-\x1f]{1,300}?\.ya?ml):\d+: ")
_ENDS = ", of one loop, so low is compared with low and high with high"
_WITHOUT_CAUSES = "Saved numbers cannot tell which change did it"


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

    kind = _kind(*both(read_document, before, after))
    wrong = [] if scenario is None or kind == "rates" else ["--scenario"]
    of_loops = [inputs.flag(key) for key in inputs.texts if key in _OF_LOOPS]
    wrong += of_loops if kind == "plan" else []
    for flag in wrong:
        inputs.fault(f"says nothing about two {kind} files", flag, "leave it out")
    for flag in of_loops if kind == "rates" and scenario is None else ():
        inputs.fault("says something about a loop, and rates files have none", flag, "name one with --scenario FILE")
    inputs.settle()
    seed_of(inputs)  # refuses a seed that is no whole number
    if kind == "plan":
        return plans_compared(before, after, of)
    if kind == "rates":
        return rates_compared(inputs, context, (before, after), scenario, of)
    return scenarios_compared(inputs, context, (before, after), of)


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


def plans_compared(before: str, after: str, of: str | None) -> Report:
    """
    The comparison of two plans.

    Raises:
        InputError: What is wrong with them.
    """
    from rlsize.commands.diff.report import Compared, diff_report
    from rlsize.readers.saved_files import read_plan
    from rlsize.verdicts.causes import differences

    first, second = both(read_plan, before, after)
    # Whether one command worked the same placement out from the same facts, and so on the same draws
    sides = [
        (*_maker(plan), plan.facts_digest, {key: figure.value for key, figure in plan.placement.items()})
        for plan in (first, second)
    ]
    one_loop = sides[0] == sides[1]
    told = differences(_figures(first.results), _figures(second.results), one_loop=one_loop)
    inputs = tuple(_changes(first, second))
    compared = Compared(
        before=before,
        after=after,
        inputs=inputs,
        differences=told,
        of=main_of(of, told),
        how=f"as they were saved{_ENDS if one_loop else ''}",
        results=tuple(_figures({**second.placement, **second.results}).values()),
    )
    causes = _causes((first, second)) if len(inputs) > 1 else ()
    return diff_report(compared, tuple(_warnings(first, second)), (*_notes((first, second)), *causes))


def _maker(plan: Plan) -> tuple[str, str]:
    """The command that made a plan, and the seed of its draws."""
    words = plan.command.removeprefix("rlsize ").split()
    return words[0] if words else "", words[words.index("--seed") + 1] if "--seed" in words[:-1] else "0"


def _figures(saved: Mapping[str, PlanFigure]) -> dict[str, Figure]:
    return {key: one.figure(key) for key, one in saved.items()}


def _changes(first: Plan, second: Plan) -> Iterator[Leaf]:
    """What was planned otherwise, and what it was worked out from; results that are an input too are told once."""
    from rlsize.readers.scenario_changes import Leaf
    from rlsize.units import show

    told: set[str] = set()
    for part in ("placement", "inputs"):
        before, after = getattr(first, part), getattr(second, part)
        for key in dict.fromkeys((*before, *after)):
            sides = [side[key].value if key in side else None for side in (before, after)]
            if sides[0] == sides[1] or key in told:
                continue
            told.add(key)
            words = [None if value is None else show(value, key) for value in sides]
            yield Leaf(path=(part, key), before=words[0], after=words[1])


def _warnings(first: Plan, second: Plan) -> Iterator[str]:
    """What moved under the numbers between the two."""
    if first.rlsize_version != second.rlsize_version:
        yield f"the plans are of two versions of rlsize: {first.rlsize_version}, then {second.rlsize_version}"
    if first.facts_digest != second.facts_digest:
        digests = f"facts_digest {first.facts_digest}, then {second.facts_digest}"
        yield f"profiles or equations changed between the plans ({digests}): part of a change may be theirs"


def _notes(plans: tuple[Plan, Plan]) -> Iterator[str]:
    """Prices and commands that differ."""
    for what, sides in (
        ("Made by", [f"rlsize {_maker(plan)[0]}" for plan in plans]),
        ("Prices as of", [plan.prices_as_of or "an unknown day" for plan in plans]),
        ("Prices of the region", [plan.prices_region or "that nobody named" for plan in plans]),
    ):
        if sides[0] != sides[1]:
            yield f"{what} {sides[0]}, then {sides[1]}."


def _causes(plans: tuple[Plan, Plan]) -> Iterator[str]:
    """How to find out which change did what, which saved numbers do not tell."""
    files = [_scenario(plan) for plan in plans]
    if not files[0] or not files[1]:
        yield f"{_WITHOUT_CAUSES}: compare their scenarios, `rlsize diff BEFORE.yaml AFTER.yaml`."
    elif files[0] == files[1]:
        yield f"{_WITHOUT_CAUSES}. Both were worked out from {files[0]}: compare its two versions with `rlsize diff`."
    else:
        yield f"{_WITHOUT_CAUSES}. The scenarios tell it: `rlsize diff {' '.join(map(shlex.quote, files))}`."


def _scenario(plan: Plan) -> str:
    """The scenario that most inputs of a plan come from, if it is still there; else nothing."""
    found = (_FROM_FILE.match(one.source) for one in plan.inputs.values())
    names = Counter(match["file"] for match in found if match)
    name = names.most_common(1)[0][0] if names else ""
    try:
        return name if name and Path(name).is_file() else ""
    except OSError:  # a name that no file can have
        return ""
