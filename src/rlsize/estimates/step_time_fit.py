"""The engine step fitted over everything that was recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.equations.engine_step import engine_step_time
from rlsize.facts.measured import StepTimeFit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.estimates.rollout_rate import Interval

SURE = 2.0  # a coefficient within so many of its standard errors of zero cannot be told from it
SPARE = 3  # intervals more than coefficients that a fit needs
_FIXED = 0


def step_time_fit(intervals: Sequence[Interval]) -> StepTimeFit | None:
    """
    Seconds per engine step against batch, live KV tokens and prompt tokens, by least squares of the relative error.

    Coefficients that come out negative, or cannot be told from zero, are left out one by one, the least certain first;
    the fixed time stays as long as it is positive.

    Args:
        intervals: Mean steps between two pages; a mean of steps obeys the same law as one step, as the law is linear.

    Returns:
        The fit; None where there are too few intervals to make one.
    """
    import numpy as np  # noqa: PLC0415 (a command without a fit does not load it)

    used = [entry for entry in intervals if entry.steps and entry.live_tokens is not None]
    if len(used) < 4 + SPARE:
        return None
    seconds = np.array([entry.step_seconds for entry in used])
    columns = np.array([[1.0, entry.batch, entry.live_tokens or 0.0, entry.prefill_tokens] for entry in used])
    coefficients = _solved(columns, seconds)
    fitted = engine_step_time(*coefficients, *columns[:, 1:].T)
    residual = float(np.sqrt(np.mean((fitted / seconds - 1.0) ** 2)))
    return StepTimeFit(
        t0_seconds=float(coefficients[0]),
        t1_seconds=float(coefficients[1]),
        t2_seconds=float(coefficients[2]),
        t3_seconds=float(coefficients[3]),
        residual_fraction=residual,
        intervals=len(used),
        smallest_batch=min(entry.batch for entry in used),
        largest_batch=max(entry.batch for entry in used),
    )


def _solved(columns: Any, seconds: Any) -> Any:  # noqa: ANN401 (numpy arrays)
    """The coefficients; those that are left out are zero."""
    import numpy as np  # noqa: PLC0415 (as above)

    kept = [index for index in range(columns.shape[1]) if np.ptp(columns[:, index]) > 0 or index == _FIXED]
    while True:
        scale = np.abs(columns[:, kept]).max(axis=0)
        matrix = columns[:, kept] / scale / seconds[:, None]
        found, *_ = np.linalg.lstsq(matrix, np.ones(len(seconds)), rcond=None)
        errors = _standard_errors(matrix, found)
        certain = found / np.maximum(errors, 1e-12)
        weak = [
            place
            for place, index in enumerate(kept)
            if found[place] <= 0 or (index != _FIXED and certain[place] < SURE)
        ]
        if not weak or len(kept) == 1:
            break
        kept.pop(min(weak, key=lambda place: certain[place]))
    result = np.zeros(columns.shape[1])
    result[kept] = np.maximum(found / scale, 0.0)
    return result


def _standard_errors(matrix: Any, found: Any) -> Any:  # noqa: ANN401 (numpy arrays)
    import numpy as np  # noqa: PLC0415 (as above)

    left = np.ones(len(matrix)) - matrix @ found
    variance = float(left @ left) / max(1, len(matrix) - len(found))
    return np.sqrt(np.maximum(0.0, np.diag(np.linalg.pinv(matrix.T @ matrix)) * variance))
