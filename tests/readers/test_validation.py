"""Documents become facts; every fault is told at once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.errors import InputError
from rlsize.quantities.scenario import Scenario
from rlsize.readers.validation import opened, validated
from rlsize.readers.yaml_documents import Document, parse_document

HEADER = "rlsize: {kind: scenario, version: 1}\n"


def scenario(text: str) -> Scenario:
    """A scenario from YAML text."""
    return validated(Scenario, opened(parse_document(HEADER + text, "s.yaml"), "scenario"))


def test_quantities_are_read_in_base_units() -> None:
    """Units at the edge, base units inside."""
    read = scenario("workload: {response_tokens: {mean: 16k, cv: 0.8}}\nweight_sync: {bandwidth: 400 Gb/s}")
    assert read.workload.response_tokens is not None
    assert read.workload.response_tokens.mean == 16_000
    assert read.weight_sync.bandwidth == 50e9


@pytest.mark.parametrize("key", ["over_stale", "unfinished"])
def test_a_key_of_an_older_version_is_refused_with_the_line_to_write(key: str) -> None:
    """Not with a key that is spelt alike."""
    with pytest.raises(InputError) as error:
        scenario(f"policies: {{{key}: drop}}")
    assert [fault.todo for fault in error.value.faults] == [
        "say `late_samples: continue` for keep, `late_samples: drop` for drop"
    ]


def test_a_spread_is_kept() -> None:
    """`20 ± 2` is a value with a standard deviation."""
    train = scenario("rates: {train_seconds: 20 ± 2}").rates.train_seconds
    assert train is not None
    assert (train.value, train.deviation) == (20, 2)


def test_all_faults_of_a_file_are_told_at_once_with_line_key_and_nearest_name() -> None:
    """Unknown keys, missing units and wrong types: one message each, in one go."""
    with pytest.raises(InputError) as caught:
        scenario(
            "clustr: {}\nweight_sync: {bandwidth: 50}\nworkload: {group_sise: 8}\n"
            "rollout: {memory_fraction: 1.5}\ncluster: {gpus: 2.5}"
        )
    told = "\n".join(str(fault) for fault in caught.value.faults)
    assert len(caught.value.faults) == 5
    for part in (
        "s.yaml:2: clustr",
        "did you mean cluster",
        "s.yaml:3: weight_sync.bandwidth",
        "no unit",
        "did you mean group_size",
        "at most 1",
        "whole number",
    ):
        assert part in told


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: 1", "does not say"),
        ("rlsize: {kind: rates, version: 1}", "rates file, not a scenario"),
        ("rlsize: {kind: scenario, version: 9}", "version 9"),
        ("", "is empty"),
        ("- 1", "not a mapping"),
        ("rlsize: scenario", "does not say"),
        ("rlsize: {kind: scenario}", "version None"),
        ("rlsize: {kind: scenario, version: true}", "version True"),
        ("rlsize: {kind: scenario, version: 1.0}", "version 1.0"),
        ("rlsize: {kind: scenario, version: '1'}", "version '1'"),
        ("rlsize: {kind: scenario, version: 1, modle: x}", "the key modle is unknown"),
    ],
)
def test_a_file_of_another_kind_or_version_is_refused(text: str, says: str) -> None:
    """Every saved file opens with its kind and version."""
    with pytest.raises(InputError, match=says):
        opened(parse_document(text, "s.yaml"), "scenario")


@pytest.mark.parametrize(
    ("kind", "way"), [("calibration", "--calibration"), ("budget", "--budget"), ("rates", "--set")]
)
def test_a_file_that_stands_beside_a_scenario_is_told_where(kind: str, way: str) -> None:
    """Instead of the header that it should have: it is right, and in the wrong place."""
    with pytest.raises(InputError, match="not a scenario") as caught:
        opened(parse_document(f"rlsize: {{kind: {kind}, version: 1}}", "a.yaml"), "scenario")
    assert way in caught.value.faults[0].todo


def test_all_faults_of_a_header_are_told_at_once() -> None:
    """Kind, version and stray keys."""
    with pytest.raises(InputError) as caught:
        opened(parse_document("rlsize: {kind: gpu, version: 2, x: 1}", "s.yaml"), "scenario")
    assert len(caught.value.faults) == 3


trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["model", "cluster", "gpus", "workload", "response_tokens", "mean", "rates", "train_seconds", "x"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(
    st.dictionaries(
        st.sampled_from(["model", "cluster", "workload", "rates", "prices", "budget", "junk"]), trees, max_size=4
    )
)
def test_junk_is_a_scenario_or_a_fault(data: dict[str, Any]) -> None:
    """No tree of plain data makes the validation fail in another way."""
    try:
        validated(Scenario, Document("junk.yaml", data))
    except InputError as error:
        assert error.faults
