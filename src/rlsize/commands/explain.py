"""`rlsize explain`: print the page of an equation."""

from __future__ import annotations

from rlsize.facts.figure import Figure
from rlsize.reports.report import Column, Report, Table
from rlsize.shell.command import argument


def explain(
    name: str | None = argument("EQUATION", "An equation, such as weight_sync_time; all of them when left out."),
) -> Report:
    """
    Print the page of an equation.

    Example:  rlsize explain weight_sync_time
    """
    return _every_equation() if name is None else _equation(name)


def _every_equation() -> Report:
    """Every equation, with the sentence that it opens with."""
    from rlsize.reports.equation_page import equation_names, page

    names = equation_names()
    says = Column("says", "what it says", "left", wide=True, of=lambda name: page(name).summary)
    return Report(
        whole=True,
        headline=f"{len(names)} equations; `rlsize explain NAME` prints one.",
        tables={"equations": Table.of("", names, (Column("equation", "equation", "left", of=str), says))},
    )


def _equation(name: str) -> Report:
    """
    The page of one equation: formula, arguments with units, assumptions, source, an example.

    Args:
        name: `function` where one file has it, or `file.function`.

    Raises:
        InputError: No equation has that name, or several files have one.
    """
    from rlsize.reports.equation_page import page

    entry = page(name)
    rows = tuple({"argument": one.name, "says": one.text, "unit": f"[{one.unit}]"} for one in entry.arguments)
    columns = (
        Column("argument", "argument", "left"),
        Column("unit", "unit", "left"),
        Column("says", "what it is", "left", wide=True),
    )
    return Report(
        whole=True,
        headline=f"{entry.name}: {entry.summary}",
        results=(
            Figure(key="formula", value=entry.formula, source=entry.source),
            Figure(key="returns", value=f"{entry.symbol} [{entry.unit}]", source=entry.source),
        ),
        tables={"arguments": Table(title="", columns=columns, rows=rows)},
        notes=(f"Assumes {entry.assumes}", f"Source: {entry.source}", f"Example:\n{entry.example}"),
    )
