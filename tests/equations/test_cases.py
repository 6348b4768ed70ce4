"""Golden cases: what each equation must give, computed by somebody else."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import pytest

from rlsize.reports.equation_page import equation, equation_names

if TYPE_CHECKING:
    from tests.equations.conftest import Case


def test_an_equation_has_a_case(equation_name: str, all_cases: tuple[Case, ...]) -> None:
    """No equation goes without a number that was not computed by its own code."""
    assert any(case.name == equation_name for case in all_cases), f"add {equation_name} to tests/equations/cases.yaml"


def test_a_case_has_an_equation(all_cases: tuple[Case, ...]) -> None:
    """No case outlives its equation."""
    assert sorted({case.name for case in all_cases} - set(equation_names())) == []


def test_the_answer_comes_out(case: Case) -> None:
    """The equation gives the case's answer, to a billionth where the case says nothing else."""
    assert case.result() == pytest.approx(case.answer, rel=case.tolerance, abs=0.0)


def test_the_case_is_complete(case: Case) -> None:
    """A case gives every argument, says who computed the answer and how, and nothing that nobody reads."""
    assert list(case.inputs) == list(inspect.signature(equation(case.name)).parameters)
    assert all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in case.inputs.values())
    assert len(case.by) > len("by hand")
    assert case.extra == ()
