"""The samples of one optimizer step, their lengths, and how long a fleet takes to generate them, tail included."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from rlsize.equations import agents as equations
from rlsize.equations import batch_drain, engine_step, long_tail, loop_time, prefill, rollout_batch, staleness
from rlsize.equations.lengths import mean_of_shortest
from rlsize.estimates.async_cycle import CROWDS, Cycle, Rhythm, between, kept_in_full_cache, on_lines, rhythms
from rlsize.estimates.endings import sums
from rlsize.estimates.figures import entries, numbers
from rlsize.estimates.outside import (
    computing,
    first_to_end,
    in_turns,
    last_score,
    left_behind,
    losing,
    outside,
    own_spread,
    places,
    score_under_way,
    scored_share,
    scoring,
    stretched,
    thrown_out,
    waiting_share,
)
from rlsize.estimates.remembered import remembered
from rlsize.estimates.rollout_prediction import Lengths, at_batch, cache_capacity, engine_limit, prompt_seconds, steady
from rlsize.facts.algorithm import Agents
from rlsize.quantities.workload import MOST_MEAN_LENGTHS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.endings import Endings
    from rlsize.estimates.figures import Work, Worked
    from rlsize.estimates.outside import Outside
    from rlsize.estimates.rollout_prediction import Replica, Steady

Ending = Literal["barrier", "refill"]
Late = Literal["continue", "wait", "drop"]
"""What becomes of samples that are not finished when a batch is due."""
_ROUNDS = 6  # until running and waiting samples agree
_ALIKE = 1e-3  # as they do then
_CHANGES = (1.0, *[0.5] * (_ROUNDS - 1))  # of what is computed anew, which takes time, so that less of it is
_UNIFORM = 12**0.5  # standard deviations of an even spread from its one end to the other
_LEAST_TAKEN = 0.1  # of a mean response
_POINTS = 49  # of the drain; 400 change the time by less than 0.5 %


class Verifiers(NamedTuple):
    """
    What scores samples that queue for it.

    Args:
        seconds: Time in which all of them serve one sample. [s]
        came: Their samples, as long as until they come.
        agents: How long they take.
    """

    seconds: Real
    came: StepBatch
    agents: Agents


@dataclass(frozen=True, slots=True, kw_only=True)
class StepBatch:
    """
    The samples of one optimizer step, and the fleet that generates them.

    Args:
        samples: Samples that are generated. [1]
        instances: Rollout instances. [1]
        prompt_tokens: Mean prompt length. [token]
        response_tokens: Mean response length, samples cut at the cap included. [token]
        response_cv: Coefficient of variation of response lengths without the cap. [1]
        max_tokens: The cap; None for none. [token]
        hit_ratio: Share of prompt tokens found in the prefix cache. [1]
        in_flight: Samples that the loop lets be in flight over all instances; None for as many as fit. [1]
        ending: barrier (the step waits for its last sample) or refill (finished samples are replaced at once).
        late: What becomes of samples that are not finished when a batch is due.
        oversampling: Samples started for each that a batch with a barrier needs; those dropped are among `samples`. [1]
        group_size: Samples that finish together. [1]
        max_staleness: Cap on staleness of a loop that refills; None where its trainer is not looked at. [1]
        parts: Of a batch, each of which is trained on as soon as it is there. [1]
        sync_every: Optimizer steps from one sync to the next. [1]
        agents: What they wait for outside the GPUs; None where they do not.
        running_share: Share of the samples under way that have a slot. [1]
        called: What they wait for; None where nothing is.
        waited_seconds: Time that a token of a wait stands for. [s]
        tool_context: What tools have added to the context of the mean one of them. [token]
        verifiers: What scores them where they are few, of a batch that drains.
        endings: How they end where that is not how lognormal lengths do.
        leaving: How they give back what others wait for, which may be before they end.
        leaving_share: Share of those under way that have not given it back. [1]
        environments: Samples that may begin before others have given something back. [1]
        chunk: Samples that begin at once where some wait for others. [1]
        together: Whether the samples of a group stay on one instance.
    """

    samples: Real
    instances: Real
    prompt_tokens: Real
    response_tokens: Real
    response_cv: Real
    max_tokens: Real | None = None
    hit_ratio: Real = 0.0
    in_flight: Real | None = None
    ending: Ending = "barrier"
    late: Late = "continue"
    oversampling: Real = 1.0
    group_size: Real = 1.0
    max_staleness: Real | None = None
    parts: int = 1
    sync_every: float = 1.0
    agents: Agents | None = None
    running_share: Real = 1.0
    called: Outside | None = None
    waited_seconds: Real = 0.0
    tool_context: Real = 0.0
    verifiers: Verifiers | None = None
    endings: Endings | None = None
    leaving: Endings | None = None
    leaving_share: Real = 1.0
    environments: Real = np.inf
    chunk: Real = 1.0
    together: bool = False

    def reached(self, groups: Real) -> Real:
        """Instances that have samples where so many groups are under way. [1]"""
        return rollout_batch.instances_of_groups(self.instances, groups) if self.together else self.instances

    @property
    def own_prompt(self) -> Real:
        """What a sample has of its prompt that no other of its group has. [token]"""
        return prefill.group_prefill_tokens(prompt_tokens=self.prompt_tokens, hit_ratio=self.hit_ratio)

    @property
    def share_until_left(self) -> Real:
        """Share of the samples that have something that others wait for which have a slot. [1]"""
        return self.running_share / self.leaving_share


@dataclass(frozen=True, slots=True)
class Shape:
    """
    Lengths of a batch.

    Args:
        uncapped: Mean response length without the cap. [token]
        cap: The cap, or lengths that hardly a sample reaches. [token]
        live: What the mean sample in flight has, and has left. [token]
        lengths: For an engine at steady load.
    """

    uncapped: Real
    cap: Real
    live: Real
    lengths: Lengths


def shape_of(work: Work, batch: StepBatch) -> Shape:
    """The lengths of a step's samples."""
    cap = batch.max_tokens if batch.max_tokens is not None else MOST_MEAN_LENGTHS * batch.response_tokens
    return _shape(work, batch.prompt_tokens, batch.response_tokens, batch.response_cv, cap, batch.hit_ratio)


@remembered
def _shape(work: Work, prompt: Real, response: Real, length_cv: Real, cap: Real, hit_ratio: Real) -> Shape:
    """The same by its numbers; a plan asks for the same lengths again and again."""
    uncapped = work(
        "uncapped_mean", batch_drain.uncapped_mean, mean_tokens=response, length_cv=length_cv, max_tokens=cap
    )
    live = work(
        "mean_live_response",
        long_tail.mean_remaining_tokens,
        mean_tokens=uncapped,
        length_cv=length_cv,
        max_tokens=cap,
    )
    contexts = {
        "live": work("live_tokens", long_tail.context_of, prompt_tokens=prompt, response_tokens=live),
        "longest": work("longest_context", long_tail.context_of, prompt_tokens=prompt, response_tokens=cap),
    }
    computed = work("computed_prompt_tokens", prefill.group_prefill_tokens, prompt_tokens=prompt, hit_ratio=hit_ratio)
    lengths = Lengths(prompt=prompt, response=response, computed=computed, **contexts)
    return Shape(uncapped=uncapped, cap=cap, live=live, lengths=lengths)


