"""
Both sides of a loop, tabulated: every fleet and every trainer of a space, worked out once, in arrays.

A candidate pairs an entry of each, so that its step needs only what both decide together.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby, pairwise
from operator import itemgetter, le
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rlsize.estimates.figures import entries
from rlsize.estimates.step_assembly import REFILLING
from rlsize.estimates.trainer_layout import Degrees
from rlsize.facts.layout import Layout
from rlsize.planner.evaluation import bare_asked, longest_tokens
from rlsize.planner.options import SHARING, Placement, TrainerOption
from rlsize.planner.space import instance_counts, misfits, trainer_counts, update_samples
from rlsize.planner.step_parts import FleetParts, fleet_parts, ready_engine, trainer_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from rlsize.estimates.figures import Worked
    from rlsize.estimates.generation import Late
    from rlsize.estimates.rollout_prediction import Replica
    from rlsize.estimates.step_assembly import Loop
    from rlsize.estimates.train_prediction import TrainQuestion
    from rlsize.planner.options import FleetOption
    from rlsize.planner.outlook import Terms
    from rlsize.planner.space import Space

    Array = NDArray[np.float64]
    Kind = tuple[Late, tuple[Loop, float] | None]

_STACKED = ("layout", "memory_fraction")  # what instances may differ in that stand together
_NO_TRAINER = TrainerOption(name="", gpu="")
_TRAINERS = 4096  # entries that are worked out at once
_FLEETS = 512  # likewise; each has points of its own, at which its samples end


class NearMiss(NamedTuple):
    """
    The candidate that a constraint left out most narrowly.

    Args:
        what: The candidate in a few words.
        short: By how much it failed: of memory the share that is lacking, of a limit the share beyond it. [1]
    """

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
            self.nearest[reason] = NearMiss(what, short)


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetTable:
    """
    One way to build instances, at every number of them.

    Args:
        fleet: The way.
        instances: Numbers of instances. [1]
        headroom: Share of memory beyond the longest sample; None where it is not known. [1]
        parts: What it takes for a step's samples, by kind of loop, where that was asked for.
    """

    fleet: FleetOption
    instances: Array
    headroom: float | None
    parts: dict[Kind, FleetParts] = field(default_factory=dict)


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
        group: The place of each entry's number of GPUs among these.
        starts: The first entry of each.
        sizes: How many entries each has, with those that another is as good as. [1]
    """

    options: NDArray[np.object_]
    gpus: Array
    micro_batches: Array
    trained: Array
    headroom: Array
    burdens: Array
    counts: Array
    group: NDArray[np.intp]
    starts: NDArray[np.intp]
    sizes: NDArray[np.intp]

    def some(self, kept: NDArray[np.intp]) -> TrainerTable:
        """Some of the entries, by their places, each number of GPUs as large as it is among all."""
        counts, starts = np.unique(self.gpus[kept], return_index=True)
        return TrainerTable(
            options=self.options[kept],
            gpus=self.gpus[kept],
            micro_batches=self.micro_batches[kept],
            trained=self.trained[..., kept],
            headroom=self.headroom[kept],
            burdens=self.burdens[kept],
            counts=counts,
            group=np.searchsorted(counts, self.gpus[kept]),
            starts=starts,
            sizes=self.sizes[self.group[kept][starts]],
        )


def kind_of(terms: Terms, loop: Loop, staleness: float) -> Kind:
    """The kind of generation: what becomes of late samples, and of a loop that refills which it is, and its cap."""
    return terms.problem.late_rule(loop), (loop, staleness) if loop in REFILLING else None


def fleet_tables(terms: Terms, space: Space, rejected: Rejections) -> list[FleetTable]:
    """Every way to build instances on GPUs of their own that fits."""
    found: list[tuple[FleetOption, Array, float | None]] = []
    for fleet in space.fleets:
        counts = instance_counts(space, terms.problem, fleet)
        if fleet.shared_only or not len(counts):
            continue
        headroom = checked_headroom(terms, space, fleet, rejected, shared=False)
        if not isinstance(headroom, str):
            found.append((fleet, counts, headroom))
    return [FleetTable(fleet=fleet, instances=counts, headroom=headroom) for fleet, counts, headroom in found]


