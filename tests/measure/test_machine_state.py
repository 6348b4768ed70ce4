"""The state of GPUs and CPU, from a made-up nvidia-smi, and what is doubted because of it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rlsize.measure.machine_state import (
    CpuState,
    GpuState,
    Watch,
    cpu_doubts,
    cpu_state,
    descendants,
    gpu_doubts,
    gpu_states,
    smi_states,
    throttles,
)

GIB = 2**30
IDLE = GpuState(
    name="H100",
    driver="570.1",
    memory_used_bytes=0.5 * GIB,
    memory_total_bytes=80 * GIB,
    utilisation_fraction=0.0,
    sm_clock_hz=345e6,
    max_sm_clock_hz=1980e6,
    foreign_processes=0,
)
AT_WORK = replace(IDLE, memory_used_bytes=70 * GIB, utilisation_fraction=0.98, sm_clock_hz=1980e6)


@pytest.fixture(autouse=True)
def _all_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the tests' own machine hides."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def test_without_driver_there_is_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No nvidia-smi: an empty list, and no doubt."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpu_states() == []
    with Watch() as watch:
        pass
    assert watch.doubts() == []


SMI = """#!/bin/sh
case "$1" in
-L) echo "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)"; echo "  MIG 3g.40gb     Device  0: (UUID: MIG-7f)"
    echo "GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-2)" ;;
*query-gpu*) echo "GPU-1, NVIDIA H100 80GB HBM3, 570.1, 71680, 81920, 98, 1500, 1980, 0x0000000000000044"
             echo "GPU-2, NVIDIA H100 80GB HBM3, 570.1, [N/A], 81920, [N/A], [N/A], 1980, [Not Supported]" ;;
*) echo "GPU-1, 11"; echo "GPU-1, 12" ;;
esac
"""


def smi(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """An nvidia-smi that prints what it is made to."""
    script = folder / "nvidia-smi"
    script.write_text(text)
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def test_nvidia_smi_tells_what_it_can(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """MiB and MHz become bytes and hertz, a mask becomes words, `[N/A]` becomes None."""
    smi(tmp_path, monkeypatch, SMI)
    first, second = smi_states(own={11})
    assert (first.name, first.driver) == ("NVIDIA H100 80GB HBM3", "570.1")
    assert (first.memory_used_bytes, first.memory_total_bytes) == (70 * GIB, 80 * GIB)
    assert (first.sm_clock_hz, first.max_sm_clock_hz) == (1500e6, 1980e6)
    assert first.utilisation_fraction == pytest.approx(0.98)
    assert first.throttles == ("power cap", "hardware thermal slowdown")
    assert (first.foreign_processes, second.foreign_processes) == (1, 0)
    assert (second.memory_used_bytes, second.utilisation_fraction, second.throttles) == (None, None, ())


@pytest.mark.parametrize("unknown", ["clocks_event_reasons", "clocks_throttle_reasons"])
def test_a_driver_that_knows_one_name_of_a_field_is_asked_by_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, unknown: str
) -> None:
    """A field that a driver does not know fails the whole query; the reasons of slow clocks were renamed."""
    smi(tmp_path, monkeypatch, SMI.replace('case "$1" in', f'case "$1" in\n*{unknown}*) exit 2 ;;'))
    assert [state.name for state in smi_states(own=())] == ["NVIDIA H100 80GB HBM3"] * 2


def test_process_ids_of_another_namespace_say_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In a container own processes have other ids than the driver tells: no process is called foreign."""
    smi(tmp_path, monkeypatch, SMI)
    assert gpu_states(own={99})[0].foreign_processes is None
    assert gpu_states(own=())[0].foreign_processes == 2