@remembered
def longest_of(work: Work, samples: Real, uncapped: Real, length_cv: Real, cap: Real) -> Real:
    """Expected longest of some responses. [token]"""
    found: Real = work(
        "longest_response_tokens",
        long_tail.longest_of,
        samples=samples,
        mean_tokens=uncapped,
        length_cv=length_cv,
        max_tokens=cap,
    )
    return found


def longest_sequence(batch: StepBatch, *, capped: bool) -> float:
    """
    The longest sequence that memory must hold, prompt and response. [token]

    Args:
        batch: The samples, in numbers.
        capped: Whether somebody gave the cap, up to which responses are let grow then; else the longest response is
            as long as a step's longest is on average.
    """
    if capped and batch.max_tokens is not None:
        longest = batch.max_tokens
    else:
        shape = shape_of(numbers, batch)
        longest = longest_of(numbers, batch.samples, shape.uncapped, batch.response_cv, shape.cap)
    return float(long_tail.context_of(prompt_tokens=batch.prompt_tokens, response_tokens=longest))


def lengths_of(work: Work, batch: StepBatch) -> Lengths:
    """The mean lengths of a step's samples, for an engine at steady load."""
    return shape_of(work, batch).lengths


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """
    What the fleet makes of a step's batch; numbers or arrays.

    Args:
        seconds: Until the samples of a step are there. [s]
        full_seconds: Of it, with all slots busy or as many as there are samples; with refill all of it. [s]
        tail_seconds: What waiting for the longest sample adds to the work at the batch's own rate. [s]
        batch: Samples in flight on one instance at the start. [1]
        capacity: Samples that an instance's cache holds. [1]
        longest: Works out the expected longest response. [token]
        live_tokens: Context of the mean sample in flight. [token]
        rate: Response tokens per second of one instance, over the whole time. [token/s]
        prefill_seconds: Engine time of one prompt. [s]
        sample_seconds: With refill, time of the mean sample. [s]
        dropped_fraction: Share of generated tokens that a barrier drops. [1]
        taken_share: Mean length of the samples that are trained on over that of all. [1]
        token_seconds: Mean engine step over the whole time, prefills among it where a batch drains. [s]
        cycle: With refill, what the time from one sync to the next is by that of the trainer; None where nobody looks.
        lengths: Where late samples are dropped, those of all, what they wait for outside the GPUs among them.
    """

    seconds: Real
    full_seconds: Real
    tail_seconds: Real
    batch: Real
    capacity: Real
    longest: Callable[[], Real]
    live_tokens: Real
    rate: Real
    prefill_seconds: Real
    sample_seconds: Real = 0.0
    dropped_fraction: Real = 0.0
    taken_share: Real = 1.0
    token_seconds: Real = 0.0
    cycle: Cycle | None = None
    lengths: LateLengths | None = None

    @property
    def longest_tokens(self) -> Real:
        """Expected longest response. [token]"""
        return self.longest()


class LateLengths(NamedTuple):
    """
    Lengths of samples that are dropped once they are too late; numbers, arrays or figures.

    Args:
        response_tokens: Mean. [token]
        uncapped: The same without the cap. [token]
        response_cv: Coefficient of variation without the cap. [1]
        cap: The cap. [token]
        group_size: Samples that finish together. [1]
        own: What of that by which the mean length is more than of those kept is response, over the mean response. [1]
        full: Share of the time in which samples wait for room in a full KV cache. [1]
        apart: By which a sample may grow from one sync to the next. [token]
        kept_full: Share of the groups that are kept then in a full cache. [1]
        reached: Tokens by which some groups have ended, where these are no lognormal lengths; else none. [token]
        whole: Share of the groups that have by then. [1]
    """

    response_tokens: Worked
    uncapped: Worked
    response_cv: Worked
    cap: Worked
    group_size: Worked
    own: Worked
    full: Worked
    apart: tuple[Worked, ...]
    kept_full: tuple[Worked, ...]
    reached: tuple[Worked, ...] = ()
    whole: tuple[Worked, ...] = ()

    def each(self, change: Callable[[Worked], Worked]) -> LateLengths:
        """The same, each number changed."""
        return LateLengths(*map(change, self[:-4]), *(tuple(map(change, some)) for some in self[-4:]))

    def kept(self, reached: Worked, apart: Worked) -> Worked:
        """Share of groups that are whole in time, by what a sample that never waits grows until then, and by step."""
        if self.reached:
            whole = on_lines(self.reached, self.whole, reached)
        else:
            whole = batch_drain.finished_share(reached, *self[1:4]) ** self.group_size
        if not np.any(self.full):
            return whole
        return whole + self.full * (on_lines(self.apart, self.kept_full, apart) - whole)

    def taken(self, kept: Worked) -> Worked:
        """Mean response of what is trained on over that of all, where so many groups are kept: the shortest."""
        shortest = mean_of_shortest(kept ** (1.0 / self.group_size), *self[1:4])
        return np.maximum(1.0 - self.own * (1.0 - shortest), _LEAST_TAKEN)


def generation(work: Work, asked: Replica, batch: StepBatch, values: Mapping[str, Real]) -> Generation:
    """
    Time until the fleet has generated the samples of one optimizer step.

    Args:
        work: `figures.numbers`; the integral over the drain has no figure of its own.
        asked: One instance.
        batch: The samples.
        values: Constants of rollout and memory by name: numbers, or arrays of draws.
    """
    under_way = batch.samples if batch.in_flight is None else batch.in_flight
    reached = batch.reached(rollout_batch.per_instance(amount=under_way, instances=batch.group_size))
    made = _generated(work, asked, replace(batch, instances=reached), shape_of(work, batch), values)
    return replace(made, rate=made.rate * rollout_batch.share_of(part=reached, whole=batch.instances))


def _generated(work: Work, asked: Replica, batch: StepBatch, shape: Shape, values: Mapping[str, Real]) -> Generation:
    if batch.agents is not None:
        way = _refilled_outside if batch.ending == "refill" else _drained_outside
        return way(work, asked, batch, shape, values)
    return (_refilled if batch.ending == "refill" else _ended)(work, asked, batch, shape, values)


def _ended(work: Work, asked: Replica, batch: StepBatch, shape: Shape, values: Mapping[str, Real]) -> Generation:
    if batch.late == "wait" or np.all(np.asarray(batch.oversampling) <= 1.0):
        return _drained(work, asked, batch, shape, values)
    return (_carried if batch.late == "continue" else _closed)(work, asked, batch, shape, values)


