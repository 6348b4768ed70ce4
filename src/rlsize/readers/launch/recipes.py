"""Makefiles, justfiles, Dockerfiles and Markdown as shell scripts, with the places of their characters."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlsize.readers.launch.bash.source import Source

_NAMED = re.compile(r"(?:gnu)?makefile(?:\..*)?|.*\.(?:mk|make)|\.?(justfile)|.*\.(just)", re.IGNORECASE)
_IMAGE = re.compile(r"(?:docker|container)file(?:\..*)?|.*\.dockerfile", re.IGNORECASE)
_SET = re.compile(
    r"^(?P<export>export[ \t]+)?(?P<name>\w+)[ \t]*(?:[?:+]|::)?=[ \t]*"
    r"(?P<quote>[\"']?)(?P<value>(?:[^\\\n\"']|\\.|\\\n)*)(?P=quote)[ \t]*$|^(?P<other>(?=[^\s#]).*)$",
    re.MULTILINE,
)
"""A line that begins at the margin: an assignment, with what goes on after a backslash, or the head of a recipe."""
_FENCED = re.compile(r"^[ \t]*```+[ \t]*(\w*)[^\n`]*\n(.*?)(?:^[ \t]*```|\Z)", re.MULTILINE | re.DOTALL)
_SHELLS = {"", "bash", "sh", "shell", "zsh", "console"}
_OVERRIDES = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n|- ['\"]?[+~]{0,2}[\w./@-]+=[^\n]*(?:\n|\Z))+")
"""What Hydra keeps of a command line in `.hydra/overrides.yaml`."""
_LISTED = re.compile(r"^- ", re.MULTILINE)
_DEFAULT = re.compile(r"(\w+)=([\"']?)([\w./-]+)\2")
_MOST = 100_000
_MENDS = (
    (re.compile(r"\$\((\w+)\)"), r"${\1}"),  # a variable of make's
    (re.compile(r"\{\{\s*(\w+)\s*\}\}"), r"${\1}"),  # one of just's
    (re.compile(r"\$\$"), "$"),
    (re.compile(r"^[ \t]+(?!--)[@-]+(?=\w)", re.MULTILINE), "  "),  # a command that is not echoed, or that may fail
)
_IMAGE_MENDS = (
    (re.compile(r"^ENV(?=[ \t])", re.MULTILINE), "export"),
    (re.compile(r"^(?:CMD|ENTRYPOINT)[ \t]*\[|(?<=\")[ \t]*\](?=[ \t]*$)", re.MULTILINE), ""),  # a command as a list
    (re.compile(r"(?<!\\)\"[ \t]*,"), '"'),
)


def is_recipes(path: str, text: str) -> bool:
    """Whether a file is a Makefile, a justfile or a Dockerfile, by its name, or a list of overrides."""
    named = any(one.fullmatch(PurePosixPath(path).name) for one in (_NAMED, _IMAGE))
    return named or _OVERRIDES.fullmatch(text) is not None


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
    if not is_recipes(path, source.text):
        return source
    if _OVERRIDES.fullmatch(source.text):
        return source.changed(_LISTED, "", _MOST)
    image = _IMAGE.fullmatch(PurePosixPath(path).name)
    source = source if image else source.joined(_lines(source.text))
    for pattern, put in _IMAGE_MENDS if image else _MENDS:
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
