"""Saved plans are read whole, or refused with the reason."""

from __future__ import annotations

import pytest

from rlsize.errors import InputError
from rlsize.facts.plan import Plan, PlanFigure
from rlsize.readers.saved_files import read_plan
from rlsize.readers.yaml_documents import parse_document

START = "rlsize: {kind: plan, version: 1}\ncommand: check\nrlsize_version: 0.1.0\nfacts_digest: abc\nplacement: {}\n"


def plan(text: str) -> Plan:
    """A plan from YAML text."""
    return read_plan(parse_document(text, "p.yaml"))


def test_a_plan_by_hand_is_enough() -> None:
    """What is left out has its default."""
    read = plan(f"{START}results: {{gpus: {{value: 64}}, mode: {{value: async, provenance: given}}}}\n")
    assert read.results == {"gpus": PlanFigure(value=64.0), "mode": PlanFigure(value="async")}
    assert (read.inputs, read.prices_as_of) == ({}, "")


@pytest.mark.parametrize(
    ("text", "says", "todo"),
    [
        (START.replace("version: 1}", "version: 0}") + "results: {}", "has version 0", "save it again"),
        (START.replace("kind: plan", "kind: scenario") + "results: {}", "is a scenario file, not a plan", "kind: plan"),
        ("results: {}", "does not say that it is a plan file", "kind: plan"),
        (START, "is missing", "add it"),
        (f"{START}results: {{gpus: {{value: .nan}}}}", "nan is not a finite number", "save it again"),
        (f"{START}results: {{gpus: {{value: 1, low: .inf, high: .inf}}}}", "inf is not a finite", "save it again"),
        (f"{START}results: {{gpus: {{value: 1, low: 0}}}}", "a low and a high end", "save it again"),
        (f"{START}results: {{gpus: {{value: 1, low: 2, high: 0}}}}", "the low end 2 is above", "save it again"),
        (f"{START}results: {{gpus: {{vlaue: 1}}}}", "the key vlaue is unknown", "value"),
        (f"{START}results: {{gpus: {{value: 1, provenance: guessed}}}}", "guessed", ""),
        (f"{START}results: [1]", "dictionary", ""),
    ],
)
def test_what_is_no_plan_is_refused(text: str, says: str, todo: str) -> None:
    """Another version or kind, a number that is none, an interval upside down."""
    with pytest.raises(InputError) as caught:
        plan(text)
    told = "\n".join(str(fault) for fault in caught.value.faults)
    assert says in told
    assert todo in told
    assert "p.yaml" in told
