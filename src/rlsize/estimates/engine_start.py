"""The KV cache of an engine at start-up, with a band."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rlsize.estimates.belief import interval, scattered
from rlsize.estimates.constants_memory import STAGE, constant_figures
from rlsize.estimates.engine_memory import kv_capacity
from rlsize.estimates.figures import apply, numbers

if TYPE_CHECKING:
    from rlsize.estimates.belief import Belief
    from rlsize.estimates.engine_memory import CapacityQuestion
    from rlsize.facts.figure import Figure


def engine_start(question: CapacityQuestion, belief: Belief, seed: int) -> tuple[Figure, ...]:
    """
    What an engine will log when it starts: weights per GPU, and tokens of its KV cache.

    Args:
        question: The engine on its GPUs.
        belief: What is believed about the constants of memory.
        seed: Of the draws behind the bands.
    """
    found = kv_capacity(apply, question, constant_figures(belief.central()))
    drawn = kv_capacity(numbers, question, belief.drawn(seed))
    return (
        _banded(found.weight_bytes, drawn.weight_bytes, seed, "engine_weight_bytes_per_gpu"),
        _banded(found.kv_tokens, drawn.kv_tokens, seed, "engine_kv_cache_tokens"),
    )


def _banded(figure: Figure, draws: object, seed: int, key: str) -> Figure:
    return replace(figure, key=key, band=interval(scattered(draws, STAGE.noise, seed, key)))
