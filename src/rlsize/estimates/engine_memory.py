"""The memory of an engine's GPUs at start-up: weights, what it loses before its cache, and what the cache holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlsize.equations import engine_cache, engine_memory, kv_cache, memory_fit
from rlsize.errors import Refused
from rlsize.estimates.engine_shape import engine_shape, plainly
from rlsize.estimates.figures import numbers
from rlsize.facts.inference_engines import inference_engine
from rlsize.facts.quantisation import KV_WIDTHS, WIDTHS, native

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.engine_shape import EngineShape
    from rlsize.estimates.engine_work import EngineQuestion
    from rlsize.estimates.figures import Work, Worked
    from rlsize.facts.gpu import Gpu
    from rlsize.facts.inference_engines import InferenceEngine
    from rlsize.facts.layout import Layout
    from rlsize.facts.model import Model
    from rlsize.facts.quantisation import WeightTypes

_WIDE = 2.0  # bytes of what no checkpoint quantises
_GIB = 2.0**30
_BINARY_GIGABYTE = _GIB / 1e9  # over a decimal one: memory of binary size is sold by the GB


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
        sequence_bytes: Cache of one sequence on each GPU. [B]
    """

    memory: Worked
    weight_bytes: Worked
    activation_bytes: Worked
    other_bytes: Worked
    kv_bytes: Worked
    kv_tokens: Worked
    sequence_bytes: Worked


def kv_capacity(
    work: Work,
    question: EngineQuestion,
    values: Mapping[str, Real],
    sequence_tokens: Worked | None = None,
    held_bytes: Worked | None = None,
) -> KvCapacity:
    """
    What an engine has for its KV cache, and how much that holds.

    Args:
        work: `figures.apply` or `figures.numbers`.
        question: The engine on its GPUs.
        values: The constants of `constants_memory.STAGE` by name: numbers, or arrays of draws.
        sequence_tokens: Length of the sequences in the cache; the model's longest where None. [token]
        held_bytes: What others hold on each GPU when it starts, which engines that take a share of what is free then do
            without. [B]
    """
    engine, layout = inference_engine(question.engine), question.layout
    shape = engine_shape(question.model, KV_WIDTHS[question.kv_dtype])
    length = plainly(work)(shape.max_context) if sequence_tokens is None else sequence_tokens
    ranks = attention_ranks(work, question.model, layout)
    memory = visible_memory(work, question.gpu, values)
    types = question.weights or native(question.model.name)
    weights = weight_bytes(work, question.model, types, layout, values)
    weights = _with_drafter(work, question, "engine_weight_bytes", weights)
    activations = _activation_bytes(work, question, shape, engine, values)
    other = work(
        "engine_other_bytes",
        engine_cache.engine_other_bytes,
        process_bytes=values["memory_process_bytes" if engine.budget == "profiled" else "memory_context_bytes"],
        communicator_bytes=values["memory_communicator_bytes"],
        gpus=work("engine_gpus", engine_memory.engine_gpus, tensor=layout.tensor, pipeline=layout.pipeline, data=ranks),
    )
    there = memory
    if engine.budget != "profiled" and held_bytes is not None:
        there = work(
            "free_bytes", memory_fit.budget_left, gpu_memory=memory, usable_fraction=1.0, held_bytes=held_bytes
        )
    budget = _budget(work, question, engine, (there, weights, activations, other), values)
    parts = sequence_parts(work, shape, layout, windows_whole=question.windows_whole)
    sequence = _with_drafter(work, question, "sequence_bytes", sequence_bytes(work, parts, length))
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
            sequence_bytes=sequence,
            sequence_tokens=length,
            block_tokens=float(engine.block_tokens),
            data_parallel=ranks,
        ),
        sequence_bytes=sequence,
    )


def check_room(question: EngineQuestion, tokens: float, values: Mapping[str, float]) -> None:
    """
    Refuse an engine whose KV cache does not hold a sample.

    Args:
        question: The engine on its GPUs.
        tokens: Prompt and response of that sample. [token]
        values: The constants of `constants_memory.STAGE` by name.

    Raises:
        Refused: With the bytes that are there and those that are needed.
    """
    held = kv_capacity(numbers, question, values, tokens)
    if float(held.kv_bytes) <= float(held.sequence_bytes):
        raise Refused(
            f"{question.model.name} does not fit on {question.layout.tensor * question.layout.data} x "
            f"{question.gpu.name}: weights take {float(held.weight_bytes) / _GIB:.1f} GiB of each GPU's "
            f"{float(held.memory) / _GIB:.1f} GiB, which leaves {max(0.0, float(held.kv_bytes)) / _GIB:.2f} GiB of KV "
            f"cache, and a sample of {float(tokens):,.0f} tokens needs {float(held.sequence_bytes) / _GIB:.2f} GiB"
        )


