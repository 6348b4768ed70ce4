"""
guidellm's `benchmarks.json`: one file, several benchmarks, each at its own load.

Keys as in guidellm 0.8.1, `guidellm/benchmark/schemas/`. `successful` leaves out what was cut by the end of the run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.errors import Fault, InputError, noting, refuse
from rlsize.readers.bench.record import MILLISECONDS, Record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.facts.benchmark_result import BenchmarkResult

TOOL = "guidellm"
MOST_BENCHMARKS = 1000
_AGREE = 0.05  # share by which the rate of intervals may lie from tokens over seconds
_CLOSED = frozenset({"concurrent", "throughput", "synchronous"})
_AT_A_RATE = frozenset({"constant", "poisson", "async", "asynchronous"})


def guidellm(data: Mapping[str, Any], where: str) -> list[BenchmarkResult]:
    """
    The runs of a `benchmarks.json`.

    Raises:
        InputError: All that is wrong with any of them.
    """
    benchmarks = data.get("benchmarks")
    if not isinstance(benchmarks, list) or not benchmarks:
        raise InputError(Fault("lacks the list benchmarks, or it is empty", where, "did the benchmark finish?"))
    found: list[BenchmarkResult] = []
    faults: list[Fault] = []
    for index, benchmark in enumerate(benchmarks[:MOST_BENCHMARKS]):
        place = f"{where}: benchmarks[{index}]" if len(benchmarks) > 1 else where
        with noting(faults):
            found.append(_run(Record(benchmark if isinstance(benchmark, dict) else {}, place), data))
    refuse(faults)
    return found


def _run(record: Record, whole: Mapping[str, Any]) -> BenchmarkResult:
    kind = record.text("strategy", "config.strategy.type_", "scheduler.strategy.type_", "args.strategy.type_")
    file = Record(whole, record.where)
    profile = file.text("profile", "config.profile.kind", "args.profile")
    kind = kind or (profile if profile in _CLOSED | _AT_A_RATE else "")  # a sweep sends in several ways
    mean = record.number("mean_concurrency", *_of("request_concurrency"))
    cap = record.number("concurrency", "config.strategy.streams", "config.strategy.max_concurrency")
    if cap is None and kind == "synchronous":
        cap = 1.0
    sent = record.number("request_rate", "config.strategy.rate") if kind in _AT_A_RATE else None
    seconds = _seconds(record)
    tokens = record.number("response_tokens", *_of("output_token_count", "total_sum"))
    rate = record.needed("response_tokens_per_second", *_of("output_tokens_per_second"))
    return record.result(
        TOOL,
        model=record.text("model", "config.backend.model", "config.backend.kwargs.model")
        or file.text("model", "config.backend.model", "args.model", "config.model"),
        measured_at=record.moment("scheduler_metrics.measure_start_time", "start_time"),
        duration_seconds=seconds,
        requests=record.needed("requests", "metrics.request_totals.successful", *_of("request_latency", "count")),
        failed_requests=record.number("failed_requests", "metrics.request_totals.errored"),
        prompt_tokens=record.number("prompt_tokens", *_of("prompt_token_count", "total_sum")),
        response_tokens=tokens,
        response_tokens_per_second=_checked(record, rate, tokens, seconds),
        total_tokens_per_second=record.number("total_tokens_per_second", *_of("tokens_per_second")),
        concurrency=_concurrency(record, cap, mean),
        mean_concurrency=mean,
        request_rate=sent,
        sent_at_once=None if not kind else kind in _CLOSED,
        response_cv=record.cv(_of("output_token_count", "std_dev")[0], _of("output_token_count", "mean")[0]),
        seconds_per_token=record.latency("seconds_per_token", *_of("inter_token_latency_ms"), scale=MILLISECONDS),
        first_token_seconds=record.latency("first_token_seconds", *_of("time_to_first_token_ms"), scale=MILLISECONDS),
        holds_ramp=not (record.number("warmup_seconds", "warmup_duration") or 0.0) > 0,
        holds_tail=not (record.number("cooldown_seconds", "cooldown_duration") or 0.0) > 0,
    )


def _of(metric: str, figure: str = "mean") -> tuple[str, str]:
    return f"metrics.{metric}.successful.{figure}", f"metrics.{metric}.total.{figure}"


def _concurrency(record: Record, cap: float | None, mean: float | None) -> float | None:
    if cap is not None or mean is None:
        return cap
    record.counts["concurrency"] = "requests in flight on average, as the file does not say their cap"
    record.keys["concurrency"] = record.keys["mean_concurrency"]
    return mean


def _seconds(record: Record) -> float | None:
    """The time that was measured; older and sampled files only have its ends."""
    seconds = record.number("duration_seconds", "duration", "run_stats.duration")
    if seconds:
        return seconds
    for start, end in (
        ("scheduler_metrics.measure_start_time", "scheduler_metrics.measure_end_time"),
        ("start_time", "end_time"),
    ):
        first, last = record.number("", start), record.number("", end)
        record.keys.pop("", None)
        if first is not None and last is not None and last > first:
            record.keys["duration_seconds"] = f"{end} - {start}"
            return last - first
    return None


def _checked(record: Record, rate: float, tokens: float | None, seconds: float | None) -> float:
    """The rate that the tool gives, a mean over intervals, or tokens over seconds where they differ."""
    if tokens is None or not seconds or not rate or abs(tokens / seconds - rate) <= _AGREE * rate:
        return rate
    key = record.keys["response_tokens_per_second"]
    record.warnings.append(
        f"{key} is {rate:,.1f}, a mean over intervals; {tokens:,.0f} response tokens in {seconds:,.4g} s are "
        f"{tokens / seconds:,.1f}, and these are taken"
    )
    record.keys["response_tokens_per_second"] = f"{record.keys['response_tokens']} / {record.keys['duration_seconds']}"
    return tokens / seconds
