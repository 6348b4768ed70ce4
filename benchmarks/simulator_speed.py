"""
Speed and memory of the simulator.

1. Side by side with the same loop in SimPy (`benchmarks.simpy_loop`): 13 instances of 64 slots, 64 groups of 8 samples
   a step, asynchronous. Both run in turn, A B A B ..., on the same lengths, without the garbage collector, and must
   agree about when each optimizer step ends. The target is 10 times as many completions a second. One model in SimPy
   advances by completion, as the simulator does; another wakes for every engine step. Lengths are drawn in every run.
2. The compiled kernel and the specification in the same way, without redundant samples and with them; all of their
   accounts must be equal.
3. Completions a second as the run gets longer.
4. Peak memory as the run gets longer, when no history is kept.
5. 10,000 GPUs (2,500 instances of 256 slots) and 100,000 samples a step.
6. CPU seconds until the kernel is there: compiled, and from the cache.

Without numba the specification stands in for the kernel.

    python -m benchmarks.simulator_speed [--steps N] [--full]
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING

from benchmarks.pairs import PAIRS, show
from benchmarks.simpy_loop import Instance, Loop, Stepwise

from rlsize.simulator.draws import shared_lengths
from rlsize.simulator.played import installed
from rlsize.simulator.run import simulate
from rlsize.simulator.setting import (
    EngineSetting,
    LengthSetting,
    RuleSetting,
    Setting,
    SyncSetting,
    TrainerSetting,
    WorkSetting,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.simulator.ledger import Ledger
    from rlsize.simulator.setting import Routing

TARGET = 10.0  # times as many completions a second as SimPy
AIMED_RATE = 1_000_000  # completions a second, at 25 and at 2,500 instances
AIMED_COMPILING = 5.0  # CPU seconds, once
AGREEMENT = 1e-9  # of the ends of steps, relative
STEPS = 100
SHORT = 10  # times fewer steps against the model that wakes for every engine step
SCALES = (10**4, 10**5, 10**6)  # samples
LENGTHS = (100, 1_000)  # optimizer steps
LARGE_STEPS = 20
REDUNDANT = 2  # samples of a group of 8, of which 8 are needed
KIB = 1 if sys.platform == "darwin" else 1024  # what ru_maxrss counts in


def setting(
    instances: int = 13, slots: int = 64, groups: int = 64, routing: Routing = "affine", redundant: int = 0
) -> Setting:
    """A loop whose trainer and fleet are about as fast as each other."""
    return Setting(
        engine=EngineSetting(
            instances=instances,
            slots=slots,
            fixed_seconds=0.016,
            sample_seconds=2e-5,
            kv_seconds=1e-8,
            routing=routing,
        ),
        work=WorkSetting(
            groups=groups,
            group_size=8,
            lengths=LengthSetting(mean=1536, cv=1, cap=16384),
            redundant_samples=redundant,
        ),
        trainer=TrainerSetting(seconds=20.0),
        sync=SyncSetting(seconds=2.0, way="in-flight"),
        rules=RuleSetting(mode="async", max_staleness=4),
    )


def ours(asked: Setting, steps: int, *, compiled: bool = True) -> tuple[float, Ledger]:
    """CPU seconds of rlsize, by the kernel or the specification, and its accounts."""
    shared_lengths.cache_clear()
    start = time.process_time()
    ledger = simulate(asked, steps, compiled=compiled)
    return time.process_time() - start, ledger


def theirs(asked: Setting, steps: int, kind: type[Instance]) -> tuple[float, list[float]]:
    """CPU seconds of SimPy, and when each optimizer step ends."""
    gc.disable()
    shared_lengths.cache_clear()
    start = time.process_time()
    loop = Loop(asked, 0, kind)
    loop.run(steps)
    seconds = time.process_time() - start
    gc.enable()
    gc.collect()
    return seconds, loop.ends


def side_by_side(case: str, kind: type[Instance], steps: int, *, compiled: bool) -> bool:
    """Print pairs of rates; whether both agree."""
    asked, pairs, apart = setting(), [], 0.0
    samples = steps * asked.work.samples
    for _ in range(PAIRS):
        first, ledger = ours(asked, steps, compiled=compiled)
        second, expected = theirs(asked, steps, kind)
        pairs.append((samples / first, samples / second))
        apart = max(abs(a / b - 1.0) for a, b in zip(ledger.columns["end_seconds"], expected, strict=True))
    show(
        f"{'kernel' if compiled else 'specification'} and {case}",
        "simpy",
        pairs,
        unit="completions",
        steps=steps,
        largest_relative_difference=apart,
        agree=apart <= AGREEMENT,
        aim=TARGET,
        reaches_target=statistics.median(a / b for a, b in pairs) >= TARGET,
    )
    return apart <= AGREEMENT


def both(steps: int, redundant: int) -> bool:
    """Print pairs of rates of kernel and specification; whether all accounts are equal."""
    asked, pairs, equal = setting(redundant=redundant), [], True
    for _ in range(PAIRS):
        (first, found), (second, expected) = (ours(asked, steps, compiled=compiled) for compiled in (True, False))
        pairs.append((steps * asked.work.samples / first, steps * asked.work.samples / second))
        equal &= found.columns == expected.columns and found.staleness == expected.staleness
    case = f"kernel and specification{f', {redundant} redundant samples a group' if redundant else ''}"
    show(case, "specification", pairs, unit="completions", steps=steps, equal=equal)
    return equal


def compiling() -> None:
    """Print CPU seconds of a first step in a process of its own, with an empty cache and with the kernel in it."""
    with tempfile.TemporaryDirectory() as folder:
        for case in ("compiled", "from the cache"):
            told = alone("13", "64", "64", "1", "affine", NUMBA_CACHE_DIR=folder)
            aim = {"aim": AIMED_COMPILING} if case == "compiled" else {}
            say(case=f"kernel {case}", seconds=round(told["before"], 2), **aim)


def scaling(scales: Sequence[int]) -> None:
    """Print completions a second, scale by scale."""
    asked, first = setting(), 0.0
    for samples in scales:
        steps = -(-samples // asked.work.samples)
        repeats = max(1, min(PAIRS, SCALES[-1] // samples))
        seconds = statistics.median(ours(asked, steps)[0] for _ in range(repeats))
        rate = steps * asked.work.samples / seconds
        first = first or rate
        say(case="scaling", samples=samples, steps=steps, seconds=round(seconds, 3), completions_per_second=round(rate),
            of_the_first=round(rate / first, 3))  # fmt: skip


def memory(lengths: Sequence[int]) -> None:
    """Print peak memory, length by length."""
    before: tuple[int, float] | None = None
    for steps in lengths:
        peak = alone("13", "64", "64", str(steps), "affine")["peak_bytes"]
        each = None if before is None else round((peak - before[1]) / (steps - before[0]))
        say(case="memory", steps=steps, peak_mib=round(peak / 2**20, 1), bytes_per_extra_step=each)
        before = steps, peak


def large(steps: int) -> None:
    """Print seconds and peak memory of a fleet of 10,000 GPUs, beside one that is 100 times smaller."""
    routings: tuple[Routing, ...] = ("affine", "queue")
    for routing in routings:
        for instances, groups in ((25, 125), (2_500, 12_500)):
            told = alone(str(instances), "256", str(groups), str(steps), routing)
            say(case="large", instances=instances, routing=routing, samples_per_step=8 * groups, steps=steps,
                seconds=round(told["seconds"], 2), completions_per_second=round(told["completed"] / told["seconds"]),
                aim=AIMED_RATE, peak_mib=round(told["peak_bytes"] / 2**20, 1))  # fmt: skip


def alone(*arguments: str, **environment: str) -> dict[str, float]:
    """What a run of `one` in a process of its own prints."""
    command = [sys.executable, "-m", "benchmarks.simulator_speed", "--one", *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | environment)
    told: dict[str, float] = json.loads(done.stdout)
    return told


def one(instances: str, slots: str, groups: str, steps: str, routing: Routing) -> None:
    """Print CPU seconds and peak memory of a run."""
    asked = setting(int(instances), int(slots), int(groups), routing)
    before, _ = ours(setting(), 1)  # loads the kernel
    seconds, ledger = ours(asked, int(steps))
    completed = asked.work.samples * int(steps) + ledger.columns["backlog_samples"][-1]
    say(
        before=before,
        seconds=seconds,
        completed=completed,
        peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KIB,
    )


def say(**told: object) -> None:
    """Print a line of JSON."""
    print(json.dumps(told), flush=True)


def main() -> int:
    """Print lines of JSON; exit code 1 where kernel, specification and SimPy do not agree."""
    parser = argparse.ArgumentParser(description="Speed and memory of the simulator.")
    parser.add_argument("--steps", type=int, default=STEPS, help="optimizer steps of each run against SimPy")
    parser.add_argument("--full", action="store_true", help="10,000,000 samples, and 10,000 steps for memory")
    parser.add_argument("--one", nargs=5, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        one(*asked.one)
        return 0
    # Children first: a child's peak starts at what its parent has in use.
    memory([*LENGTHS, 10_000] if asked.full else LENGTHS)
    large(LARGE_STEPS)
    if installed():
        compiling()
    ours(setting(), 1)  # loads the kernel
    agree = both(asked.steps, 0) & both(asked.steps, REDUNDANT)
    for compiled in (True, False):
        agree &= side_by_side("simpy, by completion", Instance, asked.steps, compiled=compiled)
        agree &= side_by_side("simpy, step by step", Stepwise, max(1, asked.steps // SHORT), compiled=compiled)
    scaling([*SCALES, 10**7] if asked.full else SCALES)
    return int(not agree)


if __name__ == "__main__":
    raise SystemExit(main())
