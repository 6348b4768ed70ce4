"""
The constants of rollout predictions.

Kernels are measured (profiles of GPUs); these say how an engine differs from its kernels alone, and what its host
costs. `benchmarks/tuning.py` wrote the values and spreads of those that were fitted, from `untuned` ones.
"""

from __future__ import annotations

from rlsize.estimates.constants import Basis, Constant, Stage

_ROWS = "engine_latency and rollout rows, high trust; see docs/accuracy.md"


def _slowdown(what: str, value: float, spread: float, untuned: tuple[float, float], unit: str = "1") -> Constant:
    return Constant(
        name=f"rollout_{what}",
        value=value,
        spread=spread,
        unit=unit,
        meaning=_MEANINGS[what],
        basis="fitted",
        source=_ROWS,
        untuned=untuned,
    )


def _assumed(what: str, value: float, spread: float, source: str, basis: Basis = "assumed") -> Constant:
    return Constant(
        name=f"rollout_{what}",
        value=value,
        spread=spread,
        unit="1",
        meaning=_MEANINGS[what],
        basis=basis,
        source=source,
    )


_MEANINGS = {
    "weight_slowdown": "time to read weights in matrix products, over the kernel alone",
    "matmul_slowdown": "time of the work of matrix products in decode, over the kernel alone",
    "expert_weight_slowdown": "time to read experts, over the kernel alone",
    "expert_slowdown": "time of the work of experts in decode, over the kernel alone",
    "attention_slowdown": "time to read the KV cache, over the kernel alone",
    "attention_sequence": "time of each sequence in attention, over vLLM's kernel alone",
    "all_reduce_start": "time of a small all-reduce, over the kernel alone",
    "all_reduce_slowdown": "time of a large all-reduce, over the kernel alone; below 1 where the network reduces",
    "exchange_slowdown": "time of a large exchange among experts, over the kernel alone",
    "small_operations": "small kernels in a layer",
    "stream_passes": "times that a layer reads or writes the residual stream in small kernels",
    "logit_passes": "times that logits are read or written",
    "routing_diversity": "share of tokens that count as routed evenly, where routing is skewed",
    "prefill_slowdown": "time of matrix products in prefill, over the kernel alone",
    "expert_prefill_slowdown": "time of experts in prefill, over the kernel alone",
    "prefill_attention_slowdown": "time of attention in prefill, over the kernel alone",
    "launch_layer": "host time to launch a layer's prefill outside graphs",
    "launch_moe_layer": "further host time where the layer has experts",
    "host_step_vllm": "host work of a vLLM step",
    "host_step_sglang": "host work of an SGLang step that the GPU waits for",
    "host_step_trtllm": "host work of a TensorRT-LLM step that the GPU waits for",
    "host_sequence_vllm": "host work of vLLM for each sequence in a step",
    "host_sequence_sglang": "host work of SGLang for each sequence in a step",
    "host_sequence_trtllm": "host work of TensorRT-LLM for each sequence in a step",
    "host_request_vllm": "host work of vLLM for each request",
    "host_request_sglang": "host work of SGLang for each request",
    "host_request_trtllm": "host work of TensorRT-LLM for each request",
    "stack_slowdown": "time of a step and of a prompt, over all that is counted",
    "moe_stack_slowdown": "the same again for a mixture of experts",
    "borrowed_slowdown": "time of a step and of a prompt, over kernels that were measured on another GPU",
    "rank_imbalance": "time of the slowest of the data-parallel ranks, which share experts, over the mean",
    "host_rank": "further host work for each sequence and tensor-parallel rank",
    "host_exposed": "share of vLLM's host work that the GPU waits for, where steps are scheduled ahead",
    "cache_fill": "share of the KV cache that is live when optimistic admission has filled it",
    "front_end_token": "time that a server's front end needs for a streamed token",
    "front_end_request": "time that a server's front end needs for a request",
    "arrival_share": "share of the batch whose prompts stand before one's own",
}

