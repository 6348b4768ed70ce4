"""
From profiles to the work of an engine: counts and shares only, so that the step itself runs on plain numbers or arrays.

Whatever is a law stands in `equations/`; here weights are counted, divided among ranks, and matched with kernels.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from rlsize.equations.kernel_time import gemm_launch_seconds
from rlsize.equations.mixture_of_experts import copies_for_each_expert, copies_gathered, copies_sent
from rlsize.errors import Refused
from rlsize.estimates.engine_memory import sequence_parts
from rlsize.estimates.engine_shape import engine_shape
from rlsize.estimates.figures import numbers
from rlsize.facts.inference_engines import inference_engine
from rlsize.facts.kernels import Transfer, among, engine_all_reduce, pick
from rlsize.facts.quantisation import KV_WIDTHS, WIDTHS, native

if TYPE_CHECKING:
    from rlsize.equations._ops import Real
    from rlsize.estimates.engine_shape import EngineShape
    from rlsize.estimates.engine_work import EngineQuestion
    from rlsize.facts.gpu import Gpu
    from rlsize.facts.inference_engines import InferenceEngine
    from rlsize.facts.kernels import Kernels, SparseIndex
    from rlsize.facts.model import Architecture

    Numbers = dict[str, float]

_WIDE = 2.0  # bytes of an activation, and of weights that nothing quantises
_FLOPS = 2.0  # of a weight and a token: one multiplication, one addition
_X86_LAUNCH = 21e-6  # host launch on the x86 host of an H100, ai-dynamo/aiconfigurator@095f58a5
_GRAPH_GAP = 2e-6  # between graph launches: in measured single kernels, not inside a whole-model graph
_OPERATION = 2e-6
_AROUND = 4.0  # small kernels around a recurrence: its convolution, its gates, the norm and the gate of its output
_QK_NORMS = 2.0  # small kernels of a layer that norms its queries and keys
_LEAST_LINK = 0.5  # share of the link that large all-reduces reach, as far as NCCL's do, where an engine switches to it
_EXCHANGE = Transfer(fixed=14e-6, link_fraction=0.6)  # DeepEP on H100 where a GPU has no figures of its own
_NETWORK_SECONDS = 35e-6  # more for a small collective between nodes: NCCL over InfiniBand, assumed
_NETWORK_SHARE = 0.8  # of the adapters' bandwidth, as in training
_EXCHANGE_SHARE = 0.9  # of it in exchanges among experts: DeepEP on 2, 4, 8 nodes of H200, aiconfigurator-core 0.12.0
_CHUNK = 64  # tokens that linear attention works on at once in prefill (Yang et al., Gated DeltaNet, section 3.3)
_WHOLE = 1e18  # a window that no prompt reaches
_OF_EXPERTS = ("step/expert_seconds", "experts/prompt_product_seconds", "prompt_experts_read_seconds")
"""Times that a dense model has not; they are said, so that no search works them out."""
_DISPATCHED = 1.0  # bytes of an activation on its way to an expert
_FP8 = ("fp8", "int8", "mxfp8")
_FP4 = ("fp4", "nvfp4", "mxfp4")


class _Peak(NamedTuple):
    """FLOP/s peak and kernel key of a number type."""

    flops: float
    kernel: str


def peak(gpu: Gpu, dtype: str) -> _Peak:
    """
    The peak of a GPU for weights of a number type; formats of weights only compute in bf16.

    Raises:
        Refused: The GPU has no matrix units for it.
    """
    said = gpu.specification
    if dtype in _FP8:
        if said.fp8_dense is None:
            raise Refused(f"{gpu.title} has no fp8 matrix units; take bf16 weights, or int4 that computes in bf16")
        return _Peak(said.fp8_dense.value, "fp8")
    if dtype in _FP4 and said.fp4_dense is not None:
        return _Peak(said.fp4_dense.value, "fp4")
    if dtype in {"fp4", "nvfp4"}:
        raise Refused(f"{gpu.title} has no fp4 matrix units; take fp8 or bf16 weights")
    return _Peak(said.bf16_dense.value, dtype if dtype in {"int4", "mxfp4"} else "bf16")


def compiled(question: EngineQuestion) -> Numbers:
    """
    The numbers of one replica, per GPU where a GPU has a share; kernels' shares and fixed times are as measured alone.

    Returns:
        layers: Layers. [1]
        attention_layers: Layers that attend. [1]
        moe_layers: Layers with routed experts. [1]
        recurrent_layers: Layers with a recurrent state. [1]
        tensor: Tensor-parallel ranks. [1]
        data: Parts that a step's sequences are dealt out to: ranks of attention, times stages, whose micro-batches go
            through all layers as if there was no pipeline. [1]
        stages: Pipeline stages. [1]
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
        exchange_bytes: What a token of a decode step sends in one layer, there and back. [B/token]
        prompt_exchange_bytes: The same of a prompt's token. [B/token]
        bandwidth: Peak memory bandwidth. [B/s]
        operation_seconds: Time of a small kernel. [s]
        joint_steps: 1 where prompts ride in decode steps, which read weights once for both; 0 where they have steps of
            their own. [1]
        host_slowdown: How much slower the host launches than an x86 host of the Hopper generation. [1]
        attention_flops: Work of full attention for a token and a key of its prompt, in prefill. [FLOP/token^2]
        sliding_flops: The same in sliding layers. [FLOP/token^2]
        attention_window: Tokens that full attention reads at most in prefill. [token]
        walked_seconds: Time of a prompt's token in indexers and linear attention, all layers. [s/token]
        scored_seconds: Time of indexers for each pair of tokens, all layers. [s/token^2]
        index_launch_seconds: Host time to launch a prompt's indexers, all layers. [s]
        prefill_attention_rate: FLOP/s of long prompts' attention. [FLOP/s]
        prefill_half_length: Prompt length that reaches half of it. [token]
        chunk_tokens: Tokens that one step prefills at most. [token]

    Raises:
        Refused: A number type that the GPU lacks, or a layout that does not divide the model.
    """
    model, layout = question.model, question.layout
    shape, engine = engine_shape(model, KV_WIDTHS[question.kv_dtype]), inference_engine(question.engine)
    kernels = question.gpu.kernels
    if kernels is None:
        raise Refused(f"{question.gpu.title} has no kernel times: add `kernels` or `kernels_like` to its profile")
    return {
        "tensor": float(layout.tensor),
        "data": float(layout.data * layout.pipeline),
        "stages": float(layout.pipeline),
        "gpus": float(layout.tensor * layout.data * layout.pipeline),
        "bandwidth": question.gpu.specification.memory_bandwidth.value,
        "operation_seconds": kernels.small_operation or _OPERATION,
        "joint_steps": float(engine.joint_steps),
        "host_slowdown": (kernels.host_launch or _X86_LAUNCH) / _X86_LAUNCH,
        "chunk_tokens": question.chunk_tokens,
        **_counts(model.architecture),
        **_dense(question, shape, kernels, engine),
        **_experts(question, shape, kernels, engine),
        **_attention(question, shape, kernels, engine),
        **_links(question, kernels, engine),
        **_prompts(question, kernels, engine),
    }


def _counts(shape: Architecture) -> Numbers:
    attending = sum(block.layers for block in (shape.attention, shape.sliding, shape.latent_attention) if block)
    recurrent = sum(block.layers for block in (shape.linear_attention, shape.mamba) if block)
    moe = shape.moe.layers if shape.moe else 0
    return {
        "layers": shape.layers,
        "attention_layers": attending,
        "moe_layers": moe,
        "recurrent_layers": recurrent,
        "hidden_size": shape.hidden_size,
        "vocab_size": shape.vocab_size,
    }


def _products(shape: Architecture, tensor: int) -> list[tuple[int, float]]:
    """
    Matrix products as engines fuse them, with routers, without routed experts: how many of each inner width on a rank.

    Queries with keys and values, and gate with up, are one product each.
    """
    wide, found = float(shape.hidden_size), list[tuple[int, float]]()
    for block in (shape.attention, shape.windowed):
        if block:
            inner = block.heads * block.head_dim / tensor
            found += [(block.layers, wide), (block.layers, inner)]
    if latent := shape.latent_attention:
        widths = (wide, latent.q_lora_rank or wide, latent.qk_nope_head_dim, latent.kv_lora_rank,
                  latent.heads * latent.v_head_dim / tensor)  # fmt: skip
        found += [(latent.layers, float(width)) for width in widths]
    if linear := shape.linear_attention:
        found += [(linear.layers, wide), (linear.layers, linear.value_heads * linear.value_head_dim / tensor)]
    if mamba := shape.mamba:
        found += [(mamba.layers, wide), (mamba.layers, mamba.heads * mamba.head_dim / tensor)]
    if dense := shape.feed_forward:
        found += [(dense.layers, wide), (dense.layers, dense.intermediate_size / tensor)]
    if moe := shape.moe:
        found += [(moe.layers, wide)]  # the router
        inner = moe.shared_experts * moe.shared_intermediate_size / tensor
        found += [(moe.layers, wide), (moe.layers, inner)] if inner else []
    return found


def _dense(question: EngineQuestion, shape: EngineShape, kernels: Kernels, engine: InferenceEngine) -> Numbers:
    types, layout = question.weights or native(question.model.name), question.layout
    mixers, dense, routers = shape.mixers.number, shape.dense.number, shape.routers.number
    each = layout.tensor
    weighed = mixers * _moved(types.attention) + dense * _moved(types.dense) + routers * _WIDE
    dtype = types.dense if dense > mixers else types.attention
    top = peak(question.gpu, dtype)
    _, gemm = pick(kernels.gemm, _scaled(question, top.kernel, engine), engine.key)
    _, wide = pick(kernels.gemm, "bf16")
    architecture = question.model.architecture
    head = architecture.vocab_size * architecture.hidden_size
    products = _products(architecture, layout.tensor)
    gemms = sum(count for count, _ in products)
    inner = sum(count * width for count, width in products) / max(1, gemms)
    bandwidth, bf16 = question.gpu.specification.memory_bandwidth.value, question.gpu.specification.bf16_dense.value
    return {
        "gemms": gemms,
        "gemm_seconds": gemm_launch_seconds(gemm.fixed, gemm.seconds_per_thousand_k, inner),
        "dense_bytes": weighed / each,
        "dense_flops": _FLOPS * (mixers + dense + routers) / each,
        "dense_inner": 3.0 * 4 * architecture.layers * architecture.hidden_size / each,
        "quantise_passes": gemm.quantise_passes,
        "gemm_memory": bandwidth * min(gemm.memory_fraction, 1.0),
        "gemm_compute": top.flops * gemm.compute_fraction,
        "gemm_sharpness": gemm.exponent,
        "head_seconds": wide.fixed,
        "head_bytes": _WIDE * head / layout.tensor,
        "head_flops": _FLOPS * head / layout.tensor,
        "head_memory": bandwidth * min(wide.memory_fraction, 1.0),
        "head_compute": bf16 * wide.compute_fraction,
        "head_sharpness": wide.exponent,
    }


def _moved(dtype: str) -> float:
    """Bytes that a product moves for a weight: one that no kernel multiplies as it is, is written in 16 bits first."""
    return WIDTHS[dtype] + (2 * _WIDE if dtype == "nf4" else 0.0)


def _scaled(question: EngineQuestion, kernel: str, engine: InferenceEngine) -> str:
    """
    The kernel of a number type by how fp8 is scaled: by blocks where a model is published so.

    Mixtures of experts have blocks under all engines but TensorRT-LLM, whose checkpoints have a scale for each tensor.
    """
    if kernel != "fp8":
        return kernel
    blocks = native(question.model.name).experts == "fp8"
    if question.model.architecture.moe and (blocks or not engine.tensor_scales):
        return "fp8_block"
    return "fp8_static" if engine.static_scales else "fp8"


def _experts(question: EngineQuestion, shape: EngineShape, kernels: Kernels, engine: InferenceEngine) -> Numbers:
    moe, layout = question.model.architecture.moe, question.layout
    types = question.weights or native(question.model.name)
    said = question.gpu.specification
    if moe is None:
        return dict.fromkeys(_OF_EXPERTS, 0.0)
    each = layout.tensor * layout.data
    of_expert = shape.routed.number / moe.experts
    dtype = "mxfp4" if types.experts == "mxfp4" else peak(question.gpu, types.experts).kernel
    _, kernel = pick(kernels.moe, _scaled(question, dtype, engine), engine.key)
    held = moe.experts / min(max(layout.expert, layout.data), each)
    peaks = {"bf16": said.bf16_dense, "fp8": said.fp8_dense, "fp4": said.fp4_dense}
    found = peaks[kernel.peak] or said.bf16_dense
    return {
        "experts": moe.experts,
        "experts_per_token": moe.experts_per_token,
        "expert_bytes": of_expert * _moved(types.experts) / each,
        "expert_flops": _FLOPS * of_expert * moe.experts_per_token / (each * layout.pipeline),
        "moe_seconds": kernel.fixed + kernel.seconds_per_expert * held,
        "moe_memory": said.memory_bandwidth.value * min(kernel.memory_fraction, 1.0),
        "moe_compute": found.value * kernel.compute_fraction,
    }


def _attention(question: EngineQuestion, shape: EngineShape, kernels: Kernels, engine: InferenceEngine) -> Numbers:
    architecture, layout = question.model.architecture, question.layout
    held = sequence_parts(numbers, shape, question.layout, windows_whole=question.windows_whole)
    latent, attention = architecture.latent_attention, architecture.attention
    bandwidth = question.gpu.specification.memory_bandwidth.value
    cached = "fp8" if KV_WIDTHS[question.kv_dtype] < _WIDE else "bf16"
    timed = "bf16" if engine.tuned_fp8_cache else cached
    if latent:
        _, mla = pick(kernels.latent_decode, cached, engine.key)
        fixed, reached, compute, each = mla.fixed, mla.memory_fraction, mla.compute_fraction, mla.seconds_per_sequence
        width = 2 * latent.kv_lora_rank + latent.qk_rope_head_dim  # scores and values against the compressed cache
        flops = _FLOPS * latent.layers * latent.heads * width / layout.tensor
    else:
        _, decode = pick(kernels.decode_attention, timed)
        heads = max(1.0, (attention.kv_heads if attention else 1) / layout.tensor)
        fixed, reached, compute, flops = decode.fixed, decode.memory_fraction, 1.0, 0.0
        each = decode.seconds_per_sequence_head * heads
        if attention and attention.qk_norm != "none":
            fixed += _QK_NORMS * (kernels.small_operation or _OPERATION)
    attending = sum(block.layers for block in (attention, architecture.sliding, latent) if block)
    linear = kernels.linear_decode
    index, indexer = shape.size.index_bytes_per_token.number, _indexer(question, kernels, engine)
    reached = min(reached, 1.0)
    slower = reached / indexer.memory_fraction if indexer else 1.0
    return {
        "kv_bytes_per_token": float(held["bytes_per_token"]) * layout.pipeline - index,
        "index_bytes_per_token": index * slower,
        "index_topk": float(latent.index_topk) if latent else 0.0,
        "window_bytes_per_token": float(held["window_bytes_per_token"]) * layout.pipeline,
        "window_tokens": float(held["window_tokens"]),
        "state_bytes": 2.0 * float(held["state_bytes"]) * layout.pipeline,
        "latent_flops": flops,
        "attention_seconds": max(0.0, fixed - _GRAPH_GAP) + (indexer.fixed if indexer else 0.0),
        "attention_memory": bandwidth * reached,
        "attention_compute": question.gpu.specification.bf16_dense.value * compute,
        "sequence_seconds": each * attending,
        "recurrent_seconds": (linear.fixed if linear else 0.0) + _AROUND * (kernels.small_operation or _OPERATION),
        "recurrent_memory": bandwidth * (linear.memory_fraction if linear else 1.0),
        **({} if architecture.linear_attention or architecture.mamba else {"recurrence_seconds": 0.0}),
    }


def _indexer(question: EngineQuestion, kernels: Kernels, engine: InferenceEngine) -> SparseIndex | None:
    """The indexer's kernels; those of another engine where its own were not measured, None without an indexer."""
    latent, table = question.model.architecture.latent_attention, kernels.sparse_index
    return table.get(engine.key) or next(iter(table.values()), None) if latent and latent.index_topk else None


