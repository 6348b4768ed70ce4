"""A calibration: what measurements say about the constants of the predictions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from rlsize.facts.fields import Quantity, Says
from rlsize.facts.kinds import RATIO, SHARE

WORKING = ("activations", "logits", "gathered")
"""Parts of a trainer's memory that go with the tokens of a micro-batch."""

_MOST = 1e12  # of anything that a step can have
_ROUNDING = 0.01  # of memory: buckets, blocks and alignment


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationSetting:
    """What a source measured; what it says holds best for the same."""

    model: Annotated[str | None, Says("The model profile.")] = None
    gpu: Annotated[str | None, Says("The GPU profile.")] = None
    engine: Annotated[str | None, Says("The inference engine, where a rollout was measured.")] = None
    rollout_layout: Annotated[str | None, Says("How a rollout instance was spread, such as TP2 PP1 DP1.")] = None
    trainer_layout: Annotated[
        str | None, Says("How the trainer was spread, its data ranks aside, such as TP1 PP1 CP1 EP1.")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationPoint:
    """One measurement beside its prediction."""

    what: Annotated[str, Says("What was measured.")]
    source: Annotated[str, Says("The file or the flag that says so.")]
    unit: Annotated[str, Says("The unit of the three values.")]
    measured: Annotated[float, Says("As it was measured.")]
    before: Annotated[float, Says("As it is predicted without calibration.")]
    after: Annotated[float, Says("As it is predicted with all of this calibration.")]
    noise: Annotated[
        float, RATIO.saying("Standard deviation of its logarithm: scatter of measurement and of prediction.")
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedConstant:
    """One constant that the measurements moved or narrowed."""

    name: Annotated[str, Says("The constant.")]
    prior: Annotated[float, Says("Its central value before, in base units.")]
    factor: Annotated[float, Quantity("1", "Central value after over that before.")]
    spread_before: Annotated[float, RATIO.saying("Standard deviation of its logarithm before.")]
    spread: Annotated[float, RATIO.saying("The same after.")]
    lean: Annotated[float, Quantity("1", "Middle of its draws over the central value.", above=0)] = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedDirection:
    """
    A combination of constants that the measurements narrowed.

    All of them together give the joint covariance: with prior spreads s and unit vectors u, the covariance of the
    logarithms i and j is s_i s_j (1 if i = j else 0) less the sum of s_i s_j u_i u_j (1 - left).
    """

    left: Annotated[float, SHARE.saying("Share of its prior variance that is left.")]
    weights: Annotated[
        dict[str, float], Says("The combination: weight of each constant's logarithm over its prior spread.")
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnPhase:
    """What of a run's phase lies beyond what the constants may say: it stays a time of its own."""

    phase: Annotated[str, Says("The phase: generation, update, logprob, sync or overhead.")]
    measured: Annotated[float, Quantity("s", "The phase as the log has it.", least=0, most=_MOST)] = 0.0
    factor: Annotated[float, SHARE.saying("What is left of the predicted time.")] = 1.0
    seconds: Annotated[float, Quantity("s", "What comes on top of it.", least=0, most=_MOST)] = 0.0
    grows: Annotated[bool, Says("Whether it is of passes over all tokens; else a wait, and unknown how it grows.")] = (
        False
    )

    @property
    def explained(self) -> float:
        """What of it the model explains. [s]"""
        return max(0.0, self.measured - self.seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnMemory:
    """The peak of a run's trainer beside what is predicted of it: what lies between is held apart."""

    phase: Annotated[str, Says("The phase in which it is predicted to stand.")]
    measured: Annotated[float, Quantity("B", "The most that a GPU's trainer took, as the log has it.", above=0)]
    scatter: Annotated[float, RATIO.saying("Standard deviation of its logarithm, from step to step.")] = 0.0
    reserved: Annotated[
        bool, Says("Whether that is what the allocator kept, caches included, as the log tells no tensors.")
    ] = False
    parts: Annotated[dict[str, float], Says("What the trainer holds then as it is predicted, in bytes by name.")] = (
        field(default_factory=dict)
    )

    @property
    def own(self) -> float:
        """What of it the model does not explain; below 0 where the run took less. [B]"""
        return self.measured - sum(self.parts.values())

    @property
    def worked(self) -> bool:
        """Whether any of what is predicted is work on tokens, so that the rest may be."""
        return any(self.parts.get(name, 0.0) > 0 for name in WORKING)


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedRun:
    """A run as its logs show it, for the changes that one asks of it: figures and digests, not the files."""

    digests: Annotated[dict[str, str], Says("SHA-256 of each file that was read.")]
    steps: Annotated[int, Says("Settled optimizer steps behind it.")]
    shown: Annotated[
        dict[str, float | str],
        Says("Quantities that the logs show and no script says, by key; they hold where nobody says otherwise."),
    ]
    ran: Annotated[
        dict[str, float | str | bool],
        Says("What the run was made of, by key: a loop of the same has shown that it fits."),
    ]
    scatter: Annotated[
        dict[str, float], Says("Standard errors of the logarithms of what was measured, by phase or key.")
    ]
    tokens: Annotated[float, Quantity("token", "Prompt and response tokens of a step.", above=0, most=_MOST)]
    fill: Annotated[
        float, RATIO.saying("Share of a GPU that its fullest phase takes, as it is predicted: so much fits.")
    ] = 0.0
    memory: Annotated[OwnMemory | None, Says("The trainer's peak, where the logs have one.")] = None
    own: Annotated[list[OwnPhase], Says("What lies beyond the model, phase by phase.")] = field(default_factory=list)

    def holds(self, fill: float) -> bool:
        """Whether a loop whose fullest phase takes so much of a GPU needs no more than the run, within rounding."""
        return fill <= self.fill * (1.0 + _ROUNDING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """A calibration file."""

    made_by: Annotated[str, Says("The version of rlsize that wrote it.")]
    sources: Annotated[list[str], Says("Files and flags that hold the measurements.")]
    made_for: Annotated[list[CalibrationSetting], Says("What the sources measured.")] = field(default_factory=list)
    points: Annotated[list[CalibrationPoint], Says("What was measured, beside what is predicted.")] = field(
        default_factory=list
    )
    constants: Annotated[list[CalibratedConstant], Says("What moved; the others stay as they are.")] = field(
        default_factory=list
    )
    directions: Annotated[list[CalibratedDirection], Says("What the measurements narrowed, jointly.")] = field(
        default_factory=list
    )
    run: Annotated[CalibratedRun | None, Says("The run, where its logs were read.")] = None
