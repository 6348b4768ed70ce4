"""
An asynchronous loop in its steady rhythm: what a cap on staleness makes of samples that differ in length.

With a cap of k, no more than k + 1 batches are under way: a batch starts when weights arrive, and the trainer takes the
next one when enough groups are whole. All running samples grow by the same tokens from one sync to the next. So the
lengths and the cap alone say how many tokens these are, how many samples run before a batch is taken and while it is
trained on; the engine says what those steps take, and the trainer's time which of all rhythms it is.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rlsize.equations import agents, batch_drain, lengths
from rlsize.estimates.endings import Endings
from rlsize.estimates.remembered import remembered

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from rlsize.equations._ops import Real
    from rlsize.estimates.generation import Late

    Array = NDArray[np.float64]

_RHYTHMS = 10  # from a trainer that takes no time to one that never waits; the simulator's steps are within 1 % with 40
_QUEUED = 5  # beyond these, of one that finds a queue, where late samples are dropped
_PHASES = 9  # of a rhythm
_BATCHES = 16  # that are looked at one by one; those before them as a whole
_HALVINGS, _FEWER = 20, 8
_LONGEST = 129  # points of the longest response's distribution
_LEVELS = 32  # of it, each as likely as any other; triangular numbers go through a power of two in no order
_PLAYED, _COUNTED = 72, 60  # batches that are played; whole periods of what follows from caps of up to 5
_ORDER = [batch * (batch + 1) // 2 % _LEVELS for batch in range(_PLAYED)]
_HALF = 0.5  # of a group: as few are left where none may be
_NONE = 1e-9
_APARTS, _LEAST_APART = 33, 1 / 64  # rhythms of a full cache, and the shortest, of a response
_PLACES = (0.25, 0.75)  # of samples of a batch, one after the other
_TABLES = len(Endings._fields)
_OLDER = 4  # batches with samples under way that are too late
_WAITING = 4  # parts of it: experts that few samples read are not read by many in turn
CROWDS = (0.0, 0.5, 0.9)
_TURNS = (0.125, 0.375, 0.625, 0.875)  # of a batch, whose groups begin one after the other


class Rhythm(NamedTuple):
    """
    Rhythms of a loop, by how much time the trainer leaves; arrays whose last axis is the rhythm.

    Args:
        tokens: By which running samples grow from one sync to the next. [token]
        due: Share of these after which a batch is taken. [1]
        running: Samples that run until then, over those of a batch, in equal parts of that time one after the other,
            and from then on. [1]
        grown: Tokens that these have on average; nothing where batches are waited for: as those in any loop. [token]
        started: Samples that are started for each that is trained on. [1]
        ahead: Share of these by which the part of a batch that holds the trainer up most is due before its last. [1]
        more: How many times the time from then on training on the whole batch may take. [1]
    """

    tokens: Real
    due: Real
    running: tuple[Real, ...]
    grown: tuple[Real, ...]
    started: Real
    ahead: Real
    more: Real


class Cycle(NamedTuple):
    """
    What an asynchronous loop takes from one weight sync to the next, in some of its rhythms.

    Args:
        training: Time that is left for training on a batch in each, the shortest first; numbers or arrays. [s]
        whole: Time of all of it. [s]
        started: Samples that are started for each that is trained on. [1]
        waiting_share: Share of the samples under way that wait outside the GPUs. [1]
        wait_seconds: How long one of them does at a time. [s]
        token_seconds: Mean engine step of the shortest. [s]
        full_share: Share of the shortest in which samples wait for room in a full KV cache. [1]
        thrown_share: Share of what samples leave behind for their tools that has gone when these answer, likewise. [1]
        scored_seconds: Time in which few verifiers, which no sync stops, score the samples of a step. [s]
    """

    training: tuple[Real, ...]
    whole: tuple[Real, ...]
    started: tuple[Real, ...]
    waiting_share: Real = 0.0
    wait_seconds: Real = 1.0
    token_seconds: Real = 0.0
    full_share: Real = 0.0
    thrown_share: Real = 0.0
    scored_seconds: Real = 0.0

    def each(self, change: Callable[[Real], Real]) -> Cycle:
        """The same, each number changed."""
        return Cycle(*(tuple(map(change, numbers)) for numbers in self[:3]), *map(change, self[3:]))

    def slowed(self, factor: Real) -> Cycle:
        """The same, each time as many times as long."""
        training, whole = (tuple(time * factor for time in times) for times in (self.training, self.whole))
        return self._replace(training=training, whole=whole)

    def at_least(self) -> Cycle:
        """A cycle that takes no longer beside any trainer, and never less beside one that takes longer."""
        rising = accumulate(reversed(self.whole), np.minimum)
        return self._replace(whole=tuple(rising)[::-1], scored_seconds=0.0)

    def seconds(self, train_seconds: Real, pause_seconds: Real = 0.0) -> Real:
        """Time from one sync to the next of a trainer that takes so long, less its pauses; lines between rhythms."""
        waited = self._waited(pause_seconds)
        busy = train_seconds + waited
        found = on_lines(self.training, self.whole, busy) + np.maximum(0.0, busy - self.training[-1]) - waited
        if not np.any(self.scored_seconds):
            return found
        started = self.waste(train_seconds, pause_seconds)
        return agents.served_beside(found, self.scored_seconds * started - pause_seconds)

    def waste(self, train_seconds: Real, pause_seconds: Real) -> Real:
        """Samples that are started for each that such a trainer trains on, or verifiers score, if these take longer."""
        busy = np.maximum(train_seconds + self._waited(pause_seconds), self.scored_seconds)
        return on_lines(self.training, self.started, busy)

    def _waited(self, pause_seconds: Real) -> Real:
        return agents.waited_in_pause(pause_seconds, self.wait_seconds, self.waiting_share)


def on_lines(points: tuple[Real, ...], values: tuple[Real, ...], at: Real) -> Real:
    """What lines between some values say, which stand at rising points; each a number or an array."""
    found = values[0]
    for (low, high), (one, other) in zip(pairwise(points), pairwise(values), strict=True):
        share = (at - low) / np.maximum(high - low, 1e-12)
        found = found + np.minimum(np.maximum(share, 0.0), 1.0) * (other - one)
    return found


class _Lengths(NamedTuple):
    """Lengths, their mean under the cap, and cap of a loop, each with a last axis of one for the rhythms."""

    late: Late
    endings: Endings | None
    leaving: Endings | None
    mean: Array
    uncapped: Array
    cv: Array
    cap: Array
    staleness: Array
    group: Array
    samples: Array
    places: Array
    scoring: Array

    def finished(self, tokens: Array) -> Real:
        """Share of samples that are no longer; tokens have two axes more."""
        if self.endings is not None:
            return self.endings.finished(tokens)
        uncapped, cv, cap = (one[..., None, None] for one in (self.uncapped, self.cv, self.cap))
        running = tokens < cap
        done = np.ones(running.shape)
        some = (np.broadcast_to(one, running.shape)[running] for one in (np.maximum(tokens, 1e-9), uncapped, cv, cap))
        done[running] = batch_drain.finished_share(*some)
        return done

    def longer(self, tokens: Array) -> Real:
        """The integral of the share that is longer, from some tokens on; these have one axis more."""
        if self.endings is not None:
            return self.endings.longer(tokens)
        uncapped, cv, cap = (one[..., None] for one in (self.uncapped, self.cv, self.cap))
        if not (tokens < cap).any():
            return np.zeros(tokens.shape)
        return self.mean[..., None] - lengths.capped_mean(uncapped, cv, np.clip(tokens, 1e-9, cap))

    def waits(self, ages: Array, begun: Array) -> Real:
        """
        How long some of the groups of a batch wait for environments, in a last axis.

        Those that find one begin at once, the others one after the other as environments are given back.

        Args:
            ages: Of the batches before, in their last axis. [token]
            begun: How long some of their groups have waited, in one more. [token]
        """
        if self.leaving is None:
            return np.zeros((*ages.shape[:-1], 1))
        lacks = 1.0 - self.places + (1.0 - self.leaving.finished(ages[..., None] - begun)).mean(axis=-1).sum(axis=-1)
        return self._turn * np.maximum(0.0, np.array(_TURNS) - 1.0 + np.maximum(lacks, 0.0)[..., None])

    @property
    def _turn(self) -> Array:
        """By which samples grow until those of a batch have given back all environments. [token]"""
        held = 0.0 * self.cap if self.leaving is None else self.leaving.longer(0.0 * self.cap)
        return (held / self.places)[..., None]

    def _steady_waits(self, tokens: Array) -> list[Array]:
        """The same where a batch begins each time that samples grow by so much."""
        if self.leaving is None:
            return [0.0 * tokens]
        each = self.waits(tokens[..., None], (self._turn * np.array(_TURNS))[..., None, :])
        return list(np.moveaxis(each, -1, 0))

    def left(self, tokens: Array, phases: Array) -> tuple[Array, Array, Array]:
        """
        Samples that run at some phases of a rhythm, groups that have not finished, and the tokens that these samples
        have in all; over the samples of a batch.
        """
        each = [self._left_after(tokens, phases, wait[..., None, None]) for wait in self._steady_waits(tokens)]
        running, groups, grown = (sum(some) / len(each) for some in zip(*each, strict=True))
        before = self.longer(tokens[..., None] * (phases + _BATCHES - _HALF)) / tokens[..., None]
        return running + before, groups + self.group[..., None] * before, grown + _BATCHES * tokens[..., None] * before

    def _left_after(self, tokens: Array, phases: Array, wait: Array) -> tuple[Array, Array, Array]:
        """The same of groups that have waited so long, but for batches of long ago."""
        ages = tokens[..., None, None] * (phases[..., None] + np.arange(_BATCHES)) - wait
        done = self.finished(ages)
        complete = done ** self.group[..., None, None] if self.endings is None else self.endings.complete(ages)
        running = (ages >= 0) * (1 - done) * (1.0 if self.endings is None else self.endings.run(ages))
        return running.sum(axis=-1), (1 - complete).sum(axis=-1), (running * ages).sum(axis=-1)

    def kept(self, tokens: Array, phases: Array) -> Real:
        """Share of groups that are trained on, where those that are too stale are dropped."""
        if self.late != "drop":
            return np.ones(np.broadcast_shapes(tokens[..., None].shape, phases.shape))
        return self._whole_by(tokens, phases + np.ceil(self.staleness)[..., None])

    def kept_in_queue(self, tokens: Array, groups: Array) -> Array:
        """
        Share of groups that are trained on where the trainer never waits, so that what has ended queues for it.

        Args:
            tokens: From one sync to the next. [token]
            groups: That have not finished at some phases, over those of a batch.
        """
        running = groups.mean(axis=-1)
        low, high = 1.0 + 0.0 * tokens, np.ceil(self.staleness) + 0.0 * tokens
        for _ in range(_HALVINGS):
            lag = (low + high) / 2
            kept = self._whole_by(tokens, lag[..., None])[..., 0]
            later = lag < batch_drain.syncs_to_end(running, kept, self.staleness)
            low, high = np.where(later, lag, low), np.where(later, high, lag)
        return kept

    def _whole_by(self, tokens: Array, syncs: Array) -> Array:
        """Share of groups that have ended after some times of the tokens between two syncs."""
        ages = [(tokens[..., None] * syncs - wait[..., None])[..., None] for wait in self._steady_waits(tokens)]
        if self.endings is not None:
            whole = [self.endings.complete(age)[..., 0] for age in ages]
        else:
            whole = [self.finished(age)[..., 0] ** self.group[..., None] for age in ages]
        found: Array = np.maximum(np.mean(whole, axis=0), 1e-3)
        return found

    def early(self, tokens: Real, phases: Real, groups: Real = None) -> Real:
        """Above nothing where it is too early to take a batch at some phases of a rhythm; `groups` are those left."""
        allowed = (self.staleness + _HALF * self.group / self.samples)[..., None]
        groups = self.left(tokens, phases)[1] if groups is None else groups
        return groups - allowed * self.kept(tokens, phases)

    def played(self, crowded: float) -> tuple[Array, Array, list[Array]]:
        """
        Rhythms where each batch is waited for in turn: tokens, the share of these until its batch is there, and samples
        that run in parts of the time until then and from then on, over those of a batch.

        A batch whose longest response outlasts those of the batches before makes the next sync late, by which the next
        batch has come further: long and short steps follow each other, and do not even out. So some batches are played,
        of which only the longest response counts; the more samples run, the less they grow while one is trained on.

        Args:
            crowded: Share of an engine step with a whole batch that is not there with few samples. [1]
        """
        longest = self._longest()
        trained, ahead, steps = self._pace(longest, crowded)
        found, run = [], 1.0
        for level in _ORDER:
            ages = (ahead * steps[..., None, :]).sum(axis=-1)
            wait = np.maximum(0.0, longest[..., level] - ages[..., 0])
            then = [ages + share * wait[..., None] for share in np.linspace(0.0, 1.0, _WAITING + 1)]
            left = [self.longer(one).sum(axis=-1) for one in then]
            for _ in range(2):  # from what ran beside the training of the batch before on
                training = trained / (1 - crowded + crowded * run)
                after = then[-1] + training[..., None]
                last = self.longer(after).sum(axis=-1)
                run = (left[-1] - last) / np.maximum(training, _NONE)
            ran = [one - other for one, other in pairwise([*left, last])]
            found.append((wait, training, *ran))
            steps = np.concatenate([(wait + training)[..., None], steps[..., :-1]], axis=-1)
        wait, training, *ran = np.mean(found[-_COUNTED:], axis=0)
        tokens, lasting = wait + training, [wait / _WAITING] * _WAITING + [training]
        return tokens, wait / tokens, [many / np.maximum(time, _NONE) for many, time in zip(ran, lasting, strict=True)]

    def played_outside(self, ends: Endings) -> tuple[Array, Array]:
        """
        Such tokens and shares of samples that wait outside the GPUs.

        A batch whose samples wait for environments or few verifiers has its last sample as much later. These wait the
        longer the closer batches follow each other, so that a loop may go on in pairs of a long and a short step.
        """
        longest = self._longest()
        trained, ahead, steps = self._pace(longest, 0.0)
        begun = np.zeros((*steps.shape, 1 if self.leaving is None else len(_TURNS)))  # how long their groups waited
        found, queue = [], 0.0 * trained
        for level in _ORDER:
            ages = (ahead * steps[..., None, :]).sum(axis=-1)
            last = longest[..., level]
            if self.leaving is not None:
                latest = self.waits(ages[..., :-1], begun[..., 1:, :])
                begun = np.concatenate([begun[..., 1:, :], latest[..., None, :]], axis=-2)
                last = self._longest_after(last, (level + _HALF) / _LEVELS, begun[..., 0, :], ends)
            last = last - ages[..., 0]
            wait = np.maximum(0.0, last)
            if self.scoring.any():  # by which the last one stands behind others that came before it
                since = self._came(ages, begun) - self._came(ages + np.minimum(last, 0.0)[..., None], begun)
                queue = self._queued(queue, ages, begun, wait)
                behind = np.maximum(0.0, queue - self.scoring * since)
                queue = self._queued(queue, ages + wait[..., None], begun, behind + trained)
                wait = wait + behind
            found.append(wait)
            steps = np.concatenate([(wait + trained)[..., None], steps[..., :-1]], axis=-1)
        wait = np.mean(found[-_COUNTED:], axis=0)
        return wait + trained, wait / (wait + trained)

    def _longest(self) -> Real:
        """The longest response of a batch, at all levels."""
        points = self.cap[..., None] * np.linspace(0.0, 1.0, _LONGEST) ** 2
        done = self.finished(points[..., None])[..., 0] if self.endings is None else self.endings.complete(points)
        below = np.broadcast_to(done**self._alone, points.shape)
        return between(points, below, (np.arange(_LEVELS) + _HALF) / _LEVELS)

    @property
    def _alone(self) -> Real:
        """Samples, or groups, of a batch that end independently, with one axis more. [1]"""
        return (self.samples if self.endings is None else self.samples / self.group)[..., None]

    def _longest_after(self, longest: Array, level: float, waits: Array, ends: Endings) -> Real:
        """The same at a level, where groups begin after some waits."""
        low, high = longest + 0.0 * waits[..., 0], longest + waits.max(axis=-1)
        for _ in range(_FEWER):
            middle = (low + high) / 2
            whole = ends.complete(middle[..., None] - waits)
            early = (whole**self._alone).prod(axis=-1) < level ** waits.shape[-1]
            low, high = np.where(early, middle, low), np.where(early, high, middle)
        return high

    def _pace(self, longest: Array, crowded: float) -> tuple[Array, Array, Array]:
        """Time of training in each rhythm, the steps that batches of each age have had, and none to begin with."""
        least = longest[..., -1] / np.maximum(self.staleness, 1.0)
        whole = least * (1 - crowded) + self.longer(0.0 * least[..., None])[..., 0] * crowded
        trained = np.maximum(np.maximum(whole, self.scoring), self._turn[..., 0]) * np.linspace(0.0, 1.0, _RHYTHMS) ** 2
        under_way = np.arange(int(np.ceil(np.max(self.staleness))) + 1)
        ahead = np.clip(self.staleness[..., None] - under_way[:, None] - under_way, 0.0, 1.0)[..., None, :, :]
        return trained, ahead, np.zeros((*trained.shape, len(under_way)))  # the latest first

    def _came(self, ages: Array, begun: Array) -> Array:
        """Samples of some batches, of some ages, that have come to verifiers, over those of one."""
        came: Array = self.finished(ages[..., None] - begun).mean(axis=-1).sum(axis=-1)
        return came

    def _queued(self, queue: Array, ages: Array, begun: Array, time: Array) -> Array:
        """What waits for few verifiers after some time more, as the time in which these score it."""
        moments = [self._came(ages + share * time[..., None], begun) for share in np.linspace(0.0, 1.0, _WAITING + 1)]
        for one, other in pairwise(moments):
            queue = np.maximum(0.0, queue + self.scoring * (other - one) - time / _WAITING)
        return queue


@remembered
def rhythms(
    late: Late,
    parts: int,
    uncapped: Real,
    length_cv: Real,
    cap: Real,
    staleness: Real,
    group_size: Real,
    samples: Real,
    places: Real = np.inf,
    scoring: Real = 0.0,
    crowded: float = 0.0,
    *ends: Real,
) -> Rhythm:
    """
    The rhythms that lengths and a cap allow.

    Args:
        late: What becomes of samples that have not finished: they go on, are waited for, or dropped once too stale.
        parts: Of a batch, each trained on as soon as it is there; all at once where samples are waited for. [1]
        uncapped: Mean response length without the cap on it. [token]
        length_cv: Coefficient of variation without it. [1]
        cap: Longest response. [token]
        staleness: Most optimizer steps by which a sample may lag; may be a fraction. [1]
        group_size: Samples of one prompt, which are trained on together. [1]
        samples: Samples of a batch. [1]
        places: Samples that environments let be under way, over those of a batch. [1]
        scoring: By which samples grow while few verifiers score those of a batch. [token]
        crowded: Share of an engine step with a whole batch that is not there with few samples. [1]
        ends: What `Endings` hold, where lengths are no lognormal ones; then those of how they leave environments.
    """
    numbers = (uncapped, length_cv, cap, staleness, group_size, samples, places, scoring)
    wide = np.broadcast_arrays(*(np.asarray(one, dtype=float)[..., None] for one in numbers))
    whole, leaving = (Endings(*some) if some else None for some in (ends[:_TABLES], ends[_TABLES:]))
    loop = _Lengths(late, whole, leaving, lengths.capped_mean(*wide[:3]), *wide)
    phases = np.linspace(0.0, 1.0, _PHASES)
    if late == "wait":
        if whole is not None:
            tokens, until_due = loop.played_outside(whole)
        else:
            tokens, until_due, parts_run = loop.played(crowded)
        parts_grown: list[Array] = []
        running, _, grown = loop.left(tokens, phases)
        kept = loop.kept(tokens, phases)
        before = np.clip(until_due[..., None] * (_PHASES - 1) - np.arange(_PHASES - 1), 0.0, 1.0)[None]
    else:
        shortest = _first(loop, 1.0, loop.uncapped * 1e-3)
        longest = _first(loop, 0.0, shortest)
        tokens = shortest * (longest / shortest) ** np.linspace(0.0, 1.0, _RHYTHMS)
        if late == "drop":
            longer = np.maximum(loop.cap / longest, 1.0) ** np.linspace(0.0, 1.0, _QUEUED + 1)[1:]
            tokens = np.concatenate([tokens, longest * longer], axis=-1)
        lacking = np.arange(parts - 1, -1, -1) / parts
        running, groups, grown = loop.left(tokens, phases)
        kept = loop.kept(tokens, phases)
        if late == "drop":
            queued = loop.kept_in_queue(tokens, groups)[..., _RHYTHMS:, None]
            kept = np.concatenate([kept[..., :_RHYTHMS, :], queued + 0.0 * phases], axis=-2)
        early = loop.early(tokens, phases, groups) - lacking.reshape(-1, *[1] * (tokens.ndim + 1)) * kept
        falls = np.maximum(early[..., :-1] - early[..., 1:], 1e-12)
        before = np.clip(early[..., :-1] / falls, 0.0, 1.0)  # share of each part of a rhythm until it is due
    dues, within = before.sum(axis=-1) / (_PHASES - 1), before[-1]
    due, left = dues[-1], np.arange(len(dues), 0, -1).reshape(-1, *[1] * tokens.ndim) / len(dues)
    most = np.argmin((1 - dues) / left, axis=0)[None]
    ahead, more = (due - np.take_along_axis(dues, most, 0))[0], (1 / np.take_along_axis(left + 0 * dues, most, 0))[0]
    started = 1 / (kept[..., 0] + (np.diff(kept) * within).sum(axis=-1))
    if late != "wait" or ends:  # of what waits outside the GPUs not all that is under way runs
        parts_run, aged = (list(_by_phase(each, within)) for each in (running, grown))
        parts_grown = [one / np.maximum(many, _NONE) for one, many in zip(aged, parts_run, strict=True)]
    run = tuple(one * started for one in parts_run)
    return Rhythm(tokens, due, run, tuple(parts_grown), started, ahead, more)


def kept_in_full_cache(
    uncapped: Real, length_cv: Real, cap: Real, group_size: Real, staleness: Real, queued: Real, *ends: Real
) -> tuple[Array, Array]:
    """
    Share of groups that are kept in a full cache where late ones are dropped, by some tokens from one sync to the next.

    In a full cache samples begin when they are admitted, as prompts need little room, and are thrown out as others
    grow. So as many are under way as the cap on staleness lets in, and those that came first go on first.

    Args:
        uncapped: Mean response length without the cap on it. [token]
        length_cv: Coefficient of variation without it. [1]
        cap: Longest response. [token]
        group_size: Samples that are dropped together. [1]
        staleness: Most optimizer steps by which a sample may lag. [1]
        queued: By which samples that have begun lag at most. [token]
        ends: What `Endings` hold, where lengths are no lognormal ones.
    """
    lengths = uncapped, length_cv, cap, group_size, staleness
    apart, reached = _reached_in_full_cache(*lengths, *ends)
    *wide, ahead, lag = (np.asarray(one, dtype=float)[..., None] for one in (*lengths, queued))
    found = _whole(wide, np.maximum(reached, (ahead + 1.0) * apart - lag), apart, ends)
    return np.broadcast_to(apart, found.shape), found


@remembered
def _reached_in_full_cache(
    uncapped: Real, length_cv: Real, cap: Real, group_size: Real, staleness: Real, *ends: Real
) -> tuple[Array, Array]:
    """Some tokens from one sync to the next, and the length that a batch's first sample has got to when too late."""
    lengths = uncapped, length_cv, cap, group_size, staleness
    *wide, staleness = np.broadcast_arrays(*(np.asarray(one, dtype=float)[..., None] for one in lengths))
    uncapped, _, cap, _ = wide
    apart = uncapped * _LEAST_APART * (cap / uncapped / _LEAST_APART) ** np.linspace(0.0, 1.0, _APARTS)
    low, high = 1e-3 * uncapped + 0.0 * apart, (staleness + 1.0) * apart
    before = np.ceil(np.max(staleness))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        unfinished = 0.0
        for age in np.arange(-before, _OLDER):
            share = np.clip(staleness + age + 1.0, 0.0, 1.0)
            unfinished = unfinished + share * (1.0 - _whole(wide, middle + age * apart, apart, ends))
        early = batch_drain.groups_lacking(unfinished, _whole(wide, middle, apart, ends), staleness) < 0
        low, high = np.where(early, middle, low), np.where(early, high, middle)
    return apart, high


