"""`rlsize check`: a loop judged by its budget, for people and for CI."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rlsize.commands import check_flags as own
from rlsize.commands import flags
from rlsize.commands.check_outputs import Outputs
from rlsize.errors import Fault, InputError, RlsizeError
from rlsize.reports.report import Report
from rlsize.shell.answer import check_form
from rlsize.shell.beliefs import CalibrationFile
from rlsize.shell.command import TERMINAL
from rlsize.shell.inputs import Inputs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rlsize.facts.budget import Budget
    from rlsize.facts.plan import Plan
    from rlsize.planner.evaluation import Evaluation
    from rlsize.readers.budgets import BudgetFile
    from rlsize.reports.check import Checked, Place
    from rlsize.verdicts.budget import Line

_FLAG = re.compile(r"--[a-z-]+")
_KEYS = {"--model": "model", "--gpu": "cluster.gpu"}  # what other commands have a flag for, and a scenario has anyway

Strict = Annotated[
    bool, typer.Option("--strict", help="Fail where an 80 % band crosses its limit.", rich_help_panel="Inputs")
]


def check(
    context: typer.Context,
    scenario: flags.ScenarioFile = None,
    budget: own.BudgetName = None,
    baseline: own.BaselineName = None,
    strict: Strict = False,
    steps: own.Steps = None,
    gpu_hour: flags.GpuHour = None,
    rollout_gpu_hour: flags.RolloutGpuHour = None,
    trainer_gpu_hour: flags.TrainerGpuHour = None,
    price: flags.Price = None,
    calibration: CalibrationFile = None,
    junit: own.Junit = None,
    github: own.Github = False,
    save: own.Save = None,
    force: own.Force = False,
    seed: flags.Seed = "0",
    profiles: flags.Profiles = None,
) -> Report:
    """
    Check a loop against its budget, and against a baseline.

    Example:  rlsize check scenario.yaml --budget budget.yaml
    """
    from rlsize.commands.evaluation import evaluated_with
    from rlsize.commands.plan_asked import PlanFlags, PriceFlags
    from rlsize.reports.check import check_report

    suite = budget or scenario or "rlsize check"
    outputs = Outputs(junit=junit, github=github, save=save, force=force, suite=suite)
    outputs.prepare()
    prices = PriceFlags(
        gpu_hour=gpu_hour, rollout_gpu_hour=rollout_gpu_hour, trainer_gpu_hour=trainer_gpu_hour, price=price
    )
    said = PlanFlags(prices=prices, steps=steps, calibration=calibration, seed=seed)
    try:
        _check_form(context.obj or {})
        inputs, against = _opened(scenario, budget, baseline, profiles)
        found = evaluated_with(inputs, said)
        checked = _judged(inputs, against, found, strict=strict, saving=save is not None)
        report = check_report(
            checked,
            inputs.shown(),
            (*inputs.warnings, *_moved(against, inputs.folders)),
            (*_said(against, found), *inputs.notes, *outputs.keep(inputs, found)),
        )
    except RlsizeError as error:
        told = InputError(*_in_own_words(error.faults, context, scenario)) if type(error) is InputError else error
        outputs.gave_up(told)
        raise told from None
    outputs.tell(checked, report)
    return report


def _in_own_words(faults: Sequence[Fault], context: typer.Context, scenario: str | None) -> Iterator[Fault]:
    """Faults as this command tells them: for what it has no flag for, it has the scenario."""
    known = {name for parameter in context.command.params for name in parameter.opts}
    for fault in faults:
        if fault.where.startswith("-") and not known.intersection(fault.where.split()):
            todo = f"say it in the scenario; other commands have {fault.where} for it"
            yield Fault(fault.what, scenario or "SCENARIO", todo)
        else:
            yield fault


def _check_form(output: Mapping[str, Any]) -> None:
    """
    Find out before anybody is told of a verdict whether the answer can be shown.

    Raises:
        InputError: It cannot.
    """
    check_form(output)
    if output.get("plot") not in {None, TERMINAL}:
        raise InputError(Fault("there is nothing to draw for this question", "--plot", "leave it out"))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Against:
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
    scenario: str | None, budget: str | None, baseline: str | None, profiles: list[str] | None
) -> tuple[Inputs, _Against]:
    """
    All files, read.

    Raises:
        InputError: What is wrong with any of them.
    """
    from rlsize.readers.budgets import budget_in, read_budget
    from rlsize.readers.plans import read_plan

    faults: list[Fault] = []
    own = plan = None
    inputs = Inputs(None, profiles)
    try:
        inputs = Inputs(scenario, profiles)
    except InputError as error:
        faults += error.faults
    try:
        own = read_budget(budget) if budget is not None else None
    except InputError as error:
        faults += error.faults
    try:
        plan = read_plan(baseline) if baseline is not None else None
    except InputError as error:
        faults += error.faults
    inside = budget_in(inputs.file) if inputs.file else None
    budgets = tuple(file for file in (own, inside) if file is not None)
    if not budgets and not faults:
        faults.append(
            Fault("there is no budget to check", "--budget", "name a file, or give the scenario a `budget:` section")
        )
    if faults:
        raise InputError(*faults)
    return inputs, _Against(budgets=budgets, baseline=plan, baseline_name=baseline or "")


def _judged(inputs: Inputs, against: _Against, found: Evaluation, *, strict: bool, saving: bool) -> Checked:
    """
    The verdict on every limit.

    Raises:
        InputError: A limit cannot be judged.
    """
    from rlsize.reports.check import Checked
    from rlsize.verdicts.budget import judged, misfits

    lines: tuple[Line, ...] = ()
    if not found.refused:
        lines = judged(found.results, against.budget, against.baseline) + misfits(found.results, against.budget)
    waiting = [line for line in lines if saving and line.lacking == "baseline"]
    if waiting:
        names = ", ".join(line.name for line in waiting)
        inputs.notes.append(f"Not judged, as this run makes the baseline: {names}.")
        lines = tuple(line for line in lines if line not in waiting)
    unknown = [_fault(line, against) for line in lines if line.status == "unknown"]
    if unknown:
        raise InputError(*unknown)
    return Checked(
        lines=lines,
        places={line.name: _place(line, against) for line in lines if not line.implied},
        strict=strict,
        placement=found.placement,
        results=found.results,
        baseline=against.baseline_name,
        impossible=found.refused,
        loop=_loop(inputs),
    )


def _place(line: Line, against: _Against) -> Place:
    from rlsize.reports.check import Place

    file = against.file(line.quantity)
    return Place(file=file.name, line=file.line(line.quantity, line.bound))


def _loop(inputs: Inputs) -> Place:
    """Where the scenario says how the loop is laid out."""
    from rlsize.reports.check import Place

    if inputs.file is None:
        return Place(file="")
    document = inputs.file.document
    return Place(file=document.name, line=document.lines.get(("placement",)))


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
    from rlsize.shell.digest import facts_digest
    from rlsize.version import VERSION

    plan = against.baseline
    if plan is None:
        return
    if plan.rlsize_version != VERSION:
        yield f"{against.baseline_name} is of rlsize {plan.rlsize_version}, and this is {VERSION}"
    now = facts_digest(folders)
    if plan.facts_digest != now:
        yield (
            f"profiles or equations changed since {against.baseline_name} was saved (facts_digest {plan.facts_digest} "
            f"then, {now} now): part of a change may be theirs, and not the scenario's"
        )


def _said(against: _Against, found: Evaluation) -> Iterator[str]:
    """Which loop was judged, and by which budget where there are two."""
    from rlsize.facts.budget import set_limits
    from rlsize.units import show

    words = {key: show(figure.value) for key, figure in found.placement.items()}
    if words:
        yield (
            f"Judged: {words['mode']}, {words['rollout_gpus']} rollout GPUs ({words['instances']} x "
            f"{words['gpus_per_instance']}), {words['trainer_gpus']} trainer GPUs."
        )
    if len(against.budgets) > 1:
        first, other = against.budgets
        past = [
            f"budget.{quantity}.{bound}"
            for quantity, bound in set_limits(other.budget)
            if quantity in first.budget.limits
        ]
        rest = f"; {first.name} goes before {', '.join(past)}" if past else ""
        yield f"Limits of {first.name} and of the scenario{rest}."
