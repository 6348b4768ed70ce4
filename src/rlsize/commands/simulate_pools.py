"""The GPUs of both sides of a simulated loop, the trainer's time on them, and their prices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlsize.commands import asking, flags, predicted
from rlsize.equations import iteration, matching, rollout_batch
from rlsize.estimates.working import apply, rounded
from rlsize.facts.figure import Figure, absent
from rlsize.planner.rounding import rounded_down
from rlsize.simulator.first_order import Pools

if TYPE_CHECKING:
    from rlsize.commands.simulate_asking import Asked
    from rlsize.shell.inputs import Inputs


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpus:
    """
    GPUs of both sides.

    Args:
        instances: Rollout instances.
        rollout: GPUs of the fleet.
        trainer: GPUs of the trainer.
        said_trainer: GPUs that the trainer's time was said for.
    """

    instances: Figure
    rollout: Figure
    trainer: Figure
    said_trainer: Figure


def gpus_of(asked: Asked, mode: str) -> Gpus:
    """Instances and GPUs: as flags say, else the scenario; one side gets what the other leaves of the whole."""
    inputs, said = asked.inputs, asked.said
    size = _size(asked)
    pools = {}
    for name, flag in (("rollout_gpus", "--rollout-gpus"), ("trainer_gpus", "--trainer-gpus")):
        pools[name] = inputs.number(name, flag, said.get(name), flags.COUNT, scenario=f"placement.{name}")
    stated = pools["trainer_gpus"]
    whole = inputs.number("gpus", "--rollout-gpus", None, flags.COUNT, scenario="cluster.gpus")
    if mode == "colocated":
        shared = whole if whole.known else pools["trainer_gpus"]
        pools = {"rollout_gpus": shared, "trainer_gpus": shared}
    else:
        for own, other in (("trainer_gpus", "rollout_gpus"), ("rollout_gpus", "trainer_gpus")):
            moved = said.get(other) is not None and said.get(own) is None
            if whole.known and pools[other].known and (moved or not pools[own].known):
                pools[own] = _left(inputs, own, whole, pools[other])
    instances = _instances(asked, mode, size, pools["rollout_gpus"])
    rollout = pools["rollout_gpus"]
    if not rollout.known and size.known and instances.known:
        rollout = apply("rollout_gpus", matching.fleet_gpus, instances=instances, gpus_per_instance=size)
    return Gpus(instances=instances, rollout=rollout, trainer=pools["trainer_gpus"], said_trainer=stated)


def _size(asked: Asked) -> Figure:
    """GPUs of an instance: said, or what the scenario's instances and rollout GPUs make it."""
    inputs = asked.inputs
    size = asking.gpus_per_instance(inputs, asked.said.get("gpus_per_instance"))
    placed = [inputs.said(f"placement.{key}") for key in ("rollout_gpus", "instances")]
    if size.known or None in placed:
        return size
    gpus, instances = (
        Figure(key=key, value=value) for key, value in zip(("rollout_gpus", "instances"), placed, strict=True)
    )
    return apply("gpus_per_instance", rollout_batch.per_instance, amount=gpus, instances=instances)


def _instances(asked: Asked, mode: str, size: Figure, pool: Figure) -> Figure:
    """Rollout instances: said, or as many as the GPUs hold, where a flag or the mode says how many GPUs there are."""
    inputs, said = asked.inputs, asked.said
    stated = inputs.number(
        "instances", "--instances", said.get("instances"), flags.COUNT, scenario="placement.instances"
    )
    moved = said.get("rollout_gpus") is not None or said.get("trainer_gpus") is not None or mode == "colocated"
    if stated.known and (asking.by_flag(stated) or not moved):
        return stated
    if said.get("rollout_gpus") is not None and pool.known and not size.known:
        inputs.fault("GPUs say nothing without the size of an instance", "--rollout-gpus", "give --gpus-per-instance")
    if not (size.known and pool.known):
        return stated
    exact = apply("instances", matching.instances_of, gpus=pool, gpus_per_instance=size)
    if exact.number >= 1:
        return inputs.keep(rounded(exact, "instances", rounded_down(exact.number)))
    what = f"{pool.number:g} rollout GPUs hold no instance of {size.number:g}"
    inputs.fault(what, "--rollout-gpus", "give more GPUs, or smaller instances")
    return Figure(key="instances", value=1, provenance="default")  # so that this is told once


def _left(inputs: Inputs, name: str, whole: Figure, other: Figure) -> Figure:
    """What one side leaves of the whole cluster."""
    left = apply(name, matching.remaining_gpus, gpus=whole, rollout_gpus=other)
    if left.known and left.number < 1:
        what = f"{other.number:g} GPUs leave none of {whole.number:g} for the other side"
        inputs.fault(what, other.source, "give fewer, or a larger cluster")
        return absent(name, f"--{name.replace('_', '-')}")
    return inputs.keep(left)


def train_seconds(asked: Asked, gpus: Gpus) -> Figure:
    """Busy trainer seconds; those of a scenario move with the trainer's GPUs where a flag changes these."""
    inputs = asked.inputs
    said = asking.train_seconds(inputs, asked.said.get("train_seconds"))
    moved = gpus.trainer.known and gpus.said_trainer.known and gpus.trainer.number != gpus.said_trainer.number
    if said.known and not asking.by_flag(said) and moved:
        inputs.notes.append(
            f"Train seconds of {gpus.said_trainer.number:g} GPUs are taken in proportion to {gpus.trainer.number:g}."
        )
        scaled = apply(
            "train_seconds",
            iteration.phase_time_on,
            phase_seconds=said,
            pool_gpus=gpus.said_trainer,
            gpus=gpus.trainer,
        )
        return inputs.keep(scaled)
    return predicted.train_seconds(inputs, said)


def pools_of(asked: Asked, gpus: Gpus, mode: str) -> Pools:
    """GPUs and prices; the GPUs of a colocated loop are the trainer's."""
    said = asked.said
    prices = asking.gpu_hours(
        asked.inputs,
        said.get("gpu_hour"),
        said.get("rollout_gpu_hour"),
        said.get("trainer_gpu_hour"),
        said.get("price"),
    )
    rollout, trainer = ((figure.number if figure.known else None) for figure in prices)
    fleet = gpus.rollout.number if gpus.rollout.known else None
    return Pools(
        rollout_gpus=0.0 if mode == "colocated" and gpus.trainer.known else fleet,
        trainer_gpus=gpus.trainer.number if gpus.trainer.known else None,
        rollout_gpu_hour=rollout,
        trainer_gpu_hour=trainer,
    )
