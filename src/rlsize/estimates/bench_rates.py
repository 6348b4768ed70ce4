"""Runs of serving benchmarks as the rate of one rollout instance: which run counts, and what its rate holds."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from rlsize.equations.headroom import standard_error
from rlsize.errors import Fault, InputError
from rlsize.facts.headroom import HEADROOM_PARTS
from rlsize.facts.rates import InstanceRate, MeasuredInstance, RateConditions, Rates, RateSource
from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.facts.benchmark_result import BenchmarkResult
    from rlsize.facts.headroom import HeadroomPart

SAME_CONCURRENCY = 0.5
ROUNDING = 0.0051  # of a rate printed with two decimals [token/s]
SHOWN = 12  # runs that a message lists
FEW_WAVES = 5.0  # times that the batch turned over; below it, filling and draining weigh more than in a long run
SAME_LENGTHS = 0.05  # share by which mean lengths of repeats of one run may differ
SAME_RATES = 0.1  # share by which the rates of repeats may differ without a word
STILL_RISING = 0.05  # share by which the largest concurrency must beat the next one to be called rising
EQUAL_CV = 0.01  # coefficient of variation below which all responses are as long as each other
ENOUGH_REQUESTS = 16  # so many responses hardly have a whole number as their mean unless all are equal


@dataclass(frozen=True, slots=True)
class _Rated:
    """A run with its rate of response tokens, and how that was found where the file does not say it."""

    result: BenchmarkResult
    rate: float
    how: str = ""


def benchmark_rates(
    results: Sequence[BenchmarkResult],
    concurrency: float | None,
    gpus_per_instance: float | None,
    measured_at: str,
    method: str,
    *,
    prompt_share: float | None = None,
) -> Rates:
    """
    The rate of one instance out of a benchmark's runs.

    Args:
        results: The runs, of one model, each against one instance.
        concurrency: The requests in flight whose rate is wanted; None for the best rate. [1]
        gpus_per_instance: GPUs of the instance, where the caller knows it. [gpu]
        measured_at: When the runs were read, for those that do not say when they ran.
        method: The command that reads them.
        prompt_share: Share of prompt tokens in runs that only count prompt and response together. [1]

    Returns:
        The rate with what it holds and what is doubtful about it; repeats of the run are averaged.

    Raises:
        InputError: No run has such a rate, or it is open which one is meant.
    """
    rated, unused = _rated(joined(results), prompt_share)
    chosen = _chosen(rated, concurrency)
    first = chosen[0].result
    rates = [each.rate for each in chosen]
    held_back = next((reason for each in chosen if (reason := _held_back_by(each.result))), "")
    return Rates(
        measured_at=first.measured_at or measured_at,
        source=RateSource(method=method, engine=first.engine or None, keys=dict(first.keys)),
        instance_tokens_per_second=InstanceRate(
            mean=fmean(rates),
            standard_error=float(standard_error(stdev(rates), len(rates))) if len(rates) > 1 else None,
            lower_bound=bool(held_back),
            why=_why(chosen, held_back),
        ),
        includes=list(_included_parts(first)),
        gpus_per_instance=gpus_per_instance or first.gpus,
        window_seconds=first.duration_seconds,
        conditions=_conditions(first),
        instances=[
            MeasuredInstance(
                instance=each.result.source, tokens_per_second=each.rate, lower_bound=bool(_held_back_by(each.result))
            )
            for each in chosen
        ],
        doubts=[
            *_doubts(chosen, rated, concurrency),
            *first.warnings,
            *_gpus_doubt(first, gpus_per_instance),
            *(f"{fault.where} is not used: it {fault.what}" for fault in unused[:SHOWN]),
        ],
    )


def _gpus_doubt(result: BenchmarkResult, given: float | None) -> list[str]:
    """What the file says of the instance's GPUs, where the caller says otherwise."""
    if given is None or (result.gpus in {None, given} and (result.tensor_parallel or 0.0) <= given):
        return []
    said = result.gpus or result.tensor_parallel or 0.0
    return [f"{result.source} says that {said:g} GPUs served, and {given:g} are given"]


