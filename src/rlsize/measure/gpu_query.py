"""
The GPUs of this machine as NVML or `nvidia-smi` describes them; an empty list where neither is at hand.

What a Slurm job or a container must not use, neither shows. What `CUDA_VISIBLE_DEVICES` leaves out both show, and
nothing here takes it: the rules are CUDA's (CUDA C++ Programming Guide, CUDA environment variables).
"""

from __future__ import annotations

import re
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

_Value = TypeVar("_Value")

MIB = 2**20
MEGAHERTZ = 1e6
_ASKED_SECONDS = 10.0  # a driver that does not answer by then will not

# Bits of NVML's clock event reasons (nvml.h) that slow a GPU down against its will. Idle (0x1) and clocks that an
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
    "clocks_throttle_reasons.active",
)  # fmt: skip
_LISTED = re.compile(r"\(UUID: (?P<uuid>(?:GPU|MIG)-[^)\s]+)\)")
_HEX = re.compile(r"[0-9a-fA-F]+")


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

    A list ends at the first entry that names nothing, or a GPU again. Of MIG instances CUDA takes one; what NVML tells
    of memory and load is its whole GPU's, so it is left out.

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
    NVML's bit mask of clock event reasons in words.

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


def nvml_module() -> Any:
    """The module `pynvml`, or None where it is not installed."""
    try:
        import pynvml
    except ImportError:
        return None
    return pynvml


def nvml_states(nvml: Any, own: Collection[int]) -> list[GpuState] | None:
    """
    All GPUs through NVML; None where it does not start (no driver).

    Args:
        nvml: The module `pynvml`.
        own: Process ids that are not foreign.
    """
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        return None
    try:
        driver = _text(_told(nvml, nvml.nvmlSystemGetDriverVersion) or "")
        handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
        computing = [_told(nvml, nvml.nvmlDeviceGetComputeRunningProcesses, handle) for handle in handles]
        pids = [None if found is None else {process.pid for process in found} for found in computing]
        counts = foreign(pids, own)
        return [_nvml_state(nvml, handle, driver, many) for handle, many in zip(handles, counts, strict=True)]
    except nvml.NVMLError:
        return None
    finally:
        with suppress(nvml.NVMLError):
            nvml.nvmlShutdown()


def _nvml_state(nvml: Any, handle: Any, driver: str, others: int | None) -> GpuState:
    memory = _told(nvml, nvml.nvmlDeviceGetMemoryInfo, handle)
    rates = _told(nvml, nvml.nvmlDeviceGetUtilizationRates, handle)
    clock = _told(nvml, nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM)
    most = _told(nvml, nvml.nvmlDeviceGetMaxClockInfo, handle, nvml.NVML_CLOCK_SM)
    return GpuState(
        name=_text(_told(nvml, nvml.nvmlDeviceGetName, handle) or "GPU"),
        uuid=_text(_told(nvml, nvml.nvmlDeviceGetUUID, handle) or ""),
        driver=driver,
        memory_used_bytes=memory.used if memory else None,
        memory_total_bytes=memory.total if memory else None,
        utilisation_fraction=rates.gpu / 100 if rates else None,
        sm_clock_hz=clock * MEGAHERTZ if clock is not None else None,
        max_sm_clock_hz=most * MEGAHERTZ if most is not None else None,
        throttles=throttles(_told(nvml, nvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle) or 0),
        foreign_processes=others,
    )


def _told(nvml: Any, ask: Callable[..., _Value], *args: Any) -> _Value | None:
    """What NVML says, or None: a virtual or older GPU does not tell everything."""
    try:
        return ask(*args)
    except nvml.NVMLError:
        return None


def _text(said: str | bytes) -> str:
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else said  # bytes from older bindings


def smi_states(own: Collection[int]) -> list[GpuState]:
    """
    All GPUs through `nvidia-smi`; an empty list where it is not installed or does not answer.

    Args:
        own: Process ids that are not foreign.
    """
    rows = _smi(f"--query-gpu={','.join(_FIELDS)}")
    if not rows:
        return []
    rows = [row for row in rows if len(row) == len(_FIELDS)]
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
