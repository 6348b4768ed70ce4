"""What `[ ... ]`, `test` and `[[ ... ]]` come to: true or false, as bash has it with nothing set from outside."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rlsize.facts.launch import Word
from rlsize.readers.launch.bash_expansion import pattern_of, text_of
from rlsize.readers.launch.bash_shell import NOWHERE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from rlsize.readers.launch.bash_shell import Shell
    from rlsize.readers.launch.bash_source import Source

_NUMBERS: dict[str, Callable[[int, int], bool]] = {
    "-eq": lambda a, b: a == b,
    "-ne": lambda a, b: a != b,
    "-lt": lambda a, b: a < b,
    "-le": lambda a, b: a <= b,
    "-gt": lambda a, b: a > b,
    "-ge": lambda a, b: a >= b,
}
_TEXTS = {"=", "==", "!=", "<", ">", "=~", "-nt", "-ot", "-ef"}
_DEEPEST = 30
_LONGEST_WORD, _LONGEST_PATTERN = 256, 64  # characters of a text and a pattern that are matched
_MOST_REPEATED = 2  # parts of such a pattern


class Condition:
    """
    One test, read as it is evaluated.

    Args:
        shell: What is known. Each use of what only the outside can tell is noted there.
        words: Its words.
        files: Names of files that the script has written.
        patterns: Where each word stands, in `[[ ]]`, where what is compared with is a pattern.
    """

    def __init__(
        self,
        shell: Shell,
        words: list[Word],
        files: Collection[str],
        patterns: tuple[Source, list[tuple[int, int]]] | None = None,
    ) -> None:
        self.shell, self.words, self.files, self.patterns = shell, words, files, patterns
        self.at = self.depth = 0

    def holds(self) -> bool:
        """Whether it is true."""
        return bool(self.words) and self._either()

    def _next(self) -> str:
        if self.at < len(self.words):
            return self.words[self.at].text
        return ""

    def _take(self, *texts: str) -> bool:
        taken = self.at < len(self.words) and self._next() in texts
        self.at += taken
        return taken

    def _either(self) -> bool:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.shell.budget.fault("a condition nests too deep")
        result = self._both()
        while self._take("||", "-o"):
            result = self._both() or result
        self.depth -= 1
        return result

    def _both(self) -> bool:
        result = self._one()
        while self._take("&&", "-a"):
            result = self._one() and result
        return result

    def _one(self) -> bool:
        negated = False
        while len(self.words) > self.at + 1 and self._take("!"):
            negated = not negated
        if len(self.words) > self.at + 1 and self._take("("):
            result = self._either()
            self._take(")")
        else:
            result = self._primary()
        return result != negated

    def _primary(self) -> bool:
        following = self.words[self.at + 1].text if self.at + 1 < len(self.words) else ""
        if following in _NUMBERS or following in _TEXTS:
            self.at += 3
            return self.at <= len(self.words) and self._compared(following)
        if re.fullmatch(r"-[a-zA-Z]", self._next()) and self.at + 1 < len(self.words):
            self.at += 2
            return self._unary(self.words[self.at - 2].text, self.words[self.at - 1])
        self.at += 1
        return bool(self.words[self.at - 1].text) if self.at <= len(self.words) else False

    def _unary(self, sign: str, word: Word) -> bool:
        if sign in ("-z", "-n"):
            return (not word.text and not word.unknown) == (sign == "-z") if not word.unknown else sign == "-z"
        if sign == "-v":
            return self.shell.get(word.text) is not None
        known = word.text in self.files
        if not known:
            self.shell.outside.append("a file or terminal that is there or not")
        return known

    def _compared(self, sign: str) -> bool:
        left, right = self.words[self.at - 3], self.words[self.at - 1]
        if sign in _NUMBERS:
            numbers = [self.shell.calculated(word) for word in (left, right)]
            told = all(not number.unknown for number in numbers)
            return told and _NUMBERS[sign](int(numbers[0].text), int(numbers[1].text))
        if sign in ("=", "==", "!="):
            return self._same(left, right) == (sign != "!=")
        if sign in ("<", ">"):
            return left.text < right.text if sign == "<" else left.text > right.text
        if sign == "=~":
            return self._found(left.text, right.text)
        self.shell.outside.append("the times of files")
        return False

    def _same(self, left: Word, right: Word) -> bool:
        if self.patterns is None:
            return left.text == right.text
        source, places = self.patterns
        pattern, _ = pattern_of(self.shell, source, *places[self.at - 1])
        return pattern.fits(left.text)

    def _found(self, text: str, pattern: str) -> bool:
        """Whether a regular expression is found; only of those that take no time whatever the text."""
        plain = not re.search(r"[({\\]", pattern) and len(re.findall(r"[*+?]", pattern)) <= _MOST_REPEATED
        try:
            if plain and len(text) <= _LONGEST_WORD and len(pattern) <= _LONGEST_PATTERN:
                return bool(re.search(pattern, text))
        except re.error:
            pass
        self.shell.outside.append("a regular expression")
        return False


def double_brackets(shell: Shell, source: Source, places: list[tuple[int, int]], files: Collection[str]) -> bool:
    """Whether `[[ ... ]]` is true, by the places of its words."""
    words = []
    for start, end in places:
        raw = source.text[start:end]
        bare = raw in ("&&", "||", "!", "(", ")", "<", ">")
        words.append(Word(raw, NOWHERE) if bare else text_of(shell, source, start, end))
    return Condition(shell, words, files, (source, places)).holds()
