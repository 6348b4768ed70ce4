"""What to expect of an optimizer step: times with bands, where they go, and other ways to run it on the same draws."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rlsize.equations import rl_step
from rlsize.estimates import constants_memory, constants_rollout, constants_step, constants_sync, constants_train
from rlsize.estimates.belief import interval, scattered, sensitivity
from rlsize.estimates.rollout_prediction import engine_limit
from rlsize.estimates.stages import all_constants, all_stages
from rlsize.estimates.step_figures import explained, worked
from rlsize.estimates.step_loops import bare, check_way, drawn, step_question
from rlsize.estimates.working import DRAWS, apply, numbers
from rlsize.facts.records.record import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from rlsize.equations._ops import Real
    from rlsize.estimates.belief import Belief
    from rlsize.estimates.step_figures import Worked
    from rlsize.estimates.step_loops import LoopPlan, Way
    from rlsize.facts.figure import Figure

    Array = NDArray[np.float64]

STAGES = (
    constants_step.STAGE,
    constants_rollout.STAGE,
    constants_train.STAGE,
    constants_sync.STAGE,
    constants_memory.STAGE,
)
"""The stages whose constants a step is predicted from."""

_NOISE = constants_step.STAGE.noise
_UNSCATTERED = (
    "trainer_idle_fraction",
    "rollout_idle_fraction",
    "longest_response_tokens",
    "samples_in_flight",
    "cache_concurrency",
)
_TOLD = 0.05  # of the variance; a smaller share is not worth a word


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """
    Something that makes the band wide.

    Args:
        name: The constant, or the stage.
        meaning: What it is.
        share: Share of the variance that comes from it. [1]
    """

    name: str
    meaning: str
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """
    One way to run the loop beside the others.

    Args:
        way: Which.
        seconds: Its step with a band; None where it cannot run so.
        times: How many times longer than the quickest, with the band of common draws; None for the quickest.
        worked: Its parts in numbers.
        refused: Why it cannot run so.
    """

    way: Way
    seconds: Figure | None = None
    times: Figure | None = None
    worked: Worked | None = None
    refused: str = ""

    @property
    def close(self) -> bool:
        """Whether the quickest is no clear winner over it."""
        return self.times is not None and too_close(self.times.band)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutlook:
    """
    What to expect.

    Args:
        plan: What was asked.
        results: The figures, with bands.
        worked: The central step in figures.
        modes: This way and the others.
        limited_by: What limits the batch of an instance: samples, staleness, cache or engine.
        doubts: The constants that make the band wide, most important first.
        stages: The same by stage.
    """

    plan: LoopPlan
    results: tuple[Figure, ...]
    worked: Worked
    modes: tuple[Mode, ...]
    limited_by: str
    doubts: tuple[Doubt, ...] = ()
    stages: tuple[Doubt, ...] = field(default=())

    def figure(self, key: str) -> Figure:
        """The result of that key."""
        return next(figure for figure in self.results if figure.key == key)

    @property
    def outlived(self) -> tuple[float, float] | None:
        """
        Where the longest response outlives the staleness cap of an async loop: its time, and the step that waits.

        None where it does not, or no async loop is looked at.
        """
        for mode in self.modes:
            if mode.way.loop != "async" or mode.worked is None or mode.seconds is None:
                continue
            longest = mode.worked.results["longest_response_seconds"].number
            cap = self.plan.max_staleness.number
            least = float(rl_step.step_waiting_for_longest(longest_seconds=longest, max_staleness=cap))
            return (longest, least) if least > mode.seconds.number else None
        return None

    @property
    def quickest(self) -> Mode:
        """The mode whose central step is the shortest."""
        return next(mode for mode in self.modes if mode.seconds is not None and mode.times is None)


def too_close(band: tuple[float, float] | None) -> bool:
    """Whether an 80 % interval of how many times longer something takes holds 1, so that neither is the winner."""
    return band is not None and band[0] <= 1.0 <= band[1]


def step_outlook(plan: LoopPlan, others: Sequence[Way], belief: Belief, seed: int) -> StepOutlook:
    """
    What to expect of a step.

    Args:
        plan: The loop.
        others: Other ways to run it on as many GPUs.
        belief: What is believed about the constants of `STAGES`.
        seed: Of the draws behind the bands.

    Raises:
        Refused: The loop cannot run as asked.
    """
    values, said = belief.drawn(seed), drawn(plan, seed)
    central = explained(plan, plan.way, belief)
    draws = worked(step_question(plan, plan.way, said), plan.way.gpus, values)
    results = [_banded(replace(figure, key=key), draws.results[key], seed) for key, figure in central.results.items()]
    scatter = {way: _seconds_of(plan, way, (said, values, belief.central()), seed) for way in (plan.way, *others)}
    constants, stages = _doubts(plan, belief)
    return StepOutlook(
        plan=plan,
        results=tuple(results),
        worked=central,
        modes=_compared(plan, belief, scatter),
        limited_by=_limited_by(plan, central),
        doubts=constants,
        stages=stages,
    )


def _seconds_of(plan: LoopPlan, way: Way, numbers_of: tuple[Any, Any, Mapping[str, float]], seed: int) -> Array | str:
    """Draws of the step of one way, from those of the plan and of the constants; or why it cannot run so."""
    said, values, central = numbers_of
    try:
        if way != plan.way:  # whether the loop itself can run has been judged, by what was measured of it too
            check_way(plan, way, central)
        seconds = worked(step_question(plan, way, said), way.gpus, values).step.seconds
    except Refused as refusal:
        return str(refusal)
    return _spread(seconds, seed, "step_seconds" if way == plan.way else _name(way))


def _name(way: Way) -> str:
    return f"{way.loop} {way.rollout_gpus:g} {way.trainer_gpus:g}"


def _spread(draws: Real, seed: int, name: str) -> Array:
    """Draws with the scatter of one measurement, which is another for each way."""
    whole = np.broadcast_to(np.asarray(draws, dtype=np.float64), (DRAWS,))
    found: Array = np.asarray(scattered(whole, _NOISE, seed, name))
    return found


def _compared(plan: LoopPlan, belief: Belief, scatter: Mapping[Way, Array | str]) -> tuple[Mode, ...]:
    """Every way with its step; against the quickest, how many times longer it takes on the same draws."""
    found: dict[Way, tuple[Worked, Figure, Array]] = {}
    for way, draws in scatter.items():
        if isinstance(draws, str):
            continue
        figures = explained(plan, way, belief)
        found[way] = (figures, replace(figures.step.seconds, band=interval(draws)), draws)
    quickest = min(found, key=lambda way: found[way][1].number)
    modes = []
    for way, draws in scatter.items():
        if isinstance(draws, str):
            modes.append(Mode(way=way, refused=draws))
            continue
        figures, seconds, own = found[way]
        times = None if way == quickest else _times(seconds, own, found[quickest])
        modes.append(Mode(way=way, seconds=seconds, times=times, worked=figures))
    return tuple(modes)


def _times(seconds: Figure, draws: Array, best: tuple[Worked, Figure, Array]) -> Figure:
    """How many times longer than the quickest, with the interval of the same draws."""
    key = "times_longer"
    ratio = numbers(key, rl_step.times_longer, step_seconds=draws, least_seconds=best[2])
    central = apply(key, rl_step.times_longer, step_seconds=seconds, least_seconds=best[1])
    return replace(central, band=interval(np.asarray(ratio)))


def _banded(figure: Figure, draws: Real, seed: int) -> Figure:
    """With the 80 % interval of the draws, one measurement's scatter added where there is one."""
    whole = np.broadcast_to(np.asarray(draws, dtype=np.float64), (DRAWS,))
    spread = whole if figure.key in _UNSCATTERED else _spread(whole, seed, figure.key)
    low, high = interval(spread)
    return replace(figure, band=(low, high) if high > low else None)


