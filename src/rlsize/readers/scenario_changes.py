"""Two files of one kind, key by key: what differs, as it is written, and scenarios in between."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import is_dataclass
from os.path import relpath
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rlsize.errors import InputError
from rlsize.frozen import dataclass
from rlsize.readers.scenarios import ScenarioFile
from rlsize.readers.validation import validated
from rlsize.readers.yaml_documents import Document, read_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rlsize.readers.yaml_documents import Path_

_FILES: tuple[Path_, ...] = (
    ("model",),
    ("rates", "instance_tokens_per_second"),
    ("workload", "response_tokens", "file"),
)
"""Keys of a scenario that may name another file, from the scenario's folder."""
_CONFIG = "config.json"  # of a model that is named by its folder


class Leaf(NamedTuple):
    """
    A key whose value differs between two files.

    Args:
        path: The key.
        before: The value in the first file, as it is written; None where that does not say.
        after: The value in the second.
        before_line: The line that it stands on.
        after_line: The line in the second file.
    """

    path: Path_
    before: Any
    after: Any
    before_line: int | None = None
    after_line: int | None = None

    @property
    def key(self) -> str:
        """The key with dots."""
        return ".".join(str(part) for part in self.path)


def changed_leaves(before: Document, after: Document, facts: tuple[object, object]) -> tuple[Leaf, ...]:
    """
    The keys whose values differ; what is only written otherwise (8k for 8000) does not.

    Args:
        before: The first file, without its header.
        after: The second file, likewise.
        facts: What each of them says, as dataclasses.

    Returns:
        In the order of the first file, then of the second; a list is one value.
    """
    return tuple(
        _leaf(path, (before, first), (after, second))
        for path, first, second in _pairs(before.data, after.data, ())
        if _at(facts[0], path) != _at(facts[1], path)
    )


def _leaf(path: Path_, before: tuple[Document, Any], after: tuple[Document, Any]) -> Leaf:
    """A key with both values, each beside its document."""
    lines = [document.lines.get(path) if value is not None else None for document, value in (before, after)]
    return Leaf(path=path, before=before[1], after=after[1], before_line=lines[0], after_line=lines[1])


def changed_scenario(before: ScenarioFile, after: ScenarioFile) -> tuple[Leaf, ...]:
    """The keys of two scenarios whose values differ, or that name two files of one name with other contents."""
    found = changed_leaves(before.document, after.document, (before.scenario, after.scenario))
    return (*found, *_other_files(before, after))


def _pairs(before: Any, after: Any, path: Path_) -> Iterator[tuple[Path_, Any, Any]]:  # noqa: ANN401 (any YAML content)
    """Both values at every key at which either file has one."""
    sides = [{} if side is None else side for side in (before, after)]
    if not all(isinstance(side, dict) for side in sides):
        yield path, before, after
        return
    first, second = sides
    for key in dict.fromkeys((*first, *second)):
        yield from _pairs(first.get(key), second.get(key), (*path, key))


def _at(fact: Any, path: Path_) -> Any:  # noqa: ANN401 (any fact, and any value in it)
    """What a fact says at a path; None where it does not."""
    for part in path:
        if isinstance(fact, dict):
            fact = fact.get(part)
        else:
            fact = getattr(fact, str(part), None) if is_dataclass(fact) else None
    return fact


def _other_files(before: ScenarioFile, after: ScenarioFile) -> Iterator[Leaf]:
    """Keys that say the same, and mean another file, as the scenarios lie in other folders."""
    if not _apart(before, after):
        return
    for path in _FILES:
        name = _at(before.scenario, path)
        if not isinstance(name, str) or _at(after.scenario, path) != name:
            continue
        first, second = (file.folder / name for file in (before, after))
        if _content(first) != _content(second):
            yield _leaf(path, (before.document, str(first)), (after.document, str(second)))


def _apart(before: ScenarioFile, after: ScenarioFile) -> bool:
    """Whether two scenarios lie in different folders."""
    return before.folder.absolute() != after.folder.absolute()


