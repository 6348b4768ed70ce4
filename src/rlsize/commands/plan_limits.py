"""What a plan is searched for, and the limits that it must keep: objective, deadline and budget."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from rlsize.commands import flags
from rlsize.equations import planning
from rlsize.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlsize.commands.plan_flags import SearchFlags
    from rlsize.commands.plan_problem import Posed
    from rlsize.facts.budget import Budget
    from rlsize.planner.families import Objective
    from rlsize.planner.space import Limit
    from rlsize.shell.inputs import Inputs

OBJECTIVES: tuple[Objective, ...] = ("time", "cost", "gpus")


def objective_of(inputs: Inputs, said: SearchFlags) -> Objective:
    """What is made small: as said; with a deadline the fewest GPUs, else the shortest step."""
    usual = "gpus" if said.steps_per_day or said.finish_by else "time"
    found = inputs.word("objective", "--objective", said.objective, list(OBJECTIVES), default=usual)
    return next((name for name in OBJECTIVES if name == (found or usual)), "time")


def limits_of(inputs: Inputs, said: SearchFlags, problem: Posed) -> tuple[Limit, ...]:
    """Limits of budget and deadline; those on results that lack an input are told and left out."""
    from rlsize.planner.space import Limit

    found = list(_deadlines(inputs, said))
    budget, source = _budget(inputs, said)
    for entry in fields(budget) if budget is not None else ():
        limit = getattr(budget, entry.name)
        if limit is None:
            continue
        if entry.name in {"cost_per_step_usd", "cost_per_run_usd"} and not problem.trainer.gpu_hour.known:
            inputs.fault(f"{entry.name} is limited, and no price is known", "--gpu-hour", "give a price")
        if entry.name in {"cost_per_run_usd", "run_seconds"} and not problem.problem.steps.known:
            inputs.fault(f"{entry.name} is limited, and the steps are not known", "--steps", "say how many")
        for bound, least in ((limit.max, False), (limit.min, True)):
            if bound is not None:
                found.append(Limit(key=entry.name, value=float(bound), least=least, source=source))
    return tuple(found)


def _budget(inputs: Inputs, said: SearchFlags) -> tuple[Budget | None, str]:
    """The budget: a file's, else the scenario's."""
    if said.budget is not None:
        from rlsize.readers.budgets import read_budget

        try:
            return read_budget(said.budget).budget, said.budget
        except InputError as error:
            inputs.blame(error, said.budget)
            return None, ""
    return inputs.said("budget"), "the scenario's budget"


def _deadlines(inputs: Inputs, said: SearchFlags) -> Iterable[Limit]:
    from rlsize.planner.space import Limit

    per_day = inputs.number("least_steps_per_day", "--steps-per-day", said.steps_per_day, flags.POSITIVE)
    if per_day.known:
        yield Limit(key="steps_per_day", value=per_day.number, least=True, source="--steps-per-day")
    until = inputs.number("finish_by_seconds", "--finish-by", said.finish_by, flags.SECONDS)
    if not until.known:
        return
    steps = inputs.used.get("steps")
    if steps is None:
        inputs.fault("a deadline needs the steps of the run", "--steps", "say how many")
        return
    longest = planning.step_time_limit(run_seconds=until.number, steps=steps.number)
    yield Limit(key="step_seconds", value=float(longest), source="--finish-by")
