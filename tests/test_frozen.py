"""Frozen dataclasses that share their methods behave as the standard library's do."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import pytest

from rlsize.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Ours:
    """Fields of all kinds."""

    first: float
    second: str = "b"
    names: list[str] = dataclasses.field(default_factory=list, compare=False)
    hidden: int = dataclasses.field(default=0, repr=False)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Theirs:
    """The same."""

    first: float
    second: str = "b"
    names: list[str] = dataclasses.field(default_factory=list, compare=False)
    hidden: int = dataclasses.field(default=0, repr=False)


@dataclass(frozen=True, slots=True)
class Checked:
    """One field by its place, which is looked at."""

    number: float

    def __post_init__(self) -> None:
        """No number is negative."""
        if self.number < 0:
            raise ValueError("negative")


@dataclass(frozen=True, slots=True, kw_only=True)
class More(Ours):
    """A field more."""

    third: int = 3


KINDS: tuple[Any, ...] = (Ours, Theirs)


@pytest.mark.parametrize(
    "said", [{"first": 1.0}, {"first": 1, "second": "c", "names": ["d"], "hidden": 2}, {}, {"first": 1.0, "fourth": 2}]
)
def test_they_are_made_and_told_alike(said: dict[str, Any]) -> None:
    """With defaults and without, and with too few or too many."""

    def told(kind: Any) -> str:
        try:
            return repr(kind(**said))
        except TypeError as error:
            return str(error)

    ours, theirs = map(told, KINDS)
    assert ours == theirs.replace("Theirs", "Ours")


def test_they_are_told_apart_alike() -> None:
    """By the fields that count, within a class; and hashed by them."""
    for kind in KINDS:
        one, same, other = kind(first=1.0, names=["x"]), kind(first=1.0), kind(first=2.0)
        assert (one == same, one == other, one == 1, len({one, same, other})) == (True, False, False, 2)
    assert hash(Ours(first=1.0)) == hash(Theirs(first=1.0))
    assert More(first=1.0) != Ours(first=1.0)
    assert More(first=1.0, third=4) != More(first=1.0)
    assert Checked(1.0) == Checked(1.0) != Checked(2.0)


def test_nothing_is_set_or_deleted() -> None:
    """As the name says."""
    made: tuple[Any, ...] = (Ours(first=1.0), Theirs(first=1.0))
    for one in made:
        with pytest.raises(dataclasses.FrozenInstanceError, match="first"):
            one.first = 2.0
        with pytest.raises(dataclasses.FrozenInstanceError, match="first"):
            del one.first


def test_copies_and_changes_are_what_they_were() -> None:
    """Of the instance, deeply, and with another value; each has a list of its own."""
    one = More(first=1.0, names=["x"], third=5)
    assert copy.copy(one) == one == copy.deepcopy(one) == dataclasses.replace(one)
    assert dataclasses.replace(one, third=6).third == 6
    assert dataclasses.asdict(one) == {"first": 1.0, "second": "b", "names": ["x"], "hidden": 0, "third": 5}
    assert Ours(first=1.0).names is not Ours(first=1.0).names


def test_a_class_looks_at_what_it_is_given() -> None:
    """After its fields are set, whenever one is made."""
    for _ in range(2):
        assert Checked(0.5).number == 0.5
        with pytest.raises(ValueError, match="negative"):
            Checked(-1.0)
