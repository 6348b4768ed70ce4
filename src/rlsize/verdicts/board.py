"""The accuracy board: errors cell by cell beside the guess without a model, and which cells a change made worse."""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from rlsize.estimates.recorded.registry import number_type
from rlsize.facts.board import BoardCell
from rlsize.verdicts.contests import in_proportion
from rlsize.verdicts.grading import RESAMPLES, point, score

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rlsize.estimates.recorded.registry import Predictor
    from rlsize.verdicts.predictions import PredictedRecord, ProfilesOf

_HIGH = 0.975  # of a 95 % interval
_BAND = 0.8  # what bands are meant to hold
_DEVIATIONS = 1.96  # to either end of one


def board(
    records: Sequence[PredictedRecord], known: Mapping[str, Predictor], profiles_of: ProfilesOf, seed: int = 0
) -> tuple[BoardCell, ...]:
    """
    The trusted records by class, part, GPU, engine or framework, and number type.

    Args:
        records: Records with their predictions.
        known: The predictor of each class.
        profiles_of: Looks up the profiles that a record names.
        seed: Of the draws behind the noise.
    """
    cells: dict[tuple[str, ...], list[PredictedRecord]] = {}
    trusted = [one for one in records if one.trusted]
    for one in trusted:
        key = (one.class_name, one.cell, one.record.gpu, one.record.stack, number_type(one.record))
        cells.setdefault(key, []).append(one)
    guesses = _guesses(trusted, profiles_of)
    found = []
    for (name, part, gpu, stack, dtype), own in sorted(cells.items()):
        errors = score([point(one.fields[0], one.record.source_id, repr(one.family)) for one in own], seed)
        off = [abs(guesses[one.place] / one.fields[0].measured - 1.0) for one in own if one.place in guesses]
        scatter = max(known[name].noise(one.record) for one in own)
        found.append(
            BoardCell(
                class_name=name,
                part=part,
                gpu=gpu,
                stack=stack,
                dtype=dtype,
                records=errors.n,
                sources=errors.sources,
                median=_short(errors.median),
                p90=_short(errors.p90),
                noise=_short(max(_moved(own, seed), scatter / math.sqrt(len(own)))),
                coverage=None if errors.coverage is None else _short(errors.coverage),
                guess=_short(median(off)) if off else None,
            )
        )
    return tuple(found)


def worsened(before: Sequence[BoardCell], now: Sequence[BoardCell]) -> tuple[tuple[BoardCell, BoardCell | None], ...]:
    """
    Cells whose median error grew by more than their noise, or whose bands hold too little now; None where none is left.

    Args:
        before: A board that was saved.
        now: The board of the same records, or of more.
    """
    present = {cell.key: cell for cell in now}
    pairs = [(cell, present.get(cell.key)) for cell in before]
    return tuple(
        (old, new)
        for old, new in pairs
        if new is None or new.median > old.median + old.noise or _too_narrow(old.coverage, new)
    )


def _too_narrow(before: float | None, now: BoardCell) -> bool:
    """Whether bands hold less than they are meant to, and less than before by more than so many records may."""
    if before is None or now.coverage is None:
        return False
    chance = _DEVIATIONS * math.sqrt(_BAND * (1.0 - _BAND) / now.records)
    return now.coverage < min(_BAND, before - chance)


def _short(share: float) -> float:
    """Four digits: a board is kept and read."""
    return float(f"{share:.4g}")


def _moved(own: Sequence[PredictedRecord], seed: int) -> float:
    """How far above itself the median error may come out by the choice of records: upper end of its 95 % interval."""
    errors = np.array([abs(one.fields[0].predicted / one.fields[0].measured - 1.0) for one in own])
    picked = np.random.default_rng(seed).integers(0, len(errors), (RESAMPLES, len(errors)))
    return float(np.quantile(np.median(errors[picked], axis=1), _HIGH) - np.median(errors))


def _guesses(records: Sequence[PredictedRecord], profiles_of: ProfilesOf) -> dict[int, float]:
    """
    What somebody without a model would say of each record, by its place.

    The median of others' records of the same class and field, in proportion to GPUs, their peak and the model.
    """
    alike: dict[tuple[str, str], list[tuple[PredictedRecord, float]]] = {}
    for one in records:
        share = in_proportion(one.fields[0].name, one.record, profiles_of(one.record))
        alike.setdefault((one.class_name, one.fields[0].name), []).append((one, share))
    return dict(guess for own in alike.values() for guess in _of_others(own))


def _of_others(own: Sequence[tuple[PredictedRecord, float]]) -> Iterator[tuple[int, float]]:
    """What the others say: other publications where there are any, else other families of the same one."""
    several = len({one.record.source_id for one, _ in own}) > 1
    groups = [one.record.source_id if several else repr(one.family) for one, _ in own]
    rates = [one.fields[0].measured / share for one, share in own]
    said = {group: [rate for rate, other in zip(rates, groups, strict=True) if other != group] for group in set(groups)}
    medians = {group: median(others) for group, others in said.items() if others}
    for (one, share), group in zip(own, groups, strict=True):
        if group in medians:
            yield one.place, share * medians[group]
