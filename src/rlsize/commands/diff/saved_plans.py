"""Two saved plans compared: what was recorded, as nothing of it can be worked out again."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from rlsize.commands.diff.files import both, main_of
from rlsize.facts.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rlsize.facts.plan import Plan, PlanFigure
    from rlsize.readers.scenario_changes import Leaf
    from rlsize.reports.report import Report

_FROM_FILE = re.compile(r"(?P<file>[^\x00-\x1f]{1,300}?\.ya?ml):\d+: ")
_ENDS = ", of one loop, so low is compared with low and high with high"
_WITHOUT_CAUSES = "Saved numbers cannot tell which change did it"


def plans_compared(before: str, after: str, of: str | None) -> Report:
    """
    The comparison of two plans.

    Raises:
        InputError: What is wrong with them.
    """
    from rlsize.commands.diff.report import Compared, diff_report
    from rlsize.readers.saved_files import read_plan
    from rlsize.verdicts.difference import differences

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
