"""The ways to build instances and to spread a trainer that a plan tries, from those that were asked for."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from rlsize.estimates.memory_shape import memory_shape
from rlsize.estimates.model_size import model_size
from rlsize.estimates.rollout_prediction import engine
from rlsize.estimates.trainer_layout import Degrees, divides, model_objections
from rlsize.facts.figure import Figure, absent
from rlsize.facts.records.record import Refused
from rlsize.planner.options import RECOMPUTES, FleetOption, TrainerOption

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rlsize.estimates.engine_work import EngineQuestion
    from rlsize.estimates.rollout_prediction import Replica
    from rlsize.estimates.train_prediction import TrainQuestion
    from rlsize.estimates.trainer_layout import Sharding
    from rlsize.facts.model import Model
    from rlsize.facts.records.record import Layout
    from rlsize.planner.options import Offer, TriedDegrees
    from rlsize.planner.tables import Rejections

POWERS = (1, 2, 4, 8, 16, 32, 64)
SHORT = {"tensor": "tp", "pipeline": "pp", "context": "cp", "expert": "ep", "data": "dp"}
"""How people write degrees of parallelism."""
_STAGES = (1, 2, 4)  # of an instance


def fleet_options(
    asked: EngineQuestion, shared_fraction: float, offer: Offer, degrees: TriedDegrees, rejected: Rejections
) -> Iterator[FleetOption]:
    """
    Ways to build instances on GPUs of one kind: tensor, data and pipeline ranks, within a node and over several.

    Args:
        asked: One instance; its degrees of parallelism do not matter.
        shared_fraction: Share of the memory that its engine takes of GPUs that it shares with a trainer. [1]
        offer: The GPUs.
        degrees: What is tried.
        rejected: Takes what does not divide the model.
    """
    moe = asked.model.architecture.moe is not None
    shape = memory_shape(asked.model, model_size(asked.model).params)
    for tensor in degrees.rollout_tensor or POWERS:
        if not divides(shape, tensor):
            rejected.add("heads", what=f"rollout tp{tensor}")
            continue
        for data in degrees.rollout_data or (POWERS if moe else (1,)):
            for pipeline in degrees.rollout_pipeline or _STAGES:
                size = tensor * data * pipeline
                if size <= (size if offer.most is None else offer.most) and pipeline <= asked.model.architecture.layers:
                    layout = replace(asked.layout, tensor=tensor, data=data, pipeline=pipeline)
                    yield _fleet(asked, shared_fraction, offer, layout)


def _fleet(asked: EngineQuestion, shared_fraction: float, offer: Offer, layout: Layout) -> FleetOption:
    ranks = layout.tensor * layout.data  # engines share experts out over all of them
    placed = replace(asked, layout=replace(layout, expert=ranks if asked.layout.expert > 1 else 1), gpu=offer.gpu)
    fractions = {False: asked.memory_fraction, True: shared_fraction}
    engines = {shared: ready(replace(placed, memory_fraction=share)) for shared, share in fractions.items()}
    return fleet_of(engines, ranks * layout.pipeline, offer)


def ready(question: EngineQuestion) -> Replica | str:
    """The instance, or why there is none."""
    try:
        return engine(question)
    except Refused as refusal:
        return str(refusal)


def fleet_of(
    engines: Mapping[bool, Replica | str],
    size: float,
    offer: Offer,
    rate: Figure = absent("instance_tokens_per_second", "--per-instance"),
) -> FleetOption:
    """
    One way to build instances.

    Args:
        engines: The instance on GPUs of its own (False) and on shared ones (True), or why there is none.
        size: Its GPUs, where engines do not say. [1]
        offer: The GPUs.
        rate: Its rate, where known. [token/s]
    """
    known = next((one for one in engines.values() if not isinstance(one, str)), None)
    layout: dict[str, int] = {}
    if known is not None:
        asked = known.question.layout
        layout = {"tensor": asked.tensor, "pipeline": asked.pipeline, "data": asked.data, "expert": asked.expert}
    words = degrees_text(layout)
    if rate.known and layout and layout["tensor"] * layout["pipeline"] * layout["data"] != size:
        layout, words = {}, f"{size:g} GPU{'' if size == 1 else 's'}"  # the rate is one of another layout, not told
    return FleetOption(
        name=f"{offer.gpu.name} {words}",
        gpu=offer.gpu.name,
        gpus=float(size),
        layout=layout,
        engines=engines,
        rate=rate,
        gpu_hour=offer.gpu_hour,
        most=offer.most,
    )


def degrees_text(layout: Mapping[str, int]) -> str:
    """
    Degrees of parallelism as people write them.

    >>> degrees_text({"tensor": 4, "pipeline": 1, "context": 2})
    'tp4 cp2'
    """
    return " ".join(f"{SHORT[name]}{degree}" for name, degree in layout.items() if degree > 1) or "tp1"


def trainer_options(
    asked: TrainQuestion, offer: Offer, degrees: TriedDegrees, rejected: Rejections
) -> Iterator[TrainerOption]:
    """
    Ways to spread a trainer over GPUs of one kind.

    Args:
        asked: The trainer; its degrees of parallelism do not matter.
        offer: The GPUs.
        degrees: What is tried.
        rejected: Takes what does not divide the model.
    """
    node = int(offer.gpu.specification.gpus_per_node.value)
    within = tuple(power for power in POWERS if power <= node)
    moe = asked.model.architecture.moe is not None
    tried = {
        "tensor": degrees.tensor or within,
        "pipeline": degrees.pipeline or POWERS[:5],
        "context": degrees.context or POWERS[:5],
        "expert": degrees.expert or (POWERS if moe else (1,)),
    }
    placed = replace(asked, gpu=offer.gpu)
    offloads = degrees.offload or (asked.offload,)
    chunks = degrees.chunked_loss or (asked.keeps.chunked_loss,)
    for question, why in trainer_layouts(placed, tried, degrees.recompute or RECOMPUTES, float(node)):
        if why:
            rejected.add(why, what=trainer_name(question))
            continue
        if offer.most is not None and question.replica > offer.most:
            continue
        for offload, chunked in product(offloads, chunks):
            keeps = replace(question.keeps, chunked_loss=chunked)
            yield trainer_of(replace(question, offload=offload, keeps=keeps), offer)


def trainer_of(question: TrainQuestion, offer: Offer) -> TrainerOption:
    """One way to spread a trainer."""
    return TrainerOption(
        name=trainer_name(question),
        gpu=offer.gpu.name,
        question=question,
        gpu_hour=offer.gpu_hour,
        most=offer.most,
    )


def trainer_name(question: TrainQuestion) -> str:
    """How a trainer is spread, in a few words: sharding and degrees of parallelism."""
    named = {name: getattr(question, name) for name in ("tensor", "pipeline", "context", "expert")}
    sharded = {"full": "fsdp", "optimizer": "zero1", "gradients": "zero2", "none": "ddp"}[question.sharding]
    written = " ".join(f"{SHORT[name]}{degree}" for name, degree in named.items() if degree > 1)
    return " ".join(filter(None, [sharded, written]))


def trainer_layouts(
    question: TrainQuestion, degrees: dict[str, tuple[int, ...]], recomputes: Iterable[str], node: float
) -> Iterator[tuple[TrainQuestion, str]]:
    """
    Ways to spread a trainer, each with what rules it out: a key of `REASONS`, or nothing.

    Args:
        question: The trainer.
        degrees: Degrees of tensor, pipeline, context and expert parallelism that are tried.
        recomputes: What backward may compute again.
        node: GPUs of a node, which tensor parallelism stays within.

    Everything is sharded (FSDP) without a pipeline, and the optimizer's states (ZeRO-1) where model parallelism cuts
    the weights, as Megatron does. What the trainer shares as it was asked for is tried too.
    """
    named = ("tensor", "pipeline", "context", "expert")
    for tensor, pipeline, context, expert in product(*(degrees[name] for name in named)):
        if tensor > node:
            continue
        why = ruled_out(question.model, tensor, pipeline, expert)
        cut = replace(question, tensor=tensor, pipeline=pipeline, context=context, expert=expert, shards=None)
        shardings: list[Sharding] = ["full"] if pipeline == 1 else []
        divided, own = tensor * pipeline * expert > 1, question.sharding
        shardings += ["optimizer"] if divided or own == "optimizer" else []
        shardings += [own] if not divided and own not in shardings else []
        for sharding, recompute in product(shardings, recomputes):
            yield replace(cut, sharding=sharding, recompute=recompute), why


def ruled_out(model: Model, tensor: int, pipeline: int, expert: int) -> str:
    """What of a model a layout does not divide, stages that are uneven included; empty where it divides all."""
    shape = memory_shape(model, model_size(model).params)
    for objection in model_objections(shape, Degrees(tensor=tensor, pipeline=pipeline, expert=expert)):
        return objection.reason
    return "layers" if model.architecture.layers % pipeline else ""
