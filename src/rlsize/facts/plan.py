"""The pools of a loop and how they are laid out, for a manifest and a snippet; and a plan that was saved."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from rlsize.facts.fields import Says
from rlsize.facts.figure import Figure, Provenance

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFigure:
    """One number of a plan, in the base unit that its key ends in."""

    value: Annotated[float | str | bool | None, Says("The number in base units, or a word.")] = None
    low: Annotated[float | None, Says("Low end of the 80 % interval; absent for a point.")] = None
    high: Annotated[float | None, Says("High end of the 80 % interval; absent for a point.")] = None
    provenance: Annotated[Provenance, Says("Who says so: given, measured, predicted or default.")] = "given"
    source: Annotated[str, Says("Where it comes from.")] = ""

    def figure(self, key: str) -> Figure:
        """The number as a figure of that key."""
        band = None if self.low is None or self.high is None else (self.low, self.high)
        return Figure(key=key, value=self.value, band=band, provenance=self.provenance, source=self.source)


def kept(figures: Iterable[Figure]) -> dict[str, PlanFigure]:
    """Figures as a plan keeps them, by key; what is unknown is left out."""
    return {
        figure.key: PlanFigure(
            value=figure.value,
            low=figure.band[0] if figure.band else None,
            high=figure.band[1] if figure.band else None,
            provenance=figure.provenance,
            source=figure.equation or figure.source,
        )
        for figure in figures
        if figure.known
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A saved plan: the baseline of a check, a side of a comparison, the target of a rollback."""

    command: Annotated[str, Says("The command that made it.")]
    rlsize_version: Annotated[str, Says("The rlsize that made it.")]
    facts_digest: Annotated[str, Says("Digest of the profiles and equations that it was made with.")]
    placement: Annotated[dict[str, PlanFigure], Says("What was chosen: mode, GPUs and layouts of both sides.")]
    results: Annotated[dict[str, PlanFigure], Says("What it should give, by key.")]
    inputs: Annotated[dict[str, PlanFigure], Says("What it was worked out from, by key.")] = field(default_factory=dict)
    scenario: Annotated[
        dict[str, Any] | None,
        Says("The loop as a scenario: every command takes the plan in its place; absent before 0.2, and of hybrids."),
    ] = None
    prices_as_of: Annotated[str, Says("Day of the prices; empty without prices.")] = ""
    prices_region: Annotated[str, Says("Region of the prices; empty where nobody said.")] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """How many GPUs each side has, and how an instance is spread; None or empty where nobody says."""

    source: Annotated[str, Says("Where it comes from: a file, or flags.")]
    mode: Annotated[str, Says("Loop: colocated, synchronous, one-step-off, async or hybrid.")] = ""
    instances: Annotated[int | None, Says("Rollout instances.")] = None
    gpus_per_instance: Annotated[float | None, Says("GPUs of one instance; may be a fraction.")] = None
    rollout_gpus: Annotated[int | None, Says("GPUs of the rollout fleet.")] = None
    trainer_gpus: Annotated[int | None, Says("GPUs of the trainer.")] = None
    gpus_per_node: Annotated[int | None, Says("GPUs of a node.")] = None
    engine: Annotated[str, Says("The inference engine.")] = ""
    degrees: Annotated[dict[str, int], Says("Ranks of an instance: tensor, pipeline, data, expert.")] = field(
        default_factory=dict
    )

    @property
    def shared(self) -> bool:
        """Whether both sides take turns on the same GPUs, so that there is no fleet beside the trainer."""
        return self.mode == "colocated"
