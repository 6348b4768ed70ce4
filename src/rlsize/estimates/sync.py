"""How many bytes a weight sync sends by each method, how long that takes over a link, and what it pauses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rlsize.equations import sync_achieved, sync_pause, sync_transports, weight_sync
from rlsize.estimates.figures import apply, figures_in
from rlsize.estimates.flow import Flow, rule
from rlsize.facts.figure import Figure, absent
from rlsize.facts.quantisation import BYTES_PER_INDEX, BYTES_PER_SCALE, FP8_BYTES, PARAMS_PER_SCALE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.facts.fields import Sourced
    from rlsize.facts.link import Link

DEFAULT_METHOD = "nccl-broadcast"
NOT_MEASURED = absent("sync_seconds", "--sync-seconds")
NO_BANDWIDTH = absent("bandwidth_bytes_per_second", "--bandwidth or --link")
NO_FRACTION = absent("achievable_fraction", "--efficiency")


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkFigures:
    """
    One link, ready for equations.

    Args:
        name: The profile's name; empty for a bandwidth that was typed.
        title: Its full name.
        scope: `node`, `network` or `host`; empty for a typed bandwidth.
        bandwidth: One direction, per GPU. [B/s]
        achievable_fraction: Share of it that transfers reach. [1]
        basis: `measured`, `assumed` or `given`: what that share rests on; empty where nobody says.
        both_directions: The sum that data sheets advertise; None where the link is not sold that way. [B/s]
    """

    name: str = ""
    title: str = ""
    scope: str = ""
    bandwidth: Figure = NO_BANDWIDTH
    achievable_fraction: Figure = NO_FRACTION
    basis: str = ""
    both_directions: float | None = None


def link_figures(link: Link) -> LinkFigures:
    """The figures of a profile; what was measured on it goes before what is assumed."""
    specified = link.specification.bandwidth_one_direction
    both = link.specification.bandwidth_both_directions
    shares = (("measured", link.measured), ("assumed", link.assumed))
    known = [(basis, said.achievable_fraction) for basis, said in shares if said and said.achievable_fraction]
    return LinkFigures(
        name=link.name,
        title=link.title,
        scope=link.specification.scope,
        bandwidth=Figure(
            key="bandwidth_bytes_per_second",
            value=specified.value,
            source=f"link profile {link.name}: one direction, {_origin(link, specified)}",
            verified=specified.verified,
        ),
        achievable_fraction=_share(link, *known[0]) if known else NO_FRACTION,
        basis=known[0][0] if known else "",
        both_directions=both.value if both else None,
    )


def expected_bandwidth(link: LinkFigures) -> Figure:
    """The bandwidth that transfers are expected to reach; without a value where nobody knows which share they do."""
    return apply(
        "expected_bandwidth_bytes_per_second",
        weight_sync.achieved_bandwidth,
        bandwidth=link.bandwidth,
        achievable_fraction=link.achievable_fraction,
    )


def _share(link: Link, basis: str, fraction: Sourced) -> Figure:
    """The share of a link that transfers reach."""
    return Figure(
        key="achievable_fraction",
        value=fraction.value,
        provenance="measured" if basis == "measured" else "default",
        source=f"{basis} (link profile {link.name}): {_origin(link, fraction)}",
        verified=fraction.verified,
    )


def _origin(link: Link, number: Sourced) -> str:
    text = link.sources.get(number.source, number.source)
    return f"{text} ({number.note})" if number.note else text


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


@dataclass(frozen=True, slots=True)
class SyncMethod:
    """
    A way to bring new weights to the fleet.

    Args:
        rule: What decides its time, in a few words.
        payload: The bytes of one update, by key.
        seconds: The time of one update, by key.
    """

    rule: str
    payload: str
    seconds: str


_FULL = "full/transfer_bytes"
METHODS: Mapping[str, SyncMethod] = MappingProxyType(
    {
        "nccl-broadcast": SyncMethod("one pass, slowest link", _FULL, "broadcast/transfer_seconds"),
        "fp8": SyncMethod("fp8 with block scales", "fp8/transfer_bytes", "sent/transfer_seconds"),
        "delta": SyncMethod("changed weights only", "delta/transfer_bytes", "sent/transfer_seconds"),
        "rdma": SyncMethod("the busiest adapter", _FULL, "rdma/transfer_seconds"),
        "disk": SyncMethod("write, all read at once", _FULL, "store/transfer_seconds"),
        "object-store": SyncMethod("write, each reads alone", _FULL, "store/transfer_seconds"),
        "colocated": SyncMethod("GPUs complete shards", _FULL, "colocated/transfer_seconds"),
    }
)
"""The methods by name."""

_BOTH_ENDS = {"sender_bandwidth": "bandwidth", "receiver_bandwidth": "bandwidth"}
_SCALED = {
    "bytes_per_param": FP8_BYTES,
    "bytes_per_scale": BYTES_PER_SCALE,
    "params_per_scale": PARAMS_PER_SCALE,
}
RULES = (
    rule(_FULL, weight_sync.weight_bytes),
    rule("fp8/transfer_bytes", weight_sync.quantised_sync_bytes, **_SCALED),
    rule("delta/transfer_bytes", weight_sync.delta_sync_bytes, bytes_per_index=BYTES_PER_INDEX),
    rule("broadcast/transfer_seconds", weight_sync.weight_sync_time),
    rule("sent/transfer_seconds", weight_sync.transfer_time, latency=0.0),
    rule("received_bytes", sync_transports.bytes_received_per_gpu),
    rule("sent_bytes", sync_transports.bytes_sent_per_gpu),
    rule("rdma/transfer_seconds", sync_transports.rdma_time, **_BOTH_ENDS),
    rule("store/transfer_seconds", sync_transports.store_sync_time, reader_bandwidth="bandwidth"),
    rule("colocated/transfer_seconds", sync_transports.reshard_time, gpus="trainer_gpus"),
    rule("break_even_changed_fraction", weight_sync.break_even_changed_fraction, bytes_per_index=BYTES_PER_INDEX),
    rule("achieved_bytes_per_second", sync_achieved.achieved_sync_bandwidth, sync_seconds="measured_seconds"),
    rule("achieved_link_fraction", sync_achieved.achieved_link_fraction, sync_seconds="measured_seconds"),
    rule("exposed_sync_seconds", sync_pause.exposed_sync_time, sync_seconds="update_seconds"),
    rule("sync_pause_fraction", sync_pause.sync_pause_fraction, step_seconds_without_sync="step_seconds"),
    rule("sync_every_steps", sync_pause.sync_cadence, step_seconds_without_sync="step_seconds"),
)


def _flow(question: SyncQuestion, bandwidth: Figure) -> Flow:
    """What follows for the chosen method over a link."""
    readers = question.instances if question.method == "disk" else 1.0  # a disk serves all of them together
    decided = {"sync_bytes": METHODS[question.method].payload, "readers": readers, "bandwidth": bandwidth}
    return Flow(RULES, figures_in(question) | decided)


def payload(question: SyncQuestion) -> Figure:
    """Bytes of one update by the chosen method."""
    found: Figure = _flow(question, question.path.bandwidth)["sync_bytes"]
    return found


def transfer_seconds(question: SyncQuestion, *, expected: bool = False) -> Figure:
    """Time of one update by the chosen method: with the link's bandwidth as specified, or as transfers reach it."""
    key, link = "expected_transfer_seconds" if expected else "transfer_seconds", question.path
    if question.method == "colocated":
        link, shards, gpus = question.handover, question.tensor_parallel, question.trainer_gpus
        if shards.known and gpus.known and gpus.number < shards.number:
            return absent(key, "--trainer-gpus of at least --tensor-parallel")
    bandwidth = expected_bandwidth(link) if expected else link.bandwidth
    found: Figure = _flow(question, bandwidth)[METHODS[question.method].seconds]
    return replace(found, key=key)


