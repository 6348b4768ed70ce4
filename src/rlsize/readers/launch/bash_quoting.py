"""How bash quotes and splits: where a quotation ends, braces, escapes, patterns, fields."""

from __future__ import annotations

import fnmatch
import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from rlsize.facts.launch import Word
from rlsize.readers.launch.bash_source import Piece, Source, as_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlsize.facts.launch import Span
    from rlsize.readers.launch.bash_source import Budget

_TELLING = re.compile(r"[\\'\"`$(){}#<]")
_HEREDOC = re.compile(r"<<-?[ \t]*(['\"\\]?)([A-Za-z_][\w.]*)['\"]?")
_ANSI = re.compile(r"\$'(?:[^\\']|\\.)*'", re.DOTALL)


def after(text: str, at: int, end: int, *, quoted: bool = False, array: bool = False) -> int:
    """
    Where what begins at a place ends: a quotation, a substitution, an escape; else the next character.

    Args:
        text: The script.
        at: Where it begins.
        end: Where it must end.
        quoted: Whether the place is within double quotes.
        array: Whether a list in parentheses begins after it.
    """
    closers: list[tuple[str, bool]] = []
    if array:
        closers, at = [(")", False)], at + 2
    while at < end:
        closer, within = closers[-1] if closers else ("", quoted)
        if not array:
            at = _stepped(text, at, end, closers, closer, within)
        array = False
        if not closers:
            return min(at, end)
        telling = _TELLING.search(text, at, end)
        at = telling.start() if telling else end
    return end


def _stepped(text: str, at: int, end: int, closers: list[tuple[str, bool]], closer: str, within: bool) -> int:
    """Take one step of `after`: open, close, or pass over what stands here."""
    sign, two = text[at], text[at : at + 2]
    if sign == "\\":
        return at + 2
    if sign == closer:
        closers.pop()
    elif sign in '"`':
        closers.append((sign, sign == '"'))
    elif two in ("$(", "${"):
        closers.append((")", False) if two == "$(" else ("}", within))
        return at + 2
    elif sign == "(" and closer == ")":
        closers.append((")", False))
    elif not within and (passed := _passed(text, at, end, closer)):
        return passed
    return at + 1


def _passed(text: str, at: int, end: int, closer: str) -> int:
    """Where text that says nothing to the shell ends: single quotes, comments, heredocs; 0 where none begins."""
    sign = text[at]
    if sign == "$" and (ansi := _ANSI.match(text, at, end)):
        return ansi.end()
    if sign == "'":
        return (text.find("'", at + 1, end) + 1) or end
    if closer == ")" and sign == "#" and text[at - 1].isspace():
        return (text.find("\n", at, end) + 1) or end
    if closer == ")" and sign == "<" and (heredoc := _HEREDOC.match(text, at, end)):
        finish = text.find("\n" + heredoc[2] + "\n", heredoc.end(), end)
        return finish + 1 + len(heredoc[2]) if finish >= 0 else heredoc.end()
    return 0


_PLAIN_HEREDOC = re.compile(r"(?<!<)<<-?[ \t]*(['\"]?)\\?([A-Za-z_][\w.]*)\1")
_ONE = r"[A-Za-z_]\w*(?:\[[^\]\s]*\])?\+?=[^\s;&|()<>]*"
_ASSIGNMENTS = re.compile(rf"^([ \t]*(?:{_ONE}[ \t]+)+{_ONE}[ \t]*)\n(?![ \t]*;)", re.MULTILINE)
"""A line of several assignments, which the grammar would join with the next one."""
_NEXT = re.compile(r"[\\'\"`$#<\n]|(?<==)\(")


