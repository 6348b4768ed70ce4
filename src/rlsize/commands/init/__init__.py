"""`rlsize init`: write a commented scenario file, from questions or from flags."""

from __future__ import annotations

import inspect
import sys
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rlsize.commands.init.questions import QUESTIONS, RATE, RATES_FLAG, Desk, limit, train_unmeasured
from rlsize.facts.figure import Figure
from rlsize.quantities.table import PLACES, QUANTITIES
from rlsize.reports.report import Column, Report, Table, Unseen
from rlsize.reports.wording import numbered
from rlsize.shell.command import TERMINAL, Force, Profiles, option, switch
from rlsize.shell.inputs import Inputs
from rlsize.shell.progress import INTERRUPTED
from rlsize.shell.quantity_flags import Asks, texts_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rlsize.frameworks.told import Told
    from rlsize.readers.launch.launch import Launch

SCHEMA_NAME = "scenario.schema.json"

_SHOWN = 2  # the last parts of a dotted key, in a table
_KEYS = 3  # that say a quantity, in a table


def init(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The scenario file to write.")] = "scenario.yaml",
    *,
    rates: str | None = option(
        "--rates", "A rates file of `rlsize observe` or `rlsize measure`.", "What is measured", "FILE"
    ),
    budget: list[str] | None = option(
        "--budget", "A limit, such as cost_per_step_usd=2.5; repeatable.", "Price and limits", "KEY=NUMBER"
    ),
    yes: bool = switch("--yes|-y", "Ask nothing: flags and usual answers decide."),
    force: Force = False,
    profiles: Profiles = None,
    source: str | None = option(
        "--from", "A launch script or configuration of a framework, or - : what it says.", "Launch", "FILE"
    ),
    framework: str | None = option(
        "--framework", "Its framework; told by its content when not given.", "Launch", "NAME[@VERSION]"
    ),
    json_: bool = switch("--json", "With --from: print what was read, as JSON."),
    **answers: str | None,
) -> None:
    """
    Write a commented scenario file to start from.

    On a terminal it asks for what flags do not say. Without one, or with
    --yes, the rest is as usual; with no flag either it writes a starter.

    Example:  rlsize init scenario.yaml
    """
    desk = Desk(inputs=Inputs(None, profiles), file=file)
    schema, texts = _schema_beside(desk, force=force), texts_of(answers)
    if source is not None:
        from rlsize.shell.answer import deliver

        texts |= {"framework": framework} if framework else {}
        report = from_launch(source, texts, budget or [], desk, schema, force=force)
        deliver(report, {"json": json_, "profiles": profiles})
        return
    said = {QUANTITIES[key].said_by: text for key, text in texts.items()}
    said |= {RATES_FLAG: rates} if rates is not None else {}
    found = _answers(said, budget or [], desk, yes=yes)
    _write(file, found, desk.inputs.settled(schema), force=force)
    _warn(found, desk)
    _lead_on(file, found, desk)


def _with_flags_of_questions() -> None:
    """Give `init` the flag of each question, made from the row of what it asks for."""
    panels: dict[str, tuple[str, ...]] = {}
    for question in QUESTIONS:
        panels[question.part] = (*panels.get(question.part, ()), question.row.key)
    signature = inspect.signature(init, eval_str=True)
    file, *others = (one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD)
    shown = [file, *Asks(panels).parameters(), *others]
    init.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]  # what typer reads
    init.__annotations__ = {one.name: one.annotation for one in shown}


_with_flags_of_questions()


def _schema_beside(desk: Desk, *, force: bool) -> Path | None:
    """The schema file beside the scenario; None, with the faults noted, where the two cannot be written."""
    from rlsize.errors import InputError
    from rlsize.writers.files import FileBeside, check_target

    if desk.file == TERMINAL:
        desk.inputs.fault("is the terminal, and a scenario has its schema beside it", desk.file, "name a file")
        return None
    try:
        target = check_target(desk.file, force)
        schema = target.with_name(SCHEMA_NAME)
        if target == schema:
            desk.inputs.fault("is the name of the schema beside a scenario", desk.file, "choose another")
        FileBeside(desk.file, force).give_up()  # a folder that takes no files is told before anything is asked
        if force or not schema.is_file():  # both can be written, or neither is
            check_target(schema, force)
    except InputError as error:
        desk.inputs.faults += error.faults
        return None
    return schema