def _with_drafter(work: Work, question: EngineQuestion, key: str, amount: Worked) -> Worked:
    """What a model takes, with its drafter if it has one. [B]"""
    layers = float(question.model.architecture.layers)
    return work(key, engine_cache.with_drafter, amount=amount, layers=layers) if question.drafts else amount


def visible_memory(work: Work, gpu: Gpu, values: Mapping[str, Real]) -> Worked:
    """Memory of the GPU that a process sees: of what the driver reports, else as sold, in binary gigabytes."""
    stated = gpu.specification.memory_usable
    return work(
        "visible_memory_bytes",
        engine_cache.visible_memory,
        memory=(stated or gpu.specification.memory).value,
        binary_share=1.0 if stated else _BINARY_GIGABYTE,
        visible_share=values["memory_visible_share"],
    )


def weight_bytes(work: Work, model: Model, types: WeightTypes, layout: Layout, values: Mapping[str, Real]) -> Worked:
    """Weights on each GPU, with what tensor parallelism copies and what quantisation leaves wide."""
    say, shape, tensor = plainly(work), engine_shape(model), 1.0 * layout.tensor
    copies = engine_memory.params_with_copies
    mixers = work(
        "mixer_params",
        copies,
        params=say(shape.mixers),
        head_params=say(shape.kv_projections),
        kv_heads=say(shape.kv_heads),
        whole_params=say(shape.latents),
        tensor_parallel=tensor,
    )
    wide = work(
        "wide_params",
        copies,
        params=work("wide_params", engine_memory.both, one=say(shape.wide), other=say(shape.routers)),
        head_params=0.0,
        kv_heads=1.0,
        whole_params=say(shape.routers),
        tensor_parallel=tensor,
    )
    return work(
        "engine_weight_bytes",
        engine_memory.engine_weight_bytes,
        attention_params=mixers,
        attention_width=WIDTHS[types.attention],
        dense_params=say(shape.dense),
        dense_width=WIDTHS[types.dense],
        wide_params=wide,
        wide_width=_WIDE,
        routed_params=say(shape.routed),
        routed_width=WIDTHS[types.experts],
        tensor_parallel=tensor,
        data_parallel=attention_ranks(work, model, layout),
        pipeline_parallel=1.0 * layout.pipeline,
        overhead=values["memory_weight_overhead"],
    )


def attention_ranks(work: Work, model: Model, layout: Layout) -> Worked:
    """Ranks with a cache of their own: data-parallel attention, said or implied by expert parallelism."""
    return work(
        "attention_ranks",
        engine_memory.attention_ranks,
        tensor_parallel=1.0 * layout.tensor,
        data_parallel=1.0 * layout.data,
        expert_parallel=1.0 * layout.expert if model.architecture.moe else 1.0,
    )


def _activation_bytes(
    work: Work, question: EngineQuestion, shape: EngineShape, engine: InferenceEngine, values: Mapping[str, Real]
) -> Worked:
    say = plainly(work)
    copies = work(
        "working_copies",
        engine_memory.working_copies,
        stream_copies=values["memory_stream_copies"],
        experts_per_token=say(shape.experts_per_token),
    )
    return work(
        "activation_bytes",
        engine_memory.profiled_activation_bytes,
        batched_tokens=_batched_tokens(question, engine),
        bytes_per_activation=_WIDE,
        hidden_size=say(shape.hidden_size),
        hidden_copies=copies,
        mlp_width=say(shape.mlp_width),
        tensor_parallel=1.0 * question.layout.tensor,
        sequences=step_sequences(question),
        vocab_size=say(shape.vocab_size),
        bytes_per_logit=values["memory_sampler_bytes"],
    )


