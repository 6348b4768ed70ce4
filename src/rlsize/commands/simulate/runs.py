"""Runs of the simulator: side by side, with progress, kept in a file as they finish, within bounds."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import signal
import sys
import threading
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

from rlsize.errors import Fault, InputError, noting, suggestion
from rlsize.facts.figure import Figure
from rlsize.reports.wording import numbered
from rlsize.shell.progress import INTERRUPTED
from rlsize.units import show
from rlsize.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from rlsize.commands.simulate import Orders
    from rlsize.shell.inputs import Inputs
    from rlsize.simulator.first_order import Pools
    from rlsize.simulator.ledger import Event, Ledger, Span
    from rlsize.simulator.outcome import Outcome
    from rlsize.simulator.setting import Setting

BACKENDS = {"processes": "loky", "threads": "threading", "ray": "ray", "dask": "dask"}
_INSTALLED = {"ray": ("ray", "ray"), "dask": ("distributed", "dask distributed")}  # module, and what to install for it
MOST_SAMPLES = 200e6
_STEPS = 1000
_FEWEST_STEPS = 100
_TELLING_SAMPLES = 500_000  # of a run: 122 steps of 4,096 told a step as 1,000 do, to 0.1 %
COMPILED = "compiled_fraction"
"""Key of the share of the runs that the kernel played."""
_SMALL = 100_000  # samples below which starting processes takes longer than the runs
_SMALL_COMPILED = 5e6  # the same for the compiled kernel
_PER_SECOND = 1.5e5  # samples, without it
_LONG = 5.0  # seconds from which on the time to come is told
_BYTES_PER_SAMPLE = 700  # of a sample under way, with its group
_MOST_BYTES = 8e9
_MOST_INSTANCES = 100_000
_LISTS_ONLY = frozenset({"ray"})  # back ends that give results when all are there, so they get a few jobs at a time
_TOLD = 10  # times that progress is told
_DIGITS = 24  # of a run's key
_LARGEST_FILE = 256 * 2**20
_OPENING = '{"key": "'  # of each line

_TRACED = 400_000  # spans and events that a trace takes; more are slow to open
_DRAWN_STEPS = 4  # optimizer steps of the chart of who does what when


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """
    One run.

    Args:
        setting: The loop.
        pools: Its GPUs and prices.
        steps: Optimizer steps. [1]
        seed: Of its randomness.
        keeps_ledger: Whether its accounts are wanted, beside what it came to.
    """

    setting: Setting
    pools: Pools
    steps: int
    seed: int
    keeps_ledger: bool = False

    @property
    def samples(self) -> float:
        """Samples that it generates, roughly; each turn counts as one. [1]"""
        work, rules = self.setting.work, self.setting.rules
        return self.steps * work.samples * work.turns * rules.oversampling / work.acceptance

    @property
    def key(self) -> str:
        """What tells it from every other run."""
        loop = {"setting": asdict(self.setting), "pools": asdict(self.pools)}
        said = json.dumps([loop, self.steps, self.seed, VERSION], sort_keys=True, default=str)
        return hashlib.sha256(said.encode()).hexdigest()[:_DIGITS]


class Done(NamedTuple):
    """
    A run that is over.

    Args:
        outcome: What it came to; None where the loop stood still.
        ledger: Its accounts, if they were wanted.
        steps: Optimizer steps that it made. [1]
        compiled: Whether the compiled kernel played it, now.
    """

    outcome: Outcome | None
    ledger: Ledger | None = None
    steps: int = 0
    compiled: bool = False


def backend_fault(backend: str) -> Fault | None:
    """
    What is wrong with a back end; None where it can be used.

    Args:
        backend: Its name.
    """
    if backend not in BACKENDS:
        return Fault(f"{backend!r} is unknown", "--backend", suggestion(backend, BACKENDS))
    module, package = _INSTALLED.get(backend, ("joblib", "joblib"))
    if find_spec(module) is None:
        todo = f"install it (pip install {package}), or leave --backend out"
        return Fault(f"{backend} is not installed", "--backend", todo)
    return None


def settled(orders: Orders, inputs: Inputs, settings: Sequence[Setting]) -> Orders:
    """The orders with the steps of each run, where nobody says them: enough for all of these loops."""
    if orders.steps:
        return orders
    why = "enough for p95 and rare events, and no more than tell the step where nothing is rare"
    steps = inputs.ask("simulated_steps", default=max(map(enough_steps, settings)), why=why)
    return replace(orders, steps=round(steps.number))


def enough_steps(setting: Setting) -> int:
    """
    Optimizer steps that tell what a loop does: 1,000, fewer of large batches that fare alike step after step.

    A queue without bounds, lengths that drift, a fleet that is resized and what fails by the hour need all of them.
    """
    rules, trouble = setting.rules, setting.trouble
    bounded = rules.mode != "async" or rules.max_staleness is not None or rules.queue_steps is not None
    fails = trouble.losses_per_hour or trouble.failures_per_hour
    if not bounded or rules.resizes or fails or setting.work.lengths.drift:
        return _STEPS
    return min(_STEPS, max(_FEWEST_STEPS, int(_TELLING_SAMPLES / setting.work.samples)))


def check_bounds(jobs: Sequence[Job], most_samples: float) -> None:
    """
    Refuse what would take too long or too much memory.

    Raises:
        InputError: With what would fit.
    """
    fleet = max(job.setting.most_instances + job.setting.trouble.lent_instances for job in jobs)
    if fleet > _MOST_INSTANCES:
        todo = "simulate a part of the fleet, with as large a part of the batch"
        raise InputError(Fault(f"{fleet:,} instances are more than {_MOST_INSTANCES:,}", "--instances", todo))
    whole = sum(job.samples for job in jobs)
    if whole > most_samples:
        raise InputError(_too_many(jobs, whole, most_samples))
    needed = max(_most_under_way(job) for job in jobs) * _BYTES_PER_SAMPLE
    if needed > _MOST_BYTES:
        todo = "cap the staleness or the queue (--queue-steps), or simulate fewer steps or a part of the fleet"
        what = f"samples under way and waiting would take {needed / 1e9:,.1f} GB"
        raise InputError(Fault(what, "--max-staleness", todo))


def _too_many(jobs: Sequence[Job], whole: float, most_samples: float) -> Fault:
    steps, turns = jobs[0].steps, any(job.setting.work.turns > 1 for job in jobs)
    runs = f"{len(jobs)} runs of {steps:,} steps generate" if len(jobs) > 1 else f"1 run of {steps:,} steps generates"
    what = f"{runs} {whole:,.0f} {'turns' if turns else 'samples'}, more than {most_samples:,.0f}"
    fits = int(steps * most_samples / whole)
    shorter = f"give --steps {fits}, or fewer seeds or points" if fits else "simulate a part of the batch and the fleet"
    return Fault(what, "--steps", f"{shorter}; or raise --most-samples (a million take about 10 s)")


def _most_under_way(job: Job) -> float:
    """Samples that may exist at once. [1]"""
    setting = job.setting
    work, rules = setting.work, setting.rules
    slots = float(setting.slots)
    if rules.mode != "async":
        return 2.0 * work.samples * rules.oversampling
    if rules.max_staleness is not None:
        return (rules.max_staleness + 2.0) * work.samples
    if rules.queue_steps is not None:
        return slots + (rules.queue_steps + 1.0) * work.samples
    return slots + job.samples  # without a cap the backlog may grow for the whole run


def run_job(job: Job, *, compiled: bool = False) -> Done:
    """
    Simulate, and say what it came to.

    Args:
        job: The run.
        compiled: Whether loading the compiled kernel pays.
    """
    from rlsize.simulator.outcome import outcome_of
    from rlsize.simulator.run import simulate

    if multiprocessing.parent_process() is not None:  # Ctrl-C is the parent's to hear
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if hasattr(signal, "SIGHUP"):
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
    setting = job.setting
    ledger = simulate(setting, job.steps, job.seed, compiled=compiled, partly=True)
    if len(ledger) < job.steps:
        return Done(None, steps=len(ledger))
    outcome = outcome_of(ledger, setting, job.pools, job.seed)
    return Done(outcome, ledger if job.keeps_ledger else None, len(ledger), ledger.compiled)


def played_by(done: Collection[Done]) -> str:
    """
    Which program played these runs, in a sentence.

    Args:
        done: The runs.
    """
    compiled = sum(one.compiled for one in done)
    if compiled == len(done):
        return "Played by the compiled kernel."
    rest = "by the specification, in Python"
    if not compiled:
        return f"Played {rest}."
    return f"{compiled} of {len(done)} runs played by the compiled kernel, the rest {rest}."


def compiled_figure(done: Collection[Done]) -> Figure:
    """
    Which share of these runs the compiled kernel played.

    Args:
        done: The runs.
    """
    value = sum(one.compiled for one in done) / len(done)
    return Figure(key=COMPILED, value=value, provenance="predicted", source=f"of {numbered(len(done), 'run')}")


def _to_come(jobs: Sequence[Job]) -> str:
    """How long these runs take without the kernel, and what to install for it; empty where it is there, or useless."""
    from rlsize.simulator.played import EXTRA, covers, installed

    seconds = sum(job.samples for job in jobs if covers(job.setting)) / _PER_SECOND
    if installed() or seconds < _LONG:
        return ""
    return f"; about {show(seconds, '_seconds')} of work to come, a few seconds with pip install '{EXTRA}'"


def run_all(
    jobs: Sequence[Job], say: Callable[[str, float], None], *, backend: str, workers: int, kept: KeptRuns | None
) -> dict[int, Done]:
    """
    Finished runs by the number of the job: all of them, unless Ctrl-C keeps some from it.

    Args:
        jobs: What to run.
        say: Takes what is being done and the share that is done.
        backend: One of `BACKENDS`.
        workers: Runs at the same time; -1 for as many as there are cores.
        kept: A file of finished runs to take from and add to.

    Raises:
        InputError: The disk refuses to keep them.
    """
    done: dict[int, Done] = {}
    for index, job in enumerate(jobs):
        found = kept.found(job.key) if kept is not None and not job.keeps_ledger else None
        if found is not None:
            done[index] = Done(found, steps=found.steps)
    left = [index for index in range(len(jobs)) if index not in done]
    long = sum(jobs[index].samples for index in left) >= _SMALL  # what takes a second or more
    if long:
        say(f"{len(done)} of {len(jobs)} runs{_to_come([jobs[i] for i in left])}", len(done) / len(jobs))
    try:
        for index, result in zip(left, _results([jobs[i] for i in left], backend, workers), strict=True):
            done[index] = result
            if kept is not None and result.outcome is not None:
                kept.add(jobs[index].key, result.outcome)
            if long and len(done) * _TOLD // len(jobs) > (len(done) - 1) * _TOLD // len(jobs):
                say(f"{len(done)} of {len(jobs)} runs", len(done) / len(jobs))
    except KeyboardInterrupt:
        return done  # the caller sees which are lacking
    return done


def _results(jobs: Sequence[Job], backend: str, workers: int) -> Iterator[Done]:
    """Results in the order of the jobs."""
    from rlsize.simulator.played import covers, installed
    from rlsize.simulator.run import WORTH

    samples = sum(job.samples for job in jobs)
    kernel = installed() and all(covers(job.setting) for job in jobs)
    play = partial(run_job, compiled=samples >= WORTH)
    small = backend == "processes" and samples < (_SMALL_COMPILED if kernel else _SMALL)
    if len(jobs) <= 1 or workers == 1 or small:
        yield from map(play, jobs)
        return
    over = 0
    try:
        for done in _side_by_side(jobs, play, backend, workers):
            yield done
            over += 1
    except BrokenProcessPool:
        sys.stderr.write("a worker was killed: the rest is run here, one after the other\n")
        yield from map(play, jobs[over:])


def _side_by_side(jobs: Sequence[Job], play: Callable[[Job], Done], backend: str, workers: int) -> Iterator[Done]:
    """
    Results in the order of the jobs, by a back end of joblib.

    Raises:
        BrokenProcessPool: A worker was killed.
    """
    import joblib

    from rlsize.measure.guard import guard

    guard()  # workers that wait for work would outlive a parent that was killed
    threading.excepthook = lambda _: None  # joblib's threads would tell at length of work that they lose to a signal
    with _registered(backend), joblib.parallel_config(backend=BACKENDS[backend], n_jobs=workers):
        at_once = len(jobs)
        if backend in _LISTS_ONLY:
            at_once = 2 * joblib.effective_n_jobs(workers)
        for first in range(0, len(jobs), at_once):
            how = {} if backend in _LISTS_ONLY else {"return_as": "generator", "pre_dispatch": "3*n_jobs"}
            yield from joblib.Parallel(**how)(joblib.delayed(play)(job) for job in jobs[first : first + at_once])


@contextmanager
def _registered(backend: str) -> Iterator[None]:
    """Have joblib know a cluster's back end, which the user has installed; a local cluster ends with the runs."""
    with ExitStack() as stack:
        if backend == "ray":
            import ray
            from ray.util.joblib import register_ray

            ray.init(log_to_driver=False)  # where RAY_ADDRESS says, else on this machine; its talk would go to stdout
            stack.callback(ray.shutdown)
            register_ray()
        elif backend == "dask":
            from dask.distributed import Client

            stack.enter_context(Client())  # where DASK_SCHEDULER_ADDRESS says, else on this machine
        yield


