"""How a trainer is spread over its GPUs, how its states are sharded, and what a model and a number of GPUs allow."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from rlsize.equations import memory_fit
from rlsize.estimates.figures import apply
from rlsize.facts.figure import Figure
from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlsize.equations._ops import Real
    from rlsize.estimates.memory_shape import MemoryShape

Sharding = Literal["full", "gradients", "optimizer", "none"]

WEIGHT_STAGE = 3  # the ZeRO stage from which weights are sharded too
SHARDINGS: tuple[Sharding, ...] = ("none", "optimizer", "gradients", "full")  # by ZeRO stage
FULLY_SHARDED = Figure(key="zero_stage", value=3, provenance="default", source="FSDP: all states sharded")


class Degrees(NamedTuple):
    """
    Degrees of parallelism of a trainer.

    Args:
        tensor: Tensor-parallel ranks. [1]
        pipeline: Pipeline stages. [1]
        context: Context-parallel ranks. [1]
        expert: Expert-parallel ranks. [1]
    """

    tensor: int = 1
    pipeline: int = 1
    context: int = 1
    expert: int = 1


def larger(degree: Real, limit: float = 1.0) -> bool:
    """Whether a degree is larger than another, or any of an array of degrees."""
    return bool((degree > limit).any()) if hasattr(degree, "any") else degree > limit


def not_parallel(key: str) -> Figure:
    """A degree of parallelism that nobody asked for."""
    return Figure(key=key, value=1, provenance="default", source="not parallel")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerLayout:
    """
    How the trainer is spread over its GPUs.

    Args:
        data_parallel: Data-parallel ranks. [1]
        shards: Data-parallel ranks that share one copy of the training state; fewer than all with HSDP. [1]
        zero_stage: What they share: nothing (0), optimizer (1), gradients (2), weights as well (3, FSDP).
        tensor_parallel: Tensor-parallel ranks. [1]
        pipeline_parallel: Pipeline stages. [1]
        context_parallel: Context-parallel ranks. [1]
        expert_parallel: Expert-parallel ranks. [1]
    """

    data_parallel: Figure = field(default_factory=lambda: not_parallel("data_parallel"))
    shards: Figure = field(default_factory=lambda: not_parallel("shards"))
    zero_stage: Figure = FULLY_SHARDED
    tensor_parallel: Figure = field(default_factory=lambda: not_parallel("tensor_parallel"))
    pipeline_parallel: Figure = field(default_factory=lambda: not_parallel("pipeline_parallel"))
    context_parallel: Figure = field(default_factory=lambda: not_parallel("context_parallel"))
    expert_parallel: Figure = field(default_factory=lambda: not_parallel("expert_parallel"))

    @property
    def gpus(self) -> Figure:
        """GPUs of the trainer."""
        return apply("trainer_gpus", memory_fit.trainer_gpus, data_parallel=self.data_parallel, **self._of_a_replica)

    @property
    def _of_a_replica(self) -> dict[str, Figure]:
        keys = ("tensor_parallel", "pipeline_parallel", "context_parallel")
        return {key: getattr(self, key) for key in keys}

    @property
    def sharding(self) -> Sharding:
        """What the shards share, by name."""
        return SHARDINGS[int(self.zero_stage.number)]

    @property
    def degrees(self) -> Degrees:
        """The degrees that model parallelism cuts the model by."""
        return Degrees(
            tensor=int(self.tensor_parallel.number),
            pipeline=int(self.pipeline_parallel.number),
            context=int(self.context_parallel.number),
            expert=int(self.expert_parallel.number),
        )

    @property
    def model_parallel(self) -> int:
        """GPUs that hold one copy of the model between them, before data parallelism."""
        return int(replace(self, data_parallel=not_parallel("data_parallel")).gpus.number)

    def spread_over(self, gpus: int) -> TrainerLayout:
        """The same model parallelism on so many GPUs, the state shared by all data-parallel ranks."""
        ranks = self.data_ranks(Figure(key="trainer_gpus", value=gpus, provenance="predicted", source="tried"))
        return replace(self, data_parallel=ranks, shards=replace(ranks, key="shards"))

    def data_ranks(self, gpus: Figure) -> Figure:
        """Data-parallel ranks that so many GPUs leave room for."""
        return apply("data_parallel", memory_fit.data_parallel_ranks, gpus=gpus, **self._of_a_replica)


class Objection(NamedTuple):
    """
    Why a layout cannot be.

    Args:
        reason: heads, layers, experts or ranks.
        degree: The degree to blame: tensor, pipeline, expert, or gpus.
        what: The reason in words.
        todo: What would do.
    """

    reason: str
    degree: str
    what: str
    todo: str


def divides(shape: MemoryShape, degree: int) -> bool:
    """Whether tensor parallelism of that degree can deal out a model's heads evenly."""
    if not shape.heads:
        return True
    kv_heads = shape.kv_heads
    return shape.heads % degree == 0 and (kv_heads % degree == 0 or degree % kv_heads == 0)


def heads_objection(shape: MemoryShape, tensor: int) -> Iterator[Objection]:
    """What tensor parallelism of a trainer or an engine cannot deal out."""
    if not divides(shape, tensor):
        what = f"{tensor} ranks cannot share {shape.heads} heads ({shape.kv_heads} KV heads) evenly"
        yield Objection("heads", "tensor", what, "use a divisor of both, or a multiple of the KV heads")


def model_objections(shape: MemoryShape, degrees: Degrees) -> Iterator[Objection]:
    """
    What of a model a layout does not divide.

    Args:
        shape: The model.
        degrees: The layout.
    """
    yield from heads_objection(shape, degrees.tensor)
    expert, stages = degrees.expert, degrees.pipeline
    if expert > 1 and shape.size is None:
        yield Objection("experts", "expert", "experts are known from the model's profile only", "name --model")
    elif expert > 1 and not shape.experts:
        yield Objection("experts", "expert", f"the model has no experts to deal out to {expert} ranks", "leave it out")
    elif shape.experts % expert:
        what = f"{expert} ranks cannot share {shape.experts} experts evenly"
        yield Objection("experts", "expert", what, "make it a divisor")
    if shape.layers.known and stages > shape.layers.number:
        what = f"{stages} stages are more than the {shape.layers.number:g} layers"
        yield Objection("layers", "pipeline", what, "give each stage a layer at least")


def rank_objections(gpus: float, degrees: Degrees) -> Iterator[Objection]:
    """
    Why so many GPUs do not make whole model replicas and expert groups.

    Args:
        gpus: GPUs of the trainer. [1]
        degrees: The layout.
    """
    replica = degrees.tensor * degrees.pipeline * degrees.context
    todo = "make one a multiple of the other"
    if gpus < 1 or gpus % replica:
        named = f"tensor {degrees.tensor} x pipeline {degrees.pipeline} x context {degrees.context}"
        yield Objection(
            "ranks", "gpus", f"{gpus:g} GPUs cannot be dealt out to model replicas of {replica} ({named})", todo
        )
    elif gpus / degrees.pipeline % degrees.expert:
        what = f"{gpus:g} GPUs in {degrees.pipeline} stages cannot be dealt out to expert groups of {degrees.expert}"
        yield Objection("ranks", "expert", what, "make it a divisor")
