"""Supply and demand of tokens, the queue between them, and how stale what waits in it gets."""

from __future__ import annotations

from rlsize.equations import imbalance, matching
from rlsize.flow import rule

RULES = (
    rule(
        "required_tokens_per_second",
        matching.required_supply,
        consumption="consumption_tokens_per_second",
        tokens_generated_per_trained_token="tokens_generated_per_trained_token",
    ),
    rule(
        "supply_tokens_per_second",
        matching.fleet_supply,
        instances="instances",
        instance_rate="instance_tokens_per_second",
        headroom="headroom",
    ),
    rule(
        "backlog_tokens_per_second",
        imbalance.backlog_growth,
        supply="supply_tokens_per_second",
        required_supply="required_tokens_per_second",
    ),
    rule("backlog_tokens", imbalance.backlog_after, growth="backlog_tokens_per_second", seconds="seconds"),
    rule(
        "generated_tokens_per_step",
        matching.required_supply,
        consumption="batch_tokens",
        tokens_generated_per_trained_token="tokens_generated_per_trained_token",
    ),
    rule(
        "train_seconds",
        matching.train_time,
        tokens_per_step="batch_tokens",
        consumption="consumption_tokens_per_second",
    ),
    rule(
        "new_sample_staleness_steps",
        imbalance.new_sample_staleness,
        backlog="backlog_tokens",
        tokens_per_step="generated_tokens_per_step",
    ),
    rule(
        "oldest_sample_age_seconds",
        imbalance.oldest_sample_age,
        seconds="seconds",
        supply="supply_tokens_per_second",
        required_supply="required_tokens_per_second",
    ),
    rule(
        "oldest_sample_age_steps",
        imbalance.age_in_steps,
        age_seconds="oldest_sample_age_seconds",
        seconds_per_step="train_seconds",
    ),
    rule(
        "new_sample_reaches_cap_seconds",
        imbalance.seconds_until_new_sample_is_stale,
        max_staleness="counted_staleness",
        tokens_per_step="generated_tokens_per_step",
        growth="backlog_tokens_per_second",
    ),
    rule(
        "oldest_sample_reaches_cap_seconds",
        imbalance.seconds_until_oldest_is_stale,
        max_staleness="counted_staleness",
        seconds_per_step="train_seconds",
        supply="supply_tokens_per_second",
        required_supply="required_tokens_per_second",
    ),
    rule(
        "queue_allowed_samples",
        imbalance.queue_allowed,
        max_staleness="max_staleness",
        samples_per_step="samples_per_step",
        in_flight="in_flight",
    ),
    rule(
        "stall_absorbed_seconds",
        imbalance.stall_absorbed,
        queue_samples="queue_allowed_samples",
        samples_per_step="samples_per_step",
        seconds_per_step="train_seconds",
    ),
)
