"""What has been read of a script so far, which all of its shells share."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlsize.facts.launch import Program, Word
    from rlsize.readers.launch.bash_quoting import Field
    from rlsize.readers.launch.bash_source import Source

_MOST_WORDS = 100_000
_MOST_NOTES = 200
_SECRET = re.compile(r"TOKEN(?!S|IZER)|KEY|SECRET|PASSW|CREDENTIAL|bearer|hf_\w{8}|sk-\w{8}", re.IGNORECASE)


def secret(text: str) -> bool:
    """Whether a text may hold a secret, or a name be that of one."""
    return bool(_SECRET.search(text))


class Expanded(NamedTuple):
    """A word, the parts it came of, and the source that these are of."""

    word: Word
    field: Field
    source: Source


@dataclass(slots=True)
class Given:
    """
    What a command is given to read.

    Args:
        source: The text, and where it stands.
        unknown: What it hangs on that nobody told, and where in the text that is.
    """

    source: Source
    unknown: list[tuple[int, str]] = field(default_factory=list)


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


@dataclass(slots=True)
class Record:
    """
    All that was found.

    Args:
        name: The script.
        sourced: Gives the text of a file by its path.
        notes: What a reader must know.
        programs: Commands, in order.
        files: Files that the script writes.
        sources: Files that it sources.
        assigned: Values of variables in their order, which count where there is no program.
    """

    name: str
    sourced: Callable[[str], str | None]
    notes: list[str]
    programs: list[Program] = field(default_factory=list)
    files: dict[str, Word] = field(default_factory=dict)
    sources: list[str] = field(default_factory=list)
    assigned: list[tuple[str, list[Word]]] = field(default_factory=list)
    words: int = 0

    def note(self, place: Source, at: int, text: str, secrets: list[str]) -> None:
        """Take a note of a line; values of secrets are left out."""
        if len(self.notes) < _MOST_NOTES:
            file = "" if place.name == self.name else f"{place.name}, "
            told = f"{file}line {place.span(at, at).line}: {text}"
            for value in secrets:
                told = told.replace(value, "...")
            self.notes.append(told)

    def add(self, program: Program, most: int = _MOST_WORDS) -> bool:
        """Take in a command; whether there was room for it."""
        self.words += len(program.words) + len(program.variables)
        if self.words <= most:
            self.programs.append(program)
        return self.words <= most
