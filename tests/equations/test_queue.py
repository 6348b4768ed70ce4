"""The two ages of a backlog against a queue that is played through step by step, sample by sample."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.equations import imbalance

TICK = 0.01  # seconds
BATCH = 2000.0  # tokens per optimizer step


@dataclass
class Queue:
    """First in, first out: the fleet appends what it made in a tick, the trainer takes from the head."""

    supply: float
    required: float
    now: float = 0.0
    taken: float = 0.0
    waiting: deque[list[float]] = field(default_factory=deque)

    def tick(self, *, generate: bool = True) -> None:
        """One tick of both sides; the trainer takes what there is, up to its rate."""
        self.now += TICK
        if generate:
            self.waiting.append([self.now, self.supply * TICK])
        wanted = self.required * TICK
        while wanted > 1e-9 and self.waiting:
            part = min(wanted, self.waiting[0][1])
            wanted -= part
            self.taken += part
            self.waiting[0][1] -= part
            if self.waiting[0][1] <= 1e-9:
                self.waiting.popleft()

    @property
    def backlog(self) -> float:
        """Tokens that wait."""
        return sum(tokens for _, tokens in self.waiting)

    @property
    def oldest_age(self) -> float:
        """Seconds since the head of the queue was made; 0 for an empty queue."""
        return self.now - self.waiting[0][0] if self.waiting else 0.0


def played(supply: float, required: float, seconds: float) -> Queue:
    """A queue that was empty at the start, after some time."""
    queue = Queue(supply, required)
    for _ in range(round(seconds / TICK)):
        queue.tick()
    return queue


RATES = st.floats(100.0, 1000.0)


@given(supply=RATES, required=RATES, seconds=st.integers(1, 10))
def test_backlog_and_oldest_age_are_the_queues(supply: float, required: float, seconds: int) -> None:
    """The queue's tokens and the age of its head are what the equations say, within a tick."""
    queue = played(supply, required, seconds)
    growth = imbalance.backlog_growth(supply, required)
    assert queue.backlog == pytest.approx(imbalance.backlog_after(growth, seconds), abs=1e-6)
    age = imbalance.oldest_sample_age(seconds, supply, required)
    assert queue.oldest_age == pytest.approx(age, abs=2 * TICK)


@given(supply=st.floats(500.0, 1000.0), required=st.floats(100.0, 400.0), seconds=st.integers(1, 5))
def test_a_new_sample_waits_for_the_backlog_before_it(supply: float, required: float, seconds: int) -> None:
    """From now until the sample that just came in is taken, the trainer takes the backlog: so many steps of tokens."""
    queue = played(supply, required, seconds)
    staleness = imbalance.new_sample_staleness(queue.backlog, BATCH)
    before = queue.taken
    while queue.waiting:  # what comes in later stands behind and does not matter
        queue.tick(generate=False)
    assert (queue.taken - before) / BATCH == pytest.approx(staleness, abs=1e-6)


def test_the_two_ages_differ() -> None:
    """After 600 s of the runbook's fleet of 15 the head is 10.34 steps old; a new sample will be 15.78 steps stale."""
    queue = played(600.0, 393.216, 600.0)  # a hundredth of the runbook's rates, in the same proportion
    assert queue.oldest_age / 20 == pytest.approx(10.34, abs=0.005)
    assert queue.backlog / 7864.32 == pytest.approx(15.78, abs=0.005)


@pytest.mark.parametrize("cap", [1, 2])
def test_the_caps_are_reached_when_they_say(cap: int) -> None:
    """A cap of k steps is reached after 38.0 k s by the newest sample and after 58.0 k s by the oldest."""
    newest = imbalance.seconds_until_new_sample_is_stale(cap, 786432, 20678.4)
    oldest = imbalance.seconds_until_oldest_is_stale(cap, 20.0, 60000, 39321.6)
    assert (newest, oldest) == (pytest.approx(38.03 * cap, abs=0.01), pytest.approx(58.03 * cap, abs=0.01))
    assert played(600.0, 393.216, newest).backlog == pytest.approx(cap * 7864.32, rel=1e-3)
    assert played(600.0, 393.216, oldest).oldest_age == pytest.approx(cap * 20.0, abs=2 * TICK)