def expected_seconds(question: SyncQuestion) -> Figure:
    """Time of one update as it was measured, else as the link's achievable share lets expect."""
    measured = question.measured_seconds
    return (
        replace(measured, key="expected_transfer_seconds")
        if measured.known
        else transfer_seconds(question, expected=True)
    )


def sync_results(question: SyncQuestion) -> list[Figure]:
    """Bytes, seconds, what of them is exposed and pauses, and how seldom to sync, nameplate and expected."""
    plain, expected = transfer_seconds(question), expected_seconds(question)
    figures, cadence = [payload(question), plain, expected], []
    for prefix, seconds in (("", plain), ("expected_", expected)):
        *paused, every = pauses(question, seconds, prefix)
        figures += paused
        cadence.append(every)
    flow = _flow(question, question.path.bandwidth)
    keys = ("achieved_bytes_per_second", "achieved_link_fraction") if question.measured_seconds.known else ()
    return [*figures, *(flow[key] for key in ("break_even_changed_fraction", *keys)), *cadence]


def pauses(question: SyncQuestion, seconds: Figure, prefix: str) -> list[Figure]:
    """What nothing hides of an update, the share of the wall clock that it pauses, and the fewest steps between two."""
    flow = Flow(RULES, figures_in(question) | {"update_seconds": seconds})
    keys = ("exposed_sync_seconds", "sync_pause_fraction", "sync_every_steps")
    return [replace(flow[key], key=f"{prefix}{key}") for key in keys]


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
    figures = [payload(question)]
    for prefix, seconds in (("", transfer_seconds(question)), ("expected_", expected_seconds(question))):
        figures += [seconds, pauses(question, seconds, prefix)[1]]
    return {figure.key: figure for figure in figures}


def _by_time(row: Mapping[str, Any]) -> tuple[bool, float]:
    seconds: Figure = row["transfer_seconds"]
    return not seconds.known, seconds.number if seconds.known else 0.0
