"""Who works a loop out, of what."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rlsize.estimates.figures import numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlsize.planner.options import LoopProblem, Said

    Work = Callable[..., Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """
    Who works a loop out, of what.

    Args:
        work: `figures.apply` for figures, `numbers` for numbers and arrays.
        said: The value of an input.
        values: Constants by name; empty where nothing is predicted.
        problem: The loop.
        central: The central number of an input and the central constants, for what figures cannot follow.
    """

    work: Work
    said: Said
    values: Mapping[str, Any]
    problem: LoopProblem
    central: Mapping[str, Any]

    @property
    def bare(self) -> Setting:
        """The same in central numbers."""
        return replace(self, work=numbers, said=lambda figure: figure.number, values=self.central)
