"""
Data that need no judging become facts without pydantic, whose import and schemas take longer than most answers.

Units and limits are those that fields declare to pydantic. Only data of exactly the declared types are taken, whole
numbers for others besides; all else is left to pydantic, which knows what may be converted and says what is wrong.
"""

from __future__ import annotations

from dataclasses import is_dataclass
from functools import cache, partial
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Take: TypeAlias = Callable[[Any], Any]


T = TypeVar("T")
_SCALARS: dict[Any, tuple[Any, ...]] = {
    float: (float, int), str: (str,), int: (int,), bool: (bool,), NoneType: (NoneType,), Any: (),
}  # fmt: skip
"""What stands for a value of a type."""


class NotPlainError(Exception):
    """Data that are not exactly what is declared."""


def plain(kind: type[T], data: object) -> T:
    """
    Data as a fact.

    Args:
        kind: Its class.
        data: Mappings, lists and scalars.

    Raises:
        NotPlainError: They are not exactly what the class declares.
    """
    of: type = kind
    try:
        found: T = _of_class(of)(data)
    except (ValueError, TypeError) as error:  # what a unit, a limit or the class itself refuses
        raise NotPlainError from error
    return found


@cache
def _of_class(kind: type) -> Take:
    """What makes a dataclass of a mapping; a field's declaration is looked at when the first mapping has it."""
    hints = get_type_hints(kind, include_extras=True)
    takes: dict[str, Take] = {}

    def take(data: object) -> object:
        if type(data) is kind:
            return data
        if not isinstance(data, dict) or not data.keys() <= hints.keys():
            raise NotPlainError
        for name in data.keys() - takes.keys():
            takes[name] = _of(hints[name])
        return kind(**{name: takes[name](value) for name, value in data.items()})

    return take


def _of(hint: object) -> Take:
    """What makes a value of a type hint of data."""
    origin, within = get_origin(hint), get_args(hint)
    if origin is Annotated:
        take = _declared(hint)
    elif origin in {Union, UnionType}:
        take = _one_of([_of(member) for member in within])
    elif origin is Literal:
        take = partial(_word, within)
    elif origin is dict:
        take = partial(_mapping, _of(within[1]))
    elif origin is list or (origin is tuple and within[-1] is Ellipsis):
        take = partial(_sequence, origin, _of(within[0]))
    elif isinstance(hint, type) and is_dataclass(hint):
        take = _of_class(hint)
    else:
        _require(hint in _SCALARS)
        take = partial(_exactly, _SCALARS[hint])
    return take


def _declared(hint: object) -> Take:
    """With what its annotations do to data, in the words of pydantic's protocol."""
    of, *metadata = get_args(hint)
    take = _of(of)
    for said in metadata:
        if hasattr(said, "__get_pydantic_core_schema__"):
            schema = said.__get_pydantic_core_schema__(of, lambda _, inner=take: inner)
            _require(schema["type"] == "function-before" and schema["schema"] is take)
            take = _after(schema["function"]["function"], take)
    return take


def _after(first: Take, then: Take) -> Take:
    return lambda data: then(first(data))


def _one_of(takes: list[Take]) -> Take:
    """What just one member of a union takes."""

    def take(data: object) -> object:
        found = []
        for each in takes:
            try:
                found.append(each(data))
            except NotPlainError:
                continue
        _require(len(found) == 1)
        return found[0]

    return take


def _mapping(of: Take, data: object) -> dict[object, object]:
    if not isinstance(data, dict):
        raise NotPlainError
    return {_exactly((str,), key): of(value) for key, value in data.items()}


def _sequence(kind: Callable[[Iterable[object]], object], of: Take, data: object) -> object:
    if not isinstance(data, (list, tuple)) or type(data) not in {list, kind}:
        raise NotPlainError
    return kind(of(item) for item in data)


def _word(words: tuple[object, ...], data: object) -> object:
    _require(_exactly((str,), data) in words)
    return data


def _exactly(kinds: tuple[Any, ...], data: object) -> object:
    """Data of one of some types, as the first of them."""
    _require(not kinds or type(data) in kinds)
    return data if not kinds or type(data) is kinds[0] else kinds[0](data)


def _require(holds: bool) -> None:
    if not holds:
        raise NotPlainError
