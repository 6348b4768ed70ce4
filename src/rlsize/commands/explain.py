"""`rlsize explain`: print the page of an equation."""

from __future__ import annotations

from typing import Annotated

import typer

from rlsize.reports.report import Report


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
    from rlsize.reports.equation_list import equation_list_report, equation_report

    return equation_list_report() if name is None else equation_report(name)
