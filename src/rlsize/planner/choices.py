"""The ways to build instances and to spread a trainer that a plan tries, from those that were asked for."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from rlsize.equations import matching, rollout_batch
from rlsize.errors import Refused
from rlsize.estimates.figures import bare, numbers
from rlsize.estimates.loop_memory import headroom_beside_trainer, leaves_margin
from rlsize.estimates.memory_shape import memory_shape
from rlsize.estimates.model_size import model_size
from rlsize.estimates.rollout_prediction import engine, steady
from rlsize.estimates.rollout_question import mean_lengths, why_not
from rlsize.estimates.trainer_layout import Degrees, divides, model_objections
from rlsize.facts.figure import Figure, absent
from rlsize.planner.evaluation import bare_trainer, fitting_step, longest_tokens
from rlsize.planner.options import RECOMPUTES, FleetOption, TrainerOption
from rlsize.planner.rounding import WITHIN, rounded_down
from rlsize.planner.space import misfits, trainer_sizes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rlsize.estimates.engine_work import EngineQuestion
    from rlsize.estimates.rollout_prediction import Replica
    from rlsize.estimates.rollout_question import RolloutQuestion
    from rlsize.estimates.step_assembly import Loop
    from rlsize.estimates.train_prediction import TrainQuestion
    from rlsize.estimates.trainer_layout import Sharding
    from rlsize.facts.layout import Layout
    from rlsize.facts.model import Model
    from rlsize.planner.options import Offer, Placement, TriedDegrees
    from rlsize.planner.outlook import Terms
    from rlsize.planner.tables import Rejections

POWERS = (1, 2, 4, 8, 16, 32, 64)
SHORT = {"tensor": "tp", "pipeline": "pp", "context": "cp", "expert": "ep", "data": "dp"}
"""How people write degrees of parallelism."""
MEMORY_FRACTIONS = (0.9, 0.85, 0.8, 0.75, 0.7, 0.65)
"""Shares of shared GPUs' memory that engines may have, the most first: that of engines that have GPUs of their own."""
_STAGES = (1, 2, 4)  # of an instance

LOOPS: tuple[Loop, ...] = ("colocated", "synchronous", "one-step-off", "async")
"""The ways to lay a loop out in time that are compared."""
_MOST_SPLITS = 40  # that are tried; more are thinned out


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


