"""Runs of the simulator: side by side, with progress, kept in a file as they finish, within bounds."""

from __future__ import annotations

import hashlib
import json
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlsize.errors import Fault, InputError
from rlsize.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from rlsize.cli.simulate_setting import Simulated
    from rlsize.simulator.ledger import Ledger
    from rlsize.simulator.outcome import Outcome

BACKENDS = {"processes": "loky", "threads": "threading", "ray": "ray", "dask": "dask"}
MOST_SAMPLES = 200e6
_SMALL = 100_000  # samples below which starting processes takes longer than the runs
_BYTES_PER_SAMPLE = 700  # of a sample under way, with its group
_MOST_BYTES = 8e9
_LARGEST_FILE = 256 * 2**20
_TOLD = 10  # times that progress is told
_DIGITS = 24  # of a run's key


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """
    One run.

    Args:
        simulated: What to simulate.
        steps: Optimizer steps. [1]
        seed: Of its randomness.
        keeps_ledger: Whether its accounts are wanted, beside what it came to.
    """

    simulated: Simulated
    steps: int
    seed: int
    keeps_ledger: bool = False

    @property
    def samples(self) -> float:
        """Samples that it generates, roughly. [1]"""
        work, rules = self.simulated.setting.work, self.simulated.setting.rules
        return self.steps * work.samples * rules.oversampling / work.acceptance

    @property
    def key(self) -> str:
        """What tells it from every other run."""
        said = json.dumps([asdict(self.simulated), self.steps, self.seed, VERSION], sort_keys=True, default=str)
        return hashlib.sha256(said.encode()).hexdigest()[:_DIGITS]


@dataclass(frozen=True, slots=True)
class Done:
    """A finished run: what it came to, and its accounts if they were wanted."""

    outcome: Outcome
    ledger: Ledger | None = None


class Interrupted(Exception):  # noqa: N818 (not an error: what is done is kept)
    """Ctrl-C came; `done` has what is finished, by the number of the job."""

    def __init__(self, done: dict[int, Done]) -> None:
        super().__init__()
        self.done = done


def check_bounds(jobs: Sequence[Job], most_samples: float) -> None:
    """
    Refuse what would take too long or too much memory.

    Raises:
        InputError: With what would fit.
    """
    whole = sum(job.samples for job in jobs)
    if whole > most_samples:
        runs = len(jobs)
        fits = max(1, int(jobs[0].steps * most_samples / whole))
        raise InputError(
            Fault(
                f"{runs} runs of {jobs[0].steps:,} steps generate {whole:,.0f} samples, more than {most_samples:,.0f}",
                "--steps",
                f"give --steps {fits:,} or fewer seeds or points; or raise --most-samples (about 10 s a million)",
            )
        )
    needed = max(_most_under_way(job) for job in jobs) * _BYTES_PER_SAMPLE
    if needed > _MOST_BYTES:
        raise InputError(
            Fault(
                f"samples under way and waiting would take {needed / 1e9:,.1f} GB",
                "--max-staleness",
                "cap the staleness or the queue (--queue-steps), or simulate fewer steps or a part of the fleet",
            )
        )


def _most_under_way(job: Job) -> float:
    """Samples that may exist at once. [1]"""
    setting = job.simulated.setting
    work, rules = setting.work, setting.rules
    slots = float(setting.engine.instances * setting.engine.slots)
    if rules.mode != "async":
        return 2.0 * work.samples * rules.oversampling
    if rules.max_staleness is not None:
        return (rules.max_staleness + 2.0) * work.samples
    if rules.queue_steps is not None:
        return slots + (rules.queue_steps + 1.0) * work.samples
    return slots + job.samples  # without a cap the backlog may grow for the whole run


def run_job(job: Job) -> Done:
    """Simulate, and say what it came to."""
    from rlsize.simulator.outcome import outcome_of
    from rlsize.simulator.run import simulate

    setting = job.simulated.setting
    ledger = simulate(setting, job.steps, job.seed)
    if len(ledger) < job.steps:
        what = f"the loop stands still after {len(ledger)} optimizer steps: nothing that it waits for can come"
        raise InputError(Fault(what, "", "loosen the cap, the queue or the cache; if they look right, report this"))
    outcome = outcome_of(ledger, setting, job.simulated.pools, job.seed)
    return Done(outcome, ledger if job.keeps_ledger else None)


