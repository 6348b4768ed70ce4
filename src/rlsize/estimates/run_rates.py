"""What a training log adds to measured rates: the trainer's busy time and what it consumes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rlsize.facts.rates import RateConditions, Rates, RateSource

if TYPE_CHECKING:
    from rlsize.facts.run_summary import RunSummary

_KEYS = ("train_seconds", "consumption_tokens_per_second")


def with_trainer(
    fleet: Rates | None, run: RunSummary, *, measured_at: str, trainer_gpus: float | None = None
) -> Rates | None:
    """
    The rates of both sides.

    Args:
        fleet: Those of an instance; None where no engine was read.
        run: The training log, summed up.
        measured_at: When, as an ISO 8601 date and time.
        trainer_gpus: GPUs of the trainer; else as the log says. [1]

    Returns:
        Both, or the one that is known; None where neither is.
    """
    known = {key: run.figures[key].number for key in _KEYS if key in run.figures}
    if not known:
        return fleet
    gpus = trainer_gpus if trainer_gpus is not None else _number(run, "trainer_gpus")
    whole = round(gpus) if gpus is not None and gpus == round(gpus) else None
    doubts = list(run.warnings)
    if fleet is None:
        conditions = RateConditions(mean_response_tokens=_number(run, "mean_response_tokens"))
        source = RateSource(method="observe", keys={key: run.keys[key] for key in run.keys if key.endswith("_seconds")})
        fleet = Rates(measured_at=measured_at, source=source, conditions=conditions)
    return replace(fleet, **known, trainer_gpus=whole, doubts=[*fleet.doubts, *doubts])  # type: ignore[arg-type]  # fields by name


def _number(run: RunSummary, key: str) -> float | None:
    figure = run.figures.get(key)
    return None if figure is None else figure.number
