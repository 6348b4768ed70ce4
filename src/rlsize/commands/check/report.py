"""What to say about a loop and its budget: which limits are broken, which are in doubt, and by how much."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rlsize.facts.budget import Change
from rlsize.facts.figure import Figure
from rlsize.reports.decision import Decision
from rlsize.reports.findings import Finding, Level
from rlsize.reports.report import Column, Report, Table, Unseen
from rlsize.reports.wording import band, bare, counted, gap, numbered, percent, row_name, sentence, signed, words
from rlsize.units import show, unit_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rlsize.errors import Fault
    from rlsize.facts.figure import Value
    from rlsize.loop.assumed import Assumption
    from rlsize.verdicts.budget import Line

_FIGURES = 5  # that stand in a decision, broken limits first
_WHEN_BROKEN = "rlsize whatif SCENARIO ranks what would change it; rlsize plan SCENARIO looks for a better loop"
_WHEN_KEPT = "--save plan.yaml makes this the baseline of the next check"
IMPOSSIBLE = "the loop cannot run"
_PLACE = re.compile(r"(?P<file>[^\n]+?):(?P<line>[1-9]\d{0,8})(?=:|$)")
_ORDER = ("fail", "warn", "pass")
_TITLES = {"failure": "over budget", "warning": "budget in doubt", "pass": "within budget"}
_SIDES = {"max": "at most", "max_increase": "at most", "min": "at least", "max_decrease": "at least"}
_SIGNS = {"max_increase": "+", "max_decrease": "-"}


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
        lines: Every limit, judged; none that is unknown.
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
    checked: Checked, assumed: Sequence[Assumption] | None = None, done: Sequence[str] = (), **told: Any
) -> Report:
    """
    The report of `rlsize check`.

    Args:
        checked: What was found.
        assumed: What nobody said and that moves the step; None where nobody worked that out.
        done: What was written.
        told: What the report says of the inputs.
    """
    broken, doubtful = checked.count("fail"), checked.count("warn")
    counts = {"limits": len(checked.lines), "broken_limits": broken, "doubtful_limits": doubtful}
    results = (*counted(counts), *{**checked.placement, **checked.results}.values())
    return Report(
        command="check",
        headline=_headline(checked),
        results=results,
        tables={"limits": _table(checked)} if checked.lines else {},
        no=bool(checked.refused or checked.impossible),
        quiet=frozenset(figure.key for figure in results),
        decision=Decision(
            take=_judged_loop(checked),
            figures=[*dict.fromkeys(line.quantity for line in checked.ranked)][:_FIGURES],
            why=[sentence(_told(line)) for line in checked.ranked if line.status == "fail"],
            sure=[_sure(checked)] if checked.lines else [],
            change=[*_tightest(checked)],
            assumed=assumed,
            done=done,
            then=_WHEN_BROKEN if checked.refused or checked.impossible else _WHEN_KEPT,
        ),
        **told,
    )


def _judged_loop(checked: Checked) -> list[str]:
    """Which loop was judged."""
    if not checked.placement:
        return []
    words_of = {key: show(figure.value) for key, figure in checked.placement.items()}
    fleet = f"{words_of['rollout_gpus']} rollout GPUs ({words_of['instances']} x {words_of['gpus_per_instance']})"
    return [f"the loop as it is: {words_of['mode']}, {fleet}, {words_of['trainer_gpus']} trainer GPUs."]


def _sure(checked: Checked) -> str:
    """How many limits a band crosses, and which."""
    doubtful = [words(line.quantity) for line in checked.lines if line.status == "warn"]
    kept = f"{checked.count('pass')} of {numbered(len(checked.lines), 'limit')} kept at both ends of the 80 % band"
    return f"{kept}; {', '.join(doubtful)} at one end only." if doubtful else f"{kept}."


def _tightest(checked: Checked) -> Iterator[str]:
    """The limits with the least room, which a change of the loop would break first."""
    known = [line for line in checked.lines if line.status != "fail" and line.margin_fraction.known]
    for line in sorted(known, key=lambda one: one.margin_fraction.number)[:3]:
        room = bare(signed(line.margin.number, line.quantity), line.quantity)
        yield f"{words(line.quantity)} has {room.lstrip('+')} of room to {_asked(line)}."


def findings(checked: Checked) -> tuple[Finding, ...]:
    """Every limit with its verdict, for annotations and test reports."""
    found = []
    if checked.impossible:
        found.append(_finding("loop", "failure", IMPOSSIBLE, sentence(checked.impossible), checked.loop))
    for line in checked.ranked:
        level: Level = "warning" if line.status == "warn" else "pass"
        level = "failure" if line.refused(strict=checked.strict) else level
        place = checked.places.get(line.name, checked.loop)
        found.append(_finding(line.name, level, f"{_TITLES[level]}: {line.quantity}", sentence(_told(line)), place))
    return tuple(found)


def _finding(name: str, level: Level, title: str, message: str, place: Place) -> Finding:
    return Finding(name=name, level=level, title=title, message=message, file=place.file, line=place.line)


def findings_of(faults: Iterable[Fault], *, answer: bool) -> tuple[Finding, ...]:
    """
    What stood in the way of an answer.

    Args:
        faults: As a user is told of them.
        answer: Whether they are an answer, which is no: the loop does not fit.
    """
    title = IMPOSSIBLE if answer else "the budget cannot be checked"
    found = []
    for fault in faults:
        at = _PLACE.match(fault.where)
        place = Place(file=at["file"], line=int(at["line"])) if at else Place(file="")
        told = f"{fault.where}: {fault.what}" if fault.where else fault.what
        message = f"{told}\n{fault.todo}" if fault.todo else told
        found.append(_finding(fault.where or title, "failure" if answer else "error", title, message, place))
    return tuple(found)


def findings_report(findings: Sequence[Finding]) -> Report:
    """The same as a report, where there is nothing else to report."""
    return Report(
        command="check",
        headline=sentence(findings[0].title),
        notes=tuple(finding.message for finding in findings),
        no=True,
    )


def _headline(checked: Checked) -> str:
    if checked.impossible:
        return f"Over budget: {IMPOSSIBLE}: {checked.impossible}."
    limits = numbered(len(checked.lines), "limit")
    broken, doubtful = checked.count("fail"), checked.count("warn")
    if not broken and not doubtful:
        return f"Within budget: {limits} kept{_closest(checked)}."
    verb = "is" if (broken or doubtful) == 1 else "are"
    told = sentence(_told(checked.ranked[0]))
    if broken:
        return f"Over budget: {broken} of {limits} {verb} broken. {told}"
    begin = "Over budget, as --strict takes doubt for no" if checked.strict else "Within budget, but in doubt"
    return f"{begin}: {doubtful} of {limits} {verb} crossed by a band. {told}"


def _closest(checked: Checked) -> str:
    """The limit with the least room, as a share of it."""
    known = [line for line in checked.lines if line.margin_fraction.known]
    if not known:
        return ""
    line = min(known, key=lambda one: one.margin_fraction.number)
    return f"; the closest is {words(line.quantity)}, {show(line.value.value, line.quantity)} with {_asked(line)}"


def _table(checked: Checked) -> Table:
    def place(line: Line) -> Place:
        return checked.places.get(line.name, checked.loop)

    def value(line: Line) -> Value:
        return line.value.value

    def room(line: Line) -> str:
        return bare(signed(line.margin.number, line.quantity), line.quantity)

    ends = Column("_band", "80 % band", of=lambda line: bare(band(line.value), line.quantity))
    change = Column("_change", "change", of=lambda line: _moved(line) if line.baseline else "")
    cells: tuple[Column | Unseen, ...] = (
        Column("status", "", "left"),
        Column("quantity", "", "left", wide=True, told=lambda line: row_name(line.quantity)),
        Unseen("bound"),
        Column("value", "value", of=value, told=lambda line: bare(show(value(line), line.quantity), line.quantity)),
        Unseen("low", lambda line: line.value.band and line.value.band[0]),
        Unseen("high", lambda line: line.value.band and line.value.band[1]),
        *([ends] if any(line.value.band for line in checked.lines) else []),
        *([change] if any(line.baseline for line in checked.lines) else []),
        Column("limit", "limit", "left", wide=True, of=lambda line: line.limit.value, told=_bound),
        Column("margin", "room", of=lambda line: line.margin.value, told=room),
        Unseen("margin_fraction", lambda line: line.margin_fraction.value),
        Unseen("baseline", lambda line: line.baseline and line.baseline.value),
        Unseen("change", lambda line: line.change.value),
        Unseen("change_fraction", lambda line: line.change_fraction.value),
        Unseen("provenance", lambda line: line.value.provenance),
        Unseen("file", lambda line: place(line).file),
        Unseen("line", lambda line: place(line).line),
    )
    against = f"; change from {checked.baseline}" if checked.baseline else ""
    return Table.of(f"Limits of the budget{against}", checked.ranked, cells)


def _bound(line: Line) -> str:
    return "must fit" if line.implied else bare(_asked(line).partition(" (")[0], line.quantity)


def _asked(line: Line) -> str:
    """
    The limit as the budget says it, with what it comes to where a change is limited.

    Returns:
        Such as `at most $2.50`, or `at most +5.0 % ($2.52)`.
    """
    side = _SIDES[line.bound]
    if not isinstance(line.asked, Change):
        return f"{side} {show(line.asked, line.quantity)}"
    change = line.asked
    size = show(change.value, "_fraction") if change.relative else gap(change.value, line.quantity)
    comes_to = f" ({show(line.limit.value, line.quantity)})" if line.limit.known else ""
    return f"{side} {_SIGNS[line.bound]}{size}{comes_to}"


def _moved(line: Line) -> str:
    """The change from the baseline: of shares in points, of all else in percent of the baseline."""
    if unit_of(line.quantity) == "%" or not line.change_fraction.known:
        return signed(line.change.number, line.quantity) if line.change.known else "-"
    return percent(line.change_fraction.number)


def _told(line: Line) -> str:
    """A judged limit in a sentence."""
    text = f"{words(line.quantity)}: {show(line.value.value, line.quantity)}"
    if line.value.band is not None:
        text += f" (80 % band {band(line.value)})"
    if line.relative and line.baseline is not None:
        text += f", {_moved(line)} from {show(line.baseline.value, line.quantity)} in the baseline"
    if line.implied:
        return f"{text}; the loop {'does' if line.status == 'fail' else 'may'} not fit in memory"
    return f"{text}; the budget allows {_asked(line)}; {_room(line)}"


def _room(line: Line) -> str:
    if line.status == "warn":
        return "its band crosses the limit"
    room = gap(abs(line.margin.number), line.quantity)
    if line.margin_fraction.known and unit_of(line.quantity) != "%":
        room += f" ({percent(line.margin_fraction.number).lstrip('+-')} of the limit)"
    return f"it is missed by {room}" if line.status == "fail" else f"{room} is left"
