"""
The memory of a trainer's GPUs: what each of them holds at the peak of a step, and whether that fits.

The one model of it. `memory`, `predict step`, `plan` and `check` ask it, with numbers, arrays or figures, and the
published peaks are graded against it.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from rlsize.equations import (
    activations,
    engine_memory,
    memory,
    memory_fit,
    mixture_of_experts,
    parameters,
    training_peak,
)
from rlsize.estimates.engine_shape import plainly
from rlsize.estimates.figures import apply, bare, total
from rlsize.estimates.trainer_layout import larger
from rlsize.facts.figure import Figure, absent
from rlsize.facts.quantisation import WIDTHS
from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.figures import Work, Worked
    from rlsize.estimates.memory_shape import MemoryShape
    from rlsize.estimates.trainer_layout import Sharding
    from rlsize.facts.model import Architecture

_WIDTH = 2.0  # bytes of an activation, of a frozen weight, and of a gathered one
_INPUT = 1.0  # hidden-sized tensors that a layer keeps under full recomputation: its input
_GATHERED_COPIES = 3.0  # inputs of attention and MLP, and one gradient, gathered over tensor-parallel ranks
_PREFETCHED = 1.0
_CHUNKS = 8.0  # of a chunked loss
_CHUNK_TOKENS = 1024.0  # where chunks are counted in tokens: 512 to 2048
_FUSED_LOGITS = 0.2  # of what a loss keeps of its logits: bf16, in whose place the gradient comes, 2 of 10 bytes
_ENTROPY_LOGITS = 0.6  # beside that: probabilities, their products with logits, and the gradient of these, 2 bytes each
_NONE = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelBeside:
    """
    A model on the trainer's GPUs beside the policy, sharded as the policy is.

    Args:
        name: critic, reference or reward.
        params: Parameters outside and inside routed experts. [param]
        trained: Whether it has gradients and an optimizer.
    """

    name: str
    params: tuple[Worked, Worked]
    trained: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerLoad:
    """
    What the GPUs of a trainer have to hold; numbers, arrays or figures.

    Args:
        shape: The policy; where only its size is known, states alone are counted.
        tokens: Tokens of a micro-batch on each GPU. [token]
        tensor: Tensor-parallel ranks. [1]
        pipeline: Pipeline stages. [1]
        context: Context-parallel ranks. [1]
        expert: Expert-parallel ranks. [1]
        shards: Data-parallel ranks that share one copy of the states. [1]
        sharding: What these share.
        gathered: Whether weights are gathered layer by layer from the ranks that share them.
        recompute: none, selective (operators) or full (layers).
        weight_width: Bytes of a weight as it is kept. [B/param]
        gradient_width: Bytes of a gradient; 0 for frozen weights. [B/param]
        optimizer_width: Bytes of master copy and optimizer state; 0 where they are offloaded. [B/param]
        gathered_width: Bytes of a weight as it is gathered. [B/param]
        adapter_params: Parameters of adapters, which alone are trained then; None for full training. [param]
        beside: The other models.
        state_offloaded: Whether weights and states stay on the host.
        gradients_held: Whether gradients outlive a pass: accumulation, a pipeline.
        gathered_whole: Whether gathered weights and gradients of all layers stay (FSDP under a pipeline).
        compiled: Whether the layers are compiled.
        chunked_loss: Whether logits exist for a chunk only.
        activations_offloaded: Whether what the layers keep goes to the host.
        fused_loss: Whether one kernel works the loss out, without a copy of the logits in fp32.
        entropy: Whether a graph of the entropy of the logits is kept.
        backward: Whether the pass has a backward; log-probabilities need none.
        frozen_dtype: Number type of frozen linear layers beside adapters; the weights' own where empty.
        logit_share: Share of the tokens whose logits are worked out. [1]
    """

    shape: MemoryShape
    tokens: Worked
    tensor: Worked = 1.0
    pipeline: Worked = 1.0
    context: Worked = 1.0
    expert: Worked = 1.0
    shards: Worked = 1.0
    sharding: Sharding = "full"
    gathered: bool = True
    recompute: str = "full"
    weight_width: Worked = _WIDTH
    gradient_width: Worked = 2.0
    optimizer_width: Worked = 12.0
    gathered_width: float = _WIDTH
    adapter_params: Worked = None
    beside: tuple[ModelBeside, ...] = ()
    state_offloaded: bool = False
    gradients_held: bool = True
    gathered_whole: bool = False
    compiled: bool = False
    chunked_loss: bool = False
    activations_offloaded: bool = False
    fused_loss: bool = False
    entropy: bool = False
    backward: bool = True
    frozen_dtype: str = ""
    logit_share: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerMemory:
    """
    What each GPU of a trainer holds at its peak; numbers, arrays or figures, as `work` makes them. Bytes, all of it.

    Args:
        weights: Weights of the policy.
        gradients: Gradients that outlive a pass.
        optimizer: Master copy and optimizer state.
        adapters: Adapters with all that training them keeps; 0 for full training.
        policy: These four together.
        beside: The other models by name: critic, reference, reward.
        states: Policy and other models together: what stays from step to step.
        gathered: Layers that are gathered; absent where the layers are not known.
        activations: What the layers keep, and the layer at work; absent likewise.
        logits: Logits and what the loss keeps beside them; absent likewise.
        growing: Gradients that grow in a pass while activations are freed; 0 where they outlive a pass.
        overhead: What the allocator reserves beyond all that.
        peak: The whole.
    """

    weights: Worked
    gradients: Worked
    optimizer: Worked
    adapters: Worked
    policy: Worked
    beside: Mapping[str, Worked] = field(default_factory=dict)
    states: Worked
    gathered: Worked
    activations: Worked
    logits: Worked
    growing: Worked
    overhead: Worked
    peak: Worked


def trainer_memory(work: Work, load: TrainerLoad, values: Mapping[str, Real]) -> TrainerMemory:
    """
    What each GPU of a trainer holds at its peak.

    Args:
        work: `figures.apply` or `figures.numbers`.
        load: What has to be held.
        values: The constants of `constants_memory.STAGE` by name.
    """
    say, shape = plainly(work), load.shape
    own = (say(shape.dense_params), say(shape.routed_params))
    parts, policy, trained = _policy(work, load, own)
    beside = {
        one.name: _states(
            work,
            load,
            f"{one.name}_bytes_per_gpu",
            one.params,
            _every(load) if one.trained else (_WIDTH, _NONE, _NONE),
        )
        for one in load.beside
    }
    standing = _sum(work, "state_bytes_per_gpu", [policy, *beside.values()])
    gathered = _gathered(work, load, own, trained if load.backward else _NONE)
    kept = _activations(work, load, values)
    logits = _logits(work, load, values)
    growing = _nothing(work, "growing_gradient_bytes_per_gpu", "gradients outlive a pass")
    if not load.gradients_held:
        growing = _states(work, load, "growing_gradient_bytes_per_gpu", own, (_NONE, trained, _NONE))
    peak = work(
        "trainer_held_bytes_per_gpu",
        training_peak.training_peak_bytes,
        state_bytes=standing,
        activation_bytes=_counted(kept),
        logits_bytes=_counted(logits),
        gradient_bytes=growing,
        gathered_bytes=_counted(gathered),
        overhead=values["memory_training_overhead"],
    )
    overhead = work(
        "allocator_bytes_per_gpu",
        training_peak.allocator_bytes,
        peak_bytes=peak,
        overhead=values["memory_training_overhead"],
    )
    return TrainerMemory(
        **parts,
        policy=policy,
        beside=beside,
        states=standing,
        gathered=gathered,
        activations=kept,
        logits=logits,
        growing=growing,
        overhead=overhead,
        peak=peak,
    )


def _policy(work: Work, load: TrainerLoad, own: tuple[Worked, Worked]) -> tuple[dict[str, Worked], Worked, Worked]:
    """What the policy keeps by part, all of it, and the width of a gradient of its own weights."""
    trained = load.gradient_width if load.adapter_params is None else _NONE
    states = load.optimizer_width if load.adapter_params is None else _NONE
    held = trained if load.gradients_held else _NONE
    parts = {
        "weights": _states(work, load, "weight_bytes_per_gpu", own, (policy_width(work, load), _NONE, _NONE)),
        "gradients": _states(work, load, "gradient_bytes_per_gpu", own, (_NONE, held, _NONE)),
        "optimizer": _states(work, load, "optimizer_bytes_per_gpu", own, (_NONE, _NONE, states)),
    }
    adapters = _nothing(work, "adapter_bytes_per_gpu", "all parameters are trained")
    if load.adapter_params is not None:
        adapters = _states(work, load, "adapter_bytes_per_gpu", (load.adapter_params, _NONE), _every(load))
    policy = _sum(work, "trainer_bytes_per_gpu", [*parts.values(), adapters])
    return parts | {"adapters": adapters}, policy, trained


def policy_width(work: Work, load: TrainerLoad) -> Worked:
    """Mean bytes of a weight of the policy: where linear layers are frozen in less, the rest stays in 16 bits."""
    if load.adapter_params is None or not load.frozen_dtype:
        return load.weight_width
    say = plainly(work)
    return work(
        "frozen_width",
        memory.mean_weight_width,
        params=say(load.shape.params),
        bytes_per_param=WIDTHS[load.frozen_dtype],
        unquantised_params=say(load.shape.wide_params),
        bytes_per_unquantised_param=_WIDTH,
    )


def _every(load: TrainerLoad) -> tuple[Worked, Worked, Worked]:
    return load.weight_width, load.gradient_width, load.optimizer_width


def _nothing(work: Work, key: str, why: str) -> Worked:
    return Figure(key=key, value=0.0, provenance="predicted", source=why) if work is apply else _NONE


def _counted(part: Worked) -> Worked:
    """A part, or nothing in its place where it is not known."""
    if isinstance(part, Figure) and not part.known:
        return Figure(key=part.key, value=0.0, provenance="default", source=f"not counted: needs {part.missing}")
    return part


def _sum(work: Work, key: str, parts: list[Worked]) -> Worked:
    found = parts[0]
    for part in parts[1:]:
        if isinstance(part, Figure) and not part.number:
            continue
        found = work(key, training_peak.dense_and_routed, dense=found, routed=part)
    return replace(found, key=key) if isinstance(found, Figure) else found


def _states(
    work: Work, load: TrainerLoad, key: str, params: tuple[Worked, Worked], widths: tuple[Worked, Worked, Worked]
) -> Worked:
    """
    Bytes of some state on each GPU: dealt out by model parallelism, shared by data-parallel ranks.

    Args:
        work: `figures.apply` or `figures.numbers`.
        load: How it is spread.
        key: The result's name.
        params: Parameters outside and inside routed experts. [param]
        widths: Bytes of a weight, a gradient, and master copy and optimizer state. [B/param]
    """
    if load.state_offloaded:
        return _nothing(work, key, "weights and states stay on the host")
    weight, gradient, optimizer = widths
    found = []
    for some, experts in zip(params, (False, True), strict=True):
        if experts and bare(some) is not None and not bare(some):
            continue
        ranks = _ranks(work, load, experts=experts)
        found.append(
            work(
                key,
                memory.sharded_state_bytes,
                params=_slice(work, load, some, experts=experts),
                bytes_per_param=weight,
                bytes_per_gradient=gradient,
                bytes_per_optimizer=optimizer,
                weight_shards=ranks if load.sharding == "full" else 1.0,
                gradient_shards=ranks if load.sharding in ("full", "gradients") else 1.0,
                optimizer_shards=ranks if load.sharding != "none" else 1.0,
            )
        )
    return _sum(work, key, found)


def _expert_tensor(load: TrainerLoad) -> Worked:
    """Ways in which tensor parallelism slices an expert: not at all once experts are parallel themselves."""
    return 1.0 if larger(bare(load.expert)) else load.tensor


def _slice(work: Work, load: TrainerLoad, params: Worked, *, experts: bool) -> Worked:
    """Parameters that model parallelism leaves on a GPU."""
    return work(
        "params_per_gpu",
        memory.params_per_gpu,
        dense_params=_NONE if experts else params,
        routed_params=params if experts else _NONE,
        tensor_parallel=load.tensor,
        pipeline_parallel=_even_stages(work, load),
        expert_parallel=load.expert,
        expert_tensor_parallel=_expert_tensor(load),
    )


def _stage_layers(work: Work, load: TrainerLoad) -> Worked:
    """Layers of the fullest stage."""
    layers = plainly(work)(load.shape.layers)
    return work("stage_layers", memory_fit.layers_per_stage, layers=layers, pipeline_parallel=load.pipeline)


def _even_stages(work: Work, load: TrainerLoad) -> Worked:
    """Stages that share the model out; where they are uneven, as many even ones as would be as full as the fullest."""
    layers, stages = load.shape.layers, bare(load.pipeline)
    if not layers.known or not larger(layers.number % stages, 0.0):
        return load.pipeline
    return work(
        "even_stages", memory_fit.even_stages, layers=plainly(work)(layers), stage_layers=_stage_layers(work, load)
    )


def _ranks(work: Work, load: TrainerLoad, *, experts: bool) -> Worked:
    """Ranks that hold the same slice of the weights, and can share its training state."""
    return work(
        "expert_slice_ranks" if experts else "slice_ranks",
        memory_fit.ranks_with_same_slice,
        data_parallel=load.shards,
        context_parallel=load.context,
        tensor_parallel=load.tensor,
        expert_parallel=load.expert if experts else 1.0,
        expert_tensor_parallel=_expert_tensor(load) if experts else load.tensor,
    )


def _gathered(work: Work, load: TrainerLoad, own: tuple[Worked, Worked], gradient: Worked) -> Worked:
    """Weights and gradients of gathered layers: the largest with one ahead, or all of a pipeline's stage."""
    key, shape = "gathered_layer_bytes_per_gpu", load.shape
    if not load.gathered:
        return _nothing(work, key, "no weights are sharded over data-parallel ranks")
    if shape.architecture is None:
        return absent(key, "--model")
    return work(
        key,
        memory.unsharded_layer_bytes,
        layer_params=_unit(work, load, own),
        bytes_per_param=load.gathered_width,
        bytes_per_gradient=gradient,
        prefetched_layers=_NONE if load.gathered_whole else _PREFETCHED,
    )


