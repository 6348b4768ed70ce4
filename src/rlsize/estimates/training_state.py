"""The state of the models on the trainer's GPUs: trained ones with gradients and optimizer, frozen ones without."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rlsize.equations import memory
from rlsize.estimates.adapters import lora_params
from rlsize.estimates.sharding import Widths, gathered_layer, state_per_gpu
from rlsize.estimates.trainer_activations import peak_activations
from rlsize.estimates.working import apply, total
from rlsize.facts.figure import Figure

if TYPE_CHECKING:
    from rlsize.estimates.memory_question import MemoryQuestion

WEIGHT_BYTES = Figure(key="bytes_per_param", value=2, provenance="default", source="bf16 weights")
_NOTHING = Figure(key="bytes_per_gradient", value=0, provenance="default", source="frozen")
_FROZEN = Widths(weight=WEIGHT_BYTES, gradient=_NOTHING, optimizer=replace(_NOTHING, key="bytes_per_optimizer"))
_ALIKE = Figure(key="unquantised_params", value=0, provenance="default", source="all alike")
_NO_EXPERTS = Figure(key="routed_params", value=0, provenance="default", source="taken for a dense model")
State = tuple[Figure, Figure | None]  # bytes in all, bytes on each GPU where a layout is given


def _optimizer_figure(question: MemoryQuestion, key: str, value: float) -> Figure:
    source = f"{question.optimizer.name}: {question.optimizer.source}"
    return Figure(key=key, value=value, provenance="default", source=source)


def master_bytes(question: MemoryQuestion) -> Figure:
    """Bytes per parameter of the optimizer's own copy of the weights."""
    return _optimizer_figure(question, "bytes_per_master", question.optimizer.bytes_per_master)


def moment_bytes(question: MemoryQuestion) -> Figure:
    """Bytes per parameter of the optimizer's moments."""
    return _optimizer_figure(question, "bytes_per_optimizer_state", question.optimizer.bytes_per_optimizer_state)


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


def _widths(question: MemoryQuestion) -> Widths:
    return Widths(
        weight=WEIGHT_BYTES,
        gradient=question.bytes_per_gradient,
        optimizer=apply(
            "bytes_per_optimizer",
            memory.optimizer_bytes_per_param,
            bytes_per_master=master_bytes(question),
            bytes_per_optimizer_state=moment_bytes(question),
        ),
    )


def trained(question: MemoryQuestion, name: str, params: Figure) -> State:
    """A model that is trained whole; of the policy's size where `params` is absent."""
    held = apply(
        f"{name}_bytes",
        memory.trainer_state_bytes,
        params=params if params.known else question.params,
        training_bytes_per_param=bytes_per_trained_param(question),
    )
    return held, _per_gpu(question, name, params, _widths(question))


def frozen(question: MemoryQuestion, name: str, params: Figure) -> State:
    """A model that is only run forward; of the policy's size where `params` is absent."""
    held = apply(
        f"{name}_bytes",
        memory.inference_weight_bytes,
        params=params if params.known else question.params,
        bytes_per_param=WEIGHT_BYTES,
        unquantised_params=_ALIKE,
        bytes_per_unquantised_param=WEIGHT_BYTES,
    )
    return held, _per_gpu(question, name, params, _FROZEN)


def _per_gpu(question: MemoryQuestion, name: str, params: Figure, widths: Widths) -> Figure | None:
    """A model of another size is taken for a dense one."""
    if question.layout is None:
        return None
    dense, routed = (params, _NO_EXPERTS) if params.known else question.pool_params
    return state_per_gpu(f"{name}_bytes_per_gpu", dense, routed, widths, question.layout)


def adapted(question: MemoryQuestion) -> State:
    """The policy frozen, with adapters that are trained."""
    adapters = lora_params(question.shape.architecture, question.lora_rank)
    held = apply(
        "trainer_bytes",
        memory.lora_trainer_bytes,
        params=question.params,
        bytes_per_param=WEIGHT_BYTES,
        lora_params=adapters,
        training_bytes_per_param=bytes_per_trained_param(question),
    )
    if question.layout is None:
        return held, None
    shares = [
        state_per_gpu("frozen_bytes_per_gpu", *question.pool_params, _FROZEN, question.layout),
        state_per_gpu("adapter_bytes_per_gpu", adapters, _NO_EXPERTS, _widths(question), question.layout),
    ]
    return held, total("trainer_bytes_per_gpu", shares)


def trainer_parts(question: MemoryQuestion) -> tuple[tuple[str, Figure, Figure], ...]:
    """Parts of the policy's training state: name, bytes per parameter, bytes."""
    params = question.params
    parts = [("weights", params, WEIGHT_BYTES)]
    if question.lora_rank.known:
        params = lora_params(question.shape.architecture, question.lora_rank)
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


def overheads(question: MemoryQuestion) -> list[Figure]:
    """What each trainer GPU holds beside the states: gathered layers, activations, logits."""
    layout = question.layout
    if layout is None:
        return []
    widths = _FROZEN if question.lora_rank.known else _widths(question)
    found = [gathered_layer(question.shape, widths, layout)]
    if question.micro_batch_tokens.known:
        found += peak_activations(question.shape, layout, question.micro_batch_tokens, question.recompute)
    return found
