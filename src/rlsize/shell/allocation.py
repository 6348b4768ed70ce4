"""The pools of a loop, for commands that set or resize them: what flags and one file say; contradictions are faults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from rlsize.equations import matching
from rlsize.errors import suggestion
from rlsize.facts.figure import Figure, absent
from rlsize.facts.inference_engines import ENGINES, inference_engine
from rlsize.facts.plan import Allocation, Degrees
from rlsize.loop.pools import LOOPS, mode, node_gpus
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
_MOST = 1e6  # GPUs, or instances, beyond which a number is a slip
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
    trainer = inputs.ask("trainer_gpus")
    loop = _loop(inputs, trainer)
    degrees = _degrees(inputs)
    count, size, rollout, trained = _pools(inputs, loop, degrees, trainer)
    if degrees.tensor is None and size == 1:  # one GPU is not spread, whoever says so
        degrees = Degrees(tensor=1)
    model, _ = inputs.name("model")
    profile = inputs.apart().profile("model", model, "") if isinstance(model, str) else None  # it may not be at hand
    carried, in_flight = inputs.name("mode")[0] == "partial", inputs.name("sync_way")[0] in {None, "in-flight"}
    return Allocation(
        source=source,
        mode=loop,
        instances=count,
        gpus_per_instance=size,
        rollout_gpus=rollout,
        trainer_gpus=trained,
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


def _loop(inputs: Inputs, trainer: Figure) -> str:
    """The loop; where nobody says, two pools of a file are asynchronous, as in the other commands."""
    name, where = inputs.name("mode")
    if name == "hybrid":
        inputs.keep(Figure(key="mode", value=name, source=where))
        return "hybrid"
    pools = inputs.file is not None and (trainer.known or inputs.gives("rollout_gpus"))
    if name is None and not pools:
        return ""
    if name is not None and name not in LOOPS:
        inputs.fault(f"{name[:40]!r} is unknown", where, suggestion(name[:40], [*LOOPS, "hybrid"]))
        return ""
    loop = mode(inputs, two=pools)
    lends = loop == "async" and inputs.gives("lent_instances") and inputs.ask("lent_instances").number > 0
    return "hybrid" if lends else loop


def _degrees(inputs: Inputs) -> Degrees:
    """How an instance is spread; what the file says of it does not hold for another size by flag."""
    keys = {name: f"rollout_{name}_parallel" for name in _SPREAD}
    if inputs.by_flag("gpus_per_instance") and not inputs.by_flag("rollout_tensor_parallel"):
        return Degrees()
    if inputs.by_flag("rollout_tensor_parallel"):
        return Degrees(tensor=_whole(inputs.ask(keys["tensor"])))
    return Degrees(**{name: _whole(inputs.ask(key)) for name, key in keys.items() if inputs.gives(key)})


def _pools(
    inputs: Inputs, loop: str, degrees: Degrees, trainer: Figure
) -> tuple[int | None, float | None, int | None, int | None]:
    """Instances, GPUs of one, GPUs of the fleet, and those of the trainer."""
    count, gpus = inputs.ask("instances"), inputs.ask("rollout_gpus")
    written = inputs.said("placement.mode")
    turned = inputs.by_flag("mode") and written is not None and (loop == "colocated") != (written == "colocated")
    if turned and not (inputs.by_flag("rollout_gpus") and inputs.by_flag("trainer_gpus")):
        what = f"the GPUs of the file are those of a loop that is {written}"
        inputs.fault(what, "--mode", "give --rollout-gpus and --trainer-gpus with it")
    gpus = gpus if gpus.known else _left(inputs, loop, trainer)
    if loop == "colocated" and not trainer.known:
        trainer = gpus
    size = _size(inputs, degrees, count, gpus)
    for figure in (count, gpus, trainer):
        if figure.known and figure.number > _MOST:
            inputs.fault(f"{figure.number:g} is more than anybody has", figure.source, "give fewer")
            return None, size, None, None
    instances, pool = _counted(inputs, count, gpus, size)
    trained = _whole(trainer)
    if loop == "colocated" and pool is not None and trained is not None and pool != trained:
        what = f"colocated, yet {pool} GPUs generate and {trained} train: both sides share the same ones"
        inputs.fault(what, trainer.source, "give --rollout-gpus and --trainer-gpus the same number")
    return instances, size, pool, trained


def _left(inputs: Inputs, loop: str, trainer: Figure) -> Figure:
    """GPUs of a fleet that nobody counts: all of them where both sides share, else what the trainer leaves."""
    total, none = inputs.ask("gpus"), absent("rollout_gpus", "--rollout-gpus")
    if not total.known or not (loop == "colocated" or trainer.known):
        return none
    if loop == "colocated":
        return Figure(key="rollout_gpus", value=int(total.number), source=total.source)
    rest = int(matching.remaining_gpus(gpus=total.number, rollout_gpus=trainer.number))
    if rest < 1:
        inputs.fault(f"{trainer.number:g} of {total.number:g} GPUs leave none", trainer.source, "give fewer")
        return none
    left = f"{rest} of {total.number:g} GPUs"
    inputs.notes.append(f"The fleet is what the trainer leaves: {left}. `rlsize fleet` says how many match.")
    return inputs.keep(Figure(key="rollout_gpus", value=rest, source=total.source))


def _size(inputs: Inputs, degrees: Degrees, count: Figure, gpus: Figure) -> float | None:
    """GPUs of an instance: by flag, by its degrees, or the fleet's over its instances, those of the file first."""
    told = inputs.ask("gpus_per_instance")
    spread = None if degrees.tensor is None else degrees.tensor * (degrees.pipeline or 1) * (degrees.data or 1)
    if told.known:
        if spread not in {None, told.number}:
            what = f"an instance of {told.number:g} GPUs is not tensor x pipeline x data parallel = {spread}"
            inputs.fault(what, told.source, "make them agree")
        return told.number
    if inputs.by_flag("gpus_per_instance"):  # it was no number, which is told already
        return None
    if spread is not None:
        where = inputs.place("rollout_tensor_parallel")
        return inputs.keep(Figure(key="gpus_per_instance", value=spread, source=where)).number
    written = inputs.said("placement.instances"), inputs.said("placement.rollout_gpus")
    if all(written):
        where = inputs.where("placement.rollout_gpus")
        return inputs.keep(Figure(key="gpus_per_instance", value=written[1] / written[0], source=where)).number
    return gpus.number / count.number if count.known and gpus.known else None


