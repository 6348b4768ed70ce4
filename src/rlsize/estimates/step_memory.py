"""Whether the training states of a loop's trainer fit on its GPUs at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.equations import memory, memory_fit, train_step, training_peak
from rlsize.estimates.train_prediction_shape import bare_train_shape
from rlsize.facts.records.record import Refused

if TYPE_CHECKING:
    from rlsize.equations._ops import Real
    from rlsize.estimates.train_prediction import TrainQuestion

_WEIGHT_BYTES = 2.0
_OF_WEIGHTS, _OF_GRADIENTS = ("full",), ("full", "gradients")
_GIB = 2.0**30


def state_bytes(question: TrainQuestion) -> Real:
    """Bytes of the policy's weights, gradients and optimizer on each GPU, in a question of numbers or arrays."""
    shape = bare_train_shape(question.model)
    ranks = question.tensor * question.pipeline
    expert_ranks = question.expert * question.pipeline if question.expert > 1 else ranks
    outside = memory_fit.params_outside_experts(params=shape.params, routed_params=shape.expert_params)
    dense = _slice(question, outside, ranks, experts=False)
    routed = _slice(question, shape.expert_params, expert_ranks, experts=True)
    return training_peak.dense_and_routed(dense=dense, routed=routed)


def _slice(question: TrainQuestion, params: Real, ranks: int, *, experts: bool) -> Real:
    """Bytes of some parameters: dealt out by model parallelism, sharded over what is left of the GPUs."""
    apart = experts and question.expert > 1
    shards: Real = train_step.model_replicas(gpus=question.gpus, gpus_per_replica=ranks)
    if question.shards is not None and not apart:
        shards = question.shards
    alone = question.sharding == "none"
    return memory.sharded_state_bytes(
        params=train_step.model_replicas(gpus=params, gpus_per_replica=ranks),
        bytes_per_param=_WEIGHT_BYTES,
        bytes_per_gradient=question.gradient_bytes,
        bytes_per_optimizer=0.0 if question.offload else question.state_bytes,
        weight_shards=shards if question.sharding in _OF_WEIGHTS else 1.0,
        gradient_shards=shards if question.sharding in _OF_GRADIENTS else 1.0,
        optimizer_shards=1.0 if alone else shards,
    )


def check_states(question: TrainQuestion) -> None:
    """
    Refuse a trainer whose states alone are more than its memory.

    Raises:
        Refused: With the bytes that are there and those that are needed.
    """
    held, there = float(state_bytes(question)), float(question.gpu.specification.memory.value)
    if held > there:
        raise Refused(
            f"the trainer of {question.model.name} does not fit on {question.gpus:g} x {question.gpu.name}: weights, "
            f"gradients and optimizer take {held / _GIB:.0f} GiB of each GPU's {there / _GIB:.0f} GiB"
        )
