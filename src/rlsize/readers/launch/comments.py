"""Commands that a comment shows: how a file is started, and what runs beside it."""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING

from rlsize.errors import InputError
from rlsize.readers.launch.bash import read_script

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlsize.facts.launch import Program
    from rlsize.readers.launch.bash.source import Source

_COMMAND = r"(?:[A-Z_]+=\S+[ \t]+)*(?:accelerate|torchrun|deepspeed|python3?|trl|vllm|swift|megatron)[ \t]"
_GOING_ON = r"(?:[^\n]*\\\n[ \t]*#?)*[^\n]*"
_COMMENTED = re.compile(rf"^[ \t]*#[ \t]*{_COMMAND}{_GOING_ON}", re.MULTILINE)
_BARE = re.compile(rf"^[ \t]*#?[ \t]*{_COMMAND}{_GOING_ON}", re.MULTILINE)
_SIGN = re.compile(r"^[ \t]*#", re.MULTILINE)
_MOST = 20  # commands that are looked for
_LONGEST = 16384  # characters of one


def commands_shown(source: Source, name: str, *, bare: bool = False) -> Iterator[Program]:
    """
    Commands in comments; nothing of them is run.

    Args:
        source: A script, or a Python file.
        name: Its name.
        bare: Whether they may stand without `#`, as in the docstring of a Python file.

    Yields:
        Each command; its words stand where they stand in the file.
    """
    for match in islice((_BARE if bare else _COMMENTED).finditer(source.text), _MOST):
        if len(match[0]) <= _LONGEST:
            block = source.part(*match.span()).changed(_SIGN, " ", _LONGEST)
            with suppress(InputError):  # a sentence that begins like a command
                yield from read_script(block, name, lambda _: None).programs
