"""
Which equation gives what of a training step, for `estimates.flow` to resolve.

What a model, a GPU, a pass and the constants bring has their names; what `train_prediction` decides by layout, number
type and recomputation is known to it under the other names that no rule gives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.equations import activations, matching, memory, memory_fit, mixture_of_experts, training_flops
from rlsize.equations import train_step as step
from rlsize.equations import train_step_kernels as kernels
from rlsize.equations import train_step_traffic as traffic
from rlsize.estimates.flow import by_result, rule

if TYPE_CHECKING:
    from rlsize.estimates.flow import Rule

ATTENDING = ("full", "sliding", "latent")
_FULLY = 3  # forward passes that forward and backward are worth in model FLOPs


def _network(of: str, fraction: str, scale: str, stride: str | float, ranks: str) -> tuple[Rule, ...]:
    """Bandwidth between GPUs that lie `stride` apart, at the share that trainers reach of what was measured."""
    link = f"{of}/link_fraction"
    return (
        rule(link, kernels.scaled_fraction, fraction=fraction, scale=scale),
        rule(
            f"{of}/network_bytes_per_second",
            traffic.network_bandwidth,
            scale_up_fraction=link,
            nic_fraction="train_nic_fraction",
            stride=stride,
            ranks=ranks,
        ),
    )


def _wire(result: str, sent: str, of: str, exposed: str | float = 1.0) -> Rule:
    """Seconds of bytes on the wire, of which a share is left to wait for."""
    network = f"{of}/network_bytes_per_second"
    wire = traffic.exposed_wire_time
    return rule(result, wire, sent_bytes=sent, bandwidth=network, exposed_fraction=exposed)


def _exposed(result: str, transfer: str, busy: str) -> Rule:
    """Seconds of a transfer that computation does not hide."""
    hidden = traffic.exposed_transfer_time
    return rule(result, hidden, transfer=transfer, exposed_fraction="train_exposed", compute=busy)


def _repeated(result: str, seconds: str, times: str) -> Rule:
    return rule(result, traffic.repeated_time, seconds=seconds, times=times)


def _copied(of: str, stride: str | float, ranks: str) -> tuple[Rule, ...]:
    """Copies of tokens for experts: inside the fast network, or beyond it."""
    sent = f"{of}/expert_parallel_bytes"
    bytes_sent = traffic.expert_parallel_bytes
    return (
        *_network(of, "exchange_fraction", "gather_link", stride, ranks),
        rule(sent, bytes_sent, layers="expert_layers", copies=f"copies_{of}", exchanges="reductions"),
        _wire(f"{of}/expert_bytes_seconds", sent, of),
    )


TRAFFIC = (
    rule("card/gather_link", kernels.scaled_fraction, fraction="train_gather_link", scale="train_card_link"),
    rule("card/tensor_link", kernels.scaled_fraction, fraction="train_tensor_link", scale="train_card_link"),
    rule("params_between_shards", traffic.params_between_shards, dense="dense_params", experts="expert_params"),
    *_network("gathering", "gather_fraction", "gather_link", "tensor_parallel", "sharding_ranks"),
    rule("sharded_bytes", traffic.sharding_bytes, params="params_between_shards", ranks="sharding_ranks"),
    rule(
        "once/gathering_seconds",
        traffic.sharding_time,
        bandwidth="gathering/network_bytes_per_second",
        layers="stage_layers",
        ranks="sharding_ranks",
        hop_seconds="train_hop_seconds",
    ),
    _repeated("gathering_seconds", "once/gathering_seconds", "gathering_rounds"),
    _exposed("exposed_gathering_seconds", "gathering_seconds", "running_seconds"),
    rule("tensor_parallel_bytes", traffic.tensor_parallel_bytes, ranks="tensor_parallel"),
    *_network("tensor", "tensor_fraction", "tensor_link", 1, "tensor_parallel"),
    _wire("tensor_parallel_seconds", "tensor_parallel_bytes", "tensor", "tensor_exposed"),
    rule("context_parallel_bytes", traffic.context_parallel_bytes, passes="rounds", ranks="context_parallel"),
    *_network("context", "gather_fraction", "gather_link", "context_stride", "context_parallel"),
    _wire("context_parallel_seconds", "context_parallel_bytes", "context"),
    _exposed("exposed_context_seconds", "context_parallel_seconds", "attention_seconds"),
    rule("domains", step.model_replicas, gpus="expert_parallel", gpus_per_replica="domain"),
    rule("once/copies_inside", mixture_of_experts.copies_sent, ranks="near_ranks"),
    rule("once/copies_beyond", mixture_of_experts.copies_sent, ranks="domains"),
    rule("each/copies_inside", mixture_of_experts.copies_for_each_expert, ranks="near_ranks"),
    rule("each/copies_beyond", mixture_of_experts.copies_for_each_expert, ranks="domains"),
    *_copied("inside", 1, "near_ranks"),
    *_copied("beyond", "domain", "expert_parallel"),
    _repeated("expert_parallel_seconds", "expert_bytes_seconds", "train_exchange_excess"),
    rule(
        "exchanged_seconds",
        traffic.exchange_time,
        tensor="tensor_parallel_seconds",
        context="exposed_context_seconds",
        expert="expert_parallel_seconds",
    ),
)
"""What sharding, and tensor, context and expert parallelism send."""


def _rate(of: str, peak: str, fraction: str, joules: str) -> tuple[Rule, ...]:
    """FLOPs a second of large matrix products."""
    share = f"{of}/compute_fraction"
    limited = kernels.power_limited_rate
    return (
        rule(share, kernels.scaled_fraction, fraction=fraction, scale="train_gemm"),
        rule(f"{of}/matmul_flops", limited, peak=peak, compute_fraction=share, joules_per_flop=joules),
    )


def _product(of: str, params: str, passes: str, rate: str) -> tuple[Rule, ...]:
    """Seconds of the matrix products of some parameters."""
    flops = f"{of}/flops_per_token"
    return (
        rule(flops, matching.generation_flops_per_token, active_params=params),
        rule(f"{of}_seconds", kernels.product_time, flops_per_token=flops, passes=passes, rate=rate),
    )


def _streamed(result: str, moved: str, passes: str) -> Rule:
    """Seconds of bytes that element-wise work reads and writes."""
    return rule(result, kernels.streaming_time, bytes_per_token=moved, passes=passes)


def _attending(kind: str) -> tuple[Rule, ...]:
    """Attention scores of layers that attend in one way, at the length that they see; masks and windows save theirs."""
    flops, keys = f"{kind}_attention_flops_per_token", f"{kind}/keys_per_query"
    own = {name: f"{kind}/{name}" for name in ("layers", "heads", "query_key_dim", "value_dim", "keys_per_query")}
    each = training_flops.attention_flops_per_token
    return (
        rule(f"{kind}/pairs", training_flops.causal_pairs, length="length_seen", window=f"{kind}/window"),
        rule(keys, training_flops.keys_per_query, pairs=f"{kind}/pairs", tokens="length_seen"),
        rule(f"forward/{flops}", each, **own, passes=1.0),
        rule(f"model/{flops}", each, **own, passes=_FULLY),
        rule(
            f"{kind}/attention_seconds",
            kernels.product_time,
            flops_per_token=f"forward/{flops}",
            passes="attention_passes",
            rate="attention_flops",
        ),
    )


COMPUTE = (
    rule(
        "new/joules_per_flop",
        kernels.lower_energy,
        joules_per_flop="train_joules_per_flop",
        energy_fraction="train_new_energy",
    ),
    rule(
        "narrow/joules_per_flop", kernels.lower_energy, joules_per_flop="wide_joules", energy_fraction="narrow_energy"
    ),
    rule("reached/expert_fraction", kernels.scaled_fraction, fraction="expert_fraction", scale="train_experts"),
    *_rate("wide", "bf16_peak", "bf16_fraction", "wide_joules"),
    *_rate("narrow", "matmul_peak", "matmul_fraction", "narrow_joules"),
    *_rate("expert", "expert_peak", "reached/expert_fraction", "narrow_joules"),
    *_product("linear", "linear_params", "linear_passes", "linear_rate"),
    *_product("head", "head_params", "head_passes", "wide/matmul_flops"),
    *_product("expert", "expert_active_params", "linear_passes", "expert/matmul_flops"),
    rule("experts_held", traffic.share_of_params, params="expert_params", ranks="expert_ranks"),
    rule("experts_read_seconds", kernels.weight_reading_time, params="experts_held", passes="linear_passes"),
    rule("linear_held", traffic.share_of_params, params="linear_params", ranks="dense_ranks"),
    rule(
        "dequantising_seconds",
        kernels.weight_reading_time,
        params="linear_held",
        bytes_per_param="dequantised_bytes",
        passes="linear_passes",
    ),
    rule("length_seen", kernels.length_seen_by_tokens),
    rule("reached/attention_fraction", kernels.scaled_fraction, fraction="attention_fraction", scale="attention_scale"),
    rule(
        "second/attention_scale", kernels.scaled_fraction, fraction="recorded_attention", scale="train_attention_second"
    ),
    rule(
        "older/attention_scale",
        kernels.scaled_fraction,
        fraction="second/attention_scale",
        scale="train_attention_older",
    ),
    rule(
        "attention_flops",
        kernels.saturating_rate,
        peak="bf16_peak",
        compute_fraction="reached/attention_fraction",
        length="length_seen",
    ),
    *(one for kind in ATTENDING for one in _attending(kind)),
    rule("elementwise_bytes_per_token", kernels.elementwise_bytes_per_token, hidden_copies="train_hidden_copies"),
    rule(
        "eager_bytes_per_token",
        kernels.eager_bytes_per_token,
        fused="elementwise_bytes_per_token",
        factor="train_eager",
    ),
    rule(
        "adapter_bytes_per_token",
        kernels.adapter_bytes_per_token,
        values="adapted_values",
        bytes_per_value="adapter_bytes",
    ),
    rule(
        "logit_bytes_per_token",
        kernels.logit_bytes_per_token,
        vocabulary="vocab_size",
        bytes_per_logit="train_logit_bytes",
    ),
    rule(
        "quantising_bytes_per_token",
        kernels.quantising_bytes_per_token,
        tensor_ranks="tensor_parallel",
        bytes_per_value="quantising_bytes_per_value",
    ),
    _streamed("norm_seconds", "layer_bytes_per_token", "streamed_passes"),
    _streamed("logits/loss_seconds", "logit_bytes_per_token", "logit_passes"),
    _streamed("adapter_seconds", "adapter_bytes_per_token", "streamed_passes"),
    _streamed("quantising_seconds", "quantising_bytes_per_token", "linear_passes"),
)
"""Matrix products, attention scores and element-wise work."""

PASS = {
    "matmul": "matmul_seconds",
    "attention": "attention_seconds",
    "elementwise": "elementwise_seconds",
    "exchanged": "exchanged_seconds",
    "host_wait": "host_wait_seconds",
    "gathering": "exposed_gathering_seconds",
    "bubble": "bubble_seconds",
}
"""The parts of a pass."""

BESIDE = {
    "loss": "slowdown/loss_seconds",
    "straggling": "straggling_seconds",
    "optimizer": "optimizer_seconds",
    "offload": "offload_seconds",
    "fixed": "fixed_seconds",
}
"""What an update takes beside its pass."""

RULES = by_result(
    (
        rule("tokens_per_gpu", kernels.tokens_per_gpu),
        rule("padded/tokens_per_gpu", kernels.tokens_per_gpu, length="longest_tokens"),
        rule("data_parallel", step.model_replicas, gpus_per_replica="replica_gpus"),
        rule("shards", step.model_replicas, gpus_per_replica="dense_ranks"),
        rule("replica_tokens", kernels.tokens_per_gpu, gpus="data_parallel"),
        rule("micro_batches", step.micro_batches),
        rule("stage_layers", memory_fit.layers_per_stage),
        rule("even_stages", memory_fit.even_stages),
        *TRAFFIC,
        *COMPUTE,
        rule(
            "host_seconds",
            step.kernel_launch_time,
            layers="stage_layers",
            passes="streamed_passes",
            seconds_per_layer="layer_launch_seconds",
        ),
        rule(
            "experts_launch_seconds",
            step.experts_launch_time,
            ranks="expert_parallel",
            seconds_per_expert="expert_launch_seconds",
        ),
        _repeated("tensor/expert_launch_seconds", "train_expert_launch", "train_tensor_scaling_launches"),
        rule("host_wait_seconds", step.host_wait, host="host_seconds", busy="compute_seconds"),
        rule("bubble_seconds", step.pipeline_bubble_time, busy="stage_seconds", stages="pipeline_parallel"),
        rule("pass_seconds", step.pass_time, **PASS),
        rule("unseen/train_slowdown", kernels.scaled_fraction, fraction="own_slowdown", scale="train_unseen_slowdown"),
        rule("slowdown/loss_seconds", step.slowdown_loss, seconds="pass_seconds", slowdown="train_slowdown"),
        rule("nodes", step.model_replicas, gpus_per_replica="domain_gpus"),
        rule("straggling_seconds", step.straggling_time, busy="pass_seconds", fraction_per_doubling="train_straggling"),
        rule("params_updated", traffic.share_of_params, params="params_between_shards", ranks="shards"),
        rule(
            "update_bytes_per_param",
            step.update_bytes_per_param,
            bytes_per_gradient="gradient_bytes",
            bytes_per_weight="bytes_per_value",
            bytes_per_state="state_bytes",
        ),
        rule(
            "optimizer_update_seconds",
            step.optimizer_update_time,
            params="own_params",
            bytes_per_param="update_bytes_per_param",
        ),
        _repeated("optimizer_seconds", "optimizer_update_seconds", "optimizer_steps"),
        rule(
            "offloaded_bytes", memory.trainer_state_bytes, params="own_params", training_bytes_per_param="state_bytes"
        ),
        rule("once/offload_seconds", memory.optimizer_offload_time, bandwidth="train_host_copy"),
        _repeated("state_offload_seconds", "once/offload_seconds", "optimizer_steps"),
        rule(
            "weight_offload_seconds",
            memory.weight_offload_time,
            params="held_params",
            bytes_per_gradient="gradient_bytes",
            bandwidth="pcie",
        ),
        rule("hidden_copies", activations.gated_mlp_hidden_copies, intermediate_size="mlp_width"),
        rule(
            "activation_move_seconds",
            memory.activation_offload_time,
            bytes_per_activation="bytes_per_value",
            hidden_copies="moved_copies",
            bandwidth="pcie",
        ),
        _exposed("activation_offload_seconds", "activation_move_seconds", "pass_seconds"),
        _repeated("fixed_seconds", "train_fixed_seconds", "optimizer_steps"),
        rule("handed_tokens", kernels.tokens_per_gpu, length="longest_tokens", gpus=1),
        _repeated("handling_seconds", "rl_handling_seconds", "handed_tokens"),
        rule("update_seconds", step.update_time, **BESIDE),
        rule(
            "update_tokens_per_second_per_gpu",
            matching.consumption,
            tokens_per_step="tokens_per_gpu",
            train_seconds="update_seconds",
        ),
        rule("model/flops_per_token", matching.training_flops_per_token, active_params="matmul_params"),
        rule(
            "mfu",
            matching.implied_mfu,
            tokens_per_second="update_tokens_per_second_per_gpu",
            flops_per_token="model_flops_per_token",
            gpus=1,
            peak_flops="bf16_peak",
        ),
    )
)
