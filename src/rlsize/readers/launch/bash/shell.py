"""What a shell knows while its script is read, and what was found: never a process."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from rlsize.errors import Fault, InputError
from rlsize.facts.launch import Program, Span, Word
from rlsize.readers.launch.bash.arithmetic import Arithmetic, UnknownValueError
from rlsize.readers.launch.bash.grammar import Grammar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rlsize.readers.launch.bash.grammar import Node
    from rlsize.readers.launch.bash.source import Source

Array: TypeAlias = dict[Any, Word]
"""Words by number, or by key."""

NOWHERE = Span("", 1)
SHOWN = 8
"""Names in a note."""
_UNTOLD = frozenset("$!") | {"RANDOM", "SECONDS", "LINENO", "EPOCHSECONDS", "PPID", "BASHPID"}
_LONGEST_EXPRESSION = 4096
_DEEPEST_EXPRESSION = 12
_KEYED = re.compile(r"([A-Za-z_]\w*)\[([A-Za-z_]\w*)\]")
_MOST_NOTES = 200
_MOST_UNREAD = 20
_SHORTEST_SECRET = 4
_SECRET = re.compile(r"TOKEN(?!S|IZER)|KEY|SECRET|PASSW|CREDENTIAL|bearer|hf_\w{8}|sk-\w{8}", re.IGNORECASE)
_FIRST_MARK, _MOST_MARKS = 0xF0000, 0xFFFD
_MARK = re.compile("[\U000f0000-\U000ffffd]")
"""Characters for private use, which stand in texts for what the script does not tell."""


def secret(text: str) -> bool:
    """Whether a text may hold a secret, or a name be that of one."""
    return bool(_SECRET.search(text))


def plain(text: str) -> str:
    """A text with nothing in the place of what is unknown."""
    return _MARK.sub("", text)


def known(text: str) -> bool:
    """Whether the script tells all of a text."""
    return text.isascii() or not _MARK.search(text)


class Record:
    """
    What was found in a script, and what it may still ask for, so that a hostile one ends in a sentence.

    Args:
        name: The script.
        sourced: Gives the text of a file by its path.
        notes: What a reader must know.
    """

    WORK = 20_000_000
    VALUE = 1 << 20
    WORDS = 10_000
    ALL_WORDS = 100_000

    def __init__(self, name: str, sourced: Callable[[str], str | None], notes: list[str]) -> None:
        self.name, self.sourced, self.notes = name, sourced, notes
        self.programs: list[Program] = []
        self.files: dict[str, Word] = {}
        self.sources: list[str] = []
        self.assigned: list[tuple[str, list[Word]]] = []
        """Values of variables in their order, which count where there is no program."""
        self.outside: list[str] = []
        """Every use of what only the outside could tell."""
        self.unread = 0
        self._left, self._words = self.WORK, 0
        self._marks: dict[str, str] = {}

    def spend(self, work: int) -> None:
        """Take note of work, in characters handled."""
        self._left -= work
        if self._left < 0:
            raise self.fault("it asks for too much work: loops or values that grow and grow")

    def value(self, length: int) -> None:
        """Refuse a value that has become too long."""
        if length > self.VALUE:
            raise self.fault("a value grows beyond 1 MiB")

    def words(self, count: int) -> None:
        """Refuse a list that has become too long."""
        if count > self.WORDS:
            raise self.fault(f"a list has more than {self.WORDS} words")

    def fault(self, what: str) -> InputError:
        """What is wrong with the script."""
        return InputError(Fault(what, self.name, "give the lines that start the training, without the rest"))

    def unknown(self, *names: str) -> str:
        """What stands in a text for values that nobody told; those of an expression where none is named."""
        marks, names = "", names or ("$((...))",)
        for name in names:
            free = chr(_FIRST_MARK + min(len(self._marks), _MOST_MARKS))
            marks += self._marks.setdefault(name, free)
        self.outside += names
        return marks

    def names(self, text: str) -> tuple[str, ...]:
        """What a text hangs on that nobody told."""
        if known(text):
            return ()
        by_mark = {mark: name for name, mark in self._marks.items()}
        return tuple(dict.fromkeys(by_mark[mark] for mark in _MARK.findall(text) if mark in by_mark))

    def told(self, word: Word) -> Word:
        """A word as a reader gets it."""
        return word if known(word.text) else Word(plain(word.text), word.span, self.names(word.text))

    def write(self, name: str, word: Word, *, append: bool = False) -> None:
        """Take in a file; one whose name nobody tells by what it hangs on."""
        name = next(iter(self.names(name)), name)
        before = self.files.get(name) if append else None
        word = word if before is None else replace(before, text=before.text + word.text)
        self.value(len(word.text))
        self.files[name] = word

    def add(self, words: Iterable[Word], variables: dict[str, Word]) -> None:
        """Take in a command."""
        seen = {name: self.told(word) for name, word in variables.items()}
        program = Program(tuple(map(self.told, words)), seen)
        self._words += len(program.words) + len(program.variables)
        if self._words > self.ALL_WORDS:
            raise self.fault("it runs more commands than can be read")
        self.programs.append(program)


class LeaveError(Exception):
    """
    `exit`, `return`, `break` or `continue`.

    Args:
        kind: Which of them.
        number: How many loops it leaves, or the status of a function: 0 where it succeeds.
    """

    def __init__(self, kind: str, number: int) -> None:
        super().__init__(kind)
        self.kind, self.number = kind, number


@dataclass(slots=True)
class Sink:
    """
    What commands print.

    Args:
        silent: Whether only the output counts, as within `$(...)`: programs are not noted.
        words: What is printed.
        pure: Whether that is all.
    """

    silent: bool
    words: list[Word] = field(default_factory=list)
    pure: bool = True

    @property
    def text(self) -> str:
        """All that is printed."""
        return "".join(word.text for word in self.words)


@dataclass(slots=True)
class Shell:
    """
    One shell; a subshell is a copy.

    Args:
        record: What all shells of a script share.
        zero: The script itself, `$0`.
        source: The text that is being read.
        follow: Follows a statement; whether it succeeds.
        variables: Arrays; what is none has its value at 0, as in bash.
        flags: Letters of `declare`, by name: x (programs see it), i (an integer), A (an array by keys).
        functions: Functions, by name: where they stand, and what they do.
        arguments: `$1` and on.
        files: The scripts that are being read, the innermost last.
        frames: Of each function that is under way, the variables that its own ones hide.
        sink: What takes the output, if anything does.
        given: What is there to read.
        unsure: How many conditions around hang on what is unknown.
        depth: How deep expansions nest.
        level: How deep functions, files and substitutions nest.
    """

    record: Record
    zero: str
    source: Source
    follow: Callable[[Shell, Node], bool]
    variables: dict[str, Array] = field(default_factory=dict)
    flags: dict[str, str] = field(default_factory=dict)
    functions: dict[str, tuple[Source, Node]] = field(default_factory=dict)
    arguments: list[Word] = field(default_factory=list)
    files: tuple[str, ...] = ()
    frames: list[dict[str, Array | None]] = field(default_factory=list)
    sink: Sink | None = None
    given: Source | None = None
    unsure: int = 0
    depth: int = 0
    level: int = 0

    def run(self, source: Source) -> bool:
        """Follow a text to its end; whether its last command succeeds."""
        before, self.source = self.source, source
        try:
            self.record.spend(len(source.text))
            return self.follow(self, Grammar(source, self.unread, self.record.spend).block())
        except LeaveError:
            return True
        finally:
            self.source = before

    def copy(self) -> Shell:
        """A subshell."""
        self.record.spend(40 * len(self.variables))
        return replace(
            self,
            variables={name: dict(values) for name, values in self.variables.items()},
            flags=dict(self.flags),
            functions=dict(self.functions),
            frames=[],
        )

    def note(self, at: int, text: str) -> None:
        """Take a note of a place in the text that is being read, without the values of secrets."""
        record, span = self.record, self.source.span(at, at)
        if len(record.notes) >= _MOST_NOTES:
            return
        told = f"{'' if span.file == record.name else f'{span.file}, '}line {span.line}: {text}"
        for values in (values for name, values in self.variables.items() if secret(name)):
            for value in values.values():
                told = told.replace(value.text, "...") if len(value.text) >= _SHORTEST_SECRET else told
        record.notes.append(told)

    def unread(self, at: int) -> None:
        """Note a line that is no shell."""
        self.record.unread += 1
        if self.sink is not None:
            self.sink.pure = False
        if self.record.unread <= _MOST_UNREAD:
            line = self.source.text[at : at + 1000].split("\n", 1)[0]
            hidden = secret(line) or not line.strip()
            self.note(at, f"cannot be read{'' if hidden else f': {line[:40]}'}")

    @property
    def separators(self) -> str:
        """$IFS."""
        said = self.get("IFS")
        return " \t\n" if said is None else plain(said.text)

    def get(self, name: str) -> Word | None:
        """The value of `$name`; None where nobody sets it."""
        if name.isdigit() and name != "0":
            at = int(name[:6]) - 1
            return self.arguments[at] if at < len(self.arguments) else None
        if name in self.variables:
            return self.variables[name].get(0, self.variables[name].get("0"))
        if name == "#" and not self.arguments:
            self.record.outside.append("$#")
        said = {
            "0": self.zero,
            "#": str(len(self.arguments)),
            "?": "0",
            "-": "hB",
            "PWD": ".",
            "BASH_SOURCE": self.files[-1] if self.files else self.zero,
        }.get(name)
        if said is None and name in _UNTOLD:
            said = self.record.unknown(f"${name}")
        return None if said is None else Word(said, NOWHERE)

    def array(self, name: str) -> Array | None:
        """All values of a variable by place or key; None where nobody sets it."""
        values = self.variables.get(name)
        if values is not None:
            return dict(sorted(values.items())) if all(isinstance(key, int) for key in values) else values
        scalar = self.get(name)
        return None if scalar is None else {0: scalar}

    def put(self, name: str, word: Word, key: int | str = 0, *, append: bool = False) -> None:
        """Set a variable, or an element of an array."""
        self.record.spend(len(word.text) + 10)
        held = self.variables.setdefault(name, {})
        before = held.get(key)
        integer = "i" in self.flags.get(name, "")
        if append and before is not None:
            text = f"({before.text})+({word.text})" if integer else before.text + word.text
            self.record.value(len(text))
            word = replace(word, text=text)
        try:
            held[key] = replace(word, text=str(self.integer(word.text))) if integer else word
        except UnknownValueError as error:
            held[key] = replace(word, text=self.record.unknown(*error.names))

    def number(self, text: str) -> int | None:
        """What an expression gives; None where it hangs on what nobody told, which is noted as used."""
        try:
            return self.integer(text)
        except UnknownValueError as error:
            self.record.unknown(*error.names)
            return None

    def _keyed(self, name: str, key: str) -> str:
        """What an associative array holds under a word, as a part of an expression; empty where it holds nothing."""
        word = (self.array(name) or {}).get(key)
        return f"({word.text})" if word is not None and word.text.strip() else ""

    def integer(self, text: str, depth: int = 0) -> int:
        """
        What an expression gives.

        Raises:
            UnknownValueError: It hangs on what nobody told, or is none.
        """
        if not known(text):
            raise UnknownValueError(*self.record.names(text))
        if len(text) > _LONGEST_EXPRESSION or depth > _DEEPEST_EXPRESSION:
            raise UnknownValueError
        self.record.spend(20 + 4 * len(text))
        text = _KEYED.sub(lambda found: self._keyed(found[1], found[2]) or found[0], text)

        def get(name: str, key: int | None) -> int:
            word = self.get(name) if key is None else (self.array(name) or {}).get(key)
            if word is None:
                raise UnknownValueError(name)
            return self.integer(word.text, depth + 1) if word.text.strip() else 0

        def put(name: str, key: int | None, value: int) -> None:
            self.put(name, Word(str(value), NOWHERE), key or 0)

        return Arithmetic(text, get, put).value()
