"""What comparisons of all kinds of files share: reading both, telling what differs, choosing what to tell first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from rlsize.errors import Fault, InputError, noting, refuse, suggestion

if TYPE_CHECKING:
    from rlsize.verdicts.difference import Difference

T = TypeVar("T")
_USUAL = ("cost_per_step_usd", "step_seconds")


def both(read: Callable[[str], T], before: str, after: str) -> tuple[T, T]:
    """
    Two files, read.

    Args:
        read: Reads one.
        before: The first.
        after: The second; it may be the same.

    Raises:
        InputError: What is wrong with either.
    """
    found: list[T] = []
    faults: list[Fault] = []
    for path in (before, after):
        with noting(faults):
            found.append(read(path))
    refuse(dict.fromkeys(faults))
    return found[0], found[1]


def main_of(of: str | None, told: Sequence[Difference], lacking: Callable[[str], str] = str) -> str:
    """
    The result to tell first: the one that was asked for, else the cost, else the time of a step.

    Args:
        of: What was asked for.
        told: The results that there are.
        lacking: What a result needs that there is not; empty where there is no such result.

    Raises:
        InputError: There is no such result.
    """
    known = [one.quantity for one in told if one.before.known and one.after.known]
    names = [one.quantity for one in told]
    if of is None:
        return next((key for key in _USUAL if key in known), known[0] if known else _USUAL[-1])
    if of in names or not told:
        return of
    missing = lacking(of)
    if missing:
        raise InputError(Fault(f"{of} is not known", "--of", f"it needs {missing}"))
    raise InputError(Fault(f"there is no result {of[:40]!r}", "--of", suggestion(of[:40], names)))
