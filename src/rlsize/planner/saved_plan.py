"""A loop as a plan that can be saved: what it is, what it should give, and what it was worked out from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.facts.plan import Plan, PlanFigure
from rlsize.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlsize.facts.figure import Figure
    from rlsize.planner.evaluation import Evaluation


def saved_plan(
    command: str,
    found: Evaluation,
    inputs: Iterable[Figure],
    *,
    facts_digest: str,
    scenario: dict[str, Any] | None = None,
    as_of: str = "",
    region: str = "",
) -> Plan:
    """
    The plan of a loop; what is unknown of it is left out.

    Args:
        command: The command that makes it.
        found: What the loop gives.
        inputs: What it was worked out from.
        facts_digest: Digest of the facts and equations behind it.
        scenario: The loop as a scenario has it, section by section; None where a scenario cannot say it.
        as_of: Day of the prices.
        region: Region of the prices.
    """
    return Plan(
        command=command,
        rlsize_version=VERSION,
        facts_digest=facts_digest,
        placement=_figures(found.placement.values()),
        results=_figures(found.results.values()),
        inputs=_figures(inputs),
        scenario=scenario,
        prices_as_of=as_of,
        prices_region=region,
    )


def _figures(figures: Iterable[Figure]) -> dict[str, PlanFigure]:
    return {figure.key: _figure(figure) for figure in figures if figure.known}


def _figure(figure: Figure) -> PlanFigure:
    low, high = figure.band or (None, None)
    source = figure.equation or figure.source
    return PlanFigure(value=figure.value, low=low, high=high, provenance=figure.provenance, source=source)
