"""Rules are resolved lazily: what was said goes first, then rivals in order, then a default."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

import numpy as np

import rlsize.rules
from rlsize.equations import matching
from rlsize.estimates.figures import numbers
from rlsize.estimates.flow import Flow, Rule, rule
from rlsize.facts.figure import Figure, absent
from rlsize.reports.equation_page import page
from rlsize.rules.queue import RULES
from rlsize.units import unit_of

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


def test_the_caller_may_hand_in_another_quantity_or_a_sum() -> None:
    """A key is the quantity of that key; several are their sum; what stands before a slash is not told."""
    rates = {"new/measured_rate": figure("measured_rate", 80.0), "said_rate": figure("said_rate", 20.0)}
    decided = {"measured_rate": "new/measured_rate", "batch_tokens": ("prompts/tokens", "responses/tokens")}
    tokens = {"prompts/tokens": figure("tokens", 300.0), "responses/tokens": figure("tokens", 500.0)}
    found = Flow(RIVALS, rates | decided | tokens)["train_seconds"]
    assert found.value == 10.0
    assert found.inputs["consumption"] is rates["new/measured_rate"]
    assert found.inputs["tokens_per_step"].key == "batch_tokens"
    assert [part.number for part in found.inputs["tokens_per_step"].inputs.values()] == [300.0, 500.0]
    bare = {"measured_rate": "said_rate", "said_rate": 20.0, "batch_tokens": ("a", "b"), "a": 300.0, "b": 500.0}
    assert Flow(RIVALS, bare, work=numbers)["train_seconds"] == 40.0


def test_a_thing_before_a_slash_is_not_told() -> None:
    """Two quantities of one name, of two things."""
    both = [rule(f"{of}/train_seconds", matching.train_time, consumption=f"{of}_rate") for of in ("old", "new")]
    known = {"batch_tokens": figure("batch_tokens", 800.0), "new_rate": figure("new_rate", 80.0)}
    found = Flow(both, known)["new/train_seconds"]
    assert (found.key, found.value) == ("train_seconds", 10.0)


SHOWN = {"$": "usd", "s": "s", "B": "B", "tok/s": "token/s", "tok/s/GPU": "token/s/gpu", "/day": "step/day"}
"""What an equation returns, by the unit that people see."""


def test_a_key_ends_in_the_unit_of_its_equation() -> None:
    """One that ends otherwise is shown in a unit that its value does not have, such as tokens in dollars."""
    modules = [import_module(f"rlsize.rules.{found.name}") for found in iter_modules(rlsize.rules.__path__)]
    tables = [table for module in modules for table in vars(module).values() if isinstance(table, tuple)]
    keys = {one.told: one.equation for table in tables for one in table if isinstance(one, Rule)}
    assert "cost_per_step_usd" in keys
    units = {key: page(f"{one.__module__.rpartition('.')[2]}.{one.__name__}").unit for key, one in keys.items()}
    wrong = {
        key: (unit_of(key), unit) for key, unit in units.items() if not unit.startswith(SHOWN.get(unit_of(key), ""))
    }
    assert not wrong, f"shown as the first, in truth the second; another ending, or a row in units._ENDINGS: {wrong}"


def test_a_quantity_is_worked_out_once() -> None:
    """Also an array, or a figure, that several others take."""
    asked = []

    def half(whole: float) -> float:
        asked.append(whole)
        return whole / 2

    def both(first: float, second: float) -> float:
        return first + second

    rules = (
        rule("part", half, whole="whole"),
        rule("sum", both, first="part", second="part"),
        rule("more", both, first="sum", second="part"),
    )
    assert Flow(rules, {"whole": np.array([2.0, 4.0])}, work=numbers)["more"].tolist() == [3.0, 6.0]
    assert Flow(rules, {"whole": figure("whole", 2.0)})["more"].value == 3.0
    assert len(asked) == 2
