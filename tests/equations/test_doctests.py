"""The example of an equation is true."""

from __future__ import annotations

import doctest
import sys

from rlsize.reports.equation_page import equation


def test_the_example_is_true(equation_name: str) -> None:
    """Each docstring has an example, and running it gives what it says."""
    function = equation(equation_name)
    finder = doctest.DocTestFinder(recurse=False)
    (example,) = finder.find(function, equation_name, globs=dict(vars(sys.modules[function.__module__])))
    told: list[str] = []
    outcome = doctest.DocTestRunner(verbose=False).run(example, out=told.append)
    assert outcome.attempted > 0
    assert outcome.failed == 0, "".join(told)
