"""A run as it was observed: what `diagnose --before` compares with, and what a rollback goes back to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from rlsize.facts.fields import Quantity, Says
from rlsize.facts.plan import PlanFigure  # noqa: TC001 (pydantic resolves the annotations at run time)
from rlsize.facts.rates import Rates  # noqa: TC001 (pydantic resolves the annotations at run time)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedAllocation:
    """The pools as they were."""

    rollout_instances: Annotated[float | None, Quantity("count", "rollout instances", whole=True)] = None
    gpus_per_instance: Annotated[float | None, Quantity("count", "GPUs of one instance", least=1e-6)] = None
    rollout_gpus: Annotated[float | None, Quantity("count", "GPUs of the rollout fleet", least=0)] = None
    trainer_gpus: Annotated[float | None, Quantity("count", "GPUs of the trainer", least=0)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedPrices:
    """What an hour of a GPU cost."""

    rollout_gpu_hour_usd: Annotated[float | None, Quantity("usd", "dollars per hour of a rollout GPU", least=0)] = None
    trainer_gpu_hour_usd: Annotated[float | None, Quantity("usd", "dollars per hour of a trainer GPU", least=0)] = None
    source: Annotated[str, Says("who says so")] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunObservation:
    """A saved observation."""

    observed_at: Annotated[str, Says("when, as an ISO 8601 date and time")]
    rlsize_version: Annotated[str, Says("the rlsize that made it")]
    sources: Annotated[list[str], Says("what was read")]
    framework: Annotated[str, Says("whose training log; empty without one")] = ""
    mode: Annotated[str, Says("how the loop was laid out in time; empty where no log tells")] = ""
    engine: Annotated[str, Says("the inference engine; empty where none was read")] = ""
    allocation: Annotated[ObservedAllocation, Says("the pools as they were: the target of a rollback")] = field(
        default_factory=ObservedAllocation
    )
    prices: Annotated[ObservedPrices, Says("what an hour of a GPU cost")] = field(default_factory=ObservedPrices)
    rates: Annotated[Rates | None, Says("both rates as a rates file has them; null where none was seen")] = None
    results: Annotated[dict[str, PlanFigure], Says("what the run did, by key")] = field(default_factory=dict)
    steps: Annotated[list[int], Says("numbers of the settled optimizer steps")] = field(default_factory=list)
    columns: Annotated[dict[str, list[float]], Says("one value per settled step, by quantity")] = field(
        default_factory=dict
    )
