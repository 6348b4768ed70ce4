"""`rlsize schema`: print the JSON Schema of a file that rlsize reads."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from rlsize.errors import Fault, InputError, suggestion
from rlsize.readers.file_kinds import KINDS


def schema(
    kind: Annotated[str, typer.Argument(metavar="KIND", help=f"One of {', '.join(KINDS)}.")] = "scenario",
) -> None:
    """
    Print the JSON Schema of a file that rlsize reads.

    Example:  rlsize schema scenario > scenario.schema.json
    """
    if kind not in KINDS:
        short = kind[:40]
        raise InputError(Fault(f"there is no file kind {short!r}", "KIND", suggestion(short, KINDS)))
    from rlsize.readers.file_kinds import schema_of

    sys.stdout.write(json.dumps(schema_of(kind), indent=2, ensure_ascii=False) + "\n")
