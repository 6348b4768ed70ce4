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
    if force or not schema.exists():  # the same schema serves every scenario of a folder
        write_whole(str(schema), json.dumps(schema_of("scenario"), indent=2, ensure_ascii=False) + "\n", force=force)
    sys.stdout.write(f"wrote {file} and {schema.name} beside it; next: rlsize fleet {file}\n")
