"""
Remembering what was worked out of a profile, which does not change while a program runs.

A plan asks for the size of the same model thousands of times.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_KEPT = 256  # answers of each function

P = ParamSpec("P")
R = TypeVar("R")


def remembered(function: Callable[P, R]) -> Callable[P, R]:
    """
    The same function, which answers at once where it was asked before.

    Arguments are told apart by what they are, not by what they hold: profiles are frozen, and hold dictionaries, which
    cannot be hashed. Each answer keeps its arguments, so that no other object takes their place in memory.
    """
    known: OrderedDict[tuple[object, ...], tuple[tuple[object, ...], R]] = OrderedDict()

    @wraps(function)
    def answer(*args: P.args, **named: P.kwargs) -> R:
        given = (*args, *named.values())
        held = (one if isinstance(one, (str, int, float, bool)) else (id(one),) for one in given)
        key = (len(args), *named, *held)
        if key in known:
            known.move_to_end(key)
            return known[key][1]
        found = function(*args, **named)
        known[key] = (given, found)
        if len(known) > _KEPT:
            known.popitem(last=False)
        return found

    return answer
