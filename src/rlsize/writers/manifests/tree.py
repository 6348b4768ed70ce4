"""An existing manifest as a tree of YAML nodes, each with its place in the text; bounded, and nothing constructed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from rlsize.errors import Fault, InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlsize.writers.manifests.resize import Step

Leaf: TypeAlias = "tuple[str, str]"
"""Tag and text of a scalar."""
Place: TypeAlias = "tuple[str | int, ...]"
"""Where a value stands: number of the document, then keys and numbers of entries."""

LARGEST = 2**20
DEEPEST = 40
MOST_EVENTS = 30_000


def composed(text: str, name: str) -> list[Any]:
    """
    The documents of a text as nodes; empty ones as None.

    Args:
        text: YAML, or JSON.
        name: Its file's name, for messages.

    Raises:
        InputError: It is too large or no YAML, or uses anchors, aliases or tags.
    """
    import yaml

    if len(text) > LARGEST:
        raise InputError(Fault(f"is larger than {LARGEST // 2**20} MiB", name, "is it the file you meant?"))
    try:
        _check(text, name)
        documents = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "is not YAML"
        where = f"{name}:{mark.line + 1}" if mark is not None else name
        raise InputError(Fault(f"is not valid YAML: {problem}", where, "mend the line or the one above it")) from None
    faults = [fault for document in documents for fault in _doubled(document, name)]
    if faults:
        raise InputError(*faults)
    return documents


def _check(text: str, name: str) -> None:
    """Refuse what must not be composed: aliases, tags, deep nesting, more nodes than any manifest has."""
    import yaml

    depth = 0
    for count, event in enumerate(yaml.parse(text, Loader=yaml.SafeLoader)):
        where = f"{name}:{event.start_mark.line + 1}" if event.start_mark else name
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise InputError(
                Fault("anchors and aliases are not read", where, "write the value out, or leave --base out")
            )
        if getattr(event, "tag", None):
            raise InputError(Fault(f"the tag {getattr(event, 'tag', '')} is not read", where, "write plain values"))
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST or count > MOST_EVENTS:
            raise InputError(Fault("is no manifest: too deep or too long", where, "is it the file you meant?"))


def _doubled(node: Any, name: str) -> Iterator[Fault]:  # noqa: ANN401 (yaml nodes are untyped)
    """Keys that stand twice: Kubernetes takes one of them, and which one is not ours to choose."""
    if node is None or node.id == "scalar":
        return
    if node.id == "mapping":
        seen: set[str] = set()
        for key, value in node.value:
            if key.id != "scalar" or key.value in seen:
                where = f"{name}:{key.start_mark.line + 1}"
                yield Fault(f"the key {key.value if key.id == 'scalar' else '?'} stands twice", where, "keep one")
            else:
                seen.add(key.value)
            yield from _doubled(value, name)
        return
    for entry in node.value:
        yield from _doubled(entry, name)


def child(node: Any, key: str) -> Any:  # noqa: ANN401 (yaml nodes are untyped)
    """The value at a key of a mapping; None where it is none or lacks the key."""
    if node is None or node.id != "mapping":
        return None
    return next((value for named, value in node.value if named.value == key), None)


def text_at(node: Any, *keys: str) -> str:  # noqa: ANN401 (yaml nodes are untyped)
    """The text of a scalar below a node; empty where there is none."""
    for key in keys:
        node = child(node, key)
    return str(node.value) if node is not None and node.id == "scalar" else ""


def below(node: Any, steps: tuple[Step, ...]) -> Iterator[tuple[Any, Place]]:  # noqa: ANN401 (yaml nodes are untyped)
    """The nodes that steps lead to, each with its place below the first; none where the way is not there."""
    if not steps:
        yield node, ()
        return
    step, rest = steps[0], steps[1:]
    for onward, part in _entries(node, step):
        for found, place in below(onward, rest):
            yield found, (part, *place)


def _entries(node: Any, step: Step) -> Iterator[tuple[Any, str | int]]:  # noqa: ANN401 (yaml nodes are untyped)
    if isinstance(step, str):
        onward = child(node, step)
        if onward is not None:
            yield onward, step
    elif node is not None and node.id == "sequence":
        key, value = step
        for index, entry in enumerate(node.value):
            if not key or text_at(entry, key) == value:
                yield entry, index


def leaves(documents: list[Any]) -> dict[Place, Leaf]:
    """Every scalar and every empty collection by its place."""
    found: dict[Place, Leaf] = {}
    for index, document in enumerate(documents):
        if document is not None:
            _gather(document, (index,), found)
    return found


def _gather(node: Any, place: Place, found: dict[Place, Leaf]) -> None:  # noqa: ANN401 (yaml nodes are untyped)
    if node.id == "scalar":
        found[place] = (node.tag, node.value)
    elif not node.value:
        found[place] = (node.tag, "")
    elif node.id == "sequence":
        for index, entry in enumerate(node.value):
            _gather(entry, (*place, index), found)
    else:
        for key, value in node.value:
            _gather(value, (*place, key.value), found)


def dotted(place: Place) -> str:
    """
    A place in words, without the number of its document.

    >>> dotted((0, "spec", "workerGroupSpecs", 1, "replicas"))
    'spec.workerGroupSpecs[1].replicas'
    """
    text = ""
    for part in place[1:]:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")
