"""GPUs of a rollout instance, and instances of a fleet, as far as counts tell them; nothing heavy is loaded for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.equations import matching
from rlsize.estimates.figures import apply, rounded
from rlsize.facts.figure import Figure, absent
from rlsize.planner.rounding import rounded_down

if TYPE_CHECKING:
    from rlsize.loop.said import Said


def instance_gpus(said: Said) -> Figure:
    """GPUs of one rollout instance: said, its ranks multiplied, or those of the rates file; else absent."""
    size, tensor = said.ask("gpus_per_instance"), said.ask("rollout_tensor_parallel")
    if size.known or not tensor.known:
        return size if size.known else said.measured("gpus_per_instance", size)
    several = said if said.gives("rollout_data_parallel") else said.apart()  # one rank is not worth showing
    ranks = {"pipeline_parallel": said.ask("rollout_pipeline_parallel")}
    ranks |= {"tensor_parallel": tensor, "data_parallel": several.ask("rollout_data_parallel")}
    return said.keep(apply("gpus_per_instance", matching.instance_gpus, **ranks))


def stated_instances(said: Said) -> Figure:
    """Rollout instances as they were said; a flag that says mode or GPUs goes before those of a scenario."""
    stated = said.ask("instances")
    moved = any(map(said.by_flag, ("mode", "gpus", "rollout_gpus", "trainer_gpus", "gpus_per_instance")))
    if stated.known and moved and not said.by_flag("instances"):
        said.used.pop("instances", None)
        return absent("instances", said.flag("instances"))
    return stated


def instances(said: Said, gpus: Figure, size: Figure) -> Figure:
    """
    Rollout instances: said, or whole ones in the GPUs of the fleet; absent where neither is known.

    Args:
        said: What was said.
        gpus: GPUs that generate. [1]
        size: GPUs of one instance. [1]
    """
    stated = stated_instances(said)
    if stated.known:
        return stated
    exact = apply("instances", matching.instances_of, gpus=gpus, gpus_per_instance=size)
    if not exact.known:
        return stated
    if exact.number < 1:
        what = f"{gpus.number:g} rollout GPUs do not hold an instance of {size.number:g}"
        said.fault(what, gpus.source, "give more, or a smaller --rollout-tensor-parallel")
        return stated
    return said.keep(rounded(exact, "instances", rounded_down))