def _made(
    work: Work, batch: StepBatch, shape: Shape, seconds: Worked, flying: Flying, rate: Worked, **more: Worked
) -> Generation:
    """What the fleet makes in some time; all slots are busy to the end where nothing else is said."""
    return Generation(
        seconds=seconds,
        batch=flying.batch,
        capacity=flying.capacity,
        prefill_seconds=flying.prefill_seconds,
        rate=rate,
        longest=partial(longest_of, work, batch.samples, shape.uncapped, batch.response_cv, shape.cap),
        live_tokens=shape.lengths.live,
        **({"full_seconds": seconds, "tail_seconds": 0.0, "token_seconds": flying.step_seconds} | more),
    )


def _refilled(work: Work, asked: Replica, batch: StepBatch, shape: Shape, values: Mapping[str, Real]) -> Generation:
    offered = np.inf if batch.in_flight is None else _in_flight_of_each(work, batch)
    found = steady(work, asked, offered, shape.lengths, values)
    cycle = _cycle(work, asked, batch, shape, found, values)
    if cycle is not None:
        anew = cycle.full_share * computed_anew(shape.lengths, found.capacity)
        found = steady(work, asked, offered, computing(shape.lengths, anew), values)
    seconds = rollout_batch.fleet_time(batch.samples, batch.response_tokens, batch.instances, found.rate)
    mean = rollout_batch.cycle_time(batch=found.batch, response_tokens=batch.response_tokens, rate=found.rate)
    flying = Flying(found.batch, found.capacity, found.step_seconds, found.prefill_seconds)
    full = 1.0 * (found.capacity < np.minimum(offered, engine_limit(asked.question)))
    return replace(
        _made(work, batch, shape, seconds, flying, found.rate, sample_seconds=mean),
        cycle=cycle,
        lengths=_late_lengths(batch, shape, shape.lengths, found.capacity, full if cycle is None else cycle.full_share),
    )


def _late_lengths(
    batch: StepBatch, shape: Shape, begun: Lengths, room: Worked, full: Worked, own: Worked = 1.0
) -> LateLengths | None:
    """
    Lengths of a batch of which late samples are dropped; None of others.

    Args:
        batch: The samples.
        shape: Their lengths.
        begun: What they need of a cache.
        room: Samples that it holds. [1]
        full: Share of the time in which it is full. [1]
        own: What of a difference of these lengths is response, over the mean response. [1]
    """
    if batch.late != "drop" or batch.max_staleness is None:
        return None
    prompt = begun.prompt if begun.computed is None else begun.computed
    queued = engine_step.tokens_in_queue(begun.response, np.maximum(prompt, 1.0), np.maximum(room, 1.0))
    lengths = shape.uncapped, batch.response_cv, shape.cap, batch.group_size
    ends = batch.endings
    apart, kept = kept_in_full_cache(*lengths, batch.max_staleness, queued, *(ends or ()))
    whole = () if ends is None else np.broadcast_arrays(ends.tokens, ends.whole)
    tables = (tuple(np.moveaxis(one, -1, 0)) for one in (apart, kept, *whole))
    return LateLengths(batch.response_tokens, *lengths, own, full, *tables)


def _refilled_outside(
    work: Work, asked: Replica, batch: StepBatch, shape: Shape, values: Mapping[str, Real]
) -> Generation:
    """The same where samples leave their slots for what they wait for: those under way run or wait."""
    agents = batch.agents or Agents()
    out = outside(agents)
    lengths = in_turns(shape.lengths, out)
    offered = np.inf
    if batch.in_flight is not None:
        offered = _in_flight_of_each(work, batch) * (1 + agents.redundant_samples / batch.group_size)
    if agents.redundant_samples:
        step = steady(work, asked, offered, lengths, values).step_seconds
        lengths = _stopping(batch, shape, out, lengths, step)
    share, running, mean, once, full, thrown = 1.0, 1.0, batch.response_tokens, lengths, 0.0, 0.0
    room = np.maximum(cache_capacity(work, asked, once, values), 1.0)
    for change in _CHANGES:
        most = rollout_batch.per_instance(amount=places(batch, out, running), instances=batch.instances)
        most = np.minimum(offered, most)
        wanted = np.minimum(share * most, room)
        lengths = losing(computing(once, full * computed_anew(once, room, out)), out, batch.own_prompt, thrown)
        found = steady(work, asked, wanted, lengths, values)
        running = rollout_batch.cycle_time(batch=found.batch, response_tokens=mean, rate=found.rate)
        share = equations.running_share(running_seconds=running, outside_seconds=out.seconds)
        with_slots = np.minimum(share * most, engine_limit(asked.question))
        full = engine_step.full_share(with_slots, room)
        left = left_behind(out, once, batch.own_prompt)
        gone = thrown_out(out, *left, found.batch, with_slots, room, _cache_tokens(once, 1.0), running)
        thrown = thrown + change * (gone - thrown)
    flying = Flying(found.batch, found.capacity, found.step_seconds, found.prefill_seconds)
    cycle, step, before = None, found.step_seconds, np.inf
    found = replace(found, prefill_seconds=prompt_seconds(work, asked, found.batch, once, values))
    for _ in range(_ROUNDS):  # a wait is as many tokens as the steps of the rhythm say that comes of it
        if np.allclose(step, before, rtol=_ALIKE):
            break
        held, generated, taken = first_to_end(
            batch, stretched(batch, shape.uncapped, shape.cap, out, step), shape.uncapped
        )
        came = _unscored(batch, held, shape, step, out.starting)
        scores = _scores(batch, held, came, shape, step, out.starting)
        held = _beside_pools(batch, held, came, shape, scores, places(batch, out._replace(scored=0.0), running))
        cycle, before = _cycle(work, asked, held, _held_shape(work, held, once), found, values), step
        step = found.step_seconds if cycle is None else cycle.token_seconds
    if cycle is not None:
        anew = computing(once, cycle.full_share * computed_anew(once, room, out))
        lost = thrown if batch.late == "wait" else cycle.thrown_share  # as one that waits fills its cache now and then
        found = steady(work, asked, wanted, losing(anew, out, batch.own_prompt, lost), values)
    rate = found.rate * np.minimum(1.0, wanted / found.batch)  # fewer than one sample may run
    made = rollout_batch.fleet_time(held.samples, generated * mean, batch.instances, rate)
    looks = _held_shape(work, held, lengths)
    own = own_spread(batch, held, shape.uncapped) * held.response_tokens / batch.response_tokens
    full = 1.0 * (room < np.minimum(most, engine_limit(asked.question)) * share)
    if cycle is None:
        made = equations.served_beside(made, _scored(batch, scores))
    else:
        cycle = cycle._replace(scored_seconds=_scored(batch, scores))
    if cycle is not None and out.each:
        cycle = cycle._replace(waiting_share=waiting_share(batch, held, shape.uncapped), wait_seconds=out.each)
    return replace(
        _made(work, batch, shape, made, flying, rate, sample_seconds=generated * (running + out.seconds)),
        cycle=cycle,
        taken_share=taken,
        lengths=_late_lengths(held, looks, shape.lengths, room, full if cycle is None else cycle.full_share, own),
    )


