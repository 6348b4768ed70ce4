"""The space that `rlsize plan` searches: from flags, scenario and budget."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rlsize.commands import flags
from rlsize.commands.plan_limits import limits_of
from rlsize.commands.plan_lists import listed_numbers, listed_words, offers_of, refuse_too_many
from rlsize.facts.memory_margin import MEMORY_MARGIN

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlsize.commands.plan_flags import SearchFlags
    from rlsize.commands.plan_problem import Posed
    from rlsize.estimates.step_assembly import Loop
    from rlsize.facts.figure import Figure
    from rlsize.planner.offers import Degrees, Offer
    from rlsize.planner.options import FleetOption, TrainerOption
    from rlsize.planner.space import Space
    from rlsize.planner.tables import Rejections
    from rlsize.shell.inputs import Inputs

LOOPS: tuple[Loop, ...] = ("colocated", "synchronous", "one-step-off", "async", "hybrid")
_MICRO_BATCHES = (4096.0, 8192.0, 16384.0, 32768.0)
_STALENESS = 2.0
_MOST_STALENESS = 64
_RECOMPUTES = ("none", "selective", "full")


def space_of(inputs: Inputs, said: SearchFlags, problem: Posed, rejected: Rejections) -> Space:
    """
    The space.

    Raises:
        InputError: All that is wrong with what the flags say of it.
    """
    from rlsize.planner.space import Space

    offers = (
        offers_of(inputs, said.rollout_pools, "--rollout-pool"),
        offers_of(inputs, said.trainer_pools, "--trainer-pool"),
    )
    degrees = _degrees(inputs, said)
    loops = listed_words(inputs, said.modes, "--mode", LOOPS)
    micro = listed_numbers(inputs, said.micro_batches, "--micro-batch-tokens", flags.TOKENS)
    margin = inputs.number(
        "memory_margin",
        "--memory-margin",
        said.memory_margin,
        flags.FRACTION_OR_NONE,
        default=MEMORY_MARGIN,
        why="usual margin",
    )
    staleness = _staleness(inputs, said)
    counts = [
        listed_numbers(inputs, text, flag, flags.COUNT)
        for text, flag in ((said.rollout_gpus, "--rollout-gpus"), (said.trainer_gpus, "--trainer-gpus"))
    ]
    limits = limits_of(inputs, said, problem)
    transports = _transports(inputs, said, problem)
    refuse_too_many(inputs, problem.pools.gpus.number, problem.pools.gpus.source)
    inputs.settle()
    stock = problem.pools.gpus.number if any(offers) else None
    fleets = _fleets(problem, offers[0], stock, degrees, rejected)
    trainers = _trainers(problem, offers[1], stock, degrees, rejected)
    return Space(
        fleets=fleets,
        trainers=trainers,
        loops=tuple(loops) or LOOPS,
        staleness=staleness,
        transports=transports,
        micro_batches=_long_enough(problem, micro or _MICRO_BATCHES) if problem.plan is not None else (),
        gpus=None if any(offers) else problem.pools.gpus.number,
        margin=margin.number if margin.known else MEMORY_MARGIN,
        limits=limits,
        rollout_gpus=counts[0],
        trainer_gpus=counts[1],
        whole_nodes=said.whole_nodes,
    )


def _staleness(inputs: Inputs, said: SearchFlags) -> tuple[float, ...]:
    """Caps from 1 to the largest."""
    most = inputs.number(
        "max_staleness",
        "--max-staleness",
        said.max_staleness,
        flags.STALENESS,
        scenario="placement.max_staleness",
        default=_STALENESS,
        why="as stale as most recipes take",
    )
    if not most.known:
        return (1.0,)
    whole = int(most.number)
    if whole > _MOST_STALENESS:
        inputs.fault(f"{most.number:g} is more than the {_MOST_STALENESS} that are searched", most.source, "give less")
    return tuple(float(cap) for cap in range(1, min(whole, _MOST_STALENESS) + 1)) or (1.0,)


def _transports(inputs: Inputs, said: SearchFlags, problem: Posed) -> tuple[str, ...]:
    if said.transports is None and problem.plan is None:
        return ("nccl-broadcast",)  # nothing depends on it where syncs are not predicted
    from rlsize.estimates.sync_prediction import TRANSPORTS

    own = tuple(name for name, kind in TRANSPORTS.items() if not kind.colocated)
    if said.transports == "all":
        return own
    found = listed_words(inputs, said.transports, "--transport", own)
    usual = problem.plan.transport if problem.plan is not None else own[0]
    return tuple(found) or (usual if usual in own else own[0],)


def _fleets(
    problem: Posed, offers: tuple[Offer, ...], stock: float | None, degrees: Degrees, rejected: Rejections
) -> tuple[FleetOption, ...]:
    """Ways to build instances: as measured where their rate is known, else all."""
    if problem.known.rate.known or problem.plan is None:
        return (problem.fleet,)
    from rlsize.commands.predict_step_inputs import SHARED_FRACTION
    from rlsize.planner.choices import fleet_options, larger_fleets
    from rlsize.planner.offers import Offer

    asked = problem.rollout
    if asked is None:
        return (problem.fleet,)
    kinds = offers or (Offer(gpu=asked.gpu, gpu_hour=problem.fleet.gpu_hour, most=stock),)
    priced = [_priced(offer, problem.fleet.gpu_hour) for offer in kinds]
    found: list[FleetOption] = []
    for offer in priced:
        some = list(fleet_options(asked, SHARED_FRACTION, offer, degrees, rejected))
        holds = any(_fits(problem, option) for option in some)
        found += some if holds else [*some, *larger_fleets(asked, SHARED_FRACTION, offer, degrees)]
    return tuple(found)


def _fits(problem: Posed, option: FleetOption) -> bool:
    from rlsize.estimates.loop_memory import fleet_headroom
    from rlsize.planner.room import longest_tokens

    engine = option.engines[False]
    if isinstance(engine, str):
        return False
    central = problem.outlook.central
    return float(fleet_headroom(engine, longest_tokens(central), central.values)) > 0


def _priced(offer: Offer, usual: Figure) -> Offer:
    return offer if offer.gpu_hour.known else replace(offer, gpu_hour=usual)


def _trainers(
    problem: Posed, offers: tuple[Offer, ...], stock: float | None, degrees: Degrees, rejected: Rejections
) -> tuple[TrainerOption, ...]:
    """Ways to spread the trainer: as measured where its time is known, else all."""
    if problem.known.train_seconds.known or problem.plan is None:
        return (problem.trainer,)
    from rlsize.planner.choices import trainer_options
    from rlsize.planner.offers import Offer

    asked = problem.plan.train
    kinds = offers or (Offer(gpu=asked.gpu, gpu_hour=problem.trainer.gpu_hour, most=stock),)
    return tuple(
        option
        for offer in kinds
        for option in trainer_options(asked, _priced(offer, problem.trainer.gpu_hour), degrees, rejected)
    )


def _long_enough(problem: Posed, tokens: Iterable[float]) -> tuple[float, ...]:
    """Micro-batches that hold the longest sequence."""
    from rlsize.planner.room import longest_tokens

    longest = longest_tokens(problem.outlook.central)
    return tuple(sorted({max(float(size), longest) for size in tokens}))


def _degrees(inputs: Inputs, said: SearchFlags) -> Degrees:
    from rlsize.planner.offers import Degrees

    def whole(text: str | None, flag: str) -> tuple[int, ...]:
        return tuple(int(value) for value in listed_numbers(inputs, text, flag, flags.COUNT))

    return Degrees(
        rollout_tensor=whole(said.rollout_tensor, "--rollout-tensor-parallel"),
        rollout_data=whole(said.rollout_data, "--rollout-data-parallel"),
        tensor=whole(said.tensor, "--tensor-parallel"),
        pipeline=whole(said.pipeline, "--pipeline-parallel"),
        context=whole(said.context, "--context-parallel"),
        expert=whole(said.expert, "--expert-parallel"),
        recompute=tuple(listed_words(inputs, said.recompute, "--recompute", _RECOMPUTES)),
    )
