"""`rlsize check`: a loop judged by its budget, for people and for CI."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from rlsize.errors import DoesNotFitError, Fault, InputError, RlsizeError, noting, refuse
from rlsize.facts.budget import Change
from rlsize.facts.figure import Figure
from rlsize.frozen import dataclass
from rlsize.reports.report import Column, Decision, Finding, Level, Report, Table, Unseen
from rlsize.reports.wording import band, bare, counted, gap, numbered, percent, row_name, sentence, signed, words
from rlsize.shell.answer import check_form
from rlsize.shell.command import CI_PANEL, TERMINAL, Force, in_own_words, option, switch
from rlsize.shell.inputs import Inputs
from rlsize.shell.quantity_flags import ANSWER, PRICES, Changes, ScenarioFile, asks
from rlsize.units import show, some_of, unit_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rlsize.facts.budget import Budget
    from rlsize.facts.figure import Value
    from rlsize.facts.plan import Plan
    from rlsize.loop.assumed import Assumption
    from rlsize.loop.resolve import Loop
    from rlsize.planner.evaluation import Evaluation
    from rlsize.readers.saved_files import BudgetFile
    from rlsize.verdicts.budget import Line

_FLAG = re.compile(r"--[a-z-]+")
_KEYS = {"--model": "model", "--gpu": "cluster.gpu"}  # what other commands have a flag for, and a scenario has anyway

_SUMMARY, _WORKSPACE = "GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE"

_FIGURES = 5  # that stand in a decision, broken limits first
_WHEN_BROKEN = "rlsize whatif {0} ranks what would change it; rlsize plan {0} looks for a better loop"
_DYING = "rlsize memory {0} has what makes it fit; rlsize plan {0} looks for a loop that does"
_WHEN_KEPT = "--save plan.yaml makes this the baseline of the next check"
IMPOSSIBLE = "the loop cannot run"
_PLACE = re.compile(r"(?P<file>[^\n]+?):(?P<line>[1-9]\d{0,8})(?=:|$)")
_ORDER = ("fail", "warn", "pass")
_TITLES = {"failure": "over budget", "warning": "budget in doubt", "pass": "within budget"}
_SIDES = {"max": "at most", "max_increase": "at most", "min": "at least", "max_decrease": "at least"}
_SIGNS = {"max_increase": "+", "max_decrease": "-"}


@asks(beside_files=True, once=False, Prices=PRICES, Run=("steps",), Inputs=ANSWER)
def check(
    inputs: Inputs,
    context: typer.Context,
    scenario: ScenarioFile = None,
    changes: Changes = None,
    budget: str | None = option("--budget", "A budget file; its lines go before the scenario's own.", metavar="FILE"),
    baseline: str | None = option("--baseline", "A saved plan; limits on a change need one.", metavar="FILE"),
    strict: bool = switch("--strict", "Fail where an 80 % band crosses its limit.", "Inputs"),
    junit: str | None = option("--junit", "Write JUnit XML: a test case for each limit.", CI_PANEL, "FILE"),
    github: bool = switch(
        "--github", "Annotate the budget file on GitHub, and add to the summary of the step.", CI_PANEL
    ),
    save: str | None = option("--save", "Write the loop as a plan: the baseline of a later check.", "Output", "FILE"),
    force: Force = False,
) -> Report:
    """
    Check a loop against its budget, and against a baseline.

    Example:  rlsize check examples/unmeasured-8b.yaml --budget examples/budget.yaml --gpu-hour 2.50
    --baseline examples/baseline.yaml
    """
    from rlsize.loop.agents import say_bottleneck
    from rlsize.loop.answer import answer_of
    from rlsize.loop.assumed import assumptions
    from rlsize.loop.resolve import resolve
    from rlsize.loop.search import refuse_lacking
    from rlsize.shell.planning import save_plan

    outputs = Outputs(junit=junit, github=github, save=save, force=force, suite=budget or scenario or "rlsize check")
    outputs.prepare()
    try:
        _check_form(context.obj or {})
        against = _opened(inputs, (scenario, changes or ()), budget, baseline)
        loop = resolve(inputs)
        refuse_lacking(loop)
        found = answer_of(loop)
        say_bottleneck(inputs, loop.outlook, loop.place)
        checked = _judged(inputs, against, loop, found, strict=strict, saving=save is not None)
        kept = []
        if save is not None and loop.place is not None:
            save_plan(save, inputs, "check", loop, loop.place, found, force=force)
            kept = [f"Wrote {save}: what --baseline takes."]
        elif save is not None:
            kept = [f"{save} is not written: a loop that cannot run is no baseline."]
        warnings = _moved_facts(against, inputs.folders)
        told = inputs.told(first=_said(against, found), warnings=warnings, notes=kept)
        report = check_report(checked, assumptions(inputs, loop), kept, **told)
    except RlsizeError as error:
        said: RlsizeError = error
        if type(error) is InputError:
            said = InputError(*in_own_words(error.faults, context, scenario or "SCENARIO"))
        outputs.gave_up(said)
        raise said from None
    outputs.tell(findings(checked), report)
    return report


def _check_form(output: Mapping[str, Any]) -> None:
    """
    Find out before anybody is told of a verdict whether the answer can be shown.

    Raises:
        InputError: It cannot.
    """
    check_form(output)
    if output.get("plot") not in {None, TERMINAL}:
        raise InputError(Fault("there is nothing to draw for this question", "--plot", "leave it out"))


class _Against(NamedTuple):
    """What a loop is judged by: budgets, the one that goes first in front, and a baseline with its file's name."""

    budgets: tuple[BudgetFile, ...]
    baseline: Plan | None = None
    baseline_name: str = ""

    @property
    def budget(self) -> Budget:
        """All limits: of the first budget, and of the next where the first has none."""
        first, *others = self.budgets
        return first.budget if not others else first.budget.over(others[0].budget)

    def file(self, quantity: str) -> BudgetFile:
        """The budget whose limits hold for a quantity."""
        return next(file for file in self.budgets if quantity in file.budget.limits)


