"""What prefix caching and prompt de-duplication would save a fleet that samples in groups."""

from __future__ import annotations

from dataclasses import dataclass

from rlsize.equations import matching, redundancy
from rlsize.estimates.figures import apply, rounded
from rlsize.estimates.prefix_cache import expected_hits
from rlsize.facts.figure import Figure  # noqa: TC001 (dataclass fields)
from rlsize.planner.rounding import rounded_up

ROUTINGS: dict[str, str] = {
    "affine": "a group is kept on one instance",
    "random": "each sample goes to an instance at random",
    "round-robin": "the samples of a group are dealt out in turn",
    "queue": "each sample goes to whichever instance has a free slot",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CachingQuestion:
    """
    What is known about the prompts and the caches.

    Args:
        group_size: Samples of one prompt. [1]
        prompt_tokens: Mean prompt length. [token]
        response_tokens: Mean response length. [token]
        block_tokens: Tokens of one KV block. [token]
        routing: How the samples of a group reach instances.
        instances: Rollout instances. [1]
        hit_fraction: Prefix-cache hit ratio today. [1]
        prefill_rate: Prompt tokens per second of an instance that does nothing but prefill. [token/s]
        instance_rate: Response tokens per second of one instance today. [token/s]
        headroom: Derating. [1]
        required: Response tokens per second that must be generated. [token/s]
    """

    group_size: Figure
    prompt_tokens: Figure
    response_tokens: Figure
    block_tokens: Figure
    routing: str
    instances: Figure
    hit_fraction: Figure
    prefill_rate: Figure
    instance_rate: Figure
    headroom: Figure
    required: Figure


def caching_savings(question: CachingQuestion) -> list[Figure]:
    """
    The hit ratio to expect, the prefill it saves, and the match once caches work as they should.

    Returns:
        Figures; those whose inputs are missing say which.
    """
    spread = _spread(question)
    expected = expected_hits(question.group_size, question.prompt_tokens, question.block_tokens, spread)
    saved = apply(
        "prefill_tokens_saved_per_group",
        redundancy.prefill_tokens_saved,
        group_size=question.group_size,
        prompt_tokens=question.prompt_tokens,
        hit_ratio=expected,
    )
    duplicate = apply(
        "deduplicated_training_fraction",
        redundancy.deduplicated_fraction,
        group_size=question.group_size,
        prompt_tokens=question.prompt_tokens,
        response_tokens=question.response_tokens,
    )
    return [expected, saved, duplicate, *_after_the_fix(question, expected)]


def _spread(question: CachingQuestion) -> Figure | float:
    if question.routing == "affine":
        return 1.0
    random = question.routing == "random"
    equation = redundancy.instances_per_group_random if random else redundancy.instances_per_group_round_robin
    return apply("instances_per_group", equation, group_size=question.group_size, instances=question.instances)


def _after_the_fix(question: CachingQuestion, expected: Figure) -> list[Figure]:
    prefill = apply(
        "prefill_time_fraction",
        redundancy.prefill_time_fraction,
        instance_rate=question.instance_rate,
        prompt_tokens=question.prompt_tokens,
        response_tokens=question.response_tokens,
        hit_ratio=question.hit_fraction,
        prefill_rate=question.prefill_rate,
    )
    rate = apply(
        "instance_after_caching_tokens_per_second",
        redundancy.instance_rate_after_caching,
        instance_rate=question.instance_rate,
        prefill_time_fraction=prefill,
        hit_ratio=question.hit_fraction,
        expected_hit_ratio=expected,
    )
    match = apply(
        "matched_instances_after_caching",
        matching.matched_instances,
        required_supply=question.required,
        instance_rate=rate,
        headroom=question.headroom,
    )
    whole = rounded_up(match.number) if match.known else 0
    return [prefill, rate, rounded(match, "matched_instances_after_caching", whole)]
