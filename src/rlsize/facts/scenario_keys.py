"""The keys of a scenario, read off its dataclasses: what a dotted key means and takes."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal, get_args, get_origin, get_type_hints

from rlsize.facts.fields import Quantity, Says
from rlsize.facts.scenario import Scenario


def fields_of(kind: type) -> dict[str, Any]:
    """The annotated types of a dataclass, in the order of its fields."""
    return get_type_hints(kind, include_extras=True)


def meaning(hint: Any) -> Quantity | Says:  # noqa: ANN401 (a type hint)
    """What a field says of itself."""
    return next(said for said in hint.__metadata__ if isinstance(said, (Quantity, Says)))


def section(hint: Any) -> type | None:  # noqa: ANN401 (a type hint)
    """The dataclass whose fields stand below a key; None where the key holds a value."""
    if isinstance(hint, type):
        return hint if dataclasses.is_dataclass(hint) else None
    if isinstance(hint, Quantity) or any(isinstance(said, Quantity) for said in getattr(hint, "__metadata__", ())):
        return None
    return next((found for part in get_args(hint) if (found := section(part)) is not None), None)


def declared(key: str) -> Any:  # noqa: ANN401 (a type hint)
    """
    The annotated type of a dotted key.

    Raises:
        KeyError: A scenario has no such key.
    """
    kind: type | None = Scenario
    hint: Any = None
    for part in key.split("."):
        if kind is None:
            raise KeyError(key)
        hint = fields_of(kind)[part]
        kind = section(hint)
    return hint


def quantity_of(key: str) -> Quantity:
    """
    Unit and limits of a key that holds a number.

    >>> quantity_of("cluster.gpus").whole
    True
    """
    found = meaning(declared(key))
    if not isinstance(found, Quantity):
        raise TypeError(f"{key} holds no number")
    return found


def words_of(key: str) -> list[str]:
    """
    The words that a key takes, such as the names of algorithms.

    >>> words_of("placement.mode")[:2]
    ['colocated', 'disaggregated']
    """
    return list(_words(declared(key)))


def _words(hint: Any) -> tuple[str, ...]:  # noqa: ANN401 (a type hint)
    if get_origin(hint) is Literal:
        return get_args(hint)
    return tuple(word for part in get_args(hint) for word in _words(part))
