"""What is asked of a training step: the model, the GPUs, how the work is spread, and which passes there are."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from rlsize.estimates.layout_rules import Degrees, model_objections, rank_objections
from rlsize.estimates.memory_shape import memory_shape
from rlsize.estimates.model_size import model_size
from rlsize.facts.figure import Figure
from rlsize.facts.records.record import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rlsize.equations._ops import Real
    from rlsize.facts.gpu import Gpu
    from rlsize.facts.model import Model

Sharding = Literal["full", "gradients", "optimizer", "none"]
Workload = Literal["pretraining", "rl"]

SHARDINGS: tuple[Sharding, ...] = ("full", "gradients", "optimizer", "none")
DTYPES = ("bf16", "fp8")
EXTRA_PASSES: Mapping[str, str] = MappingProxyType(
    {
        "old_logprob": "log-probabilities of the policy before the update",
        "reference": "log-probabilities of the reference model",
        "proximal": "log-probabilities of the proximal policy (decoupled PPO)",
        "reward": "scores of the reward model",
        "critic": "values of the critic, and its own training",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PassWork:
    """
    What one pass over the tokens costs, in forward passes of each kind of work.

    Args:
        linear: Of linear layers. [1]
        head: Of the output head. [1]
        attention: Of attention scores; backward costs two and a half. [1]
        streams: Of element-wise work, backward counted as two. [1]
        logits: Of the loss; forward alone moves half of it. [1]
        reductions: All-reduces of a layer for tensor parallelism. [1]
        exchanges: All-to-all exchanges of a layer with experts. [1]
        rounds: Times that keys and values go round for context parallelism. [1]
        collectives: Gathers and scatters of sharded weights for each micro-batch, by sharding. [1]
    """

    linear: float
    head: float
    attention: float
    streams: float
    logits: float
    reductions: float
    exchanges: float
    rounds: float
    collectives: Mapping[Sharding, float]


_BOTH: Mapping[Sharding, float] = MappingProxyType({"full": 3, "gradients": 2, "optimizer": 2, "none": 2})
_FORWARD: Mapping[Sharding, float] = MappingProxyType({"full": 1, "gradients": 1, "optimizer": 0, "none": 0})


def _training(linear: float, attention: float, streams: float, reductions: float) -> PassWork:
    return PassWork(
        linear=linear,
        head=3,
        attention=attention,
        streams=streams,
        logits=1,
        reductions=reductions,
        exchanges=reductions,
        rounds=3,
        collectives=_BOTH,
    )


TRAINING: Mapping[str, PassWork] = MappingProxyType(
    {
        "none": _training(3, 3.5, 3, 4),
        "selective": _training(3, 4.5, 3.25, 4),  # attention is computed again
        "alternate": _training(3.5, 3.5, 3.5, 5),  # every other product is computed again, and what it gathers gathered
        "full": _training(4, 4.5, 4, 6),
    }
)
"""Forward and backward, by what backward computes again."""

FORWARD = PassWork(
    linear=1,
    head=1,
    attention=1,
    streams=1,
    logits=0.5,
    reductions=2,
    exchanges=2,
    rounds=1,
    collectives=_FORWARD,
)
"""Forward alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainQuestion:
    """
    A training step that somebody wants to know the time of; numbers, arrays of them, or figures.

    Args:
        model: The policy.
        gpu: The GPU, with kernels.
        gpus: GPUs of the trainer. [1]
        tensor: Tensor-parallel ranks. [1]
        pipeline: Pipeline stages. [1]
        context: Context-parallel ranks. [1]
        expert: Expert-parallel ranks. [1]
        shards: Ranks over which weights or states are sharded; None: data x context ranks. [1]
        sharding: What is sharded: weights too (ZeRO-3, FSDP), gradients (ZeRO-2), states (ZeRO-1), or nothing.
        virtual_stages: Chunks of layers of each pipeline stage; 1 unless interleaved. [1]
        dtype: Number type of linear layers: bf16 or fp8.
        row_scaling: Whether fp8 has a scale for each row in place of one for each tensor.
        recompute: What backward computes again: none, selective (attention), alternate (every other product) or full.
        sequences: Sequences of the step. [1]
        tokens: Mean tokens of a sequence, prompt and response. [token]
        tokens_cv: Standard deviation of that over its mean. [1]
        micro_batch_tokens: Tokens of a micro-batch of one replica. [token]
        updates: Times that the step's tokens are trained on. [1]
        optimizer_steps: Optimizer updates for that each time: mini-batches. [1]
        passes: Extra passes, of `EXTRA_PASSES`.
        pass_models: Models of those passes that are not as large as the policy.
        state_bytes: Bytes per parameter of the optimizer's copy and moments. [B/param]
        gradient_bytes: Bytes per parameter of a gradient. [B/param]
        offload: Whether these states live on the host.
        lora_rank: Rank of the adapters that alone are trained; None for full training. Memory counts them; the time is
            that of full training.
        fused: Whether element-wise work is compiled or fused.
        overlapped: Whether tensor-parallel transfers overlap with matrix products.
        native_attention: Whether attention kernels are made for this generation of GPU: FlashAttention-3 or cuDNN on
            Hopper, where FlashAttention-2 is the rule.
        capped: Whether somebody said how long a sequence gets, so that a micro-batch is known to hold the longest; a
            trainer whose longest sequence nobody knows is run with micro-batches that hold it.
        workload: pretraining, or rl with its ragged sequences and small micro-batches.
    """

    model: Model
    gpu: Gpu
    gpus: Real
    sequences: Real
    tokens: Real
    micro_batch_tokens: Real
    tensor: int = 1
    pipeline: int = 1
    context: int = 1
    expert: int = 1
    shards: int | None = None
    sharding: Sharding = "full"
    virtual_stages: int = 1
    dtype: str = "bf16"
    row_scaling: bool = False
    recompute: str = "full"
    tokens_cv: Real = 0.0
    updates: Real = 1
    optimizer_steps: Real = 1
    passes: tuple[str, ...] = ()
    pass_models: Mapping[str, Model] = field(default_factory=dict)
    state_bytes: Real = 12.0
    gradient_bytes: Real = 4.0
    offload: bool = False
    lora_rank: int | None = None
    fused: bool = False
    overlapped: bool = False
    native_attention: bool = False
    capped: bool = True
    workload: Workload = "rl"

    @property
    def replica(self) -> int:
        """GPUs of one model replica."""
        return self.tensor * self.pipeline * self.context


