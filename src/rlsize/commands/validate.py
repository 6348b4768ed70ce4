"""`rlsize validate`: predictions against recorded measurements, class by class."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import typer

from rlsize.errors import Fault, InputError, suggestion
from rlsize.estimates.model_size import model_size
from rlsize.facts.figure import Figure
from rlsize.facts.quantisation import native
from rlsize.frameworks.told import named_version
from rlsize.loop.resolve import resolve
from rlsize.planner.step_parts import ready_engine
from rlsize.readers.profiles import Catalogue
from rlsize.reports.chart import Chart, Series
from rlsize.reports.report import Column, Report, Table, Unseen, tables_of
from rlsize.reports.wording import counted
from rlsize.shell.command import Force, argument, option, switch
from rlsize.shell.inputs import Inputs
from rlsize.shell.observation import DECIDED, read_run, shown_by
from rlsize.shell.quantity_flags import Changes, asks
from rlsize.units import short, show, some_of
from rlsize.verdicts.board import worsened
from rlsize.verdicts.contests import CLOSE
from rlsize.verdicts.grading import worse, worst

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rlsize.equations._ops import Real
    from rlsize.estimates.train_prediction import TrainQuestion
    from rlsize.facts.board import Board, BoardCell
    from rlsize.facts.model import Model
    from rlsize.facts.records import Listing, RefusedRecord
    from rlsize.loop.resolve import Loop
    from rlsize.planner.options import Placement
    from rlsize.reports.report import Cell
    from rlsize.shell.progress import Say
    from rlsize.verdicts.contests import Contest
    from rlsize.verdicts.grading import ClassGrade, Limits, Score, TransferGrade
    from rlsize.verdicts.predictions import PredictedRecord
    from rlsize.verdicts.transfer import Transfer

_MOST_PERCENT = 1e6
_MOST_NAMED = 5
_LIMITS = "Limits (exit code 1 beyond them)"

_TIMES = {  # of logs, by what records call them
    "step_seconds": "step_time_s",
    "generation_seconds": "generation_time_s",
    "wait_seconds": "generation_exposed_s",
    "logprob_seconds": "logprob_time_s",
    "update_seconds": "train_time_s",
    "sync_seconds": "weight_sync_time_s",
    "reward_seconds": "reward_time_s",
}
_PEAKS = {"peak_allocated_bytes": "peak_mem_allocated_gib", "peak_reserved_bytes": "peak_mem_reserved_gib"}
_GIB = 2.0**30
_BILLION = 1e9

_WORST = 3  # rows of each class
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_NEAR = 0.25  # how far off the lines beside the diagonal are
_MARGIN = 1.5  # of the picture
_COLUMNS = {
    column.key: column
    for column in (
        Column("class", "class", "left"),
        Column("cell", "of these", "left", wide=True),
        Column("field", "field", "left", wide=True),
        Column("relation", "the two have", "left", wide=True),
        Column("records", "n"),
        Column("sources", "from"),
        Column("pairs", "pairs"),
        Column("families", "families"),
        Column("median_error_fraction", "median"),
        Column("p90_error_fraction", "p90"),
        Column("bias_fraction", "bias"),
        Column("coverage_fraction", "in band"),
        Column("coverage_interval", "interval", "left"),
        Column("band_ratio", "ends"),
        Column("calibrated", "after"),
        Column("calibrated_by_family", "by family"),
        Column("uncalibrated", "before"),
        Column("time_as_gpus", "1/GPUs"),
        Column("time_unchanged", "unchanged"),
    )
}
"""What is told of scores, by its key."""
_ERRORS = ("median_error_fraction", "p90_error_fraction")


@asks(beside_files=True, Inputs=("framework", "seed"))
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
    from rlsize.estimates.recorded.registry import predictors
    from rlsize.loop.seed import seed_of
    from rlsize.readers.records.listing import read_records
    from rlsize.shell.answer import check_files
    from rlsize.shell.progress import patient_progress

    limits = _share(inputs, "--max-median", max_median), _share(inputs, "--max-p90", max_p90)
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
    said = {"--set": bool(changes), "--framework": inputs.by_flag("framework")}
    for flag in (flag for flag, given in said.items() if given and record is None):
        inputs.fault("says what a run was, and records say that themselves", flag, "give it beside --record FILE")
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
        inputs.did(f"Wrote {rows}: one line per record.")
    if save is not None:
        from rlsize.facts.board import Board
        from rlsize.version import VERSION
        from rlsize.writers.files import write_whole
        from rlsize.writers.yaml_file import plain, yaml_text

        found = Board(rlsize_version=VERSION, cells=list(grading.board))
        write_whole(save, yaml_text("board", plain(found)), force)
        inputs.did(f"Wrote {save}: what --baseline takes.")
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
    head = "# A run without names, hosts, users and paths: look at it before you give it away.\n"
    write_whole(target, head + text, force)
    inputs.did(f"Wrote {target}, and sent nothing: it is yours to look at and to give away.")
    return target


def _files(named: Sequence[str] | None) -> Sequence[Any]:
    from rlsize.readers.records.listing import published_files

    found = named or published_files()
    if not found:
        todo = "name a file, as in `rlsize validate runs.yaml`; the published records come with a checkout only"
        raise InputError(Fault("no file of records is named", "FILE", todo))
    return found


def _graded(inputs: Inputs, listing: Listing, seed: int, say: Say, *, transfer: bool) -> Grading:
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


def _share(inputs: Inputs, flag: str, text: str | None) -> float | None:
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


def recorded(inputs: Inputs, log: str) -> dict[str, Any]:
    """
    One run as a row of a list of records.

    Args:
        inputs: What was said of it.
        log: Its training log.

    Raises:
        InputError: The log times no step or phase, or the loop cannot be told.
    """
    run = read_run(inputs, [log], None)
    inputs.show(shown_by(run), run.source, first=DECIDED)
    asked = inputs.apart()
    asked.ran = True
    loop = resolve(asked)
    if loop.place is None or loop.stages is None:
        what = loop.refused or "no model is named"
        raise InputError(Fault(f"cannot be told as a record: {what}", log, "name the launch that it ran with"))
    times = {name: _short(run.figure(key).number) for key, name in _TIMES.items() if run.figure(key).known}
    if not times:
        raise InputError(Fault("times neither steps nor phases", log, "name another log of the run"))
    gpu = loop.place.fleet.gpu
    if gpu not in Catalogue().names("gpu"):
        todo = "name the shipped one that it is, or is like: --set cluster.gpu=h100-sxm"
        raise InputError(Fault(f"ran on {gpu!r}, of which nobody else has a profile", log, todo))
    named, version = named_version(str(inputs.texts.get("framework") or ""), "--framework")
    model, placed = loop.stages.train.model, _placed(loop.place, loop.stages.train)
    row = {
        "id": f"{run.framework or 'run'}-{_size(model)}-{placed['gpus_total']}",
        "source_id": "anonymous",
        "trust": "medium",
        "framework": f"{run.framework or named} {_release(version)}".strip() or None,
        "model": _model_name(model),
        "gpu": gpu,
        **placed,
        **_said(loop),
        "steps_averaged": len(run.steps),
        **times,
        **{name: _short(run.figure(key).number / _GIB) for key, name in _PEAKS.items() if run.figure(key).known},
    }
    return {key: value for key, value in row.items() if value is not None}


def _release(version: str) -> str:
    """Of a version what has been published: what follows may be somebody's own name."""
    return version.partition("+")[0]


