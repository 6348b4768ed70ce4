"""
TOML launch configurations, each value with its place, and several files pasted one after the other.

`tomllib` proves that a text is TOML and gives each value; where a value stands, it does not say. So a scan finds the
keys, the tables and the extent of each value, within a bound on depth, which `tomllib` has not either.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from rlsize.errors import Fault, InputError
from rlsize.readers.launch.literals import Literals
from rlsize.readers.launch.nodes import DEEPEST, Count, Node, Places, UnreadableError, merged, shown

if TYPE_CHECKING:
    from rlsize.readers.launch.nodes import Held

_MOST_FILES = 50
_SKIP = re.compile(r"(?:[ \t\r\n]++|#[^\n]*+)*+")
_LINE_END = re.compile(r"[ \t]*(?:#[^\n]*)?\r?(?:\n|\Z)")
_PART = re.compile(r"""[ \t]*(?:([\w-]+)|("[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"|'[^'\n]*'))[ \t]*""")
_STRING = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*+"{3,5}'
    r"|'''(?:[^']|'(?!''))*+'{3,5}"
    r'|"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
_BARE = re.compile(r"[^,\]}#\n]+")
_HEADING = re.compile(r"^[ \t]*#+[ \t]*[-=]*[ \t]*([\w./-]+)\.toml[ \t]*:?[ \t]*[-=]*[ \t]*$", re.MULTILINE)


def toml_settings(text: str, name: str, notes: list[str]) -> Node:
    """
    A TOML configuration; keys of files that headings name (`# train.toml`) begin with the file's stem.

    Args:
        text: Its text.
        name: Its name.
        notes: Takes what a reader must know.

    Raises:
        InputError: It is not TOML, with file and line.
    """
    places = Places(text, name)
    count = Count(name)
    headings: list[re.Match[str] | None] = list(_HEADING.finditer(text))
    if len(headings) > _MOST_FILES:
        raise InputError(Fault(f"holds more than {_MOST_FILES} files", name, "paste those of one run"))
    starts = [found.start() for found in headings if found]
    if not starts or text[: starts[0]].strip():
        starts.insert(0, 0)
        headings.insert(0, None)
    whole = Node({}, places.span(0, 0))
    for heading, start, end in zip(headings, starts, [*starts[1:], len(text)], strict=True):
        part = _part(text, start, end, places, count, notes)
        if heading is not None and len(starts) > 1:
            part = Node({PurePosixPath(heading[1]).name: part}, part.span)
        whole = merged(whole, part)
    return whole


def _part(text: str, start: int, end: int, places: Places, count: Count, notes: list[str]) -> Node:
    """One file of a text."""
    todo = "mend the line or the one above it"
    scan = _Scan(text[:end], start, places, count)
    try:
        scan.tables()
    except UnreadableError as error:
        where = str(places.span(error.at, error.at))
        raise InputError(Fault("is not valid TOML", where, todo)) from None
    try:
        tomllib.loads(text[start:end].replace("\r\n", "\n"))
    except ValueError as error:  # of TOML, and of numbers with too many digits
        problem = str(error).partition(" (at ")[0]
        found = re.search(r"line (\d+)", str(error))
        line = places.span(start, start).line + int(found[1]) - 1 if found else 1
        if not scan.repeated:
            raise InputError(Fault(f"is not valid TOML: {problem}", f"{places.file}:{line}", todo)) from None
        names = ", ".join(dict.fromkeys(shown(name) for name in scan.repeated))
        notes.append(f"{places.file} says {names} more than once: tables are merged, and the last value counts")
    return Node(scan.root, places.span(start, start))


class _Values(Literals):
    """Values of TOML, with comments between them."""

    _space = _SKIP
    _key = re.compile(r"[\w.-]+")
    _equals = "="

    def _scalar(self, start: int, _: int) -> tuple[Held, int]:
        found = _STRING.match(self._text, start) or _BARE.match(self._text, start)
        if found is None:
            raise UnreadableError(start)
        raw = found[0].rstrip()
        value = _loaded(raw, start)
        return value if isinstance(value, str | bool | int | float) else str(value), start + len(raw)


def _loaded(raw: str, at: int) -> object:
    """What a scalar or a quoted key says."""
    try:
        return tomllib.loads(f"value = {raw}")["value"]
    except ValueError:
        raise UnreadableError(at) from None


class _Scan:
    """Finds keys and values from one place of a text to its end."""

    def __init__(self, text: str, start: int, places: Places, count: Count) -> None:
        self._text = text
        self._at = start
        self._places = places
        self._count = count
        self._values = _Values(text, places, count)
        self._named: set[tuple[str, ...]] = set()
        self.root: dict[str, Node] = {}
        self.repeated: list[str] = []

    def tables(self) -> None:
        """Read all of it into `root`."""
        table = self.root
        self._at = self._values.after_space(self._at)
        while self._at < len(self._text):
            start = self._at
            if self._text.startswith("[", start):
                table = self._header(start)
            else:
                self._pair(table)
            rest = _LINE_END.match(self._text, self._at)
            if rest is None:
                raise UnreadableError(self._at)
            self._at = self._values.after_space(rest.end())
        self.repeated += self._values.repeated

    def _expect(self, mark: str) -> None:
        if not self._text.startswith(mark, self._at):
            raise UnreadableError(min(self._at, len(self._text)))
        self._at += len(mark)

    def _key(self) -> list[str]:
        parts: list[str] = []
        while True:
            found = _PART.match(self._text, self._at)
            if found is None or len(parts) > DEEPEST:
                raise UnreadableError(min(self._at, len(self._text)))
            parts.append(found[1] or str(_loaded(found[2], found.start())))
            self._at = found.end()
            if not self._text.startswith(".", self._at):
                return parts
            self._at += 1

    def _header(self, start: int) -> dict[str, Node]:
        """The table that a heading names."""
        mark = "[[" if self._text.startswith("[[", start) else "["
        self._expect(mark)
        parts = self._key()
        self._expect("]" * len(mark))
        outer = self._down(self.root, parts[:-1], start)
        last = parts[-1]
        empty = Node({}, self._places.span(start, start))
        if mark == "[[":
            items = outer.setdefault(last, Node([], empty.span)).value
            if not isinstance(items, list):
                raise UnreadableError(start)
            self._count.one(0, empty.span)
            items.append(empty)
            # Tables below the last item may stand once more for the next one.
            self._named = {name for name in self._named if name[: len(parts)] != tuple(parts)}
            return empty.value  # type: ignore[return-value] # made a mapping above
        if tuple(parts) in self._named:
            self.repeated.append(".".join(parts))
        self._named.add(tuple(parts))
        return self._down(outer, [last], start)

    def _down(self, table: dict[str, Node], parts: list[str], at: int) -> dict[str, Node]:
        """The table below another, made where it is not there; of several, the last."""
        for part in parts:
            if part not in table:
                self._count.one(0, self._places.span(at, at))
                table[part] = Node({}, self._places.span(at, at))
            held = table[part].value
            if isinstance(held, list) and held:
                held = held[-1].value
            if not isinstance(held, dict):
                raise UnreadableError(at)
            table = held
        return table

    def _pair(self, table: dict[str, Node]) -> None:
        start = self._at
        parts = self._key()
        self._expect("=")
        outer = self._down(table, parts[:-1], start)
        if parts[-1] in outer:
            self.repeated.append(".".join(parts))
        if _LINE_END.match(self._text, self._at):
            raise UnreadableError(self._at)
        outer[parts[-1]], self._at = self._values.value(self._at, len(parts))
