"""A run by the compiled kernel: what it knows, and whether there is a compiler; its arrays, draws and accounts."""

from __future__ import annotations

from importlib.util import find_spec
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from rlsize.simulator import kernel
from rlsize.simulator.draws import CHUNK, SeededOutcomes
from rlsize.simulator.ledger import COLUMNS, Ledger
from rlsize.simulator.setting import MODES, Order, Routing, Way

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rlsize.simulator.kernel import State, Table
    from rlsize.simulator.setting import Setting

_LONGEST = 1 << 30  # tokens, far from where whole numbers of 32 bits end
_BATCHES = 2  # for which there is room from the beginning
_MOST_BATCHES = 8  # of those that staleness allows beside
_LINE = 64  # bytes that memory gives at once: a row that begins with a line is read quicker
_FULL = 1 << 30  # samples on an instance that is none

EXTRA = "rlsize[fast]"
"""What to install for it."""

ROUTINGS: tuple[Routing, ...] = ("affine", "round-robin", "queue")
WAYS: tuple[Way, ...] = ("in-flight", "drain", "abort")
ORDERS: tuple[Order, ...] = ("completion", "admission", "freshest")
"""What the kernel calls 0, 1, 2."""

_MOST_SLOTS = 1 << 22  # of a fleet: each takes 24 bytes


def played(setting: Setting, steps: int, seed: int) -> Ledger | None:
    """
    Run a loop for so many optimizer steps.

    Args:
        setting: What is simulated, which `covers` has found to be known.
        steps: Optimizer steps. [1]
        seed: Of all randomness.

    Returns:
        The accounts of each step, those of the specification to the last bit; None where the loop may stand still, or
        where numbers would grow too large: the specification says.
    """
    outcomes, ledger = SeededOutcomes(setting.work, seed), Ledger(setting.rules.max_staleness, compiled=True)
    state, chunk = _state(setting, outcomes, steps), 0
    loops = np.asarray(state.loop)[np.newaxis].view(np.recarray)
    accounts = np.frombuffer(state.loop, dtype=float)[-len(COLUMNS) :]
    while len(ledger) < steps:
        why = kernel.advance(loops, *state[1:])
        if why == kernel.STANDS_STILL:
            return None
        if why == kernel.STEP_ENDED:
            loop = state.loop
            lags = state.lags[: loop.most_lag + 1]
            counts = {lag: count for lag, count in enumerate(lags.tolist()) if count}
            ledger.close(dict(zip(COLUMNS, accounts.tolist(), strict=True)), counts)
            continue
        lengths = outcomes.length_table(chunk)
        if lengths.max() > _LONGEST:
            return None
        state = _drawn(state, chunk, lengths, outcomes.verdict_table(chunk))
        chunk += 1
    return ledger


def _drawn(state: State, chunk: int, lengths: NDArray[np.int64], verdicts: NDArray[np.bool_]) -> State:
    """The run with a chunk of groups that may be admitted, in rows that are free, or new."""
    count, loop = len(lengths), state.loop
    if loop.free < count:
        state = _with_room(state, max(count, len(state.groups)))
    loop.free -= count
    groups = state.groups
    rows = groups["free"][loop.free : loop.free + count].copy()
    new = np.zeros(count, dtype=kernel.GROUP)
    new["free"], new["serial"] = groups["free"][rows], chunk * CHUNK + np.arange(count)
    new["accepted"], new["unfinished"], new["tokens"] = verdicts, loop.group_size, lengths.sum(axis=1)
    new["oldest"] = kernel.NOBODY
    new["previous"], new["next"] = np.roll(rows, 1), np.roll(rows, -1)
    new["previous"][0] = new["next"][-1] = kernel.DRAWN
    groups[rows] = new
    groups[kernel.DRAWN].next, groups[kernel.DRAWN].previous = rows[0], rows[-1]
    loop.drawn_from = chunk * CHUNK
    return state._replace(lengths=lengths)


def _with_room(state: State, more: int) -> State:
    """The run with room for so many more groups, and their samples."""
    loop, before = state.loop, len(state.groups)
    groups = _table(kernel.GROUP, before + more, state.groups)
    samples = _table(kernel.SAMPLE, len(state.samples) + more * loop.started, state.samples)
    groups["free"][loop.free : loop.free + more] = np.arange(before, before + more)
    loop.free += more
    return state._replace(groups=groups, samples=samples)


