"""
A scenario: what is planned, in one file; its keys are the rows of the table that have a place in it.

The classes are made from the rows, so that a key, its unit and its sentence stand once; `readers` validates files
against them, and schema, template and reference page are read off them.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, Any, Literal

from rlsize.facts.budget import Budget
from rlsize.facts.fields import Bare, Quantity, Says, Uncertain
from rlsize.frozen import dataclass
from rlsize.quantities.row import Switch, Text, Word
from rlsize.quantities.table import PLACES


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelNumbers:
    """A model by its size alone, where there is no profile."""

    params: Annotated[float, PLACES["model.params"].quantity.saying(PLACES["model.params"].meaning)]
    active_params: Annotated[
        float | None, PLACES["model.active_params"].quantity.saying(PLACES["model.active_params"].meaning)
    ] = None


SECTIONS = {
    "cluster": "Which GPUs, how many, and what joins them.",
    "algorithm": "The RL algorithm and the models that it keeps.",
    "workload": "What one optimizer step is made of.",
    "workload.response_tokens": "Response lengths: mean and cv; a bare number is the mean.",
    "placement": "Where the two sides run.",
    "rollout": "The rollout engines.",
    "rollout.step_time": "Time of an engine step, for `simulate`.",
    "trainer": "The trainer.",
    "trainer.parallelism": "How training states are sharded.",
    "weight_sync": "How new weights reach the fleet.",
    "rates": "What has been measured.",
    "policies": "Rules of the loop, for `simulate`.",
    "agents": "Turns, tools, sandboxes and verifiers.",
    "trouble": "What goes wrong, for `simulate`.",
    "prices": "What GPUs cost.",
}
"""The sections of a scenario, with what each is about."""

_ALONE = {"workload.response_tokens": "mean"}  # the key of a section that may stand alone in its place


def _type(place: str) -> Any:  # noqa: ANN401 (a type hint)
    """The annotated type of a key that holds a value."""
    row = PLACES[place]
    kind, said = row.kind, Says(row.meaning)
    if isinstance(kind, Quantity):
        base: Any = Uncertain if kind.spread else int if kind.whole else float
        return Annotated[base | str | None if kind.or_file else base | None, kind.saying(row.meaning)]
    if isinstance(kind, Word):
        words: Any = Literal[kind.known]
        return Annotated[list[words] | None if kind.listed else words | None, said]
    if isinstance(kind, Switch):
        return Annotated[bool | None, said]
    return Annotated[str | bool | None if isinstance(kind, Text) and kind.or_yes else str | None, said]


def _class_of(section: str) -> type:
    """The class of a section: its keys in the order of the rows, sections below it where their first key stands."""
    fields: list[Any] = []
    seen: set[str] = set()
    for place in PLACES:
        if not place.startswith(f"{section}."):
            continue
        name, _, deeper = place.removeprefix(f"{section}.").partition(".")
        if name in seen:
            continue
        seen.add(name)
        fields.append((name, *_field(f"{section}.{name}")) if deeper else (name, _type(place), field(default=None)))
    label = section.title().replace("_", "").replace(".", "")
    return _made(f"{label}Section", SECTIONS[section], fields)


def _made(name: str, doc: str, fields: list[Any]) -> type:
    """A class of fields, each a name with its type and default."""
    hints = {key: hint for key, hint, _ in fields}
    defaults = {key: default for key, _, default in fields}
    own = {"__doc__": doc, "__module__": __name__, "__annotations__": hints, **defaults}
    return dataclass(frozen=True, slots=True, kw_only=True)(type(name, (), own))


def _field(section: str) -> tuple[Any, Any]:
    """Type and default of a section."""
    made = _class_of(section)
    alone = _ALONE.get(section)
    if alone:
        return Annotated[made | None, Bare(SECTIONS[section], alone)], field(default=None)
    return Annotated[made, Says(SECTIONS[section])], field(default_factory=made)


def _scenario() -> type:
    model = Annotated[str | ModelNumbers | None, Says(PLACES["model"].meaning)]
    tops = [section for section in SECTIONS if "." not in section]
    budget = Annotated[Budget, Says("Limits to keep; `check` judges them.")]
    fields: list[Any] = [
        ("framework", _type("framework"), field(default=None)),
        ("model", model, field(default=None)),
        *((name, *_field(name)) for name in tops),
        ("budget", budget, field(default_factory=Budget)),
    ]
    doc = "What is planned: model, cluster, algorithm, workload, placement, and what has been measured."
    return _made("Scenario", doc, fields)


Scenario: Any = _scenario()
"""What is planned, in one file."""
