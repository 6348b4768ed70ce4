"""
Shell scripts, read without running any of them.

Assignments, loops, conditions and expansions that follow from the script alone are followed. What hangs on the machine
(`$(nvidia-smi ...)`, variables nobody sets) stays unknown and is named. Files that depend on the machine are read for
NVIDIA GPUs, without arguments, from the script's own folder.
"""

from __future__ import annotations

import posixpath
import re
from types import MappingProxyType
from typing import TYPE_CHECKING

from rlsize.facts.launch import Program, Script, Span, Word
from rlsize.readers.launch.bash.shell import Record, Shell
from rlsize.readers.launch.bash.source import Source, headers_of, mended, variables_of
from rlsize.readers.launch.bash.statements import statement

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_MOST_TOKENS = 100_000


def read_script(
    text: str | Source,
    name: str,
    sourced: Callable[[str], str | None],
    arguments: Sequence[str] = (),
    variables: Mapping[str, str] = MappingProxyType({}),
) -> Script:
    """
    What a shell script would run, without running any of it.

    Args:
        text: The script, with its places where it stands in another file. A part of one will do: options and
            key=value lines alone count as a program without a name.
        name: Its file name, for the places of words; `-` for standard input.
        sourced: Gives the text of a file that the script sources, by its path from the script's folder; None: missing.
        arguments: What the script is called with.
        variables: Variables that whoever runs it sets.

    Returns:
        Its programs in order with what they are given, headers of a batch system, files it writes, and notes. A file
        whose name nobody can tell stands in `files` under what its name hangs on.

    Raises:
        InputError: Nothing of it can be read, or it asks for too much: values, lists or loops without end.
    """
    record = Record(name, sourced, [])
    source = Source.of(text, name) if isinstance(text, str) else text
    if len(re.findall(r"\S+", source.text)) > _MOST_TOKENS:
        raise record.fault(f"it has more than {_MOST_TOKENS} words")
    source = mended(source, record.notes)
    headers = headers_of(source)
    zero = "./" + posixpath.basename(name) if name != "-" else "./script.sh"
    shell = Shell(record, zero, source, statement, files=(zero,))
    outside = Span(name, source.span(0, 0).line)
    set_outside = variables_of(headers) | {variable: Word(value, outside) for variable, value in variables.items()}
    shell.variables |= {variable: {0: word} for variable, word in set_outside.items()}
    shell.flags |= dict.fromkeys(shell.variables, "x")
    shell.arguments = [Word(argument, source.span(0, 0)) for argument in arguments]
    try:
        shell.run(source)
    except RecursionError:
        raise record.fault("it nests too deep") from None
    programs = record.programs or _fragment(record)
    if record.unread and not programs and not record.assigned and not record.files:
        raise record.fault("nothing of it can be read as a shell script")
    files = {file: record.told(word) for file, word in record.files.items()}
    return Script(tuple(programs), headers, files, tuple(dict.fromkeys(record.notes)), tuple(record.sources))


def _fragment(record: Record) -> list[Program]:
    """What was pasted without a command: the options in its options or strings, else its NAME=value lines."""
    options = [word for _, words in record.assigned if len(words) > 1 for word in words]
    if not options:
        options = [
            Word(part, word.span, word.unknown)
            for _, words in record.assigned
            for word in words
            if word.text.lstrip().startswith("-")
            for part in word.text.split()
        ]
    if not options and not record.files and not record.sources:
        options = [
            Word(f"{name}={word.text}", word.span, word.unknown) for name, words in record.assigned for word in words
        ]
    return [Program(tuple(options))] if options else []
