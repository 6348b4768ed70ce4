"""The train stage of `measure`: a job made of what was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from rlsize.commands.measure_setting import Setting
    from rlsize.measure.train import TrainResult
    from rlsize.shell.inputs import Inputs

MICRO_BATCH_TOKENS = 16_384
CPU_MICRO_BATCH_TOKENS = 4096


def run_train(
    setting: Setting,
    inputs: Inputs,
    gpus: Sequence[str],
    folder: Path,
    say: Callable[[str, float], None],
    log: Callable[[Path], None],
) -> TrainResult:
    """
    Measure a train step of the workload.

    Args:
        setting: What was asked for.
        inputs: Where GPU profiles are.
        gpus: Names of this machine's GPUs; empty on a CPU.
        folder: An empty folder for files of the trainer.
        say: Told how far it has come.
        log: Given the trainer's log when it has ended.

    Raises:
        UnfinishedError: No step could be timed.
        InputError: The model or the workload cannot be trained.
    """
    from rlsize.measure.train import TrainJob, measure_train

    model = setting.named_model
    lengths = _lengths(setting)
    longest = max(prompt + response for prompt, response in lengths)
    micro = setting.trainer.micro_batch_tokens or max(MICRO_BATCH_TOKENS if gpus else CPU_MICRO_BATCH_TOKENS, longest)
    job = TrainJob(
        model=model.shape,
        profile=model.profile,
        lengths=lengths,
        group_size=setting.work.group_size,
        micro_batch_tokens=micro,
        recompute=setting.trainer.recompute,  # type: ignore[arg-type]  # one of its words: it was checked against them
        processes=setting.trainer.processes or len(gpus) or 1,
        steps=3 if setting.quick else 10,
        seed=setting.seed,
        torchrun=setting.trainer.torchrun,
        device="cuda" if gpus else "cpu",
        peak_flops=peak_flops(inputs, gpus),
        start_seconds=setting.start_seconds,
    )
    try:
        return measure_train(job, setting.trainer.python, folder, seconds=setting.seconds, say=say)
    finally:
        for place in sorted(folder.glob("**/log")):
            log(place)


def _lengths(setting: Setting) -> tuple[tuple[int, int], ...]:
    """Prompt and response of each sample of a step; samples of a prompt have one length, as in the rollout."""
    from random import Random

    from rlsize.estimates.lengths import response_lengths

    work = setting.work
    drawn = response_lengths(work.prompts, work.mean, work.cv, work.cap, Random(f"lengths {setting.seed}"))  # noqa: S311 (a workload, no secret)
    return tuple((work.prompt_tokens, length) for length in drawn for _ in range(work.group_size))


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
