"""
Rollouts on real engines: a sweep over concurrency in steady state, and one batch waited for to its end.

A level starts as if it had run for hours: its first samples are given the ages that running samples have, as prompt.
So a few seconds show what would otherwise take several lengths of the longest response. Reading those prompts is the
fill; the clock of a level starts when it is over, and a level that never fills has no rate.
"""

from __future__ import annotations

import math
import time
from dataclasses import field
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from rlsize.equations.engine_step import cache_concurrency
from rlsize.equations.kv_cache import mean_live_tokens
from rlsize.errors import RlsizeError
from rlsize.estimates.counter_growth import grown
from rlsize.estimates.lengths import response_lengths, running_lengths
from rlsize.estimates.rollout_rate import relative_error, steady
from rlsize.facts.counters import RolloutWork
from rlsize.frozen import dataclass
from rlsize.measure.child import ChildDiedError
from rlsize.measure.instances import halt, phase

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rlsize.facts.counters import PhaseRun
    from rlsize.measure.instances import Instance

FILL = 0.9  # share of the KV cache to plan for: a full one throws samples out
SURE = 0.01  # a level whose rate is known so well needs no more time
SHORTEST_SHARE = 1 / 3  # of a level's time that it is watched, however sure it looks: a lucky start is no proof
WARM_UP_TOKENS = 24
REFILL_GROUPS = 256
BATCH_SHARE = 0.4  # of the time, kept for the batch
DEFAULT_MOST = 256  # samples at once, where nobody says what the engine takes
PAGES = 40  # looks at the counters in a level
FILL_PATIENCE = 3.0  # times the estimate, and the whole time at least, until a fill is given up
BATCH_PACE = 0.5  # of the steady rate, as a batch reaches it on its way down to one sample


