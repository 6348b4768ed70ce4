"""
The text that `trtllm-bench throughput` prints.

Labels as in TensorRT-LLM's documentation of its benchmark; `Token Throughput` of old versions counts response tokens.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from rlsize.readers.bench.record import MILLISECONDS, WHOLE_RUN, Record

if TYPE_CHECKING:
    from rlsize.facts.benchmark_result import BenchmarkResult

TOOL = "trtllm-bench"
_LONGEST_LINE = 400  # characters; labels and figures are far shorter
_AGREE = 0.03


def trtllm_printed(text: str, where: str) -> BenchmarkResult:
    """
    The run of a text block; a line that does not end is not used.

    Raises:
        InputError: All that is wrong with it.
    """
    lines = (line for line in text.split("\n")[:-1] if len(line) <= _LONGEST_LINE)  # the last one may be cut
    parts = ((label.strip(), value.strip()) for label, _, value in (line.partition(":") for line in lines))
    found = [(label, value) for label, value in parts if value]
    record = Record(dict(found), where)
    response = record.needed(
        "response_tokens_per_second", "Total Output Throughput (tokens/sec)", "Token Throughput (tokens/sec)"
    )
    requests = record.number("requests", "Number of requests")
    prompt_length = record.number("prompt_tokens", "Average Input Length (tokens)")
    response_length = record.number("response_tokens", "Average Output Length (tokens)")
    _check(record, response, prompt_length, response_length)
    tensor = record.number("tensor_parallel", "TP Size")
    pipeline = record.number("pipeline_parallel", "PP Size")
    fields: dict[str, Any] = WHOLE_RUN | {
        "engine": "trtllm",
        "model": record.text("model", "Model"),
        "duration_seconds": record.number("duration_seconds", "Total Latency (ms)", scale=MILLISECONDS),
        "requests": requests,
        "prompt_tokens": _product(prompt_length, requests),
        "response_tokens": _product(response_length, requests),
        "response_tokens_per_second": response,
        "total_tokens_per_second": record.number("total_tokens_per_second", "Total Token Throughput (tokens/sec)"),
        "mean_concurrency": record.number("mean_concurrency", "Number of concurrent requests"),
        "sent_at_once": True,
        "tensor_parallel": tensor,
        "gpus": _product(tensor, pipeline),
        "seconds_per_token": record.latency(
            "seconds_per_token", "Average time-per-output-token [TPOT] (ms)", scale=MILLISECONDS
        ),
        "first_token_seconds": record.latency(
            "first_token_seconds", "Average time-to-first-token [TTFT] (ms)", scale=MILLISECONDS
        ),
    }
    counts = Counter(label for label, _ in found)
    for label in record.keys.values():
        if counts[label] > 1:
            record.fault(f"stands {counts[label]} times", label, "keep the text of one run")
    return record.result(TOOL, **fields)


def _product(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else first * second


def _check(record: Record, rate: float, prompt: float | None, response: float | None) -> None:
    """Whether the rate counts response tokens, by requests per second and mean lengths."""
    requests = record.number("requests_per_second", "Request Throughput (req/sec)")
    if requests is None or response is None or not rate:
        return
    key = record.keys["response_tokens_per_second"]
    if abs(requests * response - rate) <= _AGREE * rate:
        record.counts["response_tokens_per_second"] = "response tokens: requests per second times mean output length"
    elif prompt is not None and abs(requests * (response + prompt) - rate) <= _AGREE * rate:
        record.fault(f"{rate:g} counts prompt tokens too, as requests per second and mean lengths show", key)
    else:
        record.warnings.append(f"{key} is {rate:,.1f}; requests per second times mean output length is another number")
