"""
What was typed and no figure of an answer depends on.

A quantity reaches an answer in many ways: as a number in an equation, as a word that chooses one, as what decides
whether a loop fits. So the same question is asked again with other values of it, and the answers are compared. Most of
what is typed need not be tried: a figure of the answer names it among what it was worked out from.
"""

from __future__ import annotations

import re
from contextlib import redirect_stderr
from dataclasses import replace
from io import StringIO
from typing import TYPE_CHECKING, Any

import typer

from rlsize.errors import Refused, RlsizeError
from rlsize.facts.fields import Quantity
from rlsize.facts.figure import Figure
from rlsize.quantities.row import Switch, Text, Word
from rlsize.quantities.table import QUANTITIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from rlsize.quantities.row import Row
    from rlsize.reports.report import Report
    from rlsize.shell.inputs import Inputs

_FACTORS = ((16.0, 2.0), (1 / 16, 0.5))  # far, and nearer where a loop cannot be that far
_VERSION, _VERSIONS = "VERSION", ("v0.0.1", "v99.0.0")  # the only texts that name nothing else
_STEP = "step_seconds"


def without_bearing(
    inputs: Inputs, report: Report, made: Callable[..., Inputs], answer: Callable[[Inputs], Report]
) -> tuple[str, ...]:
    """
    How those quantities were typed that no figure of an answer depends on.

    Args:
        inputs: What was said.
        report: The answer.
        made: Makes inputs of what flags and `--set` say.
        answer: Answers inputs, and leaves no other trace.
    """
    prose = " ".join((report.headline, *report.warnings, *report.notes))
    typed = {key: said for key, said in inputs.typed().items() if key in inputs.asked}
    sources = _sources(report.results) if typed else set()
    told = {figure.key for figure in report.results}
    found = []
    for key, (text, where) in typed.items():
        name = where.removeprefix("--set ")
        named = re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])", prose)
        if not named and where not in sources and key not in told and _idle(key, text, inputs, report, made, answer):
            found.append(name)
    return tuple(found)


def _sources(figures: Iterable[Figure]) -> set[str]:
    """Who says what figures were worked out from."""
    seen: dict[int, Figure] = {}
    left = [*figures]
    while left:
        figure = left.pop()
        if id(figure) not in seen:  # figures share most of what they come from
            seen[id(figure)] = figure
            left += figure.inputs.values()
    return {figure.source for figure in seen.values()}


def _idle(
    key: str,
    text: str,
    inputs: Inputs,
    report: Report,
    made: Callable[..., Inputs],
    answer: Callable[[Inputs], Report],
) -> bool:
    """Whether all other values that are tried, and with which there is an answer, give the same answer."""
    sides = [*_others(QUANTITIES[key], inputs.used.get(key), text)]
    if not sides:
        return False
    step = _step(inputs) if any(figure.key == _STEP for figure in report.results) else None
    if step is not None and key not in step[1]:  # what a search goes by, such as its limits
        return False
    answered = set()
    for side, other in ((side, other) for side, others in enumerate(sides) for other in others):
        try:
            with redirect_stderr(StringIO()):
                asked = _otherwise(inputs, key, other, made)
                if step is not None and (_step(asked) or step)[0] != step[0]:
                    return False
                if side in answered and len(sides) > 1:  # of a number: a whole answer for the one that is far will do
                    continue
                found = answer(asked)
        except (RlsizeError, Refused, typer.Exit):
            continue
        if asked.refused or any(part(report) != part(found) for part in (_told, _figures, _rows)):
            return False
        answered.add(side)
    return 0 < len(answered) == len(sides)


def _otherwise(inputs: Inputs, key: str, value: str | bool, made: Callable[..., Inputs]) -> Inputs:
    """The inputs with another value of a quantity, said in the same way."""
    if key in inputs.texts:
        return made({**inputs.texts, key: value}, inputs.changes)
    place, text = QUANTITIES[key].scenario, value if isinstance(value, str) else "yes" if value else "no"
    others = (one for one in inputs.changes if one.partition("=")[0].strip() != place)
    return made(inputs.texts, (*others, f"{place}={text}"))


def _step(inputs: Inputs) -> tuple[float, frozenset[str]] | None:
    """Seconds of a step as it was said, and what they were asked of: a fraction of an answer; None where none is."""
    from rlsize.loop.assumed import step_of

    asked = inputs.instead()
    try:
        return step_of(asked), frozenset(asked.used)
    except (RlsizeError, Refused):
        return None


def _others(row: Row, taken: Figure | None, text: str) -> Iterator[list[str | bool]]:
    """Other values of a quantity, of a number those above and those below; none of most names."""
    kind = row.kind
    if isinstance(kind, Text) and kind.metavar == _VERSION:
        yield [*_VERSIONS]
    elif isinstance(kind, Word):
        some = ["[]", f"[{', '.join(kind.known)}]"] if kind.listed else []
        yield [*some, *(f"[{word}]" if kind.listed else word for word in kind.known if word != text)]
    elif isinstance(kind, Switch) and taken is not None:
        yield [not taken.value]
    elif isinstance(kind, Quantity) and taken is not None:
        yield from filter(None, (_side(kind, taken.number, factors) for factors in _FACTORS))


def _side(kind: Quantity, taken: float, factors: tuple[float, ...]) -> list[str | bool]:
    """Numbers on one side of the one that was taken, within the limits of the quantity."""
    found: list[str | bool] = []
    for factor in factors:
        number = taken * factor if taken else factor * (factor > 1)
        number = max(1.0, round(number)) if kind.whole else number
        number = number if kind.most is None else min(number, kind.most)
        number = number if kind.least is None else max(number, kind.least)
        found += [f"{number:.9g}"] if number != taken else []
    return found


def _told(report: Report) -> tuple[Any, ...]:
    """What it says; not what was written, which is so once."""
    notes = [note for note in report.notes if note not in report.done]
    parts = [] if report.decision is None else [*report.decision.parts(replace(report, done=()))]
    return report.headline, report.no, report.warnings, notes, parts


def _figures(report: Report) -> list[Any]:
    return [_plain(figure) for figure in report.results]


def _rows(report: Report) -> Mapping[str, list[dict[str, Any]]]:
    return {
        name: [{key: _plain(cell) for key, cell in row.items()} for row in table.rows]
        for name, table in report.tables.items()
    }


def _plain(cell: Any) -> Any:
    return (cell.value, cell.band, cell.missing) if isinstance(cell, Figure) else cell
