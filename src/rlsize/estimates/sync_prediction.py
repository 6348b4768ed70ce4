"""How long a weight update takes by the class of its transport, from model, GPUs and placement."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from rlsize.equations import matching, sync_classes, sync_transports, weight_sync
from rlsize.estimates.engine_shape import plainly
from rlsize.estimates.model_size import model_size
from rlsize.facts.quantisation import WIDTHS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.figures import Work, Worked
    from rlsize.facts.gpu import Gpu
    from rlsize.facts.model import Model

_TRAINED_WIDTH = 2.0  # of a weight before it is quantised for the wire
_TENSORS_PER_LAYER = 9.0  # q, k, v, o, two norms, gate, up, down
_BUCKET_BYTES = 1e9
_ENGINE_BUCKET_BYTES = 4e9  # buckets of 3 to 8 GiB (MoonshotAI/checkpoint-engine@59a3c4ffa2e1:README.md)
_HOST_LINK = 32e9  # PCIe 4.0 x16, where a profile says nothing
_NOTHING = 0.0


@dataclass(frozen=True, slots=True)
class Transport:
    """
    A class of transport.

    Args:
        title: What it is, in a few words.
        fixed: The constant with its fixed time.
        rate: The constant with its handling rate.
        link: How its bytes cross the slowest link: broadcast over the network, in a pipeline from host memory, point to
            point by rdma, gathered on shared GPUs, or by a store.
        pieces: What costs time each: tensors, buckets or nothing.
    """

    title: str
    fixed: str
    rate: str
    link: str
    pieces: str = ""

    @property
    def colocated(self) -> bool:
        """Whether trainer and engines share GPUs."""
        return self.link == "gather"


TRANSPORTS: Mapping[str, Transport] = MappingProxyType(
    {
        "nccl-broadcast": Transport(
            "gathered and broadcast in buckets", "sync_fixed_broadcast", "sync_rate_broadcast", "broadcast", "buckets"
        ),
        "nccl-per-tensor": Transport(
            "gathered and broadcast tensor by tensor",
            "sync_fixed_broadcast",
            "sync_rate_broadcast",
            "broadcast",
            "tensors",
        ),
        "nccl-reshard": Transport(
            "sent point to point, shard to shard", "sync_fixed_reshard", "sync_rate_reshard", "rdma"
        ),
        "checkpoint-engine": Transport(
            "broadcast from host memory in a pipeline",
            "sync_fixed_checkpoint_engine",
            "sync_rate_checkpoint_engine",
            "pipeline",
        ),
        "checkpoint-engine-p2p": Transport(
            "read from host memory point to point",
            "sync_fixed_checkpoint_engine",
            "sync_rate_checkpoint_engine_p2p",
            "pipeline",
        ),
        "colocated": Transport(
            "gathered on shared GPUs, handed over in buckets (CUDA IPC)",
            "sync_fixed_colocated",
            "sync_rate_colocated",
            "gather",
        ),
        "colocated-per-tensor": Transport(
            "gathered on shared GPUs, handed over tensor by tensor",
            "sync_fixed_colocated",
            "sync_rate_colocated",
            "gather",
            "tensors",
        ),
        "store": Transport(
            "written to a disk or object store, then loaded", "sync_fixed_store", "sync_rate_store", "store"
        ),
    }
)
"""The classes by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncTimeQuestion:
    """
    One weight update.

    Args:
        model: The model.
        gpu: The GPU of both sides.
        transport: One of `TRANSPORTS`.
        dtype: Number type on the wire, one of `facts.quantisation.WIDTHS`.
        trainer_gpus: GPUs that hold the trainer's shards. [1]
        rollout_gpus: GPUs of the rollout fleet; the same ones where colocated. [1]
        instance_gpus: GPUs over which one instance shards its weights. [1]
        bucket_bytes: Bytes sent at once. [B]
        params: Weights to send; those of the model where None. [param]
        converted: Whether weights are quantised on the way; by transport and type where None.
    """

    model: Model
    gpu: Gpu
    transport: str = "nccl-broadcast"
    dtype: str = "bf16"
    trainer_gpus: Real = 8.0
    rollout_gpus: Real = 8.0
    instance_gpus: Real = 1.0
    bucket_bytes: Real = _BUCKET_BYTES
    params: Real | None = None
    converted: bool | None = None


def sync_time(work: Work, question: SyncTimeQuestion, values: Mapping[str, Real]) -> Real:
    """
    Seconds of one weight update.

    Args:
        work: `figures.apply` or `figures.numbers`.
        question: The update.
        values: The constants of `constants_sync.STAGE` by name: numbers, or arrays of draws.
    """
    transport, sent = TRANSPORTS[question.transport], sync_bytes(work, question)
    pieces, each = _pieces(work, question, transport, sent, values)
    return work(
        "sync_seconds",
        sync_classes.handled_sync_time,
        fixed_seconds=values[transport.fixed],
        pieces=pieces,
        seconds_per_piece=each,
        sync_bytes=sent,
        handling_rate=values[transport.rate],
        link_seconds=_link_seconds(work, question, transport.link, sent, values["sync_link_share"]),
        quantised_bytes=_quantised(work, question, transport),
        quantising_rate=values["sync_quantising_rate"],
    )


