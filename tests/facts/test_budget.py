"""A budget says what it limits, in the units of each quantity, and contradicts itself nowhere."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.errors import InputError
from rlsize.facts.budget import BOUNDS, Budget, Change, Limit, quantities, set_limits
from rlsize.planner.evaluation import MEMORY_KEYS
from rlsize.readers.file_kinds import schema_of
from rlsize.readers.validation import validated
from rlsize.readers.yaml_documents import Document, parse_document
from rlsize.units import DIMENSIONS, unit_of


def budget(text: str) -> Budget:
    """A budget from YAML text without its header."""
    return validated(Budget, parse_document(text, "b.yaml"))


def faults(text: str) -> list[str]:
    """What is wrong with one."""
    with pytest.raises(InputError) as caught:
        budget(text)
    return [str(fault) for fault in caught.value.faults]


def test_a_bare_limit_is_the_most_or_the_least_as_the_quantity_wants_it() -> None:
    """Cost, idle and GPUs are to be small, steps a day and headroom large."""
    limits = budget(
        "cost_per_step_usd: 2.5\ntrainer_idle_fraction: 5%\ngpus: 64 GPUs\nsteps_per_day: 1.8k\n"
        "rollout_memory_headroom_fraction: 0.1"
    ).limits
    assert limits == {
        "cost_per_step_usd": Limit(max=2.5),
        "trainer_idle_fraction": Limit(max=0.05),
        "gpus": Limit(max=64.0),
        "steps_per_day": Limit(min=1800.0),
        "rollout_memory_headroom_fraction": Limit(min=0.1),
    }


def test_limits_are_told_apart_by_their_names() -> None:
    """Amounts have units of the quantity; a change is a percentage or an amount."""
    read = budget("step_seconds: {max: 2 min, min: 10, max_increase: 5%, max_decrease: 3 s}")
    assert read.limits["step_seconds"] == Limit(
        max=120.0, min=10.0, max_increase=Change(0.05, relative=True), max_decrease=Change(3.0, relative=False)
    )
    assert list(set_limits(read)) == [("step_seconds", bound) for bound in BOUNDS]


def test_all_faults_are_told_at_once_with_line_key_and_nearest_name() -> None:
    """One message for each slip, whatever the others are."""
    told = "\n".join(
        faults(
            "trainer_idel_fraction: 5%\ncost_per_step_usd: {maxx: 2}\nstep_seconds: {min: 60, max: 50}\n"
            "gpus:\n  max: 64 cows\n  max_increase: 5\nsync_seconds:\ntrain_seconds: {}\nrun_seconds: -1\n"
            "rollout_idle_fraction: 5\nsteps_per_day: .nan\ncost_per_run_usd: [1]\n"
            "generation_seconds: {max_increase: -5%}"
        )
    )
    for part in (
        "b.yaml:1: trainer_idel_fraction: the key trainer_idel_fraction is unknown",
        "did you mean trainer_idle_fraction",
        "b.yaml:2: cost_per_step_usd.maxx",
        "did you mean max",
        "b.yaml:3: step_seconds: the min 60 s is above the max 50 s",
        "b.yaml:5: gpus.max: 64 cows",
        "b.yaml:6: gpus.max_increase: 5 has no unit; write 5%",
        "b.yaml:7: sync_seconds: sets no limit",
        "b.yaml:8: train_seconds: sets no limit",
        "b.yaml:9: run_seconds: -1 must be more than 0",
        "b.yaml:10: rollout_idle_fraction: 5 is too large",
        "b.yaml:11: steps_per_day: nan is not a finite number",
        "b.yaml:12: cost_per_run_usd: [1] is not an amount of money",
        "b.yaml:13: generation_seconds.max_increase: -5%",
    ):
        assert part in told
    assert told.count("b.yaml:") == 12


def test_the_same_least_and_most_is_no_contradiction() -> None:
    """Exactly 32 GPUs can be had."""
    assert budget("gpus: {min: 32, max: 32}").limits["gpus"] == Limit(min=32.0, max=32.0)


def test_a_budget_goes_before_another_line_by_line() -> None:
    """A quantity that both limit has the limits of the first, whole; the others stay."""
    first, other = (
        budget("gpus: 8\nstep_seconds: {max: 9}"),
        budget("step_seconds: {max_increase: 5%}\nsync_seconds: 1"),
    )
    assert first.over(other).limits == {**other.limits, **first.limits}
    assert first.over(other).step_seconds == Limit(max=9.0)


def test_every_quantity_has_the_unit_that_its_key_ends_in() -> None:
    """A key names its unit, and the budget reads that one."""
    endings = {"s": "s", "$": "usd", "%": "share", "steps": "step", "/day": "step/day", "tok/s": "token/s"}
    for key, said in quantities().items():
        unit = unit_of(key)
        assert said.unit == endings.get(unit, said.unit), key
        assert said.unit in DIMENSIONS
        assert said.text.endswith(".")
    assert set(MEMORY_KEYS) <= set(quantities())


def test_the_schema_offers_bare_limits_and_mappings() -> None:
    """An editor knows every quantity, and every kind of limit below it."""
    schema = schema_of("budget")
    entry = schema["properties"]["trainer_idle_fraction"]
    mapping = next(form for form in entry["anyOf"] if form["type"] == "object")
    assert set(mapping["properties"]) == set(BOUNDS)
    assert {form["type"] for form in entry["anyOf"]} == {"number", "string", "object"}
    assert set(schema["properties"]) == {"rlsize", *quantities()}


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from([*BOUNDS, "maxx"]), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from([*quantities(), "cost"]), junk, max_size=4))
def test_junk_is_a_budget_or_a_fault(data: dict[str, Any]) -> None:
    """No tree of plain data makes it fail in another way, and what is read keeps its own limits."""
    try:
        read = validated(Budget, Document("junk.yaml", data))
    except InputError as error:
        assert error.faults
        return
    for limit in read.limits.values():
        assert limit != Limit()
        assert limit.max is None or limit.min is None or limit.min <= limit.max
