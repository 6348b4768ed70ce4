"""The text of a resize: a header that says what it is, and its documents as YAML."""

from __future__ import annotations

from textwrap import TextWrapper
from typing import TYPE_CHECKING, Any

from rlsize.units import printable
from rlsize.writers.yaml_file import dumped

if TYPE_CHECKING:
    from collections.abc import Iterable

_COMMENT = TextWrapper(
    80, initial_indent="# ", subsequent_indent="#   ", break_long_words=False, break_on_hyphens=False
)


def commented(sentences: Iterable[str]) -> str:
    """Sentences as comments of 80 columns; nothing in them can end a comment."""
    return "".join(f"{line}\n" for text in sentences for line in _COMMENT.wrap(_one_line(text)))


def pasted(commands: Iterable[str]) -> str:
    """Commands as comments, each on one line however long, so that it can be copied."""
    return "".join(f"# {_one_line(command)}\n" for command in commands)


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()))


def yaml_documents(documents: Iterable[Any]) -> str:
    """Documents in the order in which they are given, keys as they stand."""
    return "---\n".join(dumped(document, 10_000) for document in documents)
