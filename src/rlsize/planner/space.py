"""The space that a plan is searched in: its choices, and what is left out before anything is worked out."""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm
from typing import TYPE_CHECKING

import numpy as np

from rlsize.equations import planning, train_step
from rlsize.facts.headroom import MEMORY_MARGIN
from rlsize.planner.rounding import rounded_down

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rlsize.estimates.step_assembly import Loop
    from rlsize.estimates.train_prediction import TrainQuestion
    from rlsize.planner.options import FleetOption, LoopProblem, TrainerOption

    Array = NDArray[np.float64]

REASONS = {
    "heads": "tensor parallelism does not divide the heads",
    "layers": "pipeline stages would have no layer left for the last",
    "experts": "expert parallelism does not divide the experts",
    "ranks": "the GPUs do not make whole model replicas or expert groups",
    "batch": "the samples of an optimizer update do not divide over the replicas",
    "nodes": "instances would lie over the border of a node",
    "rollout_memory": "an instance does not hold its weights and the longest sample",
    "trainer_memory": "the trainer's peak is more than its memory less the margin",
    "room": "beside a trainer that fits, the GPUs hold no instance",
    "engine": "the engine cannot run so",
    "framework": "the framework cannot run the trainer's layout",
}
"""What leaves a candidate out, before limits."""


