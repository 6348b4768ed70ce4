"""What the samples of one prompt repeat: prefix-cache hits, prefill saved, and what the trainer computes twice."""

from __future__ import annotations

from rlsize.equations._ops import Real, ceil, floor, maximum, minimum


def cacheable_prompt_tokens(prompt_tokens: Real, block_tokens: Real) -> Real:
    """
    Tokens of a prompt that a sample finds in the cache when an earlier sample of the same prompt is there.

    c = (ceil(p / b) - 1) b

    Args:
        prompt_tokens: Length of the prompt, p. [token]
        block_tokens: Tokens of one KV block, b. [token]

    Returns:
        c. [token]

    Assumes whole blocks only, and that the last token is always computed because its logits are needed, so a prompt
    that fills its last block loses that block. Stands for one length; over mixed lengths average the result, not the
    length.
    Source: vLLM, vllm/v1/core/kv_cache_manager.py, get_computed_blocks (longest hit is one token less than the
    request).

    >>> cacheable_prompt_tokens(prompt_tokens=256, block_tokens=32)
    224.0
    """
    return maximum(0.0, (ceil(prompt_tokens / block_tokens) - 1.0) * block_tokens)


def cacheable_shared_tokens(shared_tokens: Real, prompt_tokens: Real, block_tokens: Real) -> Real:
    """
    Tokens that the first sample of a prompt finds in the cache because all prompts open alike (a system prompt, say).

    c_s = min(floor(z / b), ceil(p / b) - 1) b

    Args:
        shared_tokens: Tokens with which every prompt begins, z; 0 where prompts share nothing. [token]
        prompt_tokens: Length of the prompt, p. [token]
        block_tokens: Tokens of one KV block, b. [token]

    Returns:
        c_s. [token]

    Assumes whole blocks only, and that another prompt has been through the instance before and is still cached.
    Source: vLLM, vllm/v1/core/kv_cache_manager.py, get_computed_blocks; own derivation.

    >>> cacheable_shared_tokens(shared_tokens=70, prompt_tokens=256, block_tokens=32)
    64.0
    """
    return (
        maximum(0.0, minimum(floor(shared_tokens / block_tokens), ceil(prompt_tokens / block_tokens) - 1.0))
        * block_tokens
    )


def instances_per_group_random(group_size: Real, instances: Real) -> Real:
    """
    Instances that the samples of one prompt are expected to land on when each goes to an instance at random.

    k = I (1 - (1 - 1 / I)^G)

    Args:
        group_size: Samples of one prompt, G. [1]
        instances: Rollout instances, I. [1]

    Returns:
        k. [1]

    Assumes independent, uniform routing. A group kept on one instance has k = 1.
    Source: the classical occupancy problem (Feller, An introduction to probability theory and its applications, volume
    1, chapter IV).

    >>> instances_per_group_random(group_size=2, instances=4)
    1.75
    """
    return instances * (1.0 - (1.0 - 1.0 / instances) ** group_size)


def instances_per_group_round_robin(group_size: Real, instances: Real) -> Real:
    """
    Instances that the samples of one prompt land on when they are dealt out in turn.

    k = min(G, I)

    Args:
        group_size: Samples of one prompt, G. [1]
        instances: Rollout instances, I. [1]

    Returns:
        k. [1]

    Assumes the samples of one prompt are sent one after the other with nothing in between; the worst case for the
    cache.
    Source: own derivation.

    >>> instances_per_group_round_robin(group_size=8, instances=3)
    3
    """
    return minimum(group_size, instances)


def prefix_cache_hit_ratio(
    group_size: Real,
    prompt_tokens: Real,
    cacheable_prompt_tokens: Real,
    cacheable_shared_tokens: Real,
    instances_per_group: Real,
) -> Real:
    """
    Share of prompt tokens that a fleet is expected to take from its prefix cache.

    H = ((G - k) c + k c_s) / (G p)

    Args:
        group_size: Samples of one prompt, G. [1]
        prompt_tokens: Length of the prompt, p. [token]
        cacheable_prompt_tokens: Tokens that a later sample of the same prompt finds, c. [token]
        cacheable_shared_tokens: Tokens that the first one finds, c_s; 0 where prompts share nothing. [token]
        instances_per_group: Instances that the samples of one prompt land on, k; 1 for a group kept together. [1]

    Returns:
        H. [1]

    Assumes the cache keeps a prompt until its last sample has started, and counts hits as engines do: cached over
    queried prompt tokens, every sample counted. Samples scheduled in the same step hit each other, because blocks are
    entered when they are allocated.
    Source: own derivation; a running vLLM counted 6464 hits in 8192 tokens for 4 prompts of 256 tokens, 8 samples each,
    blocks of 32: 4 x 7 x 224, and 3 x 64 as prompts with two blocks in common give.

    >>> prefix_cache_hit_ratio(group_size=8, prompt_tokens=256, cacheable_prompt_tokens=224, cacheable_shared_tokens=0,
    ...                        instances_per_group=1)
    0.765625
    """
    later = (group_size - instances_per_group) * cacheable_prompt_tokens
    return (later + instances_per_group * cacheable_shared_tokens) / (group_size * prompt_tokens)


