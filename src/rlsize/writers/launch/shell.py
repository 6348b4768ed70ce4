"""Shell scripts: values of `key=value` and `--flag value` as they stand, and new words beside their kin."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections import Counter
from dataclasses import dataclass
from itertools import takewhile
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rlsize.writers.launch.edits import Edit, Lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rlsize.facts.launch import Setting

_KEY = re.compile(rb"['\"]?(?:[^=$'\"\s{]|\$\{[^}]*\}|\$\w+)+=")
"""The part of a word before its value: variables in it stay, a list in braces is none."""
_FLAG = re.compile(rb"['\"]?--?[A-Za-z_][\w.-]*\Z")
_FLAG_BEFORE = re.compile(rb"(?<![^\s(])(--?[A-Za-z_][\w.-]*)(?:[ \t]|\\\r?\n)+\Z")
_LOOK_BACK = 400  # bytes before a value in which its flag stands
AROUND = ("launcher.", "server.", "env.", "batch.", "accelerate.", "deepspeed.", "cluster.")
_VARIABLE = re.compile(rb"\$\{?([A-Za-z_]\w*)")
"""What stands before keys that are not the program's own."""
_UNSAFE = re.compile(r"[\"'`$\\!]")


@dataclass(frozen=True, slots=True)
class Place:
    """
    A setting as it stands in the script.

    Args:
        start: Where its first word begins.
        end: Where its last word ends.
        value: Where its value stands; None where it has none of its own.
        dashes: Whether it is a flag.
        apart: Whether the value is a word of its own.
    """

    start: int
    end: int
    value: tuple[int, int] | None
    dashes: bool
    apart: bool = False