def _placed(place: Placement, train: TrainQuestion) -> Mapping[str, Any]:
    """Where both sides run and how they are spread."""
    shared = place.shared
    engine = ready_engine(place.fleet, shared=shared).question
    rollout, trainer = int(place.rollout_gpus), int(place.trainer_gpus)
    pools = {"gpus_shared": trainer} if shared else {"gpus_rollout": rollout, "gpus_train": trainer}
    layout, version = engine.layout, f"{engine.engine} {_release(engine.version)}"
    return {
        "placement": "colocated" if shared else "disaggregated",
        "async_mode": "synchronous" if place.loop == "colocated" else place.loop,
        "staleness_steps": None if shared else place.max_staleness,
        "gpus_total": trainer if shared else rollout + trainer,
        **pools,
        "rollout_engine": " ".join([*version.split(), *([] if engine.graphs else ["eager"])]),
        "rollout_parallel": f"TP{layout.tensor} PP{layout.pipeline} DP{layout.data} EP{layout.expert}",
        "train_parallel": f"TP{train.tensor} PP{train.pipeline} CP{train.context} EP{train.expert} {train.sharding}",
        "precision": f"{(engine.weights or native(engine.model.name)).dense} generation, {train.dtype} training",
        "gpu_memory_utilization": engine.memory_fraction,
        "recompute": train.recompute,
        "offload": _offloaded(train) or None,
        "passes": list(train.passes),
        "ref_model": _model_name(other) if (other := train.pass_models.get("reference")) is not None else None,
        "updates_per_step": _short(_plain(train.optimizer_steps)),
    }


