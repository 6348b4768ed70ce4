"""`rlsize init`: write a commented scenario file to start from."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

SCHEMA_NAME = "scenario.schema.json"


def init(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The scenario file to write.")] = "scenario.yaml",
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that exist.")] = False,
) -> None:
    """
    Write a commented scenario file to start from.

    Example:  rlsize init scenario.yaml && rlsize fleet scenario.yaml
    """
    from rlsize.readers.schemas import schema_of
    from rlsize.writers.files import check_target, write_whole
    from rlsize.writers.scenario_file import starter_scenario

    schema = check_target(file, force).with_name(SCHEMA_NAME)
    if force or not schema.exists():  # both can be written, or neither is
        check_target(schema, force)
    write_whole(file, starter_scenario(SCHEMA_NAME), force=force)
    fresh = json.dumps(schema_of("scenario"), indent=2, ensure_ascii=False) + "\n"
    kept = schema.exists() and not force  # the same schema serves every scenario of a folder
    if not kept:
        write_whole(str(schema), fresh, force=force)
    beside = f"left {schema.name} beside it as it was" if kept else f"{schema.name} beside it"
    sys.stdout.write(f"wrote {file} and {beside}; next: rlsize fleet {file}\n")
    if kept and schema.read_text("utf-8", errors="replace") != fresh:
        sys.stderr.write(f"warning: {schema.name} is not the schema of this rlsize; --force replaces both files\n")