def _unit(work: Work, load: TrainerLoad, own: tuple[Worked, Worked], *, joined: bool = False) -> Worked:
    """Parameters that are gathered at once: the largest layer, embedding or head, or all of a pipeline's stage."""
    say, shape = plainly(work), load.shape
    dense, routed = (
        _slice(work, load, some, experts=experts) for some, experts in zip(own, (False, True), strict=True)
    )
    unit = work("stage_params", training_peak.dense_and_routed, dense=dense, routed=routed)
    if load.gathered_whole:
        return unit
    layers = _stage_layers(work, load)
    joined = joined or (shape.architecture is not None and shape.architecture.tied_embeddings)
    return work(
        "unit_params",
        training_peak.largest_unit_params,
        layer_params=work("layer_params", memory_fit.mean_layer_params, params=unit, outer_params=_NONE, layers=layers),
        outer_params=say(shape.outer_params),
        outer_units=1.0 if joined else 2.0,
        tensor_parallel=load.tensor,
    )


def unit_bytes(work: Work, load: TrainerLoad, width: Worked, *, joined: bool = False, experts: float = 1.0) -> Worked:
    """
    Bytes of the largest unit of the weights, whole: what loading, a weight sync or a checkpoint gathers at once.

    Args:
        work: `figures.apply` or `figures.numbers`.
        load: The trainer.
        width: Bytes of a parameter in it. [B/param]
        joined: Whether embedding and output head are one unit, as FSDP's root holds what no layer does.
        experts: Experts of a layer that come one after the other; 1 where all of them are in its unit. [1]
    """
    say, whole = plainly(work), replace(load, tensor=1.0, expert=experts)
    own = (say(load.shape.dense_params), say(load.shape.routed_params))
    return work(
        "unit_bytes",
        memory.unsharded_layer_bytes,
        layer_params=_unit(work, whole, own, joined=joined),
        bytes_per_param=width,
        bytes_per_gradient=_NONE,
        prefetched_layers=_NONE,
    )


