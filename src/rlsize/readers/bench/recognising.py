"""Which benchmark wrote a file, by its content."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rlsize.readers.bench.documents import keys_of

if TYPE_CHECKING:
    from collections.abc import Collection

HEAD = 64 * 2**10  # bytes of JSON that are enough to recognise it by

_BY_KEYS = (
    ("vllm-bench-pytorch", ({"benchmark", "metric", "benchmark_values"},)),
    ("guidellm", ({"benchmarks", "guidellm_version"}, {"benchmarks", "metadata"}, {"benchmarks", "args"})),
    ("aiperf", ({"aiperf_version"}, {"output_token_throughput", "unit"}, {"request_throughput", "unit", "avg"})),
    ("inference-perf", ({"load_summary", "successes"},)),
    ("prime-rl-bench", ({"config", "metrics", "mfu", "throughput"},)),
    ("inferencex", ({"model_id", "num_prompts", "median_ttft"}, {"model_id", "num_prompts", "median_tpot"})),
    ("vllm-bench-throughput", ({"elapsed_time", "num_requests", "tokens_per_second"},)),
    ("vllm-bench-latency", ({"avg_latency", "latencies"}, {"avg_latency", "percentiles"})),
    ("vllm-bench-serve", ({"model_id", "num_prompts", "request_rate"}, {"endpoint_type", "num_prompts"})),
    ("sglang-bench-offline", ({"successful_requests", "total_latency"},)),
    (
        "sglang-bench-serving",
        ({"backend", "dataset_name", "request_rate"}, {"backend", "total_output_tokens_retokenized"}),
    ),
)
"""Sets of keys that tell the tools apart, the surest first: a file is of the first that has all keys of a set."""

_PRINTED = (
    ("vllm-bench-throughput", re.compile(r"Throughput: +[\d.]+ requests/s, +[\d.]+ total tokens/s")),
    ("trtllm-bench", re.compile(r"(?:Token|Output) Throughput \(tokens/sec\):")),
)

SECOND_COPY = "vllm-bench-pytorch"
"""What is recognised so that it can be refused: the same run once more, for PyTorch's dashboard."""

FORMATS = (*(name for name, _ in _BY_KEYS if name != SECOND_COPY), "trtllm-bench")
"""The names of the formats, as `--format` takes them."""


def recognised(head: bytes) -> str | None:
    """
    The format of a file, by its first bytes, uncompressed; None where no benchmark wrote it.

    Args:
        head: The first `HEAD` bytes, or more: what a benchmark prints may stand behind the engine's own log.

    >>> recognised(b'{"model_id": "m", "avg_latency": 3.1, "latencies": [')
    'vllm-bench-latency'
    >>> recognised(b"step:3 - perf/throughput:1.0") is None
    True
    """
    start = head[:HEAD].decode("utf-8-sig", errors="replace").lstrip()
    if start.startswith(("{", "[")):
        return format_of(keys_of(start))
    text = head.decode("utf-8-sig", errors="replace")
    return next((name for name, pattern in _PRINTED if pattern.search(text)), None)


def format_of(keys: Collection[str]) -> str | None:
    """The format of an object that has these keys, at whatever depth."""
    have = set(keys)
    return next((name for name, sets in _BY_KEYS if any(each <= have for each in sets)), None)
