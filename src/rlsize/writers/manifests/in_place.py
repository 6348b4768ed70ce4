"""
An existing manifest with the values of a resize, and nothing else, changed.

The text is edited where the values stand, so that comments, order and quotes stay. What came out is read again and
compared with what was there: a change that nobody asked for is refused, not written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from rlsize.errors import Fault, InputError, not_yaml, noting, refuse
from rlsize.units import some_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlsize.writers.manifests.resize import Edit, Expected, Pods, Resize, Step, Wanted

Leaf: TypeAlias = "tuple[str, str]"
"""Tag and text of a scalar."""
Place: TypeAlias = "tuple[str | int, ...]"
"""Where a value stands: number of the document, then keys and numbers of entries."""

LARGEST = 2**20
DEEPEST = 40
MOST_EVENTS = 30_000
_INT = "tag:yaml.org,2002:int"


class Changed(NamedTuple):
    """
    One value of a manifest that differs.

    Args:
        path: Where, such as spec.replicas.
        before: What was there; empty where nothing was.
        after: What is there now.
    """

    path: str
    before: str
    after: str


class Edited(NamedTuple):
    """
    A manifest after a resize.

    Args:
        text: All of it.
        changes: What differs; nothing where it was so already.
        versioned: Whether it carries a resourceVersion, with which an old one cannot be applied again.
    """

    text: str
    changes: tuple[Changed, ...]
    versioned: bool


def edited(text: str, name: str, resize: Resize, pods: Pods, wanted: Wanted) -> Edited:
    """
    The manifest with the resize in it.

    Args:
        text: The manifest as it is: YAML of one or more documents.
        name: Its file's name, for messages.
        resize: What changes, and what must be there.
        pods: The fleet as pods.
        wanted: Which object, by name and namespace.

    Raises:
        InputError: The object is not there, or its pods are not those that the plan counts; all faults at once.
    """
    documents = composed(text, name)
    node, place = _object(documents, name, resize, wanted)
    faults = [
        *(fault for expected in resize.expected for fault in _unexpected(node, expected, name)),
        *_wrong_gpus(node, resize.pods, pods, wanted, name),
    ]
    cuts: list[tuple[int, int, str]] = []
    goals: dict[Place, str] = {}
    for edit in resize.edits:
        with noting(faults):
            for onward, cut in _cut(text, node, edit, name):
                cuts.append(cut)
                goals[(*place, *onward)] = str(edit.value)
    refuse(faults)
    after = text
    for start, end, new in sorted(cuts, reverse=True):
        after = f"{after[:start]}{new}{after[end:]}"
    return Edited(
        text=after,
        changes=_verified(documents, composed(after, name), goals, name),
        versioned=bool(text_at(node, "metadata", "resourceVersion")),
    )


def _object(documents: list[Any], name: str, resize: Resize, wanted: Wanted) -> tuple[Any, Place]:
    """The one object of the kind and name, of a file of objects or of lists of them."""
    objects = [*_objects(documents)]
    named = [(node, place) for node, place in objects if text_at(node, "metadata", "name") == wanted.name]
    fitting = [
        (node, place)
        for node, place in named
        if text_at(node, "kind") == resize.kind
        and text_at(node, "apiVersion").rpartition("/")[0] == resize.api_version.rpartition("/")[0]
        and text_at(node, "metadata", "namespace") in {"", wanted.namespace}
    ]
    if len(fitting) == 1:
        return fitting[0]
    held = [f"{text_at(node, 'kind')} {_placed(node)}" for node, _ in objects]
    what = f"holds {len(fitting) or 'no'} {resize.kind} {wanted.name} of {resize.api_version} in {wanted.namespace}"
    todo = f"it has {some_of(held, 8) or 'no objects'}: check --platform, --name and --namespace"
    raise InputError(Fault(what, name, todo))


def _placed(node: Any) -> str:  # noqa: ANN401 (yaml nodes are untyped)
    """The name of an object, in its namespace where it says one."""
    return "/".join(part for key in ("namespace", "name") if (part := text_at(node, "metadata", key)))


def _objects(documents: list[Any]) -> Iterator[tuple[Any, Place]]:
    for index, document in enumerate(documents):
        items = child(document, "items")
        if text_at(document, "kind").endswith("List") and items is not None and items.id == "sequence":
            yield from ((item, (index, "items", number)) for number, item in enumerate(items.value))
        elif document is not None and document.id == "mapping":
            yield document, (index,)


def _unexpected(node: Any, expected: Expected, name: str) -> Iterator[Fault]:  # noqa: ANN401 (yaml nodes are untyped)
    found = [*below(node, expected.path)]
    value = found[0][0].value if found else str(expected.absent)
    if value != str(expected.value):
        line = found[0][0].start_mark.line + 1 if found else node.start_mark.line + 1
        yield Fault(f"{dotted(expected.path)} is {value}, not {expected.value}", f"{name}:{line}", expected.why)


def _wrong_gpus(node: Any, path: tuple[Step, ...], pods: Pods, wanted: Wanted, name: str) -> Iterator[Fault]:  # noqa: ANN401 (yaml nodes are untyped)
    """Pods that ask for other GPUs than the plan counts: as many replicas of them would be another fleet."""
    for spec, _ in below(node, path) if path else ():
        limits = [*below(spec, ("containers", ("", ""), "resources", "limits", wanted.gpu_resource))]
        held = [limit.value for limit, _ in limits if str(limit.value).isdigit()]
        total = sum(map(int, held))
        if held and total != pods.gpus_per_pod:
            where = f"{name}:{limits[0][0].start_mark.line + 1}"
            what = f"a pod asks for {total} {wanted.gpu_resource}, and the resize counts pods of {pods.gpus_per_pod}"
            yield Fault(what, where, f"change the pods first, or give --gpus-per-pod {total}")


def _cut(text: str, node: Any, edit: Edit, name: str) -> Iterator[tuple[Place, tuple[int, int, str]]]:  # noqa: ANN401 (yaml nodes are untyped)
    """
    Where below the object and in the text the value goes, and as what; nothing where what is there may stay.

    Raises:
        InputError: It cannot be told.
    """
    parents = [*below(node, edit.path[:-1])]
    key = str(edit.path[-1])
    holding = [(parent, where) for parent, where in parents if child(parent, key) is not None]
    chosen = holding or [entry for entry in parents if entry[0].id == "mapping" and entry[0].value]
    if len(chosen) != 1:
        many = "several places" if chosen else "no place"
        what = f"there is {many} for {dotted(edit.path)}"
        todo = "check --group and --gpu-resource, or write a patch without --base"
        raise InputError(Fault(what, f"{name}:{node.start_mark.line + 1}", todo))
    parent, onward = chosen[0]
    value = child(parent, key)
    if value is None:
        if not (edit.least or edit.most):
            yield (*onward, key), _inserted(text, parent, key, edit.value)
    elif value.id != "scalar":
        where = f"{name}:{value.start_mark.line + 1}"
        raise InputError(Fault(f"{dotted(edit.path)} is no number", where, "mend the manifest"))
    elif not _stays(value, edit):
        start = value.start_mark.index
        gap = " " if start and text[start - 1] == ":" else ""
        yield (*onward, key), (start, value.end_mark.index, f"{gap}{edit.value}")


def _stays(node: Any, edit: Edit) -> bool:  # noqa: ANN401 (yaml nodes are untyped)
    """Whether a value may stay as it is."""
    if node.tag != _INT or not node.value.isdigit():
        return False
    held, value = int(node.value), edit.value
    if isinstance(value, str):
        return False
    return held == value or (edit.least and held > value) or (edit.most and held < value)


def _inserted(text: str, parent: Any, key: str, value: int | str) -> tuple[int, int, str]:  # noqa: ANN401 (yaml nodes are untyped)
    """A new first key of a mapping, in the style in which the mapping is written."""
    start = parent.start_mark.index
    if parent.flow_style:
        return start + 1, start + 1, f'"{key}": {value}, '
    end = "\r\n" if "\r\n" in text else "\n"
    return start, start, f"{key}: {value}{end}{' ' * parent.start_mark.column}"


def _verified(before: list[Any], after: list[Any], goals: dict[Place, str], name: str) -> tuple[Changed, ...]:
    """
    What differs between the two, which must be what was asked for.

    Raises:
        InputError: Something else differs: the manifest is written in a way that cannot be edited safely.
    """
    old, new = leaves(before), leaves(after)
    changed = [
        place for place in [*new, *(place for place in old if place not in new)] if old.get(place) != new.get(place)
    ]
    wrong = [place for place in changed if place not in goals]
    missed = [place for place, value in goals.items() if new.get(place, ("", ""))[1] != value]
    if wrong or missed or len(before) != len(after):
        where = ", ".join(dotted(place[1:]) for place in (wrong or missed)[:3])
        what = f"cannot be edited without changing {where or 'other documents'}"
        raise InputError(Fault(what, name, "write a patch: leave --base out"))
    return tuple(
        Changed(path=dotted(place[1:]), before=old.get(place, ("", ""))[1], after=new[place][1]) for place in changed
    )


# ---- the manifest as a tree of YAML nodes, each with its place in the text; bounded, and nothing constructed ----


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
        fault = not_yaml(error, DEEPEST, name, lambda mark: f"{name}:{mark.line + 1}")
        raise InputError(fault) from None
    refuse(fault for document in documents for fault in _doubled(document, name))
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
    there = [(document, (index,)) for index, document in enumerate(documents) if document is not None]
    return {place: leaf for document, first in there for place, leaf in _leaves(document, first)}


def _leaves(node: Any, place: Place) -> Iterator[tuple[Place, Leaf]]:  # noqa: ANN401 (yaml nodes are untyped)
    if node.id == "scalar" or not node.value:
        yield place, (node.tag, node.value or "")
    else:
        parts = enumerate(node.value) if node.id == "sequence" else ((key.value, value) for key, value in node.value)
        for part, below_it in parts:
            yield from _leaves(below_it, (*place, part))


def dotted(path: tuple[Step | int, ...]) -> str:
    """
    A path, or a place below its document, in words.

    >>> dotted(("spec", "workerGroupSpecs", 1, "replicas")), dotted(("spec", "workerGroupSpecs", ("name", "small")))
    ('spec.workerGroupSpecs[1].replicas', 'spec.workerGroupSpecs[small]')
    """
    inside = (part[1] if isinstance(part, tuple) else part for part in path)
    parts = zip(path, inside, strict=True)
    return "".join(f".{name}" if isinstance(part, str) else f"[{name}]" for part, name in parts).removeprefix(".")
