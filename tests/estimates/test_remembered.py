"""What is remembered is told apart by what it was asked of."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlsize.estimates import remembered as module
from rlsize.estimates.remembered import remembered


def counted() -> tuple[Any, list[object]]:
    """A remembered function, and what it was called with."""
    calls: list[object] = []

    def function(*args: object, **named: object) -> int:
        calls.append((args, named))
        return len(calls)

    return remembered(function), calls


def test_the_same_object_is_asked_once() -> None:
    """An equal one that is another is asked again: it may hold other things later."""
    answer, calls = counted()
    held = {"a": 1}
    assert answer(held) == answer(held) == 1
    assert answer({"a": 1}) == 2
    assert len(calls) == 2


def test_numbers_and_words_are_told_apart_by_value() -> None:
    """Not by where they lie in memory."""
    answer, _ = counted()
    assert answer(1.5, "a") == answer(3.0 / 2.0, "A".lower()) == 1
    assert answer(1.5, "b") == 2


def test_arrays_are_told_apart_by_what_they_hold() -> None:
    """Draws that are made anew are the same; an array that was written to, or has another shape, is not."""
    answer, _ = counted()
    held = np.array([1.0, 2.0])
    assert answer(held) == answer(np.array([1.0, 2.0])) == 1
    assert answer(np.array([[1.0, 2.0]])) == 2
    held[0] = 3.0
    assert answer(held) == 3
    assert answer(np.array([1, 2])) == 4


def test_a_name_is_no_argument() -> None:
    """`f("x", 5)` is not `f(x=5)`, nor is `f(a=1, b=2)` the same as `f(a=2, b=1)`."""
    answer, _ = counted()
    assert len({answer("x", 5), answer(x=5), answer(a=1, b=2), answer(a=2, b=1), answer("a", "b", 1, 2)}) == 5


def test_a_number_is_not_the_place_of_an_object() -> None:
    """A number that happens to be the identity of an object is another argument."""
    answer, _ = counted()
    held = object()
    assert answer(held) != answer(id(held))


def test_the_oldest_answers_are_let_go() -> None:
    """As many as are kept, by last use; memory does not grow with what is asked."""
    answer, calls = counted()
    first = object()
    answer(first)
    others = [object() for _ in range(module._KEPT)]
    for other in others[:-1]:
        answer(other)
    assert answer(first) == 1
    answer(others[-1])
    assert answer(first) == 1  # used last, so others went before it
    before = len(calls)
    answer(others[0])
    assert len(calls) == before + 1
