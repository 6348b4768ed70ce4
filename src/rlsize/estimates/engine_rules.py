"""Which equations give a decode step of an engine, term by term, and what a prompt costs it, from what it runs."""

from __future__ import annotations

from rlsize.equations import (
    decode_step,
    kernel_time,
    kv_cache,
    mixture_of_experts,
    prefill,
    step_overheads,
    training_flops,
)
from rlsize.estimates.flow import Rule, by_result, rule

_LOGIT = 4.0  # bytes of a logit, in fp32
_ACTIVATION = 2.0  # bytes of an activation

STEP = {
    "matmul": "step/matmul_seconds",
    "head": "step/head_seconds",
    "experts": "step/expert_seconds",
    "attention": "step/attention_seconds",
    "recurrence": "recurrence_seconds",
    "all_reduce": "step/all_reduce_seconds",
    "exchange": "step/exchange_seconds",
    "small_operations": "step/small_operations_seconds",
    "sampling": "sampling_seconds",
    "host": "host_seconds",
    "drafting": "drafting_seconds",
}
"""The parts of a decode step."""
LAYERS = tuple(key for part, key in STEP.items() if part not in {"head", "sampling", "host", "drafting"})
"""Of these, what layers take."""
_PROMPT = {
    "matmul": "prompt_matmul_seconds",
    "experts": "experts/prompt_product_seconds",
    "experts_read": "prompt_experts_read_seconds",
    "attention": "prompt_attention_seconds",
    "recurrence": "prompt_walk_seconds",
    "all_reduce": "prompt_all_reduce_seconds",
    "exchange": "prompt_exchange_seconds",
    "small_operations": "prompt_small_operations_seconds",
}


def _achieved(of: str, slowdown: str, rate: str = "") -> Rule:
    """A kernel's rate inside an engine."""
    found = kernel_time.achieved_rate
    return rule(f"{of}/achieved_rate", found, peak=rate or of, fraction=1.0, slowdown=f"rollout_{slowdown}")


def _slowed(of: str, slowdown: str) -> Rule:
    """A kernel's fixed time inside an engine."""
    return rule(f"{of}/start_seconds", kernel_time.slowed, seconds=of, slowdown=f"rollout_{slowdown}")


def _flops(result: str, tokens: str, each: str) -> Rule:
    return rule(result, prefill.token_flops, tokens=tokens, flops_per_token=each)


def _product(of: str, result: str, flops: str, launches: str | float, moved: str, sharpness: str | float) -> Rule:
    """A matrix product of a decode step, by what its kernel is called among the engine's numbers."""
    return rule(
        result,
        kernel_time.matmul_time,
        launches=launches,
        launch_seconds=f"{of}_seconds",
        bytes_moved=moved,
        memory_rate=f"{of}_memory/achieved_rate",
        flops=flops,
        compute_rate=f"{of}_compute/achieved_rate",
        sharpness=sharpness,
    )


def _quantised(result: str, tokens: str, product: str, both: str) -> tuple[Rule, ...]:
    """Activations are quantised before their product."""
    time = kernel_time.quantise_time
    return (
        rule(result, time, passes="quantise_passes", tokens=tokens, bytes_per_token="dense_inner"),
        rule(both, decode_step.both_times, first=product, second=result),
    )


def _prompt_product(of: str, tokens: str, each: str, rate: str, slowdown: str) -> tuple[Rule, ...]:
    flops, reached = f"{of}/prompt_flops", f"{of}/prompt"
    return (
        _flops(flops, tokens, each),
        _achieved(reached, slowdown, rate),
        rule(
            f"{of}/prompt_product_seconds", prefill.compute_time, flops=flops, compute_rate=f"{reached}/achieved_rate"
        ),
    )


