"""What `[ ... ]`, `test` and `[[ ... ]]` come to: true or false, as bash has it with nothing set from outside."""

from __future__ import annotations

import operator
import re
from typing import TYPE_CHECKING

from rlsize.facts.launch import Word
from rlsize.readers.launch.bash.shell import NOWHERE, known, plain
from rlsize.readers.launch.bash.words import pattern_of, text_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlsize.readers.launch.bash.grammar import Node
    from rlsize.readers.launch.bash.shell import Shell

_NUMBERS: dict[str, Callable[[int, int], bool]] = {
    f"-{name}": getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")
}
_TEXTS = {"=", "==", "!=", "<", ">", "=~", "-nt", "-ot", "-ef"}
_SIGNS = {"&&", "||", "!", "(", ")", "<", ">"}
_DEEPEST = 30
_LONGEST_WORD, _LONGEST_PATTERN = 256, 64  # characters of a text and a pattern that are matched
_MOST_REPEATED = 2  # parts of such a pattern


class Condition:
    """
    One test, read as it is evaluated.

    Args:
        shell: What is known. Each use of what only the outside can tell is noted there.
        words: Its words.
        places: Where each word stands, in `[[ ]]`, where what is compared with is a pattern.
    """

    def __init__(self, shell: Shell, words: list[Word], places: list[tuple[int, int]] | None = None) -> None:
        self.shell, self.words, self.places = shell, words, places
        self.at = self.depth = 0

    def holds(self) -> bool:
        """Whether it is true."""
        return bool(self.words) and self._either()

    def _take(self, *texts: str, before: int = 0) -> bool:
        taken = self.at + before < len(self.words) and self.words[self.at].text in texts
        self.at += taken
        return taken

    def _either(self) -> bool:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.shell.record.fault("a condition nests too deep")
        result = self._both()
        while self._take("||", "-o"):
            result |= self._both()
        self.depth -= 1
        return result

    def _both(self) -> bool:
        result = self._one()
        while self._take("&&", "-a"):
            result &= self._one()
        return result

    def _one(self) -> bool:
        negated = False
        while self._take("!", before=1):
            negated = not negated
        if self._take("(", before=1):
            result = self._either()
            self._take(")")
        else:
            result = self._primary()
        return result != negated

    def _primary(self) -> bool:
        here = [word.text for word in self.words[self.at : self.at + 3]]
        if len(here) > 1 and (here[1] in _NUMBERS or here[1] in _TEXTS):
            self.at += 3
            return self.at <= len(self.words) and self._compared(here[1])
        if len(here) > 1 and re.fullmatch(r"-[a-zA-Z]", here[0]):
            self.at += 2
            return self._unary(here[0], here[1])
        self.at += 1
        return bool(here and plain(here[0]))

    def _unary(self, sign: str, text: str) -> bool:
        if sign in ("-z", "-n"):
            return (not text or not known(text)) == (sign == "-z")
        if sign == "-v":
            return self.shell.get(text) is not None
        record = self.shell.record
        there = text in record.files or (sign in "-e-f-r-s" and known(text) and record.sourced(text) is not None)
        if not there:
            self.shell.record.outside.append("a file or terminal that is there or not")
        return there

    def _compared(self, sign: str) -> bool:
        left, right = self.words[self.at - 3], self.words[self.at - 1]
        texts = plain(left.text), plain(right.text)
        if sign in _NUMBERS:
            one, other = self.shell.number(left.text), self.shell.number(right.text)
            return one is not None and other is not None and _NUMBERS[sign](one, other)
        if sign in ("=", "==", "!="):
            same = texts[0] == texts[1]
            if self.places:
                same = pattern_of(self.shell, *self.places[self.at - 1]).fits(texts[0])
            return same == (sign != "!=")
        if sign in ("<", ">"):
            return texts[0] < texts[1] if sign == "<" else texts[0] > texts[1]
        if sign == "=~":
            return matches(self.shell, *texts)
        self.shell.record.outside.append("the times of files")
        return False


def matches(shell: Shell, text: str, pattern: str) -> bool:
    """Whether a regular expression is found; only of those that take no time whatever the text."""
    bare = pattern.replace(r"\s", " ")
    simple = not re.search(r"[({\\]", bare) and len(re.findall(r"[*+?]", bare)) <= _MOST_REPEATED
    try:
        if simple and len(text) <= _LONGEST_WORD and len(pattern) <= _LONGEST_PATTERN:
            return bool(re.search(pattern, text))
    except re.error:
        pass
    shell.record.outside.append("a regular expression")
    return False


def double_brackets(shell: Shell, node: Node) -> bool:
    """Whether `[[ ... ]]` is true."""
    places = node.words
    raw = [shell.source.text[start:end] for start, end in places]
    words = [
        Word(text, NOWHERE) if text in _SIGNS else text_of(shell, *place)
        for text, place in zip(raw, places, strict=True)
    ]
    return Condition(shell, words, places).holds()