def run(jobs: Sequence[Job], orders: Orders) -> tuple[dict[int, Done], bool]:
    """Finished runs by the number of the job, and whether Ctrl-C kept the others from it."""
    from rlsize.shell.progress import progress

    check_bounds(jobs, orders.most_samples)
    kept = KeptRuns(orders.runs) if orders.runs is not None else None
    with progress() as say:
        done = run_all(jobs, say, backend=orders.backend, workers=orders.workers, kept=kept)
    return done, len(done) < len(jobs)


def nothing_finished() -> typer.Exit:
    """Say that Ctrl-C came before there was anything to answer with."""
    sys.stderr.write("interrupted: no run was finished\n")
    return typer.Exit(INTERRUPTED)


class KeptRuns:
    """
    A file of finished runs, one a line, which grows as runs finish.

    Args:
        path: The file; made if there is none.

    Raises:
        InputError: It cannot be read, or holds something else; it is left as it is.
    """

    def __init__(self, path: str) -> None:
        from rlsize.readers.yaml_documents import read_text
        from rlsize.writers.files import check_target

        self.path = check_target(path, force=True)
        self._known: dict[str, Outcome] = {}
        self._torn = False
        if not self.path.exists():
            return
        text = read_text(path, _LARGEST_FILE)
        self._torn = bool(text) and not text.endswith("\n")
        for number, line in enumerate(text.splitlines(), start=1):
            entry = _entry(line)
            if entry is not None:
                self._known[entry[0]] = entry[1]
            elif not _cut_short(line):
                fault = Fault("is no finished run", f"{path}, line {number}", "name a file that --runs has written")
                raise InputError(fault)

    def found(self, key: str) -> Outcome | None:
        """
        What a run came to, if the file has it.

        Args:
            key: What tells it from every other run.
        """
        return self._known.get(key)

    def add(self, key: str, outcome: Outcome) -> None:
        """
        Note a finished run, whole, at the end of the file; once.

        Args:
            key: What tells it from every other run.
            outcome: What it came to.

        Raises:
            InputError: The disk refuses.
        """
        if key in self._known:
            return
        line = json.dumps({"key": key, "outcome": asdict(outcome)})
        try:
            with Path(self.path).open("a", encoding="utf-8") as stream:
                stream.write(("\n" if self._torn else "") + line + "\n")
        except OSError as error:
            raise InputError(Fault(f"cannot be written: {error.strerror}", str(self.path), "check the disk")) from None
        self._torn = False
        self._known[key] = outcome


