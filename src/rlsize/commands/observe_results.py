"""`rlsize observe` on result files of serving benchmarks."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rlsize.commands import flags
from rlsize.errors import InputError

if TYPE_CHECKING:
    from rlsize.commands.recording import Pools
    from rlsize.facts.benchmark_result import BenchmarkResult
    from rlsize.facts.figure import Figure
    from rlsize.facts.rates import Rates
    from rlsize.reports.report import Report
    from rlsize.shell.inputs import Inputs


def observed_results(
    inputs: Inputs,
    files: list[str],
    format: str | None,  # noqa: A002 (the flag's name)
    chosen: tuple[str | None, str | None],
    pools: Pools,
    targets: tuple[str | None, str | None],
    *,
    force: bool,
) -> Report:
    """
    The rate of an instance out of a benchmark's runs.

    Raises:
        InputError: All that is wrong with flags and files.
    """
    from rlsize.readers.bench.reading import read_benchmark
    from rlsize.reports.bench import bench_report

    save, record = targets
    concurrency, prompt_share = chosen
    wanted = inputs.number("concurrency", "--concurrency", concurrency, flags.POSITIVE)
    share = inputs.number("prompt_share", "--prompt-share", prompt_share, flags.FRACTION)
    if record is not None:
        inputs.fault("records a run, and a benchmark is none", "--record", "save its rate with --save")
    results: list[BenchmarkResult] = []
    for file in files:
        try:
            results += read_benchmark(file, format)
        except InputError as error:
            inputs.blame(error, file)
    inputs.settle()
    asked = _Asked(wanted, share, pools.gpus_per_instance, needed=save is not None)
    rates = _rates(inputs, results, asked)
    notes = []
    if save is not None and rates is not None:
        from rlsize.writers.files import write_whole
        from rlsize.writers.rates_file import rates_text

        write_whole(save, rates_text(rates), force)
        notes.append(f"Wrote {save}; size with `rlsize fleet --consume ... --per-instance {save}`.")
    return bench_report(results, rates, inputs.shown(), notes, inputs.warnings)


class _Asked(NamedTuple):
    """What was asked of the runs: requests in flight, prompt share of totals, GPUs, and whether a rate must be."""

    concurrency: Figure
    prompt_share: Figure
    gpus_per_instance: Figure
    needed: bool


def _rates(inputs: Inputs, results: list[BenchmarkResult], asked: _Asked) -> Rates | None:
    """
    The rate of an instance; None where no run tells one and none is needed.

    Raises:
        InputError: It is needed, or a concurrency was asked for, and there is none.
    """
    from datetime import UTC, datetime

    from rlsize.estimates.bench_rates import benchmark_rates

    def known(figure: Figure) -> float | None:
        return figure.number if figure.known else None

    at = datetime.now(UTC).isoformat(timespec="seconds")
    size, share = known(asked.gpus_per_instance), known(asked.prompt_share)
    try:
        return benchmark_rates(results, known(asked.concurrency), size, at, "observe", prompt_share=share)
    except InputError as error:
        if asked.needed or asked.concurrency.known or share is not None:
            raise
        rated = any(result.response_tokens_per_second or result.total_tokens_per_second for result in results)
        inputs.warnings += [f"{fault.where}: {fault.what}" for fault in error.faults] if rated else []
        return None
