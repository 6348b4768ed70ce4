"""How long a weight update takes by the class of its transport, from model, GPUs and placement."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from rlsize.equations import sync_classes, sync_transports, weight_sync
from rlsize.estimates.model_size import model_size
from rlsize.facts.quantisation import WIDTHS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from rlsize.equations._ops import Real
    from rlsize.facts.gpu import Gpu
    from rlsize.facts.model import Model

    Work = Callable[..., Any]

_TRAINED_WIDTH = 2.0  # of a weight before it is quantised for the wire
_TENSORS_PER_LAYER = 9.0  # q, k, v, o, two norms, gate, up, down
_BUCKET_BYTES = 1e9
_ENGINE_BUCKET_BYTES = 4e9
_HOST_LINK = 32e9  # PCIe 4.0 x16, where a profile says nothing
_NOTHING = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Transport:
    """
    A class of transport.

    Args:
        title: What it is, in a few words.
        colocated: Whether trainer and engines share GPUs.
        fixed: The constant with its fixed time.
        rate: The constant with its handling rate.
        pieces: What costs time each: tensors, buckets or nothing.
        link: How its bytes cross the slowest link.
        ready: Whether weights come quantised already, so that nothing is converted on the way.
    """

    title: str
    colocated: bool
    fixed: str
    rate: str
    pieces: str = ""
    link: str = "broadcast"
    ready: bool = False


TRANSPORTS: Mapping[str, Transport] = MappingProxyType(
    {
        "nccl-broadcast": Transport(
            title="gathered and broadcast in buckets",
            colocated=False,
            fixed="sync_fixed_broadcast",
            rate="sync_rate_broadcast",
            pieces="buckets",
        ),
        "nccl-per-tensor": Transport(
            title="gathered and broadcast tensor by tensor",
            colocated=False,
            fixed="sync_fixed_broadcast",
            rate="sync_rate_broadcast",
            pieces="tensors",
        ),
        "nccl-reshard": Transport(
            title="sent point to point, shard to shard",
            colocated=False,
            fixed="sync_fixed_reshard",
            rate="sync_rate_reshard",
            link="rdma",
        ),
        "checkpoint-engine": Transport(
            title="broadcast from host memory in a pipeline",
            colocated=False,
            fixed="sync_fixed_checkpoint_engine",
            rate="sync_rate_checkpoint_engine",
            link="pipeline",
            ready=True,
        ),
        "checkpoint-engine-p2p": Transport(
            title="read from host memory point to point",
            colocated=False,
            fixed="sync_fixed_checkpoint_engine",
            rate="sync_rate_checkpoint_engine_p2p",
            link="pipeline",
            ready=True,
        ),
        "colocated": Transport(
            title="gathered on shared GPUs, handed over in buckets (CUDA IPC)",
            colocated=True,
            fixed="sync_fixed_colocated",
            rate="sync_rate_colocated",
            link="gather",
        ),
        "colocated-per-tensor": Transport(
            title="gathered on shared GPUs, handed over tensor by tensor",
            colocated=True,
            fixed="sync_fixed_colocated",
            rate="sync_rate_colocated",
            pieces="tensors",
            link="gather",
        ),
        "store": Transport(
            title="written to a disk or object store, then loaded",
            colocated=False,
            fixed="sync_fixed_store",
            rate="sync_rate_store",
            link="store",
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


def sync_time(work: Work, question: SyncTimeQuestion, values: Mapping[str, Real]) -> Any:  # noqa: ANN401 (as `work` makes it)
    """
    Seconds of one weight update.

    Args:
        work: `working.apply` or `working.numbers`.
        question: The update.
        values: The constants of `constants_sync.STAGE` by name: numbers, or arrays of draws.
    """
    transport = TRANSPORTS[question.transport]
    sent = sync_bytes(work, question)
    pieces, each = _pieces(work, question, transport, sent, values)
    return work(
        "sync_seconds",
        sync_classes.handled_sync_time,
        fixed_seconds=values[transport.fixed],
        pieces=pieces,
        seconds_per_piece=each,
        sync_bytes=sent,
        handling_rate=values[transport.rate],
        link_seconds=_LINKS[transport.link](work, question, sent, values["sync_link_share"]),
        quantised_bytes=_quantised(work, question, transport),
        quantising_rate=values["sync_quantising_rate"],
    )


def sync_bytes(work: Work, question: SyncTimeQuestion) -> Any:  # noqa: ANN401 (as `work` makes it)
    """Bytes of one copy on the wire."""
    return work(
        "sync_bytes", weight_sync.weight_bytes, params=_params(question), bytes_per_param=WIDTHS[question.dtype]
    )


def _params(question: SyncTimeQuestion) -> Real:
    if question.params is not None:
        return question.params
    computed = question.model.computed
    return float(computed.params) if computed else model_size(question.model).params.number


def _pieces(
    work: Work, question: SyncTimeQuestion, transport: Transport, sent: Any, values: Mapping[str, Real]
) -> tuple[Any, Real]:
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


def _quantised(work: Work, question: SyncTimeQuestion, transport: Transport) -> Any:  # noqa: ANN401 (as `work` makes it)
    """Bytes that are converted on the way; none where the wire is as wide as the trainer's weights."""
    narrow = not transport.ready and WIDTHS[question.dtype] < _TRAINED_WIDTH
    if not (narrow if question.converted is None else question.converted):
        return _NOTHING
    width = _TRAINED_WIDTH
    return work("quantised_bytes", weight_sync.weight_bytes, params=_params(question), bytes_per_param=width)


