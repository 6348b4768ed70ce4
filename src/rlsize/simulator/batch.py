"""
What an instance works on: the samples that run, those that wait, and their KV.

The cache holds the prompt of each group once, and the tokens of every sample; samples join from the head of the queue,
and the last one to join goes first when room runs out.
"""

from __future__ import annotations

from collections import deque
from heapq import heapify, heappush
from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlsize.simulator.ledger import Group, Sample
    from rlsize.simulator.setting import EngineSetting

_FEW = 64  # prompts


class Batch:
    """
    Samples of an instance.

    Args:
        setting: Its slots and its cache.
        prompt_tokens: Of every prompt. [token]
    """

    __slots__ = (
        "anew", "capacity", "clock", "closed", "context", "ends", "held", "joined", "limited", "most_prefixes",
        "parked", "preemptions", "prefill", "prefixes", "prompt_tokens", "prompts", "queue", "slots", "version",
        "version_weights",
    )  # fmt: skip

    def __init__(self, setting: EngineSetting, prompt_tokens: int) -> None:
        self.slots, self.capacity, self.limited = setting.slots, setting.kv_tokens, setting.kv_tokens < inf
        self.prompt_tokens = prompt_tokens
        self.anew = False  # whether all KV is to be computed once more
        self.closed = False  # whether nothing joins but what was running
        self.queue: deque[Sample] = deque()
        self.ends: list[tuple[int, int, Sample]] = []  # (clock at its end, order of joining, sample), a heap
        self.prompts: dict[Group, int] = {}  # samples with KV here, by group
        self.prefixes: set[Group] = set()  # groups whose prompt was computed here
        self.most_prefixes = _FEW  # at which those of finished groups are forgotten
        self.parked: dict[Sample, int] = {}  # samples between two turns, their KV here; the tool's tokens to compute
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
        return first

    def take(self, sample: Sample) -> None:
        """Take a sample out of the batch, and its KV; between two steps only."""
        self.ends = [entry for entry in self.ends if entry[2] is not sample]
        heapify(self.ends)
        self._leave(sample)
        self._free(sample)

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


def _joined(entry: tuple[int, int, Sample]) -> int:
    return entry[1]
