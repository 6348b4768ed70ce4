"""The stages of `measure`: which of them this machine can do, and each of them run with an eye on the machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rlsize.commands.measure_setting import NAME_ONE, NO_MODEL
from rlsize.errors import Fault, InputError, RlsizeError

if TYPE_CHECKING:
    from pathlib import Path

    from rlsize.commands.measure_rollout import RolloutOutcome
    from rlsize.commands.measure_setting import Setting
    from rlsize.facts.measured import Stage
    from rlsize.measure.train import TrainResult
    from rlsize.measure.weight_sync import SyncResult
    from rlsize.shell.inputs import Inputs

EXTRA = "install what measures: pip install 'rlsize[measure]', or name a Python that has it with {flag}"
NEEDED = {"rollout": ({"vllm"}, "--engine-python"), "train": ({"torch", "transformers"}, "--trainer-python")}
NEEDED["sync"] = NEEDED["train"]


@dataclass(slots=True)
class Results:
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


def gpus_of(chosen: Setting) -> list[str]:
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


def stages_of(chosen: Setting, gpus: list[str], notes: list[str]) -> list[Stage]:
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
            notes.append(f"Not measured: {stage}: {fault.what}.")
            faults.append(fault)
    if faults and (chosen.only is not None or not found):
        raise InputError(*faults)
    return found


def _lacking(stage: Stage, chosen: Setting, gpus: list[str], *, asked: bool) -> Fault | None:
    """What this machine lacks for a stage."""
    from rlsize.measure.probe import libraries

    if stage == "rollout" and chosen.servers.targets:
        return None
    if chosen.model is None:
        return Fault(NO_MODEL, "--model", NAME_ONE)
    needed, flag = NEEDED[stage]
    python = chosen.engine.python if stage == "rollout" else chosen.trainer.python
    missing = sorted(needed - libraries(python, flag))
    if missing:
        where = "this Python" if python == sys.executable else python
        return Fault(f"{where} has no {' and no '.join(missing)}", stage, EXTRA.format(flag=flag))
    if stage == "sync" and not asked and not _can_sync_gpus(chosen, gpus):
        return Fault("it takes two GPUs or more", stage, "--only sync measures it between processes of the CPU")
    return None


def _can_sync_gpus(chosen: Setting, gpus: list[str]) -> bool:
    """Whether there is a GPU to send and one to receive, here or with those of other nodes."""
    return len(gpus) > 1 or bool(chosen.trainer.torchrun)


def run_stage(
    stage: Stage,
    chosen: Setting,
    inputs: Inputs,
    gpus: list[str],
    folder: Path,
    results: Results,
    say: Callable[[str, float], None],
    log: Callable[[Path], None],
) -> None:
    """One stage, with an eye on what else the machine does."""
    from rlsize.measure.cpu_state import cpu_doubts, cpu_state
    from rlsize.measure.gpu_state import Watch

    on_gpus = gpus if stage != "sync" or _can_sync_gpus(chosen, gpus) else []
    before = None if results.some else cpu_state()  # later, the load is that of the stages before
    with Watch() as watch:
        _run(stage, chosen, inputs, on_gpus, folder, results, say, log)
    remote = stage == "rollout" and bool(chosen.servers.targets)
    if not remote:
        if watch.before and (on_gpus or stage == "rollout"):
            results.doubts += watch.doubts()
        elif before is not None:
            results.doubts += cpu_doubts(before)


def _run(
    stage: Stage,
    chosen: Setting,
    inputs: Inputs,
    gpus: list[str],
    folder: Path,
    results: Results,
    say: Callable[[str, float], None],
    log: Callable[[Path], None],
) -> None:
    folder.mkdir()
    if stage == "rollout":
        from rlsize.commands.measure_rollout import run_rollout

        results.rollout = run_rollout(chosen, folder, say, log)
        partial, doubts = results.rollout.partial, results.rollout.doubts
    elif stage == "train":
        from rlsize.commands.measure_trainer import run_train

        results.train = run_train(chosen, inputs, gpus, folder, say, log)
        partial, doubts = results.train.partial, results.train.doubts
    else:
        from rlsize.commands.measure_sync import run_sync

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
