"""
Samples that wait outside the GPUs, in the closed form: for tools, environments and verifiers.

A sample that waits grows no token, so its wait is told in tokens: those that it would have grown by meanwhile. Lengths
stretched so have the same rhythm as plain ones; of the samples under way only a share runs.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import lgamma
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rlsize.equations import agents as equations
from rlsize.equations import batch_drain, long_tail, prefill, rollout_batch
from rlsize.equations import lengths as equal_lengths
from rlsize.estimates.endings import Endings
from rlsize.facts.algorithm import Agents

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rlsize.estimates.figures import Worked
    from rlsize.estimates.generation import StepBatch
    from rlsize.estimates.rollout_prediction import Lengths

_CELLS = 2**13  # of the grid
_DEVIATE = 5.0
_LONGER = np.concatenate([np.linspace(0.9, 0.1, 7), np.geomspace(0.05, 1e-6, 16)])
"""Shares of samples that wait longer, by which waits are told apart."""
_ENDS = 33
_LEAST = 1e-15  # of a share, and of what it leaves: its logarithm is worked out
_AND_NO_LESS = 1.0 + 1e-12  # or rounding keeps those at the cap from ending
_RARE = 1e-7  # a chance of failures beyond which nothing is looked for
_MORE = np.asarray(equal_lengths.normal_deviate((np.arange(9) + 0.5) / 9))
"""Deviates of what runs, each as likely: contexts vary independently."""
_STEPS = 4  # of Newton's, from below
_SOON = 1e-6  # of a call, rather than no time
_FEW = 1e-4  # calls, of which nobody asks more closely how many they are
_ALIKE = 32
"""Of how many failures one more is told apart from none more: 3 % of the time of a sample that fails so often."""


class Outside(NamedTuple):
    """
    What a sample waits for beside its engine.

    Args:
        starting: Until its environment has started. [s]
        parked: Mean time of all its tool calls. [s]
        scored: Mean time of its verifier. [s]
        variance: Variance of all of it. [s^2]
        each: One wait, the mean of those that samples are met in. [s]
        calls: Mean calls of tools. [1]
        pairs: Mean pairs of them. [1]
        call_cv: Coefficient of variation of a call's time. [1]
        tool_tokens: What each adds to the context. [token]
    """

    starting: float
    parked: float
    scored: float
    variance: float
    each: float
    calls: float
    pairs: float
    call_cv: float
    tool_tokens: float

    @property
    def seconds(self) -> float:
        """Mean time of all of it. [s]"""
        return self.starting + self.parked + self.scored


def outside(agents: Agents) -> Outside:
    """What a sample of these agents waits for."""
    most, ends = agents.turns, agents.turn_end_fraction
    call, call_cv = _call(agents)
    spread = (call * call_cv) ** 2
    calls = float(equations.mean_turns(most, ends)) - 1.0
    scored, scored_cv = scoring(agents)
    scoring_spread = (scored * scored_cv) ** 2
    varied = float(equations.turns_variance(most, ends))
    starts, parked = agents.environment_seconds, calls * call
    squares = starts**2 + calls * (call**2 + spread) + scored**2 + scoring_spread
    return Outside(
        starting=starts,
        parked=parked,
        scored=scored,
        variance=calls * spread + varied * call**2 + scoring_spread,
        each=squares / max(starts + parked + scored, 1e-9),
        calls=calls,
        pairs=(varied + calls**2 - calls) / 2.0,
        call_cv=call_cv,
        tool_tokens=agents.tool_tokens,
    )


def in_turns(lengths: Lengths, out: Outside) -> Lengths:
    """
    Lengths of samples of several turns: contexts grow by what tools answer, and prefills compute it.

    Args:
        lengths: Those without tools.
        out: What samples wait for.
    """
    return replace(
        computing(lengths, out.calls * out.tool_tokens),
        live=lengths.live + tool_context(out),
        longest=lengths.longest + 2.0 * tool_context(out),
    )


def left_behind(out: Outside, lengths: Lengths, prompt: Worked) -> tuple[Worked, Worked]:
    """
    KV that a sample leaves behind at all of its tool calls, and when it has finished. [token]

    Args:
        out: What it waits for.
        lengths: Its lengths.
        prompt: What it has of its prompt that others do not have. [token]
    """
    called = equations.contexts_at_calls(out.calls, out.pairs, prompt, lengths.response, out.tool_tokens)
    return called, long_tail.context_of(prompt + out.calls * out.tool_tokens, lengths.response)


def losing(lengths: Lengths, out: Outside, prompt: Worked, thrown: Worked) -> Lengths:
    """
    Lengths of samples that compute anew what they have left behind for their tools, where it has gone.

    Args:
        lengths: Those of others.
        out: What they wait for.
        prompt: What each has of its prompt that others do not have. [token]
        thrown: Share of it that has gone. [1]
    """
    if not out.calls:
        return lengths
    return replace(lengths, again=thrown * out.calls, context=left_behind(out, lengths, prompt)[0] / out.calls)


def thrown_out(
    out: Outside,
    called: Worked,
    ended: Worked,
    running: Worked,
    wanted: Worked,
    room: Worked,
    held: Worked,
    seconds: Worked,
) -> Worked:
    """
    Share of what samples leave behind for their tools that has gone when these have answered.

    What is left behind has the room that what runs does not need, and the oldest of it goes first, so all of it stays
    for the same time.

    Args:
        out: What they wait for.
        called: What a sample leaves behind at all of its calls. [token]
        ended: What it leaves behind when it has finished. [token]
        running: Samples of an instance that run. [1]
        wanted: As many as would if its cache were large enough. [1]
        room: Of which it holds so many. [1]
        held: KV of one of them. [token]
        seconds: Time that it runs in all. [s]
    """
    if not out.calls or not out.parked:  # a call of no time
        return 0.0
    call, cv = out.parked / out.calls, out.call_cv
    called, ended, running, wanted, room, held, seconds = (
        np.asarray(one, dtype=float)[..., None] for one in (called, ended, running, wanted, room, held, seconds)
    )
    free = held * np.maximum(room - wanted - np.sqrt(np.maximum(wanted, 0.0)) * _MORE, 0.0)
    rate = np.maximum(running, _SOON) / seconds
    kept = np.maximum(free / (rate * (called + ended)), _SOON * call)
    later = 1.0 - batch_drain.finished_share(kept, call, cv, np.inf)
    for _ in range(_STEPS):
        if np.max(later) < _FEW:
            break
        there = equations.left_behind(rate, called, equal_lengths.capped_mean(call, cv, kept), ended, kept)
        kept = np.maximum(kept + (free - there) / (rate * (called * later + ended)), _SOON * call)
        later = 1.0 - batch_drain.finished_share(kept, call, cv, np.inf)
    return np.mean(later, axis=-1)


def computing(lengths: Lengths, anew: Worked) -> Lengths:
    """Lengths of samples that compute some tokens more, as if these were of prompts that no other has."""
    computed = lengths.prompt if lengths.computed is None else lengths.computed
    return replace(lengths, prompt=lengths.prompt + anew, computed=computed + anew)


def tool_context(out: Outside) -> float:
    """What tools have added to the context of the mean sample in flight. [token]"""
    added = prefill.group_prefill_tokens(prompt_tokens=out.calls * out.tool_tokens, hit_ratio=0.0)
    return float(rollout_batch.half(added))


@lru_cache(maxsize=64)
def waits(agents: Agents) -> tuple[tuple[float, float], ...]:
    """
    What samples wait for once they have begun, as some waits [s] and the share of samples of each: closer in the tail.

    The distribution of a sum of calls over a distribution of turns is worked out on a grid, by its transform.
    """
    call = _call(agents)
    span = agents.turns * call[0] + sum(_far(*one) for one in (call, scoring(agents)))
    each = span / (_CELLS - 1) or 1.0  # a time that is the whole span has a cell
    again = agents.environment_seconds
    called = _with_failures((agents.tool_seconds, agents.tool_cv), agents.failed_fraction, again, each)
    scored = _with_failures((agents.verify_seconds, agents.verify_cv), agents.verify_failed_fraction, 0.0, each)
    ends, goes_on = agents.turn_end_fraction, (1.0 - agents.turn_end_fraction) * called
    sums = goes_on ** (agents.turns - 1)  # of those that have all their turns
    if ends:
        sums = sums + ends * (1.0 - sums) / (1.0 - goes_on)  # and of those that end after each turn before
    shares = np.maximum(np.fft.irfft(sums * scored, 2 * _CELLS), 0.0)
    longer = 1.0 - np.cumsum(shares) / np.sum(shares)
    parts = np.searchsorted(-longer, -_LONGER)
    found = [np.sum(part) for part in np.split(shares, parts)]
    sizes = [np.sum(part) for part in np.split(shares * np.arange(len(shares)), parts)]
    return tuple((each * size / one, one) for size, one in zip(sizes, found, strict=True) if one > 0)


def _call(agents: Agents) -> tuple[float, float]:
    """Mean time of a tool call [s], and its coefficient of variation."""
    fails = {"environment_seconds": agents.environment_seconds, "failed_fraction": agents.failed_fraction}
    return _repeated(agents.tool_seconds, agents.tool_cv, fails)


def scoring(agents: Agents) -> tuple[float, float]:
    """Mean time to score a sample [s], repetitions among it, and its coefficient of variation."""
    if not agents.verify_failed_fraction:
        return agents.verify_seconds, agents.verify_cv
    fails = {"environment_seconds": 0.0, "failed_fraction": agents.verify_failed_fraction}
    return _repeated(agents.verify_seconds, agents.verify_cv, fails)


def score_under_way(agents: Agents) -> float:
    """What scores under way still take on average when the last one begins: that, and others, met at any time. [s]"""
    return float(equations.scores_under_way(*scoring(agents), agents.verify_workers or 1))


def last_score(agents: Agents, begins: Worked, begun: Worked, samples: Worked, cv: float | None = None) -> Worked:
    """
    When the last of some samples is scored. [s]

    Args:
        agents: How long a score takes.
        begins: Some times, in the last axis. [s]
        begun: Share of the scores that have been begun with by then. [1]
        samples: Samples; with a last axis. [1]
        cv: Coefficient of variation of a score's time; that of these agents where None. [1]
    """
    mean, variation = scoring(agents)
    variation = variation if cv is None else cv
    later = begins[..., -1:] + _far(mean, variation) * np.linspace(0.0, 1.0, _ENDS) ** 2
    times = np.concatenate([begins, later], axis=-1)
    since = times[..., None] - (begins[..., None, 1:] + begins[..., None, :-1]) / 2
    scored = batch_drain.finished_share(np.maximum(since, 1e-9), mean, variation, np.inf)
    done = begun[..., :1] + (np.diff(begun)[..., None, :] * scored).sum(axis=-1)
    return begins[..., 0] + np.trapezoid(batch_drain.chance_of_any(np.clip(done, 0.0, 1.0), samples), times, axis=-1)


def _repeated(seconds: float, variation: float, fails: dict[str, float]) -> tuple[float, float]:
    """Mean of a time that is repeated after failures [s], and its coefficient of variation."""
    mean = float(equations.call_time(tool_seconds=seconds, **fails))
    variance = float(equations.call_variance(tool_seconds=seconds, tool_cv=variation, **fails))
    return mean, variance**0.5 / mean if mean else 0.0


def _far(mean: float, variation: float) -> float:
    """A time that hardly one of a million waits takes. [s]"""
    return float(equal_lengths.lognormal_quantile(mean=mean, variation=variation, deviate=_DEVIATE))


def _with_failures(time: tuple[float, float], failed: float, again: float, each: float) -> NDArray[np.complex128]:
    """The transform of a time, given by mean and variation, that is as long again after each failure, and a start."""
    found, times, start = np.zeros(2 * _CELLS), 0, 1.0
    while start * (1.0 - failed) > _RARE and times * again < _CELLS * each:
        alike = max(1, times // _ALIKE)  # after so many failures one more is no other time
        next_start, middle = start * failed**alike, times + (alike - 1) / 2
        late = round(middle * again / each)
        if late < _CELLS:
            found[late:_CELLS] += (start - next_start) * _shares((middle + 1) * time[0], time[1], each)[: _CELLS - late]
        start, times = next_start, times + alike
    return np.asarray(np.fft.rfft(found))


def _shares(mean: float, variation: float, each: float) -> NDArray[np.float64]:
    """Share of lognormal times in each cell of a grid, and as many empty ones, in which sums find room."""
    ends = (np.arange(_CELLS) + 0.5) * each
    spread = max(np.sqrt(np.log1p(variation**2)), 1e-9)
    deviate = (np.log(ends / mean) + spread**2 / 2) / spread if mean else np.full(_CELLS, _DEVIATE)
    below = np.asarray(equal_lengths.normal_share(deviate=np.clip(deviate, -_DEVIATE, _DEVIATE)))
    below = np.where(deviate >= _DEVIATE, 1.0, np.where(deviate <= -_DEVIATE, 0.0, below))
    return np.concatenate([np.diff(below, prepend=0.0), np.zeros(_CELLS)])


def stretched(batch: StepBatch, uncapped: Worked, cap: Worked, out: Outside, step_seconds: Worked) -> StepBatch:
    """
    The samples of a step, what they wait for as tokens.

    Args:
        batch: The samples.
        uncapped: Mean response without the cap. [token]
        cap: The cap. [token]
        out: What they wait for.
        step_seconds: Time in which a sample that runs grows by a token. [s]
    """
    seconds, spread = out.seconds / step_seconds, np.sqrt(out.variance) / step_seconds
    share = equations.running_share(running_seconds=batch.response_tokens, outside_seconds=seconds)
    ends = endings(batch, uncapped, cap, out, step_seconds)
    return replace(
        batch,
        agents=None,
        response_tokens=batch.response_tokens + seconds,
        response_cv=np.hypot(uncapped * batch.response_cv, spread) / (uncapped + seconds),
        max_tokens=ends.longest,
        running_share=share,
        called=out,
        waited_seconds=step_seconds,
        tool_context=tool_context(out),
        endings=ends,
    )


def endings(batch: StepBatch, uncapped: Worked, cap: Worked, out: Outside, step_seconds: Worked) -> Endings:
    """How samples end that wait beside their responses; as `stretched`."""
    each = [(out.starting + seconds, share) for seconds, share in waits(batch.agents or Agents())]
    size = np.asarray(batch.group_size, dtype=float)
    found = Endings((cap + each[-1][0] / step_seconds) * _AND_NO_LESS, 0.0, 0.0, size)
    step, mean, spread, most = (
        np.asarray(one, dtype=float)[..., None] for one in (step_seconds, uncapped, batch.response_cv, cap)
    )
    left = running = 0.0
    for seconds, share in each:
        waited = seconds / step
        own = np.clip(found.tokens - waited, 1e-9, most)
        longer = share * (1.0 - batch_drain.finished_share(own, mean, spread, most))
        response = batch_drain.mean_of_longer(own, mean, spread, most)
        left, running = left + longer, running + longer * equations.running_share(response, waited)
    done = 1.0 - left
    return found._replace(done=done, whole=done ** size[..., None], running=running / np.maximum(left, _LEAST))


class Taken(NamedTuple):
    """
    Samples of groups that begin with more than they need, each as long as it runs until its group is complete.

    Args:
        batch: They.
        generated: What one of them generates over its whole length. [1]
        taken: Mean response of those that end first over that of all. [1]
    """

    batch: StepBatch
    generated: Worked = 1.0
    taken: Worked = 1.0


def first_to_end(batch: StepBatch, held: StepBatch, uncapped: Worked) -> Taken:
    """
    The samples of a step of whose groups the first to end are taken.

    Which end first is decided by responses and waits together, so responses have their part of what these are shorter
    by.

    Args:
        batch: The samples, with their responses.
        held: The same, what they wait for among their tokens.
        uncapped: Mean response without the cap on it. [token]
    """
    redundant = 0 if batch.agents is None else batch.agents.redundant_samples
    if not redundant or held.endings is None:
        return Taken(held)
    needed = round(float(np.median(held.group_size)))
    started, tokens, share = needed + redundant, held.endings.tokens, np.clip(held.endings.done, _LEAST, 1.0 - _LEAST)
    after = [equations.just_finished(share, done, started, _log_ways(started, done)) for done in range(needed)]
    running = sum((started - done) * chance for done, chance in enumerate(after)) / started
    lacks = sum((needed - done) * chance for done, chance in enumerate(after)) / needed
    taken, mean = np.trapezoid(lacks, tokens, axis=-1), np.trapezoid(running, tokens, axis=-1)
    cut = replace(
        held,
        samples=held.samples * started / needed,
        group_size=started,
        response_tokens=mean,
        endings=held.endings._replace(done=1.0 - running, whole=1.0 - np.clip(sum(after), 0.0, 1.0), size=started),
    )
    shorter = (held.response_tokens - taken) * own_spread(batch, held, uncapped) / batch.response_tokens
    return Taken(cut, mean / held.response_tokens, np.maximum(1.0 - shorter, 0.1))


def _log_ways(started: float, done: int) -> float:
    """Logarithm of the ways to choose some of a group's samples."""
    return lgamma(started + 1) - lgamma(done + 1) - lgamma(started - done + 1)


