"""
aiperf's `profile_export_aiperf.json`, and genai-perf's of the same shape: an object of statistics for each metric.

Keys as in aiperf 0.13.0 (schema 1.4), `aiperf/common/models/export_models.py`, and genai-perf 0.0.16.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.readers.bench.record import WHOLE_RUN, Record, brief

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.facts.benchmark_result import BenchmarkResult

AIPERF = "aiperf"
GENAI_PERF = "genai-perf"
_SECONDS = {"ms": 1e-3, "sec": 1.0, "s": 1.0, "seconds": 1.0, "us": 1e-6, "ns": 1e-9}


def aiperf(data: Mapping[str, Any], where: str) -> BenchmarkResult:
    """
    The run of an export.

    Raises:
        InputError: All that is wrong with it.
    """
    record = Record(data, where)
    phase = _phase(record)
    rate = _first(phase, "request_rate", "rate", "request_rate", "perf_analyzer.stimulus.request_rate")
    cap = _first(phase, "concurrency", "concurrency", "perf_analyzer.stimulus.concurrency")
    record.keys.update({field: f"input_config: {key}" for field, key in phase.keys.items()})
    requests = record.number("requests", "request_count.avg")
    prompt, response = _tokens(record, "isl", "input", requests), _tokens(record, "osl", "output", requests)
    return record.result(
        AIPERF if record.has("aiperf_version", "schema_version") else GENAI_PERF,
        model=record.text("model", "input_config.endpoint.model", "input_config.model") or _model(record),
        measured_at=record.moment("start_time"),
        duration_seconds=_duration(record),
        requests=requests,
        failed_requests=record.number("failed_requests", "error_request_count.avg"),
        prompt_tokens=prompt,
        response_tokens=response,
        response_tokens_per_second=record.needed("response_tokens_per_second", "output_token_throughput.avg"),
        total_tokens_per_second=record.number("total_tokens_per_second", "total_token_throughput.avg"),
        concurrency=cap,
        request_rate=rate,
        sent_at_once=False if rate is not None else True if cap is not None else None,
        response_cv=record.cv("output_sequence_length.std", "output_sequence_length.avg"),
        seconds_per_token=_mean_seconds(record, "seconds_per_token", "inter_token_latency"),
        first_token_seconds=_mean_seconds(record, "first_token_seconds", "time_to_first_token"),
        **WHOLE_RUN,
        cut_short=_cut_short(record),
    )


def _phase(record: Record) -> Record:
    """The settings of the phase that was profiled, which have moved about; nothing where the file has none."""
    _, phases = record.found("input_config.phases", "input_config.benchmark.phases")
    if isinstance(phases, list) and phases and isinstance(phases[-1], dict):
        return Record(phases[-1], record.where)
    _, settings = record.found("input_config.loadgen", "input_config")
    return Record(settings if isinstance(settings, dict) else {}, record.where)


def _first(settings: Record, field: str, *names: str) -> float | None:
    """A setting where it is a number; lists and ranges of a sweep say nothing about this run."""
    return settings.number(field, *names) if not isinstance(settings.found(*names)[1], (list, dict, str)) else None


def _duration(record: Record) -> float | None:
    unit = str(record.found("benchmark_duration.unit")[1])
    if record.has("benchmark_duration.avg") and unit not in _SECONDS:
        record.fault(f"{brief(unit)} is no unit of time that is known", "benchmark_duration.unit")
    return record.number("duration_seconds", "benchmark_duration.avg", scale=_SECONDS.get(unit, 1.0))


def _tokens(record: Record, short: str, name: str, requests: float | None) -> float | None:
    """Tokens all together; without such a metric, the mean length times the requests."""
    field = "prompt_tokens" if name == "input" else "response_tokens"
    tokens = record.number(field, f"total_{short}.avg", *(["total_output_tokens.avg"] if name == "output" else []))
    mean = record.number(field, f"{name}_sequence_length.avg") if tokens is None else None
    if mean is None or requests is None:
        return tokens
    record.keys[field] = f"{name}_sequence_length.avg x request_count.avg"
    return mean * requests


def _mean_seconds(record: Record, field: str, metric: str) -> float | None:
    unit = str(record.found(f"{metric}.unit")[1])
    if record.has(metric) and unit not in _SECONDS:
        record.warnings.append(f"{metric} has no unit that is known, so it is left out")
        return None
    return record.latency(field, f"{metric}.avg", scale=_SECONDS.get(unit, 1.0))


def _model(record: Record) -> str:
    _, names = record.found("input_config.models", "input_config.model_names", "input_config.endpoint.model_names")
    return names[0] if isinstance(names, list) and len(names) == 1 and isinstance(names[0], str) else ""


def _cut_short(record: Record) -> str:
    reason = record.text("incomplete_reason", "incomplete_reason")
    if record.found("was_cancelled")[1] is True:
        return "the run was cancelled"
    if record.found("is_complete")[1] is False:
        return f"the run did not finish{f': {reason}' if reason else ''}"
    return ""
