"""A scenario as text is what the reader of scenarios has back, whatever was answered."""

from __future__ import annotations

import doctest
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.facts.budget import Limited, quantities
from rlsize.facts.fields import Quantity, Uncertain
from rlsize.quantities.row import Switch, Word
from rlsize.quantities.scenario import SECTIONS, Scenario
from rlsize.quantities.table import PLACES
from rlsize.readers.scenarios import ScenarioFile, read_scenario
from rlsize.readers.yaml_documents import parse_document
from rlsize.units import DIMENSIONS
from rlsize.writers import yaml_file
from rlsize.writers.scenario_file import OFFERED, REMARKS, STARTER, scenario_text
from rlsize.writers.yaml_file import text

HOSTILE = ("x: {y", "# no", "a # b", "a\nb: c", "- a", "&a", "*a", "!!python/object", "%", "null", "~", "no", "1e9",
           "2026", "1:30", " a ", "'", '"', "\\", "\t", "\0", "\x7f", "\x85", "\u2028", "\ufeff", "\U0001f600", "日本",
           "{{x}}", "${HOME}", "---", "...", "true", "[", "\\n", "é" * 300)  # fmt: skip
_OFF = re.compile(r"^( *)# ( *[a-z_]+:.*)$", re.MULTILINE)


KINDS = {place: row.kind for place, row in PLACES.items() if not place.startswith("model.")} | {
    f"budget.{name}": kind for name, kind in quantities().items()
}
KEYS = list(KINDS)
LENGTHS = "workload.response_tokens."
texts = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=30))


def _numbers(kind: Quantity) -> st.SearchStrategy[Any]:
    least = kind.least if kind.least is not None else kind.above
    most = min(DIMENSIONS[kind.unit].largest, kind.most if kind.most is not None else 1e15)
    if kind.whole:
        return st.integers(max(0 if kind.least == 0 else 1, int(least or 0)), int(most))
    low = least if least is not None else -most
    odd = st.floats(low, most, exclude_min=kind.least is None, allow_subnormal=False)
    handy = st.sampled_from([300, 1536, 1_234_000, 8000, 16e3, 2.5, 70e9, 0.5, 50e9, 0.1 + 0.2, 1e-7])
    return st.one_of(odd, handy.filter(lambda value: low < value <= most))


def _values(key: str) -> st.SearchStrategy[Any]:
    kind = KINDS[key]
    if isinstance(kind, Quantity):
        plain = _numbers(kind)
        if not kind.spread:
            return plain
        spread = st.builds(lambda value, deviation: Uncertain(value=value, deviation=deviation), plain, plain)
        return st.one_of(spread, texts.map(lambda name: f"{name}.yaml")) if kind.or_file else spread
    if isinstance(kind, Word):
        word = st.sampled_from(kind.known)
        return st.lists(word, max_size=3) if kind.listed else word
    return st.booleans() if isinstance(kind, Switch) else texts


@st.composite
def answers(draw: st.DrawFn) -> dict[str, Any]:
    """Valid answers to any of the keys; lengths have a mean."""
    chosen = draw(st.lists(st.sampled_from(KEYS), max_size=25, unique=True))
    if any(key.startswith(LENGTHS) for key in chosen) and f"{LENGTHS}mean" not in chosen:
        chosen.append(f"{LENGTHS}mean")
    return {key: draw(_values(key)) for key in chosen}


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Writes a text and reads it as a scenario."""
    file = tmp_path_factory.mktemp("scenarios") / "scenario.yaml"

    def back(content: str) -> ScenarioFile:
        file.write_text(content, encoding="utf-8")
        return read_scenario(file)

    return back


def _expected(key: str, value: Any) -> Any:
    """What a scenario holds for an answer: a limit that stands alone is a most or a least."""
    kind = KINDS[key]
    if isinstance(kind, Limited):
        from rlsize.facts.budget import Limit

        return Limit(max=value) if kind.bare == "max" else Limit(min=value)
    if isinstance(kind, Quantity) and kind.spread and not isinstance(value, (str, Uncertain)):
        return Uncertain(value=value)
    return value


@given(said=answers())
def test_whatever_was_answered_is_read_back_and_nothing_else(read: Any, said: dict[str, Any]) -> None:
    """Every valid answer to every key, hostile text included, is the value that the file has; no other key is set."""
    found = read(scenario_text(said, "s.json"))
    assert {key: found.value(key) for key in KEYS} == {
        key: _expected(key, said[key]) if key in said else None for key in KEYS
    }


@given(said=answers())
def test_lines_that_are_off_are_right_once_they_are_on(read: Any, said: dict[str, Any]) -> None:
    """Taking the # away makes a file that loads, with the answers as they were."""
    written = scenario_text(said, "s.json")
    found = read(_OFF.sub(r"\1\2", written))
    assert all(found.value(key) == _expected(key, value) for key, value in said.items())
    assert all(found.value(key) is not None for key in {**STARTER, **OFFERED})


@given(value=texts)
def test_text_stays_one_text_on_one_line(value: str) -> None:
    """Quotes, comments, line ends, words that YAML takes for something else, and every other character."""
    line = f"key: {text(value)}  # remark"
    assert len(line.splitlines()) == 1
    assert parse_document(line, "x").data == {"key": value}


def test_a_model_of_bare_numbers_can_be_written(read: Any) -> None:
    """`model.params` stands below the model in place of a name."""
    found = read(scenario_text({"model.params": 30e9, "model.active_params": 3e9}, "s.json"))
    assert (found.scenario.model.params, found.scenario.model.active_params) == (30e9, 3e9)


def test_a_key_that_no_scenario_has_is_refused() -> None:
    """A misspelt answer is not dropped in silence."""
    with pytest.raises(KeyError, match=r"cluster\.gpu_count"):
        scenario_text({"cluster.gpu_count": 3}, "s.json")


def test_every_remark_is_of_a_key_that_exists() -> None:
    """Neither remarks nor the lines that are offered outlive a key, and no remark says what the row says."""
    assert {*STARTER, *OFFERED} <= set(KEYS)
    assert set(REMARKS) <= {*KEYS, *SECTIONS, "budget"}
    assert not [
        key for key, said in REMARKS.items() if key in PLACES and f"{said}.".lower() == PLACES[key].meaning.lower()
    ]


def test_the_schema_stands_in_the_first_line() -> None:
    """Editors find it there."""
    assert scenario_text({}, "s.json").splitlines()[0] == "# yaml-language-server: $schema=./s.json"


def test_a_file_without_answers_loads_and_says_nothing(read: Any) -> None:
    """All that it offers is off."""
    assert read(scenario_text({"model": None}, "s.json")).scenario == Scenario()


def test_lines_stay_readable() -> None:
    """The starter fits the house's width."""
    assert max(map(len, scenario_text(STARTER, "scenario.schema.json").splitlines())) <= 120


def test_examples_in_docstrings_hold() -> None:
    """Doctests of the module that values are written with."""
    result = doctest.testmod(yaml_file)
    assert (result.failed, bool(result.attempted)) == (0, True)


def test_the_starter_is_read_as_it_was_meant(read: Any) -> None:
    """Every value of the starter."""
    found = read(scenario_text(STARTER, "s.json"))
    assert {key: found.value(key) for key in STARTER} == {key: _expected(key, value) for key, value in STARTER.items()}
