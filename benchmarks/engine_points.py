"""
Engine points a second on one core: an array of points at once, paired with a plain loop over scalars.

A point is the rate of an engine at one concurrency and one pair of lengths, cache and prefill included: what a planner
asks. Both run the same function on the same points, in turn, A B A B ..., so that a machine that slows down slows both.
The target is 1,000,000 points a second for the array.

    python -m benchmarks.engine_points
"""

from __future__ import annotations

import os
import statistics
import time
from typing import TYPE_CHECKING

import numpy as np
from benchmarks.pairs import PAIRS, show

from rlsize.equations import kv_cache
from rlsize.estimates.belief import prior
from rlsize.estimates.engine_work import EngineQuestion
from rlsize.estimates.figures import numbers
from rlsize.estimates.rollout_outlook import STAGES
from rlsize.estimates.rollout_prediction import Lengths, engine, steady
from rlsize.facts.layout import Layout
from rlsize.readers.profiles import Catalogue

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.estimates.rollout_prediction import Replica

TARGET = 1e6  # points a second
POINTS = 200_000
BLOCK = 4_096  # points of one call, so that intermediate arrays stay in a core's cache
LOOPED = 2_000  # of them, for the loop
CASES = (("qwen3-32b", "h100-sxm", 4), ("qwen3-30b-a3b", "h200-sxm", 2), ("deepseek-v3", "h200-sxm", 8))


def lengths(prompt: np.ndarray | float, response: np.ndarray | float) -> Lengths:
    """Lengths of points; all samples of one are alike."""
    live = kv_cache.mean_live_tokens(prompt_tokens=prompt, response_tokens=response, response_cv=0.0)
    return Lengths(prompt=prompt, response=response, live=live, longest=prompt + response)


def points() -> np.ndarray:
    """Concurrency, prompt and response lengths."""
    random = np.random.default_rng(0)
    return np.exp(random.uniform(np.log([1, 100, 100]), np.log([1024, 8000, 16000]), size=(POINTS, 3))).T


def at_once(asked: Replica, values: Mapping[str, float], drawn: np.ndarray) -> float:
    """Points a second, block after block."""
    start = time.perf_counter()
    for first in range(0, drawn.shape[1], BLOCK):
        concurrency, prompt, response = drawn[:, first : first + BLOCK]
        steady(numbers, asked, concurrency, lengths(prompt, response), values)
    return float(drawn.shape[1]) / (time.perf_counter() - start)


def one_by_one(asked: Replica, values: Mapping[str, float], drawn: np.ndarray) -> float:
    """Points a second, each with a call of its own on plain floats."""
    listed = drawn[:, :LOOPED].T.tolist()
    start = time.perf_counter()
    for concurrency, prompt, response in listed:
        steady(numbers, asked, concurrency, lengths(prompt, response), values)
    return LOOPED / (time.perf_counter() - start)


def main() -> None:
    """Print a line of JSON for each case."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    catalogue, values, drawn = Catalogue(), prior(*STAGES).central(), points()
    for model, gpu, tensor in CASES:
        question = EngineQuestion(
            model=catalogue.get("model", model), gpu=catalogue.get("gpu", gpu), layout=Layout(tensor=tensor)
        )
        asked = engine(question)
        at_once(asked, values, drawn)  # once for warm caches
        pairs = [(at_once(asked, values, drawn), one_by_one(asked, values, drawn)) for _ in range(PAIRS)]
        reached = statistics.median(ours for ours, _ in pairs)
        show(
            f"{model} on {tensor} {gpu}",
            "loop",
            pairs,
            unit="points",
            reaches_target=reached >= TARGET,
        )


if __name__ == "__main__":
    main()
