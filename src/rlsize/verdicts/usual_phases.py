"""
Is this normal: each phase of a step beside what the loop's model needs on its GPUs.

A phase is not normal where it takes more than `FAR` times what is predicted, and longer than 95 of 100 runs elsewhere
would. How far those lie from their predictions was measured on published runs that no constant was fitted to
(`benchmarks/normal.py`): the spread of a source is the root mean square of the logarithms of measured over predicted,
and that of a phase the median of its sources over the median of a half-normal distribution, so that one odd source does
not decide it. Times of small models hang on the host, which nobody says, so that they have a spread of their own. A
band is never narrower than the prediction's own.
"""

from __future__ import annotations

from math import exp, log
from types import MappingProxyType
from typing import TYPE_CHECKING

from rlsize.equations import budget, rl_step, train_step
from rlsize.estimates.figures import apply, known
from rlsize.facts.evidence import Finding, JudgedPhase
from rlsize.facts.figure import Figure, absent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.facts.evidence import Evidence, Status

FAR = 1.5  # a phase that takes less than so many times what is predicted is usual
MOST = 0.5  # a phase that takes more than this share of a step is told of first where nothing is predicted ...
NEARLY_ALL = 0.85  # ... and one that takes more than this is mended first; generation takes the most of good loops too
PASSES = 2.0  # that only read the weights, at most, of a loop that nobody describes: the policy's and a reference's
NOTHING = 0.005  # share of a step that is not worth a word
WHOLE = 0.97  # a timer of generation that covers this share of a step in turn times the step
_Z95, _Z80 = 1.96, 1.2816
SMALL = 1.2e9  # parameters up to which a model keeps GPUs waiting for the host
SPREADS: Mapping[bool, Mapping[str, float]] = MappingProxyType({
    False: {"generation": 0.48, "update": 0.29, "logprob": 0.32, "sync": 0.81, "other": 0.81, "step": 0.23},
    True: {"generation": 0.64, "update": 2.04, "logprob": 2.79, "sync": 0.81, "other": 0.81, "step": 0.82},
})  # fmt: skip
"""
Spread of the logarithm of measured over predicted, by phase, of large models and of small ones: from 40 runs of three
sources and 4 of two; other from sync, of which one source tells.
"""
_TIMED = ("step", "generation", "update", "logprob", "sync", "reward", "tools", "validation", "checkpoint", "other")
_PREDICTED = {"other": "overhead_seconds"}
_UNKNOWN = absent("usual_seconds", "a scenario")


def judged_phases(evidence: Evidence, spread: Mapping[str, float] | None = None) -> tuple[JudgedPhase, ...]:
    """
    The phases that a log times; the one to look at first before the others, and the step itself last.

    Args:
        evidence: Everything that is known.
        spread: Spread of the logarithm of measured over predicted, by phase; that of `SPREADS` when None.
    """
    wide = SPREADS[is_small(evidence)] if spread is None else spread
    step = evidence.run.figure("step_seconds")
    least = NOTHING * step.number if step.known else 0.0
    timed = [phase for phase in _TIMED if phase != "generation" or not hides_update(evidence)]
    found = [
        _judged(phase, took, evidence, wide.get(phase, 0.0))
        for phase in timed
        if (took := evidence.run.figure(f"{phase}_seconds")).known and took.number > least
    ]
    return tuple(sorted(found, key=_rank))


def is_small(evidence: Evidence) -> bool:
    """Whether the loop's model is small."""
    return "params" in evidence.said and evidence.said["params"].number <= SMALL


def _rank(one: JudgedPhase) -> tuple[bool, bool, float, float]:
    """Those that are not normal, then those far beyond what is usual, by what they lose; the longest; then the step."""
    lost = one.excess if one.ratio.known and one.ratio.number > FAR else 0.0
    return one.phase == "step", one.normal is not False, -lost, -one.took.number


def first_look(evidence: Evidence, phases: Sequence[JudgedPhase]) -> Finding:
    """
    What the phases of a step say: that one is not normal, or takes most of a step of which nothing is predicted.

    Args:
        evidence: Everything that is known.
        phases: As they were judged.
    """
    far = [one for one in phases if one.normal is False]
    most = [one for one in phases if one.phase != "step" and one.normal is None and _takes_most(one, evidence)]
    for kind, found in (("slow", far), ("most", most)):
        if found:
            one = found[0]
            beyond = apply("lost_seconds", budget.change_from_baseline, value=one.took, baseline=one.usual)
            lost = apply("gain_fraction", train_step.time_share, part=beyond, whole=evidence.run.figure("step_seconds"))
            figures = known(took=one.took, usual=one.usual, times_usual=one.ratio, step_fraction=one.share)
            status: Status = "fault" if kind == "slow" or one.share.number > NEARLY_ALL else "note"
            return Finding(check="phases", status=status, kind=kind, names=(one.phase,), figures=figures, gain=lost)
    judged = any(one.normal is not None for one in phases)
    return Finding(check="phases", status="fine" if judged else "unknown")


def _takes_most(one: JudgedPhase, evidence: Evidence) -> bool:
    """Whether a phase beside which nothing else runs takes most of the step."""
    limit = NEARLY_ALL if one.phase == "generation" else MOST
    return evidence.run.mode != "async" and one.share.known and one.share.number > limit


def _judged(phase: str, took: Figure, evidence: Evidence, spread: float) -> JudgedPhase:
    needed = evidence.usual.get(_PREDICTED.get(phase, took.key), _UNKNOWN)
    needed = needed if needed.known and needed.number > 0 else _by_update(phase, took, evidence, spread)
    ratio = apply("times_usual", rl_step.times_longer, step_seconds=took, least_seconds=needed)
    share = apply("step_fraction", train_step.time_share, part=took, whole=evidence.run.figure("step_seconds"))
    band = band95(needed, spread) if needed.known else None
    normal = None if band is None else ratio.number <= FAR or took.number <= band[1]
    return JudgedPhase(phase=phase, took=took, usual=needed, ratio=ratio, share=share, band=band, normal=normal)


def _by_update(phase: str, took: Figure, evidence: Evidence, spread: float) -> Figure:
    """
    What log-probabilities of the same model take by what its update takes, where they take far longer.

    It holds of any model and GPU, but says too little to call a phase usual; of other phases nothing tells it.
    """
    if phase != "logprob":
        return _UNKNOWN
    update = evidence.run.figure("update_seconds")
    most = apply("usual_seconds", train_step.forward_share_time, update=update, passes=PASSES)
    return most if most.known and took.number > max(FAR * most.number, band95(most, spread)[1]) else _UNKNOWN


def band95(predicted: Figure, spread: float) -> tuple[float, float]:
    """
    The interval in which 95 % of runs elsewhere lie, and never narrower than the prediction's own.

    Args:
        predicted: With its 80 % interval.
        spread: Spread of the logarithm of measured over predicted.
    """
    value = predicted.number
    low, high = predicted.band or (value, value)
    shorter = max(spread, log(value / low) / _Z80 if low > 0 else 0.0)
    longer = max(spread, log(high / value) / _Z80)
    return value * exp(-_Z95 * shorter), value * exp(_Z95 * longer)


def hides_update(evidence: Evidence) -> bool:
    """Whether a log times no update, and its timer of generation covers whole steps of sides that work in turn."""
    run = evidence.run
    generation, step = run.figure("generation_seconds"), run.figure("step_seconds")
    covers = generation.known and step.known and generation.number >= WHOLE * step.number
    return covers and run.mode in {"colocated", "synchronous"} and not run.figure("update_seconds").known
