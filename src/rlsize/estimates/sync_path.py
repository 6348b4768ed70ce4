"""How long a weight update is on its slowest link: a pass, a pipeline, point to point, or a gathering."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from rlsize.equations import matching, sync_classes, sync_transports, weight_sync

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.sync_prediction import SyncTimeQuestion

    Work = Callable[..., Real]

_ENGINE_BUCKET_BYTES = 4e9  # buckets of 3 to 8 GiB (MoonshotAI/checkpoint-engine@59a3c4ffa2e1:README.md)
_HOST_LINK = 32e9  # PCIe 4.0 x16, where a profile says nothing
_NOTHING = 0.0


def _adapter(work: Work, question: SyncTimeQuestion, share: Real) -> Real:
    """What transfers reach on the network adapter of a GPU; its host link where a profile names no adapter."""
    specification = question.gpu.specification
    fact = specification.nic or specification.pcie
    return _reached(work, fact.value if fact else _HOST_LINK, share)


def _reached(work: Work, bandwidth: Real, share: Real) -> Real:
    return work("expected_bandwidth", weight_sync.achieved_bandwidth, bandwidth=bandwidth, achievable_fraction=share)


def _broadcast(work: Work, question: SyncTimeQuestion, sent: Real, share: Real) -> Real:
    """One pass over one adapter; the number of receivers hardly matters."""
    return _pass(work, question, sent, _adapter(work, question, share), question.bucket_bytes)


def _pipeline(work: Work, question: SyncTimeQuestion, sent: Real, share: Real) -> Real:
    """One pass in large buckets over all adapters of a node at once."""
    node = question.gpu.specification.gpus_per_node.value
    adapter = _adapter(work, question, share)
    bandwidth = work("node_bandwidth", sync_classes.node_bandwidth, adapter_bandwidth=adapter, gpus_per_node=node)
    return _pass(work, question, sent, bandwidth, _ENGINE_BUCKET_BYTES)


def _pass(work: Work, question: SyncTimeQuestion, sent: Real, bandwidth: Real, bucket: Real) -> Real:
    node = question.gpu.specification.gpus_per_node.value
    nodes = work("rollout_nodes", sync_classes.node_count, gpus=question.rollout_gpus, gpus_per_node=node)
    return work(
        "link_seconds",
        sync_transports.broadcast_time,
        sync_bytes=sent,
        bucket_bytes=bucket,
        bandwidth=bandwidth,
        bucket_latency=_NOTHING,
        hops=work("hops", sync_classes.tree_hops, nodes=nodes),
    )


def _rdma(work: Work, question: SyncTimeQuestion, sent: Real, share: Real) -> Real:
    """The busiest adapter: of a trainer GPU that sends, or of a rollout GPU that receives."""
    adapter = _adapter(work, question, share)
    instances = work(
        "instances",
        matching.instances_of,
        gpus=question.rollout_gpus,
        gpus_per_instance=question.instance_gpus,
    )
    return work(
        "link_seconds",
        sync_transports.rdma_time,
        sent_bytes=work(
            "sent_bytes",
            sync_transports.bytes_sent_per_gpu,
            sync_bytes=sent,
            instances=instances,
            trainer_gpus=question.trainer_gpus,
        ),
        received_bytes=work(
            "received_bytes",
            sync_transports.bytes_received_per_gpu,
            sync_bytes=sent,
            tensor_parallel=question.instance_gpus,
        ),
        sender_bandwidth=adapter,
        receiver_bandwidth=adapter,
    )


def _gather(work: Work, question: SyncTimeQuestion, sent: Real, share: Real) -> Real:
    """The trainer's shards gathered: inside a node, or over the adapters where the trainer spans several."""
    scale_up = question.gpu.specification.scale_up
    inside = question.trainer_gpus <= scale_up.domain_gpus.value
    link = _reached(work, scale_up.bandwidth_one_direction.value, share) if inside else _adapter(work, question, share)
    return work(
        "link_seconds", sync_transports.gather_time, sync_bytes=sent, shards=question.trainer_gpus, bandwidth=link
    )


def _store(_: Work, __: SyncTimeQuestion, ___: Real, ____: Real) -> Real:
    """The store's own rate is the handling rate."""
    return _NOTHING


LINKS: Mapping[str, Callable[[Work, SyncTimeQuestion, Real, Real], Real]] = MappingProxyType(
    {"broadcast": _broadcast, "pipeline": _pipeline, "rdma": _rdma, "gather": _gather, "store": _store}
)
"""How an update crosses the slowest link, by name: seconds from question, bytes and the share that transfers reach."""
