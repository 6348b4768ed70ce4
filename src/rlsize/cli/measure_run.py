"""One run of `measure`: the stages that the machine can do, one after the other, and what becomes of their results."""

from __future__ import annotations

import shlex
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlsize.cli.measure_setting import setting
from rlsize.cli.progress import progress
from rlsize.errors import Fault, InputError, RlsizeError

if TYPE_CHECKING:
    from rlsize.cli.inputs import Inputs
    from rlsize.cli.measure_rollout import RolloutOutcome
    from rlsize.cli.measure_setting import Setting
    from rlsize.facts.measured import Stage
    from rlsize.facts.rates import Rates
    from rlsize.measure.train import TrainResult
    from rlsize.measure.weight_sync import SyncResult

EXTRA = "install what measures: pip install 'rlsize[measure]', or name a Python that has it with {flag}"
NEEDED = {"rollout": ({"vllm"}, "--engine-python"), "train": ({"torch", "transformers"}, "--trainer-python")}
NEEDED["sync"] = NEEDED["train"]


@dataclass(slots=True)
class Outcome:
    """What a run gave: rates as far as they were measured, and what went wrong."""

    rates: Rates | None = None
    notes: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    interrupted: bool = False


@dataclass(slots=True)
class _Results:
    """What the stages gave so far."""

    rollout: RolloutOutcome | None = None
    train: TrainResult | None = None
    sync: SyncResult | None = None
    doubts: list[str] = field(default_factory=list)
    partial: list[str] = field(default_factory=list)

    @property
    def some(self) -> bool:
        """Whether anything was measured."""
        return any(part is not None for part in (self.rollout, self.train, self.sync))