def step_bytes(work: Work, load: TrainerLoad, width: float) -> Worked:
    """
    Bytes on each GPU that the optimizer's step holds beside the states.

    Args:
        work: `figures.apply` or `figures.numbers`.
        load: The trainer.
        width: Bytes for each trained parameter. [B/param]
    """
    say = plainly(work)
    own = (say(load.shape.dense_params), say(load.shape.routed_params))
    trained = own if load.adapter_params is None else (load.adapter_params, _NONE)
    return _states(work, load, "step_bytes_per_gpu", trained, (_NONE, _NONE, width))


def _activations(work: Work, load: TrainerLoad, values: Mapping[str, Real]) -> Worked:
    """What the layers keep, and the layer at work; a pipeline has as many micro-batches in flight as stages."""
    key, shape = "activation_bytes_per_gpu", load.shape
    if shape.architecture is None:
        return absent(key, "--model")
    say = plainly(work)
    if not load.backward:
        return _passing(work, load, values)
    full = work(
        "hidden_copies",
        activations.gated_mlp_hidden_copies,
        attention_copies=values["memory_attention_copies"],
        intermediate_size=say(shape.mlp_width),
        hidden_size=say(shape.hidden_size),
    )
    if load.compiled:
        share = values["memory_compiled_share"]
        full = work("kept_copies", training_peak.kept_copies, hidden_copies=full, kept_share=share)
    at_work = work(
        "working_copies",
        training_peak.copies_at_work,
        hidden_copies=full,
        intermediate_size=say(shape.mlp_width),
        hidden_size=say(shape.hidden_size),
    )
    kept = full
    if load.recompute == "selective":
        share = values["memory_selective_share"]
        kept = work("kept_copies", training_peak.kept_copies, hidden_copies=full, kept_share=share)
    layer = work(
        "layer_bytes",
        activations.activation_bytes_per_layer,
        tokens=load.tokens,
        hidden_size=say(shape.hidden_size),
        bytes_per_activation=_WIDTH,
        replicated_copies=_INPUT if load.recompute == "full" else _NONE,
        sequence_parallel=load.tensor,
        sharded_copies=_NONE if load.recompute == "full" else kept,
        tensor_parallel=load.tensor,
    )
    working = work(
        "working_bytes",
        training_peak.working_layer_bytes,
        tokens=load.tokens,
        hidden_size=say(shape.hidden_size),
        bytes_per_activation=_WIDTH,
        hidden_copies=_NONE if load.recompute == "none" else at_work,
        gathered_copies=_GATHERED_COPIES,
        tensor_parallel=load.tensor,
    )
    return work(
        key,
        activations.activation_bytes,
        layers=_NONE if load.activations_offloaded else say(shape.layers),
        bytes_per_layer=layer,
        working_bytes=working,
    )