def sync_bytes(work: Work, question: SyncTimeQuestion) -> Worked:
    """Bytes of one copy on the wire."""
    return work(
        "sync_bytes", weight_sync.weight_bytes, params=_params(work, question), bytes_per_param=WIDTHS[question.dtype]
    )


def _params(work: Work, question: SyncTimeQuestion) -> Worked:
    """Weights to send; figures where the answer is explained."""
    return plainly(work)(model_size(question.model).params) if question.params is None else question.params


def _pieces(
    work: Work, question: SyncTimeQuestion, transport: Transport, sent: Worked, values: Mapping[str, Real]
) -> tuple[Worked, Worked]:
    """What is sent piece by piece, and what each piece costs."""
    if transport.pieces == "buckets":
        count = work("buckets", sync_classes.buckets, sync_bytes=sent, bucket_bytes=question.bucket_bytes)
        return count, values["sync_seconds_per_bucket"]
    if transport.pieces == "tensors":
        shape = question.model.architecture
        count = work(
            "weight_tensors",
            sync_classes.weight_tensors,
            layers=float(shape.layers),
            tensors_per_layer=_TENSORS_PER_LAYER,
            moe_layers=float(shape.moe.layers if shape.moe else 0),
            experts=float(shape.moe.experts if shape.moe else 0),
            matrices=float(shape.moe.matrices if shape.moe else 0),
        )
        return count, values["sync_seconds_per_tensor"]
    return _NOTHING, _NOTHING


def _quantised(work: Work, question: SyncTimeQuestion, transport: Transport) -> Worked:
    """Bytes that are converted on the way; none where the wire is as wide as the trainer's weights."""
    ready = transport.link == "pipeline"  # from host memory, where weights lie quantised already
    narrow = not ready and WIDTHS[question.dtype] < _TRAINED_WIDTH
    if not (narrow if question.converted is None else question.converted):
        return _NOTHING
    width = _TRAINED_WIDTH
    return work("quantised_bytes", weight_sync.weight_bytes, params=_params(work, question), bytes_per_param=width)


def _link_seconds(work: Work, question: SyncTimeQuestion, link: str, sent: Worked, share: Real) -> Worked:
    """Seconds on the slowest link; none for a store, whose own rate is the handling rate."""
    gpu, key = question.gpu.specification, "link_seconds"
    fact = gpu.nic or gpu.pcie  # the host link where a profile names no adapter
    adapter = _reached(work, fact.value if fact else _HOST_LINK, share)
    if link == "broadcast":  # one pass over one adapter; the number of receivers hardly matters
        return _pass(work, question, sent, adapter, question.bucket_bytes)
    if link == "pipeline":  # one pass in large buckets over all adapters of a node at once
        node = gpu.gpus_per_node.value
        bandwidth = work("node_bandwidth", sync_classes.node_bandwidth, adapter_bandwidth=adapter, gpus_per_node=node)
        return _pass(work, question, sent, bandwidth, _ENGINE_BUCKET_BYTES)
    if link == "rdma":
        return _point_to_point(work, question, sent, adapter)
    if link == "gather":  # inside a node, or over the adapters where the trainer spans several
        if question.trainer_gpus <= gpu.scale_up.domain_gpus.value:
            adapter = _reached(work, gpu.scale_up.bandwidth_one_direction.value, share)
        gather = sync_transports.gather_time
        return work(key, gather, sync_bytes=sent, shards=question.trainer_gpus, bandwidth=adapter)
    return _NOTHING


def _reached(work: Work, bandwidth: Real, share: Real) -> Worked:
    """What transfers reach of a link."""
    return work("expected_bandwidth", weight_sync.achieved_bandwidth, bandwidth=bandwidth, achievable_fraction=share)


def _pass(work: Work, question: SyncTimeQuestion, sent: Worked, bandwidth: Worked, bucket: Real) -> Worked:
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


def _point_to_point(work: Work, question: SyncTimeQuestion, sent: Worked, adapter: Worked) -> Worked:
    """On the busiest adapter: of a trainer GPU that sends, or of a rollout GPU that receives."""
    size = question.instance_gpus
    return work(
        "link_seconds",
        sync_transports.rdma_time,
        sent_bytes=work(
            "sent_bytes",
            sync_transports.bytes_sent_per_gpu,
            sync_bytes=sent,
            instances=work("instances", matching.instances_of, gpus=question.rollout_gpus, gpus_per_instance=size),
            trainer_gpus=question.trainer_gpus,
        ),
        received_bytes=work(
            "received_bytes", sync_transports.bytes_received_per_gpu, sync_bytes=sent, tensor_parallel=size
        ),
        sender_bandwidth=adapter,
        receiver_bandwidth=adapter,
    )
