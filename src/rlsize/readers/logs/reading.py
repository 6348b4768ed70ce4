"""Reading a training log, whatever framework wrote it, in whatever form, in bounded memory."""

from __future__ import annotations

from collections import deque
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rlsize.errors import Fault, InputError, suggestion
from rlsize.facts.run_log import RunLog, StepRecord
from rlsize.readers.byte_sources import shown_source
from rlsize.readers.logs.figures import Row, Skips
from rlsize.readers.logs.forms import tensorboard
from rlsize.readers.logs.mapping import Mapper, with_said
from rlsize.readers.logs.merging import Parts, grouped, merged
from rlsize.readers.logs.recognising import Asked, LogKind, first_record, hints, kind_by_keys, kind_of, names
from rlsize.readers.logs.source import opened
from rlsize.readers.logs.trackers import FORM as TRACKER
from rlsize.readers.logs.trackers import SQLITE, database_values, folder_of_metrics, folder_values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rlsize.readers.logs.figures import Figure
    from rlsize.readers.logs.mapping import Framework

FORMATS = names()
"""What --format takes for a log."""
MOST_STEPS = 200_000
"""Steps of a log that are kept: the newest."""
_RESPONSE = "mean_response_tokens"
_PIECED = "its records are put together from lines: a sum of several keys may lack one that was not there"
_EVENTS = "events.out.tfevents.*"
_CONSOLES = ("run-*.wandb", "output.log", "files/output.log")  # what W&B keeps of a run: its figures, its console
_MOST_FILES = 500
_IN_TURN = ("generation_seconds", "logprob_seconds", "update_seconds", "sync_seconds")
_OVERLAP = 1.1  # of the step; timers that follow each other add up to less


def read_log(
    path: str,
    format: str | None = None,  # noqa: A002 (the flag's name)
    tell: Callable[[float], None] | None = None,
    said: Sequence[Figure] = (),
) -> RunLog:
    """
    The steps of a training log.

    Args:
        path: A file, plain or packed (.gz, .zst), `-` for standard input, a database, or a folder of a tracker.
        format: What it is, one of `FORMATS`; None to recognise it by its content.
        tell: Hears the share of the file that is read, where it has a size.
        said: What the user says that keys mean, before anything else that is known of them.

    Raises:
        InputError: It cannot be read, is no log that is known, or has not one whole step.
    """
    if format is not None and format not in FORMATS:
        raise InputError(Fault(f"no log format is called {format}", "--format", suggestion(format, FORMATS)))
    keys = frozenset(key for figure in said for names in figure.of for key in names)
    failed: InputError | None = None
    for loose in (False, True):
        skips = Skips()
        try:
            with _rows(path, Asked(format, keys, loose=loose), skips, tell) as (kind, rows):
                return _log(shown_source(path), kind, rows, skips, said)
        except InputError as error:
            failed = failed or error
    raise InputError(*(failed.faults if failed else ()))


@contextmanager
def _rows(
    path: str, asked: Asked, skips: Skips, tell: Callable[[float], None] | None
) -> Iterator[tuple[LogKind, Iterator[Row]]]:
    """What a log is, and its rows."""
    if path != "-" and Path(path).is_dir():
        with _folder(path, asked, skips) as found:
            yield found
        return
    with opened(path, skips, tell) as source:
        if not source.head and not skips.listing():
            raise InputError(Fault("is empty", source.name, "is the run writing its log elsewhere?"))
        if source.head.startswith(SQLITE):
            yield _kept(path, asked, skips, database_values(path, skips))
            return
        first = first_record(source, asked)
        if first is None:
            raise InputError(_unknown(source.name, asked.name, skips, hints(source.head)))
        kind, blocks = first
        yield kind, kind.form.rows(blocks, skips)


@contextmanager
def _folder(path: str, asked: Asked, skips: Skips) -> Iterator[tuple[LogKind, Iterator[Row]]]:
    """What the event files of a folder are, and their rows."""
    files = sorted(file for file in Path(path).glob(_EVENTS) if file.is_file())
    console = next((file for name in _CONSOLES for file in sorted(Path(path).glob(name)) if file.is_file()), None)
    if console is not None and not files:
        with _rows(str(console), asked, skips, None) as found:
            yield found
        return
    metrics = folder_of_metrics(path) if not files else None
    if metrics is not None:
        yield _kept(path, asked, skips, folder_values(metrics, skips))
        return
    if not files:
        todo = "name a file, or the folder that has them"
        raise InputError(
            Fault(f"is a directory without event files ({_EVENTS}), MLflow's metrics or W&B's console", path, todo)
        )
    if len(files) > _MOST_FILES:
        raise InputError(Fault(f"has {len(files)} event files, more than {_MOST_FILES}", path, "move old ones away"))
    with ExitStack() as stack:
        sources = [(file.name, stack.enter_context(opened(str(file), skips))) for file in files]
        kind = next((kind for _, source in sources if (kind := kind_of(source.head, asked))), None)
        if kind is None:
            raise InputError(_unknown(path, asked.name, skips))
        yield kind, tensorboard.folder_rows([(file, source.blocks()) for file, source in sources], skips)


