"""Instances, their size and the GPUs of both pools: said, or what the others leave; contradictions are faults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlsize.commands import asking, flags
from rlsize.equations import matching
from rlsize.facts.fields import Quantity
from rlsize.facts.figure import Figure
from rlsize.planner.rounding import rounded_down

if TYPE_CHECKING:
    from rlsize.commands.manifest_allocation import AllocationFlags, Said
    from rlsize.facts.allocation import Degrees

_WHOLE = Quantity("count", whole=True, most=1e6)
_SLACK = 1e-9  # the last bits of a quotient


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """
    The GPUs of both pools.

    Args:
        instances: Rollout instances; None where nobody says.
        gpus_per_instance: GPUs of one.
        rollout_gpus: GPUs of the fleet.
        trainer_gpus: GPUs of the trainer; all of them where both sides share.
    """

    instances: int | None
    gpus_per_instance: float | None
    rollout_gpus: int | None
    trainer_gpus: int | None


def fleet_of(said: Said, asked: AllocationFlags, mode: str, degrees: Degrees, trainer: Figure) -> Fleet:
    """
    The pools; faults are noted.

    Args:
        said: The file.
        asked: The flags; they go before the file.
        mode: How the loop is laid out in time.
        degrees: How an instance is spread.
        trainer: GPUs of the trainer, where said.
    """
    count = said.number("instances", "--instances", asked.instances, _WHOLE, "placement.instances")
    gpus = said.number("rollout_gpus", "--rollout-gpus", asked.rollout_gpus, _WHOLE, "placement.rollout_gpus")
    total = said.number("gpus", "", None, _WHOLE, "cluster.gpus")
    _check_turn(said, asked, mode)
    gpus = _pool(said, mode, gpus, trainer, total)
    if mode == "colocated" and not trainer.known:
        trainer = gpus
    size = _size(said, asked, degrees, count, gpus)
    resized = asked.gpus_per_instance is not None or asked.tensor is not None
    instances, pool = _counted(said, count, gpus, size, resized=resized)
    trained = int(trainer.number) if trainer.known else None
    if mode == "colocated" and pool is not None and trained is not None and pool != trained:
        what = f"colocated, yet {pool} GPUs generate and {trained} train: both sides share the same ones"
        said.inputs.fault(what, trainer.source, "give --rollout-gpus and --trainer-gpus the same number")
    return Fleet(instances=instances, gpus_per_instance=size, rollout_gpus=pool, trainer_gpus=trained)


def _check_turn(said: Said, asked: AllocationFlags, mode: str) -> None:
    """Pools of a file that shares GPUs say nothing of a split by flag, nor those of a split of shared GPUs."""
    written = said.written("mode", "placement.mode")
    if asked.mode is None or written is None or (asked.rollout_gpus is not None and asked.trainer_gpus is not None):
        return
    if (mode == "colocated") != (written == "colocated"):
        what = f"the GPUs of the file are those of a loop that is {written}"
        said.inputs.fault(what, "--mode", "give --rollout-gpus and --trainer-gpus with it")


def _pool(said: Said, mode: str, gpus: Figure, trainer: Figure, total: Figure) -> Figure:
    """GPUs of the fleet: said, or what the trainer leaves of a scenario's."""
    if gpus.known or said.kind != "scenario" or not total.known:
        return gpus
    if mode == "colocated":
        return Figure(key="rollout_gpus", value=int(total.number), source=total.source)
    if not trainer.known:
        return gpus
    rest = int(matching.remaining_gpus(gpus=total.number, rollout_gpus=trainer.number))
    if rest < 1:
        said.inputs.fault(f"{trainer.number:g} of {total.number:g} GPUs leave none", trainer.source, "give fewer")
        return gpus
    said.inputs.notes.append(
        f"The fleet is what the trainer leaves: {rest} of {total.number:g} GPUs. `rlsize fleet` says how many match."
    )
    return said.inputs.keep(Figure(key="rollout_gpus", value=rest, source=total.source))


def _size(said: Said, asked: AllocationFlags, degrees: Degrees, count: Figure, gpus: Figure) -> float | None:
    """GPUs of an instance: by flag, by its degrees, or the fleet's over its instances."""
    told = said.number("gpus_per_instance", "--gpus-per-instance", asked.gpus_per_instance, flags.GPUS_PER_INSTANCE)
    by_degrees = None
    if degrees.tensor is not None:
        by_degrees = degrees.tensor * (degrees.pipeline or 1) * (degrees.data or 1)
    if by_degrees is not None and asked.tensor is not None and asked.gpus_per_instance is None:
        said.inputs.keep(Figure(key="gpus_per_instance", value=by_degrees, source="--rollout-tensor-parallel"))
        return float(by_degrees)
    if told.known:
        if by_degrees is not None and by_degrees != told.number:
            what = f"an instance of {told.number:g} GPUs is not tensor x pipeline x data parallel = {by_degrees}"
            said.inputs.fault(what, told.source, "make them agree")
        return told.number
    if asked.gpus_per_instance is not None:  # it was no number, which is told already
        return None
    if by_degrees is not None:
        return float(by_degrees)
    if count.known and gpus.known:
        return gpus.number / count.number
    return None


def _counted(
    said: Said, count: Figure, gpus: Figure, size: float | None, *, resized: bool
) -> tuple[int | None, int | None]:
    """Instances and GPUs of the fleet; a flag goes before what the file says of the other."""
    if size is None:
        return (int(count.number) if count.known else None), (int(gpus.number) if gpus.known else None)
    flagged = asking.by_flag(count) if count.known else False
    kept = gpus.known and (asking.by_flag(gpus) or resized)  # other instances on the same GPUs
    if count.known and (flagged or not kept):
        pool = matching.fleet_gpus(instances=count.number, gpus_per_instance=size)
        alike = gpus.known and asking.by_flag(gpus) == flagged
        if alike and abs(pool - gpus.number) > _SLACK * pool:
            what = f"{count.number:g} instances of {size:g} GPUs are not {gpus.number:g} rollout GPUs"
            said.inputs.fault(what, gpus.source or "--rollout-gpus", "make them agree, or leave one out")
        whole = rounded_down(pool)
        if pool != whole:
            what = f"{count.number:g} instances of {size:g} GPUs are {pool:g} GPUs, no whole number"
            said.inputs.fault(what, count.source, "give instances that fill whole GPUs")
        said.inputs.keep(Figure(key="rollout_gpus", value=whole, source=count.source))
        return int(count.number), whole
    if not gpus.known:
        return None, None
    return _held(said, gpus, size), int(gpus.number)


def _held(said: Said, gpus: Figure, size: float) -> int | None:
    """Instances that fill a pool to the last GPU; nothing is rounded."""
    held = matching.instances_of(gpus=gpus.number, gpus_per_instance=size)
    whole = rounded_down(held)
    if abs(held - whole) > _SLACK * max(1.0, held) or whole < 1:
        near = [f"{number * size:g}" for number in (whole, whole + 1) if number >= 1]
        what = f"{gpus.number:g} rollout GPUs are no whole number of instances of {size:g}"
        said.inputs.fault(what, gpus.source, f"nearest: {' or '.join(near)} rollout GPUs (--rollout-gpus)")
        return None
    said.inputs.keep(Figure(key="instances", value=whole, source=gpus.source))
    return whole
