"""Commands that a comment shows: how a file is started, and what runs beside it."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from rlsize.errors import InputError
from rlsize.facts.launch import Program, Span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlsize.facts.launch import Word

_COMMAND = r"(?:[A-Z_]+=\S+[ \t]+)*(?:accelerate|torchrun|deepspeed|python3?|trl|vllm|swift|megatron)[ \t]"
_GOING_ON = r"(?:[^\n]*\\\n[ \t]*#?)*[^\n]*"
_COMMENTED = re.compile(rf"^[ \t]*#[ \t]*{_COMMAND}{_GOING_ON}", re.MULTILINE)
_BARE = re.compile(rf"^[ \t]*#?[ \t]*{_COMMAND}{_GOING_ON}", re.MULTILINE)
_MOST = 20  # commands that are looked for
_LONGEST = 16384  # characters of one


def commands_shown(text: str, name: str, *, bare: bool = False) -> Iterator[Program]:
    """
    Commands in comments; nothing of them is run.

    Args:
        text: A script, or a Python file.
        name: Its name, for the places of words.
        bare: Whether they may stand without `#`, as in the docstring of a Python file.

    Yields:
        Each command; its words stand where they stand in the file.
    """
    from rlsize.readers.launch.bash import read_script

    for match in islice((_BARE if bare else _COMMENTED).finditer(text), _MOST):
        if len(match[0]) > _LONGEST:
            continue
        block = re.sub(r"^([ \t]*)#", r"\1 ", match[0], flags=re.MULTILINE)
        line, start = text.count("\n", 0, match.start()), len(text[: match.start()].encode())
        try:
            programs = read_script(block, name, lambda _: None).programs
        except InputError:  # a sentence that begins like a command
            continue
        for program in programs:
            yield Program(
                tuple(_moved(word, line, start) for word in program.words),
                {key: _moved(word, line, start) for key, word in program.variables.items()},
            )


def _moved(word: Word, lines: int, start: int) -> Word:
    span = word.span
    return replace(word, span=Span(span.file, span.line + lines, span.start + start, span.end + start))
