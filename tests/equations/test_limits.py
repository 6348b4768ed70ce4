"""Limits and identities: what must hold at the edges, and between equations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.equations import (
    activations,
    imbalance,
    iteration,
    matching,
    memory,
    money,
    redundancy,
    sync_pause,
    sync_transports,
    weight_sync,
)

RATE = st.floats(1.0, 1e6)
SECONDS = st.floats(0.1, 1e4)
GPUS = st.integers(1, 4096)
FRACTION = st.floats(0.0, 0.99)
BYTES = st.floats(1e6, 1e13)
BANDWIDTH = st.floats(1e8, 1e13)
GROUP = st.integers(1, 64)
INSTANCES = st.integers(1, 128)
TOKENS = st.integers(1, 100_000)
BLOCK = st.sampled_from([1, 16, 32, 64, 128])
ENDLESS = 1e300


# ---- matching and imbalance ----


@given(consumption=RATE, rate=RATE, headroom=st.floats(0.1, 1.0))
def test_a_matched_fleet_neither_starves_nor_piles_up(consumption: float, rate: float, headroom: float) -> None:
    """At the matched count, before rounding, expected idle and backlog growth are both zero."""
    count = matching.matched_instances(consumption, rate, headroom)
    supply = matching.fleet_supply(count, rate, headroom)
    assert imbalance.trainer_idle_fraction(supply, consumption) == pytest.approx(0.0, abs=1e-12)
    assert imbalance.backlog_growth(supply, consumption) == pytest.approx(0.0, abs=1e-9 * consumption)


@given(required=RATE)
def test_no_supply_leaves_the_trainer_idle(required: float) -> None:
    """Without a single sample the trainer waits all the time, and no backlog grows."""
    assert imbalance.trainer_idle_fraction(0.0, required) == 1.0
    assert imbalance.backlog_growth(0.0, required) == 0.0


@given(supply=RATE, required=RATE)
def test_one_side_pays(supply: float, required: float) -> None:
    """The trainer never waits while the backlog grows, and idle is a share."""
    idle, growth = imbalance.trainer_idle_fraction(supply, required), imbalance.backlog_growth(supply, required)
    assert 0.0 <= idle <= 1.0
    assert growth >= 0.0
    assert idle == 0.0 or growth == 0.0


@given(supply=RATE, required=RATE)
def test_idle_is_the_slower_sides_lead(supply: float, required: float) -> None:
    """The trainer's idle share, where it idles, is the lesson's one less min over max."""
    if supply < required:
        lesson = matching.idle_fraction(supply, required)
        assert imbalance.trainer_idle_fraction(supply, required) == pytest.approx(lesson, abs=1e-12)


@given(gpus=GPUS, rollout=RATE, trainer=RATE)
def test_the_balanced_split_idles_nobody(gpus: int, rollout: float, trainer: float) -> None:
    """At the balanced split both pools run equally fast, and as fast as colocated pools that swap for free."""
    rollout_gpus = matching.balanced_rollout_gpus(gpus, rollout, trainer)
    supply, demand = matching.pool_rate(rollout_gpus, rollout), matching.pool_rate(gpus - rollout_gpus, trainer)
    assert supply == pytest.approx(demand, rel=1e-6)
    assert supply == pytest.approx(matching.colocated_throughput(gpus, rollout, trainer), rel=1e-9)


@given(rollout=SECONDS, train=SECONDS)
def test_an_endless_trainer_does_not_help_a_rollout_bound_loop(rollout: float, train: float) -> None:
    """However many trainer GPUs, a synchronous loop gets faster by no more than the share they work on."""
    limit = (rollout + train) / rollout
    assert matching.speedup_from_scaling(rollout, train, 1.0, ENDLESS) == pytest.approx(limit)


# ---- weight sync ----


@given(params=st.floats(1e6, 1e13), width=st.sampled_from([0.5, 1, 2, 4]))
def test_an_endless_link_syncs_at_once(params: float, width: float) -> None:
    """With infinite bandwidth only the latency is left."""
    assert weight_sync.weight_sync_time(params, width, ENDLESS) == pytest.approx(0.0, abs=1e-200)
    assert weight_sync.transfer_time(params * width, ENDLESS, 0.3) == 0.3


@given(size=BYTES, bandwidth=BANDWIDTH)
def test_all_transports_agree_on_one_plain_link(size: float, bandwidth: float) -> None:
    """One hop, one receiver, no latency: broadcast, point-to-point and the plain formula take the same time."""
    plain = weight_sync.weight_sync_time(size / 2, 2, bandwidth)
    assert weight_sync.transfer_time(size, bandwidth, 0.0) == pytest.approx(plain)
    assert sync_transports.broadcast_time(size, 1e6, bandwidth, 0.0, 1) == pytest.approx(plain)
    assert sync_transports.rdma_time(size, size, bandwidth, ENDLESS) == pytest.approx(plain)
    assert sync_transports.store_sync_time(size, ENDLESS, bandwidth, 1, ENDLESS, 0.0) == pytest.approx(plain)


@given(size=BYTES, bandwidth=BANDWIDTH, hops=st.integers(1, 512))
def test_small_buckets_make_receivers_free(size: float, bandwidth: float, hops: int) -> None:
    """A pipelined broadcast in ever smaller buckets takes the time of one hop, however many receivers there are."""
    assert sync_transports.broadcast_time(size, size * 1e-9, bandwidth, 0.0, hops) == pytest.approx(
        size / bandwidth, rel=1e-6
    )


@given(params=st.floats(1e6, 1e13), index=st.sampled_from([1, 2, 4, 8]), width=st.sampled_from([0.5, 1, 2, 4]))
def test_a_delta_breaks_even_where_it_says(params: float, index: float, width: float) -> None:
    """At the break-even share a delta is as large as the whole, below it smaller."""
    share = weight_sync.break_even_changed_fraction(index, width)
    whole = weight_sync.weight_bytes(params, width)
    assert weight_sync.delta_sync_bytes(params, share, index, width) == pytest.approx(whole)
    assert weight_sync.delta_sync_bytes(params, 0.99 * share, index, width) < whole
    assert weight_sync.delta_sync_bytes(params, 0.0, index, width) == 0.0


@given(sync=st.floats(0.0, 1e3), step=SECONDS, every=st.integers(1, 100))
def test_a_pause_is_a_share(sync: float, step: float, every: int) -> None:
    """The paused share lies between 0 and 1, is 0 when everything is hidden, and shrinks as syncs get rarer."""
    assert sync_pause.sync_pause_fraction(sync_pause.exposed_sync_time(sync, sync), step, every) == 0.0
    share = sync_pause.sync_pause_fraction(sync, step, every)
    assert 0.0 <= share < 1.0
    assert sync_pause.sync_pause_fraction(sync, step, every + 1) <= share


@given(sync=st.floats(0.01, 1e3), step=SECONDS, target=st.floats(0.001, 0.9))
def test_the_cadence_keeps_the_target(sync: float, step: float, target: float) -> None:
    """At the cadence the pause is the target share, or less where one sync per step is cheap enough."""
    every = sync_pause.sync_cadence(sync, step, target)
    share = sync_pause.sync_pause_fraction(sync, step, every)
    assert share <= target * (1 + 1e-9)
    assert every == 1.0 or share == pytest.approx(target)


# ---- memory ----


@given(params=st.floats(1e6, 1e13), shards=st.integers(1, 4096))
def test_more_shards_never_cost_memory(params: float, shards: int) -> None:
    """Each stage of ZeRO holds no more than the one before, and a further rank never more."""
    stages = [
        memory.sharded_state_bytes(params, 2, 2, 12, *ranks)
        for ranks in [(1, 1, 1), (1, 1, shards), (1, shards, shards), (shards, shards, shards)]
    ]
    assert stages == sorted(stages, reverse=True)
    assert stages[0] == pytest.approx(memory.trainer_state_bytes(params, 16))
    assert stages[3] * shards == pytest.approx(stages[0])
    more = shards + 1
    assert memory.sharded_state_bytes(params, 2, 2, 12, more, more, more) <= stages[3]


@given(dense=st.floats(1e6, 1e12), routed=st.floats(0.0, 1e13))
def test_one_gpu_holds_everything(dense: float, routed: float) -> None:
    """Without parallelism a GPU holds all parameters."""
    assert memory.params_per_gpu(dense, routed, 1, 1, 1, 1) == dense + routed


@given(sharded=BYTES, fixed=st.floats(0.0, 70e9))
def test_the_bill_fits_at_the_count(sharded: float, fixed: float) -> None:
    """At the count needed, usable memory is exactly full."""
    gpus = memory.gpus_needed(sharded, fixed, 80e9, 0.9)
    assert sharded / gpus + fixed == pytest.approx(0.9 * 80e9)


@given(params=st.floats(1e6, 1e13), width=st.sampled_from([0.5, 1, 2, 4]))
def test_a_frozen_copy_is_what_is_sent(params: float, width: float) -> None:
    """An inference copy in one width holds the bytes that a full update in that width sends."""
    assert memory.inference_weight_bytes(params, width, 0, 4) == weight_sync.weight_bytes(params, width)
    assert memory.inference_weight_bytes(params, width, params, 4) == weight_sync.weight_bytes(params, 4)


@given(tokens=TOKENS, hidden=st.integers(64, 16384), shards=st.sampled_from([1, 2, 4, 8]))
def test_full_recomputation_keeps_least(tokens: int, hidden: int, shards: int) -> None:
    """With sequence parallelism, full recomputation keeps 2 s b h / t: a seventeenth of what selective keeps."""
    full = activations.activation_bytes_per_layer(tokens, hidden, 2, 1, shards, 0, shards)
    selective = activations.activation_bytes_per_layer(tokens, hidden, 2, 5, shards, 12, shards)
    assert full == pytest.approx(2 * tokens * hidden / shards)
    assert selective == pytest.approx(17 * full)


# ---- redundancy ----


@given(group=GROUP, prompt=TOKENS, block=BLOCK, instances=INSTANCES)
def test_a_hit_ratio_is_a_share(group: int, prompt: int, block: int, instances: int) -> None:
    """Hit ratios lie in [0, 1): a group kept together hits most, one dealt out in turn least."""
    found = redundancy.cacheable_prompt_tokens(prompt, block)
    spread = redundancy.instances_per_group_random(group, instances)
    dealt = redundancy.instances_per_group_round_robin(group, instances)
    kept, random, dealt_out = (
        redundancy.prefix_cache_hit_ratio(group, prompt, found, 0, k) for k in (1, spread, dealt)
    )
    assert -1e-12 <= dealt_out <= random + 1e-12 <= kept + 2e-12 < 1.0 + 2e-12


@given(group=GROUP, prompt=TOKENS, block=BLOCK, instances=INSTANCES)
def test_larger_groups_hit_more(group: int, prompt: int, block: int, instances: int) -> None:
    """One sample more never lowers the hit ratio, and a single sample hits nothing of its own."""

    def ratio(size: int, routed: int) -> float:
        found = redundancy.cacheable_prompt_tokens(prompt, block)
        spread = redundancy.instances_per_group_random(size, routed)
        return float(redundancy.prefix_cache_hit_ratio(size, prompt, found, 0, spread))

    assert ratio(1, instances) == pytest.approx(0.0, abs=1e-12)
    assert ratio(group + 1, instances) >= ratio(group, instances) - 1e-12
    assert ratio(group, 10**9) == pytest.approx(0.0, abs=1e-6)


@given(prompt=TOKENS, block=BLOCK)
def test_the_last_token_is_always_computed(prompt: int, block: int) -> None:
    """What a later sample finds is whole blocks, less than the prompt, and misses it by one block at most."""
    found = redundancy.cacheable_prompt_tokens(prompt, block)
    assert found % block == 0
    assert 1 <= prompt - found <= block
    assert redundancy.cacheable_shared_tokens(prompt, prompt, block) == found


@given(rate=RATE, share=FRACTION, before=FRACTION, gain=FRACTION)
def test_a_better_cache_never_slows(rate: float, share: float, before: float, gain: float) -> None:
    """The rate after the fix is at least today's, and at most that of an engine that never prefills."""
    after = before + gain * (1 - before)
    fixed = redundancy.instance_rate_after_caching(rate, share, before, after)
    assert redundancy.instance_rate_after_caching(rate, share, before, before) == rate
    assert rate * (1 - 1e-12) <= fixed <= rate / (1 - share) * (1 + 1e-9)


