"""YAML and JSON: values as they stand, and new keys in the mapping of their kin."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from rlsize.frozen import dataclass
from rlsize.writers.launch.edits import Edit, Lines, own_settings
from rlsize.writers.yaml_file import text as yaml_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rlsize.facts.launch import Setting

_LOOK_BACK = 400  # bytes before a value in which its key stands


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A value of a new key; a mapping holds others."""

    value: Any


class TreeEditor:
    """
    Edits of a YAML or JSON file.

    Args:
        data: The file.
        name: Its name.
        settings: What it sets, by key.
        spelled: How a key is written.
    """

    def __init__(self, data: bytes, name: str, settings: Mapping[str, Setting], spelled: Callable[[str], str]) -> None:
        import yaml

        self.lines, self.data, self.spelled = Lines(data), data, spelled
        self.text = data.decode()
        self.json = self.text.lstrip()[:1] in ("{", "[")
        self.own = own_settings(settings, name)
        try:
            roots = list(yaml.compose_all(self.text, Loader=yaml.SafeLoader))
        except yaml.YAMLError:
            roots = []
        self.root = roots[0] if len(roots) == 1 else None
        self.new: dict[int, tuple[Any, dict[str, Any]]] = {}

    def edits(self, key: str, value: object) -> Iterator[Edit] | None:
        """What gives a key a value; None where that cannot be done."""
        setting = self.own.get(key)
        if value is None:
            gone = setting and not self.json and self.lines.without(setting.span.start, setting.span.end)
            gone = gone or (setting and self._between(setting.span.start, setting.span.end))
            return iter([gone]) if gone else None
        if setting is not None:
            return iter([Edit(setting.span.start, setting.span.end, self._value(value, setting).encode())])
        return self._new(self.spelled(key).lstrip("+~"), value)

    def _between(self, start: int, end: int) -> Edit | None:
        """A key with its value taken away from between braces, and the comma that parted it from its neighbour."""
        head = re.search(rb"([{,])\s*[\"']?[\w.-]+[\"']?\s*:\s*\Z", self.data[max(0, start - _LOOK_BACK) : start])
        if head is None:
            return None
        before = start - len(head[0])
        if head[1] == b",":
            return Edit(before, end, b"")
        tail = re.match(rb"\s*,\s*", self.data[end:])
        return Edit(before + 1, end + len(tail[0]), b"") if tail else None

    def _value(self, value: object, setting: Setting | None = None) -> str:
        if not isinstance(value, str) or self.json:
            return json.dumps(value)
        quote = self.data[setting.span.start : setting.span.start + 1] if setting is not None else b""
        if quote == b"'":
            return "'" + value.replace("'", "''") + "'"
        return json.dumps(value, ensure_ascii=False) if quote == b'"' else yaml_text(value)

    def _new(self, key: str, value: object) -> Iterator[Edit] | None:
        """A key put behind the last one of the mapping that is nearest to it."""
        node, parts = self.root, key.split(".")
        children = _children(node)
        if any("." in name for name in children):  # keys that are written with their dots
            parts = [key]
        while len(parts) > 1 and parts[0] in children and _children(children[parts[0]][1]):
            node = children[parts.pop(0)][1]
            children = _children(node)
        if not children or parts[0] in children or node is None:
            return None
        _, nested = self.new.setdefault(id(node), (node, {}))
        for part in parts[:-1]:
            nested = nested.setdefault(part, {})
        nested[parts[-1]] = _Leaf(value)
        return iter(())

    def rest(self) -> Iterator[Edit]:
        """New keys, those of one mapping together, behind the last one that it has."""
        for node, nested in self.new.values():
            key, value = node.value[-1]
            at = self._byte(value.end_mark.index)
            if node.flow_style:
                own = self.lines.indent(self._byte(key.start_mark.index))
                before = b"," + (b" " if own is None else self.lines.newline + own)
                yield Edit(at, at, before + before.join(item.encode() for item in self._items(nested)))
                continue
            while at and self.data[at - 1 : at].isspace():  # the mark of a block is where the next one begins
                at -= 1
            end = self.lines.end(at)
            lines = self._rows(nested, key.start_mark.column)
            yield Edit(end, end, b"".join(self.lines.newline + line.encode() for line in lines))

    def _items(self, nested: dict[str, Any]) -> list[str]:
        """Keys and values between braces."""
        return [
            f"{self._key(part)}: "
            + (self._value(inner.value) if isinstance(inner, _Leaf) else "{" + ", ".join(self._items(inner)) + "}")
            for part, inner in nested.items()
        ]

    def _rows(self, nested: dict[str, Any], column: int) -> Iterator[str]:
        """Keys and values on lines of their own."""
        for part, inner in nested.items():
            if isinstance(inner, _Leaf):
                yield " " * column + f"{part}: {self._value(inner.value)}"
            else:
                yield " " * column + f"{part}:"
                yield from self._rows(inner, column + self._step())

    def _key(self, part: str) -> str:
        return json.dumps(part) if self.json else part

    def _byte(self, index: int) -> int:
        return len(self.text[:index].encode())

    def _step(self) -> int:
        """Blanks by which a mapping inside another one goes in."""
        for key, inner in _children(self.root).values():
            for deeper, _ in _children(inner).values():
                if deeper.start_mark.line > key.start_mark.line:
                    return int(deeper.start_mark.column - key.start_mark.column) or 2
        return 2


def _children(node: Any) -> dict[str, tuple[Any, Any]]:  # noqa: ANN401 (nodes of yaml)
    """Keys of a mapping with their nodes; none of anything else."""
    if node is None or node.id != "mapping":
        return {}
    return {str(key.value): (key, value) for key, value in node.value}
