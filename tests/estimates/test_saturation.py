"""When a rate is what an engine can do, and when it is only what it was asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rlsize.estimates.saturation import saturation
from rlsize.facts.counters import EngineCounters, Snapshot, Totals

Look = tuple[float, float, float | None]  # seconds, running, waiting


def looks(*moments: Look) -> list[Snapshot]:
    """Snapshots of an engine that generates 1,000 tokens a second."""
    return [
        Snapshot(
            seconds=seconds,
            counters=EngineCounters(
                instance="a",
                engine="vllm",
                generation_tokens=1000 * seconds,
                requests_running=running,
                requests_waiting=waiting,
            ),
        )
        for seconds, running, waiting in moments
    ]


def ends(
    *,
    waiting: tuple[float, float] = (5, 5),
    batch: float = 100,
    steps: float = 1000,
    tokens: float = 100_000,
    **last: Any,
) -> list[Snapshot]:
    """Two pages a minute apart, with what the engine did in between."""
    first = EngineCounters(
        instance="a",
        engine="vllm",
        generation_tokens=0,
        requests_running=batch,
        requests_waiting=waiting[0],
        step_tokens=Totals(sum=0, count=0),
    )
    done = {"generation_tokens": tokens, "requests_waiting": waiting[1], "step_tokens": Totals(sum=0, count=steps)}
    second = replace(first, **{**done, **last})
    return [Snapshot(seconds=0, counters=first), Snapshot(seconds=60, counters=second)]


def test_waiting_throughout_is_saturated() -> None:
    """An engine with requests waiting at every look was saturated all the time."""
    found = saturation(looks(*((5.0 * index, 64, 3) for index in range(61))))
    assert found.fraction == 1.0
    assert found.enough
    assert "requests waited at 61 of 61 moments" in found.why


def test_a_constant_batch_is_no_plateau() -> None:
    """An engine held back by its queue runs at a constant batch with nothing waiting: not saturated."""
    found = saturation(looks(*((5.0 * index, 64, 0) for index in range(61))))
    assert found.fraction == 0.0
    assert not found.enough


def test_a_few_chance_waits_make_no_plateau() -> None:
    """Requests that wait a moment for their prefill do not turn a constant partial batch into a full one."""
    found = saturation(looks(*((5.0 * index, 64, 2 if index % 5 == 0 else 0) for index in range(61))))
    assert found.fraction == 0.0


def test_the_plateau_of_waiting_moments_counts_the_others() -> None:
    """Where requests wait at most looks, a look at the same batch without waiting is full too; one at half is not."""
    at_plateau = looks(*((5.0 * index, 64, 0 if index % 4 == 3 else 2) for index in range(61)))
    assert saturation(at_plateau).fraction == 1.0
    at_half = looks(*((5.0 * index, 32, 0) if index % 4 == 3 else (5.0 * index, 64, 2) for index in range(61)))
    assert saturation(at_half).fraction == pytest.approx(0.5)


def test_the_callers_limit_is_a_plateau() -> None:
    """With the engine's limit on running requests known, a batch within 5 % of it is full without anything waiting."""
    snapshots = looks(*((5.0 * index, 250, 0) for index in range(5)))
    assert saturation(snapshots, largest_batch=256).fraction == 1.0
    assert saturation(snapshots, largest_batch=512).fraction == 0.0


def test_only_waiting_for_capacity_counts() -> None:
    """Requests deferred for another reason (LoRA, KV transfer) do not show that the engine was full."""
    snapshots = [
        replace(snapshot, counters=replace(snapshot.counters, requests_waiting_for_capacity=0))
        for snapshot in looks(*((5.0 * index, 64, 7) for index in range(5)))
    ]
    assert saturation(snapshots).fraction == 0.0


def test_a_page_without_a_queue_says_nothing() -> None:
    """Where the page does not state how many wait, saturation is unknown, which is not enough."""
    found = saturation(looks((0, 64, None), (5, 64, None), (10, 64, None)))
    assert found.fraction is None
    assert not found.enough
    assert "does not say how many requests wait" in found.why


def test_half_a_window_is_half_saturated() -> None:
    """The share is of time, not of looks."""
    found = saturation(looks((0, 64, 5), (5, 64, 5), (10, 64, 5), (15, 20, 0), (20, 20, 0)))
    assert found.fraction == pytest.approx(0.5)
    assert "saturated for 50 % of the window" in found.why


def test_a_long_gap_between_looks_is_unknown() -> None:
    """Waiting at both ends of a minute in which nobody could look does not vouch for the minute."""
    found = saturation(looks((0, 64, 5), (5, 64, 5), (65, 64, 5), (70, 64, 5)))
    assert found.fraction is None
    assert "unknown for 86 % of the window" in found.why


def test_two_pages_with_waiting_and_full_steps_are_saturated() -> None:
    """Two pages show saturation if requests waited at both and the mean step ran nearly the batch of the ends."""
    found = saturation(ends(steps=1050))
    assert found.fraction == 1.0
    assert found.why == (
        "saturated: 5 and 5 requests waited at the two ends, and the mean of 1,050 steps ran 95.2 of 100.0 requests"
    )


@pytest.mark.parametrize(
    ("snapshots", "fraction", "why"),
    [
        (ends(steps=1200), None, "ran 83.3 of 100.0 requests"),
        (ends(waiting=(0, 0)), None, "unknown: 0 and 0 requests waited at the two ends, and nobody looked"),
        (ends(waiting=(4, 0)), None, "unknown: 4 and 0 requests waited"),
        (ends(steps=0), None, "do not say what ran in between"),
        (ends(step_tokens=None), None, "do not say what ran in between"),
        (ends(requests_waiting=None), None, "does not say how many"),
    ],
)  # fmt: skip
def test_two_pages_that_do_not_show_it_leave_it_open(
    snapshots: list[Snapshot], fraction: float | None, why: str
) -> None:
    """Partial steps or a queue at one end leave saturation unknown, and so does an empty queue: work comes and goes."""
    found = saturation(snapshots)
    assert found.fraction == fraction
    assert why in found.why


def test_a_queue_at_one_end_is_told_as_it_is() -> None:
    """Somebody looked while requests waited: that nobody looked in between is said only where none did."""
    assert saturation(ends(waiting=(4, 0))).why == "unknown: 4 and 0 requests waited at the two ends"


def test_speculation_does_not_fill_a_batch() -> None:
    """Tokens that speculation added to a step are not taken for samples in it."""
    assert saturation(ends(tokens=200_000, accepted_draft_tokens=100_000)).fraction == 1.0
    assert saturation(ends(tokens=100_000, accepted_draft_tokens=50_000)).fraction is None


def test_standing_still_between_two_bursts_is_seen() -> None:
    """Full steps that fill a third of the time do not make a saturated minute; the time between tokens tells."""
    snapshots = ends(inter_token_seconds=Totals(sum=99_000 * 0.02, count=99_000))
    snapshots[0] = replace(
        snapshots[0], counters=replace(snapshots[0].counters, inter_token_seconds=Totals(sum=0, count=0))
    )
    found = saturation(snapshots)
    assert found.fraction is None
    assert "steps filled 33 % of the time" in found.why