def test_the_matched_count_drops_after_the_fix() -> None:
    """With 40 % of the time in prefill, groups of 8 that start to hit need 8.08 instances where 12.29 were needed."""
    expected = redundancy.prefix_cache_hit_ratio(8, 1024, redundancy.cacheable_prompt_tokens(1024, 16), 0, 1)
    rate = redundancy.instance_rate_after_caching(4000.0, 0.4, 0.0, expected)
    assert expected == pytest.approx(7 * 1008 / 8192)
    assert matching.matched_instances(39321.6, 4000.0, 0.8) == pytest.approx(12.288)
    assert matching.matched_instances(39321.6, rate, 0.8) == pytest.approx(12.288 * (1 - 0.4 * 0.861328125))


@given(group=GROUP, prompt=TOKENS, response=TOKENS)
def test_deduplication_adds_up(group: int, prompt: int, response: int) -> None:
    """The share saved is one less the quotient of tokens with and without, and one sample saves nothing."""
    whole, packed = group * (prompt + response), prompt + group * response
    assert redundancy.deduplicated_fraction(group, prompt, response) == pytest.approx(1 - packed / whole, abs=1e-12)
    assert redundancy.deduplicated_fraction(1, prompt, response) == 0.0


# ---- iteration and money ----


@given(rollout=SECONDS, train=SECONDS, sync=st.floats(0.0, 100.0))
def test_overlap_never_slows_and_at_most_halves(rollout: float, train: float, sync: float) -> None:
    """An overlapped step is no longer than a synchronous one and at least half as long."""
    serial = iteration.synchronous_iteration_time(rollout, train, sync)
    overlapped = iteration.overlapped_iteration_time(rollout, train, sync)
    assert serial / 2 * (1 - 1e-12) <= overlapped <= serial
    assert 0 < iteration.rollout_share(rollout, overlapped) <= 1