def masked(text: str) -> str:
    """
    A script for the grammar, which goes astray in long words: quotations, substitutions and arrays as plain letters.

    Args:
        text: The script.

    Returns:
        A text of the same length, in which statements and words stand where they stood.
    """
    parts: list[str] = []
    closers: list[str] = []
    lines: dict[str, list[int]] = {}
    for line in re.finditer(r"^\t*(\S*)$", text, re.MULTILINE) if "<<" in text else ():
        lines.setdefault(line[1], []).append(line.start())
    at = copied = 0
    while found := _NEXT.search(text, at):
        at = found.start()
        sign = text[at]
        if sign == "\n" and closers:
            stop = _heredocs(lines, at, closers)
            parts += [text[copied:at], re.sub(r"[^\n]", "Q", text[at:stop])]
            at = copied = stop
        elif sign == "#" and (at == 0 or text[at - 1] in " \t\n;&|()"):
            at = (text.find("\n", at) + 1 or len(text) + 1) - 1
        elif sign == "<" and (heredoc := _PLAIN_HEREDOC.match(text, at)):
            closers.append(heredoc[2])
            at = heredoc.end()
        elif sign == "\\" and text[at + 1 : at + 2] not in ("\n", ""):
            parts += [text[copied:at], "QQ"]
            at = copied = at + 2
        elif sign in "'\"`(" or text[at : at + 2] in ("$(", "${", "$'"):
            stop = after(text, at, len(text)) if sign != "(" else after(text, at - 1, len(text), array=True)
            if text[stop - 1] in "'\"`)}" and stop > at + 1:
                parts += [text[copied:at], "Q" * (stop - at)]
                copied = stop
            at = stop
        else:
            at += 2 if sign == "\\" else 1
    return _ASSIGNMENTS.sub(r"\1;", "".join([*parts, text[copied:]]))


def _heredocs(lines: dict[str, list[int]], at: int, closers: list[str]) -> int:
    """Where the last closing line begins of the heredocs whose text begins on the next line."""
    start = at
    while closers:
        places = lines.get(closers.pop(0), [])
        place = bisect_right(places, start)
        if place == len(places):
            closers.clear()
            return at + 1
        start = places[place]
    return start


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|([0-7]{1,3})|(.))", re.DOTALL)


def unescaped(text: str) -> str:
    r"""What stands in $'...': `\n` and its like put in."""

    def put(found: re.Match[str]) -> str:
        if found[1]:
            return chr(int(found[1], 16))
        if found[2]:
            return as_bytes(chr(int(found[2], 16)))
        if found[3]:
            return chr(int(found[3], 8) & 0xFF)
        return _ESCAPES.get(found[4], found[4] if found[4] in "\\'\"?" else "\\" + found[4])

    return _ESCAPE.sub(put, text)


_WORK_OF_CHUNK = 100


class Chunk(NamedTuple):
    """A part of a word: its text, the part of the source it stands for, whether quotes protect it, what is unknown."""

    text: str
    start: int
    end: int
    quoted: bool
    unknown: tuple[str, ...] = ()


@dataclass(slots=True)
class Field:
    """
    One word that an expansion gives.

    Args:
        chunks: Its parts.
        unknown: What its value hangs on that nobody told.
        element: The word of an array that it is, if it is nothing but that.
    """

    chunks: list[Chunk] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    element: Word | None = None

    @property
    def text(self) -> str:
        """The word."""
        return "".join(chunk.text for chunk in self.chunks)

    def word(self, span: Span) -> Word:
        """The word, which stands at a span unless it is the element of an array."""
        alone = self.element is not None and self.text == self.element.text
        place = self.element.span if self.element is not None and alone else span
        return Word(self.text, place, tuple(dict.fromkeys(self.unknown)))


def separator(signs: str) -> re.Pattern[str]:
    """What stands between words, by $IFS: blanks count once, every other sign for itself."""
    blanks = re.escape("".join(sign for sign in signs if sign in " \t\n"))
    others = re.escape("".join(sign for sign in signs if sign not in " \t\n"))
    choices = [f"[{blanks}]*[{others}][{blanks}]*" if blanks else f"[{others}]"] if others else []
    return re.compile("|".join([*choices, *([f"[{blanks}]+"] if blanks else [])]) or r"(?!)")


