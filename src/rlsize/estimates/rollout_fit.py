"""Whether an engine fits on its GPUs, and what would."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rlsize.estimates.figures import numbers
from rlsize.estimates.generation import lengths_of
from rlsize.estimates.rollout_prediction import cache_capacity, check_fits, engine
from rlsize.estimates.rollout_question import bare, step_batch
from rlsize.facts.quantisation import WIDTHS, native, uniform
from rlsize.facts.records.record import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rlsize.estimates.rollout_question import RolloutQuestion

A_FEW = 16
"""Samples that an instance should hold where nobody says how many GPUs it has."""

_NARROW = "fp8"


def why_not(question: RolloutQuestion, values: Mapping[str, float]) -> str:
    """
    Why the engine does not fit; empty where it does.

    Args:
        question: What is asked.
        values: Central values of the constants.
    """
    lengths = lengths_of(numbers, step_batch(question, bare(question)))
    try:
        check_fits(engine(question.engine), lengths, values)
    except Refused as reason:
        return str(reason)
    return ""


def first_fit(question: RolloutQuestion, degrees: Iterable[int], values: Mapping[str, float]) -> int | None:
    """
    The smallest degree of tensor parallelism at which the engine fits; None where it fits at none.

    Args:
        question: What is asked; its own degree does not matter.
        degrees: Those that can deal out the model's heads, smallest first.
        values: Central values of the constants.
    """
    for degree in degrees:
        if not why_not(_laid_out(question, degree), values):
            return degree
    return None


def usual_degree(question: RolloutQuestion, degrees: Sequence[int], values: Mapping[str, float]) -> int | None:
    """
    The smallest degree whose cache holds a few samples, else one that fits at all; None where none does.

    Args:
        question: What is asked.
        degrees: Those that can deal out the model's heads, smallest first.
        values: Central values of the constants.
    """
    fitting = [degree for degree in degrees if not why_not(_laid_out(question, degree), values)]
    for degree in fitting:
        moved = _laid_out(question, degree)
        lengths = lengths_of(numbers, step_batch(moved, bare(moved)))
        if cache_capacity(numbers, engine(moved.engine), lengths, values) >= A_FEW:
            return degree
    return fitting[-1] if fitting else None


def _laid_out(question: RolloutQuestion, degree: int) -> RolloutQuestion:
    layout = replace(question.engine.layout, tensor=degree)
    return replace(question, engine=replace(question.engine, layout=layout))


def fits_narrower(question: RolloutQuestion, values: Mapping[str, float]) -> bool:
    """Whether the engine, which has wider weights, would fit as laid out with those of 8 bits, on a GPU with units."""
    types = question.engine.weights or native(question.engine.model.name)
    wide = max(WIDTHS[name] for name in (types.dense, types.attention, types.experts)) > WIDTHS[_NARROW]
    if not wide or question.engine.gpu.specification.fp8_dense is None:
        return False
    return not why_not(replace(question, engine=replace(question.engine, weights=uniform(_NARROW))), values)
