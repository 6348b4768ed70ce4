"""
InferenceX's raw results, a variant of `vllm bench serve` whose latencies are in seconds and have no `_ms`.

Keys as in the result files that InferenceX publishes. GPUs and parallelism stand in the file's name only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.readers.bench.record import Record
from rlsize.readers.bench.vllm import served

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.facts.benchmark_result import BenchmarkResult

TOOL = "InferenceX"
_SLOW = 10.0  # seconds between two tokens that say that the unit is another one


def inferencex(data: Mapping[str, Any], where: str) -> list[BenchmarkResult]:
    """
    The run of a result.

    Raises:
        InputError: All that is wrong with it.
    """
    record = Record(data, where)
    result = served(record, TOOL, suffix="", scale=1.0)
    if result.seconds_per_token is not None and result.seconds_per_token > _SLOW:
        key = result.keys["seconds_per_token"]
        record.fault(f"{result.seconds_per_token:g} s between two tokens is too long: is it in milliseconds?", key)
        return [record.result(TOOL)]
    return [result]