def step_sequences(question: EngineQuestion) -> Real:
    """Most sequences of a step on one attention rank: as said, else the engine's default for such a GPU. [1]"""
    engine = inference_engine(question.engine)
    said = question.max_sequences
    return float(engine.sequences[_size(engine, question.gpu)]) if said is None else said


def _batched_tokens(question: EngineQuestion, engine: InferenceEngine) -> Real:
    """Most tokens of a step: as said, else the engine's default for such a GPU. [token]"""
    said = question.batched_tokens
    return float(engine.batched_tokens[_size(engine, question.gpu)]) if said is None else said


def _size(engine: InferenceEngine, gpu: Gpu) -> int:
    """Which of an engine's defaults a GPU gets: 0 for those of small ones, 1 for those of large ones."""
    counted_small = bool(engine.counted_small) and gpu.name.startswith(engine.counted_small)
    return 0 if counted_small or gpu.specification.memory.value < engine.large_memory else 1


def _budget(
    work: Work,
    question: EngineQuestion,
    engine: InferenceEngine,
    found: tuple[Worked, Worked, Worked, Worked],
    values: Mapping[str, Real],
) -> Worked:
    memory, weights, activations, other = found
    fraction = memory_share(work, question, memory)
    common = {"memory": memory, "memory_fraction": fraction, "weight_bytes": weights, "other_bytes": other}
    if engine.budget == "static":
        return work("kv_bytes", engine_cache.static_kv_budget, **common)
    common["activation_bytes"] = activations
    if engine.budget == "leftover":
        return work("kv_bytes", engine_cache.leftover_kv_budget, **common)
    graphs = values["memory_graph_bytes"] if question.graphs_counted else 0.0
    return work("kv_bytes", engine_cache.profiled_kv_budget, graph_bytes=graphs, **common)


def memory_share(work: Work, question: EngineQuestion, memory: Real) -> Worked:
    """Share of a GPU's memory that an engine plans with: as said, its default, or what its largest step leaves. [1]"""
    engine = inference_engine(question.engine)
    if question.memory_fraction is not None:
        return question.memory_fraction
    if engine.memory_fraction:
        return engine.memory_fraction
    fixed, each = engine.aside
    return work(
        "memory_fraction",
        engine_cache.static_share,
        memory=memory,
        fixed_bytes=fixed,
        batched_tokens=_batched_tokens(question, engine),
        bytes_per_token=each,
    )


def sequence_bytes(work: Work, parts: Mapping[str, Worked], tokens: Worked) -> Worked:
    """What a sequence of so many tokens keeps on each GPU, from its parts."""
    return work(
        "sequence_bytes",
        kv_cache.sequence_kv_bytes,
        kv_bytes_per_token=parts["bytes_per_token"],
        tokens=tokens,
        sliding_bytes_per_token=parts["window_bytes_per_token"],
        window=parts["window_tokens"],
        state_bytes=parts["state_bytes"],
    )


def sequence_parts(work: Work, shape: EngineShape, layout: Layout, *, windows_whole: bool = False) -> dict[str, Worked]:
    """What a sequence keeps on each GPU, by how it grows with its length; sliding layers may keep every token."""
    say, size = plainly(work), shape.size

    def share(key: str, attention: Worked, index: Worked = 0.0, state: Worked = 0.0) -> Worked:
        return work(
            key,
            engine_cache.sequence_bytes_per_gpu,
            attention_bytes=attention,
            kv_heads=say(shape.kv_heads),
            index_bytes=index,
            state_bytes=state,
            state_heads=say(shape.state_heads),
            tensor_parallel=1.0 * layout.tensor,
            pipeline_parallel=1.0 * layout.pipeline,
        )

    sliding, whole = say(size.sliding_bytes_per_token), say(size.kv_bytes_per_token)
    if windows_whole:
        whole, sliding = work("kv_bytes_per_token", engine_memory.both, one=whole, other=sliding), 0.0
    states = work(
        "state_bytes",
        engine_memory.both,
        one=say(size.recurrent_state_bytes),
        other=say(size.convolution_state_bytes),
    )
    return {
        "bytes_per_token": share("bytes_per_token", whole, say(size.index_bytes_per_token)),
        "window_bytes_per_token": share("window_bytes_per_token", sliding),
        "window_tokens": say(size.window_tokens),
        "state_bytes": share("state_bytes", 0.0, 0.0, states),
    }
