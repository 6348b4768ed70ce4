"""Small loops to plan: some at measured rates, some of small models whose rates are predicted."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from rlsize.estimates.belief import prior
from rlsize.estimates.engine_work import EngineQuestion
from rlsize.estimates.step_assembly import USUAL_LATE
from rlsize.estimates.step_prediction import STAGES
from rlsize.estimates.train_prediction import TrainQuestion
from rlsize.facts.figure import Figure, absent
from rlsize.facts.layout import Layout
from rlsize.planner.choices import fleet_options, trainer_options
from rlsize.planner.options import FleetOption, LoopProblem, Offer, TrainerOption, TriedDegrees
from rlsize.planner.outlook import Draws, Outlook
from rlsize.planner.space import Space
from rlsize.planner.tables import Rejections
from rlsize.readers.profiles import Catalogue

if TYPE_CHECKING:
    from rlsize.estimates.step_assembly import Loop

LOOPS: tuple[Loop, ...] = ("colocated", "synchronous", "one-step-off", "async", "hybrid")
CATALOGUE = Catalogue()
BELIEF = prior(*STAGES)
JOINT = Draws(0)


class Posed:
    """
    A loop and what may be chosen for it.

    Args:
        outlook: How placements are worked out.
        space: What may be chosen.
    """

    def __init__(self, outlook: Outlook, space: Space) -> None:
        self.outlook = outlook
        self.space = space

    def __repr__(self) -> str:
        """What matters, without the profiles: a model's would fill pages."""
        space = self.space
        told = {name: getattr(space, name) for name in Space.__dataclass_fields__ if name not in {"fleets", "trainers"}}
        own = self.outlook.problem
        numbers = {name: getattr(own, name) for name in LoopProblem.__dataclass_fields__ if name != "model"}
        told |= {name: value.value if isinstance(value, Figure) else value for name, value in numbers.items()}
        told["fleets"] = [(one.name, one.gpus, one.most, one.gpu_hour.value) for one in space.fleets]
        told["trainers"] = [(one.name, one.replica, one.most, one.gpu_hour.value) for one in space.trainers]
        return f"Posed({told})"

    def but(self, **changed: Any) -> Posed:
        """The same with another space."""
        return Posed(self.outlook, replace(self.space, **changed))


def said(key: str, value: float) -> Figure:
    """A number that somebody said."""
    return Figure(key=key, value=value)


def price(key: str, value: float | None) -> Figure:
    """A price; absent where there is none."""
    return absent(key, "--gpu-hour") if value is None else said(key, value)


def fleet(
    rate: float, size: float = 1.0, *, gpu: str = "", hour: float | None = None, most: float | None = None
) -> FleetOption:
    """Instances whose rate is known. [token/s]"""
    return FleetOption(
        name=f"{gpu} {size:g} at {rate:g}",
        gpu=gpu,
        gpus=size,
        layout={},
        engines={},
        rate=said("instance_tokens_per_second", rate),
        gpu_hour=price("rollout_gpu_hour_usd", hour),
        most=most,
    )


def trainer(
    seconds: float, gpus: float = 1.0, *, gpu: str = "", hour: float | None = None, most: float | None = None
) -> TrainerOption:
    """A trainer that takes so long on so many GPUs. [s]"""
    return TrainerOption(
        name=f"{gpu} {seconds:g} s on {gpus:g}",
        gpu=gpu,
        seconds=said("train_seconds", seconds),
        measured_gpus=said("trainer_gpus", gpus),
        gpu_hour=price("trainer_gpu_hour_usd", hour),
        most=most,
    )


def measured(
    fleets: tuple[FleetOption, ...], trainers: tuple[TrainerOption, ...], tokens: float = 1000.0, **more: Any
) -> Posed:
    """
    A loop at measured rates; a batch counts as one sample.

    Args:
        fleets: Ways to build instances.
        trainers: Ways to spread the trainer.
        tokens: Response tokens of a step. [token]
        more: Fields of the loop, and of the space.
    """
    fields = LoopProblem.__dataclass_fields__
    problem = LoopProblem(
        samples=said("samples_per_step", 1.0),
        group_size=said("group_size", 1.0),
        response_tokens=said("response_tokens", tokens),
        **{key: value for key, value in more.items() if key in fields},
    )
    own = {key: value for key, value in more.items() if key not in fields}
    space = Space(fleets=fleets, trainers=trainers, **{"loops": LOOPS, **own})
    return Posed(Outlook(problem=problem, belief=None, seed=0, joint=JOINT), space)


