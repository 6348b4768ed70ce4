"""`rlsize check`: a loop judged by its budget, for people and for CI."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from rlsize.commands.check.outputs import Outputs
from rlsize.commands.check.report import Checked, Place, check_report, findings
from rlsize.errors import Fault, InputError, RlsizeError, noting, refuse
from rlsize.reports.report import Report
from rlsize.shell.answer import check_form
from rlsize.shell.command import TERMINAL, Force, in_own_words, option, switch
from rlsize.shell.inputs import Inputs
from rlsize.shell.quantity_flags import ANSWER, PRICES, Changes, ScenarioFile, asks_beside_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rlsize.facts.budget import Budget
    from rlsize.facts.plan import Plan
    from rlsize.loop.resolve import Loop
    from rlsize.planner.evaluation import Evaluation
    from rlsize.readers.saved_files import BudgetFile
    from rlsize.verdicts.budget import Line

_FLAG = re.compile(r"--[a-z-]+")
_KEYS = {"--model": "model", "--gpu": "cluster.gpu"}  # what other commands have a flag for, and a scenario has anyway


@asks_beside_files(Prices=PRICES, Run=("steps",), Inputs=ANSWER)
def check(
    inputs: Inputs,
    context: typer.Context,
    scenario: ScenarioFile = None,
    changes: Changes = None,
    budget: str | None = option("--budget", "A budget file; its lines go before the scenario's own.", metavar="FILE"),
    baseline: str | None = option("--baseline", "A saved plan; limits on a change need one.", metavar="FILE"),
    strict: bool = switch("--strict", "Fail where an 80 % band crosses its limit.", "Inputs"),
    junit: str | None = option("--junit", "Write JUnit XML: a test case for each limit.", "CI", "FILE"),
    github: bool = switch("--github", "Annotate the budget file on GitHub, and add to the summary of the step.", "CI"),
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
        warnings = _moved(against, inputs.folders)
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
    The verdict on every limit; memory of a side whose rate was measured is judged where a limit asks for it only.

    Raises:
        InputError: A limit cannot be judged.
    """
    from rlsize.verdicts.budget import judged, misfits

    lines: tuple[Line, ...] = ()
    if found.refused:
        inputs.ignore(f"Not judged: {', '.join(f'budget.{key}' for key in against.budget.limits)}")
    else:
        lines = judged(found.results, against.budget, against.baseline)
        sides = {"rollout": loop.known.rate.known, "trainer": loop.known.train_seconds.known}
        fitting = {f"{side}_memory_headroom_fraction" for side, measured in sides.items() if measured}
        lines += misfits({key: one for key, one in found.results.items() if key not in fitting}, against.budget)
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


def _moved(against: _Against, folders: list[str]) -> Iterator[str]:
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
    from rlsize.units import show

    words = {key: show(figure.value) for key, figure in found.placement.items()}
    if words:
        fleet = f"{words['rollout_gpus']} rollout GPUs ({words['instances']} x {words['gpus_per_instance']})"
        yield f"Judged: {words['mode']}, {fleet}, {words['trainer_gpus']} trainer GPUs."
    if len(against.budgets) > 1:
        first, other = against.budgets
        limits = set_limits(other.budget)
        past = [f"budget.{quantity}.{bound}" for quantity, bound in limits if quantity in first.budget.limits]
        rest = f"; {first.name} goes before {', '.join(past)}" if past else ""
        yield f"Limits of {first.name} and of the scenario{rest}."