STAGE = Stage(
    name="rollout",
    constants=(
        _slowdown("weight_slowdown", 1.02, 0.05, (1.0, 0.1)),
        _slowdown("matmul_slowdown", 0.911, 0.075, (1.0, 0.15)),
        _slowdown("expert_weight_slowdown", 1.19, 0.125, (1.0, 0.25)),
        _slowdown("expert_slowdown", 1.32, 0.125, (1.0, 0.25)),
        _slowdown("attention_slowdown", 1.1, 0.05, (1.0, 0.1)),
        _slowdown("attention_sequence", 0.548, 0.25, (0.8, 0.5)),
        _slowdown("all_reduce_start", 0.989, 0.15, (1.0, 0.3)),
        _slowdown("all_reduce_slowdown", 0.738, 0.15, (0.9, 0.3)),
        _slowdown("exchange_slowdown", 3.94, 0.2, (1.0, 0.4)),
        _slowdown("small_operations", 10.9, 0.25, (6.0, 0.5)),
        _slowdown("stream_passes", 24.7, 0.25, (16.0, 0.5)),
        _slowdown("logit_passes", 4.78, 0.3, (6.0, 0.6)),
        _slowdown("routing_diversity", 0.359, 0.15, (0.65, 0.3)),
        _slowdown("prefill_slowdown", 1.03, 0.075, (1.0, 0.15)),
        _slowdown("expert_prefill_slowdown", 0.883, 0.125, (1.0, 0.25)),
        _slowdown("prefill_attention_slowdown", 1.01, 0.1, (1.0, 0.2)),
        _slowdown("launch_layer", 0.000116, 0.25, (2e-4, 0.5), "s"),
        _slowdown("launch_moe_layer", 0.00031, 0.3, (5e-4, 0.6), "s"),
        _slowdown("host_step_vllm", 0.00109, 0.35, (2e-3, 0.7), "s"),
        _slowdown("host_step_sglang", 0.00153, 0.35, (1.5e-3, 0.7), "s"),
        _slowdown("host_step_trtllm", 0.000458, 0.35, (1e-3, 0.7), "s"),
        _slowdown("host_sequence_vllm", 2.66e-05, 0.4, (1.5e-5, 0.8), "s"),
        _slowdown("host_sequence_sglang", 5.98e-06, 0.5, (8e-6, 1.0), "s"),
        _slowdown("host_sequence_trtllm", 6.42e-07, 0.5, (4e-6, 1.0), "s"),
        _slowdown("host_request_vllm", 0.00185, 0.5, (1.5e-3, 1.0), "s"),
        _slowdown("host_request_sglang", 0.00132, 0.5, (1.5e-3, 1.0), "s"),
        _slowdown("host_request_trtllm", 0.000737, 0.5, (1e-3, 1.0), "s"),
        _assumed(
            "stack_slowdown", 1.0, 0.08, "what engines, versions and set-ups differ by beyond the other constants"
        ),
        _assumed("moe_stack_slowdown", 1.0, 0.16, "the same for mixtures of experts, whose kernels and routing differ"),
        _assumed("borrowed_slowdown", 1.0, 0.15, "kernels of another GPU, scaled by peak and bandwidth"),
        _slowdown("rank_imbalance", 1.07, 0.075, (1.15, 0.15)),
        _slowdown("host_rank", 9.19e-07, 0.5, (1e-6, 1.0), "s"),
        _assumed("host_exposed", 0.35, 0.5, "scheduling ahead hides most of it; no published figure was found"),
        _assumed("cache_fill", 0.9, 0.05, "preemption starts when the cache is full; headroom for fluctuation"),
        _slowdown("front_end_token", 0.000111, 0.15, (1.1e-4, 0.3), "s"),
        _slowdown("front_end_request", 0.0301, 0.15, (2.8e-2, 0.3), "s"),
        _slowdown("arrival_share", 0.25, 0.9, (0.25, 1.0)),
    ),
    noise=0.08,
)
