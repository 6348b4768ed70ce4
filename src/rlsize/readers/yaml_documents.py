"""
YAML as data: safe, bounded, with line numbers.

Stricter than YAML where looseness bites: no anchors or aliases (so no alias bombs), no tags, no duplicate keys, one
document; `no`, `on` and `1:30` stay text, `1e9` is a number.
"""

from __future__ import annotations

import math
import re
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlsize.errors import Fault, InputError, not_yaml, refuse, too_deep
from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

LARGEST_FILE = 4 * 2**20
DEEPEST = 40

_INTEGER = re.compile(r"[-+]?[0-9][0-9_]*")
_FLOAT = re.compile(r"[-+]?(?:[0-9][0-9_]*\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_WORDS = {
    "null": None, "Null": None, "NULL": None, "~": None, "": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
    ".nan": math.nan, ".NaN": math.nan, ".inf": math.inf, "-.inf": -math.inf,
}  # fmt: skip

Path_ = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """
    What a YAML file says.

    Args:
        name: The file's name, for messages.
        data: Its content as dicts, lists and scalars.
        lines: The line of each key path, counted from 1.
        changed: Key paths that `--set` says anew.
    """

    name: str
    data: Any
    lines: dict[Path_, int] = field(default_factory=dict)
    changed: frozenset[Path_] = frozenset()

    @property
    def kind(self) -> Any:  # noqa: ANN401 (as it is written)
        """The kind that its header says; None where it does not say."""
        header = self.data.get("rlsize") if isinstance(self.data, dict) else None
        return header.get("kind") if isinstance(header, dict) else None

    def line(self, path: Path_) -> int | None:
        """The line of a path, or of its nearest parent that the file has; None where there is none."""
        return next((self.lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in self.lines), None)

    def where(self, path: Path_) -> str:
        """
        File, line and key of a path, or of its nearest parent that the file has.

        >>> Document("a.yaml", {}, {("gpu",): 3}).where(("gpu", "memory"))
        'a.yaml:3: gpu.memory'
        """
        dotted = ".".join(str(part) for part in path)
        if any(path[:end] in self.changed for end in range(1, len(path) + 1)):
            return f"--set {dotted}"
        known = self.line(path)
        place = self.name if known is None else f"{self.name}:{known}"
        return f"{place}: {dotted}" if dotted else place


def read_bytes(path: str | Path, largest: int = LARGEST_FILE) -> bytes:
    """
    The bytes of a file of bounded size.

    Raises:
        InputError: It is missing, a directory or a device, unreadable or too large.
    """
    file = Path(path)
    try:
        if file.is_dir():
            raise InputError(Fault("is a directory, not a file", str(path), "name a file inside it"))
        if not file.exists():
            raise InputError(Fault("no such file", str(path), "check the path"))
        if not file.is_file():
            raise InputError(Fault("is not a regular file", str(path), "name a file on disk"))
        with file.open("rb") as stream:
            content = stream.read(largest + 1)
    except (OSError, ValueError) as error:
        what = f"cannot be read: {getattr(error, 'strerror', None) or error}"
        raise InputError(Fault(what, str(path), "check the path and its permissions")) from None
    if len(content) > largest:
        raise InputError(Fault(f"is larger than {largest // 2**20} MiB", str(path), "is it the file you meant?"))
    return content


def read_text(path: str | Path, largest: int = LARGEST_FILE) -> str:
    """
    The text of a UTF-8 file of bounded size.

    Raises:
        InputError: As `read_bytes`, or it is not text.
    """
    return decoded(read_bytes(path, largest), str(path))