def _cut_short(line: str) -> bool:
    """Whether a line is the beginning of one of ours: the run is made again."""
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return line.startswith(_OPENING) or _OPENING.startswith(line)
    return False


def _entry(line: str) -> tuple[str, Outcome] | None:
    """The run that a line tells of; None where it tells of none, or not in finite numbers."""
    from rlsize.readers.validation import adapter
    from rlsize.simulator.outcome import Outcome

    try:
        found = json.loads(line)
        json.dumps(found, allow_nan=False)
        return str(found["key"]), adapter(Outcome).validate_python(found["outcome"])
    except (ValueError, TypeError, LookupError, RecursionError):
        return None


class Recorded(NamedTuple):
    """Accounts of the first run, and what lasted how long in a few of its steps."""

    ledger: Ledger
    spans: tuple[Span, ...]


def check_targets(inputs: Inputs, orders: Orders) -> None:
    """
    Look at what is to be printed and written before any work is done for it.

    Args:
        inputs: Takes faults.
        orders: How to run.
    """
    from rlsize.shell.answer import check_form
    from rlsize.shell.command import TERMINAL
    from rlsize.writers.files import check_target
    from rlsize.writers.plot import check_picture

    plot = orders.output.get("plot")
    checks: list[tuple[Callable[[str, bool], object], str]] = []
    checks += [(check_target, path) for path in (orders.trace, orders.history) if path is not None]
    checks += [(check_picture, plot)] if plot and plot != TERMINAL else []
    for check, path in checks:
        with noting(inputs.faults):
            check(path, orders.force)
    with noting(inputs.faults):
        check_form(orders.output)


