"""What to say about a loop and its budget: which limits are broken, which are in doubt, and by how much."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rlsize.facts.figure import Figure
from rlsize.reports import check_words as say
from rlsize.reports.findings import IMPOSSIBLE, Finding, Level
from rlsize.reports.report import Column, Report, Table
from rlsize.reports.wording import words
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.reports.report import Cell
    from rlsize.verdicts.budget import Line

_ORDER = ("fail", "warn", "unknown", "pass")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a limit stands: a file, and the line in it."""

    file: str
    line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """
    A loop, judged.

    Args:
        lines: Every limit, judged.
        places: Where each stands, by its name.
        strict: Whether a band that crosses its limit fails.
        placement: The loop that was judged.
        results: What is expected of it.
        baseline: Name of the file that it is compared with; empty without one.
        impossible: Why the loop cannot run at all; there are no lines then.
        loop: Where the loop is written down, for what no limit stands for.
    """

    lines: tuple[Line, ...]
    places: Mapping[str, Place] = field(default_factory=dict)
    strict: bool = False
    placement: Mapping[str, Figure] = field(default_factory=dict)
    results: Mapping[str, Figure] = field(default_factory=dict)
    baseline: str = ""
    impossible: str = ""
    loop: Place = Place(file="")

    @property
    def ranked(self) -> tuple[Line, ...]:
        """Broken limits first, then those in doubt, then those that are kept."""
        return tuple(sorted(self.lines, key=lambda line: _ORDER.index(line.status)))

    @property
    def refused(self) -> tuple[Line, ...]:
        """The limits because of which the answer is no."""
        return tuple(line for line in self.ranked if line.refused(strict=self.strict))

    def count(self, status: str) -> int:
        """How many limits have a status."""
        return sum(line.status == status for line in self.lines)


def check_report(
    checked: Checked, inputs: Sequence[Figure] = (), warnings: Sequence[str] = (), notes: Sequence[str] = ()
) -> Report:
    """
    The report of `rlsize check`.

    Args:
        checked: What was found.
        inputs: What the loop was worked out from.
        warnings: What casts doubt.
        notes: What explains the answer.
    """
    results = _results(checked)
    return Report(
        command="check",
        headline=_headline(checked),
        results=results,
        inputs=tuple(inputs),
        tables={"limits": _table(checked)} if checked.lines else {},
        warnings=tuple(warnings),
        notes=tuple(notes),
        no=bool(checked.refused or checked.impossible),
        quiet=frozenset(figure.key for figure in results),
    )


def findings(checked: Checked) -> tuple[Finding, ...]:
    """Every limit with its verdict, for annotations and test reports."""
    titles = {"failure": "over budget", "warning": "budget in doubt", "error": "not judged", "pass": "within budget"}
    found = []
    if checked.impossible:
        where, said = checked.loop, _sentence(checked.impossible)
        found.append(
            Finding(name="loop", level="failure", title=IMPOSSIBLE, message=said, file=where.file, line=where.line)
        )
    for line in checked.ranked:
        place = checked.places.get(line.name, checked.loop)
        level = _level(line, strict=checked.strict)
        found.append(
            Finding(
                name=line.name,
                level=level,
                title=f"{titles[level]}: {line.quantity}",
                message=_sentence(say.told(line)),
                file=place.file,
                line=place.line,
            )
        )
    return tuple(found)


def _level(line: Line, *, strict: bool) -> Level:
    if line.status == "unknown":
        return "error"
    if line.refused(strict=strict):
        return "failure"
    return "warning" if line.status == "warn" else "pass"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}."


def _headline(checked: Checked) -> str:
    if checked.impossible:
        return f"Over budget: {IMPOSSIBLE}: {checked.impossible}."
    count = len(checked.lines)
    broken, doubtful = checked.count("fail"), checked.count("warn")
    if broken:
        first = checked.ranked[0]
        verb = "is" if broken == 1 else "are"
        return f"Over budget: {broken} of {_limits(count)} {verb} broken. {_sentence(say.told(first))}"
    if doubtful:
        first = checked.ranked[0]
        begin = "Over budget, as --strict takes doubt for no" if checked.strict else "Within budget, but in doubt"
        verb = "is" if doubtful == 1 else "are"
        return f"{begin}: {doubtful} of {_limits(count)} {verb} crossed by a band. {_sentence(say.told(first))}"
    return f"Within budget: {_limits(count)} kept{_closest(checked)}."


def _limits(count: int) -> str:
    return "1 limit" if count == 1 else f"{count} limits"


def _closest(checked: Checked) -> str:
    """The limit with the least room, as a share of it."""
    known = [line for line in checked.lines if line.margin_fraction.known]
    if not known:
        return ""
    line = min(known, key=lambda one: one.margin_fraction.number)
    return f"; the closest is {words(line.quantity)}, {show(line.value.value, line.quantity)} with {say.asked(line)}"


def _results(checked: Checked) -> tuple[Figure, ...]:
    def counted(key: str, value: int) -> Figure:
        return Figure(key=key, value=value, provenance="predicted", source="counted")

    counts = (
        counted("limits", len(checked.lines)),
        counted("broken_limits", checked.count("fail")),
        counted("doubtful_limits", checked.count("warn")),
    )
    return (*counts, *{**checked.placement, **checked.results}.values())


def _table(checked: Checked) -> Table:
    against = f"; change from {checked.baseline}" if checked.baseline else ""
    columns = [
        Column("status", "", "left"),
        Column("_quantity", "", "left", wide=True),
        Column("_value", "value"),
        Column("_band", "80 % band"),
        Column("_change", "change"),
        Column("_limit", "limit", "left", wide=True),
        Column("_margin", "room"),
    ]
    rows = tuple(_row(line, checked.places.get(line.name, checked.loop)) for line in checked.ranked)
    shown = [column for column in columns if column.key in _LASTING or any(row.get(column.key) for row in rows)]
    return Table(title=f"Limits of the budget{against}", columns=tuple(shown), rows=rows)


_LASTING = ("status", "_quantity", "_value", "_limit", "_margin")


def _row(line: Line, place: Place) -> dict[str, Cell]:
    low, high = line.value.band or (None, None)
    return {
        "status": line.status,
        "quantity": line.quantity,
        "bound": line.bound,
        "value": line.value.value,
        "low": low,
        "high": high,
        "limit": line.limit.value,
        "margin": line.margin.value,
        "margin_fraction": line.margin_fraction.value,
        "baseline": line.baseline.value if line.baseline else None,
        "change": line.change.value,
        "change_fraction": line.change_fraction.value,
        "provenance": line.value.provenance,
        "file": place.file,
        "line": place.line,
        "_quantity": say.named(line),
        "_value": say.value(line),
        "_band": say.ends(line),
        "_change": say.moved(line) if line.baseline else "",
        "_limit": say.limit(line),
        "_margin": say.margin(line),
    }
