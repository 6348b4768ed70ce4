"""
Lines that say the same keys again and again: each order of keys becomes one pattern, which finds all values at once.

A pattern proves that every value is a number; those that nobody asks for are never converted, which saves most of the
work.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from rlsize.readers.logs.rows import Row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_NUMBER = r"([-+]?[0-9]++(?:\.[0-9]*+)?+(?:e[-+]?[0-9]++)?+)"
_WRAPPED = re.compile(r"np\.\w+\(([^()]*)\)")
_MOST_LAYOUTS = 32
_MOST_KEYS = 500
_LONGEST_KEYS = 32_768
_TRIED = 4


class Texts(Mapping[str, float]):
    """Numbers by key, converted when they are asked for."""

    __slots__ = ("_index", "_texts")

    def __init__(self, index: dict[str, int], texts: tuple[str, ...]) -> None:
        self._index = index
        self._texts = texts

    def __getitem__(self, key: str) -> float:
        return float(self._texts[self._index[key]])

    def some(self, keys: Iterable[str]) -> dict[str, float]:
        """The numbers of a few keys, more quickly than one by one."""
        texts, index = self._texts, self._index
        return {key: float(texts[index[key]]) for key in keys}

    def __contains__(self, key: object) -> bool:
        return key in self._index

    def __iter__(self) -> Iterator[str]:
        return iter(self._index)

    def __len__(self) -> int:
        return len(self._index)


class _Layout:
    """One order of keys."""

    def __init__(self, keys: tuple[str, ...]) -> None:
        self.keys = keys
        self.index = {key: place for place, key in enumerate(keys)}
        self.pattern = re.compile(" - ".join(f"{re.escape(key)}:{_NUMBER}" for key in keys) + r"\s*")


class Layouts:
    """The orders of keys of a log, the latest first."""

    def __init__(self) -> None:
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
                return Row(step, Texts(layout.index, found.groups()), place, layout=layout.keys)
        return None

    def learn(self, keys: tuple[str, ...]) -> None:
        """Know an order of keys from now on, unless it is too long, or there are too many of them."""
        known = any(layout.keys == keys for layout in self._known)
        if known or not 0 < len(keys) <= _MOST_KEYS or sum(map(len, keys)) > _LONGEST_KEYS:
            return
        if self._learned < _MOST_LAYOUTS:
            self._learned += 1
            self._known.insert(0, _Layout(keys))
