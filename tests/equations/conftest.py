"""
Every equation and every golden case, found by walking: a test that asks for `equation_name` or `case` runs for each.

Golden cases stand in `cases*.yaml`: `file.function`, then a list of inputs, answer and who computed it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rlsize.readers.yaml_documents import read_document
from rlsize.reports.equation_page import equation, equation_names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

HERE = Path(__file__).parent
DEFAULT_TOLERANCE = 1e-9
_TERM = re.compile(r"(?P<operator>[*/]?)(?P<base>1|[A-Za-z]+)(?:\^(?P<power>\d+))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One golden case: what goes in, what must come out, and who says so."""

    name: str
    file: str
    position: int
    inputs: Mapping[str, Any]
    answer: Any
    by: str
    tolerance: float = DEFAULT_TOLERANCE
    extra: tuple[str, ...] = field(default=())

    @property
    def label(self) -> str:
        """A short name for the test's report."""
        return f"{self.name}-{self.position}"

    def result(self, **changed: Any) -> Any:
        """What the equation gives for the inputs, some of them changed."""
        return equation(self.name)(**{**self.inputs, **changed})


@cache
def golden_cases() -> tuple[Case, ...]:
    """All cases of all files, in the order of the files."""
    found = []
    for path in sorted(HERE.glob("cases*.yaml")):
        for name, entries in read_document(path).data.items():
            for position, entry in enumerate(entries, start=1):
                known = {key: entry[key] for key in ("inputs", "answer", "by", "tolerance") if key in entry}
                extra = tuple(sorted(set(entry) - set(known)))
                found.append(Case(name=name, file=path.name, position=position, extra=extra, **known))
    return tuple(found)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test once for each equation, or once for each golden case."""
    if "equation_name" in metafunc.fixturenames:
        metafunc.parametrize("equation_name", equation_names())
    if "case" in metafunc.fixturenames:
        known = set(equation_names())
        cases = [case for case in golden_cases() if case.name in known]
        metafunc.parametrize("case", cases, ids=[case.label for case in cases])


@pytest.fixture
def all_cases() -> tuple[Case, ...]:
    """Every golden case, of known equations or not."""
    return golden_cases()


@pytest.fixture
def powers() -> Callable[[str], dict[str, int]]:
    """A function that reads a unit, such as `B/s/gpu` or `B/token^2`, as base units and their powers."""
    return _powers


def _powers(unit: str) -> dict[str, int]:
    text = unit.removesuffix(", integer")
    if text not in {unit, "1"}:
        raise ValueError(f"[{unit}]: only [1, integer] is an integer unit")
    found: dict[str, int] = {}
    position = 0
    while position < len(text):
        term = _TERM.match(text, position)
        if term is None or (position > 0) != bool(term["operator"]):
            raise ValueError(
                f"[{unit}] is not a unit: base units joined by / and *, powers as B^2, [1] for pure numbers"
            )
        if term["base"] == "1" and (position > 0 or term["power"]):
            raise ValueError(f"[{unit}]: 1 stands alone or at the front")
        if term["base"] != "1":
            sign = -1 if term["operator"] == "/" else 1
            found[term["base"]] = found.get(term["base"], 0) + sign * int(term["power"] or 1)
        position = term.end()
    if not text:
        raise ValueError("an empty unit; write [1] for a pure number")
    return {base: power for base, power in found.items() if power}
