"""How much of its prompts a fleet that samples in groups should find in its prefix caches."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rlsize.equations import redundancy
from rlsize.estimates.figures import apply

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlsize.equations._ops import Real

SPREADS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "random": redundancy.instances_per_group_random,
        "round-robin": redundancy.instances_per_group_round_robin,
        "queue": redundancy.instances_per_group_round_robin,  # free slots come round in turn
    }
)
"""How many instances the samples of a group reach, by routing; with any other they stay on one."""


def expected_hits(
    group_size: Real,
    prompt_tokens: Real,
    block_tokens: Real,
    instances_per_group: Real = 1.0,
    *,
    work: Callable[..., Real] = apply,
) -> Real:
    """
    Share of prompt tokens that the samples of a group should find in the cache, as one of them put them there.

    Args:
        group_size: Samples of one prompt. [1]
        prompt_tokens: Mean prompt length. [token]
        block_tokens: Tokens of one KV block; only whole blocks are cached. [token]
        instances_per_group: Instances that the samples of one group reach; 1 where a group is kept together. [1]
        work: `figures.apply`, or `numbers` for numbers and arrays.

    >>> from rlsize.facts.figure import Figure
    >>> size, prompt, block = (Figure(key="a", value=value) for value in (8, 400, 16))
    >>> expected_hits(size, prompt, block).number
    0.84
    """
    cacheable = work(
        "cacheable_prompt_tokens",
        redundancy.cacheable_prompt_tokens,
        prompt_tokens=prompt_tokens,
        block_tokens=block_tokens,
    )
    return work(
        "expected_prefix_cache_hit_fraction",
        redundancy.prefix_cache_hit_ratio,
        group_size=group_size,
        prompt_tokens=prompt_tokens,
        cacheable_prompt_tokens=cacheable,
        cacheable_shared_tokens=0.0,
        instances_per_group=instances_per_group,
    )


def routed_hits(
    routing: str,
    *,
    group_size: Real,
    instances: Real,
    prompt_tokens: Real,
    block_tokens: Real,
    work: Callable[..., Real] = apply,
) -> Real:
    """
    The same where the samples of a group reach instances by a routing.

    Args:
        routing: A key of `SPREADS`; with any other a group stays on one instance.
        group_size: Samples of one prompt. [1]
        instances: Rollout instances. [1]
        prompt_tokens: Mean prompt length. [token]
        block_tokens: Tokens of one KV block. [token]
        work: `figures.apply`, or `numbers` for numbers and arrays.
    """
    spread: Real = 1.0
    if routing in SPREADS:
        spread = work("instances_per_group", SPREADS[routing], group_size=group_size, instances=instances)
    return expected_hits(group_size, prompt_tokens, block_tokens, spread, work=work)
