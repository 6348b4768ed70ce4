"""Runs of a made-up class, read and predicted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rlsize.facts.records import ListedRecord
from rlsize.verdicts.predictions import Predictions, predictions


@pytest.fixture
def silent() -> Callable[[str, float], None]:
    """Says nothing."""
    return lambda _text, _share: None


@pytest.fixture
def runs(made_up: Any) -> Callable[..., list[ListedRecord]]:
    """Records of the made-up class from their rows; each is named after its place."""

    def listed(*rows: dict[str, Any]) -> list[ListedRecord]:
        return [
            ListedRecord(
                place=place, class_name="made_up", record=made_up.record({"id": f"r{place}", "gpus": 1, **row}, None)
            )
            for place, row in enumerate(rows)
        ]

    return listed


@pytest.fixture
def predict(made_up: Any, silent: Any, runs: Any) -> Callable[..., Predictions]:
    """Predictions of rows of the made-up class."""

    def predicted(*rows: dict[str, Any], seed: int = 0) -> Predictions:
        return predictions(runs(*rows), {"made_up": made_up}, lambda _: None, seed, silent)  # type: ignore[arg-type, return-value]  # the made-up class needs no profiles

    return predicted