def run_all(
    jobs: Sequence[Job], say: Callable[[str, float], None], *, backend: str, workers: int, kept: Kept | None
) -> list[Done]:
    """
    All runs, in the order of the jobs, whatever order they finish in.

    Args:
        jobs: What to run.
        say: Takes what is being done and the share that is done.
        backend: One of `BACKENDS`.
        workers: Runs at the same time; -1 for as many as there are cores.
        kept: A file of finished runs to take from and add to.

    Raises:
        Interrupted: Ctrl-C; with what is finished.
        InputError: The back end is not there.
    """
    done: dict[int, Done] = {}
    for index, job in enumerate(jobs):
        found = kept.found(job) if kept is not None and not job.keeps_ledger else None
        if found is not None:
            done[index] = Done(found)
    left = [index for index in range(len(jobs)) if index not in done]
    say(f"{len(done)} of {len(jobs)} runs", len(done) / max(1, len(jobs)))
    try:
        for index, result in zip(left, _results([jobs[i] for i in left], backend, workers), strict=True):
            done[index] = result
            if kept is not None:
                kept.add(jobs[index], result.outcome)
            if len(done) * _TOLD // len(jobs) > (len(done) - 1) * _TOLD // len(jobs):
                say(f"{len(done)} of {len(jobs)} runs", len(done) / len(jobs))
    except KeyboardInterrupt:
        raise Interrupted(done) from None
    return [done[index] for index in range(len(jobs))]


def _results(jobs: Sequence[Job], backend: str, workers: int) -> Iterator[Done]:
    """Results in the order of the jobs."""
    if len(jobs) < 2 or workers == 1 or (backend == "processes" and sum(job.samples for job in jobs) < _SMALL):  # noqa: PLR2004 (one alone needs no company)
        yield from map(run_job, jobs)
        return
    import joblib

    with _registered(backend):
        parallel = joblib.Parallel(
            n_jobs=workers, backend=BACKENDS[backend], return_as="generator", pre_dispatch="3*n_jobs"
        )
        yield from parallel(joblib.delayed(run_job)(job) for job in jobs)


@contextmanager
def _registered(backend: str) -> Iterator[None]:
    """Have joblib know a cluster's back end, which the user has installed."""
    cluster: AbstractContextManager[Any] = nullcontext()
    try:
        if backend == "ray":
            from ray.util.joblib import register_ray

            register_ray()
        elif backend == "dask":
            from dask.distributed import Client

            cluster = Client()  # where DASK_SCHEDULER_ADDRESS says, else on this machine
    except ImportError as error:
        todo = f"install it (pip install {'ray' if backend == 'ray' else 'dask distributed'}), or leave --backend out"
        raise InputError(Fault(f"{backend} is not installed: {error}", "--backend", todo)) from None
    with cluster:
        yield


class Kept:
    """
    A file of finished runs, one a line, which grows as runs finish.

    Args:
        path: The file; made if there is none.
    """

    def __init__(self, path: str) -> None:
        from rlsize.readers.yaml_documents import read_text

        self.path = Path(path)
        self._known: dict[str, dict[str, Any]] = {}
        if not self.path.exists():
            if not self.path.parent.is_dir():
                raise InputError(Fault(f"the folder {self.path.parent} does not exist", path, "make it first"))
            return
        for number, line in enumerate(read_text(path, _LARGEST_FILE).splitlines(), start=1):
            try:
                row = json.loads(line)
                self._known[row["key"]] = row["outcome"]
            except (json.JSONDecodeError, TypeError, KeyError):
                if not line.startswith('{"key"'):  # a last line that was cut short is run again
                    fault = Fault("is no finished run", f"{path}, line {number}", "name a file that --runs has written")
                    raise InputError(fault) from None

    def found(self, job: Job) -> Outcome | None:
        """What a run came to, if the file has it."""
        from rlsize.simulator.outcome import Outcome

        row = self._known.get(job.key)
        if row is None:
            return None
        staleness = {int(lag): share for lag, share in row["staleness"].items()}
        return Outcome(**{**row, "staleness": staleness})

    def add(self, job: Job, outcome: Outcome) -> None:
        """
        Note a finished run, whole, at the end of the file.

        Raises:
            InputError: The disk refuses.
        """
        line = json.dumps({"key": job.key, "outcome": asdict(outcome)})
        try:
            torn = self.path.exists() and self.path.stat().st_size > 0 and not self.path.read_bytes().endswith(b"\n")
            with self.path.open("a", encoding="utf-8") as stream:
                stream.write(("\n" if torn else "") + line + "\n")
        except OSError as error:
            raise InputError(Fault(f"cannot be written: {error.strerror}", str(self.path), "check the disk")) from None