def _prompts(question: EngineQuestion, kernels: Kernels, engine: InferenceEngine) -> Numbers:
    shape, layout = question.model.architecture, question.layout
    _, prefill = pick(kernels.prefill_attention, "bf16")
    ranks = layout.tensor * layout.data * layout.pipeline
    heads: dict[str, float] = {"attention_flops": 0.0, "sliding_flops": 0.0}
    latent, attention = shape.latent_attention, shape.attention
    if latent:
        width = latent.qk_nope_head_dim + latent.qk_rope_head_dim + latent.v_head_dim
        heads["attention_flops"] = _FLOPS * latent.layers * latent.heads * width / ranks
    elif attention:
        for key, one in (("attention_flops", attention), ("sliding_flops", shape.windowed)):
            if one:
                heads[key] = _FLOPS * one.heads * 2 * one.head_dim / ranks * one.layers
    bf16, linear = question.gpu.specification.bf16_dense.value, shape.linear_attention
    indexer = _indexer(question, kernels, engine)
    each_token = latent.layers * indexer.seconds_per_token if latent and indexer else 0.0
    scored = 0.0
    if latent and indexer:
        narrow = question.gpu.specification.fp8_dense or question.gpu.specification.bf16_dense
        work = _FLOPS * latent.layers * latent.index_heads * latent.index_head_dim
        scored = work / (narrow.value * indexer.compute_fraction)
    walk = kernels.linear_prefill.get(engine.key) or next(iter(kernels.linear_prefill.values()), None)
    if linear and walk:
        state = linear.value_head_dim * (linear.key_head_dim + _CHUNK)
        flops = 2 * _FLOPS * linear.value_heads / layout.tensor * state
        each_token += linear.layers * (flops / (bf16 * walk.compute_fraction) + walk.seconds_per_token)
    return {
        **heads,
        "attention_window": float(latent.index_topk) if latent and latent.index_topk else _WHOLE,
        "prefill_attention_rate": bf16 * prefill.compute_fraction,
        "prefill_half_length": prefill.half_length,
        "walked_seconds": each_token / layout.pipeline,
        "scored_seconds": scored / layout.pipeline,
        "index_launch_seconds": latent.layers * indexer.launch if latent and indexer else 0.0,
    }