def _moved(
    prefix: str, tokens: str, all_reduce: str | float, exchange: str | float, operations: str | float, sends: str
) -> tuple[Rule, ...]:
    """
    What moves the residual stream: all-reduces and exchanges among GPUs, and small kernels.

    What these cost before they move a byte is left out for a prefill, whose launches are counted apart.

    Args:
        prefix: Of the names of the results.
        tokens: Tokens that a data-parallel rank works on.
        all_reduce: Time of a small all-reduce. [s]
        exchange: Time of an exchange without load. [s]
        operations: Small kernels of a layer that have a start. [1]
        sends: What a token sends to experts in a layer. [B/token]
    """
    stream, sent = f"{prefix}stream_bytes", f"{tokens}/sent_bytes"
    return (
        rule(stream, step_overheads.stream_bytes, tokens=tokens, hidden_size="hidden_size", width=_ACTIVATION),
        rule(
            f"{prefix}all_reduce_seconds",
            step_overheads.all_reduce_time,
            messages="all_reduces",
            latency=all_reduce,
            message_bytes=stream,
            ranks="tensor",
            bandwidth="all_reduce_rate/achieved_rate",
        ),
        rule(sent, step_overheads.sent_bytes, tokens=tokens, bytes_per_token=sends),
        rule(
            f"{prefix}exchange_seconds",
            step_overheads.expert_exchange_time,
            layers="exchange_layers",
            latency=exchange,
            sent_bytes=sent,
            bandwidth="exchange_rate/achieved_rate",
        ),
        rule(
            f"{prefix}small_operations_seconds",
            step_overheads.small_operations_time,
            operations=operations,
            passes="rollout_stream_passes",
            activation_bytes=stream,
        ),
    )


RATES = (
    _achieved("gemm_memory", "weight_slowdown"),
    _achieved("gemm_compute", "matmul_slowdown"),
    _achieved("head_memory", "weight_slowdown"),
    _achieved("head_compute", "matmul_slowdown"),
    _achieved("moe_memory", "expert_weight_slowdown"),
    _achieved("moe_compute", "expert_slowdown"),
    _achieved("attention_memory", "attention_slowdown"),
    _achieved("attention_compute", "attention_slowdown"),
    rule("all_reduce_rate/achieved_rate", kernel_time.achieved_rate, peak="all_reduce_rate", fraction=1.0,
         slowdown="all_reduce_slowdown"),
    rule("exchange_rate/achieved_rate", kernel_time.achieved_rate, peak="exchange_rate", fraction=1.0,
         slowdown="exchange_slowdown"),
    _achieved("prefill_attention_rate", "prefill_attention_slowdown"),
    _slowed("all_reduce_seconds", "all_reduce_start"),
    _slowed("sequence_seconds", "attention_sequence"),
)  # fmt: skip
"""What kernels reach inside an engine."""

DECODE = (
    rule("sequences_per_rank", decode_step.sequences_per_rank, data_parallel="data"),
    rule("step_tokens", decode_step.step_tokens),
    rule("tokens_per_rank", decode_step.sequences_per_rank, sequences="step_tokens", data_parallel="data"),
    _flops("matmul_flops", "tokens_per_rank", "dense_flops"),
    _product("gemm", "product/matmul_seconds", "matmul_flops", "gemms", "dense_bytes", "gemm_sharpness"),
    *_quantised("quantise_seconds", "tokens_per_rank", "product/matmul_seconds", "step/matmul_seconds"),
    _flops("step/head_flops", "tokens_per_rank", "head_flops"),
    _product("head", "step/head_seconds", "step/head_flops", 1.0, "head_bytes", "head_sharpness"),
    rule("micro_batch_tokens", decode_step.sequences_per_rank, sequences="step_tokens", data_parallel="stages"),
    rule("distinct_tokens", decode_step.distinct_tokens, tokens="micro_batch_tokens",
         diversity="rollout_routing_diversity"),
    rule("experts_touched", mixture_of_experts.experts_touched, batch_tokens="distinct_tokens"),
    rule("step/expert_bytes", decode_step.touched_expert_bytes, bytes_per_expert="expert_bytes"),
    _flops("step/expert_flops", "step_tokens", "expert_flops"),
    _product("moe", "step/expert_seconds", "step/expert_flops", "moe_layers", "step/expert_bytes", 1.0),
    rule("context_read", decode_step.tokens_read, most_tokens="index_topk"),
    rule("index_read_bytes", decode_step.index_bytes, bytes_per_token="index_bytes_per_token"),
    rule("sequence_read_bytes", kv_cache.sequence_kv_bytes, tokens="context_read",
         kv_bytes_per_token="kv_bytes_per_token", sliding_bytes_per_token="window_bytes_per_token",
         window="window_tokens", state_bytes="index_read_bytes"),
    rule("live_kv_bytes", decode_step.live_kv_bytes, sequences="sequences_per_rank",
         sequence_bytes="sequence_read_bytes"),
    _flops("latent_flops_per_sequence", "context_read", "latent_flops"),
    rule("step/latent_flops", decode_step.live_flops, sequences="tokens_per_rank",
         sequence_flops="latent_flops_per_sequence"),
    rule("step/attention_seconds", kernel_time.decode_attention_time, layers="attention_layers",
         fixed_seconds="attention_seconds", kv_bytes="live_kv_bytes", memory_rate="attention_memory/achieved_rate",
         flops="step/latent_flops", compute_rate="attention_compute/achieved_rate",
         seconds_per_sequence="sequence_seconds/start_seconds", sequences="sequences_per_rank"),
    rule("step/state_bytes", decode_step.live_kv_bytes, sequences="sequences_per_rank", sequence_bytes="state_bytes"),
    rule("recurrence_seconds", kernel_time.matmul_time, launches="recurrent_layers", launch_seconds="recurrent_seconds",
         bytes_moved="step/state_bytes", memory_rate="recurrent_memory", flops=0.0, compute_rate="gemm_compute",
         sharpness=1.0),
    *_moved("step/", "tokens_per_rank", "all_reduce_seconds/start_seconds", "exchange_seconds",
            "own_small_operations", "exchange_bytes"),
    rule("sampling_seconds", step_overheads.sampling_time, sequences="tokens_per_rank", bytes_per_logit=_LOGIT,
         passes="rollout_logit_passes"),
    rule("graphs/host_seconds", decode_step.host_time, step_seconds="own_host_step", sequences="sequences_per_rank",
         sequence_seconds="own_host_sequence", slowdown="host_slowdown", exposed_share="host_exposed"),
    rule("gpu_seconds", decode_step.step_of_parts, **(STEP | {"host": 0.0})),
    rule("launched/host_seconds", decode_step.host_time_without_graphs, scheduling_seconds="graphs/host_seconds",
         layer_seconds="rollout_launch_step_layer", slowdown="host_slowdown"),
    rule("decode_step_seconds", decode_step.step_of_parts, **STEP),
    rule("drafting_seconds", decode_step.drafting_time, layer_seconds="layer_seconds", head="step/head_seconds",
         sampling="sampling_seconds"),
    rule("token_seconds", decode_step.time_per_token, step_seconds="decode_step_seconds",
         acceptance="draft_acceptance"),
)  # fmt: skip
"""A decode step."""

