"""The memory of an engine's GPUs at start-up: weights, what it loses before its cache, and what the cache holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rlsize.equations import engine_cache, engine_memory, kv_cache
from rlsize.estimates.engine_shape import Plain, engine_shape
from rlsize.estimates.engine_weights import attention_ranks, weight_bytes
from rlsize.estimates.gpu_memory import visible_memory
from rlsize.facts.engine_defaults import engine_defaults
from rlsize.facts.quantisation import KV_WIDTHS
from rlsize.facts.records.record import Layout

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.engine_shape import EngineShape
    from rlsize.facts.engine_defaults import EngineDefaults
    from rlsize.facts.gpu import Gpu
    from rlsize.facts.model import Model
    from rlsize.facts.quantisation import WeightTypes

    Work = Callable[..., Real]

_WIDE = 2.0  # bytes of what no checkpoint quantises


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityQuestion:
    """
    An engine on its GPUs.

    Args:
        model: The model.
        gpu: The GPU.
        engine: vllm, sglang or tensorrt-llm; a name that holds one of them.
        layout: Tensor, pipeline and data (attention) ranks of one replica; experts lie over tensor x data.
        weights: Number types of the weights; as the model is published where None.
        kv_dtype: Number type of the cache.
        memory_fraction: Share of the memory that the engine plans with; its default where None. [1]
        batched_tokens: Most tokens of a step; the engine's default where None. [token]
        max_sequences: Most sequences of a step on one attention rank; the engine's default where None. [1]
        sequence_tokens: Length at which the cache is counted in tokens; the model's longest where None. [token]
        live_tokens: Mean length of a sequence in flight, for the concurrency; sequence_tokens where None. [token]
        graphs_counted: Whether CUDA graphs are taken off before the cache is sized (vLLM since 0.19).
        windows_whole: Whether sliding layers keep every token (engines without a cache per kind of layer).
    """

    model: Model
    gpu: Gpu
    engine: str = "vllm"
    layout: Layout = field(default_factory=Layout)
    weights: WeightTypes | None = None
    kv_dtype: str = "bf16"
    memory_fraction: Real | None = None
    batched_tokens: Real | None = None
    max_sequences: Real | None = None
    sequence_tokens: Real | None = None
    live_tokens: Real | None = None
    graphs_counted: bool = True
    windows_whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class KvCapacity:
    """
    What one replica holds; numbers, arrays or figures, as `work` makes them.

    Args:
        memory: Memory that a process sees on each GPU. [B]
        weight_bytes: Weights on each GPU. [B]
        activation_bytes: Peak of temporary tensors on each GPU. [B]
        other_bytes: Libraries and communicators on each GPU. [B]
        kv_bytes: KV cache on each GPU; 0 where the weights leave no room. [B]
        kv_tokens: Tokens that the cache of a replica holds, all its data-parallel ranks together. [token]
        sequence_bytes: Cache of one live sequence on each GPU. [B]
        bytes_per_token: Of it, per token in layers that keep every token. [B/token]
        window_bytes_per_token: Of it, per token in sliding layers, up to the window. [B/token]
        window_tokens: The window; 0 without one. [token]
        state_bytes: Of it, recurrent states, whatever the length. [B]
        max_concurrency: Sequences of `live_tokens` that a replica can work on at once. [1]
    """

    memory: Real
    weight_bytes: Real
    activation_bytes: Real
    other_bytes: Real
    kv_bytes: Real
    kv_tokens: Real
    sequence_bytes: Real
    bytes_per_token: Real
    window_bytes_per_token: Real
    window_tokens: Real
    state_bytes: Real
    max_concurrency: Real


def kv_capacity(work: Work, question: CapacityQuestion, values: Mapping[str, Real]) -> KvCapacity:
    """
    What an engine has for its KV cache, and how much that holds.

    Args:
        work: `figures.apply` or `figures.numbers`.
        question: The engine on its GPUs.
        values: The constants of `constants_memory.STAGE` by name: numbers, or arrays of draws.
    """
    engine = engine_defaults(question.engine)
    shape = engine_shape(question.model, KV_WIDTHS[question.kv_dtype])
    memory = visible_memory(work, question.gpu, values)
    weights = weight_bytes(work, question, shape, values)
    activations = _activation_bytes(work, question, shape, engine, values)
    other = _other_bytes(work, question, engine, values)
    budget = _budget(work, question, engine, (memory, weights, activations, other), values)
    say = Plain(work)
    longest = question.sequence_tokens if question.sequence_tokens is not None else say(shape.max_context)
    live = question.live_tokens if question.live_tokens is not None else longest
    parts = _parts(work, question, shape)
    ranks = attention_ranks(work, question)
    return KvCapacity(
        memory=memory,
        weight_bytes=weights,
        activation_bytes=activations,
        other_bytes=other,
        kv_bytes=budget,
        kv_tokens=work(
            "kv_tokens",
            engine_cache.cache_tokens,
            kv_budget=budget,
            sequence_bytes=_sequence(work, question, shape, longest),
            sequence_tokens=longest,
            block_tokens=float(engine.block_tokens),
            data_parallel=ranks,
        ),
        sequence_bytes=_sequence(work, question, shape, live),
        max_concurrency=work(
            "max_concurrency",
            engine_cache.held_sequences,
            kv_budget=budget,
            sequence_bytes=_sequence(work, question, shape, live),
            data_parallel=ranks,
            most_sequences=_step(question.max_sequences, engine.sequences, question.gpu, engine),
        ),
        **parts,
    )


def _activation_bytes(
    work: Work, question: CapacityQuestion, shape: EngineShape, engine: EngineDefaults, values: Mapping[str, Real]
) -> Real:
    say = Plain(work)
    copies = work(
        "working_copies",
        engine_memory.working_copies,
        stream_copies=values["memory_stream_copies"],
        experts_per_token=say(shape.experts_per_token),
    )
    return work(
        "activation_bytes",
        engine_memory.profiled_activation_bytes,
        batched_tokens=_step(question.batched_tokens, engine.batched_tokens, question.gpu, engine),
        bytes_per_activation=_WIDE,
        hidden_size=say(shape.hidden_size),
        hidden_copies=copies,
        mlp_width=say(shape.mlp_width),
        tensor_parallel=float(question.layout.tensor),
        sequences=_step(question.max_sequences, engine.sequences, question.gpu, engine),
        vocab_size=say(shape.vocab_size),
        bytes_per_logit=values["memory_sampler_bytes"],
    )


def _step(said: Real | None, sizes: tuple[int, int], gpu: Gpu, engine: EngineDefaults) -> Real:
    """A size of a step: as said, else the engine's default for a GPU of such memory."""
    if said is not None:
        return said
    small, large = sizes
    memory = gpu.specification.memory.value
    reckoned_small = bool(engine.counted_small) and gpu.name.startswith(engine.counted_small)
    return float(small if memory < engine.large_memory or reckoned_small else large)


