"""
Which of two ways to do the same work is faster: whether predictions name the same winner as measurements.

A class says which of its records are rivals: the same model, GPUs and work, done colocated and split, say. Where the
measured gap is small, either answer is as good; those pairs are counted apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from rlsize.estimates.recorded.registry import rivals
from rlsize.verdicts.baselines import kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.estimates.recorded.registry import Predictor
    from rlsize.verdicts.predictions import PredictedField, PredictedRecord

CLOSE = 0.1
"""A gap up to this is too close to call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """
    Two rivals.

    Args:
        class_name: Their class.
        one: The first record.
        other: The second.
        measured: How many times better the first was; below 1 where it was worse. [1]
        predicted: How many times better it is predicted to be. [1]
    """

    class_name: str
    one: str
    other: str
    measured: float
    predicted: float

    @property
    def clear(self) -> bool:
        """Whether the measured gap is large enough to be called."""
        return _gap(self.measured) > CLOSE

    @property
    def doubtful(self) -> bool:
        """Whether the predicted gap is too small to be called."""
        return _gap(self.predicted) <= CLOSE

    @property
    def right(self) -> bool:
        """Whether the predicted winner is the measured one."""
        return (self.measured > 1) == (self.predicted > 1)


def contests(records: Sequence[PredictedRecord], predictors: Mapping[str, Predictor]) -> tuple[Contest, ...]:
    """Every pair of trusted rivals that are measured by the same field."""
    trusted = [record for record in records if record.trusted]
    return tuple(
        Contest(
            class_name=one.class_name,
            one=one.record.id,
            other=other.record.id,
            measured=_better(one.fields[0], one.fields[0].measured / other.fields[0].measured),
            predicted=_better(one.fields[0], one.fields[0].predicted / other.fields[0].predicted),
        )
        for one, other in combinations(trusted, 2)
        if one.class_name == other.class_name
        and one.fields[0].name == other.fields[0].name
        and rivals(predictors[one.class_name], one.record, other.record)
    )


def _better(field: PredictedField, ratio: float) -> float:
    """How many times better the first is: of rates the larger is, of times and amounts the smaller."""
    return ratio if kind(field.name).startswith("rate") else 1.0 / ratio


def _gap(ratio: float) -> float:
    return max(ratio, 1.0 / ratio) - 1.0
