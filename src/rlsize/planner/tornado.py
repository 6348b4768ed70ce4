"""What a plan is most sensitive to: each input moved by itself, and whether another plan would win then."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rlsize.equations import kernel_time
from rlsize.estimates.figures import times_off, uncertain
from rlsize.estimates.step_assembly import assembled
from rlsize.planner.evaluation import results_of
from rlsize.planner.outlook import band_of
from rlsize.planner.step_parts import loop_parts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.estimates.step_assembly import LoopParts
    from rlsize.facts.figure import Figure
    from rlsize.planner.choice import Choice
    from rlsize.planner.options import LoopProblem, Placement
    from rlsize.planner.outlook import Outlook, Terms

USUAL = 0.2
"""Share by which an input is moved that nobody gave a spread."""
_STAGES = {
    "rollout": ("generation_seconds", "tail_seconds"),
    "trainer": ("update_seconds", "logprob_seconds"),
    "sync": ("sync_seconds",),
    "overhead": ("overhead_seconds",),
}
_MEANINGS = {
    "response_tokens": "mean response length",
    "response_cv": "spread of response lengths (tail)",
    "rollout": "time of generation",
    "trainer": "time of the trainer",
    "sync": "time of the weight sync",
    "overhead": "switching and handling",
    "rollout_gpu_hour_usd": "price of a rollout GPU-hour",
    "trainer_gpu_hour_usd": "price of a trainer GPU-hour",
    "gpu_hour_usd": "price of a GPU-hour",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Swing:
    """
    An input at its two ends, all others as they are.

    Args:
        name: The input.
        meaning: It in words.
        ends: Its two ends over its central value. [1]
        low: The metric at the first.
        high: The metric at the second.
        basis: Where the ends come from.
        flips: A plan that is better at an end, in a few words; empty where the best stays the best.
    """

    name: str
    meaning: str
    ends: tuple[float, float]
    low: float
    high: float
    basis: str
    flips: str = ""

    @property
    def width(self) -> float:
        """How far the metric swings."""
        return abs(self.high - self.low)


def tornado(outlook: Outlook, chosen: Choice) -> tuple[Swing, ...]:
    """
    The inputs that the plan is most sensitive to, widest swing first.

    Args:
        outlook: How placements are worked out.
        chosen: The plan and its alternatives.
    """
    problem, place = outlook.problem, chosen.best.place
    swings = [_of_input(outlook, chosen, figure) for figure in _inputs(problem, place, chosen.metric)]
    parts: dict[int, LoopParts] = {}
    swings += [_of_stage(outlook, chosen, stage, parts) for stage in _STAGES]
    told = [swing for swing in swings if swing is not None and swing.width > 0]
    return tuple(sorted(told, key=lambda swing: -swing.width))


def _inputs(problem: LoopProblem, place: Placement, metric: str) -> list[Figure]:
    """Inputs that move by themselves: lengths, and prices where the metric is money."""
    found = [problem.response_tokens, *([problem.samples] if problem.samples.deviation else [])]
    found += [problem.response_cv] if problem.response_cv.known and place.fleet.engines else []
    if metric == "cost_per_step_usd":
        prices = [place.trainer.gpu_hour] if place.shared else [place.fleet.gpu_hour, place.trainer.gpu_hour]
        found += list({figure.key: figure for figure in prices}.values())
    return found


def _ends(figure: Figure) -> tuple[tuple[float, float], str]:
    """Both ends of an input over its value, and where they come from."""
    if figure.deviation:
        return (times_off(figure, -1.0), times_off(figure, 1.0)), "its own spread"
    return (1.0 - USUAL, 1.0 + USUAL), f"± {USUAL:.0%}"


@dataclass(frozen=True, slots=True)
class Moved:
    """
    Central numbers with one input moved.

    Args:
        key: The input.
        factor: By how much.
    """

    key: str
    factor: float

    def of(self, figure: Figure) -> float:
        """The value of a figure, worked out again where it depends on the input."""
        if figure.function is not None and figure.inputs:
            inputs = {name: self.of(entry) for name, entry in figure.inputs.items()}
            return float(figure.function(**inputs))
        return figure.number * (self.factor if figure.key == self.key else 1.0)


def _of_input(outlook: Outlook, chosen: Choice, figure: Figure) -> Swing | None:
    """One input at both ends."""
    ends, basis = _ends(figure)
    known = chosen.best.place.trainer.seconds
    ways = []
    for end in ends:
        moved = Moved(figure.key, end)
        factors: dict[str, float] = {}
        if figure.key == "response_tokens" and known.known and moved.of(known) == known.number:
            factors = dict.fromkeys(_STAGES["trainer"], end)  # a time that was measured is that of the lengths then
        ways.append(_Way(replace(outlook.central, said=moved.of), factors, {}))
    return _swing(chosen, figure.key, ends, basis, ways)


def _of_stage(outlook: Outlook, chosen: Choice, stage: str, parts: dict[int, LoopParts]) -> Swing | None:
    """One stage at the ends of its band; where it is a point, the usual share to both sides."""
    keys = _STAGES[stage]
    central = loop_parts(outlook.central, chosen.best.place)
    value = float(np.asarray(getattr(central, keys[0])))
    if value <= 0:
        return None
    drawn = np.asarray(getattr(loop_parts(outlook.drawn, chosen.best.place), keys[0]), dtype=float)
    ends, basis = (1.0 - USUAL, 1.0 + USUAL), f"± {USUAL:.0%}"
    if drawn.ndim and _spread_of_its_own(outlook, stage):
        band = band_of(drawn)
        if band is not None:
            ends, basis = (band[0] / value, band[1] / value), "its 80 % band"
    ways = [_Way(outlook.central, dict.fromkeys(keys, end), parts) for end in ends]
    return _swing(chosen, stage, ends, basis, ways)


def _spread_of_its_own(outlook: Outlook, stage: str) -> bool:
    """Whether a stage's band is of its own, and not only that of the lengths."""
    return outlook.belief is not None or (stage == "rollout" and uncertain(outlook.problem.headroom))


