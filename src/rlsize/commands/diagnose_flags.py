"""The flags of `rlsize diagnose`."""

from __future__ import annotations

from typing import Annotated

import typer

from rlsize.shell.command import quantity

_LIMITS = "Limits"

Named = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="SOURCE...",
        help="Engines (http://HOST:PORT), a training log (or - for stdin), and a scenario, in any order.",
        show_default=False,
    ),
]
Expected = Annotated[str | None, quantity("--train-seconds", "Busy trainer seconds that a step should take.")]
MaxIdle = Annotated[str | None, quantity("--max-idle", "Trainer idle that is accepted; 5 % by default.", _LIMITS)]
MaxSync = Annotated[str | None, quantity("--max-sync", "Share of the step for weight syncs; 10 % by default.", _LIMITS)]
MaxStaleness = Annotated[
    str | None, quantity("--max-staleness", "Staleness that the recipe tolerates, in steps.", _LIMITS)
]
Before = Annotated[
    str | None,
    typer.Option(
        "--before",
        metavar="FILE",
        help="A recorded observation to compare with, from --record.",
        rich_help_panel="Inputs",
        show_default=False,
    ),
]
FailOn = Annotated[
    str | None,
    typer.Option(
        "--fail-on",
        metavar="WORDS",
        help="Exit with 1 on any of these: worse, any, or verdicts such as starving, with commas.",
        rich_help_panel="Output",
        show_default=False,
    ),
]
