"""`rlsize report`: a capacity review as one page that needs nothing beside it."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import PurePath
from typing import Annotated

import typer

from rlsize.errors import Fault, InputError
from rlsize.facts.figure import Figure
from rlsize.reports.report import Report
from rlsize.shell.command import Force
from rlsize.shell.inputs import Inputs
from rlsize.shell.quantity_flags import PLANNED, asks

FORMS = (".html", ".md")

Output = Annotated[
    str | None,
    typer.Option("--output", "-o", metavar="FILE", help="The page: FILE.html or FILE.md.", show_default=False),
]
Title = Annotated[str | None, typer.Option("--title", metavar="TEXT", help="Its title.", show_default=False)]
Question = Annotated[
    str | None, typer.Option("--question", metavar="TEXT", help="The question that it answers.", show_default=False)
]


@asks(**PLANNED)
def report(
    inputs: Inputs, output: Output = None, title: Title = None, question: Question = None, force: Force = False
) -> Report:
    """
    Write a capacity review as one page, with sliders.

    Example:  rlsize report examples/unmeasured-8b.yaml -o review.html
    """
    from rlsize.commands.report.review import review_page
    from rlsize.reports.plan import plan_report
    from rlsize.shell.answer import facts_digest
    from rlsize.shell.planning import search
    from rlsize.version import VERSION
    from rlsize.writers.files import check_target, write_whole
    from rlsize.writers.html_page import html_text
    from rlsize.writers.markdown_page import page_markdown

    named = inputs.file is not None and inputs.file.document.name != "--set"
    path = output or f"{PurePath(inputs.file.document.name).stem if named and inputs.file else 'plan'}-review.html"
    if PurePath(path).suffix.lower() not in FORMS:
        raise InputError(Fault(f"{path} is no page", "--output", f"end it in {' or '.join(FORMS)}"))
    check_target(path, force)
    found, ranked = search(inputs)
    answer = found.planned
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
        command=f"{inputs.command_line('report')} {_said(title, question, path)}",
        made_with=f"rlsize {VERSION}, facts {facts_digest(inputs.folders)}",
        warnings=inputs.warnings,
        notes=inputs.notes,
        ranked=ranked,
    )
    text = html_text(page) if PurePath(path).suffix.lower() == ".html" else page_markdown(page)
    write_whole(path, text, force=force)
    where = Figure(key="page", value=path, provenance="given", source="--output")
    best = (replace(figure, key=told.of + figure.key) for figure in told.results if figure.known)
    shown = (where, *best)
    return Report(
        command="report",
        headline=f"Wrote {path}. {told.headline}",
        results=shown,
        inputs=told.inputs,
        warnings=told.warnings,
        notes=tuple(inputs.notes),
        quiet=frozenset(figure.key for figure in shown if figure is not where),
    )


def _said(title: str | None, question: str | None, path: str) -> str:
    """The flags that are about the page, so that its command writes the very same one."""
    flags = (("--title", title), ("--question", question), ("-o", path))
    return shlex.join(word for flag, text in flags if text for word in (flag, text))
