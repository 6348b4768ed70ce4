"""One stretch of generation as it was recorded: pages of counters, and samples that finished."""

from __future__ import annotations

from dataclasses import dataclass, field

from rlsize.facts.counters import Snapshot  # noqa: TC001 (a field's type, resolved at run time)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """
    Samples that finished together.

    Args:
        seconds: When, on the clock of the run. [s]
        samples: How many. [1]
        tokens: Their response tokens in all. [token]
    """

    seconds: float
    samples: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseRun:
    """
    What one instance did in one phase.

    Args:
        instance: What it is called.
        concurrency: Samples kept in flight; of a finite batch, all of them. [1]
        begun: When the first request was sent, on the clock of the run. [s]
        full: When all that it began with had been read, on all instances; None before that, and of a finite batch. [s]
        ended: When the phase ended; None where it broke off. [s]
        asked: Response tokens asked for. [token]
        snapshots: Counters, the first from before the phase; an engine without a page has those of the client.
        finished: Samples that finished.
        refused: Requests that the server turned away as busy. [1]
        broken: Requests whose connection broke. [1]
        own_counters: Whether the snapshots are the engine's own.
    """

    instance: str
    concurrency: int
    begun: float
    full: float | None = None
    ended: float | None = None
    asked: int = 0
    snapshots: tuple[Snapshot, ...] = ()
    finished: tuple[Finished, ...] = field(default=())
    refused: int = 0
    broken: int = 0
    own_counters: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutWork:
    """
    The workload of a rollout.

    Args:
        prompt_tokens: Length of each prompt. [token]
        group_size: Samples of one prompt. [1]
        response_tokens: Response lengths, one for each prompt of the batch. [token]
        block_tokens: Tokens of one KV block. [token]
    """

    prompt_tokens: int
    group_size: int
    response_tokens: tuple[int, ...]
    block_tokens: int = 16
