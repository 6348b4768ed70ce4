"""What `rlsize explain` says: one equation's page, or the list of all."""

from __future__ import annotations

from rlsize.facts.figure import Figure
from rlsize.reports.equation_page import equation_names, page
from rlsize.reports.report import Column, Report, Table


def equation_list_report() -> Report:
    """Every equation, with the sentence that it opens with."""
    names = equation_names()
    rows = tuple({"equation": name, "says": page(name).summary} for name in names)
    columns = (Column("equation", "equation", "left"), Column("says", "what it says", "left", wide=True))
    return Report(
        command="explain",
        headline=f"{len(names)} equations; `rlsize explain NAME` prints one.",
        tables={"equations": Table(title="", columns=columns, rows=rows)},
    )


def equation_report(name: str) -> Report:
    """
    The page of one equation: formula, arguments with units, assumptions, source, an example.

    Args:
        name: `function` where one file has it, or `file.function`.

    Raises:
        InputError: No equation has that name, or several files have one.
    """
    entry = page(name)
    rows = tuple(
        {"argument": argument.name, "says": argument.text, "unit": f"[{argument.unit}]"} for argument in entry.arguments
    )
    columns = (
        Column("argument", "argument", "left"),
        Column("unit", "unit", "left"),
        Column("says", "what it is", "left", wide=True),
    )
    return Report(
        command="explain",
        headline=f"{entry.name}: {entry.summary}",
        results=(
            Figure(key="formula", value=entry.formula, source=entry.source),
            Figure(key="returns", value=f"{entry.symbol} [{entry.unit}]", source=entry.source),
        ),
        tables={"arguments": Table(title="", columns=columns, rows=rows)},
        notes=(f"Assumes {entry.assumes}", f"Source: {entry.source}", f"Example:\n{entry.example}"),
    )
