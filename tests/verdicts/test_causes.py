"""Effects split by cause: what must hold whatever the changes are and do."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.verdicts.causes import Outcome, Outcomes, Split, grouped, split

KEYS = "abcdefgh"
NUMBERS = st.floats(-1e3, 1e3, allow_nan=False)
Interactions = Mapping[frozenset[str], float]


def _sets(most: int = 5) -> st.SearchStrategy[Interactions]:
    """What sets of changes add beyond what their parts do: any function of sets can be written so."""
    one = st.frozensets(st.sampled_from(KEYS[:most]), min_size=1, max_size=3)
    return st.dictionaries(one, NUMBERS, max_size=8)


def _game(added: Interactions, start: float = 10.0) -> Callable[[frozenset[str]], Outcome]:
    def run(keys: frozenset[str]) -> Outcome:
        value = start + math.fsum(amount for part, amount in added.items() if part <= keys)
        return Outcome(results={"step_seconds": value, "gpus": float(len(keys))})

    return run


def _both(added: Interactions, keys: Iterable[str] = KEYS[:5]) -> Split:
    return split(list(keys), Outcomes(_game(added)))


@given(_sets(1))
def test_a_single_change_is_the_whole_change(added: Interactions) -> None:
    """One at a time and together are the same, and nothing is unexplained."""
    found = _both(added, "a")
    (cause,) = found.causes
    assert cause.effects == found.together
    assert set(found.unexplained.values()) == {0.0}


@given(_sets())
def test_effects_and_what_they_leave_make_the_whole_change(added: Interactions) -> None:
    """What each does by itself, with the unexplained, is what all do together."""
    found = _both(added)
    for key, change in found.together.items():
        parts = [cause.effects[key] for cause in found.causes]
        assert math.fsum([*parts, found.unexplained[key]]) == pytest.approx(change, abs=1e-9)


@given(_sets(), st.permutations(list(KEYS[:5])))
def test_the_order_of_the_changes_does_not_matter(added: Interactions, keys: list[str]) -> None:
    """Neither for what each does by itself, nor for what is unexplained."""
    one, other = _both(added), _both(added, keys)
    assert one.together == other.together
    assert one.unexplained == pytest.approx(other.unexplained, abs=1e-9)
    assert {cause.keys: dict(cause.effects) for cause in one.causes} == {
        cause.keys: dict(cause.effects) for cause in other.causes
    }


@given(_sets())
def test_backwards_is_minus_forwards(added: Interactions) -> None:
    """From the second side to the first, what all do together changes its sign."""
    keys, run = list(KEYS[:5]), _game(added)
    back = Outcomes(lambda asked: run(frozenset(keys) - asked))
    there, again = _both(added, keys), split(keys, back)
    assert again.together == pytest.approx({key: -change for key, change in there.together.items()}, abs=1e-9)


# ---- changes that need each other ----


def _pools(keys: frozenset[str]) -> Outcome:
    """A cluster of 64 GPUs, 32 + 32, that shrinks to 24 + 24 of 48; a price moves too."""
    gpus = 48 if "cluster.gpus" in keys else 64
    rollout = 24 if "placement.rollout_gpus" in keys else 32
    trainer = 24 if "placement.trainer_gpus" in keys else 32
    if rollout + trainer > gpus:
        return Outcome(refused=f"{rollout} + {trainer} GPUs are more than {gpus}")
    price = 3.0 if "prices.gpu_hour" in keys else 2.0
    return Outcome(results={"cost_per_step_usd": price * (rollout + trainer)})


def _topic(key: str) -> str:
    return "GPUs" if key.startswith(("cluster", "placement")) else key


def test_changes_that_cannot_stand_alone_are_one_cause() -> None:
    """Fewer GPUs need smaller pools; the price stands by itself; the reason is kept."""
    keys = ["prices.gpu_hour", "cluster.gpus", "placement.rollout_gpus", "placement.trainer_gpus"]
    found = split(keys, Outcomes(_pools), _topic)
    assert [cause.keys for cause in found.causes] == [("prices.gpu_hour",), tuple(keys[1:])]
    assert found.alone == {"cluster.gpus": "32 + 32 GPUs are more than 48"}
    assert [cause.effects["cost_per_step_usd"] for cause in found.causes] == [64.0, -32.0]
    assert found.together["cost_per_step_usd"] == 16.0
    assert found.unexplained["cost_per_step_usd"] == -16.0


def test_a_group_is_no_larger_than_it_must_be() -> None:
    """More rollout GPUs need the cluster, and not the trainer's GPUs, which change as well."""

    def run(keys: frozenset[str]) -> Outcome:
        over = "placement.rollout_gpus" in keys and "cluster.gpus" not in keys
        return Outcome(refused="too many") if over else Outcome(results={"gpus": float(len(keys))})

    keys = ["placement.trainer_gpus", "placement.rollout_gpus", "cluster.gpus"]
    assert grouped(keys, Outcomes(run), _topic) == (
        ("placement.trainer_gpus",),
        ("placement.rollout_gpus", "cluster.gpus"),
    )


def test_a_change_that_nothing_helps_stays_alone() -> None:
    """Where the second side cannot run at all, the cause says why and has no effect."""

    def run(keys: frozenset[str]) -> Outcome:
        return Outcome(refused="does not fit") if "model" in keys else Outcome(results={"step_seconds": 1.0})

    found = split(["model", "weight_sync.every"], Outcomes(run))
    assert [(cause.keys, cause.refused, dict(cause.effects)) for cause in found.causes] == [
        (("model",), "does not fit", {}),
        (("weight_sync.every",), "", {"step_seconds": 0.0}),
    ]
    assert (found.together, found.unexplained) == ({}, {})


@given(st.lists(st.frozensets(st.sampled_from(KEYS), min_size=2, max_size=4), max_size=4))
def test_groups_are_a_partition_that_runs(needs: list[frozenset[str]]) -> None:
    """Whatever needs what (all of a set, or none of it): each change is in one cause, and each cause can run."""

    def run(keys: frozenset[str]) -> Outcome:
        torn = [part for part in needs if part & keys and not part <= keys]
        return Outcome(refused="torn") if torn else Outcome(results={"gpus": 1.0})

    outcomes = Outcomes(run)
    groups = grouped(list(KEYS), outcomes)
    assert sorted(key for group in groups for key in group) == list(KEYS)
    assert all(outcomes.works(group) for group in groups)
    for part in needs:
        assert any(part <= set(group) for group in groups)


def test_each_set_is_worked_out_once() -> None:
    """An evaluation costs; splits share theirs."""
    asked: list[frozenset[str]] = []

    def run(keys: frozenset[str]) -> Outcome:
        asked.append(keys)
        return Outcome(results={"gpus": 1.0})

    outcomes = Outcomes(run)
    split(list(KEYS[:6]), outcomes)
    split(list(KEYS[:6]), outcomes)
    assert len(asked) == len(set(asked)) == 1 + 6 + 1
