"""Predictors are found by listing, and offer what grading asks of them."""

from __future__ import annotations

from typing import Any

import pytest

from rlsize.estimates.belief import prior
from rlsize.estimates.recorded.registry import Profiles, calibrates_on, cell, fold, predictors, relation
from rlsize.readers.profiles import Catalogue


@pytest.mark.parametrize("name", predictors())
def test_a_predictor_offers_all_that_grading_asks(name: str) -> None:
    """A class, stages whose constants have names of their own, and four functions."""
    found = predictors()[name]
    assert name == found.CLASS
    names = prior(*found.STAGES).names
    assert len(set(names)) == len(names)
    assert all(callable(part) for part in (found.predict, found.graded, found.family, found.noise))


def test_without_a_word_of_the_class_the_layout_decides(made_up: Any) -> None:
    """GPUs and ranks; a class's own key or own words take their place."""
    one, more, split = (
        made_up.record({"id": "x", "work": 1, "gpus": gpus, "tp": tp}, None) for gpus, tp in ((2, 1), (4, 1), (2, 2))
    )
    assert relation(made_up, one, one) == "same layout"
    assert relation(made_up, one, more) == relation(made_up, one, split) == "other layout"
    made_up.layout_key = lambda run: run.layout
    assert relation(made_up, one, more) == "same layout"
    made_up.relation = lambda one, other: f"{one.gpus} to {other.gpus} GPUs"
    assert relation(made_up, one, more) == "2 to 4 GPUs"


def test_a_calibration_takes_the_field_that_counts_unless_the_class_says_more(made_up: Any) -> None:
    """Such as the times of phases."""
    run = made_up.record({"id": "x", "work": 1}, None)
    assert calibrates_on(made_up, run) == ("run_time_s",)
    made_up.calibrates_on = lambda _: ["run_time_s", "work_per_s_total"]
    assert calibrates_on(made_up, run) == ("run_time_s", "work_per_s_total")


def test_cells_and_folds_are_those_of_the_class_where_it_has_any(made_up: Any) -> None:
    """Else dense or MoE, with the maker of other GPUs, and whole models."""
    catalogue = Catalogue()
    run = made_up.record({"id": "x", "work": 1}, None)
    assert fold(made_up, run) == "qwen3-8b"
    made_up.fold = lambda run: run.source_id
    assert fold(made_up, run) == "s"
    del made_up.cell
    for model, gpu, words in (
        ("qwen3-8b", "h100-sxm", "dense"),
        ("deepseek-v3", "h200-sxm", "MoE"),
        ("qwen3-8b", "mi300x", "dense, AMD"),
    ):
        found = Profiles(model=catalogue.get("model", model), gpu=catalogue.get("gpu", gpu))
        assert cell(made_up, run, found) == words
