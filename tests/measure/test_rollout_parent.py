"""Who drives engines: levels from the top, memory that runs out, engines that die or fall silent; on a stub."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rlsize.commands.measure.rollout import scrape_as
from rlsize.estimates.rollout_rate import level
from rlsize.measure import instances
from rlsize.measure.child import ChildDiedError
from rlsize.measure.instances import Instance, Launch, started
from rlsize.measure.rollout import RolloutPlan, Turn, measure_rollout, sweep

STUB = Path(__file__).with_name("engine_stub.py")
PLAN = RolloutPlan(
    prompts=2, group_size=4, prompt_tokens=16, mean=20.0, cv=0.0, cap=None, concurrencies=(4, 16, 64), seconds=6.0
)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[int], Instance]]:
    """Starts stubs that can run so many samples."""
    made: list[Instance] = []
    numbers = itertools.count()

    def starting(limit: int) -> Instance:
        folder = tmp_path / f"engine-{next(numbers)}"
        folder.mkdir()
        argv = [sys.executable, str(STUB), str(limit)]
        made.extend(started([Launch("stub", argv, folder, scrape_as("stub"))], 120.0))
        return made[-1]

    yield starting
    for instance in made:
        instance.child.end()


def quiet(*_: Any) -> None:
    """Nobody listens."""


@pytest.mark.long
def test_levels_run_from_the_top_and_the_batch_comes_last(start: Any) -> None:
    """The rate that sizes the fleet is measured first, should the rest be cut off."""
    told: list[str] = []
    record = measure_rollout([start(64)], PLAN, lambda text, _: told.append(text))
    begun = [text.partition(":")[0] for text in told if "\t" not in text]
    assert list(dict.fromkeys(begun)) == [
        "rollout, warming up", "rollout, 64 in flight", "rollout, 16 in flight", "rollout, 4 in flight",
        "rollout, one batch to its end",
    ]  # fmt: skip
    assert any(re.fullmatch(r"rollout, 64 in flight\t[\d,]+ tok/s, \d s left", text) for text in told)
    assert list(record.levels) == [64, 16, 4]
    assert record.batch
    assert not record.partial


@pytest.mark.long
def test_out_of_memory_steps_down_and_goes_on(start: Any) -> None:
    """The engine is started anew for the next level down, and the doubt says so."""
    instances, asked = [start(32)], []

    def restart(most: int) -> list[Instance]:
        asked.append(most)
        return [start(most)]

    record = measure_rollout(instances, PLAN, quiet, restart)
    assert asked == [16]
    assert list(record.levels) == [16, 4]
    assert record.limited_by == "memory"
    assert any("64 samples at once ran out of memory; 16 is the next" in doubt for doubt in record.doubts)
    assert record.batch


def test_out_of_memory_at_the_lowest_level_is_the_end(start: Any) -> None:
    """There is nothing to step down to."""
    with pytest.raises(ChildDiedError) as died:
        measure_rollout([start(2)], PLAN, quiet, lambda _: [start(2)])
    assert died.value.memory


@pytest.mark.long
def test_an_engine_that_dies_later_leaves_the_levels_before(start: Any) -> None:
    """What was recorded is kept and marked partial; a server is not started anew."""
    instance = start(64)

    def kill(text: str, _: float) -> None:
        if "4 in flight" in text and "64" not in text:
            instance.child._process.kill()

    record = measure_rollout([instance], PLAN, kill)
    assert set(record.levels) >= {64, 16}
    assert record.partial.startswith("stub: ")


@pytest.mark.long
def test_ctrl_c_keeps_the_levels_before(start: Any) -> None:
    """As an interrupt comes, so does the end."""

    def interrupt(text: str, _: float) -> None:
        if "16 in flight" in text:
            raise KeyboardInterrupt

    record = measure_rollout([start(64)], PLAN, interrupt)
    assert record.interrupted
    assert list(record.levels) == [64]


@pytest.mark.long
def test_a_ramp_is_never_the_rate(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of a level starts when its prompts are read: the rate is the full one, however long the fill took."""
    plain = measure_rollout([start(64)], replace(PLAN, concurrencies=(64,), batch=False, seconds=2.0), quiet)
    monkeypatch.setenv("STUB_FILL", "1100")  # the fill takes most of what a level is given
    told: list[str] = []
    slow = replace(PLAN, concurrencies=(64,), batch=False, seconds=2.0)
    filled = measure_rollout([start(64)], slow, lambda text, _: told.append(text))
    rates = [level(record.levels[64], record.work) for record in (plain, filled)]
    assert rates[0] is not None
    assert rates[1] is not None
    assert rates[1].tokens_per_second == pytest.approx(rates[0].tokens_per_second, rel=0.05)
    assert filled.levels[64][0].full > filled.levels[64][0].begun + 1.0  # type: ignore[operator]  # it was full
    assert next(text for text in told if "filling" in text) == "rollout, 64 in flight: filling with 1,008 tokens"