def decoded(content: bytes, name: str, todo: str = "is it a binary file?") -> str:
    """
    UTF-8 as text.

    Raises:
        InputError: It is none, or no text; `todo` is what to do about it.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(Fault(f"is not UTF-8 text (byte {error.start})", name, todo)) from None
    if "\0" in text:
        raise InputError(Fault("holds NUL characters, so it is not text", name, todo))
    return text


def read_document(path: str | Path) -> Document:
    """
    A YAML file, checked for form but not for meaning.

    Raises:
        InputError: What is wrong, with file and line.
    """
    return parse_document(read_text(path), str(path))


def parse_document(text: str, name: str) -> Document:
    r"""
    YAML text as a document.

    Raises:
        InputError: What is wrong, with file and line; all duplicate keys at once.

    >>> parse_document("a: 1e9\nb: [no, 2]", "x.yaml").data
    {'a': 1000000000.0, 'b': ['no', 2]}
    """
    import yaml

    events = _sound_events(text, name)
    builder = _Builder(name, events)
    try:
        data = builder.build(root, ()) if (root := next(events, None)) is not None else None
        next(events, None)  # nothing follows, or a fault tells what
    except yaml.YAMLError as error:
        fault = not_yaml(error, DEEPEST, name, lambda mark: f"{name}:{mark.line + 1}")
        raise InputError(fault) from None
    refuse(builder.faults)
    return Document(name, data, builder.lines)


def _sound_events(text: str, name: str) -> Iterator[Any]:
    """Scalars and starts of collections, None where one ends; refuses aliases, tags, deep nesting, more documents."""
    import yaml

    depth = documents = 0
    for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        if isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
            yield None
        elif isinstance(event, yaml.NodeEvent):
            depth += isinstance(event, yaml.CollectionStartEvent)
            if event.anchor or getattr(event, "tag", None) or depth > DEEPEST:
                raise InputError(_unread(event, name))
            yield event
        elif isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise InputError(Fault("holds more than one document", _at(event, name), "keep one document to a file"))


def _at(event: Any, name: str) -> str:  # noqa: ANN401 (yaml events are untyped)
    return f"{name}:{event.start_mark.line + 1}"


def _unread(event: Any, name: str) -> Fault:  # noqa: ANN401 (yaml events are untyped)
    where = _at(event, name)
    if event.anchor:
        return Fault("anchors and aliases are not read", where, "write the value out where it is used")
    if event.tag:
        return Fault(f"the tag {event.tag} is not read", where, "write plain values")
    return too_deep(DEEPEST, where)


class _Builder:
    """Builds plain data from events and notes lines and duplicate keys on the way."""

    def __init__(self, name: str, events: Iterator[Any]) -> None:
        self.name, self.events = name, events
        self.lines: dict[Path_, int] = {}
        self.faults: list[Fault] = []

    def build(self, event: Any, path: Path_) -> Any:  # noqa: ANN401 (yaml events are untyped)
        import yaml

        self.lines.setdefault(path, event.start_mark.line + 1)
        if isinstance(event, yaml.ScalarEvent):
            return event.value if event.style else _scalar(event.value)
        children = iter(self.events.__next__, None)
        if isinstance(event, yaml.SequenceStartEvent):
            return [self.build(child, (*path, index)) for index, child in enumerate(children)]
        return self._mapping(children, path)

    def _mapping(self, children: Iterator[Any], path: Path_) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for child in children:
            where, key = _at(child, self.name), getattr(child, "value", None)
            if key is None:
                self.faults.append(Fault("a key must be a word", where, "write `key: value`"))
                self._pass_over(child)
            elif key in result:
                what = f"the key {key} stands twice, first on line {self.lines[(*path, key)]}"
                self.faults.append(Fault(what, where, "keep one of them"))
            else:
                self.lines[(*path, key)] = child.start_mark.line + 1
                result[key] = self.build(next(children), (*path, key))
                continue
            self._pass_over(next(children))
        return result

    def _pass_over(self, event: Any) -> None:  # noqa: ANN401 (yaml events are untyped)
        _Builder(self.name, self.events).build(event, ())


def _scalar(text: str) -> Any:  # noqa: ANN401 (a scalar is a str, int, float, bool or None)
    if text in _WORDS:
        return _WORDS[text]
    if len(text) <= 40:  # noqa: PLR2004 (no sensible number is longer)
        if _INTEGER.fullmatch(text):
            return int(text.replace("_", ""))
        if _FLOAT.fullmatch(text):
            return float(text.replace("_", ""))
    return text