def record(setting: Setting, orders: Orders, first: Done) -> Recorded | None:
    """
    What the picture shows; writes trace and history where they are asked for.

    Args:
        setting: What was simulated.
        orders: How.
        first: The first run.
    """
    if orders.trace is not None or orders.history is not None:
        _write(setting, orders)
    if not orders.draws or first.ledger is None or first.outcome is None:
        return None
    return Recorded(first.ledger, _window(setting, orders, first.ledger, first.outcome.warm_up))


def _window(setting: Setting, orders: Orders, ledger: Ledger, warm_up: int) -> tuple[Span, ...]:
    """Spans of a few steps after the warm-up."""
    from rlsize.simulator.draws import SeededOutcomes
    from rlsize.simulator.ledger import Recorder, Span
    from rlsize.simulator.run import conductor_of

    last = min(len(ledger), warm_up + _DRAWN_STEPS)
    begin = max(0, last - _DRAWN_STEPS)
    start = ledger.columns["end_seconds"][begin - 1] if begin else 0.0
    end = ledger.columns["end_seconds"][last - 1]
    spans: list[Span] = []

    def take(entry: Span | Event) -> bool:
        if isinstance(entry, Span) and entry.end > start and entry.start < end:
            spans.append(entry)
        return True

    outcomes = SeededOutcomes(setting.work, orders.seeds[0])
    conductor_of(setting, outcomes, Recorder(take)).run(last)
    return tuple(spans)


