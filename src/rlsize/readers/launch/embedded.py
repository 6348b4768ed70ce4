"""Scripts that stand in a configuration: which characters of the file are theirs."""

from __future__ import annotations

import re
from array import array
from typing import TYPE_CHECKING

from rlsize.readers.launch.bash.source import Source
from rlsize.readers.launch.nodes import Places

if TYPE_CHECKING:
    from rlsize.facts.launch import Span


def script_in(text: str, script: str, where: Span) -> Source:
    """
    A script inside a file, with its places there.

    Args:
        text: The file's text.
        script: The script, without what quotes and indents it there.
        where: The script in the file.

    Returns:
        The script. What does not stand in the file as it stands in the script has no place but its beginning.
    """
    at = begin = len(text.encode()[: where.start].decode())
    starts = array("L", [begin]) * len(script)
    ends = array("L", [begin]) * len(script)
    for line in re.finditer(r"[^\n]*\S", script):
        words = [line] if line[0] in text[at:] else re.finditer(r"\S+", line[0])
        for word in words:
            place = text.find(word[0], at)
            if place >= 0:
                at = place + len(word[0])
                own = line.start() + (0 if word is line else word.start())
                starts[own : own + len(word[0])] = array("L", range(place, at))
                ends[own : own + len(word[0])] = array("L", range(place + 1, at + 1))
    return Source(script, starts, ends, Places(text, where.file))