def _whole(lengths: list[Array], tokens: Array, apart: Array, ends: tuple[Real, ...]) -> Real:
    """Share of a batch's groups that have ended when its first samples would have so many tokens."""
    *some, group = lengths
    each = (np.maximum(tokens - place * apart, 1e-3 * some[0]) for place in _PLACES)
    if ends:
        return sum(Endings(*ends).complete(one) for one in each) / len(_PLACES)
    return sum(batch_drain.finished_share(one, *some) ** group for one in each) / len(_PLACES)


def _by_phase(heights: Real, within: Real) -> tuple[Real, Real]:
    """Means until a batch is due, and from then on, of what is known at some phases of a rhythm."""
    before = ((heights[..., :-1] + np.diff(heights) * within / 2) * within).sum(axis=-1)
    whole = ((heights[..., :-1] + heights[..., 1:]) / 2).sum(axis=-1)
    until = within.sum(axis=-1)
    return before / np.maximum(until, _NONE), (whole - before) / np.maximum(_PHASES - 1 - until, _NONE)


def _first(loop: _Lengths, phase: float, low: Array) -> Array:
    """The shortest rhythm in which a batch can be taken at a phase, above some; twice the cap where there is none."""
    high = 2.0 * loop.cap
    for _ in range(_HALVINGS):
        middle = np.sqrt(low * high)
        early = loop.early(middle, np.full(1, phase))[..., 0] > 0
        low, high = np.where(early, middle, low), np.where(early, high, middle)
    return high


def between(points: Real, below: Real, levels: Real) -> Real:
    """Where a rising table reaches some levels, in its last axis; between its points a straight line."""
    below, points = np.broadcast_arrays(below, points)
    first = np.clip((below[..., None, :] < levels[..., None]).sum(axis=-1) - 1, 0, below.shape[-1] - 2)
    (low, high), (start, end) = (
        [np.take_along_axis(one, first + more, axis=-1) for more in (0, 1)] for one in (below, points)
    )
    return start + (end - start) * np.clip((levels - low) / np.maximum(high - low, 1e-12), 0.0, 1.0)
