"""What patterns of the shell fit, and what stands in `$'...'`."""

from __future__ import annotations

import fnmatch
import re
from typing import TYPE_CHECKING

from rlsize.readers.launch.bash.arithmetic import UnknownValueError
from rlsize.readers.launch.bash.shell import known, plain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlsize.readers.launch.bash.shell import Record

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}
_ESCAPE = re.compile(r"((?:\\(?:x[0-9a-fA-F]{1,2}|[0-7]{1,3}))+)|\\u([0-9a-fA-F]{1,4})|\\(.)", re.DOTALL)


def unescaped(text: str) -> str:
    r"""
    What stands in $'...': `\n` and its like put in.

    >>> unescaped(r"a\tb\x41\xc3\xa9\u00e9\'")
    "a\tbAéé'"
    """

    def put(found: re.Match[str]) -> str:
        if found[1]:
            codes = found[1].split("\\")[1:]
            found_bytes = bytes(int(one[1:], 16) if one[0] == "x" else int(one, 8) & 0xFF for one in codes)
            return found_bytes.decode("utf-8", "replace")
        if found[2]:
            return chr(int(found[2], 16))
        return _ESCAPES.get(found[3], found[3] if found[3] in "\\'\"?" else "\\" + found[3])

    return _ESCAPE.sub(put, text)


class Pattern:
    """
    A pattern of the shell.

    Args:
        parts: Its parts, and whether each is quoted and so means itself.
        record: What a script may ask.
    """

    LONGEST = 4096
    LONGEST_REPLACED = 256

    def __init__(self, parts: Iterable[tuple[str, bool]], record: Record) -> None:
        self.record = record
        pieces = list(parts)
        text = "".join(piece for piece, _ in pieces)
        self.told = known(text)
        wild = any(re.search(r"[*?\[]", piece) for piece, quoted in pieces if not quoted)
        self.plain = None if wild else plain(text)
        shape = plain(
            "".join(re.sub(r"([*?\[])", r"[\1]", one) if quoted else one.replace("[^", "[!") for one, quoted in pieces)
        )
        self.matching = re.compile(fnmatch.translate(shape[: self.LONGEST]))

    def fits(self, text: str) -> bool:
        """Whether a text is what the pattern means."""
        self.record.spend(len(text) + 10)
        return text == self.plain if self.plain is not None else bool(self.matching.fullmatch(text))

    def without(self, text: str, sign: str) -> str:
        """
        A text without what the pattern fits at its start (`#`, `##`) or end (`%`, `%%`).

        Raises:
            UnknownValueError: It is too long to say.
        """
        if len(text) > self.LONGEST:
            raise UnknownValueError
        lengths = range(len(text) + 1)
        for length in lengths if len(sign) == 1 else reversed(lengths):
            cut = length if sign[0] == "#" else len(text) - length
            if self.fits(text[:cut] if sign[0] == "#" else text[cut:]):
                return text[cut:] if sign[0] == "#" else text[:cut]
        return text

    def replaced(self, text: str, put: str, *, everywhere: bool, anchor: str = "") -> str:
        """
        A text with what the pattern fits replaced.

        Raises:
            UnknownValueError: It is too long to say.
        """
        if self.plain is not None and not anchor:
            grown = len(text) + (text.count(self.plain) if self.plain else 0) * len(put)
            self.record.value(grown)
            self.record.spend(grown)
            return text.replace(self.plain, put, -1 if everywhere else 1) if self.plain else text
        if len(text) > self.LONGEST_REPLACED:
            raise UnknownValueError
        if not text:
            return put if self.fits("") else ""
        result, at = "", 0
        while at <= len(text) and not (anchor == "#" and at):
            shortest = at - (anchor == "#")  # a pattern that stands at the start may be empty
            ends = [len(text)] if anchor == "%" else range(len(text), shortest, -1)
            end = next((end for end in ends if self.fits(text[at:end])), None)
            if end is None:
                result, at = result + text[at : at + 1], at + 1
                continue
            result, at = result + put, end
            if not everywhere or at >= len(text):
                break
        return result + text[at:]
