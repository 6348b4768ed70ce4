"""TOML and calls of Python: values as they stand, and new keys behind their kin."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING

from rlsize.writers.launch.edits import Edit, Lines, own_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rlsize.facts.launch import Setting


class RowEditor:
    """
    Edits of a TOML or Python file.

    Args:
        data: The file.
        name: Its name.
        settings: What it sets, by key.
        spelled: How a key is written.
        python: Whether it is Python.
    """

    def __init__(
        self, data: bytes, name: str, settings: Mapping[str, Setting], spelled: Callable[[str], str], *, python: bool
    ) -> None:
        self.lines, self.data, self.spelled, self.python = Lines(data), data, spelled, python
        self.tables: dict[str, list[bytes]] = {}
        self.own = own_settings(settings, name)

    def edits(self, key: str, value: object) -> Iterator[Edit] | None:
        """What gives a key a value; None where that cannot be done."""
        setting = self.own.get(key)
        if value is None:
            gone = setting and self.lines.without(setting.span.start, setting.span.end)
            return iter([gone]) if gone else None
        written = (repr(value) if self.python else json.dumps(value, ensure_ascii=False)).encode()
        if setting is not None:
            return iter([Edit(setting.span.start, setting.span.end, written)])
        table, _, bare = self.spelled(key).rpartition(".")
        near = [one for other, one in self.own.items() if other.rpartition(".")[0] == key.rpartition(".")[0]]
        # older names of keys that are together today may be of other tables
        near = [one for one in near if self.python or one.key.rpartition(".")[0] in {table, key.rpartition(".")[0]}]
        calls = Counter(one.key.rpartition(".")[0] for one in near)
        if self.python and calls:  # keys of several calls have one name: that of the call which has most of them
            call = calls.most_common(1)[0][0]
            near = [one for one in near if one.key.rpartition(".")[0] == call]
        kin = [one.span for one in near if self._keyed(one.span.start)]
        if kin:
            span = max(kin, key=lambda one: one.end)
            return iter([self._behind(span.start, span.end, bare.encode(), written)])
        if self.python or not table:
            return None
        self.tables.setdefault(table, []).append(f"{bare} = ".encode() + written)
        return iter(())

    def _keyed(self, start: int) -> bool:
        """Whether a value stands directly behind its own key."""
        return re.search(rb"[\w\"'-]\s*=\s*\Z", self.data[self.lines.start(start) : start]) is not None

    def _behind(self, start: int, end: int, key: bytes, value: bytes) -> Edit:
        """A key behind another one, in its line or in a line of its own."""
        said = re.search(rb"[\w.\"'-]+\s*=\s*\Z", self.data[self.lines.start(start) : start])
        indent = self.lines.indent(start - len(said[0])) if said else None
        if self.python:
            before = b", " if indent is None else b"," + self.lines.newline + indent
            return Edit(end, end, before + key + b"=" + value)
        if indent is None:  # a table in one line
            return Edit(end, end, b", " + key + b" = " + value)
        stop = self.lines.end(end)
        return Edit(stop, stop, self.lines.newline + indent + key + b" = " + value)

    def rest(self) -> Iterator[Edit]:
        """Rows below the head of their table, or in a new table at the end."""
        newline = self.lines.newline
        for table, rows in self.tables.items():
            name = rb"^[ \t]*\[\s*" + re.escape(table.encode()) + rb"\s*\][^\n]*?(?=\r?$)"
            head = re.search(name, self.data, re.MULTILINE)
            if head:
                yield Edit(head.end(), head.end(), b"".join(newline + row for row in rows))
                continue
            end = len(self.data)
            before = newline if self.data.endswith(b"\n") else newline + newline
            yield Edit(end, end, before + f"[{table}]".encode() + b"".join(newline + row for row in rows) + newline)
