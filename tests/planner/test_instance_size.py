"""The size of a rollout instance where nobody says: the highest rate for each GPU among those that fit."""

from __future__ import annotations

from typing import Any

import pytest

from rlsize.estimates.belief import prior
from rlsize.estimates.engine_work import EngineQuestion
from rlsize.estimates.rollout_question import RolloutQuestion
from rlsize.estimates.step_prediction import STAGES
from rlsize.facts.figure import Figure, absent
from rlsize.facts.records.record import Layout
from rlsize.planner.instance_size import quickest_degree
from rlsize.readers.profiles import Catalogue

CATALOGUE = Catalogue()
VALUES = prior(*STAGES).central()
DEGREES = (1, 2, 4, 8, 16)


def question(model: str, gpu: str = "h100-sxm", samples: float = 2048.0) -> RolloutQuestion:
    """An instance with the samples of a step."""
    said = {"prompt_tokens": 300, "response_tokens": 3000, "response_cv": 0.6, "max_response_tokens": 16000}
    figures: dict[str, Any] = {key: Figure(key=key, value=float(value)) for key, value in said.items()}
    return RolloutQuestion(
        engine=EngineQuestion(model=CATALOGUE.get("model", model), gpu=CATALOGUE.get("gpu", gpu), layout=Layout()),
        hit_fraction=Figure(key="hit_fraction", value=0.0),
        concurrency=absent("concurrency", ""),
        instances=absent("instances", ""),
        samples_per_step=Figure(key="samples_per_step", value=samples),
        **figures,
    )


@pytest.mark.parametrize(("model", "least"), [("qwen3-8b", 1), ("qwen3-32b", 2), ("llama3.1-70b", 4)])
def test_an_instance_has_room_for_a_batch(model: str, least: int) -> None:
    """The fewest GPUs that hold the weights leave hardly any cache, and a large model gets more."""
    found = quickest_degree(question(model), DEGREES, 32.0, VALUES)
    assert found is not None
    assert least <= found <= 8


def test_an_instance_stays_within_the_gpus_and_a_node() -> None:
    """Two GPUs, and eight of a node."""
    assert quickest_degree(question("qwen3-8b"), DEGREES, 2.0, VALUES) in {1, 2}
    assert (quickest_degree(question("qwen3-32b", samples=16.0), DEGREES, 64.0, VALUES) or 99) <= 8


def test_a_model_that_fits_nowhere_has_no_size() -> None:
    """70 B parameters on two GPUs of 24 GB."""
    assert quickest_degree(question("llama3.1-70b", "l4"), DEGREES, 2.0, VALUES) is None