_FALLING = frozenset(
    {"step_seconds", "cost_per_step_usd", "gpu_hours_per_step", "run_seconds", "cost_per_run_usd", "gpus"}
)
_RISING = frozenset({"steps_per_day", "loop_tokens_per_second", "loop_tokens_per_gpu_second"})
"""Results that fall, or rise, as a step becomes shorter, or stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """
    A limit on a result.

    Args:
        key: The result.
        value: The limit, in its base unit.
        least: Whether it is a lower limit.
        source: Who says so.
    """

    key: str
    value: float
    least: bool = False
    source: str = ""


def keeps(limit: Limit, value: float) -> bool:
    """Whether a result keeps a limit, to the last digit."""
    slack = 1e-9 * (limit.value or 1.0)
    return value >= limit.value - slack if limit.least else value <= limit.value + slack


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """
    What may be chosen.

    Args:
        fleets: Ways to build instances.
        trainers: Ways to spread the trainer.
        loops: Ways to lay both out in time.
        staleness: Staleness caps of loops that refill. [1]
        transports: Classes of weight sync.
        micro_batches: Tokens of a micro-batch; empty to take them as the trainer has them. [token]
        gpus: GPUs of both pools together; None where each kind has a number of its own. [1]
        margin: Share of memory that must stay free on both sides. [1]
        held: Share of it that engines keep on GPUs that they share while the trainer works. [1]
        limits: Limits on results.
        rollout_gpus: The only numbers of rollout GPUs that may be; all where empty.
        trainer_gpus: The only numbers of trainer GPUs that may be; all where empty.
        whole_nodes: Whether each pool takes whole nodes.
        fleets_taken: GPUs that a fleet apart may have where the framework runs it; None for any number.
        sums_taken: GPUs that both pools may have together where the framework runs them; None for any number.
        whole_shares: Whether a micro-batch is all that a replica has of an update, whatever `micro_batches` says.
        uneven: Whether trainers over whose replicas the batch does not divide are worked out too, beside the space.
    """

    fleets: tuple[FleetOption, ...]
    trainers: tuple[TrainerOption, ...]
    loops: tuple[Loop, ...]
    staleness: tuple[float, ...] = (1.0,)
    transports: tuple[str, ...] = ("nccl-broadcast",)
    micro_batches: tuple[float, ...] = ()
    gpus: float | None = None
    margin: float = MEMORY_MARGIN
    held: float = 0.0
    limits: tuple[Limit, ...] = ()
    rollout_gpus: tuple[float, ...] = ()
    trainer_gpus: tuple[float, ...] = ()
    whole_nodes: bool = False
    fleets_taken: frozenset[float] | None = None
    sums_taken: frozenset[float] | None = None
    whole_shares: bool = False
    uneven: bool = False

    @property
    def trainer_margin(self) -> float:
        """Share of memory that a trainer must leave, wherever it works. [1]"""
        return self.shared_margin if set(self.loops) == {"colocated"} else self.margin

    @property
    def shared_margin(self) -> float:
        """Share of memory that a trainer must leave where engines have the same GPUs. [1]"""
        return self.margin + self.held

    @property
    def quickest_counts(self) -> bool:
        """Whether no limit can be kept by a slower step alone."""
        return all(limit.key in (_RISING if limit.least else _FALLING) for limit in self.limits)

    @property
    def priced(self) -> bool:
        """Whether all prices are known, so that cost is in dollars."""
        fleets = self.fleets if set(self.loops) != {"colocated"} else ()  # who shares GPUs pays for them once
        return all(trainer.gpu_hour.known for trainer in self.trainers) and all(one.gpu_hour.known for one in fleets)

    def most(self, option: FleetOption | TrainerOption) -> float:
        """GPUs that an option may take."""
        own = option.most
        if self.gpus is None:
            return own or 0.0
        return self.gpus if own is None else min(own, self.gpus)

    def together(self, fleet: FleetOption, trainer: TrainerOption) -> float | None:
        """GPUs that both sides share out between them; None where each draws on a stock of its own."""
        return self.gpus if fleet.gpu == trainer.gpu or (fleet.most is None and trainer.most is None) else None


def instance_counts(space: Space, problem: LoopProblem, fleet: FleetOption) -> Array:
    """Numbers of instances that are tried, from one up to all that the GPUs hold."""
    most = rounded_down(space.most(fleet) / fleet.gpus)
    found = np.arange(1.0, most + 1.0)
    if space.rollout_gpus:
        found = found[np.isin(found * fleet.gpus, space.rollout_gpus)]
    if space.fleets_taken is not None:
        found = found[np.isin(found * fleet.gpus, [*space.fleets_taken])]
    if space.whole_nodes and problem.gpus_per_node:
        found = found[(found * fleet.gpus) % problem.gpus_per_node == 0]
    return found


def trainer_counts(space: Space, problem: LoopProblem, trainer: TrainerOption) -> Array:
    """Numbers of trainer GPUs that are tried: without nodes, and without a layout, every number."""
    most, unit, node = space.most(trainer), trainer.replica, problem.gpus_per_node
    if node is None or (trainer.question is None and not space.whole_nodes):
        found = np.arange(float(unit), most + 1.0, float(unit))
    elif space.whole_nodes:
        step = float(lcm(unit, int(node)))
        found = np.arange(step, most + 1.0, step)
    else:
        found = trainer_sizes(unit, int(node), most)
    return found[np.isin(found, space.trainer_gpus)] if space.trainer_gpus else found


def trainer_sizes(replica: int, node: int, gpus: float, most: float = np.inf) -> Array:
    """
    Numbers of GPUs that a trainer takes: any of one node, as people do who have no more; of several, parts that divide
    a node, then whole nodes.

    Args:
        replica: GPUs of a model replica. [1]
        node: GPUs of a node. [1]
        gpus: All GPUs that there are. [1]
        most: Numbers of whole nodes that are told, thinned out evenly where there are more. [1]

    >>> trainer_sizes(2, 8, 8).tolist(), trainer_sizes(2, 8, 24).tolist()
    ([2.0, 4.0, 6.0, 8.0], [2.0, 4.0, 8.0, 16.0, 24.0])
    """
    parts = (part for part in range(replica, node, replica) if gpus <= node or node % part == 0)
    step = float(lcm(replica, node))
    step *= max(1.0, np.ceil(gpus / step / most))
    found = np.array([*map(float, parts), *np.arange(step, gpus + 1.0, step)])
    return found[found <= gpus]


def update_samples(problem: LoopProblem, asked: TrainQuestion) -> float:
    """Samples of an optimizer update."""
    steps = asked.optimizer_steps
    return float(
        train_step.model_replicas(gpus=problem.samples.number, gpus_per_replica=getattr(steps, "number", steps))
    )


def misfits(problem: LoopProblem, trainer: TrainerOption, gpus: Array) -> list[str]:
    """Why a trainer cannot be spread over each number of GPUs: a key of `REASONS`; empty where it can."""
    asked = trainer.question
    if asked is None or trainer.seconds.known:
        return [""] * len(gpus)
    from rlsize.estimates.train_prediction import objections

    if any(objections(asked, gpus)):
        return ["ranks"] * len(gpus)
    replicas = train_step.model_replicas(gpus=gpus, gpus_per_replica=asked.replica)
    whole = (gpus >= 1) & (gpus % asked.replica == 0) & (gpus / asked.pipeline % asked.expert == 0)
    even = update_samples(problem, asked) % np.maximum(replicas, 1.0) == 0
    return ["" if fits else "batch" if dealt else "ranks" for dealt, fits in zip(whole, whole & even, strict=True)]


def misasked(space: Space, problem: LoopProblem) -> str:
    """Why the numbers of GPUs that were asked for make no plan, whatever the layout; empty where they might."""
    both = space.rollout_gpus and space.trainer_gpus and set(space.loops) != {"colocated"}
    if both and space.gpus is not None and min(space.rollout_gpus) + min(space.trainer_gpus) > space.gpus:
        asked = f"{min(space.rollout_gpus):g} rollout GPUs and {min(space.trainer_gpus):g} trainer GPUs"
        return f"{asked} are more than the {space.gpus:g} that there are"
    if space.trainer_gpus and not any(len(trainer_counts(space, problem, one)) for one in space.trainers):
        asked = " or ".join(f"{one:g}" for one in space.trainer_gpus)
        return f"a trainer takes whole nodes, or a part that divides one, and as many GPUs as there are: not {asked}"
    if space.rollout_gpus and not any(len(instance_counts(space, problem, one)) for one in space.fleets):
        asked = " or ".join(f"{one:g}" for one in space.rollout_gpus)
        return f"no size of an instance makes a fleet of {asked} rollout GPUs"
    return ""


def packed(space: Space, problem: LoopProblem, fleet: FleetOption, trainer: TrainerOption, gpus: Array) -> Array:
    """Most instances that there is room for beside a trainer, for each of its GPU counts."""
    stock = space.together(fleet, trainer)
    node = problem.gpus_per_node
    total = stock if stock is not None else space.most(fleet)
    beside = gpus if stock is not None else np.zeros_like(gpus)
    if node is None or fleet.gpus <= 1:
        return np.floor((total - beside) / fleet.gpus + 1e-9)
    return np.asarray(
        planning.instances_in_nodes(
            gpus=total, trainer_gpus=beside, gpus_per_node=node, gpus_per_instance=np.asarray(fleet.gpus)
        )
    )