@dataclass(frozen=True, slots=True)
class _Way:
    """
    Placements with something moved.

    Args:
        terms: In which they are worked out.
        factors: Parts of a step that are longer or shorter, by key. [1]
        parts: The parts of steps that are worked out already, by the identity of the placement.
    """

    terms: Terms
    factors: Mapping[str, float]
    parts: dict[int, LoopParts]

    def metric(self, place: Placement, metric: str) -> float:
        """The metric of a placement."""
        if id(place) not in self.parts:
            self.parts[id(place)] = loop_parts(self.terms, place)
        parts = self.parts[id(place)]
        moved: dict[str, Any] = {
            key: kernel_time.slowed(seconds=getattr(parts, key), slowdown=factor)
            for key, factor in self.factors.items()
        }
        step = assembled(self.terms.work, replace(parts, **moved))
        return float(results_of(self.terms, place, step)[metric])


def _swing(chosen: Choice, name: str, ends: tuple[float, float], basis: str, ways: Sequence[_Way]) -> Swing:
    values = [way.metric(chosen.best.place, chosen.metric) for way in ways]
    flips = ""
    for value, way in zip(values, ways, strict=True):
        flips = flips or _better(chosen, way, value)
    return Swing(
        name=name,
        meaning=_MEANINGS.get(name, name.replace("_", " ")),
        ends=ends,
        low=values[0],
        high=values[1],
        basis=basis,
        flips=flips,
    )


def _better(chosen: Choice, way: _Way, value: float) -> str:
    """An alternative that beats the best one now."""
    for other in chosen.others:
        if way.metric(other.place, chosen.metric) < value * (1.0 - 1e-9):
            return other.place.words
    return ""
