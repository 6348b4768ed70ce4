"""One decode step of an engine, term by term, and what a prompt costs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlsize.equations import (
    decode_step,
    kernel_time,
    kv_cache,
    mixture_of_experts,
    prefill,
    step_overheads,
    training_flops,
)
from rlsize.facts.inference_engines import inference_engine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.engine_work import EngineQuestion, EngineWork, ExplainedWork
    from rlsize.estimates.figures import Work, Worked

    Numbers = EngineWork | ExplainedWork

_LOGIT = 4.0  # bytes of a logit, in fp32
_ACTIVATION = 2.0  # bytes of an activation
_FULL = 1e18  # a window that no prompt reaches


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """
    An engine's host work.

    Args:
        step: Of a step. [s]
        sequence: Of each sequence in a step. [s]
        request: Of each request. [s]
        exposed: Share of a step's host work that the GPU waits for. [1]
    """

    step: Real
    sequence: Real
    request: Real
    exposed: Real


def host_of(question: EngineQuestion, values: Mapping[str, Real]) -> Host:
    """The host work of an engine and version."""
    engine = inference_engine(question.engine)
    return Host(
        step=values[f"rollout_host_step_{engine.key}"],
        sequence=values[f"rollout_host_sequence_{engine.key}"],
        request=values[f"rollout_host_request_{engine.key}"],
        exposed=values["rollout_host_exposed"] if engine.hides_host(question.version) else 1.0,
    )


def step_parts(
    work: Work, numbers: Numbers, host: Host, sequences: Worked, context_tokens: Worked, values: Mapping[str, Real]
) -> dict[str, Worked]:
    """
    Seconds of a decode step by part.

    Args:
        work: `figures.apply` or `figures.numbers`.
        numbers: The replica; figures where `work` explains.
        host: Its engine's host.
        sequences: Sequences in the step, of the whole replica. [1]
        context_tokens: Mean length of their contexts. [token]
        values: The constants of `constants_rollout.STAGE` by name.
    """
    n = numbers
    local = work("sequences_per_rank", decode_step.sequences_per_rank, sequences=sequences, data_parallel=n.data)
    moved = _transfers(
        work,
        n,
        local,
        values,
        all_reduce=_slowed(work, n.all_reduce_seconds, values["rollout_all_reduce_start"]),
        exchange=n.exchange_seconds,
        operations=values["rollout_small_operations"],
    )
    return {
        "matmul": _matmul(work, n, local, values),
        "head": _head(work, n, local, values),
        "experts": _experts(work, n, sequences, values),
        "attention": _attention(work, n, local, context_tokens, values),
        "recurrence": _recurrence(work, n, local),
        **moved,
        "sampling": work(
            "sampling_seconds",
            step_overheads.sampling_time,
            sequences=local,
            vocab_size=n.vocab_size,
            bytes_per_logit=_LOGIT,
            passes=values["rollout_logit_passes"],
            bandwidth=n.bandwidth,
        ),
        "host": work(
            "host_seconds",
            decode_step.host_time,
            step_seconds=host.step,
            sequences=local,
            sequence_seconds=host.sequence,
            rank_seconds=values["rollout_host_rank"],
            ranks=n.tensor,
            slowdown=n.host_slowdown,
            exposed_share=host.exposed,
        ),
    }


def step_seconds(work: Work, parts: Mapping[str, Worked]) -> Worked:
    """The step as the sum of its parts."""
    return work("decode_step_seconds", decode_step.step_of_parts, **parts)


def _matmul(work: Work, n: Numbers, local: Worked, values: Mapping[str, Real]) -> Worked:
    product = work(
        "matmul_seconds",
        kernel_time.matmul_time,
        launches=n.gemms,
        launch_seconds=n.gemm_seconds,
        bytes_moved=n.dense_bytes,
        memory_rate=_achieved(work, n.gemm_memory, values["rollout_weight_slowdown"]),
        flops=work("matmul_flops", prefill.token_flops, tokens=local, flops_per_token=n.dense_flops),
        compute_rate=_achieved(work, n.gemm_compute, values["rollout_matmul_slowdown"]),
        sharpness=n.gemm_sharpness,
    )
    quantising = work(
        "quantise_seconds",
        kernel_time.quantise_time,
        passes=n.quantise_passes,
        tokens=local,
        bytes_per_token=n.dense_inner,
        bandwidth=n.bandwidth,
    )
    return work("matmul_seconds", decode_step.both_times, first=product, second=quantising)


def _head(work: Work, n: Numbers, local: Worked, values: Mapping[str, Real]) -> Worked:
    return work(
        "head_seconds",
        kernel_time.matmul_time,
        launches=1.0,
        launch_seconds=n.head_seconds,
        bytes_moved=n.head_bytes,
        memory_rate=_achieved(work, n.head_memory, values["rollout_weight_slowdown"]),
        flops=work("head_flops", prefill.token_flops, tokens=local, flops_per_token=n.head_flops),
        compute_rate=_achieved(work, n.head_compute, values["rollout_matmul_slowdown"]),
        sharpness=n.head_sharpness,
    )


def _experts(work: Work, n: Numbers, sequences: Worked, values: Mapping[str, Real]) -> Worked:
    distinct = work(
        "distinct_tokens", decode_step.distinct_tokens, tokens=sequences, diversity=values["rollout_routing_diversity"]
    )
    touched = work(
        "experts_touched",
        mixture_of_experts.experts_touched,
        experts=n.experts,
        experts_per_token=n.experts_per_token,
        batch_tokens=distinct,
    )
    return work(
        "expert_seconds",
        kernel_time.matmul_time,
        launches=n.moe_layers,
        launch_seconds=n.moe_seconds,
        bytes_moved=work(
            "expert_bytes",
            decode_step.touched_expert_bytes,
            experts_touched=touched,
            bytes_per_expert=n.expert_bytes,
        ),
        memory_rate=_achieved(work, n.moe_memory, values["rollout_expert_weight_slowdown"]),
        flops=work("expert_flops", prefill.token_flops, tokens=sequences, flops_per_token=n.expert_flops),
        compute_rate=_achieved(work, n.moe_compute, values["rollout_expert_slowdown"]),
        sharpness=1.0,
    )


def _attention(work: Work, n: Numbers, local: Worked, context: Worked, values: Mapping[str, Real]) -> Worked:
    read = work("context_read", decode_step.tokens_read, context_tokens=context, most_tokens=n.index_topk)
    kept = work(
        "sequence_read_bytes",
        kv_cache.sequence_kv_bytes,
        tokens=read,
        kv_bytes_per_token=n.kv_bytes_per_token,
        sliding_bytes_per_token=n.window_bytes_per_token,
        window=n.window_tokens,
        state_bytes=work(
            "index_read_bytes", decode_step.index_bytes, context_tokens=context, bytes_per_token=n.index_bytes_per_token
        ),
    )
    latent = work("latent_flops_per_sequence", prefill.token_flops, tokens=read, flops_per_token=n.latent_flops)
    return work(
        "attention_seconds",
        kernel_time.decode_attention_time,
        layers=n.attention_layers,
        fixed_seconds=n.attention_seconds,
        kv_bytes=work("live_kv_bytes", decode_step.live_kv_bytes, sequences=local, sequence_bytes=kept),
        memory_rate=_achieved(work, n.attention_memory, values["rollout_attention_slowdown"]),
        flops=work("latent_flops", decode_step.live_flops, sequences=local, sequence_flops=latent),
        compute_rate=_achieved(work, n.attention_compute, values["rollout_attention_slowdown"]),
        seconds_per_sequence=_slowed(work, n.sequence_seconds, values["rollout_attention_sequence"]),
        sequences=local,
    )


def _recurrence(work: Work, n: Numbers, local: Worked) -> Worked:
    return work(
        "recurrence_seconds",
        kernel_time.matmul_time,
        launches=n.recurrent_layers,
        launch_seconds=n.recurrent_seconds,
        bytes_moved=work("state_bytes", decode_step.live_kv_bytes, sequences=local, sequence_bytes=n.state_bytes),
        memory_rate=n.recurrent_memory,
        flops=0.0,
        compute_rate=n.gemm_compute,
        sharpness=1.0,
    )


def _achieved(work: Work, rate: Worked, slowdown: Real) -> Worked:
    """A kernel's rate inside an engine."""
    return work("achieved_rate", kernel_time.achieved_rate, peak=rate, fraction=1.0, slowdown=slowdown)


