"""The headroom that is left for a rate that holds part of it."""

from __future__ import annotations

import pytest

from rlsize.estimates.headroom import headroom_left
from rlsize.facts.headroom import HEADROOM_PARTS


def test_each_part_that_a_rate_holds_takes_its_share_of_headroom() -> None:
    """0.8 with nothing held, its fifth root with one part left, 1 with all held; a part named twice counts once."""
    assert headroom_left([]).value == 0.8
    assert headroom_left(HEADROOM_PARTS[:4]).number == pytest.approx(0.8**0.2)
    assert headroom_left(["ramp", "ramp"]).number == pytest.approx(0.8**0.8)
    assert headroom_left(HEADROOM_PARTS).value == 1.0
    assert headroom_left(["ramp"], full=1.0).value == 1.0