@given(seconds=SECONDS, share=st.floats(0.05, 0.95), gpus=GPUS)
def test_a_free_swap_only_equals_a_balanced_split(seconds: float, share: float, gpus: int) -> None:
    """Colocation with free swaps takes the time of a balanced split whose sync is hidden; any swap loses to it."""
    rollout = iteration.phase_time_on(seconds, share * gpus, gpus)
    train = iteration.phase_time_on(seconds, (1 - share) * gpus, gpus)
    disaggregated = iteration.overlapped_iteration_time(seconds, seconds, 0.0)
    assert iteration.colocated_iteration_time(rollout, train, 0.0) == pytest.approx(disaggregated)
    assert iteration.break_even_swap_time(disaggregated, rollout, train) == pytest.approx(0.0, abs=1e-9 * seconds)


@given(overlapped=SECONDS, rollout=SECONDS, train=SECONDS)
def test_a_swap_breaks_even_where_it_says(overlapped: float, rollout: float, train: float) -> None:
    """With the break-even swap, colocated and disaggregated steps take equally long."""
    swap = iteration.break_even_swap_time(overlapped, rollout, train)
    assert iteration.colocated_iteration_time(rollout, train, swap) == pytest.approx(overlapped)


@given(group=GROUP, instances=INSTANCES, seconds=SECONDS, steps=st.integers(1, 1000))
def test_a_fleet_that_generates_one_round_takes_one_groups_time(
    group: int, instances: int, seconds: float, steps: int
) -> None:
    """As many groups as instances take the time of one group, twice as many twice that."""
    rate = iteration.completions_per_second(instances, group, seconds)
    assert iteration.rollout_seconds(steps * instances * group, rate) == pytest.approx(steps * seconds)