def _offloaded(train: TrainQuestion) -> str:
    """What of the trainer is on the host, always or while engines generate, as records say it."""
    there = {
        "param": train.weights_returning or train.keeps.param_offload,
        "optimizer": train.offload or train.returning,
    }
    return "+".join(name for name, moved in there.items() if moved)


def _said(loop: Loop) -> Mapping[str, Any]:
    """Batch and lengths."""
    problem = loop.problem
    figures = {
        "samples_per_step": problem.samples,
        "group_size": problem.group_size,
        "prompt_len_mean": problem.prompt_tokens,
        "response_len_mean": problem.response_tokens,
        "response_len_max": problem.max_tokens,
    }
    return {key: _short(figure.number) for key, figure in figures.items() if figure.known}


def _model_name(model: Model) -> str:
    """A model by its public name; one that has none by its kind and its parameters."""
    public = model.name in Catalogue().names("model")
    return model.name if public else f"{'MoE' if model.architecture.moe else 'dense'} {_size(model)}"


def _size(model: Model) -> str:
    size = model_size(model)
    total, active = size.params.number / _BILLION, size.active_params.number / _BILLION
    return f"{total:.3g}B-A{active:.2g}B" if model.architecture.moe else f"{total:.3g}B"


def _plain(value: Real) -> float:
    return float(value.number if isinstance(value, Figure) else value)


def _short(value: float) -> float:
    """Four digits: enough for a measurement, too few to know a run by."""
    short = float(f"{value:.4g}")
    return int(short) if short.is_integer() else short


@dataclass(frozen=True, slots=True, kw_only=True)
class Grading:
    """
    All that a validation found.

    Args:
        records: Records with their predictions.
        refused: Rows that could not be read or predicted.
        grades: The score of each class.
        limits: Largest median and 90th percentile that were allowed.
        moved: Pairs of records, where they were asked for.
        transfer_grades: Their scores.
        contests: Pairs of records that did the same work in two ways.
        board: The trusted records by class, part, GPU, engine or framework, and number type.
        before: A board that was saved.
    """

    records: Sequence[PredictedRecord]
    refused: Sequence[RefusedRecord]
    grades: Sequence[ClassGrade]
    limits: Limits = (None, None)
    moved: Transfer | None = None
    transfer_grades: Sequence[TransferGrade] = ()
    contests: Sequence[Contest] = ()
    board: Sequence[BoardCell] = ()
    before: Board | None = None

    @property
    def worsened(self) -> Sequence[tuple[BoardCell, BoardCell | None]]:
        """Cells that are worse than they were, by more than their noise."""
        return worsened(self.before.cells, self.board) if self.before is not None else ()