class Fields:
    """
    Words as they grow while an expansion is read.

    Args:
        separators: What unquoted values are split at ($IFS); None where bash does not split.
        budget: What a script may ask.
    """

    def __init__(self, separators: str | None, budget: Budget) -> None:
        self.separators, self.budget = separators, budget
        self.done: list[Field] = []
        self.open: Field | None = None
        self.length = 0

    def begun(self) -> Field:
        """The word that grows; begun here where there is none."""
        if self.open is None:
            self.open = Field()
        return self.open

    def close(self) -> None:
        """End the word that grows, if one does."""
        if self.open is not None:
            self.done.append(self.open)
            self.budget.words(len(self.done))
        self.open = None

    def literal(self, text: str, start: int, end: int, *, quoted: bool) -> None:
        """Go on with text that is not split."""
        self.length += len(text)
        self.budget.spend(len(text) + _WORK_OF_CHUNK)
        self.budget.value(self.length)
        self.begun().chunks.append(Chunk(text, start, end, quoted))

    def split(self, text: str, start: int, end: int) -> None:
        """Go on with text that is split, as that of an unquoted variable."""
        if self.separators is None:
            self.literal(text, start, end, quoted=False)
            return
        at = 0
        for found in separator(self.separators).finditer(text):
            if found.start() > at:
                self.literal(text[at : found.start()], start, end, quoted=False)
            elif found[0].strip(" \t\n"):  # a separator that is no blank ends a word, even an empty one
                self.begun()
            self.close()
            at = found.end()
        if at < len(text):
            self.literal(text[at:], start, end, quoted=False)

    def value(self, word: Word, start: int, end: int, *, quoted: bool) -> None:
        """Go on with the value of a variable or command."""
        if quoted:
            self.literal(word.text, start, end, quoted=True)
        else:
            self.split(word.text, start, end)
        if word.unknown:
            self.begun().unknown += word.unknown
            self.begun().chunks.append(Chunk("", start, end, quoted, word.unknown))

    def many(self, words: list[Word], start: int, end: int, *, quoted: bool) -> None:
        """Go on with the words of an array, each a word of its own."""
        for index, word in enumerate(words):
            if index:
                self.close()
            fresh = self.open is None
            self.value(word, start, end, quoted=quoted)
            if fresh and self.open is not None:
                self.open.element = word

    def finished(self) -> list[Field]:
        """All words."""
        self.close()
        return self.done


def nested(source: Source, grown: Field, *, named: bool = True) -> Source:
    """
    A word that is a text to read itself.

    Args:
        source: Where the word stands.
        grown: The word.
        named: Whether what nobody knows becomes a variable that nobody sets; else it is nothing.

    Returns:
        Its text, and which bytes of the file each part stands for.
    """
    texts: list[str] = []
    pieces: list[Piece] = []
    length = 0
    for chunk in grown.chunks:
        text = as_bytes(chunk.text) + "".join(f"${{{untold(name)}}}" for name in chunk.unknown if named)
        if source.text[chunk.start : chunk.end] == text:
            part = source.part(chunk.start, chunk.end)
            pieces += [Piece(piece.at + length, piece.start, piece.end) for piece in part.pieces]
        elif text:
            place = source.span(chunk.start, chunk.end)
            pieces.append(Piece(length, place.start, place.end))
        texts.append(text)
        length += len(text)
    return Source(source.name, "".join(texts), tuple(pieces) or (Piece(0, 0, 0),), source.newlines)


def untold(name: str) -> str:
    """The name of a variable for what nobody can tell; one that nobody sets."""
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else "UNTOLD_" + re.sub(r"\W+", "_", name).strip("_")


_MOST_BRACES = 100
_RANGE = re.compile(r"(-?\d{1,9})\.\.(-?\d{1,9})(?:\.\.-?(\d{1,9}))?|([A-Za-z])\.\.([A-Za-z])")


def braced(source: Source, start: int, end: int, budget: Budget) -> Iterator[Source]:
    """The words that a word with braces stands for, `a{1,2}` or `{1..4}`; itself where it has none."""
    text = source.text
    if "{" not in text[start:end] or text.count("{", start, end) > _MOST_BRACES:
        yield source.part(start, end)
        return
    for parts in _alternatives(text, start, end, budget):
        chunks = [Chunk(text[part[0] : part[1]], *part, False) if not isinstance(part, str) else part for part in parts]
        length, pieces = 0, []
        for chunk in chunks:
            if isinstance(chunk, str):
                place = source.span(start, end)
                pieces.append(Piece(length, place.start, place.end))
                length += len(chunk)
            elif chunk.text:
                part = source.part(chunk.start, chunk.end)
                pieces += [Piece(piece.at + length, piece.start, piece.end) for piece in part.pieces]
                length += len(chunk.text)
        joined = "".join(chunk if isinstance(chunk, str) else chunk.text for chunk in chunks)
        budget.spend(length + 1)
        yield Source(source.name, joined, tuple(pieces) or source.part(start, end).pieces[:1], source.newlines)


def _alternatives(text: str, start: int, end: int, budget: Budget) -> list[tuple[str | tuple[int, int], ...]]:
    """All that a part with braces stands for, each as places of the text and numbers of ranges."""
    at = start
    while at < end:
        if text[at] != "{":
            at = after(text, at, end)
            continue
        inner, close = _group(text, at, end, budget)
        if not inner:
            at += 1
            continue
        tails = _alternatives(text, close, end, budget)
        budget.words(len(inner) * len(tails))
        return [((start, at), *middle, *tail) for middle in inner for tail in tails]
    return [((start, end),)]


