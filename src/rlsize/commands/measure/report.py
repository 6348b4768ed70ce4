"""What to say about a measurement: the rates, how they came about, and what casts doubt on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.estimates.figures import measured
from rlsize.facts.figure import Figure
from rlsize.reports.chart import Chart, Mark, Series
from rlsize.reports.report import Column, Report, Table, Unseen, tables_of
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlsize.facts.measured import (
        FiniteBatch,
        Latency,
        RolloutLevel,
        RolloutMeasured,
        SyncMeasured,
        SyncMethod,
        TrainMeasured,
    )
    from rlsize.facts.rates import Rates

_QUIET = frozenset({
    "largest_concurrency", "prefill_token_step_seconds", "trained_params", "trainer_gpu_update_tokens_per_second",
    "sync_message_seconds", "sync_wire_bytes_per_second", "sync_tensors",
})  # fmt: skip
_MORE = "more measurements"


def measure_report(rates: Rates, inputs: Sequence[Figure] = (), notes: Sequence[str] = ()) -> Report:
    """
    The report of `rlsize measure`, or of a rates file.

    Args:
        rates: What was measured.
        inputs: What was asked.
        notes: What happened on the way.
    """
    partial = [f"partial: {rates.partial}; what was measured until then is shown"] if rates.partial else []
    return Report(
        headline=_headline(rates),
        results=tuple(_results(rates)),
        inputs=tuple(inputs),
        tables=_tables(rates),
        warnings=(*partial, *rates.doubts),
        notes=(_circumstances(rates), *notes),
        chart=_chart(rates.rollout) if rates.rollout else None,
        quiet=_QUIET,
    )


def _headline(rates: Rates) -> str:
    parts = []
    rate, rollout = rates.instance_tokens_per_second, rates.rollout
    if rate is not None and rollout is not None:
        at_least = "At least " if rate.lower_bound else ""
        reached = f"{at_least}{show(rate.mean, '_tokens_per_second')} per instance"
        parts.append(f"{reached} with {rollout.at_concurrency} in flight")
    elif rate is not None:
        parts.append(f"{show(rate.mean, '_tokens_per_second')} per instance")
    if rates.train_seconds is not None:
        gpus = f" on {rates.trainer_gpus} {_device(rates)}" if rates.trainer_gpus else ""
        parts.append(f"{show(rates.train_seconds, '_seconds')} per train step{gpus}")
    if rates.sync is not None:
        best = _fastest(rates.sync)
        parts.append(f"{show(best.seconds, '_seconds')} per weight sync")
    text = "; ".join(parts) or "Nothing was measured"
    return f"{text[:1].upper()}{text[1:]}."


def _circumstances(rates: Rates) -> str:
    """On what and with what it was measured, in a sentence."""
    machine = rates.machine
    date = rates.measured_at.partition("T")[0]
    if machine is None:
        return f"Measured on {date}."
    kinds = {name: machine.gpus.count(name) for name in machine.gpus}
    place = ", ".join(f"{many} x {name}" for name, many in kinds.items()) or machine.cpu or "servers that ran already"
    found = machine.libraries
    libraries = ", ".join(f"{name} {found[name]}" for name in ("vllm", "torch") if name in found)
    model = f"{rates.conditions.model}{' with random weights' if rates.conditions.dummy_weights else ''}"
    return f"Measured on {date} on {place}: {model}{f', {libraries}' if libraries else ''}."


def _device(rates: Rates) -> str:
    many = "s" if (rates.trainer_gpus or 0) > 1 else ""
    on_gpus = rates.machine is None or rates.machine.gpus
    return f"GPU{many}" if on_gpus else f"CPU process{'es' if many else ''}"


def _results(rates: Rates) -> Iterator[Figure]:
    rate = rates.instance_tokens_per_second
    if rate is not None:
        yield measured("instance_tokens_per_second", rate.mean, rate.why, deviation=rate.spread or 0.0)
    if rates.rollout is not None:
        yield from _rollout(rates.rollout)
    if rates.train_seconds is not None or rates.consumption_tokens_per_second is not None:
        yield measured("train_seconds", rates.train_seconds, "log-prob passes and update", _MORE)
        yield measured(
            "consumption_tokens_per_second", rates.consumption_tokens_per_second, "batch over train seconds", _MORE
        )
    if rates.train is not None:
        yield from _train(rates.train)
    if rates.sync is not None:
        yield from _sync(rates.sync)


def _rollout(rollout: RolloutMeasured) -> Iterator[Figure]:
    batch, fit = rollout.finite_batch, rollout.step_time
    yield measured("rollout_gpu_tokens_per_second", rollout.gpu_tokens_per_second, missing="GPUs")
    yield measured("concurrency", rollout.at_concurrency)
    yield measured("knee_concurrency", rollout.knee_concurrency, missing="two levels")
    yield measured("largest_concurrency", rollout.largest_concurrency, rollout.limited_by, _MORE)
    yield measured("kv_cache_tokens", rollout.kv_cache_tokens, missing="a page that states it")
    yield measured("preemptions", rollout.preemptions)
    yield measured("prefix_cache_hit_fraction", rollout.prefix_cache_hit_fraction, missing="a finite batch")
    yield Figure(
        key="affine_prefix_cache_hit_fraction",
        value=rollout.expected_prefix_cache_hit_fraction,
        provenance="predicted",
        source="groups kept on one instance",
        missing="drawn prompts",
    )
    if batch is not None:
        yield measured("batch_seconds", batch.seconds, f"{batch.samples} samples sent at once")
        yield measured("batch_tokens_per_second", batch.tokens_per_second, "filling and tail included")
    if fit is not None:
        why = f"fitted over {fit.intervals} intervals, residual {show(fit.residual_fraction, '_fraction')}"
        yield measured("fixed_step_seconds", fit.t0_seconds, why)
        yield measured("sample_step_seconds", fit.t1_seconds, why)
        yield measured("kv_token_step_seconds", fit.t2_seconds, why)
        yield measured("prefill_token_step_seconds", fit.t3_seconds, why)
        yield measured("fit_residual_fraction", fit.residual_fraction, why)


def _train(train: TrainMeasured) -> Iterator[Figure]:
    why = f"{train.steps_timed} steps timed"
    whole, update = train.gpu_total_tokens_per_second, train.update_total_tokens_per_second
    yield measured("trainer_gpu_tokens_per_second", train.gpu_response_tokens_per_second, f"response tokens; {why}")
    yield measured("trainer_gpu_total_tokens_per_second", whole, f"prompt and response; {why}")
    yield measured("trainer_gpu_update_tokens_per_second", update, f"without log-prob passes; {why}")
    yield measured("trainer_gpus", train.gpus)
    yield measured("trained_params", train.params)
    yield measured("mfu_fraction", train.mfu, "of the update, without attention FLOPs", "a GPU profile")
    yield measured("mfu_with_attention_fraction", train.mfu_with_attention, "of the update", "a GPU profile")
    yield measured("peak_memory_bytes", train.peak_memory_bytes, "largest allocation", _MORE)


def _sync(sync: SyncMeasured) -> Iterator[Figure]:
    best = _fastest(sync)
    yield measured("sync_seconds", best.seconds, best.method)
    yield measured("sync_bytes", sync.bytes)
    yield measured("achieved_bytes_per_second", best.bytes_per_second, best.method)
    yield measured("sync_tensors", sync.tensors)
    yield measured("sync_message_seconds", sync.per_message_seconds, "fitted over the tensors", "more tensors")
    yield measured("sync_wire_bytes_per_second", sync.wire_bytes_per_second, "fitted over the tensors", "more tensors")
    for name, update in (("engine", sync.engine_update), ("server", sync.server_update)):
        if update is not None:
            yield measured(f"{name}_update_seconds", update.seconds, update.interface)
            yield measured(f"{name}_pause_seconds", update.pause_seconds, update.interface)


def _fastest(sync: SyncMeasured) -> SyncMethod:
    return min(sync.methods, key=lambda method: method.seconds)


def _tables(rates: Rates) -> dict[str, Table]:
    rollout, batch = rates.rollout, rates.rollout.finite_batch if rates.rollout else None
    return tables_of(
        levels=_level_table(rollout) if rollout else None,
        latency=_latency_table(rollout) if rollout else None,
        batch=_batch_table(batch) if batch else None,
        crosschecks=_check_table(rollout) if rollout and rollout.crosschecks else None,
        phases=_phase_table(rates.train) if rates.train else None,
        sync_methods=_sync_table(rates.sync) if rates.sync else None,
    )


def _level_table(rollout: RolloutMeasured) -> Table:
    """One row for each concurrency."""
    cells = (
        Column("concurrency", "in flight"),
        Column("tokens_per_second", "rate"),
        Column("cv_fraction", "scatter", of=_cv),
        Unseen("spread_tokens_per_second"),
        Unseen("mean_batch"),
        Column("engine_step_seconds", "step", of=lambda one: one.seconds_per_step),
        Column("live_kv_tokens", "live KV", of=_live_tokens),
        Column("prefix_cache_hit_fraction", "hits"),
        Unseen("preemptions"),
        Unseen("finished_samples"),
        Column("window_seconds", "window"),
    )
    at = [level.concurrency for level in rollout.levels].index(rollout.at_concurrency)
    note = "steady state, filling and draining left out; scatter: coefficient of variation over tenths of the window"
    return Table.of("Rate of one instance by samples in flight", rollout.levels, cells, marked=at, note=note)


def _latency_table(rollout: RolloutMeasured) -> Table | None:
    """Three rows for each concurrency, and for the finite batch, as far as samples were sent and ended."""
    levels: list[tuple[int | None, Latency | None]] = [(one.concurrency, one.latency) for one in rollout.levels]
    levels.append((None, rollout.finite_batch.latency if rollout.finite_batch else None))
    waits = (("first token", "first_token"), ("each token", "token"), ("last token", "sample"))
    rows = [(at, one.samples, name, getattr(one, key)) for at, one in levels if one for name, key in waits]
    cells = (
        Unseen("concurrency", lambda row: row[0]),
        Column("load", "in flight", "left", of=lambda row: "one batch" if row[0] is None else f"{row[0]:,}"),
        Column("latency", "until", "left", of=lambda row: row[2]),
        Column("p50_seconds", "median", of=lambda row: row[3].p50_seconds),
        Column("p90_seconds", "p90", of=lambda row: row[3].p90_seconds),
        Column("p99_seconds", "p99", of=lambda row: row[3].p99_seconds),
        Column("samples", "samples", of=lambda row: row[1]),
    )
    note = "of samples that were sent and ended in the steady state; those that still ran count until the last token"
    return Table.of("How long samples wait", rows, cells, note=note) if rows else None


def _live_tokens(level: RolloutLevel) -> int | None:
    return None if level.live_kv_tokens is None else round(level.live_kv_tokens)


def _cv(one: Any) -> float | None:
    """How much the measurements of a level, a phase or a way to send scatter."""
    return one.scatter.cv if one.scatter else None


def _batch_table(batch: FiniteBatch) -> Table:
    """When half, most and all of a batch's samples had finished."""
    early = (batch.seconds_to_50_percent, batch.seconds_to_90_percent, batch.seconds_to_99_percent)
    moments = zip((0.5, 0.9, 0.99, 1.0), (*early, batch.seconds), strict=True)
    cells = (
        Column("finished_fraction", "finished", of=lambda moment: moment[0]),
        Column("seconds", "after", of=lambda moment: moment[1]),
        Column("batch_fraction", "of all", of=lambda moment: moment[1] / batch.seconds),
    )
    whole = "" if batch.step_fraction >= 1.0 else f"; {100 * batch.step_fraction:.0f} % of an optimizer step's share"
    many = f"{batch.samples} samples, {batch.response_tokens:,.0f} response tokens"
    note = f"{many}, the longest {batch.longest_response_tokens:,.0f}{whole}"
    return Table.of("One batch to its end", moments, cells, note=note)


