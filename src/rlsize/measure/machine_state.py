"""
The machine before, during and after a measurement: what else ran on its GPUs and CPU, and whether clocks held.

The doubts are sentences for the report: each says the value, and what it means for the figures.
"""

from __future__ import annotations

import os
import re
import subprocess
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

SAMPLE_SECONDS = 1.0
BUSY = 0.1  # utilisation before the start from which other work is at it
TAKEN = 0.05  # memory in use before the start, likewise
WORKING = 0.5  # utilisation from which a clock says something about load
SLOWED = 0.1  # clock under the highest, from which it is worth a word
THROTTLED = 0.05  # share of samples, likewise
IDLE = 0.5  # mean utilisation during the measurement under which the GPU waited
LOADED = 0.25  # load before the start, over the cores, from which other work is at it
_CPUINFO = Path("/proc/cpuinfo")
_PROC = Path("/proc")

MIB = 2**20
MEGAHERTZ = 1e6
_ASKED_SECONDS = 10.0  # a driver that does not answer by then will not

# Bits of the clock event reasons (nvml.h) that slow a GPU down against its will. Idle (0x1) and clocks that an
# application asked for (0x2) are no throttling.
THROTTLES: Mapping[int, str] = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}  # fmt: skip
_FIELDS = (
    "uuid", "name", "driver_version", "memory.used", "memory.total", "utilization.gpu", "clocks.sm", "clocks.max.sm",
)  # fmt: skip
_REASONS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")  # today's name, and that before R535
_LISTED = re.compile(r"\(UUID: (?P<uuid>(?:GPU|MIG)-[^)\s]+)\)")
_HEX = re.compile(r"[0-9a-fA-F]+")


def descendants(root: int | None = None, proc: Path = _PROC) -> set[int]:
    """
    A process and all that descend from it, now; only itself where the system has no /proc.

    Args:
        root: Process id; this process without it.
        proc: Where Linux lists processes.
    """
    root = os.getpid() if root is None else root
    children: dict[int, list[int]] = {}
    for stat in proc.glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):  # it ended meanwhile
            text = stat.read_text(encoding="utf-8", errors="replace")
            parent = int(text.rpartition(")")[2].split()[1])  # the name, in parentheses, may hold anything
            children.setdefault(parent, []).append(int(stat.parent.name))
    found, fresh = {root}, [root]
    while fresh:
        fresh = [child for parent in fresh for child in children.get(parent, []) if child not in found]
        found.update(fresh)
    return found


def gpu_states(own: Collection[int] = ()) -> list[GpuState]:
    """
    All GPUs of this machine that CUDA sees, now; empty without GPU, driver, or a way to ask it.

    Args:
        own: Ids of the processes that measure; without them all count as foreign.
    """
    every, said = smi_states(own), os.environ.get("CUDA_VISIBLE_DEVICES")
    return visible(every, said, mig_slices() if said and "MIG-" in said and every else {})


