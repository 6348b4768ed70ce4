"""
Every equation and every golden case, found by walking: a test that asks for `equation_name` or `case` is given each.

Golden cases stand in `cases*.yaml`: `file.function`, then a list of inputs, answer and who computed it.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rlsize.readers.yaml_documents import read_document
from rlsize.reports.equation_page import equation, equation_names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

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

    def __str__(self) -> str:
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
    """Run a test once for each file of equations; `pytest_pyfunc_call` goes through what there is of the file."""
    known = equation_names()
    everything: dict[str, Sequence[str | Case]] = {
        "equation_name": known,
        "case": [case for case in golden_cases() if case.name in set(known)],
    }
    for asked in everything.keys() & set(metafunc.fixturenames):
        by_file: dict[str, list[str | Case]] = {}
        for one in everything[asked]:
            by_file.setdefault(str(one).partition(".")[0], []).append(one)
        metafunc.parametrize(asked, by_file.values(), ids=list(by_file))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """
    Call a test with each equation, or with each golden case, of its file, and tell all that fail.

    Thousands of tests of a millisecond would take most of their time to be listed and reported.
    """
    asked = next((name for name in ("equation_name", "case") if name in pyfuncitem.fixturenames), None)
    if asked is None:
        return None
    given: dict[str, Any] = dict(pyfuncitem.funcargs)
    arguments = {name: given[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    failed = []
    for one in given[asked]:
        try:
            pyfuncitem.obj(**{**arguments, asked: one})
        except Exception as error:  # noqa: BLE001 (whatever it is, it is raised with the others)
            error.add_note(f"of {one}")
            failed.append(error)
    if failed:
        raise ExceptionGroup("fails for some", failed)
    return True


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
