"""The equations as pages, read from their docstrings, and results explained by them: formula, numbers, source."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from rlsize import equations
from rlsize.errors import Fault, InputError, nearest
from rlsize.reports.wording import origin, shown
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import ModuleType

    from rlsize.facts.figure import Figure


_PAGE = re.compile(
    r"(?P<summary>\S.*?)\n\n"
    r"(?P<formula>.+?)\n\n"
    r"Args:\n(?P<arguments>(?: {4,}\S.*\n)+)\n"
    r"Returns:\n(?P<returns>(?: {4}\S.*\n)+)\n"
    r"Assumes (?P<assumes>.+?)\n"
    r"Source: (?P<source>.+?)\n\n"
    r"(?P<example>>>> .+)",
    re.DOTALL,
)
_ARGUMENT = re.compile(r"(?P<name>\w+): (?P<text>.+) \[(?P<unit>[^\]]+)\]", re.DOTALL)
_RETURNS = re.compile(r"(?P<symbol>.+)\. \[(?P<unit>[^\]]+)\]", re.DOTALL)
_ENTRY = re.compile(r"^ {4}(?=\S)", re.MULTILINE)
_OFFERED = 3  # names where none is spelt alike


class Argument(NamedTuple):
    """
    One argument of an equation.

    Args:
        name: Its name.
        text: What it is, with its symbol in the formula.
        unit: Its unit, as `B/s`; `1` for a pure number.
    """

    name: str
    text: str
    unit: str


class EquationPage(NamedTuple):
    """
    What there is to say about one equation.

    Args:
        name: Its file and function, as `weight_sync.weight_sync_time`.
        summary: What it gives, in one sentence.
        formula: The formula, one or more lines.
        arguments: What goes in.
        symbol: The result's symbol in the formula.
        unit: The result's unit.
        assumes: What has to hold for it to be right; reads on after the word "Assumes".
        source: Who says so.
        example: A call and its result, as at the Python prompt.
        code: Where the function is, as a path to import.
    """

    name: str
    summary: str
    formula: str
    arguments: tuple[Argument, ...]
    symbol: str
    unit: str
    assumes: str
    source: str
    example: str
    code: str


def equation_names() -> list[str]:
    """
    Every equation as `file.function`, files in alphabetical order, functions as they stand in the file.

    >>> "weight_sync.weight_sync_time" in equation_names()
    True
    """
    return list(_equations())


def equation(name: str) -> Callable[..., Any]:
    """
    The function that a name means.

    Args:
        name: `function` where one file has it, or `file.function`.

    Raises:
        InputError: No equation has that name, or several files have one.

    >>> equation("weight_sync_time")(params=70e9, bytes_per_param=2, bandwidth=50e9)
    2.8
    """
    return _equations()[_full_name(name)]


def page(name: str) -> EquationPage:
    """
    The page of one equation.

    Args:
        name: `function` where one file has it, or `file.function`.

    Raises:
        InputError: No equation has that name, or several files have one.

    >>> weight_sync_time = page("weight_sync_time")
    >>> weight_sync_time.formula, weight_sync_time.unit, weight_sync_time.arguments[2].unit
    ('t_sync = b N / B', 's', 'B/s')
    """
    file, _, function = name.rpartition(".")
    if file in _files() and function in _functions(file):  # needs no other file: a few results are explained quickly
        return _page(name, _functions(file)[function])
    return _page(_full_name(name), equation(name))


@cache
def _page(name: str, function: Callable[..., Any]) -> EquationPage:
    if function.__doc__ is None:
        what = "equations explain themselves by docstrings, which `python -OO` takes away"
        raise InputError(Fault(what, name, "leave -OO out"))
    return parsed(name, inspect.cleandoc(function.__doc__))


def parsed(name: str, docstring: str) -> EquationPage:
    """
    The page that a docstring describes.

    Args:
        name: The equation's file and function.
        docstring: The docstring, indentation taken off.

    Raises:
        ValueError: A part is missing or out of order; `parsed` says which parts it expects.
    """
    parts = _PAGE.fullmatch(docstring)
    if parts is None:
        needed = "a summary, a formula, Args, Returns, Assumes, Source and an example"
        raise ValueError(f"{name}: the docstring needs {needed}")
    returns = _RETURNS.fullmatch(_one_line(parts["returns"]))
    if returns is None:
        raise ValueError(f"{name}: Returns needs a symbol, a full stop and a unit in brackets")
    return EquationPage(
        name=name,
        summary=_one_line(parts["summary"]),
        formula=inspect.cleandoc(parts["formula"]),
        arguments=tuple(_argument(name, entry) for entry in _ENTRY.split(parts["arguments"])[1:]),
        symbol=returns["symbol"],
        unit=returns["unit"],
        assumes=_one_line(parts["assumes"]),
        source=_one_line(parts["source"]),
        example=parts["example"],
        code=f"{equations.__name__}.{name}",
    )


def _argument(name: str, entry: str) -> Argument:
    found = _ARGUMENT.fullmatch(_one_line(entry))
    if found is None:
        raise ValueError(f"{name}: {_one_line(entry)!r} is not a name, a text and a unit in brackets")
    return Argument(name=found["name"], text=found["text"], unit=found["unit"])


def _one_line(text: str) -> str:
    return " ".join(text.split())


@cache
def _files() -> tuple[str, ...]:
    return tuple(sorted(entry.name for entry in pkgutil.iter_modules(equations.__path__) if entry.name[0] != "_"))


@cache
def _functions(file: str) -> Mapping[str, Callable[..., Any]]:
    module: ModuleType = importlib.import_module(f"{equations.__name__}.{file}")
    return {
        name: value
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and name[0] != "_"
    }


@cache
def _equations() -> Mapping[str, Callable[..., Any]]:
    return {f"{file}.{name}": function for file in _files() for name, function in _functions(file).items()}


def _offered(name: str, functions: Mapping[str, str]) -> str:
    """The nearest names, else the first that share a word with it; and what lists all of them."""
    known = [*functions] if "." in name else [*dict.fromkeys(functions.values())]
    asked = {*re.findall("[a-z]{3,}", name.lower())}
    near = nearest(name, known) or [one for one in known if asked.intersection(re.split(r"[._]", one))][:_OFFERED]
    whole = f"`rlsize explain` lists all {len(functions)}"
    return f"did you mean {' or '.join(near)}? {whole}" if near else whole


def _full_name(name: str) -> str:
    known = _equations()
    if name in known:
        return name
    functions = {full: full.rpartition(".")[2] for full in known}
    candidates = [full for full, function in functions.items() if function == name]
    if not candidates:
        raise InputError(Fault(f"no equation is called {name[:80]!r}", todo=_offered(name[:80], functions)))
    if len(candidates) > 1:
        todo = f"write one of {', '.join(candidates)}"
        raise InputError(Fault(f"{name} is the name of several equations", todo=todo))
    return candidates[0]


class Explanation(NamedTuple):
    """
    One result, explained.

    Args:
        key: The result's key.
        value: Its value for people.
        lines: Formula, each input with its value and origin, assumptions, source.
    """

    key: str
    value: str
    lines: tuple[str, ...]


def explanations(figures: Iterable[Figure]) -> list[Explanation]:
    """An explanation for each figure that an equation gave, and the origin of each that was said."""
    return [Explanation(figure.key, shown(figure, figure.key), tuple(_lines(figure))) for figure in figures]


def _lines(figure: Figure) -> list[str]:
    if not figure.equation:
        if figure.inputs:
            parts = (f"{part.key} {show(part.value, part.key)}" for part in figure.inputs.values())
            return [f"sum of {' + '.join(parts)}"]
        return [origin(figure) or f"needs {figure.missing}"]
    entry = page(figure.equation)
    units = {argument.name: argument.unit for argument in entry.arguments}
    width = max((len(name) for name in figure.inputs), default=0)
    lines = [
        *entry.formula.splitlines(),
        *(
            f"{name:<{width}} = {_number(value)} [{units.get(name, '')}]  {origin(value)}".rstrip()
            for name, value in figure.inputs.items()
        ),
    ]
    if not figure.known:
        lines.append(f"not computed: needs {figure.missing}")
    elif figure.source:
        lines.append(f"= {figure.source}: {shown(figure, figure.key)}")
    return [*lines, f"Assumes {entry.assumes}", f"Source: {entry.source}"]


def _number(figure: Figure) -> str:
    if not figure.known:
        return "unknown"
    return f"{figure.value:.10g}" if isinstance(figure.value, float) else str(figure.value)
