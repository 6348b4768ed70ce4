"""
The memory bill of an RL run: trainer, critic, reference, reward model, rollout weights, KV cache.

The bill counts one copy of each training state and every rollout instance's own weights; what a sharding makes of it on
each GPU comes beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlsize.equations import kv_cache, memory, memory_fit
from rlsize.estimates.adapters import lora_params
from rlsize.estimates.memory_shape import MemoryShape, memory_shape
from rlsize.estimates.rollout_memory import kv_width, rollout_weights, sample_cache
from rlsize.estimates.sharding import Layout, Widths, gathered_layer, state_per_gpu
from rlsize.estimates.trainer_activations import peak_activations
from rlsize.estimates.working import apply, total, with_bands
from rlsize.facts.algorithm import RECOMPUTATIONS
from rlsize.facts.figure import Figure, absent

if TYPE_CHECKING:
    from random import Random

    from rlsize.facts.algorithm import Optimizer, Recomputation
    from rlsize.facts.model import Model
    from rlsize.facts.rl_algorithm import RlAlgorithm

WEIGHT_BYTES = Figure(key="bytes_per_param", value=2, provenance="default", source="bf16 weights")
_NOTHING = Figure(key="nothing", value=0, source="frozen")
TRAINER_POOL = ("trainer", "critic", "reference", "reward")


def _default(key: str, value: float, why: str) -> Figure:
    return Figure(key=key, value=value, provenance="default", source=why)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryQuestion:
    """
    What is known about the models of a run and how it is spread.

    Args:
        algorithm: Which models it keeps by itself.
        critic: Whether a critic is trained.
        reference: Whether a frozen reference model is kept as a copy of its own.
        reward: Whether a reward model is kept.
        params: Parameters of the policy. [param]
        critic_params: Parameters of the critic; those of the policy where absent. [param]
        reference_params: Parameters of the reference; those of the policy where absent. [param]
        reward_params: Parameters of the reward model; those of the policy where absent. [param]
        model: The policy's layers, where known.
        optimizer: What it keeps for each parameter.
        bytes_per_gradient: Width of a gradient. [B/param]
        lora_rank: Rank of the adapters; absent for full training. [1]
        rollout_dtype: Number format of the rollout weights.
        kv_dtype: Number format of the KV cache.
        instances: Rollout instances. [instance]
        concurrency: Samples at the same time on one instance. [sample/instance]
        context_tokens: Tokens of a sample in flight; absent where prompt and response say it. [token]
        prompt_tokens: Mean prompt length. [token]
        response_tokens: Mean response length. [token]
        response_cv: Coefficient of variation of response lengths. [1]
        layout: How the trainer is spread; None where nobody says.
        rollout_tensor_parallel: GPUs that share each layer of an instance; absent where nobody says. [1]
        rollout_pipeline_parallel: Pipeline stages of an instance. [1]
        micro_batch_tokens: Tokens of one forward and backward pass of a data-parallel rank. [token]
        recompute: What activations are recomputed.
    """

    algorithm: RlAlgorithm
    critic: bool
    reference: bool
    reward: bool
    params: Figure
    optimizer: Optimizer
    critic_params: Figure = absent("critic_params", "--critic-params")
    reference_params: Figure = absent("reference_params", "--reference-params")
    reward_params: Figure = absent("reward_params", "--reward-params")
    model: Model | None = None
    bytes_per_gradient: Figure = _default("bytes_per_gradient", 2.0, "bf16 gradients")
    lora_rank: Figure = absent("lora_rank", "--lora-rank")
    rollout_dtype: Figure = Figure(key="rollout_dtype", value="bf16", provenance="default")
    kv_dtype: Figure = Figure(key="kv_dtype", value="bf16", provenance="default")
    instances: Figure = _default("instances", 1, "one instance")
    concurrency: Figure = absent("concurrency", "--concurrency")
    context_tokens: Figure = absent("context_tokens", "--context")
    prompt_tokens: Figure = absent("prompt_tokens", "--context")
    response_tokens: Figure = absent("response_tokens", "--context")
    response_cv: Figure = _default("response_cv", 1.0, "lengths as uneven as an exponential's, the safe side")
    layout: Layout | None = None
    rollout_tensor_parallel: Figure = absent("rollout_tensor_parallel", "--rollout-tensor-parallel")
    rollout_pipeline_parallel: Figure = _default("rollout_pipeline_parallel", 1, "no pipeline")
    micro_batch_tokens: Figure = absent("micro_batch_tokens", "--micro-batch-tokens")
    recompute: Recomputation = RECOMPUTATIONS["full"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """
    One model, or cache, that memory holds.

    Args:
        name: Who: trainer, critic, reference, reward, rollout_weights, kv_cache.
        held: All its bytes. [B]
        per_gpu: Its bytes on each GPU that it is spread over; None where nothing says how. [B/gpu]
    """

    name: str
    held: Figure
    per_gpu: Figure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryAnswer:
    """
    The bill.

    Args:
        results: All figures, with bands where inputs are uncertain.
        tenants: Who holds what.
        trainer_parts: Weights, gradients, master copy, optimizer state, each with its bytes per parameter.
        overheads: What every trainer GPU holds beside the states: gathered layers, activations, logits.
    """

    results: tuple[Figure, ...]
    tenants: tuple[Tenant, ...]
    trainer_parts: tuple[tuple[str, Figure, Figure], ...]
    overheads: tuple[Figure, ...]

    def figure(self, key: str) -> Figure:
        """The result of that name."""
        return next(figure for figure in self.results if figure.key == key)


def bill_memory(question: MemoryQuestion, random: Random | None = None) -> MemoryAnswer:
    """What each tenant needs, in all and on each GPU where a sharding is given."""

    def results(changed: MemoryQuestion) -> list[Figure]:
        tenants = bill(changed)
        shares = [tenant.per_gpu for tenant in tenants if tenant.per_gpu is not None]
        return [total_of(tenants), *(tenant.held for tenant in tenants), *_cache(changed), *shares, *overheads(changed)]

    return MemoryAnswer(
        results=tuple(with_bands(results, question, random)),
        tenants=tuple(bill(question)),
        trainer_parts=trainer_parts(question),
        overheads=tuple(overheads(question)),
    )


def total_of(tenants: list[Tenant]) -> Figure:
    """The sum of what is known; the KV cache often is not."""
    return total("total_bytes", [tenant.held for tenant in tenants])


def shape_of(question: MemoryQuestion) -> MemoryShape:
    """The policy as memory sees it."""
    return memory_shape(question.model, question.params, kv_width(question.kv_dtype))


def bill(question: MemoryQuestion) -> list[Tenant]:
    """Every tenant, the policy's trainer first."""
    tenants = [_trainer(question)]
    if question.critic:
        tenants.append(_trained(question, "critic", question.critic_params))
    for name, kept, params in (
        ("reference", question.reference, question.reference_params),
        ("reward", question.reward, question.reward_params),
    ):
        if kept:
            tenants.append(_frozen(question, name, params))
    return [*tenants, *_rollout(question)] if question.algorithm.rollout else tenants


