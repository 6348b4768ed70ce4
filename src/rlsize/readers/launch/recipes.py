"""Makefiles, justfiles and Markdown as the shell scripts that they hold, with the places of their characters."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlsize.readers.launch.bash.source import Source

_NAMED = re.compile(r"(?:gnu)?makefile(?:\..*)?|.*\.(?:mk|make)|\.?(justfile)|.*\.(just)", re.IGNORECASE)
_SET = re.compile(
    r"^(?P<export>export[ \t]+)?(?P<name>\w+)[ \t]*(?:[?:+]|::)?=[ \t]*"
    r"(?P<quote>[\"']?)(?P<value>(?:[^\\\n\"']|\\.|\\\n)*)(?P=quote)[ \t]*$|^(?P<other>(?=[^\s#]).*)$",
    re.MULTILINE,
)
"""A line that begins at the margin: an assignment, with what goes on after a backslash, or the head of a recipe."""
_FENCED = re.compile(r"^[ \t]*```+[ \t]*(\w*)[^\n`]*\n(.*?)(?:^[ \t]*```|\Z)", re.MULTILINE | re.DOTALL)
_SHELLS = {"", "bash", "sh", "shell", "zsh", "console"}
_DEFAULT = re.compile(r"(\w+)=([\"']?)([\w./-]+)\2")
_MOST = 100_000
_MENDS = (
    (re.compile(r"\$\((\w+)\)"), r"${\1}"),  # a variable of make's
    (re.compile(r"\{\{\s*(\w+)\s*\}\}"), r"${\1}"),  # one of just's
    (re.compile(r"\$\$"), "$"),
    (re.compile(r"^[ \t]+(?!--)[@-]+(?=\w)", re.MULTILINE), "  "),  # a command that is not echoed, or that may fail
)


def is_recipes(path: str) -> bool:
    """Whether a file is a Makefile or a justfile, by its name."""
    return _NAMED.fullmatch(PurePosixPath(path).name) is not None


def as_shell(path: str, source: Source) -> Source:
    """
    The shell script that a file holds: its variables and all recipes, in order; what Markdown has between its fences.

    Args:
        path: Its name.
        source: Its text.
    """
    if path.endswith((".md", ".markdown")) or source.text.lstrip().startswith("```"):
        blocks = (found for found in _FENCED.finditer(source.text) if found[1].lower() in _SHELLS)
        return source.joined((found[2], *found.span(2)) for found in blocks)
    if not is_recipes(path):
        return source
    source = source.joined(_lines(source.text))
    for pattern, put in _MENDS:
        source = source.changed(pattern, put, _MOST)
    return source


def _lines(text: str) -> Iterator[tuple[str, int, int]]:
    """Assignments as the shell has them, recipes, and the heads of these as the defaults of their parameters."""
    at = 0
    for found in _SET.finditer(text):
        yield text[at : found.start()], at, found.start()
        at = found.end()
        if found["other"] is None:
            begin, end = found.span("value")
            yield f'{found["export"] or ""}{found["name"]}="', found.start(), begin
            yield text[begin:end], begin, end
            yield '"', end, at
            continue
        for one in _DEFAULT.finditer(found["other"]):
            begin, end = (found.start() + place for place in one.span(3))
            yield f"{one[1]}=", begin, begin
            yield text[begin:end], begin, end
            yield ";", end, end
    yield text[at:], at, len(text)