def _links(question: EngineQuestion, kernels: Kernels, engine: InferenceEngine) -> Numbers:
    """All-reduces and exchanges of an engine's step: how many, their fixed times, and what large ones reach."""
    shape, layout = question.model.architecture, question.layout
    link = question.gpu.specification.scale_up.bandwidth_one_direction.value
    reduce = engine_all_reduce(kernels, engine.key, layout.tensor)
    least = min(_LEAST_LINK, among(kernels.nccl["all_reduce"], layout.tensor).link_fraction)
    large = max(reduce.link_fraction, engine_all_reduce(kernels, "vllm", layout.tensor).link_fraction, least)
    across = _across(question.gpu, layout.tensor * layout.data)
    there, back = (
        kernels.expert_exchange.get(f"{engine.key}/{way}") or kernels.expert_exchange.get(way, _EXCHANGE)
        for way in ("dispatch", "combine")
    )
    if question.gpu.specification.card:  # those kernels are made for fast networks
        there = back = among(kernels.nccl["all_to_all"], layout.tensor * layout.data)
    moe, width = shape.moe, shape.hidden_size * (_DISPATCHED + _WIDE)
    inside, between = link * min(there.link_fraction, back.link_fraction), _between(question)
    copies = prompts = _copies(question, engine)
    if sends_over_nodes(question):
        each = moe.experts_per_token if moe else 0
        nodes = ceil(layout.tensor * layout.data / question.gpu.specification.joined_gpus.value)
        prompts = max(copies_sent(experts_per_token=each, ranks=nodes), copies * min(between / inside, 1.0))
        copies = copies_for_each_expert(experts_per_token=each, ranks=nodes)
    return {
        "all_reduces": 2.0 * shape.layers + 1.0 if layout.tensor > 1 else 0.0,
        "all_reduce_seconds": reduce.fixed + (_NETWORK_SECONDS if _across(question.gpu, layout.tensor) else 0.0),
        "all_reduce_rate": min(link * large, _reduced(question.gpu, layout.tensor)),
        "exchange_layers": float(moe.layers) if moe and layout.data > 1 else 0.0,
        "exchange_seconds": there.fixed + back.fixed + (_NETWORK_SECONDS if across else 0.0),
        "exchange_rate": min(inside, between),
        "exchange_bytes": copies * width,
        "prompt_exchange_bytes": prompts * width,
    }


