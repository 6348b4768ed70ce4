"""
Both sides of a loop, tabulated: every fleet and every trainer of a space, worked out once, in arrays.

A candidate pairs an entry of each, so that its step needs only what both decide together.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import field
from operator import le
from typing import TYPE_CHECKING, Any

import numpy as np

from rlsize.dataclass import dataclass, replace
from rlsize.estimates.step_assembly import REFILLING
from rlsize.planner.evaluation import bare_asked, longest_tokens
from rlsize.planner.options import SHARING, Placement, TrainerOption
from rlsize.planner.space import instance_counts, misfits, trainer_counts
from rlsize.planner.step_parts import FleetParts, fleet_parts, trainer_parts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from rlsize.estimates.figures import Worked
    from rlsize.estimates.generation import Late
    from rlsize.estimates.step_assembly import Loop
    from rlsize.estimates.train_prediction import TrainQuestion
    from rlsize.planner.options import FleetOption
    from rlsize.planner.outlook import Terms
    from rlsize.planner.space import Space

    Array = NDArray[np.float64]
    Kind = tuple[Late, tuple[Loop, float] | None]

_NO_TRAINER = TrainerOption(name="", gpu="")


@dataclass(frozen=True, slots=True, kw_only=True)
class NearMiss:
    """
    The candidate that a constraint left out most narrowly.

    Args:
        reason: The constraint.
        what: The candidate in a few words.
        short: By how much it failed: of memory the share that is lacking, of a limit the share beyond it. [1]
    """

    reason: str
    what: str
    short: float


@dataclass(slots=True)
class Rejections:
    """How many entries or candidates each constraint left out, and the narrowest of them."""

    counts: Counter[str] = field(default_factory=Counter)
    nearest: dict[str, NearMiss] = field(default_factory=dict)

    def copy(self) -> Rejections:
        """The same, to be added to."""
        return Rejections(Counter(self.counts), dict(self.nearest))

    def add(self, reason: str, count: int = 1, what: str = "", short: float | None = None) -> None:
        """Note what a constraint left out."""
        self.counts[reason] += count
        known = self.nearest.get(reason)
        if short is not None and (known is None or short < known.short):
            self.nearest[reason] = NearMiss(reason=reason, what=what, short=short)


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetTable:
    """
    One way to build instances, at every number of them.

    Args:
        fleet: The way.
        instances: Numbers of instances. [1]
        parts: What it takes for a step's samples, by kind of loop.
        headroom: Share of memory beyond the longest sample; None where it is not known. [1]
    """

    fleet: FleetOption
    instances: Array
    parts: dict[Kind, FleetParts]
    headroom: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerTable:
    """
    Every way to spread the trainer over every number of GPUs that fits, by number of GPUs.

    Args:
        options: The way of each entry.
        gpus: GPUs of each entry, ascending. [1]
        micro_batches: Tokens of its micro-batch; 0 as the trainer has them. [token]
        trained: On GPUs of its own and on shared ones, time of the update and of the extra forward passes. [s]
        headroom: Share of memory that is left, where it is known; else 1. [1]
        burdens: How far its layout is from simple. [1]
        counts: Each number of GPUs once.
        starts: The first entry of each.
    """

    options: NDArray[np.object_]
    gpus: Array
    micro_batches: Array
    trained: Array
    headroom: Array
    burdens: Array
    counts: Array
    starts: NDArray[np.intp]

    @property
    def group(self) -> NDArray[np.intp]:
        """The place of each entry's number of GPUs among `counts`."""
        found: NDArray[np.intp] = np.searchsorted(self.counts, self.gpus)
        return found


def kind_of(terms: Terms, loop: Loop, staleness: float) -> Kind:
    """The kind of generation: what becomes of late samples, and of a loop that refills which it is, and its cap."""
    return terms.problem.late_rule(loop), (loop, staleness) if loop in REFILLING else None


def fleet_tables(terms: Terms, space: Space, rejected: Rejections) -> list[FleetTable]:
    """Every way to build instances on GPUs of their own that fits."""
    found = []
    for fleet in space.fleets:
        counts = instance_counts(space, terms.problem, fleet)
        if fleet.shared_only or not len(counts):
            continue
        headroom = checked_headroom(terms, space, fleet, rejected, shared=False)
        if isinstance(headroom, str):
            continue
        apart = (loop for loop in space.loops if loop != "colocated")
        kinds = {kind_of(terms, loop, cap): (loop, cap) for loop in apart for cap in space.staleness}
        parts = {kind: generated(terms, fleet, counts, *way) for kind, way in kinds.items()}
        found.append(FleetTable(fleet=fleet, instances=counts, parts=parts, headroom=headroom))
    return found


