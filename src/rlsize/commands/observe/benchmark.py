"""`rlsize observe` on result files of serving benchmarks: the rate of an instance, the runs, and what they count."""

from __future__ import annotations

from datetime import UTC, datetime
from operator import itemgetter
from typing import TYPE_CHECKING

from rlsize.errors import InputError
from rlsize.estimates.bench_rates import benchmark_rates, joined
from rlsize.estimates.figures import measured
from rlsize.estimates.headroom import headroom_left
from rlsize.facts.figure import Figure
from rlsize.facts.headroom import HEADROOM_PARTS
from rlsize.reports.chart import Chart, Series
from rlsize.reports.report import Column, Report, Table, Unseen
from rlsize.units import listed, show

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rlsize.facts.benchmark_result import BenchmarkResult
    from rlsize.facts.rates import Rates
    from rlsize.shell.inputs import Inputs

_SAYS_SO = "a file that says it"
_COUNTS = {
    "response_tokens_per_second": "response tokens, ramp and tail of the run in it",
    "total_tokens_per_second": "prompt and response tokens",
    "requests": "requests that finished",
    "concurrency": "requests in flight, at most",
    "mean_concurrency": "requests in flight, on average",
    "seconds_per_token": "time between two tokens of a response",
    "trainer_tokens_per_second": "tokens trained",
}
_SHOWN_RUNS = 30


def observed_results(
    inputs: Inputs, files: list[str], form: str | None, size: Figure, *, needed: bool
) -> tuple[Report, Rates | None]:
    """
    What a benchmark's runs tell, and the rate of an instance out of them; None where none tells one.

    Args:
        inputs: What was asked of them.
        files: The runs.
        form: Their format, where the user says it.
        size: GPUs of an instance. [1]
        needed: Whether there must be a rate.

    Raises:
        InputError: All that is wrong with flags and files; or no run tells a rate, and one is needed.
    """
    from rlsize.readers.bench.reading import read_benchmark
    from rlsize.shell.access import blamed

    wanted, share = inputs.ask("concurrency"), inputs.ask("prompt_share")
    results: list[BenchmarkResult] = []
    for file in files:
        with blamed(inputs, file):
            results += read_benchmark(file, form)
    inputs.settle()
    at, rates = datetime.now(UTC).isoformat(timespec="seconds"), None
    asked, gpus, prompts = (figure.if_known for figure in (wanted, size, share))
    try:
        rates = benchmark_rates(results, asked, gpus, at, "observe", prompt_share=prompts)
    except InputError as error:
        if needed or wanted.known or share.known:
            raise
        rated = any(result.response_tokens_per_second or result.total_tokens_per_second for result in results)
        inputs.warnings += [f"{fault.where}: {fault.what}" for fault in error.faults] if rated else []
    return bench_report(results, rates, inputs.shown(), inputs.warnings), rates


def bench_report(
    results: Sequence[BenchmarkResult], rates: Rates | None, inputs: Sequence[Figure], warnings: Sequence[str] = ()
) -> Report:
    """
    The report of `rlsize observe FILE` for benchmark results.

    Args:
        results: The runs.
        rates: The rate of an instance; None where no run has one.
        inputs: What was asked.
        warnings: What happened on the way and casts doubt.
    """
    doubts = rates.doubts if rates else []
    runs = joined(results)
    told = [*doubts, *_told(runs, doubts), *warnings]
    return Report(
        headline=_headline(results, rates),
        results=(*_rates(rates), *_trainer(results)),
        inputs=tuple(inputs),
        tables={"runs": _runs_table(runs, rates), "keys": _keys_table(runs)},
        warnings=tuple(dict.fromkeys(told)),
        notes=tuple(_included(rates)),
        chart=_chart(runs),
        quiet=frozenset({"lower_bound", "standard_error_tokens_per_second", "response_cv", "tensor_parallel"}),
    )


def _told(results: Sequence[BenchmarkResult], already: Collection[str]) -> list[str]:
    """The warnings of every run that are not told already; those that several share are told once."""
    shared: dict[str, list[str]] = {}
    for result in results:
        for warning in (each for each in result.warnings if each not in already):
            shared.setdefault(warning, []).append(result.source)
    if len(results) == 1:
        return [*shared]
    more = {warning: f" and {len(sources) - 1} more" * (len(sources) > 1) for warning, sources in shared.items()}
    return [f"{sources[0]}{more[warning]}: {warning}" for warning, sources in shared.items()]


def _headline(results: Sequence[BenchmarkResult], rates: Rates | None) -> str:
    rate = rates.instance_tokens_per_second if rates else None
    if rate is not None:
        shown = show(rate.mean, "_tokens_per_second")
        return f"{'At least ' if rate.lower_bound else ''}{shown} per instance: {rate.why}."
    trainer = next((result for result in results if result.trainer_tokens_per_second is not None), None)
    if trainer is not None:
        shown = show(trainer.trainer_tokens_per_second, "_tokens_per_second")
        many = trainer.trainer_gpus
        gpus = f" on {show(many)} GPU{'s' * (many != 1)}" if many else ""
        return f"The trainer takes {shown} of packed tokens{gpus}: {trainer.tool}; no run has a rollout rate."
    runs = "the run has" if len(results) == 1 else f"none of {len(results)} runs has"
    return f"No rate of response tokens: {runs} {'none' if len(results) == 1 else 'one'}."


