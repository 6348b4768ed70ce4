"""
Errors on records that no constant was fitted to: one fold at a time is left out, and the rest fitted anew.

A refit knows nothing of the shipped values of fitted constants but their order of magnitude: their spread is widened
before all other records condition the belief, each fold counting alike. Constants with another basis (specified,
measured kernels, published, assumed) stay as they are. Bands keep the shipped spreads and noise around the refitted
values, so they are fixed before the fold that tests them is looked at.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rlsize.estimates.belief import prior
from rlsize.estimates.recorded.registry import fold
from rlsize.facts.records.base import Refused
from rlsize.verdicts.predictions import PredictedRecord, Views, fields
from rlsize.verdicts.transfer import calibrated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.estimates.belief import Belief
    from rlsize.estimates.constants import Stage
    from rlsize.estimates.recorded.registry import Predictor
    from rlsize.verdicts.predictions import ProfilesOf, Say

WIDE = 1.0
"""Standard deviation of the logarithm of a fitted constant before a refit: a factor of e either way."""

SCATTER = 0.2
"""Scatter of a record in a refit: what a model of this kind leaves unexplained."""

_MOST = 40  # records of a fold in the fit; more say the same again


def held_out(
    records: Sequence[PredictedRecord], predictor: Predictor, profiles_of: ProfilesOf, seed: int, say: Say
) -> tuple[PredictedRecord, ...]:
    """
    The trusted records of a class, each predicted by constants that were fitted without its fold.

    Args:
        records: Records of one class.
        predictor: Its predictor.
        profiles_of: Looks up the profiles that a record names.
        seed: Of the draws behind the bands, and of the choice of records for the fit.
        say: Takes what is being done, and the share of it that is done.

    Returns:
        Nothing where there are fewer than two folds, or nothing is fitted; records whose fold cannot be fitted or
        predicted are left out.
    """
    trusted = [record for record in records if record.trusted]
    folds = {record.place: fold(predictor, record.record) for record in trusted}
    names = sorted(set(folds.values()))
    if len(names) == 1 or not any(c.basis == "fitted" for stage in predictor.STAGES for c in stage.constants):
        return ()
    found: list[PredictedRecord] = []
    for done, name in enumerate(names):
        say(f"fitting without {name}", done / len(names))
        others = _some([record for record in trusted if folds[record.place] != name], folds, seed)
        try:
            views = Views.of(refitted(predictor, others, profiles_of, folds), seed)
        except Refused:
            continue
        own = [record for record in trusted if folds[record.place] == name]
        found += [again for record in own if (again := _again(record, predictor, profiles_of, views, seed))]
    return tuple(sorted(found, key=lambda record: record.place))


def refitted(
    predictor: Predictor, records: Sequence[PredictedRecord], profiles_of: ProfilesOf, folds: dict[int, str]
) -> Belief:
    """
    The shipped belief with its fitted constants moved to where other records put them.

    Raises:
        Refused: The fit does not settle.
    """
    shipped = prior(*predictor.STAGES)
    wide = prior(*map(_widened, predictor.STAGES))
    sizes = Counter(folds[record.place] for record in records)
    scatter = {id(record.record): SCATTER * math.sqrt(sizes[folds[record.place]]) for record in records}
    rows = [record.record for record in records]
    mean = calibrated(wide, predictor, rows, profiles_of, lambda record: scatter[id(record)]).mean
    fitted = np.array([c.basis == "fitted" for stage in predictor.STAGES for c in stage.constants])
    return replace(shipped, mean=np.where(fitted, mean, shipped.mean))


def _widened(stage: Stage) -> Stage:
    constants = (replace(constant, spread=WIDE if constant.basis == "fitted" else 0.0) for constant in stage.constants)
    return replace(stage, constants=tuple(constants))


def _some(records: Sequence[PredictedRecord], folds: dict[int, str], seed: int) -> list[PredictedRecord]:
    """At most so many records of each fold, chosen by the seed."""
    random = np.random.default_rng(seed)
    kept: list[PredictedRecord] = []
    for name in sorted({folds[record.place] for record in records}):
        own = [record for record in records if folds[record.place] == name]
        picked = range(len(own)) if len(own) <= _MOST else sorted(random.choice(len(own), _MOST, replace=False))
        kept += [own[index] for index in picked]
    return kept


def _again(
    record: PredictedRecord, predictor: Predictor, profiles_of: ProfilesOf, views: Views, seed: int
) -> PredictedRecord | None:
    names = [field.name for field in record.fields]
    try:
        found = fields(names, predictor, record.record, profiles_of(record.record), views, seed)
    except Refused:
        return None
    return replace(record, fields=found) if found and found[0].name == names[0] else None
