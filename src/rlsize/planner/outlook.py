"""How the placements of a problem are worked out: in central numbers, in figures, and on joint draws."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from rlsize.estimates.figures import DRAWS, Draw, apply, generator, in_draws, numbers, uncertain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from rlsize.estimates.belief import Belief
    from rlsize.estimates.figures import Worked
    from rlsize.facts.figure import Figure
    from rlsize.planner.options import LoopProblem, Placement, Said

    Work = Callable[..., Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """
    In which terms a loop is worked out, and of what.

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

    def value(self, figure: Figure) -> Any:  # noqa: ANN401 (as `work` takes it)
        """The value of an input; where nobody says, the figure that tells what is missing, or None among numbers."""
        if figure.known:
            return self.said(figure)
        return figure if self.work is apply else None

    @property
    def known(self) -> dict[str, Any]:
        """What is said of the loop's work, by key."""
        problem = self.problem
        said = {
            "samples_per_step": problem.samples,
            "response_tokens": problem.response_tokens,
            "tokens_generated_per_trained_token": problem.waste,
            "headroom": problem.headroom,
            "available_fraction": problem.available,
            "steps": problem.steps,
        }
        return {key: self.value(figure) for key, figure in said.items()}

    @property
    def response_cv(self) -> Any:  # noqa: ANN401 (as `said` gives it, or a constant)
        """Coefficient of variation of response lengths: said, or the usual one; 0 where nothing is predicted."""
        said = self.problem.response_cv
        return self.said(said) if said.known else self.values.get("step_length_cv", 0.0)

    @property
    def bare(self) -> Terms:
        """The same in central numbers."""
        return replace(self, work=numbers, said=lambda figure: figure.number, values=self.central)


@dataclass(frozen=True)  # no slots: made where somebody asks for them
class Draws:
    """
    Joint draws of uncertain inputs; the same for every placement that is asked.

    Args:
        seed: Of their generator.
        found: What was drawn so far.
    """

    seed: int
    found: dict[tuple[str, str, float], NDArray[np.float64]] = field(default_factory=dict)

    @cached_property
    def joint(self) -> tuple[Draw, ...]:
        """One joint draw each."""
        random = generator(self.seed)
        return tuple(Draw(random) for _ in range(DRAWS))

    def of(self, figure: Figure) -> Worked:
        """Draws of an input; its number where it is a point."""
        if not uncertain(figure):
            return figure.number
        root = (figure.key, figure.source, figure.number)
        if root not in self.found:
            self.found[root] = np.array(in_draws(figure, self.joint), dtype=float)
        return self.found[root]


@dataclass(frozen=True, kw_only=True)  # no slots: what was worked out once is kept
class Outlook:
    """
    How a problem's placements are worked out: central, explained, and on draws.

    Args:
        problem: The loop.
        belief: What is believed about constants; None where nothing is predicted.
        seed: Of the draws behind bands.
        joint: The draws of uncertain inputs.
        untested: Whether it differs from a run that was measured in what nobody has tested.
    """

    problem: LoopProblem
    belief: Belief | None
    seed: int
    joint: Draws
    untested: bool = False

    @cached_property
    def central(self) -> Terms:
        """In central numbers."""
        values = {} if self.belief is None else self.belief.central()
        return Terms(
            work=numbers, said=lambda figure: figure.number, values=values, problem=self.problem, central=values
        )

    @cached_property
    def explained(self) -> Terms:
        """In figures."""
        named: dict[str, Any] = {}
        if self.belief is not None:
            from rlsize.estimates.all_constants import constants_of

            named = dict(constants_of(self.belief))
        return replace(self.central, work=apply, said=lambda figure: figure, values=named)

    @cached_property
    def drawn(self) -> Terms:
        """In arrays of joint draws."""
        values = {} if self.belief is None else self.belief.drawn(self.seed)
        return replace(self.central, said=self.joint.of, values=values)

    def noise(self, place: Placement) -> Worked:
        """How far a measured step may lie from its prediction, on the draws; 1 where nothing is predicted."""
        if self.belief is None:
            return 1.0
        from rlsize.estimates.belief import scattered
        from rlsize.estimates.constants_step import STAGE
        from rlsize.estimates.scaled_model import SCALED_SPREAD

        if self.problem.run is None:
            found = scattered(1.0, STAGE.noise, self.seed, place.scatter)
            model = self.problem.model
            return scattered(found, SCALED_SPREAD, self.seed, "scaled") if model and "@" in model.name else found
        from rlsize.estimates.run_twin import AGAIN, UNTESTED

        found = scattered(1.0, AGAIN, self.seed, place.scatter)
        return scattered(found, UNTESTED, self.seed, "untested") if self.untested else found


def outlook_of(problem: LoopProblem, belief: Belief | None = None, seed: int = 0) -> Outlook:
    """
    How a problem's placements are worked out.

    Args:
        problem: The loop.
        belief: What is believed about constants; None where all rates are known.
        seed: Of the draws behind bands.
    """
    return Outlook(problem=problem, belief=belief, seed=seed, joint=Draws(seed))


def band_of(draws: NDArray[np.float64]) -> tuple[float, float] | None:
    """The 80 % interval of draws; None where all are alike."""
    if draws.min() == draws.max():
        return None
    from rlsize.estimates.belief import interval

    low, high = interval(draws)
    return (low, high) if high > low else None