def _copies(question: EngineQuestion, engine: InferenceEngine) -> Real:
    """
    Copies of a token that leave its rank in a layer with experts.

    Ranks of one node gather all tokens, unless the engine has a way of its own where a network joins more than a node;
    who spreads experts over nodes has kernels that send to ranks with an expert alone.
    """
    moe, layout, node = question.model.architecture.moe, question.layout, question.gpu.specification.gpus_per_node.value
    if _wide(question) or (engine.rack_exchange and question.gpu.specification.joined_gpus.value > node):
        return copies_sent(experts_per_token=moe.experts_per_token if moe else 0, ranks=layout.data)
    return copies_gathered(ranks=float(layout.data))


def sends_over_nodes(question: EngineQuestion) -> bool:
    """
    Whether experts lie on nodes that no fast network joins, so that kernels made for that exchange tokens.

    In a decode step these send a token to each of its experts, in a prompt once to each node that has one, where the
    fast network hands it on meanwhile (DeepEP, low latency and normal).
    """
    return _wide(question) and _across(question.gpu, question.layout.tensor * question.layout.data)


def _wide(question: EngineQuestion) -> bool:
    """Whether ranks lie on more GPUs than a node has."""
    return question.layout.tensor * question.layout.data > question.gpu.specification.gpus_per_node.value


def _across(gpu: Gpu, ranks: int) -> bool:
    """Whether a network between nodes joins ranks."""
    return ranks > gpu.specification.joined_gpus.value


def _between(question: EngineQuestion) -> float:
    """Bandwidth of exchanges over a network between nodes."""
    if not _across(question.gpu, question.layout.tensor * question.layout.data):
        return float("inf")
    return _adapter(question.gpu) * (_EXCHANGE_SHARE if sends_over_nodes(question) else _NETWORK_SHARE)


def _reduced(gpu: Gpu, ranks: int) -> float:
    """Bandwidth of all-reduces between nodes, where ranks span several: they share a node's adapters."""
    if not _across(gpu, ranks):
        return float("inf")
    return _adapter(gpu) * _NETWORK_SHARE * gpu.specification.gpus_per_node.value


def _adapter(gpu: Gpu) -> float:
    said = gpu.specification
    return (said.adapter or said.scale_up.bandwidth_one_direction).value
