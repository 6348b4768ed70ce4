"""Faults: what, where, what to do."""

from __future__ import annotations

import doctest

from rlsize import errors


def test_examples_in_docstrings_hold() -> None:
    """What the docstrings show is what happens."""
    assert doctest.testmod(errors).failed == 0


def test_an_error_carries_every_fault() -> None:
    """All faults are told at once, each with its place and its cure."""
    error = errors.InputError(errors.Fault("is wrong", "a.yaml:3", "mend it"), "and this too")
    assert str(error) == "a.yaml:3: is wrong\n  mend it\nand this too"
    assert error.exit_code == 2


def test_each_kind_of_error_has_its_exit_code() -> None:
    """1: the answer is no; 2: the input is wrong; 3: could not finish."""
    codes = [kind("x").exit_code for kind in (errors.DoesNotFitError, errors.InputError, errors.UnfinishedError)]
    assert codes == [1, 2, 3]


def test_many_names_are_not_all_listed() -> None:
    """A suggestion stays readable however many names there are."""
    assert errors.suggestion("zzz", [f"name-{index}" for index in range(50)]).endswith("and 30 more")
