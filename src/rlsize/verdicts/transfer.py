"""
Calibration on one record, prediction of another: what a measured run tells of a run elsewhere in its family.

Each ordered pair of a family counts once: the constants are narrowed by the first record's measurement, and the second
is predicted with them. Families with many records give a seeded choice of their pairs. Where one record says too little
(time that is affine in bytes), a calibration may take several, and pairs are sets of those and another record.
"""

from __future__ import annotations

import zlib
from collections import Counter
from contextlib import suppress
from itertools import combinations, groupby
from math import comb
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from rlsize.errors import Refused
from rlsize.estimates.belief import prior, settled
from rlsize.estimates.constants import Constant, Stage
from rlsize.estimates.recorded.registry import calibrates_on, relation, unstated
from rlsize.frozen import dataclass
from rlsize.verdicts.contests import time_as_gpus, time_unchanged
from rlsize.verdicts.predictions import UNSTATED, Views, asked, fields, positive, scatter

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rlsize.equations._ops import Real
    from rlsize.estimates.belief import Belief
    from rlsize.estimates.recorded.registry import Predictor
    from rlsize.facts.records import Record
    from rlsize.verdicts.predictions import PredictedField, PredictedRecord, ProfilesOf, Say

    _Wanted = tuple[tuple[int, ...], int]

