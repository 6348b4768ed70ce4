"""The tables of a measurement: levels of concurrency, the finite batch, cross-checks, train phases, sync methods."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.reports.report import Column, Table

if TYPE_CHECKING:
    from rlsize.facts.measured import FiniteBatch, RolloutMeasured, SyncMeasured, TrainMeasured


def level_table(rollout: RolloutMeasured) -> Table:
    """One row for each concurrency."""
    return Table(
        title="Rate of one instance by samples in flight",
        columns=(
            Column("concurrency", "in flight"),
            Column("tokens_per_second", "rate"),
            Column("cv_fraction", "scatter"),
            Column("engine_step_seconds", "step"),
            Column("live_kv_tokens", "live KV"),
            Column("prefix_cache_hit_fraction", "hits"),
            Column("window_seconds", "window"),
        ),
        rows=tuple(
            {
                "concurrency": level.concurrency,
                "tokens_per_second": level.tokens_per_second,
                "cv_fraction": level.scatter.cv if level.scatter else None,
                "spread_tokens_per_second": level.spread_tokens_per_second,
                "mean_batch": level.mean_batch,
                "engine_step_seconds": level.seconds_per_step,
                "live_kv_tokens": None if level.live_kv_tokens is None else round(level.live_kv_tokens),
                "prefix_cache_hit_fraction": level.prefix_cache_hit_fraction,
                "preemptions": level.preemptions,
                "finished_samples": level.finished_samples,
                "window_seconds": level.window_seconds,
            }
            for level in rollout.levels
        ),
        marked=[level.concurrency for level in rollout.levels].index(rollout.at_concurrency),
        note="steady state, filling and draining left out; scatter: coefficient of variation over tenths of the window",
    )


def batch_table(batch: FiniteBatch) -> Table:
    """When half, most and all of a batch's samples had finished."""
    rows = (
        (0.5, batch.seconds_to_50_percent),
        (0.9, batch.seconds_to_90_percent),
        (0.99, batch.seconds_to_99_percent),
        (1.0, batch.seconds),
    )
    whole = "" if batch.step_fraction >= 1.0 else f"; {100 * batch.step_fraction:.0f} % of an optimizer step's share"
    return Table(
        title="One batch to its end",
        columns=(
            Column("finished_fraction", "finished"),
            Column("seconds", "after"),
            Column("batch_fraction", "of all"),
        ),
        rows=tuple(
            {"finished_fraction": share, "seconds": seconds, "batch_fraction": seconds / batch.seconds}
            for share, seconds in rows
        ),
        note=(
            f"{batch.samples} samples, {batch.response_tokens:,.0f} response tokens, the longest "
            f"{batch.longest_response_tokens:,.0f}{whole}"
        ),
    )


def check_table(rollout: RolloutMeasured) -> Table:
    """Counts of the client beside those of the engine."""
    return Table(
        title="The engine's own count of it",
        columns=(Column("counter", "", "left"), Column("asked", "asked for"), Column("counted", "counted")),
        rows=tuple(
            {"counter": check.what.replace("_", " "), "asked": check.asked, "counted": check.counted}
            for check in rollout.crosschecks
        ),
    )


def phase_table(train: TrainMeasured) -> Table:
    """Where the time of an optimizer step goes."""
    many = "es" if train.micro_batches > 1 else ""
    return Table(
        title="One optimizer step of the trainer",
        columns=(
            Column("phase", "phase", "left"),
            Column("seconds", "in a step"),
            Column("step_fraction", "share"),
            Column("each_seconds", "each"),
            Column("cv_fraction", "scatter"),
        ),
        rows=tuple(
            {
                "phase": phase.name,
                "seconds": phase.seconds,
                "step_fraction": phase.seconds / train.train_seconds,
                "each_seconds": phase.seconds_each,
                "cv_fraction": phase.scatter.cv if phase.scatter else None,
            }
            for phase in train.phases
        ),
        note=(
            f"{train.micro_batches} micro-batch{many} of up to {train.micro_batch_tokens:,} tokens per GPU, "
            f"{train.micro_batches_timed} of them timed"
        ),
    )


def sync_table(sync: SyncMeasured) -> Table:
    """One row for each way to send the weights."""
    return Table(
        title=f"Weight sync, {sync.trainer_ranks} to {sync.receiver_ranks} ranks ({sync.backend}, {sync.dtype})",
        columns=(
            Column("method", "method", "left"),
            Column("bucket_bytes", "bucket"),
            Column("messages", "sends"),
            Column("seconds", "time"),
            Column("gather_seconds", "gather"),
            Column("achieved_bytes_per_second", "achieved"),
            Column("identical", "identical"),
        ),
        rows=tuple(
            {
                "method": method.method,
                "bucket_bytes": method.bucket_bytes,
                "messages": method.messages,
                "seconds": method.seconds,
                "gather_seconds": method.gather_seconds,
                "achieved_bytes_per_second": method.bytes_per_second,
                "cv_fraction": method.scatter.cv if method.scatter else None,
                "identical": method.identical,
            }
            for method in sync.methods
        ),
        marked=min(range(len(sync.methods)), key=lambda index: sync.methods[index].seconds),
    )
