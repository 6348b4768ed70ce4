"""Arrays in, arrays out: the planner calls the very functions that answer one question."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    from tests.equations.conftest import Case

FACTORS = np.array([1.0, 1.0625, 1.125])  # close to the case, so that a share stays a share


def test_floats_give_floats(case: Case) -> None:
    """A plain number in gives a plain number out, nothing of numpy's."""
    assert type(case.result()) in {int, float}


def test_arrays_are_element_by_element(case: Case) -> None:
    """All inputs as arrays give what their elements give one by one."""
    arrays = {name: value * FACTORS for name, value in case.inputs.items()}
    one_by_one = [case.result(**{name: float(array[index]) for name, array in arrays.items()}) for index in range(3)]
    result = case.result(**arrays)
    assert isinstance(result, np.ndarray)
    np.testing.assert_allclose(result, one_by_one, rtol=1e-12)


def test_one_array_is_enough(case: Case) -> None:
    """Any one input may be an array while the others are numbers."""
    for name, value in case.inputs.items():
        result = case.result(**{name: value * FACTORS})
        one_by_one = [case.result(**{name: float(value * factor)}) for factor in FACTORS]
        assert np.shape(result) == FACTORS.shape, name
        np.testing.assert_allclose(result, one_by_one, rtol=1e-12)


def test_shapes_broadcast(case: Case) -> None:
    """A column of one input and a row of another give a table of both."""
    for first, second in pairwise(case.inputs):
        column, row = case.inputs[first] * FACTORS[:, np.newaxis], case.inputs[second] * FACTORS
        table = case.result(**{first: column, second: row})
        expected = [[case.result(**{first: float(a), second: float(b)}) for b in row] for a in column[:, 0]]
        assert np.shape(table) == (3, 3), (first, second)
        np.testing.assert_allclose(table, expected, rtol=1e-12)


@pytest.mark.parametrize(
    "program", ["[equation(name) for name in equation_names()]", "equation('weight_bytes')(1.0, 2.0)"]
)
def test_floats_need_no_numpy(program: str) -> None:
    """Loading all equations, or calling one with floats, does not load numpy."""
    code = f"import sys; from rlsize.reports.equation_page import *; {program}; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