def _drained_outside(
    work: Work, asked: Replica, batch: StepBatch, shape: Shape, values: Mapping[str, Real]
) -> Generation:
    """
    A batch that drains, of which samples leave their slots for what they wait for.

    Nothing runs until the first environments have started, so their start is a time by itself; whoever has that of a
    sample that has ended begins so much later.
    """
    agents = batch.agents or Agents()
    whole = outside(agents)
    out, start = whole._replace(starting=0.0), whole.starting
    lengths = in_turns(shape.lengths, out)
    own = rollout_batch.per_instance(amount=batch.samples, instances=batch.instances)
    step = steady(work, asked, own, lengths, values).step_seconds
    if agents.redundant_samples:
        lengths = _stopping(batch, shape, out, lengths, step)
    for _ in range(_ROUNDS):
        held = stretched(batch, shape.uncapped, shape.cap, out, step)
        begin = batch.samples * (1 + agents.redundant_samples / batch.group_size)
        begun = equations.running_share(step * batch.response_tokens + out.seconds, start)
        most = begun * places(batch, whole, step * batch.response_tokens, begin)
        offered = most if batch.in_flight is None else np.minimum(batch.in_flight, most)
        held = replace(held, in_flight=None if np.all(np.isinf(offered)) else offered)
        held, _, taken = first_to_end(batch, held, shape.uncapped)
        came = _unscored(batch, held, shape, step, 0.0)
        scores = _scores(batch, held, came, shape, step, 0.0)
        pool = {}
        if agents.environments is not None:
            pool = {"environments": np.maximum(agents.environments, held.group_size), "chunk": held.group_size}
        came = replace(first_to_end(batch, came, shape.uncapped).batch, **pool)
        leaving = came
        if pool and start:
            leaving = _scored_within(batch, 0.0, shape, step, start)
            leaving = first_to_end(batch, leaving, shape.uncapped).batch
        if pool and leaving.endings is not None:
            at_once = np.maximum(pool["environments"] - (held.group_size - 1) / 2, held.group_size)
            left = leaving.response_tokens / leaving.endings.longest_of(held.group_size)
            held = replace(held, instances=held.reached(at_once / (left * held.group_size)))
        held = replace(
            held,
            **pool,
            leaving=leaving.endings,
            leaving_share=leaving.response_tokens / held.response_tokens,
            verifiers=None if agents.verify_workers is None else _verifiers(batch, held, came, scores),
        )
        made = _ended(work, asked, held, _held_shape(work, held, lengths), values)
        before, step = step, made.token_seconds
        if np.allclose(step, before, rtol=_ALIKE):
            break
    rate = rollout_batch.batch_rate(samples=own, response_tokens=batch.response_tokens, seconds=start + made.seconds)
    return replace(
        made,
        seconds=start + equations.served_beside(made.seconds, _scored(batch, scores)),
        batch=held.running_share * made.batch,
        rate=rate,
        longest=partial(longest_of, work, batch.samples, shape.uncapped, batch.response_cv, shape.cap),
        live_tokens=lengths.live,
        taken_share=taken,
    )


def _stopping(batch: StepBatch, shape: Shape, out: Outside, lengths: Lengths, step: Worked) -> Lengths:
    """Lengths of samples of which redundant ones stop when their group is complete, so contexts are shorter."""
    whole = stretched(batch, shape.uncapped, shape.cap, out, step)
    some = first_to_end(batch, whole, shape.uncapped).batch
    sooner = rollout_batch.share_of(*(_held_shape(numbers, one, lengths).live for one in (some, whole)))
    return replace(lengths, live=batch.prompt_tokens + sooner * (lengths.live - batch.prompt_tokens))


def _held_shape(work: Work, held: StepBatch, lengths: Lengths) -> Shape:
    """The lengths of samples that wait among their tokens, with the contexts of plain ones."""
    found = replace(shape_of(work, held), lengths=lengths)
    return found if held.endings is None else replace(found, live=held.endings.mean_left())


def _unscored(batch: StepBatch, held: StepBatch, shape: Shape, step: Worked, start: float) -> StepBatch:
    """The samples of a batch's agents until they come to be scored, redundant ones as if they did not stop."""
    return _scored_within(batch, 0.0, shape, step, start) if (batch.agents or Agents()).verify_seconds else held


def _scored_within(batch: StepBatch, seconds: float, shape: Shape, step: Worked, start: float) -> StepBatch:
    """The samples of a batch's agents where they are scored, and their environments start, in another time."""
    agents = replace(batch.agents or Agents(), verify_seconds=seconds)
    out = outside(agents)._replace(starting=start)
    return stretched(replace(batch, agents=agents), shape.uncapped, shape.cap, out, step)


def _scores(batch: StepBatch, held: StepBatch, came: StepBatch, shape: Shape, step: Worked, start: float) -> Worked:
    """
    Samples that are scored for each that is taken: redundant ones too that come before their group is complete.

    Where a batch drains, samples queue for few verifiers, and less time lies between two that come than between their
    scores.
    """
    agents = batch.agents or Agents()
    if not agents.redundant_samples or not agents.verify_seconds:
        return 1.0
    quicker: Worked = 1.0
    if batch.ending == "barrier" and agents.verify_workers is not None:
        each = came.response_tokens * step
        come = _UNIFORM * came.response_cv * each  # time in which all of them do
        if agents.environments is not None:
            come = np.maximum(come, equations.pool_time(held.samples, each, agents.environments))
        quicker = equations.scored_as_they_come(come, agents.verify_workers, agents.verify_seconds, held.samples)
    some = sorted({round(float(of(quicker)), 2) for of in (np.min, np.median, np.max)})  # what lies between is alike
    found = []
    for share in some:
        alone = _scored_within(batch, share * agents.verify_seconds, shape, step, start)
        ended = first_to_end(batch, alone, shape.uncapped).batch
        if came.endings is None or alone.endings is None or ended.endings is None:
            return 1.0
        found.append(scored_share(came.endings, alone.endings, ended.endings, batch.group_size))
    scores = found[0]
    for (low, before), (high, after) in pairwise(zip(some, found, strict=True)):
        scores = scores + np.clip((np.round(quicker, 2) - low) / (high - low), 0.0, 1.0) * (after - before)
    return scores


def _beside_pools(
    batch: StepBatch, held: StepBatch, came: StepBatch, shape: Shape, scores: Worked, most: Worked
) -> StepBatch:
    """The samples of a batch's agents beside few environments, which let so many be under way, and few verifiers."""
    agents = batch.agents or Agents()
    if agents.verify_workers is not None:
        held = replace(held, verifiers=_verifiers(batch, held, came, scores))
    if agents.environments is not None:
        leaving = first_to_end(batch, came, shape.uncapped).batch.endings
        held = replace(held, environments=most, leaving=leaving)
    return held


def _verifiers(batch: StepBatch, held: StepBatch, came: StepBatch, scores: Worked) -> Verifiers:
    """The verifiers of a batch's agents; where samples are redundant, those that stop before are not scored."""
    agents = batch.agents or Agents()
    seconds = scoring(agents)[0] * scores * batch.samples / held.samples / (agents.verify_workers or 1)
    return Verifiers(seconds, came, agents)


