"""The state of the models of a run in all, one copy of each: trained ones with gradients and optimizer, frozen ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.equations import memory
from rlsize.estimates.figures import apply
from rlsize.estimates.trainer_memory import lora_params
from rlsize.facts.figure import Figure

if TYPE_CHECKING:
    from rlsize.estimates.memory_question import MemoryQuestion

WEIGHT_BYTES = Figure(key="bytes_per_param", value=2, provenance="default", source="bf16 weights")
_ALIKE = Figure(key="unquantised_params", value=0, provenance="default", source="all alike")


def _optimizer_figure(question: MemoryQuestion, key: str, value: float) -> Figure:
    source = f"{question.optimizer.name}: {question.optimizer.source}"
    return Figure(key=key, value=value, provenance="default", source=source)


def master_bytes(question: MemoryQuestion) -> Figure:
    """Bytes per parameter of the optimizer's own copy of the weights."""
    return _optimizer_figure(question, "bytes_per_master", question.optimizer.bytes_per_master)


def moment_bytes(question: MemoryQuestion) -> Figure:
    """Bytes per parameter of the optimizer's moments."""
    return _optimizer_figure(question, "bytes_per_optimizer_state", question.optimizer.bytes_per_optimizer_state)


def optimizer_bytes(question: MemoryQuestion) -> Figure:
    """Bytes per parameter of the optimizer's copy and moments together."""
    return apply(
        "bytes_per_optimizer",
        memory.optimizer_bytes_per_param,
        bytes_per_master=master_bytes(question),
        bytes_per_optimizer_state=moment_bytes(question),
    )


def bytes_per_trained_param(question: MemoryQuestion) -> Figure:
    """Bytes of training state for each trained parameter: 16 for AdamW with bf16 gradients."""
    return apply(
        "training_bytes_per_param",
        memory.training_bytes_per_param,
        bytes_per_param=WEIGHT_BYTES,
        bytes_per_gradient=question.bytes_per_gradient,
        bytes_per_master=master_bytes(question),
        bytes_per_optimizer_state=moment_bytes(question),
    )


def adapter_params(question: MemoryQuestion) -> Figure:
    """Trained parameters of the policy's adapters; lacking their rank for full training."""
    return lora_params(question.shape.architecture, question.lora_rank)


def trained(question: MemoryQuestion, name: str, params: Figure) -> Figure:
    """A model that is trained whole; of the policy's size where `params` is absent."""
    return apply(
        f"{name}_bytes",
        memory.trainer_state_bytes,
        params=params if params.known else question.params,
        training_bytes_per_param=bytes_per_trained_param(question),
    )


def frozen(question: MemoryQuestion, name: str, params: Figure) -> Figure:
    """A model that is only run forward; of the policy's size where `params` is absent."""
    return apply(
        f"{name}_bytes",
        memory.inference_weight_bytes,
        params=params if params.known else question.params,
        bytes_per_param=WEIGHT_BYTES,
        unquantised_params=_ALIKE,
        bytes_per_unquantised_param=WEIGHT_BYTES,
    )


def adapted(question: MemoryQuestion) -> Figure:
    """The policy frozen, with adapters that are trained."""
    return apply(
        "trainer_bytes",
        memory.lora_trainer_bytes,
        params=question.params,
        bytes_per_param=WEIGHT_BYTES,
        lora_params=adapter_params(question),
        training_bytes_per_param=bytes_per_trained_param(question),
    )


def trainer_parts(question: MemoryQuestion) -> tuple[tuple[str, Figure, Figure], ...]:
    """Parts of the policy's training state: name, bytes per parameter, bytes."""
    params = question.params
    parts = [("weights", params, WEIGHT_BYTES)]
    if question.lora_rank.known:
        params = adapter_params(question)
        parts = [("frozen weights", question.params, WEIGHT_BYTES), ("adapter weights", params, WEIGHT_BYTES)]
    parts += [
        ("gradients", params, question.bytes_per_gradient),
        ("master weights", params, master_bytes(question)),
        ("optimizer state", params, moment_bytes(question)),
    ]
    return tuple(
        (name, width, apply("part_bytes", memory.trainer_state_bytes, params=count, training_bytes_per_param=width))
        for name, count, width in parts
    )
