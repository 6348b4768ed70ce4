"""Better, worse or within noise: steps that remember each other, drawn in blocks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.verdicts.made_loops import log, wobble

from rlsize.estimates.block_bootstrap import blocks_of, mean_change, resampled_means, standard_error
from rlsize.estimates.run_summary import run_summary
from rlsize.facts.observations import ObservedAllocation, ObservedPrices
from rlsize.verdicts.before_after import Compared, Side, compared

POOLS = ObservedAllocation(rollout_gpus=16, trainer_gpus=16)
PRICES = ObservedPrices(rollout_gpu_hour_usd=2.0, trainer_gpu_hour_usd=3.0)


def side(seed: int, pools: ObservedAllocation = POOLS, prices: ObservedPrices = PRICES, **loop: float) -> Side:
    """A run of 200 steps."""
    summary = run_summary(log(seed=seed, steps=200, **loop))  # type: ignore[arg-type]  # numbers by name
    return Side(columns=summary.columns, allocation=pools, prices=prices)


def outcomes(before: Side, after: Side) -> dict[str, Compared]:
    """By quantity."""
    return {one.quantity: one for one in compared(before, after, np.random.default_rng(0))}


def test_a_shorter_step_on_the_same_gpus_is_better_and_cheaper() -> None:
    """Less waiting: step time, idle and cost fall; the interval holds the true change."""
    told = outcomes(side(1, wait=5.0), side(2, wait=0.5))
    assert {key: one.outcome for key, one in told.items()} == {
        "step_seconds": "better",
        "trainer_idle_fraction": "better",
        "cost_per_step_usd": "better",
    }
    change = told["step_seconds"].change
    assert change is not None
    assert change.low < (21.3 / 25.8 - 1.0) < change.high


def test_a_faster_step_can_cost_more() -> None:
    """The rebalance bought the wrong thing: time fell by a tenth, GPUs doubled."""
    more = ObservedAllocation(rollout_gpus=32, trainer_gpus=32)
    told = outcomes(side(1, wait=3.0), side(2, more, wait=0.5))
    assert told["step_seconds"].outcome == "better"
    assert told["cost_per_step_usd"].outcome == "worse"


def test_without_prices_gpu_hours_are_compared() -> None:
    """Cost in GPU-hours."""
    told = outcomes(side(1, prices=ObservedPrices()), side(2, prices=ObservedPrices(), train=30.0))
    assert told["gpu_hours_per_step"].outcome == "worse"
    assert "cost_per_step_usd" not in told


def test_few_steps_decide_nothing() -> None:
    """Ten steps are not several hundred."""
    before = side(1)
    few = Side(columns={key: values[:10] for key, values in before.columns.items()}, allocation=POOLS, prices=PRICES)
    assert outcomes(before, few)["step_seconds"].outcome == "too few steps"


def test_what_one_side_lacks_is_said_so() -> None:
    """Staleness before, none after."""
    before = side(1)
    with_age = Side(columns={**before.columns, "staleness_steps": [1.0] * 200}, allocation=POOLS, prices=PRICES)
    assert outcomes(with_age, before)["staleness_steps"].outcome == "only before"
    assert outcomes(before, with_age)["staleness_steps"].outcome == "only after"


def test_what_was_zero_and_is_not_got_worse() -> None:
    """No ratio to nothing is needed for it; a draw of a mostly idle-free run that holds zeros alone is no fault."""
    before, steps = side(1), 200
    waits = [[0.0] * steps, [0.0] * (steps - 1) + [1.0], [3.0 + 0.01 * (place % 7) for place in range(steps)]]
    none, single, all_ = (
        Side(columns={**before.columns, "wait_seconds": some}, allocation=POOLS, prices=PRICES) for some in waits
    )
    assert outcomes(none, all_)["trainer_idle_fraction"].outcome == "worse"
    assert outcomes(single, all_)["trainer_idle_fraction"].outcome == "worse"
    assert outcomes(all_, none)["trainer_idle_fraction"].outcome == "better"


@pytest.mark.parametrize(("steps", "memory"), [(12, 0.8), (24, 0.8), (60, 0.5)])
def test_short_runs_raise_few_false_alarms(steps: int, memory: float) -> None:
    """A short series hides part of its memory: without a correction one pair in six would be called different."""
    told = 0
    for seed in range(150):
        pair = [wobble(steps, memory=memory, seed=9000 + 2 * seed + which) for which in (0, 1)]
        change = mean_change(pair[0], pair[1], np.random.default_rng(seed), draws=200)
        told += change is not None and change.told
    assert told <= 16


@pytest.mark.parametrize("memory", [0.0, 0.6, 0.85])
def test_no_change_is_seldom_told_from_noise(memory: float) -> None:
    """
    Of 200 pairs of like runs of 300 steps, about one in twenty is called different, although steps remember each other.

    Drawn one by one instead of in blocks, every second pair would be, at a memory of 0.85.
    """
    told = alone = 0
    for seed in range(200):
        pair = [wobble(300, memory=memory, seed=1000 + 2 * seed + which) for which in (0, 1)]
        change = mean_change(pair[0], pair[1], np.random.default_rng(seed), draws=300)
        assert change is not None
        told += change.told
        spread = (np.var(pair[0]) / 300 + np.var(pair[1]) / 300) ** 0.5
        alone += abs(np.mean(pair[1]) - np.mean(pair[0])) > 1.96 * spread
    assert told <= 24  # 12 %: blocks of a finite series keep a little less than all of its memory
    assert memory < 0.8 or alone > 80


def test_a_change_of_five_percent_is_found() -> None:
    """In 200 steps that scatter by 4 % and remember each other."""
    found = 0
    for seed in range(40):
        after = [1.05 * value for value in wobble(200, seed=500 + seed)]
        change = mean_change(wobble(200, seed=seed), after, np.random.default_rng(seed), draws=300)
        assert change is not None
        found += change.low > 0
    assert found >= 36


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0.1, 100.0), min_size=12, max_size=60))
def test_means_drawn_anew_stay_within_the_series(series: list[float]) -> None:
    """And their blocks are no longer than it; a series against itself never changes."""
    means = resampled_means(series, np.random.default_rng(0), draws=50)
    assert means.min() >= min(series) * (1 - 1e-9)
    assert means.max() <= max(series) * (1 + 1e-9)
    assert 1 <= blocks_of(series)[0] <= len(series)
    assert standard_error(series) >= 0
    change = mean_change(series, series, np.random.default_rng(0), draws=100)
    assert change is None or change.fraction == 0
