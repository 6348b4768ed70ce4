"""Arithmetic as bash does it: 64-bit integers, variables by name, assignments."""

from __future__ import annotations

import operator
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_PART = r"[0-9][\w#@]*|[A-Za-z_]\w*|<<=|>>=|\*\*|\+\+|--|&&|\|\||<<|>>|[-+*/%<>=!&|^]=|[-+*/%<>=!&|^~?:,()\[\]]"
_TOKEN = re.compile(_PART, re.ASCII)
_TOKENS = re.compile(rf"(?>\s*(?:{_PART}))*+\s*", re.ASCII)
_ROWS = (",", "?", "||", "&&", "|", "^", "&", "== !=", "<= >= < >", "<< >>", "+ -", "* / %", "**")
_STRENGTH = {sign: strength for strength, row in enumerate(_ROWS) for sign in row.split()}
"""How strongly what stands between two values binds them."""
_CHOICE = _STRENGTH["?"]
_WORK: dict[str, Callable[[int, int], int]] = {
    "|": operator.or_, "^": operator.xor, "&": operator.and_, "+": operator.add, "-": operator.sub, "*": operator.mul,
    "==": operator.eq, "!=": operator.ne, "<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt,
    "||": lambda a, b: bool(a or b),
    "&&": lambda a, b: bool(a and b),
    "<<": lambda a, b: a << (b % 64),
    ">>": lambda a, b: a >> (b % 64),
    "/": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "%": lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1),
    "**": lambda a, b: pow(a, b, 1 << 64),
    ",": lambda _, b: b,
}  # fmt: skip
_BEFORE: dict[str, Callable[[int], int]] = {
    "-": operator.neg, "+": operator.pos, "!": operator.not_, "~": operator.invert,
}  # fmt: skip
_DEEPEST = 60


class UnknownValueError(Exception):
    """
    A value that the script does not tell.

    Args:
        names: What it hangs on.
    """

    def __init__(self, *names: str) -> None:
        super().__init__(*names)
        self.names = names


class Arithmetic:
    """
    One expression, evaluated as it is read.

    Args:
        text: The expression, with parameters already put in.
        get: The value of a variable or array element (name, subscript or None): an integer.
        put: Sets one.
    """

    def __init__(
        self, text: str, get: Callable[[str, int | None], int], put: Callable[[str, int | None, int], None]
    ) -> None:
        self.get, self.put = get, put
        if not _TOKENS.fullmatch(text):
            raise UnknownValueError
        self.tokens = [*_TOKEN.findall(text), ""]
        self.at = self.depth = 0
        self.live = True

    def value(self) -> int:
        """
        What the expression gives; 0 if it is empty.

        Raises:
            UnknownValueError: It is no expression, divides by zero, or hangs on what nobody told.
        """
        result = self._from(0) if len(self.tokens) > 1 else 0
        if self.at < len(self.tokens) - 1:
            raise UnknownValueError
        return result

    def _take(self, *signs: str) -> str:
        sign = self.tokens[self.at]
        taken = sign if sign in signs else ""
        self.at += bool(taken)
        return taken

    def _need(self, sign: str) -> None:
        if not self._take(sign):
            raise UnknownValueError

    def _from(self, least: int, *, wanted: bool = True) -> int:
        """What binds at least so strongly; without effect where its value is not wanted."""
        before, self.live = self.live, self.live and wanted
        self.depth += 1
        if self.depth > _DEEPEST:
            raise UnknownValueError
        left = self._operand()
        while (strength := _STRENGTH.get(self.tokens[self.at], -1)) >= least:
            sign = self._take(self.tokens[self.at])
            if sign == "?":
                first = self._from(0, wanted=bool(left))
                self._need(":")
                second = self._from(_CHOICE, wanted=not left)
                left = first if left else second
            else:
                decided = sign == ("||" if left else "&&")
                right = self._from(strength + (sign != "**"), wanted=not decided)
                left = self._done(sign, left, right)
        self.depth -= 1
        self.live = before
        return left

    def _done(self, sign: str, left: int, right: int) -> int:
        if not self.live:
            return 0
        if (sign in ("/", "%") and right == 0) or (sign == "**" and right < 0):
            raise UnknownValueError
        return _wrapped(_WORK[sign](left, right))

    def _operand(self) -> int:
        signs = []
        while sign := self._take("-", "+", "!", "~", "++", "--"):
            signs.append(sign)
        step = signs.pop() if signs and signs[-1] in ("++", "--") else ""
        result = self._variable(step) if step else self._primary()
        for sign in reversed(signs):
            result = _BEFORE.get(sign, operator.pos)(result)
        return _wrapped(result)

    def _primary(self) -> int:
        if self._take("("):
            result = self._from(0)
            self._need(")")
            return result
        number = self.tokens[self.at]
        if not number[:1].isdigit():
            return self._variable()
        self.at += 1
        base, mark, digits = number.partition("#")
        try:
            if mark:
                return _wrapped(int(digits, int(base)))
            return _wrapped(int(number, 16 if number[:2].lower() == "0x" else 8 if number[0] == "0" else 10))
        except ValueError:
            raise UnknownValueError from None

    def _variable(self, step: str = "") -> int:
        """A variable, with what is assigned to it, or the step that stands before or after it."""
        name, subscript = self.tokens[self.at], None
        if not name.isidentifier():
            raise UnknownValueError
        self.at += 1
        if self._take("["):
            subscript = self._from(0)
            self._need("]")
        if not step and (sign := self._take("=", "+=", "-=", "*=", "/=", "%=", "<<=", ">>=", "&=", "|=", "^=")):
            value = self._from(_CHOICE)
            before = self._read(name, subscript) if sign != "=" else 0
            return self._write(name, subscript, self._done(sign[:-1] or ",", before, value))
        value = self._read(name, subscript)
        after = "" if step else self._take("++", "--")
        if step or after:
            changed = self._write(name, subscript, value + (1 if "++" in (step, after) else -1))
            return changed if step else value
        return value

    def _read(self, name: str, subscript: int | None) -> int:
        return self.get(name, subscript) if self.live else 0

    def _write(self, name: str, subscript: int | None, value: int) -> int:
        if self.live:
            self.put(name, subscript, _wrapped(value))
        return _wrapped(value)


def _wrapped(value: int) -> int:
    """An integer as 64 bits hold it."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)