def _rates(rates: Rates | None) -> list[Figure]:
    rate = rates.instance_tokens_per_second if rates else None
    if rates is None or rate is None:
        return []
    key = rates.source.keys.get("response_tokens_per_second", "")
    error, seen = rate.standard_error, rates.conditions
    gpus = rates.gpus_per_instance
    return [
        measured("instance_tokens_per_second", rate.mean, key, deviation=error or 0.0),
        measured("rollout_gpu_tokens_per_second", rate.mean / gpus if gpus else None, key, "--gpus-per-instance"),
        measured("standard_error_tokens_per_second", error, key, "repeats of the run"),
        measured("lower_bound", rate.lower_bound, rate.why),
        headroom_left(rates.includes),
        measured("window_seconds", rates.window_seconds, rates.source.keys.get("duration_seconds", ""), _SAYS_SO),
        measured("mean_response_tokens", seen.mean_response_tokens, "", _SAYS_SO),
        measured("mean_prompt_tokens", seen.mean_prompt_tokens, "", _SAYS_SO),
        measured("response_cv", seen.response_cv, "", "a file with every length (--save-detailed)"),
        measured("tensor_parallel", seen.tensor_parallel, "", _SAYS_SO),
    ]


def _trainer(results: Sequence[BenchmarkResult]) -> list[Figure]:
    result = next((each for each in results if each.trainer_tokens_per_second is not None), None)
    if result is None:
        return []
    key = result.keys.get("trainer_tokens_per_second", "")
    return [
        measured("trainer_packed_tokens_per_second", result.trainer_tokens_per_second, key),
        measured("trainer_gpus", result.trainer_gpus, result.keys.get("trainer_gpus", ""), _SAYS_SO),
        measured("mfu", result.mfu, result.keys.get("mfu", ""), _SAYS_SO),
    ]


def _included(rates: Rates | None) -> list[str]:
    if rates is None or rates.instance_tokens_per_second is None:
        return []
    held = [part.replace("_", " ") for part in HEADROOM_PARTS if part in rates.includes]
    rest = [part.replace("_", " ") for part in HEADROOM_PARTS if part not in rates.includes]
    left = show(headroom_left(rates.includes).value)
    already = f"already includes {' and '.join(held)} of the run" if held else "includes no part of headroom"
    return [
        f"The rate {already}. Headroom {left} is left for {listed(rest)}.",
        "The benchmark is taken to have run against one instance: name the files of one instance, not of a router.",
    ]


def _runs_table(results: Sequence[BenchmarkResult], rates: Rates | None) -> Table:
    """One row for each run."""
    used = {instance.instance for instance in rates.instances} if rates else set()
    at = next((index for index, result in enumerate(results) if result.source in used), None)
    cells: tuple[Column | Unseen, ...] = (
        *map(Unseen, ("source", "tool")),
        # a line breaks between words only
        Column("_tool", "tool", "left", wide=True, of=lambda result: result.tool.replace("_", " ")),
        Unseen("model"),
        Unseen("used", lambda result: result.source in used),
        Column("concurrency", "in flight"),
        Unseen("mean_concurrency"),
        Unseen("request_rate_per_second", lambda result: result.request_rate),
        Column("requests", "requests"),
        Unseen("failed_requests"),
        Unseen("run_seconds", lambda result: result.duration_seconds),
        Column("response_tokens_per_second", "rate"),
        Unseen("total_tokens_per_second"),
        Column("mean_prompt_tokens", "prompt"),
        Column("mean_response_tokens", "response"),
        Column("inter_token_seconds", "per token", of=lambda result: result.seconds_per_token),
        *map(Unseen, ("first_token_seconds", "batch_seconds", "measured_at")),
    )
    note = "rate: response tokens per second; prompt, response: mean tokens of a request"
    return Table.of("Runs", results, cells, marked=at, note=note, shown=_SHOWN_RUNS)


def _keys_table(results: Sequence[BenchmarkResult]) -> Table:
    """Which key of a tool's file stands behind each figure, and what it counts; once for each tool."""
    found: dict[tuple[str, str, str], str] = {}
    for result in results:
        for figure, key in ((figure, result.keys.get(figure)) for figure in _COUNTS):
            if key is not None:
                found.setdefault((result.tool, figure, key), result.counts.get(figure, _COUNTS[figure]))
    cells = (
        Column("tool", "tool", "left", wide=True, of=itemgetter(0)),
        Unseen("figure", itemgetter(1)),
        Column("key", "key", "left", wide=True, of=itemgetter(2)),
        Column("counts", "what it counts", "left", wide=True, of=found.__getitem__),
    )
    return Table.of("Keys that were read", found, cells, shown=_SHOWN_RUNS)


def _chart(results: Sequence[BenchmarkResult]) -> Chart | None:
    """The rate over concurrency, where two runs or more have both."""
    points = sorted(
        (result.concurrency, result.response_tokens_per_second)
        for result in results
        if result.concurrency is not None and result.response_tokens_per_second is not None
    )
    if len({at for at, _ in points}) <= 1:  # no curve
        return None
    return Chart(
        title="Response tokens per second by requests in flight",
        x_label="requests in flight",
        y_label="response tokens per second",
        series=(Series.of("runs", points, "rollout"),),
    )
