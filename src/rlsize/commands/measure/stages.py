"""The stages of `measure`: which of them this machine can do, and each of them run with an eye on the machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Any

from rlsize.commands.measure.asked import TORCH_DTYPES
from rlsize.commands.measure.model import NAME_ONE, NO_MODEL
from rlsize.commands.measure.rollout import engine_arguments, rollout_plan, run_rollout
from rlsize.errors import Fault, InputError, RlsizeError
from rlsize.estimates.lengths import response_lengths
from rlsize.quantities.table import QUANTITIES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rlsize.commands.measure.asked import Measurement
    from rlsize.commands.measure.rollout import RolloutOutcome
    from rlsize.facts.measured import Stage
    from rlsize.measure.train import TrainResult
    from rlsize.measure.weight_sync import SyncResult
    from rlsize.shell.inputs import Inputs

EXTRA = "install what measures: pip install 'rlsize[measure]', or name a Python that has it with {flag}"
NEEDED = {"rollout": ({"vllm"}, "--engine-python"), "train": ({"torch", "transformers"}, "--trainer-python")}
NEEDED["sync"] = NEEDED["train"]
CPU_MICRO_BATCH_TOKENS = 4096


@dataclass(slots=True)
class StageResults:
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


def gpus_of(asked: Measurement) -> list[str]:
    """
    Names of the GPUs to measure on; none for a CPU.

    Raises:
        InputError: GPUs were asked for and there are none.
    """
    from rlsize.measure.gpu_state import gpu_states

    found = [] if asked.device == "cpu" else [state.name for state in gpu_states()]
    if asked.device == "cuda" and not found:
        todo = "is the driver loaded (nvidia-smi)? --device cpu tries things out without a GPU"
        raise InputError(Fault("no GPU was found on this machine", "--device", todo))
    return found


def stages_of(asked: Measurement, gpus: list[str], notes: list[str]) -> list[Stage]:
    """
    What to measure: what was asked for, else what the machine can.

    Raises:
        InputError: What was asked for cannot be done here, or nothing can.
    """
    wanted: tuple[Stage, ...] = asked.only or ("rollout", "train", "sync")
    found: list[Stage] = []
    faults = []
    for stage in wanted:
        fault = _lacking(stage, asked, gpus, named=asked.only is not None)
        if fault is None:
            found.append(stage)
        elif asked.only is not None:
            faults.append(fault)
        else:
            notes.append(f"Not measured: {stage}: {fault.what}.")
            faults.append(fault)
    if faults and (asked.only is not None or not found):
        raise InputError(*faults)
    return found


def _lacking(stage: Stage, asked: Measurement, gpus: list[str], *, named: bool) -> Fault | None:
    """What this machine lacks for a stage."""
    from rlsize.measure.probe import libraries

    if stage == "rollout" and asked.servers.targets:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Workbench:
    """
    What a stage is measured with.

    Args:
        asked: What was asked for.
        inputs: Where GPU profiles are.
        gpus: Names of this machine's GPUs; empty on a CPU.
        folder: A folder for files of engines and trainers; each stage has one of its own in it.
        say: Told how far it has come.
        log: Given the logs of engines and trainers when they have ended.
    """

    asked: Measurement
    inputs: Inputs
    gpus: list[str]
    folder: Path
    say: Callable[[str, float], None]
    log: Callable[[Path], None]


def run_stage(stage: Stage, bench: Workbench, results: StageResults) -> None:
    """
    One stage, with an eye on what else the machine does.

    Raises:
        UnfinishedError: Nothing could be measured.
        UnfinishedStageError: It broke off after it had measured something.
        InputError: The model or the workload cannot be run.
    """
    from rlsize.measure.cpu_state import cpu_doubts, cpu_state
    from rlsize.measure.gpu_state import Watch

    asked = bench.asked
    on_gpus = bench.gpus if stage != "sync" or _can_sync_gpus(asked, bench.gpus) else []
    before = None if results.some else cpu_state()  # later, the load is that of the stages before
    folder = bench.folder / stage
    folder.mkdir()
    found: RolloutOutcome | TrainResult | SyncResult
    with Watch() as watch:
        if stage == "rollout":
            found = results.rollout = run_rollout(asked, folder, bench.say, bench.log)
        elif stage == "train":
            found = results.train = _run_train(bench, folder)
        else:
            found = results.sync = _run_sync(bench, on_gpus, folder)
        results.doubts += found.doubts
        if found.partial == "interrupted":
            raise KeyboardInterrupt
        if found.partial:
            raise UnfinishedStageError(Fault(found.partial, stage, "its whole log: --log FILE"))
    if stage != "rollout" or not asked.servers.targets:
        if watch.before and (on_gpus or stage == "rollout"):
            results.doubts += watch.doubts()
        elif before is not None:
            results.doubts += cpu_doubts(before)


class UnfinishedStageError(RlsizeError):
    """A stage broke off after it had measured something (exit code 3)."""

    exit_code = 3


def _run_train(bench: Workbench, folder: Path) -> TrainResult:
    """A train step of the workload."""
    from rlsize.measure.train import TrainJob, measure_train

    asked, gpus = bench.asked, bench.gpus
    model = asked.named_model
    work = asked.work
    drawn = response_lengths(work.prompts, work.mean, work.cv, work.cap, Random(f"lengths {asked.seed}"))  # noqa: S311 (a workload, no secret)
    usual = QUANTITIES["micro_batch_tokens"].default if gpus else CPU_MICRO_BATCH_TOKENS
    micro = asked.trainer.micro_batch_tokens or max(int(usual or 0), work.prompt_tokens + max(drawn))
    job = TrainJob(
        model=model.shape,
        profile=model.profile,
        lengths=tuple((work.prompt_tokens, length) for length in drawn for _ in range(work.group_size)),
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
    try:
        return measure_train(job, asked.trainer.python, folder, seconds=asked.seconds, say=bench.say)
    finally:
        for place in sorted(folder.glob("**/log")):
            bench.log(place)


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


def _run_sync(bench: Workbench, gpus: Sequence[str], folder: Path) -> SyncResult:
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
    try:
        result = measure_sync(job, trainer.python, folder, seconds=asked.seconds, say=bench.say)
        if trainer.engine_update and not result.partial:
            result = _with_engine_update(asked, result, folder / "engine", bench.say)
        return result
    finally:
        for place in sorted(folder.glob("**/log")):
            bench.log(place)


def _with_engine_update(
    asked: Measurement, result: SyncResult, folder: Path, say: Callable[[str, float], None]
) -> SyncResult:
    """The same with the engine's own update; what was measured before stays where that fails."""
    from rlsize.measure.engine_update import EngineUpdateJob, measure_engine_update

    folder.mkdir()
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
    try:
        update = measure_engine_update(job, asked.engine.python, folder, seconds=asked.seconds, say=say)
    except KeyboardInterrupt:
        return replace(result, partial="interrupted")
    except RlsizeError as error:
        return replace(result, partial=error.faults[0].what)
    return replace(
        result,
        measured=replace(result.measured, engine_update=update.measured),
        versions={**result.versions, **update.versions},
        doubts=[*result.doubts, *update.doubts],
        partial=update.partial,
    )
