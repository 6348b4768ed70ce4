"""What happens to KV that samples leave behind: by hand, and against a cache that is written token by token."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from math import ceil, inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import tries
from tests.simulator.test_exact_rules import column, played

from rlsize.simulator.setting import Latency

TOOL = 1.5


@dataclass(eq=False)
class Sample:
    """Tokens of a response, context beside the prompt, how much of it has KV, and its turns."""

    group: int
    length: int
    turns: int
    done: int = 0
    context: int = 0
    kv: int = 0
    turn: int = 1

    @property
    def stop(self) -> int:
        """Where its turn ends."""
        return max(self.done + 1, ceil(self.length * self.turn / self.turns))


@dataclass
class Cache:
    """Samples of one instance in seconds: steps of half one, or so, and a quarter for each token that is computed."""

    kv_tokens: float
    slots: int
    prompt: int
    queue: deque[Sample] = field(default_factory=deque)
    running: list[Sample] = field(default_factory=list)
    left: list[Sample] = field(default_factory=list)
    prompts: set[int] = field(default_factory=set)  # in the prefix cache
    preemptions: int = 0

    def lacks(self, there: list[Sample]) -> bool:
        """Whether so many samples and the tokens of a step do not fit."""
        prompts = self.prompt * len({sample.group for sample in there})
        kv = sum(sample.context if sample in self.running else sample.kv for sample in there)
        return prompts + kv + len(self.running) > self.kv_tokens

    def throw_out(self) -> None:
        """Token by token, the oldest first."""
        while self.left and self.lacks(self.running + self.left):
            oldest = self.left[0]
            oldest.kv -= 1
            if not oldest.kv:
                self.left.remove(oldest)
                if all(sample.group != oldest.group for sample in self.running + self.left):
                    self.prompts.discard(oldest.group)

    def begin(self) -> float:
        """Begin a step; how long it takes. [s]"""
        self.throw_out()
        while len(self.running) > 1 and self.lacks(self.running):
            last = self.running.pop()
            last.kv = 0
            self.queue.appendleft(last)
            self.preemptions += 1
        computed = 0
        while self.queue and len(self.running) < self.slots:
            self.running.append(self.queue[0])
            if len(self.running) > 1 and self.lacks(self.running):
                self.running.pop()
                break
            sample = self.queue.popleft()
            self.left = [one for one in self.left if one is not sample]
            computed += sample.context - sample.kv + (0 if sample.group in self.prompts else self.prompt)
            self.prompts.add(sample.group)
            sample.kv = sample.context
            self.throw_out()
        return 0.5 + 0.25 * computed

    def end(self, tool_tokens: int) -> list[Sample]:
        """A step has ended; which samples go to their tools."""
        for sample in self.running:
            stop = sample.stop
            sample.done, sample.kv, sample.context = sample.done + 1, sample.kv + 1, sample.context + 1
            if sample.done == stop:
                self.left.append(sample)
        called = [one for one in self.running if one in self.left and one.done < one.length]
        self.running = [one for one in self.running if one not in self.left]
        for sample in called:
            sample.turn += 1
            sample.context += tool_tokens
        return called


def batch_seconds(cache: Cache, tool_tokens: int) -> float:
    """Time until all samples of the queue have ended. [s]"""
    now, ends = 0.0, inf
    waiting: deque[tuple[float, Sample]] = deque()
    while True:
        if ends == inf:
            seconds = cache.begin()
            ends = now + seconds if cache.running else inf
        if ends == inf and not waiting:
            return now
        now = min([ends, *(time for time, _ in waiting)])
        if now == ends:
            ends = inf
            waiting += [(now + TOOL, sample) for sample in cache.end(tool_tokens)]
        while waiting and waiting[0][0] <= now:
            cache.queue.appendleft(waiting.popleft()[1])


@pytest.mark.parametrize(("kv_tokens", "more"), [(12, 0), (11, 1), (10, 4), (8, 4), (7, 4 + 1), (6, 4 + 4)])
def test_a_sample_that_runs_takes_the_room_of_what_was_left_behind(kv_tokens: int, more: int) -> None:
    """
    One slot for two samples, each of 2 + 2 tokens with an answer of 2 between, and a prompt of 2. Both first turns
    take 1.5 s, and the first has its answer as the second one's ends. It then grows to 8 tokens beside 4 that are left
    of the other; these grew beside 4 of its own. Of 4 tokens the own two go first, and the prompt with the second.
    """
    work = {"turns": 2, "tool_tokens": 2, "tool": Latency(seconds=TOOL), "prompt_tokens": 2}
    engine = {"slots": 1, "kv_tokens": float(kv_tokens), "fixed_seconds": 0.5, "prefill_seconds": 0.25}
    ledger = played(((4,), (4,)), groups=2, engine=engine, work=work, tool=TOOL)
    assert column(ledger, "waiting_seconds") == [4 * 1.5 + more * 0.25]
    assert column(ledger, "preemptions") == [0.0]


ROWS = st.integers(1, 4).flatmap(
    lambda size: st.lists(st.lists(st.integers(1, 9), min_size=size, max_size=size).map(tuple), min_size=1, max_size=4)
)


@settings(max_examples=tries(300), deadline=None)
@given(ROWS, st.integers(4, 60), st.integers(1, 5), st.integers(0, 6), st.integers(0, 4), st.integers(2, 4))
def test_a_cache_runs_over_as_one_that_is_written_token_by_token(
    rows: list[tuple[int, ...]], kv_tokens: int, slots: int, prompt: int, tool_tokens: int, turns: int
) -> None:
    """The same time and the same preemptions, whatever a run of steps throws out at once."""
    size = len(rows[0])
    cache = Cache(kv_tokens, slots, prompt)
    cache.queue += [Sample(group, length, turns) for group, row in enumerate(rows) for length in row]
    expected = batch_seconds(cache, tool_tokens)
    work = {"turns": turns, "tool_tokens": tool_tokens, "tool": Latency(seconds=TOOL), "prompt_tokens": prompt}
    engine = {"slots": slots, "kv_tokens": float(kv_tokens), "fixed_seconds": 0.5, "prefill_seconds": 0.25}
    drawn = (turns,) * size
    ledger = played(tuple(rows), groups=len(rows), engine=engine, work=work, tool=TOOL, turns_drawn=drawn)
    assert column(ledger, "waiting_seconds") == [expected]
    assert column(ledger, "preemptions") == [cache.preemptions]
