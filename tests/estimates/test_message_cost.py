"""The cost of a message and the bandwidth, from times that were made from both."""

from __future__ import annotations

import random

import pytest

from rlsize.estimates.message_cost import message_cost

SIZES = [64.0, 1024.0, 65_536.0, 1_048_576.0, 33_554_432.0]


def test_it_finds_what_the_times_were_made_of() -> None:
    """Exact times give both numbers back, over six orders of magnitude of size."""
    fit = message_cost(SIZES, [2e-4 + size / 5e9 for size in SIZES])
    assert fit is not None
    assert fit.per_message_seconds == pytest.approx(2e-4)
    assert fit.wire_bytes_per_second == pytest.approx(5e9)


def test_late_ranks_now_and_then_change_little() -> None:
    """One message in ten takes fifty times as long; with twenty of a size the fit stays."""
    noise = random.Random(1)
    sizes = SIZES * 20
    seconds = [(2e-4 + size / 5e9) * noise.uniform(0.95, 1.05) * (50 if noise.random() < 0.1 else 1) for size in sizes]
    fit = message_cost(sizes, seconds)
    assert fit is not None
    assert fit.wire_bytes_per_second is not None
    assert fit.per_message_seconds == pytest.approx(2e-4, rel=0.05)
    assert fit.wire_bytes_per_second == pytest.approx(5e9, rel=0.05)


def test_neither_figure_is_negative() -> None:
    """Times that fall with size are all fixed cost; a line that would start below zero starts at zero."""
    falling = message_cost([1e3, 1e6], [2e-3, 1e-3])
    assert falling is not None
    assert falling.wire_bytes_per_second is None
    assert 1e-3 <= falling.per_message_seconds <= 2e-3
    steep = message_cost([1e6, 2e6, 3e6], [1e-3, 3e-3, 5e-3])
    assert steep is not None
    assert steep.per_message_seconds == 0
    assert steep.wire_bytes_per_second is not None


@pytest.mark.parametrize(
    ("sizes", "seconds"), [([], []), ([5.0], [1.0]), ([5.0, 5.0], [1.0, 2.0]), ([1.0, 2.0], [0, 1])]
)
def test_one_size_is_no_line(sizes: list[float], seconds: list[float]) -> None:
    """Nothing can be told apart."""
    assert message_cost(sizes, seconds) is None
