"""How long a weight update takes by the class of its transport, from model, GPUs and placement."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rlsize.equations import matching, sync_classes, sync_transports, train_step_traffic, weight_sync
from rlsize.equations._ops import each, maximum, minimum
from rlsize.estimates.engine_shape import plainly
from rlsize.estimates.figures import entries
from rlsize.estimates.flow import Flow, by_result, rule
from rlsize.estimates.model_size import model_size
from rlsize.facts.kernels import among
from rlsize.facts.quantisation import BYTES_PER_INDEX, CHANGED_FRACTION, WIDTHS

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
_NCCL_SHARE = 0.74  # of NVLink, which `sync_link_share` is taken from
_SENDERS = 16.0  # GPUs that converted their shards side by side where the rate was seen (NeMo-RL pull request 2971)
_NOTHING = 0.0
_BEYOND = 2  # the reach of weights that leave the GPUs' fast links


@dataclass(frozen=True, slots=True)
class Transport:
    """
    A class of transport.

    Args:
        title: What it is, in a few words.
        link: How its bytes cross the slowest link: broadcast over the network, in a pipeline from host memory, point to
            point by rdma, gathered on shared GPUs, by a store, or broadcast as changes with their places.
        fixed: Of the constant with its fixed time, what it is called by.
        rate: The same of its handling rate, where another one is its own.
        pieces: What costs time each: tensors, buckets or nothing.
    """

    title: str
    link: str
    fixed: str
    rate: str = ""
    pieces: str = ""

    @property
    def colocated(self) -> bool:
        """Whether trainer and engines share GPUs."""
        return self.link == "gather"


TRANSPORTS: Mapping[str, Transport] = MappingProxyType(
    {
        "nccl-broadcast": Transport("gathered and broadcast in buckets", "broadcast", "broadcast", pieces="buckets"),
        "nccl-per-tensor": Transport(
            "gathered and broadcast tensor by tensor", "broadcast", "broadcast", pieces="tensors"
        ),
        "nccl-reshard": Transport("sent point to point, shard to shard", "rdma", "reshard"),
        "checkpoint-engine": Transport("broadcast from host memory in a pipeline", "pipeline", "checkpoint_engine"),
        "checkpoint-engine-p2p": Transport(
            "read from host memory point to point", "pipeline", "checkpoint_engine", "checkpoint_engine_p2p"
        ),
        "colocated": Transport("gathered on shared GPUs, handed over in buckets (CUDA IPC)", "gather", "colocated"),
        "colocated-per-tensor": Transport(
            "gathered on shared GPUs, handed over tensor by tensor", "gather", "colocated", pieces="tensors"
        ),
        "store": Transport("written to a disk or object store, then loaded", "store", "store"),
        # all weights are gathered and compared as a broadcast gathers them; what crosses the network is little
        "delta": Transport("compared with the last ones, changed weights sent", "delta", "broadcast"),
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


RULES = by_result((
    rule("sync_bytes", weight_sync.weight_bytes, bytes_per_param="sent_width"),
    rule("converted_params", train_step_traffic.share_of_params, ranks="converting"),
    rule("quantised_bytes", weight_sync.weight_bytes, params="converted_params", bytes_per_param=_TRAINED_WIDTH),
    rule("buckets", sync_classes.buckets),
    rule("weight_tensors", sync_classes.weight_tensors),
    rule("expected_bandwidth", weight_sync.achieved_bandwidth, bandwidth="link_bandwidth",
         achievable_fraction="sync_link_share"),
    rule("node_bandwidth", sync_classes.node_bandwidth, adapter_bandwidth="expected_bandwidth"),
    rule("rollout_nodes", sync_classes.node_count, gpus="rollout_gpus"),
    rule("hops", sync_classes.tree_hops, nodes="rollout_nodes"),
    # one pass over one adapter; the number of receivers hardly matters
    rule("broadcast/link_seconds", sync_transports.broadcast_time, bandwidth="expected_bandwidth",
         bucket_latency=0.0),
    rule("delta_bytes", weight_sync.delta_sync_bytes, changed_fraction=CHANGED_FRACTION,
         bytes_per_index=BYTES_PER_INDEX, bytes_per_param="sent_width"),
    rule("delta/link_seconds", sync_transports.broadcast_time, sync_bytes="delta_bytes", bandwidth="expected_bandwidth",
         bucket_latency=0.0),
    # one pass in large buckets over all adapters of a node at once
    rule("pipeline/link_seconds", sync_transports.broadcast_time, bucket_bytes=_ENGINE_BUCKET_BYTES,
         bandwidth="node_bandwidth", bucket_latency=0.0),
    # on the busiest adapter: of a trainer GPU that sends, or of a rollout GPU that receives
    rule("instances", matching.instances_of, gpus="rollout_gpus", gpus_per_instance="instance_gpus"),
    rule("sent_bytes", sync_transports.bytes_sent_per_gpu),
    rule("received_bytes", sync_transports.bytes_received_per_gpu, tensor_parallel="instance_gpus"),
    rule("rdma/link_seconds", sync_transports.rdma_time, sender_bandwidth="expected_bandwidth",
         receiver_bandwidth="expected_bandwidth"),
    rule("gather/link_seconds", sync_transports.gather_time, shards="trainer_gpus", bandwidth="expected_bandwidth"),
    rule("sync_seconds", sync_classes.handled_sync_time, quantising_rate="sync_quantising_rate"),
))  # fmt: skip


def sync_time(work: Work, question: SyncTimeQuestion, values: Mapping[str, Real]) -> Real:
    """
    Seconds of one weight update.

    Args:
        work: `figures.apply` or `figures.numbers`.
        question: The update; on shared GPUs all numbers of them have one reach.
        values: The constants of `constants_sync.STAGE` by name: numbers, or arrays of draws.
    """
    transport, gpu, shape = TRANSPORTS[question.transport], question.gpu.specification, question.model.architecture
    ready = transport.link == "pipeline"  # from host memory, where weights lie quantised already
    narrow = not ready and WIDTHS[question.dtype] < _TRAINED_WIDTH
    fact = gpu.adapter
    reach = reach_of(question.gpu, question.trainer_gpus) if transport.colocated else _BEYOND
    reach = reach if isinstance(reach, int) else reach.max()
    if reach < _BEYOND:
        fact = gpu.scale_up.bandwidth_one_direction
    alone = reach == 0
    decided = {
        "fixed_seconds": "sync_fixed_device" if alone else f"sync_fixed_{transport.fixed}",
        "handling_rate": f"sync_rate_{transport.rate or transport.fixed}",
        "pieces": {"buckets": "buckets", "tensors": "weight_tensors"}.get(transport.pieces, _NOTHING),
        "seconds_per_piece": f"sync_seconds_per_{transport.pieces[:-1]}" if transport.pieces else _NOTHING,
        "handling_ratio": "sync_broadcast_stack" if transport.fixed == "broadcast" else 1.0,
        "layers": float(shape.layers),
        "tensors_per_layer": _TENSORS_PER_LAYER,
        "moe_layers": float(shape.moe.layers if shape.moe else 0),
        "experts": float(shape.moe.experts if shape.moe else 0),
        "matrices": float(shape.moe.matrices if shape.moe else 0),
        "quantised_bytes": None if (narrow if question.converted is None else question.converted) else _NOTHING,
        # who sends its own shards converts them itself, beside the others; gathered weights are converted as a whole
        "converting": maximum(1.0, question.trainer_gpus / _SENDERS) if transport.link == "rdma" else 1.0,
        "link_bandwidth": minimum(fact.value if fact else _HOST_LINK, _gathered(question) if reach else inf),
        "gpus_per_node": gpu.gpus_per_node.value,
        # a store's own rate is the handling rate
        "link_seconds": _NOTHING if transport.link == "store" else f"{transport.link}/link_seconds",
    }
    return Flow(RULES, {**entries(question), **values, **_sent(work, question), **decided}, work)["sync_seconds"]


def _gathered(question: SyncTimeQuestion) -> Real:
    """What cards that gather weights over their hosts reach; without a limit for others."""
    spec, kernels = question.gpu.specification, question.gpu.kernels
    if not (TRANSPORTS[question.transport].colocated and spec.card and kernels):
        return inf
    gathers, link = kernels.nccl["all_gather"], spec.scale_up.bandwidth_one_direction.value / _NCCL_SHARE
    return each(question.trainer_gpus, lambda gpus: link * among(gathers, int(gpus)).link_fraction)


def reach_of(gpu: Gpu, trainer_gpus: Real) -> Real:
    """How far weights go on shared GPUs: 0 never off the GPU, 1 over its fast links, 2 over the adapters of nodes."""
    return 1 * (trainer_gpus > 1) + (trainer_gpus > gpu.specification.joined_gpus.value)


def sync_bytes(work: Work, question: SyncTimeQuestion) -> Worked:
    """Bytes of one copy on the wire."""
    return Flow(RULES, _sent(work, question), work)["sync_bytes"]


def _sent(work: Work, question: SyncTimeQuestion) -> dict[str, Any]:
    """Weights to send, as figures where the answer is explained, and their width."""
    params = plainly(work)(model_size(question.model).params) if question.params is None else question.params
    return {"params": params, "sent_width": WIDTHS[question.dtype]}