def joined(results: Sequence[BenchmarkResult]) -> list[BenchmarkResult]:
    """
    The runs, each once.

    What `vllm bench throughput` printed and its JSON are one run: the text has the response rate, the JSON the model
    and the number of prompts. They belong together where the rates of all tokens agree to the last printed digit.
    """
    found: list[BenchmarkResult] = []
    for result in results:
        twin = next((at for at, other in enumerate(found) if _same_run(result, other)), None)
        if twin is None:
            if not any(_copy(result, other) for other in found):
                found.append(result)
            continue
        text, data = (result, found[twin]) if result.response_tokens_per_second is not None else (found[twin], result)
        found[twin] = replace(
            text,
            source=f"{data.source} and {text.source}",
            model=data.model,
            requests=data.requests,
            duration_seconds=data.duration_seconds,
            keys={**data.keys, **text.keys},
            counts={**data.counts, **text.counts},
        )
    return found


def _same_run(one: BenchmarkResult, other: BenchmarkResult) -> bool:
    if one.tool != other.tool or (one.response_tokens_per_second is None) == (other.response_tokens_per_second is None):
        return False
    first, second = one.total_tokens_per_second, other.total_tokens_per_second
    return first is not None and second is not None and abs(first - second) <= ROUNDING


def _copy(one: BenchmarkResult, other: BenchmarkResult) -> bool:
    return one.response_tokens_per_second is not None and (
        replace(one, source="", response_lengths=(), keys={}) == replace(other, source="", response_lengths=(), keys={})
    )


def _rated(results: Sequence[BenchmarkResult], prompt_share: float | None) -> tuple[list[_Rated], list[Fault]]:
    found: list[_Rated] = []
    faults: list[Fault] = []
    for result in results:
        rated = _response_rate(result, prompt_share)
        if rated is None or rated.rate <= 0:
            faults.append(_unrated(result))
        else:
            found.append(rated)
    if not found:
        raise InputError(*faults[:SHOWN]) if faults else InputError(Fault("holds no run", "", "name a result file"))
    models = sorted({rated.result.model for rated in found if rated.result.model})
    if len(models) > 1:
        what = f"the runs are of {len(models)} models ({', '.join(models[:3])}), and one rate is of one model"
        raise InputError(Fault(what, found[0].result.source, "name the files of one model"))
    return found, faults


def _response_rate(result: BenchmarkResult, prompt_share: float | None) -> _Rated | None:
    """The rate as the file has it, or out of the rate of all tokens where their split is known."""
    if result.response_tokens_per_second is not None:
        return _Rated(result, result.response_tokens_per_second)
    total = result.total_tokens_per_second
    if total is None:
        return None
    if result.response_tokens and result.prompt_tokens is not None:
        share = result.response_tokens / (result.response_tokens + result.prompt_tokens)
        return _Rated(result, total * share, f"converted from all tokens by the {100 * share:.4g} % that are responses")
    if prompt_share is not None:
        share = 1.0 - prompt_share
        return _Rated(
            result, total * share, f"converted from all tokens, of which {100 * share:.4g} % are responses as given"
        )
    return None


def _unrated(result: BenchmarkResult) -> Fault:
    if result.trainer_tokens_per_second is not None:
        what = "is a trainer's benchmark in packed tokens, which says nothing about a rollout instance"
        return Fault(what, result.source, "use it as a bound of the trainer; name an engine's benchmark for the rate")
    if result.total_tokens_per_second:
        what = "only has the rate of prompt and response tokens together"
        todo = "name what the benchmark printed too, which has `output tokens/s`, or say --prompt-share"
        return Fault(what, result.source, todo)
    if result.batch_seconds is not None:
        what = "only has seconds of a batch, whose size it does not say"
        return Fault(what, result.source, "use `vllm bench throughput` or `vllm bench serve` for a rate")
    return Fault("has no response token in it", result.source, "did its requests fail?")