def _write(setting: Setting, orders: Orders) -> None:
    from rlsize.simulator.ledger import Recorder, Span
    from rlsize.simulator.run import simulate
    from rlsize.writers.files import write_whole
    from rlsize.writers.history_file import HistoryFile, trace_text

    entries: list[Span | Event] = []
    with ExitStack() as stack:
        history = None
        if orders.history is not None:
            history = stack.enter_context(HistoryFile(orders.history, force=orders.force))

        def take(entry: Span | Event) -> bool:
            traced = orders.trace is not None and len(entries) < _TRACED
            if traced:
                entries.append(entry)
            return (history.take(entry) if history is not None else False) or traced

        simulate(setting, orders.steps, orders.seeds[0], Recorder(take), partly=True)
    if orders.trace is not None:
        spans = [entry for entry in entries if isinstance(entry, Span)]
        events = [entry for entry in entries if not isinstance(entry, Span)]
        write_whole(orders.trace, trace_text(spans, events), orders.force)
        cut = f", up to {spans[-1].end:,.0f} s" if len(entries) >= _TRACED else ""
        sys.stderr.write(f"wrote {orders.trace}{cut}: open it in ui.perfetto.dev\n")
    if history is not None:
        cut = ", cut short at its largest size" if history.full else ""
        sys.stderr.write(f"wrote {orders.history}: {history.lines:,} lines{cut}\n")
