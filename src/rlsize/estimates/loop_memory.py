"""Memory of an engine in a loop: what it has left for samples, and what stands beside a trainer's states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.equations import planning
from rlsize.estimates.engine_memory import kv_capacity, memory_share
from rlsize.estimates.figures import numbers
from rlsize.facts.records.record import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.rollout_prediction import Replica

_GIB = 2.0**30


def headroom_beside(states: Real, engine: Replica) -> Real:
    """
    Share of a shared GPU's memory that is left while its engine generates beside the trainer's states. [1]

    Args:
        states: What of the trainer stays from step to step. [B]
        engine: The instance.
    """
    memory = engine.question.gpu.specification.memory.value
    held = planning.held_with_engine(state_bytes=states, gpu_memory=memory, memory_fraction=memory_fraction(engine))
    return planning.memory_headroom(gpu_memory=memory, held_bytes=held)


def memory_fraction(engine: Replica) -> Real:
    """Share of a GPU's memory that an engine takes. [1]"""
    question = engine.question
    return memory_share(numbers, question, question.gpu.specification.memory.value)


def fleet_headroom(engine: Replica, longest_tokens: Real, values: Mapping[str, Any]) -> Real:
    """Share of a rollout GPU's memory that its KV cache has beyond the longest sample; below 0 where none fits. [1]"""
    held = kv_capacity(numbers, engine.question, values, longest_tokens)
    return planning.cache_headroom(kv_bytes=held.kv_bytes, sequence_bytes=held.sequence_bytes, gpu_memory=held.memory)


def check_engine(engine: Replica, longest_tokens: float, values: Mapping[str, Any]) -> None:
    """
    Refuse an instance whose KV cache does not hold the longest sample.

    Args:
        engine: The instance.
        longest_tokens: Prompt and response of that sample. [token]
        values: Constants by name.

    Raises:
        Refused: With the bytes that are there and those that are needed.
    """
    held = kv_capacity(numbers, engine.question, values, longest_tokens)
    if float(held.kv_bytes) >= float(held.sequence_bytes):
        return
    question = engine.question
    raise Refused(
        f"{question.model.name} does not fit on {question.layout.tensor * question.layout.data} x {question.gpu.name}: "
        f"the longest sample, of {longest_tokens:,.0f} tokens, needs {float(held.sequence_bytes) / _GIB:.2f} GiB of KV "
        f"cache on each GPU, and there are {float(held.kv_bytes) / _GIB:.2f} GiB"
    )
