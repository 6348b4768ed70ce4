"""Predictions of records: a central value and an 80 % band for each measured field, or the reason why there is none."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rlsize.errors import Refused, RlsizeError
from rlsize.estimates.belief import Belief, interval, prior, scattered
from rlsize.estimates.recorded.registry import cell, contradictions, unstated
from rlsize.facts.records import RefusedRecord
from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rlsize.equations._ops import Real
    from rlsize.estimates.recorded.registry import Predictor, Profiles
    from rlsize.facts.records import ListedRecord, Record

    ProfilesOf = Callable[[Record], Profiles]
    Say = Callable[[str, float], None]

UNSTATED = "unstated"
"""What a family's records leave unsaid, among the constants of a calibration: a factor of so many deviations."""

TRUSTED = frozenset({"high", "medium"})
"""Records that are graded; the others are shown apart."""

_LONGEST_REASON = 200
# What a prediction of an odd record can stumble over: that record is refused, and the others are graded.
_STUMBLES = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedField:
    """
    One measured field of a record beside its prediction, in the record's own unit.

    Args:
        name: The record's own name of it.
        measured: What was measured.
        predicted: What is predicted at the central values of the constants.
        low: Lower end of the 80 % band; None where draws of the constants gave no band.
        high: Upper end.
    """

    name: str
    measured: float
    predicted: float
    low: float | None
    high: float | None

    @property
    def factor(self) -> float:
        """How many times too large or too small the prediction is. [1]"""
        return max(self.predicted / self.measured, self.measured / self.predicted)


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedRecord:
    """
    A record with the predictions of its measured fields.

    Args:
        place: Where it stood among all rows, from 0. [1]
        class_name: Its class.
        record: What it says.
        family: What it shares with the records that one calibration can serve.
        cell: Which row of a table of errors it belongs to, in words.
        fields: Its measured fields, the one that counts first.
        out_of_order: How it contradicts its neighbours; empty where it does not.
    """

    place: int
    class_name: str
    record: Record
    family: tuple[Any, ...]
    cell: str
    fields: tuple[PredictedField, ...]
    out_of_order: str = ""

    @property
    def trusted(self) -> bool:
        """Whether it is graded: of high or medium trust, and in order with its neighbours."""
        return self.record.trust in TRUSTED and not self.out_of_order


