"""The split of N GPUs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize import Figure
from rlsize.errors import InputError
from rlsize.planner.split import SplitQuestion, best_instances, split_gpus


def question(
    gpus: int = 64,
    rollout: float = 2000.0,
    trainer: float = 6000.0,
    size: float = 1.0,
    headroom: float = 1.0,
    **more: Figure,
) -> SplitQuestion:
    """A split question of plain numbers."""
    return SplitQuestion(
        gpus=Figure(key="gpus", value=gpus),
        rollout_gpu_rate=Figure(key="rollout_gpu_tokens_per_second", value=rollout),
        trainer_gpu_rate=Figure(key="trainer_gpu_tokens_per_second", value=trainer),
        gpus_per_instance=Figure(key="gpus_per_instance", value=size),
        headroom=Figure(key="headroom", value=headroom),
        tokens_generated_per_trained_token=Figure(key="waste", value=1.0),
        **more,
    )


@given(
    st.integers(min_value=2, max_value=200),
    st.floats(min_value=1.0, max_value=1e4),
    st.floats(min_value=1.0, max_value=1e4),
    st.integers(min_value=1, max_value=8),
    st.floats(min_value=0.1, max_value=1.0),
)
def test_the_split_is_the_best_of_all_whole_instances(
    gpus: int, rollout: float, trainer: float, size: int, headroom: float
) -> None:
    """The search looks at a handful of splits; a loop over all of them finds nothing better."""
    asked = question(gpus, rollout, trainer, float(size), headroom)
    most = (gpus - 1) // size
    if most < 1:
        with pytest.raises(InputError, match="hold no instance"):
            best_instances(asked)
        return

    def loop(count: int) -> float:
        return min(count * size * rollout * headroom, (gpus - count * size) * trainer)

    best = best_instances(asked)
    assert loop(best) == pytest.approx(max(loop(count) for count in range(1, most + 1)), rel=1e-8)


def test_ties_go_to_fewer_rollout_gpus() -> None:
    """Two splits that run equally fast: the one with fewer rollout GPUs wins."""
    assert best_instances(question(gpus=3, rollout=1.0, trainer=1.0)) == 1


def test_a_perfect_split_equals_colocation_before_the_swap() -> None:
    """Disaggregation wins nothing in throughput by itself: swap cost and rounding decide."""
    results = {figure.key: figure for figure in split_gpus(question()).results}
    assert results["loop_tokens_per_second"].value == results["colocated_before_swap_tokens_per_second"].value


def test_doubling_the_side_that_waits_changes_nothing() -> None:
    """In a rollout-bound loop more trainer GPUs are wasted."""
    results = {figure.key: figure for figure in split_gpus(question(gpus=5, rollout=1.0, trainer=10.0)).results}
    assert results["bottleneck"].value == "rollout"
    assert results["speedup_from_doubling_trainer"].value == 1.0
    assert results["speedup_from_doubling_rollout"].number > 1.5


def test_swap_cost_makes_colocation_slower() -> None:
    """With a batch and a swap time the colocated rate falls below the balanced split."""
    asked = question(
        batch_tokens=Figure(key="batch_tokens", value=960_000), swap_seconds=Figure(key="swap_seconds", value=2.0)
    )
    results = {figure.key: figure for figure in split_gpus(asked).results}
    assert results["colocated_tokens_per_second"].value == pytest.approx(80_000)


def test_several_instances_may_share_a_gpu() -> None:
    """A fraction of a GPU per instance is allowed."""
    answer = split_gpus(question(gpus=2, rollout=10.0, trainer=10.0, size=0.5))
    assert answer.rollout_gpus == 1.0
