"""
Interpolations of OmegaConf: `${a.b}`, `${.sibling}`, `${mul:${a},2}`, `${oc.env:NAME,default}`.

The grammar is small enough to stand here. OmegaConf would lose the place of each value, holds its resolvers in one
table for the whole process, and its `oc.env` reads the environment; here nothing does: the default counts.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from rlsize.frameworks.expressions import UnreadableError, arithmetic
from rlsize.readers.launch.nodes import DEEPEST, Count, Held, Node, shown
from rlsize.readers.launch.yaml_trees import scalar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rlsize.facts.launch import Span, Value

_LONGEST = 10_000
_RESOLVER = re.compile(r"\s*([A-Za-z_][\w.]*)\s*:(.*)", re.DOTALL)
_PIECE = re.compile(r"\\[\\,]|'[^']*'|\"[^\"]*\"|[{\[(]|[})\]]|,")
_SIGNS = {
    "mul": "*", "multiply": "*", "prod": "*", "add": "+", "sum": "+", "sub": "-", "subtract": "-", "div": "/",
    "divide": "/", "floordiv": "//",
}  # fmt: skip
_CHOICES: dict[str, Callable[[list[float]], float]] = {"max": max, "min": min}


class _MissingError(UnreadableError):
    """A key that is said nowhere."""


def interpolated(root: Node, raw: frozenset[int], notes: list[str]) -> Node:
    """
    A configuration with its interpolations resolved.

    Args:
        root: The configuration.
        raw: Identities of nodes that are shell scripts, in which `${X}` is the shell's.
        notes: Takes what stands in for the environment.

    Raises:
        InputError: It grows too large.
    """
    return _Resolver(root, raw, notes).resolved(root, ())


class _Resolver:
    def __init__(self, root: Node, raw: frozenset[int], notes: list[str]) -> None:
        self._root = root
        self._raw = raw
        self._notes = notes
        self._count = Count(root.span.file)
        self._known: dict[tuple[str, ...], Node] = {}
        self._under_way: set[tuple[str, ...]] = set()

    def resolved(self, node: Node, path: tuple[str, ...]) -> Node:
        """A node without interpolations; one that cannot be known says why."""
        if path in self._known:
            return self._known[path]
        self._count.one(len(path), node.span)
        if path in self._under_way or len(self._under_way) > DEEPEST:
            raise UnreadableError("it leads back to itself")
        self._under_way.add(path)
        try:
            found = self._resolved(node, path)
        finally:
            self._under_way.discard(path)
        self._known[path] = found
        return found

    def _resolved(self, node: Node, path: tuple[str, ...]) -> Node:
        held: Held = node.value
        if node.why_not or id(node) in self._raw:
            return node
        if isinstance(held, dict):
            self._under_way.discard(path)  # keys of a mapping may name each other
            return replace(node, value={key: self._child(child, (*path, key)) for key, child in held.items()})
        if isinstance(held, list):
            return replace(node, value=[self._child(child, (*path, str(at))) for at, child in enumerate(held)])
        if not isinstance(held, str) or "${" not in held:
            return node
        return self._told(self.text(held, path, node.span), node.span, len(path))

    def _child(self, node: Node, path: tuple[str, ...]) -> Node:
        try:
            return self.resolved(node, path)
        except UnreadableError as error:
            return Node(None, node.span, str(error))

    def _told(self, value: Value, span: Span, depth: int) -> Node:
        """A value as a node whose place is the interpolation."""
        self._count.one(depth, span)
        if isinstance(value, dict):
            bare = replace(span, end=span.start)
            return Node({key: self._told(inner, bare, depth + 1) for key, inner in value.items()}, span)
        if isinstance(value, list):
            return Node([self._told(inner, span, depth + 1) for inner in value], span)
        return Node(value, span)

    def text(self, text: str, path: tuple[str, ...], span: Span) -> Value:
        """
        What a text with interpolations says: the value of a single one, else text.

        Raises:
            UnreadableError: It is not known, and why.
        """
        if len(text) > _LONGEST:
            raise UnreadableError("it is too long to be an interpolation")
        parts: list[Value] = []
        at = 0
        while (start := text.find("${", at)) >= 0:
            end = _closed(text, start + 2)
            parts += [text[at:start], self._inner(text[start + 2 : end], path, span)]
            at = end + 1
        parts.append(text[at:])
        if len(parts) == 3 and not parts[0] and not parts[2]:  # noqa: PLR2004 (one interpolation and nothing around it)
            return parts[1]
        if any(isinstance(part, dict | list) for part in parts):
            raise UnreadableError("it puts a mapping or a list into text")
        joined = "".join(str(part) for part in parts)
        if len(joined) > _LONGEST:
            raise UnreadableError("it is too long to be an interpolation")
        return joined

    def _inner(self, content: str, path: tuple[str, ...], span: Span) -> Value:
        """The value of what stands between `${` and `}`."""
        if len(path) > DEEPEST or content.count("${") > DEEPEST:
            raise UnreadableError("it is nested too deeply")
        called = _RESOLVER.fullmatch(content)
        if called is None:
            return self._named(str(self.text(content, path, span)), path)
        return self._called(called[1], called[2], path, span)

    def _called(self, name: str, content: str, path: tuple[str, ...], span: Span) -> Value:
        """What a resolver gives."""
        if name == "eval":
            bare = content.strip()
            quoted = bare[:1] in {"'", '"'} and bare[-1:] == bare[:1]
            return arithmetic(str(self.text(bare[1:-1] if quoted else bare, path, span)))
        arguments = list(_split(content))
        if name in _SIGNS or name in _CHOICES:
            terms = [arithmetic(str(self._argument(argument, path, span))) for argument in arguments]
            return _CHOICES[name](terms) if name in _CHOICES else arithmetic(f" {_SIGNS[name]} ".join(map(repr, terms)))
        if name in {"oc.env", "env"}:
            return self._environment(arguments, path, span)
        if name == "oc.select":
            try:
                return self._named(str(self._argument(arguments[0], path, span)), path)
            except _MissingError:
                return self._argument(arguments[1], path, span) if len(arguments) > 1 else None
        if name == "oc.decode":
            return self._argument(arguments[0], path, span)
        raise UnreadableError(f"what the resolver {shown(name)} gives is not known here")

    def _environment(self, arguments: list[str], path: tuple[str, ...], span: Span) -> Value:
        """The default of a variable of the environment, which is not read."""
        name = shown(arguments[0].strip())
        if len(arguments) == 1:
            raise UnreadableError(f"the environment variable {name} is not read")
        self._notes.append(f"{span}: {shown('.'.join(path))} is the default of {name}: the environment is not read")
        return self._argument(arguments[1], path, span)

    def _argument(self, text: str, path: tuple[str, ...], span: Span) -> Value:
        """An argument of a resolver: quoted text, an interpolation, or a plain value."""
        bare = text.strip()
        if bare[:1] in {"'", '"'} and bare[-1:] == bare[:1] and len(bare) > 1:
            return self.text(bare[1:-1], path, span)
        found = self.text(bare, path, span)
        return scalar(found) if isinstance(found, str) else found

    def _named(self, text: str, path: tuple[str, ...]) -> Value:
        """
        The value of a key, `.x` from the mapping that names it.

        Raises:
            UnreadableError: It has none, or one that is not known.
        """
        missing = _MissingError(f"it names {shown(text.strip())}, which is said nowhere")
        key = re.sub(r"\[([^][]*)\]", r".\1", text.strip())
        dots = len(key) - len(key.lstrip("."))
        if dots > len(path):
            raise missing
        place = list(path[: len(path) - dots]) if dots else []
        node = self._at(self._root, place)
        for part in key.strip(".").split("."):
            place.append(part)
            node = self._at(node, [part]) if node is not None else None
            if node is None:
                raise missing
            if isinstance(node.value, str) and "${" in node.value:
                node = self.resolved(node, tuple(place))
        node = self.resolved(node, tuple(place)) if node is not None else self._root
        if node.why_not:
            raise UnreadableError(node.why_not)
        return node.plain

    @staticmethod
    def _at(node: Node, place: list[str]) -> Node | None:
        for part in place:
            held = node.value
            if isinstance(held, list) and part.isdecimal() and int(part[:6]) < len(held):
                node = held[int(part[:6])]
            elif isinstance(held, dict) and part in held:
                node = held[part]
            else:
                return None
        return node


def _closed(text: str, start: int) -> int:
    """
    Where the brace stands that closes an interpolation.

    Raises:
        UnreadableError: Nowhere.
    """
    depth = 1
    for found in re.compile(r"[{}]").finditer(text, start):
        depth += 1 if found[0] == "{" else -1
        if not depth:
            return found.start()
    raise UnreadableError("its interpolation is not closed")


def _split(text: str) -> Iterator[str]:
    """
    The arguments of a resolver.

    >>> list(_split("${a.b}, 'x, y', f(1,2)"))
    ['${a.b}', " 'x, y'", ' f(1,2)']
    """
    depth = start = 0
    for found in _PIECE.finditer(text):
        depth += (found[0] in "{[(") - (found[0] in "})]")
        if found[0] == "," and depth == 0:
            yield text[start : found.start()]
            start = found.end()
    yield text[start:]