def _scored(batch: StepBatch, scores: Real) -> Real:
    """Time in which verifiers score the samples of a step; none where they are many. [s]"""
    agents = batch.agents or Agents()
    if agents.verify_workers is None:
        return 0.0
    return equations.pool_time(batch.samples * scores, scoring(agents)[0], agents.verify_workers)


def _cycle(
    work: Work, asked: Replica, batch: StepBatch, shape: Shape, found: Steady, values: Mapping[str, Real]
) -> Cycle | None:
    """What the engine makes of the rhythms that the loop may have; None where nobody looks at its trainer."""
    if batch.max_staleness is None:
        return None
    every = batch.sync_every  # the steps from one sync to the next are one batch in so many parts, begun with the sync
    ahead, samples = staleness.cap_in_syncs(batch.max_staleness, every), batch.samples * every
    parts = round(batch.parts * every)
    own = rollout_batch.per_instance(amount=samples, instances=batch.instances)
    crowded = _crowded(work, asked, shape.lengths, own, found, values) if batch.late == "wait" else 0.0
    rhythm = _rhythm(batch, shape, parts, ahead, samples, _last(crowded))
    own = _last(own)
    cuts = len(rhythm.running) - 1
    running = np.concatenate(np.broadcast_arrays(*(own * one for one in rhythm.running)), axis=-1)
    spread = {name: _last(value) for name, value in values.items()}
    lengths = Lengths(**{key: None if one is None else _last(one) for key, one in entries(shape.lengths).items()})
    if rhythm.grown:
        grown = np.concatenate(np.broadcast_arrays(*rhythm.grown), axis=-1) / _last(shape.live)
        begun = _last(batch.prompt_tokens)  # what tools answer and what is computed anew comes as samples grow
        lengths = replace(lengths, live=begun + grown * (lengths.live - begun))
    most, each = _last(found.batch), _at_points(asked)
    limit: Worked = engine_limit(each.question)
    with_slots = np.minimum(running, limit)
    room = np.maximum(1.0, cache_capacity(work, each, lengths, spread))
    full = engine_step.full_share(with_slots, room)
    if batch.called is None:
        limit = np.where(most < _last(found.capacity), most, limit)
    most = np.minimum(room, limit)
    held = np.clip(running, 1.0, most)
    _, step, usual = at_batch(work, each, held, lengths, spread)
    if batch.late == "wait":  # many run at once after few; elsewhere the fleet's own time says what its rooms allow
        step = step * np.maximum(1.0, running / most)
    out, prompt, thrown = batch.called or outside(Agents()), _last(batch.own_prompt), 0.0
    once = computing(lengths, full * computed_anew(lengths, most, out))
    kept, lost = (prompt_seconds(work, each, held, losing(once, out, prompt, one), spread) for one in (0.0, 1.0))
    left, context = left_behind(out, lengths, prompt), _cache_tokens(lengths, 1.0)
    for change in _CHANGES if out.calls else ():
        more = kept + thrown * (lost - kept)
        gone = thrown_out(out, *left, held, with_slots, room, context, lengths.response * step + held * more)
        if np.allclose(gone, thrown, atol=_ALIKE):
            break
        thrown = thrown + change * (gone - thrown)
    more = kept + thrown * (lost - kept)
    step = step + held * (more - usual) / lengths.response
    *waits, training = np.split(np.concatenate([rhythm.tokens] * (cuts + 1), axis=-1) * step, cuts + 1, axis=-1)
    waiting = sum(waits) / cuts
    prompts = own * rhythm.started * _last(found.prefill_seconds)
    left = (1 - rhythm.due) * (training + prompts)
    times = rhythm.more * (left + rhythm.ahead * (waiting + prompts)), rhythm.due * (waiting + prompts) + left
    started = np.broadcast_to(rhythm.started, times[0].shape)
    trained, whole, begun = (tuple(np.moveaxis(one, -1, 0)) for one in (times[0] / every, times[1] / every, started))
    return Cycle(
        trained,
        whole,
        begun,
        token_seconds=((times[1] - prompts) / rhythm.tokens)[..., 0],
        full_share=_of_the_whole(full, full, rhythm.due, cuts),
        thrown_share=_of_the_whole(thrown, full, rhythm.due, cuts),
    )


def _of_the_whole(share: Worked, like: Worked, due: Worked, cuts: int) -> Worked:
    """A share of the time in the parts of a rhythm, as an array of these or for all, over the whole of it. [1]"""
    *before, late = (one[..., 0] for one in np.split(np.broadcast_to(share, np.shape(like)), cuts + 1, axis=-1))
    return late + due[..., 0] * (sum(before) / cuts - late)


def _rhythm(batch: StepBatch, shape: Shape, parts: int, ahead: Worked, samples: Worked, crowded: Worked) -> Rhythm:
    """
    The rhythms that the loop may have.

    Args:
        batch: The samples.
        shape: Their lengths.
        parts: Of what is trained on between two syncs.
        ahead: Cap on staleness, in syncs.
        samples: Samples between two syncs. [1]
        crowded: Share of an engine step with all of them that is not there with few. [1]
    """
    lengths = shape.uncapped, batch.response_cv, shape.cap, ahead, batch.group_size, samples
    scoring = 0.0 if batch.verifiers is None else batch.verifiers.seconds * samples / batch.waited_seconds
    asked = partial(rhythms, batch.late, parts, *lengths, batch.environments / samples, scoring)
    if batch.late != "wait" or batch.endings is not None:
        limited = np.any(batch.environments < samples * (ahead + 1.0))  # of so many batches all may be under way
        return asked(0.0, *(batch.endings or ()), *((batch.leaving if limited else None) or ()))
    each = [asked(one) for one in CROWDS]
    crowd = partial(on_lines, CROWDS, at=crowded)
    mixed = (
        tuple(map(crowd, zip(*some, strict=True))) if isinstance(some[0], tuple) else crowd(some)
        for some in zip(*each, strict=True)
    )
    return Rhythm(*mixed)


def _crowded(
    work: Work, asked: Replica, lengths: Lengths, own: Worked, found: Steady, values: Mapping[str, Real]
) -> Worked:
    """Share of an engine step with all of an instance's samples of a batch that is not there with one."""
    most = np.minimum(own, found.batch)
    few, many = (at_batch(work, asked, some, lengths, values)[1] for some in (1.0 + 0.0 * own, most))
    return 1.0 - few / (many * own / most)


def _in_flight_of_each(work: Work, batch: StepBatch) -> Worked:
    """Samples that the loop lets be in flight on one instance."""
    return work("in_flight_per_instance", rollout_batch.per_instance, amount=batch.in_flight, instances=batch.instances)


class Flying(NamedTuple):
    """
    Samples that an instance runs at once.

    Args:
        batch: How many. [1]
        capacity: How many its cache holds. [1]
        step_seconds: An engine step with them. [s/token]
        prefill_seconds: Engine time of one prompt. [s]
    """

    batch: Worked
    capacity: Worked
    step_seconds: Worked
    prefill_seconds: Worked


