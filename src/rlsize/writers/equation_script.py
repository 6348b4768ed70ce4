"""
Equations as JavaScript, translated from their syntax tree.

What a page works out in the browser is thus the same formula that the command line uses. Only the little that such
formulas need is translated: arguments, constants, + - * /, minimum and maximum, other equations, assignments, return.
Anything else is an error that names equation, line and construct, when the page is made.
"""

from __future__ import annotations

import ast
import inspect
import math
from textwrap import dedent
from typing import TYPE_CHECKING, Any

from rlsize.equations import _ops

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_LAYER = "rlsize.equations."
_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_BUILT_IN = {_ops.minimum: "Math.min", _ops.maximum: "Math.max"}
_EXACT = 2**53  # whole numbers up to here are the same in both languages
_RESERVED = frozenset({
    "arguments", "await", "break", "case", "catch", "class", "const", "continue", "debugger", "default", "delete",
    "do", "else", "enum", "eval", "export", "extends", "false", "finally", "for", "function", "if", "implements",
    "import", "in", "instanceof", "interface", "let", "new", "null", "package", "private", "protected", "public",
    "return", "static", "super", "switch", "this", "throw", "true", "try", "typeof", "undefined", "var", "void",
    "while", "with", "yield", "Math", "NaN", "Infinity",
})  # fmt: skip


class UntranslatableError(Exception):
    """An equation uses what is not translated; the message names equation, line and construct."""


def script_of(equations: Iterable[Callable[..., Any]]) -> str:
    """
    JavaScript functions that do what the equations do, those that they call first.

    Args:
        equations: Functions of the equations layer.

    Raises:
        UntranslatableError: One of them uses what is not translated.

    >>> from rlsize.equations.matching import pool_rate
    >>> print(script_of([pool_rate]))
    function matching_pool_rate(gpus, gpu_rate) {
      return (gpus * gpu_rate);
    }
    """
    done: dict[Callable[..., Any], str] = {}
    for function in equations:
        _add(function, done, ())
    return "\n".join(done.values())


def script_name(function: Callable[..., Any]) -> str:
    """
    What an equation is called in JavaScript.

    >>> from rlsize.equations.matching import pool_rate
    >>> script_name(pool_rate)
    'matching_pool_rate'
    """
    return _name(function).replace(".", "_")


def _name(function: Callable[..., Any]) -> str:
    return f"{function.__module__.removeprefix(_LAYER)}.{function.__qualname__}"


def _add(function: Callable[..., Any], done: dict[Callable[..., Any], str], callers: tuple[Any, ...]) -> None:
    """Translate a function after those that it calls."""
    if function in done:
        return
    translation = _Translation(function)
    if function in callers:
        raise translation.fault("a call of itself", translation.tree)
    text = translation.text()
    for other in translation.called:
        _add(other, done, (*callers, function))
    done[function] = text


