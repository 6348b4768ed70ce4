"""
prime-rl's benchmark JSON: a trainer, not an engine.

Keys as in the files below `benchmarks/` of prime-rl. Its throughput is packed tokens over the time of forward and
backward: prompt, response and padding together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.readers.bench.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.facts.benchmark_result import BenchmarkResult

TOOL = "prime-rl benchmark"
PERCENT = 0.01


def prime_rl(data: Mapping[str, Any], where: str) -> BenchmarkResult:
    """
    The run of a result.

    Raises:
        InputError: All that is wrong with it.
    """
    record = Record(data, where)
    if record.found("config.success")[1] is False:
        record.fault("says that the run failed", "config.success", "use one that finished")
    gpus = record.number("trainer_gpus", "config.num_gpus")
    rate = record.needed("trainer_tokens_per_second", "metrics.throughput.mean")
    record.counts["trainer_tokens_per_second"] = "packed tokens (prompt, response, padding) over forward and backward"
    record.warnings.append(
        "this is a trainer's rate in packed tokens, over forward and backward alone: it is no rate of response tokens, "
        "and holds no log-prob passes and no weight sync"
    )
    if gpus is not None and gpus > 1:
        record.warnings.append(f"the rate is taken to be that of all {gpus:.0f} GPUs together; the file does not say")
    return record.result(
        TOOL,
        model=record.text("model", "config.model_name"),
        measured_at=record.moment("config.timestamp"),
        trainer_tokens_per_second=rate,
        trainer_gpus=gpus,
        mfu=record.number("mfu", "metrics.mfu.mean", scale=PERCENT),
        batch_seconds=record.number("batch_seconds", "metrics.step_time.mean"),
    )