def _counted(inputs: Inputs, count: Figure, gpus: Figure, size: float | None) -> tuple[int | None, int | None]:
    """Instances and GPUs of the fleet; a flag goes before what the file says of the other."""
    if size is None:
        return _whole(count), _whole(gpus)
    flagged, pooled = inputs.by_flag("instances"), inputs.by_flag("rollout_gpus")
    resized = inputs.by_flag("gpus_per_instance") or inputs.by_flag("rollout_tensor_parallel")
    if count.known and (flagged or not (gpus.known and (pooled or resized))):  # else other instances on the same GPUs
        pool = matching.fleet_gpus(instances=count.number, gpus_per_instance=size)
        if gpus.known and pooled == flagged and abs(pool - gpus.number) > _SLACK * pool:
            what = f"{count.number:g} instances of {size:g} GPUs are not {gpus.number:g} rollout GPUs"
            inputs.fault(what, gpus.source or "--rollout-gpus", "make them agree, or leave one out")
        whole = rounded_down(pool)
        if pool != whole:
            what = f"{count.number:g} instances of {size:g} GPUs are {pool:g} GPUs, no whole number"
            inputs.fault(what, count.source, "give instances that fill whole GPUs")
        inputs.keep(Figure(key="rollout_gpus", value=whole, source=count.source))
        return int(count.number), whole
    if not gpus.known:
        return None, None
    held = matching.instances_of(gpus=gpus.number, gpus_per_instance=size)
    whole = rounded_down(held)
    if abs(held - whole) > _SLACK * max(1.0, held) or whole < 1:  # nothing is rounded
        near = [f"{number * size:g}" for number in (whole, whole + 1) if number >= 1]
        what = f"{gpus.number:g} rollout GPUs are no whole number of instances of {size:g}"
        inputs.fault(what, gpus.source, f"nearest: {' or '.join(near)} rollout GPUs (--rollout-gpus)")
        return None, int(gpus.number)
    inputs.keep(Figure(key="instances", value=whole, source=gpus.source))
    return whole, int(gpus.number)


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