def _opened(
    inputs: Inputs, scenario: tuple[str | None, Sequence[str]], budget: str | None, baseline: str | None
) -> _Against:
    """
    All files, read; the scenario into the inputs.

    Raises:
        InputError: What is wrong with any of them.
    """
    from rlsize.readers.saved_files import budget_in, read_budget, read_plan

    faults: list[Fault] = []
    own = plan = None
    with noting(faults):
        inputs.read(*scenario)
    with noting(faults):
        own = read_budget(budget) if budget is not None else None
    with noting(faults):
        plan = read_plan(baseline) if baseline is not None else None
    inside = budget_in(inputs.file) if inputs.file else None
    inputs.looked.add("budget")
    budgets = tuple(file for file in (own, inside) if file is not None)
    if not budgets and not faults:
        todo = "name a file, or give the scenario a `budget:` section"
        faults.append(Fault("there is no budget to check", "--budget", todo))
    refuse(faults)
    return _Against(budgets=budgets, baseline=plan, baseline_name=baseline or "")


def _judged(inputs: Inputs, against: _Against, loop: Loop, found: Evaluation, *, strict: bool, saving: bool) -> Checked:
    """
    The verdict on every limit, and on memory where the loop may not fit in it.

    Raises:
        InputError: A limit cannot be judged.
    """
    from rlsize.loop import phases
    from rlsize.verdicts.budget import judged, memory_line

    lines: tuple[Line, ...] = ()
    if found.refused:
        inputs.ignore(f"Not judged: {some_of([f'budget.{key}' for key in against.budget.limits], _FIGURES)}")
    else:
        lines = judged(found.results, against.budget, against.baseline)
        memory = None if loop.place is None else phases.judged(loop, loop.place)
        if memory is not None and memory.verdict == "not sure":
            worst = memory.worst
            lines += (memory_line(replace(worst.held, key="worst_phase_bytes_per_gpu"), worst.memory),)
    waiting = [line for line in lines if saving and line.lacking == "baseline"]
    if waiting:
        names = ", ".join(line.name for line in waiting)
        inputs.ignore(f"Not judged, as this run makes the baseline: {names}.")
        lines = tuple(line for line in lines if line not in waiting)
    refuse(_fault(line, against) for line in lines if line.status == "unknown")
    files = [(line, against.file(line.quantity)) for line in lines if not line.implied]
    scenario = inputs.file.document if inputs.file else None
    return Checked(
        lines=lines,
        places={line.name: Place(file=one.name, line=one.line(line.quantity, line.bound)) for line, one in files},
        strict=strict,
        placement=found.placement,
        results=found.results,
        baseline=against.baseline_name,
        impossible=found.refused,
        loop=Place(file=scenario.name, line=scenario.lines.get(("placement",))) if scenario else Place(file=""),
    )


