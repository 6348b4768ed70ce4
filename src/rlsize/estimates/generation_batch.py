"""The samples that a fleet generates for one optimizer step, and their lengths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from rlsize.equations import batch_drain, long_tail, prefill
from rlsize.estimates.figures import numbers
from rlsize.estimates.remembered import remembered
from rlsize.estimates.rollout_prediction import Lengths
from rlsize.quantities.workload import MOST_MEAN_LENGTHS

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlsize.equations._ops import Real

    Work = Callable[..., Any]

Ending = Literal["barrier", "refill"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepBatch:
    """
    The samples of one optimizer step, and the fleet that generates them.

    Args:
        samples: Samples that are generated. [1]
        instances: Rollout instances. [1]
        prompt_tokens: Mean prompt length. [token]
        response_tokens: Mean response length, samples cut at the cap included. [token]
        response_cv: Coefficient of variation of response lengths without the cap. [1]
        max_tokens: The cap; None for none. [token]
        hit_ratio: Share of prompt tokens found in the prefix cache. [1]
        in_flight: Samples that the loop lets be in flight over all instances; None for as many as fit. [1]
        ending: barrier (the step waits for its last sample) or refill (finished samples are replaced at once).
    """

    samples: Real
    instances: Real
    prompt_tokens: Real
    response_tokens: Real
    response_cv: Real
    max_tokens: Real | None = None
    hit_ratio: Real = 0.0
    in_flight: Real | None = None
    ending: Ending = "barrier"


@dataclass(frozen=True, slots=True)
class Shape:
    """
    Lengths of a batch.

    Args:
        uncapped: Mean response length without the cap. [token]
        cap: The cap, or lengths that hardly a sample reaches. [token]
        live: What the mean sample in flight has, and has left. [token]
        lengths: For an engine at steady load.
    """

    uncapped: Real
    cap: Real
    live: Real
    lengths: Lengths


def shape_of(work: Work, batch: StepBatch) -> Shape:
    """The lengths of a step's samples."""
    cap = batch.max_tokens if batch.max_tokens is not None else MOST_MEAN_LENGTHS * batch.response_tokens
    return _shape(work, batch.prompt_tokens, batch.response_tokens, batch.response_cv, cap, batch.hit_ratio)


@remembered
def _shape(work: Work, prompt: Real, response: Real, length_cv: Real, cap: Real, hit_ratio: Real) -> Shape:
    """The same by its numbers; a plan asks for the same lengths again and again."""
    uncapped = work(
        "uncapped_mean", batch_drain.uncapped_mean, mean_tokens=response, length_cv=length_cv, max_tokens=cap
    )
    live = work(
        "mean_live_response",
        long_tail.mean_remaining_tokens,
        mean_tokens=uncapped,
        length_cv=length_cv,
        max_tokens=cap,
    )
    contexts = {
        "live": work("live_tokens", long_tail.context_of, prompt_tokens=prompt, response_tokens=live),
        "longest": work("longest_context", long_tail.context_of, prompt_tokens=prompt, response_tokens=cap),
    }
    computed = work("computed_prompt_tokens", prefill.group_prefill_tokens, prompt_tokens=prompt, hit_ratio=hit_ratio)
    lengths = Lengths(prompt=prompt, response=response, computed=computed, **contexts)
    return Shape(uncapped=uncapped, cap=cap, live=live, lengths=lengths)


@remembered
def longest_of(work: Work, samples: Real, uncapped: Real, length_cv: Real, cap: Real) -> Real:
    """Expected longest of some responses. [token]"""
    found: Real = work(
        "longest_response_tokens",
        long_tail.longest_of,
        samples=samples,
        mean_tokens=uncapped,
        length_cv=length_cv,
        max_tokens=cap,
    )
    return found


def longest_sequence(batch: StepBatch, *, capped: bool) -> float:
    """
    The longest sequence that memory must hold, prompt and response. [token]

    Args:
        batch: The samples, in numbers.
        capped: Whether somebody gave the cap, up to which responses are let grow then; else the longest response is
            as long as a step's longest is on average.
    """
    if capped and batch.max_tokens is not None:
        longest = batch.max_tokens
    else:
        shape = shape_of(numbers, batch)
        longest = longest_of(numbers, batch.samples, shape.uncapped, batch.response_cv, shape.cap)
    return float(long_tail.context_of(prompt_tokens=batch.prompt_tokens, response_tokens=longest))


def lengths_of(work: Work, batch: StepBatch) -> Lengths:
    """The mean lengths of a step's samples, for an engine at steady load."""
    return shape_of(work, batch).lengths
