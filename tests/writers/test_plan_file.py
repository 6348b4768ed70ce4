"""A plan that is written is the plan that is read."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rlsize.facts.plan import Plan, PlanFigure
from rlsize.readers.saved_files import read_plan
from rlsize.readers.yaml_documents import parse_document
from rlsize.writers.yaml_file import plan_text

ODD = (
    "1e9",
    "09",
    "1_0",
    "-.5e1",
    "+1",
    "no",
    "null",
    "~",
    "",
    "1:30",
    ".nan",
    "- a",
    "a: b",
    "# a",
    "2026-11-01",
    "=",
)
texts = st.text(max_size=20) | st.sampled_from(ODD) | st.from_regex(r"[-+]?[0-9_.eE:]{1,10}", fullmatch=True)
numbers = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def figures(draw: st.DrawFn) -> PlanFigure:
    """A number, word or switch, with a band or without."""
    low, high = sorted((draw(numbers), draw(numbers))) if draw(st.booleans()) else (None, None)
    provenance: Any = draw(st.sampled_from(["given", "measured", "predicted", "default"]))
    value = draw(numbers | texts | st.booleans() | st.none())
    return PlanFigure(value=value, low=low, high=high, provenance=provenance, source=draw(texts))


parts = st.dictionaries(texts, figures(), max_size=3)
plans = st.builds(
    Plan, command=texts, rlsize_version=texts, facts_digest=texts, placement=parts, results=parts, inputs=parts,
    prices_as_of=texts, prices_region=texts,
)  # fmt: skip


@given(plans)
def test_a_plan_survives_its_file(plan: Plan) -> None:
    """Every digit and every character, text that looks like a number among it."""
    assert read_plan(parse_document(plan_text(plan), "p.yaml")) == plan