def validate_report(found: Grading, inputs: Inputs, warnings: Iterable[str]) -> Report:
    """
    The report of `rlsize validate`; its answer is no where a class is worse than allowed.

    Args:
        found: What was found.
        inputs: What was asked.
        warnings: What casts doubt.
    """
    tables = tables_of(
        classes=_classes(found.grades),
        cells=_cells(found.grades),
        board=_board(found.board) if found.board else None,
        worsened=_worsened(found.worsened) if found.worsened else None,
        fields=_fields(found.grades),
        **(_transfer_tables(found.transfer_grades) if found.moved is not None else {}),
        winners=_winners_table(found.contests) if found.contests else None,
        worst=_worst(found.records),
        refused=_refused(found.refused) if found.refused else None,
    )
    results = _results(found)
    return Report(
        headline=_headline(found),
        results=results,
        tables=tables,
        chart=_chart(found.records),
        no=bool(worse(found.grades, found.limits) or found.worsened),
        quiet=frozenset(figure.key for figure in results),
        **inputs.told(first=(*_class_notes(found), *_transfer_notes(found.moved)), warnings=warnings),
    )


def _headline(found: Grading) -> str:
    total = len(found.records) + len(found.refused)
    text = f"{len(found.records)} of {total} records predicted"
    graded = [grade for grade in found.grades if grade.trusted]
    if not graded:
        return f"{text}, none of high or medium trust, so none is graded."
    bad = worse(found.grades, found.limits)
    if found.worsened:
        text = f"{text}; {len(found.worsened)} cells are worse than before by more than their noise"
    if bad:
        over = "; ".join(_errors(grade) for grade in bad)
        return f"{text}; worse than allowed: {over}."
    return f"{text}; median and 90th percentile error: {'; '.join(_errors(grade) for grade in graded)}."


def _errors(grade: ClassGrade) -> str:
    own = grade.headline
    return f"{grade.class_name} {show(own.median, 'error_fraction')} and {show(own.p90, 'error_fraction')}"


def _results(found: Grading) -> tuple[Figure, ...]:
    graded = [grade.headline for grade in found.grades if grade.trusted]
    values: dict[str, float] = {
        "predicted_records": len(found.records),
        "graded_records": sum(own.n for own in graded),
        "refused_records": len(found.refused),
    }
    if graded:
        values["largest_median_error_fraction"] = max(own.median for own in graded)
        values["largest_p90_error_fraction"] = max(own.p90 for own in graded)
    return counted(values, "")


def _scored(own: Score) -> dict[str, Cell]:
    """The cells of a score."""
    low, high = own.coverage_interval or (None, None)
    interval = "-" if low is None or high is None else f"{100 * low:.0f}-{100 * high:.0f} %"
    return {
        "records": own.n,
        "sources": own.sources,
        "families": own.families,
        "median_error_fraction": own.median,
        "p90_error_fraction": own.p90,
        "bias_fraction": round(math.expm1(own.bias), 3),
        "bias_log": own.bias,
        "banded_records": own.banded,
        "coverage_fraction": own.coverage,
        "coverage_interval": interval,
        "coverage_low_fraction": low,
        "coverage_high_fraction": high,
        "resampled": own.resampled,
        "band_ratio": float(f"{own.width:.3g}") if own.width else None,
    }


def _classes(grades: Sequence[ClassGrade]) -> Table:
    rows = tuple({**_named(one), "graded_fields": ", ".join(one.names), **_scored(one.headline)} for one in grades)
    keys = ("class", "records", "sources", *_ERRORS, "bias_fraction", "coverage_fraction", "coverage_interval")
    note = (
        "from: how many sources; errors are |predicted/measured - 1|, bias their median\n"
        "with its sign; bands are meant to hold 80 %, the interval of that is 95 %;\n"
        "ends: upper over lower"
    )
    return _table("Each class, by the field that counts", (*keys, "band_ratio"), rows, note)


def _table(title: str, keys: Iterable[str], rows: Sequence[Mapping[str, Cell]], note: str = "") -> Table:
    return Table(title=title, columns=tuple(_COLUMNS[key] for key in keys), rows=tuple(rows), note=note)


