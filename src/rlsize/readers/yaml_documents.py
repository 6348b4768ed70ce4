"""
YAML as data: safe, bounded, with line numbers.

Stricter than YAML where looseness bites: no anchors or aliases (so no alias bombs), no tags, no duplicate keys, one
document; `no`, `on` and `1:30` stay text, `1e9` is a number.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlsize.errors import Fault, InputError

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
    """

    name: str
    data: Any
    lines: dict[Path_, int] = field(default_factory=dict)

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
        known = self.line(path)
        place = self.name if known is None else f"{self.name}:{known}"
        dotted = ".".join(str(part) for part in path)
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
    content = read_bytes(path, largest)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(Fault(f"is not UTF-8 text (byte {error.start})", str(path), "is it a binary file?")) from None
    if "\0" in text:
        raise InputError(Fault("holds NUL characters, so it is not text", str(path), "is it a binary file?"))
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

    try:
        _check_events(text, name)
        root = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "is not YAML"
        where = f"{name}:{mark.line + 1}" if mark is not None else name
        todo = "mend the line or the one above it"
        raise InputError(Fault(f"is not valid YAML: {problem}", where, todo)) from None
    builder = _Builder(name)
    data = builder.build(root, ()) if root is not None else None
    if builder.faults:
        raise InputError(*builder.faults)
    return Document(name, data, builder.lines)


def _check_events(text: str, name: str) -> None:
    """Refuse what must not be composed: aliases, tags, deep nesting, several documents."""
    import yaml

    depth = documents = 0
    for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        where = f"{name}:{event.start_mark.line + 1}" if event.start_mark else name
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise InputError(Fault("anchors and aliases are not read", where, "write the value out where it is used"))
        if getattr(event, "tag", None):
            raise InputError(Fault(f"the tag {getattr(event, 'tag', '')} is not read", where, "write plain values"))
        documents += isinstance(event, yaml.DocumentStartEvent)
        if documents > 1:
            raise InputError(Fault("holds more than one document", where, "keep one document to a file"))
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise InputError(Fault(f"is nested more than {DEEPEST} levels deep", where, "is it the file you meant?"))


class _Builder:
    """Builds plain data from composed nodes and notes lines and duplicate keys on the way."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: dict[Path_, int] = {}
        self.faults: list[Fault] = []

    def build(self, node: Any, path: Path_) -> Any:  # noqa: ANN401 (yaml nodes are untyped)
        self.lines.setdefault(path, node.start_mark.line + 1)
        if node.id == "scalar":
            return _scalar(node.value) if not node.style else node.value
        if node.id == "sequence":
            return [self.build(child, (*path, index)) for index, child in enumerate(node.value)]
        return self._mapping(node, path)

    def _mapping(self, node: Any, path: Path_) -> dict[str, Any]:  # noqa: ANN401 (yaml nodes are untyped)
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            where = f"{self.name}:{key_node.start_mark.line + 1}"
            if key_node.id != "scalar":
                self.faults.append(Fault("a key must be a word", where, "write `key: value`"))
                continue
            key = str(key_node.value)
            if key in result:
                what = f"the key {key} stands twice, first on line {self.lines[(*path, key)]}"
                self.faults.append(Fault(what, where, "keep one of them"))
                continue
            self.lines[(*path, key)] = key_node.start_mark.line + 1
            result[key] = self.build(value_node, (*path, key))
        return result


def _scalar(text: str) -> Any:  # noqa: ANN401 (a scalar is a str, int, float, bool or None)
    if text in _WORDS:
        return _WORDS[text]
    if len(text) <= 40:  # noqa: PLR2004 (no sensible number is longer)
        if _INTEGER.fullmatch(text):
            return int(text.replace("_", ""))
        if _FLOAT.fullmatch(text):
            return float(text.replace("_", ""))
    return text
