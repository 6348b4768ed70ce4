"""A loop is saved as it was worked out."""

from __future__ import annotations

from rlsize.facts.figure import Figure, absent
from rlsize.facts.plan import PlanFigure, kept


def test_a_plan_keeps_what_is_known_with_its_provenance() -> None:
    """Values, bands and sources; what is unknown is left out."""
    step = Figure(key="step_seconds", value=40.0, band=(30.0, 60.0), provenance="predicted", equation="rl_step.step")
    unknown, mode = absent("cost_per_step_usd", "--gpu-hour"), Figure(key="mode", value="async", source="s.yaml:3")
    assert kept([mode, step, unknown, Figure(key="gpus", value=32)]) == {
        "mode": PlanFigure(value="async", source="s.yaml:3"),
        "step_seconds": PlanFigure(value=40.0, low=30.0, high=60.0, provenance="predicted", source="rl_step.step"),
        "gpus": PlanFigure(value=32),
    }