def run(inputs: Inputs, asked: dict[str, Any]) -> Outcome:
    """
    Measure what was asked for, or what the machine can.

    Args:
        inputs: Flags, scenario and profiles.
        asked: The flags by their names.

    Raises:
        InputError: All that is wrong with what was asked; nothing is started before.
    """
    outcome, results = Outcome(), _Results()
    with tempfile.TemporaryDirectory(prefix="rlsize-", ignore_cleanup_errors=True) as name, _ended_in_order():
        folder = Path(name)
        chosen = setting(inputs, asked, folder)
        gpus = _gpus(chosen)
        stages = _stages(chosen, gpus, outcome)
        logs: list[Path] = []
        try:
            with progress() as say:
                for stage in stages:
                    _watched(stage, chosen, inputs, gpus, folder / stage, results, say, logs.append)
        except KeyboardInterrupt:
            outcome.interrupted = True
            results.partial.append("interrupted")
        except RlsizeError as error:
            if isinstance(error, InputError) and not results.some:
                raise
            outcome.faults += error.faults
            results.partial += [f"{fault.where}: {fault.what}" for fault in error.faults]
        finally:
            _keep_logs(asked["log"], logs, force=asked["force"])
        outcome.interrupted = outcome.interrupted or "interrupted" in results.partial
        if results.some:
            outcome.rates = _rates(chosen, inputs, gpus, results)
    return outcome


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """Treat the polite request to end as Ctrl-C: batch systems send it, and engines must not outlive it."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _gpus(chosen: Setting) -> list[str]:
    """
    Names of the GPUs to measure on; none for a CPU.

    Raises:
        InputError: GPUs were asked for and there are none.
    """
    from rlsize.measure.gpu_state import gpu_states

    found = [] if chosen.device == "cpu" else [state.name for state in gpu_states()]
    if chosen.device == "cuda" and not found:
        todo = "is the driver loaded (nvidia-smi)? --device cpu tries things out without a GPU"
        raise InputError(Fault("no GPU was found on this machine", "--device", todo))
    return found


def _stages(chosen: Setting, gpus: list[str], outcome: Outcome) -> list[Stage]:
    """
    What to measure: what was asked for, else what the machine can.

    Raises:
        InputError: What was asked for cannot be done here, or nothing can.
    """
    wanted: tuple[Stage, ...] = chosen.only or ("rollout", "train", "sync")
    found: list[Stage] = []
    faults = []
    for stage in wanted:
        fault = _lacking(stage, chosen, gpus, asked=chosen.only is not None)
        if fault is None:
            found.append(stage)
        elif chosen.only is not None:
            faults.append(fault)
        else:
            outcome.notes.append(f"Not measured: {stage}: {fault.what}.")
            faults.append(fault)
    if faults and (chosen.only is not None or not found):
        raise InputError(*faults)
    return found


def _lacking(stage: Stage, chosen: Setting, gpus: list[str], *, asked: bool) -> Fault | None:
    """What this machine lacks for a stage."""
    from rlsize.measure.probe import libraries

    if stage == "rollout" and chosen.targets:
        return None
    if chosen.model is None:
        return Fault("no model is named", "--model", "name a profile, a folder or a Hugging Face id")
    needed, flag = NEEDED[stage]
    python = chosen.engine_python if stage == "rollout" else chosen.trainer_python
    missing = sorted(needed - libraries(python, flag))
    if missing:
        where = "this Python" if python == sys.executable else python
        return Fault(f"{where} has no {' and no '.join(missing)}", stage, EXTRA.format(flag=flag))
    if stage == "sync" and len(gpus) < 2 and not asked and not chosen.torchrun:  # noqa: PLR2004 (a sender and a receiver)
        return Fault("it takes two GPUs or more", stage, "--only sync measures it between processes of the CPU")
    return None


def _watched(
    stage: Stage,
    chosen: Setting,
    inputs: Inputs,
    gpus: list[str],
    folder: Path,
    results: _Results,
    say: Callable[[str, float], None],
    log: Callable[[Path], None],
) -> None:
    """One stage, with an eye on what else the machine does."""
    from rlsize.measure.cpu_state import cpu_doubts, cpu_state
    from rlsize.measure.gpu_state import Watch

    on_gpus = gpus if stage != "sync" or len(gpus) > 1 else []
    before = cpu_state()
    with Watch() as watch:
        _run(stage, chosen, inputs, on_gpus, folder, results, say, log)
    remote = stage == "rollout" and bool(chosen.targets)
    if not remote:
        results.doubts += watch.doubts() if on_gpus else cpu_doubts(before)


def _run(
    stage: Stage,
    chosen: Setting,
    inputs: Inputs,
    gpus: list[str],
    folder: Path,
    results: _Results,
    say: Callable[[str, float], None],
    log: Callable[[Path], None],
) -> None:
    folder.mkdir()
    if stage == "rollout":
        from rlsize.cli.measure_rollout import run_rollout

        results.rollout = run_rollout(chosen, folder, say, log)
        partial, doubts = results.rollout.partial, results.rollout.doubts
    elif stage == "train":
        from rlsize.cli.measure_trainer import run_train

        results.train = run_train(chosen, inputs, gpus, folder, say, log)
        partial, doubts = results.train.partial, results.train.doubts
    else:
        from rlsize.cli.measure_trainer import run_sync

        results.sync = run_sync(chosen, gpus, folder, say, log)
        partial, doubts = results.sync.partial, results.sync.doubts
    results.doubts += doubts
    if partial == "interrupted":
        raise KeyboardInterrupt
    if partial:
        raise UnfinishedStageError(Fault(partial, stage, "its whole log: --log FILE"))


class UnfinishedStageError(RlsizeError):
    """A stage broke off after it had measured something (exit code 3)."""

    exit_code = 3


def _rates(chosen: Setting, inputs: Inputs, gpus: list[str], results: _Results) -> Rates:
    from datetime import UTC, datetime

    from rlsize.estimates.measured_rates import measured_rates
    from rlsize.facts.rates import RateConditions

    rollout = results.rollout
    conditions = rollout.conditions if rollout else RateConditions(
        model=chosen.model.name if chosen.model else None,
        mean_response_tokens=chosen.work.mean,
        mean_prompt_tokens=float(chosen.work.prompt_tokens),
        group_size=float(chosen.work.group_size),
        response_cv=chosen.work.cv,
        max_response_tokens=chosen.work.cap,
    )
    return measured_rates(
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        conditions=conditions,
        machine=_machine(gpus, results),
        rollout=rollout.measured if rollout else None,
        instances=rollout.instances if rollout else (),
        engine=rollout.engine if rollout else None,
        gpus_per_instance=rollout.gpus_per_instance if rollout else None,
        train=results.train.measured if results.train else None,
        sync=results.sync.measured if results.sync else None,
        doubts=[*inputs.warnings, *dict.fromkeys(results.doubts)],
        partial="; ".join(dict.fromkeys(results.partial)),
        asked_concurrency=rollout.asked_concurrency if rollout else None,
    )


def _machine(gpus: list[str], results: _Results) -> Any:
    """On what, with what and by which command."""
    from rlsize.facts.measured import Machine
    from rlsize.measure.cpu_state import cpu_state
    from rlsize.measure.gpu_state import gpu_states
    from rlsize.version import VERSION

    parts = [part for part in (results.rollout, results.train, results.sync) if part is not None]
    libraries = {name: version for part in parts for name, version in part.versions.items() if version}
    states = gpu_states() if gpus else []
    cpu = cpu_state()
    return Machine(
        gpus=next((list(part.gpus) for part in parts if part.gpus), []),
        driver=states[0].driver if states else "",
        cpu=cpu.name,
        cpu_cores=cpu.cores,
        libraries={**libraries, "python": sys.version.split()[0], "rlsize": VERSION},
        command=shlex.join(["rlsize", *without_secrets(sys.argv[1:])]),
    )


def without_secrets(words: list[str]) -> list[str]:
    """The command line as it may be written into a file: a URL loses user, password and query."""
    from rlsize.readers.http_targets import masked

    return [masked(word) if "@" in word or "?" in word else word for word in words]


def _keep_logs(target: str | None, logs: list[Path], *, force: bool) -> None:
    """What engines and trainers printed, in one file."""
    if target is None:
        return
    from rlsize.writers.files import write_whole

    parts = [b"==> %s <==\n%s\n" % (str(place.parent.name).encode(), place.read_bytes()) for place in logs]
    write_whole(target, b"".join(parts), force)