@dataclass(slots=True)
class Watch:
    """
    Looks at the GPUs before, every second during, and after what happens inside the `with`.

    Args:
        own: Tells the ids of the processes that measure, as they come and go.
        look: Tells the state of all GPUs.
        every: Seconds between two looks. [s]
    """

    own: Callable[[], Collection[int]] = descendants
    look: Callable[[Collection[int]], list[GpuState]] = gpu_states
    every: float = SAMPLE_SECONDS
    before: list[GpuState] = field(default_factory=list)
    samples: list[list[GpuState]] = field(default_factory=list)
    after: list[GpuState] = field(default_factory=list)
    _ended: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self.before = self.look(())
        if self.before:  # no GPU now, no GPU later
            self._thread = threading.Thread(target=self._sample, name="gpu watch", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
            self.after = self.look(self.own())

    def doubts(self) -> list[str]:
        """What speaks against the figures measured meanwhile."""
        return gpu_doubts(self.before, self.samples, self.after)

    def _sample(self) -> None:
        while not self._ended.wait(self.every):
            self.samples.append(self.look(self.own()))


def gpu_doubts(
    before: Sequence[GpuState], samples: Sequence[Sequence[GpuState]], after: Sequence[GpuState]
) -> list[str]:
    """
    What the states of GPUs that were ever busy say against a measurement, a sentence each; of all where none was.

    Args:
        before: All GPUs before it began, when nothing of its own ran on them.
        samples: All GPUs, again and again while it ran.
        after: All GPUs when it was over; stands in for the samples of one too short to have any.
    """
    found: list[str] = []
    looks = samples or [after]
    during = [[states[index] for states in looks if index < len(states)] for index in range(len(before))]
    busy = [index for index, states in enumerate(during) if any(_busy(state) for state in states)]
    for index in busy or range(len(before)):
        name = f"GPU {index} ({before[index].name})" if len(before) > 1 else before[index].name
        said = (*_before(before[index]), *_during(during[index], sampled=bool(samples)))
        found += [f"{name} {sentence}" for sentence in said]
    return found


def _busy(state: GpuState) -> bool:
    return state.utilisation_fraction is not None and state.utilisation_fraction > BUSY


def _before(state: GpuState) -> Iterator[str]:
    if state.utilisation_fraction is not None and _busy(state):
        yield f"was {100 * state.utilisation_fraction:.0f} % busy before the start: others use it; rates are too low."
    if state.foreign_processes:
        yield f"had {_processes(state.foreign_processes)} computing on it before the start: rates are too low."
    if state.memory_used_bytes is not None and state.memory_total_bytes:
        share = state.memory_used_bytes / state.memory_total_bytes
        if share > TAKEN:
            yield f"had {100 * share:.0f} % of its memory in use before the start: others leave less for the KV cache."


def _during(states: Sequence[GpuState], *, sampled: bool) -> Iterator[str]:
    foreign = [state.foreign_processes for state in states if state.foreign_processes]
    if foreign:
        share = f"{100 * len(foreign) / len(states):.0f} % of the samples"
        yield f"had {_processes(max(foreign))} computing on it in {share}: rates are too low."
    if not sampled:  # one look after the end says nothing about load
        return
    throttled = [state for state in states if state.throttles]
    if states and len(throttled) / len(states) > THROTTLED:
        reasons = sorted({reason for state in throttled for reason in state.throttles})
        share = f"{100 * len(throttled) / len(states):.0f} % of the samples"
        yield f"was throttled in {share} ({', '.join(reasons)}): a cooler one is faster."
    yield from _slowed(states)
    busy = [state.utilisation_fraction for state in states if state.utilisation_fraction is not None]
    if busy and fmean(busy) < IDLE:
        yield f"was {100 * fmean(busy):.0f} % busy on average: it waited for the CPU, for other ranks, or for work."


def _processes(count: int) -> str:
    return "another process" if count == 1 else f"{count} other processes"


def _slowed(states: Sequence[GpuState]) -> Iterator[str]:
    """Clocks count while a kernel runs; between kernels they fall by themselves."""
    clocks = [
        state.sm_clock_hz / state.max_sm_clock_hz
        for state in states
        if state.sm_clock_hz and state.max_sm_clock_hz and (state.utilisation_fraction or 0.0) >= WORKING
    ]
    if clocks and median(clocks) < 1 - SLOWED:
        yield f"ran at {100 * median(clocks):.0f} % of its highest clock while busy, and computes as much less."


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuState:
    """
    The CPU at one moment.

    Args:
        name: Its name; empty where the system does not tell.
        cores: Cores that this process may use.
        load: Processes that ran or waited to run, mean of the last minute; None where the system does not tell.
    """

    name: str
    cores: int
    load: float | None


def cpu_state(cpuinfo: Path = _CPUINFO) -> CpuState:
    """
    The CPU now.

    Args:
        cpuinfo: Where Linux describes it.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        load = os.getloadavg()[0]
    except OSError:
        load = None
    lines: list[str] = []
    with suppress(OSError):
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return CpuState(name=next(named, ""), cores=cores, load=load)


def cpu_doubts(before: CpuState) -> list[str]:
    """
    What the CPU's state says against a measurement that runs on it.

    Args:
        before: The CPU before it began.
    """
    if before.load is None or before.load <= LOADED * before.cores:
        return []
    cores = "core" if before.cores == 1 else "cores"
    return [f"the load was {before.load:.1f} on {before.cores} {cores} before the start: other work slows this down."]


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuState:
    """
    One GPU at one moment; None where the driver does not tell.

    Args:
        name: Its name; that of a MIG instance ends in its profile.
        uuid: By which CUDA_VISIBLE_DEVICES may name it.
        driver: Version of the driver.
        memory_used_bytes: Memory in use, by anybody. [B]
        memory_total_bytes: Memory that it has. [B]
        utilisation_fraction: Share of the last moment (the driver's: 1/6 s to 1 s) in which a kernel ran. [1]
        sm_clock_hz: Clock of the streaming multiprocessors. [Hz]
        max_sm_clock_hz: Highest clock that it has. [Hz]
        throttles: What slows it down, in words.
        foreign_processes: Processes that compute on it and are not the caller's; None also where the driver's process
            ids are those of another namespace, as in many containers.
    """

    name: str
    uuid: str = ""
    driver: str = ""
    memory_used_bytes: float | None = None
    memory_total_bytes: float | None = None
    utilisation_fraction: float | None = None
    sm_clock_hz: float | None = None
    max_sm_clock_hz: float | None = None
    throttles: tuple[str, ...] = ()
    foreign_processes: int | None = None


def visible(states: Sequence[GpuState], said: str | None, slices: Mapping[str, tuple[str, str]]) -> list[GpuState]:
    """
    The GPUs that CUDA sees, in its order.

    A list ends at the first entry that names nothing, or a GPU again. Of MIG instances CUDA takes one; what the driver
    tells of memory and load is its whole GPU's, so it is left out.

    Args:
        states: All GPUs.
        said: CUDA_VISIBLE_DEVICES; None where it is not set.
        slices: UUIDs of MIG instances, with the UUID of their GPU and their profile.

    >>> two = [GpuState(name="A", uuid="GPU-1f"), GpuState(name="B", uuid="GPU-20")]
    >>> [[one.name for one in visible(two, said, {})] for said in (None, "1,0", "GPU-2", "0,0,1", "-1", "")]
    [['A', 'B'], ['B', 'A'], ['B'], ['A'], [], []]
    """
    if said is None:
        return list(states)
    found: list[GpuState] = []
    for word in (part.strip() for part in said.split(",")):
        if word.startswith("MIG-"):
            of, profile = slices.get(word, ("", ""))
            parents = [one for one in states if one.uuid == of and of]
            return found or [GpuState(name=f"{one.name} {profile}", uuid=word, driver=one.driver) for one in parents]
        by_name = [one for one in states if one.uuid.startswith(word)] if word.startswith("GPU-") else []
        named = states[int(word)] if word.isdecimal() and int(word) < len(states) else None
        one = by_name[0] if len(by_name) == 1 else named
        if one is None or one in found:
            break
        found.append(one)
    return found


def mig_slices() -> dict[str, tuple[str, str]]:
    """UUIDs of the MIG instances that `nvidia-smi -L` lists, with the UUID of their GPU and their profile."""
    found, of = {}, ""
    for line in _told_by_smi("-L") or ():
        if match := _LISTED.search(line):
            if match["uuid"].startswith("MIG-"):
                found[match["uuid"]] = (of, line.split("Device")[0].strip())
            else:
                of = match["uuid"]
    return found


def throttles(bits: int) -> tuple[str, ...]:
    """
    A bit mask of clock event reasons in words.

    >>> throttles(0x1), throttles(0x24)
    ((), ('power cap', 'software thermal slowdown'))
    """
    return tuple(word for bit, word in THROTTLES.items() if bits & bit)


def foreign(pids: Sequence[set[int] | None], own: Collection[int]) -> list[int | None]:
    """
    How many foreign processes each GPU has.

    A driver tells the host's process ids; inside a container those of rlsize's own processes are others. Where own ones
    are given and none of them shows up on any GPU, nothing can be said.

    >>> foreign([{1, 7}, {9}], own={1}), foreign([{7}, None], own=()), foreign([{7}], own={1})
    ([1, 1], [1, None], [None])
    """
    known = not own or any(not found.isdisjoint(own) for found in pids if found)
    return [len(found.difference(own)) if found is not None and (known or not found) else None for found in pids]


def smi_states(own: Collection[int]) -> list[GpuState]:
    """
    All GPUs through `nvidia-smi`; an empty list where it is not installed or does not answer.

    Args:
        own: Process ids that are not foreign.
    """
    answers = (_smi(f"--query-gpu={','.join((*_FIELDS, reasons))}") for reasons in _REASONS)
    rows = next((rows for rows in answers if rows), [])
    if not rows:
        return []
    rows = [row for row in rows if len(row) == len(_FIELDS) + 1]
    computing = _smi("--query-compute-apps=gpu_uuid,pid")
    pids: list[set[int] | None] = [None] * len(rows)
    if computing is not None:
        pids = [{int(one[-1]) for one in computing if one[0] == row[0] and one[-1].isdigit()} for row in rows]
    counts = foreign(pids, own)
    return [_smi_state(row, others) for row, others in zip(rows, counts, strict=True)]


def _smi(query: str) -> list[list[str]] | None:
    """The rows of one query; None where there is no answer."""
    lines = _told_by_smi(query, "--format=csv,noheader,nounits")
    return None if lines is None else [[part.strip() for part in line.split(",")] for line in lines]


def _told_by_smi(*words: str) -> list[str] | None:
    """The lines of an answer; None where there is none."""
    try:
        answer = subprocess.run(  # noqa: S603 (fixed words)
            ["nvidia-smi", *words],  # noqa: S607 (wherever the driver put it)
            capture_output=True, text=True, timeout=_ASKED_SECONDS, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    return [line for line in answer.stdout.splitlines() if line.strip()]


def _smi_state(row: list[str], others: int | None) -> GpuState:
    uuid, name, driver, used, total, busy, clock, most, reasons = row
    bits = reasons.removeprefix("0x")
    return GpuState(
        name=name,
        uuid=uuid,
        driver=driver,
        memory_used_bytes=_number(used, MIB),
        memory_total_bytes=_number(total, MIB),
        utilisation_fraction=_number(busy, 0.01),
        sm_clock_hz=_number(clock, MEGAHERTZ),
        max_sm_clock_hz=_number(most, MEGAHERTZ),
        throttles=throttles(int(bits, 16)) if _HEX.fullmatch(bits) else (),
        foreign_processes=others,
    )


def _number(text: str, unit: float) -> float | None:
    """A number in base units; None for `[N/A]` and the like."""
    try:
        return float(text) * unit
    except ValueError:
        return None