def _passing(work: Work, load: TrainerLoad, values: Mapping[str, Real]) -> Worked:
    """The one layer at work in a pass without backward, which keeps none of the others."""
    say, shape = plainly(work), load.shape
    return work(
        "activation_bytes_per_gpu",
        engine_memory.profiled_activation_bytes,
        batched_tokens=load.tokens,
        bytes_per_activation=_WIDTH,
        hidden_size=say(shape.hidden_size),
        hidden_copies=values["memory_stream_copies"],
        mlp_width=say(shape.mlp_width),
        tensor_parallel=load.tensor,
        sequences=_NONE,
        vocab_size=say(shape.vocab_size),
        bytes_per_logit=_NONE,
    )


def _logits(work: Work, load: TrainerLoad, values: Mapping[str, Real]) -> Worked:
    """Logits of the pass, or of a chunk of it."""
    key, shape = "logits_bytes_per_gpu", load.shape
    if shape.architecture is None:
        return absent(key, "--model")
    chunk = load.tokens
    if load.logit_share < 1:
        chunk = work("response_tokens", training_peak.share_of_tokens, tokens=chunk, share=load.logit_share)
    if load.chunked_loss:
        chunk = work("logit_tokens", training_peak.logit_tokens, tokens=chunk, chunks=_CHUNKS, most=_CHUNK_TOKENS)
    width = values["memory_training_logit_bytes"]
    if load.entropy or load.fused_loss:  # a pass without backward has a log-softmax in place of the gradient
        width = work(
            "logit_width",
            activations.logit_width,
            bytes_per_logit=width,
            kept_share=_FUSED_LOGITS if load.fused_loss else 1.0,
            entropy_share=_ENTROPY_LOGITS if load.entropy and load.backward else _NONE,
        )
    return work(
        key,
        activations.logits_bytes,
        tokens=chunk,
        vocab_size=plainly(work)(shape.vocab_size),
        bytes_per_logit=width,
        tensor_parallel=load.tensor,
    )


