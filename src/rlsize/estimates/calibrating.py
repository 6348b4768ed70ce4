"""
Measurements beside what predicts them, what they say about the constants, and which further one would say most.

Each measurement is one point of a Gaussian update in logarithms (`estimates/belief.py`). All points go in at once, so
their order does not matter.
"""

from __future__ import annotations

import math
from dataclasses import field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from rlsize.errors import Refused
from rlsize.estimates.belief import prior, sensitivity, settled
from rlsize.facts.calibration import CalibrationSetting
from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rlsize.equations._ops import Real
    from rlsize.estimates.belief import Belief
    from rlsize.estimates.constants import Stage

    Predict = Callable[[Mapping[str, Real]], Real]

SCATTER = 0.02  # of a measurement that does not say how far its repeats lie apart
_LEAST_SCATTER = 0.03  # of one point against its neighbour: runs of the same setup differ by as much
_SURE = 2.0  # standard deviations beyond which neighbours contradict each other
_ODD = 3.0  # standard deviations from what was believed beyond which a measurement is doubted
EDGE = 1.2815515655446004  # standard deviations from the median to the end of an 80 % interval


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measurable:
    """
    Something that can be measured and is predicted.

    Args:
        what: What it is.
        unit: Its unit.
        predict: The prediction from values of the constants.
        stages: The stages of those constants.
        noise: Standard deviation of its logarithm around its prediction when all constants are known. [1]
        setting: What runs.
    """

    what: str
    unit: str = "s"
    predict: Predict
    stages: tuple[Stage, ...]
    noise: float
    setting: CalibrationSetting = field(default_factory=CalibrationSetting)

    @property
    def central(self) -> float:
        """
        The prediction before any calibration.

        Raises:
            Refused: It cannot be predicted.
        """
        return float(self.predict(prior(*self.stages).central()))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Point:
    """
    One measurement beside its prediction.

    Args:
        of: What was measured.
        source: Who says so.
        measured: Its value.
        scatter: Standard deviation of its logarithm over repeats. [1]
        series: Points of one series are neighbours; none where empty.
        place: Where it stands on the axis of its series.
        rising: Whether values rise along that axis, or fall.
        limit: Standard deviations from what was believed up to which constants may explain it; the rest is its own.
    """

    of: Measurable
    source: str
    measured: float
    scatter: float = SCATTER
    series: str = ""
    place: float = 0.0
    rising: bool = True
    limit: float = math.inf

    @property
    def spread(self) -> float:
        """Scatter of measurement and of prediction together. [1]"""
        return math.hypot(self.scatter, self.of.noise)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """
    A point with its predictions.

    Args:
        point: The measurement.
        before: Predicted before calibration.
        band: 80 % band of that, scatter included.
        after: Predicted with the calibration.
        odd: How many standard deviations the measurement lies from what was believed. [1]
    """

    point: Point
    before: float
    band: tuple[float, float]
    after: float
    odd: float

    @property
    def doubtful(self) -> bool:
        """Whether something else than the constants must be behind it."""
        return abs(self.odd) > _ODD


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Calibrated:
    """
    What points say.

    Args:
        before: What was believed.
        after: What is believed now.
        compared: The points with their predictions.
    """

    before: Belief
    after: Belief
    compared: tuple[Compared, ...]


def calibrated(points: Sequence[Point], *stages: Stage) -> Calibrated:
    """
    What points say about the constants.

    Args:
        points: The measurements.
        stages: Further stages that take part, as what is said about one is correlated with another.

    Raises:
        Refused: A point cannot be predicted, or the update does not settle.
    """
    every = {stage.name: stage for stage in (*stages, *(one for point in points for one in point.of.stages))}
    before = prior(*(every[name] for name in sorted(every)))  # so that the order of sources does not matter
    predict = _together([point.of.predict for point in points])
    first = _checked(points, predict(before.central()))
    if not points:
        return Calibrated(before=before, after=before, compared=())
    slope, scatter = sensitivity(before, predict), np.array([point.spread for point in points])
    deviations = np.sqrt(np.diag(slope @ before.covariance @ slope.T) + scatter**2).tolist()
    taken = [_within(point, earlier, width) for point, earlier, width in zip(points, first, deviations, strict=True)]
    why = "the measurements contradict each other beyond what constants can explain"
    after = settled(before, predict, taken, scatter.tolist(), why)
    last = _checked(points, predict(after.central()))
    return Calibrated(
        before=before,
        after=after,
        compared=tuple(
            Compared(
                point=point,
                before=earlier,
                band=(earlier * math.exp(-EDGE * deviation), earlier * math.exp(EDGE * deviation)),
                after=later,
                odd=math.log(point.measured / earlier) / deviation,
            )
            for point, earlier, later, deviation in zip(points, first, last, deviations, strict=True)
        ),
    )


