"""Arithmetic as bash does it: 64-bit integers, variables by name, assignments."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_TOKEN = re.compile(
    r"\s*(?:(\d+#[\w@]+|\d\w*)|([A-Za-z_]\w*)|(<<=|>>=|\*\*|\+\+|--|&&|\|\||<<|>>|[-+*/%<>=!&|^]=|[-+*/%<>=!&|^~?:,()\[\]]))"
)
_LEVELS = (("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<=", ">=", "<", ">"), ("<<", ">>"), ("+", "-"))
_FACTORS = ("*", "/", "%")
_BY_NAME: dict[str, Callable[[int, int], int]] = {
    "||": lambda a, b: int(bool(a or b)),
    "&&": lambda a, b: int(bool(a and b)),
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "&": lambda a, b: a & b,
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
    "<=": lambda a, b: int(a <= b),
    ">=": lambda a, b: int(a >= b),
    "<": lambda a, b: int(a < b),
    ">": lambda a, b: int(a > b),
    "<<": lambda a, b: a << (b % 64),
    ">>": lambda a, b: a >> (b % 64),
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "%": lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1),
    "**": lambda a, b: pow(a, b, 1 << 64),
}
_DEEPEST = 40


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
        self.tokens: list[tuple[str, str, str]] = []
        at, text = 0, text.rstrip()
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                raise UnknownValueError("$((...))")
            self.tokens.append((found[1] or "", found[2] or "", found[3] or ""))
            at = found.end()
        self.at = self.depth = 0
        self.live = True

    def value(self) -> int:
        """
        What the expression gives; 0 if it is empty.

        Raises:
            UnknownValueError: It is no expression, divides by zero, or hangs on what nobody told.
        """
        result = self._list() if self.tokens else 0
        if self.at < len(self.tokens):
            raise self._wrong()
        return result

    def _wrong(self) -> UnknownValueError:
        return UnknownValueError("$((...))")

    def _sign(self) -> str:
        return self.tokens[self.at][2] if self.at < len(self.tokens) else ""

    def _take(self, *signs: str) -> str:
        sign = self._sign()
        if sign and sign in signs:
            self.at += 1
            return sign
        return ""

    def _list(self) -> int:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self._wrong()
        result = self._choice()
        while self._take(","):
            result = self._choice()
        self.depth -= 1
        return result

    def _choice(self) -> int:
        result = self._binary(0)
        if not self._take("?"):
            return result
        first = self._when(bool(result), self._list)
        if not self._take(":"):
            raise self._wrong()
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self._wrong()
        second = self._when(not result, self._choice)
        self.depth -= 1
        return first if result else second

    def _when(self, wanted: bool, read: Callable[[], int]) -> int:
        """Read on; without effect where the value is not wanted."""
        before, self.live = self.live, self.live and wanted
        try:
            return read()
        finally:
            self.live = before

    def _binary(self, level: int) -> int:
        if level == len(_LEVELS):
            return self._product()
        result = self._binary(level + 1)
        while sign := self._take(*_LEVELS[level]):
            wanted = not (sign == "&&" and not result) and not (sign == "||" and result)
            result = self._done(sign, result, self._when(wanted, lambda: self._binary(level + 1)))
        return result

    def _product(self) -> int:
        result = self._power()
        while sign := self._take(*_FACTORS):
            result = self._done(sign, result, self._power())
        return result

    def _power(self) -> int:
        base = self._unary()
        if not self._take("**"):
            return base
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self._wrong()
        exponent = self._power()
        self.depth -= 1
        if exponent < 0:
            raise self._wrong()
        return self._done("**", base, exponent)

    def _done(self, sign: str, left: int, right: int) -> int:
        if not self.live:
            return 0
        if sign in ("/", "%") and right == 0:
            raise self._wrong()
        return _wrapped(_BY_NAME[sign](left, right))

    def _unary(self) -> int:
        signs = []
        while sign := self._take("-", "+", "!", "~", "++", "--"):
            signs.append(sign)
        if signs and signs[-1] in ("++", "--"):
            step = 1 if signs.pop() == "++" else -1
            name, subscript = self._place()
            result = self._read(name, subscript) + step
            self._write(name, subscript, result)
        else:
            result = self._primary()
        for sign in reversed(signs):
            result = {"-": -result, "+": result, "!": int(not result), "~": ~result}.get(sign, result)
        return _wrapped(result)

    def _place(self) -> tuple[str, int | None]:
        name = self.tokens[self.at][1] if self.at < len(self.tokens) else ""
        if not name:
            raise self._wrong()
        self.at += 1
        if not self._take("["):
            return name, None
        subscript = self._list()
        if not self._take("]"):
            raise self._wrong()
        return name, subscript

    def _read(self, name: str, subscript: int | None) -> int:
        return self.get(name, subscript) if self.live else 0

    def _write(self, name: str, subscript: int | None, value: int) -> None:
        if self.live:
            self.put(name, subscript, _wrapped(value))

    def _primary(self) -> int:
        if self._take("("):
            result = self._list()
            if not self._take(")"):
                raise self._wrong()
            return result
        if self.at < len(self.tokens) and (number := self.tokens[self.at][0]):
            self.at += 1
            return self._number(number)
        return self._variable(*self._place())

    def _variable(self, name: str, subscript: int | None) -> int:
        if sign := self._take("=", "+=", "-=", "*=", "/=", "%=", "<<=", ">>=", "&=", "|=", "^="):
            self.depth += 1
            if self.depth > _DEEPEST:
                raise self._wrong()
            value = self._choice()
            self.depth -= 1
            if sign != "=":
                value = self._done(sign[:-1], self._read(name, subscript), value)
            self._write(name, subscript, value)
            return value
        value = self._read(name, subscript)
        if sign := self._take("++", "--"):
            self._write(name, subscript, value + (1 if sign == "++" else -1))
        return value

    def _number(self, text: str) -> int:
        base, mark, digits = text.partition("#")
        try:
            if mark:
                return _wrapped(int(digits, int(base)))
            if text[:2].lower() == "0x":
                return _wrapped(int(text, 16))
            return _wrapped(int(text, 8 if text[0] == "0" else 10))
        except ValueError:
            raise self._wrong() from None


def _wrapped(value: int) -> int:
    """An integer as 64 bits hold it."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)