class _Translation:
    """One function on its way to JavaScript."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        lines, self._first = inspect.getsourcelines(function)
        tree = ast.parse(dedent("".join(lines))).body[0]
        if not isinstance(tree, ast.FunctionDef):
            raise self.fault("no function", tree)
        self.tree = tree
        self.called: list[Callable[..., Any]] = []
        self._known: list[str] = []
        names = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
        self._assigned = {name.id for name in names if isinstance(name.ctx, ast.Store)}

    def fault(self, construct: str, node: ast.AST) -> UntranslatableError:
        """What cannot be translated, and where it stands."""
        line = self._first + getattr(node, "lineno", 1) - 1
        return UntranslatableError(f"{_name(self.function)}, line {line}: {construct} is not translated for pages")

    def text(self) -> str:
        """The function in JavaScript."""
        arguments = self._arguments()
        nodes = self.tree.body[ast.get_docstring(self.tree) is not None :]
        body = [self._statement(node, last=node is self.tree.body[-1]) for node in nodes]
        if not body or not isinstance(nodes[-1], ast.Return):
            raise self.fault("an end without return", self.tree)
        return "\n".join([f"function {script_name(self.function)}({arguments}) {{", *body, "}"])

    def _arguments(self) -> str:
        found = self.tree.args
        if self.tree.decorator_list:
            raise self.fault("a decorator", self.tree)
        if found.vararg or found.kwarg or found.kwonlyargs or found.posonlyargs or found.defaults:
            raise self.fault("an argument with a default, a star or of one kind only", self.tree)
        for argument in found.args:
            self._declare(argument.arg, argument)
        return ", ".join(self._known)

    def _declare(self, name: str, node: ast.AST) -> None:
        if name in _RESERVED or not name.isascii():
            raise self.fault(f"the name {name}", node)
        if name in self._known:
            raise self.fault(f"a second assignment to {name}", node)
        self._known.append(name)

    def _statement(self, node: ast.stmt, *, last: bool) -> str:
        if isinstance(node, ast.Return) and last and node.value is not None:
            return f"  return {self._value(node.value)};"
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            value, name = self._value(node.value), node.targets[0].id
            self._declare(name, node)
            return f"  const {name} = {value};"
        raise self._unknown(node)

    def _value(self, node: ast.expr) -> str:
        if isinstance(node, ast.Constant):
            return self._constant(node.value, node)
        if isinstance(node, ast.Name):
            return self._named(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return f"(-{self._value(node.operand)})"
        if isinstance(node, ast.BinOp):
            operator = _OPERATORS.get(type(node.op))
            if operator is None:
                raise self._unknown(node.op, node)
            return f"({self._value(node.left)} {operator} {self._value(node.right)})"
        if isinstance(node, ast.Call):
            return self._call(node)
        raise self._unknown(node)

    def _constant(self, value: object, node: ast.AST) -> str:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.fault("a constant that is no number", node)
        if not math.isfinite(value) or (isinstance(value, int) and abs(value) > _EXACT):
            raise self.fault("a number that JavaScript does not have", node)
        return f"({value!r})" if value < 0 else repr(value)

    def _named(self, node: ast.Name) -> str:
        """An argument, what was assigned, or a number of the module."""
        if node.id in self._known:
            return node.id
        if node.id not in self._assigned and node.id in self.function.__globals__:
            return self._constant(self.function.__globals__[node.id], node)
        raise self.fault(f"the name {node.id}", node)

    def _call(self, node: ast.Call) -> str:
        called = node.func.id if isinstance(node.func, ast.Name) and node.func.id not in self._known else ""
        other = self.function.__globals__.get(called)
        if other in _BUILT_IN:
            if len(node.args) != 2 or node.keywords:  # noqa: PLR2004 (the smaller of two)
                raise self.fault("minimum or maximum of other than two", node)
            return f"{_BUILT_IN[other]}({', '.join(map(self._value, node.args))})"
        module = getattr(other, "__module__", "")
        if not inspect.isfunction(other) or not module.startswith(_LAYER) or module == _ops.__name__:
            raise self.fault("a call of what is no equation", node)
        if script_name(other) in self._known:
            raise self.fault(f"the name {script_name(other)}", node)
        self.called.append(other)
        return f"{script_name(other)}({', '.join(self._passed(node, other))})"

    def _passed(self, node: ast.Call, other: Callable[..., Any]) -> list[str]:
        """What is passed to another equation, in the order of its arguments."""
        names = list(inspect.signature(other).parameters)
        given = dict(zip(names, node.args, strict=False))
        given |= {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
        count = len(node.args) + len(node.keywords)
        if list(filter(given.__contains__, names)) != names or count != len(names):
            raise self.fault("a call that does not give each argument once", node)
        return [self._value(given[name]) for name in names]

    def _unknown(self, node: ast.AST, place: ast.AST | None = None) -> UntranslatableError:
        return self.fault(type(node).__name__, place or node)
