"""The KV cache of an engine at start-up, with a band."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rlsize.estimates.belief import interval, scattered
from rlsize.estimates.constants_memory import STAGE
from rlsize.estimates.engine_memory import kv_capacity
from rlsize.estimates.working import apply, numbers
from rlsize.facts.figure import Figure

if TYPE_CHECKING:
    from rlsize.estimates.belief import Belief
    from rlsize.estimates.engine_memory import CapacityQuestion

_KNOWN = {constant.name: constant for constant in STAGE.constants}


def engine_start(question: CapacityQuestion, belief: Belief, seed: int) -> tuple[Figure, ...]:
    """
    What an engine will log when it starts: weights per GPU, and tokens of its KV cache.

    Args:
        question: The engine on its GPUs.
        belief: What is believed about the constants of memory.
        seed: Of the draws behind the bands.
    """
    centre = {name: _figure(name, value) for name, value in belief.central().items()}
    found = kv_capacity(apply, question, centre)
    drawn = kv_capacity(numbers, question, belief.drawn(seed))
    return (
        _banded(found.weight_bytes, drawn.weight_bytes, seed, "engine_weight_bytes_per_gpu"),
        _banded(found.kv_tokens, drawn.kv_tokens, seed, "engine_kv_cache_tokens"),
    )


def _figure(name: str, value: float) -> Figure:
    constant = _KNOWN.get(name)
    source = f"{constant.basis}: {constant.source}" if constant else "a constant of another stage"
    return Figure(key=name, value=value, provenance="default", source=source)


def _banded(figure: Figure, draws: object, seed: int, key: str) -> Figure:
    return replace(figure, key=key, band=interval(scattered(draws, STAGE.noise, seed, key)))
