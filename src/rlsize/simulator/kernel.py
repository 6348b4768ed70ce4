"""
The same loop over flat arrays, so that it can be compiled; for settings that `compiled.covers`.

The names and the order of everything are those of the other modules of this folder, which say what it means: a change
there is a change here, and `tests/simulator/test_kernel.py` compares the accounts of both to the last bit. Samples and
groups are numbers of rows. A sample stands in the queue of an instance or of the fleet, a group in one of `LISTS`; both
are rings that are linked through a row of their own at the beginning of the table. The instances' next ends and their
loads are kept in a tournament, and the samples that run on an instance in a heap of (end, number).
"""

from __future__ import annotations

from math import inf, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from rlsize.simulator.compiling import compiled, entrance, rows
from rlsize.simulator.ledger import COLUMNS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Record: TypeAlias = Any
    Table = np.recarray[Any, Any]

DRAWN, UNDER_WAY, BACKLOG, SPARE, BATCH = LISTS = range(5)
COLOCATED, SYNC, ONE_STEP_OFF, ASYNC = range(4)
AFFINE, ROUND_ROBIN, QUEUE = range(3)
IN_FLIGHT, DRAIN, ABORT = range(3)
COMPLETION, ADMISSION, FRESHEST = range(3)
GENERATING, PAUSED, IDLE = range(3)
CARRIED, DEALT, TRAINED_ON = 1, 2, 3
NOBODY = (1 << 31) - 1  # a version that is older than none
TRAINED, SWAPPED, SWAPPED_BACK, ARRIVED = range(4)
GOES_ON, STEP_ENDED, WANTS_GROUPS, STANDS_STILL = range(4)
"""Why `advance` returns."""


def _fields(kind: str, names: str) -> list[tuple[str, str]]:
    return [(name, kind) for name in names.split()]


LOOP = np.dtype(
    _fields("f8", "now since halted_since seconds_since late_time")
    + _fields("f8", "kv_seconds prefill_seconds kv_tokens")
    + _fields("f8", "whole_train_seconds batch_tokens sync_transport swap_seconds overhead most_waiting groups_ahead")
    + _fields("f8", "patience")
    + _fields("i8", "mode routing way order keeps drops instances slots leaves prompt_tokens group_size started")
    + _fields("i8", "groups parts launched every keeps_kv oldest_lag")
    + _fields("i8", "late first_of_instant rounds closed again admitted drawn_from added free to_admit carried")
    + _fields("i8", "present queued with_room turn wants_slots touched stopping halted generating paused idle")
    + _fields("i8", "version fleet_version trainer_version sync_version idles part halting under_way brings halt_way")
    + _fields("i8", "open collected replaced rejected due ready trains first steps")
    + _fields("i8", "waiting queued_tokens held_back stalest finished dropped most_lag")
    + _fields("f8", " ".join(COLUMNS))
)
ENGINE = np.dtype(
    _fields("i8", "clock planned context held sooner version_weights prefill run_prefill generated")
    + _fields("f8", "started planned_seconds slowdown busy_seconds slot_seconds")
    + _fields("i4", "batch load joined version epoch runs anew closed paused pausing ejecting touched next_touched")
    + _fields("i4", "state preemptions")
)
GROUP = np.dtype(  # with fields that nobody reads, here and below: 64 bytes come from memory at once
    _fields("i8", "tokens serial added")
    + _fields("i4", "previous next free unfinished oldest accepted dropped live next_stopping spare")
)
SAMPLE = np.dtype(
    _fields("i8", "stamped joined epoch")
    + _fields("i4", "previous next group length done version here home waits spare")
)
RUNNING = np.dtype(_fields("i8", "end") + _fields("i4", "number sample"))
NODE = np.dtype(_fields("f8", "end") + _fields("i8", "load soonest least"))


class State(NamedTuple):
    """
    All that a run is made of.

    Args:
        loop: What the setting says, counters, and the accounts of the step under way.
        engines: Instances, and idle ones up to a power of two.
        groups: One for each of `LISTS`, then groups.
        samples: The queues of the instances and of the fleet, then as many samples for each group.
        running: As many for each instance as it has slots.
        nodes: Of the tournament; the first is not used, the second is its root.
        lags: Samples of this step by staleness.
        batch_seconds: What a step with so many samples takes, without KV and prompts. [s]
        lengths: Of the groups that were drawn last. [group, member]
    """

    loop: Record
    engines: Table
    groups: Table
    samples: Table
    running: Table
    nodes: Table
    lags: NDArray[np.int64]
    batch_seconds: NDArray[np.float64]
    lengths: NDArray[np.int64]


# Rings, tournaments and heaps


@compiled
def _link(table: Table, one: int, at: int) -> None:
    """Have one stand right before another."""
    before = table[at].previous
    table[before].next = table[at].previous = one
    table[one].previous, table[one].next = before, at


@compiled
def _unlink(table: Table, one: int) -> None:
    before, after = table[one].previous, table[one].next
    table[before].next, table[after].previous = after, before


@compiled
def _end_at(s: State, e: int, time: float) -> None:
    """The run of an instance ends then: see which instance ends first, the lowest of equals."""
    nodes, at = s.nodes, s.loop.leaves + e
    nodes[at].end = time
    at //= 2
    while at:
        node, winner = nodes[at], nodes[2 * at]
        if nodes[2 * at + 1].end < winner.end:
            winner = nodes[2 * at + 1]
        if node.end == winner.end and node.soonest == winner.soonest:
            return
        node.end, node.soonest = winner.end, winner.soonest
        at //= 2


