"""
One rollout instance: continuous batching, a step at a time, without looking at each step.

Between two events the batch of an instance stays the same and its samples finish in the order of their ends, so the
instance plans a run of steps, has one entry in the event loop, and sums their times in closed form.
"""

from __future__ import annotations

from collections import deque
from heapq import heapify, heappop, heappush
from math import inf, sqrt
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlsize.simulator.event_loop import EventLoop
    from rlsize.simulator.samples import Group, Sample
    from rlsize.simulator.setting import EngineSetting

_FEW = 64  # prompts


class Engine:
    """
    An instance.

    Args:
        index: Its number in the fleet, and its rank among what happens at the same time.
        setting: What its steps take.
        loop: The event loop.
        ended: Called with each sample whose stretch has ended, and this instance.
        stepped: Called when a run of steps has ended.
    """

    __slots__ = (
        "anew", "busy_seconds", "capacity", "clock", "closed", "context", "ejecting", "ended", "ends", "entry",
        "fixed_seconds", "generated", "held", "index", "joined", "kv_seconds", "last_batch", "leaving", "limited",
        "loop", "most_prefixes", "parked", "paused", "pausing", "planned", "planned_seconds", "preemptions", "prefill",
        "prefill_seconds", "prefixes", "prompt_tokens", "prompts", "queue", "run_prefill", "sample_seconds",
        "slot_seconds", "slots", "slowdown", "started", "state", "stepped", "touched", "up", "version",
        "version_weights",
    )  # fmt: skip

    def __init__(
        self,
        index: int,
        setting: EngineSetting,
        prompt_tokens: int,
        loop: EventLoop,
        ended: Callable[[Sample, Engine], None],
        stepped: Callable[[Engine], None],
    ) -> None:
        self.index, self.loop, self.ended, self.stepped = index, loop, ended, stepped
        self.slots, self.capacity, self.limited = setting.slots, setting.kv_tokens, setting.kv_tokens < inf
        self.fixed_seconds, self.sample_seconds = setting.fixed_seconds, setting.sample_seconds
        self.kv_seconds, self.prefill_seconds = setting.kv_seconds, setting.prefill_seconds
        self.prompt_tokens = prompt_tokens
        self.slowdown = 1.0
        self.up = True
        self.anew = False  # whether all KV is to be computed once more
        self.paused = self.pausing = self.ejecting = self.closed = self.leaving = False
        self.touched, self.state = False, "idle"  # for the fleet
        self.version = 0
        self.queue: deque[Sample] = deque()
        self.ends: list[tuple[int, int, Sample]] = []  # (clock at its end, order of joining, sample), a heap
        self.prompts: dict[Group, int] = {}  # samples with KV here, by group
        self.prefixes: set[Group] = set()  # groups whose prompt was computed here
        self.most_prefixes = _FEW  # at which those of finished groups are forgotten
        self.parked: dict[Sample, int] = {}  # samples between two turns, their KV here; the tool's tokens to compute
        self.clock = self.joined = self.context = self.held = 0
        self.prefill = self.run_prefill = 0  # prompt tokens to compute in the coming step, and in the run under way
        self.entry: list[Any] | None = None
        self.started, self.planned, self.planned_seconds = 0.0, 0, 0.0
        self.busy_seconds = self.slot_seconds = 0.0  # of steps that have ended, and of the samples in them
        self.generated = self.preemptions = self.last_batch = 0
        self.version_weights = 0  # sum of its changes, each times the clock then

    @property
    def load(self) -> int:
        """Samples that run or are queued here. [1]"""
        return len(self.ends) + len(self.queue)

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
            steps = min(steps, max(1, int((self.capacity - self.held) // len(ends))))
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

    def break_off(self) -> None:
        """End the run under way at once; steps that have not ended count for nothing."""
        if self.entry is None:
            return
        self.loop.cancel(self.entry)
        self._advance(self._steps_by(self.loop.now), self.loop.now - self.started)

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

    def set_version(self, version: int) -> None:
        """New weights."""
        self.version_weights += (version - self.version) * self.clock
        self.version = version

    def take_out(self) -> list[Sample]:
        """All samples of the batch, without their KV, in the order in which they joined; between two steps only."""
        out = [entry[2] for entry in sorted(self.ends, key=_joined)]
        for sample in out:
            self._leave(sample)
            self._free(sample)
        self.ends.clear()
        self.prefill, self.anew = 0, False
        return out

    def unpark(self, sample: Sample) -> None:
        """Throw out the KV of a sample between two turns, if it is still here."""
        if sample in self.parked:
            self._free(sample)
            sample.held += self.parked.pop(sample)

    def unpark_all(self) -> list[Sample]:
        """Throw out the KV of all samples between two turns; which these are."""
        parked = list(self.parked)
        for sample in parked:
            self.unpark(sample)
        return parked

    def called_back(self, sample: Sample, tokens: int) -> None:
        """A tool has answered: the sample goes to the head of the queue, with so many tokens more to compute."""
        if sample in self.parked:
            self.parked[sample] = tokens
        else:
            sample.held += tokens
        self.queue.appendleft(sample)

    def compute_anew(self) -> None:
        """Have the KV of every sample here computed once more in the coming step, each prompt once; forget the rest."""
        self.anew = self.held > 0
        self.prefixes.clear()

    def _boundary(self) -> None:
        """The run of steps has ended, and a sample with it, unless it was interrupted or the cache is full."""
        self._advance(self.planned, self.planned_seconds)
        ends, clock, ended = self.ends, self.clock, self.ended
        while ends and ends[0][0] == clock:
            sample = heappop(ends)[2]
            self._leave(sample)
            if sample.done < sample.length:
                self.parked[sample] = 0
            else:
                self._free(sample)
            ended(sample, self)
        self.stepped(self)

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

    def _leave(self, sample: Sample) -> None:
        """A sample leaves the batch: its tokens so far, and their versions, become its own."""
        clock = self.clock
        tokens = clock - sample.joined
        sample.stamped += clock * self.version - self.version_weights
        sample.done += tokens
        held = sample.held = sample.held + tokens
        self.context -= self.prompt_tokens + held

    def _free(self, sample: Sample) -> None:
        """Give back the KV of a sample, and that of its prompt if no other sample of its group is here."""
        self.held -= sample.held
        group = sample.group
        left = self.prompts[group] - 1
        if left:
            self.prompts[group] = left
        else:
            del self.prompts[group]
            self.held -= self.prompt_tokens
        sample.engine = None

    def _join(self) -> None:
        """Let samples join from the head of the queue, while there is a slot and room in the cache."""
        queue, ends, slots, parked, prompts = self.queue, self.ends, self.slots, self.parked, self.prompts
        while queue and len(ends) < slots:
            if self.closed and not self._bring_parked():
                return
            sample = queue[0]
            if self.limited and not self._fits(sample):
                return
            queue.popleft()
            if sample in parked:
                fresh = parked.pop(sample)
                sample.held += fresh
                self.held += fresh
                self.prefill += fresh
            else:
                group = sample.group
                others = prompts.get(group, 0)
                prompts[group] = others + 1
                self.held += sample.held if others else sample.held + self.prompt_tokens
                self.prefill += sample.held
                if group not in self.prefixes:
                    self._add_prefix(group)
                    self.prefill += self.prompt_tokens
            self._take_in(sample)

    def _add_prefix(self, group: Group) -> None:
        """Note that a prompt is computed here, and now and then forget those of groups that are done with."""
        if len(self.prefixes) >= self.most_prefixes:
            self.prefixes = {one for one in self.prefixes if one.unfinished and not one.dropped}
            self.most_prefixes = 2 * len(self.prefixes) + _FEW
        self.prefixes.add(group)

    def _bring_parked(self) -> bool:
        """Bring the first sample of the queue whose KV is here to its head; whether there is one."""
        sample = next((one for one in self.queue if one in self.parked), None)
        if sample is None:
            return False
        self.queue.remove(sample)
        self.queue.appendleft(sample)
        return True

    def _fresh(self, sample: Sample) -> int:
        """Tokens that a sample brings into the cache when it joins."""
        if sample in self.parked:
            return self.parked[sample]
        return sample.held if sample.group in self.prompts else sample.held + self.prompt_tokens

    def _fits(self, sample: Sample) -> bool:
        """Whether a sample, and the tokens of the coming step, fit into the cache; if nothing runs, room is made."""
        while self.held + self._fresh(sample) + len(self.ends) + 1 > self.capacity:
            if self.ends:
                return False
            if not self._unpark_last(sample):
                break
        return True

    def _take_in(self, sample: Sample) -> None:
        """A sample joins the batch."""
        clock, version = self.clock, self.version
        if sample.version < 0:
            sample.version = version
        sample.engine, sample.joined = self, clock
        sample.stamped -= clock * version - self.version_weights
        self.context += self.prompt_tokens + sample.held
        number = self.joined = self.joined + 1
        heappush(self.ends, (clock + sample.stop - sample.done, number, sample))

    def _unpark_last(self, but: Sample | None = None) -> bool:
        """Throw the KV of the sample out that went to its tool last, but one; whether there was one."""
        last = next((one for one in reversed(self.parked) if one is not but), None)
        if last is None:
            return False
        self.unpark(last)
        return True

    def _make_room(self) -> None:
        """Throw samples out until the tokens of the coming step fit; a single sample always runs."""
        ends = self.ends
        while ends and self.held + len(ends) > self.capacity:
            if self._unpark_last():
                continue
            if len(ends) == 1:
                return
            self._preempt()

    def _preempt(self) -> None:
        """The sample that joined last goes back to the head of the queue."""
        entry = max(self.ends, key=_joined)
        self.ends.remove(entry)
        heapify(self.ends)
        sample = entry[2]
        self._leave(sample)
        self._free(sample)
        self.queue.appendleft(sample)
        self.preemptions += 1

    def _time_of(self, steps: int) -> float:
        """Seconds of the first steps of a run: the live KV grows by the batch with each of them."""
        batch, kv_seconds = len(self.ends), self.kv_seconds
        each = self.fixed_seconds + self.sample_seconds * batch + kv_seconds * self.context
        growth = kv_seconds * batch * (steps * (steps - 1) / 2)
        return (steps * each + growth + self.prefill_seconds * self.run_prefill) * self.slowdown

    def _steps_by(self, now: float) -> int:
        """Steps of the run under way that have ended by then."""
        batch = len(self.ends)
        passed = (now - self.started) / self.slowdown - self.prefill_seconds * self.run_prefill
        half = self.kv_seconds * batch / 2
        each = self.fixed_seconds + self.sample_seconds * batch + self.kv_seconds * self.context - half
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


def _joined(entry: tuple[int, int, Sample]) -> int:
    return entry[1]
