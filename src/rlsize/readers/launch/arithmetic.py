"""Arithmetic in configurations, worked out from its syntax tree: nothing is called, nothing is imported."""

from __future__ import annotations

import ast
import operator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlsize.facts.launch import Value

_LONGEST = 1_000
_LARGEST = 2.0**63
_HIGHEST_POWER = 64
_DEEPEST = 60
_BINARY: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow,
}  # fmt: skip
_UNARY: dict[type[ast.unaryop], Callable[[float], float]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}
_FUNCTIONS: dict[str, Callable[..., float]] = {
    "int": int, "float": float, "round": round, "abs": abs, "min": min, "max": max,
}  # fmt: skip


class UnknownError(Exception):
    """A value cannot be known without running something; the message says why."""


def arithmetic(text: str) -> float:
    """
    The number that an expression over numbers gives.

    >>> arithmetic("8192 * 3 // 2")
    12288

    Raises:
        UnknownError: It is anything else.
    """
    if len(text) > _LONGEST:
        raise UnknownError("it is too long to be arithmetic")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise UnknownError("it is no arithmetic") from None
    return number(tree, _no_names)


def _no_names(_: ast.expr, __: int) -> Value:
    raise UnknownError("it is no arithmetic")


def number(node: ast.expr, value_of: Callable[[ast.expr, int], Value], depth: int = 0) -> float:
    """
    The number that a syntax tree gives.

    Args:
        node: The expression.
        value_of: The value of what is no arithmetic: names, attributes; it gets the depth too.
        depth: How deep it stands in a larger one.

    Raises:
        UnknownError: It is no arithmetic over known numbers, or has no sensible result.
    """
    if depth > _DEEPEST:
        raise UnknownError("it is nested too deeply")
    try:
        found = _number(node, value_of, depth)
    except (ArithmeticError, ValueError, TypeError):
        raise UnknownError("its arithmetic has no result") from None
    if isinstance(found, bool) or not isinstance(found, int | float) or not abs(found) < _LARGEST:
        raise UnknownError("it is no number of sensible size")
    return found


def _number(node: ast.expr, value_of: Callable[[ast.expr, int], Value], depth: int) -> float:
    if isinstance(node, ast.UnaryOp) and type(node.op) in _UNARY:
        return _UNARY[type(node.op)](number(node.operand, value_of, depth + 1))
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        left, right = (number(side, value_of, depth + 1) for side in (node.left, node.right))
        if isinstance(node.op, ast.Pow) and abs(right) > _HIGHEST_POWER:
            raise UnknownError("its power is too high")
        return _BINARY[type(node.op)](left, right)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
        if node.keywords:
            raise UnknownError("it is no arithmetic")
        return _FUNCTIONS[node.func.id](*(number(part, value_of, depth + 1) for part in node.args))
    found = node.value if isinstance(node, ast.Constant) else value_of(node, depth + 1)
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise UnknownError("it is no number")
    return found
