"""The load of a rollout: groups of samples, kept at a concurrency or sent at once; the same for every engine."""

from __future__ import annotations

import json
import queue
import random
import sys
import threading
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from rlsize.measure.workers.events import say

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

KEPT = (  # what lines of a metrics page must name to be worth reading; the rest would only cost time beside the load
    "generation_tokens",
    "prompt_tokens",
    "prefix_cache_",
    "num_requests_",
    "cache_usage_perc",
    "num_preemptions",
    "request_success",
    "iteration_tokens",
    "cache_config_info",
    "sglang:realtime_tokens_total",
    "sglang:num_running_reqs",
    "sglang:num_queue_reqs",
    "sglang:num_retracted_requests_total",
    "sglang:token_usage",
    "sglang:max_total_num_tokens",
    "sglang:page_size",
)
DROPPED = ("_bucket{", "_created{", "_created ", "_max_num_", "external_")


@dataclass(frozen=True)
class Group:
    """
    Samples of one prompt, all of one length.

    Args:
        key: What its prompt is drawn from: equal keys have equal prompts.
        prompt_tokens: Length of the prompt.
        samples: How many.
        response_tokens: Tokens that each sample generates.
        age: Tokens that it is taken to have generated before; they stand behind the prompt.
        salt: What those tokens are drawn from.
        parts: What its prompt is made of in place of all that: token ids, or how many to draw.
        then: The turns that follow for each sample: what comes before the response, in the same way, and its tokens.
        repeat: How often its prompt was there before in a list that is played again and again.
        turn: Which turn of which sample it is.
    """

    key: str
    prompt_tokens: int
    samples: int
    response_tokens: int
    age: int = 0
    salt: str = ""
    parts: Sequence[list[int] | int] = field(default=(), compare=False)
    then: Sequence[tuple[list[int] | int, int]] = field(default=(), compare=False)
    repeat: int = 0
    turn: str = ""

    @property
    def cache_salt(self) -> str:
        """What keeps a prompt of a file that comes again from finding itself in the prefix cache; others it finds."""
        return f"{self.repeat}.{self.key.partition('.')[2]}" if self.parts else ""

    def token_ids(self, vocabulary: int) -> list[int]:
        """Its prompt as token ids: those of its file, or drawn ones."""
        own = f"{self.key}/{self.salt}"
        if self.parts:  # the first is that of the whole group
            seeds = [self.key, *(f"{own}/{place}" for place in range(1, len(self.parts)))]
            parts = zip(seeds, self.parts, strict=True)
            return [
                one
                for seed, part in parts
                for one in (_drawn(seed, vocabulary, part) if isinstance(part, int) else part)
            ]
        return _drawn(self.key, vocabulary, self.prompt_tokens) + _drawn(own, vocabulary, self.age)


def _drawn(seed: str, vocabulary: int, tokens: int) -> list[int]:
    """Token ids, drawn evenly from the vocabulary but for the lowest few, which are special."""
    return random.Random(seed).choices(range(min(10, vocabulary - 1), vocabulary), k=tokens)  # noqa: S311 (a workload, no secret)


