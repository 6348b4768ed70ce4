"""Memory of both sides of a loop: the peak of its trainer, and what its engines have left for samples."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from rlsize.equations import activations, planning, training_peak
from rlsize.estimates.engine_compiled import capacity
from rlsize.estimates.engine_memory import CapacityQuestion, memory_share
from rlsize.estimates.step_memory import state_bytes
from rlsize.estimates.training_peak import PeakQuestion, peak_beside
from rlsize.estimates.working import numbers
from rlsize.facts.engine_defaults import engine_defaults
from rlsize.facts.records.record import Layout

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.rollout_prediction import Engine
    from rlsize.estimates.train_prediction import TrainQuestion
    from rlsize.estimates.training_peak import Recompute

_FROZEN = ("reference", "reward")  # models that are read and not trained
_KEPT: Mapping[str, Recompute] = MappingProxyType(
    {"none": "none", "selective": "selective", "alternate": "selective", "full": "full"}
)
_RANKS = 2  # any number of more than one: layers are gathered from other ranks


def trainer_states(question: TrainQuestion) -> Real:
    """Bytes on each GPU that stay from step to step: policy, critic, and the frozen models beside them."""
    held = state_bytes(question)
    for name in question.passes:
        model = question.pass_models.get(name, question.model)
        if name in _FROZEN:
            frozen = replace(question, model=model, gradient_bytes=0.0, state_bytes=0.0)
            held = training_peak.dense_and_routed(dense=held, routed=state_bytes(frozen))
        elif name == "critic":
            held = training_peak.dense_and_routed(dense=held, routed=state_bytes(replace(question, model=model)))
    return held


def trainer_peak(question: TrainQuestion, longest_tokens: Real, values: Mapping[str, Any]) -> Real:
    """
    Peak memory of a trainer's GPU. [B]

    Args:
        question: The trainer, in numbers or arrays.
        longest_tokens: The longest sequence, which a micro-batch must hold whole. [token]
        values: Constants by name.
    """
    whole = np.maximum(question.micro_batch_tokens, longest_tokens)
    tokens = activations.tokens_per_context_rank(micro_batch_tokens=whole, context_parallel=float(question.context))
    asked = PeakQuestion(
        model=question.model,
        layout=Layout(
            tensor=question.tensor,
            pipeline=question.pipeline,
            context=question.context,
            expert=question.expert,
            data=_RANKS if question.sharding == "full" else 1,
        ),
        recompute=_KEPT[question.recompute],
        gradient_width=float(question.gradient_bytes),
        compiled=question.fused,
    )
    return peak_beside(numbers, asked, trainer_states(question), tokens, values)


def trainer_headroom(question: TrainQuestion, longest_tokens: Real, values: Mapping[str, Any]) -> Real:
    """Share of a trainer GPU's memory that is left at its peak; below 0 where it does not fit. [1]"""
    memory = question.gpu.specification.memory.value
    return planning.memory_headroom(gpu_memory=memory, held_bytes=trainer_peak(question, longest_tokens, values))


def headroom_beside(states: Real, engine: Engine) -> Real:
    """
    Share of a shared GPU's memory that is left while its engine generates beside the trainer's states. [1]

    Args:
        states: What `trainer_states` says. [B]
        engine: The instance.
    """
    memory = engine.question.gpu.specification.memory.value
    held = planning.held_with_engine(state_bytes=states, gpu_memory=memory, memory_fraction=memory_fraction(engine))
    return planning.memory_headroom(gpu_memory=memory, held_bytes=held)


def memory_fraction(engine: Engine) -> Real:
    """Share of a GPU's memory that an engine takes. [1]"""
    question = engine.question
    asked = CapacityQuestion(
        model=question.model, gpu=question.gpu, layout=question.layout, memory_fraction=question.memory_fraction
    )
    memory = question.gpu.specification.memory.value
    return memory_share(numbers, asked, engine_defaults(question.engine), memory)


def fleet_headroom(engine: Engine, longest_tokens: Real, values: Mapping[str, Any]) -> Real:
    """Share of a rollout GPU's memory that its KV cache has beyond the longest sample; below 0 where none fits. [1]"""
    held = capacity(engine.question, values, longest_tokens)
    return planning.cache_headroom(kv_bytes=held.kv_bytes, sequence_bytes=held.sequence_bytes, gpu_memory=held.memory)
