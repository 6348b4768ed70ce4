"""Reading a training log, whatever framework wrote it, in whatever form, in bounded memory."""

from __future__ import annotations

from collections import Counter, deque
from contextlib import ExitStack, contextmanager
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rlsize.errors import Fault, InputError, suggestion
from rlsize.facts.run_log import RunLog, StepRecord
from rlsize.frozen import dataclass
from rlsize.readers.byte_sources import shown_source
from rlsize.readers.logs.figures import UNFINISHED, Row, Skips
from rlsize.readers.logs.forms import tensorboard
from rlsize.readers.logs.mapping import Mapper, with_said
from rlsize.readers.logs.names import is_time
from rlsize.readers.logs.recognising import Asked, LogKind, first_record, hints, kind_by_keys, kind_of, names
from rlsize.readers.logs.source import opened
from rlsize.readers.logs.trackers import FORM as TRACKER
from rlsize.readers.logs.trackers import SQLITE, database_values, folder_of_metrics, folder_values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

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

_WINDOW = 1_000
"""Steps that are open at once; parts of one step stand nearer together."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """
    What the parts of a step are.

    Args:
        halves: Keys, one of which stands in each part; empty if the parts cannot be told.
        together: Whether the parts always stand in one log, so that a step without one of them is not written out.
        scattered: Whether a part is a single value.
        loose: Whether a step that is alone counts for what it says.
    """

    halves: Sequence[Sequence[str]] = ()
    together: bool = False
    scattered: bool = False
    loose: bool = False

    def again(self, new: Mapping[str, float], old: Mapping[str, float]) -> bool:
        """Whether a part says again what its step has already."""
        if self.scattered or not self.halves:
            return any(key in old for key in new)
        return any(_has(new, half) and _has(old, half) for half in self.halves)

    def full(self, values: Mapping[str, float]) -> bool:
        """Whether a step has all parts, as far as they can be told."""
        return bool(self.halves) and all(_has(values, half) for half in self.halves)

    def whole(self, values: Mapping[str, float], needed: AbstractSet[str], *, alone: bool) -> bool:
        """Whether a step has what others have: `needed`, unless it is alone."""
        full = self.full(values)
        if full and not self.scattered:
            return True
        return (self.loose or not alone) and needed <= values.keys() and (full or not self.together)


def _has(values: Mapping[str, float], half: Iterable[str]) -> bool:
    return any(key in values for key in half)


def grouped(rows: Iterable[Row], wants: Callable[[str], bool]) -> Iterator[Row]:
    """
    Parts that have no number, put to the number before them, or together until a key comes again.

    Args:
        rows: The parts, in their order.
        wants: Whether a key counts; others come again and again, and times are kept to be told.
    """
    step: float | None = None
    kept: dict[str, float] = {}
    place = ""
    for row in rows:
        values = {key: value for key, value in row.values.items() if wants(key) or is_time(key)}
        new = row.step is not None and row.step != step
        again = step is None and any(key in kept and wants(key) for key in values)
        if kept and (new or again):
            yield Row(step, kept, place)
        if new or again or not kept:
            step, kept, place = row.step if new else step, {}, row.place
        kept = {**values, **kept}
    if kept:
        yield Row(step, kept, place)


@dataclass(slots=True)
class _Open:
    """
    A step to which parts may still come, unless the run went back to it.

    Args:
        step: Its number.
        place: Where its first part stands.
        values: What it says.
        whole: Whether it is whole, where that is known.
    """

    step: float
    place: str
    values: dict[str, float] = field(default_factory=dict)
    whole: bool | None = None


def merged(rows: Iterable[Row], parts: Parts, skips: Skips, notes: list[str]) -> Iterator[Row]:
    """
    Rows, one for each step, in the order in which they began.

    Args:
        rows: Parts of steps; those without a number pass as they are.
        parts: What the parts are.
        skips: Hears of steps that are not written out.
        notes: Takes what else must be known of the steps.
    """
    steps = _Merged(parts, skips)
    for row in rows:
        if row.step is None:
            yield row
        else:
            yield from steps.add(row.step, row)
    yield from steps.close()
    if parts.together and steps.halved:
        notes.append("only one side of the loop stands in this log")


@dataclass(slots=True)
class _Merged:
    """Steps in the making, how often each key stood in those that are done, and whether none of them had all parts."""

    parts: Parts
    skips: Skips
    order: deque[_Open] = field(default_factory=deque)
    latest: dict[float, _Open] = field(default_factory=dict)
    often: Counter[str] = field(default_factory=Counter)
    halved: bool = True
    done: int = 0

    def add(self, number: float, row: Row) -> Iterator[Row]:
        """Put a part to its step, and give out the oldest step where there are too many."""
        step = self.latest.get(number)
        if step is not None and self.parts.again(row.values, step.values):
            needed, total = self._needed()  # the run went back to it, maybe because it died in the middle of it
            step.whole = self.parts.whole(step.values, needed, alone=total == 1)
            step = None
        if step is None:
            step = self.latest[number] = _Open(number, row.place)
            self.order.append(step)
        for key, value in row.values.items():
            step.values.setdefault(key, value)
        if len(self.order) > _WINDOW:
            first = self.order.popleft()
            if self.latest.get(first.step) is first:
                del self.latest[first.step]
            yield from self._done(first)

    def close(self) -> Iterator[Row]:
        """What is left at the end of a log, without the last steps if they are not written out."""
        self.halved = self.halved and not any(self.parts.full(step.values) for step in self.order)
        needed, total = self._needed()
        for step in reversed(self.order):
            if step.whole is None:
                step.whole = self._parts().whole(step.values, needed, alone=total == 1)
            if step.whole:
                break
        for step in self.order:
            yield from self._done(step)

    def _parts(self) -> Parts:
        """What the parts are; where no step has all of them, the log is of one side alone."""
        return replace(self.parts, together=self.parts.together and not self.halved)

    def _needed(self) -> tuple[set[str], int]:
        """The keys that at least half of the steps have, and how many steps there are."""
        often = Counter(self.often)
        for step in self.order:
            often.update(step.values.keys())
        total = self.done + len(self.order)
        return {key for key, count in often.items() if 2 * count >= total}, total

    def _done(self, step: _Open) -> Iterator[Row]:
        """A step, if it is whole; what only lacks a key that others have, in the middle of a log, is."""
        self.done += 1
        self.often.update(step.values.keys())
        self.halved = self.halved and not self.parts.full(step.values)
        if step.whole is None:
            step.whole = not self._parts().together or self.parts.full(step.values)
        if step.whole:
            yield Row(step.step, step.values, step.place)
        else:
            self.skips.add(UNFINISHED, step.place)
