"""The flags of `rlsize check`."""

from __future__ import annotations

from typing import Annotated

import typer

from rlsize.shell.command import quantity

_CI = "CI"

BudgetName = Annotated[
    str | None,
    typer.Option(
        "--budget",
        metavar="FILE",
        help="A budget file; its lines go before the scenario's own.",
        rich_help_panel="Inputs",
        show_default=False,
    ),
]
BaselineName = Annotated[
    str | None,
    typer.Option(
        "--baseline",
        metavar="FILE",
        help="A saved plan; limits on a change need one.",
        rich_help_panel="Inputs",
        show_default=False,
    ),
]
Junit = Annotated[
    str | None,
    typer.Option(
        "--junit",
        metavar="FILE",
        help="Write JUnit XML: a test case for each limit.",
        rich_help_panel=_CI,
        show_default=False,
    ),
]
Github = Annotated[
    bool,
    typer.Option(
        "--github",
        help="Annotate the budget file on GitHub, and add to the summary of the step.",
        rich_help_panel=_CI,
    ),
]
Save = Annotated[
    str | None,
    typer.Option(
        "--save",
        metavar="FILE",
        help="Write the loop as a plan: the baseline of a later check.",
        rich_help_panel="Output",
        show_default=False,
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite files that exist.", rich_help_panel="Output")]
Steps = Annotated[str | None, quantity("--steps", "Optimizer steps of the run, for its cost and time.")]