def parts_of(terms: Terms, fleets: Sequence[FleetTable], loop: Loop, cap: float) -> None:
    """Note what each fleet takes in a loop, which others of its kind ask again."""
    kind = kind_of(terms, loop, cap)
    asked = [table for table in fleets if kind not in table.parts]
    made = generated(terms, [(table.fleet, table.instances) for table in asked], loop, cap)
    for table, parts in zip(asked, made, strict=True):
        table.parts[kind] = parts


def generated(
    terms: Terms, fleets: Sequence[tuple[FleetOption, Array]], loop: Loop, cap: float = 1.0, *, shared: bool = False
) -> list[FleetParts]:
    """
    What fleets take, each at some numbers of instances; those that are worked out in the same way stand together.

    What samples wait for outside the GPUs is worked out in rounds until all entries agree, so there each is by itself.
    """
    alike: dict[object, list[int]] = {}
    for place, (fleet, _) in enumerate(fleets):
        alone = fleet.rate.known or terms.problem.agents is not None
        engine = None if alone else fleet.ready(shared=shared)
        alike.setdefault(id(fleet) if engine is None else _agreed(engine), []).append(place)
    found: dict[int, FleetParts] = {}
    for places in alike.values():
        for block in _blocks([len(fleets[place][1]) for place in places], _FLEETS):
            some = [fleets[places[index]] for index in block]
            counts = np.concatenate([own for _, own in some])
            whole = Placement(
                loop=loop,
                fleet=_together(some, shared=shared),
                instances=counts,
                trainer=_NO_TRAINER,
                trainer_gpus=0.0,
                max_staleness=cap,
            )
            made = fleet_parts(terms, whole, shared=shared).each(partial(_spread, entries=counts))
            ends = np.cumsum([len(own) for _, own in some]).tolist()
            for index, first, last in zip(block, [0, *ends], ends, strict=False):
                found[places[index]] = made.each(itemgetter(slice(first, last)))
    return [found[place] for place in range(len(fleets))]


def _agreed(engine: Replica) -> tuple[object, ...]:
    """What instances agree in that may stand together."""
    asked = engine.question
    known = (id(value) for name, value in entries(asked).items() if name not in _STACKED)
    return (engine.factors, engine.exchange, asked.memory_fraction is None, *known)


def _together(fleets: Sequence[tuple[FleetOption, Array]], *, shared: bool) -> FleetOption:
    """One fleet for several, whose engine has the numbers of each at as many entries as that has of instances."""
    first, sizes = fleets[0][0], [len(counts) for _, counts in fleets]
    if len(fleets) == 1:
        return first

    def each(values: Sequence[Worked]) -> Worked:
        alike = all(value == values[0] for value in values)
        return values[0] if alike else np.repeat(np.array(values, dtype=float), sizes)

    engines = [ready_engine(fleet, shared=shared) for fleet, _ in fleets]
    one, asked = engines[0], [engine.question for engine in engines]
    layouts = [entries(question.layout) for question in asked]
    layout = Layout(**{name: each([own[name] for own in layouts]) for name in layouts[0]})
    question = replace(asked[0], layout=layout, memory_fraction=each([question.memory_fraction for question in asked]))
    numbers = {name: each([engine.numbers[name] for engine in engines]) for name in one.numbers}
    return replace(first, engines={shared: replace(one, question=question, numbers=numbers)})


