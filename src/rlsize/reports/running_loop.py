"""What `observe` and `diagnose` both say about a running loop: its instances, and what of a log does not count."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.reports.report import Column, Table
from rlsize.units import show, some_of

if TYPE_CHECKING:
    from rlsize.facts.observations import InstanceObservation, Observation
    from rlsize.facts.run_summary import RunSummary
    from rlsize.reports.report import Cell

_LISTED = 6  # steps that a note names


def instances_table(seen: Observation) -> Table:
    """One row for each instance, those left out last."""
    return Table(
        title="Instances",
        columns=(
            Column("instance", "instance", "left", wide=True),
            Column("tokens_per_second", "rate"),
            Column("busy_tokens_per_second", "busy"),
            Column("saturated_fraction", "saturated"),
            Column("prefix_cache_hit_fraction", "hits"),
            Column("state", "", "left", wide=True),
        ),
        rows=tuple(_row(instance) for instance in seen.instances),
        note="rate: response tokens per second by wall clock; busy: while requests ran; hits: prefix cache",
    )


def _row(instance: InstanceObservation) -> dict[str, Cell]:
    doubts = ["straggler"] * instance.straggler + ["lower bound"] * instance.lower_bound
    return {
        "instance": instance.instance,
        "tokens_per_second": instance.tokens_per_second,
        "busy_tokens_per_second": instance.busy_tokens_per_second,
        "saturated_fraction": instance.saturated_fraction,
        "lower_bound": instance.lower_bound if instance.used else None,
        "straggler": instance.straggler,
        "preemptions_per_second": instance.preemptions_per_second,
        "prefix_cache_hit_fraction": instance.prefix_cache_hit_fraction,
        "mean_response_tokens": instance.mean_response_tokens,
        "weight_syncs": instance.weight_syncs,
        "weight_sync_seconds": instance.weight_sync_seconds,
        "window_seconds": instance.seconds,
        "why": instance.why,
        "left_out": instance.left_out,
        "state": ", ".join(doubts) if instance.used else "left out",
    }


def apart_words(run: RunSummary) -> list[str]:
    """A sentence for each reason why steps do not count, and for each kind of record that could not be used."""
    found = []
    for apart in run.set_apart:
        names = some_of([str(step) for step in apart.steps], _LISTED)
        what = f"step{'s' if len(apart.steps) > 1 else ''} {names}"
        found.append(f"Set apart as {apart.why}: {what}, {show(apart.seconds, '_seconds')} in all.")
    found += [
        f"Not used: {one.count} record{'s' if one.count > 1 else ''}, {one.why}; the first at {one.first}."
        for one in run.skipped
    ]
    return found
