"""
The machine before, during and after a measurement: what else ran on its GPUs and CPU, and whether clocks held.

The doubts are sentences for the report: each says the value, and what it means for the figures.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any, Self

from rlsize.measure.gpu_query import GpuState, mig_slices, nvml_module, nvml_states, smi_states, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from types import TracebackType

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


def gpu_states(own: Collection[int] = (), nvml: Any = None) -> list[GpuState]:
    """
    All GPUs of this machine that CUDA sees, now; empty without GPU, driver, or a way to ask it.

    Args:
        own: Ids of the processes that measure; without them all count as foreign.
        nvml: The module `pynvml`; found by itself where it is installed.
    """
    module = nvml or nvml_module()
    found = nvml_states(module, own) if module is not None else None
    every, said = smi_states(own) if found is None else found, os.environ.get("CUDA_VISIBLE_DEVICES")
    return visible(every, said, mig_slices() if said and "MIG-" in said and every else {})


@dataclass(slots=True)
class Watch:
    """
    Looks at the GPUs before, every second during, and after what happens inside the `with`.

    Args:
        used: Indices of the GPUs that are measured, among those that CUDA sees; without them those that are ever busy.
        own: Tells the ids of the processes that measure, as they come and go.
        look: Tells the state of all GPUs.
        every: Seconds between two looks. [s]
    """

    used: Collection[int] = ()
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
            self.after = self.look(self.own())

    def doubts(self) -> list[str]:
        """What speaks against the figures measured meanwhile."""
        return gpu_doubts(self.before, self.samples, self.after, self.used)

    def _sample(self) -> None:
        while not self._ended.wait(self.every):
            self.samples.append(self.look(self.own()))


def gpu_doubts(
    before: Sequence[GpuState],
    samples: Sequence[Sequence[GpuState]],
    after: Sequence[GpuState],
    used: Collection[int] = (),
) -> list[str]:
    """
    What the GPUs' states say against a measurement, a sentence each.

    Args:
        before: All GPUs before it began, when nothing of its own ran on them.
        samples: All GPUs, again and again while it ran.
        after: All GPUs when it was over; stands in for the samples of one too short to have any.
        used: Indices of the GPUs that it ran on; without them those that were ever busy, or all where none was.
    """
    found: list[str] = []
    looks = samples or [after]
    during = [[states[index] for states in looks if index < len(states)] for index in range(len(before))]
    busy = [index for index, states in enumerate(during) if any(_busy(state) for state in states)]
    for index in sorted(used or busy or range(len(before))):
        if index < len(before):
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