@cache
def fleets_of(model: str, gpu: str, tensor: tuple[int, ...], hour: float | None = None) -> tuple[FleetOption, ...]:
    """Instances that are predicted; 60 % of the memory where GPUs are shared."""
    asked = EngineQuestion(model=CATALOGUE.get("model", model), gpu=CATALOGUE.get("gpu", gpu), layout=Layout())
    offer = Offer(gpu=asked.gpu, gpu_hour=price("rollout_gpu_hour_usd", hour))
    return tuple(
        fleet_options(asked, 0.6, offer, TriedDegrees(rollout_tensor=tensor, rollout_pipeline=(1,)), Rejections())
    )


@cache
def trainers_of(
    model: str, gpu: str, samples: float, tokens: float, degrees: TriedDegrees, hour: float | None = None
) -> tuple[TrainerOption, ...]:
    """Trainers that are predicted."""
    asked = TrainQuestion(
        model=CATALOGUE.get("model", model),
        gpu=CATALOGUE.get("gpu", gpu),
        gpus=1.0,
        sequences=samples,
        tokens=tokens,
        tokens_cv=0.5,
        micro_batch_tokens=8192.0,
        passes=("old_logprob",),
        gradient_bytes=2.0,
    )
    offer = Offer(gpu=asked.gpu, gpu_hour=price("trainer_gpu_hour_usd", hour))
    return tuple(trainer_options(asked, offer, degrees, Rejections()))


def predicted(
    model: str,
    fleets: tuple[FleetOption, ...],
    trainers: tuple[TrainerOption, ...],
    samples: float = 64.0,
    prompt: float = 300.0,
    response: float = 2000.0,
    **more: Any,
) -> Posed:
    """
    A loop of a model.

    Args:
        model: The model.
        fleets: Ways to build instances.
        trainers: Ways to spread the trainer.
        samples: Samples of a step. [1]
        prompt: Mean prompt length. [token]
        response: Mean response length. [token]
        more: Fields of the loop, and of the space.
    """
    fields = LoopProblem.__dataclass_fields__
    problem = LoopProblem(
        model=CATALOGUE.get("model", model),
        samples=said("samples_per_step", samples),
        group_size=said("group_size", 8.0),
        prompt_tokens=said("prompt_tokens", prompt),
        response_tokens=said("response_tokens", response),
        **{"gpus_per_node": 8.0, **{key: value for key, value in more.items() if key in fields}},
    )
    own = {key: value for key, value in more.items() if key not in fields}
    space = Space(fleets=fleets, trainers=trainers, **{"loops": LOOPS, "micro_batches": (8192.0,), **own})
    return Posed(Outlook(problem=problem, belief=BELIEF, seed=0, joint=JOINT), space)


_loops = st.lists(st.sampled_from(LOOPS), min_size=2, max_size=5, unique=True).map(tuple)
_caps = st.sampled_from([(1.0,), (1.0, 2.0), (3.0,)])
_rates = st.floats(10.0, 2000.0)
_hours = st.one_of(st.none(), st.floats(0.1, 9.0))
_kinds = st.sampled_from(["a", "b"])
_counts = st.lists(st.integers(1, 8), min_size=3, max_size=5).map(lambda found: tuple(map(float, found)))
_some = st.integers(0, 5).flatmap(lambda share: _counts if share == 5 else st.just(()))


def _by_name(options: list[Any]) -> list[Any]:
    """One option of each name, which is all that tells options apart."""
    return list({option.name: option for option in options}.values())


