"""Ways to spread a trainer, and what of a model they do not divide."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from rlsize.estimates.memory_shape import memory_shape
from rlsize.estimates.model_size import model_size
from rlsize.estimates.trainer_layout import Degrees, model_objections

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rlsize.estimates.train_prediction import TrainQuestion
    from rlsize.estimates.trainer_layout import Sharding
    from rlsize.facts.model import Model


def trainer_layouts(
    question: TrainQuestion, degrees: dict[str, tuple[int, ...]], recomputes: Iterable[str], node: float
) -> Iterator[tuple[TrainQuestion, str]]:
    """
    Ways to spread a trainer, each with what rules it out: a key of `REASONS`, or nothing.

    Args:
        question: The trainer.
        degrees: Degrees of tensor, pipeline, context and expert parallelism that are tried.
        recomputes: What backward may compute again.
        node: GPUs of a node, which tensor parallelism stays within.

    Everything is sharded (FSDP) without a pipeline, and the optimizer's states (ZeRO-1) where model parallelism cuts
    the weights, as Megatron does.
    """
    named = ("tensor", "pipeline", "context", "expert")
    for tensor, pipeline, context, expert in product(*(degrees[name] for name in named)):
        if tensor > node:
            continue
        why = ruled_out(question.model, tensor, pipeline, expert)
        cut = replace(question, tensor=tensor, pipeline=pipeline, context=context, expert=expert, shards=None)
        shardings: list[Sharding] = ["full"] if pipeline == 1 else []
        shardings += ["optimizer"] if tensor * pipeline * expert > 1 else []
        for sharding, recompute in product(shardings, recomputes):
            yield replace(cut, sharding=sharding, recompute=recompute), why


def ruled_out(model: Model, tensor: int, pipeline: int, expert: int) -> str:
    """What of a model a layout does not divide, stages that are uneven included; empty where it divides all."""
    shape = memory_shape(model, model_size(model).params)
    for objection in model_objections(shape, Degrees(tensor=tensor, pipeline=pipeline, expert=expert)):
        return objection.reason
    return "layers" if model.architecture.layers % pipeline else ""