def stated(question: TrainQuestion) -> dict[str, Figure]:
    """The fields of a question that are figures."""
    values = {entry.name: getattr(question, entry.name) for entry in fields(question)}
    return {name: value for name, value in values.items() if isinstance(value, Figure)}


def bare_question(question: TrainQuestion, draws: Mapping[str, Real] | None = None) -> TrainQuestion:
    """
    A question with bare numbers in place of its figures.

    Args:
        question: The question.
        draws: Arrays for the fields that are uncertain.
    """
    found: dict[str, Any] = {name: figure.number for name, figure in stated(question).items()}
    return replace(question, **{**found, **(draws or {})})


def objections(question: TrainQuestion, gpus: float | None = None) -> Iterator[str]:
    """
    What makes a question one that has no answer, each in a line.

    Args:
        question: What is asked.
        gpus: GPUs of the trainer, where the question's are figures or an array; None where they are a number.
    """
    gpu = question.gpu
    if question.dtype == "fp8" and gpu.specification.fp8_dense is None:
        yield f"{gpu.name} has no fp8 matrix units, so it cannot train in fp8; bf16 works"
    elif question.dtype not in DTYPES:
        yield f"{gpu.name} trains in {' or '.join(DTYPES)}; {question.dtype} is not predicted"
    if gpu.kernels is None:
        yield f"the profile of {gpu.name} says nothing about its kernels"
    count = question.gpus if gpus is None else gpus
    degrees = Degrees(question.tensor, question.pipeline, question.context, question.expert)
    shape = memory_shape(question.model, model_size(question.model).params)
    found = list(rank_objections(count, degrees)) if isinstance(count, (int, float)) else []
    yield from (one.what for one in (*found, *model_objections(shape, degrees)))
    unknown = [name for name in question.passes if name not in EXTRA_PASSES]
    if unknown:
        yield f"there is no pass {unknown[0]!r}; there are {', '.join(EXTRA_PASSES)}"


def check(question: TrainQuestion) -> None:
    """
    Go on if a question has an answer.

    Raises:
        Refused: It has none; the text says why.
    """
    for objection in objections(question):
        raise Refused(objection)
