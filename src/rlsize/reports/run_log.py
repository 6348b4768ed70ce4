"""What to say about a training log: rates, phases, their spread over the steps, and what was set apart."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from statistics import quantiles
from typing import TYPE_CHECKING

from rlsize.facts.figure import Figure, absent
from rlsize.reports.chart import Chart, Series
from rlsize.reports.report import Column, Report, Table
from rlsize.reports.wording import words
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.facts.run_summary import RunSummary
    from rlsize.reports.chart import Role
    from rlsize.reports.report import Cell

PHASES = {
    "generation_seconds": "generation",
    "wait_seconds": "waiting for samples",
    "logprob_seconds": "log-probs",
    "update_seconds": "update",
    "sync_seconds": "weight sync",
    "other_seconds": "other",
    "step_seconds": "whole step",
}
_ROLES: dict[str, Role] = {  # of the parts of a step, from the bottom of a picture to its top
    "update_seconds": "update",
    "logprob_seconds": "logprob",
    "sync_seconds": "sync",
    "generation_seconds": "rollout",
    "wait_seconds": "waiting",
    "other_seconds": "swap",
}
_RESULTS = (
    *("step_seconds", "train_seconds", "consumption_tokens_per_second", "trained_tokens_per_second"),
    *("fleet_tokens_per_second", "trainer_idle_fraction", "sync_pause_fraction", "batch_tokens", "samples_per_step"),
    *("mean_response_tokens", "clipped_fraction", "staleness_steps", "largest_staleness_steps", "mfu"),
    *("queued_samples", "dropped_samples_per_step", "prefix_cache_hit_fraction", "rollout_gpus", "trainer_gpus"),
    *("reported_rollout_tokens_per_second", "reported_trainer_tokens_per_second"),
    *("reported_trainer_idle_fraction", "reported_rollout_idle_fraction", "prompt_tokens_per_step"),
    "total_tokens_per_step",
)
_ASKED = {"step_seconds", "train_seconds", "consumption_tokens_per_second", "trainer_idle_fraction"}
_DRAWN = 1000  # steps of a picture, at most
_LISTED = 6  # steps that a note names
_NAMES = {"colocated": "colocated", "synchronous": "in turn", "async": "async", "unknown": "mode not known"}


def run_log_report(
    run: RunSummary, inputs: Sequence[Figure], warnings: Sequence[str] = (), notes: Sequence[str] = ()
) -> Report:
    """
    The report of `rlsize observe` on a training log.

    Args:
        run: The log, summed up.
        inputs: What was asked.
        warnings: What happened on the way and casts doubt.
        notes: What happened on the way.
    """
    known = [run.figure(key, _lacking(run, key)) for key in _RESULTS if key in _ASKED or key in run.figures]
    tables = {"phases": phases_table(run), "keys": keys_table(run)}
    count = Figure(key="settled_steps", value=len(run.steps), provenance="measured", source=run.source)
    return Report(
        command="observe",
        headline=_headline(run),
        results=(*known, count),
        inputs=tuple(inputs),
        tables={name: table for name, table in tables.items() if table.rows},
        warnings=(*run.warnings, *warnings),
        notes=(*set_apart_words(run), *skipped_words(run), *notes),
        chart=phases_chart(run),
    )


def _lacking(run: RunSummary, key: str) -> str:
    """What a figure lacks: a key that some step does not have, or a log that says more."""
    if key in run.keys:
        return f"{run.keys[key]} in every step"
    return {
        "train_seconds": "a log that times training",
        "consumption_tokens_per_second": "a log with tokens and train times",
        "trainer_idle_fraction": "a log that times waiting",
    }.get(key, "a log that has it")


def _headline(run: RunSummary) -> str:
    count = len(run.steps)
    over = f"{run.framework}, {_NAMES[run.mode]}: {count} settled step{'s' if count != 1 else ''}"
    step, consumed = run.figure("step_seconds"), run.figure("consumption_tokens_per_second")
    parts = [f"{show(step.value, 'step_seconds')} each"] if step.known else []
    parts += [f"the trainer consumes {show(consumed.value, consumed.key)} while it trains"] if consumed.known else []
    return f"{over}{', ' if parts else ''}{'; '.join(parts)}."


def phases_table(run: RunSummary) -> Table:
    """Each phase per optimizer step: mean, spread over the steps, share of the step."""
    whole = run.figures.get("step_seconds", absent("step_seconds", ""))
    rows = []
    for key, name in PHASES.items():
        figure, values = run.figures.get(key), run.columns.get(key, ())
        if figure is None:
            continue
        low, middle, high = _spread(values)
        share = figure.number / whole.number if whole.known and whole.number else None
        rows.append(
            {
                "phase": name,
                "mean_seconds": figure.value,
                "p10_seconds": low,
                "p50_seconds": middle,
                "p90_seconds": high,
                "share_fraction": share,
                "key": run.keys.get(key, ""),
            }
        )
    return Table(
        title="Phases of an optimizer step",
        columns=(
            Column("phase", "", "left"),
            Column("mean_seconds", "mean"),
            Column("p10_seconds", "p10"),
            Column("p50_seconds", "median"),
            Column("p90_seconds", "p90"),
            Column("share_fraction", "share"),
        ),
        rows=tuple(rows),
    )


def _spread(values: Sequence[float]) -> tuple[float | None, float | None, float | None]:
    """Tenth, fiftieth and ninetieth percentile; unknown of a single step."""
    if len(values) < 2:  # noqa: PLR2004 (one value has no spread)
        return None, None, None
    cuts = quantiles(values, n=10, method="inclusive")
    return cuts[0], cuts[4], cuts[8]


def keys_table(run: RunSummary) -> Table:
    """Which key each quantity was read from, and what it counts where that is not what its name says."""
    rows: list[dict[str, Cell]] = [
        {"quantity": name, "key": key, "counts": run.counts.get(name, "")} for name, key in run.keys.items()
    ]
    return Table(
        title="What was read",
        columns=(
            Column("_quantity", "", "left", wide=True),
            Column("key", "from", "left", wide=True),
            Column("counts", "which counts", "left", wide=True),
        ),
        rows=tuple({**row, "_quantity": words(str(row["quantity"]))} for row in rows),
    )


def set_apart_words(run: RunSummary) -> list[str]:
    """A sentence for each reason why steps do not count."""
    found = []
    for apart in run.set_apart:
        names = ", ".join(map(str, apart.steps[:_LISTED]))
        more = f" and {len(apart.steps) - _LISTED} more" if len(apart.steps) > _LISTED else ""
        what = f"step{'s' if len(apart.steps) > 1 else ''} {names}{more}"
        found.append(f"Set apart as {apart.why}: {what}, {show(apart.seconds, '_seconds')} in all.")
    return found


def skipped_words(run: RunSummary) -> list[str]:
    """A sentence for each kind of record that could not be used."""
    return [
        f"Not used: {one.count} record{'s' if one.count > 1 else ''}, {one.why}; the first at {one.first}."
        for one in run.skipped
    ]


def phases_chart(run: RunSummary) -> Chart | None:
    """The settled steps, their parts on top of each other; generation where nothing else runs beside it."""
    alone = run.mode in {"synchronous", "colocated"}
    parts = [key for key in _ROLES if key in run.columns and (alone or key != "generation_seconds")]
    if len(run.steps) < 2 or not parts:  # noqa: PLR2004 (one step is no picture)
        return None
    rising = all(second > first for first, second in pairwise(run.steps))
    places = range(0, len(run.steps), -(-len(run.steps) // _DRAWN))
    xs = tuple(float(run.steps[place] if rising else place) for place in places)  # a restart counts again from below
    idle, whole = run.figure("trainer_idle_fraction"), run.figure("step_seconds")
    takeaway = f"a step takes {show(whole.value, 'step_seconds')}" if whole.known else "time of each optimizer step"
    if idle.known:
        takeaway += f", of which the trainer waits {show(idle.value, 'x_fraction')}"
    return Chart(
        title=f"{run.framework}: {takeaway}",
        x_label="optimizer step",
        y_label="seconds",
        kind="areas",
        series=tuple(
            Series(name=PHASES[key], xs=xs, ys=tuple(run.columns[key][place] for place in places), role=_ROLES[key])
            for key in parts
        ),
    )


def with_run(report: Report, run: RunSummary) -> Report:
    """The report on engines, with what the training log beside them says: both rates in one answer."""
    other = run_log_report(run, ())
    known = {figure.key for figure in report.results}
    return replace(
        report,
        headline=f"{report.headline} {other.headline}",
        results=(*report.results, *(figure for figure in other.results if figure.key not in known)),
        tables={**report.tables, **other.tables},
        warnings=(*report.warnings, *other.warnings),
        notes=(*report.notes, *other.notes),
    )