def _answers(said: Mapping[str, str], limits: Sequence[str], desk: Desk, *, yes: bool) -> Mapping[str, Any]:
    """
    The answers of flags, and of whoever sits at the terminal; the starter's where nobody says anything.

    Raises:
        InputError: Everything that is wrong with flags and files; or the input ended.
    """
    from rlsize.commands.init.questions import asked, flagged, on_terminal
    from rlsize.writers.scenario_file import STARTER

    asking = not yes and on_terminal()
    answers = flagged(said, limits, desk, alone=not asking)
    if not asking:
        return answers if said or limits else STARTER
    try:
        return asked(answers, desk)
    except KeyboardInterrupt:
        sys.stderr.write("\nstopped, nothing is written\n")
        raise typer.Exit(INTERRUPTED) from None


def _write(file: str, answers: Mapping[str, Any], schema: Path, *, force: bool) -> None:
    """Write scenario and schema; the same schema serves every scenario of a folder, so one that is there stays."""
    from rlsize.readers.file_kinds import schema_text
    from rlsize.units import printable
    from rlsize.writers.files import write_whole
    from rlsize.writers.scenario_file import scenario_text

    write_whole(file, scenario_text(answers, SCHEMA_NAME), force=force)
    fresh = schema_text("scenario")
    kept = schema.is_file() and not force
    if not kept:
        write_whole(str(schema), fresh, force=force)
    beside = f"left {schema.name} beside it as it was" if kept else f"{schema.name} beside it"
    sys.stdout.write(f"wrote {printable(file)} and {beside}\n")
    if kept and not _holds(schema, fresh):
        sys.stderr.write(f"warning: {schema.name} is not the schema of this rlsize; --force replaces both files\n")


def _holds(file: Path, text: str) -> bool:
    from rlsize.errors import InputError
    from rlsize.readers.yaml_documents import read_text

    try:
        return read_text(file) == text
    except InputError:
        return False


def _warn(answers: Mapping[str, Any], desk: Desk) -> None:
    """Say what commands will stumble over that read the file; they ask the loop that it describes, as this does."""
    from rlsize.errors import InputError
    from rlsize.loop.resolve import described, resolve

    said = Inputs(desk.file, desk.inputs.folders)
    try:
        refused = resolve(said).refused if described(said) else ""
    except InputError as error:
        refused = "; ".join(fault.what for fault in error.faults)
    if refused:
        sys.stderr.write(f"warning: commands that ask for the whole loop will say: {refused}\n")
    rate = desk.rates.instance_tokens_per_second if desk.rates is not None else None
    if rate is not None and rate.lower_bound:
        what = f"{rate.mean:,.1f} tok/s is a lower bound, the engines were not saturated"
        sys.stderr.write(f"warning: {what}: commands ask for --accept-lower-bound\n")
    dollars = [key for key, value in answers.items() if key.startswith("budget.cost_") and value is not None]
    if dollars and answers.get("prices.gpu_hour") is None:
        sys.stderr.write("warning: there is a limit in dollars, and no price to judge it by\n")


def _lead_on(file: str, answers: Mapping[str, Any], desk: Desk) -> None:
    """Say what to run next."""
    import shlex

    from rlsize.units import printable

    trained = answers.get("rates.train_seconds") is not None or not train_unmeasured(answers, desk)
    steps = {
        "fleet": ("how many instances match the trainer", trained and answers.get(RATE) is not None),
        "plan": ("how to lay it out", True),
        "check": ("whether it keeps its limits", any(key.startswith("budget.") for key in answers)),
    }
    named = printable(shlex.quote(file))
    lines = [(f"rlsize {name} {named}", what) for name, (what, fits) in steps.items() if fits]
    column = max(len(command) for command, _ in lines)
    for index, (command, what) in enumerate(lines):
        sys.stdout.write(f"{'     ' if index else 'next:'} {command.ljust(column)}  # {what}\n")


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
    keys = [".".join(key.split(".")[-_SHOWN:]) for key in dict.fromkeys(one.key for one in told.settings)]
    return ", ".join(keys[:_KEYS]) + (f" and {len(keys) - _KEYS} more" if len(keys) > _KEYS else "")


def _shown(value: object) -> Any:
    """A value as a cell holds it."""
    return (", ".join(map(str, value)) or "none") if isinstance(value, (list, tuple)) else value
