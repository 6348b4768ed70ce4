"""A quantity is declared once: its row says what flags, scenario, schema and help say of it."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import pytest

from rlsize.estimates.memory_phases import EVERYTHING
from rlsize.facts.algorithm import ALGORITHMS, BYTES_PER_GRADIENT, OPTIMIZERS, RECOMPUTATIONS
from rlsize.facts.fields import Quantity, Says, Uncertain
from rlsize.facts.inference_engines import TRAINER_BACKENDS
from rlsize.facts.quantisation import BYTES_PER_PARAM, WIDTHS
from rlsize.loop.pools import LOOPS
from rlsize.quantities.row import Row, Switch, Text, Word, by_key
from rlsize.quantities.scenario import Scenario
from rlsize.quantities.table import PLACES, QUANTITIES
from rlsize.shell.inputs import Inputs
from rlsize.units import DIMENSIONS

if TYPE_CHECKING:
    from collections.abc import Collection


@pytest.mark.parametrize(
    ("key", "known"),
    [
        ("algorithm", ALGORITHMS),
        ("mode", LOOPS),
        ("rollout_dtype", {*BYTES_PER_PARAM, "nf4"}),
        ("kv_dtype", BYTES_PER_PARAM),
        ("wire_dtype", BYTES_PER_PARAM),
        ("optimizer", OPTIMIZERS),
        ("gradients", BYTES_PER_GRADIENT),
        ("recompute", RECOMPUTATIONS),
        ("trainer_backend", TRAINER_BACKENDS),
        ("offloaded_between", EVERYTHING),
    ],
)
def test_the_words_of_a_row_are_those_that_something_is_known_of(key: str, known: Collection[str]) -> None:
    """A word that may be said is one that the model knows, and the other way round."""
    assert set(QUANTITIES[key].words) == set(known)


@pytest.mark.parametrize("key", ["rollout_dtype", "frozen_dtype"])
def test_every_number_type_of_weights_has_a_width(key: str) -> None:
    """With its scaling factors."""
    assert set(QUANTITIES[key].words) <= WIDTHS.keys()


@pytest.mark.parametrize("row", QUANTITIES.values(), ids=list(QUANTITIES))
def test_a_row_says_what_it_is_how_it_is_said_and_why_its_default_holds(row: Row) -> None:
    """A sentence, a flag or a place in a scenario, and a reason beside each default."""
    assert row.meaning.endswith(".")
    assert row.flag or row.scenario
    assert all(flag.startswith("--") for flag in row.flags)
    if row.default is not None and not isinstance(row.kind, Text):
        assert row.why
    if isinstance(row.kind, Quantity) and row.default is not None:
        assert row.kind.check(float(row.default), str(row.default)) == row.default
    if isinstance(row.kind, Word) and row.default is not None:
        assert row.default in row.kind.known


SEARCHED = [key for key in QUANTITIES if key.startswith("searched_")]


def test_no_flag_says_two_quantities() -> None:
    """A flag means the same in every command that does not give it a name of its own."""
    said = [flag for key, row in QUANTITIES.items() if key not in SEARCHED for flag in row.flags]
    assert len(said) == len(set(said))


@pytest.mark.parametrize("key", SEARCHED)
def test_what_a_plan_may_try_is_said_by_the_flag_of_the_quantity_as_a_list(key: str) -> None:
    """`plan --tensor-parallel 1,2` and `memory --tensor-parallel 2` are about the same quantity."""
    one = key.removeprefix("searched_")
    quantity = QUANTITIES[one] if one in QUANTITIES else QUANTITIES[one.removesuffix("s")]
    assert QUANTITIES[key].flags == quantity.flags[:1]
    assert QUANTITIES[key].kind == Text("LIST")


def _hints(kind: type, above: str = "") -> dict[str, Any]:
    """The annotated types of every key of the scenario, sections left out."""
    found: dict[str, Any] = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        parts = [hint, *get_args(hint), *(part for inner in get_args(hint) for part in get_args(inner))]
        classes = [part for part in parts if isinstance(part, type) and dataclasses.is_dataclass(part)]
        below = next((part for part in classes if part is not Uncertain), None)
        if below is None or name == "model":
            found[f"{above}{name}"] = hint
        if below is not None:
            found |= _hints(below, f"{above}{name}.")
    return found


HINTS = _hints(Scenario)


@pytest.mark.parametrize("place", PLACES)
def test_every_place_is_a_key_of_the_scenario_with_what_its_row_says(place: str) -> None:
    """The scenario's classes are made from the rows, so the schema and the reader say what the row says."""
    row = PLACES[place]
    said = next(part for part in HINTS[place].__metadata__ if isinstance(part, (Quantity, Says)))
    assert said.text == row.meaning
    if isinstance(row.kind, Quantity):
        assert said == row.kind.saying(row.meaning)
    if row.words:
        assert all(repr(word) in str(HINTS[place]) for word in row.words)


def test_a_row_that_stands_twice_is_refused() -> None:
    """Neither a key nor a place in a scenario can be declared twice."""
    one = QUANTITIES["group_size"]
    with pytest.raises(ValueError, match="declared twice"):
        by_key((one, one))
    with pytest.raises(ValueError, match="says both"):
        by_key((one, Row("other", Switch(), "Another.", one.scenario)))


def _sample(row: Row) -> object:
    if isinstance(row.kind, Quantity):
        return max(1.0, row.kind.least or 0.0) if not row.kind.most or row.kind.most >= 1 else row.kind.most
    if isinstance(row.kind, Word):
        return list(row.kind.known[:1]) if row.kind.listed else row.kind.known[0]
    return True if isinstance(row.kind, Switch) else "none"


@pytest.mark.parametrize("row", PLACES.values(), ids=list(PLACES))
def test_what_is_set_is_what_the_scenario_says_and_what_is_asked(row: Row) -> None:
    """`--set key=value` reaches the figure, the word or the switch of its row, whatever the quantity."""
    value = _sample(row)
    unit = "" if not isinstance(row.kind, Quantity) or DIMENSIONS[row.kind.unit].bare else f" {row.kind.unit}"
    text = (
        f"[{', '.join(value)}]"
        if isinstance(value, list)
        else str(value).lower()
        if value is True
        else f"{value}{unit}"
    )
    changes = [f"{row.scenario}={text}"]
    if row.scenario.startswith("workload.response_tokens.") and not row.scenario.endswith(".mean"):
        changes.append("workload.response_tokens.mean=2048")
    if row.scenario == "model.active_params":
        changes.append("model.params=30e9")
    inputs = Inputs(changes=changes)
    said = inputs.said(row.scenario)
    assert (said.value if isinstance(said, Uncertain) else said) == value
    if isinstance(row.kind, Quantity):
        figure = inputs.ask(row.key)
        assert (figure.number, figure.provenance) == (float(str(value)), "given")
        assert row.scenario in figure.source


def test_an_empty_scenario_says_nothing() -> None:
    """No key has a value of its own: defaults stand in rows, where answers show them as defaults."""
    inputs = Inputs(changes=["cluster.gpus=8"])
    assert [place for place in PLACES if inputs.said(place) is not None] == ["cluster.gpus"]
    assert Scenario() == Scenario()


def test_rows_load_without_the_heavy_libraries() -> None:
    """A command that is told everything by flags stays quick."""
    code = "import sys, rlsize.quantities.table; print([m for m in ('numpy', 'pydantic', 'yaml') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