def own_spread(batch: StepBatch, held: StepBatch, uncapped: Worked) -> Worked:
    """The part that responses have in the spread of samples that wait, 1 where they wait equally long."""
    waited = batch.response_tokens / held.running_share - batch.response_tokens
    return np.minimum(1.0, (uncapped * batch.response_cv / ((uncapped + waited) * held.response_cv)) ** 2)


def waiting_share(batch: StepBatch, held: StepBatch, uncapped: Worked) -> Worked:
    """
    Share of their time in which those samples wait that the trainer waits for: all, or the longest, which is so by its
    response or by its waits.

    Args:
        batch: The samples, with their responses.
        held: The same, what they wait for among their tokens.
        uncapped: Mean response without the cap on it. [token]
    """
    if batch.late != "wait" or held.endings is None:
        return 1.0 - held.running_share
    whole = batch.response_tokens / held.running_share
    longest = np.maximum(whole, held.endings.longest_of(held.samples))
    more = (1.0 - own_spread(batch, held, uncapped)) * (longest - whole)
    return (whole - batch.response_tokens + more) / longest


def scored_share(came: Endings, alone: Endings, ended: Endings, needed: Worked) -> Worked:
    """
    Samples that are scored for each that is taken: redundant ones too that come before their group is complete.

    Args:
        came: How samples come to be scored.
        alone: How they are scored where none stops.
        ended: How they end that stop when their group is complete.
        needed: Samples that a group is complete with. [1]
    """
    waiting = 1.0 - alone.finished(ended.tokens)  # of those that are not scored by then
    under_way = 1.0 - (1.0 - came.finished(ended.tokens)) / np.maximum(waiting, _LEAST)
    by = (np.diff(ended.whole, axis=-1) * (under_way[..., 1:] + under_way[..., :-1]) / 2).sum(axis=-1)
    return 1.0 + (ended.size - needed) / needed * by


def places(batch: StepBatch, out: Outside, running_seconds: Worked, begin: Worked = np.inf) -> Worked:
    """
    Samples that may be under way in the whole fleet, scored ones included, for want of environments. [1]

    Args:
        batch: The samples.
        out: What they wait for.
        running_seconds: How long one of them generates. [s]
        begin: Samples that begin in all; where there is an environment for each, nothing lacks. [1]
    """
    agents = batch.agents
    if agents is None or agents.environments is None:
        return np.inf
    group = batch.group_size + agents.redundant_samples
    whole = agents.environments - (group - 1) / 2  # groups start with all their environments
    share = equations.running_share(
        running_seconds=running_seconds + out.starting + out.parked, outside_seconds=out.scored
    )
    return np.where(agents.environments < begin, np.maximum(whole, group) / share, np.inf)