def _named(grade: ClassGrade) -> dict[str, Cell]:
    """The cells that say which records a grade is of."""
    if grade.trusted:
        return {"class": grade.class_name, "trust": "high, medium"}
    return {"class": f"{grade.class_name} *", "trust": "low, or out of order"}


def _cells(grades: Sequence[ClassGrade]) -> Table:
    """Parts of each class, trusted records only."""
    rows = tuple(
        {"class": grade.class_name, "cell": name, **_scored(own)}
        for grade in grades
        if grade.trusted
        for name, own in grade.cells.items()
    )
    keys = ("class", "cell", "records", *_ERRORS, "bias_fraction", "coverage_fraction")
    return _table("By kind of model", keys, rows)


def _named_by(cell: Callable[[Any], BoardCell]) -> tuple[Column | Unseen, ...]:
    """The columns that name a cell of the board."""
    return (
        _COLUMNS["class"]._replace(of=lambda one: cell(one).class_name),
        _COLUMNS["cell"]._replace(of=lambda one: cell(one).part),
        Column("measured_on", "on", "left", wide=True, of=lambda one: " ".join(cell(one).key[2:]).rstrip()),
        Unseen("gpu", of=lambda one: cell(one).gpu),
        Unseen("stack", of=lambda one: cell(one).stack),
        Unseen("dtype", of=lambda one: cell(one).dtype),
    )


def _board(cells: Sequence[BoardCell]) -> Table:
    """Every cell, beside the guess without a model."""
    columns: tuple[Column | Unseen, ...] = (
        *_named_by(lambda cell: cell),
        Column("records", "n"),
        Unseen("sources"),
        Column("median_error_fraction", "median", of=lambda cell: cell.median),
        Column("p90_error_fraction", "p90", of=lambda cell: cell.p90),
        Unseen("noise_fraction", lambda cell: cell.noise),
        Column("coverage_fraction", "in band", of=lambda cell: cell.coverage),
        Column("guess_median_error_fraction", "guess", of=lambda cell: cell.guess),
    )
    note = (
        "guess, without a model: what other sources have in the median, in proportion to\n"
        "GPUs, their peak and the active parameters (sizes of weights where they travel)"
    )
    return Table.of("By GPU, engine or framework, and number type", cells, columns, note=note)


def _worsened(pairs: Sequence[tuple[BoardCell, BoardCell | None]]) -> Table:
    """Cells that are worse than their baseline."""
    columns = (
        *_named_by(lambda pair: pair[0]),
        Column("before_median_error_fraction", "before", of=lambda pair: pair[0].median),
        Column("noise_fraction", "noise", of=lambda pair: pair[0].noise),
        Column("median_error_fraction", "now", of=lambda pair: pair[1].median if pair[1] else None),
        Column("before_coverage_fraction", "in band", of=lambda pair: pair[0].coverage),
        Column("coverage_fraction", "now", of=lambda pair: pair[1].coverage if pair[1] else None),
    )
    return Table.of("Worse than the baseline", pairs, columns, note="now is empty where no record is predicted")


def _fields(grades: Sequence[ClassGrade]) -> Table:
    """Each measured field, the ones that count first."""
    rows = [
        {**_named(grade), "field": name, "counts": name in grade.names, **_scored(grade.fields[name])}
        for grade in grades
        for name in dict.fromkeys((*grade.names, *grade.fields))
    ]
    return _table("Each measured field", ("class", "field", "records", *_ERRORS, "coverage_fraction"), rows)


