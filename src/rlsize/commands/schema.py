"""`rlsize schema`: print the JSON Schema of a file that rlsize reads."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from rlsize.errors import Fault, InputError, suggestion
from rlsize.readers.file_kinds import KINDS, schema_text


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
    sys.stdout.write(schema_text(kind))
