"""Arithmetic in configurations: nothing is called but functions of numbers, nothing is imported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.frameworks import expressions

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable


class UnknownError(Exception):
    """A value cannot be known without running something; the message says why."""


class _Names(expressions.Plain):
    """Values of names as something else has them."""

    def __init__(self, value_of: Callable[[str], object]) -> None:
        super().__init__({})
        self.value_of = value_of

    def value(self, key: str) -> object:
        """The value of a name."""
        return self.value_of(key)


def arithmetic(text: str | ast.expr, value_of: Callable[[str], object] | None = None) -> float:
    """
    The number that an expression gives.

    Args:
        text: The expression, or its tree.
        value_of: The value of a name in it.

    Raises:
        UnknownError: It is no arithmetic over known numbers, or has no sensible result.
    """
    try:
        return expressions.arithmetic(text, _Names(value_of) if value_of else None)
    except expressions.UnreadableError as error:
        raise UnknownError(str(error)) from None
