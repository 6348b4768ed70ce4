"""What needs no judging is read as pydantic reads it; anything else is left to it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from rlsize.facts.link import Link
from rlsize.quantities.scenario import Scenario
from rlsize.readers.file_kinds import FOLDERS, KINDS
from rlsize.readers.plain_data import NotPlainError, plain
from rlsize.readers.profiles import profile_files, shipped_folder
from rlsize.readers.validation import adapter
from rlsize.readers.yaml_documents import read_document

EXAMPLES = sorted(Path(__file__).parents[2].glob("examples/*.yaml"))


def told(path: Path) -> dict[str, Any]:
    """What a file says below its header."""
    return {key: value for key, value in read_document(path).data.items() if key != "rlsize"}


@pytest.mark.parametrize("kind", FOLDERS)
def test_every_shipped_profile_is_plain_and_as_pydantic_reads_it(kind: str) -> None:
    """So no command loads pydantic for the facts that ship."""
    fact: Any = KINDS[kind].fact()
    for path in profile_files(shipped_folder(), kind):
        assert plain(fact, told(path)) == adapter(fact).validate_python(told(path)), path


def test_the_scenarios_of_the_examples_are_plain() -> None:
    """And as pydantic reads them, but for those with limits."""
    scenarios = [path for path in EXAMPLES if read_document(path).kind == "scenario" and "budget" not in told(path)]
    assert len(scenarios) > 3
    for path in scenarios:
        assert plain(Scenario, told(path)) == adapter(Scenario).validate_python(told(path)), path


@pytest.mark.parametrize(
    "data",
    [
        {"workload": {"group_size": True}},
        {"cluster": {"gpus": 2.5}},
        {"workload": {"group_sise": 8}},
        {"workload": [8]},
        {"model": {}},
        {"model": 8},
        {"placement": {"mode": "aside"}},
        {"budget": {"step_seconds": 60}},
        [],
        None,
    ],
)
def test_what_must_be_judged_is_left_to_pydantic(data: Any) -> None:
    """Values that may be converted, unknown and missing keys, words that are none, limits in two forms."""
    with pytest.raises(NotPlainError):
        plain(Scenario, data)


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 10**6),
    st.floats(allow_nan=False),
    st.sampled_from(["async", "8k", "20 ± 2", "1.5 GB/s", "qwen3-8b", "rates.yaml", ""]),
    st.lists(st.integers(0, 9), max_size=2),
    st.just({}),
)
SECTIONS = st.fixed_dictionaries(
    {},
    optional={
        "model": VALUES,
        "workload": st.dictionaries(st.sampled_from(["group_size", "prompt_tokens", "response_tokens"]), VALUES),
        "placement": st.dictionaries(st.sampled_from(["mode", "max_staleness", "rollout_gpus"]), VALUES),
        "rates": st.dictionaries(st.sampled_from(["train_seconds", "sync_seconds"]), VALUES),
        "algorithm": st.dictionaries(st.sampled_from(["name", "logprob_passes", "reference", "reward_model"]), VALUES),
        "budget": st.dictionaries(st.sampled_from(["step_seconds"]), VALUES),
    },
)


@given(SECTIONS)
def test_what_is_taken_is_what_pydantic_takes(data: dict[str, Any]) -> None:
    """A scenario that is plain is the one that pydantic makes of it, and none that it refuses is plain."""
    with suppress(NotPlainError):
        found = plain(Scenario, data)
        try:
            assert repr(found) == repr(adapter(Scenario).validate_python(data))
        except ValidationError:
            pytest.fail(f"{data} is refused")


def test_a_whole_number_stands_for_another() -> None:
    """As a number of base units, where a quantity takes a bare one."""
    fact = plain(Scenario, {"workload": {"response_tokens": 2000}})
    assert type(fact.workload.response_tokens.mean) is float
    assert plain(Scenario, {"workload": fact.workload}).workload is fact.workload
    assert isinstance(plain(Link, told(profile_files(shipped_folder(), "link")[0])).aliases, tuple)
