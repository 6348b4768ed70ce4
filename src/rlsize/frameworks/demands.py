"""What a framework asserts of a loop: what does not hold of one, and the numbers close by that would."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any

from rlsize.frameworks.expressions import Plain, evaluate, parsed
from rlsize.frameworks.told import QUANTITY
from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_FEW = 2  # numbers that are named


@dataclass(frozen=True, slots=True)
class Unmet:
    """
    A demand that does not hold.

    Args:
        what: What is wrong.
        quantity: What to change; empty where that is not plain.
        nearest: Its values close by that would do.
    """

    what: str
    quantity: str = ""
    nearest: tuple[Any, ...] = ()


def unmet(demands: Mapping[str, str], values: Mapping[str, Any]) -> Iterator[Unmet]:
    """
    The demands that do not hold; one over values that nobody knows is passed by.

    Args:
        demands: What is wrong, by the expression that should hold; `{name}` stands for a value.
        values: Quantities.

    >>> [*unmet({"loop.a % loop.b == 0": "{a} are no multiple of {b}"}, {"a": 20, "b": 8})]
    [Unmet(what='20 are no multiple of 8', quantity='a', nearest=(16, 24))]
    """
    known = _known(values)
    for text, says in broken(demands, values):
        what = re.sub(r"\{(\w+)\}", lambda found: str(values.get(found[1], found[0])), says)
        yield Unmet(what, *next(_ways_out(parsed(text), known), ("", ())))


def broken(demands: Mapping[str, str], values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The demands that do not hold, and what each says, without a way out: a search asks of thousands of loops."""
    known = _known(values)
    for text, says in demands.items():
        lacking = any(values.get(name) is None for name in re.findall(r"loop\.(\w+)", text))
        if not lacking and not evaluate(text, known):
            yield text, says


def _known(values: Mapping[str, Any]) -> Plain:
    return Plain({QUANTITY + name: value for name, value in values.items()}.get)


def _ways_out(tree: ast.expr, known: Plain) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Quantities and values that would do: multiples and divisors first, then limits."""
    tests = [node for node in ast.walk(tree) if isinstance(node, ast.Compare)]
    for node in tests:
        if isinstance(node.left, ast.BinOp) and isinstance(node.left.op, ast.Mod):
            number, by = (evaluate(ast.unparse(side), known) for side in (node.left.left, node.left.right))
            if not isinstance(number, int) or not isinstance(by, int):
                continue
            if _quantity(node.left.left):
                low = number - number % by
                yield _quantity(node.left.left), tuple(near for near in (low, low + by) if near > 0)
            elif _quantity(node.left.right):
                fitting = [part for part in range(1, number + 1) if number % part == 0]
                yield _quantity(node.left.right), tuple(sorted(sorted(fitting, key=lambda one: abs(one - by))[:_FEW]))
    for node in tests:
        if _quantity(node.left) and isinstance(node.ops[0], (ast.Eq, ast.LtE, ast.GtE)):
            yield _quantity(node.left), (evaluate(ast.unparse(node.comparators[0]), known),)


def _quantity(node: ast.AST) -> str:
    """The quantity that an expression is; empty where it is none."""
    text = ast.unparse(node)
    return text.removeprefix(QUANTITY) if re.fullmatch(r"loop\.\w+", text) else ""