def _split(question: MemoryQuestion, params: Figure) -> tuple[Figure, Figure]:
    """Parameters outside and inside routed experts; a model of another size is taken for a dense one."""
    shape = shape_of(question)
    if params.known:
        return params, Figure(key="routed_params", value=0, provenance="default", source="taken for a dense model")
    return shape.dense_params, shape.routed_params


def training_widths(question: MemoryQuestion) -> Widths:
    """Bytes per trained parameter."""
    optimizer = question.optimizer
    kept = optimizer.bytes_per_master + optimizer.bytes_per_optimizer_state
    return Widths(
        weight=WEIGHT_BYTES,
        gradient=question.bytes_per_gradient,
        optimizer=Figure(key="bytes_per_optimizer", value=kept, source=f"{optimizer.name}: {optimizer.source}"),
    )


def bytes_per_trained_param(question: MemoryQuestion) -> Figure:
    """Bytes of training state for each trained parameter: 16 for AdamW with bf16 gradients."""
    optimizer = question.optimizer
    source = f"{optimizer.name}: {optimizer.source}"
    return apply(
        "training_bytes_per_param",
        memory.training_bytes_per_param,
        bytes_per_param=WEIGHT_BYTES,
        bytes_per_gradient=question.bytes_per_gradient,
        bytes_per_master=Figure(key="bytes_per_master", value=optimizer.bytes_per_master, source=source),
        bytes_per_optimizer_state=Figure(
            key="bytes_per_optimizer_state", value=optimizer.bytes_per_optimizer_state, source=source
        ),
    )


def _trainer(question: MemoryQuestion) -> Tenant:
    if not question.lora_rank.known:
        return _trained(question, "trainer", absent("params", ""))
    trained = lora_params(shape_of(question).architecture, question.lora_rank)
    held = apply(
        "trainer_bytes",
        memory.lora_trainer_bytes,
        params=question.params,
        bytes_per_param=WEIGHT_BYTES,
        lora_params=trained,
        training_bytes_per_param=bytes_per_trained_param(question),
    )
    if question.layout is None:
        return Tenant(name="trainer", held=held)
    frozen = Widths(weight=WEIGHT_BYTES, gradient=_NOTHING, optimizer=_NOTHING)
    none = Figure(key="routed_params", value=0, source="routed experts carry no adapters")
    shares = [
        state_per_gpu("frozen_bytes", *_split(question, absent("params", "")), frozen, question.layout),
        state_per_gpu("adapter_bytes", trained, none, training_widths(question), question.layout),
    ]
    return Tenant(name="trainer", held=held, per_gpu=total("trainer_bytes_per_gpu", shares))


def _trained(question: MemoryQuestion, name: str, params: Figure) -> Tenant:
    held = apply(
        f"{name}_bytes",
        memory.trainer_state_bytes,
        params=params if params.known else question.params,
        training_bytes_per_param=bytes_per_trained_param(question),
    )
    return Tenant(name=name, held=held, per_gpu=_per_gpu(question, name, params, training_widths(question)))


