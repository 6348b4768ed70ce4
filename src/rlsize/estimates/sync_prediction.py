"""How long a weight update takes by the class of its transport, from model, GPUs and placement."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from rlsize.equations import sync_classes, weight_sync
from rlsize.estimates.engine_shape import plainly
from rlsize.estimates.model_size import model_size
from rlsize.estimates.sync_path import LINKS
from rlsize.facts.quantisation import WIDTHS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlsize.equations._ops import Real
    from rlsize.facts.gpu import Gpu
    from rlsize.facts.model import Model

    Work = Callable[..., Real]

_TRAINED_WIDTH = 2.0  # of a weight before it is quantised for the wire
_TENSORS_PER_LAYER = 9.0  # q, k, v, o, two norms, gate, up, down
_BUCKET_BYTES = 1e9
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


def sync_time(work: Work, question: SyncTimeQuestion, values: Mapping[str, Real]) -> Real:
    """
    Seconds of one weight update.

    Args:
        work: `figures.apply` or `figures.numbers`.
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
        link_seconds=LINKS[transport.link](work, question, sent, values["sync_link_share"]),
        quantised_bytes=_quantised(work, question, transport),
        quantising_rate=values["sync_quantising_rate"],
    )


def sync_bytes(work: Work, question: SyncTimeQuestion) -> Real:
    """Bytes of one copy on the wire."""
    return work(
        "sync_bytes", weight_sync.weight_bytes, params=_params(work, question), bytes_per_param=WIDTHS[question.dtype]
    )


def _params(work: Work, question: SyncTimeQuestion) -> Real:
    """Weights to send; figures where the answer is explained."""
    if question.params is not None:
        return question.params
    return plainly(work)(model_size(question.model).params)


def _pieces(
    work: Work, question: SyncTimeQuestion, transport: Transport, sent: Real, values: Mapping[str, Real]
) -> tuple[Real, Real]:
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


def _quantised(work: Work, question: SyncTimeQuestion, transport: Transport) -> Real:
    """Bytes that are converted on the way; none where the wire is as wide as the trainer's weights."""
    narrow = not transport.ready and WIDTHS[question.dtype] < _TRAINED_WIDTH
    if not (narrow if question.converted is None else question.converted):
        return _NOTHING
    width = _TRAINED_WIDTH
    return work("quantised_bytes", weight_sync.weight_bytes, params=_params(work, question), bytes_per_param=width)