def _slowed(work: Work, seconds: Worked, slowdown: Real) -> Worked:
    """A kernel's fixed time inside an engine."""
    return work("start_seconds", kernel_time.slowed, seconds=seconds, slowdown=slowdown)


def _transfers(
    work: Work,
    n: Numbers,
    tokens: Worked,
    values: Mapping[str, Real],
    *,
    prefix: str = "",
    all_reduce: Worked = 0.0,
    exchange: Worked = 0.0,
    operations: Worked = 0.0,
) -> dict[str, Worked]:
    """
    Seconds of what moves the residual stream: all-reduces and exchanges among GPUs, and small kernels.

    What these cost before they move a byte is left out for a prefill, whose launches are counted apart.

    Args:
        work: `figures.apply` or `figures.numbers`.
        n: The replica; figures where `work` explains.
        tokens: Tokens that a data-parallel rank works on.
        values: The constants of `constants_rollout.STAGE` by name.
        prefix: Of the names of the results.
        all_reduce: Time of a small all-reduce. [s]
        exchange: Time of an exchange without load. [s]
        operations: Small kernels of a layer that have a start. [1]
    """
    stream = work(
        f"{prefix}stream_bytes",
        step_overheads.stream_bytes,
        tokens=tokens,
        hidden_size=n.hidden_size,
        width=_ACTIVATION,
    )
    return {
        "all_reduce": work(
            f"{prefix}all_reduce_seconds",
            step_overheads.all_reduce_time,
            messages=n.all_reduces,
            latency=all_reduce,
            message_bytes=stream,
            ranks=n.tensor,
            bandwidth=_achieved(work, n.all_reduce_rate, values["rollout_all_reduce_slowdown"]),
        ),
        "exchange": work(
            f"{prefix}exchange_seconds",
            step_overheads.expert_exchange_time,
            layers=n.exchange_layers,
            latency=exchange,
            sent_bytes=work("sent_bytes", step_overheads.sent_bytes, tokens=tokens, bytes_per_token=n.exchange_bytes),
            bandwidth=_achieved(work, n.exchange_rate, values["rollout_exchange_slowdown"]),
        ),
        "small_operations": work(
            f"{prefix}small_operations_seconds",
            step_overheads.small_operations_time,
            layers=n.layers,
            operations=operations,
            operation_seconds=n.operation_seconds,
            passes=values["rollout_stream_passes"],
            activation_bytes=stream,
            bandwidth=n.bandwidth,
        ),
    }


