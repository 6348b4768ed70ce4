"""`rlsize.dataclass` makes what the standard library's decorator makes, but for orders and `InitVar`."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import field
from typing import Any

import pytest

from rlsize import dataclass as quick

BODY: dict[str, Any] = {
    "__doc__": "A thing.",
    "__module__": __name__,
    "__annotations__": {"unsaid": "float", "set": "float", "kept": "list[int]", "aside": "float"},
    "set": 2.0,
    "kept": field(default_factory=list, repr=False),
    "aside": field(default=0.0, compare=False),
}


def both(**how: bool) -> tuple[Any, Any]:
    """The same class made by each."""
    makers: tuple[Any, Any] = (quick.dataclass, dataclasses.dataclass)
    ours, theirs = (make(**how)(type("Thing", (), dict(BODY))) for make in makers)
    return ours, theirs


@pytest.mark.parametrize("slots", [False, True])
@pytest.mark.parametrize("frozen", [False, True])
def test_it_makes_what_the_standard_library_makes(frozen: bool, slots: bool) -> None:
    """Fields, defaults, text and equality, with a default that is made anew each time."""
    ours, theirs = both(frozen=frozen, slots=slots, kw_only=True)
    one, other = ours(unsaid=1.0, aside=5.0), ours(unsaid=1.0)
    assert repr(one) == repr(theirs(unsaid=1.0, aside=5.0)) == "Thing(unsaid=1.0, set=2.0, aside=5.0)"
    assert one == other != ours(unsaid=3.0)
    assert one != theirs(unsaid=1.0)
    assert one.kept is not other.kept
    assert dataclasses.asdict(one) == dataclasses.asdict(theirs(unsaid=1.0, aside=5.0))
    assert hasattr(one, "__dict__") is not slots
    for wrong in ({}, {"unsaid": 1.0, "unknown": 1.0}):
        with pytest.raises(TypeError):
            ours(**wrong)
    with pytest.raises(TypeError):
        ours(1.0)


def test_fields_are_taken_by_place_where_they_are_not_by_name_only() -> None:
    """In their order."""
    ours, _ = both(frozen=True)
    assert ours(1.0, 3.0).set == 3.0


def test_a_frozen_one_holds_and_can_be_a_key() -> None:
    """Nothing is set or deleted, and equal ones are one key."""
    make: Any = quick.dataclass(frozen=True, slots=True)
    ours = make(type("Key", (), {"__doc__": "", "__module__": __name__, "__annotations__": {"name": "str"}}))
    one = ours("a")
    assert {one: 1}[ours("a")] == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.name = "b"
    with pytest.raises(dataclasses.FrozenInstanceError):
        del one.name
    with pytest.raises(TypeError):
        hash(both()[0](unsaid=1.0))


@quick.dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """One field, which is checked."""

    size: float

    def __post_init__(self) -> None:
        if self.size < 0:
            raise ValueError("below 0")


@quick.dataclass(frozen=True, slots=True, kw_only=True)
class Derived(Base):
    """One more."""

    more: tuple[int, ...] = ()


@pytest.mark.parametrize("make", [quick.dataclass, dataclasses.dataclass])
def test_one_may_derive_from_it_that_is_frozen_too(make: Any) -> None:
    """As of any dataclass, by whichever decorator."""
    derived = make(frozen=True, slots=True, kw_only=True)(
        type("More", (Base,), {"__doc__": "", "__module__": __name__, "__annotations__": {"more": "int"}})
    )
    assert repr(derived(size=1.0, more=2)) == "More(size=1.0, more=2)"
    with pytest.raises(TypeError, match="frozen"):
        make()(type("Loose", (Base,), {"__doc__": "", "__module__": __name__}))


def test_one_that_is_derived_has_both_fields_and_is_checked() -> None:
    """It differs from its base, and goes through copies, processes and `replace`."""
    one, unknown = Derived(size=1.0, more=(2,)), dict[str, Any](unknown=1.0)
    assert one != Base(size=1.0)
    assert copy.copy(one) == copy.deepcopy(one) == pickle.loads(pickle.dumps(one)) == one  # noqa: S301 (its own bytes)
    assert quick.replace(one, more=()) == Derived(size=1.0) == dataclasses.replace(one, more=())
    with pytest.raises(ValueError, match="below 0"):
        quick.replace(one, size=-1.0)
    with pytest.raises(TypeError):
        quick.replace(one, **unknown)
