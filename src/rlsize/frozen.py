"""
Frozen dataclasses that take a fifth of the time to make: an answer loads two hundred of them.

The standard library compiles six methods for each class. Here classes share five of them, and the sixth, which sets the
fields, is compiled when a class is called first. To type checkers the decorator is the library's.
"""

from __future__ import annotations

import dataclasses
from operator import attrgetter
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass
else:

    def dataclass(*, frozen: bool = False, **options: bool) -> Callable[[type], type]:
        """As `dataclasses.dataclass`; a class that is not frozen is the library's own."""
        return (lambda kind: _frozen(kind, **options)) if frozen else dataclasses.dataclass(**options)


__all__ = ["dataclass"]
_UNSAID: Any = object()
_fields: Any = dataclasses.fields


class _Shared:
    """
    What the library writes for each frozen class.

    Args:
        __compared__: Gives the fields by which instances are told apart; a class has its own.
    """

    __compared__: ClassVar[attrgetter[tuple[object, ...]]]

    def __repr__(self) -> str:
        told = (f"{one.name}={getattr(self, one.name)!r}" for one in _fields(self) if one.repr)
        return f"{type(self).__qualname__}({', '.join(told)})"

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return bool(self.__compared__(self) == self.__compared__(other))

    def __hash__(self) -> int:
        return hash(self.__compared__(self))

    def __setattr__(self, name: str, value: object) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")

    def __getstate__(self) -> list[object]:
        return [getattr(self, one.name) for one in _fields(self)]

    def __setstate__(self, state: list[object]) -> None:
        for one, value in zip(_fields(self), state, strict=True):
            object.__setattr__(self, one.name, value)


_ALWAYS = ("__repr__", "__setattr__", "__delattr__")
_OF_VALUES = ("__eq__", "__hash__")
_OF_SLOTS = ("__getstate__", "__setstate__")


def _frozen(kind: type, *, eq: bool = True, slots: bool = False, kw_only: bool = False) -> type:
    """A frozen dataclass."""
    own = set(vars(kind))
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(kind)
    shared = {name: vars(_Shared)[name] for name in (*_ALWAYS, *(_OF_VALUES * eq), *(_OF_SLOTS * slots))}
    for name, method in {"__init__": _first_init(made), **shared}.items():
        if name not in own:
            setattr(made, name, method)
    names = [one.name for one in _fields(made) if one.compare]
    more = names if len(names) > 1 else [*names, "__doc__", "__doc__"][:2]  # of one name it gives no tuple
    made.__compared__ = attrgetter(*more)
    found: type = made
    return found


def _first_init(kind: type) -> Callable[..., None]:
    """What a class is called with until it has been called once, and has the method of its own."""

    def init(self: object, *given: object, **named: object) -> None:
        made: Any = kind
        made.__init__ = _init_of(kind)
        made.__init__(self, *given, **named)

    return init


def _init_of(kind: type) -> Callable[..., None]:
    """The method that sets the fields of a class."""
    known: dict[str, Any] = {"_put": object.__setattr__, "_unsaid": _UNSAID}
    lines: list[str] = []
    places: dict[str, Any] = {}
    keys: dict[str, Any] = {}
    for one in _fields(kind):
        value, default = one.name, one.default
        if one.default_factory is not dataclasses.MISSING:
            known[f"_make_{value}"] = one.default_factory
            value, default = f"_make_{value}() if {value} is _unsaid else {value}", _UNSAID
        lines.append(f"_put(self, {one.name!r}, {value})")
        (keys if one.kw_only else places)[one.name] = default
    if hasattr(kind, "__post_init__"):
        lines.append("self.__post_init__()")
    takes = ", ".join(["self", *places, *(["*", *keys] if keys else [])])
    code = compile(f"def init({takes}): {'; '.join(lines) or 'pass'}", kind.__name__, "exec")
    made = FunctionType(next(one for one in code.co_consts if isinstance(one, CodeType)), known, "__init__")
    made.__qualname__ = f"{kind.__qualname__}.__init__"
    made.__defaults__ = tuple(default for default in places.values() if default is not dataclasses.MISSING)
    made.__kwdefaults__ = {key: default for key, default in keys.items() if default is not dataclasses.MISSING}
    return made
