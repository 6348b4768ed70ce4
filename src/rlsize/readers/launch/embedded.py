"""Scripts that stand in a configuration: which bytes of the file their words are."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import replace
from typing import TYPE_CHECKING

from rlsize.facts.launch import Span

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rlsize.facts.launch import Setting


def placed(settings: Iterable[Setting], script: str, text: str, where: Span) -> Iterator[Setting]:
    """
    What a script inside a file sets, with places in the file.

    Args:
        settings: What it sets, with places in its own text.
        script: Its text.
        text: The file's text.
        where: The script in the file.

    Yields:
        The settings; one whose words do not stand in the file as they stand in the script has no place of its own.
    """
    inner, outer = script.encode(), text.encode()
    pieces = _pieces(inner, outer, where.start)
    starts = [start for start, _, _ in pieces]
    for setting in settings:
        if setting.span.file != where.file:
            yield setting
            continue
        ends = []
        for at in (setting.span.start, max(setting.span.start, setting.span.end - 1)):
            index = bisect_right(starts, at) - 1
            start, place, length = pieces[index] if index >= 0 else (0, 0, 0)
            ends.append(place + at - start if at - start < length else -1)
        if min(ends) < 0 or setting.span.end <= setting.span.start:
            yield replace(setting, span=Span(where.file, where.line))
        else:
            line = outer.count(b"\n", 0, ends[0]) + 1
            yield replace(setting, span=Span(where.file, line, ends[0], ends[1] + 1))


def _pieces(script: bytes, text: bytes, at: int) -> list[tuple[int, int, int]]:
    """Parts of a script that stand in a text as they are, in order: where here, where there, how long."""
    found = []
    for line in re.finditer(rb"[^\n]*\S", script):
        whole = text.find(line[0], at)
        if whole >= 0:
            found.append((line.start(), whole, len(line[0])))
            at = whole + len(line[0])
            continue
        for word in re.finditer(rb"\S+", line[0]):
            place = text.find(word[0], at)
            if place >= 0:
                found.append((line.start() + word.start(), place, len(word[0])))
                at = place + len(word[0])
    return found
