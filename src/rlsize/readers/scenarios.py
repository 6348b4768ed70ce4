"""Scenario files: YAML, checked against `quantities.scenario`, with the line of every key kept for messages."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlsize.errors import Fault, InputError, suggestion
from rlsize.readers.validation import opened, validated
from rlsize.readers.yaml_documents import Document, parse_document, read_document

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_IN_PLAN = "scenario"  # the key of a saved plan below which its scenario stands


@dataclass(frozen=True, slots=True)
class ScenarioFile:
    """
    A scenario and where each of its values stands.

    Args:
        scenario: What the file says.
        document: The file, for lines.
    """

    scenario: Any
    document: Document

    def value(self, key: str) -> Any:  # noqa: ANN401 (any field)
        """The value at a dotted key; None where the file does not say."""
        node: Any = self.scenario
        for part in key.split("."):
            node = getattr(node, part, None)
            if node is None:
                return None
        return node

    def where(self, key: str) -> str:
        """File, line and key."""
        return self.document.where(tuple(key.split(".")))

    def leaves(self) -> tuple[str, ...]:
        """The dotted keys that it gives a value."""
        return tuple(_leaves(self.document.data))

    @property
    def folder(self) -> Path:
        """The folder that relative paths in the file start from."""
        return Path(self.document.name).parent


def read_scenario(path: str | Path | None, changes: Iterable[str] = ()) -> ScenarioFile:
    """
    A scenario: a file of its own, or the one that a saved plan holds.

    Args:
        path: The file; an empty scenario when None.
        changes: What is said in its place: `key=value`, the key dotted.

    Raises:
        InputError: Everything that is wrong with it, with file, line and key.
    """
    return scenario_of(Document("--set", {}) if path is None else _opened(read_document(path)), changes)


def scenario_of(document: Document, changes: Iterable[str] = ()) -> ScenarioFile:
    """
    The scenario in a document that has no header any more; as `read_scenario`.

    Raises:
        InputError: Everything that is wrong with it.
    """
    from rlsize.quantities.scenario import Scenario

    document = _changed(document, changes)
    return ScenarioFile(validated(Scenario, document), document)


def _opened(document: Document) -> Document:
    """The scenario in a file, without its header; that of a plan stands below a key of its own."""
    header = document.data.get("rlsize") if isinstance(document.data, dict) else None
    if not (isinstance(header, dict) and header.get("kind") == "plan"):
        return opened(document, "scenario")
    plan = opened(document, "plan")
    found = plan.data.get(_IN_PLAN)
    if not isinstance(found, dict):
        what = f"is a plan without a {_IN_PLAN}: rlsize before 0.2 wrote none, and that of a hybrid loop has none"
        todo = "make it again with `rlsize plan SCENARIO --save`, or name the scenario that it was made from"
        raise InputError(Fault(what, document.name, todo))
    lines = {path[1:]: line for path, line in plan.lines.items() if path[:1] == (_IN_PLAN,)}
    return Document(document.name, found, lines)


def _changed(document: Document, changes: Iterable[str]) -> Document:
    """The document with some values said anew."""
    from rlsize.quantities.table import PLACES

    faults = []
    data = deepcopy(document.data)
    for change in changes:
        key, equals, value = change.partition("=")
        place = key.strip()
        if not equals:
            faults.append(Fault(f"{change[:60]!r} has no value", "--set", "write key=value"))
        elif place not in (*PLACES, "workload.response_tokens") and not place.startswith("budget."):
            faults.append(Fault(f"the key {place[:60]} is unknown", "--set", suggestion(place[:60], PLACES)))
        elif not _put(data, place.split("."), parse_document(f"value: {value.strip()}", "--set").data["value"]):
            faults.append(Fault(f"{place} lies below a key that holds a value", "--set", "change that key instead"))
    if faults:
        raise InputError(*faults)
    return replace(document, data=data)


def _put(data: Any, path: list[str], value: Any) -> bool:  # noqa: ANN401 (YAML content)
    """Set a value; whether there is a place for it."""
    node = data
    for part in path[:-1]:
        node = node.setdefault(part, {}) if isinstance(node, dict) else None
        if node is None:
            return False
    if not isinstance(node, dict):
        return False
    node[path[-1]] = value
    return True


def _leaves(data: Any, above: str = "") -> Iterator[str]:  # noqa: ANN401 (YAML content)
    if not isinstance(data, dict):
        if data is not None:
            yield above
        return
    for key, value in data.items():
        yield from _leaves(value, f"{above}.{key}" if above else str(key))
