"""Response lengths from normal variables, so that alternatives can share their draws."""

from __future__ import annotations

from functools import lru_cache
from math import inf, lgamma, sqrt
from typing import TYPE_CHECKING

import numpy as np

from rlsize.equations import batch_drain, lengths

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rlsize.simulator.setting import LengthSetting

    Floats = NDArray[np.float64]

_GRID = 4001  # points of a tabulated quantile function
_NORMAL = 8.0  # standard normal deviates beyond which hardly a draw goes
_PER_STEPS = 1000.0  # optimizer steps over which drift counts
_ALMOST = 0.999  # of the cap, above which a mean cannot be reached with a spread


def tokens_of(setting: LengthSetting, shared: Floats, own: Floats, batch: Floats) -> NDArray[np.int64]:
    """
    Response lengths.

    Args:
        setting: Their distribution.
        shared: A standard normal for each group. [group]
        own: A standard normal for each sample. [member, group]
        batch: The optimizer step, roughly, for which a group is generated. [group]

    Returns:
        Whole tokens, at least 1. [member, group]
    """
    rho = setting.correlation
    normal = np.sqrt(rho) * shared + np.sqrt(1.0 - rho) * own
    raw = _quantile(setting, normal) * (1.0 + setting.drift * batch / _PER_STEPS)
    return np.maximum(1, np.rint(np.minimum(raw, setting.cap))).astype(np.int64)


def _quantile(setting: LengthSetting, normal: Floats) -> Floats:
    """The length that as many are shorter than as normal variables are smaller, the cap left out."""
    if setting.shape == "constant" or (setting.cv == 0.0 and setting.shape != "empirical"):
        return np.full_like(normal, setting.mean)
    if setting.shape == "lognormal":
        mean = setting.mean
        if setting.cap < inf:
            mean = batch_drain.uncapped_mean(
                mean_tokens=min(mean, _ALMOST * setting.cap), length_cv=setting.cv, max_tokens=setting.cap
            )
        return np.asarray(lengths.lognormal_quantile(mean=mean, variation=setting.cv, deviate=normal))
    grid, table = _table(setting)
    if setting.shape == "empirical":
        return np.asarray(setting.values, dtype=float)[np.searchsorted(table, normal, side="right")]
    return np.interp(normal, grid, table)


@lru_cache(maxsize=8)
def _table(setting: LengthSetting) -> tuple[Floats, Floats]:
    """Deviates, and quantiles there; for an empirical distribution the deviates at which the next value begins."""
    grid = np.linspace(-_NORMAL, _NORMAL, _GRID)
    share = np.asarray(lengths.normal_share(deviate=grid))
    if setting.shape == "empirical":
        return grid, np.interp(np.arange(1, len(setting.values)) / len(setting.values), share, grid)
    return grid, _gamma(setting, share)


def _gamma(setting: LengthSetting, share: Floats) -> Floats:
    """Quantiles of a gamma distribution whose mean is that of the setting once the cap has cut it."""
    shape = 1.0 / setting.cv**2
    logs = np.linspace(np.log(1e-9 / shape), np.log(1.0 + 60.0 * (setting.cv + setting.cv**2)), 20 * _GRID)
    at = np.exp(logs)  # in units of the mean
    density = np.exp(shape * (np.log(shape) + logs) - shape * at - lgamma(shape))  # times dx = x dlog x
    below = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(logs))])
    quantiles = np.interp(share, below / below[-1], at)
    if setting.cap == inf:
        return setting.mean * quantiles
    target = min(setting.mean, _ALMOST * setting.cap)
    low, high = target, target * 1e6
    for _ in range(80):
        middle = sqrt(low * high)
        mean = np.interp(np.log(setting.cap / middle), logs, _limited(at, below / below[-1])) * middle
        low, high = (middle, high) if mean < target else (low, middle)
    return sqrt(low * high) * quantiles


def _limited(at: Floats, below: Floats) -> Floats:
    """E[min(X, x)] at each x: the integral of what is above."""
    above = 1.0 - below
    return np.concatenate([[at[0]], at[0] + np.cumsum((above[1:] + above[:-1]) / 2 * np.diff(at))])
