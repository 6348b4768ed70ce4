"""
Results of `vllm bench throughput`, `serve` and `latency`; and of InferenceX, a variant of `serve`.

Keys as in vLLM 0.32 and 0.33, `vllm/benchmarks/{throughput,serve,latency}.py`. A `.pytorch.json` beside a result holds
the same run once more. InferenceX gives latencies in seconds and without `_ms`, keys as in the files that it publishes;
GPUs and parallelism stand in the file's name only.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any

from rlsize.errors import Fault, InputError
from rlsize.readers.bench.record import MILLISECONDS, MOST_RECORDS, WHOLE_RUN, Record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.facts.benchmark_result import BenchmarkResult

THROUGHPUT = "vllm bench throughput"
SERVE = "vllm bench serve"
LATENCY = "vllm bench latency"
INFERENCEX = "InferenceX"
TOTAL = "prompt and response tokens together"
PROMPTS = "prompts, not samples: with --n each prompt makes n of them"
_SLOW = 10.0  # seconds between two tokens that say that the unit is another one

_RATES = re.compile(r"Throughput: +([\d.]+) requests/s, +([\d.]+) total tokens/s, +([\d.]+) output tokens/s")
_PROMPT_TOKENS = re.compile(r"Total num prompt tokens: +(\d+)\s*\n")
_RESPONSE_TOKENS = re.compile(r"Total num output tokens: +(\d+)\s*\n")
_LONGEST = 24  # digits
_ENGINES = frozenset({"vllm", "sglang", "trtllm", "tensorrt-llm", "tgi", "lmdeploy"})  # `openai` is only the interface


def vllm_throughput(data: Mapping[str, Any], where: str) -> BenchmarkResult:
    """
    The JSON of `vllm bench throughput --output-json`, which does not tell prompt from response tokens.

    Raises:
        InputError: All that is wrong with it.
    """
    record = Record(data, where)
    total = record.needed("total_tokens_per_second", "tokens_per_second")
    record.counts.update(total_tokens_per_second=TOTAL, requests=PROMPTS)
    record.warnings.append(
        f"tokens_per_second counts {TOTAL}; the rate of responses alone is in what the benchmark printed, as "
        "`output tokens/s`"
    )
    duration = record.needed("duration_seconds", "elapsed_time")
    tokens = record.number("total_num_tokens", "total_num_tokens")
    if tokens is not None and duration and abs(tokens / duration - total) > 0.02 * total:
        record.warnings.append(f"total_num_tokens over elapsed_time is {tokens / duration:,.1f}, not {total:,.1f}")
    return record.result(
        THROUGHPUT,
        engine="vllm",
        model=record.text("model", "model_id"),
        duration_seconds=duration,
        requests=record.needed("requests", "num_requests"),
        requests_are_prompts=True,
        total_tokens_per_second=total,
        sent_at_once=True,
        **WHOLE_RUN,
    )


def vllm_throughput_printed(text: str, where: str) -> list[BenchmarkResult]:
    """
    What `vllm bench throughput` prints, with whatever stands around it.

    Raises:
        InputError: The line with the rates is missing or cut.
    """
    matches = list(islice(_RATES.finditer(text), MOST_RECORDS + 1))
    if not matches:
        what = "lacks a whole line `Throughput: R requests/s, T total tokens/s, O output tokens/s`"
        raise InputError(Fault(what, where, "was the output cut? save all that the benchmark printed"))
    if len(matches) > MOST_RECORDS:
        raise InputError(Fault(f"holds more than {MOST_RECORDS:,} runs", where, "is it a benchmark's output?"))
    found, line = [], 1
    for before, match, after in zip([None, *matches], matches, [*matches[1:], None], strict=False):
        line += text.count("\n", before.start() if before else 0, match.start())
        rest = text[match.end() : after.start() if after else len(text)]
        found.append(_printed_run(match, rest, f"{where}:{line}" if len(matches) > 1 else where))
    return found


def _printed_run(rates: re.Match[str], rest: str, where: str) -> BenchmarkResult:
    data: dict[str, Any] = {"requests/s": rates[1], "total tokens/s": rates[2], "output tokens/s": rates[3]}
    for key, pattern in (("Total num prompt tokens", _PROMPT_TOKENS), ("Total num output tokens", _RESPONSE_TOKENS)):
        match = pattern.search(rest)
        if match and len(match[1]) <= _LONGEST:
            data[key] = match[1]
    record = Record(data, where)
    rate = record.needed("response_tokens_per_second", "output tokens/s")
    tokens = record.number("response_tokens", "Total num output tokens")
    if tokens is None:
        record.warnings.append("the lines with the numbers of tokens are missing or cut, so mean lengths are unknown")
    record.counts["requests"] = PROMPTS
    return record.result(
        THROUGHPUT,
        engine="vllm",
        requests_are_prompts=True,
        response_tokens=tokens,
        prompt_tokens=record.number("prompt_tokens", "Total num prompt tokens"),
        response_tokens_per_second=rate,
        total_tokens_per_second=record.needed("total_tokens_per_second", "total tokens/s"),
        duration_seconds=tokens / rate if tokens and rate else None,
        sent_at_once=True,
        **WHOLE_RUN,
    )


def vllm_serve(data: Mapping[str, Any], where: str) -> BenchmarkResult:
    """
    The JSON of `vllm bench serve --save-result`; with `--save-detailed` it has the length of every response.

    Raises:
        InputError: All that is wrong with it.
    """
    record = Record(data, where)
    return served(record, SERVE, suffix="_ms", scale=MILLISECONDS)


def served(record: Record, tool: str, suffix: str, scale: float) -> BenchmarkResult:
    """A run of `vllm bench serve`, or of what was made from it; latencies have this suffix and this unit."""
    lengths = record.numbers("response_lengths", "output_lens")
    failed = record.number("failed_requests", "failed")
    if lengths and failed:  # a request that failed has length 0 there
        lengths = tuple(length for length in lengths if length)
    backend = record.text("engine", "backend", "endpoint_type")
    return record.result(
        tool,
        engine=backend if backend in _ENGINES else "",
        model=record.text("model", "model_id"),
        measured_at=record.moment("date"),
        **record.served("total_token_throughput"),
        failed_requests=failed,
        tensor_parallel=record.number("tensor_parallel", "tensor_parallel_size", "tp", "tp_size"),
        response_lengths=lengths,
        seconds_per_token=record.latency(
            "seconds_per_token",
            *(f"{which}{suffix}" for which in ("mean_itl", "mean_tpot", "median_itl", "median_tpot")),
            scale=scale,
        ),
        first_token_seconds=record.latency(
            "first_token_seconds", *(f"{which}{suffix}" for which in ("mean_ttft", "median_ttft")), scale=scale
        ),
    )


def vllm_latency(data: Mapping[str, Any], where: str) -> BenchmarkResult:
    """
    The JSON of `vllm bench latency --output-json`: seconds of a batch, whose size and lengths it does not say.

    Raises:
        InputError: All that is wrong with it.
    """
    record = Record(data, where)
    seconds = record.needed("batch_seconds", "avg_latency")
    record.numbers("latencies", "latencies")
    record.counts["batch_seconds"] = "one batch, from its start to its last token"
    record.warnings.append(
        "the batch size and the number of output tokens are not in the file, so it holds no rate: it is their product "
        "over avg_latency"
    )
    return record.result(
        LATENCY,
        engine="vllm",
        model=record.text("model", "model_id"),
        batch_seconds=seconds,
        sent_at_once=True,
        **WHOLE_RUN,
    )


def inferencex(data: Mapping[str, Any], where: str) -> BenchmarkResult:
    """
    The run of a result.

    Raises:
        InputError: All that is wrong with it.
    """
    record = Record(data, where)
    result = served(record, INFERENCEX, suffix="", scale=1.0)
    if result.seconds_per_token is not None and result.seconds_per_token > _SLOW:
        key = result.keys["seconds_per_token"]
        record.fault(f"{result.seconds_per_token:g} s between two tokens is too long: is it in milliseconds?", key)
        return record.result(INFERENCEX)
    return result
