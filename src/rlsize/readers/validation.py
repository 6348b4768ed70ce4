"""
Documents become facts: pydantic checks them against the frozen dataclasses, once, at the edge.

Every fault of a file is reported at once, with file, line, key and, for an unknown key, the nearest one that exists.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_type_hints

from rlsize.errors import Fault, InputError, a_file, refuse, suggestion
from rlsize.readers.plain_data import NotPlainError, plain
from rlsize.units import cut

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import TypeAdapter
    from pydantic_core import ErrorDetails

    from rlsize.readers.yaml_documents import Document, Path_

T = TypeVar("T")
VERSION = 1
_OF_A_KEY = frozenset({"missing", "missing_argument", "unexpected_keyword_argument", "extra_forbidden"})
_FORMER = {  # keys that are gone, and what says the same
    "over_stale": "say `late_samples: continue` for keep, `late_samples: drop` for drop",
    "unfinished": "say `late_samples: continue` for keep, `late_samples: drop` for drop",
}
_BESIDE = {  # what a scenario takes beside it
    "calibration": "give it as --calibration, beside a scenario or launch",
    "budget": "give it to `rlsize check` as --budget, beside a scenario or launch",
    "rates": "name it as rates.instance_tokens_per_second of a scenario, or by --set",
}
_NAMED_KEYS = 3  # of those that a mapping takes, in a message


@cache
def adapter(kind: type[T]) -> TypeAdapter[T]:
    """The checker of one dataclass; unknown keys are faults, text is not taken for numbers."""
    from pydantic import ConfigDict, TypeAdapter

    for nested in _dataclasses_in(kind):
        if "__pydantic_config__" not in vars(nested):
            nested.__pydantic_config__ = ConfigDict(extra="forbid", strict=False, arbitrary_types_allowed=False)  # type: ignore[attr-defined]  # pydantic reads it from the class
    return TypeAdapter(kind)


def validated(kind: type[T], document: Document, path: Path_ = ()) -> T:
    """
    The document's content as `kind`.

    Raises:
        InputError: All that is wrong with it.
    """
    data = document.data
    for part in path:
        data = data[part]
    _check_mapping(data, document.where(path))
    with suppress(NotPlainError):
        return plain(kind, data)
    from pydantic import ValidationError

    try:
        checked: T = adapter(kind).validate_python(data)  # type: ignore[arg-type]  # a class is hashable
    except ValidationError as error:
        raise InputError(*_faults(error.errors(include_url=False), kind, document, path)) from None
    return checked


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """
    A JSON object whose keys stand once each, as a hook for `json`.

    Raises:
        ValueError: One stands twice.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        twice = next(key for key, count in counts.items() if count > 1)
        raise ValueError(f"the key {ascii(twice)[:60]} stands twice")
    return found


def opened(document: Document, kind: str) -> Document:
    """
    The document without its header `rlsize: {kind: ..., version: ...}`.

    Raises:
        InputError: The header is missing, or names another kind or version.
    """
    _check_mapping(document.data, document.name)
    header = document.data.get("rlsize")
    todo = f"its first line should be `rlsize: {{kind: {kind}, version: {VERSION}}}`"
    if not isinstance(header, dict) or "kind" not in header:
        raise InputError(Fault(f"does not say that it is {a_file(kind)}", document.name, todo))
    refuse(_header_faults(document, header, kind, todo))
    rest = {key: value for key, value in document.data.items() if key != "rlsize"}
    return dataclasses.replace(document, data=rest)


def _check_mapping(data: object, where: str) -> None:
    if not isinstance(data, dict):
        raise InputError(Fault("is empty" if data is None else "is not a mapping of keys to values", where))


def _header_faults(document: Document, header: dict[Any, Any], kind: str, todo: str) -> Iterator[Fault]:
    """What is wrong with a header that is there."""
    if header["kind"] != kind:
        named = _brief(header["kind"]).replace("'", "")
        what = f"is {a_file(named)}, not {a_file(kind)}"
        beside = _BESIDE.get(named) if kind == "scenario" else None
        yield Fault(what, document.where(("rlsize", "kind")), beside or todo)
    version = header.get("version")
    if type(version) is not int or version != VERSION:  # true is 1 in Python, and no version
        what = f"has version {_brief(version)}; this rlsize reads version {VERSION}"
        yield Fault(what, document.where(("rlsize",)), todo)
    for key in header:
        if key not in {"kind", "version"}:
            where = document.where(("rlsize", key))
            yield Fault(f"the key {_brief(key)} is unknown".replace("'", ""), where, "a header has kind and version")


