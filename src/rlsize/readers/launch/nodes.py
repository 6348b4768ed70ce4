"""A configuration as a tree in which every value knows its place."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, TypeAlias

from rlsize.errors import Fault, InputError, too_deep
from rlsize.facts.launch import Setting, Span, Value
from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

DEEPEST = 40
MOST_SETTINGS = 20_000
MOST_NODES = 40_000

Held: TypeAlias = "int | float | str | bool | list[Node] | dict[str, Node] | None"


class UnreadableError(Exception):
    """
    A text is not what it is read as.

    Args:
        at: The character at which this was seen.
    """

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at


@dataclass(frozen=True, slots=True)
class Node:
    """
    A value of a configuration and its place.

    Args:
        value: A scalar, a list of nodes, or nodes by key.
        span: Where it stands.
        why_not: Why its value is not known; empty where it is.
    """

    value: Held
    span: Span
    why_not: str = ""

    @property
    def plain(self) -> Value:
        """The value without places; what is not known in it is left out."""
        if isinstance(self.value, dict):
            return {key: child.plain for key, child in self.value.items() if not child.why_not}
        if isinstance(self.value, list):
            return [child.plain for child in self.value if not child.why_not]
        return self.value


class Places:
    """
    From places in a text to places in its file.

    Args:
        text: The text.
        file: The file's name.
        numbers: The number of each line, where the text is made of some lines of the file; no bytes are known then.
    """

    def __init__(self, text: str, file: str, numbers: Sequence[int] | None = None) -> None:
        self.file = file
        self._ends = array("I", (found.end() for found in re.finditer("\n", text)))
        self._numbers = numbers
        self._bytes: array[int] | None = None
        if not text.isascii():
            # Bytes before each character: values may stand anywhere in a long line.
            sizes = (1 + (char > "\x7f") + (char > "\u07ff") + (char > "\uffff") for char in text)
            self._bytes = array("I", accumulate(sizes, initial=0))

    def span(self, start: int, end: int) -> Span:
        """The span from one character to before another."""
        line = bisect_left(self._ends, start + 1)
        if self._numbers is not None:
            return Span(self.file, self._numbers[min(line, len(self._numbers) - 1)])
        if self._bytes is not None:
            start, end = self._bytes[start], self._bytes[end]
        return Span(self.file, line + 1, start, end)


class Count:
    """
    Nodes that were made, against the most that there may be.

    Args:
        file: The file, for the fault.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self._left = MOST_NODES

    def one(self, depth: int, span: Span) -> None:
        """
        Note another node.

        Raises:
            InputError: There are too many, or it lies too deep.
        """
        self._left -= 1
        if self._left < 0:
            what = f"says more than {MOST_NODES:,} values, aliases written out"
            raise InputError(Fault(what, self.file, "is it the file you meant?"))
        if depth > DEEPEST:
            raise InputError(too_deep(DEEPEST, str(span)))


def placeless(node: Node, count: Count, depth: int = 0) -> Node:
    """A copy without bytes of its own: what an alias of a mapping repeats stands only once in the file."""
    count.one(depth, node.span)
    held = node.value
    if isinstance(held, dict):
        held = {key: placeless(child, count, depth + 1) for key, child in held.items()}
    elif isinstance(held, list):
        held = [placeless(child, count, depth + 1) for child in held]
    return replace(node, value=held, span=replace(node.span, end=node.span.start))


def merged(under: Node, over: Node) -> Node:
    """One configuration over another: mappings are merged, anything else is replaced."""
    if not (isinstance(under.value, dict) and isinstance(over.value, dict)):
        return over
    held = dict(under.value)
    for key, child in over.value.items():
        held[key] = merged(held[key], child) if key in held else child
    return replace(over, value=held)


def leaves(node: Node, key: str = "") -> Iterator[tuple[str, Node]]:
    """Dotted keys and what they hold: scalars, lists of scalars, what is empty; mappings in lists go by number."""
    held = node.value
    if isinstance(held, list) and any(isinstance(child.value, dict) for child in held):
        held = {str(index): child for index, child in enumerate(held)}
    if isinstance(held, dict) and held:
        for name, child in held.items():
            yield from leaves(child, f"{key}.{name}" if key else name)
    elif key:
        yield key, node


def settings_of(root: Node, file: str, notes: list[str]) -> tuple[Setting, ...]:
    """
    The settings of a configuration.

    Raises:
        InputError: There are too many.
    """
    found = []
    for key, node in leaves(root):
        if node.why_not:
            notes.append(f"{node.span}: {shown(key)} is left out: {node.why_not}")
        else:
            found.append(Setting(key, node.plain, node.span, inherited=node.span.file != file))
        if len(found) > MOST_SETTINGS:
            raise InputError(Fault(f"says more than {MOST_SETTINGS:,} settings", file, "is it the file you meant?"))
    return tuple(found)


def shown(text: str) -> str:
    r"""
    A name as a message may hold it: printable and short.

    >>> shown("a\x1bb")
    'a?b'
    """
    clean = "".join(char if char.isprintable() else "?" for char in text[:81])
    return clean if len(clean) <= 80 else f"{clean[:77]}..."  # noqa: PLR2004 (a line of a terminal)