def fuller(fleets: Iterable[FleetOption], terms: Terms, margin: float) -> Iterator[FleetOption]:
    """
    The same instances on shared GPUs with the most of their memory, where that is more than they have there.

    The most is what leaves the margin beside what engines do not count and what a trainer that has moved out keeps. A
    larger cache makes no step longer but for some parts in a thousand of a batch's end, so what lies between is no
    better than both ends.

    Args:
        fleets: The instances.
        terms: In central numbers.
        margin: Share of a GPU's memory that must stay free. [1]
    """
    longest = longest_tokens(terms)
    for fleet in fleets:
        usual = fleet.ready(shared=True)
        if usual is None:
            continue
        now = usual.question.memory_fraction or 0.0
        tried = (replace(usual.question, memory_fraction=share) for share in MEMORY_FRACTIONS if share > now)
        most = next((one for one in tried if headroom_beside_trainer(one, longest, terms.values) >= margin), None)
        if most is not None:
            yield replace(fleet, engines={True: ready(most)})


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
    keeping = [replace(asked.keeps, chunked_loss=chunked) for chunked in chunks]
    for question, why in trainer_layouts(placed, tried, degrees.recompute or RECOMPUTES, float(node)):
        if why:
            rejected.add(why, what=trainer_name(question))
            continue
        if offer.most is not None and question.replica > offer.most:
            continue
        for offload, keeps in product(offloads, keeping):
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
    the weights, as Megatron does. What the trainer shares as it was asked for is tried too. Tokens that were said of
    passes without backward are those of all that share a sequence: where fewer do, none of these GPUs has more.
    """
    forward = {context: _forward_tokens(question, context) for context in degrees["context"]}
    named = ("tensor", "pipeline", "context", "expert")
    for tensor, pipeline, context, expert in product(*(degrees[name] for name in named)):
        if tensor > node:
            continue
        why = ruled_out(question.model, tensor, pipeline, expert)
        cut = replace(question, tensor=tensor, pipeline=pipeline, context=context, expert=expert, shards=None)
        cut = replace(cut, forward_micro_batch_tokens=forward[context])
        shardings: list[Sharding] = ["full"] if pipeline == 1 else []
        divided, own = tensor * pipeline * expert > 1, question.sharding
        shardings += ["optimizer"] if divided or own == "optimizer" else []
        shardings += [own] if not divided and own not in shardings else []
        for sharding, recompute in product(shardings, recomputes):
            yield replace(cut, sharding=sharding, recompute=recompute), why


def _forward_tokens(question: TrainQuestion, context: int) -> Figure | float | None:
    """Tokens of passes without backward under another context parallelism; where samples are counted, as they are."""
    said = question.forward_micro_batch_tokens
    share = context / bare(question.context)
    if not isinstance(said, Figure) or said.key != "logprob_micro_batch_tokens" or share >= 1.0:
        return said
    return replace(said, value=said.number * share, source="as many on each GPU")


def ruled_out(model: Model, tensor: int, pipeline: int, expert: int) -> str:
    """What of a model a layout does not divide, or leaves no layer for the last stage; empty where it does neither."""
    shape = memory_shape(model, model_size(model).params)
    for objection in model_objections(shape, Degrees(tensor=tensor, pipeline=pipeline, expert=expert)):
        return objection.reason
    layers = model.architecture.layers
    return "" if (pipeline - 1) * -(-layers // pipeline) < layers else "layers"


def quickest_degree(
    question: RolloutQuestion, degrees: Iterable[int], gpus: float, values: Mapping[str, float]
) -> int | None:
    """
    The degree of tensor parallelism that makes most of a fleet's GPUs; of those within 2 % the smallest.

    Each is judged by the response tokens per second of its whole instances over all GPUs of the fleet, the step's
    samples shared out over them; one whose cache does not hold the longest sample does not count.

    Args:
        question: One instance and its load; its own degree does not matter.
        degrees: Those that can deal out the model's heads.
        gpus: GPUs that generate, at most. [1]
        values: Central values of the constants.

    Returns:
        None where no instance fits.

    Raises:
        Refused: A number type that the GPU lacks.
    """
    rates: dict[int, float] = {}
    node = question.engine.gpu.specification.gpus_per_node.value
    for degree in degrees:
        layout = replace(question.engine.layout, tensor=degree)
        one = replace(question, engine=replace(question.engine, layout=layout))
        ready = engine(one.engine)
        size = ready.gpus
        if (degree > node and rates) or size > gpus or why_not(one, values):
            continue
        instances = float(rounded_down(matching.instances_of(gpus=gpus, gpus_per_instance=size)))
        samples = question.samples_per_step.number
        offered = rollout_batch.per_instance(amount=samples, instances=instances)
        found = steady(numbers, ready, offered, mean_lengths(one), values)
        rates[degree] = float(matching.rate_per_gpu(rate=instances * found.rate, gpus=gpus))
    most = max(rates.values(), default=0.0)
    return next((degree for degree in sorted(rates) if rates[degree] >= most * (1 - WITHIN)), None)


def moved(place: Placement, loop: Loop, rollout_gpus: float, trainer_gpus: float) -> Placement:
    """The placement laid out another way, on other GPUs; its instances are whole, and may be none."""
    found = replace(place, loop=loop, trainer_gpus=trainer_gpus)
    ready = None if place.fleet.rate.known else place.fleet.ready(shared=found.shared)
    size = place.fleet.gpus if ready is None else float(ready.gpus)
    return replace(found, fleet=replace(place.fleet, gpus=size), instances=float(rounded_down(rollout_gpus / size)))


def splits(size: float, replica: int, gpus: float, node: float | None) -> tuple[tuple[float, float], ...]:
    """
    Pairs of rollout and trainer GPUs that fill all GPUs with whole instances and whole replicas, but for a rest.

    Args:
        size: GPUs of an instance. [1]
        replica: GPUs of a model replica. [1]
        gpus: All GPUs. [1]
        node: GPUs of a node, by which trainers are sized as in a plan; None for any number of replicas.
    """
    found = []
    for trainer in trainer_sizes(replica, replica if node is None else int(node), gpus, _MOST_SPLITS).tolist():
        rollout = rounded_down((gpus - trainer) / size) * size
        found += [(rollout, trainer)] if rollout >= size else []
    return tuple(found)


def best_split(terms: Terms, place: Placement, gpus: float) -> Placement | None:
    """
    The placement on the split with the shortest central step whose trainer leaves its margin of memory; None for none.

    Args:
        terms: In central numbers.
        place: A placement in two pools; its split does not matter.
        gpus: GPUs of both sides. [1]
    """
    node = None if place.trainer.question is None else terms.problem.gpus_per_node
    usual, every = (splits(place.fleet.gpus, place.trainer.replica, gpus, size) for size in (node, None))
    wrong = misfits(terms.problem, place.trainer, np.array([trainer for _, trainer in usual]))
    dealt = [pair for pair, why in zip(usual, wrong, strict=True) if not why]  # the samples of an update, evenly
    return next((one for tried in (dealt, usual, every) if (one := _quickest(terms, place, tried))), None)


def _quickest(terms: Terms, place: Placement, tried: Iterable[tuple[float, float]]) -> Placement | None:
    longest = longest_tokens(terms)
    best, least = None, float("inf")
    for rollout, trainer in tried:
        one = replace(place, instances=rollout / place.fleet.gpus, trainer_gpus=trainer)
        try:
            seconds = fitting_step(terms, one, longest)
        except Refused:
            continue
        if seconds < least and _roomy(terms, one, longest):
            best, least = one, seconds
    return best


def _roomy(terms: Terms, place: Placement, longest: float) -> bool:
    question = None if place.trainer.seconds.known else bare_trainer(place)
    return question is None or leaves_margin(question, longest, terms.values)


def other_ways(terms: Terms, place: Placement, gpus: float, *, split: bool) -> tuple[Placement, ...]:
    """
    The other ways to run the loop on as many GPUs; one may hold no instance.

    Args:
        terms: In central numbers.
        place: The loop as it is placed.
        gpus: GPUs of both sides.
        split: Whether the split was given: the other ways with two pools have the same; else each has its best.
    """
    found: list[Placement] = []
    for loop in LOOPS:
        if loop == place.loop:
            continue
        if loop == "colocated":
            found.append(moved(place, loop, gpus, gpus))
        elif split:
            found.append(moved(place, loop, place.rollout_gpus, place.trainer_gpus))
        else:
            way = best_split(terms, moved(place, loop, gpus, gpus), gpus)
            found += [way] if way else []
    return tuple(found)
