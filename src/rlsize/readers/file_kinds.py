"""The kinds of files that rlsize reads: the fact that each holds, its folder of profiles, and its JSON Schema."""

from __future__ import annotations

import json
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from rlsize.readers.validation import VERSION, adapter

if TYPE_CHECKING:
    from collections.abc import Mapping


class FileKind(NamedTuple):
    """
    One kind of file.

    Args:
        name: What its header says.
        declared: Module and class of what it holds, below `rlsize`.
        folder: Folder of its profiles, under the shipped one and the user's; empty where it is no profile.
    """

    name: str
    declared: str
    folder: str = ""

    def fact(self) -> type[Any]:
        """The dataclass of what it holds; loaded when it is asked for."""
        module, _, name = self.declared.rpartition(".")
        found: type[Any] = getattr(import_module(f"rlsize.{module}"), name)
        return found


_KINDS = (
    FileKind("scenario", "quantities.scenario.Scenario"),
    FileKind("gpu", "facts.gpu.Gpu", "gpus"),
    FileKind("link", "facts.link.Link", "links"),
    FileKind("model", "facts.model.Model", "models"),
    FileKind("price", "facts.price.Price", "prices"),
    FileKind("cluster", "facts.link.Cluster", "clusters"),
    FileKind("framework", "facts.framework.Framework", "frameworks"),
    FileKind("rates", "facts.rates.Rates", "rates"),
    FileKind("calibration", "facts.calibration.Calibration"),
    FileKind("board", "facts.board.Board"),
    FileKind("budget", "facts.budget.Budget"),
    FileKind("mapping", "facts.run_log.KeyMapping"),
    FileKind("plan", "facts.plan.Plan"),
    FileKind("observation", "facts.observations.RunObservation"),
)

KINDS: Mapping[str, FileKind] = MappingProxyType({kind.name: kind for kind in _KINDS})
"""Every kind by name."""

FOLDERS: Mapping[str, str] = MappingProxyType({kind.name: kind.folder for kind in _KINDS if kind.folder})
"""The folder of each kind of profile."""


def schema_of(kind: str) -> dict[str, Any]:
    """
    The JSON Schema (draft 2020-12) of a file kind, its header included.

    Args:
        kind: One of `KINDS`.
    """
    fact: Any = KINDS[kind].fact()
    schema = adapter(fact).json_schema()
    header = {
        "type": "object",
        "description": "What this file is.",
        "properties": {"kind": {"const": kind}, "version": {"const": VERSION}},
        "required": ["kind", "version"],
        "additionalProperties": False,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"rlsize {kind} file",
        **{key: value for key, value in schema.items() if key != "title"},
        "properties": {"rlsize": header, **schema["properties"]},
        "required": ["rlsize", *schema.get("required", [])],
    }


@cache
def schema_text(kind: str) -> str:
    """
    The JSON Schema of a file kind as a file has it.

    Args:
        kind: One of `KINDS`.
    """
    return json.dumps(schema_of(kind), indent=2, ensure_ascii=False) + "\n"
