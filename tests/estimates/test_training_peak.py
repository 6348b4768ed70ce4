"""Peaks of training passes: torchtune's ladder, torchtitan's tables, and directions."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.estimates.belief import prior
from rlsize.estimates.constants_memory import STAGE
from rlsize.estimates.training_peak import PeakQuestion, peak_bytes
from rlsize.estimates.working import numbers
from rlsize.facts.records.record import Layout
from rlsize.readers.profiles import Catalogue

CATALOGUE = Catalogue()
VALUES = prior(STAGE).central()
GIB = 2.0**30
TORCHTUNE = PeakQuestion(
    model=CATALOGUE.get("model", "llama3.2-3b"),
    sequences=2.0,
    sequence_tokens=4096.0,
    recompute="none",
    optimizer_width=4.0,
    gradients_held=False,
)
TORCHTITAN = PeakQuestion(
    model=CATALOGUE.get("model", "llama3.1-8b"),
    layout=Layout(data=8),
    sequences=1.0,
    sequence_tokens=32768.0,
    weight_width=4.0,
    gradient_width=4.0,
    optimizer_width=8.0,
    gradients_held=False,
    compiled=True,
)


def peak(question: PeakQuestion) -> float:
    """GiB at the central constants."""
    return float(peak_bytes(numbers, question, VALUES)) / GIB


@pytest.mark.parametrize(
    ("question", "published"),
    [
        (TORCHTUNE, 60.0),
        (replace(TORCHTUNE, recompute="full", compiled=True, chunked_loss=True), 24.9),
        (replace(TORCHTUNE, recompute="full", compiled=True, chunked_loss=True, gradient_width=0.0), 23.1),
        (TORCHTITAN, 83.9),
        (replace(TORCHTITAN, layout=Layout(data=1, context=8), sequence_tokens=262144.0), 84.5),
    ],
)
def test_published_peaks(question: PeakQuestion, published: float) -> None:
    """Within 15 % of what torchtune and torchtitan report."""
    assert peak(question) == pytest.approx(published, rel=0.15)


@given(tokens=st.floats(1.0, 1e5), more=st.floats(0.0, 1e5))
def test_more_tokens_never_take_less(tokens: float, more: float) -> None:
    """Monotone in the micro batch."""
    small, large = (peak(replace(TORCHTITAN, sequence_tokens=length)) for length in (tokens, tokens + more))
    assert large >= small


def test_recomputation_saves() -> None:
    """Full keeps less than selective, and selective less than none."""
    full, some, none = (peak(replace(TORCHTITAN, recompute=name)) for name in ("full", "selective", "none"))
    assert full < some < none


def test_more_ranks_hold_less() -> None:
    """States shrink with the ranks that share them; experts with theirs."""
    model = CATALOGUE.get("model", "qwen3-30b-a3b")
    few, many = (
        peak(replace(TORCHTITAN, model=model, layout=Layout(data=ranks, expert=8), recompute="full"))
        for ranks in (8, 64)
    )
    assert many < few


def test_gradients_hide_behind_activations() -> None:
    """Where activations are larger than gradients, freeing gradients early saves nothing."""
    kept, freed = (peak(replace(TORCHTUNE, gradient_width=width)) for width in (2.0, 0.0))
    assert kept == freed
