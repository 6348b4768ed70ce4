"""The rollout fleet: instances, the samples under way on them, and when they stop."""

from __future__ import annotations

from collections import deque
from functools import partial, reduce
from itertools import groupby
from operator import add, attrgetter
from typing import TYPE_CHECKING

from rlsize.simulator.dealing import Dealer, Scoring
from rlsize.simulator.engine import BatchingEngine
from rlsize.simulator.ledger import Group, Sample

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.simulator.conductor import Conductor
    from rlsize.simulator.event_loop import EventLoop

STATES = ("generating", "paused", "down", "away", "idle")
"""What an instance does; lent ones are away while the trainer has its GPUs, others while the fleet has them no more."""


class Instances:
    """
    All instances.

    Args:
        engines: The fleet's own, then those that the trainer lends.
        own: How many are ever the fleet's own. [1]
        there: How many of them it begins with. [1]
        loop: The event loop.
    """

    def __init__(self, engines: list[BatchingEngine], own: int, there: int, loop: EventLoop) -> None:
        self.engines, self.own_instances, self.loop = engines, own, loop
        for engine in engines:
            engine.there = engine.index < there
            if not engine.there:
                engine.up, engine.state = False, "away"
        self._halted = 0  # the first so many have paused for a sync, or are down
        self._touched: list[BatchingEngine] = []
        self._counts = dict.fromkeys(STATES, 0) | {"idle": there, "away": len(engines) - there}
        self._seconds = dict.fromkeys((*STATES, "tail"), 0.0)
        self._since = 0.0

    @property
    def halted(self) -> bool:
        """Whether every instance that is up has paused; one that has, or is down, runs no more before they go on."""
        engines, count = self.engines, self._halted
        while count < len(engines) and (engines[count].paused or engines[count].loading or not engines[count].up):
            count += 1
        self._halted = count
        return count == len(engines)

    def touch(self, engine: BatchingEngine) -> None:
        """Have an instance begin a step, if it can, when this instant ends."""
        if not engine.touched:
            engine.touched = True
            self._touched.append(engine)

    def begin(self) -> None:
        """Have every instance that can begin a step begin it."""
        touched = self._touched
        for engine in touched:
            engine.touched = False
            if engine.entry is not None:
                continue
            if engine.up and not (engine.paused or engine.loading):
                state = "generating" if engine.begin() else "idle"
            elif engine.up:
                state = "paused"
            else:
                state = "down" if engine.there else "away"
            if state != engine.state:
                self._change(engine, state)
        touched.clear()

    def seconds(self) -> dict[str, float]:
        """Seconds of instances in each state, idle ones while others generate as `tail`. [s]"""
        self._pass()
        return dict(self._seconds)

    def so_far(self) -> tuple[float, ...]:
        """Response tokens, seconds, and seconds of samples of all steps that have ended, over all instances."""
        return tuple(reduce(add, each) for each in zip(*(engine.so_far() for engine in self.engines), strict=True))

    @property
    def preemptions(self) -> int:
        """Samples thrown out of a batch for want of cache, so far. [1]"""
        return sum(engine.preemptions for engine in self.engines)

    def _pass(self) -> None:
        elapsed = self.loop.now - self._since
        if elapsed:
            counts, seconds = self._counts, self._seconds
            for state, count in counts.items():
                seconds[state] += count * elapsed
            if counts["generating"]:
                seconds["tail"] += counts["idle"] * elapsed
            self._since = self.loop.now

    def _change(self, engine: BatchingEngine, state: str) -> None:
        self._pass()
        self._counts[engine.state] -= 1
        self._counts[state] += 1
        engine.state = state


