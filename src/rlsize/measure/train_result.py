"""What a trainer said, as facts: seconds of a whole step by phase, rates, FLOPs and MFU."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

from rlsize.equations.matching import implied_mfu
from rlsize.estimates.scatter import scatter
from rlsize.estimates.training_flops import training_flops_per_token
from rlsize.facts.measured import TrainMeasured, TrainPhase
from rlsize.measure.train_doubts import flops_doubts, model_doubts, step_doubts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.estimates.training_flops import TrainingFlops
    from rlsize.facts.model import Model

PER_STEP = "optimizer"  # the phase that runs once a step, not once a micro-batch
WITHOUT = "logprob"  # the phase that is no part of the update


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
        count_flops: Whether to count one micro-batch with torch's FlopCounterMode.
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
    count_flops: bool = False
    torchrun: tuple[str, ...] = ()
    device: Literal["auto", "cpu", "cuda"] = "auto"
    peak_flops: float | None = None
    start_seconds: float = 900.0

    @property
    def longest(self) -> int:
        """Tokens of the longest sample, below which no micro-batch can go."""
        return max(prompt + response for prompt, response in self.lengths)


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedFlops:
    """
    FLOPs of forward and backward by torch's own counter, beside what the equations say for the same sequences.

    Args:
        counted_per_token: By FlopCounterMode. [FLOP/token]
        expected_per_token: By the equations, in the counter's convention; None without a profile. [FLOP/token]
        tokens: Tokens that were counted.
        operations: FLOPs of each operation that the counter knows.
    """

    counted_per_token: float
    expected_per_token: float | None
    tokens: int
    operations: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainResult:
    """
    A measured train step.

    Args:
        measured: The figures.
        versions: Libraries that did the work.
        gpus: Names of the GPUs, one for each rank; empty on a CPU.
        config: The model's configuration as the trainer resolved it.
        doubts: What makes one doubt the figures, in sentences.
        flops: The count, where asked for.
        partial: Why the measurement ended before its time; empty where it did not.
    """

    measured: TrainMeasured
    versions: dict[str, str]
    gpus: list[str]
    config: dict[str, Any]
    doubts: list[str] = field(default_factory=list)
    flops: CountedFlops | None = None
    partial: str = ""


@dataclass(slots=True)
class Heard:
    """Events of one trainer, by kind; `step` events in their order."""

    ready: dict[str, Any] = field(default_factory=dict)
    plan: dict[str, Any] = field(default_factory=dict)
    steps: list[dict[str, Any]] = field(default_factory=list)
    memory: dict[str, Any] = field(default_factory=dict)
    flops: dict[str, Any] = field(default_factory=dict)
    failed: dict[str, Any] = field(default_factory=dict)
    out_of_memory: dict[str, Any] = field(default_factory=dict)
    done: dict[str, Any] = field(default_factory=dict)

    def take(self, event: dict[str, Any]) -> None:
        """Keep an event; of faults the first, as later ones follow from it."""
        kind = event["event"]
        if kind == "step":
            self.steps.append(event)
        elif kind in {"ready", "plan", "memory", "flops", "failed", "out_of_memory", "done"} and not getattr(
            self, kind
        ):
            setattr(self, kind, event)

    @property
    def timed(self) -> list[dict[str, Any]]:
        """Steps after warm-up."""
        return [step for step in self.steps if not step["warm_up"]]


def train_result(job: TrainJob, heard: Heard, doubts: Sequence[str] = (), partial: str = "") -> TrainResult:
    """
    The figures of a trainer that timed a step or more.

    Args:
        job: What was asked for, with the micro-batch that was used at last.
        heard: What it said.
        doubts: Doubts that arose on the way.
        partial: Why it ended before its time.
    """
    flops = training_flops_per_token(job.profile, _totals(job)) if job.profile else None
    measured = _measured(job, heard, flops)
    counted = _counted(job, heard)
    notes = flops.notes if flops else ()
    found = [*doubts, *step_doubts(measured, heard), *model_doubts(job.profile), *notes, *flops_doubts(counted)]
    return TrainResult(
        measured=measured,
        versions=dict(heard.ready["versions"]),
        gpus=list(heard.ready["gpus"]),
        config=dict(heard.ready["config"]),
        doubts=found,
        flops=counted,
        partial=partial,
    )


def _totals(job: TrainJob) -> list[int]:
    return [prompt + response for prompt, response in job.lengths]


def _measured(job: TrainJob, heard: Heard, flops: TrainingFlops | None) -> TrainMeasured:
    tokens, responses, ranks = sum(_totals(job)), sum(response for _, response in job.lengths), heard.ready["world"]
    phases, whole = _phases(heard, tokens)
    seconds = fmean(whole)
    update_seconds = sum(phase.seconds for phase in phases if phase.name != WITHOUT)
    update_rate = tokens / update_seconds / ranks
    matrices = flops.flops_per_token.number if flops else None
    attention = flops.attention_flops_per_token.number if flops else None
    both = flops.flops_per_token.number + flops.attention_flops_per_token.number if flops else None
    peak = job.peak_flops if heard.ready["gpus"] else None
    return TrainMeasured(
        gpus=ranks,
        params=float(heard.ready["params"]),
        step_samples=len(job.lengths),
        step_response_tokens=float(responses),
        step_total_tokens=float(tokens),
        micro_batch_tokens=job.micro_batch_tokens,
        micro_batches=heard.plan["micro_batches"],
        micro_batches_timed=heard.plan["micro_batches_timed"],
        steps_timed=len(heard.timed),
        train_seconds=seconds,
        scatter=scatter(whole),
        gpu_response_tokens_per_second=responses / seconds / ranks,
        gpu_total_tokens_per_second=tokens / seconds / ranks,
        update_total_tokens_per_second=update_rate,
        phases=phases,
        flops_per_token=matrices,
        attention_flops_per_token=attention,
        mfu=_mfu(update_rate, matrices, peak),
        mfu_with_attention=_mfu(update_rate, both, peak),
        peak_memory_bytes=heard.memory.get("bytes"),
        losses=[step["loss"] for step in heard.steps],
        setting=_setting(job, heard.ready),
    )


def _phases(heard: Heard, tokens: int) -> tuple[list[TrainPhase], list[float]]:
    """Phases of a whole step, and the seconds of each step that was timed; what was left out is scaled by tokens."""
    scale, repeats = tokens / heard.plan["tokens_timed"], heard.plan["micro_batches_timed"]
    found, whole = [], [0.0] * len(heard.timed)
    for name in heard.timed[0]["phases"]:
        times = 1 if name == PER_STEP else repeats
        factor = 1.0 if name == PER_STEP else scale
        seconds = [float(step["phases"][name]) for step in heard.timed]
        each = [value / times for value in seconds]
        whole = [total + factor * value for total, value in zip(whole, seconds, strict=True)]
        found.append(
            TrainPhase(name=name, seconds=factor * fmean(seconds), seconds_each=fmean(each), scatter=scatter(each))
        )
    return found, whole


def _mfu(tokens_per_second: float, flops_per_token: float | None, peak_flops: float | None) -> float | None:
    if flops_per_token is None or peak_flops is None:
        return None
    return float(
        implied_mfu(tokens_per_second=tokens_per_second, flops_per_token=flops_per_token, gpus=1, peak_flops=peak_flops)
    )


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


def _counted(job: TrainJob, heard: Heard) -> CountedFlops | None:
    if not heard.flops:
        return None
    lengths = heard.flops["lengths"]
    expected = training_flops_per_token(job.profile, lengths).counted_flops_per_token.number if job.profile else None
    return CountedFlops(
        counted_per_token=heard.flops["flops"] / sum(lengths),
        expected_per_token=expected,
        tokens=sum(lengths),
        operations={name: float(count) for name, count in heard.flops["operations"].items()},
    )
