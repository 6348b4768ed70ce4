"""`rlsize init --from`: the scenario that a launch script or configuration of a framework says."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from rlsize.commands.init.answers import limit
from rlsize.facts.figure import Figure
from rlsize.quantities.table import PLACES, QUANTITIES
from rlsize.reports.report import Column, Report, Table, Unseen
from rlsize.reports.wording import numbered

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rlsize.commands.init.questions import Desk
    from rlsize.frameworks.told import Told
    from rlsize.readers.launch.launch import Launch

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
    from rlsize.loop.resolve import lacked
    from rlsize.readers.file_kinds import schema_text
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
        write_whole(str(beside), schema_text("scenario"), force=force)
    told = launch.reading.all()
    cells = (
        Column("quantity", "quantity", "left", of=str),
        Column("value", "value", "left", of=lambda key: _shown(told[key].value)),
        Unseen("provenance", lambda key: told[key].provenance),
        Unseen("said_by", lambda key: launch.said_by(told[key])),
        Unseen("in_scenario", lambda key: key in QUANTITIES and QUANTITIES[key].scenario in answers),
        Column("_line", "line", "left", of=lambda key: _line(told[key], launch)),
        Column("_key", "key", "left", wide=True, of=lambda key: _keys(told[key])),
    )
    said_first = sorted(told, key=lambda key: told[key].provenance == "default")
    shown = sum(one.provenance != "default" for one in told.values())
    table = Table.of("What the launch says", said_first, cells, shown=shown)
    missing = lacked(inputs)
    notes = [f"{len(told) - shown} more are defaults of {launch.framework.title}: --json has them."]
    notes += [f"Not told by the script: give {', '.join(missing)}."] if missing else []
    if not inputs.gives("response_tokens") and inputs.gives("max_response_tokens"):
        notes.append("How long responses are is not told: without --response-tokens, what is usual under their cap.")
    return Report(
        command="init",
        headline=f"Wrote {desk.file}: {numbered(len(told), 'setting')} of {launch.framework.title}.",
        results=(
            Figure(key="framework", value=launch.framework.name, provenance="given", source=source),
            Figure(key="file", value=desk.file, provenance="given", source="FILE"),
            Figure(key="missing", value=", ".join(missing), provenance="predicted", source="what a loop needs"),
        ),
        tables={"quantities": table},
        warnings=(*inputs.warnings, *file.warnings),
        notes=(*file.notes, *notes),
        quiet=frozenset({"framework", "file", "missing"}),
    )


def _line(told: Told, launch: Launch) -> str:
    """The line where a quantity stands, after its file where that is another than the launch itself."""
    if not told.settings:
        return ""
    span = told.settings[0].span
    file = "" if span.file == launch.name else f"{PurePosixPath(span.file).name}:"
    return f"{file}{span.line}"


def _keys(told: Told) -> str:
    """The keys that say a quantity, as a narrow table has room for them."""
    return ", ".join(dict.fromkeys(".".join(one.key.split(".")[-_SHOWN:]) for one in told.settings))


def _shown(value: object) -> Any:
    """A value as a cell holds it."""
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else value
