"""How many bytes a weight sync sends by each method, how long it takes, and what it pauses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rlsize.equations import sync_achieved, sync_pause, weight_sync
from rlsize.estimates.figures import apply
from rlsize.estimates.sync_methods import METHODS, payload, transfer_seconds
from rlsize.facts.figure import Figure, absent
from rlsize.facts.quantisation import BYTES_PER_INDEX

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.estimates.sync_links import LinkFigures

NOT_MEASURED = absent("sync_seconds", "--sync-seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncQuestion:
    """
    What is known about a weight sync.

    Args:
        method: One of `METHODS`.
        params: Weights to send. [param]
        bytes_per_param: Width on the wire. [B/param]
        path: The slowest link between trainer and fleet.
        handover: The link over which colocated GPUs exchange shards.
        instances: Rollout instances. [instance]
        tensor_parallel: GPUs over which one instance shards its weights. [gpu]
        trainer_gpus: GPUs that hold the trainer's shards. [gpu]
        changed_fraction: Share of weights that an optimizer step changes in the width on the wire. [1]
        write_bandwidth: What the trainer writes to the store. [B/s]
        read_bandwidth: What a disk delivers to all readers together, an object store to each. [B/s]
        reload_seconds: Time for an engine to load a checkpoint that it has read. [s]
        measured_seconds: Time of one sync as it was measured; it replaces the expected one. [s]
        hidden_seconds: Part of a sync that runs beside generation or training. [s]
        step_seconds: Wall clock of one optimizer step, syncs not counted. [s]
        sync_every: Optimizer steps from one sync to the next. [1]
        target_fraction: Largest share of the wall clock that syncs may pause. [1]
    """

    method: str
    params: Figure
    bytes_per_param: Figure
    path: LinkFigures
    handover: LinkFigures
    changed_fraction: Figure
    reload_seconds: Figure
    hidden_seconds: Figure
    sync_every: Figure
    target_fraction: Figure
    instances: Figure = absent("instances", "--instances")
    tensor_parallel: Figure = absent("tensor_parallel", "--tensor-parallel")
    trainer_gpus: Figure = absent("trainer_gpus", "--trainer-gpus")
    write_bandwidth: Figure = absent("write_bandwidth_bytes_per_second", "--write-bandwidth")
    read_bandwidth: Figure = absent("read_bandwidth_bytes_per_second", "--read-bandwidth")
    measured_seconds: Figure = NOT_MEASURED
    step_seconds: Figure = absent("step_seconds_without_sync", "--step-seconds or --step-without-sync")


def expected_seconds(question: SyncQuestion) -> Figure:
    """Time of one update as it was measured, else as the link's achievable share lets expect."""
    measured = question.measured_seconds
    return (
        replace(measured, key="expected_transfer_seconds")
        if measured.known
        else transfer_seconds(question, expected=True)
    )


def sync_results(question: SyncQuestion) -> list[Figure]:
    """Bytes, seconds, the exposed part and the share of the wall clock that it pauses, nameplate and expected."""
    plain, expected = transfer_seconds(question), expected_seconds(question)
    figures = [payload(question), plain, expected]
    for prefix, seconds in (("", plain), ("expected_", expected)):
        exposed = exposed_seconds(f"{prefix}exposed_sync_seconds", question, seconds)
        figures += [exposed, pause_fraction(f"{prefix}sync_pause_fraction", question, exposed)]
    figures.append(
        apply(
            "break_even_changed_fraction",
            weight_sync.break_even_changed_fraction,
            bytes_per_index=BYTES_PER_INDEX,
            bytes_per_param=question.bytes_per_param,
        )
    )
    return [*figures, *_achieved(question)]


def exposed_seconds(key: str, question: SyncQuestion, seconds: Figure) -> Figure:
    """The part of a sync that nothing hides."""
    return apply(key, sync_pause.exposed_sync_time, sync_seconds=seconds, hidden_seconds=question.hidden_seconds)


def pause_fraction(key: str, question: SyncQuestion, exposed: Figure) -> Figure:
    """The share of the wall clock that syncs pause at the given cadence."""
    return apply(
        key,
        sync_pause.sync_pause_fraction,
        exposed_sync_seconds=exposed,
        step_seconds_without_sync=question.step_seconds,
        sync_every=question.sync_every,
    )


def method_rows(question: SyncQuestion) -> tuple[dict[str, Any], ...]:
    """One row for each method, quickest first; those that lack an input come last and say which."""
    rows = []
    for name, method in METHODS.items():
        asked = question if name == question.method else replace(question, method=name, measured_seconds=NOT_MEASURED)
        row: dict[str, Any] = {"method": name, **_times(asked)}
        row |= {"rule": method.rule, "needs": row["transfer_seconds"].missing}
        rows.append(row)
    return tuple(sorted(rows, key=_by_time))


def link_rows(question: SyncQuestion, links: tuple[LinkFigures, ...]) -> tuple[dict[str, Any], ...]:
    """One row for each link, quickest first, for the chosen method."""
    rows = []
    for link in links:
        row: dict[str, Any] = {
            "link": link.name,
            "title": link.title,
            "scope": link.scope,
            "bandwidth_bytes_per_second": link.bandwidth,
        }
        row |= _times(replace(question, path=link, handover=link, measured_seconds=NOT_MEASURED))
        rows.append(row | {"achievable_fraction": link.achievable_fraction, "basis": link.basis})
    return tuple(sorted(rows, key=_by_time))


def _times(question: SyncQuestion) -> dict[str, Figure]:
    figures = {"transfer_bytes": payload(question)}
    for prefix, seconds in (("", transfer_seconds(question)), ("expected_", expected_seconds(question))):
        exposed = exposed_seconds("exposed_sync_seconds", question, seconds)
        figures |= {
            f"{prefix}transfer_seconds": seconds,
            f"{prefix}sync_pause_fraction": pause_fraction(f"{prefix}sync_pause_fraction", question, exposed),
        }
    return figures


def _by_time(row: Mapping[str, Any]) -> tuple[bool, float]:
    seconds: Figure = row["transfer_seconds"]
    return not seconds.known, seconds.number if seconds.known else 0.0


def _achieved(question: SyncQuestion) -> list[Figure]:
    """What a measured sync amounts to; nothing where none was measured."""
    if not question.measured_seconds.known:
        return []
    sent, seconds = payload(question), question.measured_seconds
    return [
        apply(
            "achieved_bytes_per_second", sync_achieved.achieved_sync_bandwidth, sync_bytes=sent, sync_seconds=seconds
        ),
        apply(
            "achieved_link_fraction",
            sync_achieved.achieved_link_fraction,
            sync_bytes=sent,
            sync_seconds=seconds,
            bandwidth=question.path.bandwidth,
        ),
    ]