def generated(
    terms: Terms, fleet: FleetOption, counts: Array, loop: Loop, cap: float = 1.0, *, shared: bool = False
) -> FleetParts:
    """What a fleet takes at each number of instances."""
    place = Placement(
        loop=loop,
        fleet=fleet,
        instances=counts,
        trainer=_NO_TRAINER,
        trainer_gpus=0.0,
        max_staleness=cap,
    )
    return fleet_parts(terms, place, shared=shared).each(lambda part: np.broadcast_to(part, counts.shape))


def checked_headroom(
    terms: Terms, space: Space, fleet: FleetOption, rejected: Rejections, *, shared: bool
) -> float | str | None:
    """Memory that an instance has beyond its longest sample; None where nobody knows, a word where it does not fit."""
    engine = fleet.ready(shared=shared)
    if engine is None and fleet.rate.known:
        return None
    if engine is None:
        why = str(fleet.engines.get(shared))
        rejected.add("rollout_memory" if "fit" in why else "engine", what=f"{fleet.name}: {why}")
        return "refused"
    from rlsize.estimates.loop_memory import fleet_headroom

    left = float(fleet_headroom(engine, longest_tokens(terms), terms.values))
    if left < space.margin:
        rejected.add("rollout_memory", what=fleet.name, short=space.margin - left)
        return "refused"
    return left


def trainer_tables(terms: Terms, space: Space, rejected: Rejections) -> Iterator[TrainerTable | None]:
    """Every way to spread the trainer that fits, None where none does; then those that a batch is uneven over."""
    layouts: dict[str, list[TrainerOption]] = {}
    for trainer in space.trainers:
        layouts.setdefault(trainer.name, []).append(trainer)
    parts = [part for layout in layouts.values() for part in _entries(terms, space, layout, rejected)]
    for uneven in (False, True):
        some = [part for part in parts if (part["uneven"] == uneven).any()]
        if not some:
            yield None
            continue
        columns: dict[str, Any] = {key: np.concatenate([part[key] for part in some], axis=-1) for key in some[0]}
        able = np.flatnonzero(columns.pop("uneven") == uneven)
        order = able[np.argsort(columns["gpus"][able], kind="stable")]
        columns = {key: column[..., order] for key, column in columns.items()}
        counts, starts = np.unique(columns["gpus"], return_index=True)
        yield TrainerTable(**columns, counts=counts, starts=starts)


def _entries(
    terms: Terms, space: Space, layout: list[TrainerOption], rejected: Rejections
) -> Iterator[dict[str, NDArray[Any]]]:
    """
    One layout of the trainer, over all numbers of GPUs and micro-batches that fit.

    What saves memory makes no step shorter, so that a way is left out where one that saves less fits: unless some limit
    would have it otherwise.
    """
    one = layout[0]
    counts = trainer_counts(space, terms.problem, one)
    why = misfits(terms.problem, one, counts)
    batches = np.array(space.micro_batches or (0.0,)) if not one.seconds.known else np.zeros(1)
    for reason in filter(None, why):
        rejected.add(reason, len(batches))
    open_to = [reason == "" or (space.uneven and reason == "batch") for reason in why]
    counts, even = counts[open_to], np.array([not reason for reason in why])[open_to]
    if not len(counts):
        return
    even = np.repeat(even, len(batches))
    gpus, tokens = (grid.ravel() for grid in np.meshgrid(counts, batches, indexing="ij"))
    saving = sorted(layout, key=lambda trainer: sum(trainer.savings))
    fitting: dict[int, tuple[NDArray[np.bool_], Array]] = {}

    def fits(index: int) -> tuple[NDArray[np.bool_], Array]:
        if index not in fitting:
            left = _headroom(terms, bare_asked(saving[index]), gpus, tokens)
            fitting[index] = left >= space.margin, left
        return fitting[index]

    able, left = fits(len(saving) - 1)
    short = even & ~able
    if short.any():
        place = int(np.argmin(np.where(short, space.margin - left, np.inf)))
        narrow = f"{one.name} on {gpus[place]:g} GPUs"
        rejected.add("trainer_memory", int(short.sum()), narrow, float(space.margin - left[place]))
    covered: dict[tuple[int, ...], NDArray[np.bool_]] = {}
    for index, trainer in enumerate(saving):
        before = [known for less, known in covered.items() if all(map(le, less, trainer.savings))]
        done = np.logical_or.reduce(before) if before and space.quickest_counts else np.zeros(len(gpus), dtype=bool)
        open_ = able & ~done
        own = open_ & fits(index)[0] if open_.any() else open_
        covered[trainer.savings] = done | own
        if own.any():
            part = _worked_out(terms, trainer, gpus[own], tokens[own], fits(index)[1][own])
            yield part | {"uneven": ~even[own]}


