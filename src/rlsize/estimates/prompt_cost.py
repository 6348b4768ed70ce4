"""What a prompt costs an engine that generates at the same time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.equations import decode_step, kernel_time, prefill, training_flops
from rlsize.estimates.engine_transfers import Starts, achieved, transfers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.engine_step import Host
    from rlsize.estimates.engine_work import EngineWork, ExplainedWork

    Work = Callable[..., Any]
    Numbers = EngineWork | ExplainedWork

_FULL = 1e18  # a window that no prompt reaches


def prompt_parts(work: Work, numbers: Numbers, prompt_tokens: Any, values: Mapping[str, Real]) -> dict[str, Any]:  # noqa: ANN401 (as `work` makes them)
    """GPU seconds of one prompt by part, spread over the replica's data-parallel ranks."""
    n = numbers
    share = work("prompt_tokens_per_rank", prefill.tokens_per_rank, tokens=prompt_tokens, data_parallel=n.data)
    dense = _product(work, share, n.dense_flops, n.gemm_compute, values["rollout_prefill_slowdown"])
    quantising = work(
        "prompt_quantise_seconds",
        kernel_time.quantise_time,
        passes=n.quantise_passes,
        tokens=share,
        bytes_per_token=n.dense_inner,
        bandwidth=n.bandwidth,
    )
    experts = _product(work, prompt_tokens, n.expert_flops, n.moe_compute, values["rollout_expert_prefill_slowdown"])
    return {
        "matmul": work("prompt_matmul_seconds", decode_step.both_times, first=dense, second=quantising),
        "experts": experts,
        "attention": _attention(work, n, prompt_tokens, values),
        **transfers(work, n, share, Starts(prefix="prompt_"), values),
    }


def prompt_seconds(
    work: Work,
    numbers: Numbers,
    host: Host,
    tokens: tuple[Any, Any],
    batch: Any,  # noqa: ANN401 (as `work` makes them)
    values: Mapping[str, Real],
) -> Any:  # noqa: ANN401 (as `work` makes them)
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
    gpu = work("prompt_gpu_seconds", prefill.prompt_of_parts, **prompt_parts(work, n, prompt_tokens, values))
    return work(
        "prefill_seconds",
        prefill.prefill_time,
        gpu_seconds=gpu,
        launch_seconds=launches,
        request_seconds=host.request,
        data_parallel=n.data,
    )


def _product(work: Work, tokens: Any, flops: Any, rate: Any, slowdown: Real) -> Any:  # noqa: ANN401 (as `work` makes them)
    total = work("prompt_flops", prefill.token_flops, tokens=tokens, flops_per_token=flops)
    return work(
        "prompt_product_seconds", prefill.compute_time, flops=total, compute_rate=achieved(work, rate, slowdown)
    )


def _attention(work: Work, n: Numbers, prompt_tokens: Any, values: Mapping[str, Real]) -> Any:  # noqa: ANN401 (as `work` makes them)
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
        compute_rate=achieved(work, n.prefill_attention_rate, values["rollout_prefill_attention_slowdown"]),
        half_length=n.prefill_half_length,
        prompt_tokens=prompt_tokens,
    )
