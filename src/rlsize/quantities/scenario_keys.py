"""The keys of a scenario: what a dotted key means and takes."""

from __future__ import annotations

import dataclasses
from typing import Any, get_args, get_type_hints

from rlsize.facts.budget import quantities
from rlsize.facts.fields import Quantity, Says
from rlsize.quantities.scenario import Scenario
from rlsize.quantities.table import PLACES


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


def declared(place: str) -> Any:  # noqa: ANN401 (a type hint)
    """
    The annotated type of a dotted key.

    Raises:
        KeyError: A scenario has no such key.
    """
    kind: type | None = Scenario
    hint: Any = None
    for part in place.split("."):
        if kind is None:
            raise KeyError(place)
        hint = fields_of(kind)[part]
        kind = section(hint)
    return hint


def quantity_of(place: str) -> Quantity:
    """
    Unit and limits of a key that holds a number.

    Raises:
        KeyError: A scenario has no such key.

    >>> quantity_of("cluster.gpus").whole
    True
    """
    if place.startswith("budget."):
        return quantities()[place.removeprefix("budget.")]
    return PLACES[place].quantity


def words_of(place: str) -> list[str]:
    """
    The words that a key takes, such as the names of algorithms.

    >>> words_of("placement.mode")[:2]
    ['colocated', 'disaggregated']
    """
    return list(PLACES[place].words)
