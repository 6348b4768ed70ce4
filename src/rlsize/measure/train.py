"""The train step, measured: a trainer under torchrun, with a smaller micro-batch where memory runs out."""

from __future__ import annotations

from dataclasses import asdict, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

from rlsize.equations.matching import implied_mfu
from rlsize.errors import Fault, InputError, UnfinishedError
from rlsize.estimates.scatter import scatter
from rlsize.estimates.training_flops import training_flops_per_token
from rlsize.facts.measured import TrainMeasured, TrainPhase
from rlsize.frozen import dataclass
from rlsize.measure.child import ChildDiedError
from rlsize.measure.jobs import WIDE, StageResult, WorkerEvents, command, launcher

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from rlsize.estimates.training_flops import TrainingFlops
    from rlsize.facts.model import Model

NAME = "train step"
PATIENCE = 2.0  # times the seconds given that a trainer may be silent, on top of those for its start
PER_STEP = "optimizer"  # the phase that runs once a step, not once a micro-batch
WITHOUT = "logprob"  # the phase that is no part of the update
ENOUGH_STEPS = 3  # timed steps below which a spread says little
TREND_STEPS = 4  # timed steps below which there is no telling first from last
UNSEEN = 0.05  # of a step's seconds that may lie outside all phases


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainJob:
    """
    A train step to be measured.

    Args:
        model: A directory with a config.json, or a Hugging Face id.
        lengths: Prompt and response of each sample of the optimizer step. [token]
        group_size: Samples of one prompt; they follow each other in `lengths`.
        micro_batch_tokens: Most tokens packed into a micro-batch of a rank; the longest sample at least. [token]
        profile: The same model as a profile; without one there are neither FLOPs nor MFU.
        recompute: What backward computes again: nothing, attention, or each layer.
        processes: Ranks on this machine.
        warm_up: Steps before those that are timed.
        steps: Steps to time at most.
        seed: Of weights, token ids and rewards.
        torchrun: Flags of torchrun for several nodes; on one node none are needed.
        device: `auto` takes GPUs where torch sees any.
        peak_flops: Dense bf16 peak of one GPU, for MFU. [FLOP/s]
        start_seconds: Most that the start may take: imports, weights, the first micro-batch. [s]
    """

    model: str
    lengths: tuple[tuple[int, int], ...]
    group_size: int
    micro_batch_tokens: int
    profile: Model | None = None
    recompute: Literal["none", "selective", "full"] = "none"
    processes: int = 1
    warm_up: int = 1
    steps: int = 10
    seed: int = 0
    torchrun: tuple[str, ...] = ()
    device: Literal["auto", "cpu", "cuda"] = "auto"
    peak_flops: float | None = None
    start_seconds: float = 900.0

    @property
    def totals(self) -> list[int]:
        """Tokens of each sample."""
        return [prompt + response for prompt, response in self.lengths]

    @property
    def longest(self) -> int:
        """Tokens of the longest sample, below which no micro-batch can go."""
        return max(self.totals)


def train_result(job: TrainJob, heard: WorkerEvents, doubts: Sequence[str] = ()) -> StageResult[TrainMeasured]:
    """
    The figures of a trainer that timed a step or more.

    Args:
        job: What was asked for, with the micro-batch that was used at last.
        heard: What it said.
        doubts: Doubts that arose on the way.
    """
    flops = training_flops_per_token(job.profile, job.totals) if job.profile else None
    measured = _measured(job, heard, flops)
    notes = flops.notes if flops else ()
    return heard.result(measured, [*doubts, *step_doubts(measured, heard), *model_doubts(job.profile), *notes])