def _worked_out(
    terms: Terms, trainer: TrainerOption, gpus: Array, tokens: Array, headroom: Array
) -> dict[str, NDArray[Any]]:
    parts = trainer_parts(terms, with_micro_batch(trainer, tokens), gpus)
    return {
        "options": np.full(len(gpus), trainer, dtype=object),
        "gpus": gpus,
        "micro_batches": tokens,
        "trained": np.array([[_spread(part, gpus) for part in parts[shared]] for shared in (False, True)]),
        "headroom": headroom,
        "burdens": np.full(len(gpus), trainer.burden),
    }


def with_micro_batch(trainer: TrainerOption, tokens: Worked) -> TrainerOption:
    """The same with micro-batches of so many tokens; 0 leaves them as they are."""
    if trainer.question is None or not np.any(tokens):
        return trainer
    return replace(trainer, question=_packed(trainer.question, tokens))


def _packed(question: TrainQuestion, tokens: Worked) -> TrainQuestion:
    """The same with micro-batches of so many tokens, however many samples they were said to have."""
    return replace(question, micro_batch_tokens=tokens, keeps=replace(question.keeps, samples=None))


def _headroom(terms: Terms, asked: TrainQuestion | None, gpus: Array, tokens: Array) -> Array:
    """Share of memory that is left at each entry; all where no model is known."""
    if asked is None:
        return np.ones_like(gpus)
    from rlsize.estimates.loop_memory import bare_trainer_memory, headroom_at

    question = replace(_packed(asked, tokens) if tokens.any() else asked, gpus=gpus)
    held = bare_trainer_memory(question, longest_tokens(terms), terms.values)
    return _spread(headroom_at(question, held.peak), gpus)


def _spread(value: Worked, entries: Array) -> Array:
    """One value for each entry."""
    return np.asarray(np.broadcast_to(np.asarray(value, dtype=float), entries.shape))


WHOLE = 1e-9
"""Of an instance: what is lacking by rounding only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """
    One way to build instances on the GPUs of every trainer.

    Args:
        instances: Instances that the GPUs of each trainer make; 0 where they make none.
        rollout_left: Share of memory beyond the longest sample; None where nobody knows. [1]
    """

    instances: Array
    rollout_left: float | None


def sharings(terms: Terms, space: Space, trainers: TrainerTable, rejected: Rejections) -> dict[int, Sharing]:
    """The ways to build instances that can share GPUs with these trainers, by the identity of the way."""
    if SHARING.isdisjoint(space.loops):
        return {}
    kind = trainers.options[0].gpu
    alike = [fleet for fleet in space.fleets if fleet.gpu == kind]
    found = {id(fleet): _sharing(terms, space, trainers, fleet, rejected) for fleet in alike}
    return {key: one for key, one in found.items() if one is not None}


def _sharing(
    terms: Terms, space: Space, trainers: TrainerTable, fleet: FleetOption, rejected: Rejections
) -> Sharing | None:
    """
    One way; None where an instance does not fit.

    Sides that share GPUs have their memory in turn: the trainer's states are moved off while engines generate, which is
    part of what a step's overhead and change-over hold. 21 of 28 published loops could not run if they stayed.
    """
    left = checked_headroom(terms, space, fleet, rejected, shared=True)
    if isinstance(left, str) or _crowded(terms, fleet, rejected):
        return None
    return Sharing(instances=np.floor(trainers.gpus / fleet.gpus + WHOLE), rollout_left=left)


def _crowded(terms: Terms, fleet: FleetOption, rejected: Rejections) -> bool:
    """Whether an instance's share of shared GPUs leaves too little for what it does not count."""
    engine = fleet.ready(shared=True)
    if engine is None or fleet.rate.known or fleet.shared_only:  # whose share was chosen to fit
        return False
    from rlsize.estimates.loop_memory import headroom_beside_trainer

    left = headroom_beside_trainer(engine.question, longest_tokens(terms), terms.values)
    if left < 0.0:
        rejected.add("rollout_memory", what=fleet.name, short=-left)
    return left < 0.0
