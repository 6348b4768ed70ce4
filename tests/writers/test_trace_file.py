"""A history as trace events, as ui.perfetto.dev takes them."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise
from typing import Any

import pytest

from rlsize.simulator.ledger import Event, Span
from rlsize.simulator.setting import MODES, TroubleSetting
from rlsize.writers.history_file import trace_text

TROUBLE = TroubleSetting(
    losses_per_hour=10.0, restart_seconds=30.0, failures_per_hour=40.0, trainer_restart_seconds=9.0
)
ROUNDED = 0.0011  # microseconds by which rounding may move an end


def refused(text: str) -> float:
    """What JSON has no word for."""
    raise AssertionError(text)


def trace(spans: list[Span], events: list[Event]) -> list[dict[str, Any]]:
    """The events of a trace."""
    found: list[dict[str, Any]] = json.loads(trace_text(spans, events), parse_constant=refused)["traceEvents"]
    return found


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("trouble", [None, TROUBLE], ids=["calm", "trouble"])
def test_slices_are_the_spans_and_never_overlap(mode: str, trouble: TroubleSetting | None, simulated: Any) -> None:
    """Each span is one slice in microseconds, and those of one thread follow each other."""
    run = simulated(4, mode, 4, trouble)
    found = trace(run.spans, run.events)
    slices = [entry for entry in found if entry["ph"] == "X"]
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in found if e["name"] == "thread_name"}
    shown = sorted((names[e["pid"], e["tid"]], e["name"], e["ts"], e["ts"] + e["dur"]) for e in slices)
    noted = sorted((span.track, span.name, span.start * 1e6, span.end * 1e6) for span in run.spans)
    assert [one[:2] for one in shown] == [one[:2] for one in noted]
    for one, other in zip(shown, noted, strict=True):
        assert one[2:] == pytest.approx(other[2:], abs=ROUNDED)
    threads = defaultdict(list)
    for entry in slices:
        assert entry["dur"] >= 0.0
        threads[entry["pid"], entry["tid"]].append(entry)
    for own in threads.values():
        own.sort(key=lambda entry: (entry["ts"], entry["dur"]))
        for before, after in pairwise(own):
            assert before["ts"] + before["dur"] <= after["ts"] + ROUNDED


def test_processes_and_threads_have_names(simulated: Any) -> None:
    """Trainer, weight sync and rollout fleet are processes; instances are threads in the order of their numbers."""
    run = simulated(12, "sync")
    found = trace(run.spans, run.events)
    processes = {e["pid"]: e["args"]["name"] for e in found if e["name"] == "process_name"}
    assert list(processes.values()) == ["trainer", "weight sync", "rollout fleet"]
    threads = {e["tid"]: e["args"]["name"] for e in found if e["name"] == "thread_name" and e["pid"] == 3}
    assert [threads[tid] for tid in sorted(threads)] == [f"instance {number}" for number in range(12)]
    used = {(e["pid"], e["tid"]) for e in found if e["ph"] in {"X", "i"}}
    assert used <= {(e["pid"], e["tid"]) for e in found if e["name"] == "thread_name"}


def test_counters_follow_batches_and_the_backlog(simulated: Any) -> None:
    """At every moment the counter of an instance is the batch of the run under way, and 0 between runs."""
    run = simulated(3, "sync")
    found = trace(run.spans, run.events)
    counter = [(e["ts"], e["args"]["samples"]) for e in found if e["ph"] == "C" and e["name"] == "batch of instance 1"]
    assert counter == sorted(counter)
    assert counter[-1][1] == 0
    own = [span for span in run.spans if span.track == "instance 1"]
    for span in own:
        middle = (span.start + span.end) / 2 * 1e6
        assert [samples for at, samples in counter if at <= middle][-1] == span.batch
    backlog = [e["args"]["samples"] for e in found if e["ph"] == "C" and e["name"] == "backlog"]
    assert backlog == list(run.ledger.columns["backlog_samples"])


def test_losses_and_steps_are_instants(simulated: Any) -> None:
    """What happens stands where it happens; groups, of which there are many, do not."""
    run = simulated(4, "async", 4, TROUBLE)
    instants = [e for e in trace(run.spans, run.events) if e["ph"] == "i"]
    losses = [event for event in run.events if event.name == "instance lost"]
    assert losses
    assert sum(e["name"] == "instance lost" for e in instants) == len(losses)
    assert sum(e["name"] == "step" for e in instants) == 4
    assert {e["name"] for e in instants} == {"instance lost", "step"}
    assert all(e["s"] == "t" for e in instants)


def test_what_has_no_finite_time_is_left_out() -> None:
    """NaN and infinity are no JSON; an empty history is still a trace."""
    bad = [Span("trainer", "update", 0.0, float("inf")), Span("instance 0", "batch 1", float("nan"), 1.0, 1)]
    events = [Event(float("nan"), "step"), Event(1.0, "step", {"version": 1, "backlog": float("inf")})]
    timed = [entry for entry in trace(bad, events) if entry["ph"] != "M"]
    assert [(entry["ph"], entry["args"]) for entry in timed] == [("i", {"version": 1})]
    assert all(entry["ph"] == "M" for entry in trace([], []))
