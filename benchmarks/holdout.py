"""
Errors on records that no constant was fitted to: one fold at a time is left out, and the rest fitted anew.

A fit starts from what was believed before any record was looked at, so it knows nothing of the fold. Classes that share
a stage (closed loops and offline throughput) are fitted together, and a fold (a model, unless a class says otherwise)
is left out of all of them. The first stage of a class is fitted; the others stay as shipped, fitted to records of their
own. Bands keep the shipped spreads and noise around the fitted values: they are fixed before the fold that tests them
is looked at. A record whose kind is in the fold alone has the band of a kind that nobody has seen.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from benchmarks.fitting import fitted

from rlsize.errors import Refused
from rlsize.estimates.belief import prior
from rlsize.estimates.recorded.registry import as_unseen, fold, kinds, table
from rlsize.verdicts.predictions import Views, asked, fields

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rlsize.estimates.belief import Belief
    from rlsize.estimates.constants import Constant, Stage
    from rlsize.estimates.figures import Worked
    from rlsize.estimates.recorded.registry import Predictor, Profiles
    from rlsize.facts.records import Record
    from rlsize.verdicts.predictions import PredictedRecord, ProfilesOf, Say

WIDE = 1.0
"""Spread of the logarithm before a fit, of a fitted constant that does not say what was believed before."""

_MOST = 8  # records of a table in a fit; more say the same again, and count no more


def held_out(
    records: Sequence[PredictedRecord],
    predictors: Mapping[str, Predictor],
    profiles_of: ProfilesOf,
    seed: int,
    say: Say,
    by: Callable[[Predictor, Record], str] = fold,
) -> tuple[PredictedRecord, ...]:
    """
    Trusted records, each predicted by constants that were fitted without its fold.

    Args:
        records: Records of any classes.
        predictors: The predictor of each class.
        profiles_of: Looks up the profiles that a record names.
        seed: Of the draws behind the bands, and of the choice of records for the fit.
        say: Takes what is being done, and the share of it that is done.
        by: What is left out together: models, unless a class or the caller says otherwise.

    Returns:
        Nothing of classes that share one fold, or of which nothing is fitted; without records that cannot be predicted.
    """
    found: list[PredictedRecord] = []
    together: dict[str, list[str]] = {}  # classes by the stage that their records fit: the first of each
    for name, predictor in predictors.items():
        together.setdefault(predictor.STAGES[0].name, []).append(name)
    for stage, names in together.items():
        own = [record for record in records if record.trusted and record.class_name in names]
        folds = {record.place: by(predictors[record.class_name], record.record) for record in own}
        left_out = sorted(set(folds.values()))
        if len(left_out) == 1 or not any(c.untuned for c in _opened(predictors[names[0]])[0].constants):
            continue
        for done, name in enumerate(left_out):
            say(f"fitting {stage} without {name}", done / len(left_out))
            others = [record for record in own if folds[record.place] != name]
            values = refitted(others, predictors, profiles_of, seed)
            seen = kinds(predictors, [(r.class_name, r.record, profiles_of(r.record)) for r in others])
            views = {label: Views.of(_moved(prior(*predictors[label].STAGES), values), seed) for label in names}
            tested = [record for record in own if folds[record.place] == name]
            for record in tested:
                with suppress(Refused):
                    measured, view = [field.name for field in record.fields], views[record.class_name]
                    predictor, profiles = predictors[record.class_name], profiles_of(record.record)
                    told = as_unseen(predictor, record.record, profiles, seen)
                    again = fields(measured, predictor, told, profiles, view, seed)
                    found += [replace(record, fields=again)] if again and again[0].name == measured[0] else []
    return tuple(sorted(found, key=lambda record: record.place))


def refitted(
    records: Sequence[PredictedRecord], predictors: Mapping[str, Predictor], profiles_of: ProfilesOf, seed: int
) -> dict[str, float]:
    """The constants of classes that are fitted together, where these records put them."""
    first = predictors[records[0].class_name]
    chosen = _chosen(records, predictors, seed)
    residuals = [
        partial(_residual, predictors[r.class_name], r.record, profiles_of(r.record), r.fields[0].name) for r in chosen
    ]
    tables = [table(predictors[r.class_name], r.record) for r in chosen]
    return fitted(residuals, tables, _opened(first))


def _opened(predictor: Predictor) -> tuple[Stage, ...]:
    """The stages of a class as a fit takes them: the fitted constants of the first may move."""
    first, *others = predictor.STAGES
    return (replace(first, constants=tuple(map(_free, first.constants))), *others)


def _free(constant: Constant) -> Constant:
    fitted_one = constant.basis == "fitted"
    return replace(constant, untuned=(constant.untuned or (constant.value, WIDE)) if fitted_one else None)


def _chosen(
    records: Sequence[PredictedRecord], predictors: Mapping[str, Predictor], seed: int
) -> list[PredictedRecord]:
    """Records, at most so many of each table, chosen by the seed."""
    tables: dict[str, list[PredictedRecord]] = {}
    for name in sorted({record.class_name for record in records}):
        own = [record for record in records if record.class_name == name]
        for record in own:
            tables.setdefault(table(predictors[name], record.record), []).append(record)
    random = np.random.default_rng(seed)
    return [
        rows[index]
        for rows in tables.values()
        for index in sorted(random.choice(len(rows), min(len(rows), _MOST), replace=False))
    ]


def _residual(predictor: Predictor, record: Record, profiles: Profiles, name: str, values: Mapping[str, Any]) -> Worked:
    """Logarithm of predicted over measured; 0 where the constants are out of reach, which pulls nowhere."""
    try:
        predicted = np.asarray(asked(predictor, record, profiles, values)[name], dtype=float)
    except (Refused, LookupError):
        return 0.0
    with np.errstate(all="ignore"):
        logs = np.log(predicted / record.measured[name])
    return logs if np.isfinite(logs).all() else 0.0


def _moved(belief: Belief, values: Mapping[str, float]) -> Belief:
    """A belief around other values, as wide as it was."""
    mean = [
        np.log(values[name]) if name in values else own for name, own in zip(belief.names, belief.mean, strict=True)
    ]
    return replace(belief, mean=np.array(mean))
