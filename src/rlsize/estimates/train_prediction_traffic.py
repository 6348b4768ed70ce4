"""Seconds that the GPUs of a trainer spend on what moves between them, in one pass over the tokens of a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.equations import train_step, train_step_kernels, train_step_traffic
from rlsize.estimates.figures import added

if TYPE_CHECKING:
    from rlsize.equations._ops import Real
    from rlsize.estimates.train_prediction_question import PassWork
    from rlsize.estimates.train_prediction_setting import Setting

BF16_BYTES = 2.0
_ONCE = ("optimizer", "none")  # shardings whose collectives run once a step


def gathering(setting: Setting, cost: PassWork, busy: Real) -> Real:
    """
    Seconds of the collectives of sharded weights and gradients that computation does not hide.

    Args:
        setting: What is asked, and the constants.
        cost: What the pass is worth.
        busy: Seconds of computation, waiting for the host included, that they may hide behind.
    """
    asked, work = setting.question, setting.work
    collectives = cost.collectives[asked.sharding]
    rounds = 1.0 if asked.sharding in _ONCE or asked.pipeline > 1 else setting.micro_batches()
    ranks = setting.replicas() if asked.sharding == "none" else setting.shards()
    each = work(
        "sharded_bytes",
        train_step_traffic.sharding_bytes,
        params=setting.params_between_shards(),
        bytes_per_param=BF16_BYTES,
        collectives=collectives,
        ranks=ranks,
    )
    transfer = work(
        "gathering_seconds",
        train_step_traffic.sharding_time,
        sharded_bytes=each,
        bandwidth=_network(setting, setting.gpu.gather_fraction, asked.tensor, ranks, "train_gather_link"),
        layers=setting.stage_layers(),
        collectives=collectives,
        ranks=ranks,
        hop_seconds=setting.values["train_hop_seconds"],
    )
    return _exposed(
        setting,
        "exposed_gathering_seconds",
        work("gathering_seconds", train_step_traffic.repeated_time, seconds=transfer, times=rounds),
        busy,
    )


def exchanged(setting: Setting, cost: PassWork, attention: Real) -> Real:
    """
    Seconds of what tensor, context and expert parallelism exchange inside the layers.

    Args:
        setting: What is asked, and the constants.
        cost: What the pass is worth.
        attention: Seconds of attention, behind which keys and values go round.
    """
    parts = [_tensor(setting, cost), _context(setting, cost, attention), _experts(setting, cost)]
    return setting.work(
        "exchanged_seconds", train_step_traffic.exchange_time, tensor=parts[0], context=parts[1], expert=parts[2]
    )


def _network(setting: Setting, fraction: Real, stride: int, ranks: Real, scale: str) -> Real:
    gpu, values, work = setting.gpu, setting.values, setting.work
    return work(
        "network_bytes_per_second",
        train_step_traffic.network_bandwidth,
        scale_up=gpu.scale_up,
        scale_up_fraction=work(
            "link_fraction", train_step_kernels.scaled_fraction, fraction=fraction, scale=values[scale]
        ),
        nic=gpu.nic,
        nic_fraction=values["train_nic_fraction"],
        domain_gpus=gpu.domain_gpus,
        stride=stride,
        ranks=ranks,
    )


def _exposed(setting: Setting, key: str, transfer: Real, busy: Real) -> Real:
    return setting.work(
        key,
        train_step_traffic.exposed_transfer_time,
        transfer=transfer,
        exposed_fraction=setting.values["train_exposed"],
        compute=busy,
    )


def _stride(setting: Setting, ranks: int, inner: int) -> int:
    """The stride of a group that shares nothing between its ranks: beyond the domain each is on its own adapter."""
    return inner if ranks * inner <= setting.domain else setting.domain


def _tensor(setting: Setting, cost: PassWork) -> Real:
    asked, work = setting.question, setting.work
    if asked.tensor == 1:
        return 0.0
    moved = work(
        "tensor_parallel_bytes",
        train_step_traffic.tensor_parallel_bytes,
        tokens=setting.tokens(),
        hidden_size=setting.shape.hidden_size,
        layers=setting.shape.layers,
        reductions=cost.reductions,
        ranks=asked.tensor,
        bytes_per_value=BF16_BYTES,
    )
    network = _network(setting, setting.gpu.tensor_fraction, 1, asked.tensor, "train_tensor_link")
    left = setting.values["train_tensor_overlap"] if asked.overlapped else 1.0
    given = {"sent_bytes": moved, "bandwidth": network, "exposed_fraction": left}
    return work("tensor_parallel_seconds", train_step_traffic.exposed_wire_time, **given)


def _context(setting: Setting, cost: PassWork, attention: Real) -> Real:
    asked, work = setting.question, setting.work
    if asked.context == 1:
        return 0.0
    moved = work(
        "context_parallel_bytes",
        train_step_traffic.context_parallel_bytes,
        tokens=setting.tokens(),
        kv_bytes_per_token=setting.shape.kv_bytes_per_token,
        passes=cost.rounds,
        ranks=asked.context,
    )
    stride = _stride(setting, asked.context, asked.tensor)
    network = _network(setting, setting.gpu.gather_fraction, stride, asked.context, "train_gather_link")
    given = {"sent_bytes": moved, "bandwidth": network, "exposed_fraction": 1.0}
    transfer = work("context_parallel_seconds", train_step_traffic.exposed_wire_time, **given)
    return _exposed(setting, "exposed_context_seconds", transfer, attention)


def _experts(setting: Setting, cost: PassWork) -> Real:
    """Copies to experts of the same node, then those to other nodes."""
    asked, shape, work = setting.question, setting.shape, setting.work
    if asked.expert == 1:
        return 0.0
    near = min(asked.expert, setting.domain)
    given = {"experts_per_token": shape.experts_per_token, "ranks": near}
    inside = work("copies_inside", train_step_traffic.copies_inside, **given)
    parts = [_expert_time(setting, cost, inside, 1)]
    if asked.expert > setting.domain:
        domains = work("domains", train_step.model_replicas, gpus=asked.expert, gpus_per_replica=setting.domain)
        given = {"experts_per_token": shape.experts_per_token, "domains": domains}
        beyond = work("copies_beyond", train_step_traffic.copies_beyond, **given)
        parts.append(_expert_time(setting, cost, beyond, setting.domain))
    exchanged = added(work, "expert_bytes_seconds", parts)
    given = {"seconds": exchanged, "times": setting.values["train_exchange_excess"]}
    return work("expert_parallel_seconds", train_step_traffic.repeated_time, **given)


def _expert_time(setting: Setting, cost: PassWork, copies: Real, stride: int) -> Real:
    """Seconds of one kind of copies, between GPUs that lie `stride` apart."""
    work, shape = setting.work, setting.shape
    moved = work(
        "expert_parallel_bytes",
        train_step_traffic.expert_parallel_bytes,
        tokens=setting.tokens(),
        hidden_size=shape.hidden_size,
        layers=shape.expert_layers,
        copies=copies,
        exchanges=cost.exchanges,
        bytes_per_value=BF16_BYTES,
    )
    ranks = min(setting.question.expert, setting.domain) if stride == 1 else setting.question.expert
    network = _network(setting, setting.gpu.exchange_fraction, stride, ranks, "train_gather_link")
    given = {"sent_bytes": moved, "bandwidth": network, "exposed_fraction": 1.0}
    return work("expert_bytes_seconds", train_step_traffic.exposed_wire_time, **given)
