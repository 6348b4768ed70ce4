"""Equations as JavaScript: the same numbers as in Python, and nothing translated that is not understood."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlsize.commands.report import Phases, loop_formulas
from rlsize.equations import matching, money
from rlsize.reports.equation_page import equation, equation_names
from rlsize.writers.equation_script import UntranslatableError, script_name, script_of

LOOPS: tuple[Phases, ...] = ("overlapped", "in turn", "colocated")
WIDGET = list(dict.fromkeys(formula.equation for loop in LOOPS for formula in loop_formulas(loop, priced=True)))
MOST = 24  # arguments of an equation
values = st.lists(st.floats(1e-6, 1e9), min_size=MOST, max_size=MOST)
Call = Callable[[str, list[float]], float]


def arguments(function: Callable[..., Any], drawn: list[float]) -> list[float]:
    """As many of the drawn values as a function takes."""
    assert function.__code__.co_argcount <= MOST
    return drawn[: function.__code__.co_argcount]


def as_python(script: str) -> dict[str, Any]:
    """The functions of a script, read by Python: the little that is translated is nearly the same in both languages."""
    found: dict[str, Any] = {"minimum": min, "maximum": max}
    for pattern, put in (
        (r"^function (\w+)\((.*)\) \{$", r"def \1(\2):"),
        (r"^  const (\w+) = (.*);$", r"  \1 = \2"),
        (r"^  return (.*);$", r"  return \1"),
        (r"^\}$", ""),
        (r"Math\.(min|max)\(", r"\1imum("),
    ):
        script = re.sub(pattern, put, script, flags=re.MULTILINE)
    exec(script, found)  # noqa: S102 (the text was made a line above)
    return found


@cache
def translatable() -> list[Callable[..., Any]]:
    """Every equation that is translated, whether a page uses it or not."""
    found = []
    for name in equation_names():
        try:
            script_of([equation(name)])
        except UntranslatableError:
            continue
        found.append(equation(name))
    return found


@pytest.fixture(scope="module")
def node() -> Iterator[Call]:
    """Calls a translated equation in Node."""
    program = shutil.which("node") or shutil.which("nodejs")
    if program is None:
        pytest.skip("needs Node to run JavaScript: install the package nodejs")
    lines = "require('readline').createInterface({input: process.stdin}).on('line', (line) => {"
    answer = "const [name, args] = JSON.parse(line); console.log(JSON.stringify(all[name](...args))); });"
    functions = translatable()
    table = f"const all = {{ {', '.join(map(script_name, functions))} }};"
    process = subprocess.Popen(
        [program, "-e", "\n".join([script_of(functions), table, lines + answer])],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    reader, writer = process.stdout, process.stdin

    def call(name: str, given: list[float]) -> float:
        writer.write(f"{json.dumps([name, given])}\n")
        writer.flush()
        return float(json.loads(reader.readline()))

    yield call
    writer.close()
    process.wait(120)
    reader.close()


@pytest.mark.long
@given(drawn=values)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_node_works_out_what_python_does(node: Call, drawn: list[float]) -> None:
    """Every equation of every widget gives the same number in JavaScript."""
    for function in WIDGET:
        expected = function(*arguments(function, drawn))
        assert node(script_name(function), arguments(function, drawn)) == pytest.approx(expected, rel=1e-12, abs=0.0)


@pytest.mark.long
@given(drawn=values)
@settings(max_examples=10)  # of hundreds of equations each
def test_the_text_says_what_python_does(drawn: list[float]) -> None:
    """The same without Node: the script read as Python, for every equation that can be translated."""
    functions = translatable()
    assert set(WIDGET) < set(functions)
    found = as_python(script_of(functions))
    for function in functions:
        given_to = arguments(function, drawn)
        try:
            expected = function(*given_to)
        except ZeroDivisionError:
            with pytest.raises(ZeroDivisionError):
                found[script_name(function)](*given_to)
        else:
            assert found[script_name(function)](*given_to) == pytest.approx(expected, rel=1e-12, abs=0.0, nan_ok=True)


def test_what_is_called_stands_first() -> None:
    """An equation that calls another brings it along, once."""
    text = script_of([matching.loop_throughput, matching.loop_throughput, money.cost_per_step])
    assert re.findall(r"^function (\w+)", text, re.MULTILINE) == ["matching_loop_throughput", "money_cost_per_step"]
    assert "/ 3600.0)" in text


@pytest.fixture
def made_up(tmp_path: Path) -> Callable[[str], Any]:
    """A function that loads the text of a module as one of the equations layer."""

    def load(text: str) -> Any:
        file = tmp_path / "made_up.py"
        file.write_text(f"import math\nfrom rlsize.equations._ops import exp, minimum\n{text}", encoding="utf-8")
        spec = importlib.util.spec_from_file_location("rlsize.equations.made_up", file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


def test_assignments_constants_and_calls_are_translated(made_up: Callable[[str], Any]) -> None:
    """Names that were assigned, numbers of the module, negative ones, and other equations by position or name."""
    module = made_up(
        "HALF = 0.5\n"
        "def part(whole, share):\n    return whole * share\n"
        "def f(a, b):\n    '''Text.'''\n    c = part(share=HALF, whole=a) - -1e-3\n    d = minimum(c, -b)\n"
        "    return part(d, 2) / b\n"
    )
    text = script_of([module.f])
    assert "const c = (made_up_part(a, 0.5) - (-0.001));" in text
    assert as_python(text)["made_up_f"](7.0, 3.0) == module.f(7.0, 3.0)


BODIES = {
    "for x in (1, 2): a = a + x\n    return a": "For",
    "while a: a = 0\n    return a": "While",
    "return a ** 2": "Pow",
    "return a // 2": "FloorDiv",
    "return a % 2": "Mod",
    "if a: return 1\n    return a": "If",
    "return 1 if a else 2": "IfExp",
    "return a < 2": "Compare",
    "return a and 2": "BoolOp",
    "return a.real": "Attribute",
    "return math.sqrt(a)": "a call of what is no equation",
    "return exp(a)": "a call of what is no equation",
    "return abs(a)": "a call of what is no equation",
    "return a(1)": "a call of what is no equation",
    "return minimum(a, 1, 2)": "minimum or maximum of other than two",
    "return minimum(*a)": "minimum or maximum of other than two",
    "return f(a)": "a call of itself",
    "return g(a)": "a call that does not give each argument once",
    "return g(a, 1, 2)": "a call that does not give each argument once",
    "return g(a, **a)": "a call that does not give each argument once",
    "return g(a, *a)": "Starred",
    "return a[0]": "Subscript",
    "return (lambda: a)()": "a call of what is no equation",
    "return True": "a constant that is no number",
    "return 'a'": "a constant that is no number",
    "return 1e999": "a number that JavaScript does not have",
    "return 9007199254740993": "a number that JavaScript does not have",
    "return TEXT": "a constant that is no number",
    "return nothing": "the name nothing",
    "return +a": "UnaryOp",
    "return not a": "UnaryOp",
    "a += 1\n    return a": "AugAssign",
    "b = a\n    b = b + 1\n    return b": "a second assignment to b",
    "a = a + 1\n    return a": "a second assignment to a",
    "b, c = a, a\n    return b": "Assign",
    "var = a\n    return var": "the name var",
    "return\n    return a": "Return",
    "b = a": "an end without return",
    "import os\n    return a": "Import",
    "def h(): return 1\n    return a": "FunctionDef",
}


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.replace("\n   ", ";"))
def test_anything_else_is_refused(body: str, made_up: Callable[[str], Any]) -> None:
    """The error names equation, line and construct, so that nothing is translated by guess."""
    module = made_up(f"TEXT = 'x'\ndef g(x, y):\n    return x\ndef f(a):\n    '''Text.'''\n    {body}\n")
    with pytest.raises(UntranslatableError) as caught:
        script_of([module.f])
    said = re.fullmatch(r"made_up\.f, line (\d+): (.+) is not translated for pages", str(caught.value))
    assert said is not None
    assert said[2] == BODIES[body]
    assert 6 <= int(said[1]) <= 9


@pytest.mark.parametrize(
    "head", ["a=1", "*a", "a, *, b", "a, /, b", "**a"], ids=["default", "star", "keyword", "position", "keywords"]
)
def test_odd_arguments_are_refused(head: str, made_up: Callable[[str], Any]) -> None:
    """Arguments of an equation are plain, in JavaScript as in Python."""
    with pytest.raises(UntranslatableError, match="an argument with a default, a star or of one kind only"):
        script_of([made_up(f"def f({head}):\n    return 1\n").f])