def _frozen(question: MemoryQuestion, name: str, params: Figure) -> Tenant:
    held = apply(
        f"{name}_bytes",
        memory.inference_weight_bytes,
        params=params if params.known else question.params,
        bytes_per_param=WEIGHT_BYTES,
        unquantised_params=Figure(key="unquantised_params", value=0, source="all alike"),
        bytes_per_unquantised_param=WEIGHT_BYTES,
    )
    widths = Widths(weight=WEIGHT_BYTES, gradient=_NOTHING, optimizer=_NOTHING)
    return Tenant(name=name, held=held, per_gpu=_per_gpu(question, name, params, widths))


def _per_gpu(question: MemoryQuestion, name: str, params: Figure, widths: Widths) -> Figure | None:
    if question.layout is None:
        return None
    return state_per_gpu(f"{name}_bytes_per_gpu", *_split(question, params), widths, question.layout)


def context(question: MemoryQuestion) -> Figure:
    """Tokens of a sample in flight: said, or the prompt and the mean live length of a response."""
    if question.context_tokens.known:
        return question.context_tokens
    return apply(
        "context_tokens",
        kv_cache.mean_live_tokens,
        prompt_tokens=question.prompt_tokens,
        response_tokens=question.response_tokens,
        response_cv=question.response_cv,
    )


def _cache(question: MemoryQuestion) -> list[Figure]:
    if not question.algorithm.rollout:
        return []
    shape, tokens = shape_of(question), context(question)
    per_token = shape.size.kv_bytes_per_token if shape.size else absent("kv_bytes_per_token", "--model")
    return [per_token, tokens, sample_cache(shape, tokens).whole]


def _rollout(question: MemoryQuestion) -> list[Tenant]:
    shape, tensor, pipeline = shape_of(question), question.rollout_tensor_parallel, question.rollout_pipeline_parallel
    weights = apply(
        "rollout_weights_bytes",
        memory_fit.fleet_weight_bytes,
        instances=question.instances,
        instance_weight_bytes=rollout_weights("instance_weight_bytes", shape, question.rollout_dtype),
    )
    cache = sample_cache(shape, context(question))
    held = apply(
        "kv_cache_bytes",
        memory_fit.fleet_kv_bytes,
        instances=question.instances,
        concurrency=question.concurrency,
        sample_kv_bytes=cache.whole,
    )
    shares: tuple[Figure | None, Figure | None] = (None, None)
    if tensor.known:
        on_gpu = rollout_weights("rollout_weights_bytes_per_gpu", shape, question.rollout_dtype, tensor, pipeline)
        shares = (on_gpu, kv_per_gpu(question, shape, tensor))
    return [
        Tenant(name="rollout_weights", held=weights, per_gpu=shares[0]),
        Tenant(name="kv_cache", held=held, per_gpu=shares[1]),
    ]


def kv_per_gpu(question: MemoryQuestion, shape: MemoryShape, tensor: Figure) -> Figure:
    """KV cache of all samples of an instance on each of its GPUs."""
    each = sample_cache(shape, context(question)).per_gpu(shape, tensor, question.rollout_pipeline_parallel)
    one = Figure(key="instances", value=1, source="one instance on its own GPUs")
    return apply(
        "kv_cache_bytes_per_gpu",
        memory_fit.fleet_kv_bytes,
        instances=one,
        concurrency=question.concurrency,
        sample_kv_bytes=each,
    )


def trainer_parts(question: MemoryQuestion) -> tuple[tuple[str, Figure, Figure], ...]:
    """Parts of the policy's training state: name, bytes per parameter, bytes."""
    optimizer, trained = question.optimizer, question.params
    parts = [("weights", question.params, WEIGHT_BYTES)]
    if question.lora_rank.known:
        trained = lora_params(shape_of(question).architecture, question.lora_rank)
        parts = [("frozen weights", question.params, WEIGHT_BYTES), ("adapter weights", trained, WEIGHT_BYTES)]
    source = f"{optimizer.name}: {optimizer.source}"
    master = Figure(key="bytes_per_master", value=optimizer.bytes_per_master, source=source)
    state = Figure(key="bytes_per_optimizer_state", value=optimizer.bytes_per_optimizer_state, source=source)
    parts += [
        ("gradients", trained, question.bytes_per_gradient),
        ("master weights", trained, master),
        ("optimizer state", trained, state),
    ]
    return tuple(
        (name, width, apply("part_bytes", memory.trainer_state_bytes, params=params, training_bytes_per_param=width))
        for name, params, width in parts
    )


def overheads(question: MemoryQuestion) -> list[Figure]:
    """What each trainer GPU holds beside the states."""
    layout = question.layout
    if layout is None:
        return []
    shape, widths = shape_of(question), training_widths(question)
    if question.lora_rank.known:
        widths = replace(widths, gradient=_NOTHING)
    found = [gathered_layer(shape, widths, layout)]
    if question.micro_batch_tokens.known:
        found += peak_activations(shape, layout, question.micro_batch_tokens, question.recompute)
    return found
