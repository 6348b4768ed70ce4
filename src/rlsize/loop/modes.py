"""A loop's step beside other ways to run it on as many GPUs, on the same draws, and what its band comes from."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rlsize.equations import rl_step
from rlsize.estimates.all_constants import all_stages, band_sources
from rlsize.estimates.belief import BandSource
from rlsize.estimates.constants_step import STAGE
from rlsize.estimates.figures import DRAWS, apply, numbers
from rlsize.estimates.step_assembly import assembled
from rlsize.frozen import dataclass
from rlsize.loop.answer import answer_of
from rlsize.loop.phases import why_not
from rlsize.planner.choices import other_ways
from rlsize.planner.evaluation import worked
from rlsize.planner.outlook import band_of
from rlsize.planner.step_parts import loop_parts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from rlsize.estimates.figures import Worked
    from rlsize.estimates.step_assembly import Step
    from rlsize.facts.figure import Figure
    from rlsize.loop.resolve import Loop
    from rlsize.planner.options import Placement

    Array = NDArray[np.float64]

_TOLD = 0.05  # of the variance; a smaller share is not worth a word


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """
    One way to run the loop beside the others.

    Args:
        place: The loop, laid out so.
        step: Its step in figures; None where it cannot run so.
        seconds: The time of that with a band.
        times: How many times longer than the quickest, with the band of common draws; None for the quickest.
        refused: Why it cannot run so.
    """

    place: Placement
    step: Step | None = None
    seconds: Figure | None = None
    times: Figure | None = None
    refused: str = ""

    @property
    def close(self) -> bool:
        """Whether the quickest is no clear winner over it: the interval of how many times longer it takes holds 1."""
        band = None if self.times is None else self.times.band
        return band is not None and band[0] <= 1.0 <= band[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutlook:
    """
    What to expect of a step.

    Args:
        results: What the loop gives, by key, with bands.
        modes: The loop as it was said, and the other ways after it.
        doubts: The constants that make the band wide, most important first.
        stages: The same by stage.
    """

    results: Mapping[str, Figure]
    modes: tuple[Mode, ...]
    doubts: tuple[BandSource, ...] = ()
    stages: tuple[BandSource, ...] = ()

    @property
    def quickest(self) -> Mode:
        """The mode whose central step is the shortest."""
        return next(mode for mode in self.modes if mode.seconds is not None and mode.times is None)


def step_outlook(loop: Loop) -> StepOutlook:
    """
    What to expect of a loop's step.

    Args:
        loop: The loop; one that is placed, and whose model is named.

    Raises:
        TypeError: It is none.
    """
    place = loop.place
    if place is None or loop.stages is None:
        raise TypeError("only a loop that runs, of a model that is named, has other modes")
    others = other_ways(loop.outlook.central, place, loop.pools.gpus.number, split=loop.pools.split)
    doubts, of_stages = _doubts(loop, place)
    return StepOutlook(
        results=answer_of(loop).results,
        modes=_compared(loop, [place, *others]),
        doubts=doubts,
        stages=of_stages,
    )


def _compared(loop: Loop, places: Sequence[Placement]) -> tuple[Mode, ...]:
    """Every way with its step; against the quickest, how many times longer it takes on the same draws."""
    modes: list[Mode] = []
    steps: dict[int, tuple[Figure, Array]] = {}
    for index, place in enumerate(places):
        reason = why_not(loop, place) if place.instances >= 1 else "no instance is left"
        modes.append(Mode(place=place, refused=reason))
        if not reason:
            step, draws = _worked(loop, place)
            seconds = replace(step.seconds, band=band_of(draws))
            modes[-1] = Mode(place=place, step=step, seconds=seconds)
            steps[index] = seconds, draws
    quickest = min(steps, key=lambda index: steps[index][0].number)
    for index, own in steps.items():
        if index != quickest:
            modes[index] = replace(modes[index], times=_times(own, steps[quickest]))
    return tuple(modes)


def _worked(loop: Loop, place: Placement) -> tuple[Step, Array]:
    """A step in figures, and the draws of its time."""
    outlook = loop.outlook
    step = assembled(apply, loop_parts(outlook.explained, place))
    drawn = worked(outlook.drawn, place, outlook.noise(place))["step_seconds"]
    return step, np.broadcast_to(np.asarray(drawn, dtype=np.float64), (DRAWS,))


def _times(one: tuple[Figure, Array], best: tuple[Figure, Array]) -> Figure:
    """How many times longer than the quickest, with the interval of the same draws."""
    key = "times_longer"
    ratio = numbers(key, rl_step.times_longer, step_seconds=one[1], least_seconds=best[1])
    central = apply(key, rl_step.times_longer, step_seconds=one[0], least_seconds=best[0])
    return replace(central, band=band_of(np.asarray(ratio)))


def _doubts(loop: Loop, place: Placement) -> tuple[tuple[BandSource, ...], tuple[BandSource, ...]]:
    """Shares of the variance of the step's logarithm, correlations left aside: by constant, and by stage."""
    belief = loop.outlook.belief
    if belief is None:
        return (), ()

    def seconds(values: Mapping[str, Any]) -> Worked:
        return worked(replace(loop.outlook.central, values=values, central=values), place)["step_seconds"]

    found = band_sources(belief, seconds, STAGE.noise)
    shares = {one.name: one.share for one in found}
    stages = {stage.name: sum(shares.get(one.name, 0.0) for one in stage.constants) for stage in all_stages().values()}
    of_stages = [BandSource(name=name, meaning=name, share=share) for name, share in stages.items()]
    ranked = sorted(of_stages, key=lambda one: -one.share)
    return tuple(one for one in found if one.share >= _TOLD), tuple(one for one in ranked if one.share >= _TOLD)