def _blocks(sizes: Sequence[int], most: int) -> Iterator[list[int]]:
    """Places of what follows each other and has so many entries together, if not one alone has more."""
    ends = np.cumsum(sizes).tolist()
    for _, block in groupby(range(len(sizes)), key=lambda place: ends[place] // most):
        yield list(block)


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
    parts = list(_entries(terms, space, layouts.values(), rejected))
    for uneven in (False, True):
        some = [part for part in parts if (part["uneven"] == uneven).any()]
        if not some:
            yield None
            continue
        columns: dict[str, Any] = {key: np.concatenate([part[key] for part in some], axis=-1) for key in some[0]}
        able = np.flatnonzero(columns.pop("uneven") == uneven)
        order = able[np.argsort(columns["gpus"][able], kind="stable")]
        columns = {key: column[..., order] for key, column in columns.items()}
        counts, sizes = np.unique(columns["gpus"], return_counts=True)
        if not space.limits and not any(terms.problem.late_rule(loop) == "drop" for loop in space.loops):
            kept = _undominated(columns, columns["headroom"] >= space.shared_margin)
            columns = {key: column[..., kept] for key, column in columns.items()}
        places = {
            "group": np.searchsorted(counts, columns["gpus"]),
            "starts": np.searchsorted(columns["gpus"], counts),
        }
        yield TrainerTable(**columns, **places, counts=counts, sizes=sizes)


def _undominated(columns: Mapping[str, NDArray[Any]], shares: NDArray[np.bool_]) -> NDArray[np.intp]:
    """
    The entries of which no other on as many GPUs, as usual as it, is as quick in all that it does and as simple.

    One that leaves engines room on its GPUs is beaten by such alone.

    A step is no shorter for a trainer that takes longer, as long as nothing is dropped as too late, so that the others
    are the best of nothing where there is no limit; of equals the first is kept.
    """
    usual = np.array([not option.rare for option in columns["options"]])
    what = np.vstack([columns["trained"].reshape(-1, len(usual)), columns["burdens"]])
    ends = [*(np.flatnonzero(np.diff(columns["gpus"])) + 1).tolist(), len(usual)]
    kept: list[int] = []
    for start, end in pairwise([0, *ends]):
        front: list[int] = []
        for place in (start + np.lexsort(what[::-1, start:end])).tolist():
            beaten = what[:, front] <= what[:, [place]]
            if not (beaten.all(axis=0) & (usual[front] == usual[place]) & (shares[front] >= shares[place])).any():
                front.append(place)
        kept += sorted(front)
    return np.array(kept, dtype=np.intp)


@dataclass(slots=True)
class _Layout:
    """
    One layout of the trainer, over all numbers of GPUs and micro-batches that are open to it.

    Args:
        saving: Its ways, those that save the least memory first.
        why: What rules out each number of GPUs, and micro-batches that are tried; empty for nothing.
        tried: Micro-batches that are tried of each. [1]
        gpus: GPUs of each entry. [1]
        tokens: Tokens of its micro-batch; 0 as the trainer has them. [token]
        even: Whether a batch is even over it.
        left: Share of memory that each way leaves, as far as it was asked for. [1]
        covered: Where a way that saves so much fits, or one that saves less.
        own: The entries of each way that are kept.
    """

    saving: list[TrainerOption]
    why: list[str]
    tried: int
    gpus: Array
    tokens: Array
    even: NDArray[np.bool_]
    left: dict[int, Array] = field(default_factory=dict)
    covered: dict[tuple[int, ...], NDArray[np.bool_]] = field(default_factory=dict)
    own: dict[int, NDArray[np.bool_]] = field(default_factory=dict)


class _Way(NamedTuple):
    """A trainer over some numbers of GPUs, with micro-batches of some tokens."""

    trainer: TrainerOption
    gpus: Array
    tokens: Array


def _layout(terms: Terms, space: Space, layout: list[TrainerOption]) -> _Layout:
    one = layout[0]
    counts = trainer_counts(space, terms.problem, one)
    why = misfits(terms.problem, one, counts)
    batches = np.array(space.micro_batches or (0.0,)) if not one.seconds.known else np.zeros(1)
    open_to = [reason == "" or (space.uneven and reason == "batch") for reason in why]
    even = np.array([not reason for reason in why], dtype=bool)[open_to]
    asked = None if one.seconds.known else one.question
    if space.whole_shares:
        batches = np.zeros(1)
    gpus, tokens = (grid.ravel() for grid in np.meshgrid(counts[open_to], batches, indexing="ij"))
    if space.whole_shares and asked is not None:
        tokens = longest_tokens(terms) * update_samples(terms.problem, asked) * asked.replica / gpus
    saving = sorted(layout, key=lambda trainer: sum(trainer.savings))
    return _Layout(saving, why, len(batches), gpus, tokens, np.repeat(even, len(batches)))


def _entries(
    terms: Terms, space: Space, layouts: Iterable[list[TrainerOption]], rejected: Rejections
) -> Iterator[dict[str, NDArray[Any]]]:
    """
    Layouts of the trainer, each over all numbers of GPUs and micro-batches that fit.

    What saves memory makes no step shorter, so that a way is left out where one that saves less fits: unless some limit
    would have it otherwise.
    """
    found = [_layout(terms, space, layout) for layout in layouts]
    open_to = [one for one in found if len(one.gpus)]
    _ask_memory(terms, open_to, -1)
    for one in found:
        for reason in filter(None, one.why):
            rejected.add(reason, one.tried)
        if len(one.gpus):
            _note_short(space, one, rejected)
    for index in range(max((len(one.saving) for one in open_to), default=0)):
        _choose(terms, space, [one for one in open_to if index < len(one.saving)], index)
    kept = [(one, index, own) for one in open_to for index, own in one.own.items()]
    ways = [_Way(one.saving[index], one.gpus[own], one.tokens[own]) for one, index, own in kept]
    for way, (one, index, own), took in zip(ways, kept, _trained(terms, ways), strict=True):
        yield {
            "options": np.full(len(way.gpus), way.trainer, dtype=object),
            "gpus": way.gpus,
            "micro_batches": way.tokens,
            "trained": took,
            "headroom": one.left[index][own],
            "burdens": np.full(len(way.gpus), way.trainer.burden),
            "uneven": ~one.even[own],
        }


def _choose(terms: Terms, space: Space, layouts: list[_Layout], index: int) -> None:
    """The entries of one way of each layout: where it fits, and none that saves less does."""
    waiting = []
    for one in layouts:
        savings = one.saving[index].savings
        before = [known for less, known in one.covered.items() if all(map(le, less, savings))]
        done = np.logical_or.reduce(before) if before and space.quickest_counts else np.zeros(len(one.gpus), dtype=bool)
        able = (one.left[len(one.saving) - 1] >= space.trainer_margin) & ~done
        one.covered[savings] = done
        waiting += [(one, able)] if able.any() else []
    _ask_memory(terms, [one for one, _ in waiting if index not in one.left], index)
    for one, able in waiting:
        own = able & (one.left[index] >= space.trainer_margin)
        one.covered[one.saving[index].savings] |= own & (one.left[index] >= space.shared_margin)
        if own.any():
            one.own[index] = own


def _ask_memory(terms: Terms, layouts: list[_Layout], index: int) -> None:
    """Ask what one way of each layout leaves of the memory."""
    lefts = _headrooms(terms, [_Way(one.saving[index], one.gpus, one.tokens) for one in layouts])
    for one, left in zip(layouts, lefts, strict=True):
        one.left[index % len(one.saving)] = left


def _note_short(space: Space, layout: _Layout, rejected: Rejections) -> None:
    """Note the entries of a layout that do not fit whatever saves memory."""
    left = layout.left[len(layout.saving) - 1]
    margin = space.trainer_margin
    short = layout.even & ~(left >= margin)
    if short.any():
        place = int(np.argmin(np.where(short, margin - left, np.inf)))
        narrow = f"{layout.saving[0].name} on {layout.gpus[place]:g} GPUs"
        rejected.add("trainer_memory", int(short.sum()), narrow, float(margin - left[place]))


def _each(
    ways: list[_Way],
    answer: Callable[[TrainerOption, Array], Array],
    branches: Callable[[TrainQuestion], tuple[object, ...]],
) -> list[Array]:
    """
    What there is to say of each entry of some ways; those that are worked out in the same way stand together.

    Args:
        ways: The ways.
        answer: What there is to say of a trainer, whose degrees may be arrays, over so many GPUs.
        branches: What of a layout decides how that is worked out.
    """
    alike: dict[object, list[int]] = {}
    for place, way in enumerate(ways):
        alike.setdefault(_alike(way.trainer, branches), []).append(place)
    found: dict[int, Array] = {}
    for places in alike.values():
        for some in _blocks([len(ways[place].gpus) for place in places], _TRAINERS):
            block = [places[index] for index in some]
            trainer, gpus = _stacked([ways[place] for place in block])
            parts = np.cumsum([len(ways[place].gpus) for place in block])[:-1]
            found |= zip(block, np.split(answer(trainer, gpus), parts, axis=-1), strict=True)
    return [found[place] for place in range(len(ways))]


def _alike(trainer: TrainerOption, branches: Callable[[TrainQuestion], tuple[object, ...]]) -> object:
    """What ways agree in that may stand together."""
    asked = trainer.question
    if asked is None or trainer.seconds.known:
        return id(trainer)
    apart = (*Degrees._fields, "keeps")
    return (*(id(value) for name, value in entries(asked).items() if name not in apart), *branches(asked))


def _stacked(ways: list[_Way]) -> tuple[TrainerOption, Array]:
    """A trainer whose degrees and micro-batches are those of each entry, and its GPUs."""
    trainer, asked = ways[0].trainer, ways[0].trainer.question
    gpus, tokens = (np.concatenate(some) for some in ([way.gpus for way in ways], [way.tokens for way in ways]))
    if asked is not None and len(ways) > 1:
        sizes = [len(way.gpus) for way in ways]
        each = zip(*(way.trainer.question.degrees for way in ways if way.trainer.question is not None), strict=True)
        degrees: dict[str, Any] = {
            name: np.repeat(np.array(one, dtype=float), sizes) for name, one in zip(Degrees._fields, each, strict=True)
        }
        trainer = replace(trainer, question=replace(asked, **degrees))
    return with_micro_batch(trainer, tokens), gpus


def _trained(terms: Terms, ways: list[_Way]) -> list[Array]:
    """Time of the update and of the extra forward passes at each entry, on GPUs of its own and on shared ones."""

    def branches(question: TrainQuestion) -> tuple[object, ...]:
        from rlsize.estimates import train_prediction

        return train_prediction.branches(question)

    def seconds(trainer: TrainerOption, gpus: Array) -> Array:
        parts = trainer_parts(terms, trainer, gpus)
        return np.array([[_spread(part, gpus) for part in parts[shared]] for shared in (False, True)])

    return _each(ways, seconds, branches)


def _headrooms(terms: Terms, ways: list[_Way]) -> list[Array]:
    """Share of memory that is left at each entry; all where no model is known."""

    def branches(question: TrainQuestion) -> tuple[object, ...]:
        from rlsize.estimates import loop_memory

        return loop_memory.branches(question)

    def headroom(trainer: TrainerOption, gpus: Array) -> Array:
        asked = bare_asked(trainer)
        if asked is None:
            return np.ones_like(gpus)
        from rlsize.estimates.loop_memory import bare_trainer_memory, headroom_at

        question = replace(asked, gpus=gpus)
        held = bare_trainer_memory(question, longest_tokens(terms), terms.values)
        return _spread(headroom_at(question, held.peak), gpus)

    return _each(ways, headroom, branches)


def with_micro_batch(trainer: TrainerOption, tokens: Worked) -> TrainerOption:
    """The same with micro-batches of so many tokens; 0 leaves them as they are."""
    if trainer.question is None or not np.any(tokens):
        return trainer
    return replace(trainer, question=_packed(trainer.question, tokens))


def _packed(question: TrainQuestion, tokens: Worked) -> TrainQuestion:
    """The same with micro-batches of so many tokens, however many samples they were said to have."""
    return replace(question, micro_batch_tokens=tokens, keeps=replace(question.keeps, samples=None))


def _spread(value: Worked, entries: Array) -> Array:
    """One value for each entry."""
    return np.asarray(np.broadcast_to(np.asarray(value, dtype=float), entries.shape))


WHOLE = 1e-9
"""Of an instance: what is lacking by rounding only."""


@dataclass(slots=True, kw_only=True)
class Sharing:
    """
    One way to build instances on the GPUs of every trainer.

    Args:
        instances: Instances that the GPUs of each trainer make; 0 where they make none.
        able: Which trainers leave room for what instances keep there while they work.
        rollout_left: Share of memory beyond the longest sample; None where nobody knows. [1]
        taken: What the fleet and its syncs take on those of each trainer where both share them; None until it is asked
            for.
        lent: Time of lent GPUs alone, and their change-over, by how they are lent, where it was asked for. [s]
    """

    instances: Array
    able: NDArray[np.bool_]
    rollout_left: float | None
    taken: tuple[FleetParts, Array] | None = None
    lent: dict[object, tuple[Array, Array]] = field(default_factory=dict)

    def some(self, kept: NDArray[np.intp]) -> Sharing:
        """The same on the GPUs of some of the trainers, by their places."""
        return Sharing(instances=self.instances[kept], able=self.able[kept], rollout_left=self.rollout_left)


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
    return Sharing(
        instances=np.floor(trainers.gpus / fleet.gpus + WHOLE),
        able=trainers.headroom >= space.shared_margin,
        rollout_left=left,
    )


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
