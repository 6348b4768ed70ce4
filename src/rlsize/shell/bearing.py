"""
What was typed and no figure of an answer depends on.

A quantity reaches an answer in many ways: as a number in an equation, as a word that chooses one, as what decides
whether a loop fits. So the same question is asked again with other values of it, and the answers are compared. Most of
what is typed need not be tried: a figure of the answer names it among what it was worked out from.
"""

from __future__ import annotations

import re
from contextlib import redirect_stderr
from io import StringIO
from typing import TYPE_CHECKING, Any

import typer

from rlsize.errors import Refused, RlsizeError
from rlsize.facts.fields import Quantity
from rlsize.facts.figure import Figure
from rlsize.quantities.row import Switch, Text, Word
from rlsize.quantities.table import QUANTITIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rlsize.quantities.row import Row
    from rlsize.reports.report import Report
    from rlsize.shell.inputs import Inputs

_NEAR = (2.0, 0.5)
_FACTORS = (16.0, 1 / 16, *_NEAR)  # far both ways; nearer where a loop cannot be that far
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
    sources = {figure.source for result in report.results for figure in _behind(result)}
    found = []
    for key, (text, where) in inputs.typed().items():
        name = where.removeprefix("--set ")
        named = re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])", prose)
        if (
            key in inputs.asked
            and not named
            and where not in sources
            and _idle(key, text, inputs, report, made, answer)
        ):
            found.append(name)
    return tuple(found)


def _behind(figure: Figure) -> Iterator[Figure]:
    """A figure, and all that it was worked out from."""
    yield figure
    for entry in figure.inputs.values():
        yield from _behind(entry)


def _idle(
    key: str,
    text: str,
    inputs: Inputs,
    report: Report,
    made: Callable[..., Inputs],
    answer: Callable[[Inputs], Report],
) -> bool:
    """Whether every other value that is tried, and with which there is an answer, gives the same answer."""
    steps = any(figure.key == _STEP for figure in report.results)
    answered = False
    for near, other in _others(QUANTITIES[key], inputs.used.get(key), text):
        if near and answered:  # it was tried far from where it is
            break
        try:
            with redirect_stderr(StringIO()):
                asked = _otherwise(inputs, key, other, made)
                if steps and _step(asked) != _step(inputs):
                    return False
                found = answer(asked)
        except (RlsizeError, Refused, typer.Exit):
            continue
        if asked.refused:
            continue
        if not _same(report, found):
            return False
        answered = True
    return answered


def _otherwise(inputs: Inputs, key: str, value: str | bool, made: Callable[..., Inputs]) -> Inputs:
    """The inputs with another value of a quantity, said in the same way."""
    if key in inputs.texts:
        return made({**inputs.texts, key: value}, inputs.changes)
    place, text = QUANTITIES[key].scenario, value if isinstance(value, str) else "yes" if value else "no"
    return made(
        inputs.texts, (*(one for one in inputs.changes if one.partition("=")[0].strip() != place), f"{place}={text}")
    )


def _step(inputs: Inputs) -> float | None:
    """Seconds of a step as it was said, which takes a fraction of the time of an answer; None where there is none."""
    from rlsize.loop.assumed import step_of

    try:
        return step_of(inputs.instead())
    except (RlsizeError, Refused):
        return None


def _others(row: Row, taken: Figure | None, text: str) -> Iterator[tuple[bool, str | bool]]:
    """Other values of a quantity, and whether they are near; none of names, each of which stands for much."""
    kind = row.kind
    if isinstance(kind, Text) and kind.metavar == _VERSION:
        yield from ((False, text) for text in _VERSIONS)
    elif isinstance(kind, Word):
        yield from ((False, word) for word in kind.known if word != text)
    elif isinstance(kind, Switch) and taken is not None:
        yield False, not taken.value
    elif isinstance(kind, Quantity) and taken is not None:
        for factor in _FACTORS:
            number = taken.number * factor if taken.number else factor
            number = max(1.0, round(number)) if kind.whole else number
            number = number if kind.most is None else min(number, kind.most)
            number = number if kind.least is None else max(number, kind.least)
            if number != taken.number:
                yield factor in _NEAR, f"{number:.9g}"


def _same(one: Report, other: Report) -> bool:
    """Whether two reports say the same: all but their inputs, which are what differs."""
    return all(part(one) == part(other) for part in (_told, _figures, _rows))


def _told(report: Report) -> tuple[Any, ...]:
    decision = report.decision
    parts = [] if decision is None else [*decision.parts(report)]
    return report.headline, report.no, report.warnings, report.notes, parts


def _figures(report: Report) -> list[Any]:
    return [_plain(figure) for figure in report.results]


def _rows(report: Report) -> Mapping[str, list[dict[str, Any]]]:
    return {
        name: [{key: _plain(cell) for key, cell in row.items()} for row in table.rows]
        for name, table in report.tables.items()
    }


def _plain(cell: Any) -> Any:
    return (cell.value, cell.band, cell.missing) if isinstance(cell, Figure) else cell
