"""
The memory bill of an RL run: trainer, critic, reference, reward model, rollout weights, KV cache.

The bill counts one copy of each training state and every rollout instance's own weights; what a sharding makes of it on
each GPU comes beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlsize.equations import memory_fit, training_peak
from rlsize.estimates.engine_shape import engine_shape
from rlsize.estimates.engine_weights import weight_bytes
from rlsize.estimates.figures import apply, total, with_bands
from rlsize.estimates.rollout_memory import rollout_weights, sample_cache
from rlsize.estimates.trainer_memory import Beside, TrainerLoad, pass_tokens, trainer_memory
from rlsize.estimates.training_state import (
    WEIGHT_BYTES,
    adapted,
    adapter_params,
    frozen,
    optimizer_bytes,
    trained,
    trainer_parts,
)
from rlsize.facts.figure import Figure, absent
from rlsize.facts.quantisation import KV_WIDTHS
from rlsize.facts.records.record import Layout as EngineLayout
from rlsize.facts.rl_algorithm import ALGORITHMS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from random import Random

    from rlsize.estimates.engine_memory import CapacityQuestion
    from rlsize.estimates.memory_question import MemoryQuestion
    from rlsize.estimates.trainer_layout import TrainerLayout
    from rlsize.estimates.trainer_memory import TrainerMemory

COMPARED = ("grpo", "ppo")
TRAINER_POOL = ("trainer", "critic", "reference", "reward")
_OF_THE_POLICY = absent("params", "")  # a model of the policy's own size
_NO_EXPERTS = Figure(key="routed_params", value=0, provenance="default", source="taken for a dense model")
_NO_TOKENS = Figure(key="micro_batch_tokens", value=0, provenance="default", source="not said")


@dataclass(frozen=True, slots=True)
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
        trainer_parts: Weights, gradients, master copy, optimizer state: name, bytes per parameter, bytes.
        overheads: What every trainer GPU holds beside the states: gathered layers, activations, logits, what the
            allocator reserves.
        alternatives: The bills of the asked algorithm and of the usual ones, by name.
    """

    results: tuple[Figure, ...]
    tenants: tuple[Tenant, ...]
    trainer_parts: tuple[tuple[str, Figure, Figure], ...]
    overheads: tuple[Figure, ...]
    alternatives: tuple[tuple[str, tuple[Tenant, ...]], ...]


def bill_memory(question: MemoryQuestion, random: Random | None = None) -> MemoryAnswer:
    """What each tenant needs, in all and on each GPU where a sharding is given."""
    return MemoryAnswer(
        results=tuple(with_bands(_results, question, random)),
        tenants=tuple(bill(question)),
        trainer_parts=trainer_parts(question),
        overheads=tuple(overheads(on_trainer(question))),
        alternatives=tuple(_alternatives(question)),
    )


def _alternatives(question: MemoryQuestion) -> Iterator[tuple[str, tuple[Tenant, ...]]]:
    """What GRPO and PPO would hold with the same models, beside the asked algorithm."""
    asked = question.algorithm
    for name in dict.fromkeys((*COMPARED, asked.name)):
        other = ALGORITHMS[name]
        kept = other.reference and not question.lora_rank.known  # adapters off is a reference without a copy
        same = replace(question, algorithm=other, critic=other.critic, reference=kept)
        yield name, tuple(bill(question if name == asked.name else same))


def _results(question: MemoryQuestion) -> list[Figure]:
    tenants = bill(question)
    shares = [tenant.per_gpu for tenant in tenants if tenant.per_gpu is not None]
    each = on_trainer(question)
    beside = overheads(each)
    return [
        total("total_bytes", [tenant.held for tenant in tenants]),
        *(tenant.held for tenant in tenants),
        *_cache(question),
        *shares,
        *beside,
        *([] if each is None else [replace(each.peak, key="trainer_pool_bytes_per_gpu")]),
    ]


def bill(question: MemoryQuestion) -> list[Tenant]:
    """Every tenant, the policy's trainer first."""
    each = on_trainer(question)
    shares = {} if each is None else {"trainer": each.policy, **each.beside}
    whole = adapted(question) if question.lora_rank.known else trained(question, "trainer", _OF_THE_POLICY)
    held = {"trainer": whole}
    if question.critic:
        held["critic"] = trained(question, "critic", question.critic_params)
    if question.reference:
        held["reference"] = frozen(question, "reference", question.reference_params)
    if question.reward:
        held["reward"] = frozen(question, "reward", question.reward_params)
    tenants = [Tenant(name, figure, shares.get(name)) for name, figure in held.items()]
    return [*tenants, *_rollout(question)] if question.algorithm.rollout else tenants


def on_trainer(question: MemoryQuestion) -> TrainerMemory | None:
    """What each GPU of the trainer holds at its peak; None where nobody says how it is spread."""
    if question.layout is None:
        return None
    return trainer_memory(apply, _load(question, question.layout), question.constants)


