"""The peak of a run's trainer: what of it the model explains, and what lies beside that once the loop is changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rlsize.equations import training_peak
from rlsize.estimates.belief import scattered
from rlsize.estimates.memory_phases import PASSES
from rlsize.facts.calibration import WORKING, OwnMemory

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.memory_phases import Phase
    from rlsize.facts.run_log import RunSummary

PEAKING = PASSES | {"optimizer"}
"""Phases of a step in one of which a trainer's peak stands."""

_TENSORS = ("trainer_weights", "gradients", "optimizer", "adapters", "reference", "critic", "reward", *WORKING)
_GROWTH = 0.5  # of what is not known with the work on tokens: nobody knows whether none of it or all ...
_GROWTH_SPREAD = 1.0  # ... so that this is the spread of its logarithm, up to all


class Beyond(NamedTuple):
    """
    What a phase holds beside what the model knows.

    Args:
        central: By the central constants. [B]
        drawn: By draws of them. [B]
        changed: How far the trainer's tensors are from those of the run, at most 1. [1]
    """

    central: float
    drawn: Real
    changed: float


def own_memory(phases: Mapping[str, Mapping[str, float]], run: RunSummary) -> OwnMemory | None:
    """
    The peak of a trainer as its log has it, and as it is predicted; None where either is not known.

    Args:
        phases: What each GPU of the run's trainer holds in each phase as it is predicted. [B]
        run: Its log.
    """
    told = [figure for side in ("allocated", "reserved") if (figure := run.figure(f"peak_{side}_bytes")).known]
    trained = {name: parts for name, parts in phases.items() if name in PEAKING}
    if not told or not trained or not told[0].number:
        return None
    reserved = told[0].key == "peak_reserved_bytes"
    names = (*_TENSORS, "reserved") if reserved else _TENSORS
    held = {phase: {name: parts[name] for name in names if name in parts} for phase, parts in trained.items()}
    fullest = max(held, key=lambda name: sum(held[name].values()))
    return OwnMemory(
        phase=fullest,
        measured=told[0].number,
        scatter=told[0].deviation / told[0].number,
        reserved=reserved,
        parts=held[fullest],
    )


def beyond_model(memory: OwnMemory, phase: Phase, spread: Phase, seed: int) -> Beyond:
    """
    What a phase of a trainer's pass holds beside what the model knows of it.

    Where the run took more than is predicted, that stands in its fullest phase; where it took less, all are too high.

    Args:
        memory: The run's peak.
        phase: The phase as it is predicted now, by central constants.
        spread: The same by draws of them.
        seed: Of the draws.
    """
    now = {name: float(part) for name, part in phase.parts.items() if name in memory.parts}
    ratios = {name: spread.parts[name] / part for name, part in now.items() if part > 0}
    central = _own(memory, phase.parts, {}, memory.measured, _GROWTH)
    measured = scattered(memory.measured, memory.scatter, seed, "peak")
    growth = np.minimum(scattered(_GROWTH, _GROWTH_SPREAD, seed, "peak_growth"), 1.0)
    drawn = _own(memory, spread.parts, ratios, measured, growth)
    if phase.name != memory.phase:
        central, drawn = min(central, 0.0), np.minimum(drawn, 0.0)
    changed = abs(sum(now.values()) / sum(memory.parts.values()) - 1.0) if memory.parts else 1.0
    return Beyond(float(central), drawn, min(1.0, changed))


def _own(
    memory: OwnMemory, parts: Mapping[str, Real], ratios: Mapping[str, Real], measured: Real, growth: Real
) -> Real:
    """What the model does not know, by constants that make so much of each part of the run."""
    was = {name: part * ratios.get(name, 1.0) for name, part in memory.parts.items()}
    worked = sum(was.get(name, 0.0) for name in WORKING)
    explained = sum(was.values())
    return training_peak.own_bytes(
        measured_bytes=measured,
        explained_bytes=explained,
        working_bytes=sum(parts.get(name, 0.0) for name in WORKING) if memory.worked else 1.0,
        measured_working_bytes=worked if memory.worked else 1.0,
        exponent=np.where(np.asarray(measured) < explained, 1.0, growth),
    )