@st.composite
def measured_problems(draw: st.DrawFn) -> Posed:
    """Up to a dozen GPUs, alike or of two kinds with stocks and prices of their own."""
    pools = draw(st.booleans())
    prices = draw(st.sampled_from([_hours, st.none(), st.floats(0.1, 9.0)]))

    def own() -> dict[str, Any]:
        found: dict[str, Any] = {"hour": draw(prices)}
        return found | {"gpu": draw(_kinds), "most": float(draw(st.integers(3, 8)))} if pools else found

    fleets = [
        fleet(draw(_rates), draw(st.sampled_from([1.0, 2.0, 0.5, 3.0, 1.0])), **own())
        for _ in range(draw(st.integers(1, 3)))
    ]
    trainers = [
        trainer(draw(st.floats(0.5, 100.0)), float(draw(st.integers(1, 16))), **own())
        for _ in range(draw(st.integers(1, 2)))
    ]
    fleets, trainers = _by_name(fleets), _by_name(trainers)
    node = draw(st.sampled_from([None, None, 4.0, 2.0]))
    optional: dict[str, Any] = {}
    if draw(st.booleans()):
        optional["sync_seconds"] = said("sync_seconds", draw(st.floats(0.0, 20.0)))
    if draw(st.booleans()):
        optional["steps"] = said("steps", 100.0)
    return measured(
        tuple(fleets),
        tuple(trainers),
        draw(st.floats(100.0, 50_000.0)),
        waste=said("waste", draw(st.sampled_from([1.0, 1.3]))),
        headroom=said("headroom", draw(st.sampled_from([1.0, 0.8]))),
        available=said("available_fraction", draw(st.sampled_from([1.0, 0.9]))),
        swap_seconds=said("swap_seconds", draw(st.sampled_from([0.0, 3.0]))),
        sync_every=draw(st.sampled_from([1.0, 4.0])),
        gpus_per_node=node,
        loops=draw(_loops),
        staleness=draw(_caps),
        gpus=None if pools else float(draw(st.integers(4, 10))),
        rollout_gpus=draw(_some),
        trainer_gpus=draw(_some),
        whole_nodes=node is not None and draw(st.integers(0, 3)) == 3,
        **optional,
    )


@st.composite
def predicted_problems(draw: st.DrawFn) -> Posed:
    """A small model on a few GPUs, of one kind or with a fleet of another; where lengths are long, not all fits."""
    model = draw(st.sampled_from(["qwen3-0.6b", "qwen3-1.7b"]))
    kinds = st.sampled_from(["h100-sxm", "l40s"])
    gpu, hour = draw(kinds), draw(st.sampled_from([None, 2.0]))
    pools = draw(st.integers(0, 3)) == 3
    other = draw(kinds) if pools else gpu
    samples, response = draw(st.sampled_from([48.0, 512.0, 16.0])), draw(st.sampled_from([1000.0, 300.0, 4000.0]))
    tensor = draw(st.sampled_from([(1, 2), (1,), (2,), (1, 4)]))
    degrees = TriedDegrees(
        tensor=draw(st.sampled_from([(1, 2), (1,), (2,)])),
        pipeline=draw(st.sampled_from([(1,), (1, 2)])),
        context=(1,),
        expert=(1,),
        recompute=draw(st.sampled_from([("none",), ("full",), ("selective", "full")])),
        offload=draw(st.sampled_from([(), (False, True)])),
        chunked_loss=draw(st.sampled_from([(), (False, True)])),
    )
    fleets = fleets_of(model, other, tensor, None if hour is None else hour / 2)
    trainers = trainers_of(model, gpu, samples, response + 300.0, degrees, hour)
    if pools:
        fleets = tuple(replace(one, most=3.0) for one in fleets)
        trainers = tuple(replace(one, most=4.0) for one in trainers)
    measured_rate = draw(st.integers(0, 4)) == 4
    if measured_rate:
        fleets = tuple(replace(one, rate=said("instance_tokens_per_second", 3000.0)) for one in fleets)
    optional: dict[str, Any] = {}
    if draw(st.booleans()):
        optional["max_tokens"] = Figure(key="max_response_tokens", value=8192.0, provenance="given")
    if draw(st.booleans()):
        optional["late"] = {**USUAL_LATE, "async": "drop"}
    return predicted(
        model,
        fleets,
        trainers,
        samples,
        response=response,
        gpus_per_node=draw(st.sampled_from([4.0, 8.0])),
        loops=draw(st.lists(st.sampled_from(LOOPS), min_size=2, max_size=4, unique=True).map(tuple)),
        staleness=draw(_caps),
        transports=draw(st.sampled_from([("nccl-broadcast",), ("nccl-broadcast", "nccl-per-tensor")])),
        micro_batches=draw(st.sampled_from([(8192.0,), (), (4096.0, 16_384.0)])),
        gpus=None if pools else float(draw(st.integers(3, 6))),
        margin=draw(st.sampled_from([0.05, 0.0, 0.2, 0.35])),
        **optional,
    )
