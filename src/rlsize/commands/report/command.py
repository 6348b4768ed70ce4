"""`rlsize report`: a capacity review as one page that needs nothing beside it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePath

from rlsize.errors import Fault, InputError
from rlsize.facts.figure import Figure
from rlsize.reports.report import Report
from rlsize.shell.command import Force, option
from rlsize.shell.inputs import Inputs
from rlsize.shell.quantity_flags import PLANNED, asks

FORMS = (".html", ".md")


@asks(**PLANNED)
def report(
    inputs: Inputs,
    output: str | None = option("--output|-o", "The page: FILE.html or FILE.md.", None, "FILE"),
    title: str | None = option("--title", "Its title.", None, "TEXT"),
    question: str | None = option("--question", "The question that it answers.", None, "TEXT"),
    force: Force = False,
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

    source = "plan" if inputs.file is None else PurePath(inputs.file.document.name).stem
    path = output or f"{source if source != '--set' else 'plan'}-review.html"
    form = PurePath(path).suffix.lower()
    if form not in FORMS:
        raise InputError(Fault(f"{path} is no page", "--output", f"end it in {' or '.join(FORMS)}"))
    check_target(path, force)
    found, ranked = search(inputs)
    answer = found.planned
    told = plan_report(answer, inputs.told(), ranked)
    if answer.chosen is None:
        return told
    model = answer.outlook.problem.model
    page = review_page(
        answer,
        answer.chosen,
        inputs.told(),
        ranked,
        title=title or f"Capacity review: {model.title if model is not None else 'an RL loop'}",
        question=question or "",
        command=inputs.command_line("report", {"--title": title, "--question": question, "-o": path}),
        made_with=f"rlsize {VERSION}, facts {facts_digest(inputs.folders)}",
    )
    write_whole(path, html_text(page) if form == ".html" else page_markdown(page), force=force)
    best = tuple(replace(figure, key=told.of + figure.key) for figure in told.results if figure.known)
    return Report(
        headline=f"Wrote {path}. {told.headline}",
        results=(Figure(key="page", value=path, provenance="given", source="--output"), *best),
        inputs=told.inputs,
        warnings=told.warnings,
        notes=tuple(inputs.notes),
        quiet=frozenset(figure.key for figure in best),
    )
