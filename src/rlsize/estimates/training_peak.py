"""The peak memory of a training pass on one GPU, as a framework's allocator reserves it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rlsize.equations import activations, memory, memory_fit, training_peak
from rlsize.estimates.memory_shape import memory_shape
from rlsize.estimates.model_size import model_size
from rlsize.facts.records.record import Layout

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Literal

    from rlsize.equations._ops import Real
    from rlsize.estimates.memory_shape import MemoryShape
    from rlsize.facts.model import Model

    Work = Callable[..., Real]
    Recompute = Literal["none", "selective", "full"]

_WIDTH = 2.0  # bytes of an activation, and of a gathered weight
_INPUT = 1.0  # hidden-sized tensors that a layer keeps under full recomputation: its input
_GATHERED_COPIES = 3.0  # inputs of attention and MLP, and one gradient, gathered over tensor-parallel ranks
_PREFETCHED = 1.0
_CHUNKS = 8.0  # of a chunked loss
_NONE = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakQuestion:
    """
    One training pass.

    Args:
        model: The model.
        layout: Ranks: tensor, pipeline, expert, context, and data-parallel ranks that shard the states.
        sequences: Sequences of one pass of a data-parallel rank, over all its micro batches. [1]
        sequence_tokens: Tokens of a sequence. [token]
        recompute: none, selective (operators) or full (layers).
        weight_width: Bytes of a weight as it is kept. [B/param]
        gradient_width: Bytes of a gradient; 0 for frozen weights. [B/param]
        optimizer_width: Bytes of master copy and optimizer state; 0 where they are offloaded. [B/param]
        gathered_width: Bytes of a weight as FSDP gathers it. [B/param]
        state_offloaded: Whether weights and states stay on the host.
        gradients_held: Whether gradients outlive a pass: accumulation, a pipeline.
        gathered_whole: Whether gathered weights and gradients of all layers stay (FSDP under a pipeline).
        compiled: Whether the layers are compiled.
        chunked_loss: Whether logits exist for a chunk only.
        activations_offloaded: Whether what the layers keep goes to the host.
    """

    model: Model
    layout: Layout = field(default_factory=Layout)
    sequences: Real = 1.0
    sequence_tokens: Real = 4096.0
    recompute: Recompute = "full"
    weight_width: float = 2.0
    gradient_width: float = 2.0
    optimizer_width: float = 12.0
    gathered_width: float = 2.0
    state_offloaded: bool = False
    gradients_held: bool = True
    gathered_whole: bool = False
    compiled: bool = False
    chunked_loss: bool = False
    activations_offloaded: bool = False


def peak_bytes(work: Work, question: PeakQuestion, values: Mapping[str, Real]) -> Real:
    """
    Peak memory of one pass on the GPU that holds most. [B]

    Args:
        work: `working.apply` or `working.numbers`.
        question: The pass.
        values: The constants of `constants_memory.STAGE` by name.
    """
    shape = memory_shape(question.model, model_size(question.model).params)
    passes = float(question.layout.pipeline)  # a pipeline divides its batch into as many micro batches as stages
    tokens = work(
        "micro_batch_tokens",
        training_peak.micro_batch_tokens,
        sequences=question.sequences,
        sequence_tokens=question.sequence_tokens,
        context_parallel=float(question.layout.context),
        micro_batches=passes,
    )
    growing = 0.0 if question.gradients_held else question.gradient_width
    return work(
        "training_peak_bytes",
        training_peak.training_peak_bytes,
        state_bytes=_states(work, question, shape, held=True),
        activation_bytes=activation_bytes(work, question, shape, tokens, values),
        logits_bytes=_logits(work, question, shape, tokens, values),
        gradient_bytes=_states(work, question, shape, held=False) if growing else _NONE,
        gathered_bytes=_gathered(work, question, shape),
        overhead=values["memory_training_overhead"],
    )


def peak_beside(
    work: Work, question: PeakQuestion, state_bytes: Real, tokens: Real, values: Mapping[str, Real]
) -> Real:
    """
    Peak memory of a pass whose states are known otherwise. [B]

    Args:
        work: `working.apply` or `working.numbers`.
        question: The pass; what it says of its states and sequences does not count.
        state_bytes: What stays over the pass on each GPU. [B]
        tokens: Tokens of a micro-batch on each GPU. [token]
        values: The constants of `constants_memory.STAGE` by name.
    """
    shape = memory_shape(question.model, model_size(question.model).params)
    return work(
        "training_peak_bytes",
        training_peak.training_peak_bytes,
        state_bytes=state_bytes,
        activation_bytes=activation_bytes(work, question, shape, tokens, values),
        logits_bytes=_logits(work, question, shape, tokens, values),
        gradient_bytes=_NONE,
        gathered_bytes=_gathered(work, question, shape),
        overhead=values["memory_training_overhead"],
    )


def _slices(work: Work, question: PeakQuestion, shape: MemoryShape) -> tuple[tuple[Real, Real], ...]:
    """Parameters on a GPU before data parallelism, and the ranks that share their states: dense, then experts."""
    layout = question.layout
    tensor, expert = float(layout.tensor), float(layout.expert)
    sliced = 1.0 if expert > 1.0 else tensor  # of an expert: not at all once experts are parallel themselves
    found = []
    for params, ways in ((shape.dense_params, None), (shape.routed_params, expert)):
        each = work(
            "params_per_gpu",
            memory.params_per_gpu,
            dense_params=params.number if ways is None else _NONE,
            routed_params=_NONE if ways is None else params.number,
            tensor_parallel=tensor,
            pipeline_parallel=float(layout.pipeline),
            expert_parallel=expert,
            expert_tensor_parallel=sliced,
        )
        ranks = work(
            "slice_ranks",
            memory_fit.ranks_with_same_slice,
            data_parallel=float(layout.data),
            context_parallel=float(layout.context),
            tensor_parallel=tensor,
            expert_parallel=1.0 if ways is None else expert,
            expert_tensor_parallel=tensor if ways is None else sliced,
        )
        found.append((each, ranks))
    return tuple(found)


def _states(work: Work, question: PeakQuestion, shape: MemoryShape, *, held: bool) -> Real:
    """What stays over a pass, or the gradients that only grow in it."""
    if question.state_offloaded:
        return _NONE
    gradient = question.gradient_width if question.gradients_held or not held else _NONE
    parts = [
        work(
            "state_bytes",
            memory.sharded_state_bytes,
            params=params,
            bytes_per_param=question.weight_width if held else _NONE,
            bytes_per_gradient=gradient,
            bytes_per_optimizer=question.optimizer_width if held else _NONE,
            weight_shards=ranks,
            gradient_shards=ranks,
            optimizer_shards=ranks,
        )
        for params, ranks in _slices(work, question, shape)
    ]
    return work("state_bytes", training_peak.dense_and_routed, dense=parts[0], routed=parts[1])


def _gathered(work: Work, question: PeakQuestion, shape: MemoryShape) -> Real:
    """Weights and gradients of gathered layers: the largest with one ahead, or all of a pipeline's stage."""
    sharded = question.layout.data * question.layout.context > 1 or question.state_offloaded
    if not sharded:
        return _NONE
    layers = shape.layers.number
    (dense, _), (routed, _) = _slices(work, question, shape)
    stage = work("stage_params", training_peak.dense_and_routed, dense=dense, routed=routed)
    if question.gathered_whole:
        return _unsharded(work, question, stage, ahead=_NONE)
    pipeline, tensor = float(question.layout.pipeline), float(question.layout.tensor)
    per_stage = work("stage_layers", memory_fit.layers_per_stage, layers=layers, pipeline_parallel=pipeline)
    layer = work("layer_params", memory_fit.mean_layer_params, params=stage, outer_params=_NONE, layers=per_stage)
    unit = work(
        "unit_params",
        training_peak.largest_unit_params,
        layer_params=layer,
        outer_params=shape.outer_params.number,
        outer_units=1.0 if question.model.architecture.tied_embeddings else 2.0,
        tensor_parallel=tensor,
    )
    return _unsharded(work, question, unit, ahead=_PREFETCHED)


