"""What to say about a measurement: the rates, how they came about, and what casts doubt on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.facts.figure import Figure, absent
from rlsize.reports.chart import Chart, Mark, Series
from rlsize.reports.measure_tables import batch_table, check_table, level_table, phase_table, sync_table
from rlsize.reports.report import Report
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlsize.facts.measured import RolloutMeasured, SyncMeasured, TrainMeasured
    from rlsize.facts.rates import Rates
    from rlsize.reports.report import Table

_QUIET = frozenset(
    {
        "largest_concurrency",
        "prefill_token_step_seconds",
        "trained_params",
        "trainer_gpu_update_tokens_per_second",
        "sync_message_seconds",
        "sync_wire_bytes_per_second",
        "sync_tensors",
    }
)


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
        command="measure",
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
        parts.append(
            f"{at_least}{show(rate.mean, '_tokens_per_second')} per instance with {rollout.at_concurrency} in flight"
        )
    elif rate is not None:
        parts.append(f"{show(rate.mean, '_tokens_per_second')} per instance")
    if rates.train_seconds is not None:
        gpus = f" on {rates.trainer_gpus} {_device(rates)}" if rates.trainer_gpus else ""
        parts.append(f"{show(rates.train_seconds, '_seconds')} per train step{gpus}")
    if rates.sync is not None:
        best = min(rates.sync.methods, key=lambda method: method.seconds)
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
    libraries = ", ".join(
        f"{name} {machine.libraries[name]}" for name in ("vllm", "torch") if name in machine.libraries
    )
    model = f"{rates.conditions.model}{' with random weights' if rates.conditions.dummy_weights else ''}"
    return f"Measured on {date} on {place}: {model}{f', {libraries}' if libraries else ''}."


def _device(rates: Rates) -> str:
    many = "s" if (rates.trainer_gpus or 0) > 1 else ""
    on_gpus = rates.machine is None or rates.machine.gpus
    return f"GPU{many}" if on_gpus else f"CPU process{'es' if many else ''}"


def _results(rates: Rates) -> Iterator[Figure]:
    rate = rates.instance_tokens_per_second
    if rate is not None:
        yield _measured("instance_tokens_per_second", rate.mean, rate.why, deviation=rate.spread or 0.0)
    if rates.rollout is not None:
        yield from _rollout(rates.rollout)
    if rates.train is not None:
        yield _measured("train_seconds", rates.train_seconds, "log-prob passes and update")
        yield _measured(
            "consumption_tokens_per_second", rates.consumption_tokens_per_second, "batch over train seconds"
        )
        yield from _train(rates.train)
    if rates.sync is not None:
        yield from _sync(rates.sync)


def _rollout(rollout: RolloutMeasured) -> Iterator[Figure]:
    batch, fit = rollout.finite_batch, rollout.step_time
    yield _measured("rollout_gpu_tokens_per_second", rollout.gpu_tokens_per_second, missing="GPUs")
    yield _measured("concurrency", rollout.at_concurrency)
    yield _measured("knee_concurrency", rollout.knee_concurrency, missing="two levels")
    yield _measured("largest_concurrency", rollout.largest_concurrency, rollout.limited_by)
    yield _measured("kv_cache_tokens", rollout.kv_cache_tokens, missing="a page that states it")
    yield _measured("preemptions", rollout.preemptions)
    yield _measured("prefix_cache_hit_fraction", rollout.prefix_cache_hit_fraction, missing="a finite batch")
    yield Figure(
        key="affine_prefix_cache_hit_fraction",
        value=rollout.expected_prefix_cache_hit_fraction,
        provenance="predicted",
        source="groups kept on one instance",
        missing="a group size",
    )
    if batch is not None:
        yield _measured("batch_seconds", batch.seconds, f"{batch.samples} samples sent at once")
        yield _measured("batch_tokens_per_second", batch.tokens_per_second, "filling and tail included")
    if fit is not None:
        why = f"fitted over {fit.intervals} intervals, residual {show(fit.residual_fraction, '_fraction')}"
        yield _measured("fixed_step_seconds", fit.t0_seconds, why)
        yield _measured("sample_step_seconds", fit.t1_seconds, why)
        yield _measured("kv_token_step_seconds", fit.t2_seconds, why)
        yield _measured("prefill_token_step_seconds", fit.t3_seconds, why)
        yield _measured("fit_residual_fraction", fit.residual_fraction, why)


def _train(train: TrainMeasured) -> Iterator[Figure]:
    why = f"{train.steps_timed} steps timed"
    whole, update = train.gpu_total_tokens_per_second, train.update_total_tokens_per_second
    yield _measured("trainer_gpu_tokens_per_second", train.gpu_response_tokens_per_second, f"response tokens; {why}")
    yield _measured("trainer_gpu_total_tokens_per_second", whole, f"prompt and response; {why}")
    yield _measured("trainer_gpu_update_tokens_per_second", update, f"without log-prob passes; {why}")
    yield _measured("trainer_gpus", train.gpus)
    yield _measured("trained_params", train.params)
    yield _measured("mfu_fraction", train.mfu, "of the update, without attention FLOPs", "a GPU profile")
    yield _measured("mfu_with_attention_fraction", train.mfu_with_attention, "of the update", "a GPU profile")
    yield _measured("peak_memory_bytes", train.peak_memory_bytes, "largest allocation")


def _sync(sync: SyncMeasured) -> Iterator[Figure]:
    best = min(sync.methods, key=lambda method: method.seconds)
    yield _measured("sync_seconds", best.seconds, best.method)
    yield _measured("sync_bytes", sync.bytes)
    yield _measured("achieved_bytes_per_second", best.bytes_per_second, best.method)
    yield _measured("sync_tensors", sync.tensors)
    yield _measured("sync_message_seconds", sync.per_message_seconds, "fitted over the tensors", "more tensors")
    yield _measured("sync_wire_bytes_per_second", sync.wire_bytes_per_second, "fitted over the tensors", "more tensors")
    if sync.engine_update is not None:
        update = sync.engine_update
        yield _measured("engine_update_seconds", update.seconds, update.interface)
        yield _measured("engine_pause_seconds", update.pause_seconds, update.interface)


def _measured(
    key: str, value: float | None, source: str = "", missing: str = "more measurements", deviation: float = 0.0
) -> Figure:
    if value is None:
        return absent(key, missing)
    return Figure(key=key, value=value, provenance="measured", source=source, deviation=deviation)


def _tables(rates: Rates) -> dict[str, Table]:
    tables: dict[str, Table] = {}
    if rates.rollout is not None:
        tables["levels"] = level_table(rates.rollout)
        if rates.rollout.finite_batch is not None:
            tables["batch"] = batch_table(rates.rollout.finite_batch)
        if rates.rollout.crosschecks:
            tables["crosschecks"] = check_table(rates.rollout)
    if rates.train is not None:
        tables["phases"] = phase_table(rates.train)
    if rates.sync is not None:
        tables["sync_methods"] = sync_table(rates.sync)
    return tables


def _chart(rollout: RolloutMeasured) -> Chart:
    """The rate against concurrency, with the knee."""
    xs = tuple(float(level.concurrency) for level in rollout.levels)
    best = max(rollout.levels, key=lambda level: level.tokens_per_second)
    knee = rollout.knee_concurrency
    inside = knee is not None and knee < rollout.at_concurrency  # at the end of the curve there is no knee to be seen
    marks = (Mark(at=float(knee or 0), label="knee"),) if inside else ()
    return Chart(
        title=f"One instance reaches {show(best.tokens_per_second, '_tokens_per_second')}",
        x_label="samples in flight",
        y_label="response tokens per second of one instance",
        series=(
            Series(
                name="measured, steady state",
                xs=xs,
                ys=tuple(level.tokens_per_second for level in rollout.levels),
                role="rollout",
            ),
        ),
        marks=marks,
    )