class Fleet(Instances):
    """
    The instances and what they work on.

    Args:
        conductor: Who is told of each group whose last sample is finished and scored.
    """

    def __init__(self, conductor: Conductor) -> None:
        setting, outcomes, loop = conductor.setting, conductor.outcomes, conductor.loop
        work, trouble = setting.work, setting.trouble
        engines = [
            BatchingEngine(index, kind, work, loop, self._ended, self._stepped)
            for index, kind in enumerate(
                [
                    *(kind for kind in setting.kinds for _ in range(kind.instances)),
                    *[setting.engine] * (setting.most_instances - setting.instances + trouble.lent_instances),
                ]
            )
        ]
        super().__init__(engines, setting.most_instances, setting.instances, loop)
        self.completed, self.outcomes, self.recorder = conductor.completed, outcomes, conductor.recorder
        for index in outcomes.stragglers(self.own_instances, trouble.straggler_fraction):
            self.engines[index].slowdown = trouble.straggler_slowdown
        self.dealer = Dealer(self.engines, setting.engine.routing, outcomes, self.touch)
        self.scoring = Scoring(work, outcomes, loop, self._called_back, self._scored)
        self.version = self._newest = 0
        self._sync = setting.sync
        self.admitted = 0  # groups, ever
        self.under_way: dict[Group, None] = {}  # groups that are not complete, in the order of admission
        self.carried: list[Sample] = []  # that go on in the next batch
        self.dropped_tokens = 0
        self._finished_tokens = 0  # of groups that are under way
        self.keeps_ejected = False
        self._redealing = setting.rules.redealing
        self.wants_slots = True  # whether a free slot would be used at once
        self._unseen = not conductor.recorder.on
        self._turns, self._verifies = work.turns, work.verify.seconds > 0.0
        self._needed = work.group_size if work.redundant_samples else None
        self._redundant: dict[Sample, None] = {}  # that stop with this instant
        self._halting, self._way = False, "in-flight"

    # Samples and groups

    def admit(self) -> None:
        """Admit the next group, and deal its samples."""
        group = Group(self.admitted, self.outcomes.lengths(self.admitted), self._needed)
        self.admitted += 1
        self.under_way[group] = None
        if self._turns > 1:
            for sample in group.samples:
                self.scoring.first_turn(sample)
        if self.scoring.equips:
            self.scoring.enter(group)
            self.deal_equipped()
        else:
            self.dealer.deal(group.samples)

    def deal_equipped(self) -> None:
        """Deal the groups whose environments have started."""
        ready = self.scoring.ready
        while ready:
            self.dealer.deal(ready.popleft().samples)

    def may_admit(self) -> bool:
        """Whether a group finds environments, and slots besides what waits for these to start."""
        return not self.scoring.equips or self.scoring.may_enter(self.dealer.free_slots())

    def deal_carried(self) -> None:
        """Deal what was left over from the last batch."""
        if not self.carried:
            return
        carried = sorted(self.carried, key=attrgetter("group.serial", "member"))
        self.carried = []
        for _, own in groupby(carried, key=attrgetter("group")):
            self.dealer.deal(list(own))

    def stop(self, *, keeps: bool) -> None:
        """
        Stop all samples under way: at once if they are queued or wait for a tool, else when their step ends.

        Args:
            keeps: Whether they go on with the next batch, or are dropped with their groups.
        """
        self.keeps_ejected = keeps
        if not keeps:
            for group in self.under_way:
                group.dropped = True
                self.dropped_tokens += sum(one.length for one in group.samples if one.done == one.length)
                group.release()
            self.under_way.clear()
            self._finished_tokens = 0
            self.scoring.forget_entering()
        self._put_away(list(self.dealer.queue))
        self.dealer.queue.clear()
        for engine in self.engines:
            engine.forget_left()
        self._put_away(self.scoring.skip_calls())
        for engine in self.engines:
            self._put_away(list(engine.queue))
            engine.queue.clear()
            if engine.entry is not None:
                engine.ejecting = True
                engine.interrupt()
            else:
                self._eject(engine)
        self.dealer.recount()

    def stop_redundant(self) -> None:
        """Stop the samples of complete groups that were not among the first: when their step ends if they run."""
        for sample in self._redundant:
            engine = next((one for one in self.engines if one is sample.engine), None)
            if sample.done == sample.length:
                self.scoring.forget_score(sample)
                self._finished_tokens -= sample.length
                self.dropped_tokens += sample.length
            elif engine is not None and sample not in engine.parked:
                if not engine.cut(sample):
                    continue
                self.dealer.left(engine)
                self._throw_away(sample)
            else:
                if not self.scoring.forget_call(sample):
                    self._take_from_queues(sample)
                if engine is not None:
                    engine.give_up(sample)
                self._throw_away(sample)
            if engine is not None:
                if engine.pausing and engine.entry is None and not engine.paused:
                    self._pause_if_due(engine)
                self.touch(engine)
        self._redundant.clear()

    def _take_from_queues(self, sample: Sample) -> None:
        """A sample that is queued, or set aside, is so no more."""
        for engine in self.engines:
            if sample in engine.queue:
                engine.queue.remove(sample)
                self.dealer.came(engine, -1)
        for queue in (self.dealer.queue, self.carried):
            if sample in queue:
                queue.remove(sample)

    def _throw_away(self, sample: Sample) -> None:
        self.dropped_tokens += sample.done
        self.scoring.leave()

    def drop(self, group: Group) -> None:
        """Drop a group that is complete."""
        self.dropped_tokens += group.tokens
        group.release()

    def lose(self, samples: list[Sample]) -> None:
        """Samples start anew; their tokens are lost."""
        for sample in samples:
            self.dropped_tokens += sample.done
            sample.forget()
            if self._turns > 1:
                self.scoring.first_turn(sample)

    # Weight sync

    def halt(self, way: str) -> None:
        """Have all instances pause: when their step ends, or when they have drained."""
        self._halting, self._way, self._halted = True, way, 0
        for engine in self.engines:
            if not engine.up:
                continue
            engine.pausing = True
            if way == "drain":
                engine.closed = True
            elif engine.entry is not None:
                engine.interrupt()
            if engine.entry is None and not engine.paused:
                self._pause_if_due(engine)

    def go_on(self, version: int | None, *, keeps_kv: bool) -> None:
        """Go on, with new weights if there are any."""
        self._halting = False
        self.version = self.version if version is None else version
        for engine in self.engines:
            if version is not None:
                engine.set_version(version)
            if not engine.up:
                continue
            engine.paused = engine.pausing = False
            engine.closed = engine.leaving
            if not keeps_kv:
                engine.forget_left()
                engine.compute_anew()
            self.touch(engine)

    def publish(self, version: int) -> None:
        """Have each instance take new weights by itself, when its step ends."""
        self._newest = version
        for engine in self.engines:
            engine.outdated = engine.up and engine.loading is None
            if engine.outdated and engine.entry is not None:
                engine.interrupt()
            elif engine.outdated:
                self._load(engine)

    def _load(self, engine: BatchingEngine) -> None:
        engine.outdated = False
        arrived = partial(self._loaded, engine, self._newest)
        engine.loading = self.loop.at(self.loop.now + self._sync.seconds, arrived)
        self.touch(engine)

    def _loaded(self, engine: BatchingEngine, version: int) -> None:
        """An instance has new weights, and goes on, unless there are newer ones, or all pause."""
        engine.loading = None
        engine.set_version(version)
        if not self._sync.keeps_kv:
            engine.forget_left()
            engine.compute_anew()
        self._note_version()
        engine.paused, engine.pausing = self._halting, False
        if version < self._newest:
            self._load(engine)
        self.touch(engine)

    def _note_version(self) -> None:
        """The fleet has the oldest version of an instance that is up, also when that comes or goes; it never falls."""
        self.version = min((one.version for one in self.engines if one.up), default=self.version)

    # Instances that come and go

    def bring_up(self, engines: Sequence[BatchingEngine]) -> None:
        """Instances are back, with the fleet's weights, and take a share of what waits on others."""
        for engine in engines:
            engine.up, engine.closed, engine.leaving = True, False, False
            engine.paused, engine.pausing = self._halting, False
            engine.set_version(max(engine.version, self._newest))
            self.touch(engine)
        self._note_version()
        self.dealer.recount()
        self.dealer.deal_queue()
        self.dealer.level()

    def give_notice(self, engines: Sequence[BatchingEngine]) -> None:
        """Instances will go: they take nothing more, and what is queued on them goes elsewhere."""
        moved: list[Sample] = []
        for engine in engines:
            engine.leaving = engine.closed = True
            moved += [sample for sample in engine.queue if sample not in engine.parked]
            engine.queue = deque(sample for sample in engine.queue if sample in engine.parked)
        self.dealer.recount()
        self.dealer.deal_one_by_one(moved)

    def take_down(self, engines: Sequence[BatchingEngine], *, keeps_tokens: bool) -> None:
        """Instances go at once; their samples start anew elsewhere, or go on there with their tokens."""
        moved: list[Sample] = []
        for engine in engines:
            moved += self._emptied(engine, keeps_tokens=keeps_tokens)
            self.touch(engine)
        self._note_version()
        self.dealer.recount()
        self.dealer.deal_one_by_one(moved)

    def redeal(self) -> bool:
        """Where an instance has no samples, it gets some that are queued on others, or run there; whether any were."""
        dealer, found = self.dealer, False
        while self._redealing != "arrivals" and dealer.any_empty():
            found = dealer.level() or found
            if self._redealing == "waiting" or not dealer.any_empty() or any(one.shedding for one in self.engines):
                break
            most = max(dealer.open, key=lambda one: len(one.ends))
            most.shedding = len(most.ends) // 2
            if not most.shedding:
                break
            found = True
            if most.entry is None:
                self._shed(most)
            else:
                most.interrupt()
        return found

    def _shed(self, engine: BatchingEngine) -> None:
        """An instance between two steps gives up samples, which go on elsewhere, unless it drains."""
        count, engine.shedding = engine.shedding, 0
        if not engine.closed:
            shed = engine.take_first(count)
            self.dealer.came(engine, -len(shed))
            self.dealer.spread(shed)

    def _emptied(self, engine: BatchingEngine, *, keeps_tokens: bool) -> list[Sample]:
        """What an instance that goes had, as far as it goes on."""
        if engine.break_off():
            self.recorder.run(engine)
        queued = list(engine.queue)
        engine.queue.clear()
        if keeps_tokens:
            running = engine.take_out()
            engine.forget_left()
        else:
            running = self._start_anew(engine)
        for sample in [one for one in running if not one.group.unfinished]:  # redundant, until the end of their step
            running.remove(sample)
            self._throw_away(sample)
        if engine.ejecting:
            self._put_away(running)
            running = []
        engine.up = engine.paused = engine.pausing = engine.ejecting = False
        engine.shedding, engine.outdated = 0, False
        if engine.loading is not None:
            self.loop.cancel(engine.loading)
            engine.loading = None
        engine.prefixes.clear()
        return [*running, *queued]

    # Accounts

    def tokens_under_way(self) -> int:
        """Tokens of samples that have not finished, and of finished ones whose group is not complete. [token]"""
        running = sum(engine.tokens_in_batch() for engine in self.engines)
        queued = sum(sample.done for engine in self.engines for sample in engine.queue if sample not in engine.parked)
        waiting = sum(sample.done for sample in [*self.dealer.queue, *self.carried])
        return running + queued + waiting + self._finished_tokens + self.scoring.called_elsewhere()

    # What engines and tools report

    def _ended(self, sample: Sample, engine: BatchingEngine) -> bool:
        """A stretch has ended; whether nobody has to react: its group goes on, and no one waits for its slot."""
        self.dealer.left(engine)
        length, group = sample.length, sample.group
        equips = self.scoring.equips
        if not group.unfinished:  # others were quicker
            self._redundant.pop(sample, None)
            engine.give_up(sample)
            self._throw_away(sample)
            return False
        if equips and sample.done == length:
            self.scoring.leave()
        if sample.done < length:
            self.scoring.call_tool(sample, engine)
        elif group.dropped:
            self.dropped_tokens += length
        else:
            self._finished_tokens += length
            if self._verifies:
                self.scoring.score(sample)
            elif group.unfinished > 1:
                self._scored(sample)
                return self._unseen and not equips and not (self.wants_slots and self.dealer.slot_free())
            else:
                self._scored(sample)
        return False

    def _stepped(self, engine: BatchingEngine) -> None:
        if not self._unseen:  # a call less for each run of steps
            self.recorder.run(engine)
        if engine.ejecting:
            before = engine.load
            self._eject(engine)
            self.dealer.came(engine, engine.load - before)
        if engine.shedding:
            self._shed(engine)
        if engine.outdated:
            self._load(engine)
        if engine.pausing:
            self._pause_if_due(engine)
        self.touch(engine)

    def _called_back(self, sample: Sample, engine: BatchingEngine) -> None:
        """A tool has answered: its sample goes on where its KV is, or elsewhere if the instance is gone."""
        if engine.up and not (engine.leaving and sample not in engine.parked):
            engine.called_back(sample, self.scoring.tool_tokens)
            self.dealer.came(engine)
            if engine.entry is not None and len(engine.ends) < engine.slots:
                engine.interrupt()
            self.touch(engine)
        else:
            sample.held += self.scoring.tool_tokens
            self.dealer.deal_one_by_one([sample])

    def _scored(self, sample: Sample) -> None:
        group = sample.group
        if not group.unfinished:
            return
        group.unfinished -= 1
        if self._needed is not None:
            group.first.append(sample)
        if not group.unfinished and not group.dropped:
            if self._needed is not None:
                self._redundant |= dict.fromkeys(group.take_first())
            group.oldest = min([one.version for one in group.samples])
            del self.under_way[group]
            self._finished_tokens -= group.tokens
            self.completed(group)

    # Stopping

    def _pause_if_due(self, engine: BatchingEngine) -> None:
        if self._way == "drain" and (engine.ends or engine.parked):
            return
        engine.pausing, engine.paused = False, True
        if self._way == "abort":
            before = engine.load
            engine.queue.extendleft(reversed(self._start_anew(engine)))
            self.dealer.came(engine, engine.load - before)
        self.touch(engine)

    def _start_anew(self, engine: BatchingEngine) -> list[Sample]:
        """Samples with KV on an instance lose it, and their tokens; those of them that are not queued there."""
        running, between = engine.take_out(), engine.forget_left()
        self.lose([*running, *between])
        return [*running, *(sample for sample in between if self.scoring.forget_call(sample))]

    def _eject(self, engine: BatchingEngine) -> None:
        """An instance between two steps gives up its batch, and all KV."""
        engine.ejecting = False
        self._put_away(engine.take_out())
        self._put_away(self.scoring.skip_calls(engine.forget_left()))
        engine.prefixes.clear()

    def _put_away(self, samples: list[Sample]) -> None:
        if self.keeps_ejected:
            self.carried += samples
        else:
            self.scoring.leave(len(samples))
            self.dropped_tokens += sum(sample.done for sample in samples)