def _adapter(work: Work, question: SyncTimeQuestion, share: Real) -> Any:  # noqa: ANN401 (as `work` makes it)
    """What transfers reach on the network adapter of a GPU; its host link where a profile names no adapter."""
    specification = question.gpu.specification
    fact = specification.nic or specification.pcie
    return _reached(work, fact.value if fact else _HOST_LINK, share)


def _reached(work: Work, bandwidth: Real, share: Real) -> Any:  # noqa: ANN401 (as `work` makes it)
    return work(
        "expected_bandwidth", weight_sync.achieved_bandwidth, bandwidth=bandwidth, achievable_fraction=share
    )


def _broadcast(work: Work, question: SyncTimeQuestion, sent: Any, share: Real) -> Any:
    """One pass over one adapter; the number of receivers hardly matters."""
    return _pass(work, question, sent, _adapter(work, question, share), question.bucket_bytes)


def _pipeline(work: Work, question: SyncTimeQuestion, sent: Any, share: Real) -> Any:
    """One pass in large buckets over all adapters of a node at once."""
    node = question.gpu.specification.gpus_per_node.value
    adapter = _adapter(work, question, share)
    bandwidth = work("node_bandwidth", sync_classes.node_bandwidth, adapter_bandwidth=adapter, gpus_per_node=node)
    return _pass(work, question, sent, bandwidth, _ENGINE_BUCKET_BYTES)


def _pass(work: Work, question: SyncTimeQuestion, sent: Any, bandwidth: Any, bucket: Real) -> Any:
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


def _rdma(work: Work, question: SyncTimeQuestion, sent: Any, share: Real) -> Any:
    """The busiest adapter: of a trainer GPU that sends, or of a rollout GPU that receives."""
    adapter = _adapter(work, question, share)
    instances = work(
        "instances",
        sync_classes.instances_of,
        rollout_gpus=question.rollout_gpus,
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


def _gather(work: Work, question: SyncTimeQuestion, sent: Any, share: Real) -> Any:
    """The trainer's shards gathered: inside a node, or over the adapters where the trainer spans several."""
    scale_up = question.gpu.specification.scale_up
    inside = question.trainer_gpus <= scale_up.domain_gpus.value
    link = _reached(work, scale_up.bandwidth_one_direction.value, share) if inside else _adapter(work, question, share)
    return work(
        "link_seconds", sync_transports.gather_time, sync_bytes=sent, shards=question.trainer_gpus, bandwidth=link
    )


def _store(_: Work, __: SyncTimeQuestion, ___: Any, ____: Real) -> Any:
    """The store's own rate is the handling rate."""
    return _NOTHING


_LINKS: Mapping[str, Callable[[Work, SyncTimeQuestion, Any, Real], Any]] = MappingProxyType(
    {"broadcast": _broadcast, "pipeline": _pipeline, "rdma": _rdma, "gather": _gather, "store": _store}
)
