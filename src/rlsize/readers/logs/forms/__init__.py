"""How logs are written, one file for each form, found by listing this folder."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rlsize.readers.logs.figures import Row, Skips
    from rlsize.readers.logs.source import Blocks


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """
    A way to write a log.

    Args:
        name: What it is called in answers.
        rows: The records of a stream of bytes; what cannot be used is counted.
        marks: Bytes, one of which stands in every log of this form.
        framework: Whose form it is; None if several frameworks have it.
        whole_file: Whether it can only begin where the file does.
        loose: Whether it takes any text, so that it is tried where no other form fits; its rows are parts of records.
        head_keys: The keys in the first bytes of a log, where these are no whole record.
        scattered: Whether a step is spread over several rows, which are put together by its number.
    """

    name: str
    rows: Callable[[Blocks, Skips], Iterator[Row]]
    marks: tuple[bytes, ...]
    framework: str | None = None
    whole_file: bool = False
    scattered: bool = False
    loose: bool = False
    head_keys: Callable[[bytes], Iterable[str]] | None = None


@cache
def forms() -> tuple[Form, ...]:
    """All forms."""
    names = sorted(module.name for module in iter_modules(__path__))
    return tuple(import_module(f"{__name__}.{name}").FORM for name in names)
