"""One run of `measure`: the stages that the machine can do, one after the other, and what becomes of their results."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rlsize.commands.measure.asked import NAME_ONE, NO_MODEL, TORCH_DTYPES, measurement
from rlsize.commands.measure.rollout import RolloutResult, engine_arguments, rollout_plan, run_rollout
from rlsize.errors import Fault, InputError, RlsizeError
from rlsize.facts.counters import PhaseRun
from rlsize.facts.measured import STAGES, RolloutMeasured, SyncMeasured, TrainMeasured
from rlsize.facts.rates import MeasuredInstance, RateConditions
from rlsize.measure.jobs import StageResult
from rlsize.quantities.table import QUANTITIES
from rlsize.readers.byte_sources import json_of
from rlsize.readers.validation import adapter
from rlsize.shell.progress import progress
from rlsize.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.commands.measure.asked import Measurement
    from rlsize.facts.measured import Stage
    from rlsize.facts.rates import Rates
    from rlsize.facts.run_log import RunSummary
    from rlsize.measure.machine_state import CpuState, Watch
    from rlsize.shell.inputs import Inputs

EXTRA = "install what measures: pip install 'rlsize[measure]', or name a Python that has it with {flag}"
NEEDED = {"rollout": ({"vllm"}, "--engine-python"), "train": ({"torch", "transformers"}, "--trainer-python")}
NEEDED["sync"] = NEEDED["train"]
CPU_MICRO_BATCH_TOKENS = 4096

SUFFIX = ".journal"
_MEASURED: dict[str, Any] = {"rollout": RolloutMeasured, "train": TrainMeasured, "sync": SyncMeasured}
_KINDS: dict[str, Any] = {"conditions": RateConditions, "instances": list[MeasuredInstance]}
_NEAR = 0.1  # difference of mean lengths from which the rates of both sides are doubted to be of one recipe
_LARGEST = 256 * 2**20


@dataclass(slots=True)
class StageResults:
    """What the stages gave so far."""

    rollout: RolloutResult | None = None
    train: StageResult[TrainMeasured] | None = None
    sync: StageResult[SyncMeasured] | None = None
    doubts: list[str] = field(default_factory=list)
    partial: list[str] = field(default_factory=list)

    def recall(self, stage: Stage, found: StageResult[Any]) -> None:
        """Take what an earlier run gave."""
        setattr(self, stage, found)
        self.doubts += found.doubts

    @property
    def parts(self) -> list[StageResult[Any]]:
        """Those that measured something."""
        return [part for part in (self.rollout, self.train, self.sync) if part is not None]


def gpus_of(asked: Measurement) -> list[str]:
    """
    Names of the GPUs to measure on; none for a CPU.

    Raises:
        InputError: GPUs were asked for and there are none.
    """
    from rlsize.measure.machine_state import gpu_states

    found = [] if asked.device == "cpu" else [state.name for state in gpu_states()]
    if asked.device == "cuda" and not found:
        todo = "is the driver loaded (nvidia-smi)? --device cpu tries things out without a GPU"
        raise InputError(Fault("no GPU was found on this machine", "--device", todo))
    return found


def stages_of(asked: Measurement, gpus: list[str], notes: list[str], *, logged: bool = False) -> list[Stage]:
    """
    What to measure: what was asked for, else what the machine can; no train step where a log tells of the trainer.

    Raises:
        InputError: What was asked for cannot be done here, or nothing can.
    """
    wanted = [stage for stage in asked.only or STAGES if not (logged and stage == "train")]
    faults = {stage: _lacking(stage, asked, gpus, named=asked.only is not None) for stage in wanted}
    found = [stage for stage in wanted if faults[stage] is None]
    lacking = {stage: fault for stage, fault in faults.items() if fault is not None}
    if lacking and (asked.only is not None or not (found or logged)):
        raise InputError(*lacking.values())
    notes += [f"Not measured: {stage}: {fault.what}." for stage, fault in lacking.items()]
    return found


def _lacking(stage: Stage, asked: Measurement, gpus: list[str], *, named: bool) -> Fault | None:
    """What this machine lacks for a stage."""
    from rlsize.measure.jobs import libraries

    if stage == "rollout" and asked.targets:
        return None
    if asked.model is None:
        return Fault(NO_MODEL, "--model", NAME_ONE)
    needed, flag = NEEDED[stage]
    python = asked.engine.python if stage == "rollout" else asked.trainer.python
    missing = sorted(needed - libraries(python, flag))
    if missing:
        where = "this Python" if python == sys.executable else python
        return Fault(f"{where} has no {' and no '.join(missing)}", stage, EXTRA.format(flag=flag))
    if stage == "sync" and not named and not _can_sync_gpus(asked, gpus):
        return Fault("it takes two GPUs or more", stage, "--only sync measures it between processes of the CPU")
    return None


def _can_sync_gpus(asked: Measurement, gpus: list[str]) -> bool:
    """Whether there is a GPU to send and one to receive, here or with those of other nodes."""
    return len(gpus) > 1 or bool(asked.trainer.torchrun)


class Workbench(NamedTuple):
    """
    What a stage is measured with.

    Args:
        asked: What was asked for.
        inputs: Where GPU profiles are.
        gpus: Names of this machine's GPUs; empty on a CPU.
        folder: A folder for files of engines and trainers; each stage has one of its own in it.
        say: Told how far it has come.
        journal: Keeps what is measured.
    """

    asked: Measurement
    inputs: Inputs
    gpus: list[str]
    folder: Path
    say: Callable[[str, float], None]
    journal: Journal | None = None


def run_stage(stage: Stage, bench: Workbench, results: StageResults) -> None:
    """
    One stage, with an eye on what else the machine does.

    Raises:
        UnfinishedError: Nothing could be measured.
        UnfinishedStageError: It broke off after it had measured something.
        InputError: The model or the workload cannot be run.
    """
    from rlsize.measure.machine_state import Watch, cpu_state

    asked, journal = bench.asked, bench.journal
    found: StageResult[Any]
    on_gpus = bench.gpus if stage != "sync" or _can_sync_gpus(asked, bench.gpus) else []
    before = None if results.parts else cpu_state()  # later, the load is that of the stages before
    folder = bench.folder / stage
    folder.mkdir()
    with Watch() as watch:
        if stage == "rollout":
            found = results.rollout = run_rollout(asked, folder, bench.say, journal)
        elif stage == "train":
            found = results.train = _run_train(bench, folder)
        else:
            found = results.sync = _run_sync(bench, on_gpus, folder)
        results.doubts += found.doubts
        if found.partial == "interrupted":
            raise KeyboardInterrupt
        if found.partial:
            raise UnfinishedStageError(Fault(found.partial, stage, "its whole log: --log FILE"))
    elsewhere, on_gpu = stage == "rollout" and asked.targets, bool(on_gpus) or stage == "rollout"
    seen = [] if elsewhere else _seen(watch, on_gpus=on_gpu, cpu=before)
    results.doubts += seen
    if journal is not None:
        journal.keep_stage(stage, replace(found, doubts=[*found.doubts, *seen]))


def _seen(watch: Watch, *, on_gpus: bool, cpu: CpuState | None) -> list[str]:
    """What else the machine did meanwhile."""
    from rlsize.measure.machine_state import cpu_doubts

    if watch.before and on_gpus:
        return watch.doubts()
    return [] if cpu is None else cpu_doubts(cpu)


class UnfinishedStageError(RlsizeError):
    """A stage broke off after it had measured something (exit code 3)."""

    exit_code = 3


def _run_train(bench: Workbench, folder: Path) -> StageResult[TrainMeasured]:
    """A train step of the workload."""
    from rlsize.measure.train import TrainJob, measure_train

    asked, gpus = bench.asked, bench.gpus
    model = asked.named_model
    work = asked.work
    shapes = work.shapes(work.prompts, asked.seed)
    usual = QUANTITIES["micro_batch_tokens"].default if gpus else CPU_MICRO_BATCH_TOKENS
    micro = asked.trainer.micro_batch_tokens or max(int(usual or 0), *map(sum, shapes))
    job = TrainJob(
        model=model.shape,
        profile=model.profile,
        lengths=tuple(shape for shape in shapes for _ in range(work.group_size)),
        group_size=work.group_size,
        micro_batch_tokens=micro,
        recompute=asked.trainer.recompute,  # type: ignore[arg-type]  # one of its words: it was checked against them
        processes=asked.trainer.processes or len(gpus) or 1,
        steps=3 if asked.quick else 10,
        seed=asked.seed,
        torchrun=asked.trainer.torchrun,
        device="cuda" if gpus else "cpu",
        peak_flops=peak_flops(bench.inputs, gpus),
        start_seconds=asked.start_seconds,
    )
    return measure_train(job, asked.trainer.python, folder, seconds=asked.seconds, say=bench.say)


def peak_flops(inputs: Inputs, gpus: Sequence[str]) -> float | None:
    """Dense bf16 peak of the GPUs, where they are all of one kind that has a profile. [FLOP/s]"""
    kinds = set(gpus)
    if len(kinds) != 1:
        return None
    try:
        profile: Any = inputs.catalogue.get("gpu", kinds.pop())
    except InputError:
        return None
    return float(profile.specification.bf16_dense.value)


def _run_sync(bench: Workbench, gpus: Sequence[str], folder: Path) -> StageResult[SyncMeasured]:
    """A weight sync between ranks of this machine, or of several with torchrun's flags."""
    from rlsize.measure.weight_sync import SyncJob, measure_sync

    asked, trainer = bench.asked, bench.asked.trainer
    ranks = max(2, len(gpus))  # what is said of one side leaves the rest to the other
    taken = trainer.receiver_ranks
    senders = trainer.sender_ranks or max(1, ranks - taken if taken else ranks // 2)
    receivers = taken or max(1, ranks - senders)
    if gpus and not trainer.torchrun and senders + receivers > len(gpus):
        what = f"{senders} + {receivers} ranks need as many GPUs, and there are {len(gpus)}"
        raise InputError(Fault(what, "--receiver-ranks", "take fewer ranks, or --device cpu"))
    job = SyncJob(
        model=asked.named_model.shape,
        dtype=TORCH_DTYPES[asked.engine.dtype],
        trainer_ranks=senders,
        receiver_ranks=receivers,
        torchrun=trainer.torchrun,
        device="cuda" if gpus else "cpu",
        seed=asked.seed,
        start_seconds=asked.start_seconds,
        **({"bucket_bytes": trainer.buckets} if trainer.buckets else {}),
    )
    result = measure_sync(job, trainer.python, folder, seconds=asked.seconds, say=bench.say)
    if trainer.engine_update and not result.partial:
        return _with_engine_update(asked, result, folder / "engine", bench.say)
    return result


def _with_engine_update(
    asked: Measurement, result: StageResult[SyncMeasured], folder: Path, say: Callable[[str, float], None]
) -> StageResult[SyncMeasured]:
    """
    The same with the engine's own update, and with that through the routes of a server.

    What was measured before stays where one fails; a server without such routes is only a doubt.
    """
    from rlsize.measure.weight_sync import EngineUpdateJob, measure_engine_update

    arguments = engine_arguments(asked, rollout_plan(asked), asked.engine.most)
    for own in ("model", "load_format", "dtype"):  # the update sets them itself: it makes the weights that it loads
        arguments.pop(own, None)
    job = EngineUpdateJob(
        model=asked.named_model.shape,
        dtype=TORCH_DTYPES[asked.engine.dtype],
        engine=arguments,
        prompt_tokens=min(64, asked.work.prompt_tokens),
        seed=asked.seed,
        start_seconds=asked.start_seconds,
    )
    for key, served in (("engine_update", False), ("server_update", True)):
        place = folder / key
        place.mkdir(parents=True)
        try:
            update = measure_engine_update(
                replace(job, served=served), asked.engine.python, place, seconds=asked.seconds, say=say
            )
        except KeyboardInterrupt:
            return replace(result, partial="interrupted")
        except RlsizeError as error:
            if not served:
                return replace(result, partial=error.faults[0].what)
            return replace(result, doubts=[*result.doubts, f"server update: not measured: {error.faults[0].what}"])
        changed: dict[str, Any] = {key: update.measured}
        result = replace(
            result,
            measured=replace(result.measured, **changed),
            versions={**result.versions, **update.versions},
            doubts=[*result.doubts, *update.doubts],
            partial=update.partial,
        )
        if update.partial:
            break
    return result


@dataclass(slots=True)
class MeasurementOutcome:
    """What a run gave: rates as far as they were measured, and what went wrong."""

    rates: Rates | None = None
    notes: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    interrupted: bool = False


def run(inputs: Inputs, asked: dict[str, Any]) -> MeasurementOutcome:
    """
    Measure what was asked for, or what the machine can.

    Args:
        inputs: Flags, scenario and profiles.
        asked: The flags by their names.

    Raises:
        InputError: All that is wrong with what was asked; nothing is started before.
    """
    from rlsize.measure.guard import guarded

    outcome, results = MeasurementOutcome(), StageResults()
    with tempfile.TemporaryDirectory(prefix="rlsize-", ignore_cleanup_errors=True) as name, guarded(name):
        folder = Path(name)
        chosen = measurement(inputs, asked, folder)
        gpus, log = gpus_of(chosen), _logged(inputs, asked["trainer_log"])
        stages = stages_of(chosen, gpus, outcome.notes, logged=log is not None)
        if {"rollout", "train"} & {*stages}:
            _warn_of_defaults(inputs)
        journal = Journal(chosen, asked["resume"], asked["save"], force=asked["force"])
        try:
            with progress() as say:
                bench = Workbench(asked=chosen, inputs=inputs, gpus=gpus, folder=folder, say=say, journal=journal)
                for stage, found in journal.stages.items():
                    results.recall(stage, found)
                for stage in [one for one in stages if one not in journal.stages]:
                    run_stage(stage, bench, results)
        except KeyboardInterrupt:
            outcome.interrupted = True
            results.partial.append("interrupted")
        except RlsizeError as error:
            if isinstance(error, InputError) and not results.parts:
                raise
            outcome.faults += error.faults
            results.partial += [f"{fault.where}: {fault.what}" for fault in error.faults]
        finally:
            logs = [place for stage in stages for place in sorted((folder / stage).glob("**/log"))]
            outcome.notes += _keep_logs(asked["log"], logs, force=asked["force"])
        outcome.interrupted = outcome.interrupted or "interrupted" in results.partial
        journal.close(whole=not (outcome.interrupted or outcome.faults))
        if results.parts:
            outcome.rates = _rates(chosen, inputs, gpus, results)
        if log is not None and (results.parts or not stages):
            outcome.rates = _with_log(chosen, outcome.rates, log)
    return outcome


def _logged(inputs: Inputs, path: str | None) -> RunSummary | None:
    """
    The user's own trainer, as its log tells it; None where no log is named.

    Raises:
        InputError: It cannot be read, or tells nothing of a trainer's pace.
    """
    from rlsize.shell.observation import read_run

    if path is not None and not path.strip():
        raise InputError(Fault("names no log", "--trainer-log", "is a variable of the shell not set?"))
    found = read_run(inputs, [path] if path else [], None)
    if path and not any(found.figure(key).known for key in ("train_seconds", "consumption_tokens_per_second")):
        raise InputError(Fault("tells neither train times nor tokens", path, "name a log with its phases' times"))
    return found if path else None


def _with_log(chosen: Measurement, rates: Rates | None, log: RunSummary) -> Rates | None:
    """What was measured, with the trainer of a log; doubted where that trains other lengths than were generated."""
    from datetime import UTC, datetime

    from rlsize.estimates.measured_rates import with_trainer

    at, gpus = datetime.now(UTC).isoformat(timespec="seconds"), chosen.trainer.processes
    found = with_trainer(rates, log, measured_at=at, trainer_gpus=gpus)
    mean, made = log.figure("mean_response_tokens"), rates.conditions.mean_response_tokens if rates else None
    if found is None or not mean.known or made is None or abs(mean.number - made) <= _NEAR * made:
        return found
    what = f"the trainer's log has responses of {mean.number:,.0f} tokens, and {made:,.0f} were generated here"
    return replace(found, doubts=[*found.doubts, f"{what}: --response-tokens says another length"])


def _warn_of_defaults(inputs: Inputs) -> None:
    """Say what of the workload was nobody's choice, where it decides the rates."""
    asked = ("group_size", "prompt_tokens", "response_tokens")
    missing = [key.replace("_", " ") for key in asked if inputs.used[key].provenance == "default"]
    if missing:
        wrong = "a rate at the wrong lengths sizes the wrong fleet (give a scenario, or flags)"
        inputs.warnings.append(f"taken for want of your recipe's: {', '.join(missing)}; {wrong}")


def _rates(chosen: Measurement, inputs: Inputs, gpus: list[str], results: StageResults) -> Rates:
    from datetime import UTC, datetime

    from rlsize.estimates.measured_rates import measured_rates

    rollout = results.rollout
    return measured_rates(
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        conditions=rollout.conditions if rollout else chosen.conditions,
        machine=_machine(gpus, results, remote=bool(chosen.targets)),
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


def _machine(gpus: list[str], results: StageResults, *, remote: bool) -> Any:
    """On what, with what and by which command; what a server runs on is not known here."""
    from rlsize.facts.measured import Machine
    from rlsize.measure.machine_state import cpu_state, gpu_states

    libraries = {name: version for part in results.parts for name, version in part.versions.items() if version}
    states = gpu_states() if gpus else []
    here = results.train is not None or results.sync is not None or not remote
    cpu = cpu_state() if here else None
    return Machine(
        gpus=next((list(part.gpus) for part in results.parts if part.gpus), []),
        driver=states[0].driver if states else "",
        cpu=cpu.name if cpu else "",
        cpu_cores=cpu.cores if cpu else None,
        libraries={**libraries, "python": sys.version.split()[0], "rlsize": VERSION},
        command=shlex.join(["rlsize", *without_secrets(sys.argv[1:])]),
    )


def without_secrets(words: list[str]) -> list[str]:
    """The command line as it may be written into a file: a URL loses user, password and query."""
    from rlsize.readers.http_pages import masked

    return [masked(word) if "@" in word or "?" in word else word for word in words]


def _keep_logs(target: str | None, logs: list[Path], *, force: bool) -> list[str]:
    """Write what engines and trainers printed into one file; says so, or why not, as nothing measured may go for it."""
    if target is None:
        return []
    from rlsize.writers.files import write_whole

    parts = [b"==> %s <==\n%s\n" % (str(place.parent.name).encode(), place.read_bytes()) for place in logs]
    try:
        write_whole(target, b"".join(parts), force)
    except InputError as error:
        return [f"The logs are lost: {target} {error.faults[0].what}."]
    return [f"Wrote {target}."]


class Journal:
    """
    The journal of one measurement.

    Args:
        asked: What is measured.
        resumed: A journal to go on with, and in; None to begin one.
        save: Where the rates go; a new journal stands beside them, else among the system's temporary files.
        force: Whether a new one may take the place of an old one.

    Raises:
        InputError: It is no journal, or one of another question; or one is there that nobody has gone on with.
    """

    def __init__(self, asked: Measurement, resumed: str | None, save: str | None, *, force: bool) -> None:
        self.levels: dict[int, list[PhaseRun]] = {}
        self.stages: dict[Stage, StageResult[Any]] = {}
        self._head = {"journal": _question(asked), "version": VERSION}
        self._begun = resumed is not None
        if resumed is not None:
            self.path = Path(resumed)
            self._read()
        elif save is not None:
            self.path = Path(save + SUFFIX)
            if self.path.exists() and not force:
                todo = f"go on with it: --resume {self.path}; or --force begins anew"
                raise InputError(Fault("is the journal of a measurement that broke off", str(self.path), todo))
        else:
            self.path = Path(tempfile.gettempdir()) / f"rlsize-measure-{os.getpid()}{SUFFIX}"

    def keep_level(self, concurrency: int, runs: list[PhaseRun]) -> None:
        """Keep a level of the rollout that is over."""
        self.levels[concurrency] = runs
        self._add({"level": concurrency, "runs": runs})

    def keep_stage(self, stage: Stage, result: StageResult[Any]) -> None:
        """Keep a stage that is over."""
        self.stages[stage] = result
        kept = [one.name for one in fields(RolloutResult if stage == "rollout" else StageResult)]
        self._add({"stage": stage, "result": {name: getattr(result, name) for name in kept}})

    def close(self, *, whole: bool) -> None:
        """Take it away where all was measured; else say how to go on, if anything was."""
        if whole:
            self.path.unlink(missing_ok=True)
        elif self.levels or self.stages:
            sys.stderr.write(f"what is whole is kept: the same command with --resume {self.path} goes on\n")

    def _add(self, entry: dict[str, Any]) -> None:
        from pydantic_core import to_jsonable_python

        entry = to_jsonable_python(entry, fallback=dict)  # labels are read-only mappings
        lines = [entry] if self._begun else [self._head, entry]
        try:
            with self.path.open("a" if self._begun else "w", encoding="utf-8") as file:
                file.writelines(json.dumps(line) + "\n" for line in lines)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:  # a full disk is no reason to measure nothing
            sys.stderr.write(f"{self.path} cannot be written: {error.strerror}\n")
        else:
            if not self._begun:
                sys.stderr.write(f"kept as it comes in {self.path}; after a break, add --resume {self.path}\n")
            self._begun = True

    def _read(self) -> None:
        from rlsize.readers.yaml_documents import read_text

        head, *lines = read_text(str(self.path), _LARGEST).splitlines() or [""]
        entries = [entry for entry in map(json_of, [head, *lines]) if entry and isinstance(entry, dict)]
        if not entries or "journal" not in entries[0]:
            raise InputError(Fault("is no journal of a measurement", str(self.path), "name what `measure` has kept"))
        if entries[0] != self._head:
            todo = "give the flags, the scenario and the version of rlsize that it was begun with"
            raise InputError(Fault("is the journal of another measurement", str(self.path), todo))
        try:
            for entry in entries[1:]:
                self._take(entry)
        except (ValueError, TypeError, LookupError):
            raise InputError(Fault("holds what no measurement keeps", str(self.path), "begin anew")) from None
        if lines and not isinstance(json_of(lines[-1]), dict):  # cut short
            self.path.write_text("".join(json.dumps(entry) + "\n" for entry in entries), encoding="utf-8")

    def _take(self, entry: dict[str, Any]) -> None:
        if "level" in entry:
            self.levels[int(entry["level"])] = adapter(list[PhaseRun]).validate_python(entry["runs"])
            return
        stage, said = entry["stage"], entry["result"]
        kinds = {**_KINDS, "measured": _MEASURED[stage]}
        made: Any = RolloutResult if stage == "rollout" else StageResult
        self.stages[stage] = made(
            **{
                name: adapter(kinds[name]).validate_python(value) if name in kinds else value
                for name, value in said.items()
            }
        )


def _question(asked: Measurement) -> str:
    """What tells a measurement from every other; where a profile's config.json lies for a while is no part of it."""
    model = asked.model._replace(source="", shape="") if asked.model else None
    servers = [target.shown for target in asked.targets]
    said = asked._asdict() | {"model": model, "targets": (), "access": None}
    return hashlib.sha256(repr((said, servers)).encode()).hexdigest()[:24]
