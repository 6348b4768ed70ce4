"""`rlsize observe` on result files of serving benchmarks."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rlsize.errors import InputError
from rlsize.estimates.bench_rates import benchmark_rates

if TYPE_CHECKING:
    from rlsize.facts.benchmark_result import BenchmarkResult
    from rlsize.facts.figure import Figure
    from rlsize.facts.rates import Rates
    from rlsize.reports.report import Report
    from rlsize.shell.inputs import Inputs


def observed_results(
    inputs: Inputs,
    files: list[str],
    format: str | None,  # noqa: A002 (the flag's name)
    size: Figure,
    *,
    needed: bool,
) -> tuple[Report, Rates | None]:
    """
    What a benchmark's runs tell, and the rate of an instance out of them; None where none tells one.

    Args:
        inputs: What was asked of them.
        files: The runs.
        format: Their format, where the user says it.
        size: GPUs of an instance. [1]
        needed: Whether there must be a rate.

    Raises:
        InputError: All that is wrong with flags and files; or no run tells a rate, and one is needed.
    """
    from rlsize.readers.bench.reading import read_benchmark
    from rlsize.reports.bench import bench_report

    wanted, share = inputs.ask("concurrency"), inputs.ask("prompt_share")
    results: list[BenchmarkResult] = []
    for file in files:
        try:
            results += read_benchmark(file, format)
        except InputError as error:
            inputs.blame(error, file)
    inputs.settle()
    at, rates = datetime.now(UTC).isoformat(timespec="seconds"), None
    asked, gpus, prompts = (figure.number if figure.known else None for figure in (wanted, size, share))
    try:
        rates = benchmark_rates(results, asked, gpus, at, "observe", prompt_share=prompts)
    except InputError as error:
        if needed or wanted.known or share.known:
            raise
        rated = any(result.response_tokens_per_second or result.total_tokens_per_second for result in results)
        inputs.warnings += [f"{fault.where}: {fault.what}" for fault in error.faults] if rated else []
    return bench_report(results, rates, inputs.shown(), (), inputs.warnings), rates