PREFILL = (
    rule("prompt_tokens_per_rank", prefill.tokens_per_rank, tokens="computed_tokens", data_parallel="data"),
    *_prompt_product("dense", "prompt_tokens_per_rank", "dense_flops", "gemm_compute", "prefill_slowdown"),
    *_quantised(
        "prompt_quantise_seconds", "prompt_tokens_per_rank", "dense/prompt_product_seconds", "prompt_matmul_seconds"
    ),
    *_prompt_product("experts", "computed_tokens", "expert_flops", "moe_compute", "expert_prefill_slowdown"),
    rule("prompt_experts_read_seconds", prefill.experts_read_time, steps="prefill_steps",
         decode_touched="experts_touched", joint="joint_steps",
         bytes_per_expert="expert_bytes", memory_rate="moe_memory/achieved_rate", data_parallel="data"),
    rule("prompt_pairs", training_flops.causal_pairs, length="computed_tokens", window="attention_window"),
    rule("sliding_pairs", training_flops.causal_pairs, length="computed_tokens", window="window_tokens"),
    rule("prompt_attention_flops", prefill.pair_flops, pairs="prompt_pairs", flops_per_pair="attention_flops",
         sliding_flops_per_pair="sliding_flops"),
    rule("prompt_attention_seconds", prefill.prompt_attention_time, flops="prompt_attention_flops",
         compute_rate="prefill_attention_rate/achieved_rate", half_length="prefill_half_length",
         prompt_tokens="computed_tokens"),
    *_moved("prompt_", "prompt_tokens_per_rank", 0.0, 0.0, 0.0, "prompt_exchange_bytes"),
    rule("prompt_walk_seconds", prefill.walk_time, tokens="prompt_tokens_per_rank", seconds_per_token="walked_seconds",
         length="computed_tokens", seconds_per_pair="scored_seconds"),
    rule("prompt_gpu_seconds", prefill.prompt_of_parts, **_PROMPT),
    rule("prefill_steps", prefill.prefill_steps, prompt_tokens="computed_tokens", batch="sequences"),
    rule("launch_seconds", prefill.launch_time, steps="prefill_steps", layer_seconds="own_launch_layer",
         moe_layer_seconds="own_launch_moe_layer", index_seconds="index_launch_seconds", slowdown="host_slowdown"),
    rule("prefill_seconds", prefill.prefill_time, gpu_seconds="prompt_gpu_seconds", request_seconds="own_host_request",
         data_parallel="data"),
)  # fmt: skip
"""What a prompt costs."""

RULES = by_result((*RATES, *DECODE, *PREFILL))
