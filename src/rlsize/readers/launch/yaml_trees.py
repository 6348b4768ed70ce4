"""
YAML as authors of launch configurations write it, as trees with places.

Looser than rlsize's own files (`readers/yaml_documents.py`): anchors, aliases, merge keys and several documents are
read, of a key that stands twice the last one counts, and scalars have the types that PyYAML gives them (`yes` is true,
`1e-6` is text), as trainers read these files with it. Trees are made from events, so that an alias knows its place;
aliases are written out against a bound, and tags that would construct objects are left out.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from rlsize.dataclass import replace
from rlsize.errors import Fault, InputError, not_yaml
from rlsize.readers.launch.nodes import DEEPEST, Count, Held, Node, merged, placeless, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlsize.facts.launch import Span
    from rlsize.readers.launch.nodes import Places

_TAG = "tag:yaml.org,2002:"
_PLAIN_TAGS = {f"{_TAG}{name}" for name in ("str", "int", "float", "bool", "null", "map", "seq")}
_PROPERTIES = re.compile(r"(?:[&!]\S*\s+)*+")
_LONGEST_NUMBER = 40


def yaml_trees(text: str, places: Places, notes: list[str], count: Count | None = None) -> list[Node]:
    """
    The documents of a YAML text.

    Args:
        text: The text.
        places: The places in it.
        notes: Takes keys that stand twice.
        count: The nodes so far, over all files that are read together.

    Raises:
        InputError: It is not YAML, too deep or too large, with file and line.
    """
    import yaml

    reader = _Reader(text, places, notes, count or Count(places.file))
    try:
        return list(reader.documents())
    except yaml.YAMLError as error:
        fault = not_yaml(error, DEEPEST, places.file, lambda mark: str(places.span(mark.index, mark.index)))
        raise InputError(fault) from None


def scalar(text: str) -> int | float | str | bool | None:
    """
    What plain text means in YAML, as PyYAML has it; times and base 60 stay text.

    >>> [scalar(text) for text in ("131_072", "yes", "1e-6", "0.5", "~", "1:30")]
    [131072, True, '1e-6', 0.5, None, '1:30']
    """
    import yaml

    if len(text) > _LONGEST_NUMBER or ":" in text:
        return text
    constructor = _constructor()
    tag = constructor.resolve(yaml.ScalarNode, text, (True, False))
    if tag not in _PLAIN_TAGS:
        return text
    try:
        found: int | float | str | bool | None
        found = constructor.construct_object(yaml.ScalarNode(tag, text))
    except (ValueError, yaml.YAMLError):
        return text
    return found


@cache
def _constructor() -> Any:  # noqa: ANN401 (PyYAML's own class)
    """What types plain text as PyYAML does."""
    import yaml

    return yaml.SafeLoader("")


class _Reader:
    """Makes trees of events."""

    def __init__(self, text: str, places: Places, notes: list[str], count: Count) -> None:
        import yaml

        self._text = text
        self._places = places
        self._notes = notes
        self._count = count
        self._anchors: dict[str, Node] = {}
        self._end = 0
        # The events of PyYAML have no types.
        self._events: Iterator[Any] = yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))

    def documents(self) -> Iterator[Node]:
        import yaml

        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                self._anchors = {}
                yield self._node(next(self._events), 0)

    def _node(self, event: Any, depth: int) -> Node:  # noqa: ANN401 (events have no types)
        import yaml

        start, end = event.start_mark.index, event.end_mark.index
        if isinstance(event, yaml.AliasEvent):
            return self._alias(str(event.anchor), self._span(start, end), depth)
        start = min(_PROPERTIES.match(self._text, start, max(start, end)).end(), end)  # type: ignore[union-attr] # matches nothing too
        self._count.one(depth, self._places.span(start, start))
        held: Held
        if isinstance(event, yaml.ScalarEvent):
            held = self._scalar(event)
            if event.style in {"|", ">"}:
                end = start + len(self._text[start:end].rstrip())
        elif isinstance(event, yaml.SequenceStartEvent):
            held = []
            while not isinstance(inner := next(self._events), yaml.SequenceEndEvent):
                held.append(self._node(inner, depth + 1))
            end = self._ended(event, inner, start)
        else:
            held = self._mapping(depth)
            end = self._ended(event, self._last, start)
        node = Node(held, self._span(start, end))
        if event.tag is not None and event.tag not in _PLAIN_TAGS:
            node = Node(None, node.span, why_not="its tag would make an object, and objects are not made here")
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _span(self, start: int, end: int) -> Span:
        self._end = max(self._end, end)
        return self._places.span(start, end)

    def _ended(self, first: Any, last: Any, start: int) -> int:  # noqa: ANN401 (events have no types)
        """Where a collection ends: at its bracket, or with the last thing in it."""
        return int(last.end_mark.index) if first.flow_style else max(self._end, start)

    def _alias(self, name: str, span: Span, depth: int) -> Node:
        node = self._anchors.get(name)
        if node is None:
            what = f"the alias *{shown(name)} names nothing that stands above it"
            raise InputError(Fault(what, str(span), "write the value out"))
        if isinstance(node.value, dict | list):
            return placeless(node, self._count, depth)
        self._count.one(depth, span)
        return replace(node, span=span)

    @staticmethod
    def _scalar(event: Any) -> int | float | str | bool | None:  # noqa: ANN401 (events have no types)
        typed = event.implicit[0] or (event.tag in _PLAIN_TAGS and event.tag != f"{_TAG}str")
        return scalar(event.value) if typed else str(event.value)

    def _mapping(self, depth: int) -> dict[str, Node]:
        import yaml

        held: dict[str, Node] = {}
        under: list[Node] = []
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            place = self._places.span(event.start_mark.index, event.start_mark.index)
            key_node = self._node(event, depth + 1)
            node = self._node(next(self._events), depth + 1)
            key = event.value if isinstance(event, yaml.ScalarEvent) else key_node.plain
            if not isinstance(key, str):
                self._notes.append(f"{place}: a key that is no word is left out, with its value")
            elif key == "<<" and isinstance(event, yaml.ScalarEvent) and event.implicit[0]:
                under += _bases(node)
            else:
                if key in held:
                    self._notes.append(f"{place}: {shown(key)} stands twice: the last one counts")
                held[key] = node
        self._last = event
        for base in under:
            held = {**base.value, **held}  # type: ignore[dict-item] # bases are mappings
        return held


def _bases(node: Node) -> list[Node]:
    """
    The mappings that a merge key names, the strongest first.

    Raises:
        InputError: It names something else.
    """
    bases = node.value if isinstance(node.value, list) else [node]
    if all(isinstance(base.value, dict) for base in bases):
        return bases
    raise InputError(Fault("the merge key << names no mapping", str(node.span), "name an anchor of a mapping"))


def one_tree(documents: list[Node], notes: list[str]) -> Node | None:
    """All documents in one, later ones over earlier ones; None where none is a mapping."""
    found = [document for document in documents if isinstance(document.value, dict)]
    if not found:
        return None
    root = found[0]
    for document in found[1:]:
        root = merged(root, document)
    if len(found) > 1:
        notes.append(f"{root.span.file} holds {len(found)} documents: what a later one says counts")
    return root
