"""The flags of `rlsize diff`, and which kinds of files each of them is for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated

import typer

from rlsize.shell.command import quantity

if TYPE_CHECKING:
    from rlsize.commands.plan_asked import PlanFlags

Before = Annotated[
    str, typer.Argument(metavar="BEFORE", help="A scenario, a saved plan, or a rates file.", show_default=False)
]
After = Annotated[str, typer.Argument(metavar="AFTER", help="Another one of the same kind.", show_default=False)]
Of = Annotated[
    str | None,
    quantity(
        "--of",
        "The result to tell first; cost_per_step_usd where prices are known, else step_seconds.",
        "Inputs",
        "KEY",
    ),
]
SplitBy = Annotated[
    str | None,
    quantity("--split", "alone (each change by itself), or shapley (fair shares too).", "Inputs", "NAME"),
]
Scenario = Annotated[
    str | None,
    typer.Option(
        "--scenario",
        metavar="FILE",
        help="For rates files: the scenario whose loop they change.",
        rich_help_panel="Inputs",
        show_default=False,
    ),
]
SPLITS = ("alone", "shapley")

_SCENARIOS, _LOOPS, _ALL = ("scenario",), ("scenario", "rates"), ("scenario", "plan", "rates")
FOR: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "--of": _ALL,
        "--split": _SCENARIOS,
        "--scenario": ("rates",),
        "--steps": _LOOPS,
        "--gpu-hour": _LOOPS,
        "--rollout-gpu-hour": _LOOPS,
        "--trainer-gpu-hour": _LOOPS,
        "--price": _LOOPS,
        "--calibration": _LOOPS,
        "--accept-lower-bound": _LOOPS,
    }
)
"""The kinds of files that a flag says something about."""
KNOWN = frozenset({*FOR, "--seed", "--profiles"})
"""Flags that a fault may name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffFlags:
    """
    What the flags say.

    Args:
        plan: What both loops share: prices, steps, a calibration, the seed.
        of: The result to tell first.
        split: How effects are split.
        scenario: The scenario of rates files.
        folders: Folders of the user's own profiles.
        given: The flags that were given, of those that are not for all kinds of files.
    """

    plan: PlanFlags
    of: str | None = None
    split: str | None = None
    scenario: str | None = None
    folders: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