@pytest.mark.long
def test_instances_are_full_together(start: Any) -> None:
    """The clock starts when the last one is."""
    plan = replace(PLAN, concurrencies=(16,), batch=False, seconds=2.0)
    runs = measure_rollout([start(64), start(64)], plan, quiet).levels[16]
    assert len({run.full for run in runs}) == 1
    assert all(run.full >= max(one.begun for one in runs) for run in runs)  # type: ignore[operator]  # they were full


@pytest.mark.long
def test_a_level_that_never_fills_has_no_rate(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is given up after the whole time, with a doubt, and the next one comes."""
    monkeypatch.setenv("STUB_FILL", "200")
    plan = replace(PLAN, concurrencies=(4, 64), batch=False, seconds=1.5)
    record = measure_rollout([start(64)], plan, quiet)
    assert list(record.levels) == [4]
    assert any("64 in flight: not full after 2 s" in doubt for doubt in record.doubts)


@pytest.mark.long
def test_an_engine_that_makes_no_token_is_not_waited_for(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many pages it sends; the levels before are kept. One that is silent altogether says what it said last."""
    monkeypatch.setattr(instances, "TOKENLESS_SECONDS", 0.5)
    monkeypatch.setenv("STUB_HANG", f"level/{PLAN.seed}/16")
    record = measure_rollout([start(64)], PLAN, quiet)
    assert record.partial == "stub: made no token for 0 s (its pages still come)"
    assert 64 in record.levels
    instance = start(64)
    monkeypatch.setattr(instance.child, "tell", lambda _: None)  # the order is lost
    with pytest.raises(ChildDiedError, match="sends no page"):
        list(instances.phase([instance], [[["k", 1, 1, 1]]], [], 1, 1.0, "p"))


PAGE = 'vllm:generation_tokens_total{model_name="m",engine="0"} %d.0\n'


@pytest.mark.parametrize(
    ("texts", "counted"),
    [
        ((PAGE % 5000, PAGE % 5400, "", "half a pa"), [5000, 5400]),  # a server that dies between two looks
        (("", PAGE % 5000, PAGE % 5400), [0, 10, 20]),  # one whose first page was none of its own
    ],
)
def test_one_count_is_used_through_a_phase(texts: tuple[str, ...], counted: list[int]) -> None:
    """The engine's own or the client's, never the difference of one and the other."""
    notes = instances._Notes(SimpleNamespace(name="stub", scrape=scrape_as("stub")), 4, ())  # type: ignore[arg-type]  # all that is asked of it
    for second, text in enumerate(texts):
        page = {"event": "page", "seconds": second, "text": text, "streamed": 10 * second, "in_flight": 4}
        notes.take({**page, "finished": [(second, 1, 7)]})
    run = notes.run()
    assert [snapshot.counters.generation_tokens for snapshot in run.snapshots] == counted
    assert len(run.finished) == len(texts)


def test_a_trace_begins_in_the_turn_that_its_age_reaches() -> None:
    """What stands before that is drawn where it was generated, and counts as context; the turns behind it follow."""
    trace = (Turn([7, 8], 10), Turn(3, 20), Turn([9], 5))
    plan = replace(PLAN, traces=(trace, (Turn(4, 6),)))
    assert (plan.lengths(3), plan.longest(), plan.context()) == ((35, 6, 35), 35, 2 + 10 + 3 + 20 + 1 + 5)
    assert plan.group("k", 0, 1, 35) == ["k", 2, 1, 10, 0, "", [[7, 8]], [trace[1], trace[2]], 0]
    assert plan.group("k", 2, 1, 31, 4, "s") == ["k", 6, 1, 6, 0, "s", [[7, 8], 4], [trace[1], trace[2]], 1]
    assert plan.group("k", 0, 1, 25, 10)[1:8] == [15, 1, 20, 0, "", [[7, 8], 10, 3], [trace[2]]]
    assert plan.group("k", 0, 1, 1, 34)[1:8] == [2 + 10 + 3 + 20 + 1 + 4, 1, 1, 0, "", [[7, 8], 10, 3, 20, [9], 4], []]


@pytest.mark.parametrize(("limit", "group"), [(1, 8), (7, 8), (8, 8), (1000, 16)])
def test_a_sweep_holds_one_sample_and_the_limit(limit: int, group: int) -> None:
    """And nothing above it."""
    levels = sweep(limit, group, quick=False)
    assert levels[0] == 1
    assert levels[-1] == limit
    assert len(levels) <= 8
    assert max(sweep(limit, group, quick=True)) == limit
