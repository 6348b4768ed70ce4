"""An engine's own log: its rates added up to counters, whichever engine wrote it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlsize.errors import InputError
from rlsize.readers.metrics.engine_logs import engine_lines, engine_log

HEAD = "(APIServer pid=7) INFO "


def vllm(clock: str, rate: float, *, waiting: int = 3, rank: str = "Engine 000: ", more: str = "") -> str:
    """A line of vLLM; 200 prompt tokens per second are computed, four of five are found in the cache."""
    return (
        f"{HEAD}{clock} [loggers.py:273] {rank}Avg prompt throughput: 200.0 tokens/s, "
        f"Avg generation throughput: {rate} tokens/s, Running: 64 reqs, Waiting: {waiting} reqs{more}, "
        "GPU KV cache usage: 50.0%, Prefix cache hit rate: 80.0%\n"
    )


def write(folder: Path, *lines: str) -> str:
    """A log of these lines, between others."""
    path = folder / "engine.log"
    path.write_text("INFO starting\n" + "INFO 200 OK\n".join(lines), encoding="utf-8")
    return str(path)


def test_rates_are_added_up_over_their_intervals(tmp_path: Path) -> None:
    """By hand: 1000 and 2000 tok/s over ten seconds each, 200 computed of 1000 asked, 2 preemptions."""
    lines = (
        vllm("11-12 10:15:02", 9.0), vllm("11-12 10:15:12", 1000.0),
        vllm("11-12 10:15:22", 2000.0, more=", Preemptions: 2"),
    )  # fmt: skip
    found = engine_log(write(tmp_path, *lines))
    assert found.window == 20.0
    last = found.readings[0].snapshots[-1].counters
    assert (last.engine, last.rank, last.generation_tokens, last.preemptions) == ("vllm", "0", 30_000.0, 2.0)
    assert last.computed_prompt_tokens == 4_000.0
    assert last.prefix_cache_queries == pytest.approx(20_000.0)
    assert last.prefix_cache_hits == pytest.approx(16_000.0)
    assert (last.requests_running, last.requests_waiting, last.kv_cache_usage_fraction) == (64.0, 3.0, 0.5)


def test_ranks_are_engines_of_their_own(tmp_path: Path) -> None:
    """Two data-parallel ranks of vLLM; of SGLang's tensor ranks, the first speaks for all."""
    lines = [
        vllm(f"11-12 10:15:{10 * place:02}", 500.0, rank=f"Engine 00{rank}: ") for place in range(3) for rank in (0, 1)
    ]
    ranks = {one.counters.rank for one in engine_log(write(tmp_path, *lines)).readings[0].snapshots}
    assert ranks == {"0", "1"}
    decoded = [
        f"[2026-11-12 10:15:{2 * place:02} DP{dp} TP{tp}] Decode batch, #running-req: 56, #full token: 20224, "
        "full token usage: 0.25, cuda graph: True, gen throughput (token/s): 800.5, #queue-req: 4\n"
        for place in range(3) for dp in (0, 1) for tp in (0, 1)
    ]  # fmt: skip
    found = engine_log(write(tmp_path, *decoded)).readings[0].snapshots
    assert {(one.counters.engine, one.counters.rank) for one in found} == {("sglang", "0"), ("sglang", "1")}
    assert found[2].counters.generation_tokens == pytest.approx(4 * 800.5)
    assert (found[2].counters.requests_waiting, found[2].counters.kv_cache_usage_fraction) == (4.0, 0.25)


def test_a_silent_engine_was_idle(tmp_path: Path) -> None:
    """VLLM writes nothing while it is idle: the line after an hour stands for its own ten seconds."""
    clocks = ("10:00:00", "10:00:10", "10:00:20", "11:00:00")
    found = engine_log(write(tmp_path, *(vllm(f"11-12 {clock}", 100.0) for clock in clocks)))
    assert found.readings[0].snapshots[-1].counters.generation_tokens == 3_000.0


def test_a_new_year_is_no_step_back(tmp_path: Path) -> None:
    """The lines bear no year."""
    found = engine_log(write(tmp_path, vllm("12-31 23:59:55", 10.0), vllm("01-01 00:00:05", 10.0)))
    assert found.window == 10.0


def test_the_window_is_the_end_of_the_log(tmp_path: Path) -> None:
    """The last ten seconds of thirty."""
    lines = [vllm(f"11-12 10:15:{10 * place:02}", 100.0 * place) for place in range(4)]
    found = engine_log(write(tmp_path, *lines), window=10.0)
    assert found.window == 10.0
    assert found.readings[0].snapshots[-1].counters.generation_tokens == 3_000.0


def test_a_line_alone_or_damaged_is_no_rate(tmp_path: Path) -> None:
    """One line has no interval; the thirteenth month does not exist."""
    with pytest.raises(InputError, match="two whole lines"):
        engine_log(write(tmp_path, vllm("11-12 10:15:02", 9.0)))
    with pytest.raises(InputError, match="two whole lines"):
        engine_log(write(tmp_path, vllm("13-12 10:15:02", 9.0), vllm("11-12 10:15:12", 9.0)))


def test_a_window_is_the_end_of_a_log_whatever_lies_before(tmp_path: Path) -> None:
    """An engine that ended before has its last two lines; of a rate, so many must be kept."""
    early = [vllm(f"11-12 10:15:{second:02}", 500.0, rank="Engine 001: ") for second in range(0, 50, 10)]
    late = [vllm(f"11-12 11:{minute:02}:00", 1000.0) for minute in range(30)]
    found = engine_log(write(tmp_path, *early, *late), 300.0).readings[0].snapshots
    kept = [one.seconds for one in found if one.counters.rank == "0"]
    assert (len(kept), kept[-1] - kept[0]) == (6, 300.0)
    assert len(found) - len(kept) == 2


def test_what_many_engines_keep_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them together keep no more than one would, and each its newest."""
    monkeypatch.setattr("rlsize.readers.metrics.engine_logs.MOST_LINES", 8)
    lines = [
        vllm(f"11-12 10:{minute:02}:00", 500.0, rank=f"Engine 00{rank}: ") for minute in range(9) for rank in (0, 1)
    ]
    found = engine_log(write(tmp_path, *lines)).readings[0].snapshots
    assert len(found) == 8
    assert max(one.seconds for one in found) - min(one.seconds for one in found) == 180.0


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.integers(0, 1400), junk=st.binary(max_size=8))
def test_a_log_cut_or_spoilt_anywhere_uses_whole_lines_only(tmp_path: Path, cut: int, junk: bytes) -> None:
    """A line without its end is counted, and no rate is made of it."""
    lines = [vllm(f"11-12 10:15:{10 * place:02}", 1000.0) for place in range(5)]
    content = Path(write(tmp_path, *lines)).read_bytes()
    path = tmp_path / "cut.log"
    path.write_bytes(content[:cut] + junk)
    try:
        found = engine_log(str(path))
    except InputError:
        return
    assert engine_lines(str(path)) == 2
    for first, second in zip(found.readings[0].snapshots, found.readings[0].snapshots[1:], strict=False):
        grown = second.counters.generation_tokens - first.counters.generation_tokens
        assert grown == pytest.approx(1000.0 * (second.seconds - first.seconds))
