"""
Who trains what: samples dealt over ranks and packed into micro-batches, and how much of a step there is time for.

Standard library only: every rank works the same plan out, so that none has to be sent, and rlsize itself can read it.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from statistics import fmean, pstdev
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

SHARE_FOR_STEPS = 0.8  # of the time there is; the rest is for optimizer steps, which the probe does not see
ENOUGH_STEPS = 3  # timed steps below which a spread says little
OVERRUN = 1.25  # of the time there is, for the sake of enough steps
_TINY = 1e-6

Lengths = tuple[int, int]
"""Prompt and response of a sample, in tokens."""
MicroBatch = tuple[int, ...]
"""Samples, by their place in the step; empty where a rank only keeps the others company."""


@dataclass(frozen=True)
class Plan:
    """
    The micro-batches of each rank for one optimizer step.

    Every rank has the same number of them, since each forward and backward is collective.

    Args:
        ranks: For each rank its micro-batches.
    """

    ranks: tuple[tuple[MicroBatch, ...], ...]

    @property
    def micro_batches(self) -> int:
        """Micro-batches of a rank."""
        return len(self.ranks[0])

    def every(self, count: int) -> Plan:
        """A part of the step: so many micro-batches of each rank, evenly spaced."""
        kept = [position * self.micro_batches // count for position in range(count)]
        return Plan(tuple(tuple(rank[position] for position in kept) for rank in self.ranks))

    def samples(self) -> list[int]:
        """All samples in it."""
        return sorted(sample for rank in self.ranks for batch in rank for sample in batch)


def step_plan(lengths: Sequence[Lengths], ranks: int, micro_batch_tokens: int) -> Plan:
    """
    Deal samples over ranks, then pack each rank's into micro-batches; no sample is split.

    Both go longest first to whoever has the fewest tokens. Micro-batches are as few as that way allows.

    Args:
        lengths: Prompt and response of each sample. [token]
        ranks: Ranks that share the step.
        micro_batch_tokens: Most tokens of a micro-batch; no sample may be longer. [token]
    """
    tokens = [prompt + response for prompt, response in lengths]
    dealt = _balanced(range(len(tokens)), tokens, ranks)
    count = max(-(-sum(tokens[sample] for sample in share) // micro_batch_tokens) for share in dealt)
    while True:
        packed = [_balanced(share, tokens, count) for share in dealt]
        if all(_held(batch, tokens) <= micro_batch_tokens for rank in packed for batch in rank):
            return Plan(tuple(tuple(tuple(batch) for batch in rank) for rank in packed))
        count += 1


def _balanced(samples: Sequence[int], tokens: Sequence[int], parts: int) -> list[list[int]]:
    """Samples in parts of about equally many tokens, the fullest part first."""
    found: list[list[int]] = [[] for _ in range(parts)]
    held = [0] * parts
    for sample in sorted(samples, key=lambda sample: (-tokens[sample], sample)):
        least = held.index(min(held))
        found[least].append(sample)
        held[least] += tokens[sample]
    return sorted(found, key=lambda part: -_held(part, tokens))


def _held(batch: Sequence[int], tokens: Sequence[int]) -> int:
    return sum(tokens[sample] for sample in batch)


def group_advantages(samples: int, group_size: int, seed: int) -> list[float]:
    """
    Advantages as GRPO has them: random rewards, less the mean of their group, over its standard deviation.

    A group of one has no deviation of its own and is judged against the whole step instead.
    """
    random = Random(seed)  # noqa: S311 (made-up rewards, not secrets)
    rewards = [random.random() for _ in range(samples)]
    size = group_size if group_size > 1 else samples
    found: list[float] = []
    for start in range(0, samples, size):
        group = rewards[start : start + size]
        found += [(reward - fmean(group)) / (pstdev(group) + _TINY) for reward in group]
    return found if samples > 1 else [1.0]


def affordable(seconds: float, seconds_each: float, micro_batches: int, steps: int) -> int:
    """
    Micro-batches of a step that there is time for, one or more.

    Args:
        seconds: Time for all steps. [s]
        seconds_each: Of one micro-batch: log-probs, forward and backward. [s]
        micro_batches: Those of a whole step.
        steps: Steps that must fit, warm-up included.
    """
    return max(1, min(micro_batches, int(SHARE_FOR_STEPS * seconds / (steps * seconds_each))))


def another(done: int, most: int, elapsed: float, step_seconds: float, seconds: float) -> bool:
    """
    Whether to time another step.

    Args:
        done: Steps timed so far.
        most: Steps wanted.
        elapsed: Since training began. [s]
        step_seconds: The last step. [s]
        seconds: Time for all steps; enough steps may take a little more. [s]
    """
    if done == 0:
        return True
    allowed = seconds * OVERRUN if done < ENOUGH_STEPS else seconds
    return done < most and elapsed + step_seconds <= allowed
