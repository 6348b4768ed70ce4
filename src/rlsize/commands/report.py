"""`rlsize report`: a capacity review as one page that needs nothing beside it."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated

import typer

from rlsize.commands import flags
from rlsize.commands import memory_flags as memory
from rlsize.commands import plan_flags as of
from rlsize.commands import predict_step_flags as step_flags
from rlsize.commands.plan_asked import NOTHING_SAID, PlanFlags, PriceFlags
from rlsize.commands.plan_flags import SearchFlags
from rlsize.commands.predict_step_flags import LoopFlags
from rlsize.errors import Fault, InputError
from rlsize.facts.figure import Figure
from rlsize.reports.report import Report
from rlsize.shell.beliefs import CalibrationFile
from rlsize.shell.inputs import Inputs

if TYPE_CHECKING:
    from rlsize.reports.page import Page

FORMS = (".html", ".md")


def report(
    scenario: flags.ScenarioFile = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="The page: FILE.html or FILE.md.", show_default=False),
    ] = None,
    title: Annotated[str | None, typer.Option("--title", metavar="TEXT", help="Its title.", show_default=False)] = None,
    question: Annotated[
        str | None,
        typer.Option("--question", metavar="TEXT", help="The question that it answers.", show_default=False),
    ] = None,
    model: memory.ModelName = None,
    gpu: memory.GpuName = None,
    gpus: step_flags.Gpus = None,
    objective: of.Objective = None,
    steps_per_day: of.StepsPerDay = None,
    finish_by: of.FinishBy = None,
    budget: of.BudgetFile = None,
    memory_margin: of.MemoryMargin = None,
    mode: of.Modes = None,
    max_staleness: of.MaxStaleness = None,
    transport: of.Transports = None,
    rollout_pool: of.RolloutPool = None,
    trainer_pool: of.TrainerPool = None,
    simulate: of.Simulate = None,
    gpu_hour: flags.GpuHour = None,
    rollout_gpu_hour: flags.RolloutGpuHour = None,
    trainer_gpu_hour: flags.TrainerGpuHour = None,
    price: flags.Price = None,
    steps: of.Steps = None,
    calibration: CalibrationFile = None,
    seed: flags.Seed = "0",
    force: of.Force = False,
    profiles: flags.Profiles = None,
) -> Report:
    """
    Write a capacity review as one page, with sliders.

    Example:  rlsize report examples/unmeasured-8b.yaml -o review.html
    """
    said = PlanFlags(
        step=replace(NOTHING_SAID, named=(model, gpu), loop=LoopFlags(gpus=gpus)),
        prices=PriceFlags(
            gpu_hour=gpu_hour, rollout_gpu_hour=rollout_gpu_hour, trainer_gpu_hour=trainer_gpu_hour, price=price
        ),
        steps=steps,
        calibration=calibration,
        seed=seed,
    )
    search = SearchFlags(
        objective=objective,
        steps_per_day=steps_per_day,
        finish_by=finish_by,
        budget=budget,
        memory_margin=memory_margin,
        modes=mode,
        max_staleness=max_staleness,
        transports=transport,
        rollout_pools=tuple(rollout_pool or ()),
        trainer_pools=tuple(trainer_pool or ()),
    )
    path = _checked(output, scenario, force=force)
    return _written(Inputs(scenario, profiles), said, search, (path, title, question, simulate, force))


def _checked(output: str | None, scenario: str | None, *, force: bool) -> str:
    """
    Where the page is written; beside the scenario where nobody says.

    Raises:
        InputError: It has another ending than the forms that there are, or cannot be written.
    """
    from rlsize.writers.files import check_target

    path = output or f"{PurePath(scenario).stem if scenario else 'plan'}-review.html"
    if PurePath(path).suffix.lower() not in FORMS:
        raise InputError(Fault(f"{path} is no page", "--output", f"end it in {' or '.join(FORMS)}"))
    check_target(path, force)
    return path


def _written(
    inputs: Inputs,
    said: PlanFlags,
    search: SearchFlags,
    asked: tuple[str, str | None, str | None, str | None, bool],
) -> Report:
    from rlsize.commands.plan import planned_of
    from rlsize.commands.plan_simulating import asked_count, ranked_by_simulation
    from rlsize.reports.plan import plan_report
    from rlsize.reports.review import review_page
    from rlsize.shell.digest import facts_digest
    from rlsize.version import VERSION
    from rlsize.writers.files import write_whole

    path, title, question, simulate, force = asked
    count = asked_count(inputs, simulate)
    problem, answer = planned_of(inputs, said, search)
    ranked = ranked_by_simulation(inputs, problem, answer, count)
    told = plan_report(answer, inputs.shown(), inputs.warnings, inputs.notes, ranked)
    if answer.chosen is None:
        return replace(told, command="report")
    model = answer.outlook.problem.model
    page = review_page(
        answer,
        answer.chosen,
        inputs.shown(),
        title=title or f"Capacity review: {model.title if model is not None else 'an RL loop'}",
        question=question or "",
        command=shlex.join(["rlsize", *(word for word in sys.argv[1:] if word != "--force")]),
        made_with=f"rlsize {VERSION}, facts {facts_digest(inputs.folders)}",
        warnings=inputs.warnings,
        notes=inputs.notes,
        ranked=ranked,
    )
    write_whole(path, _text(path, page), force=force)
    where = Figure(key="page", value=path, provenance="given", source="--output")
    shown = (where, *(figure for figure in told.results if figure.known))
    return Report(
        command="report",
        headline=f"Wrote {path}. {told.headline}",
        results=shown,
        inputs=told.inputs,
        warnings=told.warnings,
        quiet=frozenset(figure.key for figure in shown if figure is not where),
    )


def _text(path: str, page: Page) -> str:
    from rlsize.writers.html_page import html_text
    from rlsize.writers.markdown_page import page_markdown

    return html_text(page) if PurePath(path).suffix.lower() == ".html" else page_markdown(page)
