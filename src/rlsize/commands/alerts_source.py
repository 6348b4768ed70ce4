"""The planned loop that alerts are written for: a saved plan, or a scenario worked out as `check` does it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.errors import DoesNotFitError, Fault, InputError
from rlsize.estimates.alert_plan import LONGEST_STEP
from rlsize.facts.alerts import BudgetLine, PlannedLoop
from rlsize.facts.figure import Figure
from rlsize.shell.inputs import SMALLEST

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rlsize.facts.plan import Plan, PlanFigure
    from rlsize.readers.budgets import BudgetFile
    from rlsize.readers.yaml_documents import Document

_KINDS = ("plan", "scenario")
_BUDGETED = {"trainer_idle_fraction": "max", "sync_fraction": "max", "staleness_steps": "max"}
_LARGEST = 1e15  # above it, nothing that is counted in a loop is meant
_USED = ("trainer_idle_fraction", "sync_fraction", "staleness_steps")
_COUNTED = ("samples_per_step", "prompts_per_step", "group_size", "prompt_tokens", "batch_tokens", "gpus", "instances")
_RATES = (
    "train_seconds",
    "consumption_tokens_per_second",
    "tokens_generated_per_trained_token",
    "loop_tokens_per_second",
    "loop_tokens_per_gpu_second",
)
_LEAST = {"loop_tokens_per_gpu_second": "min"}


def planned_loop(
    source: str | None, budget: str | None, *, calibration: str | None, profiles: list[str] | None
) -> PlannedLoop:
    """
    The loop of a file.

    Args:
        source: The file.
        budget: A budget file.
        calibration: A calibration file, for a scenario.
        profiles: Folders of the user's own profiles, for a scenario.

    Raises:
        InputError: Everything that is wrong with the files.
        DoesNotFitError: The loop of a scenario cannot run.
    """
    from rlsize.readers.budgets import read_budget
    from rlsize.readers.yaml_documents import read_document

    if source is None:
        todo = "name a saved plan (`rlsize plan ... --save plan.yaml`) or a scenario"
        raise InputError(Fault("there is no plan to take thresholds from", "PLAN|SCENARIO", todo))
    lines = read_budget(budget) if budget is not None else None
    document = read_document(source)
    kind = _kind(document)
    if kind == "plan":
        loop = _of_plan(document, lines)
    else:
        loop = _of_scenario(source, lines, calibration=calibration, profiles=profiles)
    _check(loop)
    return loop


def _kind(document: Document) -> str:
    """
    What the header says.

    Raises:
        InputError: Neither a plan nor a scenario.
    """
    header = document.data.get("rlsize") if isinstance(document.data, dict) else None
    kind = header.get("kind") if isinstance(header, dict) else None
    if kind not in _KINDS:
        article = "an" if str(kind)[:1] in set("aeio") else "a"
        what = f"is {article} {kind} file" if isinstance(kind, str) else "does not say what it is"
        todo = "name a saved plan or a scenario: their first line says `rlsize: {kind: plan, version: 1}` or scenario"
        raise InputError(Fault(f"{what[:60]}, neither plan nor scenario", document.name, todo))
    return str(kind)


def _check(loop: PlannedLoop) -> None:
    """
    Refuse what no window can be made for.

    Raises:
        InputError: The step is unknown, or none.
    """
    step = loop.figure("step_seconds")
    if not step.known:
        raise InputError(Fault("does not say how long a step takes", loop.name, "save the plan again"))
    if not 0 < step.number <= LONGEST_STEP:
        what = f"a step of {step.number:g} s is no step that alerts can watch"
        raise InputError(Fault(what, loop.name, f"it should be above 0 and at most {LONGEST_STEP:,.0f} s"))
    faults = [
        Fault(f"{key} is {figure.number:g}", loop.name, "no loop has that; save the plan again")
        for keys, least in ((_USED, 0.0), (_COUNTED, 1.0), (_RATES, SMALLEST))
        for key in keys
        if (figure := loop.figure(key)).known and not least <= figure.number <= _LARGEST
    ]
    if faults:
        raise InputError(*faults)


def _of_plan(document: Document, lines: BudgetFile | None) -> PlannedLoop:
    from rlsize.readers.plans import plan_of

    plan = plan_of(document)
    figures = {key: _figure(key, one) for part in _parts(plan) for key, one in part.items()}
    return PlannedLoop(
        name=document.name,
        origin=f"saved by `{plan.command[:200]}` of rlsize {plan.rlsize_version[:40]}",
        figures=figures,
        routing=_word(figures, "routing"),
        budget=_budget(lines),
    )


def _parts(plan: Plan) -> tuple[Mapping[str, PlanFigure], ...]:
    return plan.inputs, plan.placement, plan.results


def _figure(key: str, one: PlanFigure) -> Figure:
    band = None if one.low is None or one.high is None else (one.low, one.high)
    return Figure(key=key, value=one.value, band=band, provenance=one.provenance, source=one.source)


def _word(figures: Mapping[str, Figure], key: str) -> str:
    found = figures.get(key)
    return found.value if found is not None and isinstance(found.value, str) else ""


def _of_scenario(
    source: str, lines: BudgetFile | None, *, calibration: str | None, profiles: list[str] | None
) -> PlannedLoop:
    from rlsize.loop.answer import answer_of
    from rlsize.loop.resolve import resolve
    from rlsize.readers.budgets import budget_in
    from rlsize.shell.inputs import Inputs
    from rlsize.version import VERSION

    inputs = Inputs(source, profiles, texts={} if calibration is None else {"calibration": calibration})
    try:
        found = answer_of(resolve(inputs))
    except InputError as error:
        raise InputError(*_in_file(error.faults, source)) from None
    if found.refused:
        raise DoesNotFitError(
            Fault(f"the loop cannot run: {found.refused}", source, "`rlsize plan` finds one that can")
        )
    figures = {key: one for part in (inputs.used, found.placement, found.results) for key, one in part.items()}
    inside = budget_in(inputs.file) if inputs.file is not None else None
    return PlannedLoop(
        name=source,
        origin=f"worked out by rlsize {VERSION}",
        figures={key: one for key, one in figures.items() if one.known},
        routing=str(inputs.said("rollout.routing") or ""),
        block_tokens=float(inputs.said("rollout.block_size") or 16.0),
        budget={**_budget(inside), **_budget(lines)},
        scenario=source,
    )


def _in_file(faults: Sequence[Fault], name: str) -> Iterator[Fault]:
    """Faults that name a flag which this command does not have, as faults of the file that may say it."""
    for fault in faults:
        if fault.where.startswith("--") and fault.where not in {"--calibration", "--profiles"}:
            yield Fault(fault.what, name, f"say it in the scenario; other commands have {fault.where} for it")
        else:
            yield fault


def _budget(file: BudgetFile | None) -> dict[str, BudgetLine]:
    """The lines of a budget that a threshold follows from."""
    if file is None:
        return {}
    found = {}
    for quantity, bound in {**_BUDGETED, **_LEAST}.items():
        value = getattr(file.budget.limits.get(quantity), bound, None)
        if value is not None:
            found[quantity] = BudgetLine(value, file.where(quantity, bound))
    return found