class ShellEditor:
    """
    Edits of a script.

    Args:
        data: The script.
        name: Its file.
        settings: What it sets, by key, what counts most last.
        spelled: How a key is written.
        usual: What the framework's keys are where they are not set, kin beside kin.
    """

    def __init__(
        self,
        data: bytes,
        name: str,
        settings: Mapping[str, Setting],
        spelled: Callable[[str], str],
        usual: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.lines, self.data, self.spelled, self.usual = Lines(data), data, spelled, usual
        self.ranks = {key: rank for rank, key in enumerate(usual)}
        spans = Counter(setting.span for setting in settings.values())
        self.places: dict[str, Place] = {}
        self.order = list(settings)
        self.shared: dict[str, int] = {}
        for key, setting in settings.items():
            span = setting.span
            if span.file == name and span.end > span.start:
                if spans[span] > 1 and not key.startswith(AROUND):
                    self.shared[key] = span.end
                else:
                    self.places[key] = place = self._place(key, setting)
                    if place.apart and place.value is None:
                        self.shared[key] = place.end
        self.capitals = re.search(rb"=(?:True|False)\b", data) is not None
        own = [setting.key for key, setting in settings.items() if not _group(key) and setting.span.file == name]
        self.dashed = sum("-" in key for key in own) > sum("_" in key for key in own)
        flags = sum(b"--" + key.encode() in data for key in own)
        self.flags = flags > sum(key.encode() + b"=" in data for key in own)

    def edits(self, key: str, value: object) -> Iterator[Edit] | None:
        """What gives a key a value; None takes it away. None where that cannot be done."""
        if key.endswith(".program"):  # another program takes other keys
            return None
        place = self.places.get(key)
        if place is not None and key not in self.shared:
            off = value is False and place.value is None and not self.usual.get(key)
            if value is None or off:
                return self._without(place)
            if place.value is None:
                return iter([] if value is True else [self._after(place, plain(value, capitals=self.capitals))])
            begin, end = place.value
            if isinstance(value, tuple) and place.apart:
                return iter([Edit(begin, end, b" ".join(self._text(one) for one in value))])
            written = self._instead(self.data[begin:end], self.data[place.start : begin], value)
            if written is not None:
                return iter([Edit(begin, end, written)])
        return self._new(key, value)

    def rest(self) -> Iterator[Edit]:
        """Nothing: a new word stands for itself."""
        return iter(())

    def _after(self, place: Place, word: str) -> Edit:
        """A word directly behind another one."""
        return Edit(place.end, place.end, b" " + shlex.quote(word).encode())

    def variables(self, key: str) -> set[bytes]:
        """Variables that the value of a key hangs on where it stands."""
        place = self.places.get(key)
        return set(_VARIABLE.findall(self.data[slice(*place.value)])) if place is not None and place.value else set()

    def _place(self, key: str, setting: Setting) -> Place:
        start, end = setting.span.start, setting.span.end
        raw = self.data[start:end]
        if key.startswith(("env.", "batch.", "cluster.")) and not raw.startswith(_name(setting) + b"="):
            return Place(start, end, (start, end), dashes=False)
        if _FLAG.match(raw):
            return Place(start, end, None, dashes=True)
        before = _FLAG_BEFORE.search(self.data[max(0, start - _LOOK_BACK) : start])
        if before and setting.key.endswith(before[1].decode().lstrip("-")):
            whole = " " not in str(setting.value) or b" " in raw  # else it is the last of several words
            begin = start - len(before[0])
            return Place(begin, end, (start, end) if whole else None, dashes=True, apart=True)
        said = _KEY.match(raw)
        value = (start + said.end(), end) if said else None
        of_file = self.data[:start].rstrip().endswith(b" @")  # `--trainer @ train.toml`
        return Place(start, end, value, dashes=of_file or raw.lstrip(b"'\"").startswith(b"-"))

    def _text(self, value: object) -> bytes:
        return shlex.quote(plain(value, capitals=self.capitals)).encode()

    def _instead(self, raw: bytes, key: bytes, value: object) -> bytes | None:
        """A value in the quotes of the one that it replaces; None where they do not hold it."""
        text = plain(value, capitals=self.capitals)
        opened = next((quote for quote in (b"'", b'"') if key.lstrip()[:1] == quote and key.count(quote) % 2), b"")
        if opened:
            return text.encode() + opened if raw.endswith(opened) and not _UNSAFE.search(text) else None
        quote = raw[:1] if raw[:1] in (b"'", b'"') and raw[-1:] == raw[:1] and len(raw) > 1 else b""
        return quote + text.encode() + quote if quote and not _UNSAFE.search(text) else shlex.quote(text).encode()

    def _without(self, place: Place) -> Iterator[Edit]:
        """A setting taken away, with its line where nothing else stands on it."""
        indent, rest = self.lines.indent(place.start), self.lines.rest(place.end)
        start, end = place.start, place.end
        if indent is not None and not rest and self.lines.above(start).endswith(b"\\"):  # the last of a command
            start, end = len(self.data[: self.lines.start(start)].rstrip()) - 1, self.lines.end(end)
            start = len(self.data[:start].rstrip(b" \t"))
        elif indent is not None and rest in (b"", b"\\"):
            start = self.lines.start(start)
            end = min(len(self.data), self.lines.end(end) + len(self.lines.newline))
        elif indent is not None:  # the first of several on its line
            end += len(self.data[end:]) - len(self.data[end:].lstrip(b" \t"))
        else:
            start -= len(self.data[:start]) - len(self.data[:start].rstrip(b" \t"))
        yield Edit(start, end, b"")

    def _new(self, key: str, value: object) -> Iterator[Edit] | None:
        """A word for a key that is not set, or cannot be changed where it is: behind its nearest kin."""
        if value is None:
            return None
        group = _group(key)
        after = self.order.index(key) if key in self.order else -1
        kin = [
            (_common(key, other), self._nearness(key, other), at, other)
            for at, other in enumerate(self.order)
            if other in self.places and at > after and _group(other) == group and other != "launcher.program"
        ]
        if group == "env.":
            return self._variable(key, value, [other for *_, other in kin])
        if group in {"batch.", "cluster.", "accelerate.", "deepspeed."}:
            return None
        if not kin:
            program = self.places.get("launcher.program")
            ends = [self.shared.get(key, 0), max(self.shared.values(), default=0), program.end if program else 0]
            end = next((end for end in ends if end), None) if not group else None
            return None if end is None else iter([self._first(end, self._words(key, value, None))])
        place = self.places[max(kin)[-1]]
        return iter([self._behind(place, self._words(key, value, place))])

    def _first(self, end: int, words: list[str]) -> Edit:
        """Words of a command that has no kin of theirs, behind what stands last."""
        return Edit(end, end, b" \\" + self.lines.newline + b"  " + shlex.join(words).encode())

    def _nearness(self, key: str, other: str) -> float:
        """How near two keys stand in the framework's own order; less for what it does not have."""
        both = key in self.ranks and other in self.ranks
        return -abs(self.ranks[key] - self.ranks[other]) if both else -math.inf

    def _variable(self, key: str, value: object, kin: list[str]) -> Iterator[Edit] | None:
        """A variable before another one of the same program, or of the same export."""
        for other in kin:
            name = other.removeprefix("env.").encode() + b"="
            start = self.places[other].start
            start -= 0 if self.data.startswith(name, start) else len(name)
            if self.data.startswith(name, start):
                return iter([Edit(start, start, key.removeprefix("env.").encode() + b"=" + self._text(value) + b" ")])
        return None

    def _words(self, key: str, value: object, kin: Place | None) -> list[str]:
        """A setting in the way in which its kin is written."""
        bare = self.spelled(key)
        for prefix in ("launcher.", "server."):
            bare = bare.removeprefix(prefix)
        text = plain(value, capitals=self.capitals)
        if not (self.flags if kin is None else kin.dashes):
            return [f"{bare}={text}"]
        flag = f"--{bare.replace('_', '-') if self.dashed else bare}"
        if value is True:
            return [flag]
        return [flag, text] if kin is None or kin.apart or kin.value is None else [f"{flag}={text}"]

    def _behind(self, place: Place, words: list[str]) -> Edit:
        """Words behind another: on a line of their own where the other one has one."""
        lines, word = self.lines, shlex.join(words).encode()
        indent, rest = lines.indent(place.start), lines.rest(place.end)
        if indent is None or not (rest in (b"", b"\\") or rest.startswith(b"#")):
            return Edit(place.end, place.end, b" " + word)
        if rest == b"\\" or lines.above(place.start).endswith(b"\\"):
            return Edit(place.end, place.end, b" \\" + lines.newline + indent + word)
        end = lines.end(place.end)
        return Edit(end, end, lines.newline + indent + word)


def uses(data: bytes, variable: bytes) -> list[int]:
    """Lines of a script that use a variable."""
    found = re.finditer(rb"\$\{?" + re.escape(variable) + rb"\b", data)
    return list(dict.fromkeys(data.count(b"\n", 0, use.start()) + 1 for use in found))


def plain(value: object, *, capitals: bool = False) -> str:
    """
    A value as a command line has it.

    >>> plain(True), plain(True, capitals=True), plain(0.7), plain([8, 8]), plain("a b")
    ('true', 'True', '0.7', '[8,8]', 'a b')
    """
    if isinstance(value, bool):
        return str(value) if capitals else str(value).lower()
    if isinstance(value, float):
        return f"{value:.12g}"
    return json.dumps(value, separators=(",", ":")) if isinstance(value, (list, tuple, dict)) else str(value)


def _name(setting: Setting) -> bytes:
    return setting.key.rpartition(".")[2].encode()


def _group(key: str) -> str:
    return next((prefix for prefix in AROUND if key.startswith(prefix)), "")


def _common(one: str, other: str) -> int:
    """How many parts two keys have in common from the left."""
    pairs = zip(re.split(r"[._]", one), re.split(r"[._]", other), strict=False)
    return len([*takewhile(lambda pair: pair[0] == pair[1], pairs)])