def _kept(path: str, asked: Asked, skips: Skips, rows: list[Row]) -> tuple[LogKind, Iterator[Row]]:
    """What a tracker's values are, and the values."""
    kind = kind_by_keys(TRACKER, {key for row in rows for key in row.values}, asked)
    if kind is None:
        raise InputError(_unknown(path, asked.name, skips))
    return kind, iter(rows)


def _unknown(source: str, name: str | None, skips: Skips, more: str = "") -> Fault:
    looked = f"a record of {name}" if name else "a record with keys of a framework that is known"
    what = f"has not one whole record that can be read: looked for {looked}{_told(skips)}{more}"
    return Fault(what, source, f"training logs are read of {', '.join(FORMATS)}; --format names one")


@dataclass(slots=True)
class _Steps:
    """Steps as they come, of which the newest are kept."""

    kept: deque[StepRecord] = field(default_factory=lambda: deque(maxlen=MOST_STEPS))
    count: int = 0
    back: int = 0
    first_back: str = ""

    def add(self, step: StepRecord, place: str) -> None:
        """Keep a step."""
        if self.kept and step.step < self.kept[-1].step:
            self.back += 1
            self.first_back = self.first_back or place
        self.kept.append(step)
        self.count += 1

    def warnings(self) -> list[str]:
        """What a reader of these steps must know."""
        found = []
        if self.count > len(self.kept):
            found.append(f"{self.count:,} steps in the log: only the newest {MOST_STEPS:,} are used")
        if self.back:
            times = "once" if self.back == 1 else f"{self.back:,} times"
            found.append(f"the step number goes back {times}, first at {self.first_back}: a restart; all rows are kept")
        return found


def _log(path: str, kind: LogKind, rows: Iterable[Row], skips: Skips, said: Sequence[Figure]) -> RunLog:
    """The steps of rows, with all that must be said of them."""
    framework = with_said(kind.framework, said)
    mapper = Mapper(framework, skips)
    steps = _Steps()
    notes: list[str] = []
    if kind.form.loose:
        rows = grouped(_numbered(rows, framework), framework.wants)
    if kind.form.scattered or kind.form.loose or framework.halves:
        parts = Parts(
            halves=() if kind.form.loose else framework.halves,
            together=framework.together and not kind.form.loose,
            scattered=kind.form.scattered,
            loose=kind.form.loose,
        )
        rows = merged(_numbered(rows, framework), parts, skips, notes)
    for row in rows:
        step = mapper.step(row)
        if step is not None:
            steps.add(step, row.place)
    tells = {name for name in mapper.keys if name.endswith(("_seconds", "_second", "_gpu")) or name == _RESPONSE}
    if not steps.kept or mapper.last is None or not tells:
        what = f"a log of {framework.name} ({kind.form.name}) without one whole step{_told(skips)}"
        raise InputError(Fault(what, path, "wait for its next step, or name another log"))
    warn = framework.warn
    modes = [(count, mode) for mode, count in mapper.modes.items() if mode != "unknown"]
    counted = () if mapper.last.numbered else ("the log has no step numbers: its rows are counted from 1",)
    unseen = (figure.of[0][0] for figure in said if figure.of[0][0] not in mapper.keys.get(figure.field, ""))
    notes += [f"no record has the key {key}, which --map names" for key in dict.fromkeys(unseen)]
    pieced = (_PIECED,) if kind.form.loose and not kind.form.whole_file else ()
    return RunLog(
        source=path,
        framework=framework.name,
        form=kind.form.name,
        mode=max(modes)[1] if modes else "async" if _overlaps(steps.kept) else "unknown",  # as most rows say it
        steps=tuple(steps.kept),
        keys={name: says for name, says in mapper.keys.items() if _is_said(name, steps.kept)},
        counts={name: says for name, says in mapper.counts.items() if _is_said(name, steps.kept)},
        skipped=skips.listing(),
        guessed={name: says for name, says in mapper.guessed.items() if _is_said(name, steps.kept)},
        unread=tuple(mapper.unread),
        warnings=(*steps.warnings(), *notes, *pieced, *counted, *(warn(mapper.last, mapper.keys) if warn else ())),
    )


def _overlaps(steps: Iterable[StepRecord]) -> bool:
    """Whether the parts of most steps take longer than the steps, so that they must run beside each other."""
    sums = [(sum(getattr(step, part) or 0.0 for part in _IN_TURN), step.step_seconds) for step in steps]
    timed: list[bool] = [parts > _OVERLAP * whole for parts, whole in sums if whole]
    return 2 * sum(timed) > len(timed)


def _is_said(name: str, steps: Iterable[StepRecord]) -> bool:
    """Whether any step has a field."""
    return any(getattr(step, name) is not None for step in steps)


def _numbered(rows: Iterable[Row], framework: Framework) -> Iterator[Row]:
    """Rows that know the number of their step, without the keys that said it."""
    for row in rows:
        values = framework.prepare(row.values) if framework.prepare else row.values
        step = row.step
        if step is None:
            step = next((values[key] for key in framework.steps if key in values), None)
        kept = {key: value for key, value in values.items() if key not in framework.steps}
        yield Row(step, kept, row.place)


def _told(skips: Skips) -> str:
    """What was skipped, at the end of a sentence."""
    return "".join(f"; {entry.count:,} not used: {entry.why} (first at {entry.first})" for entry in skips.listing())
