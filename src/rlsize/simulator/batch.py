"""
What an instance works on: the samples that run, those that wait, and their KV.

The cache holds the prompt of each group once, and the tokens of every sample; samples join from the head of the queue.
When room runs out, what samples have left behind goes first, the oldest of it, then the last sample that joined.
"""

from __future__ import annotations

from collections import deque
from heapq import heapify, heappush
from math import ceil, inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlsize.simulator.ledger import Group, Sample
    from rlsize.simulator.setting import EngineSetting, WorkSetting

_FEW = 64  # prompts


class Batch:
    """
    Samples of an instance.

    Args:
        setting: Its slots and its cache.
        work: What its samples are like.
    """

    __slots__ = (
        "anew", "capacity", "clock", "closed", "context", "ends", "held", "joined", "left", "limited", "lingers",
        "most_prefixes", "parked", "preemptions", "prefill", "prefixes", "prompt_tokens", "prompts", "queue", "slots",
        "version", "version_weights",
    )  # fmt: skip

    def __init__(self, setting: EngineSetting, work: WorkSetting) -> None:
        self.slots, self.capacity, self.limited = setting.slots, setting.kv_tokens, setting.kv_tokens < inf
        self.prompt_tokens = work.prompt_tokens
        self.lingers = self.limited and work.turns > 1  # whether KV of finished samples may be in the way of others'
        self.anew = False  # whether all KV is to be computed once more
        self.closed = False  # whether nothing joins but what was running
        self.queue: deque[Sample] = deque()
        self.ends: list[tuple[int, int, Sample]] = []  # (clock at its end, order of joining, sample), a heap
        self.prompts: dict[Group, int] = {}  # samples with KV here, by group
        self.prefixes: set[Group] = set()  # groups whose prompt was computed here
        self.most_prefixes = _FEW  # at which those of finished groups are forgotten
        self.parked: dict[Sample, int] = {}  # samples between two turns, some KV here; tokens to compute beside
        self.left: dict[Sample, None] = {}  # they, and those that have finished with their KV here: the oldest first
        self.clock = self.joined = self.context = self.held = 0  # steps, samples that joined, tokens read, KV tokens
        self.prefill = 0  # prompt tokens to compute in the coming step
        self.preemptions = 0
        self.version = 0
        self.version_weights = 0  # sum of its changes, each times the clock then

    @property
    def load(self) -> int:
        """Samples that run or are queued here. [1]"""
        return len(self.ends) + len(self.queue)

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

    def take_first(self, count: int) -> list[Sample]:
        """So many samples of the batch, those that joined first, without their KV; between two steps only."""
        first = [entry[2] for entry in sorted(self.ends, key=_joined)[:count]]
        for sample in first:
            self.take(sample)
            self._free(sample)
        return first

    def take(self, sample: Sample) -> None:
        """Take a sample out of the batch; between two steps only."""
        self.ends = [entry for entry in self.ends if entry[2] is not sample]
        heapify(self.ends)
        self._leave(sample)

    def leave_behind(self, sample: Sample) -> None:
        """A sample that has left the batch leaves its KV here, if anybody may find it, or be in want of its room."""
        if sample.done < sample.length:
            self.parked[sample] = 0
        elif not self.lingers:
            self._free(sample)
            return
        self.left[sample] = None

    def give_up(self, sample: Sample) -> None:
        """A sample between two turns does not go on; its KV is like that of one that has finished."""
        if self.parked.pop(sample, None) is not None and not self.lingers:
            self._forget(sample)

    def forget_left(self) -> list[Sample]:
        """Throw out all KV that was left behind; the samples between two turns to which some of it belonged."""
        parked = list(self.parked)
        for sample in list(self.left):
            self._forget(sample)
        return parked

    def called_back(self, sample: Sample, tokens: int) -> None:
        """A tool has answered: the sample goes to the head of the queue, with so many tokens more to compute."""
        if sample in self.parked:
            self.parked[sample] += tokens
        else:
            sample.held += tokens
        self.queue.appendleft(sample)

    def compute_anew(self) -> None:
        """Have the KV of every sample here computed once more in the coming step, each prompt once; forget the rest."""
        self.anew = self.held > 0
        self.prefixes.clear()

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

    def _forget(self, sample: Sample) -> None:
        """Throw out the KV that a sample has left behind."""
        del self.left[sample]
        self._free(sample)
        sample.held += self.parked.pop(sample, 0)

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
                del self.left[sample]
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
            if self.left:
                self._throw_out(len(ends))

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
        """Whether what runs, a sample, and the tokens of the coming step fit into the cache; one always does."""
        if not self.ends or self.held + self._fresh(sample) + len(self.ends) + 1 <= self.capacity:
            return True
        return bool(self.left) and self._needed(sample) + len(self.ends) + 1 <= self.capacity

    def _needed(self, *joining: Sample) -> int:
        """KV of what runs, and of samples that would: all but what only those left behind have. [token]"""
        groups = {sample.group for sample in [*joining, *(entry[2] for entry in self.ends)]}
        own = sum(sample.held + self.parked.get(sample, 0) for sample in joining)
        return self.context + self.prompt_tokens * (len(groups) - len(self.ends)) + own

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

    def _throw_out(self, tokens: int) -> None:
        """Throw out what was left behind until so many tokens more fit: the oldest, its last tokens first."""
        while self.left and (lacking := self.held + tokens - self.capacity) > 0:
            oldest = next(iter(self.left))
            if lacking < oldest.held:
                lost = ceil(lacking)
                oldest.held -= lost
                self.held -= lost
                if oldest in self.parked:
                    self.parked[oldest] += lost
            else:
                self._forget(oldest)
                if oldest.group not in self.prompts:
                    self.prefixes.discard(oldest.group)

    def _make_room(self) -> None:
        """Throw out what was left behind, then samples, until the coming step's tokens fit; one always runs."""
        self._throw_out(len(self.ends))
        while len(self.ends) > 1 and self.held + len(self.ends) > self.capacity:
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


def _joined(entry: tuple[int, int, Sample]) -> int:
    return entry[1]
