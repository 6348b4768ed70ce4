"""A saved plan as text: what `check --baseline` takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.writers.yaml_file import plain, yaml_text

if TYPE_CHECKING:
    from rlsize.facts.plan import Plan


def plan_text(plan: Plan) -> str:
    """The YAML of a plan; what is unknown is left out."""
    return yaml_text("plan", plain(plan))
