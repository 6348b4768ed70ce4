"""Reading a training log, whatever framework wrote it, in whatever form, in bounded memory."""

from __future__ import annotations

from collections import deque
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rlsize.errors import Fault, InputError, suggestion
from rlsize.facts.run_log import RunLog, StepRecord
from rlsize.readers.logs.forms import tensorboard
from rlsize.readers.logs.mapping import Mapper
from rlsize.readers.logs.merging import Parts, merged
from rlsize.readers.logs.recognising import LogKind, first_record, kind_of, names
from rlsize.readers.logs.rows import Row, Skips
from rlsize.readers.logs.source import opened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rlsize.readers.logs.mapping import Framework

FORMATS = names()
"""What --format takes for a log."""
MOST_STEPS = 200_000
"""Steps of a log that are kept: the newest."""
_EVENTS = "events.out.tfevents.*"
_MOST_FILES = 500


def read_log(path: str, format: str | None = None, tell: Callable[[float], None] | None = None) -> RunLog:  # noqa: A002 (the flag's name)
    """
    The steps of a training log.

    Args:
        path: A file, plain or packed (.gz, .zst), `-` for standard input, or a folder of TensorBoard's event files.
        format: What it is, one of `FORMATS`; None to recognise it by its content.
        tell: Hears the share of the file that is read, where it has a size.

    Raises:
        InputError: It cannot be read, is no log that is known, or has not one whole step.
    """
    if format is not None and format not in FORMATS:
        raise InputError(Fault(f"no log format is called {format}", "--format", suggestion(format, FORMATS)))
    skips = Skips()
    with _rows(path, format, skips, tell) as (kind, rows):
        return _log(path, kind, rows, skips)


@contextmanager
def _rows(
    path: str, name: str | None, skips: Skips, tell: Callable[[float], None] | None
) -> Iterator[tuple[LogKind, Iterator[Row]]]:
    """What a log is, and its rows."""
    if path != "-" and Path(path).is_dir():
        with _folder(path, name, skips) as found:
            yield found
        return
    with opened(path, skips, tell) as source:
        if not source.head and not skips.listing():
            raise InputError(Fault("is empty", source.name, "is the run writing its log elsewhere?"))
        first = first_record(source, name)
        if first is None:
            raise InputError(_unknown(source.name, name, skips))
        kind, blocks = first
        yield kind, kind.form.rows(blocks, skips)


@contextmanager
def _folder(path: str, name: str | None, skips: Skips) -> Iterator[tuple[LogKind, Iterator[Row]]]:
    """What the event files of a folder are, and their rows."""
    files = sorted(file for file in Path(path).glob(_EVENTS) if file.is_file())
    if not files:
        todo = "name a file, or the folder that has them"
        raise InputError(Fault(f"is a directory without event files ({_EVENTS})", path, todo))
    if len(files) > _MOST_FILES:
        raise InputError(Fault(f"has {len(files)} event files, more than {_MOST_FILES}", path, "move old ones away"))
    with ExitStack() as stack:
        sources = [(file.name, stack.enter_context(opened(str(file), skips))) for file in files]
        kind = next((kind for _, source in sources if (kind := kind_of(source.head, name))), None)
        if kind is None:
            raise InputError(_unknown(path, name, skips))
        yield kind, tensorboard.folder_rows([(file, source.blocks()) for file, source in sources], skips)


def _unknown(source: str, name: str | None, skips: Skips) -> Fault:
    looked = f"a record of {name}" if name else "a record with keys of a framework that is known"
    what = f"has not one whole record that can be read: looked for {looked}{_told(skips)}"
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


def _log(path: str, kind: LogKind, rows: Iterable[Row], skips: Skips) -> RunLog:
    """The steps of rows, with all that must be said of them."""
    framework = kind.framework
    mapper = Mapper(framework, skips)
    steps = _Steps()
    if kind.form.scattered or framework.halves:
        parts = Parts(halves=framework.halves, together=framework.together, scattered=kind.form.scattered)
        rows = merged(_numbered(rows, framework), parts, skips)
    for row in rows:
        step = mapper.step(row)
        if step is not None:
            steps.add(step, row.place)
    if not steps.kept or mapper.last is None:
        what = f"a log of {framework.name} ({kind.form.name}) without one whole step{_told(skips)}"
        raise InputError(Fault(what, path, "wait for its next step, or name another log"))
    warn = framework.warn
    modes = [(count, mode) for mode, count in mapper.modes.items() if mode != "unknown"]
    counted = () if mapper.last.numbered else ("the log has no step numbers: its rows are counted from 1",)
    return RunLog(
        source=path,
        framework=framework.name,
        form=kind.form.name,
        mode=max(modes)[1] if modes else "unknown",  # as most rows say it
        steps=tuple(steps.kept),
        keys={name: says for name, says in mapper.keys.items() if _is_said(name, steps.kept)},
        counts={name: says for name, says in mapper.counts.items() if _is_said(name, steps.kept)},
        skipped=skips.listing(),
        warnings=(*steps.warnings(), *counted, *(warn(mapper.last, mapper.keys) if warn else ())),
    )


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
