"""A loop is saved as it was worked out."""

from __future__ import annotations

from rlsize.facts.figure import Figure, absent
from rlsize.facts.plan import PlanFigure
from rlsize.planner.evaluation import Evaluation, saved_plan
from rlsize.version import VERSION


def test_a_plan_holds_what_is_known_with_its_provenance() -> None:
    """Values, bands and sources; what is unknown is left out."""
    found = Evaluation(
        placement={"mode": Figure(key="mode", value="async", source="s.yaml:3")},
        results={
            "step_seconds": Figure(
                key="step_seconds", value=40.0, band=(30.0, 60.0), provenance="predicted", equation="rl_step.step"
            ),
            "cost_per_step_usd": absent("cost_per_step_usd", "--gpu-hour"),
        },
    )
    plan = saved_plan(
        "check", found, [Figure(key="gpus", value=32)], facts_digest="abc", as_of="2026-11-01", region="any"
    )
    assert plan.placement == {"mode": PlanFigure(value="async", source="s.yaml:3")}
    assert plan.results == {
        "step_seconds": PlanFigure(value=40.0, low=30.0, high=60.0, provenance="predicted", source="rl_step.step")
    }
    assert plan.inputs == {"gpus": PlanFigure(value=32)}
    assert (plan.command, plan.rlsize_version, plan.facts_digest) == ("check", VERSION, "abc")
    assert (plan.prices_as_of, plan.prices_region) == ("2026-11-01", "any")
