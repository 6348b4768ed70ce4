"""What a log is, by what stands in it: a form whose records can be read, with keys that a framework has."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING

from rlsize.readers.logs.forms import forms
from rlsize.readers.logs.frameworks import frameworks
from rlsize.readers.logs.rows import Skips
from rlsize.readers.logs.source import BLOCK, Blocks, unpacked_head

if TYPE_CHECKING:
    from rlsize.readers.logs.forms import Form
    from rlsize.readers.logs.mapping import Framework
    from rlsize.readers.logs.source import Source

TENSORBOARD = "tensorboard"
_ROWS = 200
"""Records that are looked at."""
_ENOUGH = 2
"""Keys by which a framework is known from a form that others have too."""
_TAIL = 64 * 2**10
_MOST = 4 * 2**30
"""Unpacked bytes after which nobody looks any further for a first record."""


@dataclass(frozen=True, slots=True)
class LogKind:
    """
    What a log is.

    Args:
        form: How it is written.
        framework: Whose it is.
    """

    form: Form
    framework: Framework


def names() -> tuple[str, ...]:
    """What a user may call the format of a log: its framework, or TensorBoard."""
    return (*frameworks(), TENSORBOARD)


def recognised(head: bytes) -> str | None:
    """
    The name of the framework whose log begins so.

    Args:
        head: The first bytes, about 1 MiB, packed or not.

    Returns:
        One of the names for --format; None if it is no log that is known, or says nothing so early.
    """
    kind = kind_of(unpacked_head(head))
    return kind.framework.name if kind else None


def kind_of(head: bytes, name: str | None = None, *, start: bool = True) -> LogKind | None:
    """
    What a log is.

    Args:
        head: Bytes of it.
        name: What the user calls it.
        start: Whether they are the first ones.
    """
    best: tuple[int, LogKind] | None = None
    for form in forms():
        if (form.whole_file and not start) or not any(mark in head for mark in form.marks):
            continue
        if name == TENSORBOARD and form.name.lower() != TENSORBOARD:
            continue
        keys = _keys(form, head)
        for framework in frameworks().values():
            if form.framework not in {None, framework.name} or name not in {None, TENSORBOARD, framework.name}:
                continue
            hits = framework.known(keys)
            least = 1 if form.framework or name == framework.name else _ENOUGH
            if hits >= least and (best is None or hits > best[0]):
                best = (hits, LogKind(form, framework))
    return best[1] if best else None


def _keys(form: Form, head: bytes) -> set[str]:
    """The keys of the first records."""
    if form.head_keys is not None:
        return set(form.head_keys(head))
    rows = islice(form.rows(Blocks((head,)), Skips()), _ROWS)
    return {key for row in rows for key in row.values}


def first_record(source: Source, name: str | None) -> tuple[LogKind, Blocks] | None:
    """
    What a log is, by its first record, however much text stands before it.

    Args:
        source: The log.
        name: What the user calls it.

    Returns:
        What it is, and its bytes from shortly before that record on; None if there is no record.
    """
    window, line, seen = source.head, 1, 0
    start = True
    while window:
        kind = kind_of(window, name, start=start)
        if kind is not None:
            return kind, Blocks(chain((window,), source.rest), line)
        start = False
        keep = window.rfind(b"\n", 0, max(0, len(window) - _TAIL)) + 1 or len(window)
        line += window.count(b"\n", 0, keep)
        seen += keep
        block = next(source.rest, b"") if seen < _MOST else b""
        if not block:
            return None
        window = window[keep:] + block
        if len(window) > _TAIL + 2 * BLOCK:
            window = window[-_TAIL - BLOCK :]
    return None
