"""The text of a shell script with the places of its bytes, mended where pasting broke it."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from rlsize.errors import Fault, InputError
from rlsize.facts.launch import Span, Word

if TYPE_CHECKING:
    from collections.abc import Iterable


class Piece(NamedTuple):
    """A part of a text: where it begins there, and which bytes of the file it stands for."""

    at: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Source:
    """
    A text to read, and which bytes of a file each part of it stands for.

    Args:
        name: Name of the file.
        text: One character for each byte (Latin-1), so that places in it are places in bytes.
        pieces: Its parts in order, the first at 0. A part as long as its bytes stands for them one by one; another one
            (an escape, a variable's value) for all of them.
        newlines: Where lines end in the file.
    """

    name: str
    text: str
    pieces: tuple[Piece, ...]
    newlines: tuple[int, ...]

    def span(self, start: int, end: int) -> Span:
        """The bytes of the file that a part of the text stands for."""
        first, last = self._piece(start), self._piece(max(start, end - 1))
        begin = first.start + (start - first.at) if self._exact(first) else first.start
        stop = last.start + (end - last.at) if self._exact(last) else last.end
        return Span(self.name, bisect_right(self.newlines, begin - 1) + 1, begin, max(begin, stop))

    def part(self, start: int, end: int) -> Source:
        """A part of the text as a text of its own."""
        first = max(0, bisect_left(self.pieces, (start + 1,)) - 1)
        last = bisect_left(self.pieces, (max(start + 1, end),))
        clipped = []
        for piece in self.pieces[first:last]:
            skipped, over = max(0, start - piece.at), max(0, self._after(piece) - end)
            exact = self._exact(piece)
            clipped.append(
                Piece(
                    piece.at + skipped - start,
                    piece.start + (skipped if exact else 0),
                    piece.end - (over if exact else 0),
                )
            )
        return Source(self.name, self.text[start:end], tuple(clipped), self.newlines)

    def _piece(self, at: int) -> Piece:
        return self.pieces[max(0, bisect_left(self.pieces, (at + 1,)) - 1)]

    def _after(self, piece: Piece) -> int:
        """Where a piece ends in the text."""
        following = bisect_left(self.pieces, (piece.at + 1,)) if len(self.pieces) > 1 else 1
        return self.pieces[following].at if following < len(self.pieces) else len(self.text)

    def _exact(self, piece: Piece) -> bool:
        return self._after(piece) - piece.at == piece.end - piece.start


def as_bytes(text: str) -> str:
    """A text with one character for each of its UTF-8 bytes."""
    return text.encode("utf-8", "surrogatepass").decode("latin-1")


def as_text(raw: str) -> str:
    """The text that UTF-8 bytes mean, given as one character for each."""
    return raw if raw.isascii() else raw.encode("latin-1").decode("utf-8", "replace")


_CONTINUES = r"[ \t]*(?:-|[+~]{0,2}(?=[^=\s]*[a-z.])[A-Za-z_][\w.@/\[\]-]*=|\"?\$\{\w+\[@\]\}|(?:\\\\?&&))"
"""How a line begins that goes on from a command: an option, key=value (not an assignment: NAME=), an array."""

_MOST_MENDS = 200_000
_MENDS = (
    (re.compile(r"\A\xef\xbb\xbf"), "", ""),
    (re.compile(r"\r(?=\n|\Z)"), "", ""),
    (
        re.compile(rf"(?<=\\)[ \t]+(?:#[^\n]*)?(?=\n{_CONTINUES})"),
        "",
        "blanks after a backslash end the command in bash: the next line is read as going on",
    ),
    (
        re.compile(rf"(?<=\\\n)(?:[ \t]*(?:#[^\n]*)?\n)+(?={_CONTINUES})"),
        "",
        "a blank line or comment ends the command in bash: the lines after it are read as going on",
    ),
    (
        re.compile(r"(?<![^\s\"'(])\xe2\x80[\x93\x94]-?(?=[A-Za-z])"),
        "--",
        "a typographic dash is read as --",
    ),
)


def mended(name: str, text: str, notes: list[str], within: str = "") -> Source:
    """
    A script as it was meant: Windows line endings, broken continuations and typographic dashes put right.

    Args:
        name: Name of the file.
        text: Its text.
        notes: What was put right is added here.
        within: How a note says which file it is about.

    Returns:
        The text to read, whose places are those of the file.
    """
    raw = as_bytes(text)
    newlines = tuple(found.start() for found in re.finditer("\n", raw))
    source = Source(name, raw, (Piece(0, 0, len(raw)),), newlines)
    for pattern, put, note in _MENDS:
        # Cheap signs first: `search` of a long text that needs no mending is one pass.
        changes = [(found.start(), found.end(), put) for found in islice(pattern.finditer(source.text), _MOST_MENDS)]
        if note:
            places = dict.fromkeys(source.span(start, end).line for start, end, _ in changes)
            notes += [f"{within}line {line}: {note}" for line in places]
        if changes:
            source = _changed(source, changes)
    return source


def _changed(source: Source, changes: Iterable[tuple[int, int, str]]) -> Source:
    """A text with parts replaced, which keep standing for what they replace."""
    texts: list[str] = []
    pieces: list[Piece] = []
    length = at = 0
    for start, end, put in [*changes, (len(source.text), len(source.text), "")]:
        kept = source.part(at, start)
        pieces += [Piece(piece.at + length, piece.start, piece.end) for piece in kept.pieces if kept.text]
        length += len(kept.text)
        if put:
            place = source.span(start, end)
            pieces.append(Piece(length, place.start, place.end))
        texts += [kept.text, put]
        length += len(put)
        at = end
    return Source(source.name, "".join(texts), tuple(pieces) or (Piece(0, 0, 0),), source.newlines)


_HEADER = re.compile(r"^#(SBATCH|PBS|BSUB)[ \t]+([^\n]*)", re.MULTILINE)
_OPTION = re.compile(r"(?:--([\w-]+)(?:=|[ \t]+(?!-)|(?=\s|$))|-(\w)[ \t]*=?)(\"[^\"]*\"|'[^']*'|(?!-)[^\s#]+|)")
_MOST_OPTIONS = 100
_LONG = {
    "SBATCH": {
        "N": "nodes",
        "n": "ntasks",
        "G": "gpus",
        "c": "cpus-per-task",
        "t": "time",
        "p": "partition",
        "J": "job-name",
        "o": "output",
        "e": "error",
        "A": "account",
        "w": "nodelist",
        "C": "constraint",
        "q": "qos",
        "a": "array",
        "D": "chdir",
        "x": "exclude",
    },
    "PBS": {"N": "job-name", "q": "queue", "A": "account", "o": "output", "e": "error"},
    "BSUB": {"n": "ntasks", "q": "queue", "J": "job-name", "W": "time", "o": "output", "e": "error"},
}


def headers_of(source: Source) -> dict[str, Word]:
    """Options of a batch system that stand in comments, by their long names; those of PBS's -l by their own."""
    headers: dict[str, Word] = {}
    for line in _HEADER.finditer(source.text):
        system, options = line.groups()
        for option in islice(_OPTION.finditer(options), _MOST_OPTIONS):
            name = option[1] or _LONG[system].get(option[2], option[2])
            start = line.start(2) + option.start(3)
            value = option[3]
            if value[:1] in ("'", '"'):
                start, value = start + 1, value[1:-1]
            if system == "PBS" and name == "l":
                for asked in re.finditer(r"(\w+)=([^,]*)", value):
                    place = source.span(start + asked.start(2), start + asked.end(2))
                    headers[asked[1]] = Word(as_text(asked[2]), place)
            else:
                headers[name] = Word(as_text(value), source.span(start, start + len(value)))
    return headers


def variables_of(headers: dict[str, Word]) -> dict[str, Word]:
    """What Slurm sets because of its headers."""
    said: dict[str, Word] = {}

    def known(variable: str, word: Word | None) -> None:
        if word is not None and re.fullmatch(r"\d+", word.text):
            said.setdefault(variable, word)

    gres = headers.get("gres", Word("", Span("", 0)))
    cards = re.search(r"gpu(?::[\w.-]+)??:(\d+)", gres.text)
    per_node = headers.get("gpus-per-node") or (Word(cards[1], gres.span) if cards else None)
    if per_node is not None:
        per_node = Word(per_node.text.rpartition(":")[2], per_node.span)
    known("SLURM_NNODES", headers.get("nodes"))
    known("SLURM_JOB_NUM_NODES", headers.get("nodes"))
    known("SLURM_GPUS_ON_NODE", per_node)
    known("SLURM_GPUS_PER_NODE", per_node)
    known("SLURM_GPUS", headers.get("gpus"))
    known("SLURM_NTASKS_PER_NODE", headers.get("ntasks-per-node"))
    known("SLURM_CPUS_PER_TASK", headers.get("cpus-per-task"))
    known("SLURM_NTASKS", headers.get("ntasks"))
    nodes, tasks = said.get("SLURM_NNODES"), said.get("SLURM_NTASKS_PER_NODE")
    if nodes and tasks:
        known("SLURM_NTASKS", Word(str(int(nodes.text[:9]) * int(tasks.text[:9])), nodes.span))
    return said


class Budget:
    """
    How much a script may ask of its reader, so that a hostile one ends in a sentence.

    Args:
        name: Name of the script.
    """

    WORK = 20_000_000
    VALUE = 1 << 20
    WORDS = 10_000
    DEPTH = 20

    def __init__(self, name: str) -> None:
        self.name = name
        self.left = self.WORK

    def spend(self, work: int) -> None:
        """Take note of work, in characters handled."""
        self.left -= work
        if self.left < 0:
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
