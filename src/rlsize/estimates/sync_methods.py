"""What each sync method sends, and what decides how long that takes."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from rlsize.equations import sync_transports, weight_sync
from rlsize.estimates.figures import apply
from rlsize.estimates.sync_links import expected_bandwidth
from rlsize.facts.figure import Figure, absent
from rlsize.facts.quantisation import BYTES_PER_INDEX, BYTES_PER_SCALE, FP8_BYTES, PARAMS_PER_SCALE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlsize.estimates.sync import SyncQuestion

    Times = Callable[[str, SyncQuestion, Figure, Figure], Figure]

DEFAULT_METHOD = "nccl-broadcast"


@dataclass(frozen=True, slots=True)
class Method:
    """
    A way to bring new weights to the fleet.

    Args:
        rule: What decides its time, in a few words.
        payload: Bytes of one update.
        seconds: Time of one update, given the bandwidth of the path and that of a colocated hand-over.
    """

    rule: str
    payload: Callable[[SyncQuestion], Figure]
    seconds: Times


def payload(question: SyncQuestion) -> Figure:
    """Bytes of one update by the chosen method."""
    return METHODS[question.method].payload(question)


def transfer_seconds(question: SyncQuestion, *, expected: bool = False) -> Figure:
    """Time of one update by the chosen method: with the link's bandwidth as specified, or as transfers reach it."""
    path, handover = question.path.bandwidth, question.handover.bandwidth
    if expected:
        path, handover = expected_bandwidth(question.path), expected_bandwidth(question.handover)
    return METHODS[question.method].seconds(
        "expected_transfer_seconds" if expected else "transfer_seconds", question, path, handover
    )


def _full(question: SyncQuestion) -> Figure:
    return apply(
        "transfer_bytes", weight_sync.weight_bytes, params=question.params, bytes_per_param=question.bytes_per_param
    )


def _quantised(question: SyncQuestion) -> Figure:
    return apply(
        "transfer_bytes",
        weight_sync.quantised_sync_bytes,
        params=question.params,
        bytes_per_param=FP8_BYTES,
        bytes_per_scale=BYTES_PER_SCALE,
        params_per_scale=PARAMS_PER_SCALE,
    )


def _changed(question: SyncQuestion) -> Figure:
    return apply(
        "transfer_bytes",
        weight_sync.delta_sync_bytes,
        params=question.params,
        changed_fraction=question.changed_fraction,
        bytes_per_index=BYTES_PER_INDEX,
        bytes_per_param=question.bytes_per_param,
    )


def _broadcast(key: str, question: SyncQuestion, path: Figure, _: Figure) -> Figure:
    return apply(
        key,
        weight_sync.weight_sync_time,
        params=question.params,
        bytes_per_param=question.bytes_per_param,
        bandwidth=path,
    )


def _transfer(key: str, question: SyncQuestion, path: Figure, _: Figure) -> Figure:
    return apply(key, weight_sync.transfer_time, sync_bytes=payload(question), bandwidth=path, latency=0.0)


def _point_to_point(key: str, question: SyncQuestion, path: Figure, _: Figure) -> Figure:
    copy = _full(question)
    received = apply(
        "received_bytes",
        sync_transports.bytes_received_per_gpu,
        sync_bytes=copy,
        tensor_parallel=question.tensor_parallel,
    )
    sent = apply(
        "sent_bytes",
        sync_transports.bytes_sent_per_gpu,
        sync_bytes=copy,
        instances=question.instances,
        trainer_gpus=question.trainer_gpus,
    )
    return apply(
        key,
        sync_transports.rdma_time,
        sent_bytes=sent,
        received_bytes=received,
        sender_bandwidth=path,
        receiver_bandwidth=path,
    )


def _store(key: str, question: SyncQuestion, path: Figure, readers: Figure | float) -> Figure:
    return apply(
        key,
        sync_transports.store_sync_time,
        sync_bytes=_full(question),
        write_bandwidth=question.write_bandwidth,
        read_bandwidth=question.read_bandwidth,
        readers=readers,
        reader_bandwidth=path,
        reload_seconds=question.reload_seconds,
    )


def _disk(key: str, question: SyncQuestion, path: Figure, _: Figure) -> Figure:
    return _store(key, question, path, question.instances)


def _object_store(key: str, question: SyncQuestion, path: Figure, _: Figure) -> Figure:
    return _store(key, question, path, 1.0)


def _hand_over(key: str, question: SyncQuestion, _: Figure, handover: Figure) -> Figure:
    shards, gpus = question.tensor_parallel, question.trainer_gpus
    if shards.known and gpus.known and gpus.number < shards.number:
        return absent(key, "--trainer-gpus of at least --tensor-parallel")
    return apply(
        key,
        sync_transports.reshard_time,
        sync_bytes=_full(question),
        tensor_parallel=shards,
        gpus=gpus,
        bandwidth=handover,
    )


METHODS: Mapping[str, Method] = MappingProxyType(
    {
        "nccl-broadcast": Method("one pass, slowest link", _full, _broadcast),
        "fp8": Method("fp8 with block scales", _quantised, _transfer),
        "delta": Method("changed weights only", _changed, _transfer),
        "rdma": Method("the busiest adapter", _full, _point_to_point),
        "disk": Method("write, all read at once", _full, _disk),
        "object-store": Method("write, each reads alone", _full, _object_store),
        "colocated": Method("GPUs complete shards", _full, _hand_over),
    }
)
"""The methods by name."""