def _state(setting: Setting, outcomes: SeededOutcomes, steps: int) -> State:
    """A run before its first instant."""
    engine, work = setting.engine, setting.work
    size = 1 << (engine.instances - 1).bit_length()
    loop = _table(kernel.LOOP, 1)[0]
    for name, value in _told(setting).items():
        loop[name] = value
    loop.leaves, loop.idle, loop.late_time = size, engine.instances, inf
    loop.with_room, loop.touched, loop.stopping = engine.instances, -1, -1
    loop.first = loop.due = loop.idles = 1
    loop.stalest, loop.open = kernel.NOBODY, setting.rules.mode == "async"
    engines = _table(kernel.ENGINE, size)
    engines["slowdown"], engines["state"] = 1.0, kernel.IDLE
    trouble = setting.trouble
    for index in outcomes.stragglers(engine.instances, trouble.straggler_fraction):
        engines[index].slowdown = trouble.straggler_slowdown
    nodes = _table(kernel.NODE, 2 * size)
    for at in range(2 * size - 1, 0, -1):
        nodes[at] = (
            (inf, 0 if at < size + engine.instances else _FULL, at - size, at - size) if at >= size else nodes[2 * at]
        )
    groups, samples = _table(kernel.GROUP, len(kernel.LISTS)), _table(kernel.SAMPLE, engine.instances + 1)
    for ring in (groups, samples):
        ring["previous"] = ring["next"] = np.arange(len(ring))
    samples = _table(kernel.SAMPLE, len(samples) + len(groups) * work.started, samples)
    state = kernel.State(
        loop=loop,
        engines=engines,
        groups=groups,
        samples=samples,
        running=_table(kernel.RUNNING, engine.instances * engine.slots),
        nodes=nodes,
        lags=np.zeros(steps + 2, dtype=np.int64),
        batch_seconds=np.fromiter(map(engine.batch_seconds, range(engine.slots + 1)), dtype=float),
        lengths=np.zeros((0, work.started), dtype=np.int64),
    )
    ahead = _BATCHES + min(setting.most_lag, _MOST_BATCHES) if setting.rules.mode == "async" else _BATCHES
    return _with_room(state, CHUNK + int(ahead * setting.launched_groups))


def _told(setting: Setting) -> dict[str, float]:
    """What the kernel is told of a setting, by the names of `kernel.LOOP`."""
    engine, work, sync, rules = setting.engine, setting.work, setting.sync, setting.rules
    return {
        "kv_seconds": engine.kv_seconds,
        "prefill_seconds": engine.prefill_seconds,
        "kv_tokens": engine.kv_tokens,
        "whole_train_seconds": setting.trainer.seconds,
        "batch_tokens": work.tokens,
        "sync_transport": sync.seconds,
        "swap_seconds": sync.swap_seconds,
        "most_waiting": setting.most_waiting,
        "overhead": setting.trainer.overhead_seconds,
        "groups_ahead": setting.groups_ahead,
        "oldest_lag": 0 if setting.rules.max_staleness is None else setting.most_lag,
        "patience": setting.patience,
        "mode": MODES.index(rules.mode),
        "routing": ROUTINGS.index(engine.routing),
        "way": WAYS.index(sync.way),
        "order": ORDERS.index(rules.order),
        "keeps": rules.unfinished == "keep",
        "drops": rules.drops_over_stale and rules.max_staleness is not None,
        "instances": engine.instances,
        "slots": engine.slots,
        "prompt_tokens": work.prompt_tokens,
        "group_size": work.group_size,
        "started": work.started,
        "groups": work.groups,
        "parts": setting.trainer.micro_batches,
        "launched": setting.launched_groups,
        "every": sync.every,
        "keeps_kv": sync.keeps_kv and sync.way == "in-flight" and rules.mode != "colocated",
    }


def _table(kind: np.dtype[np.void], rows: int, before: Table | None = None) -> Table:
    """A table of so many rows, of which the first are those of one before."""
    size = rows * kind.itemsize
    room = np.zeros(size + _LINE, dtype=np.uint8)
    first = -room.ctypes.data % _LINE
    table = room[first : first + size].view(kind)
    if before is not None:
        table[: len(before)] = before
    return table.view(np.recarray)


def covers(setting: Setting) -> bool:
    """Whether the kernel knows all that a setting asks for; the rest is the specification's."""
    work, trouble = setting.work, setting.trouble
    return (
        not any((trouble.losses_per_hour, trouble.failures_per_hour, trouble.lent_instances))
        and work.turns == 1
        and work.verify.seconds == 0.0
        and not work.equipped
        and setting.engine.routing in ROUTINGS
        and setting.sync.way in WAYS
        and not setting.rules.resizes
        and not setting.others
        and setting.rules.redealing == "arrivals"  # of which there are none
        and setting.engine.instances * setting.engine.slots <= _MOST_SLOTS
    )


def installed() -> bool:
    """Whether there is a compiler."""
    return find_spec("numba") is not None
