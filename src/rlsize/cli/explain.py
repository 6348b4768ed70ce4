"""`rlsize explain`: print the page of an equation."""

from __future__ import annotations

from typing import Annotated

import typer

from rlsize.facts.figure import Figure
from rlsize.reports.report import Column, Report, Table


def explain(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="EQUATION",
            help="An equation, such as weight_sync_time; all of them when left out.",
            show_default=False,
        ),
    ] = None,
) -> Report:
    """
    Print the page of an equation.

    Example:  rlsize explain weight_sync_time
    """
    return _all() if name is None else _one(name)


def _all() -> Report:
    from rlsize.reports.equation_page import equation_names, page

    names = equation_names()
    rows = tuple({"equation": name, "says": page(name).summary} for name in names)
    columns = (Column("equation", "equation", "left"), Column("says", "what it says", "left", wide=True))
    return Report(
        command="explain",
        headline=f"{len(names)} equations; `rlsize explain NAME` prints one.",
        tables={"equations": Table(title="", columns=columns, rows=rows)},
    )


def _one(name: str) -> Report:
    from rlsize.errors import Fault, InputError, suggestion
    from rlsize.reports.equation_page import equation_names, page

    names = equation_names()
    short = {full.rpartition(".")[2]: full for full in names}
    known = name if name in names else short.get(name)
    if known is None:
        raise InputError(Fault(f"there is no equation {name!r}", "EQUATION", suggestion(name, short)))
    entry = page(known)
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
            Figure(key="formula", value=entry.formula, provenance="given"),
            Figure(key="returns", value=f"{entry.symbol} [{entry.unit}]", provenance="given"),
        ),
        tables={"arguments": Table(title="", columns=columns, rows=rows)},
        notes=(f"Assumes {entry.assumes}", f"Source: {entry.source}", f"Example:\n{entry.example}"),
    )