def _flying(
    work: Work, asked: Replica, batch: StepBatch, shape: Shape, own: Worked, values: Mapping[str, Real]
) -> Flying:
    """Those of its own samples that an instance runs at once; a batch that drains starts as one."""
    share, lengths = batch.running_share, shape.lengths
    room, most = cache_capacity(work, asked, lengths, values), engine_limit(asked.question) / share
    full = 1.0
    if batch.late != "continue" or np.all(np.asarray(batch.oversampling) <= 1.0):
        cohort, full = _cohort(batch, shape, room, own * share)
        room = engine_step.cohort_concurrency(steady=room, cohort=cohort, samples=own * share)
    if batch.in_flight is not None:
        most = rollout_batch.samples_in_flight(_in_flight_of_each(work, batch), most, most)
    lengths = computing(lengths, full * computed_anew(lengths, room, batch.called))
    slots = rollout_batch.samples_in_flight(concurrency=own, capacity=room / share, engine_limit=most)
    if batch.called is not None and batch.called.calls:
        looks = replace(shape, lengths=lengths)
        thrown = _thrown_out(
            work, asked, batch, batch.called, looks, share * slots, share * np.minimum(own, most), values
        )
        lengths = losing(lengths, batch.called, batch.own_prompt, thrown)
    _, step, prefill_seconds = at_batch(work, asked, np.maximum(1.0, share * slots), lengths, values)
    passing = equations.token_time(step, batch.waited_seconds, batch.share_until_left)
    return Flying(slots, room, passing, prefill_seconds)


def computed_anew(lengths: Lengths, room: Worked, out: Outside | None = None) -> Worked:
    """What a sample computes anew in a cache that is full with so many, as others' growth throws it out. [token]"""
    prompt, brought = _own_prompt(lengths), 0.0
    if out is not None and out.calls:
        prompt = prompt - out.calls * out.tool_tokens
        brought = left_behind(out, lengths, 0.0)[0] / (out.calls + 1.0)
    ratios = prompt / lengths.response, np.maximum(room, 1.0), brought / lengths.response
    return lengths.response * engine_step.recomputed_share(*ratios)


def _cohort(batch: StepBatch, shape: Shape, room: Worked, own: Worked) -> tuple[Worked, Worked]:
    """
    Samples of which an instance's cache holds what they have when most of it is full, if all start together, and the
    share of tokens for which its own would need more than there is.
    """
    tokens = _points(batch, shape)
    running = 1 - _finished(batch, shape)
    lengths = shape.lengths
    each, there = running * _grown(batch, lengths, tokens), _cache_tokens(lengths, room)
    full = running * (_last(own) * each > _last(there))
    share = np.trapezoid(full, tokens, axis=-1) / np.trapezoid(running, tokens, axis=-1)
    return np.maximum(room, there / np.max(each, axis=-1)), share


def _thrown_out(
    work: Work,
    asked: Replica,
    batch: StepBatch,
    out: Outside,
    shape: Shape,
    most: Worked,
    own: Worked,
    values: Mapping[str, Real],
) -> Worked:
    """
    Share of what samples of a batch that drains leave behind for their tools that has gone when these have answered.

    Args:
        work: `figures.numbers`.
        asked: One instance.
        batch: The samples.
        out: What they wait for.
        shape: Their lengths.
        most: Samples that run at most. [1]
        own: Samples that would run at the start if the cache were large enough. [1]
        values: Constants by name.
    """
    lengths, each = shape.lengths, _at_points(asked)
    tokens, context = _points(batch, shape), _grown(batch, lengths, _points(batch, shape))
    spread = {name: _last(value) for name, value in values.items()}
    room = np.maximum(_last(_cache_tokens(lengths, cache_capacity(work, asked, lengths, values))) / context, 1.0)
    wanted = _last(own) * (1 - _finished(batch, shape))
    running = np.minimum(np.minimum(wanted, _last(most)), room)
    there = Lengths(**{key: None if one is None else _last(one) for key, one in entries(lengths).items()})
    there = replace(there, live=context + _last(batch.prompt_tokens - batch.own_prompt))
    held = np.maximum(running * context, 1e-9)
    samples = np.maximum(1.0, running)
    _, step, kept = at_batch(work, each, samples, there, spread)
    lost = prompt_seconds(work, each, samples, losing(there, out, _last(batch.own_prompt), 1.0), spread)
    thrown: Worked = 0.0
    for change in _CHANGES:
        times = there.response * step + running * (kept + _last(thrown) * (lost - kept))
        gone = thrown_out(out, out.calls * context, context, running, wanted, room, context, times)
        gone = np.trapezoid(held * gone, tokens, axis=-1) / np.trapezoid(held, tokens, axis=-1)
        if np.allclose(gone, thrown, atol=_ALIKE):
            break
        thrown = thrown + change * (gone - thrown)
    return thrown


def _grown(batch: StepBatch, lengths: Lengths, tokens: Real) -> Real:
    """KV of a sample that has got to some tokens, waits among them. [token]"""
    answers = lengths.prompt - batch.prompt_tokens  # of tools, which come as samples grow
    begun = _last(_own_prompt(lengths) - answers + batch.tool_context)
    return long_tail.context_of(prompt_tokens=begun, response_tokens=tokens * _last(batch.running_share))


def _own_prompt(lengths: Lengths) -> Worked:
    return lengths.prompt if lengths.computed is None else lengths.computed


def _cache_tokens(lengths: Lengths, room: Worked) -> Worked:
    """KV of as many mean samples as a cache holds. [token]"""
    return room * engine_step.held_tokens(lengths.live, lengths.prompt, _own_prompt(lengths))


def _finished(batch: StepBatch, shape: Shape) -> Real:
    """Share of samples that have finished by each of the points."""
    if batch.endings is not None:
        return batch.endings.finished(_points(batch, shape))
    return _curves(shape.uncapped, batch.response_cv, shape.cap)[1]


def _points(batch: StepBatch, shape: Shape) -> Real:
    """Some of the tokens that a response may have, closer to each other where most end. [token]"""
    if batch.endings is not None:
        return np.maximum(batch.endings.tokens, 1.0)
    return _curves(shape.uncapped, batch.response_cv, shape.cap)[0]


@remembered
def _curves(uncapped: Real, length_cv: Real, cap: Real) -> tuple[Real, Real, Real]:
    """Such points, and the shares of samples that have finished by them: of those that began together, of all ages."""
    tokens = np.maximum(_last(cap) * np.linspace(0.0, 1.0, _POINTS) ** 2, 1.0)
    curve = tokens, _last(uncapped), _last(length_cv), _last(cap)
    return tokens, batch_drain.finished_share(*curve), batch_drain.finished_share_in_flight(*curve)