def _measured(job: TrainJob, heard: WorkerEvents, flops: TrainingFlops | None) -> TrainMeasured:
    ready, plan, timed = heard.others["ready"], heard.others["plan"], heard.timed
    tokens, responses, ranks = sum(job.totals), sum(response for _, response in job.lengths), ready["world"]
    phases, whole = _phases(timed, plan, tokens)
    seconds = fmean(whole)
    update_seconds = sum(phase.seconds for phase in phases if phase.name != WITHOUT)
    update_rate = tokens / update_seconds / ranks
    matrices, attention = (
        (flops.flops_per_token.number, flops.attention_flops_per_token.number) if flops else (None, None)
    )
    peak = job.peak_flops if ready["gpus"] else None

    def mfu(*flops_per_token: float | None) -> float | None:
        known = [part for part in flops_per_token if part is not None]
        if peak is None or not known:
            return None
        rate = {"tokens_per_second": update_rate, "flops_per_token": sum(known)}
        return float(implied_mfu(**rate, gpus=1, peak_flops=peak))

    return TrainMeasured(
        gpus=ranks,
        params=float(ready["params"]),
        step_samples=len(job.lengths),
        step_response_tokens=float(responses),
        step_total_tokens=float(tokens),
        micro_batch_tokens=job.micro_batch_tokens,
        micro_batches=plan["micro_batches"],
        micro_batches_timed=plan["micro_batches_timed"],
        steps_timed=len(timed),
        train_seconds=seconds,
        scatter=scatter(whole),
        gpu_response_tokens_per_second=responses / seconds / ranks,
        gpu_total_tokens_per_second=tokens / seconds / ranks,
        update_total_tokens_per_second=update_rate,
        phases=phases,
        flops_per_token=matrices,
        attention_flops_per_token=attention,
        mfu=mfu(matrices),
        mfu_with_attention=mfu(matrices, attention),
        peak_memory_bytes=heard.others.get("memory", {}).get("bytes"),
        losses=[step["loss"] for step in heard.results],
        setting=_setting(job, ready),
    )


def _phases(
    timed: Sequence[Mapping[str, Any]], plan: Mapping[str, Any], tokens: int
) -> tuple[list[TrainPhase], list[float]]:
    """Phases of a whole step, and the seconds of each step that was timed; what was left out is scaled by tokens."""
    scale, repeats = tokens / plan["tokens_timed"], plan["micro_batches_timed"]
    found, whole = [], [0.0] * len(timed)
    for name in timed[0]["phases"]:
        times = 1 if name == PER_STEP else repeats
        factor = 1.0 if name == PER_STEP else scale
        seconds = [float(step["phases"][name]) for step in timed]
        each = [value / times for value in seconds]
        whole = [total + factor * value for total, value in zip(whole, seconds, strict=True)]
        mean = factor * fmean(seconds)
        found.append(TrainPhase(name=name, seconds=mean, seconds_each=fmean(each), scatter=scatter(each)))
    return found, whole


def _setting(job: TrainJob, ready: Mapping[str, Any]) -> dict[str, str]:
    experts = {"experts": str(ready["experts"])} if ready.get("experts") else {}
    return {
        "sharding": f"FSDP2 over {ready['world']} ranks, by layer; gradients reduced after each micro-batch",
        "dtype": "bf16 with fp32 master weights and fp32 gradients",
        "optimizer": "AdamW, fused" if ready["gpus"] else "AdamW",
        "recompute": job.recompute,
        "attention": f"{ready['attention']}, packed",
        **experts,
        "logits": "of all tokens, in chunks, computed again in backward",
        "loss": "clipped policy gradient on group-normalised random rewards, mean over response tokens",
    }