def _within(point: Point, predicted: float, deviation: float) -> float:
    """What of a measurement constants may explain."""
    if math.isinf(point.limit):
        return point.measured
    most = math.exp(point.limit * deviation)
    return min(max(point.measured, predicted / most), predicted * most)


def _together(predicts: Sequence[Predict]) -> Callable[[Mapping[str, Real]], list[Any]]:
    def predict(values: Mapping[str, Real]) -> list[Any]:
        return [one(values) for one in predicts]

    return predict


def _checked(points: Sequence[Point], values: Sequence[Any]) -> list[float]:
    found = [float(value) for value in values]
    for point, value in zip(points, found, strict=True):
        if not (math.isfinite(value) and value > 0):
            raise Refused(f"{point.of.what} ({point.source}) cannot be predicted")
    return found


def contradiction(points: Sequence[Point]) -> tuple[Point, str] | None:
    """
    The first point that its neighbours contradict, with the reason; None where all agree.

    Rates must not fall while concurrency rises, and so on, by more than the measurements scatter. Of the two that
    contradict each other, the one is named that the prediction and the other points fit worse.
    """
    for name in dict.fromkeys(point.series for point in points if point.series):
        series = sorted((point for point in points if point.series == name), key=lambda point: point.place)
        for low, high in pairwise(series):
            if low.place == high.place or not _against(low, high):
                continue
            worse = max((low, high), key=lambda one: _residual(one, series))
            place = series.index(worse)
            beside = [series[at] for at in (place - 1, place + 1) if 0 <= at < len(series)]
            told = " and ".join(f"{one.of.what}: {one.measured:.6g} {one.of.unit} ({one.source})" for one in beside)
            turn = "fall" if worse.rising else "rise"
            return (
                worse,
                f"{worse.measured:.6g} {worse.of.unit} does not fit its neighbours, as it makes them {turn}: {told}",
            )
    return None


def _against(low: Point, high: Point) -> bool:
    step = math.log(high.measured / low.measured) * (1.0 if low.rising else -1.0)
    return step < -_SURE * math.hypot(max(low.scatter, _LEAST_SCATTER), max(high.scatter, _LEAST_SCATTER))


def _residual(point: Point, series: Sequence[Point]) -> float:
    """How far measured over predicted lies from that of the others; from one, where there is but one other."""
    own = math.log(point.measured / point.of.central)
    others = [math.log(one.measured / one.of.central) for one in series if one is not point]
    return abs(own - float(np.median(others))) if len(others) > 1 else abs(own)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """
    What a further measurement would do.

    Args:
        what: What would be measured.
        before: Half the 80 % band of the target now: +x over its median. [1]
        after: The same with the measurement. [1]
    """

    what: str
    before: float
    after: float


def outlooks(belief: Belief, target: Measurable, candidates: Sequence[Measurable]) -> list[Outlook]:
    """
    How far each further measurement would narrow the target's band, the most useful first.

    The posterior covariance of a linear measurement does not depend on what it will show, so this is closed form.

    Args:
        belief: What is believed now.
        target: What is to be known.
        candidates: What could be measured.
    """
    slope = sensitivity(belief, _together([target.predict, *(one.predict for one in candidates)]))
    if not np.isfinite(slope).all():
        return []
    wanted = slope[0]
    spread = float(wanted @ belief.covariance @ wanted)
    found = []
    for one, row in zip(candidates, slope[1:], strict=True):
        toward = float(wanted @ belief.covariance @ row)
        own = float(row @ belief.covariance @ row) + math.hypot(one.noise, SCATTER) ** 2
        left = max(0.0, spread - toward**2 / own)
        ends = [half_band(math.sqrt(variance + target.noise**2)) for variance in (spread, left)]
        found.append(Outlook(what=one.what, before=ends[0], after=ends[1]))
    return sorted(found, key=lambda one: one.after)


def half_band(spread: float) -> float:
    """The upper half of an 80 % band over its median, from the standard deviation of the logarithm. [1]"""
    return math.expm1(EDGE * spread)
