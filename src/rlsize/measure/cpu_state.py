"""The CPU before a measurement: which one, how much of it the process may use, and how much others use already."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

LOADED = 0.25  # load before the start, over the cores, from which other work is at it
_CPUINFO = Path("/proc/cpuinfo")


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
    return CpuState(name=_name(cpuinfo), cores=cores, load=load)


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


def _name(cpuinfo: Path) -> str:
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "")