def _drained(work: Work, asked: Replica, batch: StepBatch, shape: Shape, values: Mapping[str, Real]) -> Generation:
    own = rollout_batch.per_instance(amount=batch.samples, instances=batch.instances)
    flying = _flying(work, asked, batch, shape, own, values)
    begun = _begun(batch, shape, own, flying.batch)
    drain = _drain(work, asked, batch, shape, begun, values)
    seconds = _drained_time(begun, flying, own, _draining_seconds(batch, begun, drain))
    chance = drain.chance_of_any(_at_once(batch, begun.slots))
    passed, ran = (np.trapezoid(chance * one, drain.tokens, axis=-1) for one in (1.0, drain.share))
    waited = (1.0 - batch.share_until_left) * begun.full + passed - ran
    busy = seconds - waited * batch.waited_seconds  # engines, for the last sample
    token = busy / (begun.full + passed - waited)
    seconds = seconds + _unequal(batch, shape, begun, drain, passed, busy - ran * drain.step[..., -1])
    if batch.verifiers is not None:
        came = batch.verifiers.came
        looks = _held_shape(work, came, shape.lengths)
        sooner = _begun(came, looks, own, flying.batch)
        coming = _drain(work, asked, came, looks, sooner, values)
        fresh = np.maximum(0.0, 1 - _finished(came, looks)) ** _at_once(came, flying.batch)
        first = np.trapezoid(fresh * coming.passing[..., :1], coming.tokens, axis=-1)
        begin = _drained_time(sooner, flying, own, 0.0)
        seconds = np.maximum(seconds, _served(batch.verifiers, sooner.slots, coming, first, begin))
    packed = _packed_time(batch, flying, own)
    rate = rollout_batch.batch_rate(samples=own, response_tokens=batch.response_tokens, seconds=seconds)
    tail = rollout_batch.beyond(whole=seconds, part=packed)
    return _made(work, batch, shape, seconds, flying, rate, full_seconds=packed, tail_seconds=tail, token_seconds=token)


class _Begun(NamedTuple):
    """
    A batch when the last of its samples begin, as others have ended.

    Args:
        full: Engine steps until then, with all slots busy. [token]
        mix: Share of those that run then which are of all ages; the others began together. [1]
        slots: Samples of an instance that are under way then. [1]
        left: How these end, where that is not how lognormal lengths do.
    """

    full: Worked
    mix: Worked
    slots: Worked
    left: Endings | None = None


def _begun(batch: StepBatch, shape: Shape, samples: Worked, slots: Worked) -> _Begun:
    """When the last of so many samples of an instance begin, of which so many are under way at once."""
    if batch.endings is None:
        full = batch_drain.full_steps(samples, slots, batch.response_tokens, shape.live)
        return _Begun(full, batch_drain.aged_share(full, batch.response_tokens), slots)
    leaving, many = batch.leaving or batch.endings, batch.instances
    on_average = slots * many * batch.leaving_share + (batch.chunk - 1) / 2
    places = np.minimum(batch.environments, np.where(slots < samples, on_average, np.inf))
    found = batch.endings.let_in(leaving, samples * many, places, batch.chunk)
    mix = batch_drain.aged_share(found.full, batch.response_tokens)
    return _Begun(found.full, mix, found.running / many, found.left)


def _drained_time(begun: _Begun, flying: Flying, samples: Worked, draining: Worked) -> Worked:
    """Time of a batch that drains, of which so many samples begin."""
    return batch_drain.drained_time(begun.full, flying.step_seconds, draining, samples, flying.prefill_seconds)


def _packed_time(batch: StepBatch, flying: Flying, samples: Worked) -> Worked:
    """Time of so many samples if all slots were busy to the end."""
    times = {"step_seconds": flying.step_seconds, "prefill_seconds": flying.prefill_seconds}
    return rollout_batch.packed_time(samples, batch.response_tokens, flying.batch, **times)


class _Drain(NamedTuple):
    """
    A batch as it shrinks, at some points of the tokens that its longest response has left.

    Args:
        tokens: The points. [token]
        done: Share of samples that have finished by then. [1]
        step: Engine step with those that still run. [s/token]
        share: Of those that have not finished, how many run. [1]
        waited: Time that a token of a wait stands for. [s]
        whole: Share of groups that have. [1]
        size: Samples of such a group; 1 where samples end independently. [1]
    """

    tokens: Any
    done: Any
    step: Any
    share: Any
    waited: Any
    whole: Any
    size: Any

    @property
    def passing(self) -> Real:
        """Time in which they come a token further, running or waiting. [s/token]"""
        return equations.token_time(self.step, self.waited, self.share)

    def chance_of_any(self, samples: Real) -> Real:
        """Chance that one of so many still runs."""
        return batch_drain.chance_of_any(finished_share=self.whole, samples=samples / self.size)


def _drain(
    work: Work,
    asked: Replica,
    batch: StepBatch,
    shape: Shape,
    begun: _Begun,
    values: Mapping[str, Real],
) -> _Drain:
    """
    How a batch shrinks.

    Args:
        work: `figures.numbers`.
        asked: One instance.
        batch: The samples.
        shape: Their lengths.
        begun: When the last of them begin.
        values: Constants by name.
    """
    tokens, slots = _points(batch, shape), _last(begun.slots)
    mix, size = _last(begun.mix), 1.0
    if begun.left is None:
        _, fresh, aged = _curves(shape.uncapped, batch.response_cv, shape.cap)
        whole = done = np.clip(mix * aged + (1 - mix) * fresh, 0.0, 1.0)
    else:
        size = _last(begun.left.size)
        done, whole = (np.clip(one(tokens), 0.0, 1.0) for one in (begun.left.finished, begun.left.complete))
    here = batch_drain.chance_of_any(finished_share=whole, samples=slots / size)
    running = batch_drain.still_running(finished_share=done, samples=slots, chance=here)
    prompt = _last(batch.prompt_tokens)
    share = _last(batch.running_share) if begun.left is None else begun.left.run(tokens)
    begun = prompt + _last(batch.tool_context)
    fresh_live = long_tail.context_of(prompt_tokens=begun, response_tokens=tokens * share)
    lengths = Lengths(
        prompt=prompt,
        response=_last(shape.lengths.response),
        live=mix * _last(shape.lengths.live) + (1 - mix) * fresh_live,
        longest=_last(shape.lengths.longest),
        computed=_last(shape.lengths.computed),
    )
    spread = {name: _last(value) for name, value in values.items()}
    _, step, _ = at_batch(work, _at_points(asked), np.maximum(1.0, share * running), lengths, spread)
    waited = _last(batch.waited_seconds)
    return _Drain(tokens=tokens, done=done, step=step, share=share, waited=waited, whole=whole, size=size)


def _draining_seconds(batch: StepBatch, begun: _Begun, drain: _Drain) -> Worked:
    """
    Seconds of the steps in which the batch shrinks: the integral of the step over what the longest response has left.

    An instance runs on while any of its samples does; the fleet waits for the slowest one, so the last steps count if
    any sample of the whole step still runs.

    Args:
        batch: The samples.
        begun: When the last of them begin.
        drain: How they finish.
    """
    return np.trapezoid(drain.chance_of_any(_at_once(batch, begun.slots)) * drain.passing, drain.tokens, axis=-1)