def _other_bytes(work: Work, question: CapacityQuestion, engine: EngineDefaults, values: Mapping[str, Real]) -> Real:
    layout = question.layout
    return work(
        "engine_other_bytes",
        engine_cache.engine_other_bytes,
        process_bytes=values["memory_process_bytes" if engine.budget == "profiled" else "memory_context_bytes"],
        communicator_bytes=values["memory_communicator_bytes"],
        gpus=work(
            "engine_gpus",
            engine_memory.engine_gpus,
            tensor=layout.tensor,
            pipeline=layout.pipeline,
            data=attention_ranks(work, question),
        ),
    )


def _budget(
    work: Work,
    question: CapacityQuestion,
    engine: EngineDefaults,
    found: tuple[Real, Real, Real, Real],
    values: Mapping[str, Real],
) -> Real:
    memory, weights, activations, other = found
    fraction = memory_share(work, question, engine, memory)
    common = {"memory": memory, "memory_fraction": fraction, "weight_bytes": weights, "other_bytes": other}
    if engine.budget == "static":
        return work("kv_bytes", engine_cache.static_kv_budget, **common)
    common["activation_bytes"] = activations
    if engine.budget == "leftover":
        return work("kv_bytes", engine_cache.leftover_kv_budget, **common)
    graphs = values["memory_graph_bytes"] if question.graphs_counted else 0.0
    return work("kv_bytes", engine_cache.profiled_kv_budget, graph_bytes=graphs, **common)


