"""
Results of SGLang's `bench_serving` and `bench_offline_throughput`, both JSON lines that runs are appended to.

Keys as in SGLang 0.5.23, `sglang/bench_serving.py` and `sglang/bench_offline_throughput.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.readers.bench.record import MILLISECONDS, Record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.facts.benchmark_result import BenchmarkResult

SERVING = "sglang bench_serving"
OFFLINE = "sglang bench_offline_throughput"
_TP_SIZE = ("server_info.tp_size", "server_info.server_args.tp_size", "server_info.tensor_parallel_size")
_MODEL = ("model", "model_id", "server_info.served_model_name", "server_info.model_path", "server_info.model")


def sglang_serving(data: Mapping[str, Any], where: str) -> BenchmarkResult:
    """
    One line of `python -m sglang.bench_serving`.

    Raises:
        InputError: All that is wrong with it.
    """
    record = Record(data, where)
    backend = record.text("engine", "backend")
    return record.result(
        SERVING,
        engine="sglang" if backend.startswith("sglang") else backend,
        model=record.text("model", *_MODEL),
        **record.served("total_throughput"),
        mean_concurrency=record.number("mean_concurrency", "concurrency"),
        tensor_parallel=record.number("tensor_parallel", *_TP_SIZE),
        response_lengths=record.numbers("response_lengths", "output_lens"),
        seconds_per_token=record.latency("seconds_per_token", "mean_itl_ms", "mean_tpot_ms", scale=MILLISECONDS),
        first_token_seconds=record.latency("first_token_seconds", "mean_ttft_ms", scale=MILLISECONDS),
    )


def sglang_offline(data: Mapping[str, Any], where: str) -> BenchmarkResult:
    """
    One line of `python -m sglang.bench_offline_throughput --result-filename`.

    Raises:
        InputError: All that is wrong with it.
    """
    record = Record(data, where)
    return record.result(
        OFFLINE,
        engine="sglang",
        model=record.text("model", *_MODEL),
        **record.generated("total_latency", "successful_requests", "total_throughput"),
        sent_at_once=True,
    )
