"""
Lines that say the same keys again and again: each order of keys becomes one pattern, which finds all values at once.

A pattern proves that every value is a number; those that nobody asks for are never converted, which saves most of the
work.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from rlsize.readers.logs.figures import Row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from collections.abc import Set as AbstractSet

_NUMBER = r"[-+]?[0-9]++(?:\.[0-9]*+)?+(?:e[-+]?[0-9]++)?+"
_WRAPPED = re.compile(r"np\.\w+\(([^()]*)\)")
_MOST_LAYOUTS = 32
_MOST_KEYS = 500
_LONGEST_KEYS = 32_768
_TRIED = 4


class Texts(Mapping[str, float]):
    """
    Numbers by key, converted when they are asked for.

    Args:
        places: The group of the match that has a key's number; 0 for keys that are rarely asked for.
        found: The match of a line.
    """

    __slots__ = ("_found", "_places")

    def __init__(self, places: dict[str, int], found: re.Match[str]) -> None:
        self._places = places
        self._found = found

    def __getitem__(self, key: str) -> float:
        place = self._places[key]
        if place:
            return float(self._found[place])
        pairs = (pair.partition(":") for pair in self._found.string.split(" - "))
        return next(float(value) for name, _, value in pairs if name == key)

    def some(self, keys: Iterable[str]) -> dict[str, float]:
        """The numbers of a few keys, more quickly than one by one."""
        found, places = self._found, self._places
        return {key: float(found[places[key]]) if places[key] else self[key] for key in keys}

    def __contains__(self, key: object) -> bool:
        return key in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


class _Layout:
    """One order of keys."""

    def __init__(self, keys: tuple[str, ...], wanted: AbstractSet[str]) -> None:
        self.keys = keys
        caught = [key for key in keys if key in wanted]
        self.places = dict.fromkeys(keys, 0) | {key: place for place, key in enumerate(caught, 1)}
        numbers = dict.fromkeys(caught, f"({_NUMBER})")
        pairs = (f"{re.escape(key)}:{numbers.get(key, _NUMBER)}" for key in keys)
        self.pattern = re.compile(" - ".join(pairs) + r"\s*+")


class Layouts:
    """
    The orders of keys of a log, the latest first.

    Args:
        wanted: Keys that are asked for in every line.
    """

    def __init__(self, wanted: AbstractSet[str]) -> None:
        self._wanted = wanted
        self._known: list[_Layout] = []
        self._learned = 0

    def row(self, text: str, step: float, place: str) -> Row | None:
        """The record that a text is, if its keys stand in a known order and all values are numbers."""
        if "np." in text:
            text = _WRAPPED.sub(r"\1", text)
        for place_, layout in enumerate(self._known[:_TRIED]):
            found = layout.pattern.fullmatch(text)
            if found is not None:
                if place_:
                    self._known.insert(0, self._known.pop(place_))
                return Row(step, Texts(layout.places, found), place, layout=layout.keys)
        return None

    def learn(self, keys: tuple[str, ...]) -> None:
        """Know an order of keys from now on, unless it is too long, or there are too many of them."""
        known = any(layout.keys == keys for layout in self._known)
        if known or not 0 < len(keys) <= _MOST_KEYS or sum(map(len, keys)) > _LONGEST_KEYS:
            return
        if self._learned < _MOST_LAYOUTS:
            self._learned += 1
            self._known.insert(0, _Layout(keys, self._wanted))