def _unequal(
    batch: StepBatch, shape: Shape, begun: _Begun, drain: _Drain, passed: Worked, busy_seconds: Worked
) -> Worked:
    """
    Seconds by which the instance with most tokens ends later, of those whose longest response ends with the last.

    Args:
        batch: The samples.
        shape: Their lengths.
        begun: When the last of them begin.
        drain: How they finish.
        passed: Steps in which the batch shrinks. [token]
        busy_seconds: Time of an instance that grows with its tokens. [s]
    """
    variance = np.maximum(2.0 * shape.live / batch.response_tokens - 1.0, 0.0)
    spread = np.maximum(busy_seconds, 0.0) * np.sqrt(variance * batch.instances / batch.samples)
    near = _last(passed - spread / drain.passing[..., -1])
    alike = batch.instances * between(drain.chance_of_any(_last(begun.slots)), drain.tokens, near)[..., 0]
    return spread * long_tail.largest_deviate(np.maximum(1.0, alike))


def _at_once(batch: StepBatch, slots: Real) -> Real:
    """Samples that run at once on all instances, of which some may have none. [1]"""
    return np.minimum(_last(slots) * _last(batch.instances), _last(batch.samples))


def _served(verifiers: Verifiers, slots: Real, coming: _Drain, first: Worked, begin: Worked) -> Worked:
    """
    Time until the last sample of a batch that drains is scored by few: each waits for what came before it.

    Args:
        verifiers: What scores them.
        slots: Samples of an instance that are under way when the last of them begin.
        coming: How these come.
        first: Time until the first of all has come. [s]
        begin: Time until the last begin. [s]
    """
    batch, each = verifiers.came, _last(verifiers.seconds)
    running = _at_once(batch, slots)
    times = _last(begin) + sums(coming.passing, coming.tokens)
    spare = times - running * each * coming.done  # of verifiers, if they were never idle
    before = (_last(batch.samples) - running) * each - (_last(begin) - _last(first))
    lacking = np.maximum(np.maximum.accumulate(spare, axis=-1), spare[..., :1] + np.maximum(before, 0.0)) - spare
    under_way = score_under_way(verifiers.agents)
    begins = times + np.maximum(lacking - under_way, 0.0)
    if verifiers.agents.redundant_samples:  # nobody waits for the longest scores
        last = last_score(verifiers.agents, begins, coming.whole, running / coming.size, 0.0)
    else:
        last = last_score(verifiers.agents, begins, coming.done, running)
    never_idle = np.where(lacking > under_way, begins + under_way, 0.0)[..., -1]
    return np.maximum(last, never_idle)


def _closed(work: Work, asked: Replica, batch: StepBatch, shape: Shape, values: Mapping[str, Real]) -> Generation:
    """
    A batch that closes when as many groups as it needs are whole; what has not finished is dropped.

    Time is that of the tokens which are trained on: those dropped are the longest, so more samples are needed for them.
    """
    own = rollout_batch.per_instance(amount=batch.samples, instances=batch.instances)
    wanted = rollout_batch.per_instance(amount=own, instances=batch.oversampling)
    left = rollout_batch.beyond(whole=own, part=wanted)
    flying = _flying(work, asked, batch, shape, own, values)
    slots = flying.batch
    begun = rollout_batch.beyond(whole=own, part=rollout_batch.beyond(whole=left, part=slots))
    all_begun = _begun(batch, shape, own, slots)
    drain = _drain(work, asked, batch, shape, all_begun, values)
    tokens, generated, share, draining = _until_closed(batch, left, slots, drain)
    kept = batch_drain.kept_tokens(generated, tokens, share, batch.group_size)
    first = _begun(batch, shape, begun, slots)
    full, aged = first.full, all_begun.mix * shape.live
    made = batch_drain.tokens_of_slot(full, generated, 0.0, slots, aged)
    trained = np.maximum(
        batch_drain.tokens_of_slot(full, kept, left, slots, aged), batch_drain.least_trained(made, wanted, slots)
    )
    seconds = _drained_time(first, flying, begun, draining)
    rate = rollout_batch.batch_rate(samples=slots, response_tokens=trained, seconds=seconds)
    whole = rollout_batch.fleet_time(wanted, batch.response_tokens, 1.0, rate)
    dropped = batch_drain.dropped_share(batch_drain.tokens_per_kept_token(made, trained))
    return _made(work, batch, shape, whole, flying, rate, dropped_fraction=dropped)


def _until_closed(batch: StepBatch, left: Real, slots: Real, drain: _Drain) -> tuple[Worked, Worked, Worked, Worked]:
    """
    A batch as it shrinks until no more samples than `left` are in groups that have not finished.

    Returns:
        Tokens that a sample still running has got to, the mean of all, the share that has finished, and the time.
    """
    running = 1 - drain.done
    unfinished = _last(slots) * drain.chance_of_any(_last(batch.group_size))
    falls = np.maximum(unfinished[..., :-1] - unfinished[..., 1:], 1e-12)
    within = np.clip((unfinished[..., :-1] - _last(left)) / falls, 0.0, 1.0)  # share of each interval that counts
    steps = np.diff(drain.tokens) * within

    def until(heights: Any) -> Any:  # noqa: ANN401 (an array over the points)
        """The integral, by the mean of each interval's counted part."""
        return np.sum(steps * (heights[..., :-1] + np.diff(heights) * within / 2), axis=-1)

    share = drain.done[..., 0] + np.sum(np.diff(drain.done) * within, axis=-1)
    return np.sum(steps, axis=-1), until(running), share, until(drain.passing)


def _carried(work: Work, asked: Replica, batch: StepBatch, shape: Shape, values: Mapping[str, Real]) -> Generation:
    """A batch that closes when as many groups as it needs are whole, where the others go on in the next one."""
    wanted = rollout_batch.per_instance(amount=batch.samples, instances=batch.instances)
    started = loop_time.generated_samples(wanted, batch.oversampling)
    longest = (
        longest_of(work, batch.group_size, shape.uncapped, batch.response_cv, shape.cap)
        if batch.endings is None
        else batch.endings.longest_of(batch.group_size)
    )
    running = batch_drain.carried_in_flight(started, wanted, batch.response_tokens, longest)
    flying = _flying(work, asked, batch, shape, running, values)
    seconds = _packed_time(batch, flying, wanted)
    rate = rollout_batch.batch_rate(samples=wanted, response_tokens=batch.response_tokens, seconds=seconds)
    return _made(work, batch, shape, seconds, flying, rate)


def _at_points(asked: Replica) -> Replica:
    """Several instances that are one, each at all points of the drain; one by itself as it is."""
    each = {name: _last(number) for name, number in asked.numbers.items() if not isinstance(number, (int, float))}
    question, layout = asked.question, entries(asked.question.layout)
    degrees = {name: _last(degree) for name, degree in layout.items() if not isinstance(degree, (int, float))}
    if degrees:
        question = replace(question, layout=replace(question.layout, **degrees))
    if isinstance(question.memory_fraction, np.ndarray):
        question = replace(question, memory_fraction=_last(question.memory_fraction))
    return replace(asked, question=question, numbers={**asked.numbers, **each}) if each else asked


def _last(value: Worked) -> Worked:
    """As an array with one more axis, for the points of the drain."""
    return value if isinstance(value, float) else np.asarray(value, dtype=float)[..., None]
