"""The pools of a loop, for commands that set or resize them: what flags and one file say; contradictions are faults."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from rlsize.equations import matching
from rlsize.estimates.figures import apply
from rlsize.facts.figure import Figure
from rlsize.facts.plan import Allocation
from rlsize.loop.instance_count import instance_gpus, stated_instances
from rlsize.loop.pools import mode, node_gpus, pools
from rlsize.loop.sides import fleet_gpus
from rlsize.planner.rounding import rounded_down
from rlsize.shell.command import argument

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlsize.shell.inputs import Inputs

ALLOCATION = ("instances", "gpus_per_instance", "rollout_gpus", "trainer_gpus", "gpus_per_node", "engine")
"""What is asked of an allocation."""

Source = Annotated[
    str | None,
    argument("PLAN|SCENARIO", "A saved plan, a scenario with placement, or an observation; flags override it."),
]
"""The file that says it."""

_SLACK = 1e-9  # the last bits of a quotient
_SPREAD = ("tensor", "pipeline", "data", "expert")


def read_pools(inputs: Inputs, path: str | None, changes: Iterable[str] | None = None) -> None:
    """
    Read the file that says an allocation: a plan, a scenario or an observation; None for flags alone.

    Raises:
        InputError: What is wrong with it.
    """
    from rlsize.readers.scenarios import read_allocation

    inputs.read(path, changes or (), reader=read_allocation)


def allocation_of(inputs: Inputs, source: str) -> Allocation:
    """
    The allocation; faults are noted.

    Args:
        inputs: Flags and the file; flags go first.
        source: What to call the file.
    """
    from rlsize.loop.instance import engine_of

    loop = _loop(inputs)
    shared = loop == "colocated"
    rollout = pools(inputs).gpus if shared else fleet_gpus(inputs)
    trainer = rollout if shared else inputs.ask("trainer_gpus")
    degrees, size = _instance(inputs, rollout)
    count, rollout = _fleet(inputs, rollout, size)
    return Allocation(
        source=source,
        mode=loop,
        instances=_whole(count),
        gpus_per_instance=size.if_known,
        rollout_gpus=_whole(rollout),
        trainer_gpus=_whole(trainer),
        gpus_per_node=_node(inputs),
        engine=engine_of(inputs).name if inputs.gives("engine") else "",
        degrees=degrees,
    )


def _whole(figure: Figure) -> int | None:
    return int(figure.number) if figure.known else None


def _loop(inputs: Inputs) -> str:
    """The loop, which may be hybrid here; empty where neither a mode is said nor the pools of a file."""
    name, where = inputs.name("mode")
    two = inputs.file is not None and (inputs.gives("rollout_gpus") or inputs.gives("trainer_gpus"))
    if name == "hybrid":
        inputs.keep(Figure(key="mode", value=name, source=where))
        return "hybrid"
    if name is None and not two:
        return ""
    loop = mode(inputs, two=two)
    lends = loop == "async" and inputs.gives("lent_instances") and inputs.ask("lent_instances").number > 0
    return "hybrid" if lends else loop


def _instance(inputs: Inputs, rollout: Figure) -> tuple[dict[str, int], Figure]:
    """How an instance is spread, and its GPUs: said, else those of the fleet over its instances, a file's first."""
    size = instance_gpus(inputs)
    if not size.known:
        file, count = inputs.said("placement.instances"), inputs.ask("instances")
        gpus = inputs.said("placement.rollout_gpus") if file else rollout.if_known
        if gpus and (file or count.known):
            size = inputs.keep(replace(size, value=gpus / (file or count.number), source=inputs.place("instances")))
    if inputs.by_flag("gpus_per_instance") and not inputs.by_flag("rollout_tensor_parallel"):
        return {"tensor": 1} if size.value == 1 else {}, size  # a file's degrees are those of another size
    given = [name for name in _SPREAD if inputs.gives(f"rollout_{name}_parallel")]
    degrees = {name: int(found.number) for name in given if (found := inputs.ask(f"rollout_{name}_parallel")).known}
    spread = degrees.get("tensor", 0) * degrees.get("pipeline", 1) * degrees.get("data", 1)
    if size.known and spread not in {0, size.number}:
        what = f"an instance of {size.number:g} GPUs is not tensor x pipeline x data parallel = {spread}"
        inputs.fault(what, size.source, "make them agree")
    return degrees if spread or size.value != 1 else {**degrees, "tensor": 1}, size


def _fleet(inputs: Inputs, rollout: Figure, size: Figure) -> tuple[Figure, Figure]:
    """Instances and GPUs of the fleet; a count by flag is another fleet than that of a file, and nothing is rounded."""
    count = stated_instances(inputs)
    if not size.known:
        return count, rollout
    if count.known and (not rollout.known or (inputs.by_flag("instances") and not inputs.by_flag("rollout_gpus"))):
        exact = apply("rollout_gpus", matching.fleet_gpus, instances=count, gpus_per_instance=size)
        rollout = inputs.keep(replace(exact, value=rounded_down(exact.number)))
    held = apply("instances", matching.instances_of, gpus=rollout, gpus_per_instance=size)
    if not held.known:
        return count, rollout
    whole = rounded_down(held.number)
    if count.known and abs(count.number - held.number) > _SLACK * count.number:
        what = f"{count.number:g} instances of {size.number:g} GPUs are not {rollout.number:g} rollout GPUs"
        inputs.fault(what, count.source, "make them agree, or leave one out")
    elif abs(held.number - whole) > _SLACK * held.number or whole < 1:
        near = [f"{number * size.number:g}" for number in (whole, whole + 1) if number >= 1]
        what = f"{rollout.number:g} rollout GPUs are no whole number of instances of {size.number:g}"
        inputs.fault(what, rollout.source, f"nearest: {' or '.join(near)} rollout GPUs (--rollout-gpus)")
    return inputs.keep(replace(held, value=whole)), rollout


def _node(inputs: Inputs) -> int | None:
    """GPUs of a node: said, or known of the profiles that are named."""
    aside = inputs.apart()  # which GPU it is, is no input of an allocation
    found = node_gpus(inputs, None if inputs.gives("gpus_per_node") else aside.gpu("rollout"))
    inputs.faults += aside.faults
    return int(inputs.keep(found).number) if found.known else None