def _content(path: Path) -> bytes | None:
    """What a file holds; None where there is none, or it cannot be read, which is told where it is used."""
    try:
        return read_bytes(path / _CONFIG if path.is_dir() else path)
    except (InputError, OSError, ValueError):
        return None


@dataclass(frozen=True, slots=True)
class _Mixed(Document):
    """
    A document with some values of another, which faults and sources name where those values stand.

    Args:
        other: The other document.
        taken: Keys whose values are its.
    """

    other: Document | None = None
    taken: frozenset[Path_] = frozenset()

    def where(self, path: Path_) -> str:
        """File, line and key of a path in the file that it is of."""
        theirs = any(path[: len(key)] == key for key in self.taken)
        return self.other.where(path) if self.other and theirs else Document.where(self, path)


def mixed(before: ScenarioFile, after: ScenarioFile, leaves: Iterable[Leaf]) -> ScenarioFile:
    """
    The first scenario with some values of the second.

    Args:
        before: The first scenario.
        after: The second.
        leaves: What is taken of it.

    Raises:
        InputError: What is wrong with it.
    """
    from rlsize.quantities.scenario import Scenario

    taken = tuple(leaves)
    data = deepcopy(before.document.data)
    for leaf in taken:
        _put(data, leaf.path, _from_folder(after, leaf) if _apart(before, after) else deepcopy(leaf.after))
    old = before.document
    paths = frozenset(leaf.path for leaf in taken)
    document = _Mixed(old.name, data, old.lines, old.changed, other=after.document, taken=paths)
    return ScenarioFile(validated(Scenario, document), document)


def _from_folder(file: ScenarioFile, leaf: Leaf) -> Any:  # noqa: ANN401 (any YAML content)
    """A value as it is meant in another folder: the name of a file there by its whole path."""
    value = _at(file.scenario, leaf.path)
    if leaf.path not in _FILES or not isinstance(value, str) or not _is_path(leaf.path, value):
        return deepcopy(leaf.after)
    return str((file.folder / value).absolute())


def _is_path(path: Path_, value: str) -> bool:
    """Whether a key that may name a file does: a bare name of a model is a profile's, and ~ is in no other folder."""
    if path[0] == "rates":
        return value.endswith((".yaml", ".yml"))  # a rate with a spread is text too
    if path != ("model",):
        return True
    return not value.startswith("~") and (value.startswith(".") or "/" in value or value.endswith(".json"))


def leaves_of(file: ScenarioFile) -> dict[str, Any]:
    """What a scenario says, as it is written, by dotted key; a bare response length is its mean."""
    length = "workload.response_tokens"
    return {f"{length}.mean" if key == length else key: value for key, value in file.leaves().items()}


def named_from(place: str, value: Any, folder: Path | None, target: str) -> Any:  # noqa: ANN401 (any YAML content)
    """
    A value as a scenario elsewhere says it: the name of a file that it may be as it reads from there.

    Args:
        place: Its dotted key.
        value: As it is written.
        folder: Where its scenario lies; None where a flag says it.
        target: The scenario that it is for.
    """
    path = tuple(place.split("."))
    if path not in _FILES or not isinstance(value, str) or not _is_path(path, value):
        return value
    here, there = Path(folder or ".").absolute(), Path(target).absolute().parent
    if here == there or value.startswith("~"):
        return value
    found = relpath(here / value, there)
    return found if "/" in found else f"./{found}"


def _put(data: dict[Any, Any], path: Path_, value: Any) -> None:  # noqa: ANN401 (any YAML content)
    """Set a value, or take it away with all that it leaves empty."""
    *above, last = path
    nodes = [data]
    for part in above:
        below = nodes[-1].get(part)
        if not isinstance(below, dict):
            below = nodes[-1][part] = {}
        nodes.append(below)
    if value is not None:
        nodes[-1][last] = value
        return
    nodes[-1].pop(last, None)
    for node, part in zip(reversed(nodes[:-1]), reversed(above), strict=True):
        if not node[part]:
            del node[part]
