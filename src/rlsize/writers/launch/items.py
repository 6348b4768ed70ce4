"""Commands that are lists, in YAML, JSON and Python: each word is an item, and new items come behind their kin."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from rlsize.writers.launch.edits import Edit
from rlsize.writers.launch.shell import Place, ShellEditor, plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlsize.facts.launch import Setting, Span

_LOOK_BACK = 400  # bytes before a value in which its flag stands
_LITERAL = re.compile(rb"[rRbBfFuU]{0,2}([\"'])")
_ROW = re.compile(rb"\s*-\s+")
_FLAG_BEFORE = re.compile(rb"([\"']?)--?([A-Za-z_][\w.-]*)\1\s*(?:,|\n[ \t]*-[ \t])\s*\Z")
_BARE = re.compile(r"[A-Za-z_./-][\w./=+-]*")
"""A word that YAML takes as text without quotes."""


def is_item(data: bytes, span: Span) -> bool:
    """
    Whether a word is an item of a list of its own, and no part of a script.

    Args:
        data: The file.
        span: The word.
    """
    before, after = data[: span.start], data[span.end :]
    row = _ROW.fullmatch(before[before.rfind(b"\n") + 1 :]) is not None
    ends = rb"[ \t]*(?:#.*)?(?:\r?\n|\Z)" if row else rb"\s*(?:#.*\s*)?[,\])]"
    return (row or before.rstrip()[-1:] in (b"[", b",", b"(")) and re.match(ends, after) is not None


class ItemEditor(ShellEditor):
    """Edits of a command that is a list; `code` where Python makes it."""

    code = False

    def _place(self, key: str, setting: Setting) -> Place:
        start, end = setting.span.start, setting.span.end
        if key.startswith(("env.", "batch.", "cluster.")):
            return super()._place(key, setting)
        raw = self.data[start:end]
        flag = _FLAG_BEFORE.search(self.data[max(0, start - _LOOK_BACK) : start])
        if flag and setting.key.endswith(flag[2].decode()):
            whole = " " not in str(setting.value) or b" " in raw  # else it is the last of several words
            return Place(start - len(flag[0]), end, (start, end) if whole else None, dashes=True, apart=True)
        dashes = raw.lstrip(b"rRbBfFuU").lstrip(b"\"'")[:1] == b"-"
        return Place(start, end, (start, end) if b"=" in raw else None, dashes=dashes)

    def _instead(self, raw: bytes, key: bytes, value: object) -> bytes | None:
        text = plain(value, capitals=self.capitals)
        if key or b"=" not in raw:  # a flag before it, or a variable of its own
            return self._item(text, raw)
        said, equals, old = raw.partition(b"=")
        quote = _LITERAL.match(raw)
        closing = quote[1] if quote else b""
        safe = old.endswith(closing) and re.search(r"[\"'\\{}]", text) is None
        return said + equals + text.encode() + closing if safe else None

    def _item(self, text: str, kin: bytes) -> bytes:
        """A word as an item, in quotes like those of another one."""
        quote = _LITERAL.match(kin)
        if quote is None and not self.code and (_BARE.fullmatch(text) or kin.isdigit()):
            return text.encode()
        single = quote is not None and quote[1] == b"'" and re.search(r"['\\\n]", text) is None
        return f"'{text}'".encode() if single else json.dumps(text, ensure_ascii=False).encode()

    def _after(self, place: Place, word: str) -> Edit:
        return self._behind(place, [word])

    def _behind(self, place: Place, words: list[str]) -> Edit:
        """Items behind another: on lines of their own where the other one has one."""
        lines, raw = self.lines, self.data[place.start : place.end]
        items = [self._item(word, b"" if raw[:1].isdigit() else raw) for word in words]
        indent, rest = lines.indent(place.start), lines.rest(place.end).removeprefix(b",").strip()
        if indent is not None and _ROW.fullmatch(indent):
            end = lines.end(place.end)
            return Edit(end, end, b"".join(lines.newline + indent + item for item in items))
        alone = indent is not None and (not rest or rest.startswith(b"#"))
        before = b"," + lines.newline + indent if indent is not None and alone else b", "
        return Edit(place.end, place.end, before + (before if b"\n" in raw else b", ").join(items))

    def _first(self, end: int, words: list[str]) -> Edit:
        program = self.places.get("launcher.program")
        return super()._first(end, words) if program is None else self._behind(program, words)

    def _without(self, place: Place) -> Iterator[Edit]:
        """Items taken away, with their lines or the comma that parted them from others."""
        lines, start, end = self.lines, place.start, place.end
        indent, comma = lines.indent(start), re.match(rb"\s*,[ \t]*", self.data[end:])
        if indent is not None and lines.rest(end) in {b"", b","}:
            yield Edit(lines.start(start), min(len(self.data), lines.end(end) + len(lines.newline)), b"")
        elif comma:
            yield Edit(start, end + len(comma[0]), b"")
        else:
            before = re.search(rb",\s*\Z", self.data[:start])
            yield Edit(start - len(before[0]) if before else start, end, b"")
