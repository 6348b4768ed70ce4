"""Supply and demand of tokens, the queue between them, and how stale what waits in it gets."""

from __future__ import annotations

from rlsize.equations import imbalance, matching
from rlsize.estimates.flow import rule
from rlsize.rules.match import DEMAND

_CAP = {"max_staleness": "counted_staleness"}
_MADE = {"tokens_per_step": "generated_tokens_per_step"}

RULES = (
    *DEMAND,
    rule("supply_tokens_per_second", matching.fleet_supply),
    rule("backlog_tokens_per_second", imbalance.backlog_growth),
    rule("backlog_tokens", imbalance.backlog_after),
    rule("generated_tokens_per_step", matching.required_supply, consumption="batch_tokens"),
    rule("new_sample_staleness_steps", imbalance.new_sample_staleness, **_MADE),
    rule("oldest_sample_age_seconds", imbalance.oldest_sample_age),
    rule("oldest_sample_age_steps", imbalance.age_in_steps),
    rule("new_sample_reaches_cap_seconds", imbalance.seconds_until_new_sample_is_stale, **_CAP, **_MADE),
    rule("oldest_sample_reaches_cap_seconds", imbalance.seconds_until_oldest_is_stale, **_CAP),
    rule("queue_allowed_samples", imbalance.queue_allowed),
    rule("stall_absorbed_seconds", imbalance.stall_absorbed),
)
