"""The work of an engine on one of its GPUs: weights, caches and FLOPs per step, and how fast its kernels do it."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from rlsize.facts.figure import Figure
from rlsize.facts.records.record import Layout

if TYPE_CHECKING:
    from rlsize.equations._ops import Real
    from rlsize.facts.gpu import Gpu
    from rlsize.facts.model import Model
    from rlsize.facts.quantisation import WeightTypes


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineQuestion:
    """
    One replica of an engine.

    Args:
        model: The model.
        gpu: The GPU.
        layout: Tensor, pipeline and data (attention) ranks of one replica; experts lie over tensor x data.
        engine: vllm, sglang or tensorrt-llm; any text that holds one of them.
        version: Its version; empty counts as a recent one.
        weights: Number types of the weights; as published where None.
        kv_dtype: Number type of the cache.
        memory_fraction: Share of the memory that it plans with; its default where None. [1]
        max_sequences: Most sequences of a step on one attention rank; its default where None. [1]
        batched_tokens: Most tokens of a step, for which it keeps memory free; its default where None. [token]
        promised_tokens: Longest sequence that it promises to hold, and does not start without room for; 0 for the
            longest that there is. [token]
        chunk_tokens: Tokens that one step prefills at most. [token]
        served: Whether requests come through its server, which streams tokens.
        graphs_counted: Whether CUDA graphs are taken off before the cache is sized (vLLM since 0.19).
        windows_whole: Whether sliding layers keep every token (engines without a cache per kind of layer).
    """

    model: Model
    gpu: Gpu
    layout: Layout = field(default_factory=Layout)
    engine: str = "vllm"
    version: str = ""
    weights: WeightTypes | None = None
    kv_dtype: str = "bf16"
    memory_fraction: Real | None = None
    max_sequences: Real | None = None
    batched_tokens: Real | None = None
    promised_tokens: float = 0.0
    chunk_tokens: float = 8192.0
    served: bool = False
    graphs_counted: bool = True
    windows_whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineWork:
    """
    Numbers of one replica, per GPU where a GPU has a share; kernels' shares and fixed times are as measured alone.

    Args:
        layers: Layers. [1]
        attention_layers: Layers that attend. [1]
        moe_layers: Layers with routed experts. [1]
        recurrent_layers: Layers with a recurrent state. [1]
        tensor: Tensor-parallel ranks. [1]
        data: Data-parallel ranks of attention. [1]
        gpus: GPUs of the replica. [1]
        hidden_size: Width of the residual stream. [1]
        vocab_size: Entries of the vocabulary. [1]
        gemms: Matrix products of a step, output head and routed experts apart. [1]
        gemm_seconds: Time of one without work. [s]
        dense_bytes: Weights that every token uses, output head apart. [B]
        dense_flops: Work of a token with them. [FLOP/token]
        dense_inner: Activations that are quantised for them, for one token. [B/token]
        quantise_passes: Passes to quantise activations. [1]
        gemm_memory: Bandwidth of matrix products. [B/s]
        gemm_compute: FLOP/s of matrix products. [FLOP/s]
        gemm_sharpness: How sharply memory time passes into compute time. [1]
        head_seconds: Time of the output head's product without work. [s]
        head_bytes: Weights of the output head. [B]
        head_flops: Work of a token with it. [FLOP/token]
        head_memory: Bandwidth of its product. [B/s]
        head_compute: FLOP/s of its product. [FLOP/s]
        head_sharpness: As `gemm_sharpness`. [1]
        experts: Routed experts of a layer. [1]
        experts_per_token: Of these, those that work on a token. [1]
        expert_bytes: One routed expert of each layer. [B]
        expert_flops: Work of a token in routed experts, all layers. [FLOP/token]
        moe_seconds: Time of one layer's experts without work. [s]
        moe_memory: Bandwidth of experts. [B/s]
        moe_compute: FLOP/s of experts. [FLOP/s]
        kv_bytes_per_token: Cache that a step reads for each token of context. [B/token]
        index_topk: Tokens that sparse attention reads at most; 0 where it reads all. [token]
        index_bytes_per_token: Of the cache, indexer keys, which are always read. [B/token]
        window_bytes_per_token: Cache in sliding layers. [B/token]
        window_tokens: The window. [token]
        state_bytes: Recurrent states of a sequence, read and written. [B]
        latent_flops: Work of latent attention for a sequence and a token of context. [FLOP/token]
        attention_seconds: Time of one layer's attention without a cache. [s]
        attention_memory: Bandwidth of attention. [B/s]
        attention_compute: FLOP/s of latent attention. [FLOP/s]
        sequence_seconds: Time of each sequence in attention, all layers. [s]
        recurrent_seconds: Time of one recurrent layer without sequences. [s]
        recurrent_memory: Bandwidth of recurrent layers. [B/s]
        all_reduces: All-reduces of a step. [1]
        all_reduce_seconds: Time of a small one. [s]
        all_reduce_rate: What large ones reach of the link. [B/s]
        exchange_layers: Layers that exchange tokens among experts. [1]
        exchange_seconds: Time of an exchange without load, there and back. [s]
        exchange_rate: What large ones reach of the link. [B/s]
        exchange_bytes: What a token sends in one layer, there and back. [B/token]
        bandwidth: Peak memory bandwidth. [B/s]
        operation_seconds: Time of a small kernel. [s]
        host_slowdown: How much slower the host launches than an x86 host of the Hopper generation. [1]
        attention_flops: Work of full attention for a token and a key of its prompt, in prefill. [FLOP/token^2]
        sliding_flops: The same in sliding layers. [FLOP/token^2]
        prefill_attention_rate: FLOP/s of long prompts' attention. [FLOP/s]
        prefill_half_length: Prompt length that reaches half of it. [token]
        chunk_tokens: Tokens that one step prefills at most. [token]
    """

    layers: float
    attention_layers: float
    moe_layers: float
    recurrent_layers: float
    tensor: float
    data: float
    gpus: float
    hidden_size: float
    vocab_size: float
    gemms: float
    gemm_seconds: float
    dense_bytes: float
    dense_flops: float
    dense_inner: float
    quantise_passes: float
    gemm_memory: float
    gemm_compute: float
    gemm_sharpness: float
    head_seconds: float
    head_bytes: float
    head_flops: float
    head_memory: float
    head_compute: float
    head_sharpness: float
    experts: float
    experts_per_token: float
    expert_bytes: float
    expert_flops: float
    moe_seconds: float
    moe_memory: float
    moe_compute: float
    kv_bytes_per_token: float
    index_topk: float
    index_bytes_per_token: float
    window_bytes_per_token: float
    window_tokens: float
    state_bytes: float
    latent_flops: float
    attention_seconds: float
    attention_memory: float
    attention_compute: float
    sequence_seconds: float
    recurrent_seconds: float
    recurrent_memory: float
    all_reduces: float
    all_reduce_seconds: float
    all_reduce_rate: float
    exchange_layers: float
    exchange_seconds: float
    exchange_rate: float
    exchange_bytes: float
    bandwidth: float
    operation_seconds: float
    host_slowdown: float
    attention_flops: float
    sliding_flops: float
    prefill_attention_rate: float
    prefill_half_length: float
    chunk_tokens: float
    source: str = ""

    def explained(self) -> ExplainedWork:
        """The same numbers as figures that name model and GPU."""
        return ExplainedWork(self)


class ExplainedWork:
    """The numbers of an `EngineWork` as figures, made when they are asked for."""

    def __init__(self, work: EngineWork) -> None:
        self._figures = {
            entry.name: Figure(
                key=entry.name, value=getattr(work, entry.name), provenance="default", source=work.source
            )
            for entry in fields(work)
            if entry.name != "source"
        }

    def __getattr__(self, name: str) -> Figure:
        try:
            return self._figures[name]
        except KeyError:
            raise AttributeError(name) from None
