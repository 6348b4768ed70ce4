"""`rlsize init --from`: the scenario that a launch script or configuration of a framework says."""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from rlsize.commands.init.answers import limit
from rlsize.facts.figure import Figure
from rlsize.quantities.table import PLACES, QUANTITIES
from rlsize.reports.report import Column, Report, Table
from rlsize.reports.wording import numbered

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rlsize.commands.init.questions import Desk
    from rlsize.frameworks.told import Told
    from rlsize.readers.launch.launch import Launch

_NEEDED = ("model", "gpu", "prompts_per_step", "group_size", "response_tokens")
"""What a loop cannot be worked out without, and launches may not tell; GPUs besides."""
_SHOWN = 2  # the last parts of a dotted key, in a table


def from_launch(
    source: str, said: Mapping[str, str], limits: Sequence[str], desk: Desk, schema: Path | None, *, force: bool
) -> Report:
    """
    Write what a launch says as a scenario.

    Args:
        source: The launch, as it was named.
        said: What flags say, by key; they go before the launch.
        limits: Lines of the budget.
        desk: What files are read with, and the file to write.
        schema: The schema that is to lie beside it; None where it cannot.
        force: Whether files that exist may be replaced.

    Raises:
        InputError: All that is wrong.
    """
    from rlsize.readers.file_kinds import schema_of
    from rlsize.readers.scenarios import launched_scenario
    from rlsize.writers.files import write_whole
    from rlsize.writers.scenario_file import scenario_text

    inputs = desk.inputs
    file, launch = launched_scenario(source, str(said.get("framework") or ""), inputs.catalogue)
    inputs.file = file
    inputs.texts |= {key: text for key, text in said.items() if key != "framework"}
    inputs.check_texts()
    answers: dict[str, Any] = {**inputs.said_values(desk.file), **dict(limit(line, "--budget") for line in limits)}
    beside = inputs.settled(schema)
    places = {key: place for key, place in file.places.items() if PLACES[key].key not in said}
    write_whole(desk.file, scenario_text(answers, beside.name, places=places), force=force)
    if force or not beside.is_file():
        write_whole(str(beside), json.dumps(schema_of("scenario"), indent=2, ensure_ascii=False) + "\n", force=force)
    told = launch.reading.all()
    rows = tuple(
        {
            "quantity": key,
            "value": _shown(one.value),
            "provenance": one.provenance,
            "said_by": launch.said_by(one),
            "in_scenario": key in QUANTITIES and QUANTITIES[key].scenario in answers,
            **_stands(one, launch),
        }
        for key, one in told.items()
    )
    missing = [QUANTITIES[key].said_by for key in _NEEDED if not inputs.gives(key)]
    missing += [] if inputs.gives("gpus") or inputs.gives("trainer_gpus") else ["--gpus"]
    titles = {"quantity": "quantity", "value": "value", "_line": "line", "_key": "key"}
    columns = tuple(Column(key, title, side="left", wide=key == "_key") for key, title in titles.items())
    said_first = tuple(sorted(rows, key=lambda row: row["provenance"] == "default"))
    shown = sum(row["provenance"] != "default" for row in rows)
    notes = [f"{len(rows) - shown} more are defaults of {launch.framework.title}: --json has them."]
    notes += [f"Not told by the script: give {', '.join(missing)}."] if missing else []
    return Report(
        command="init",
        headline=f"Wrote {desk.file}: {numbered(len(told), 'setting')} of {launch.framework.title}.",
        results=(
            Figure(key="framework", value=launch.framework.name, provenance="given", source=source),
            Figure(key="file", value=desk.file, provenance="given", source="FILE"),
            Figure(key="missing", value=", ".join(missing), provenance="predicted", source="what a loop needs"),
        ),
        tables={"quantities": Table(title="What the launch says", columns=columns, rows=said_first, shown=shown)},
        warnings=(*inputs.warnings, *file.warnings),
        notes=(*file.notes, *notes),
        quiet=frozenset({"framework", "file", "missing"}),
    )


def _stands(told: Told, launch: Launch) -> dict[str, Any]:
    """Line and key of a quantity, as a narrow table has room for them."""
    if not told.settings:
        return {"_line": "", "_key": ""}
    first = told.settings[0]
    file = "" if first.span.file == launch.name else f"{PurePosixPath(first.span.file).name}:"
    short = (".".join(one.key.split(".")[-_SHOWN:]) for one in told.settings)
    return {"_line": f"{file}{first.span.line}", "_key": ", ".join(dict.fromkeys(short))}


def _shown(value: object) -> Any:
    """A value as a cell holds it."""
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else value
