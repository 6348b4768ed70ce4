"""How the trainer is spread, from flags and scenario: degrees of parallelism that must multiply up to its GPUs."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from rlsize.commands import flags
from rlsize.commands.predict_train_flags import LayoutFlags
from rlsize.estimates.layout_rules import heads_objection, model_objections, rank_objections
from rlsize.estimates.sharding import FULLY_SHARDED, WEIGHT_STAGE, Layout
from rlsize.facts.fields import Quantity
from rlsize.facts.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rlsize.estimates.layout_rules import Objection
    from rlsize.estimates.memory_shape import MemoryShape
    from rlsize.shell.inputs import Inputs

_FLAGS: Mapping[str, str] = MappingProxyType(
    {
        "tensor": "--tensor-parallel",
        "pipeline": "--pipeline-parallel",
        "expert": "--expert-parallel",
        "gpus": "--trainer-gpus",
    }
)
_STAGE = Quantity("count", least=0.0, most=3.0, whole=True)


def trainer_layout(inputs: Inputs, said: LayoutFlags, shape: MemoryShape | None) -> Layout | None:
    """
    The trainer's layout; None where nobody says anything about it.

    Args:
        inputs: Flags, scenario and profiles; faults are noted there.
        said: The flags.
        shape: The policy's layers, where known, to check that degrees divide them.
    """
    degree = _Degrees(inputs)
    fsdp = degree.of("fsdp", "--fsdp", said.fsdp, "fsdp")
    zero = inputs.number("zero_stage", "--zero", said.zero, _STAGE, scenario="trainer.parallelism.zero")
    data = degree.of("data_parallel", "--data-parallel", said.data, "data")
    tensor = degree.of("tensor_parallel", "--tensor-parallel", said.tensor, "tensor")
    pipeline = degree.of("pipeline_parallel", "--pipeline-parallel", said.pipeline, "pipeline")
    context = degree.of("context_parallel", "--context-parallel", said.context, "context")
    expert = degree.of("expert_parallel", "--expert-parallel", said.expert, "expert")
    gpus = inputs.number("trainer_gpus", "--trainer-gpus", said.gpus, flags.COUNT, scenario="placement.trainer_gpus")
    if inputs.faults or not any(f.known for f in (fsdp, zero, data, tensor, pipeline, context, expert, gpus)):
        return None
    layout = Layout(
        tensor_parallel=_or_one(tensor),
        pipeline_parallel=_or_one(pipeline),
        context_parallel=_or_one(context),
        expert_parallel=_or_one(expert),
    )
    ranks = _data_ranks(inputs, layout, data, fsdp, gpus)
    layout = replace(
        layout,
        data_parallel=ranks,
        shards=replace(fsdp if fsdp.known else ranks, key="shards"),
        zero_stage=_stage(inputs, zero, fsdp, data, gpus),
    )
    _check(inputs, layout, gpus)
    if shape is not None:
        _blame(inputs, model_objections(shape, layout.degrees))
    return None if inputs.faults else layout


class _Degrees:
    """Reads degrees of parallelism."""

    def __init__(self, inputs: Inputs) -> None:
        self.inputs = inputs

    def of(self, key: str, flag: str, text: str | None, field: str) -> Figure:
        """One of them."""
        return self.inputs.number(key, flag, text, flags.COUNT, scenario=f"trainer.parallelism.{field}")


def _or_one(figure: Figure) -> Figure:
    if figure.known:
        return figure
    return Figure(key=figure.key, value=1, provenance="default", source="not parallel")


def _data_ranks(inputs: Inputs, layout: Layout, data: Figure, fsdp: Figure, gpus: Figure) -> Figure:
    """Data-parallel ranks: said, or what the trainer's GPUs leave, or those that FSDP shards over."""
    if data.known:
        return data
    if not gpus.known:
        return replace(_or_one(fsdp), key="data_parallel")
    if gpus.number % layout.model_parallel:
        first = next(iter(rank_objections(gpus.number, layout.degrees)))
        inputs.fault(first.what, gpus.source, first.todo)
        return _or_one(data)
    return layout.data_ranks(gpus)


def _stage(inputs: Inputs, zero: Figure, fsdp: Figure, data: Figure, gpus: Figure) -> Figure:
    """The ZeRO stage: said; FSDP where it is named or nothing is said; none for plain data parallelism."""
    if zero.known:
        if fsdp.known and zero.number != WEIGHT_STAGE:
            what = f"ZeRO-{zero.number:g} contradicts --fsdp, which is ZeRO-3"
            inputs.fault(what, zero.source, "give --data-parallel in place of --fsdp")
        if not (fsdp.known or data.known or gpus.known):
            inputs.fault("ZeRO shards over data-parallel ranks, and none are given", zero.source, "add --data-parallel")
        return zero
    if data.known and not fsdp.known:
        return inputs.keep(
            Figure(key="zero_stage", value=0, provenance="default", source="plain data parallelism; --zero shards it")
        )
    return FULLY_SHARDED


def _check(inputs: Inputs, layout: Layout, gpus: Figure) -> None:
    """Degrees that contradict each other."""
    data, shards = int(layout.data_parallel.number), int(layout.shards.number)
    if data % shards:
        inputs.fault(f"FSDP over {shards} does not divide {data} data-parallel ranks", "--fsdp", "make it a divisor")
    if gpus.known and not inputs.faults and round(layout.gpus.number) != gpus.number:
        what = f"the layout takes {layout.gpus.number:g} GPUs, and the trainer has {gpus.number:g}"
        inputs.fault(what, gpus.source, "change one of the degrees, or leave --trainer-gpus out")
    if not inputs.faults:
        shared = replace(layout, data_parallel=layout.shards)  # experts are dealt out to the ranks of one copy
        _blame(inputs, rank_objections(round(shared.gpus.number), layout.degrees))


def _blame(inputs: Inputs, objections: Iterable[Objection]) -> None:
    for objection in objections:
        inputs.fault(objection.what, _FLAGS[objection.degree], objection.todo)


def check_heads(inputs: Inputs, flag: str, degree: int, shape: MemoryShape) -> None:
    """Note a fault where tensor parallelism of that degree cannot deal out the heads."""
    for objection in heads_objection(shape, degree):
        inputs.fault(objection.what, flag, objection.todo)
