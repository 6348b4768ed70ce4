"""
`dataclass` and `replace` of the standard library, quicker: an answer loads 200 classes and changes thousands of things.

Only what differs between classes, `__init__`, is compiled for each of them; the standard library before Python 3.13
compiles six functions. There are no orders, no `InitVar`, and no fields that `__init__` does not take; a class that
derives from another is made by the standard library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from dataclasses import replace as replace
else:
    import dataclasses
    from dataclasses import MISSING, FrozenInstanceError, fields
    from functools import partial
    from operator import attrgetter
    from reprlib import recursive_repr

    def dataclass(cls=None, /, *, frozen=False, slots=False, kw_only=False, eq=True):
        """The class with what the fields that it declares make of it."""
        if cls is None:
            return partial(dataclass, frozen=frozen, slots=slots, kw_only=kw_only, eq=eq)
        if any(map(dataclasses.is_dataclass, cls.__bases__)):
            return dataclasses.dataclass(cls, frozen=frozen, slots=slots, kw_only=kw_only, eq=eq)
        cls = dataclasses.dataclass(cls, init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)
        cls.__dataclass_params__.frozen = frozen  # for classes that derive from it
        added = {"__init__": _init(cls), "__repr__": _repr}
        if eq:
            added |= _comparing(cls, frozen)
        if frozen:
            added |= {"__setattr__": _refuse, "__delattr__": _refuse, "__getstate__": _state, "__setstate__": _restore}
        for name, function in added.items():
            if name not in vars(cls):
                setattr(cls, name, function)
        return cls

    def replace(thing, /, **changes):
        """Another of the class with some fields otherwise."""
        kept = {name: getattr(thing, name) for name in thing.__dataclass_fields__ if name not in changes}
        return type(thing)(**kept, **changes)

    def _init(cls):
        """What takes the fields, those that are named only last."""
        held = {"__set": object.__setattr__, "__unsaid": object()}
        by_place, named, lines = ["self"], ["*"], []
        for one in fields(cls):
            name, default, value = one.name, "", one.name
            if one.default is not MISSING:
                held[f"default_of_{name}"], default = one.default, f"=default_of_{name}"
            elif one.default_factory is not MISSING:
                held[f"default_of_{name}"], default = one.default_factory, "=__unsaid"
                value = f"default_of_{name}() if {name} is __unsaid else {name}"
            (named if one.kw_only else by_place).append(f"{name}{default}")
            lines.append(f"__set(self, {name!r}, {value})")
        if hasattr(cls, "__post_init__"):
            lines.append("self.__post_init__()")
        taken = ", ".join([*by_place, *(named if named[1:] else ())])
        exec(f"def __init__({taken}):\n " + "\n ".join(lines or ["pass"]), held)
        held["__init__"].__qualname__ = f"{cls.__qualname__}.__init__"
        return held["__init__"]

    @recursive_repr()
    def _repr(self):
        shown = (f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
        return f"{type(self).__qualname__}({', '.join(shown)})"

    def _comparing(cls, frozen):
        names = [one.name for one in fields(cls) if one.compare]
        compared = attrgetter(*names) if names[1:] else lambda self: tuple(getattr(self, name) for name in names)

        def equal(self, other):
            return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented

        return {"__eq__": equal, "__hash__": (lambda self: hash(compared(self))) if frozen else None}

    def _refuse(_self, name, *_value):
        raise FrozenInstanceError(f"cannot change field {name!r}")

    def _state(self):
        return [getattr(self, one.name) for one in fields(self)]

    def _restore(self, state):
        for one, value in zip(fields(self), state, strict=True):
            object.__setattr__(self, one.name, value)
