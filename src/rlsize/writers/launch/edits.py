"""Edits of a file's bytes: what is replaced, what is put in, and what none of them touches."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlsize.errors import DoesNotFitError, Fault

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rlsize.facts.launch import Setting


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """
    One edit.

    Args:
        start: The first byte that goes.
        end: The byte after the last one that goes; equal to start where something is put in.
        text: What comes there.
    """

    start: int
    end: int
    text: bytes


def own_settings(settings: Mapping[str, Setting], name: str) -> dict[str, Setting]:
    """
    The settings whose values stand in a file, each in a place of its own, so that they can be replaced there.

    Args:
        settings: What is set, by key.
        name: The file.
    """
    spans = Counter(setting.span for setting in settings.values())
    return {
        key: setting
        for key, setting in settings.items()
        if setting.span.file == name and setting.span.end > setting.span.start and spans[setting.span] == 1
    }


def edited(data: bytes, edits: Iterable[Edit]) -> bytes:
    """
    A file after all edits; those at one place in the order in which they are given.

    Raises:
        DoesNotFitError: Two of them touch the same bytes.

    >>> edited(b"a=1 b=2", [Edit(6, 7, b"3"), Edit(3, 3, b" c=4")])
    b'a=1 c=4 b=3'
    """
    parts, at = [], 0
    for edit in sorted(edits, key=lambda one: (one.start, one.end)):
        if edit.start < at:
            line = data.count(b"\n", 0, edit.start) + 1
            raise DoesNotFitError(Fault("two values to change stand in one place", f"line {line}", "change it by hand"))
        parts += [data[at : edit.start], edit.text]
        at = edit.end
    return b"".join([*parts, data[at:]])


class Lines:
    """
    The lines of a file.

    Args:
        data: Its bytes.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.newline = b"\r\n" if b"\r\n" in data else b"\n"

    def start(self, at: int) -> int:
        """Where the line of a byte begins."""
        return self.data.rfind(b"\n", 0, at) + 1

    def end(self, at: int) -> int:
        """Where the line of a byte ends, before what ends it."""
        found = self.data.find(b"\n", at)
        stop = len(self.data) if found < 0 else found
        return stop - 1 if stop > at and self.data[stop - 1 : stop] == b"\r" else stop

    def indent(self, at: int) -> bytes | None:
        """What stands before a byte on its line, where that is only blanks, or the sign of a list in YAML."""
        before = self.data[self.start(at) : at]
        return before if re.fullmatch(rb"\s*(?:-[ \t]+)?", before) else None

    def rest(self, at: int) -> bytes:
        """What stands behind a byte on its line."""
        return self.data[at : self.end(at)].strip()

    def above(self, at: int) -> bytes:
        """The line above that of a byte, without blanks behind it."""
        start = self.start(at)
        return self.data[self.start(start - 1) : start].rstrip() if start else b""

    def without(self, start: int, end: int) -> Edit | None:
        """A key with its value taken away, where nothing else stands on its line."""
        head, rest = self.data[self.start(start) : start], self.rest(end)
        if not re.fullmatch(rb"\s*[\w.\"'-]+\s*[:=]\s*", head) or not (rest in (b"", b",") or rest.startswith(b"#")):
            return None
        return Edit(self.start(start), min(len(self.data), self.end(end) + len(self.newline)), b"")
