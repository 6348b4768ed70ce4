"""
Figures of keys that no table knows: what their names say, as far as the numbers of a row bear it out.

A part of a step takes no longer than the step, and tokens are samples times their length. What contradicts that is
left to the next key that could be meant, and otherwise to the reader of the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.readers.logs.figures import Figure, inverse, product
from rlsize.readers.logs.names import meaning, words

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from rlsize.readers.logs.mapping import Values
    from rlsize.readers.logs.names import Meaning

_PARTS = ("generation_seconds", "wait_seconds", "logprob_seconds", "update_seconds", "sync_seconds", "reward_seconds")
_SUMMED = ("logprob_seconds", "update_seconds")
_SLACK = 1.05  # timers overlap a little, and printed times are rounded
_LONGEST = 1e6
"""Seconds of a step, at most: eleven days; what is more is a moment, no duration."""
_FACTOR = 2.0
"""How far tokens may be from samples times their length."""


def guessed(values: Values, wanted: Collection[str] | None, taken: Iterable[str], step: float | None) -> list[Figure]:
    """
    The figures that the names of a row's keys say.

    Args:
        values: The row.
        wanted: Fields that are asked for; None for all.
        taken: Keys that say something else.
        step: Seconds of the step, where it is known.
    """
    found: dict[str, list[tuple[Meaning, str]]] = {}
    other = frozenset(taken)
    for key in values:
        says = meaning(key)
        if says is not None and key not in other and (wanted is None or says.field in wanted):
            found.setdefault(says.field, []).append((says, key))
    for candidates in found.values():
        candidates.sort(key=lambda candidate: candidate[0].rank)
    longest = step if step is not None else _step(found, values)
    for field in (*_PARTS, "generation_tools_seconds", "step_seconds"):
        fitting = [one for one in found.pop(field, []) if _value(one, values) <= min(_SLACK * longest, _LONGEST)]
        found |= {field: fitting} if fitting else {}
    _check_tokens(found, values)
    figures = [_figure(field, candidates) for field, candidates in found.items()]
    by_field = {figure.field: figure for figure in figures}
    factors = [by_field[name].of[0] for name in ("samples", "mean_response_tokens") if name in by_field]
    if len(factors) > 1 and "response_tokens" not in by_field:
        figures.append(product("response_tokens", *factors))
    return figures


def _step(found: dict[str, list[tuple[Meaning, str]]], values: Values) -> float:
    """How long the step takes; where only training is timed "by step", and takes as long as all else, that is it."""
    if "step_seconds" not in found:
        parts = sum(_value(found[field][0], values) for field in _PARTS if field in found and field != "update_seconds")
        whole = [one for one in found.get("update_seconds", ()) if {"step", "total"} & {*words(one[1])}]
        longest = max(whole, key=lambda one: _value(one, values), default=None)
        if longest is not None and 0.0 < parts <= _value(longest, values):
            found["update_seconds"].remove(longest)
            found["step_seconds"] = [(longest[0]._replace(field="step_seconds"), longest[1])]
    return _value(found["step_seconds"][0], values) if "step_seconds" in found else _LONGEST


def _value(candidate: tuple[Meaning, str], values: Values) -> float:
    says, key = candidate
    value = values[key]
    return (1.0 / value if value > 0 else 0.0) if says.inverse else value * says.scale


def _check_tokens(found: dict[str, list[tuple[Meaning, str]]], values: Values) -> None:
    """Drop totals of tokens that are not samples times length: they count on, or count something else."""
    samples = next((_value(one, values) for one in found.get("samples", ())), None)
    for side in ("prompt", "response", "total"):
        length = next((_value(one, values) for one in found.get(f"mean_{side}_tokens", ())), None)
        if samples is None or length is None or f"{side}_tokens" not in found:
            continue
        total = _value(found[f"{side}_tokens"][0], values)
        if not samples * length / _FACTOR <= total <= samples * length * _FACTOR:
            del found[f"{side}_tokens"]


def _figure(field: str, candidates: list[tuple[Meaning, str]]) -> Figure:
    """The figure of the best key, or of the sum of the best of each role."""
    best, key = candidates[0]
    if best.inverse:
        return Figure(field=field, of=((key,),), how=inverse, says="1 / {0}")
    roles = {best.role: key}
    if field in _SUMMED and best.role != "all":
        same = (one for one in candidates if one[0].role != "all" and one[0].scale == best.scale)
        for says, other in same:
            roles.setdefault(says.role, other)
    return Figure(field=field, of=tuple((each,) for each in roles.values()), scale=best.scale)