@compiled
def _alone(s: State, e: int) -> bool:
    """Whether nothing else happens at the time at which the run of an instance ends."""
    nodes, at = s.nodes, s.loop.leaves + e
    first = s.loop.late_time
    while at > 1:
        first = min(first, nodes[at ^ 1].end)
        at //= 2
    return bool(first > s.loop.now)


@compiled
def _load(s: State, e: int, load: int) -> None:
    """So many samples run or are queued on an instance: see which has fewest, the lowest of equals."""
    loop, nodes, at = s.loop, s.nodes, s.loop.leaves + e
    before = s.engines[e].load
    loop.present += load - before
    loop.with_room += (load < loop.slots) - (before < loop.slots)
    s.engines[e].load = nodes[at].load = load
    at //= 2
    while at:
        node, winner = nodes[at], nodes[2 * at]
        if nodes[2 * at + 1].load < winner.load:
            winner = nodes[2 * at + 1]
        if node.load == winner.load and node.least == winner.least:
            return
        node.load, node.least = winner.load, winner.least
        at //= 2


@compiled
def _move(running: Table, to: int, end: int, number: int, sample: int) -> None:
    entry = running[to]
    entry.end, entry.number, entry.sample = end, number, sample


@compiled
def _up(running: Table, base: int, at: int) -> None:
    """Let the entry there rise in its heap."""
    end, number, sample = running[base + at].end, running[base + at].number, running[base + at].sample
    while at:
        above = running[base + (at - 1) // 2]
        if above.end < end or (above.end == end and above.number < number):
            break
        _move(running, base + at, above.end, above.number, above.sample)
        at = (at - 1) // 2
    _move(running, base + at, end, number, sample)


@compiled
def _pop(s: State, e: int) -> int:
    """The sample of an instance that ends first."""
    running, base, at = s.running, e * s.loop.slots, 0
    first: int = running[base].sample
    last = s.engines[e].batch - 1
    s.engines[e].batch = last
    end, number, sample = running[base + last].end, running[base + last].number, running[base + last].sample
    while 2 * at + 1 < last:
        child = 2 * at + 1
        below, other = running[base + child], running[base + child + 1]
        if child + 1 < last and (other.end < below.end or (other.end == below.end and other.number < below.number)):
            child, below = child + 1, other
        if end < below.end or (end == below.end and number < below.number):
            break
        _move(running, base + at, below.end, below.number, below.sample)
        at = child
    _move(running, base + at, end, number, sample)
    return first


@compiled
def _take_out(s: State, e: int, at: int) -> int:
    """The sample at a place of an instance's heap."""
    base = e * s.loop.slots
    s.running[base + at].end = -1
    _up(s.running, base, at)
    return _pop(s, e)


# An instance (batch.py, engine.py)


@compiled
def _members(s: State, group: int) -> range:
    """The samples of a group."""
    size = s.loop.started
    first = s.loop.instances + 1 + group * size
    return range(first, first + size)


@compiled
def _holds(s: State, e: int, group: int) -> bool:
    """Whether an instance has KV of a group."""
    found = False
    for sample in _members(s, group):
        found = found or s.samples[sample].here == e
    return found


@compiled
def _has_prefix(s: State, e: int, group: int) -> bool:
    """Whether a sample of a group has joined an instance since its prefix cache was emptied."""
    epoch, found = s.engines[e].epoch, False
    for sample in _members(s, group):
        found = found or (s.samples[sample].home == e and s.samples[sample].epoch == epoch)
    return found


@compiled
def _leave(s: State, e: int, sample: int) -> None:
    """A sample leaves a batch, and gives back its KV, and its prompt's with the last of its group."""
    engine, one, prompt = s.engines[e], s.samples[sample], s.loop.prompt_tokens
    one.stamped += engine.clock * engine.version - engine.version_weights
    engine.sooner -= one.done - one.joined
    one.done += engine.clock - one.joined
    engine.context -= prompt + one.done
    one.here = -1
    engine.held -= one.done
    if prompt and not _holds(s, e, one.group):
        engine.held -= prompt


@compiled
def _join(s: State, e: int) -> None:
    loop, engine, samples = s.loop, s.engines[e], s.samples
    prompt = loop.prompt_tokens
    while engine.batch < loop.slots and samples[e].next != e and not engine.closed:
        sample = samples[e].next
        one = samples[sample]
        new_prompt = prompt if prompt and not _holds(s, e, one.group) else 0
        if engine.batch and engine.held + one.done + new_prompt + engine.batch + 1 > loop.kv_tokens:
            return
        _unlink(samples, sample)
        engine.held += one.done + new_prompt
        engine.prefill += one.done
        if prompt and not _has_prefix(s, e, one.group):
            engine.prefill += prompt
        one.home, one.epoch, one.here, one.joined = e, engine.epoch, e, engine.clock
        if one.version < 0:
            one.version = engine.version
        one.stamped -= engine.clock * engine.version - engine.version_weights
        engine.context += prompt + one.done
        engine.sooner += one.done - one.joined
        loop.held_back -= one.done
        engine.joined += 1
        base = e * loop.slots
        entry = s.running[base + engine.batch]
        entry.end, entry.number, entry.sample = engine.clock + one.length - one.done, engine.joined, sample
        _up(s.running, base, engine.batch)
        engine.batch += 1


@compiled
def _make_room(s: State, e: int) -> None:
    """Samples that joined last go back to the head of the queue until the tokens of the coming step fit."""
    engine, running, base = s.engines[e], s.running, e * s.loop.slots
    while engine.batch > 1 and engine.held + engine.batch > s.loop.kv_tokens:
        last = 0
        for entry in range(engine.batch):
            if running[base + entry].number > running[base + last].number:
                last = entry
        sample = _take_out(s, e, last)
        _leave(s, e, sample)
        _link(s.samples, sample, s.samples[e].next)
        s.loop.held_back += s.samples[sample].done
        engine.preemptions += 1


@compiled
def _begin_run(s: State, e: int) -> bool:
    """Begin a run of steps, if there is anything to run; whether there is."""
    loop, engine, base = s.loop, s.engines[e], e * s.loop.slots
    limited = loop.kv_tokens < inf
    if limited and engine.held + engine.batch > loop.kv_tokens:
        _make_room(s, e)
    if engine.anew:
        engine.anew = 0
        engine.prefill += engine.held
        for entry in range(base, base + engine.batch):
            s.samples[s.running[entry].sample].epoch = engine.epoch
    _join(s, e)
    if not engine.batch:
        return False
    steps = s.running[base].end - engine.clock
    if limited:
        fitting = np.int64((loop.kv_tokens - engine.held) // engine.batch)
        if fitting < steps:
            steps = fitting if fitting > 0 else 1
    engine.started, engine.runs, engine.planned = loop.now, 1, steps
    engine.run_prefill, engine.prefill = engine.prefill, 0
    engine.planned_seconds = _time_of(s, e, steps)
    _end_at(s, e, loop.now + engine.planned_seconds)
    return True


@compiled
def _time_of(s: State, e: int, steps: int) -> float:
    """Seconds of the first steps of a run."""
    loop, engine = s.loop, s.engines[e]
    batch, kv_seconds = engine.batch, loop.kv_seconds
    each = s.batch_seconds[batch] + kv_seconds * engine.context
    growth = kv_seconds * batch * (steps * (steps - 1) / 2)
    return float((steps * each + growth + loop.prefill_seconds * engine.run_prefill) * engine.slowdown)


@compiled
def _steps_by(s: State, e: int) -> int:
    """Steps of the run under way that have ended by now."""
    loop, engine = s.loop, s.engines[e]
    if not engine.runs:
        return 0
    now, half = loop.now, loop.kv_seconds * engine.batch / 2
    passed = (now - engine.started) / engine.slowdown - loop.prefill_seconds * engine.run_prefill
    each = s.batch_seconds[engine.batch] + loop.kv_seconds * engine.context - half
    share = 0.0
    if passed > 0.0:
        share = (sqrt(each * each + 4.0 * half * passed) - each) / (2.0 * half) if half > 0.0 else passed / each
    guess: int = engine.planned
    if share < guess:
        whole: Any = np.int64(share)
        guess = whole
    while guess < engine.planned and engine.started + _time_of(s, e, guess + 1) <= now:
        guess += 1
    while guess > 0 and engine.started + _time_of(s, e, guess) > now:
        guess -= 1
    return guess


@compiled
def _advance_run(s: State, e: int, steps: int, seconds: float) -> None:
    """The first steps of a run have ended, and the run with them."""
    engine = s.engines[e]
    engine.busy_seconds += seconds
    engine.slot_seconds += seconds * engine.batch
    tokens = steps * engine.batch
    engine.clock += steps
    engine.context += tokens
    engine.held += tokens
    engine.generated += tokens
    engine.runs = 0


@compiled
def _interrupt(s: State, e: int) -> None:
    """End the run under way with the step under way; at once if a step ends just now."""
    loop, engine = s.loop, s.engines[e]
    if not engine.runs:
        return
    steps = _steps_by(s, e)
    seconds = _time_of(s, e, steps) if steps else 0.0
    if steps and engine.started + seconds == loop.now:
        _end_at(s, e, inf)
        _advance_run(s, e, steps, seconds)
        _stepped(s, e)
    elif steps + 1 < engine.planned:
        engine.planned, engine.planned_seconds = steps + 1, _time_of(s, e, steps + 1)
        _end_at(s, e, engine.started + engine.planned_seconds)


@compiled
def _boundary(s: State, e: int) -> bool:
    """A run has ended; whether nobody has to react, and the next one has begun."""
    engine, base = s.engines[e], e * s.loop.slots
    quiet = s.loop.first_of_instant and _alone(s, e)
    _advance_run(s, e, engine.planned, engine.planned_seconds)
    while engine.batch and s.running[base].end == engine.clock:
        sample = _pop(s, e)
        _leave(s, e, sample)
        if not _ended(s, e, sample):
            quiet = False
    if quiet and not engine.pausing and not engine.ejecting and _begin_run(s, e):
        return True
    _end_at(s, e, inf)
    _stepped(s, e)
    return False


# The fleet (fleet.py)


@compiled
def _touch(s: State, e: int) -> None:
    """Have an instance begin a run when this instant ends."""
    loop, engine = s.loop, s.engines[e]
    if not engine.touched:
        engine.touched = 1
        engine.next_touched, loop.touched = loop.touched, e


@compiled
def _begin(s: State) -> None:
    """Have every instance that can begin a run begin it."""
    loop = s.loop
    while loop.touched >= 0:
        e = loop.touched
        engine = s.engines[e]
        loop.touched = engine.next_touched
        engine.touched = 0
        if engine.runs:
            continue
        state = PAUSED if engine.paused else GENERATING if _begin_run(s, e) else IDLE
        if state != engine.state:
            _pass(s)
            loop.generating += (state == GENERATING) - (engine.state == GENERATING)
            loop.paused += (state == PAUSED) - (engine.state == PAUSED)
            loop.idle += (state == IDLE) - (engine.state == IDLE)
            engine.state = state


@compiled
def _pass(s: State) -> None:
    """Let the instances' states have lasted until now."""
    loop = s.loop
    elapsed = loop.now - loop.seconds_since
    if elapsed:
        loop.generating_seconds += loop.generating * elapsed
        loop.paused_seconds += loop.paused * elapsed
        loop.idle_seconds += loop.idle * elapsed
        if loop.generating:
            loop.tail_seconds += loop.idle * elapsed
        loop.seconds_since = loop.now


@compiled
def _admit(s: State) -> bool:
    """Admit the next group, and deal its samples; not where none is drawn."""
    loop, groups = s.loop, s.groups
    group = groups[DRAWN].next
    if group == DRAWN:
        return False
    _unlink(groups, group)
    for member, number in enumerate(_members(s, group)):
        sample = s.samples[number]
        sample.group, sample.length = group, s.lengths[loop.admitted - loop.drawn_from, member]
        sample.done = sample.stamped = 0
        sample.version = sample.here = sample.home = -1
        sample.waits = DEALT
    loop.admitted += 1
    _link(groups, group, UNDER_WAY)
    _deal(s, group)
    return True


@compiled
def _deal(s: State, group: int) -> None:
    """Deal the samples of a group whose turn it is."""
    loop, samples = s.loop, s.samples
    fleet, e, count = loop.instances, s.nodes[1].least, 0
    for number in _members(s, group):
        if samples[number].waits != DEALT:
            continue
        samples[number].waits = 0
        if loop.routing == AFFINE:
            _link(samples, number, e)
            count += 1
        elif loop.routing == QUEUE:
            _link(samples, number, fleet)
            loop.queued += 1
        else:
            e = loop.turn % fleet
            loop.turn += 1
            _link(samples, number, e)
            _handed(s, e, s.engines[e].load + 1)
    if count:
        _handed(s, e, s.engines[e].load + count)
    elif loop.routing == QUEUE:
        _deal_queue(s)


@compiled
def _handed(s: State, e: int, load: int) -> None:
    """Samples have been queued on an instance, which has so many now."""
    _load(s, e, load)
    if s.engines[e].batch < s.loop.slots:
        _interrupt(s, e)
    _touch(s, e)


@compiled
def _deal_queue(s: State) -> None:
    """Deal what waits in the fleet's queue, as far as there are free slots."""
    loop, samples = s.loop, s.samples
    fleet = loop.instances
    while samples[fleet].next != fleet and loop.with_room:
        sample, e = samples[fleet].next, s.nodes[1].least
        _unlink(samples, sample)
        loop.queued -= 1
        _link(samples, sample, e)
        _handed(s, e, s.engines[e].load + 1)


@compiled
def _deal_carried(s: State) -> None:
    """Deal what was left over from the last batch."""
    if not s.loop.carried:
        return
    s.loop.carried = 0
    group = s.groups[UNDER_WAY].next
    while group != UNDER_WAY:
        for sample in _members(s, group):
            if s.samples[sample].waits == CARRIED:
                s.samples[sample].waits = DEALT
        group = s.groups[group].next
    group = s.groups[UNDER_WAY].next
    while group != UNDER_WAY:
        _deal(s, group)
        group = s.groups[group].next


@compiled
def _room(s: State) -> bool:
    """Whether there is a free slot for a new group."""
    loop = s.loop
    if loop.routing == AFFINE:
        return bool(loop.with_room > 0)
    return bool(loop.slots * loop.instances - loop.present - loop.queued > 0)


@compiled
def _stop(s: State) -> None:
    """Stop all samples under way, which go on with the next batch, or are dropped with their groups."""
    loop, samples = s.loop, s.samples
    if not loop.keeps:
        _drop_under_way(s)
    for e in range(loop.instances + 1):
        count = 0
        while samples[e].next != e:
            sample = samples[e].next
            _unlink(samples, sample)
            loop.held_back -= samples[sample].done
            _put_away(s, sample)
            count += 1
        if e < loop.instances:
            _load(s, e, s.engines[e].load - count)
    loop.queued = 0
    for e in range(loop.instances):
        if s.engines[e].runs:
            s.engines[e].ejecting = 1
            _interrupt(s, e)
        else:
            _eject(s, e)


@compiled
def _drop_under_way(s: State) -> None:
    """Drop the groups under way; the row of one whose samples run is free when the last of them is off its instance."""
    groups, samples = s.groups, s.samples
    s.loop.finished = 0
    while groups[UNDER_WAY].next != UNDER_WAY:
        group = groups[UNDER_WAY].next
        for sample in _members(s, group):
            if samples[sample].done == samples[sample].length:
                s.loop.dropped += samples[sample].length
            groups[group].live += samples[sample].here >= 0
        _unlink(groups, group)
        _release(s, group)


@compiled
def _put_away(s: State, sample: int) -> None:
    loop, one = s.loop, s.samples[sample]
    if loop.keeps:
        one.waits, loop.carried = CARRIED, 1
        loop.held_back += one.done
    else:
        loop.dropped += one.done


@compiled
def _eject(s: State, e: int) -> None:
    """An instance between two runs gives up its batch, and all KV."""
    engine, base = s.engines[e], e * s.loop.slots
    engine.ejecting = 0
    for entry in range(base, base + engine.batch):
        sample = s.running[entry].sample
        _leave(s, e, sample)
        _put_away(s, sample)
        if s.groups[s.samples[sample].group].dropped:
            _let_go(s, sample)
    _load(s, e, engine.load - engine.batch)
    engine.batch = engine.prefill = engine.anew = 0
    engine.epoch += 1


@compiled
def _let_go(s: State, sample: int) -> None:
    """A sample that nobody needs has stopped."""
    group = s.samples[sample].group
    s.groups[group].live -= 1
    if s.groups[group].dropped:
        _release(s, group)


@compiled
def _release(s: State, group: int) -> None:
    """
    A group is trained, or dropped: its row is free when all of its samples have stopped.

    The column `free` holds the numbers of those that are.
    """
    s.groups[group].dropped = 1
    if not s.groups[group].live:
        s.groups[s.loop.free].free = group
        s.loop.free += 1


@compiled
def _drop(s: State, group: int) -> None:
    """Drop a group that is complete."""
    s.loop.dropped += s.groups[group].tokens
    _release(s, group)


@compiled
def _halt(s: State) -> None:
    """Have all instances pause: when their step ends, or when they have drained."""
    loop = s.loop
    loop.halted = 0
    for e in range(loop.instances):
        engine = s.engines[e]
        engine.pausing = 1
        if loop.halt_way == DRAIN:
            engine.closed = 1
        else:
            _interrupt(s, e)
        if not engine.runs and not engine.paused:
            _pause_if_due(s, e)


@compiled
def _pause_if_due(s: State, e: int) -> None:
    loop, engine, base = s.loop, s.engines[e], e * s.loop.slots
    if loop.halt_way == DRAIN and engine.batch:
        return
    engine.pausing, engine.paused = 0, 1
    if loop.halt_way == ABORT:
        for entry in range(engine.batch):  # in the order in which they joined
            s.running[base + entry].end = 0
            _up(s.running, base, entry)
        head = s.samples[e].next
        while engine.batch:
            sample = _pop(s, e)
            _leave(s, e, sample)
            one = s.samples[sample]
            loop.dropped += one.done
            one.done, one.stamped, one.version = 0, 0, -1
            _link(s.samples, sample, head)
        engine.prefill = engine.anew = 0
    _touch(s, e)


@compiled
def _go_on(s: State) -> None:
    """Go on with new weights."""
    loop = s.loop
    loop.fleet_version = version = loop.sync_version
    for e in range(loop.instances):
        engine = s.engines[e]
        engine.version_weights += (version - engine.version) * engine.clock
        engine.version = version
        engine.paused = engine.pausing = engine.closed = 0
        if loop.brings and not loop.keeps_kv:
            engine.anew = engine.held > 0
            engine.epoch += 1
        _touch(s, e)


@compiled
def _ended(s: State, e: int, sample: int) -> bool:
    """A sample has all its tokens; whether nobody has to react: its group goes on, and no one waits for its slot."""
    loop, one = s.loop, s.samples[sample]
    group = one.group
    _load(s, e, s.engines[e].load - 1)
    if s.groups[group].dropped or not s.groups[group].unfinished:
        loop.dropped += one.done
        _let_go(s, sample)
        return False
    one.waits = TRAINED_ON
    loop.finished += one.length
    s.groups[group].oldest = min(s.groups[group].oldest, one.version)
    s.groups[group].unfinished -= 1
    if s.groups[group].unfinished:
        return not (loop.wants_slots and (loop.routing != AFFINE or loop.with_room > 0))
    _unlink(s.groups, group)
    if loop.started > loop.group_size:
        _leave_over(s, group)
    loop.finished -= s.groups[group].tokens
    _completed(s, group)
    return False


@compiled
def _leave_over(s: State, group: int) -> None:
    """A group is complete with the samples that have ended: the others are to stop."""
    loop, one = s.loop, s.groups[group]
    one.next_stopping, loop.stopping = loop.stopping, group
    one.live = loop.started - loop.group_size
    for number in _members(s, group):
        if s.samples[number].waits != TRAINED_ON:
            one.tokens -= s.samples[number].length


@compiled
def _stop_redundant(s: State) -> None:
    """Stop the samples of complete groups that were not among the first: when their step ends if they run."""
    loop = s.loop
    while loop.stopping >= 0:
        group = loop.stopping
        loop.stopping = s.groups[group].next_stopping
        for sample in _members(s, group):
            if s.samples[sample].done == s.samples[sample].length:  # among the first, or it has ended meanwhile
                continue
            if s.samples[sample].here >= 0:
                _cut(s, s.samples[sample].here, sample)
            else:
                _take_from_queue(s, sample)


@compiled
def _cut(s: State, e: int, sample: int) -> None:
    """Have a sample of the batch leave it when the step under way ends."""
    engine, base, at = s.engines[e], e * s.loop.slots, 0
    _interrupt(s, e)
    while s.running[base + at].sample != sample:
        at += 1
    if engine.runs:
        s.running[base + at].end = engine.clock + engine.planned
        _up(s.running, base, at)
        return
    _take_out(s, e, at)
    _leave(s, e, sample)
    _load(s, e, engine.load - 1)
    s.loop.dropped += s.samples[sample].done
    _let_go(s, sample)
    if engine.pausing and not engine.paused:
        _pause_if_due(s, e)
    _touch(s, e)


@compiled
def _take_from_queue(s: State, sample: int) -> None:
    """A sample that is queued, or set aside, is so no more."""
    loop, samples = s.loop, s.samples
    if samples[sample].waits != CARRIED:
        queue = samples[sample].next
        while queue > loop.instances:
            queue = samples[queue].next
        _unlink(samples, sample)
        if queue < loop.instances:
            _load(s, queue, s.engines[queue].load - 1)
        else:
            loop.queued -= 1
    loop.held_back -= samples[sample].done
    loop.dropped += samples[sample].done
    _let_go(s, sample)


@compiled
def _stepped(s: State, e: int) -> None:
    if s.engines[e].ejecting:
        _eject(s, e)
    if s.engines[e].pausing:
        _pause_if_due(s, e)
    _touch(s, e)


# The backlog (backlog.py)


@compiled
def _add(s: State, group: int) -> None:
    """A group is accepted."""
    loop, groups = s.loop, s.groups
    one, at = groups[group], BACKLOG
    if loop.order == ADMISSION:
        while groups[at].previous != BACKLOG and groups[groups[at].previous].serial > one.serial:
            at = groups[at].previous
    _link(groups, group, at)
    loop.added += 1
    one.added = loop.added
    loop.waiting += 1
    loop.queued_tokens += one.tokens
    loop.stalest = min(loop.stalest, one.oldest)


@compiled
def _remove(s: State, group: int) -> None:
    _unlink(s.groups, group)
    s.loop.waiting -= 1
    s.loop.queued_tokens -= s.groups[group].tokens


@compiled
def _pick(s: State, count: int) -> None:
    """Put the next groups of the backlog into the batch that the trainer takes."""
    loop, groups = s.loop, s.groups
    for _ in range(count):
        group = groups[BACKLOG].previous if loop.order == FRESHEST else groups[BACKLOG].next
        _remove(s, group)
        _link(groups, group, BATCH)


@compiled
def _is_ready(s: State, count: int) -> bool:
    """Whether so many groups may be trained; under `admission` none before one with a lower number under way."""
    loop, groups = s.loop, s.groups
    first = groups[UNDER_WAY].next
    if loop.waiting < count:
        return False
    if loop.order != ADMISSION or not loop.open or first == UNDER_WAY:
        return True
    last = BACKLOG
    for _ in range(count):
        last = groups[last].next
    return bool(count == 0 or groups[last].serial < groups[first].serial)


@compiled
def _oldest(s: State) -> int:
    """Version of the stalest sample that waits to be trained."""
    oldest = NOBODY
    for which in (BACKLOG, SPARE):
        group = s.groups[which].next
        while group != which:
            oldest = min(oldest, s.groups[group].oldest)
            group = s.groups[group].next
    return oldest


@compiled
def _drop_older(s: State, version: int) -> None:
    """Drop all groups that wait and whose stalest sample is older than a version."""
    loop, groups = s.loop, s.groups
    if loop.stalest >= version:
        return
    group = groups[BACKLOG].next
    while group != BACKLOG:
        after = groups[group].next
        if groups[group].oldest < version:
            _remove(s, group)
            _drop(s, group)
            loop.rejected += 1
        group = after
    loop.stalest = _oldest(s)


# Trainer and weight sync (trainer.py, weight_sync.py)


@compiled
def _late(s: State, what: int, seconds: float) -> None:
    """This happens after so long; there is one such thing at a time."""
    s.loop.late, s.loop.late_time = what, s.loop.now + seconds


@compiled
def _wait(s: State) -> None:
    s.loop.idles, s.loop.since = 1, s.loop.now


@compiled
def _stop_waiting(s: State) -> None:
    s.loop.waiting_seconds += s.loop.now - s.loop.since
    s.loop.idles = 0


@compiled
def _part(s: State) -> int:
    """Groups that the trainer's next micro-batch needs."""
    loop = s.loop
    count: int = loop.groups // loop.parts + (loop.part < loop.groups % loop.parts)
    return count


@compiled
def _take(s: State, count: int) -> None:
    """Train the next groups of the batch."""
    loop, groups, tokens = s.loop, s.groups, 0
    _stop_waiting(s)
    while count and groups[BATCH].next != BATCH:
        count -= 1
        group = groups[BATCH].next
        _unlink(groups, group)
        stamped = 0
        for number in _members(s, group):
            if s.samples[number].waits != TRAINED_ON:
                continue
            lag = loop.trainer_version - s.samples[number].version
            s.lags[lag] += 1
            loop.most_lag = max(loop.most_lag, lag)
            stamped += s.samples[number].stamped
        loop.trained_tokens += groups[group].tokens
        loop.trained_samples += loop.group_size
        loop.token_staleness_sum += loop.trainer_version * groups[group].tokens - stamped
        tokens += groups[group].tokens
        _release(s, group)
    seconds = loop.whole_train_seconds * (tokens / loop.batch_tokens)
    loop.train_seconds += seconds
    _late(s, TRAINED, seconds)


@compiled
def _trained(s: State) -> None:
    loop = s.loop
    loop.part += 1
    if loop.part < loop.parts:
        _wait(s)
        return
    loop.part = 0
    loop.trainer_version += 1
    if loop.mode == COLOCATED:
        s.loop.sync_seconds += loop.swap_seconds
        loop.overhead_seconds += loop.overhead
        _late(s, SWAPPED_BACK, loop.swap_seconds + loop.overhead)
    elif loop.mode == ONE_STEP_OFF:
        loop.trains = 0
        _wait(s)
    else:
        _sync_or_end(s)


@compiled
def _sync_or_end(s: State) -> None:
    """Let the overhead pass, and begin a sync if it is time for one; without both the optimizer step is over."""
    loop = s.loop
    brings = loop.trainer_version % loop.every == 0
    if brings or loop.overhead > 0.0:
        loop.brings, loop.halt_way = brings, loop.way if brings else IN_FLIGHT
        loop.sync_version, loop.halted_since = loop.trainer_version if brings else loop.fleet_version, loop.now
        loop.halting = loop.under_way = 1
        _halt(s)
        if loop.mode != SYNC:
            _proceed(s)
    else:
        _end_step(s)


@compiled
def _proceed(s: State) -> None:
    """Let the weights travel, if every instance has paused."""
    loop = s.loop
    if loop.halting:
        while loop.halted < loop.instances and s.engines[loop.halted].paused:
            loop.halted += 1
        if loop.halted == loop.instances:
            loop.halting = 0
            _late(s, ARRIVED, (loop.sync_transport if loop.brings else 0.0) + loop.overhead)


@compiled
def _happen_late(s: State) -> None:
    loop = s.loop
    loop.late_time = inf
    if loop.late == TRAINED:
        _trained(s)
    elif loop.late == SWAPPED:
        loop.ready = 1
        _wait(s)
    elif loop.late == SWAPPED_BACK:
        loop.ready = 0
        loop.sync_version, loop.brings = loop.trainer_version, 1
        _go_on(s)
        _end_step(s)
    else:
        loop.under_way = 0
        loop.overhead_seconds += loop.overhead
        if loop.now - loop.halted_since > loop.overhead:
            s.loop.sync_seconds += loop.now - loop.halted_since - loop.overhead
        _go_on(s)
        _end_step(s)


@compiled
def _end_step(s: State) -> None:
    """The optimizer step is over: its accounts are closed."""
    loop = s.loop
    loop.steps += 1
    loop.closed = loop.due = 1
    _pass(s)
    loop.end_seconds, loop.dropped_tokens = loop.now, loop.dropped
    loop.under_way_tokens = loop.finished + loop.held_back
    loop.backlog_samples, loop.backlog_tokens = loop.waiting * loop.group_size, loop.queued_tokens
    loop.generated_tokens = loop.stepping_seconds = loop.slot_seconds = loop.preemptions = 0.0
    for e in range(loop.instances):
        engine, steps = s.engines[e], _steps_by(s, e)
        seconds = _time_of(s, e, steps) if steps else 0.0
        loop.generated_tokens += engine.generated + steps * engine.batch
        loop.stepping_seconds += engine.busy_seconds + seconds
        loop.slot_seconds += engine.slot_seconds + seconds * engine.batch
        loop.preemptions += engine.preemptions
        loop.under_way_tokens += engine.sooner + engine.batch * (engine.clock + steps)
    group = s.groups[SPARE].next
    while group != SPARE:
        loop.backlog_samples += loop.group_size
        loop.backlog_tokens += s.groups[group].tokens
        group = s.groups[group].next
    oldest = _oldest(s)
    loop.oldest_age_steps = loop.trainer_version - oldest if oldest < loop.trainer_version else 0
    _wait(s)


# The modes (conductor.py, modes.py)


@compiled
def _completed(s: State, group: int) -> None:
    """A group is complete: it is accepted, or rejected; accepted ones beyond a batch are spare, or dropped."""
    loop = s.loop
    if not s.groups[group].accepted:
        _drop(s, group)
        loop.rejected += 1
    elif loop.mode == ASYNC:
        _add(s, group)
    elif loop.open:
        _add(s, group)
        loop.collected += 1
    else:
        _too_many(s, group)


@compiled
def _too_many(s: State, group: int) -> None:
    if s.loop.keeps:
        _link(s.groups, group, SPARE)
    else:
        _drop(s, group)


@compiled
def _open_batch(s: State) -> None:
    """Begin to generate a batch; its groups are admitted by `_fill`."""
    loop, groups = s.loop, s.groups
    loop.open, loop.replaced, loop.collected, loop.due = 1, loop.rejected, 0, 0
    while groups[SPARE].next != SPARE:
        group = groups[SPARE].next
        _unlink(groups, group)
        _add(s, group)
        loop.collected += 1
    loop.to_admit = loop.launched - loop.collected
    group = groups[UNDER_WAY].next
    while group != UNDER_WAY:
        loop.to_admit -= 1
        group = groups[group].next
    _deal_carried(s)


@compiled
def _fill(s: State) -> bool:
    """Admit what the batch lacks, and close it if it is complete; not where a group is lacking."""
    loop = s.loop
    while loop.to_admit > 0:
        if not _admit(s):
            return False
        loop.to_admit -= 1
    if not loop.open:
        return True
    if loop.collected >= loop.groups:
        _close(s)
    elif not (loop.under_way and loop.halt_way == DRAIN):
        _deal_carried(s)
        _deal_queue(s)
        while loop.replaced < loop.rejected:
            if not _admit(s):
                return False
            loop.replaced += 1
    return True


@compiled
def _close(s: State) -> None:
    """The batch is complete: the groups that were accepted beyond it go, and what is under way stops."""
    loop, groups = s.loop, s.groups
    loop.open = 0
    first = loop.added - (loop.collected - loop.groups)
    for added in range(first + 1, loop.added + 1):
        group = groups[BACKLOG].next
        while groups[group].added != added:
            group = groups[group].next
        _remove(s, group)
        _too_many(s, group)
    if groups[UNDER_WAY].next != UNDER_WAY:
        _stop(s)


@compiled
def _react_sync(s: State) -> bool:
    loop = s.loop
    _proceed(s)
    if loop.due:
        _open_batch(s)
    if not _fill(s):
        return False
    if loop.idles:
        count = _part(s)
        if not _is_ready(s, count) or (loop.mode == COLOCATED and loop.open):
            pass
        elif loop.mode == COLOCATED and not loop.ready:
            s.loop.sync_seconds += loop.swap_seconds
            _stop_waiting(s)
            _late(s, SWAPPED, loop.swap_seconds)
        else:
            _pick(s, count)
            _take(s, count)
    return True


@compiled
def _react_one_step_off(s: State) -> bool:
    loop, groups = s.loop, s.groups
    _proceed(s)
    if loop.due:
        loop.trains = loop.waiting > 0
        _pick(s, loop.waiting)
        _open_batch(s)
    if not _fill(s):
        return False
    if loop.idles and groups[BATCH].next != BATCH:
        _take(s, _part(s))
    if not loop.open and loop.idles and not loop.trains and not loop.due:
        if loop.first:
            loop.first, loop.due, loop.again = 0, 1, 1
        else:
            _stop_waiting(s)
            _sync_or_end(s)
    return True


@compiled
def _may_admit(s: State) -> bool:
    loop = s.loop
    allowed = (loop.fleet_version + 1) * loop.groups + loop.groups_ahead + loop.rejected
    return bool(loop.admitted < allowed and loop.waiting < loop.most_waiting)


@compiled
def _react_async(s: State) -> bool:
    loop = s.loop
    if loop.under_way:
        _proceed(s)
        if loop.halt_way == DRAIN:
            return True
    if loop.idles:
        if loop.drops and loop.waiting:
            _drop_older(s, loop.trainer_version - loop.oldest_lag)
        count = _part(s)
        if _is_ready(s, count):
            _pick(s, count)
            _take(s, count)
    while _room(s) and _may_admit(s):
        if not _admit(s):
            return False
    _deal_queue(s)
    return True


@compiled
def _decide(s: State) -> bool:
    """React to what has happened at this time; not to the end where a group is lacking."""
    loop = s.loop
    _stop_redundant(s)
    if loop.mode == ASYNC:
        whole = _react_async(s)
    elif loop.mode == ONE_STEP_OFF:
        whole = _react_one_step_off(s)
    else:
        whole = _react_sync(s)
    fleet = loop.instances
    loop.wants_slots = s.samples[fleet].next != fleet or (loop.mode == ASYNC and _may_admit(s))
    return whole


# The event loop (event_loop.py)


@compiled
def _soonest(s: State) -> float:
    soonest: float = min(s.loop.late_time, s.nodes[1].end)
    return soonest


@compiled
def _happen(s: State) -> bool:
    """Let the next thing happen; whether nobody has to react."""
    loop, e = s.loop, s.nodes[1].soonest
    if s.nodes[1].end > loop.late_time:
        _happen_late(s)
        return False
    return _boundary(s, e)


@compiled
def _leap(s: State) -> bool:
    """Let time pass until somebody has to react to something; whether anything is left to happen."""
    loop = s.loop
    _begin(s)
    loop.first_of_instant = quiet = True
    while quiet and _soonest(s) < inf:
        loop.now = _soonest(s)
        quiet = _happen(s)
    loop.first_of_instant = 0
    return not quiet


@entrance
def advance(
    loops: Table, engines: Table, groups: Table, samples: Table, running: Table, nodes: Table, *arrays: NDArray[Any]
) -> int:
    """
    Run on until a step has ended.

    Args:
        loops: Of which the first is the run's: its accounts are those of the step until this is called again. A table,
            as numba takes those over from Python quicker than a record.
        engines: Instances.
        groups: Of samples, and lists of them.
        samples: They, and queues of them.
        running: Those that run, heap by heap.
        nodes: Of the tournament.
        *arrays: The rest of a `State`.

    Returns:
        Why it has returned.
    """
    s = State(loops[0], rows(engines), rows(groups), rows(samples), rows(running), rows(nodes), *arrays)
    loop = s.loop
    if loop.closed:  # what counts from the beginning stays
        loop.train_seconds = loop.waiting_seconds = loop.sync_seconds = loop.overhead_seconds = 0.0
        loop.trained_tokens = loop.trained_samples = loop.token_staleness_sum = 0.0
        s.lags[: loop.most_lag + 1] = 0
        loop.closed = loop.rounds = loop.most_lag = 0
    while not loop.closed:
        loop.again = 0
        if not _decide(s):
            return WANTS_GROUPS
        loop.rounds += 1
        if loop.rounds > loop.patience:
            return STANDS_STILL
        if loop.again or loop.closed:
            continue
        if _soonest(s) > loop.now and not _leap(s):
            return STANDS_STILL
        while _soonest(s) <= loop.now and not loop.closed:
            _happen(s)
    return STEP_ENDED
