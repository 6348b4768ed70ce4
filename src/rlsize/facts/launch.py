"""A launch script or configuration as it was written: words of its programs, settings, and where each stands."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, TypeAlias

from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

Value: TypeAlias = "int | float | str | bool | list[Value] | dict[str, Value] | None"
"""A value of a configuration, as YAML, TOML or Python literals have it."""

GAP = "is missing: what it sets is not known"
"""How a note tells of a file that a launch is made from and that is not there."""


@dataclass(frozen=True, slots=True)
class Span:
    """
    A piece of a file.

    Args:
        file: Name of the file, as it was named; `-` for standard input.
        line: Its first line, counted from 1.
        start: Its first byte, counted from 0.
        end: The byte after its last one; equal to `start` where no text of its own stands there.
    """

    file: str
    line: int
    start: int = 0
    end: int = 0

    def __str__(self) -> str:
        """File and line."""
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Word:
    """
    A word of a command, as the shell would hand it to the program.

    Args:
        text: The word, quotes and variables resolved.
        span: Where it stands as it was written, quotes and variables and all; in the array that it came from.
        unknown: Names of variables and commands whose values the script does not tell; `text` holds nothing for them.
    """

    text: str
    span: Span
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Program:
    """
    One command that a script would run.

    Args:
        words: The program and its arguments.
        variables: The environment that the script gives it: exported variables and those before the command.
    """

    words: tuple[Word, ...]
    variables: Mapping[str, Word] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Script:
    """
    What a shell script would run, without running any of it.

    Args:
        programs: Its commands, in order, those of functions that are called and of sourced files among them.
        headers: Options of a batch system: `#SBATCH --nodes=4` as `nodes`, `4`.
        files: Texts of files that it writes itself (heredocs with a redirection), by name.
        notes: What a reader must know: loops, branches taken, variables nobody sets, files that are missing.
        sourced: Files that were read beside it.
    """

    programs: tuple[Program, ...]
    headers: Mapping[str, Word] = field(default_factory=dict)
    files: Mapping[str, Word] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    sourced: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Setting:
    """
    A key that a launch sets.

    Args:
        key: Dotted key, or flag without its dashes, as it was written.
        value: Its value; None as well where it hangs on what nobody tells.
        span: The value, as it was written.
        inherited: Whether a file says it that this one names as its parent or base.
        unknown: Variable or command that its value hangs on, where the script does not tell that.
    """

    key: str
    value: Value
    span: Span
    inherited: bool = False
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class Settings:
    """
    What a configuration sets, without running anything in it.

    Args:
        settings: Its keys, in order, those of its parents among them.
        notes: What a reader must know: what is left out, parents that are missing, keys that stand twice.
        form: What it is written in: `yaml`, `toml`, `json`, `python`, or `log` for one that a log prints.
        scripts: Shell scripts in it: each as one word, or as the words of a command that is a list.
    """

    settings: tuple[Setting, ...]
    notes: tuple[str, ...] = ()
    form: str = "yaml"
    scripts: tuple[tuple[Word, ...], ...] = ()
