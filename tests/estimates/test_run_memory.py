"""A run's memory peak: as it was for the run itself, and how it goes with a change."""

from __future__ import annotations

import pytest

from rlsize.estimates.memory_phases import Phase
from rlsize.estimates.run_memory import beyond_model, own_memory
from rlsize.facts.calibration import OwnMemory
from rlsize.facts.figure import Figure
from rlsize.facts.run_log import RunSummary

UPDATE = {"trainer_weights": 10e9, "activations": 20e9, "reserved": 1.5e9, "contexts": 1e9}
PHASES = {"load": {"trainer_weights": 90e9}, "logprob": {"trainer_weights": 10e9}, "update": UPDATE}


def log(**peaks: float) -> RunSummary:
    """A log with peaks, in bytes."""
    told = {f"peak_{side}_bytes": value for side, value in peaks.items()}
    figures = {key: Figure(key=key, value=value, deviation=0.02 * value) for key, value in told.items()}
    return RunSummary(figures=figures)


def peak(measured: float) -> OwnMemory:
    """A run that took so much, of which the model knows 30 GB."""
    found = own_memory(PHASES, log(allocated=measured))
    assert found is not None
    return found


def phase(parts: dict[str, float], name: str = "update") -> Phase:
    """A phase of the loop as it is changed."""
    held = sum(parts.values())
    return Phase(name=name, pool="trainer", parts=parts, held=held, first=held)


def beyond(memory: OwnMemory, now: Phase) -> float:
    """What it holds beside what the model knows, where nothing is drawn."""
    return beyond_model(memory, now, now, 0).central


def test_a_peak_stands_in_the_fullest_phase_of_a_step_and_tensors_go_before_what_was_kept() -> None:
    """Loading is no phase of a step; what an allocator caches is compared with what it is predicted to keep."""
    both = own_memory(PHASES, log(allocated=36e9, reserved=50e9))
    assert both is not None
    assert (both.phase, both.measured, both.reserved) == ("update", 36e9, False)
    assert both.scatter == pytest.approx(0.02)
    assert both.own == pytest.approx(6e9)
    kept = own_memory(PHASES, log(reserved=50e9))
    assert kept is not None
    assert kept.reserved
    assert kept.own == pytest.approx(18.5e9)
    assert own_memory(PHASES, log()) is None
    assert own_memory({}, log(allocated=36e9)) is None


def test_a_run_took_what_it_took_and_a_change_part_of_what_is_not_known() -> None:
    """By hand: 6 GB beside 20 GB of work; a quarter of the work keeps between a quarter and all of them."""
    memory = peak(36e9)
    same, less = phase(UPDATE), phase({"trainer_weights": 10e9, "activations": 5e9})
    assert beyond(memory, same) == pytest.approx(6e9)
    assert beyond(memory, less) == pytest.approx(3e9)
    drawn = beyond_model(memory, less, less, 0).drawn
    assert min(drawn) < 2e9
    assert max(drawn) > 5e9
    assert beyond_model(memory, same, same, 0).changed == 0.0


def test_a_run_that_took_less_makes_all_its_passes_smaller() -> None:
    """What took more than is predicted stands in one phase only; what took less was predicted too high in all."""
    for measured, others in ((36e9, 0.0), (24e9, -3e9)):
        found = beyond(peak(measured), phase({"trainer_weights": 10e9, "activations": 10e9}, "logprob"))
        assert found == pytest.approx(others)
