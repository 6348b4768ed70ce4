"""Values as programs print them: JSON, Python's dicts, and what dataclasses and namespaces show of themselves."""

from __future__ import annotations

import ast
import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from rlsize.errors import Fault, InputError
from rlsize.readers.launch.nodes import Count, Node, Places, UnreadableError, shown

if TYPE_CHECKING:
    from rlsize.readers.launch.nodes import Held

_STRING = re.compile(r"""[bru]?(?:"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"|'[^'\\\n]*+(?:\\.[^'\\\n]*+)*+')""", re.DOTALL)
_CALL = re.compile(r"([A-Za-z_][\w.]*)\(")
_SHOWN = re.compile(r"<[\w.]+: ([^<>\n]{1,200})>|<[^<>\n]{0,200}>")
_ATOM = re.compile(r"[^,(){}\[\]\n]+")
_FIELD = re.compile(r"\s*([A-Za-z_]\w*)\s*=")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_WORDS = {"None": None, "null": None, "True": True, "true": True, "False": False, "false": False}
_BARE_NAMES = {"dict", "Namespace", "OrderedDict", "DictConfig", "SimpleNamespace", "mappingproxy", "defaultdict"}


def word(text: str) -> int | float | str | bool | None:
    """
    What a bare word means as Python or JSON prints it.

    >>> word("True"), word("1e-06"), word("None"), word("bfloat16")
    (True, 1e-06, None, 'bfloat16')
    """
    bare = text.strip()
    if bare in _WORDS:
        return _WORDS[bare]
    if len(bare) <= 40 and _NUMBER.fullmatch(bare):  # noqa: PLR2004 (no sensible number is longer)
        return int(bare) if bare.lstrip("+-").isdigit() else float(bare)
    return bare


def unquoted(text: str) -> str:
    """
    The text that a quoted string says, in JSON or Python.

    Raises:
        ValueError: It is not one.
    """
    if text[:1] == '"':
        with suppress(ValueError):
            return str(json.loads(text, strict=False))
    try:
        return str(ast.literal_eval(text))
    except SyntaxError:
        raise ValueError("not a string") from None