def _chosen(rated: Sequence[_Rated], concurrency: float | None) -> list[_Rated]:
    """The run that counts and its repeats."""
    if concurrency is None:
        best = max(rated, key=lambda each: each.rate)
        return [best, *(each for each in rated if each is not best and _alike(each.result, best.result))]
    found = [
        each
        for each in rated
        if each.result.concurrency is not None and abs(each.result.concurrency - concurrency) <= SAME_CONCURRENCY
    ]
    if not found:
        todo = f"the runs had: {', '.join(_loads(rated))}; name one of them, or leave it out for the best rate"
        raise InputError(Fault(f"no run had {concurrency:g} requests in flight", "--concurrency", todo))
    if not all(_alike(each.result, found[0].result) for each in found):
        named = "; ".join(_described(each) for each in found[:SHOWN])
        what = f"{len(found)} runs had {concurrency:g} requests in flight and differ otherwise: {named}"
        raise InputError(Fault(what, "--concurrency", "name the file of one of them"))
    return found


def _loads(rated: Sequence[_Rated]) -> list[str]:
    known = sorted({each.result.concurrency for each in rated if each.result.concurrency is not None})
    unknown = sum(1 for each in rated if each.result.concurrency is None)
    shown = [f"{each:g}" for each in known[:SHOWN]] + (["..."] if len(known) > SHOWN else [])
    return [*shown, *([f"no known limit ({unknown})"] if unknown else [])]


def _described(rated: _Rated) -> str:
    lengths = f"{_shown(rated.result.mean_prompt_tokens)} + {_shown(rated.result.mean_response_tokens)} tokens"
    return f"{rated.result.source} ({rated.result.tool}, {lengths}, {rated.rate:,.0f} tok/s)"


def _alike(one: BenchmarkResult, other: BenchmarkResult) -> bool:
    """Whether two runs are repeats of each other."""
    same = ("tool", "concurrency", "request_rate", "sent_at_once", "tensor_parallel", "samples_per_request")
    return all(getattr(one, name) == getattr(other, name) for name in same) and _same_lengths(one, other)


def _why(chosen: Sequence[_Rated], held_back: str) -> str:
    first = chosen[0].result
    load = f"{first.concurrency:g} requests in flight" if first.concurrency is not None else "requests as they came"
    if first.sent_at_once and first.concurrency is None:
        load = "all requests sent at once"
    repeats = f", mean of {len(chosen)} runs" if len(chosen) > 1 else ""
    return "; ".join(part for part in (f"{first.tool}, {load}{repeats}", chosen[0].how, held_back) if part)


def _conditions(result: BenchmarkResult) -> RateConditions:
    lengths = result.response_lengths
    tensor = result.tensor_parallel
    return RateConditions(
        model=result.model or None,
        mean_response_tokens=fmean(lengths) if lengths else result.mean_response_tokens,
        mean_prompt_tokens=result.mean_prompt_tokens,
        group_size=result.samples_per_request,
        response_cv=_response_cv(lengths) if lengths else result.response_cv,
        max_response_tokens=max(lengths) if lengths else None,
        tensor_parallel=int(tensor) if tensor is not None and tensor >= 1 else None,
    )


def _response_cv(lengths: Sequence[float]) -> float | None:
    """Of the lengths; unknown where several are as long as the longest, which looks like a cap."""
    if len(lengths) < 2 or not fmean(lengths) or lengths.count(max(lengths)) > 1:  # noqa: PLR2004 (a deviation takes two)
        return None
    return stdev(lengths) / fmean(lengths)


def _included_parts(result: BenchmarkResult) -> Mapping[HeadroomPart, str]:
    """The parts of headroom that a run's rate already holds, each with its reason."""
    found: dict[HeadroomPart, str] = {}
    if result.holds_ramp:
        found["ramp"] = "the run is counted from its first request, while the batch filled"
    if result.holds_tail and not _equal_length(result) is not None:
        found["tail"] = "the run is counted to its last response, while the batch drained"
    return {part: found[part] for part in HEADROOM_PARTS if part in found}


def _held_back_by(result: BenchmarkResult) -> str:
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


