"""What a benchmark's rate holds, whether it is a lower bound, and what is doubtful about it."""

from __future__ import annotations

from statistics import fmean, stdev
from typing import TYPE_CHECKING

from rlsize.facts.headroom import HEADROOM_PARTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.facts.benchmark_result import BenchmarkResult
    from rlsize.facts.headroom import HeadroomPart

    RatedRun = tuple[BenchmarkResult, float]  # a run and its rate of response tokens

FEW_WAVES = 5.0  # times that the batch turned over; below it, filling and draining weigh more than in a long run
SAME_LENGTHS = 0.05  # share by which mean lengths of repeats of one run may differ
SAME_RATES = 0.1  # share by which the rates of repeats may differ without a word
STILL_RISING = 0.05  # share by which the largest concurrency must beat the next one to be called rising
EQUAL_CV = 0.01  # coefficient of variation below which all responses are as long as each other
ENOUGH_REQUESTS = 16  # so many responses hardly have a whole number as their mean unless all are equal


def included_parts(result: BenchmarkResult) -> Mapping[HeadroomPart, str]:
    """The parts of headroom that a run's rate already holds, each with its reason."""
    found: dict[HeadroomPart, str] = {}
    if result.holds_ramp:
        found["ramp"] = "the run is counted from its first request, while the batch filled"
    if result.holds_tail and not equal_length(result) is not None:
        found["tail"] = "the run is counted to its last response, while the batch drained"
    return {part: found[part] for part in HEADROOM_PARTS if part in found}


def held_back_by(result: BenchmarkResult) -> str:
    """Why the rate is only what the engine was asked for; empty where it was asked for all that it can do."""
    if result.failed_requests:
        return f"{result.failed_requests:,.0f} requests failed, which the engine worked on too"
    if result.cut_short:
        return result.cut_short
    if result.request_rate is not None:
        served = result.requests / result.duration_seconds if result.requests and result.duration_seconds else None
        reached = f" and {served:.4g}/s were served" if served is not None else ""
        return f"requests were sent at {result.request_rate:.4g}/s{reached}"
    if result.sent_at_once is None:
        return "the file does not say how requests were sent"
    return ""


def same_lengths(one: BenchmarkResult, other: BenchmarkResult) -> bool:
    """Whether prompts and responses of two runs are about as long, as far as both say."""
    pairs = (
        (one.mean_prompt_tokens, other.mean_prompt_tokens),
        (one.mean_response_tokens, other.mean_response_tokens),
    )
    return all(
        first is None or second is None or abs(first - second) <= SAME_LENGTHS * max(first, second)
        for first, second in pairs
    )


def equal_length(result: BenchmarkResult) -> float | None:
    """The length of every response where all have the same; without a list of them a whole mean tells. [token]"""
    lengths = result.response_lengths
    if len(lengths) > 1:
        return lengths[0] if fmean(lengths) > 0 and stdev(lengths) <= EQUAL_CV * fmean(lengths) else None
    mean = result.mean_response_tokens
    if result.response_cv is not None:
        return mean if result.response_cv <= EQUAL_CV else None
    many = result.requests is not None and result.requests >= ENOUGH_REQUESTS
    return mean if mean and many and mean.is_integer() else None


def shown(tokens: float | None) -> str:
    """A number of tokens for people."""
    return "?" if tokens is None else f"{tokens:,.0f}"


def doubts(chosen: Sequence[RatedRun], rated: Sequence[RatedRun], asked: float | None) -> list[str]:
    """
    What the reader must know before trusting a benchmark's rate.

    Args:
        chosen: The run that counts and its repeats.
        rated: All runs that have a rate.
        asked: The concurrency that was asked for; None where the best rate was. [1]
    """
    result = chosen[0][0]
    reason = next((reason for run, _ in chosen if (reason := held_back_by(run))), "")
    found = [
        f"the rate is a lower bound: {reason}" if reason else "",
        _repeats(chosen),
        *_loads(chosen, rated, asked),
        _waves(result),
        _lengths(result),
    ]
    if result.samples_per_request is None:
        found.append(
            "the file does not say that samples share their prompt, as those of a group do: their prefix-cache hits "
            "are not in the rate"
        )
    if result.requests_are_prompts and result.samples_per_request is None:
        found.append("num_requests counts prompts, so response lengths are unknown where --n is not 1")
    return [doubt for doubt in found if doubt]


def _repeats(chosen: Sequence[RatedRun]) -> str:
    rates = [rate for _, rate in chosen]
    if max(rates) - min(rates) <= SAME_RATES * max(rates):
        return ""
    return f"the {len(rates)} runs range from {min(rates):,.0f} to {max(rates):,.0f} tok/s; the rate is their mean"


def _lengths(result: BenchmarkResult) -> str:
    length = equal_length(result)
    if length is None:
        return ""
    return (
        f"all responses {'are' if result.response_lengths else 'seem to be'} {length:,.0f} tokens long, so the rate "
        "holds no long tail: with the lengths of training it will be lower"
    )


def _loads(chosen: Sequence[RatedRun], rated: Sequence[RatedRun], asked: float | None) -> list[str]:
    """What a rate at one load does not say about others."""
    result, rate = chosen[0]
    found = []
    if not all(same_lengths(run, result) for run, _ in rated):
        found.append(
            f"the runs differ in lengths; the rate is that of {shown(result.mean_prompt_tokens)} prompt and "
            f"{shown(result.mean_response_tokens)} response tokens"
        )
    if asked is not None or result.concurrency is None:
        return found
    others = [other for run, other in rated if (run.concurrency or 0.0) < result.concurrency]
    largest = max(run.concurrency or 0.0 for run, _ in rated)
    if not others:
        found.append(f"{result.concurrency:g} requests in flight are all that was tried; more of them may give more")
    elif result.concurrency >= largest and rate > (1.0 + STILL_RISING) * max(others):
        found.append(f"the rate still rises at {largest:g} requests in flight, the most that was tried")
    return found


def _waves(result: BenchmarkResult) -> str:
    if not result.concurrency or not result.requests:
        return ""
    waves = result.requests / result.concurrency
    if waves >= FEW_WAVES or not included_parts(result):
        return ""
    return (
        f"{result.requests:,.0f} requests at {result.concurrency:g} in flight turn the batch over {waves:.2g} times: "
        "filling and draining weigh more than in a long run, so the steady rate is higher"
    )