def _load(question: MemoryQuestion, layout: TrainerLayout) -> TrainerLoad:
    tokens = question.micro_batch_tokens if question.micro_batch_tokens.known else _NO_TOKENS
    longest = question.longest_tokens if question.longest_tokens.known and question.capped else _NO_TOKENS
    lora = question.lora_rank.known
    return TrainerLoad(
        shape=question.shape,
        tokens=pass_tokens(apply, tokens, longest, layout.context_parallel),
        tensor=layout.tensor_parallel,
        pipeline=layout.pipeline_parallel,
        context=layout.context_parallel,
        expert=layout.expert_parallel,
        shards=layout.shards,
        sharding=layout.sharding,
        gathered=layout.sharding == "full",
        recompute=question.recompute.name,
        weight_width=WEIGHT_BYTES,
        gradient_width=question.bytes_per_gradient,
        optimizer_width=optimizer_bytes(question),
        adapter_params=adapter_params(question) if lora else None,
        beside=tuple(_beside(question)),
    )


def _beside(question: MemoryQuestion) -> Iterator[Beside]:
    """The models beside the policy; one of another size is taken for a dense one."""
    own_size = {
        "critic": question.critic_params,
        "reference": question.reference_params,
        "reward": question.reward_params,
    }
    for name, params in own_size.items():
        if getattr(question, name):
            dense, routed = (params, _NO_EXPERTS) if params.known else question.pool_params
            yield Beside(name=name, dense_params=dense, routed_params=routed, trained=name == "critic")


def overheads(held: TrainerMemory | None) -> list[Figure]:
    """What each trainer GPU holds beside the states: gathered layers, activations, logits, the allocator's reserve."""
    return [] if held is None else [held.gathered, held.activations, held.logits, held.overhead]


def reserved(question: MemoryQuestion, key: str, parts: Sequence[Figure]) -> Figure:
    """What the allocator of a trainer's GPU reserves for some parts of its peak."""
    nothing = Figure(key="nothing", value=0.0, provenance="predicted", source="counted elsewhere")
    return apply(
        key,
        training_peak.training_peak_bytes,
        state_bytes=total("in_use_bytes", parts),
        activation_bytes=nothing,
        logits_bytes=nothing,
        gradient_bytes=nothing,
        gathered_bytes=nothing,
        overhead=question.constants["memory_training_overhead"],
    )


def _cache(question: MemoryQuestion) -> list[Figure]:
    if not question.algorithm.rollout:
        return []
    shape, tokens = question.shape, question.context
    per_token = shape.size.kv_bytes_per_token if shape.size else absent("kv_bytes_per_token", "--model")
    return [per_token, tokens, sample_cache(shape, tokens).whole]


def _rollout(question: MemoryQuestion) -> list[Tenant]:
    shape, tensor, dtype = question.shape, question.rollout_tensor_parallel, question.rollout_dtype
    weights = apply(
        "rollout_weights_bytes",
        memory_fit.fleet_weight_bytes,
        instances=question.instances,
        instance_weight_bytes=rollout_weights("instance_weight_bytes", shape, dtype),
    )
    cache = apply(
        "kv_cache_bytes",
        memory_fit.fleet_kv_bytes,
        sample_kv_bytes=sample_cache(shape, question.context).whole,
        concurrency=question.concurrency,
        instances=question.instances,
    )
    if not tensor.known:
        return [Tenant("rollout_weights", weights), Tenant("kv_cache", cache)]
    return [
        Tenant("rollout_weights", weights, weights_per_gpu(question, tensor)),
        Tenant("kv_cache", cache, kv_per_gpu(question, tensor)),
    ]


def instance_of(question: MemoryQuestion, tensor: Figure) -> CapacityQuestion | None:
    """A rollout instance of so many tensor-parallel GPUs; None where model or GPU is not named."""
    if question.engine is None:
        return None
    live = question.context if question.context.known else None
    spread = EngineLayout(tensor=round(tensor.number), pipeline=round(question.rollout_pipeline_parallel.number))
    return replace(question.engine, layout=spread, sequence_tokens=live, live_tokens=live)


def weights_per_gpu(question: MemoryQuestion, tensor: Figure) -> Figure:
    """Weights on each GPU of an instance, as its engine loads them; parameters by width where that is not known."""
    key, asked = "rollout_weights_bytes_per_gpu", instance_of(question, tensor)
    if asked is None:
        return rollout_weights(key, question.shape, question.rollout_dtype, tensor, question.rollout_pipeline_parallel)
    shape = engine_shape(asked.model, KV_WIDTHS[asked.kv_dtype])
    found: Figure = weight_bytes(apply, asked, shape, question.constants)
    return replace(found, key=key)


def sample_per_gpu(question: MemoryQuestion, tensor: Figure) -> Figure:
    """KV cache of one sample on each GPU of its instance."""
    cache = sample_cache(question.shape, question.context)
    return cache.per_gpu(question.shape, tensor, question.rollout_pipeline_parallel)


def kv_per_gpu(question: MemoryQuestion, tensor: Figure) -> Figure:
    """KV cache of all samples of an instance on each of its GPUs."""
    return apply(
        "kv_cache_bytes_per_gpu",
        memory_fit.fleet_kv_bytes,
        instances=Figure(key="instances", value=1, provenance="default", source="one instance on its own GPUs"),
        concurrency=question.concurrency,
        sample_kv_bytes=sample_per_gpu(question, tensor),
    )