def step_doubts(measured: TrainMeasured, heard: WorkerEvents) -> Iterator[str]:
    """
    What makes one doubt the seconds of a step, in sentences.

    Args:
        measured: The figures.
        heard: What the trainer said.
    """
    timed = heard.timed
    seconds = [float(step["seconds"]) for step in timed]
    if len(seconds) < ENOUGH_STEPS:
        yield f"only {len(seconds)} steps were timed, too few to tell how much they scatter; give it more time"
    if measured.scatter and measured.scatter.cv > WIDE:
        yield f"steps scatter by {100 * measured.scatter.cv:.0f} % (coefficient of variation); is there other work?"
    yield from _trend(seconds)
    if measured.losses[-1] >= measured.losses[0] and len(measured.losses) > 1:
        yield f"the loss did not fall over {len(measured.losses)} steps on one batch"
    if measured.micro_batches_timed < measured.micro_batches:
        yield (
            f"{measured.micro_batches_timed} of {measured.micro_batches} micro-batches were timed in each step, and "
            "the rest was scaled by tokens; give it more time for whole steps"
        )
    outside = 1 - sum(sum(step["phases"].values()) for step in timed) / sum(seconds)
    if outside > UNSEEN:
        yield f"{100 * outside:.0f} % of the time of a step lies between its phases and is in no figure"
    done = heard.others.get("done", {})
    for how in done.get("fell_back", ()):
        yield f"attention ran {how}, as torch has no packed kernel for it: a trainer with one is faster at long samples"
    left_out = done.get("left_out")
    if left_out:
        yield f"the trainer left out what the model has: {', '.join(left_out)}"


def _trend(seconds: Sequence[float]) -> Iterator[str]:
    """The first half of the steps against the last, where there are enough to tell."""
    if len(seconds) < TREND_STEPS:
        return
    half = len(seconds) // 2
    change = fmean(seconds[-half:]) / fmean(seconds[:half]) - 1
    if abs(change) > WIDE:
        way, cause = ("slower", "throttled") if change > 0 else ("faster", "still warming up")
        yield f"later steps were {way} than earlier ones by {100 * abs(change):.0f} %: not steady, perhaps {cause}"


def model_doubts(model: Model | None) -> Iterator[str]:
    """What the trainer does otherwise than a tuned one with layers that keep a state."""
    if model and (model.architecture.linear_attention or model.architecture.mamba):
        yield (
            "layers with a recurrent state carry it on within a pack, and run on the slow reference of transformers "
            "where flash-linear-attention, causal-conv1d or mamba-ssm are not installed"
        )


def measure_train(
    job: TrainJob, python: str, folder: Path, *, seconds: float, say: Callable[[str, float], None]
) -> StageResult[TrainMeasured]:
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

    def told(event: dict[str, Any]) -> None:
        if event["event"] == "ready":
            say("trainer warms up", 0.0)
        elif event["event"] == "progress" and event["step"] > 0:
            share = max(event["step"] / event["of"], event["seconds"] / seconds)
            say(f"train step {event['step']} of {event['of']}", min(1.0, share))

    while True:
        attempt = folder / f"train-{job.micro_batch_tokens}"
        attempt.mkdir()
        say("trainer starts", 0.0)
        heard, asked = WorkerEvents(NAME, repeated="step"), asdict(replace(job, profile=None)) | {"seconds": seconds}
        argv = command(python, "train", asked, attempt, launcher(job.torchrun, job.processes))
        try:
            heard.listen(argv, attempt, job.start_seconds, told, PATIENCE * seconds)
            return train_result(job, heard, doubts)
        except ChildDiedError as error:
            if not error.memory:
                raise
        smaller = _smaller(job)
        before, after = job.micro_batch_tokens, smaller.micro_batch_tokens
        doubts.append(f"memory ran out with micro-batches of {before} tokens, so {after} were taken")
        say(f"out of memory: micro-batches of {smaller.micro_batch_tokens} tokens", 0.0)
        job = smaller


def _smaller(job: TrainJob) -> TrainJob:
    if job.micro_batch_tokens <= job.longest:
        what = f"ran out of memory with one sample of {job.longest} tokens in a micro-batch"
        todo = "recompute activations in full, train on more GPUs, or measure a shorter longest response"
        raise UnfinishedError(Fault(what, NAME, todo))
    return replace(job, micro_batch_tokens=max(job.longest, job.micro_batch_tokens // 2))
