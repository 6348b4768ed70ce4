"""Rules are resolved lazily: what was said goes first, then rivals in order, then a default."""

from __future__ import annotations

import numpy as np

from rlsize.equations import matching
from rlsize.estimates.figures import numbers
from rlsize.estimates.flow import Flow, rule
from rlsize.facts.figure import Figure, absent
from rlsize.rules.queue import RULES

RIVALS = (
    rule("train_seconds", matching.train_time, tokens_per_step="batch_tokens", consumption="measured_rate"),
    rule("train_seconds", matching.train_time, tokens_per_step="batch_tokens", consumption="said_rate"),
)


def figure(key: str, value: float) -> Figure:
    """A given figure."""
    return Figure(key=key, value=value)


def test_the_first_rival_whose_quantities_are_known_counts() -> None:
    """The measured rate where there is one, else the other."""
    known = {"batch_tokens": figure("batch_tokens", 800.0), "said_rate": figure("said_rate", 20.0)}
    assert Flow(RIVALS, known)["train_seconds"].value == 40.0
    assert Flow(RIVALS, (known | {"measured_rate": figure("measured_rate", 80.0)}))["train_seconds"].value == 10.0


def test_what_was_said_needs_no_rule() -> None:
    """It goes before all rules, and keeps its provenance."""
    said = figure("train_seconds", 7.0)
    assert Flow(RIVALS, {"train_seconds": said})["train_seconds"] is said


def test_what_is_missing_is_named() -> None:
    """By the flag that would give it."""
    known = {"batch_tokens": absent("batch_tokens", "--batch-tokens"), "measured_rate": figure("measured_rate", 1.0)}
    assert Flow(RIVALS, known)["train_seconds"].missing == "--batch-tokens"


def test_figures_numbers_and_draws_follow_the_same_rules() -> None:
    """The growth of a queue as a figure, a number and an array of draws."""
    said = {
        "instances": 15.0,
        "instance_tokens_per_second": 4000.0,
        "headroom": 1.0,
        "consumption_tokens_per_second": 39321.6,
        "tokens_generated_per_trained_token": 1.0,
    }
    key = "backlog_tokens_per_second"
    figures = Flow(RULES, {name: figure(name, value) for name, value in said.items()})[key]
    bare = Flow(RULES, said, work=numbers)[key]
    rates = np.array([4000.0, 2000.0])
    drawn = Flow(RULES, (said | {"instance_tokens_per_second": rates}), work=numbers)[key]
    assert figures.value == bare == drawn[0] == 15 * 4000.0 - 39321.6
    assert drawn[1] == 0.0
    assert Flow(RULES, said, work=numbers)["backlog_tokens"] is None
