"""
An exhaustive search: every fleet with every trainer, in every mode, through the same equations on arrays.

Candidates are worked out block by block, so memory does not grow with the space.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rlsize.equations import planning, rollout_batch
from rlsize.errors import Fault, InputError
from rlsize.estimates.step_assembly import REFILLING, assembled, at_least
from rlsize.planner.evaluation import MEMORY_KEYS, results_of
from rlsize.planner.families import ORDER, Found, Picks, Steps, groups_of, paid_of, pick_best, promising, some_of
from rlsize.planner.options import Placement
from rlsize.planner.space import packed
from rlsize.planner.step_parts import FleetParts, lent_swap, sync_part, together
from rlsize.planner.tables import (
    WHOLE,
    FleetTable,
    Rejections,
    fleet_tables,
    generated,
    kind_of,
    parts_of,
    sharings,
    trainer_tables,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    from rlsize.estimates.figures import Worked
    from rlsize.estimates.step_assembly import Loop, LoopParts
    from rlsize.planner.families import Order
    from rlsize.planner.options import FleetOption
    from rlsize.planner.outlook import Terms
    from rlsize.planner.space import Limit, Space
    from rlsize.planner.tables import Sharing, TrainerTable

    Tell = Callable[[float], None]
    Array = NDArray[np.float64]
    Mask = NDArray[np.bool_]

BLOCK = 2**17
"""Candidates that are worked out at once."""

WORTH_TELLING = 5_000_000
"""Candidates of a search that takes about a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """
    Candidates of one mode and of ways to build instances that are priced alike: fleets down, trainers across.

    Args:
        place: The candidates; the GPUs of an instance are a column, and so are instances where GPUs are not shared.
        fleets: The way of each row.
        fleet: What the fleets take for a step's samples.
        columns: The trainers among all.
        room: Which candidates there are.
        full: Which of them use all GPUs, as far as whole instances do.
        memory: Shares of memory that are left, by key, where they are known. [1]
        lent: Where trainer GPUs are lent: time of those of each trainer alone, and of their change-over. [s]
        swaps: Weight syncs, where both sides share GPUs. [s]
    """

    place: Placement
    fleets: list[FleetOption]
    fleet: FleetParts
    columns: slice
    room: Mask
    full: Mask
    memory: Mapping[str, Any]
    lent: tuple[Array, Array] | None = None
    swaps: Array | None = None

    @property
    def key(self) -> tuple[object, ...]:
        """What tells it from the other blocks of the same trainers."""
        place = self.place
        first = float(place.instances.flat[0])
        return (place.loop, id(self.fleets[0]), place.max_staleness, place.transport, first, self.columns.stop)

    @property
    def burdens(self) -> Array:
        """How far the fleet and mode of each row are from simple. [1]"""
        known = {id(fleet): replace(self.place, fleet=fleet).burden for fleet in self.fleets}
        return np.array([known[id(fleet)] for fleet in self.fleets])[:, None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """
    Both sides of a space, worked out.

    Args:
        terms: In which they are worked out.
        space: What may be chosen.
        fleets: Every way to build instances.
        trainers: Every way to spread the trainer, of each kind of GPU, and the ways to share its GPUs.
        rejected: What constraints left out of them.
        uneven: As `trainers`, those that a batch is uneven over; empty unless the space asks for them.
        quickest: The shortest step of each block that was worked out, so that a search below a bar leaves out the rest.
    """

    terms: Terms
    space: Space
    fleets: list[FleetTable]
    trainers: list[tuple[TrainerTable, dict[int, Sharing]]]
    rejected: Rejections
    uneven: list[tuple[TrainerTable, dict[int, Sharing]]]
    quickest: dict[tuple[object, ...], float] = field(default_factory=dict)

    @property
    def rare(self) -> frozenset[int]:
        """The ways to build instances that few run, where a node of their GPUs holds one without; by identity."""
        shared = {id(fleet) for fleet in self.space.fleets for _, sharing in self.trainers if id(fleet) in sharing}
        fits = {id(table.fleet) for table in self.fleets} | shared
        held = {fleet.gpu for fleet in self.space.fleets if fleet.within_node and id(fleet) in fits}
        return frozenset(id(fleet) for fleet in self.space.fleets if fleet.rare and fleet.gpu in held)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """
    What candidates are held against that shall be as good as another.

    Args:
        step_seconds: The longest step. [s]
        cost: The highest cost. [usd]
        gpus: The most GPUs. [1]
        burden: How far its layout is from simple at most. [1]
    """

    step_seconds: float
    cost: float
    gpus: float
    burden: float = float("inf")


def tabulated(terms: Terms, space: Space) -> Tables:
    """Both sides of a space, worked out."""
    rejected = Rejections()
    fleets = fleet_tables(terms, space, rejected)
    kinds = [(option.gpu, option.most, option.gpu_hour.value) for option in space.trainers]
    trainers: tuple[list[tuple[TrainerTable, dict[int, Sharing]]], ...] = ([], [])
    for kind in dict.fromkeys(kinds):
        alike = tuple(option for option, own in zip(space.trainers, kinds, strict=True) if own == kind)
        tables = trainer_tables(terms, replace(space, trainers=alike), rejected)
        for table, into, told in zip(tables, trainers, (rejected, Rejections()), strict=True):
            if table is not None:
                into.append((table, sharings(terms, space, table, told)))
    even, uneven = trainers
    return Tables(terms=terms, space=space, fleets=fleets, trainers=even, rejected=rejected, uneven=uneven)


def search(
    terms: Terms,
    space: Space,
    objective: Order = "time",
    tell: Tell | None = None,
    tables: Tables | None = None,
    bar: Bar | None = None,
    *,
    usual: bool = False,
    alone: bool = False,
) -> Found:
    """
    The best of a space.

    Args:
        terms: In central numbers.
        space: What may be chosen.
        objective: time (the shortest step), cost (the least per step) or gpus (the fewest); plain for the simplest
            layout, fewest for the fewest GPUs and then that, near for the least beyond all limits.
        tell: Hears of a long search which share of it is done. [1]
        tables: Both sides, where they are worked out already.
        bar: What candidates must keep below besides.
        usual: Whether layouts that few run are set apart, unless there is no other: `Found.rare` is the best of them.
        alone: Whether the best is all that is asked for.

    Raises:
        InputError: There are more candidates than can be worked out in a minute or two.
    """
    tables = tables or tabulated(terms, space)
    found = Found(objective=objective, priced=space.priced, rejected=tables.rejected.copy())
    picks, apart = (Picks(objective=objective, priced=space.priced, alone=alone) for _ in range(2))
    rare = tables.rare if usual else frozenset()
    order = {id(fleet): place for place, fleet in enumerate(space.fleets)}
    for kind, (trainers, sharing) in enumerate(tables.trainers):
        done = 0
        odd = np.array([usual and option.rare for option in trainers.options])
        most = candidates_of(terms, space, tables.fleets, trainers)
        for number, block in enumerate(_blocks(terms, space, tables.fleets, trainers, sharing)):
            key = (id(trainers), *block.key)
            if bar is not None and tables.quickest.get(key, 0.0) > bar.step_seconds:
                continue
            loop = space.loops.index(block.place.loop)
            rows = [((kind, loop, order[id(fleet)], number), fleet) for fleet in block.fleets]
            own = odd[None, block.columns] | np.array([[id(fleet) in rare] for fleet in block.fleets])
            ways = [(which, into) for which, into in ((~own, picks), (own, apart)) if which.any()]
            asked = _Asked(terms, space, trainers, block, _parts(terms, trainers, block), bar)
            for steps, tables.quickest[key], into in (_bounded if asked.bounded else _work_out)(asked, ways, found):
                pick_best(terms, trainers, steps._replace(rows=rows), into)
            done += int(block.room.sum())
            if tell is not None and most > WORTH_TELLING:
                tell(min(1.0, done / most))
    if tables.fleets and tables.trainers and not found.worked_out:
        found.rejected.add("room")
    if picks.best and apart.best:
        found.rare = apart.first
    (picks if picks.best else apart).settle(found)
    return found


def counted(tables: Tables) -> tuple[int, float]:
    """How many candidates there are, and the fewest GPUs that one takes, limits aside; infinite where there is none."""
    terms, space = tables.terms, tables.space
    found, fewest = 0, np.inf

    def count(room: Mask, gpus: Array, times: int) -> None:
        nonlocal found, fewest
        found += times * int(room.sum(axis=0) @ trainers.sizes)
        fewest = min(fewest, float(np.where(room, gpus, np.inf).min()))

    for table, shared in tables.trainers:
        trainers, sharing = table.some(table.starts), {fleet: one.some(table.starts) for fleet, one in shared.items()}
        for loop in space.loops:
            if loop == "colocated":
                for sharers, every in zip(_sharing(space, sharing), _sharing(space, shared), strict=True):
                    made = _instances_room(space, sharers)
                    found += int(made.sum(axis=0) @ trainers.sizes)
                    # where engines stay awake, trainers on as many GPUs differ by what they leave
                    room, gpus = (_shared_room(space, every), table.gpus) if space.held else (made, trainers.gpus)
                    fewest = min(fewest, float(np.where(room, gpus, np.inf).min()))
                continue
            times = len(_caps(space, loop)) * len(space.transports)
            for some, lent in _pools(loop, tables.fleets, sharing):
                for rows in _rows(terms, space, trainers, some, lent):
                    count(rows.room, rows.instances * rows.fleet.gpus + trainers.gpus[None, :], times)
    return found, fewest


def just(tables: Tables, gpus: float) -> Tables:
    """What there is of both sides that a plan has which takes just so many GPUs."""
    if tables.terms.problem.agents is not None:  # what they wait for is worked out for all instances together
        return tables
    beside = np.concatenate([table.counts for table, _ in tables.trainers])
    fleets = []
    for one in tables.fleets:
        some = one.instances[np.isin(gpus - one.instances * one.fleet.gpus, beside)]
        fleets += [FleetTable(fleet=one.fleet, instances=some, headroom=one.headroom)] if len(some) else []
    sizes = np.concatenate(
        [[0.0], *(one.instances * one.fleet.gpus for one in fleets)]
    )  # with nothing beside if shared
    trainers: list[tuple[TrainerTable, dict[int, Sharing]]] = []
    for table, sharing in tables.trainers:
        kept = np.flatnonzero(np.isin(gpus - table.gpus, sizes))
        if len(kept):
            trainers.append((table.some(kept), {fleet: one.some(kept) for fleet, one in sharing.items()}))
    return replace(tables, fleets=fleets, trainers=trainers, quickest={})


def _blocks(
    terms: Terms, space: Space, fleets: list[FleetTable], trainers: TrainerTable, sharing: Mapping[int, Sharing]
) -> Iterator[_Block]:
    """All candidates, mode by mode."""
    for loop in space.loops:
        if loop == "colocated":
            groups = list(_sharing(space, sharing))
            _take(terms, trainers, [one for sharers in groups for one in sharers if one[1].taken is None])
            for sharers in groups:
                yield from _colocated(space, trainers, sharers)
            continue
        for some, lent in _pools(loop, fleets, sharing):
            for cap in _caps(space, loop):
                parts_of(terms, fleets, loop, cap)
                for transport in space.transports:
                    yield from _two_pools(terms, space, trainers, (some, lent), (loop, cap, transport))


def _sharing(space: Space, sharing: Mapping[int, Sharing]) -> Iterator[list[tuple[FleetOption, Sharing]]]:
    """The ways to build instances on the GPUs of trainers, those together that are priced alike."""
    able = [(fleet, sharing[id(fleet)]) for fleet in space.fleets if id(fleet) in sharing]
    for _, some in groupby(able, key=lambda one: _priced(one[0])):
        yield list(some)


def _pools(
    loop: Loop, fleets: list[FleetTable], sharing: Mapping[int, Sharing]
) -> Iterator[tuple[list[FleetTable], list[Sharing]]]:
    """The same on GPUs of their own, in a loop that has two pools; and how they share those of trainers it lends."""
    able = (table for table in fleets if loop != "hybrid" or id(table.fleet) in sharing)
    for _, some in groupby(able, key=lambda table: _priced(table.fleet)):
        tables = list(some)
        yield tables, [sharing[id(table.fleet)] for table in tables] if loop == "hybrid" else []


def _caps(space: Space, loop: Loop) -> tuple[float, ...]:
    """The caps on staleness that are tried of a loop."""
    return space.staleness if loop in REFILLING else (1.0,)


def _priced(fleet: FleetOption) -> tuple[object, ...]:
    """What ways to build instances agree in whose candidates stand together."""
    return fleet.gpu, fleet.most, id(fleet.gpu_hour), fleet.rate.known


def _joined(parts: list[FleetParts]) -> FleetParts:
    """What fleets take, one after the other."""
    numbers: list[list[Array]] = [[] for _ in parts]
    for one, own in zip(parts, numbers, strict=True):
        one.each(own.append)
    together = map(np.concatenate, zip(*numbers, strict=True))
    return parts[0].each(lambda _: next(together))


def _together(fleets: list[FleetOption]) -> FleetOption:
    """One way to build instances for several, with the GPUs of each as a column."""
    gpus: Any = np.array([fleet.gpus for fleet in fleets])[:, None]
    return replace(fleets[0], gpus=gpus)


def _two_pools(
    terms: Terms,
    space: Space,
    trainers: TrainerTable,
    fleets: tuple[list[FleetTable], list[Sharing]],
    mode: tuple[Loop, float, str],
) -> Iterator[_Block]:
    """Fleets on GPUs of their own beside every trainer, some rows at a time; where some are lent, how each shares."""
    tables, lent = fleets
    loop, cap, transport = mode
    made = _joined([table.parts[kind_of(terms, loop, cap)] for table in tables])
    whole = Placement(
        loop=loop,
        fleet=tables[0].fleet,
        instances=1.0,
        trainer=trainers.options[0],
        trainer_gpus=1.0,
        max_staleness=cap,
        transport=transport,
    )
    asked = zip(tables, lent, strict=True) if lent else ()
    times = [_lent(terms, trainers, replace(whole, fleet=table.fleet), shared) for table, shared in asked]
    alone, swaps = (np.array([time[place] for time in times]) for place in (0, 1))
    left = _least_left([table.headroom for table in tables], [shared.rollout_left for shared in lent])
    for rows in _rows(terms, space, trainers, tables, lent):
        if not rows.room.any():
            continue
        own, last = rows.tables, int(np.flatnonzero(rows.room.any(axis=0))[-1]) + 1
        yield _Block(
            place=replace(whole, fleet=rows.fleet, instances=rows.instances, trainer_gpus=trainers.gpus[None, :last]),
            fleets=[tables[place].fleet for place in own.tolist()],
            fleet=made.each(partial(_at_rows, rows.part)),
            columns=slice(0, last),
            room=rows.room[:, :last],
            full=rows.instances == rows.most[:, :last],
            memory=_memory(trainers, None if left is None else left[own], last),
            lent=(alone[own, :last], swaps[own, :last]) if lent else None,
        )


class _Rows(NamedTuple):
    """
    Some fleets beside every trainer: numbers of instances down, trainers across.

    Args:
        part: The rows among all of these fleets.
        tables: The place of each among them.
        fleet: One way to build instances for all, with the GPUs of each as a column.
        instances: Instances of each, as a column. [1]
        most: Instances that there is room for. [1]
        room: Which go together.
    """

    part: slice
    tables: NDArray[np.intp]
    fleet: FleetOption
    instances: Array
    most: Array
    room: Mask


def _rows(
    terms: Terms, space: Space, trainers: TrainerTable, tables: list[FleetTable], lent: list[Sharing]
) -> Iterator[_Rows]:
    """Which fleets there is room for beside which trainers, some rows at a time."""
    most = np.array([packed(space, terms.problem, table.fleet, trainers.options[0], trainers.gpus) for table in tables])
    if lent:
        most[np.array([shared.instances for shared in lent]) < 1] = 0.0  # trainers that cannot lend an instance
    instances = np.concatenate([table.instances for table in tables])
    which = np.repeat(np.arange(len(tables)), [len(table.instances) for table in tables])
    size = max(1, BLOCK // max(1, len(trainers.gpus)))
    for first in range(0, len(instances), size):
        part = slice(first, first + size)
        own, counts = which[part], instances[part, None]
        fleet = _together([tables[place].fleet for place in own.tolist()])
        room = counts <= most[own]
        if space.sums_taken is not None:
            sums = counts * fleet.gpus + trainers.gpus[None, :]
            room &= np.isin(sums.astype(np.intp), [int(some) for some in space.sums_taken])  # of integers: no sort
        yield _Rows(part, own, fleet, counts, most[own], room)


def _at_rows(part: slice, times: Array) -> Array:
    """Some of the entries, as rows."""
    return times[part, None]


def _take(terms: Terms, trainers: TrainerTable, sharers: list[tuple[FleetOption, Sharing]]) -> None:
    """Note what fleets and their syncs take on the GPUs of each trainer, which each search of the tables asks again."""
    able = [(fleet, shared) for fleet, shared in sharers if (shared.instances >= 1).any()]
    counts = [np.unique(np.maximum(shared.instances, 1.0), return_inverse=True) for _, shared in able]
    fleets = [(fleet, some) for (fleet, _), (some, _) in zip(able, counts, strict=True)]
    made = generated(terms, fleets, "colocated", shared=True)
    for (fleet, shared), (_, which), parts in zip(able, counts, made, strict=True):
        place = _sharers(trainers, fleet, shared.instances[None, :])
        swaps = _swaps(terms, trainers, place, len(trainers.counts), sync_part)
        shared.taken = parts.each(partial(_at, which)), swaps[trainers.group][None, :]


def _at(places: NDArray[np.intp], times: Array) -> Array:
    """Some of the entries, as a row."""
    return times[places][None, :]


def _sharers(trainers: TrainerTable, fleet: FleetOption, instances: Array) -> Placement:
    """Both sides on all GPUs of each trainer, as many instances as it holds."""
    return Placement(
        loop="colocated",
        fleet=fleet,
        instances=np.maximum(instances, 1.0),
        trainer=trainers.options[0],
        trainer_gpus=trainers.gpus[None, :],
        transport="colocated",
    )


def _colocated(space: Space, trainers: TrainerTable, sharers: list[tuple[FleetOption, Sharing]]) -> Iterator[_Block]:
    """Both sides on all GPUs of the trainer, some ways to build instances at a time."""
    rows = max(1, BLOCK // max(1, len(trainers.gpus)))
    able = [(fleet, shared, shared.taken) for fleet, shared in sharers if shared.taken is not None]
    for first in range(0, len(able), rows):
        fleets, shares, taken = (list(some) for some in zip(*able[first : first + rows], strict=True))
        room = _shared_room(space, list(zip(fleets, shares, strict=True)))
        if not room.any():
            continue
        yield _Block(
            place=_sharers(trainers, _together(fleets), np.array([shared.instances for shared in shares])),
            fleets=fleets,
            fleet=_joined([parts for parts, _ in taken]),
            columns=slice(0, len(trainers.gpus)),
            room=room,
            full=room,
            memory=_memory(trainers, _least_left([shared.rollout_left for shared in shares], []), len(trainers.gpus)),
            swaps=np.concatenate([swaps for _, swaps in taken]),
        )


def _shared_room(space: Space, sharers: list[tuple[FleetOption, Sharing]]) -> Mask:
    """On the GPUs of which trainers ways to build instances fit, and are asked for."""
    able: Mask = np.array([shared.able for _, shared in sharers])
    return _instances_room(space, sharers) & able


def _instances_room(space: Space, sharers: list[tuple[FleetOption, Sharing]]) -> Mask:
    """The same, whatever the trainers leave of the memory."""
    instances = np.array([shared.instances for _, shared in sharers])
    room: Mask = instances >= 1
    if space.rollout_gpus:
        room &= np.isin(instances * np.array([[fleet.gpus] for fleet, _ in sharers]), space.rollout_gpus)
    return room


def _least_left(*lefts: list[float | None]) -> Array | None:
    """The least of what ways to build instances leave of the memory, each on GPUs of its own and on shared ones."""
    known = [some for some in lefts if some and None not in some]
    return np.min(np.array(known, dtype=float), axis=0) if known else None


def _memory(trainers: TrainerTable, left: Array | None, last: int) -> dict[str, Any]:
    """Shares of memory that are left, of fleets and of trainers, where they are known."""
    rollout, trainer = MEMORY_KEYS
    found: dict[str, Any] = {} if left is None else {rollout: left[:, None]}
    if trainers.options[0].question is not None:
        found[trainer] = trainers.headroom[None, :last]
    return found


class _Asked(NamedTuple):
    """
    A block of which the best candidates are asked for.

    Args:
        terms: In central numbers.
        space: What may be chosen.
        trainers: All trainers.
        block: The block.
        parts: The parts of its steps.
        bar: What candidates must keep below besides.
    """

    terms: Terms
    space: Space
    trainers: TrainerTable
    block: _Block
    parts: LoopParts
    bar: Bar | None

    @property
    def bounded(self) -> bool:
        """Whether to work out a step takes so long that a bound of it tells first which are worth it."""
        return self.parts.rule is not None and not self.space.limits

    @property
    def families(self) -> Placement:
        """Its families."""
        starts, first = groups_of(self.trainers, self.block.columns)
        return replace(self.block.place, trainer_gpus=self.trainers.counts[None, first : first + len(starts)])

    def below_bar(self, place: Placement, seconds: Array) -> Mask:
        """Which of some candidates or families keep below the bar if their steps take so long, burdens aside."""
        bar = self.bar or Bar(step_seconds=np.inf, cost=np.inf, gpus=np.inf)
        there = np.isfinite(seconds)
        paid = paid_of(self.terms, place, np.where(there, seconds, 0.0), priced=self.space.priced)
        found: Mask = there & (place.gpus <= bar.gpus * (1 + _EXACT)) & (seconds <= bar.step_seconds)
        return found & (paid <= bar.cost)

    def steps(self, seconds: Array, full: Mask, beyond: Array | None, objective: Order) -> Steps:
        """Steps of candidates that keep below the bar; infinite of those that do not."""
        if self.bar is not None:
            burden = self.trainers.burdens[None, self.block.columns] + self.block.burdens
            kept = self.below_bar(self.block.place, seconds) & (burden <= self.bar.burden)
            seconds = np.where(kept, seconds, np.inf)
            beyond = burden if "burden" in ORDER[objective] else None
        return Steps(self.block.place, (), seconds, self.block.columns, full, beyond)


def _count(asked: _Asked, found: Found) -> int:
    """Note how many candidates there are."""
    starts, first = groups_of(asked.trainers, asked.block.columns)
    entries = int(asked.block.room[:, starts].sum(axis=0) @ asked.trainers.sizes[first : first + len(starts)])
    found.worked_out += entries
    return entries


def _work_out(asked: _Asked, ways: list[tuple[Mask, Picks]], found: Found) -> Iterator[tuple[Steps, float, Picks]]:
    """
    The steps of a block's candidates, what none of all is shorter than, and where they are picked.

    How many there are, and what left others out, is noted.
    """
    terms, space, block = asked.terms, asked.space, asked.block
    step = assembled(terms.work, asked.parts)
    results = {**results_of(terms, block.place, step), **block.memory} if space.limits else {}
    near = found.objective == "near"
    fits, beyond = within(space, results, block.room, lambda flat: _words(block, flat), found.rejected)
    fits = block.room if near else fits
    entries = _count(asked, found)
    found.feasible += int(fits.sum()) if space.limits else entries
    starts, _ = groups_of(asked.trainers, block.columns)
    for which, into in ways:
        seconds = np.where(fits & which, step.seconds, np.inf)
        steps = asked.steps(seconds, block.full[:, starts], beyond if near else None, into.objective)
        yield steps, float(np.min(step.seconds)), into


def _bounded(asked: _Asked, ways: list[tuple[Mask, Picks]], found: Found) -> Iterator[tuple[Steps, float, Picks]]:
    """
    The same of candidates of which late samples are dropped, no more of them than may be told.

    What a step takes at least is known much sooner than the step. By that the most promising families are worked out
    first, until those that are picked are better than all others can be.
    """
    block, families = asked.block, asked.families
    starts, _ = groups_of(asked.trainers, block.columns)
    sizes = np.diff(np.append(starts, block.room.shape[1]))
    found.feasible += _count(asked, found)
    each = [_least(asked, which & block.room) for which, _ in ways]
    quickest, none = float(np.min(each)), np.zeros(each[0].shape, dtype=bool)
    for (which, into), soonest in zip(ways, each, strict=True):
        least = np.where(asked.below_bar(families, soonest), soonest, np.inf)
        full = none if into.alone or asked.bar else some_of(block.full[:, starts] & np.isfinite(least))
        some = full if full.any() else promising(asked.terms, families, least, into)
        while some.any():
            able = which & np.repeat(some, sizes, axis=1)
            seconds = np.full(able.shape, np.inf)
            seconds[able] = assembled(asked.terms.work, asked.parts.each(partial(_at_places, able))).seconds
            yield asked.steps(seconds, full, None, into.objective), quickest, into
            least, full = np.where(some, np.inf, least), none
            some = promising(asked.terms, families, least, into)


def _least(asked: _Asked, which: Mask) -> Array:
    """What a step takes at least with the best of some trainers of each family; infinite where there is none. [s]"""
    starts, _ = groups_of(asked.trainers, asked.block.columns)
    trained = np.where(which, asked.parts.update_seconds + asked.parts.logprob_seconds, np.inf)
    soonest = np.minimum.reduceat(trained, starts, axis=1)
    there = np.isfinite(soonest)
    wide = which.shape[1]
    parts = asked.parts.each(lambda value: value[..., starts] if np.shape(value)[-1:] == (wide,) else value)
    parts = replace(parts, update_seconds=np.where(there, soonest, 0.0), logprob_seconds=0.0)
    return np.where(there, at_least(parts) * (1 - _CLEAR), np.inf)


def _at_places(some: Mask, value: Worked) -> Worked:
    """A number of some candidates."""
    return value if np.ndim(value) == 0 else np.broadcast_to(value, some.shape)[some]


def _parts(terms: Terms, trainers: TrainerTable, block: _Block) -> LoopParts:
    """Parts of the steps of a block."""
    columns, shared = block.columns, block.place.shared
    lent: tuple[Worked, Worked] = (0.0, 0.0)
    if block.lent is not None:
        alone, swap = block.lent
        lent = rollout_batch.share_of(part=block.fleet.seconds, whole=alone), swap
    update, forwards = trainers.trained[int(shared)][:, None, columns]
    return together(terms, block.place, block.fleet, (update, forwards), _syncs(terms, trainers, block), lent)


def _syncs(terms: Terms, trainers: TrainerTable, block: _Block) -> Worked:
    """Weight syncs, worked out once for each number of trainer GPUs."""
    if block.swaps is not None:
        return block.swaps
    groups = trainers.group[block.columns]
    last = int(groups[-1]) + 1
    place = replace(block.place, trainer_gpus=trainers.counts[None, :last])
    found = np.asarray(sync_part(terms, place), dtype=float)
    return found if found.ndim == 0 or found.shape[-1] == 1 else found[:, groups]


def _lent(terms: Terms, trainers: TrainerTable, place: Placement, shared: Sharing) -> tuple[Array, Array]:
    """Time of lent GPUs alone, and their change-over, for each trainer; which is noted, as each search asks again."""
    key = place.loop, place.max_staleness, place.transport
    if key not in shared.lent:
        whole = _whole(trainers, place.fleet)
        (alone,) = generated(terms, [(place.fleet, whole)], place.loop, place.max_staleness, shared=True)
        swaps = _swaps(terms, trainers, place, len(whole), lent_swap)
        shared.lent[key] = alone.seconds[trainers.group], swaps[trainers.group]
    return shared.lent[key]


def _swaps(
    terms: Terms, trainers: TrainerTable, place: Placement, last: int, seconds: Callable[[Terms, Placement], Any]
) -> Array:
    """Syncs on shared GPUs for the first numbers of trainer GPUs, those of one reach together."""
    if not terms.problem.predicted:
        return np.full(last, seconds(terms, place), dtype=float)
    from rlsize.estimates.sync_prediction import reach_of
    from rlsize.planner.predicted_parts import sync_gpus

    counts, whole = trainers.counts[:last], _whole(trainers, place.fleet)[:last]
    reach = np.array([reach_of(gpu, counts) for gpu in sync_gpus(place, shared=True)])
    kinds, which = np.unique(reach, axis=1, return_inverse=True)
    found = np.empty(last)
    for kind in range(kinds.shape[1]):
        own = which.ravel() == kind
        found[own] = seconds(terms, replace(place, instances=whole[own], trainer_gpus=counts[own]))
    return found


def _whole(trainers: TrainerTable, fleet: FleetOption) -> Array:
    """Instances that each number of trainer GPUs makes; smaller ones have no room, and count as one."""
    return np.maximum(np.floor(trainers.counts / fleet.gpus + WHOLE), 1.0)


def _words(block: _Block, flat: int) -> str:
    """A candidate of a block in a few words."""
    place, shape = block.place, block.room.shape
    trainer = np.broadcast_to(place.trainer_gpus, shape).ravel()[flat]
    rollout = np.broadcast_to(place.rollout_gpus, shape).ravel()[flat]
    split = f"{trainer:g} GPUs" if place.shared else f"{rollout:g} + {trainer:g} GPUs"
    return f"{place.loop}, {split}"


_EXACT = 1e-12  # relative: a limit that is met to the last digit is kept
_CLEAR = 2.0**-20  # relative: what rounding makes of a step, and of a score, is less


def within(
    space: Space, results: Mapping[str, Any], room: Mask, words: Callable[[int], str], rejected: Rejections
) -> tuple[Mask, Array]:
    """
    Which candidates keep all limits, and how far each lies beyond them together.

    Args:
        space: The limits.
        results: What the candidates give, by key; limits on what is not among it are kept.
        room: Which candidates there are.
        words: A candidate in a few words, by its place.
        rejected: Takes how many broke each limit, and the narrowest of those that broke just one.
    """
    broken = [(limit.key, _beyond(limit, results[limit.key], room)) for limit in space.limits if limit.key in results]
    times, together = np.zeros(room.shape, dtype=np.int16), np.zeros(room.shape)
    for _, beyond in broken:
        times += beyond > _EXACT
        together += np.maximum(beyond, 0.0)
    for key, beyond in broken:
        over = room & (beyond > _EXACT)
        alone = over & (times == 1)
        if alone.any():
            place = int(np.argmin(np.where(alone, beyond, np.inf)))
            rejected.add(key, int(over.sum()), words(place), float(beyond.ravel()[place]))
        elif over.any():
            rejected.add(key, int(over.sum()))
    return room & (times == 0), together


def _beyond(limit: Limit, result: Worked, room: Mask) -> Array:
    """How far candidates lie beyond a limit: a share of it, or the amount where it is nothing."""
    value = np.broadcast_to(np.asarray(result, dtype=float), room.shape)
    beyond = np.asarray(planning.overshoot(value=value, limit=limit.value) if limit.value else value)
    return -beyond if limit.least else beyond


MOST_CANDIDATES = 600e6
"""What is worked out in about a minute."""


def pairs(terms: Terms, space: Space, fleet: FleetTable, trainers: TrainerTable) -> int:
    """How many numbers of instances go with one trainer of the table or another."""
    room = packed(space, terms.problem, fleet.fleet, trainers.options[0], trainers.gpus)
    return int(np.searchsorted(fleet.instances, room, side="right").sum())


def candidates_of(terms: Terms, space: Space, fleets: list[FleetTable], trainers: TrainerTable) -> int:
    """
    How many candidates there are with GPUs for each pool.

    Raises:
        InputError: More than `MOST_CANDIDATES`, which would take minutes.
    """
    ways = sum(
        (len(space.staleness) if loop in REFILLING else 1) * len(space.transports)
        for loop in space.loops
        if loop != "colocated"
    )
    count = ways * sum(pairs(terms, space, fleet, trainers) for fleet in fleets)
    if count > MOST_CANDIDATES:
        raise InputError(
            Fault(
                f"{count:,} candidates, more than the {MOST_CANDIDATES:,.0f} that are worked out",
                "the space of the plan",
                "narrow it, for example with --whole-nodes, --mode, --rollout-gpus or --trainer-gpus",
            )
        )
    return count
