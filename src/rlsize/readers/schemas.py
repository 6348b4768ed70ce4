"""JSON Schemas of the files that rlsize reads, made from the same declarations that check them."""

from __future__ import annotations

from typing import Any

from rlsize.readers.kinds import KINDS
from rlsize.readers.validation import VERSION, adapter


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