def _fault(line: Line, against: _Against) -> Fault:
    """Why a limit cannot be judged, and what would let it."""
    file = against.file(line.quantity)
    where = file.where(line.quantity, line.bound)
    if line.lacking == "baseline":
        return Fault("not judged: a change needs a baseline", where, "name a saved plan: --baseline FILE")
    if line.lacking == "value in the baseline":
        todo = "save it again with what is needed for it, or leave this limit out"
        return Fault(f"not judged: the baseline {against.baseline_name} lacks it", where, todo)
    needed = _FLAG.sub(lambda flag: _KEYS.get(flag[0], flag[0]), line.value.missing)
    in_scenario = " in the scenario" if needed != line.value.missing else ""
    todo = f"give {needed}{in_scenario}" if needed else "leave this limit out"
    return Fault(f"not judged: {line.quantity} is not known", where, todo)


def _moved_facts(against: _Against, folders: list[str]) -> Iterator[str]:
    """What changed under the numbers since the baseline was saved."""
    from rlsize.shell.answer import facts_digest
    from rlsize.version import VERSION

    plan = against.baseline
    if plan is None:
        return
    if plan.rlsize_version != VERSION:
        yield f"{against.baseline_name} is of rlsize {plan.rlsize_version}, and this is {VERSION}"
    now = facts_digest(folders)
    if plan.facts_digest != now:
        digests = f"facts_digest {plan.facts_digest} then, {now} now"
        changed = f"profiles or equations changed since {against.baseline_name} was saved ({digests})"
        yield f"{changed}: part of a change may be theirs, and not the scenario's"


def _said(against: _Against, found: Evaluation) -> Iterator[str]:
    """Which loop was judged, and by which budget where there are two."""
    from rlsize.facts.budget import set_limits

    if found.placement:
        yield f"Judged: {_loop_words(found.placement)}."
    if len(against.budgets) > 1:
        first, other = against.budgets
        limits = set_limits(other.budget)
        past = [f"budget.{quantity}.{bound}" for quantity, bound in limits if quantity in first.budget.limits]
        rest = f"; {first.name} goes before {', '.join(past)}" if past else ""
        yield f"Limits of {first.name} and of the scenario{rest}."


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """
    What was asked for beside the answer.

    Args:
        junit: Where JUnit XML goes; None for nowhere.
        github: Whether GitHub is told.
        save: Where the loop is saved as a plan; None for nowhere.
        force: Whether files that exist are replaced.
        suite: What is checked, for the test report.
    """

    junit: str | None
    github: bool
    save: str | None
    force: bool
    suite: str

    def prepare(self) -> None:
        """
        Find out before the work whether its results can be written after it.

        Raises:
            InputError: They cannot.
        """
        from rlsize.writers.files import check_target

        faults: list[Fault] = []
        for target in filter(None, (self.junit, self.save)):
            with noting(faults):
                check_target(target, self.force)
        if faults:
            told = InputError(*faults)
            replace(self, junit=None).gave_up(told)
            raise told

    def gave_up(self, error: RlsizeError) -> None:
        """Write why there is no answer, or that it is no before any limit was looked at."""
        found = findings_of(error.faults, answer=isinstance(error, DoesNotFitError))
        self.tell(found, findings_report(found))

    def tell(self, found: Sequence[Finding], report: Report) -> None:
        """
        Write what was found.

        Raises:
            InputError: A file cannot be written.
        """
        from rlsize.writers.ci import junit_text, workflow_commands
        from rlsize.writers.files import write_whole
        from rlsize.writers.markdown import markdown_text

        if self.junit is not None:
            write_whole(self.junit, junit_text(found, self.suite), self.force)
        if self.github:
            sys.stdout.flush()
            sys.stderr.write(workflow_commands([replace(one, file=_in_repository(one.file)) for one in found]))
            _add_to_summary(markdown_text(report))


def _in_repository(file: str) -> str:
    """A file by its path in the checked-out repository, as annotations want it."""
    workspace = os.environ.get(_WORKSPACE)
    if not file or not workspace:
        return file
    try:
        path, root = Path(file).resolve(), Path(workspace).resolve()
    except (OSError, ValueError, RuntimeError):
        return file
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else file