def _worst(records: Sequence[PredictedRecord]) -> Table:
    def band(record: PredictedRecord) -> str:
        low, high = record.fields[0].low, record.fields[0].high
        return "-" if low is None or high is None else f"{short(low)} to {short(high)}"

    cells = (
        Column("id", "record", "left", wide=True, of=lambda one: one.record.id),
        Unseen("class", lambda one: one.class_name),
        Unseen("field", lambda one: one.fields[0].name),
        Column("measured", "measured", of=lambda one: one.fields[0].measured),
        Column("predicted", "predicted", of=lambda one: one.fields[0].predicted),
        Unseen("low", lambda one: one.fields[0].low),
        Unseen("high", lambda one: one.fields[0].high),
        Column("band", "80 % band", "left", of=band),
        Column("error_fraction", "error", of=_error),
    )
    note = "each in the unit of the field that counts"
    return Table.of(f"The worst {_WORST} of each class", worst(records, _WORST), cells, note=note)


def _error(record: PredictedRecord) -> float:
    """How far off the field that counts is, as a share of what was measured."""
    return abs(record.fields[0].predicted / record.fields[0].measured - 1)


def _refused(refused: Sequence[RefusedRecord]) -> Table:
    """Refusals by reason; those that differ only in their numbers stand together."""
    alike: dict[tuple[str, str], list[RefusedRecord]] = {}
    for row in refused:
        alike.setdefault((row.class_name, _NUMBER.sub("#", row.reason)), []).append(row)
    groups = [same for _, same in sorted(alike.items(), key=lambda item: (item[0][0], -len(item[1]), item[0][1]))]

    def reasons(same: Sequence[RefusedRecord]) -> list[str]:
        return list(dict.fromkeys(row.reason for row in same))

    cells = (
        Column("class", "class", "left", of=lambda same: same[0].class_name or "-"),
        Column("records", "n", of=len),
        Column(
            "reason", "reason", "left", wide=True,
            of=lambda same: same[0].reason + (" (others alike)" if len(reasons(same)) > 1 else ""),
        ),
        Column(
            "shown_ids", "records", "left", wide=True,
            of=lambda same: same[0].id + (f" and {len(same) - 1} more" if len(same) > 1 else ""),
        ),
        Unseen("ids", lambda same: ", ".join(row.id for row in same)),
        Unseen("reasons", lambda same: "; ".join(reasons(same))),
    )  # fmt: skip
    return Table.of("Refused", groups, cells)


def _class_notes(found: Grading) -> Iterator[str]:
    alone = [
        f"{grade.class_name} (by {grade.headline.resampled})"
        for grade in found.grades
        if grade.trusted and grade.headline.resampled != "source" and grade.headline.banded
    ]
    if alone:
        yield f"The interval resamples sources; with one source only, smaller groups: {', '.join(alone)}."
    assumed = sum(bool(record.record.assumed) for record in found.records)
    if assumed:
        yield f"{assumed} records leave something out that was assumed; --rows FILE.jsonl says what."
    if any(not grade.trusted for grade in found.grades):
        yield "* Records of low trust, or out of order with their neighbours; no limit counts them."


def _transfer_tables(grades: Sequence[TransferGrade]) -> dict[str, Table]:
    """The table of calibrated predictions, and that of the guesses beside them."""
    rows = tuple(_transfer_row(grade) for grade in grades)
    pair, guesses = ("class", "relation"), ("uncalibrated", "time_as_gpus", "time_unchanged")
    note = (
        "after and before calibration; by family: after it, each family counted once;\n"
        "1/GPUs and unchanged: the other record's time goes as 1/GPUs, or stays"
    )
    after, beside = (*pair, "pairs", "families", *_ERRORS, "coverage_fraction"), ("calibrated", "calibrated_by_family")
    return {
        "transfer": _table("Calibrated on one record, predicting another of its family", after, rows),
        "transfer_beside": _table(
            "The same pairs, median/p90 of the error in percent", (*pair, *beside, *guesses), rows, note
        ),
    }


def _transfer_notes(moved: Transfer | None) -> list[str]:
    """What was left out of the pairs, and why."""
    if moved is None:
        return []
    notes = (
        ("Families with many records give a seeded choice of their pairs", moved.chosen),
        ("Records without another in their family give no pair", moved.alone),
        ("Records that contradict their neighbours calibrate nothing", moved.odd),
        ("Pairs that could not be calibrated or predicted", moved.left_out),
    )
    return [
        f"{text}: {', '.join(f'{name} {count}' for name, count in sorted(counts.items()))}."
        for text, counts in notes
        if counts
    ]


