"""
The constants of the predictions: each a positive number with a spread, its meaning and where it comes from.

A stage is a set of constants and the scatter that is left when all of them are known. Bands are draws of the constants
(`estimates/belief.py`), and a calibration is what measurements say about them.
"""

from __future__ import annotations

from typing import Literal

from rlsize.frozen import dataclass

Basis = Literal["specified", "kernels", "published", "fitted", "assumed"]


@dataclass(frozen=True, slots=True)
class Constant:
    """
    One constant of a prediction.

    Args:
        name: Its name, unique over all stages.
        value: Central value, in base units.
        spread: Standard deviation of its natural logarithm; 0 where it is taken as known.
        unit: Base unit, as in docstrings of equations.
        basis: kernels (measured kernels), published (somebody's figure), fitted (to tuning records), specified
            (follows from a definition) or assumed.
        meaning: What it is, in a line.
        source: Where it comes from; for a fitted one, which records.
        untuned: Value and spread before it was fitted; None where it never was.
    """

    name: str
    value: float
    spread: float
    unit: str
    basis: Basis
    meaning: str
    source: str
    untuned: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.value <= 0 or self.spread < 0:
            raise ValueError(f"{self.name} must be positive with a spread that is not negative")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """
    What predicts one stage of the loop.

    Args:
        name: rollout, train, sync, step or memory.
        constants: Its constants.
        noise: Standard deviation of the logarithm of one measurement around the prediction when all constants are
            known: what no calibration removes. [1]
    """

    name: str
    constants: tuple[Constant, ...]
    noise: float
