"""`rlsize simulate --sweep`: the points of a grid, their order, what they share, and what cannot be swept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Run = Callable[..., Any]
LOOP = (
    "simulate", "--mode", "async", "--max-staleness", "1", "--instances", "4", "--per-instance", "4000",
    "--concurrency", "16", "--prompts", "16", "--group", "4", "--response-tokens", "500", "--response-cv", "0.8",
    "--train-seconds", "2", "--seeds", "2", "--steps", "8",
)  # fmt: skip
CAPS, FLEET = ("--sweep", "max_staleness=0:2"), ("--sweep", "instances=2:4:2")


def test_a_grid_is_in_the_order_of_its_sweeps(rlsize: Run) -> None:
    """The last one changes fastest; each point has the step time with its interval, and the quickest is told."""
    ran = rlsize(*LOOP, *CAPS, *FLEET, "--json")
    rows = ran.document["rows"]["grid"]
    assert [(row["max_staleness"], row["instances"]) for row in rows] == [
        (cap, fleet) for cap in ("0", "1", "2") for fleet in ("2", "4")
    ]
    for row in rows:
        low, mean, high = (row[f"simulated_step_seconds{end}"] for end in ("_low", "", "_high"))
        assert low <= mean <= high
    assert ran.results["simulated_best_step_seconds"] == min(row["simulated_step_seconds"] for row in rows)
    assert ran.results["points"] == 6


@pytest.mark.parametrize("jobs", ["2", "3"])
def test_a_grid_is_the_same_with_any_number_of_workers(rlsize: Run, jobs: str) -> None:
    """Whatever order runs finish in."""
    alone = rlsize(*LOOP, *CAPS, "--jobs", "1", "--json").stdout
    assert rlsize(*LOOP, *CAPS, "--backend", "threads", "--jobs", jobs, "--json").stdout == alone


def test_a_point_is_what_a_single_run_of_it_is(rlsize: Run) -> None:
    """All points meet the same seeds, so that they differ by what is swept and by nothing else."""
    rows = rlsize(*LOOP, *CAPS, "--json").document["rows"]["grid"]
    for row in rows:
        single = rlsize(*LOOP, "--max-staleness", row["max_staleness"], "--json").results
        assert {name: row[name] for name in ("simulated_step_seconds", "simulated_trainer_idle_fraction")} == {
            name: single[name] for name in ("simulated_step_seconds", "simulated_trainer_idle_fraction")
        }


def test_only_what_all_points_share_is_told_as_an_input(rlsize: Run) -> None:
    """Neither what is swept, nor what follows from it."""
    flags = ("--rollout-gpus", "4", "--gpus-per-instance", "2")
    inputs = rlsize(*LOOP[:5], *LOOP[7:], *flags, "--sweep", "rollout_gpus=4:8:4", "--json").document["inputs"]
    assert not {"rollout_gpus", "instances"} & set(inputs)
    assert (inputs["response_cv"], inputs["max_staleness"]) == (0.8, 1)


def test_words_are_swept_too(rlsize: Run) -> None:
    """Two modes side by side."""
    rows = rlsize(*LOOP, "--sweep", "mode=sync,async", "--json").document["rows"]["grid"]
    assert [row["mode"] for row in rows] == ["sync", "async"]
    assert rows[1]["simulated_step_seconds"] < rows[0]["simulated_step_seconds"]


def test_a_point_that_cannot_be_says_why(rlsize: Run) -> None:
    """The others are answered; where none can be, the fault is that of the first."""
    flags = ("--rollout-gpus", "2", "--gpus-per-instance", "2")
    ran = rlsize(*LOOP[:5], *LOOP[7:], *flags, "--sweep", "rollout_gpus=1:2", "--json")
    rows = ran.document["rows"]["grid"]
    assert "do not hold an instance of 2" in rows[0]["refused"]
    assert rows[1]["simulated_step_seconds"] > 0
    assert any("do not hold an instance" in warning for warning in ran.document["warnings"])
    ran = rlsize(*LOOP, "--sweep", "max_staleness=a,b")
    assert (ran.code, ran.stdout) == (2, "")
    assert "--max-staleness: 'a'" in ran.stderr


def test_the_cheapest_point_is_told_beside_the_quickest(rlsize: Run) -> None:
    """A larger fleet is quicker, and costs more than it saves."""
    prices = ("--gpus-per-instance", "8", "--trainer-gpus", "1", "--gpu-hour", "2")
    said = " ".join(rlsize(*LOOP, *prices, "--sweep", "instances=1,8").stdout.split())
    assert "the quickest step is" in said
    assert "; the cheapest costs $" in said


def test_a_grid_fits_eighty_columns(rlsize: Run) -> None:
    """Two sweeps and all measures that differ."""
    ran = rlsize(*LOOP, *CAPS, "--sweep", "rollout_gpus=4:8:4", "--gpus-per-instance", "2", "--gpu-hour", "2",
                 "--trainer-gpus", "4")  # fmt: skip
    assert max(map(len, ran.stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    ("sweep", "says"),
    [
        ("max_stalenes=0:3", "did you mean max_staleness?"),
        ("steps=1:3", "'steps' cannot be swept"),
        ("=1:3", "cannot be swept"),
        ("max_staleness", "says no values for 'max_staleness'"),
        ("max_staleness=", "says no values"),
        ("max_staleness=,", "says no values"),
        ("max_staleness=3:0", "'3:0' is no range"),
        ("max_staleness=0:3:0", "is no range"),
        ("max_staleness=0:3:-1", "is no range"),
        ("max_staleness=0:3:1:1", "is no range"),
        ("max_staleness=a:b", "is no range"),
        ("max_staleness=nan:3", "is no range"),
        ("max_staleness=0:inf", "is no range"),
        ("max_staleness=0:3:nan", "is no range"),
        ("max_staleness=0:1e30", "more than 2,000 values"),
        ("max_staleness=0:1e308:1e-308", "more than 2,000 values"),
    ],
)
def test_a_sweep_that_makes_no_sense_is_refused(rlsize: Run, sweep: str, says: str) -> None:
    """What is wrong with it, and how one is written."""
    ran = rlsize(*LOOP, "--sweep", sweep)
    assert (ran.code, ran.stdout) == (2, "")
    assert says in " ".join(ran.stderr.split())


def test_sweeps_are_refused_together(rlsize: Run) -> None:
    """One that is said twice, one that is misspelt, and files of a single run."""
    ran = rlsize(*LOOP, *CAPS, *CAPS, "--sweep", "instanes=1:2", "--trace", "x.json", "--history", "x.jsonl")
    said = " ".join(ran.stderr.split())
    assert ran.code == 2
    for words in ("is swept twice", "did you mean instances", "--trace: a grid has many runs", "--history: a grid"):
        assert words in said


def test_a_grid_of_too_many_points_is_refused(rlsize: Run) -> None:
    """Before any loop is made."""
    ran = rlsize(*LOOP, "--sweep", "max_staleness=0:99", "--sweep", "instances=1:99")
    assert ran.code == 2
    assert "9,900 points, more than 2,000" in ran.stderr
