"""The train step, measured: a trainer under torchrun, with a smaller micro-batch where memory runs out."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from rlsize.errors import Fault, InputError, UnfinishedError
from rlsize.measure.child import Child, ChildDiedError, staged
from rlsize.measure.torchrun import rendezvous
from rlsize.measure.train_result import Heard, TrainJob, TrainResult, train_result

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NAME = "train step"
WORKER = "rlsize.measure.workers.train"
KILLED = "Signal 9 (SIGKILL)"  # how torchrun tells that the kernel took a rank for want of memory
PATIENCE = 2.0  # times the seconds given that a trainer may be silent, on top of those for its start

__all__ = ["TrainJob", "TrainResult", "measure_train"]


def measure_train(
    job: TrainJob, python: str, folder: Path, *, seconds: float, say: Callable[[str, float], None]
) -> TrainResult:
    """
    Train on one step of the workload, again and again, and time it.

    Where memory runs out the micro-batch is halved and the measurement begins anew. What was timed before an interrupt
    or a death is kept and marked partial.

    Args:
        job: What to train.
        python: A Python that has torch and transformers.
        folder: An empty folder for files of the trainer.
        seconds: For warm-up and timed steps, apart from the start. [s]
        say: Called with what is being done, and the share of it that is.

    Raises:
        InputError: The longest sample does not fit the micro-batch.
        UnfinishedError: It died before a step was timed, or one sample is too much for the memory.
        KeyboardInterrupt: As it came, where no step had been timed.
    """
    if job.micro_batch_tokens < job.longest:
        what = f"micro-batches of {job.micro_batch_tokens} tokens cannot hold a sample of {job.longest}"
        raise InputError(Fault(what, NAME, "samples are not split; ask for larger micro-batches or shorter samples"))
    doubts: list[str] = []
    while True:
        attempt = folder / f"train-{job.micro_batch_tokens}"
        attempt.mkdir()
        heard = Heard()
        partial = _attempt(job, python, attempt, seconds, say, heard)
        if not heard.out_of_memory or heard.done:
            return train_result(job, heard, doubts, partial)
        smaller = _smaller(job)
        doubts.append(
            f"memory ran out with micro-batches of {job.micro_batch_tokens} tokens, so {smaller.micro_batch_tokens} "
            "were taken"
        )
        say(f"out of memory: micro-batches of {smaller.micro_batch_tokens} tokens", 0.0)
        job = smaller


def _smaller(job: TrainJob) -> TrainJob:
    if job.micro_batch_tokens <= job.longest:
        what = f"ran out of memory with one sample of {job.longest} tokens in a micro-batch"
        todo = "recompute activations in full, train on more GPUs, or measure a shorter longest response"
        raise UnfinishedError(Fault(what, NAME, todo))
    return replace(job, micro_batch_tokens=max(job.longest, job.micro_batch_tokens // 2))


def _attempt(
    job: TrainJob, python: str, folder: Path, seconds: float, say: Callable[[str, float], None], heard: Heard
) -> str:
    """Run one trainer and keep what it says; returns why it ended before its time, or nothing."""
    with Child(_command(job, python, folder, seconds), folder, NAME, staged(folder)) as child:
        try:
            _listen(job, child, seconds, say, heard)
        except KeyboardInterrupt:
            if not heard.timed:
                raise
            return "" if heard.done else "interrupted"
        except ChildDiedError as error:
            if heard.done or heard.out_of_memory:  # it fell over on its way out, or said why it went
                return ""
            fault = _first_fault(error, heard, killed=_killed(child))
            if heard.timed:
                return fault.what
            if not (error.memory or _killed(child)):
                raise ChildDiedError(fault) from None
            heard.out_of_memory = {"message": fault.what}
    return ""


def _listen(job: TrainJob, child: Child, seconds: float, say: Callable[[str, float], None], heard: Heard) -> None:
    say("trainer starts", 0.0)
    silence = job.start_seconds + PATIENCE * seconds
    while not heard.out_of_memory:
        event = child.hear(silence if heard.ready else job.start_seconds)
        if event is None:
            break
        heard.take(event)
        if event["event"] == "ready":
            say("trainer warms up", 0.0)
        elif event["event"] == "progress" and event["step"] > 0:
            share = max(event["step"] / event["of"], event["seconds"] / seconds)
            say(f"train step {event['step']} of {event['of']}", min(1.0, share))
    if not heard.ready and job.torchrun and not heard.out_of_memory:  # another node's part: rank 0 tells its own rlsize
        raise UnfinishedError(Fault("rank 0 is on another node, which has the figures", NAME, "look there"))
    if not (heard.out_of_memory or heard.timed):
        raise ChildDiedError(Fault("ended without a step: " + child.last_words(), NAME, "its whole log: --log FILE"))


def _command(job: TrainJob, python: str, folder: Path, seconds: float) -> list[str]:
    told = {
        "model": job.model,
        "lengths": job.lengths,
        "group_size": job.group_size,
        "micro_batch_tokens": job.micro_batch_tokens,
        "recompute": job.recompute,
        "warm_up": job.warm_up,
        "steps": job.steps,
        "seed": job.seed,
        "count_flops": job.count_flops,
        "device": job.device,
        "seconds": seconds,
    }
    path = folder / "job.json"
    path.write_text(json.dumps(told), encoding="utf-8")
    where = rendezvous(job.torchrun, job.processes)
    return [python, "-m", "torch.distributed.run", *where, "-m", WORKER, str(path)]


def _first_fault(error: ChildDiedError, heard: Heard, *, killed: bool) -> Fault:
    """The fault that a rank told, or was too dead to tell; torchrun itself only says that one failed."""
    fault = error.faults[0]
    if killed:  # before what other ranks told: they fail because they lost this one
        return replace(fault, what="a rank was killed, as the kernel does where memory runs out")
    if heard.failed:
        return replace(fault, what=f"rank {heard.failed['rank']} failed: {heard.failed['message']}")
    return fault


def _killed(child: Child) -> bool:
    with suppress(OSError):
        return KILLED in child.log.read_text(encoding="utf-8", errors="replace")
    return False
