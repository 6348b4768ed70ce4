"""The accuracy board: which records a cell holds, what the guess beside it says, and what counts as worse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rlsize.readers.profiles import Catalogue
from rlsize.readers.records.listing import profiles_of
from rlsize.verdicts.board import board, worsened


@pytest.fixture
def cells(predict: Callable[..., Any], made_up: Any) -> Callable[..., Any]:
    """The board of rows of the made-up class."""
    look_up = profiles_of(Catalogue())
    return lambda *rows: board(predict(*rows).records, {"made_up": made_up}, look_up)


def test_the_guess_is_what_another_source_has_in_proportion_to_gpus_and_parameters(cells: Callable[..., Any]) -> None:
    """A rate of one GPU is doubled on two, where a prediction goes by the work; the source's own rows say nothing."""
    one = {"run_time_s": 10.0, "work": 10, "source_id": "one"}
    other = {"run_time_s": 40.0, "work": 10, "source_id": "other", "gpu": "a100-80-sxm"}
    by_gpu = {cell.gpu: cell for cell in cells(one, other)}
    assert by_gpu["h100-sxm"].guess == pytest.approx(3.0)
    assert by_gpu["a100-80-sxm"].guess == pytest.approx(0.75)
    assert by_gpu["h100-sxm"].median == pytest.approx(1.1)
    (alone,) = cells(one)
    assert alone.guess is None


def test_low_trust_is_in_no_cell(cells: Callable[..., Any]) -> None:
    """A record that nobody trusts makes no cell worse."""
    rows = cells({"run_time_s": 21.0, "work": 10}, {"run_time_s": 2100.0, "work": 10, "trust": "low"})
    assert [(cell.records, cell.median) for cell in rows] == [(1, 0.0)]


def test_a_cell_is_worse_beyond_its_noise_or_when_it_is_gone(cells: Callable[..., Any]) -> None:
    """One record has the noise of one measurement, 5 % here; new cells are no news."""
    (now,) = cells({"run_time_s": 21.0, "work": 10})
    assert now.noise == pytest.approx(0.05)
    assert worsened([now], [replace(now, median=0.049)]) == ()
    worse = replace(now, median=0.051)
    assert worsened([now], [worse, replace(now, gpu="b200-sxm")]) == ((now, worse),)
    assert worsened([now], []) == ((now, None),)


def test_a_cell_is_worse_when_its_bands_hold_too_little(cells: Callable[..., Any]) -> None:
    """Of a hundred measurements 80 are meant to be inside, and eight fewer than before is chance at most."""
    (one,) = cells({"run_time_s": 21.0, "work": 10})
    before = replace(one, records=100, coverage=0.83)
    fewer = replace(before, coverage=0.74)
    assert worsened([before], [fewer]) == ((before, fewer),)
    assert worsened([before], [replace(before, coverage=0.76)]) == ()
    assert worsened([replace(before, coverage=0.95)], [replace(before, coverage=0.81)]) == ()
    assert worsened([replace(before, coverage=None)], [fewer]) == ()
