"""
One rollout instance: continuous batching, a step at a time, without looking at each step.

Between two events the batch of an instance stays the same and its samples finish in the order of their ends, so the
instance plans a run of steps, has one entry in the event loop, and sums their times in closed form.
"""

from __future__ import annotations

from heapq import heapify, heappop
from math import sqrt
from typing import TYPE_CHECKING, Any

from rlsize.simulator.batch import Batch

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlsize.simulator.event_loop import EventLoop
    from rlsize.simulator.ledger import Sample
    from rlsize.simulator.setting import EngineSetting, WorkSetting


class BatchingEngine(Batch):
    """
    An instance.

    Args:
        index: Its number in the fleet, and its rank among what happens at the same time.
        setting: What its steps take.
        work: What its samples are like.
        loop: The event loop.
        ended: Called with each sample whose stretch has ended, and this instance; it says whether nobody has to react.
        stepped: Called when a run of steps has ended.
    """

    __slots__ = (
        "batch_seconds", "busy_seconds", "ejecting", "ended", "entry", "generated", "index", "kv_seconds",
        "last_batch", "leaving", "loading", "loop", "outdated", "paused", "pausing", "planned", "planned_seconds",
        "prefill_seconds", "run_prefill", "setting", "shedding", "slot_seconds", "slowdown", "started", "state",
        "stepped", "there", "touched", "up",
    )  # fmt: skip

    def __init__(
        self,
        index: int,
        setting: EngineSetting,
        work: WorkSetting,
        loop: EventLoop,
        ended: Callable[[Sample, BatchingEngine], bool],
        stepped: Callable[[BatchingEngine], None],
    ) -> None:
        super().__init__(setting, work)
        self.index, self.loop, self.ended, self.stepped = index, loop, ended, stepped
        self.setting, self.batch_seconds = setting, 0.0  # of the run under way
        self.kv_seconds, self.prefill_seconds = setting.kv_seconds, setting.prefill_seconds
        self.slowdown = 1.0
        self.up = True
        self.there = True  # whether the fleet has it: not lent, not taken away, and lost for a while at most
        self.paused = self.pausing = self.ejecting = self.leaving = False
        self.touched, self.state = False, "idle"  # for the fleet
        self.outdated = False  # whether it takes new weights when its step ends
        self.loading: list[Any] | None = None  # them, until they are there
        self.shedding = 0  # samples that it gives up when its step ends
        self.entry: list[Any] | None = None
        self.started, self.planned, self.planned_seconds = 0.0, 0, 0.0
        self.run_prefill = 0  # prompt tokens that the run under way computes
        self.busy_seconds = self.slot_seconds = 0.0  # of steps that have ended, and of the samples in them
        self.generated = self.last_batch = 0

    def begin(self) -> bool:
        """Begin a run of steps, if there is anything to run; whether there is."""
        ends = self.ends
        if self.limited and self.held + len(ends) > self.capacity:
            self._make_room()
        if self.anew:
            self.anew = False
            self.prefill += self.held
            self.prefixes.update(self.prompts)
        if self.queue:
            self._join()
        if not ends:
            return False
        steps = ends[0][0] - self.clock
        if self.limited:
            held = self._needed() if self.left else self.held
            steps = min(steps, max(1, int((self.capacity - held) // len(ends))))
        self.batch_seconds = self.setting.batch_seconds(len(ends))
        loop = self.loop
        now = self.started = loop.now
        self.planned, self.run_prefill, self.prefill = steps, self.prefill, 0
        seconds = self.planned_seconds = self._time_of(steps)
        self.entry = loop.at(now + seconds, self._boundary, self.index)
        return True

    def interrupt(self) -> None:
        """End the run under way with the step under way; at once if a step ends just now."""
        if self.entry is None:
            return
        loop = self.loop
        steps = self._steps_by(loop.now)
        seconds = self._time_of(steps) if steps else 0.0
        if steps and self.started + seconds == loop.now:
            loop.cancel(self.entry)
            self._advance(steps, seconds)
            self.stepped(self)
        elif steps + 1 < self.planned:
            loop.cancel(self.entry)
            self.planned, self.planned_seconds = steps + 1, self._time_of(steps + 1)
            self.entry = loop.at(self.started + self.planned_seconds, self._boundary, self.index)

    def cut(self, sample: Sample) -> bool:
        """Have a sample of the batch leave it when the step under way ends; whether it has left at once."""
        self.interrupt()
        if self.entry is None:
            self.take(sample)
            self.leave_behind(sample)
            self.give_up(sample)
            return True
        at_end = self.clock + self.planned
        self.ends = [(at_end, *entry[1:]) if entry[2] is sample else entry for entry in self.ends]
        heapify(self.ends)
        return False

    def break_off(self) -> bool:
        """End the run under way at once, if there is one; steps that have not ended count for nothing."""
        if self.entry is None:
            return False
        self.loop.cancel(self.entry)
        self._advance(self._steps_by(self.loop.now), self.loop.now - self.started)
        return True

    def so_far(self) -> tuple[int, float, float]:
        """Tokens, seconds, and seconds of samples of the steps that have ended, those of the run under way included."""
        steps = self._steps_by(self.loop.now) if self.entry is not None else 0
        if not steps:
            return self.generated, self.busy_seconds, self.slot_seconds
        batch, seconds = len(self.ends), self._time_of(steps)
        return self.generated + steps * batch, self.busy_seconds + seconds, self.slot_seconds + seconds * batch

    def tokens_in_batch(self) -> int:
        """Tokens so far of all samples in the batch, and of those that wait for a tool. [token]"""
        now = self.clock + (self._steps_by(self.loop.now) if self.entry is not None else 0)
        running = sum(entry[2].done + now - entry[2].joined for entry in self.ends)
        return running + sum(sample.done for sample in self.parked)

    def _boundary(self) -> bool:
        """
        The run of steps has ended, and a sample with it, unless it was interrupted or the cache is full.

        Returns:
            Whether nobody else has to react; the next run has begun then.
        """
        self._advance(self.planned, self.planned_seconds)
        ends, clock, ended, quiet, preempted = self.ends, self.clock, self.ended, self.loop.alone, self.preemptions
        while ends and ends[0][0] == clock:
            sample = heappop(ends)[2]
            self._leave(sample)
            self.leave_behind(sample)
            if not ended(sample, self):
                quiet = False
        if quiet and not (self.pausing or self.ejecting or self.shedding or self.outdated) and self.begin():
            return self.preemptions == preempted
        self.stepped(self)
        return False

    def _advance(self, steps: int, seconds: float) -> None:
        """Let the first steps of the run have ended, and the run with them."""
        batch = self.last_batch = len(self.ends)
        self.busy_seconds += seconds
        self.slot_seconds += seconds * batch
        tokens = steps * batch
        self.clock += steps
        self.context += tokens
        self.held += tokens
        self.generated += tokens
        self.entry = None
        if self.left:  # what step after step would have thrown out
            self._throw_out(0)

    def _time_of(self, steps: int) -> float:
        """Seconds of the first steps of a run: the live KV grows by the batch with each of them."""
        batch, kv_seconds = len(self.ends), self.kv_seconds
        each = self.batch_seconds + kv_seconds * self.context
        growth = kv_seconds * batch * (steps * (steps - 1) / 2)
        return (steps * each + growth + self.prefill_seconds * self.run_prefill) * self.slowdown

    def _steps_by(self, now: float) -> int:
        """Steps of the run under way that have ended by then."""
        batch = len(self.ends)
        passed = (now - self.started) / self.slowdown - self.prefill_seconds * self.run_prefill
        half = self.kv_seconds * batch / 2
        each = self.batch_seconds + self.kv_seconds * self.context - half
        if passed <= 0.0:
            guess = 0
        elif half > 0.0:
            guess = int((sqrt(each * each + 4.0 * half * passed) - each) / (2.0 * half))
        else:
            guess = int(passed / each)
        guess = min(guess, self.planned)
        while guess < self.planned and self.started + self._time_of(guess + 1) <= now:
            guess += 1
        while guess > 0 and self.started + self._time_of(guess) > now:
            guess -= 1
        return guess