def pass_tokens(work: Work, micro_batch_tokens: Worked, longest_tokens: Worked, context: Worked) -> Worked:
    """Tokens of a micro-batch on each GPU: it holds its longest sequence whole; context parallelism shares it out."""
    whole = work(
        "whole_micro_batch_tokens",
        training_peak.whole_micro_batch_tokens,
        micro_batch_tokens=micro_batch_tokens,
        longest_tokens=longest_tokens,
    )
    return work("rank_tokens", activations.tokens_per_context_rank, micro_batch_tokens=whole, context_parallel=context)


def lora_params(layers: Architecture | None, rank: Figure) -> Figure:
    """
    Trained parameters of adapters on attention, dense MLPs and shared experts; routed experts carry none.

    Args:
        layers: The model's layers; None where only a parameter count is known.
        rank: Rank of the adapters. [1]
    """
    if layers is None:
        return absent("lora_params", "--model")
    found = []
    for name, count, widths in _adapted(layers):
        each = apply(f"{name}_adapter_params", parameters.lora_params, rank=rank, adapted_widths=widths)
        found.append(apply(f"{name}_adapters", parameters.stacked_params, layers=count, layer_params=each))
    return total("lora_params", found)


def _adapted(shape: Architecture) -> list[tuple[str, int, Figure]]:
    """Kinds of layers that carry adapters, how many there are, and the widths of their matrices."""
    hidden, found = shape.hidden_size, []
    for name, one in shape.attentions.items():
        widths = apply(
            "adapted_widths",
            memory_fit.attention_adapted_widths,
            hidden_size=hidden,
            head_dim=one.head_dim,
            heads=one.heads,
            kv_heads=one.kv_heads,
        )
        found.append((name, one.layers, widths))
    latent = shape.latent_attention
    if latent:
        names = ("heads", "q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
        sizes = {name: float(getattr(latent, name)) for name in names}
        widths = apply("adapted_widths", memory_fit.latent_attention_adapted_widths, hidden_size=hidden, **sizes)
        found.append(("latent_attention", latent.layers, widths))
    dense = shape.feed_forward
    if dense:
        found.append(("mlp", dense.layers, _mlp_widths(hidden, dense.intermediate_size, dense.matrices)))
    moe = shape.moe
    if moe and moe.shared_experts:
        width = apply(
            "shared_width",
            mixture_of_experts.working_width,
            experts_per_token=0,  # routed experts carry no adapters
            intermediate_size=moe.intermediate_size,
            shared_experts=moe.shared_experts,
            shared_intermediate_size=moe.shared_intermediate_size,
        )
        found.append(("shared_expert", moe.layers, _mlp_widths(hidden, width, moe.matrices)))
    return found


def _mlp_widths(hidden: int, intermediate: Figure | int, matrices: int) -> Figure:
    return apply(
        "adapted_widths",
        memory_fit.mlp_adapted_widths,
        hidden_size=hidden,
        intermediate_size=intermediate,
        matrices=matrices,
    )