class Turn(NamedTuple):
    """
    A turn of a trace that is played.

    Args:
        prompt: Token ids that come before the response, or how many.
        response_tokens: Tokens of the response. [token]
    """

    prompt: list[int] | int
    response_tokens: int

    @property
    def prompt_tokens(self) -> int:
        """Tokens that come before the response. [token]"""
        return self.prompt if isinstance(self.prompt, int) else len(self.prompt)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """
    Samples of an optimizer step.

    Args:
        prompts: Prompts in a step. [1]
        group_size: Samples of each. [1]
        prompt_tokens: Length of a prompt. [token]
        mean: Mean response length. [token]
        cv: Its coefficient of variation. [1]
        cap: The longest response; None for no cap. [token]
        traces: Turns of each prompt where they are played from a file, again and again; else prompts are drawn.
    """

    prompts: int
    group_size: int
    prompt_tokens: int
    mean: float
    cv: float
    cap: float | None
    traces: tuple[tuple[Turn, ...], ...] = ()

    def shapes(self, prompts: int, seed: int) -> list[tuple[int, int]]:
        """Prompt tokens and response tokens of so many prompts, over all their turns. [token]"""
        if not self.traces:
            return [(self.prompt_tokens, one) for one in drawn_lengths(prompts, self.mean, self.cv, self.cap, seed)]
        sums = [
            (sum(one.prompt_tokens for one in each), sum(one.response_tokens for one in each)) for each in self.traces
        ]
        return [sums[index % len(sums)] for index in range(prompts)]


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutPlan(Workload):
    """
    What to generate, and for how long; the prompts are those that one instance gets in an optimizer step.

    Args:
        concurrencies: Samples in flight of each instance; None to sweep up to the engine's limit, none for the batch
            alone. [1]
        most: The engine's limit on running samples, where the user says it. [1]
        seconds: Time for all of it, starting the engine apart. [s]
        seed: Of lengths and prompts.
        quick: Whether to measure two levels instead of a curve.
        batch: Whether to run the finite batch.
        within: Whether to size that batch to the time; else it is whole, however long it takes.
        nonce: What makes prompts differ from those of another run: a server keeps its prefix cache.
    """

    concurrencies: tuple[int, ...] | None = None
    most: int | None = None
    seconds: float = 240.0
    seed: int = 0
    quick: bool = False
    batch: bool = True
    within: bool = True
    nonce: str = ""

    def lengths(self, prompts: int) -> tuple[int, ...]:
        """The response lengths of so many groups. [token]"""
        longest = self.longest()
        return tuple(min(length, longest) for length in self._drawn(prompts))

    def longest(self) -> int:
        """The longest response that a run asks for. [token]"""
        if self.traces:
            return max(response for _, response in self.shapes(len(self.traces), self.seed))
        if self.cap is not None:
            return math.ceil(self.cap)
        return 2 * max(self._drawn(max(self.prompts, REFILL_GROUPS)))  # a tail without a cap has to end somewhere

    def context(self) -> int:
        """The most tokens that a sample may come to, prompt and response. [token]"""
        if self.traces:
            return max(map(sum, self.shapes(len(self.traces), self.seed)))
        return self.prompt_tokens + self.longest()

    def _drawn(self, prompts: int) -> list[int]:
        return [response for _, response in self.shapes(prompts, self.seed)]

    def group(self, key: str, index: int, samples: int, rest: int, age: int = 0, salt: str = "") -> list[Any]:
        """
        What a worker is told of a group.

        Args:
            key: What its prompt is drawn from.
            index: Which prompt it is.
            samples: How many. [1]
            rest: Response tokens still to come. [token]
            age: Response tokens that it is taken to have behind it. [token]
            salt: What those are drawn from.
        """
        if not self.traces:
            return [key, self.prompt_tokens, samples, rest, age, salt]
        parts: list[list[int] | int] = []
        first, *turns = self.traces[index % len(self.traces)]
        while age >= first.response_tokens:
            parts += [first.prompt, first.response_tokens]
            age -= first.response_tokens
            first, *turns = turns
        parts += [first.prompt, *([age] if age else [])]
        context = sum(part if isinstance(part, int) else len(part) for part in parts)
        return [key, context, samples, first.response_tokens - age, 0, salt, parts, turns, index // len(self.traces)]


def drawn_lengths(prompts: int, mean: float, cv: float, cap: float | None, seed: int) -> tuple[int, ...]:
    """The response lengths of so many prompts, the same ones for the same seed in rollouts and train steps. [token]"""
    return response_lengths(prompts, mean, cv, cap, Random(f"lengths {seed}"))  # noqa: S311 (a workload, no secret)


@dataclass(slots=True)
class Record:
    """
    What was recorded, level by level; what is missing was not reached.

    Args:
        work: The workload as it was run.
        limit: The most samples that an instance can run. [1]
        limited_by: What sets that limit.
        levels: The runs of all instances, by concurrency.
        batch: The runs of the finite batch.
        batch_prompts: Groups of the finite batch, over all instances. [1]
        batch_fraction: Share of an optimizer step's samples in it. [1]
        doubts: What happened on the way.
        partial: Why it is not whole; empty where it is.
    """

    work: RolloutWork
    limit: int = 0
    limited_by: str = ""
    levels: dict[int, list[PhaseRun]] = field(default_factory=dict)
    batch: list[PhaseRun] = field(default_factory=list)
    batch_prompts: int = 0
    batch_fraction: float = 1.0
    doubts: list[str] = field(default_factory=list)
    partial: str = ""
    interrupted: bool = False
    prefill_rate: float = 0.0


class Journal(Protocol):
    """What was measured in an earlier run, and where more of it is kept."""

    levels: dict[int, list[PhaseRun]]

    def keep_level(self, concurrency: int, runs: list[PhaseRun]) -> None:
        """Keep a level that is over."""


def measure_rollout(
    instances: list[Instance],
    plan: RolloutPlan,
    say: Callable[[str, float], None],
    restart: Callable[[int], list[Instance]] | None = None,
    journal: Journal | None = None,
) -> Record:
    """
    Sweep over concurrency, then one batch; what was recorded until then if it breaks off.

    Args:
        instances: The engines; all get the same load. The list follows a restart.
        plan: What to generate.
        say: Told what is going on, and the share of the time that has passed.
        restart: Starts engines of our own anew with a smaller limit on running samples, after one ran out of memory.
        journal: Has the levels of an earlier run, and keeps those of this one.
    """
    record = _record(instances[0], plan)
    try:
        _run(instances, plan, record, say, restart, journal)
    except KeyboardInterrupt:
        record.partial, record.interrupted = "interrupted", True
    except RlsizeError as error:
        if not record.levels:
            raise
        record.partial = f"{error.faults[0].where}: {error.faults[0].what}"
    return record


def _run(
    instances: list[Instance],
    plan: RolloutPlan,
    record: Record,
    say: Callable[[str, float], None],
    restart: Callable[[int], list[Instance]] | None,
    journal: Journal | None,
) -> None:
    """Let engines compile and capture before anything counts; then the levels, from the top; then the batch."""
    say("rollout, warming up", 0.0)
    name, sizes = f"warm/{plan.nonce}{plan.seed}", (plan.prompt_tokens, plan.group_size, WARM_UP_TOKENS)
    short = [[f"{name}/{index}", *sizes] for index in range(max(1, record.limit // plan.group_size))]
    for runs in phase(instances, [short] * len(instances), [], record.limit, 1.0, "warm"):
        record.prefill_rate = _prefill_rate(runs[0], runs[0].ended)
    levels = plan.concurrencies
    if levels is None:
        levels = sweep(record.limit, plan.group_size, quick=plan.quick)
    kept = journal.levels if journal is not None else {}
    share = (1.0 - BATCH_SHARE if plan.batch else 1.0) * plan.seconds / max(1, len(levels))
    for place, concurrency in enumerate(sorted(levels, reverse=True)):
        if concurrency in kept:
            record.levels[concurrency] = kept[concurrency]
            continue
        try:
            _level(instances, plan, record, concurrency, share, _from(say, place * share / plan.seconds))
        except ChildDiedError as error:
            _step_down(instances, record, sorted(levels), concurrency, error, restart)
        if journal is not None and concurrency in record.levels:
            journal.keep_level(concurrency, record.levels[concurrency])
    if plan.batch:
        done = len(levels) * share
        _batch(instances, plan, record, plan.seconds - done, _from(say, done / plan.seconds))


def sweep(limit: int, group_size: int, *, quick: bool) -> tuple[int, ...]:
    """
    Concurrencies worth measuring: by factors of four from one group to the limit, and one sample alone.

    >>> sweep(256, 8, quick=False)
    (1, 8, 32, 128, 256)
    >>> sweep(256, 8, quick=True)
    (64, 256)
    """
    if quick:
        return tuple(sorted({max(1, limit // 4), limit}))
    found, step = {1, limit}, group_size
    while step < limit:
        found.add(step)
        step *= 4
    return tuple(sorted(found))


def _record(instance: Instance, plan: RolloutPlan) -> Record:
    """An empty record with the limit that the engine's facts set."""
    first = instance.first
    block = instance.facts.get("block_size") or (first.block_size if first else None) or 16
    lengths = plan.lengths(max(plan.prompts, REFILL_GROUPS))
    opening = [trace[0].prompt_tokens for trace in plan.traces]
    work = RolloutWork(
        played=bool(opening),
        prompt_tokens=round(fmean(opening)) if opening else plan.prompt_tokens,
        group_size=plan.group_size,
        response_tokens=plan.lengths(plan.prompts),
        block_tokens=int(block),
    )
    most = plan.most or instance.facts.get("max_num_seqs") or DEFAULT_MOST
    mean = sum(lengths) / len(lengths)
    cv = (sum((length - mean) ** 2 for length in lengths) / len(lengths)) ** 0.5 / mean
    held = first.kv_cache_tokens if first else None
    fits = most if held is None else int(cache_concurrency(FILL * held, mean_live_tokens(plan.prompt_tokens, mean, cv)))
    limit, why = min((int(most), "max_num_seqs"), (max(1, fits), "the KV cache"))
    return Record(work=work, limit=limit, limited_by=why)


def _from(say: Callable[[str, float], None], share: float) -> Callable[[str], None]:
    return lambda text: say(text, share)


def _prefill_rate(run: PhaseRun, until: float | None) -> float:
    """Prompt tokens that were computed per second up to a moment; 0 where nobody counts them. [token/s]"""
    pages = [one for one in run.snapshots if until is not None and one.seconds <= until]
    computed = grown([(pages[0].counters, pages[-1].counters)], "computed_prompt_tokens") if pages else None
    return (computed or 0.0) / ((until or 0.0) - run.begun or 1.0)


def _level(
    instances: Sequence[Instance],
    plan: RolloutPlan,
    record: Record,
    concurrency: int,
    seconds: float,
    say: Callable[[str], None],
) -> None:
    """One concurrency, until its rate is known well or its time since it was full is up."""
    name = f"level/{plan.nonce}{plan.seed}/{concurrency}"
    random = Random(f"level {plan.seed} {concurrency}")  # noqa: S311 (a workload, no secret)
    samples = min(plan.group_size, concurrency)
    order, drawn = list(range(REFILL_GROUPS)), plan.lengths(REFILL_GROUPS)
    random.shuffle(order)
    lengths = [drawn[prompt] for prompt in order]
    starts: list[list[list[Any]]] = [
        [
            plan.group(f"{name}/{place}/{index}", order[which], 1, rest, age, str(sample))
            for index, (age, rest, which) in enumerate(running_lengths(lengths, concurrency // samples, random))
            for sample in range(samples)
        ]
        for place in range(len(instances))
    ]
    refill = [plan.group(f"{name}/next/{index}", order[index], samples, one) for index, one in enumerate(lengths)]
    page_seconds = min(1.0, max(0.1, seconds / PAGES))
    in_flight, halted = concurrency // samples * samples, False
    tokens = sum(group[4] + (group[1] if group[5] == "0" or plan.traces else 0) for group in starts[0])
    fill = tokens / record.prefill_rate if record.prefill_rate else 0.0
    told = f"rollout, {concurrency} in flight"
    say(f"{told}: filling with {tokens:,} tokens" + (f", about {math.ceil(fill)} s" if fill else ""))
    begun, longest_fill = time.monotonic(), max(plan.seconds, FILL_PATIENCE * fill)
    for runs in phase(instances, starts, refill, in_flight, page_seconds, name):
        if runs[0].full is None:
            if not halted and time.monotonic() - begun > longest_fill:
                halt(instances)
                halted = True
                record.doubts.append(f"{concurrency} in flight: not full after {longest_fill:.0f} s, so it has no rate")
            continue
        record.levels[concurrency] = runs
        spent = runs[0].snapshots[-1].seconds - runs[0].full
        if not halted:
            say(f"{told}\t{_rate(runs)}, {max(0.0, seconds - spent):.0f} s left")
        if not halted and (spent > seconds or all(_sure(run, SHORTEST_SHARE * seconds) for run in runs)):
            halt(instances)
            halted = True
    if concurrency in record.levels:
        full = record.levels[concurrency][0]
        record.prefill_rate = _prefill_rate(full, full.full) or record.prefill_rate
        say(f"{told}: {_rate(record.levels[concurrency])}")


def _rate(runs: Sequence[PhaseRun]) -> str:
    """The mean rate of the instances so far, in words."""
    rates = [rate for run in runs if (rate := _steady_rate(run)) is not None]
    return f"{fmean(rates):,.0f} tok/s" if len(rates) == len(runs) else "full"


def _steady_rate(run: PhaseRun) -> float | None:
    window = steady(run)
    if not window[1:]:  # a rate has two ends
        return None
    grew = grown([(window[0].counters, window[-1].counters)], "generation_tokens") or 0.0
    return grew / (window[-1].seconds - window[0].seconds)


def _step_down(
    instances: list[Instance],
    record: Record,
    levels: Sequence[int],
    concurrency: int,
    error: ChildDiedError,
    restart: Callable[[int], list[Instance]] | None,
) -> None:
    """After an engine ran out of memory, start it anew for the next level down."""
    record.levels.pop(concurrency, None)
    lower = [level for level in levels if level < concurrency]
    if not error.memory or restart is None or not lower:
        raise error
    record.doubts.append(f"{concurrency} samples at once ran out of memory; {lower[-1]} is the next level down")
    record.limit, record.limited_by = lower[-1], "memory"
    for instance in instances:
        instance.child.end()
    instances[:] = restart(lower[-1])


def _sure(run: PhaseRun, shortest: float) -> bool:
    error = relative_error(run)
    window = steady(run)
    return error is not None and error < SURE and window[-1].seconds - window[0].seconds > shortest


def _batch(
    instances: Sequence[Instance], plan: RolloutPlan, record: Record, seconds: float, say: Callable[[str], None]
) -> None:
    """One optimizer step's samples, or as many as the time allows where it was said, sent at once."""
    rates = [rate for runs in record.levels.values() if (rate := _steady_rate(runs[0])) is not None]
    pace = BATCH_PACE * max(rates, default=0.0) / (plan.mean * plan.group_size)  # groups per second
    prompts = plan.prompts
    if plan.within and pace:
        prompts = min(prompts, max(2, int(max(0.0, seconds) * pace)))
    lengths = plan.lengths(prompts * len(instances))
    name = f"batch/{plan.nonce}{plan.seed}"
    whole = [plan.group(f"{name}/{index}", index, plan.group_size, one) for index, one in enumerate(lengths)]
    groups = [whole[place :: len(instances)] for place in range(len(instances))]
    record.batch_prompts, record.batch_fraction = prompts * len(instances), prompts / plan.prompts
    if prompts < plan.prompts:
        held = f"{prompts} of the {plan.prompts} prompts that an instance gets in a step"
        record.doubts.append(f"the batch held {held}, as more would take too long (--seconds)")
    told = "rollout, one batch to its end"
    say(f"{told}: {prompts * plan.group_size:,} samples" + (f", about {math.ceil(prompts / pace)} s" if pace else ""))
    page_seconds = min(1.0, max(0.1, seconds / (2 * PAGES)))
    for runs in phase(instances, groups, [], prompts * plan.group_size, page_seconds, name):
        record.batch = runs
        over = sum(done.samples for run in runs for done in run.finished if done.last)
        say(f"{told}\t{over:,} of {len(lengths) * plan.group_size:,} samples")