def _faults(errors: list[ErrorDetails], kind: type, document: Document, path: Path_) -> list[Fault]:
    faults: dict[str, Fault] = {}
    for error in errors:
        location = _location(error["loc"], document.data, path, lacks=error["type"] in _OF_A_KEY)
        where = document.where(location)
        if error["type"] in {"unexpected_keyword_argument", "extra_forbidden"}:
            known = _keys_at(kind, location[len(path) : -1])
            todo = _FORMER.get(str(location[-1])) or suggestion(str(location[-1]), known, _places_in(kind))
            faults[where] = Fault(f"the key {location[-1]} is unknown", where, todo)
        elif error["type"] in {"missing", "missing_argument"}:
            faults[where] = Fault("is missing", where, "add it")
        elif error["type"] == "dataclass_type":
            named = ", ".join(_keys_at(kind, location[len(path) :])[:_NAMED_KEYS])
            what = f"{_brief(error['input'])} is not a mapping of keys to values"
            faults.setdefault(where, Fault(what, where, f"write keys below it, such as {named}" if named else ""))
        else:
            text = error["msg"].removeprefix("Value error, ")
            given = "" if error["type"] == "value_error" else f"{_brief(error['input'])}: "
            faults.setdefault(where, Fault(f"{given}{text[:1].lower()}{text[1:]}", where))
    return list(faults.values())


def _location(loc: tuple[int | str, ...], data: Any, path: Path_, *, lacks: bool) -> Path_:  # noqa: ANN401 (any YAML content)
    """
    The part of pydantic's location that exists in the file: it adds names of types, which mean nothing to a user.

    Args:
        loc: The location.
        data: The file's content.
        path: Where in the file the checked part stands.
        lacks: Whether the last part is a key that the file lacks or should lack.
    """
    node = data
    for part in path:
        node = node[part]
    kept: list[int | str] = list(path)
    for position, part in enumerate(loc):
        if _holds(node, part):
            node = node[part]
        elif not lacks or position < len(loc) - 1:
            continue
        kept.append(part)
    return tuple(kept)


def _holds(node: Any, part: int | str) -> bool:  # noqa: ANN401 (any YAML content)
    if isinstance(node, list):
        return isinstance(part, int) and part < len(node)
    return isinstance(node, dict) and part in node


def _keys_at(kind: type, path: Path_) -> list[str]:
    """The keys that a dataclass takes at a path below it."""
    current: Any = kind
    for part in path:
        hints = get_type_hints(current) if dataclasses.is_dataclass(current) else {}
        nested = _dataclasses_named(hints.get(str(part)))
        if nested:
            current = nested[0]
    if not dataclasses.is_dataclass(current):
        return []
    return [field.name for field in dataclasses.fields(current)]


def _places_in(kind: type, above: tuple[type, ...] = ()) -> Iterator[str]:
    """All keys that a dataclass takes, with what they stand below."""
    for name, hint in get_type_hints(kind).items():
        yield name
        for nested in _dataclasses_named(hint):
            if nested not in (kind, *above):
                yield from (f"{name}.{place}" for place in _places_in(nested, (kind, *above)))


def _dataclasses_named(hint: Any) -> list[type]:  # noqa: ANN401 (a type hint)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return [hint]
    return [found for argument in get_args(hint) for found in _dataclasses_named(argument)]


def _dataclasses_in(kind: Any) -> list[type]:  # noqa: ANN401 (a type hint)
    found: list[type] = []
    waiting = _dataclasses_named(kind)
    while waiting:
        current = waiting.pop()
        if current not in found:
            found.append(current)
            waiting += [nested for hint in get_type_hints(current).values() for nested in _dataclasses_named(hint)]
    return found


def _brief(value: object) -> str:
    return cut(repr(value), 40)
