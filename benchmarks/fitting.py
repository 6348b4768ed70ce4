"""
Constants fitted to records: the most likely ones of a Gaussian prior and of measurements whose errors have heavy tails.

The prior is what was believed before any record was looked at (`Constant.untuned`), so a fit without some records knows
nothing of them. Records of one table count together as a few at most, so that a long table does not outvote others.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rlsize.estimates.belief import STEP, at_moved, prior

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from rlsize.estimates.constants import Stage

    Residual = Callable[[Mapping[str, Any]], Any]

MOST_OF_A_TABLE = 6.0
NOISE = 0.1
"""Scatter of a logarithm in a fit; errors beyond 1.5 of it count less and less (Huber, Robust statistics)."""

_TURN = 1.5
_ROUNDS = 6


def untuned(stage: Stage) -> Stage:
    """A stage with its constants as they were before any record was looked at."""
    constants = [
        replace(one, value=one.untuned[0], spread=one.untuned[1]) if one.untuned is not None else one
        for one in stage.constants
    ]
    return replace(stage, constants=tuple(constants))


def fitted(residuals: Sequence[Residual], tables: Sequence[Hashable], stages: Sequence[Stage]) -> dict[str, float]:
    """
    The most likely values of all constants; those that are not fitted stay as they are.

    Args:
        residuals: For each record, the logarithm of predicted over measured from values of the constants, which come
            as arrays of points.
        tables: The table that each record belongs to.
        stages: The constants; those of the first stage are fitted, the others were fitted to records of their own.
    """
    belief = prior(untuned(stages[0]), *stages[1:])
    tunable = {constant.name for constant in stages[0].constants if constant.untuned}
    spread = np.sqrt(np.diag(belief.covariance))
    free = np.array([i for i, name in enumerate(belief.names) if name in tunable and spread[i] > 0], dtype=int)
    sizes = Counter(tables)
    weights = np.array([min(1.0, MOST_OF_A_TABLE / sizes[table]) for table in tables])
    point = belief.mean.copy()
    for _ in range(_ROUNDS if len(free) and residuals else 0):
        logs = at_moved(belief, point, free, lambda values: [residual(values) for residual in residuals])
        errors, slope = logs[:, -1], (logs[:, :-1] - logs[:, -1:]) / STEP
        scale = NOISE**2 * np.maximum(1.0, np.abs(errors) / (_TURN * NOISE)) / weights
        precision = np.diag(1 / spread[free] ** 2)
        pull = precision @ (point[free] - belief.mean[free]) + (slope.T / scale) @ errors
        point[free] -= np.clip(np.linalg.solve(precision + (slope.T / scale) @ slope, pull), -1.0, 1.0)
    return dict(zip(belief.names, np.exp(point).tolist(), strict=True))