@dataclass(frozen=True, slots=True, kw_only=True)
class Predictions:
    """Records that could be predicted, and those that could not."""

    records: tuple[PredictedRecord, ...]
    refused: tuple[RefusedRecord, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Views:
    """A belief as predictions use it: the central values of its constants, and draws."""

    central: Mapping[str, float]
    drawn: Mapping[str, Any]

    @classmethod
    def of(cls, belief: Belief, seed: int) -> Views:
        """The values and draws of a belief."""
        return cls(belief.central(), belief.drawn(seed))


def predictions(
    listed: Sequence[ListedRecord], predictors: Mapping[str, Predictor], profiles_of: ProfilesOf, seed: int, say: Say
) -> Predictions:
    """
    Predictions of records from what is believed before any calibration.

    Args:
        listed: The records.
        predictors: The predictor of each class.
        profiles_of: Looks up the profiles that a record names.
        seed: Of the draws behind the bands.
        say: Takes what is being done, and the share of it that is done.
    """
    views: dict[str, Views] = {}
    records: list[PredictedRecord] = []
    refused: list[RefusedRecord] = []
    for done, entry in enumerate(listed):
        say("predicting", done / len(listed))
        name = entry.class_name
        try:
            if name not in predictors:
                raise Refused("nothing predicts records of its class")  # noqa: TRY301 (one way out for all reasons)
            if name not in views:
                views[name] = Views.of(prior(*predictors[name].STAGES), seed)
            records.append(_predicted(entry, predictors[name], profiles_of(entry.record), views[name], seed))
        except Refused as refusal:
            reason = str(refusal)[:_LONGEST_REASON]
            refused.append(RefusedRecord(place=entry.place, id=entry.record.id, class_name=name, reason=reason))
    return Predictions(records=_in_order(records, predictors), refused=tuple(refused))


def _in_order(records: Sequence[PredictedRecord], predictors: Mapping[str, Predictor]) -> tuple[PredictedRecord, ...]:
    """The records, each that contradicts its neighbours with the reason."""
    found = {record.place: record for record in records}
    for name in {record.class_name for record in records}:
        own = [record for record in records if record.class_name == name]
        for index, reason in contradictions(predictors[name], [record.record for record in own]).items():
            found[own[index].place] = replace(own[index], out_of_order=reason)
    return tuple(found[record.place] for record in records)


def asked(predictor: Predictor, record: Record, profiles: Profiles, values: Mapping[str, Any]) -> Mapping[str, Real]:
    """
    What a predictor answers.

    Raises:
        Refused: It refuses the record, or stumbles over it.
    """
    try:
        with np.errstate(all="ignore"):  # what is not finite is refused or has no band
            found = predictor.predict(record, profiles, values)
            factor = values[UNSTATED] ** unstated(predictor, record) if UNSTATED in values else 1.0
            return {name: factor * value for name, value in found.items()}
    except RlsizeError as error:
        raise Refused(error.faults[0].what) from None
    except _STUMBLES as error:
        raise Refused(f"cannot be predicted: {type(error).__name__}: {error}") from None


def scatter(predictor: Predictor, record: Record, *, known: bool) -> float:
    """Noise of a record; without what its family leaves unsaid where that is among the constants."""
    noise = predictor.noise(record)
    return math.sqrt(noise**2 - unstated(predictor, record) ** 2) if known else noise


def positive(value: object) -> bool:
    """Whether a logarithm can be taken: a finite number above zero."""
    number = isinstance(value, (int, float, np.floating, np.integer)) and not isinstance(value, bool)
    return number and math.isfinite(value) and value > 0  # type: ignore[arg-type, operator]  # a number, as just asked


def fields(
    names: Sequence[str], predictor: Predictor, record: Record, profiles: Profiles, views: Views, seed: int
) -> tuple[PredictedField, ...]:
    """
    Measured fields of a record with predictions and bands; those that are not predicted are left out.

    Raises:
        Refused: The record cannot be predicted.
    """
    point = asked(predictor, record, profiles, views.central)
    kept = [name for name in names if positive(record.measured.get(name)) and positive(point.get(name))]
    try:
        drawn = asked(predictor, record, profiles, views.drawn) if kept else {}
    except Refused:  # some draws are out of reach of the equations: the point stands without a band
        drawn = {}
    noise = scatter(predictor, record, known=UNSTATED in views.central)
    found = []
    for name in kept:
        draws = np.asarray(scattered(drawn.get(name, np.nan), noise, seed, record.id), dtype=float)
        low, high = interval(draws) if np.isfinite(draws).all() else (None, None)
        measured, predicted = float(record.measured[name]), float(point[name])
        found.append(PredictedField(name=name, measured=measured, predicted=predicted, low=low, high=high))
    return tuple(found)


def _predicted(
    entry: ListedRecord, predictor: Predictor, profiles: Profiles, views: Views, seed: int
) -> PredictedRecord:
    record = entry.record
    headline = predictor.graded(record)
    if not positive(record.measured.get(headline)):
        raise Refused(f"has no measured {headline}")
    names = [headline, *(name for name in record.measured if name != headline)]
    found = fields(names, predictor, record, profiles, views, seed)
    if not found or found[0].name != headline:
        raise Refused(f"its {headline} is not predicted")
    return PredictedRecord(
        place=entry.place,
        class_name=entry.class_name,
        record=record,
        family=tuple(predictor.family(record)),
        cell=cell(predictor, record, profiles),
        fields=found,
    )