def _prompt_parts(work: Work, numbers: Numbers, prompt_tokens: Worked, values: Mapping[str, Real]) -> dict[str, Worked]:
    """GPU seconds of one prompt by part, spread over the replica's data-parallel ranks."""
    n = numbers
    share = work("prompt_tokens_per_rank", prefill.tokens_per_rank, tokens=prompt_tokens, data_parallel=n.data)
    dense = _prompt_product(work, share, n.dense_flops, n.gemm_compute, values["rollout_prefill_slowdown"])
    quantising = work(
        "prompt_quantise_seconds",
        kernel_time.quantise_time,
        passes=n.quantise_passes,
        tokens=share,
        bytes_per_token=n.dense_inner,
        bandwidth=n.bandwidth,
    )
    experts = _prompt_product(
        work, prompt_tokens, n.expert_flops, n.moe_compute, values["rollout_expert_prefill_slowdown"]
    )
    return {
        "matmul": work("prompt_matmul_seconds", decode_step.both_times, first=dense, second=quantising),
        "experts": experts,
        "attention": _prompt_attention(work, n, prompt_tokens, values),
        **_transfers(work, n, share, values, prefix="prompt_"),
    }


def prompt_seconds(
    work: Work,
    numbers: Numbers,
    host: Host,
    tokens: tuple[Worked, Worked],
    batch: Worked,
    values: Mapping[str, Real],
) -> Worked:
    """
    Engine time that one prompt takes from the samples in flight.

    Args:
        work: `figures.apply` or `figures.numbers`.
        numbers: The replica.
        host: Its engine's host.
        tokens: Prompt tokens that are computed, and the mean response length.
        batch: Samples in flight.
        values: The constants of `constants_rollout.STAGE` by name.
    """
    n, (prompt_tokens, response_tokens) = numbers, tokens
    steps = work(
        "prefill_steps",
        prefill.prefill_steps,
        prompt_tokens=prompt_tokens,
        chunk_tokens=n.chunk_tokens,
        response_tokens=response_tokens,
        batch=batch,
    )
    launches = work(
        "launch_seconds",
        prefill.launch_time,
        steps=steps,
        layers=n.layers,
        layer_seconds=values["rollout_launch_layer"],
        moe_layers=n.moe_layers,
        moe_layer_seconds=values["rollout_launch_moe_layer"],
        slowdown=n.host_slowdown,
    )
    gpu = work("prompt_gpu_seconds", prefill.prompt_of_parts, **_prompt_parts(work, n, prompt_tokens, values))
    return work(
        "prefill_seconds",
        prefill.prefill_time,
        gpu_seconds=gpu,
        launch_seconds=launches,
        request_seconds=host.request,
        data_parallel=n.data,
    )


def _prompt_product(work: Work, tokens: Worked, flops: Worked, rate: Worked, slowdown: Real) -> Worked:
    total = work("prompt_flops", prefill.token_flops, tokens=tokens, flops_per_token=flops)
    return work(
        "prompt_product_seconds", prefill.compute_time, flops=total, compute_rate=_achieved(work, rate, slowdown)
    )


def _prompt_attention(work: Work, n: Numbers, prompt_tokens: Worked, values: Mapping[str, Real]) -> Worked:
    full = work("prompt_pairs", training_flops.causal_pairs, length=prompt_tokens, window=_FULL)
    near = work("sliding_pairs", training_flops.causal_pairs, length=prompt_tokens, window=n.window_tokens)
    flops = work(
        "prompt_attention_flops",
        prefill.pair_flops,
        pairs=full,
        flops_per_pair=n.attention_flops,
        sliding_pairs=near,
        sliding_flops_per_pair=n.sliding_flops,
    )
    return work(
        "prompt_attention_seconds",
        prefill.prompt_attention_time,
        flops=flops,
        compute_rate=_achieved(work, n.prefill_attention_rate, values["rollout_prefill_attention_slowdown"]),
        half_length=n.prefill_half_length,
        prompt_tokens=prompt_tokens,
    )