def _transfer_row(grade: TransferGrade) -> dict[str, Cell]:
    left_out = {"records", "bias_fraction", "banded_records", "band_ratio"}
    row: dict[str, Cell] = {"class": grade.class_name, "relation": grade.relation, "pairs": grade.after.n}
    row |= {key: cell for key, cell in _scored(grade.after).items() if key not in left_out}
    row["calibrated"] = _both(grade.after)
    for shown, name, own in (
        ("calibrated_by_family", "by_family", grade.by_family),
        ("uncalibrated", "uncalibrated", grade.before),
        ("time_as_gpus", "time_as_gpus", grade.as_gpus),
        ("time_unchanged", "time_unchanged", grade.unchanged),
    ):
        median, p90 = (own.median, own.p90) if own else (None, None)
        row |= {shown: _both(own), f"{name}_median_error_fraction": median, f"{name}_p90_error_fraction": p90}
    return row


def _both(own: Score | None) -> str:
    return "-" if own is None else f"{_percent(own.median)}/{_percent(own.p90)}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}" if share < 0.0995 else f"{100 * share:.0f}"  # noqa: PLR2004 (tenths matter below 10 %)


def _winners_table(contests: Sequence[Contest]) -> Table:
    """How often the faster of two ways is named."""
    own: dict[str, list[Contest]] = {}
    for contest in sorted(contests, key=lambda one: one.class_name):
        own.setdefault(contest.class_name, []).append(contest)
    clear = {name: [contest for contest in known if contest.clear] for name, known in own.items()}
    wrong = {name: [f"{one.one} and {one.other}" for one in known if not one.right] for name, known in clear.items()}
    cells = (
        Column("class", "class", "left", of=str),
        Column("clear_pairs", "pairs", of=lambda name: len(clear[name])),
        Column("right_pairs", "right", of=lambda name: len(clear[name]) - len(wrong[name])),
        Column("doubtful_pairs", "of which predicted close", of=lambda name: sum(one.doubtful for one in clear[name])),
        Column("close_pairs", "too close to call", of=lambda name: len(own[name]) - len(clear[name])),
        Unseen("wrong_pairs", lambda name: "; ".join(wrong[name])),
    )
    note = f"a measured gap up to {CLOSE:.0%} is too close to call"
    return Table.of("The faster of two ways to do the same work", own, cells, note=note)


def _chart(records: Sequence[PredictedRecord]) -> Chart | None:
    """Dots for trusted records, a colour for each class; None where there are none."""
    trusted = [record for record in records if record.trusted]
    if not trusted:
        return None
    names = sorted({record.class_name for record in trusted})
    measured = [record.fields[0].measured for record in trusted]
    ends = (min(measured) / _MARGIN, max(measured) * _MARGIN)
    near = sum(_error(record) <= _NEAR for record in trusted)
    lines = (("as measured", 1.0), (f"{_NEAR:.0%} more", 1 + _NEAR), (f"{_NEAR:.0%} less", 1 - _NEAR))
    return Chart(
        title=f"{near} of {len(trusted)} predictions lie within {_NEAR:.0%} of the measurement",
        subtitle="each record in the unit of the field that counts; bars are 80 % bands",
        x_label="measured",
        y_label="predicted",
        log_x=True,
        log_y=True,
        series=(
            *(_dots(name, [record for record in trusted if record.class_name == name]) for name in names),
            *(Series.of(name, ((end, end * factor) for end in ends), "limit") for name, factor in lines),
        ),
    )


def _dots(name: str, records: Sequence[PredictedRecord]) -> Series:
    fields = [record.fields[0] for record in records]
    dots = Series.of(name, ((field.measured, field.predicted) for field in fields), dots=True)
    return replace(dots, bands=tuple((one.low, one.high) if one.low and one.high else None for one in fields))