def memory_share(work: Work, question: CapacityQuestion, engine: EngineDefaults, memory: Real) -> Real:
    """Share of a GPU's memory that an engine plans with: as said, its default, or what its largest step leaves. [1]"""
    if question.memory_fraction is not None:
        return question.memory_fraction
    return engine.memory_fraction or _static_share(work, question, engine, memory)


def _static_share(work: Work, question: CapacityQuestion, engine: EngineDefaults, memory: Real) -> Real:
    """The share of an engine that sets aside what its largest step needs."""
    fixed, each = engine.aside
    return work(
        "memory_fraction",
        engine_cache.static_share,
        memory=memory,
        fixed_bytes=fixed,
        batched_tokens=_step(question.batched_tokens, engine.batched_tokens, question.gpu, engine),
        bytes_per_token=each,
    )


def _parts(work: Work, question: CapacityQuestion, shape: EngineShape) -> dict[str, Real]:
    """What a sequence keeps on each GPU, by how it grows with its length."""
    say, size = Plain(work), shape.size

    def share(key: str, attention: Real, index: Real = 0.0, state: Real = 0.0) -> Real:
        return _per_gpu(work, question, shape, key, (attention, index, state))

    sliding = say(size.sliding_bytes_per_token)
    whole = say(size.kv_bytes_per_token)
    if question.windows_whole:
        whole, sliding = work("kv_bytes_per_token", engine_memory.both, one=whole, other=sliding), 0.0
    return {
        "bytes_per_token": share("bytes_per_token", whole, say(size.index_bytes_per_token)),
        "window_bytes_per_token": share("window_bytes_per_token", sliding),
        "window_tokens": say(size.window_tokens),
        "state_bytes": share("state_bytes", 0.0, 0.0, _states(work, shape)),
    }


def _states(work: Work, shape: EngineShape) -> Real:
    say, size = Plain(work), shape.size
    return work(
        "state_bytes",
        engine_memory.both,
        one=say(size.recurrent_state_bytes),
        other=say(size.convolution_state_bytes),
    )


def _sequence(work: Work, question: CapacityQuestion, shape: EngineShape, tokens: Real) -> Real:
    """Cache of one sequence of so many tokens on each GPU."""
    parts = _parts(work, question, shape)
    return work(
        "sequence_bytes",
        kv_cache.sequence_kv_bytes,
        tokens=tokens,
        kv_bytes_per_token=parts["bytes_per_token"],
        sliding_bytes_per_token=parts["window_bytes_per_token"],
        window=parts["window_tokens"],
        state_bytes=parts["state_bytes"],
    )


def _per_gpu(
    work: Work, question: CapacityQuestion, shape: EngineShape, key: str, parts: tuple[Real, Real, Real]
) -> Real:
    say, layout = Plain(work), question.layout
    attention, index, state = parts
    return work(
        key,
        engine_cache.sequence_bytes_per_gpu,
        attention_bytes=attention,
        kv_heads=say(shape.kv_heads),
        index_bytes=index,
        state_bytes=state,
        state_heads=say(shape.state_heads),
        tensor_parallel=float(layout.tensor),
        pipeline_parallel=float(layout.pipeline),
    )
