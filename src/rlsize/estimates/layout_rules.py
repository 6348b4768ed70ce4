"""What a model and a number of GPUs allow of a trainer's layout: the one place that says so, in one set of words."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlsize.estimates.memory_shape import MemoryShape


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