_FAMILY = Stage(
    name=UNSTATED,
    noise=0.0,
    constants=(
        Constant(UNSTATED, 1.0, 1.0, "1", "assumed", "what no record of a family states, and all of them have alike",
                 "in deviations of that: `unstated` of each class"),
    ),
)  # fmt: skip
MOST_PAIRS = 400
"""Pairs of one family; more are a seeded choice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """
    One record predicted after calibration on another.

    Args:
        class_name: Class of both.
        relation: How they differ, in words.
        family: What they share, in words.
        source: The publication.
        calibrated_on: The record whose measurement narrowed the constants; the first where there are several.
        id: The record that is predicted.
        before: The prediction without calibration.
        after: The prediction with it, beside the measurement.
        as_gpus: The guess that time goes as 1/GPUs; None where the two measured different fields.
        unchanged: The guess that time stays; None likewise.
    """

    class_name: str
    relation: str
    family: str
    source: str
    calibrated_on: str
    id: str
    before: float
    after: PredictedField
    as_gpus: float | None
    unchanged: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """
    All pairs.

    Args:
        pairs: Those that could be predicted.
        left_out: Pairs that could not, by class. [1]
        odd: Records that calibrate nothing, since they contradict their neighbours, by class. [1]
        chosen: Families of which only some pairs were taken, by class. [1]
        alone: Graded records without another in their family, by class. [1]
    """

    pairs: tuple[Pair, ...]
    left_out: Mapping[str, int]
    odd: Mapping[str, int]
    chosen: Mapping[str, int]
    alone: Mapping[str, int]


def transfer(
    records: Sequence[PredictedRecord],
    predictors: Mapping[str, Predictor],
    profiles_of: ProfilesOf,
    seed: int,
    say: Say,
    most: int = MOST_PAIRS,
    together: int = 1,
) -> Transfer:
    """
    Predictions of each record of a family from each other one.

    Args:
        records: Records with their predictions before calibration; those of low trust are left out.
        predictors: The predictor of each class.
        profiles_of: Looks up the profiles that a record names.
        seed: Of the draws behind the bands and of the choice of pairs.
        say: Takes what is being done, and the share of it that is done.
        most: Pairs of one family.
        together: Records of one calibration.
    """
    groups: dict[tuple[str, tuple[Any, ...]], list[PredictedRecord]] = {}
    for record in (one for one in records if one.trusted):
        groups.setdefault((record.class_name, record.family), []).append(record)
    pairs: list[Pair] = []
    left_out, chosen, alone = Counter[str](), Counter[str](), Counter[str]()
    for done, ((name, _), members) in enumerate(groups.items()):
        say("calibrating on each record, predicting its family", done / len(groups))
        if len(members) <= together:
            alone[name] += len(members)
            continue
        wanted = _chosen(members, most, seed, together)
        chosen[name] += len(wanted) < _count(len(members), together)
        found = list(_family_pairs(members, wanted, predictors[name], profiles_of, seed))
        left_out[name] += len(wanted) - len(found)
        pairs += found
    odd = Counter(record.class_name for record in records if record.out_of_order)
    return Transfer(pairs=tuple(pairs), left_out=+left_out, odd=odd, chosen=+chosen, alone=alone)


def calibrated(belief: Belief, predictor: Predictor, records: Sequence[Record], profiles_of: ProfilesOf) -> Belief:
    """
    What is believed after the measurements of records.

    Args:
        belief: What was believed before.
        predictor: The predictor of their class.
        records: The records.
        profiles_of: Looks up the profiles that a record names.

    Raises:
        Refused: A record cannot be predicted near there, or the update does not settle.
    """
    said = [
        (record, profiles_of(record), [n for n in calibrates_on(predictor, record) if positive(record.measured.get(n))])
        for record in records
    ]

    def expected(values: Mapping[str, Real]) -> list[Real]:
        found: list[Any] = []
        for record, profiles, names in said:
            answer = asked(predictor, record, profiles, values)
            found += [np.asarray(answer.get(name, np.nan), dtype=float) for name in names]
        if not all(np.all(np.isfinite(values) & (values > 0)) for values in found):
            raise Refused("is not predicted near its calibration")
        return found

    measured = [record.measured[name] for record, _, names in said for name in names]
    noise = [scatter(predictor, record, known=UNSTATED in belief.names) for record, _, names in said for _ in names]
    return settled(belief, expected, measured, noise, "does not calibrate")


def _count(members: int, together: int) -> int:
    return members * comb(members - 1, together)


def _chosen(members: Sequence[PredictedRecord], most: int, seed: int, together: int) -> list[_Wanted]:
    """Members to calibrate on and another one, at most so many of these sets, in order."""
    size = len(members)
    if _count(size, together) <= most:
        sets = list(combinations(range(size), together))
        return [(ones, other) for ones in sets for other in range(size) if other not in ones]
    names = ",".join(sorted(member.record.id for member in members))
    random = np.random.default_rng([seed, zlib.crc32(names.encode())])
    found: set[_Wanted] = set()
    while len(found) < most:
        *ones, other = random.choice(size, together + 1, replace=False).tolist()
        found.add((tuple(sorted(ones)), other))
    return sorted(found)


def _family_pairs(
    own: Sequence[PredictedRecord], wanted: Sequence[_Wanted], predictor: Predictor, profiles_of: ProfilesOf, seed: int
) -> Iterator[Pair]:
    """The pairs that can be predicted."""
    unsaid = any(unstated(predictor, entry.record) for entry in own)
    belief = prior(*predictor.STAGES, *([_FAMILY] if unsaid else []))
    for ones, targets in groupby(wanted, key=itemgetter(0)):
        chosen = [own[one] for one in ones]
        try:
            narrowed = calibrated(belief, predictor, [entry.record for entry in chosen], profiles_of)
            views = Views.of(narrowed, seed)
        except Refused:
            continue
        for other in (own[target] for _, target in targets):
            with suppress(Refused):
                headline = [other.fields[0].name]
                predicted = fields(headline, predictor, other.record, profiles_of(other.record), views, seed)
                if predicted:
                    yield _pair(chosen, other, predictor, predicted[0])


def _pair(
    chosen: Sequence[PredictedRecord], other: PredictedRecord, predictor: Predictor, predicted: PredictedField
) -> Pair:
    one, headline = chosen[0], other.fields[0].name
    same_field = one.fields[0].name == headline and one.record.gpus > 0 and other.record.gpus > 0
    known = (headline, one.fields[0].measured, one.record.gpus, other.record.gpus)
    return Pair(
        class_name=one.class_name,
        relation=" and ".join(sorted({relation(predictor, entry.record, other.record) for entry in chosen})),
        family=" ".join(str(part) for part in one.family),
        source=one.record.source_id,
        calibrated_on=one.record.id,
        id=other.record.id,
        before=other.fields[0].predicted,
        after=predicted,
        as_gpus=time_as_gpus(*known) if same_field else None,
        unchanged=time_unchanged(*known) if same_field else None,
    )
