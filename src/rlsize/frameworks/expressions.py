"""
Expressions over keys, as a framework's profile has them: a small part of Python, evaluated without Python.

A dotted name is a key. What is not known makes the result unknown (None), but for `first`, `said` and tests for None.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Container
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_LONGEST = 2000  # characters of an expression
_LARGEST, _HIGHEST_POWER = 2.0**63, 64


class UnreadableError(ValueError):
    """An expression that is none, or that asks for more than expressions may."""


def _power(base: float, exponent: float) -> float:
    if not abs(base) < _LARGEST or abs(exponent) > _HIGHEST_POWER:
        raise UnreadableError("its power is too high")
    found: float = base**exponent
    return found


_ARITHMETIC: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: _power,
}  # fmt: skip
_ORDER: dict[type[ast.AST], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip


class Lookup(Protocol):
    """What expressions ask."""

    def value(self, key: str) -> object:
        """The value of a key; None where it has none."""

    def said(self, key: str) -> bool:
        """Whether a key was set."""

    def testing(self, step: int) -> None:
        """What is looked up from now on only decides between values (1), or no longer does (-1)."""


def items(value: object) -> list[str]:
    """
    The members of a list, as it is written: `[8, 8]`, `8 8`, `0,1,2`, `list(range(0, 16))`.

    >>> items("list(range(0, 4))"), items("8 8"), items([1, 2])
    (['0', '1', '2', '3'], ['8', '8'], ['1', '2'])
    """
    if value is None:
        return []
    if isinstance(value, (list, tuple)):
        return [str(one) for one in value]
    text = str(value)
    found: list[str] = []
    for low, high in re.findall(r"range\(\s*(\d{1,6})\s*,\s*(\d{1,6})\s*\)", text):
        found += map(str, range(int(low), int(high)))
    if not found:
        alone = re.search(r"range\(\s*(\d{1,6})\s*\)", text)
        found = list(map(str, range(int(alone[1])))) if alone else re.findall(r"[^\s,\[\]()'\"]+", text)
    return found


def degree(value: object, side: str, letter: str) -> int | None:
    """
    A degree in an allocation as AReaL writes it; 1 where it is not said, 0 where the side is not, None where none is.

    Args:
        value: `sglang:d4p1t1+megatron:d2p2t2`, `sglang.d4p1t1+d4p1t1`, or one side of it.
        side: `rollout`, `trainer`, or `experts` for what the trainer's experts have.
        letter: d, p, t, c or e.

    >>> text = "sglang:d4p1t2+megatron:(attn:d4p1t2|ffn:d2e4)"
    >>> degree(text, "rollout", "t"), degree(text, "trainer", "d"), degree(text, "experts", "e")
    (2, 4, 4)
    """
    if not value:
        return None
    sides = str(value).split("+")
    if side == "rollout":
        text = sides[0] if len(sides) > 1 or not re.match(r"(fsdp|megatron|archon)", sides[0]) else ""
    else:
        text = sides[-1]
        halves = re.search(r"\((?:attn:)?([^|]*)\|(?:ffn:)?([^)]*)\)", text)
        if halves:
            text = halves[2] if side == "experts" else halves[1]
        elif side == "experts":
            text = text.rpartition(":")[2]
    text = re.sub(r"^[a-z]+[:.]", "", text)
    letters = "tm" if letter == "t" else re.escape(letter)  # m: tensors, before 0.3.1
    found = re.search(rf"[{letters}](\d{{1,6}})", text)
    return int(found[1]) if found else (1 if text else 0)


def ranks(value: object) -> int | None:
    """
    How many ranks a placement names; None where it names them by no number.

    >>> ranks("0-15"), ranks("0-3,8-9"), ranks(5), ranks("all")
    (16, 6, 1, None)
    """
    ends = re.findall(r"(\d{1,6})(?:-(\d{1,6}))?", str(value))
    return sum(int(last or first) - int(first) + 1 for first, last in ends) or None


def _number(value: object) -> object:
    """A number as people write it: `16k`, `1e3`, `1_024`, `8192*3//2`."""
    if value is None or isinstance(value, (int, float)):
        return value
    try:
        return arithmetic(str(value))
    except UnreadableError:
        return None


def _devices(like: object, first: int, count: int) -> object:
    """Numbers of so many devices from one on, in the form of a value that names some: a list, else text."""
    numbers = range(int(first), int(first) + int(count))
    return [*numbers] if isinstance(like, (list, tuple)) else ",".join(map(str, numbers))


def _matches(value: object, pattern: str) -> bool:
    """Whether a text holds something."""
    return value is not None and re.search(pattern, str(value)[:500], re.IGNORECASE) is not None


def _listed(*pairs: object) -> tuple[object, ...]:
    """Of names and conditions in turn, the names whose condition holds."""
    return tuple(name for name, holds in zip(pairs[::2], pairs[1::2], strict=True) if holds)


_NUMERIC: dict[str, Callable[..., Any]] = {
    "min": min, "max": max, "int": int, "float": float, "round": round, "ceil": math.ceil, "floor": math.floor,
    "abs": abs,
}  # fmt: skip
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **_NUMERIC,
    "count": lambda value: len(items(value)), "number": _number, "matches": _matches,
    "common": lambda one, two: len(set(items(one)) & set(items(two))),
    "union": lambda *lists: len({each for one in lists for each in items(one)}),
    "total": lambda value: sum(int(each) for each in items(value)) if value is not None else None,
    "degree": degree, "ranks": ranks, "devices": _devices, "listed": _listed, "lower": lambda value: str(value).lower(),
    "text": lambda *parts: "".join(map(str, parts)),
    "base": lambda value: re.split(r"[/\\]", str(value).rstrip("/\\"))[-1],
}  # fmt: skip
_TAKE_NONE = frozenset({"matches", "count", "common", "union", "degree", "number", "total", "listed"})


@cache
def parsed(text: str) -> ast.expr:
    """
    The tree of an expression.

    Raises:
        UnreadableError: It is none.
    """
    if len(text) > _LONGEST:
        raise UnreadableError(f"an expression of {len(text)} characters")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise UnreadableError(f"{text[:60]!r} is no expression") from None


def names(text: str) -> Iterator[str]:
    """
    The dotted names of an expression.

    >>> sorted(names("a.b * first(c, loop.group_size)"))
    ['a.b', 'c', 'loop.group_size']

    Raises:
        UnreadableError: It is none.
    """
    stack: list[ast.AST] = [parsed(text)]
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.Attribute, ast.Name)):
            yield _dotted(node)
        elif isinstance(node, ast.Call):
            stack += node.args
        else:
            stack += ast.iter_child_nodes(node)


def _dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    raise UnreadableError("only keys have dots")


class Plain:
    """
    Values that were all set.

    Args:
        value: The value of a key; None where it has none.
    """

    def __init__(self, value: Callable[[str], object]) -> None:
        self.value = value

    def said(self, key: str) -> bool:
        """Whether a key has a value."""
        return self.value(key) is not None

    def testing(self, step: int) -> None:
        """Nothing is kept of what was looked up."""


def evaluate(text: str | ast.expr, lookup: Lookup, *, numeric: bool = False) -> object:
    """
    The value of an expression; None where it is not known.

    Args:
        text: The expression, or its tree.
        lookup: Values of keys, and whether they were set, which `said(key)` asks.
        numeric: Whether it stands in a launch, where nothing but functions of numbers may be called.

    Raises:
        UnreadableError: It is no expression, or one over values that it is not made for.

    >>> evaluate("a.b * 2 if c == 'x' else None", Plain({"a.b": 3, "c": "x"}.get))
    6
    """
    try:
        return _Evaluation(lookup, numeric=numeric).of(parsed(text) if isinstance(text, str) else text)
    except UnreadableError:
        raise
    except (TypeError, ValueError, ZeroDivisionError, OverflowError, RecursionError):
        named = repr(text[:80]) if isinstance(text, str) else "it"
        raise UnreadableError(f"{named} cannot be worked out from these values") from None


def arithmetic(text: str | ast.expr, value_of: Callable[[str], object] = lambda _: None) -> float:
    """
    The number that arithmetic gives which stands in a launch, written by anyone.

    Args:
        text: The expression, or its tree.
        value_of: The value of a name; without it none has one.

    Raises:
        UnreadableError: It is no arithmetic, or gives no number of sensible size.

    >>> arithmetic("8192 * 3 // 2")
    12288
    """
    found = evaluate(text, Plain(value_of), numeric=True)
    if isinstance(found, bool) or not isinstance(found, (int, float)) or not abs(found) < _LARGEST:
        raise UnreadableError("it is no number of sensible size")
    return found


def _members(value: object) -> Container[object]:
    """
    What something may be in.

    Raises:
        UnreadableError: It holds nothing.
    """
    if isinstance(value, Container):
        return value
    raise UnreadableError("only lists and texts have members")


class _Evaluation:
    """One evaluation, over given values."""

    def __init__(self, lookup: Lookup, *, numeric: bool) -> None:
        self.lookup, self.numeric = lookup, numeric

    def of(self, node: ast.AST) -> object:
        """The value of a part."""
        way = getattr(self, f"_{type(node).__name__.lower()}", None)
        if way is None:
            raise UnreadableError(f"{type(node).__name__} is not for expressions")
        return way(node)

    def _constant(self, node: ast.Constant) -> object:
        if self.numeric and isinstance(node.value, (str, bytes)):
            raise UnreadableError("text is no number")
        return node.value

    def _name(self, node: ast.Name) -> object:
        return self.lookup.value(node.id)

    def _attribute(self, node: ast.Attribute) -> object:
        return self.lookup.value(_dotted(node))

    def _tuple(self, node: ast.Tuple) -> object:
        return tuple(self.of(one) for one in node.elts)

    def _ifexp(self, node: ast.IfExp) -> object:
        self.lookup.testing(1)
        holds = self.of(node.test)
        self.lookup.testing(-1)
        return self.of(node.body if holds else node.orelse)

    def _boolop(self, node: ast.BoolOp) -> object:
        value: object = None
        for part in node.values:
            value = self.of(part)
            if bool(value) == isinstance(node.op, ast.Or):
                break
        return value

    def _unaryop(self, node: ast.UnaryOp) -> object:
        value = self.of(node.operand)
        if isinstance(node.op, ast.Not):
            return not value
        if isinstance(node.op, ast.Invert) or not isinstance(value, (int, float, type(None))):
            raise UnreadableError("only `not` and signs of numbers stand before a value")
        return -value if isinstance(node.op, ast.USub) and value is not None else value

    def _binop(self, node: ast.BinOp) -> object:
        left, right = self.of(node.left), self.of(node.right)
        work = _ARITHMETIC.get(type(node.op))
        if work is None:
            raise UnreadableError("expressions add, subtract, multiply and divide")
        if left is None or right is None:
            return None
        if isinstance(left, str) or isinstance(right, str):
            left, right = _number(left), _number(right)
            if left is None or right is None:
                return None
        found = work(left, right)
        return int(found) if isinstance(found, float) and found.is_integer() and abs(found) < 2**53 else found

    def _compare(self, node: ast.Compare) -> object:
        left = self.of(node.left)
        for test, side in zip(node.ops, node.comparators, strict=True):
            right = self.of(side)
            if not self._holds(test, left, right):
                return False
            left = right
        return True

    def _holds(self, test: ast.cmpop, left: object, right: object) -> bool:
        if isinstance(test, (ast.Eq, ast.Is)):
            return bool(left == right)
        if isinstance(test, (ast.NotEq, ast.IsNot)):
            return bool(left != right)
        if isinstance(test, (ast.In, ast.NotIn)):
            there = right is not None and left in _members(right)
            return there == isinstance(test, ast.In)
        if left is None or right is None:
            return False
        return _ORDER[type(test)](_number(left), _number(right))

    def _call(self, node: ast.Call) -> object:
        if not isinstance(node.func, ast.Name) or node.keywords:
            raise UnreadableError("only plain functions are called")
        if self.numeric and node.func.id not in _NUMERIC:
            raise UnreadableError(f"{node.func.id} is no function of numbers")
        if node.func.id == "said":
            return any(self.lookup.said(_dotted(one)) for one in node.args)
        if node.func.id == "first":  # what stands behind the first known value is not looked up
            return next((value for one in node.args if (value := self.of(one)) is not None), None)
        function = _FUNCTIONS.get(node.func.id)
        if function is None:
            raise UnreadableError(f"{node.func.id} is no function of expressions")
        values = [self.of(one) for one in node.args]
        if node.func.id not in _TAKE_NONE and any(value is None for value in values):
            return None
        return function(*values)
