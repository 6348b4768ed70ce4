"""
A belief as a calibration keeps it, and back.

What measurements narrow is kept as directions in the space of logarithms over prior spreads: with few measurements a
few directions say what a matrix over all constants would, and no direction can be wider than the prior.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rlsize.estimates.belief import Belief, prior
from rlsize.facts.calibration import CalibratedConstant, CalibratedDirection

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from rlsize.estimates.constants import Constant, Stage
    from rlsize.facts.calibration import Calibration, CalibrationSetting

_NOTHING = 1e-9  # a change below it is rounding
_SAME = 1e-6  # relative difference of constants that were written and read
_SKEWED = 1e-3  # how far directions may be from orthonormal after being written and read

# Constants that stand for how software and set-up differ, beyond what kernels and links explain.
_SOFTWARE = (
    "stack_slowdown", "unseen_slowdown", "rank_imbalance", "rl_train_slowdown", "rl_train_moe_slowdown",
    "rl_forward_slowdown", "train_fixed_seconds", "train_exposed",
)  # fmt: skip
_SOFTWARE_PREFIXES = ("sync_fixed_", "sync_rate_", "sync_broadcast_", "step_")
_OTHER_MODEL, _OTHER_LAYOUT = 1.0, 0.5  # of the prior variance that comes back


def kept(before: Belief, after: Belief) -> tuple[list[CalibratedConstant], list[CalibratedDirection]]:
    """
    What changed from one belief to another over the same constants.

    Args:
        before: The prior: each constant on its own.
        after: The same after measurements.
    """
    spreads = np.sqrt(np.diag(before.covariance))
    free = spreads > 0
    scale = np.where(free, spreads, 1.0)
    left, vectors = np.linalg.eigh(after.covariance / np.outer(scale, scale))
    found = [
        (float(np.clip(share, 0.0, 1.0)), vector)
        for share, vector in zip(left, vectors.T, strict=True)
        if 1.0 - share > _NOTHING and np.abs(vector[free]).max(initial=0.0) > _NOTHING and not _fixed(vector, free)
    ]
    directions = [
        CalibratedDirection(
            left=share,
            weights={name: float(part) for name, part in zip(after.names, vector, strict=True) if abs(part) > _NOTHING},
        )
        for share, vector in found
    ]
    return _moved(before, after, {name for entry in directions for name in entry.weights}), directions


def _fixed(vector: NDArray[np.float64], free: NDArray[np.bool_]) -> bool:
    """Whether a direction lies among constants that are taken as known."""
    return bool(np.abs(vector[~free]).max(initial=0.0) > np.abs(vector[free]).max(initial=0.0))


def _moved(before: Belief, after: Belief, narrowed: set[str]) -> list[CalibratedConstant]:
    shift = after.mean - before.mean
    lean = np.exp(np.zeros(len(shift)) + after.lean)
    central = before.central()
    return [
        CalibratedConstant(
            name=name,
            prior=central[name],
            factor=float(np.exp(shift[place])),
            spread_before=before.spread(name),
            spread=after.spread(name),
            lean=float(lean[place]),
        )
        for place, name in enumerate(after.names)
        if name in narrowed or abs(shift[place]) > _NOTHING
    ]


def objection(calibration: Calibration, known: Mapping[str, Constant]) -> str:
    """Why a calibration cannot be used with the constants of this version; empty where it can."""
    named = {entry.name for entry in calibration.constants}
    for name in sorted(named | {name for entry in calibration.directions for name in entry.weights}):
        if name not in known:
            return f"knows a constant {name[:60]!r} that this version has not"
        if name not in named:
            return f"narrows {name} and does not list it under constants"
    for entry in calibration.constants:
        constant = known[entry.name]
        told = (entry.prior, entry.spread_before)
        if not np.allclose(told, (constant.value, constant.spread), rtol=_SAME, atol=_NOTHING):
            return (
                f"was made when {entry.name} was {entry.prior:g} (spread {entry.spread_before:g}), and now it is "
                f"{constant.value:g} (spread {constant.spread:g})"
            )
    vectors = _vectors(calibration, sorted(named))
    if not np.allclose(vectors @ vectors.T, np.eye(len(vectors)), atol=_SKEWED):
        return "has directions that are not orthonormal: it was changed by hand"
    return ""


def _vectors(calibration: Calibration, names: Sequence[str]) -> NDArray[np.float64]:
    """The directions as rows over the named constants."""
    rows = [[entry.weights.get(name, 0.0) for name in names] for entry in calibration.directions]
    return np.array(rows, dtype=float).reshape(len(rows), len(names))


def believed(calibration: Calibration, *stages: Stage) -> Belief:
    """
    What is believed of the constants of some stages after a calibration.

    Args:
        calibration: One that `objection` has nothing against.
        stages: The stages; what it says of others is left out.
    """
    before = prior(*stages)
    factors = {entry.name: entry.factor for entry in calibration.constants}
    shift = np.log([factors.get(name, 1.0) for name in before.names])
    leans = {entry.name: entry.lean for entry in calibration.constants}
    lean = np.log([leans.get(name, 1.0) for name in before.names])
    vectors = _vectors(calibration, before.names)
    narrowing = np.array([1.0 - entry.left for entry in calibration.directions])
    shares = np.eye(len(before.names)) - (vectors.T * narrowing) @ vectors
    spreads = np.sqrt(np.diag(before.covariance))
    covariance = np.outer(spreads, spreads) * shares
    return replace(before, mean=before.mean + shift, covariance=covariance, lean=lean)


def differences(calibration: Calibration, planned: CalibrationSetting) -> dict[str, tuple[str, str]]:
    """In what a plan differs from all that was measured: what was measured and what is planned, by field."""
    found = {}
    for field in ("model", "gpu", "engine", "rollout_layout", "trainer_layout"):
        plan = getattr(planned, field)
        seen = [value for value in (getattr(entry, field) for entry in calibration.made_for) if value]
        if plan and seen and plan not in seen:
            found[field] = (" and ".join(dict.fromkeys(seen)), plan)
    return found


def widened(belief: Belief, stages: Sequence[Stage], fields: Sequence[str]) -> Belief:
    """
    A calibrated belief for something else than was measured.

    What stands for software and set-up gets half of its prior variance back where GPU, engine or layout differ, and
    all of it where the model does; never more than it had.

    Args:
        belief: The calibrated belief.
        stages: Its stages.
        fields: In what the plan differs.
    """
    covariance = belief.covariance.copy()
    owners = {constant.name: (stage.name, constant.spread**2) for stage in stages for constant in stage.constants}
    for place, name in enumerate(belief.names):
        stage, full = owners[name]
        software = name.endswith(_SOFTWARE) or name.startswith(_SOFTWARE_PREFIXES)
        back = _back(stage, fields) * full if software else 0.0
        covariance[place, place] = max(covariance[place, place], min(full, covariance[place, place] + back))
    return replace(belief, covariance=covariance)


def _back(stage: str, fields: Sequence[str]) -> float:
    """Share of the prior variance that comes back to a stage."""
    if "model" in fields:
        return _OTHER_MODEL
    concerns = {"rollout": ("gpu", "engine", "rollout_layout"), "train": ("gpu", "trainer_layout")}
    return _OTHER_LAYOUT if set(fields) & set(concerns.get(stage, ("gpu", "rollout_layout", "trainer_layout"))) else 0.0