def _same_lengths(one: BenchmarkResult, other: BenchmarkResult) -> bool:
    """Whether prompts and responses of two runs are about as long, as far as both say."""
    pairs = (
        (one.mean_prompt_tokens, other.mean_prompt_tokens),
        (one.mean_response_tokens, other.mean_response_tokens),
    )
    return all(
        first is None or second is None or abs(first - second) <= SAME_LENGTHS * max(first, second)
        for first, second in pairs
    )


def _equal_length(result: BenchmarkResult) -> float | None:
    """The length of every response where all have the same; without a list of them a whole mean tells. [token]"""
    lengths = result.response_lengths
    if len(lengths) > 1:
        return lengths[0] if fmean(lengths) > 0 and stdev(lengths) <= EQUAL_CV * fmean(lengths) else None
    mean = result.mean_response_tokens
    if result.response_cv is not None:
        return mean if result.response_cv <= EQUAL_CV else None
    many = result.requests is not None and result.requests >= ENOUGH_REQUESTS
    return mean if mean and many and mean.is_integer() else None


def _shown(tokens: float | None) -> str:
    """A number of tokens for people."""
    return "?" if tokens is None else f"{tokens:,.0f}"


def _doubts(chosen: Sequence[_Rated], rated: Sequence[_Rated], asked: float | None) -> list[str]:
    """
    What the reader must know before trusting a benchmark's rate.

    Args:
        chosen: The run that counts and its repeats.
        rated: All runs that have a rate.
        asked: The concurrency that was asked for; None where the best rate was. [1]
    """
    result, rates = chosen[0].result, [each.rate for each in chosen]
    reason = next((reason for each in chosen if (reason := _held_back_by(each.result))), "")
    found = [f"the rate is a lower bound: {reason}" if reason else ""]
    if max(rates) - min(rates) > SAME_RATES * max(rates):
        ends = f"{min(rates):,.0f} to {max(rates):,.0f} tok/s"
        found.append(f"the {len(rates)} runs range from {ends}; the rate is their mean")
    found += [*_load_doubts(chosen[0], rated, asked), _waves(result), _length_doubt(result)]
    if result.samples_per_request is None:
        found.append(
            "the file does not say that samples share their prompt, as those of a group do: their prefix-cache hits "
            "are not in the rate"
        )
        if result.requests_are_prompts:
            found.append("num_requests counts prompts, so response lengths are unknown where --n is not 1")
    return [doubt for doubt in found if doubt]


def _length_doubt(result: BenchmarkResult) -> str:
    length = _equal_length(result)
    if length is None:
        return ""
    return (
        f"all responses {'are' if result.response_lengths else 'seem to be'} {length:,.0f} tokens long, so the rate "
        "holds no long tail: with the lengths of training it will be lower"
    )


def _load_doubts(chosen: _Rated, rated: Sequence[_Rated], asked: float | None) -> list[str]:
    """What a rate at one load does not say about others."""
    result, found = chosen.result, []
    if not all(_same_lengths(each.result, result) for each in rated):
        found.append(
            f"the runs differ in lengths; the rate is that of {_shown(result.mean_prompt_tokens)} prompt and "
            f"{_shown(result.mean_response_tokens)} response tokens"
        )
    if asked is not None or result.concurrency is None:
        return found
    others = [each.rate for each in rated if (each.result.concurrency or 0.0) < result.concurrency]
    largest = max(each.result.concurrency or 0.0 for each in rated)
    if not others:
        found.append(f"{result.concurrency:g} requests in flight are all that was tried; more of them may give more")
    elif result.concurrency >= largest and chosen.rate > (1.0 + STILL_RISING) * max(others):
        found.append(f"the rate still rises at {largest:g} requests in flight, the most that was tried")
    return found


def _waves(result: BenchmarkResult) -> str:
    if not result.concurrency or not result.requests:
        return ""
    waves = result.requests / result.concurrency
    if waves >= FEW_WAVES or not _included_parts(result):
        return ""
    return (
        f"{result.requests:,.0f} requests at {result.concurrency:g} in flight turn the batch over {waves:.2g} times: "
        "filling and draining weigh more than in a long run, so the steady rate is higher"
    )
