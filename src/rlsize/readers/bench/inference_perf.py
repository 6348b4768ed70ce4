"""
inference-perf's reports of a stage: `stage_N_lifecycle_metrics.json`, and `stage_N_prometheus_metrics.json`.

Keys as in inference-perf 0.6.1, `inference_perf/reportgen/base.py`. The second is what the server counted of the stage,
and no second run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.readers.bench.record import Record, as_number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.facts.benchmark_result import BenchmarkResult

TOOL = "inference-perf"
_AGREE = 0.1  # share by which two ways to a mean length may differ
_FIRST_TOKEN = ("successes.latency.time_to_first_token.mean", "successes.time_to_first_token.mean")
_PER_TOKEN = (
    "successes.latency.inter_token_latency.mean",
    "successes.latency.time_per_output_token.mean",
    "successes.time_per_output_token.mean",
)
_SERVER = (
    "these are the server's own counters over the stage, not a run of their own: do not count it beside "
    "stage_N_lifecycle_metrics.json"
)


def inference_perf(data: Mapping[str, Any], where: str) -> BenchmarkResult:
    """
    The stage of a report.

    Raises:
        InputError: All that is wrong with it.
    """
    record = Record(data, where)
    requests = record.needed("requests", "successes.count")
    sent = record.number("request_rate", "load_summary.requested_rate")
    cap = record.number("concurrency", "load_summary.concurrency")
    server = record.has("successes.output_len.rate")
    if server:
        record.warnings.append(_SERVER)
    rate = record.needed(
        "response_tokens_per_second", "successes.throughput.output_tokens_per_sec", "successes.output_len.rate"
    )
    return record.result(
        TOOL,
        duration_seconds=_duration(record, requests),
        requests=requests,
        failed_requests=record.number("failed_requests", "failures.count"),
        prompt_tokens=_tokens(record, "prompt", requests),
        response_tokens=_tokens(record, "output", requests),
        response_tokens_per_second=rate,
        total_tokens_per_second=record.number("total_tokens_per_second", "successes.throughput.total_tokens_per_sec"),
        concurrency=cap,
        request_rate=None if cap is not None else sent,
        sent_at_once=None if server or (cap is None and sent is None) else cap is not None,
        seconds_per_token=record.latency("seconds_per_token", *_PER_TOKEN),
        first_token_seconds=record.latency("first_token_seconds", *_FIRST_TOKEN),
        holds_ramp=not server,
        holds_tail=not server,
    )


def _duration(record: Record, requests: float) -> float | None:
    """From the first request sent to the last one finished; older reports only have requests and their rate."""
    seconds = record.number("duration_seconds", "benchmark_time_seconds")
    if seconds:
        return seconds
    key = "successes.throughput.requests_per_sec" if record.has("successes.throughput") else "successes.rate"
    rate = record.number("duration_seconds", key)
    if not rate:
        return None
    record.keys["duration_seconds"] = f"successes.count / {key}"
    return requests / rate


def _tokens(record: Record, which: str, requests: float) -> float | None:
    field = "prompt_tokens" if which == "prompt" else "response_tokens"
    mean = record.number(field, f"successes.{which}_len.mean")
    if mean is None:
        return None
    rate, served = (as_number(record.found(f"successes.{key}")[1]) for key in (f"{which}_len.rate", "rate"))
    if rate and served and abs(mean * served - rate) > _AGREE * rate:
        record.warnings.append(
            f"successes.{which}_len.mean is {mean:,.5g}, and its rate over that of requests is {rate / served:,.5g}, "
            "so the mean length is not used"
        )
        del record.keys[field]
        return None
    record.keys[field] = f"successes.{which}_len.mean x successes.count"
    return mean * requests