def _group(text: str, at: int, end: int, budget: Budget) -> tuple[list[tuple[str | tuple[int, int], ...]], int]:
    """What stands between a brace and its other one: the alternatives, and where it ends."""
    depth, commas, place = 0, [at], at
    while place < end:
        sign = text[place]
        depth += (sign == "{") - (sign == "}")
        if depth == 0:
            break
        if sign == "," and depth == 1:
            commas.append(place)
        place = after(text, place, end) if sign in "\\'\"$`" else place + 1
    else:
        return [], at
    if len(commas) > 1:
        ends = [*commas[1:], place]
        parts = [_alternatives(text, comma + 1, stop, budget) for comma, stop in zip(commas, ends, strict=True)]
        return [choice for part in parts for choice in part], place + 1
    found = _RANGE.fullmatch(text, at + 1, place)
    return ([(step,) for step in _steps(found, budget)] if found else []), place + 1


def _steps(found: re.Match[str], budget: Budget) -> list[str]:
    """The numbers or letters of a range."""
    first, last = (int(found[1]), int(found[2])) if found[1] else (ord(found[4]), ord(found[5]))
    step = int(found[3] or 1) or 1
    budget.words(abs(last - first) // step + 1)
    numbers = range(first, last + 1, step) if last >= first else range(first, last - 1, -step)
    if not found[1]:
        return [chr(number) for number in numbers]
    padded = any(re.match(r"-?0\d", side) for side in (found[1], found[2]))
    width = max(len(found[1]), len(found[2])) if padded else 0
    return [f"{number:0{width}d}" for number in numbers]


class Pattern:
    """
    A pattern of the shell.

    Args:
        chunks: Its parts; quoted ones mean themselves.
        budget: What a script may ask.
    """

    LONGEST = 4096
    LONGEST_REPLACED = 256

    def __init__(self, chunks: list[Chunk], budget: Budget) -> None:
        self.budget = budget
        self.plain = (
            None
            if any(re.search(r"[*?\[]", part.text) for part in chunks if not part.quoted)
            else "".join(chunk.text for chunk in chunks)
        )
        shape = "".join(
            re.sub(r"([*?\[])", r"[\1]", part.text) if part.quoted else part.text.replace("[^", "[!") for part in chunks
        )
        self.matching = re.compile(fnmatch.translate(shape[: self.LONGEST]))

    def fits(self, text: str) -> bool:
        """Whether a text is what the pattern means."""
        self.budget.spend(len(text) + 10)
        return text == self.plain if self.plain is not None else bool(self.matching.fullmatch(text))

    def without(self, text: str, sign: str) -> str | None:
        """A text without what the pattern fits at its start (`#`, `##`) or end (`%`, `%%`); None: too long to say."""
        if len(text) > self.LONGEST:
            return None
        lengths = range(len(text) + 1) if len(sign) == 1 else range(len(text), -1, -1)
        for length in lengths:
            head, tail = text[:length], text[len(text) - length :]
            if self.fits(head if sign[0] == "#" else tail):
                return text[length:] if sign[0] == "#" else text[: len(text) - length]
        return text

    def replaced(self, text: str, put: str, *, everywhere: bool, anchor: str = "") -> str | None:
        """A text with what the pattern fits replaced; None: too long to say."""
        if self.plain is not None and not anchor:
            grown = len(text) + (text.count(self.plain) if self.plain else 0) * len(put)
            self.budget.value(grown)
            self.budget.spend(grown)
            return text.replace(self.plain, put, -1 if everywhere else 1) if self.plain else text
        if len(text) > self.LONGEST_REPLACED:
            return None
        if not text:
            return put if self.fits("") else ""
        result, at = "", 0
        while at <= len(text):
            shortest = at - (anchor == "#")  # a pattern that stands at the start may be empty
            ends = [len(text)] if anchor == "%" else range(len(text), shortest, -1)
            end = next((end for end in ends if self.fits(text[at:end])), None)
            if end is not None and not (anchor == "#" and at):
                result, at = result + put, end
                if not everywhere or at >= len(text):
                    break
            else:
                result, at = result + text[at : at + 1], at + 1
                if anchor == "#":
                    break
        return result + text[at:]
