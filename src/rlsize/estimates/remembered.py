"""
Remembering what was worked out of a profile, which does not change while a program runs.

A plan asks for the size of the same model thousands of times.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_KEPT = 256  # answers of each function

P = ParamSpec("P")
R = TypeVar("R")


def remembered(function: Callable[P, R]) -> Callable[P, R]:
    """
    The same function, which answers at once where it was asked before.

    Arguments are told apart by what they are, not by what they hold: profiles are frozen, and hold dictionaries, which
    cannot be hashed. Each answer keeps its arguments, so that no other object takes their place in memory. Numbers,
    text and arrays of numbers are told apart by what they hold: draws are made anew, and are the same.
    """
    known: OrderedDict[tuple[object, ...], tuple[tuple[object, ...], R]] = OrderedDict()

    @wraps(function)
    def answer(*args: P.args, **named: P.kwargs) -> R:
        given = (*args, *named.values())
        key = (len(args), *named, *map(_held, given))
        if key in known:
            known.move_to_end(key)
            return known[key][1]
        found = function(*args, **named)
        known[key] = (given, found)
        if len(known) > _KEPT:
            known.popitem(last=False)
        return found

    return answer


def _held(value: object) -> object:
    """By what an argument is told apart from others."""
    if isinstance(value, (str, int, float, bool)):
        return value
    array: Any = value
    return (array.shape, array.dtype, array.tobytes()) if hasattr(value, "tobytes") else (id(value),)