class Phase:
    """
    What to generate until all is done, or until told to halt.

    Args:
        command: `groups` to start with, `refill` to go on with (again and again, with fresh prompts), `concurrency`,
            `page_seconds` between two looks at the engine's counters.
    """

    def __init__(self, command: dict[str, Any]) -> None:
        self.name: str = command["phase"]
        self.page_seconds: float = command["page_seconds"]
        self.concurrency: int = command["concurrency"]
        self.endless = bool(command["refill"])
        self.in_flight = 0
        self.asked = 0
        self.sent: dict[Group, float] = {}  # those in flight, and since when
        self._groups = self._all(command)
        self._next: Group | None = next(self._groups, None)

    @staticmethod
    def _all(command: dict[str, Any]) -> Iterator[Group]:
        yield from (Group(*entry) for entry in command["groups"])
        lap = 0
        while command["refill"]:
            for key, *rest in command["refill"]:
                yield Group(f"{key}.{lap}", *rest)
            lap += 1

    def admit(self) -> Iterator[Group]:
        """The groups for which there is room now."""
        while self._next is not None and self._fits(self._next):
            group, self._next = self._next, next(self._groups, None)
            self.in_flight += group.samples
            self.asked += group.samples * group.response_tokens
            self.sent[group] = time.perf_counter()
            yield group

    def _fits(self, group: Group) -> bool:
        return not self.endless or self.in_flight == 0 or self.in_flight + group.samples <= self.concurrency

    def over(self, commands: Commands) -> bool:
        """Whether it should end, done or not."""
        return self.endless and commands.halted()

    def ended(self, group: Group, made: Sequence[Sequence[int]] = ()) -> list[Group]:
        """Note that a group left the engine, with the tokens of its samples; their next turns, which follow at once."""
        self.in_flight -= group.samples
        self.sent.pop(group, None)
        if not group.then:
            return []
        (prompt, response), *later = group.then
        follow = [
            replace(
                group,
                samples=1,
                response_tokens=response,
                parts=[*group.parts, list(tokens), prompt],
                then=later,
                turn=f"{group.turn}/{sample}",
            )
            for sample, tokens in enumerate(made)
        ]
        self.in_flight += len(follow)
        self.asked += len(follow) * response
        self.sent |= dict.fromkeys(follow, time.perf_counter())
        return follow


class Commands:
    """What rlsize says on standard input, read beside the work."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for line in sys.stdin:
            self._queue.put(json.loads(line))
        self._queue.put({"do": "quit"})

    def wait(self) -> dict[str, Any]:
        """The next command."""
        return self._queue.get()

    def halted(self) -> bool:
        """Whether the phase that runs should end."""
        return not self._queue.empty()


def needed(page: str) -> str:
    """The lines of a metrics page that are read."""
    found = []
    for line in page.splitlines():
        name = line.partition("{")[0]
        kept = not line.startswith("#") and any(part in name for part in KEPT)
        if kept and not any(part in line for part in DROPPED):
            found.append(line)
    return "\n".join(found) + "\n"


class Tale:
    """
    Tells what happens in a phase: groups that finished, and pages of counters at even moments.

    Args:
        phase: The phase.
    """

    def __init__(self, phase: Phase) -> None:
        self.phase = phase
        self.streamed = 0
        self.opened: int | None = None  # samples whose first token has come, where a client sees it
        self._finished: list[tuple[float, int, int, float | None, float | None, bool]] = []
        self._due = 0.0

    def begin(self, page: str) -> None:
        """The phase begins now; the first page is that of before."""
        self.tell(page)
        say("begun", phase=self.phase.name, seconds=time.perf_counter())

    def due(self) -> bool:
        """Whether it is time for a page."""
        return time.perf_counter() >= self._due

    def finish(self, group: Group, samples: int, tokens: int, first: float | None) -> None:
        """Samples of a group have finished now, with so many response tokens in all, and the first at that moment."""
        self._finished.append((time.perf_counter(), samples, tokens, self.phase.sent.get(group), first, not group.then))

    def tell(self, page: str) -> None:
        """Tell the counters as they are now, and what finished since the last page."""
        now = time.perf_counter()
        say(
            "page",
            phase=self.phase.name,
            seconds=now,
            text=needed(page),
            finished=self._finished,
            in_flight=self.phase.in_flight,
            streamed=self.streamed,
            opened=self.opened,
        )
        self._finished = []
        self._due = now + self.phase.page_seconds

    def end(self, page: str, **fields: Any) -> None:
        """The phase has ended."""
        self.tell(page)
        running = [(sent, group.samples) for group, sent in self.phase.sent.items()]
        told = {"phase": self.phase.name, "asked": self.phase.asked, "running": running}
        say("idle", seconds=time.perf_counter(), **told, **fields)