def _add_to_summary(text: str) -> None:
    """Append to the summary of the step; where that does not work, the verdict stands all the same."""
    from rlsize.writers.ci import LARGEST_SUMMARY, summary

    target = os.environ.get(_SUMMARY)
    if not target:
        sys.stderr.write(f"note: {_SUMMARY} is not set, so there is no step summary\n")
        return
    file = Path(target)
    try:
        size = file.stat().st_size if file.exists() else 0
        added = summary(text if not size else f"\n{text}", LARGEST_SUMMARY - size)
        with file.open("a", encoding="utf-8", newline="\n") as stream:
            stream.write(added)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        sys.stderr.write(f"warning: the step summary {target} cannot be written: {reason}\n")


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
    then = _DYING if checked.impossible else _WHEN_BROKEN if checked.refused else _WHEN_KEPT
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
            take=[f"the loop as it is: {_loop_words(checked.placement)}."] if checked.placement else [],
            figures=[*dict.fromkeys(line.quantity for line in checked.ranked)][:_FIGURES],
            why=[sentence(_told(line)) for line in checked.ranked if line.status == "fail"],
            sure=[_sure(checked)] if checked.lines else [],
            change=[
                f"{words(line.quantity)} has {_margin(line).lstrip('+')} of room to {_asked(line)}."
                for line in _tightest(checked)
            ],
            assumed=assumed,
            done=done,
            then=then.format(checked.loop.file or "SCENARIO"),
        ),
        **told,
    )


def _loop_words(placement: Mapping[str, Figure]) -> str:
    """Which loop was judged."""
    said = {key: show(figure.value) for key, figure in placement.items()}
    fleet = f"{said['rollout_gpus']} rollout GPUs ({said['instances']} x {said['gpus_per_instance']})"
    return f"{said['mode']}, {fleet}, {said['trainer_gpus']} trainer GPUs"


def _sure(checked: Checked) -> str:
    """How many limits a band crosses, and which."""
    doubtful = [words(line.quantity) for line in checked.lines if line.status == "warn"]
    kept = f"{checked.count('pass')} of {numbered(len(checked.lines), 'limit')} kept at both ends of the 80 % band"
    return f"{kept}; {', '.join(doubtful)} at one end only." if doubtful else f"{kept}."


def _tightest(checked: Checked) -> list[Line]:
    """The limits that are kept with the least room, as a share of them; a change of the loop would break them first."""
    known = [line for line in checked.lines if line.status != "fail" and line.margin_fraction.known]
    return sorted(known, key=lambda one: one.margin_fraction.number)[:3]


def _margin(line: Line) -> str:
    """The room of a limit, without its unit's name."""
    return bare(signed(line.margin.number, line.quantity), line.quantity)


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
        closest = [
            f"; the closest is {words(line.quantity)}, {show(line.value.value, line.quantity)} with {_asked(line)}"
            for line in _tightest(checked)[:1]
        ]
        return f"Within budget: {limits} kept{''.join(closest)}."
    verb = "is" if (broken or doubtful) == 1 else "are"
    told = sentence(_told(checked.ranked[0]))
    if broken:
        return f"Over budget: {broken} of {limits} {verb} broken. {told}"
    begin = "Over budget, as --strict takes doubt for no" if checked.strict else "Within budget, but in doubt"
    return f"{begin}: {doubtful} of {limits} {verb} crossed by a band. {told}"


def _table(checked: Checked) -> Table:
    def place(line: Line) -> Place:
        return checked.places.get(line.name, checked.loop)

    def value(line: Line) -> Value:
        return line.value.value

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
        Column("margin", "room", of=lambda line: line.margin.value, told=_margin),
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
        return f"{text}; the loop may not fit in memory"
    return f"{text}; the budget allows {_asked(line)}; {_room(line)}"


def _room(line: Line) -> str:
    if line.status == "warn":
        return "its band crosses the limit"
    room = gap(abs(line.margin.number), line.quantity)
    if line.margin_fraction.known and unit_of(line.quantity) != "%":
        room += f" ({percent(line.margin_fraction.number).lstrip('+-')} of the limit)"
    return f"it is missed by {room}" if line.status == "fail" else f"{room} is left"
