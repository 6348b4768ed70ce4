"""An observation as a file: what was seen, the pools it was seen on, and what their GPUs cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rlsize.commands import asking, flags
from rlsize.facts.observation_file import ObservedAllocation, ObservedPrices, RunObservation
from rlsize.facts.plan import PlanFigure

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlsize.facts.figure import Figure
    from rlsize.facts.observations import Observation
    from rlsize.facts.run_summary import RunSummary
    from rlsize.shell.inputs import Inputs

MOST_STEPS = 1000  # of a saved observation, the newest: enough to tell a change of a percent or two
_COLUMNS = (
    *("step_seconds", "wait_seconds", "generation_seconds", "train_seconds", "sync_seconds"),
    *("response_tokens", "trainer_idle_fraction", "staleness_steps", "mfu"),
)


class Pools(NamedTuple):
    """The pools of a run and what they cost, as flags, scenario and log say."""

    instances: Figure
    gpus_per_instance: Figure
    rollout_gpus: Figure
    trainer_gpus: Figure
    rollout_gpu_hour: Figure
    trainer_gpu_hour: Figure


def pools_of(
    inputs: Inputs,
    instances: str | None,
    gpus_per_instance: str | None,
    rollout_gpus: str | None,
    trainer_gpus: str | None,
    prices: tuple[str | None, str | None, str | None, str | None],
) -> Pools:
    """Ask for the pools of a run; nothing of it is needed."""
    size = asking.gpus_per_instance(inputs, gpus_per_instance)
    pool = inputs.number("rollout_gpus", "--rollout-gpus", rollout_gpus, flags.COUNT, scenario="placement.rollout_gpus")
    trainer = inputs.number(
        "trainer_gpus", "--trainer-gpus", trainer_gpus, flags.COUNT, scenario="placement.trainer_gpus"
    )
    rollout_price, trainer_price = asking.gpu_hours(inputs, *prices)
    return Pools(asking.instances(inputs, instances, size), size, pool, trainer, rollout_price, trainer_price)


def allocation_of(pools: Pools, run: RunSummary, fleet: Observation | None) -> ObservedAllocation:
    """The pools as they are: as said, else as the log or the engines show."""
    count, size = _known(pools.instances), _known(pools.gpus_per_instance)
    if count is None and fleet is not None:
        count = float(len(fleet.instances))
    rollout = _known(pools.rollout_gpus) or _known(run.figure("rollout_gpus"))
    if rollout is None and count is not None and size is not None:
        rollout = count * size
    return ObservedAllocation(
        rollout_instances=count,
        gpus_per_instance=size,
        rollout_gpus=rollout,
        trainer_gpus=_known(pools.trainer_gpus) or _known(run.figure("trainer_gpus")),
    )


def prices_of(pools: Pools) -> ObservedPrices:
    """What the GPUs cost, with who says so."""
    sources = dict.fromkeys(
        price.source for price in (pools.rollout_gpu_hour, pools.trainer_gpu_hour) if price.known and price.source
    )
    return ObservedPrices(
        rollout_gpu_hour_usd=_known(pools.rollout_gpu_hour),
        trainer_gpu_hour_usd=_known(pools.trainer_gpu_hour),
        source=", ".join(sources),
    )


def _known(figure: Figure) -> float | None:
    return figure.number if figure.known else None


def kept_columns(run: RunSummary) -> tuple[list[int], dict[str, list[float]]]:
    """The newest settled steps and what is kept of each."""
    steps = list(run.steps[-MOST_STEPS:])
    return steps, {name: list(run.columns[name][-MOST_STEPS:]) for name in _COLUMNS if name in run.columns}


def save_observation(
    path: str,
    sources: list[str],
    results: Iterable[Figure],
    seen: tuple[RunSummary, Observation | None],
    pools: Pools,
    *,
    force: bool,
) -> None:
    """
    Write an observation.

    Raises:
        InputError: The file is there and is not to be overwritten, or cannot be written.
    """
    from datetime import UTC, datetime

    from rlsize.version import VERSION
    from rlsize.writers.files import write_whole
    from rlsize.writers.observation_file import observation_text

    run, fleet = seen
    steps, columns = kept_columns(run)
    observation = RunObservation(
        observed_at=datetime.now(UTC).isoformat(timespec="seconds"),
        rlsize_version=VERSION,
        sources=sources,
        framework=run.framework,
        engine=fleet.engine if fleet is not None else "",
        allocation=allocation_of(pools, run, fleet),
        prices=prices_of(pools),
        results={
            figure.key: PlanFigure(value=figure.value, provenance=figure.provenance, source=figure.source)
            for figure in results
            if figure.known
        },
        steps=steps,
        columns=columns,
    )
    write_whole(path, observation_text(observation), force)
