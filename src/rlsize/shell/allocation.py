"""The pools of a loop, for commands that set or resize them: what flags and one file say; contradictions are faults."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from rlsize.equations import matching
from rlsize.errors import suggestion
from rlsize.estimates.figures import apply
from rlsize.facts.figure import Figure
from rlsize.facts.inference_engines import ENGINES, inference_engine
from rlsize.facts.plan import Allocation, Degrees
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
    loop = _loop(inputs)
    shared = loop == "colocated"
    rollout = pools(inputs).gpus if shared else fleet_gpus(inputs)
    trainer = rollout if shared else inputs.ask("trainer_gpus")
    degrees, size = _instance(inputs, rollout)
    count, rollout = _fleet(inputs, rollout, size)
    model, _ = inputs.name("model")
    profile = inputs.apart().profile("model", model, "") if isinstance(model, str) else None  # it may not be at hand
    carried, in_flight = inputs.name("mode")[0] == "partial", inputs.name("sync_way")[0] in {None, "in-flight"}
    return Allocation(
        source=source,
        mode=loop,
        instances=_whole(count),
        gpus_per_instance=size.if_known,
        rollout_gpus=_whole(rollout),
        trainer_gpus=_whole(trainer),
        gpus_per_node=_node(inputs),
        engine=_engine(inputs),
        rollout=degrees,
        trainer=Degrees(
            **{name: _whole(inputs.ask(f"{name}_parallel")) for name in ("tensor", "pipeline", "context", "expert")}
        ),
        max_staleness=inputs.ask("max_staleness", assume=False).if_known,
        sync_every=_whole(inputs.ask("sync_every")) or 1,
        carried=carried,
        in_flight=loop in {"async", "hybrid"} and in_flight,
        mini_batches=_whole(inputs.ask("mini_batches")) or 1,
        **{
            key: inputs.ask(key).if_known
            for key in ("prompts_per_step", "group_size", "concurrency", "memory_fraction")
        },
        reference=inputs.yes("reference"),
        mixture=None if profile is None else profile.architecture.moe is not None,
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


def _instance(inputs: Inputs, rollout: Figure) -> tuple[Degrees, Figure]:
    """How an instance is spread, and its GPUs: said, else those of the fleet over its instances, a file's first."""
    size = instance_gpus(inputs)
    if not size.known:
        file, count = inputs.said("placement.instances"), inputs.ask("instances")
        gpus = inputs.said("placement.rollout_gpus") if file else rollout.if_known
        if gpus and (file or count.known):
            size = inputs.keep(replace(size, value=gpus / (file or count.number), source=inputs.place("instances")))
    if inputs.by_flag("gpus_per_instance") and not inputs.by_flag("rollout_tensor_parallel"):
        return Degrees(tensor=1 if size.value == 1 else None), size  # a file's degrees are those of another size
    said = {name: _whole(inputs.ask(f"rollout_{name}_parallel")) for name in _SPREAD}
    degrees = Degrees(**{name: degree for name, degree in said.items() if inputs.gives(f"rollout_{name}_parallel")})
    spread = (degrees.tensor or 0) * (degrees.pipeline or 1) * (degrees.data or 1)
    if size.known and spread not in {0, size.number}:
        what = f"an instance of {size.number:g} GPUs is not tensor x pipeline x data parallel = {spread}"
        inputs.fault(what, size.source, "make them agree")
    return degrees if spread or size.value != 1 else replace(degrees, tensor=1), size


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


def _engine(inputs: Inputs) -> str:
    """The engine by how its name reads; empty where nobody says."""
    name, where = inputs.name("engine")
    if name is None:
        return ""
    found = inference_engine(str(name)).name
    if found == "vllm" and "vllm" not in str(name).lower():
        inputs.fault(f"{str(name)[:40]!r} is unknown", where, suggestion(str(name)[:40], ENGINES))
    inputs.keep(Figure(key="engine", value=found, source=where))
    return found


def _node(inputs: Inputs) -> int | None:
    """GPUs of a node: said, or known of the profiles that are named."""
    aside = inputs.apart()  # which GPU it is, is no input of an allocation
    found = node_gpus(inputs, None if inputs.gives("gpus_per_node") else aside.gpu("rollout"))
    inputs.faults += aside.faults
    return int(inputs.keep(found).number) if found.known else None