def _limited_by(plan: LoopPlan, central: Worked) -> str:
    """What the batch of an instance ran into."""
    batch, fleet = float(central.generation.batch), central.generation
    asked = plan.engine(plan.way).question
    if batch >= engine_limit(asked):
        return "engine"
    if batch >= float(fleet.capacity):
        return "cache"
    return "staleness" if plan.way.loop == "async" else "samples"


def _doubts(plan: LoopPlan, belief: Belief) -> tuple[tuple[Doubt, ...], tuple[Doubt, ...]]:
    """Shares of the variance of the step's logarithm, correlations left aside: by constant, and by stage."""
    question = step_question(plan, plan.way, bare(plan))
    slopes = sensitivity(belief, lambda values: [worked(question, plan.way.gpus, values).step.seconds])[0]
    parts = {name: float((slope * belief.spread(name)) ** 2) for name, slope in zip(belief.names, slopes, strict=True)}
    whole = sum(parts.values()) + _NOISE**2
    known = all_constants()
    ranked = sorted(parts, key=lambda name: parts[name], reverse=True)
    constants = [
        Doubt(name=name, meaning=known[name].meaning, share=parts[name] / whole)
        for name in ranked
        if name in known and parts[name] >= _TOLD * whole
    ]
    stages = {
        stage.name: sum(parts.get(one.name, 0.0) for one in stage.constants) / whole for stage in all_stages().values()
    }
    by_stage = [
        Doubt(name=name, meaning=name, share=stages[name])
        for name in sorted(stages, key=lambda name: stages[name], reverse=True)
        if stages[name] >= _TOLD
    ]
    return tuple(constants), tuple(by_stage)
