"""`rlsize validate`: predictions against recorded measurements, class by class."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer

from rlsize.errors import Fault, InputError, suggestion
from rlsize.reports.report import Report
from rlsize.shell.command import Force, argument, option, switch
from rlsize.shell.inputs import Inputs
from rlsize.shell.quantity_flags import Changes, asks_beside_files
from rlsize.units import some_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlsize.commands.validate.report import Grading
    from rlsize.facts.board import Board
    from rlsize.facts.records.listing import Listing
    from rlsize.shell.progress import Say

_MOST_PERCENT = 1e6
_MOST_NAMED = 5
_LIMITS = "Limits (exit code 1 beyond them)"


@asks_beside_files(Inputs=("seed",))
def validate(
    inputs: Inputs,
    context: typer.Context,
    files: list[str] | None = argument("FILE...", "YAML lists of records; with --record a log and its launch."),
    transfer: bool = switch(
        "--transfer", "Also calibrate on each record and predict the others of its family.", "Inputs"
    ),
    classes: list[str] | None = option(
        "--class", "Only this class of records, such as rollout; repeatable.", metavar="NAME"
    ),
    max_median: str | None = option(
        "--max-median", "Largest median error of a class before calibration.", _LIMITS, "PERCENT"
    ),
    max_p90: str | None = option("--max-p90", "Largest 90th percentile of the error.", _LIMITS, "PERCENT"),
    baseline: str | None = option(
        "--baseline", "A saved board: a cell that is worse by more than its noise is a no.", _LIMITS, "FILE"
    ),
    save: str | None = option("--save", "Write the board: the baseline of a later validation.", "Output", "FILE"),
    rows: str | None = option("--rows", "Write one prediction per record, as JSON lines.", "Output", "FILE"),
    record: str | None = option(
        "--record",
        "Write a log and its launch, in place of records, as a record without names.",
        "Output",
        "FILE",
    ),
    force: Force = False,
    changes: Changes = None,
) -> Report:
    """
    Grade the predictions against recorded measurements.

    Example:  rlsize validate examples/my-runs.yaml --transfer
    """
    from rlsize.commands.validate.report import validate_report
    from rlsize.estimates.recorded.registry import predictors
    from rlsize.loop.seed import seed_of
    from rlsize.readers.records.listing import read_records
    from rlsize.shell.answer import check_files
    from rlsize.shell.progress import patient_progress

    limits = _percent(inputs, "--max-median", max_median), _percent(inputs, "--max-p90", max_p90)
    check_files(inputs, rows, save, record, (context.obj or {}).get("plot"), force=force)
    before = None if baseline is None else _before(baseline, classes)
    known = predictors()
    for name in classes or []:
        if name not in known:
            inputs.fault(f"there is no class of records {name[:40]!r}", "--class", suggestion(name, known))
    try:
        number = seed_of(inputs)
    except InputError as error:
        raise InputError(*inputs.faults, *error.faults) from None
    if changes and record is None:
        inputs.fault("says what a run was, and records say that themselves", "--set", "give it beside --record FILE")
    inputs.settle()
    if record is not None:
        files = [_record(inputs, files or [], changes or (), record, force=force)]
    with patient_progress() as say:
        say("reading records", 0.0)
        listing = read_records(_files(files), inputs.catalogue)
        if classes:
            records = tuple(entry for entry in listing.records if entry.class_name in classes)
            refused = tuple(entry for entry in listing.refused if entry.class_name in classes)
            listing = replace(listing, records=records, refused=refused)
        grading = replace(_graded(inputs, listing, number, say, transfer=transfer), limits=limits, before=before)
    if rows is not None:
        from rlsize.writers.files import write_whole
        from rlsize.writers.json_document import rows_text

        write_whole(rows, rows_text(grading.records, grading.refused), force)
        inputs.notes.append(f"Wrote {rows}: one line per record.")
    if save is not None:
        from rlsize.facts.board import Board
        from rlsize.version import VERSION
        from rlsize.writers.files import write_whole
        from rlsize.writers.yaml_file import plain, yaml_text

        found = Board(rlsize_version=VERSION, cells=list(grading.board))
        write_whole(save, yaml_text("board", plain(found)), force)
        inputs.notes.append(f"Wrote {save}: what --baseline takes.")
    return validate_report(grading, inputs, _warnings(listing))


def _before(baseline: str, classes: Sequence[str] | None) -> Board:
    """The saved board, of the classes that are graded."""
    from rlsize.readers.saved_files import read_board

    found = read_board(baseline)
    return replace(found, cells=[cell for cell in found.cells if not classes or cell.class_name in classes])


def _record(inputs: Inputs, sources: Sequence[str], changes: Sequence[str], target: str, *, force: bool) -> str:
    """
    Write the run as a record, and give the file's name.

    Raises:
        InputError: The sources are not one log, with what it ran with.
    """
    from rlsize.commands.validate.recording import recorded
    from rlsize.shell.named_inputs import sort_of
    from rlsize.writers.files import write_whole
    from rlsize.writers.yaml_file import dumped

    logs = [source for source in sources if sort_of(source) == "log"]
    launches = [source for source in sources if source not in logs]
    if len(logs) != 1 or len(launches) > 1:
        what = f"takes one log and the launch or scenario that it ran with, not {len(logs)} and {len(launches)}"
        raise InputError(Fault(what, "--record", "write `rlsize validate --record FILE run.log train.sh`"))
    inputs.read(launches[0] if launches else logs[0], changes)
    text = dumped([recorded(inputs, logs[0])], 110)
    write_whole(
        target, f"# A run without names, hosts, users and paths: look at it before you give it away.\n{text}", force
    )
    inputs.notes.append(f"Wrote {target}, and sent nothing: it is yours to look at and to give away.")
    return target


def _files(named: Sequence[str] | None) -> Sequence[Any]:
    from rlsize.readers.records.listing import published_files

    found = named or published_files()
    if not found:
        todo = "name a file, as in `rlsize validate runs.yaml`; the published records come with a checkout only"
        raise InputError(Fault("no file of records is named", "FILE", todo))
    return found


def _graded(inputs: Inputs, listing: Listing, seed: int, say: Say, *, transfer: bool) -> Grading:
    from rlsize.commands.validate.report import Grading
    from rlsize.estimates.recorded.registry import predictors
    from rlsize.readers.records.listing import profiles_of
    from rlsize.verdicts import transfer as pairing
    from rlsize.verdicts.board import board
    from rlsize.verdicts.contests import contests
    from rlsize.verdicts.grading import grades, transfer_grades
    from rlsize.verdicts.predictions import predictions

    known, look_up = predictors(), profiles_of(inputs.catalogue)
    found = predictions(listing.records, known, look_up, seed, say)
    refused = sorted((*listing.refused, *found.refused), key=lambda row: row.place)
    if not refused and not found.records:
        raise InputError(Fault("there are no records", "FILE", "write each as an item of a YAML list: `- id: ...`"))
    if not found.records:
        more = f"; {len(refused) - _MOST_NAMED} more are not shown" if len(refused) > _MOST_NAMED else ""
        what = f"none of the {len(refused)} records can be predicted{more}"
        raise InputError(Fault(what, "FILE"), *(Fault(row.reason, row.id) for row in refused[:_MOST_NAMED]))
    moved = pairing.transfer(found.records, known, look_up, seed, say) if transfer else None
    return Grading(
        records=found.records,
        refused=refused,
        grades=grades(found.records, seed),
        moved=moved,
        transfer_grades=transfer_grades(moved.pairs, seed) if moved else (),
        contests=contests(found.records, known),
        board=board(found.records, known, look_up, seed),
    )


def _warnings(listing: Listing) -> Iterator[str]:
    if listing.repeated:
        named = some_of(listing.repeated, _MOST_NAMED)
        yield f"several different records bear the same id, and all are graded: {named}"
    if listing.copies:
        yield f"{listing.copies} records repeat one before them word for word; they are left out"


def _percent(inputs: Inputs, flag: str, text: str | None) -> float | None:
    """A share from a number of percent, with or without the sign."""
    if text is None:
        return None
    try:
        value = float(text.strip().removesuffix("%").strip())
    except ValueError:
        value = -1.0
    if not 0 <= value <= _MOST_PERCENT:
        inputs.fault(f"{text[:20]!r} is not a number of percent", flag, "write 25 for 25 %")
        return None
    return value / 100.0
