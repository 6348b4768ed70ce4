"""
What is believed about the constants: a Gaussian over their logarithms, narrowed by measurements.

Prior: each constant on its own, at its central value with its spread. A measurement conditions the Gaussian (a Kalman
update, iterated because predictions bend), so that little data moves little, and what it says about one stage stays
correlated with the others. Bands are draws from it; the same seed gives the same draws for every alternative.
"""

from __future__ import annotations

import zlib
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from rlsize.errors import Refused
from rlsize.estimates.figures import DRAWS, HIGH, LOW, Draw, generator, in_draws, quantile, uncertain
from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from rlsize.equations._ops import Real
    from rlsize.estimates.constants import Stage
    from rlsize.facts.figure import Figure

STEP = 1e-3  # of a logarithm, for derivatives
_ROUNDS = 16  # of the update at most; a step's phases bend where one of them takes over
_SETTLED = 1e-4  # change of a logarithm that ends the rounds
_LEANING = 2  # rounds in which draws are moved to what was measured


@dataclass(frozen=True, slots=True, eq=False)
class Belief:
    """
    A Gaussian over the logarithms of constants.

    Args:
        names: The constants.
        mean: Mean of their logarithms, in the order of the names.
        covariance: Covariance of their logarithms.
        lean: How far draws lie beside the mean: predictions bend, and their median should explain what was measured.
    """

    names: tuple[str, ...]
    mean: NDArray[np.float64]
    covariance: NDArray[np.float64]
    lean: NDArray[np.float64] | float = 0.0

    def central(self) -> dict[str, float]:
        """The central value of each constant."""
        return dict(zip(self.names, np.exp(self.mean).tolist(), strict=True))

    def spread(self, name: str) -> float:
        """Standard deviation of the logarithm of a constant."""
        place = self.names.index(name)
        return float(np.sqrt(max(self.covariance[place, place], 0.0)))

    def drawn(self, seed: int, draws: int = DRAWS) -> dict[str, NDArray[np.float64]]:
        """
        Joint draws of all constants, one array each.

        A constant's own random numbers depend on the seed and its name only, so alternatives that share constants
        share their draws.
        """
        normal = _normals(seed, self.names, draws)
        spreads = self.covariance.diagonal()
        if np.count_nonzero(self.covariance) == np.count_nonzero(spreads):  # nothing measured: the root is as diagonal
            scaled = np.sqrt(np.clip(spreads, 0.0, None))[:, None] * normal
        else:
            scaled = _root(np.ascontiguousarray(self.covariance, dtype=np.float64).tobytes(), len(self.names)) @ normal
        values = np.exp((self.mean + self.lean)[:, None] + scaled)
        return dict(zip(self.names, values, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class BandSource:
    """
    Something that makes a band wide.

    Args:
        name: A constant, or a stage.
        meaning: What it is.
        share: Share of the variance of the prediction's logarithm that comes from it. [1]
    """

    name: str
    meaning: str
    share: float


def prior(*stages: Stage) -> Belief:
    """What is believed before anything is measured."""
    constants = [constant for stage in stages for constant in stage.constants]
    return Belief(
        tuple(constant.name for constant in constants),
        np.log([constant.value for constant in constants]),
        np.diag([constant.spread**2 for constant in constants]),
    )


def conditioned(
    belief: Belief,
    predict: Callable[[Mapping[str, Real]], Sequence[Real]],
    measured: Sequence[float],
    noise: Sequence[float],
) -> Belief:
    """
    What is believed after measurements.

    Args:
        belief: What was believed before.
        predict: The measured quantities from values of the constants, which come as arrays of points; positive.
        measured: What was measured, in the same order and units.
        noise: Standard deviation of the logarithm of each measurement.

    Returns:
        The Gaussian with the mean at the most likely constants and the covariance of the linearised predictions there;
        the median of its draws predicts what the mean does.
    """
    seen = np.log(np.asarray(measured, dtype=float))
    scatter = np.diag(np.asarray(noise, dtype=float) ** 2)
    mean = belief.mean
    for _ in range(_ROUNDS):
        expected, slope = _linearised(belief, predict, mean)
        gain = belief.covariance @ slope.T @ np.linalg.inv(slope @ belief.covariance @ slope.T + scatter)
        before, mean = mean, belief.mean + gain @ (seen - expected - slope @ (belief.mean - mean))
        if np.abs(mean - before).max(initial=0.0) < _SETTLED:
            break
    covariance = belief.covariance - gain @ slope @ belief.covariance
    after = replace(belief, mean=mean, covariance=(covariance + covariance.T) / 2, lean=np.zeros(len(mean)))
    for _ in range(_LEANING):
        middle = np.log([np.median(value) for value in predict(after.drawn(0))])
        after = replace(after, lean=after.lean + gain @ (expected - middle))
    return after


def settled(
    belief: Belief,
    predict: Callable[[Mapping[str, Real]], Sequence[Real]],
    measured: Sequence[float],
    noise: Sequence[float],
    why: str,
) -> Belief:
    """
    What is believed after measurements, as `conditioned`.

    Raises:
        Refused: For that reason: the measurements leave no belief that is finite.
    """
    try:
        with np.errstate(all="ignore"):  # what does not settle is refused below
            after = conditioned(belief, predict, measured, noise)
    except np.linalg.LinAlgError as error:
        raise Refused(f"{why}: {error}") from None
    if not (np.isfinite(after.mean).all() and np.isfinite(after.covariance).all()):
        raise Refused(f"{why}: the constants run away")
    return after


def sensitivity(belief: Belief, predict: Callable[[Mapping[str, Real]], Sequence[Real]]) -> NDArray[np.float64]:
    """Derivative of the logarithm of each predicted quantity by the logarithm of each constant, at the mean."""
    return _linearised(belief, predict, belief.mean)[1]


def variance_shares(
    belief: Belief, predict: Callable[[Mapping[str, Real]], Real], noise: float = 0.0
) -> dict[str, float]:
    """
    Each constant's share of the variance of a prediction's logarithm, the largest first; correlations are left aside.

    Args:
        belief: What is believed about the constants.
        predict: The prediction from values of the constants.
        noise: Standard deviation of the logarithm of one measurement, which takes its share. [1]
    """
    slopes = sensitivity(belief, lambda values: [predict(values)])[0]
    parts = {name: float((slope * belief.spread(name)) ** 2) for name, slope in zip(belief.names, slopes, strict=True)}
    whole = sum(parts.values()) + noise**2 or 1.0
    return {name: parts[name] / whole for name in sorted(parts, key=lambda name: parts[name], reverse=True)}


def _linearised(
    belief: Belief, predict: Callable[[Mapping[str, Real]], Sequence[Real]], mean: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Logarithms of the predictions at a point, and their derivatives, from one call on an array of moved points."""
    free = np.flatnonzero(np.diag(belief.covariance) > 0)
    logs = np.log(at_moved(belief, mean, free, predict))
    slope = np.zeros((len(logs), len(mean)))
    slope[:, free] = (logs[:, :-1] - logs[:, -1:]) / STEP
    return logs[:, -1], slope


def at_moved(
    belief: Belief,
    point: NDArray[np.float64],
    free: NDArray[np.int_],
    predict: Callable[[Mapping[str, Real]], Sequence[Real]],
) -> NDArray[np.float64]:
    """What is predicted with the logarithm of each free constant moved by `STEP` from a point, and at it, last."""
    points = np.repeat(point[:, None], len(free) + 1, axis=1)
    points[free, np.arange(len(free))] += STEP
    predicted = predict(dict(zip(belief.names, np.exp(points), strict=True)))
    return np.array([np.broadcast_to(value, points.shape[1:]) for value in predicted], dtype=np.float64)


def drawn_inputs(figures: Mapping[str, Figure], seed: int) -> dict[str, NDArray[np.float64]]:
    """Joint draws of the figures that are uncertain."""
    random = generator(seed)
    moving = {name: figure for name, figure in figures.items() if uncertain(figure)}
    joint = [Draw(random) for _ in range(DRAWS if moving else 0)]
    return {name: np.array(in_draws(figure, joint), dtype=float) for name, figure in moving.items()}


def scattered(value: Real, noise: float, seed: int, name: str) -> Real:
    """Draws of a prediction with the scatter of one measurement added; `name` tells measurements apart."""
    return value * np.exp(noise * _normal(seed, name, DRAWS))


def interval(draws: NDArray[np.float64]) -> tuple[float, float]:
    """The 80 % interval of draws."""
    ordered = np.sort(draws).tolist()  # np.quantile loads masked arrays, which takes longer than all of it
    return quantile(ordered, LOW), quantile(ordered, HIGH)


def _normal(seed: int, name: str, draws: int) -> NDArray[np.float64]:
    return np.random.default_rng([seed, zlib.crc32(name.encode())]).standard_normal(draws)


@lru_cache(maxsize=8)
def _normals(seed: int, names: tuple[str, ...], draws: int) -> NDArray[np.float64]:
    """Random numbers of all constants, one row each, kept as every alternative has the same."""
    return np.array([_normal(seed, name, draws) for name in names]).reshape(len(names), draws)


@lru_cache(maxsize=8)
def _root(content: bytes, size: int) -> NDArray[np.float64]:
    """
    The symmetric square root of a covariance, kept as it takes longer than most of what is asked about one belief.

    A diagonal covariance keeps each constant's own draws, and one that is narrowed a little changes them a little.
    """
    covariance = np.frombuffer(content, dtype=np.float64).reshape(size, size)
    values, vectors = np.linalg.eigh(covariance)
    root: NDArray[np.float64] = (vectors * np.sqrt(np.clip(values, 0.0, None))) @ vectors.T
    return root
