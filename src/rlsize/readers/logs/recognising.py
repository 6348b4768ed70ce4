"""What a log is, by what stands in it: a form whose records can be read, with keys that a framework has."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING

from rlsize.readers.byte_sources import BLOCK
from rlsize.readers.logs.figures import COMMA, Skips
from rlsize.readers.logs.forms import csv_table, forms, text_pairs
from rlsize.readers.logs.frameworks import frameworks
from rlsize.readers.logs.names import is_time
from rlsize.readers.logs.source import Blocks, opened
from rlsize.readers.logs.trackers import SQLITE
from rlsize.units import some_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlsize.readers.logs.forms import Form
    from rlsize.readers.logs.mapping import Framework
    from rlsize.readers.logs.source import Source

TENSORBOARD = "tensorboard"
_STEP = "step"
_ROWS = 200
"""Records that are looked at."""
_ENOUGH = 2
"""Keys by which a framework is known from a form that others have too."""
_SHOWN = 8
_BEGIN = 8
"""Bytes by which a file is no text: those of W&B and TensorBoard have a zero there. A log that was cut may begin so."""
_TAIL = 64 * 2**10
_MOST = 4 * 2**30
"""Unpacked bytes after which nobody looks any further for a first record."""
_MOST_LOOSE = 16 * 2**20
"""Those for a record of any text, in which looking takes longer."""


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


def is_log(path: str, *, loosely: bool = True) -> bool:
    """
    Whether a file has a record of training, however far into it.

    Args:
        path: The file.
        loosely: Whether any text counts whose names say enough; a configuration may be such a text too.

    Raises:
        InputError: It cannot be read.
    """
    for loose in (False, True) if loosely else (False,):
        with opened(path, Skips()) as source:
            if source.head.startswith(SQLITE) or first_record(source, Asked(loose=loose)):
                return True
    return False


def hints(head: bytes) -> str:
    """What a reader can do with a text that is no log that is known: keys that look like times, numbers with commas."""
    skips = Skips()
    form = csv_table if csv_table.head_keys(head) else text_pairs
    rows = islice(form.rows(Blocks((head,)), skips), _ROWS)
    times = [key for key in dict.fromkeys(key for row in rows for key in row.values) if is_time(key)]
    found = f"; {COMMA} stands at {skips.listing()[0].first}" if skips.listing() else ""
    if times:
        found += f"; keys look like times: {some_of(times, _SHOWN)}; say what they are: --map 'step_seconds={times[0]}'"
    return found


@dataclass(frozen=True, slots=True)
class Asked:
    """
    What a log is looked through for.

    Args:
        name: What the user calls it.
        said: Keys that the user says to be in it.
        loose: Whether any text counts whose names say enough, not only the frameworks' own forms.
    """

    name: str | None = None
    said: frozenset[str] = frozenset()
    loose: bool = False


def kind_of(head: bytes, asked: Asked = Asked(), *, start: bool = True) -> LogKind | None:
    """
    What a log is.

    Args:
        head: Bytes of it.
        asked: What is looked for.
        start: Whether they are the first ones.
    """
    found: list[tuple[int, LogKind]] = []
    for form in sorted(forms(), key=lambda form: form.loose):
        if (form.whole_file and not start) or form.loose > asked.loose or not any(mark in head for mark in form.marks):
            continue
        if asked.name != TENSORBOARD or form.name.lower() == TENSORBOARD:
            found += _kinds(form, _keys(form, head), asked)
    return _likeliest(found)


def kind_by_keys(form: Form, keys: set[str], asked: Asked) -> LogKind | None:
    """What a log of a form with some keys is."""
    return _likeliest([*_kinds(form, keys, asked)])


def _likeliest(found: Sequence[tuple[int, LogKind]]) -> LogKind | None:
    """The kind with most keys; one whose keys are told by name alone where there is no other."""
    tables = [one for one in found if not one[1].framework.by_name]
    return max(tables or found, key=lambda one: one[0])[1] if found else None


def _kinds(form: Form, keys: set[str], asked: Asked) -> Iterator[tuple[int, LogKind]]:
    """What a log of a form may be, with how many of its keys say so."""
    for framework in frameworks().values():
        if form.framework not in {None, framework.name} or asked.name not in {None, TENSORBOARD, framework.name}:
            continue
        by_name = framework.by_name
        if by_name and not asked.loose:
            continue
        said = len(asked.said & keys) if by_name else 0
        least = 1 if form.framework or said or asked.name == framework.name else _ENOUGH
        hits = framework.known(keys) + said
        if hits >= least:
            yield hits, LogKind(form, framework)


def _keys(form: Form, head: bytes) -> set[str]:
    """The keys of the first records."""
    if form.head_keys is not None:
        return set(form.head_keys(head))
    rows = [*islice(form.rows(Blocks((head,)), Skips()), _ROWS)]
    numbered = {_STEP} if form.loose and any(row.step is not None for row in rows) else set()
    return numbered.union(*(row.values for row in rows))


def first_record(source: Source, asked: Asked) -> tuple[LogKind, Blocks] | None:
    """
    What a log is, by its first record, however much text stands before it.

    Args:
        source: The log.
        asked: What is looked for.

    Returns:
        What it is, and its bytes from shortly before that record on; None if there is no record.
    """
    window, line, seen = source.head, 1, 0
    start = True
    if asked.loose and b"\0" in window.lstrip(b"\0")[:_BEGIN]:
        return None  # no text
    while window:
        kind = kind_of(window, asked, start=start)
        if kind is not None:
            return kind, Blocks(chain((window,), source.rest), line)
        start = False
        keep = window.rfind(b"\n", 0, max(0, len(window) - _TAIL)) + 1 or len(window)
        line += window.count(b"\n", 0, keep)
        seen += keep
        block = next(source.rest, b"") if seen < (_MOST_LOOSE if asked.loose else _MOST) else b""
        if not block:
            return None
        window = window[keep:] + block
        if len(window) > _TAIL + 2 * BLOCK:
            window = window[-_TAIL - BLOCK :]
    return None