def _check_table(rollout: RolloutMeasured) -> Table:
    """Counts of the client beside those of the engine."""
    counter = Column("counter", "", "left", of=lambda check: check.what.replace("_", " "))
    cells = (counter, Column("asked", "asked for"), Column("counted", "counted"))
    return Table.of("The engine's own count of it", rollout.crosschecks, cells)


def _phase_table(train: TrainMeasured) -> Table:
    """Where the time of an optimizer step goes."""
    cells = (
        Column("phase", "phase", "left", of=lambda phase: phase.name),
        Column("seconds", "in a step"),
        Column("step_fraction", "share", of=lambda phase: phase.seconds / train.train_seconds),
        Column("each_seconds", "each", of=lambda phase: phase.seconds_each),
        Column("cv_fraction", "scatter", of=_cv),
    )
    many = f"{train.micro_batches} micro-batch{'es' if train.micro_batches > 1 else ''}"
    note = f"{many} of up to {train.micro_batch_tokens:,} tokens per GPU, {train.micro_batches_timed} of them timed"
    return Table.of("One optimizer step of the trainer", train.phases, cells, note=note)


def _sync_table(sync: SyncMeasured) -> Table:
    """One row for each way to send the weights."""
    cells = (
        Column("method", "method", "left"),
        Column("bucket_bytes", "bucket"),
        Column("messages", "sends"),
        Column("seconds", "time"),
        Column("gather_seconds", "gather"),
        Column("achieved_bytes_per_second", "achieved", of=lambda method: method.bytes_per_second),
        Unseen("cv_fraction", _cv),
        Column("identical", "identical"),
    )
    title = f"Weight sync, {sync.trainer_ranks} to {sync.receiver_ranks} ranks ({sync.backend}, {sync.dtype})"
    return Table.of(title, sync.methods, cells, marked=sync.methods.index(_fastest(sync)))


def _chart(rollout: RolloutMeasured) -> Chart:
    """The rate against concurrency, with the knee."""
    best = max(rollout.levels, key=lambda level: level.tokens_per_second)
    knee = rollout.knee_concurrency
    inside = knee is not None and knee < rollout.at_concurrency  # at the end of the curve there is no knee to be seen
    xs, ys = zip(*((float(level.concurrency), level.tokens_per_second) for level in rollout.levels), strict=True)
    return Chart(
        title=f"One instance reaches {show(best.tokens_per_second, '_tokens_per_second')}",
        x_label="samples in flight",
        y_label="response tokens per second of one instance",
        series=(Series(name="measured, steady state", xs=xs, ys=ys, role="rollout"),),
        marks=(Mark(at=float(knee or 0), label="knee"),) if inside else (),
    )
