"""The sync stage of `measure`: ranks that send and receive, and, where asked for, the engine's own update."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rlsize.errors import Fault, InputError, RlsizeError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from rlsize.commands.measure_setting import Setting
    from rlsize.measure.weight_sync import SyncResult


def run_sync(
    setting: Setting,
    gpus: Sequence[str],
    folder: Path,
    say: Callable[[str, float], None],
    log: Callable[[Path], None],
) -> SyncResult:
    """
    Measure a weight sync between ranks of this machine, or of several with torchrun's flags.

    Args:
        setting: What was asked for.
        gpus: Names of this machine's GPUs; empty on a CPU.
        folder: An empty folder for files of the ranks.
        say: Told how far it has come.
        log: Given the ranks' log when they have ended.

    Raises:
        UnfinishedError: No way to send was measured.
    """
    from rlsize.commands.measure_parts import TORCH_DTYPES
    from rlsize.measure.weight_sync import SyncJob, measure_sync

    model = setting.named_model
    senders, receivers = _ranks(setting, max(2, len(gpus)))
    if gpus and not setting.trainer.torchrun and senders + receivers > len(gpus):
        what = f"{senders} + {receivers} ranks need as many GPUs, and there are {len(gpus)}"
        raise InputError(Fault(what, "--receiver-ranks", "take fewer ranks, or --device cpu"))
    job = SyncJob(
        model=model.shape,
        dtype=TORCH_DTYPES[setting.engine.dtype],
        trainer_ranks=senders,
        receiver_ranks=receivers,
        torchrun=setting.trainer.torchrun,
        device="cuda" if gpus else "cpu",
        seed=setting.seed,
        start_seconds=setting.start_seconds,
        **({"bucket_bytes": setting.trainer.buckets} if setting.trainer.buckets else {}),
    )
    try:
        result = measure_sync(job, setting.trainer.python, folder, seconds=setting.seconds, say=say)
        if setting.trainer.engine_update and not result.partial:
            result = _with_engine_update(setting, result, folder / "engine", say)
        return result
    finally:
        for place in sorted(folder.glob("**/log")):
            log(place)


def _with_engine_update(
    setting: Setting, result: SyncResult, folder: Path, say: Callable[[str, float], None]
) -> SyncResult:
    """The same with the engine's own update; what was measured before stays where that fails."""
    from rlsize.commands.measure_engines import engine_arguments
    from rlsize.commands.measure_parts import TORCH_DTYPES
    from rlsize.commands.measure_rollout import rollout_plan
    from rlsize.measure.engine_update import EngineUpdateJob, measure_engine_update

    folder.mkdir()
    job = EngineUpdateJob(
        model=setting.named_model.shape,
        dtype=TORCH_DTYPES[setting.engine.dtype],
        engine=_beside_the_model(engine_arguments(setting, rollout_plan(setting), setting.engine.most)),
        prompt_tokens=min(64, setting.work.prompt_tokens),
        seed=setting.seed,
        start_seconds=setting.start_seconds,
    )
    try:
        update = measure_engine_update(job, setting.engine.python, folder, seconds=setting.seconds, say=say)
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


def _beside_the_model(arguments: dict[str, Any]) -> dict[str, Any]:
    """The engine's arguments without those that the update sets itself: it makes the weights that it loads."""
    return {name: value for name, value in arguments.items() if name not in {"model", "load_format", "dtype"}}


def _ranks(setting: Setting, ranks: int) -> tuple[int, int]:
    """Ranks that send and ranks that receive: what is said of one side leaves the rest to the other."""
    said, taken = setting.trainer.sender_ranks, setting.trainer.receiver_ranks
    senders = said or max(1, ranks - taken if taken else ranks // 2)
    return senders, taken or max(1, ranks - senders)
