"""What several commands say about a loop: that it cannot run, its instances, what of a log does not count."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rlsize.facts.figure import Figure
from rlsize.loop.said import cannot_run
from rlsize.reports.report import Column, Decision, Report, Table, Unseen
from rlsize.units import show, some_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rlsize.facts.observations import InstanceObservation, Observation
    from rlsize.facts.run_log import RunSummary

WORTH_A_WORD = 0.005
"""Of a step, or of what is made in it: what is less is none."""
_RUNS = "rlsize plan with the same flags looks for a loop that runs, or says the least change"


def dropped_words(results: Mapping[str, Figure]) -> list[str]:
    """How much of what is generated comes too late and is dropped; nothing where next to nothing does."""
    dropped = results.get("late_dropped_fraction")
    if dropped is None or not dropped.known or dropped.number < WORTH_A_WORD:
        return []
    return [f"{show(dropped.value, dropped.key)} of the generated tokens are in samples that come too late: dropped"]


def instances_table(seen: Observation) -> Table:
    """One row for each instance, those left out last."""
    cells = (
        Column("instance", "instance", "left", wide=True),
        Column("tokens_per_second", "rate"),
        Column("busy_tokens_per_second", "busy"),
        Column("saturated_fraction", "saturated"),
        Unseen("lower_bound", lambda one: one.lower_bound if one.used else None),
        Unseen("straggler"),
        Unseen("preemptions_per_second"),
        Column("prefix_cache_hit_fraction", "hits"),
        Unseen("mean_response_tokens"),
        Unseen("weight_syncs"),
        Unseen("weight_sync_seconds"),
        Unseen("window_seconds", lambda one: one.seconds),
        Unseen("why"),
        Unseen("left_out"),
        Column("state", "", "left", wide=True, of=_state),
    )
    note = "rate: response tokens per second by wall clock; busy: while requests ran; hits: prefix cache"
    return Table.of("Instances", seen.instances, cells, note=note)


def _state(one: InstanceObservation) -> str:
    doubts = ["straggler"] * one.straggler + ["lower bound"] * one.lower_bound
    return ", ".join(doubts) if one.used else "left out"


def apart_words(run: RunSummary) -> Iterator[str]:
    """A sentence for each reason why steps do not count, and for each kind of record that could not be used."""
    for apart in run.set_apart:
        names = some_of([str(step) for step in apart.steps], 6)  # steps that a note names
        what = f"step{'s' if len(apart.steps) > 1 else ''} {names}"
        yield f"Set apart as {apart.why}: {what}, {show(apart.seconds, '_seconds')} in all."
    for one in run.skipped:
        yield f"Not used: {one.count} record{'s' if one.count > 1 else ''}, {one.why}; the first at {one.first}."


def refused_report(command: str, reason: str, told: Mapping[str, Any]) -> Report:
    """
    The answer of a command that needs a loop which cannot run: no.

    Args:
        command: The command.
        reason: Why it cannot run.
        told: What the report says of the inputs: those used, warnings and notes.
    """
    why = Figure(key="loop_runs", value=False, provenance="predicted", source=reason)
    return Report(
        command=command, headline=cannot_run(reason), results=(why,), no=True, decision=Decision(then=_RUNS), **told
    )


def bounded(report: Report, bound: str) -> Report:
    """
    The answer as a lower bound.

    Args:
        report: The answer.
        bound: What its step does not hold, in words; empty where it holds all.
    """
    return replace(report, headline=f"{report.headline.removesuffix('.')}; at least: {bound}.") if bound else report
