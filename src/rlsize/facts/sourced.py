"""A number of a profile and who says so."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@dataclass(frozen=True, slots=True, kw_only=True)
class Sourced:
    """
    One number of a profile.

    Args:
        value: The number in base units.
        source: The key of the profile's `sources` that names the document or the measurement.
        verified: False where the number was recalled, derived or guessed, and nobody has read it in its source.
        note: What one should know before relying on it.
    """

    value: float
    source: str
    verified: bool = True
    note: str = ""


def facts_within(fact: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Every fact inside a fact, itself included, with its dotted path, in the order of the fields."""
    parts: Iterable[tuple[object, object]] = ()
    if isinstance(fact, Mapping):
        parts = fact.items()
    elif isinstance(fact, (list, tuple)):
        parts = enumerate(fact)
    elif dataclasses.is_dataclass(fact):
        yield path, fact
        parts = ((field.name, getattr(fact, field.name)) for field in dataclasses.fields(fact))
    for key, value in parts:
        yield from facts_within(value, f"{path}.{key}" if path else str(key))


def sourced_numbers(profile: object) -> Iterator[tuple[str, Sourced]]:
    """
    Every sourced number of a profile with its dotted path.

    >>> list(sourced_numbers({"nic": Sourced(value=50e9, source="a")}))
    [('nic', Sourced(value=50000000000.0, source='a', verified=True, note=''))]
    """
    return ((path, fact) for path, fact in facts_within(profile) if isinstance(fact, Sourced))


def unverified(profile: object) -> list[str]:
    """
    The dotted paths of the numbers, or groups of numbers, that nobody has verified.

    >>> unverified({"nic": Sourced(value=50e9, source="a", verified=False)})
    ['nic']
    """
    return [path for path, fact in facts_within(profile) if getattr(fact, "verified", True) is False]
