"""How wrong predictions are, by class, before and after calibration, and whether that is worse than allowed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rlsize.estimates.figures import alike
from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from rlsize.verdicts.predictions import PredictedField, PredictedRecord
    from rlsize.verdicts.transfer import Pair

RESAMPLES = 2000
_ENDS = (0.025, 0.975)  # of a 95 % interval
_HIGH = 0.9

Limits = tuple[float | None, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """
    One prediction beside its measurement.

    Args:
        measured: What was measured.
        predicted: What is predicted, in the same unit.
        low: Lower end of the 80 % band; None where there is no band.
        high: Upper end.
        source: The publication; its points are not independent of each other.
        family: A smaller group within a source.
        weight: What the point counts in quantiles. [1]
    """

    measured: float
    predicted: float
    low: float | None
    high: float | None
    source: str
    family: str
    weight: float = 1.0

    @property
    def error(self) -> float:
        """
        |predicted / measured - 1|.

        >>> Point(measured=100.0, predicted=75.0, low=None, high=None, source="s", family="f").error
        0.25
        """
        return abs(self.predicted / self.measured - 1.0)

    @property
    def inside(self) -> bool | None:
        """Whether the band holds the measurement; None without a band."""
        if self.low is None or self.high is None:
            return None
        return self.low <= self.measured <= self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """
    How wrong a set of predictions is.

    Args:
        n: Predictions. [1]
        sources: Publications. [1]
        families: Families of records. [1]
        median: Median of |predicted / measured - 1|. [1]
        p90: Its 90th percentile. [1]
        bias: Median of log(predicted / measured). [1]
        banded: Predictions with a band. [1]
        coverage: Share of those whose band holds the measurement; None without any. [1]
        coverage_interval: Its 95 % bootstrap interval.
        resampled: What the bootstrap draws: source, family or row.
        width: Median of a band's upper end over its lower; None without any. [1]
    """

    n: int
    sources: int
    families: int
    median: float
    p90: float
    bias: float
    banded: int
    coverage: float | None
    coverage_interval: tuple[float, float] | None
    resampled: str
    width: float | None


def score(points: Sequence[Point], seed: int = 0) -> Score:
    """
    The score of predictions, at least one.

    The interval of the coverage comes from resampling whole sources, since points of one source err together; with one
    source, families; with one family, points.
    """
    errors = np.array([point.error for point in points])
    logs = np.log([point.predicted / point.measured for point in points])
    weights = np.array([point.weight for point in points])
    banded = [point for point in points if point.inside is not None]
    rows = [str(index) for index in range(len(banded))]
    own = {"source": [point.source for point in banded], "family": [point.family for point in banded]}
    resampled, groups = next(((name, found) for name, found in own.items() if len(set(found)) > 1), ("row", rows))
    inside = np.array([bool(point.inside) for point in banded], dtype=float)
    ratios = [point.high / point.low for point in banded if point.low and point.high]
    return Score(
        n=len(points),
        sources=len({point.source for point in points}),
        families=len({(point.source, point.family) for point in points}),
        median=quantile(errors, weights, 0.5),
        p90=quantile(errors, weights, _HIGH),
        bias=quantile(logs, weights, 0.5),
        banded=len(banded),
        coverage=float(inside.mean()) if banded else None,
        coverage_interval=_interval(inside, groups, seed) if banded else None,
        resampled=resampled,
        width=float(np.median(ratios)) if ratios else None,
    )


def quantile(values: NDArray[np.float64], weights: NDArray[np.float64], share: float) -> float:
    """
    A weighted quantile; with equal weights the usual one, interpolated between values.

    >>> quantile(np.array([1.0, 2.0, 4.0]), np.ones(3), 0.5)
    2.0
    >>> quantile(np.array([1.0, 2.0, 4.0]), np.array([8.0, 1.0, 1.0]), 0.5)
    1.0
    """
    if np.ptp(weights) == 0:
        return float(np.quantile(values, share))
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order]) / weights.sum()
    return float(values[order][np.searchsorted(reached, share - 1e-12)])


def _interval(inside: NDArray[np.float64], groups: Sequence[str], seed: int) -> tuple[float, float]:
    _, members = np.unique(groups, return_inverse=True)
    held = np.bincount(members, weights=inside)
    sizes = np.bincount(members)
    picked = np.random.default_rng(seed).integers(0, len(sizes), (RESAMPLES, len(sizes)))
    shares = held[picked].sum(axis=1) / sizes[picked].sum(axis=1)
    low, high = np.quantile(shares, _ENDS)
    return float(low), float(high)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassGrade:
    """
    One class of records.

    Args:
        class_name: Its name.
        trusted: Whether its records are of high or medium trust; others never gate.
        headline: Score of the field that counts.
        names: Which field that is, in which records.
        fields: Score of each measured field, the most frequent first.
        cells: Score of the field that counts in each part of the class, such as dense and MoE.
    """

    class_name: str
    trusted: bool
    headline: Score
    names: Mapping[str, int]
    fields: Mapping[str, Score]
    cells: Mapping[str, Score]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferGrade:
    """
    Pairs of one class whose records differ in one way.

    Args:
        class_name: The class.
        relation: How the records of a pair differ.
        after: Score with calibration, each pair counted once.
        by_family: The same, each family counted once.
        before: Score without calibration, of the same pairs.
        as_gpus: Score of the guess that time goes as 1/GPUs; None where no pair allows it.
        unchanged: Score of the guess that time stays; None likewise.
    """

    class_name: str
    relation: str
    after: Score
    by_family: Score
    before: Score
    as_gpus: Score | None
    unchanged: Score | None


def grades(records: Sequence[PredictedRecord], seed: int = 0) -> tuple[ClassGrade, ...]:
    """Every class with its trusted records, then with the others."""
    kinds = sorted({(record.class_name, not record.trusted) for record in records})
    return tuple(
        _grade(
            name, [one for one in records if (one.class_name, not one.trusted) == (name, low)], seed, trusted=not low
        )
        for name, low in kinds
    )


def transfer_grades(pairs: Sequence[Pair], seed: int = 0) -> tuple[TransferGrade, ...]:
    """Every class and every way in which the records of a pair differ; "same ..." first."""
    kinds = {(pair.class_name, pair.relation) for pair in pairs}
    order = sorted(kinds, key=lambda kind: (kind[0], not kind[1].startswith("same"), kind[1]))
    return tuple(
        _transfer_grade(name, relation, [p for p in pairs if (p.class_name, p.relation) == (name, relation)], seed)
        for name, relation in order
    )


def worse(found: Sequence[ClassGrade], limits: Limits) -> tuple[ClassGrade, ...]:
    """
    The classes of trusted records whose error is above a limit.

    Args:
        found: The grades.
        limits: Largest median and largest 90th percentile of |predicted / measured - 1|; None where there is no limit.
    """
    most_median, most_p90 = limits

    def above(own: Score) -> bool:
        return (most_median is not None and own.median > most_median) or (most_p90 is not None and own.p90 > most_p90)

    return tuple(grade for grade in found if grade.trusted and above(grade.headline))


def worst(records: Sequence[PredictedRecord], each: int) -> tuple[PredictedRecord, ...]:
    """The trusted records of each class whose prediction is off by the largest factor, either way; worst first."""
    found: list[PredictedRecord] = []
    for name in sorted({record.class_name for record in records}):
        own = [record for record in records if record.class_name == name and record.trusted]
        found += sorted(own, key=lambda record: (-record.fields[0].factor, record.place))[:each]
    return tuple(found)


def point(field: PredictedField, source: str, family: str) -> Point:
    """A predicted field as a point of a score."""
    return Point(**alike(field, Point), source=source, family=family)


def _grade(name: str, records: Sequence[PredictedRecord], seed: int, *, trusted: bool) -> ClassGrade:
    def scored(pairs: Iterable[tuple[PredictedRecord, PredictedField]]) -> Score:
        return score([point(field, one.record.source_id, repr(one.family)) for one, field in pairs], seed)

    first = [(record, record.fields[0]) for record in records]
    every = [(record, field) for record in records for field in record.fields]
    labels = [label for label, _ in Counter(field.name for _, field in every).most_common()]
    return ClassGrade(
        class_name=name,
        trusted=trusted,
        headline=scored(first),
        names=dict(Counter(field.name for _, field in first).most_common()),
        fields={label: scored(pair for pair in every if pair[1].name == label) for label in labels},
        cells={
            label: scored(pair for pair in first if pair[0].cell == label)
            for label in sorted({record.cell for record in records})
        },
    )


def _transfer_grade(name: str, relation: str, pairs: Sequence[Pair], seed: int) -> TransferGrade:
    after = [point(pair.after, pair.source, pair.family) for pair in pairs]
    sizes = Counter((own.source, own.family) for own in after)
    weighted = [replace(own, weight=1.0 / sizes[own.source, own.family]) for own in after]
    return TransferGrade(
        class_name=name,
        relation=relation,
        after=score(after, seed),
        by_family=score(weighted, seed),
        before=score([_guess(own, pair.before) for own, pair in zip(after, pairs, strict=True)], seed),
        as_gpus=_guesses(after, [pair.as_gpus for pair in pairs], seed),
        unchanged=_guesses(after, [pair.unchanged for pair in pairs], seed),
    )


def _guess(own: Point, value: float) -> Point:
    return replace(own, predicted=value, low=None, high=None)


def _guesses(points: Sequence[Point], values: Sequence[float | None], seed: int) -> Score | None:
    known = [_guess(own, value) for own, value in zip(points, values, strict=True) if value is not None]
    return score(known, seed) if known else None
