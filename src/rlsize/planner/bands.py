"""Bands of joint draws."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def band_of(draws: NDArray[np.float64]) -> tuple[float, float] | None:
    """The 80 % interval of draws; None where all are alike."""
    if draws.min() == draws.max():
        return None
    from rlsize.estimates.belief import interval

    low, high = interval(draws)
    return (low, high) if high > low else None
