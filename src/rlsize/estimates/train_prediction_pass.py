"""Time of one pass over the tokens of a training step, part by part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.equations import matching, train_step, train_step_kernels, train_step_traffic, training_flops
from rlsize.estimates.figures import added
from rlsize.estimates.train_prediction_traffic import exchanged, gathering

if TYPE_CHECKING:
    from rlsize.equations._ops import Real
    from rlsize.estimates.train_prediction_question import PassWork
    from rlsize.estimates.train_prediction_setting import Setting

BF16_BYTES = 2.0


def pass_parts(setting: Setting, cost: PassWork) -> dict[str, Real]:
    """The parts of one pass, in seconds: the arguments of `train_step.pass_time`, less what the layers add up to."""
    work, asked = setting.work, setting.question
    parts = {
        "matmul": _matmul(setting, cost),
        "attention": _attention(setting, cost),
        "elementwise": _elementwise(setting, cost),
    }
    busy = added(work, "compute_seconds", list(parts.values()))
    parts["exchanged"] = exchanged(setting, cost, parts["attention"])
    launches = work(
        "host_seconds",
        train_step.kernel_launch_time,
        micro_batches=setting.micro_batches(),
        layers=setting.stage_layers(),
        passes=cost.streams,
        seconds_per_layer=setting.values["train_launch_fused" if asked.fused else "train_launch"],
    )
    parts["host_wait"] = work("host_wait_seconds", train_step.host_wait, host=launches, busy=busy)
    running = added(work, "running_seconds", [busy, parts["host_wait"]])
    parts["gathering"] = gathering(setting, cost, running)
    parts["bubble"] = work(
        "bubble_seconds",
        train_step.pipeline_bubble_time,
        busy=added(work, "stage_seconds", [running, parts["exchanged"]]),
        stages=asked.pipeline,
        micro_batches=setting.micro_batches(),
        virtual_stages=asked.virtual_stages,
    )
    return parts


def _rate(setting: Setting, peak: Real, fraction: Real, *, fp8: bool) -> Real:
    work, values = setting.work, setting.values
    joules = values["train_joules_per_flop"]
    savings = [("train_new_energy", setting.gpu.newest), ("train_fp8_energy", fp8)]
    for name in (name for name, holds in savings if holds):
        given = {"joules_per_flop": joules, "energy_fraction": values[name]}
        joules = work("joules_per_flop", train_step_kernels.lower_energy, **given)
    return work(
        "matmul_flops",
        train_step_kernels.power_limited_rate,
        peak=peak,
        compute_fraction=work(
            "compute_fraction",
            train_step_kernels.scaled_fraction,
            fraction=fraction,
            scale=values["train_gemm"],
        ),
        power=setting.gpu.power,
        joules_per_flop=joules,
    )


def _matmul(setting: Setting, cost: PassWork) -> Real:
    """Seconds of matrix products: linear layers, the output head, experts and the reading of their weights."""
    work, shape, gpu, fp8 = setting.work, setting.shape, setting.gpu, setting.question.dtype == "fp8"
    usual = _rate(setting, gpu.bf16_peak, gpu.bf16_fraction, fp8=False)
    narrow = _rate(setting, gpu.matmul_peak, gpu.matmul_fraction, fp8=True) if fp8 else usual
    kinds = [
        ("linear_seconds", shape.linear_params, cost.linear, narrow),
        ("head_seconds", shape.head_params, cost.head, usual),
    ]
    if shape.has_experts:
        experts = work(
            "expert_fraction",
            train_step_kernels.scaled_fraction,
            fraction=gpu.expert_fraction,
            scale=setting.values["train_experts"],
        )
        rate = _rate(setting, gpu.expert_peak, experts, fp8=fp8)
        kinds.append(("expert_seconds", shape.expert_active_params, cost.linear, rate))
    parts = [
        work(
            key,
            train_step_kernels.product_time,
            flops_per_token=work("flops_per_token", matching.generation_flops_per_token, active_params=params),
            passes=passes,
            tokens=setting.tokens(),
            rate=rate,
        )
        for key, params, passes, rate in kinds
    ]
    if shape.has_experts:
        parts.append(_experts_read(setting, cost))
    return added(work, "matmul_seconds", parts)


def _experts_read(setting: Setting, cost: PassWork) -> Real:
    asked = setting.question
    ranks = asked.pipeline * (asked.expert if asked.expert > 1 else asked.tensor)
    held = setting.work(
        "experts_held", train_step_traffic.share_of_params, params=setting.shape.expert_params, ranks=ranks
    )
    return setting.work(
        "experts_read_seconds",
        train_step_kernels.weight_reading_time,
        params=held,
        bytes_per_param=BF16_BYTES,
        passes=cost.linear,
        micro_batches=setting.micro_batches(),
        bandwidth=setting.gpu.memory_bandwidth,
        memory_fraction=setting.values["train_memory_fraction"],
    )


def _length_seen(setting: Setting) -> Real:
    asked = setting.question
    given = {"length": asked.tokens, "length_cv": asked.tokens_cv}
    return setting.work("length_seen", train_step_kernels.length_seen_by_tokens, **given)


def attention_flops(setting: Setting, passes: float) -> list[Real]:
    """FLOPs of attention scores for a token, for each way in which layers attend; masks and windows save theirs."""
    work, seen = setting.work, _length_seen(setting)
    found = []
    for kind in setting.shape.attending:
        pairs = work("pairs", training_flops.causal_pairs, length=seen, window=kind.window or seen)
        flops = work(
            f"{kind.name}_attention_flops_per_token",
            training_flops.attention_flops_per_token,
            layers=kind.layers,
            heads=kind.heads,
            query_key_dim=kind.query_key_dim,
            value_dim=kind.value_dim,
            keys_per_query=work("keys_per_query", training_flops.keys_per_query, pairs=pairs, tokens=seen),
            passes=passes,
        )
        found.append(flops)
    return found


def _attention(setting: Setting, cost: PassWork) -> Real:
    """Seconds of attention scores, each kind of layer at the length that it sees."""
    work, gpu, values = setting.work, setting.gpu, setting.values
    older = gpu.recent and not setting.question.native_attention
    scale = values["train_attention_recent" if older else "train_attention"]
    fraction = work(
        "attention_fraction", train_step_kernels.scaled_fraction, fraction=gpu.attention_fraction, scale=scale
    )
    rate = work(
        "attention_flops",
        train_step_kernels.saturating_rate,
        peak=gpu.bf16_peak,
        compute_fraction=fraction,
        length=_length_seen(setting),
        half_length=gpu.half_length,
    )
    given = {"passes": cost.attention, "tokens": setting.tokens(), "rate": rate}
    parts = [
        work("attention_seconds", train_step_kernels.product_time, flops_per_token=flops, **given)
        for flops in attention_flops(setting, 1.0)
    ]
    return added(work, "attention_seconds", parts or [0.0])


def _elementwise(setting: Setting, cost: PassWork) -> Real:
    """Seconds of norms, activation functions and the like, of quantisation to fp8, and of the loss."""
    work, asked, shape, gpu, values = setting.work, setting.question, setting.shape, setting.gpu, setting.values
    layers = work(
        "elementwise_bytes_per_token",
        train_step_kernels.elementwise_bytes_per_token,
        hidden_size=shape.hidden_size,
        layers=shape.layers,
        hidden_copies=values["train_hidden_copies"],
        dense_layers=shape.dense_layers,
        dense_width=shape.dense_width,
        expert_layers=shape.expert_layers,
        expert_width=shape.expert_width,
        experts_per_token=shape.experts_per_token,
        mlp_copies=shape.mlp_copies,
        bytes_per_value=BF16_BYTES,
    )
    if not asked.fused:
        given = {"fused": layers, "factor": values["train_eager"]}
        layers = work("eager_bytes_per_token", train_step_kernels.eager_bytes_per_token, **given)
    loss = work(
        "logit_bytes_per_token",
        train_step_kernels.logit_bytes_per_token,
        vocabulary=shape.vocab_size,
        bytes_per_logit=values["train_logit_bytes"],
    )
    kinds = [("norm_seconds", layers, cost.streams), ("loss_seconds", loss, cost.logits)]
    if asked.dtype == "fp8":
        kinds.append(("quantising_seconds", _quantised(setting), cost.linear))
    parts = [
        work(
            key,
            train_step_kernels.streaming_time,
            bytes_per_token=moved,
            passes=passes,
            tokens=setting.tokens(),
            bandwidth=gpu.memory_bandwidth,
            memory_fraction=values["train_memory_fraction"],
        )
        for key, moved, passes in kinds
    ]
    return added(work, "elementwise_seconds", parts)


def _quantised(setting: Setting) -> Real:
    asked, shape = setting.question, setting.shape
    return setting.work(
        "quantising_bytes_per_token",
        train_step_kernels.quantising_bytes_per_token,
        layers=shape.layers,
        hidden_size=shape.hidden_size,
        attention_width=shape.attention_width,
        mlp_width=shape.mlp_width,
        tensor_ranks=asked.tensor,
        bytes_per_value=setting.values["train_row_quantising" if asked.row_scaling else "train_quantising"],
    )
