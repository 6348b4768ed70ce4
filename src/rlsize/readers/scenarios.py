"""Scenario files: YAML, checked against `facts.scenario`, with the line of every key kept for messages."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlsize.readers.validation import opened, validated
from rlsize.readers.yaml_documents import Document, read_document

if TYPE_CHECKING:
    from rlsize.facts.scenario import Scenario


@dataclass(frozen=True, slots=True)
class ScenarioFile:
    """
    A scenario and where each of its values stands.

    Args:
        scenario: What the file says.
        document: The file, for lines.
    """

    scenario: Scenario
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

    @property
    def folder(self) -> Path:
        """The folder that relative paths in the file start from."""
        return Path(self.document.name).parent


def read_scenario(path: str | Path) -> ScenarioFile:
    """
    A scenario file.

    Raises:
        InputError: Everything that is wrong with it, with file, line and key.
    """
    from rlsize.facts.scenario import Scenario

    document = opened(read_document(path), "scenario")
    return ScenarioFile(validated(Scenario, document), document)