@given(rollout=GPUS, trainer=GPUS, price=st.floats(0.1, 20.0), seconds=SECONDS)
def test_cost_is_gpu_hours_times_price(rollout: int, trainer: int, price: float, seconds: float) -> None:
    """With one price a step costs its GPU-hours, and a pool that idles all the time costs its whole share of them."""
    cost = money.cost_per_step(rollout, price, trainer, price, seconds)
    assert cost == pytest.approx(money.gpu_hours(rollout + trainer, seconds) * price)
    idle = money.idle_cost_per_step(trainer, price, 1.0, seconds)
    assert idle + money.cost_per_step(rollout, price, 0, price, seconds) == pytest.approx(cost)
    assert money.cost_per_run(cost, 1) == cost


@given(tokens=st.floats(1e3, 1e9), seconds=SECONDS, rollout=GPUS, trainer=GPUS, price=st.floats(0.1, 20.0))
def test_goodput_is_the_inverse_of_cost(
    tokens: float, seconds: float, rollout: int, trainer: int, price: float
) -> None:
    """With one price for all GPUs, a million tokens cost the price over the goodput."""
    per_million = money.cost_per_million_trained_tokens(
        money.cost_per_step(rollout, price, trainer, price, seconds), tokens
    )
    goodput = money.goodput(tokens, seconds, rollout, trainer)
    assert per_million == pytest.approx(1e6 * price / 3600 / goodput)


@given(price=st.floats(0.1, 20.0), cheap=st.floats(0.1, 20.0))
def test_a_blend_ends_at_its_parts(price: float, cheap: float) -> None:
    """No preemptible GPU costs the one price, only preemptible ones the other, and nothing lost changes neither."""
    assert money.blended_gpu_hour(price, cheap, 0.0) == price
    assert money.blended_gpu_hour(price, cheap, 1.0) == cheap
    assert money.effective_gpu_hour(price, 0.0) == price