class Literals:
    """
    Reads values at places of a text.

    Args:
        text: The text.
        places: The places in it.
        count: The nodes so far.
    """

    def __init__(self, text: str, places: Places, count: Count) -> None:
        self._text = text
        self._places = places
        self._count = count
        self.repeated: list[str] = []

    _space = re.compile(r"\s*")
    _key = re.compile(r"[^\s:,(){}\[\]'\"]+")
    _equals = ":"

    def after_space(self, at: int) -> int:
        """The next character that is no space."""
        return self._space.match(self._text, at).end()  # type: ignore[union-attr] # matches nothing too

    def value(self, at: int, depth: int = 0) -> tuple[Node, int]:
        """
        The value at a place, and where it ends.

        Raises:
            UnreadableError: There is none.
            InputError: It is too deep, or there are too many.
        """
        start = self.after_space(at)
        self._count.one(depth, self._places.span(start, start))
        held: Held
        if self._text[start : start + 1] == "{":
            held, end = self._mapping(start + 1, depth)
        elif self._text[start : start + 1] in {"[", "("}:
            held, end = self._list(start + 1, depth)
        else:
            held, end = self._scalar(start, depth)
        return Node(held, self._places.span(start, end)), end

    def _scalar(self, start: int, depth: int) -> tuple[Held, int]:
        """A value without brackets, or one that begins with a name."""
        if (text := _STRING.match(self._text, start)) is not None:
            return self._strings(text)
        if (call := _CALL.match(self._text, start)) is not None:
            return self._called(call, depth)
        if (shown := _SHOWN.match(self._text, start)) is not None:
            inner = shown[1] or shown[0]
            return unquoted(inner) if _STRING.fullmatch(inner) else word(inner), shown.end()
        if (atom := _ATOM.match(self._text, start)) is not None:
            return word(atom[0]), start + len(atom[0].rstrip())
        raise UnreadableError(start)

    def _strings(self, text: re.Match[str]) -> tuple[str, int]:
        """A string, and those that follow it: printers break long ones up."""
        parts = []
        found: re.Match[str] | None = text
        while found is not None:
            self._count.one(0, self._places.span(found.start(), found.start()))
            try:
                parts.append(unquoted(found[0]))
            except ValueError:
                raise UnreadableError(found.start()) from None
            end = found.end()
            found = _STRING.match(self._text, self.after_space(end))
        return "".join(parts), end

    def _mapping(self, at: int, depth: int) -> tuple[dict[str, Node], int]:
        held: dict[str, Node] = {}
        at = self.after_space(at)
        while self._text[at : at + 1] != "}":
            text = _STRING.match(self._text, at) or self._key.match(self._text, at)
            if text is None:
                raise UnreadableError(at)
            try:
                key = unquoted(text[0]) if text[0][-1] in "'\"" else text[0]
            except ValueError:
                raise UnreadableError(at) from None
            at = self.after_space(text.end())
            if self._text[at : at + 1] != self._equals:
                raise UnreadableError(at)
            if key in held:
                self.repeated.append(key)
            held[key], at = self.value(at + 1, depth + 1)
            at = self._next(at, "}")
        return held, at + 1

    def _list(self, at: int, depth: int) -> tuple[Held, int]:
        """A list or tuple; a string in parentheses is the string alone."""
        closes = "]" if self._text[at - 1] == "[" else ")"
        held: list[Node] = []
        comma = False
        at = self.after_space(at)
        while self._text[at : at + 1] != closes:
            node, at = self.value(at, depth + 1)
            held.append(node)
            comma = self._text.startswith(",", self.after_space(at))
            at = self._next(at, closes)
        alone = closes == ")" and len(held) == 1 and not comma
        return (held[0].value if alone else held), at + 1

    def _next(self, at: int, closes: str) -> int:
        """The next item, or the bracket that closes them."""
        at = self.after_space(at)
        if self._text[at : at + 1] == ",":
            return self.after_space(at + 1)
        if self._text[at : at + 1] != closes:
            raise UnreadableError(at)
        return at

    def _called(self, call: re.Match[str], depth: int) -> tuple[Held, int]:
        """What an object shows of itself: its fields; a single value in it is that value (`PosixPath('x')`)."""
        held: dict[str, Node] = {}
        alone: list[Node] = []
        at = self.after_space(call.end())
        while self._text[at : at + 1] != ")":
            name = _FIELD.match(self._text, at)
            node, at = self.value(name.end() if name else at, depth + 1)
            if name:
                held[name[1]] = node
            else:
                alone.append(node)
            at = self._next(at, ")")
        if len(alone) == 1 and not held:
            return alone[0].value, at + 1
        return held or alone, at + 1

    def shown_object(self, at: int) -> tuple[Node, int]:
        """
        A dict, or an object under its name, as `value` gives it: settings of `GRPOConfig(x=1)` are `GRPOConfig.x`.

        Raises:
            UnreadableError: It is neither.
            InputError: As `value`.
        """
        node, end = self.value(at)
        call = _CALL.match(self._text, self.after_space(at))
        if not isinstance(node.value, dict):
            raise UnreadableError(end)
        if call is None or call[1].rpartition(".")[2] in _BARE_NAMES:
            return node, end
        return Node({call[1].rpartition(".")[2]: node}, node.span), end


def json_settings(text: str, name: str, notes: list[str]) -> Node:
    """
    A JSON object with places.

    Raises:
        InputError: It is none, with file and line.
    """
    literals = Literals(text, Places(text, name), Count(name))
    try:
        # Depth is bounded first: the module's own decoder recurses.
        node, _ = literals.value(0)
        json.loads(text)
    except UnreadableError as error:
        where = f"{name}:{text.count(chr(10), 0, error.at) + 1}"
        raise InputError(Fault("is not valid JSON", where, "mend the line or the one above it")) from None
    except ValueError as error:
        line = getattr(error, "lineno", 1)
        what = f"is not valid JSON: {getattr(error, 'msg', 'a number is too long')}"
        raise InputError(Fault(what, f"{name}:{line}", "mend the line or the one above it")) from None
    if not isinstance(node.value, dict):
        raise InputError(Fault("holds no settings: it is no JSON object", name, 'write {"key": value}'))
    notes += [f"{name}: {shown(key)} stands twice: the last one counts" for key in dict.fromkeys(literals.repeated)]
    return node