@pytest.mark.parametrize(
    ("said", "names"),
    [
        ("0", ["NVIDIA H100 80GB HBM3"]),
        ("GPU-2,GPU-1", ["NVIDIA H100 80GB HBM3"] * 2),
        ("GPU-", []),  # it may be either
        ("1,7,0", ["NVIDIA H100 80GB HBM3"]),
        ("MIG-7f,MIG-none", ["NVIDIA H100 80GB HBM3 MIG 3g.40gb"]),
        ("MIG-none", []),
        ("", []),
    ],
)
def test_only_visible_gpus_are_there(
    said: str, names: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By index, by UUID or the beginning of one, and by MIG instance, of which CUDA takes one."""
    smi(tmp_path, monkeypatch, SMI)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", said)
    assert [state.name for state in gpu_states()] == names


@pytest.mark.parametrize("text", ["#!/bin/sh\nexit 9\n", "#!/bin/sh\necho nonsense\n", "#!/bin/sh\nprintf '\\377'\n"])
def test_an_nvidia_smi_that_fails_is_none(text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An error, or an answer that is none."""
    smi(tmp_path, monkeypatch, text)
    assert smi_states(own=()) == []


def test_idle_and_asked_for_clocks_are_no_throttling() -> None:
    """Only what slows a GPU down against its will."""
    assert throttles(0x1 | 0x2) == ()
    assert throttles(0x8 | 0x80) == ("hardware slowdown", "power brake")


def test_a_calm_measurement_is_not_doubted() -> None:
    """Idle before, busy at full clock while it ran."""
    assert gpu_doubts([IDLE], [[AT_WORK]] * 9, [IDLE]) == []


@pytest.mark.parametrize(
    ("before", "during", "said"),
    [
        (replace(IDLE, utilisation_fraction=0.4), AT_WORK, "was 40 % busy before the start"),
        (replace(IDLE, memory_used_bytes=40 * GIB), AT_WORK, "had 50 % of its memory in use before the start"),
        (replace(IDLE, foreign_processes=1), AT_WORK, "had another process computing on it before the start"),
        (IDLE, replace(AT_WORK, foreign_processes=3), "had 3 other processes computing on it in 100 % of the samples"),
        (IDLE, replace(AT_WORK, throttles=("power cap",)), "was throttled in 100 % of the samples (power cap)"),
        (IDLE, replace(AT_WORK, sm_clock_hz=1485e6), "ran at 75 % of its highest clock while busy"),
        (IDLE, replace(AT_WORK, utilisation_fraction=0.2), "was 20 % busy on average"),
    ],
)
def test_each_doubt_says_the_value(before: GpuState, during: GpuState, said: str) -> None:
    """One sentence, with the GPU's name."""
    [doubt] = gpu_doubts([before], [[during]] * 9, [IDLE])
    assert doubt.startswith(f"H100 {said}")
    assert doubt.endswith(".")


def test_gpus_that_were_not_used_are_not_doubted() -> None:
    """With one of two GPUs at work, the other one's idling says nothing; with none of them, that of both does."""
    samples = [[AT_WORK, IDLE]] * 9
    assert gpu_doubts([IDLE, IDLE], samples, [IDLE, IDLE]) == []
    first, second = gpu_doubts([IDLE, IDLE], [[IDLE, IDLE]] * 9, [IDLE, IDLE])
    assert (first[:14], second[:14]) == ("GPU 0 (H100) w", "GPU 1 (H100) w")


def test_a_lowered_clock_between_kernels_is_none() -> None:
    """The clock counts while a kernel runs."""
    assert gpu_doubts([IDLE], [[AT_WORK], [AT_WORK], [IDLE]], [IDLE]) == []


def test_without_samples_only_what_was_before_counts() -> None:
    """A measurement shorter than a second says nothing about load."""
    assert gpu_doubts([IDLE], [], [IDLE]) == []
    assert len(gpu_doubts([replace(IDLE, utilisation_fraction=0.4)], [], [IDLE])) == 1


def test_the_watch_samples_until_it_ends() -> None:
    """Before, again and again, after; its thread ends with it."""
    owners: list[Any] = []

    def look(own: Any) -> list[GpuState]:
        owners.append(own)
        return [IDLE]

    with Watch(own=lambda: {5}, look=look, every=0.01) as watch:
        until = time.monotonic() + 60  # which nobody waits for
        while len(watch.samples) < 3 and time.monotonic() < until:
            time.sleep(0.01)
    count = len(watch.samples)
    assert count >= 3
    assert (watch.before, watch.after) == ([IDLE], [IDLE])
    assert owners[0] == ()  # before the start, whatever runs is foreign
    assert owners[1] == {5}
    time.sleep(0.05)
    assert len(watch.samples) == count


def test_descendants_are_found(tmp_path: Path) -> None:
    """A child and its child belong to this process; where there is no /proc, only itself."""
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'print(1, flush=True); input()'])"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        family = descendants()
        assert {os.getpid(), child.pid} < family
        assert len(descendants(child.pid)) == 2
        child.communicate(b"\n")
    assert descendants(7, tmp_path) == {7}


def test_the_cpu_says_who_it_is(tmp_path: Path) -> None:
    """Name and cores; without a description the name stays empty."""
    told = tmp_path / "cpuinfo"
    told.write_text("processor\t: 0\nmodel name\t: AMD EPYC 9654\n")
    assert cpu_state(told).name == "AMD EPYC 9654"
    assert cpu_state(tmp_path / "none").name == ""
    assert cpu_state().cores >= 1


def test_a_loaded_cpu_is_doubted() -> None:
    """A quarter of the cores is where it begins."""
    state = CpuState(name="EPYC", cores=8, load=1.9)
    assert cpu_doubts(state) == []
    assert cpu_doubts(replace(state, load=None)) == []
    [doubt] = cpu_doubts(replace(state, load=4.04))
    assert "the load was 4.0 on 8 cores" in doubt