def prefill_tokens_saved(group_size: Real, prompt_tokens: Real, hit_ratio: Real) -> Real:
    """
    Prompt tokens that the fleet need not compute for the samples of one prompt.

    F_s = G p H

    Args:
        group_size: Samples of one prompt, G. [1]
        prompt_tokens: Length of the prompt, p. [token]
        hit_ratio: Share of prompt tokens taken from the prefix cache, H. [1]

    Returns:
        F_s. [token]

    Assumes nothing is preempted and prefilled again.
    Source: Rollout engines (vLLM as RL backend), prefix caching across rollouts.

    >>> prefill_tokens_saved(group_size=8, prompt_tokens=256, hit_ratio=0.765625)
    1568.0
    """
    return group_size * prompt_tokens * hit_ratio


def prefill_time_fraction(
    instance_rate: Real, prompt_tokens: Real, response_tokens: Real, hit_ratio: Real, prefill_rate: Real
) -> Real:
    """
    Share of an instance's time that prefill takes.

    x = r p (1 - H) / (l P)

    Args:
        instance_rate: Response tokens per second of one instance, r. [token/s/instance]
        prompt_tokens: Mean prompt length, p. [token]
        response_tokens: Mean response length, l. [token]
        hit_ratio: Share of prompt tokens taken from the prefix cache, H. [1]
        prefill_rate: Prompt tokens per second of an instance that does nothing but prefill, P. [token/s/instance]

    Returns:
        x. [1]

    Assumes prefill and decode share the engine's time (chunked prefill conserves work); over 1 the inputs contradict
    each other.
    Source: own derivation.

    >>> prefill_time_fraction(instance_rate=4000.0, prompt_tokens=1000, response_tokens=500, hit_ratio=0.0,
    ...                       prefill_rate=40e3)
    0.2
    """
    return instance_rate * prompt_tokens * (1.0 - hit_ratio) / (response_tokens * prefill_rate)


def instance_rate_after_caching(
    instance_rate: Real, prefill_time_fraction: Real, hit_ratio: Real, expected_hit_ratio: Real
) -> Real:
    """
    Response tokens per second of one instance once its prefix cache works as it should.

    r' = r / (1 - x (H' - H) / (1 - H))

    Args:
        instance_rate: Response tokens per second of one instance today, r. [token/s/instance]
        prefill_time_fraction: Share of its time that prefill takes today, x. [1]
        hit_ratio: Prefix-cache hit ratio today, H. [1]
        expected_hit_ratio: Prefix-cache hit ratio after the fix, H'. [1]

    Returns:
        r'. [token/s/instance]

    Assumes a saturated engine that spends the time set free on decode, at an unchanged decode rate; prefill time is in
    proportion to the prompt tokens computed. The matched fleet after the fix is matched_instances at r'.
    Source: Amdahl's law on the engine's time; runbook, procedure step 3 (the matched count often drops).

    >>> instance_rate_after_caching(instance_rate=4000.0, prefill_time_fraction=0.25, hit_ratio=0.0,
    ...                             expected_hit_ratio=0.8)
    5000.0
    """
    return instance_rate / (1.0 - prefill_time_fraction * (expected_hit_ratio - hit_ratio) / (1.0 - hit_ratio))


def deduplicated_fraction(group_size: Real, prompt_tokens: Real, response_tokens: Real) -> Real:
    """
    Share of the trainer's tokens that prompt de-duplication saves.

    d = (G - 1) p / (G (p + l))

    Args:
        group_size: Samples of one prompt, G. [1]
        prompt_tokens: Mean prompt length, p. [token]
        response_tokens: Mean response length, l. [token]

    Returns:
        d. [1]

    Assumes time in proportion to tokens: attention over the context is saved in another proportion.
    Source: own; tokens with the prompt once a group, p + G l, over those with it in every sample, G (p + l), from one.

    >>> deduplicated_fraction(group_size=2, prompt_tokens=600, response_tokens=200)
    0.375
    """
    return (group_size - 1.0) * prompt_tokens / (group_size * (prompt_tokens + response_tokens))