def _unsharded(work: Work, question: PeakQuestion, params: Real, *, ahead: float) -> Real:
    return work(
        "gathered_bytes",
        memory.unsharded_layer_bytes,
        layer_params=params,
        bytes_per_param=question.gathered_width,
        bytes_per_gradient=question.gradient_width,
        prefetched_layers=ahead,
    )


def activation_bytes(
    work: Work, question: PeakQuestion, shape: MemoryShape, tokens: Real, values: Mapping[str, Real]
) -> Real:
    """What the layers keep, and the layer at work."""
    copies = work(
        "hidden_copies",
        activations.gated_mlp_hidden_copies,
        attention_copies=values["memory_attention_copies"],
        intermediate_size=shape.mlp_width.number,
        hidden_size=shape.hidden_size.number,
    )
    full = _kept(work, copies, values["memory_compiled_share"]) if question.compiled else copies
    kept = full
    if question.recompute == "selective":
        kept = _kept(work, full, values["memory_selective_share"])
    tensor = float(question.layout.tensor)
    layer = work(
        "layer_bytes",
        activations.activation_bytes_per_layer,
        tokens=tokens,
        hidden_size=shape.hidden_size.number,
        bytes_per_activation=_WIDTH,
        replicated_copies=_INPUT if question.recompute == "full" else _NONE,
        sequence_parallel=tensor,
        sharded_copies=_NONE if question.recompute == "full" else kept,
        tensor_parallel=tensor,
    )
    working = work(
        "working_bytes",
        training_peak.working_layer_bytes,
        tokens=tokens,
        hidden_size=shape.hidden_size.number,
        bytes_per_activation=_WIDTH,
        hidden_copies=_NONE if question.recompute == "none" else full,
        gathered_copies=_GATHERED_COPIES,
        tensor_parallel=tensor,
    )
    return work(
        "activation_bytes",
        activations.activation_bytes,
        layers=_NONE if question.activations_offloaded else shape.layers.number,
        bytes_per_layer=layer,
        working_bytes=working,
    )


def _kept(work: Work, copies: Real, share: Real) -> Real:
    return work("kept_copies", training_peak.kept_copies, hidden_copies=copies, kept_share=share)


def _logits(work: Work, question: PeakQuestion, shape: MemoryShape, tokens: Real, values: Mapping[str, Real]) -> Real:
    """Logits of the pass, or of a chunk of it."""
    chunk = work(
        "logit_tokens",
        activations.tokens_per_context_rank,
        micro_batch_tokens=tokens,
        context_parallel=_CHUNKS if question.chunked_loss else 1.0,
    )
    return work(
        "logits_bytes",
        activations.logits_bytes,
        tokens=chunk,
        vocab_size=shape.vocab_size.number,
        bytes_per_logit=values["memory_training_logit_bytes"],
        tensor_parallel=float(question.layout.tensor),
    )
