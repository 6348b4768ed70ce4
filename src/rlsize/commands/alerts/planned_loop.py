"""The loop that alerts are written for: a plan or an observation as it was saved, or a scenario worked out anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.commands.alerts.thresholds import LONGEST_STEP, PlannedLoop
from rlsize.equations import matching, rl_step
from rlsize.errors import DoesNotFitError, Fault, InputError, a_file, refuse
from rlsize.estimates.figures import apply, measured
from rlsize.facts.figure import Figure
from rlsize.shell.inputs import SMALLEST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.facts.figure import Value
    from rlsize.readers.saved_files import BudgetFile
    from rlsize.readers.yaml_documents import Document
    from rlsize.shell.inputs import Inputs

_BUDGETED = {"trainer_idle_fraction": "max", "sync_fraction": "max", "staleness_steps": "max"}
_BUDGETED |= {"loop_tokens_per_gpu_second": "min"}
_LARGEST = 1e15  # above it, nothing that is counted in a loop is meant
_LEAST = {
    **dict.fromkeys(("trainer_idle_fraction", "sync_fraction", "staleness_steps"), 0.0),
    **dict.fromkeys(("samples_per_step", "prompts_per_step", "group_size", "prompt_tokens", "batch_tokens"), 1.0),
    **dict.fromkeys(("gpus", "instances"), 1.0),
    **dict.fromkeys(("train_seconds", "consumption_tokens_per_second", "tokens_generated_per_trained_token"), SMALLEST),
    **dict.fromkeys(("loop_tokens_per_second", "loop_tokens_per_gpu_second"), SMALLEST),
}
"""The least that a loop has of what alerts take."""

_SEEN = {  # what an observation calls otherwise than a plan
    "sync_pause_fraction": "sync_fraction",
    "largest_staleness_steps": "staleness_steps",
    "trained_tokens_per_second": "loop_tokens_per_second",
    "mean_prompt_tokens": "prompt_tokens",
}


def planned_loop(inputs: Inputs, source: str | None, budget: str | None, changes: Sequence[str] = ()) -> PlannedLoop:
    """
    The loop of a file.

    Args:
        inputs: What is said beside it; then even a saved plan is worked out anew.
        source: A saved plan, an observation or a scenario.
        budget: A budget file.
        changes: What `--set` says.

    Raises:
        InputError: Everything that is wrong with the files.
        DoesNotFitError: The loop of a scenario cannot run.
    """
    from rlsize.readers.saved_files import read_budget
    from rlsize.readers.yaml_documents import read_document

    if source is None:
        todo = "name a saved plan (`rlsize plan ... --save plan.yaml`), a scenario or an observation"
        raise InputError(Fault("there is no plan to take thresholds from", "PLAN|SCENARIO", todo))
    lines = read_budget(budget) if budget is not None else None
    document = read_document(source)
    kind = document.kind
    beside = [inputs.flag(key) for key in inputs.texts if key != "engine"] + ["--set"] * bool(changes)
    if kind == "scenario" or (kind == "plan" and beside):
        loop = _worked_out(inputs, source, lines, changes)
    elif kind == "plan":
        loop = _of_plan(document, lines)
    elif kind == "observation":
        if beside:
            todo = "leave it out, or give the observation as --per-instance beside a scenario"
            raise InputError(Fault("an observation is taken as it was seen", beside[0], todo))
        loop = _of_observation(document, lines)
    else:
        what = f"is {a_file(kind)}" if isinstance(kind, str) else "does not say what it is"
        todo = "name a saved plan or a scenario: their first line says `rlsize: {kind: plan, version: 1}` or scenario"
        raise InputError(Fault(f"{what[:60]}, neither plan nor scenario", source, todo))
    step = loop.figure("step_seconds")
    if not step.known:
        raise InputError(Fault("does not say how long a step takes", loop.name, "save the plan again"))
    if not 0 < step.number <= LONGEST_STEP:
        what = f"a step of {step.number:g} s is no step that alerts can watch"
        raise InputError(Fault(what, loop.name, f"it should be above 0 and at most {LONGEST_STEP:,.0f} s"))
    refuse(
        Fault(f"{key} is {figure.number:g}", loop.name, "no loop has that; save the plan again")
        for key, least in _LEAST.items()
        if (figure := loop.figure(key)).known and not least <= figure.number <= _LARGEST
    )
    return loop


def _of_plan(document: Document, lines: BudgetFile | None) -> PlannedLoop:
    from rlsize.readers.saved_files import read_plan

    plan = read_plan(document)
    figures = {
        key: one.figure(key) for part in (plan.inputs, plan.placement, plan.results) for key, one in part.items()
    }
    routing = figures["routing"].value if "routing" in figures else ""
    return PlannedLoop(
        name=document.name,
        origin=f"saved by `{plan.command[:200]}` of rlsize {plan.rlsize_version[:40]}",
        figures=figures,
        routing=routing if isinstance(routing, str) else "",
        budget=_budget(lines),
    )


def _of_observation(document: Document, lines: BudgetFile | None) -> PlannedLoop:
    """A loop that ran well: what was seen of it is what it should be."""
    from rlsize.readers.saved_files import read_observation

    seen = read_observation(document)
    pools = seen.allocation
    told: dict[str, Value] = {"instances": pools.rollout_instances, "rollout_gpus": pools.rollout_gpus}
    told |= {"trainer_gpus": pools.trainer_gpus, "mode": seen.mode or None, "engine": seen.engine or None}
    figures = {key: measured(key, value, document.name) for key, value in told.items() if value is not None}
    figures |= {
        _SEEN.get(key, key): one.figure(_SEEN.get(key, key))
        for key, one in seen.results.items()
        if key != "staleness_steps"  # a mean, and no cap
    }
    if pools.rollout_gpus is not None and pools.trainer_gpus is not None:
        both = {key: figures[key] for key in ("rollout_gpus", "trainer_gpus")}
        figures["gpus"] = apply("gpus", rl_step.gpus_of_both, **both)
        if "loop_tokens_per_second" in figures:
            key, trained = "loop_tokens_per_gpu_second", figures["loop_tokens_per_second"]
            figures[key] = apply(key, matching.rate_per_gpu, rate=trained, gpus=figures["gpus"])
    return PlannedLoop(
        name=document.name, origin=f"observed {seen.observed_at[:40]}", figures=figures, budget=_budget(lines)
    )


def _worked_out(inputs: Inputs, source: str, lines: BudgetFile | None, changes: Sequence[str]) -> PlannedLoop:
    from rlsize.loop.answer import answer_of
    from rlsize.loop.resolve import resolve
    from rlsize.readers.saved_files import budget_in
    from rlsize.version import VERSION

    try:
        inputs.read(source, changes)
        loop = resolve(inputs)
    except InputError as error:  # of flags that this command does not have, the file is to blame that may say them
        own = {*inputs.flags.values(), "--profiles", "--set"}
        raise InputError(
            *(
                Fault(fault.what, source, f"say it in the scenario; other commands have {fault.where} for it")
                if fault.where.startswith("--") and fault.where not in own
                else fault
                for fault in error.faults
            )
        ) from None
    if loop.lacking:
        what = f"no threshold follows from a step with {loop.bound}"
        raise InputError(Fault(what, source, "`rlsize simulate` models it; write rules from an observation instead"))
    if loop.refused:
        what = f"the loop cannot run: {loop.refused}"
        raise DoesNotFitError(Fault(what, source, "`rlsize plan` finds one that can"))
    found = answer_of(loop)
    figures = {key: one for part in (inputs.used, found.placement, found.results) for key, one in part.items()}
    block = inputs.ask("block_tokens")
    return PlannedLoop(
        name=source,
        origin=f"worked out by rlsize {VERSION}",
        figures={key: one for key, one in figures.items() if one.known},
        routing=inputs.choose("routing"),
        block_tokens=block.number if block.known else 16.0,
        budget={**_budget(budget_in(inputs.file) if inputs.file is not None else None), **_budget(lines)},
        scenario=source,
    )


def _budget(file: BudgetFile | None) -> dict[str, Figure]:
    """The lines of a budget that a threshold follows from."""
    if file is None:
        return {}
    limits = {key: getattr(file.budget.limits.get(key), side, None) for key, side in _BUDGETED.items()}
    return {
        key: Figure(key=key, value=value, source=file.where(key, _BUDGETED[key]))
        for key, value in limits.items()
        if value is not None
    }
