"""
The memory bill of an RL run: trainer, critic, reference, reward model, rollout weights, KV cache.

The bill counts one copy of each training state and every rollout instance's own weights; what a sharding makes of it on
each GPU comes beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlsize.equations import memory_fit
from rlsize.estimates.rollout_memory import rollout_weights, sample_cache
from rlsize.estimates.training_state import adapted, frozen, overheads, trained, trainer_parts
from rlsize.estimates.working import apply, total, with_bands
from rlsize.facts.figure import Figure, absent
from rlsize.facts.rl_algorithm import ALGORITHMS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from rlsize.estimates.memory_question import MemoryQuestion

COMPARED = ("grpo", "ppo")
TRAINER_POOL = ("trainer", "critic", "reference", "reward")
_OF_THE_POLICY = absent("params", "")  # a model of the policy's own size


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
        overheads: What every trainer GPU holds beside the states: gathered layers, activations, logits.
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
        overheads=tuple(overheads(question)),
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
    beside = overheads(question)
    pool = [tenant.per_gpu for tenant in tenants if tenant.name in TRAINER_POOL and tenant.per_gpu is not None]
    whole = [total("trainer_pool_bytes_per_gpu", [*pool, *beside])] if pool else []
    return [
        total("total_bytes", [tenant.held for tenant in tenants]),
        *(tenant.held for tenant in tenants),
        *_cache(question),
        *shares,
        *beside,
        *whole,
    ]


def bill(question: MemoryQuestion) -> list[Tenant]:
    """Every tenant, the policy's trainer first."""
    lora = question.lora_rank.known
    tenants = [Tenant("trainer", *(adapted(question) if lora else trained(question, "trainer", _OF_THE_POLICY)))]
    if question.critic:
        tenants.append(Tenant("critic", *trained(question, "critic", question.critic_params)))
    if question.reference:
        tenants.append(Tenant("reference", *frozen(question, "reference", question.reference_params)))
    if question.reward:
        tenants.append(Tenant("reward", *frozen(question, "reward", question.reward_params)))
    return [*tenants, *_rollout(question)] if question.algorithm.rollout else tenants


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
    pipeline = question.rollout_pipeline_parallel
    share = rollout_weights("rollout_weights_bytes_per_gpu", shape, dtype, tensor, pipeline)
    return [Tenant("rollout_weights", weights, share), Tenant("kv_cache", cache, kv_per_gpu(question, tensor))]


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
