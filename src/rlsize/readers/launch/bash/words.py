"""What the words of a script become: quotes, braces, variables, arithmetic, what `$(...)` is known to print."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from rlsize.facts.launch import Word
from rlsize.readers.launch.bash.arithmetic import UnknownValueError
from rlsize.readers.launch.bash.grammar import after, bracket, closed, until
from rlsize.readers.launch.bash.patterns import Pattern, unescaped
from rlsize.readers.launch.bash.shell import NOWHERE, Shell, Sink, known
from rlsize.readers.launch.nodes import UnreadableError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlsize.facts.launch import Span
    from rlsize.readers.launch.bash.shell import Record
    from rlsize.readers.launch.bash.source import Source

BARE, STRING, HEREDOC, DEFAULT = "bare", "string", "heredoc", "default"
"""Where text stands: in no quotes, in double ones, in a heredoc, after `:-` within double quotes."""

_RUNS = {
    BARE: re.compile(r"[^\\'\"$`]+"),
    STRING: re.compile(r"[^\\\"$`]+"),
    HEREDOC: re.compile(r"[^\\$`]+"),
    DEFAULT: re.compile(r"[^\\\"$`]+"),
}
_SIMPLE = re.compile(r"\$([A-Za-z_]\w*|[0-9@*#?$!-])", re.ASCII)
_PARAMETER = re.compile(r"(#(?=[\w@*]))?(!)?([A-Za-z_]\w*|[0-9]+|[@*#?$!-])", re.ASCII)
_OPERATOR = re.compile(r":?[-=?+]|:|%%?|##?|/[/#%]?|\^\^?|,,?|")
_ALL = re.compile(r"\$(@|\{@[^{}]*\}|\{\w+\[@\][^{}]*\})")
_DEEPEST = 60
_DEEPEST_LEVEL = 20
_LONGEST = 1 << 15
_WORK_OF_CHUNK = 100
_WORK_OF_SUBSHELL = 5000


class Chunk(NamedTuple):
    """A part of a word: its text, the part of the source that it came of, whether quotes protect it."""

    text: str
    start: int
    end: int
    quoted: bool


@dataclass(slots=True)
class Field:
    """
    One word that an expansion gives.

    Args:
        source: Where its parts stand.
        span: Where it stands.
        chunks: Its parts.
        element: The word of an array that it is, if it is nothing but that.
    """

    source: Source
    span: Span
    chunks: list[Chunk] = field(default_factory=list)
    element: Word | None = None

    @property
    def text(self) -> str:
        """The word."""
        return "".join(chunk.text for chunk in self.chunks)

    @property
    def word(self) -> Word:
        """The word, which stands where it is used unless it is the element of an array."""
        text = self.text
        return self.element if self.element is not None and text == self.element.text else Word(text, self.span)

    def nested(self) -> Source:
        """The word as a text to read itself."""
        return self.source.joined(chunk[:3] for chunk in self.chunks)


def separator(signs: str) -> re.Pattern[str]:
    """What stands between words, by $IFS: blanks count once, every other sign for itself."""
    blanks = re.escape("".join(sign for sign in signs if sign in " \t\n"))
    others = re.escape("".join(sign for sign in signs if sign not in " \t\n"))
    choices = [f"[{blanks}]*[{others}][{blanks}]*" if blanks else f"[{others}]"] if others else []
    return re.compile("|".join([*choices, *([f"[{blanks}]+"] if blanks else [])]) or r"(?!)")


def shown(text: str) -> str:
    """The name of what nobody can tell, `$(nvidia-smi ...)`: without its arguments, which may hold secrets."""
    found = re.match(r"(\$\(|`|\$\{)?[\s(]*([!#]?[\w./-]{0,40})", text)
    opening, name = (found[1] or "", found[2]) if found else ("", "")
    closing = {"$(": ")", "${": "}", "`": "`"}.get(opening, "")
    return f"{opening}{name}{'' if text == opening + name + closing else ' ...' if opening == '$(' else '...'}{closing}"


def fields_of(shell: Shell, start: int, end: int) -> list[Field]:
    """The words that a word of the script becomes, and of what parts."""
    source, span, found = shell.source, shell.source.span(start, end), list[Field]()
    if source.text.startswith(("<(", ">("), start):
        unknown = shell.record.unknown(source.text[start] + "(...)")
        return [Field(source, span, [Chunk(unknown, start, end, quoted=True)])]
    for part in braced(source.part(start, end), shell.record):
        shell.source = part
        found += Reading(shell, span, shell.separators).run(0, len(shell.source.text), BARE).finished()
        shell.record.words(len(found))
    shell.source = source
    return found


def words_of(shell: Shell, start: int, end: int) -> list[Word]:
    """The words that a word of the script becomes."""
    return [field.word for field in fields_of(shell, start, end)]


def field_of(shell: Shell, start: int, end: int, mode: str = BARE) -> Field:
    """A part of the script where bash does not split, and of what parts it came."""
    reading = Reading(shell, shell.source.span(start, end), None).run(start, end, mode)
    joined = reading.begun()
    for before in reversed(reading.done):  # "$@" where only one word can be: its words with blanks between
        joined.chunks[:0] = [*before.chunks, before.chunks[-1]._replace(text=" ")] if before.chunks else []
    return joined


def text_of(shell: Shell, start: int, end: int, mode: str = BARE) -> Word:
    """What a part of the script becomes where bash does not split, as in `X=...`; one word."""
    return field_of(shell, start, end, mode).word


def integer_of(shell: Shell, start: int, end: int) -> int:
    """
    What a part of the script gives as arithmetic.

    Raises:
        UnknownValueError: The script does not tell it.
    """
    return shell.integer(field_of(shell, start, max(start, end), DEFAULT).text)


def pattern_of(shell: Shell, start: int, end: int) -> Pattern:
    """A part of the script as a pattern."""
    return Pattern(((chunk.text, chunk.quoted) for chunk in field_of(shell, start, end).chunks), shell.record)


def key_of(shell: Shell, name: str, start: int, end: int) -> int | str:
    """The place or key that a subscript names."""
    text = field_of(shell, start, end).text
    try:
        return text if "A" in shell.flags.get(name, "") else shell.integer(text)
    except UnknownValueError:
        return text


def printed(shell: Shell, source: Source) -> str | None:
    """What `$(...)` prints, as far as that follows from the script; None where that cannot be told."""
    sink = Sink(silent=True)
    shell.record.spend(_WORK_OF_SUBSHELL)
    if shell.level >= _DEEPEST_LEVEL:
        return None
    inner = shell.copy()
    inner.sink, inner.given, inner.unsure, inner.level = sink, None, 0, shell.level + 1
    inner.run(source)
    shell.record.value(len(sink.text))
    return sink.text.rstrip("\n") if sink.pure and known(sink.text) else None


class Reading:
    """
    One pass over a part of what a shell reads, in which words grow.

    Args:
        shell: The shell.
        span: Where its words stand.
        separators: What unquoted values are split at ($IFS); None where bash does not split.
    """

    def __init__(self, shell: Shell, span: Span, separators: str | None) -> None:
        self.shell, self.record, self.source, self.text = shell, shell.record, shell.source, shell.source.text
        self.span, self.separators = span, separators
        self.done: list[Field] = []
        self.open: Field | None = None
        self.length = 0

    def begun(self) -> Field:
        """The word that grows; begun here where there is none."""
        self.open = self.open or Field(self.source, self.span)
        return self.open

    def finished(self) -> list[Field]:
        """All words, the one that grew among them."""
        if self.open is not None:
            self.done.append(self.open)
            self.record.words(len(self.done))
        self.open = None
        return self.done

    def literal(self, text: str, start: int, end: int, mode: str) -> None:
        """Go on with text that is not split."""
        self.length += len(text)
        self.record.spend(len(text) + _WORK_OF_CHUNK)
        self.record.value(self.length)
        self.begun().chunks.append(Chunk(text, start, end, mode != BARE))

    def value(self, text: str, start: int, end: int, mode: str) -> None:
        """Go on with the value of a variable or command, which is split where nothing quotes it."""
        if mode != BARE or self.separators is None:
            self.literal(text, start, end, mode)
            return
        at = 0
        for found in separator(self.separators).finditer(text):
            if found.start() > at:
                self.literal(text[at : found.start()], start, end, BARE)
            elif found[0].strip(" \t\n"):  # a separator that is no blank ends a word, even an empty one
                self.begun()
            self.finished()
            at = found.end()
        if at < len(text):
            self.literal(text[at:], start, end, BARE)

    def many(self, words: list[Word], start: int, end: int, mode: str, *, joined: bool = False) -> None:
        """Go on with words of an array, each a word of its own, or `joined` to one within quotes, as by `$*`."""
        if joined and mode != BARE:
            self.value(self.shell.separators[:1].join(word.text for word in words), start, end, mode)
            return
        for index, word in enumerate(words):
            if index:
                self.finished()
            fresh = self.open is None
            self.value(word.text, start, end, mode)
            if fresh and self.open is not None:
                self.open.element = word

    def run(self, at: int, end: int, mode: str, *, split: bool = False) -> Reading:
        """Read a part; `split`: what stands in no quotes is split too, as after `:-`."""
        self.shell.depth += 1
        if self.shell.depth > _DEEPEST:
            raise self.record.fault("it nests too deep")
        while at < end:
            found = _RUNS[mode].match(self.text, at, end)
            if found is None:
                at = self._special(at, end, mode)
                continue
            (self.value if split else self.literal)(found[0], at, found.end(), mode)
            at = found.end()
        self.shell.depth -= 1
        return self

    def _special(self, at: int, end: int, mode: str) -> int:
        sign, following = self.text[at], self.text[at + 1 : min(at + 2, end)]
        if sign == "\\":
            return self._escape(at, following, mode)
        if (sign == '"' and mode == DEFAULT) or (sign + following == '$"' and mode == BARE):
            return at + 1  # quotes within quotes, as in "${X:-"a b"}"; a text to translate
        try:
            close = closed(self.text, at, end, quoted=mode != BARE)
        except UnreadableError:
            self.shell.note(at, f"nothing closes this {sign}: it is read to the end")
            close = end
        if sign in "'\"":
            self._quotation(sign, at + 1, close - (close > at + 1 and self.text[close - 1] == sign))
        elif sign == "`":
            self._command(at, at + 1, close, mode)
        elif following == "'" and mode == BARE:
            self.literal(unescaped(self.text[at + 2 : close - 1]), at, close, STRING)
        elif following in ("(", "{"):
            self._bracketed(at, close, mode)
        else:
            return self._simple(at, end, mode)
        return close

    def _quotation(self, sign: str, start: int, end: int) -> None:
        if sign == "'":
            self.literal(self.text[start:end], start, end, STRING)
            return
        if not _ALL.fullmatch(self.text, start, end):  # "$@" of nothing is no word at all, "" is an empty one
            self.begun()
        self.run(start, end, STRING)

    def _simple(self, at: int, end: int, mode: str) -> int:
        """`$X`, or a dollar alone."""
        found = _SIMPLE.match(self.text, at, end)
        if found is None:
            self.literal("$", at, at + 1, mode)
            return at + 1
        if found[1] in "@*":
            self.many(self.shell.arguments, at, found.end(), mode, joined=found[1] == "*")
        else:
            self.value(self.named(found[1]), at, found.end(), mode)
        return found.end()

    def _escape(self, at: int, following: str, mode: str) -> int:
        if following == "\n":
            return at + 2
        kept = mode != BARE and (following not in '$`"\\' or (mode == HEREDOC and following == '"'))
        if not following or kept:
            self.literal("\\", at, at + 1, STRING)
            return at + 1
        self.literal(following, at, at + 2, STRING)
        return at + 2

    def _bracketed(self, at: int, close: int, mode: str) -> None:
        """`${...}`, `$((...))` or `$(...)`."""
        number = self.text.startswith("$((", at) and self.text.endswith("))", at + 3, close)
        names: tuple[str, ...] = ()
        try:
            if close - at <= _LONGEST:
                if number:
                    self.value(str(integer_of(self.shell, at + 3, close - 2)), at, close, mode)
                elif self.text.startswith("${", at):
                    _Parameter(self, at, close, mode).read()
                else:
                    self._command(at, at + 2, close, mode)
                return
        except UnknownValueError as error:
            names = error.names
        self.value(self.record.unknown(*(names or (shown(self.text[at:close]),))), at, close, mode)

    def _command(self, at: int, start: int, close: int, mode: str) -> None:
        inner = self.source.part(start, max(start, close - 1))
        escaped = start == at + 1 and re.search(r"\\[\\$`]", inner.text)
        text = None if escaped else printed(self.shell, inner)
        self.value(self.record.unknown(shown(self.text[at:close])) if text is None else text, at, close, mode)

    def named(self, name: str) -> str:
        """The value of a variable; unknown where nobody sets it."""
        word = self.shell.get(name)
        if word is None:
            return self.record.unknown(f"${name}" if name.isdigit() and not self.shell.arguments else name)
        if not known(word.text):
            self.record.outside.append(name)
        return word.text


class _Parameter:
    """One `${...}`; what it becomes is unknown where UnknownValueError is raised."""

    def __init__(self, reading: Reading, at: int, close: int, mode: str) -> None:
        self.reading, self.shell, self.text, self.place = reading, reading.shell, reading.text, (at, close, mode)
        self.rest, self.stop = at + 2, close - (self.text[close - 1] == "}")
        self.mode = DEFAULT if mode != BARE else BARE
        self.name = ""
        self.every = self.joined = False
        self.key: int | str | None = None

    def read(self) -> None:
        """Make the words grow by what it becomes."""
        found = _PARAMETER.match(self.text, self.rest, self.stop)
        if found is None:
            raise UnknownValueError
        self.name, self.rest = found[3], found.end()
        self._subscript()
        words = self._indirect() if found[2] else self._words()
        if found[1]:
            told = self._told(words)
            words = [Word(str(len(told) if self.every else len(told[0].text)), NOWHERE)]
        else:
            words = self._worked(words)
        if words is None and (self.key is not None or self.every):  # not the first element, or any number of words
            raise UnknownValueError(f"{self.name}[@]" if self.every else self.name)
        if words is None:
            words = [Word(self.reading.named(self.name), NOWHERE)]
        elif not all(known(word.text) for word in words):
            self.shell.record.outside.append(self.name)
        self.reading.many(words, *self.place, joined=self.joined or not self.every)

    def _worked(self, words: list[Word] | None) -> list[Word] | None:
        """The values as what stands behind the name changes them."""
        operator = _OPERATOR.match(self.text, self.rest, self.stop)
        sign = operator[0] if operator else ""
        self.rest += len(sign)
        if sign[-1:] in tuple("-=?+"):
            return self._default(words, sign)
        if words is None:
            return None
        if sign == ":":
            return self._slice(self._told(words))
        if not sign and self.rest < self.stop:
            raise UnknownValueError
        return [self._edited(word, sign) for word in words] if sign else words

    def _subscript(self) -> None:
        inner = self.name if self.name in ("@", "*") else ""
        if self.text.startswith("[", self.rest, self.stop):
            close = bracket(self.text, self.rest, self.stop)
            inner = self.text[self.rest + 1 : close]
            if inner not in ("@", "*"):
                self.key = key_of(self.shell, self.name, self.rest + 1, close)
            self.rest = min(close + 1, self.stop)
        self.every, self.joined = inner in ("@", "*"), inner == "*"

    def _words(self) -> list[Word] | None:
        """The values; None where nobody sets the variable."""
        if self.name in ("@", "*"):
            return self.shell.arguments
        if not self.every and self.key is None:
            word = self.shell.get(self.name)
            return None if word is None else [word]
        values = self.shell.array(self.name)
        if values is None or self.every:
            return None if values is None else list(values.values())
        if isinstance(self.key, int) and self.key < 0 and values:
            self.key += max(values) + 1
        return [values[self.key]] if self.key in values else None

    def _indirect(self) -> list[Word] | None:
        """What the variable is named by, or keys of an array."""
        if self.every:
            return [Word(str(key), NOWHERE) for key in (self.shell.array(self.name) or {})]
        words = self._words()
        self.name, self.key = words[0].text if words and words[0].text else self.name, None
        return self._words() if words and re.fullmatch(r"\w+", self.name, re.ASCII) else None

    def _told(self, words: list[Word] | None) -> list[Word]:
        """
        Values that are all known.

        Raises:
            UnknownValueError: They are not.
        """
        names = self.shell.record.names("".join(word.text for word in words or ()))
        if words is None or names:
            raise UnknownValueError(*(names or (self.name,)))
        return words

    def _default(self, words: list[Word] | None, sign: str) -> list[Word] | None:
        missing = words is None or (self.every and not words)
        if sign[0] == ":" and words is not None:
            missing = not any(word.text for word in words)
        if words is None:
            self.shell.record.outside.append(self.name)
        if sign[-1] == "=" and missing:
            words = [text_of(self.shell, self.rest, self.stop, self.mode)]
            self.shell.put(self.name, words[0], self.key or 0)
        elif sign[-1] == "+" or (sign[-1] == "-" and missing):
            words = []
            if missing == (sign[-1] == "-"):
                self.reading.run(self.rest, self.stop, self.mode, split=True)
        return None if missing and sign[-1] == "?" else words

    def _edited(self, word: Word, sign: str) -> Word:
        if not known(word.text):
            return word
        start, text = self.rest, word.text
        if sign[0] in "^,":
            part = text if len(sign) > 1 else text[:1]
            if start < self.stop:
                raise UnknownValueError
            return replace(word, text=(part.upper() if sign[0] == "^" else part.lower()) + text[len(part) :])
        slash, put = self.stop, ""
        if sign[0] == "/":
            quoted = partial(after, quoted=self.mode != BARE)
            begin = start + (sign == "//" and self.text[start] == "/")  # there a slash begins the pattern
            slash = until(self.text, begin, self.stop, "/", quoted)
            put = field_of(self.shell, min(slash + 1, self.stop), self.stop).text
        pattern = pattern_of(self.shell, start, slash)
        if not pattern.told or not known(put):
            raise UnknownValueError
        if sign[0] == "/":
            edited = pattern.replaced(text, put, everywhere=sign == "//", anchor=sign[1:].strip("/"))
        else:
            edited = pattern.without(text, sign)
        return replace(word, text=edited)

    def _slice(self, words: list[Word]) -> list[Word]:
        colon = until(self.text, self.rest, self.stop, ":")
        offset = integer_of(self.shell, self.rest, colon)
        length = integer_of(self.shell, colon + 1, self.stop) if colon < self.stop else None
        if self.name in ("@", "*"):
            words = [Word(self.shell.zero, NOWHERE), *words]
        whole = words if self.every else words[0].text
        begin = max(0, len(whole) + offset) if offset < 0 else offset
        until_ = len(whole) if length is None else (len(whole) if length < 0 else begin) + length
        cut = whole[begin:until_]
        return [replace(words[0], text=cut)] if isinstance(cut, str) else cut


_MOST_BRACES = 100
_RANGE = re.compile(r"(-?[0-9]{1,9})\.\.(-?[0-9]{1,9})(?:\.\.-?([0-9]{1,9}))?|([A-Za-z])\.\.([A-Za-z])")


def braced(word: Source, record: Record) -> Iterator[Source]:
    """The words that a word with braces stands for, `a{1,2}` or `{1..4}`; itself where it has none."""
    text, end = word.text, len(word.text)
    if not 0 < text.count("{") <= _MOST_BRACES:
        yield word
        return
    record.spend(end + 1)
    at = until(text, 0, end, "{")
    while at < end:
        choices, close = _choices(text, at, record)
        for choice in choices:
            yield from braced(word.joined([(text[:at], 0, at), choice, (text[close:], close, end)]), record)
        if choices:
            return
        at = until(text, at + 1, end, "{")
    yield word


def _choices(text: str, at: int, record: Record) -> tuple[list[tuple[str, int, int]], int]:
    """What stands between a brace and its other one: the alternatives, and where it ends."""
    depth, begin, parts = 1, at + 1, list[tuple[int, int]]()
    place = begin
    while depth and (place := until(text, place, len(text), "{},")) < len(text):
        depth += (text[place] == "{") - (text[place] == "}")
        if depth == 0 or (depth == 1 and text[place] == ","):
            parts.append((begin, place))
            begin = place + 1
        place += 1
    if depth:
        return [], at
    record.words(len(parts))
    if len(parts) > 1:
        return [(text[slice(*part)], *part) for part in parts], place
    found = _RANGE.fullmatch(text, *parts[0])
    return ([(step, at, place) for step in _steps(found, record)] if found else []), place


def _steps(found: re.Match[str], record: Record) -> list[str]:
    """The numbers or letters of a range."""
    first, last = (int(found[1]), int(found[2])) if found[1] else (ord(found[4]), ord(found[5]))
    step = int(found[3] or 1) or 1
    record.words(abs(last - first) // step + 1)
    numbers = range(first, last + 1, step) if last >= first else range(first, last - 1, -step)
    if not found[1]:
        return [chr(number) for number in numbers]
    padded = any(re.match(r"-?0[0-9]", side) for side in (found[1], found[2]))
    width = max(len(found[1]), len(found[2])) if padded else 0
    return [f"{number:0{width}d}" for number in numbers]
