"""vLLM's metrics page as counters: every name it ever had, and every way a page can be damaged."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.errors import InputError
from rlsize.facts.counters import EngineCounters, Totals
from rlsize.readers.metrics import exposition
from rlsize.readers.metrics.kinds import text_engines
from rlsize.readers.metrics.pages import page_counters, saved_page
from rlsize.readers.metrics.vllm import MOST_ENGINES

PAGES = Path(__file__).parents[1] / "data" / "vllm_metrics"
PAGE = (PAGES / "engine_first.prom").read_text(encoding="utf-8")
TOKENS = 'vllm:generation_tokens_total{engine="0",model_name="m"} 5.0\n'


def counters(name: str) -> EngineCounters:
    """The only engine of a saved page."""
    (found,) = saved_page(str(PAGES / name))
    return found


def fault(text: str | bytes) -> str:
    """What is said about a page that cannot be read."""
    content = text.encode() if isinstance(text, str) else text
    with pytest.raises(InputError) as caught:
        page_counters(content, "engine-0:8000")
    (only,) = caught.value.faults
    assert only.where.startswith("engine-0:8000")
    assert only.todo
    return f"{only.where}: {only.what}"


def test_todays_page_is_read_whole() -> None:
    """Every field of a page of today's vLLM is found, each under its own key."""
    found = counters("engine_first.prom")
    assert found.generation_tokens == 1_000_000
    assert found.model == "my-org/policy-7b"
    assert (found.engine, found.rank) == ("vllm", "0")
    assert (found.requests_running, found.requests_waiting, found.requests_waiting_for_capacity) == (100, 7, 7)
    assert (found.prompt_tokens, found.computed_prompt_tokens) == (320_000, 80_000)
    assert (found.prefix_cache_queries, found.prefix_cache_hits) == (320_000, 240_000)
    assert (found.preemptions, found.finished_requests) == (3, 800)
    assert found.response_tokens == Totals(sum=960_000, count=800)
    assert found.samples_per_request == Totals(sum=800, count=100)
    assert found.started_at == 1.7e9
    assert found.keys["generation_tokens"] == "vllm:generation_tokens_total"


def test_iteration_tokens_is_a_histogram_despite_its_name() -> None:
    """`iteration_tokens_total` gives engine steps (its count) and computed tokens (its sum)."""
    assert counters("engine_first.prom").step_tokens == Totals(sum=1_080_000, count=10_000)


def test_a_sync_is_its_start_its_updates_and_its_finish() -> None:
    """Syncs are counted by their finish, as one may send many updates; `init` is no sync."""
    found = counters("engine_first.prom")
    assert found.weight_syncs == 5
    assert found.weight_sync_seconds == pytest.approx(0.5 + 40.0 + 2.5)


def test_the_cache_configuration_is_read_from_labels() -> None:
    """KV tokens are the label that states them, else blocks times block size; a label may say None."""
    found = counters("engine_first.prom")
    assert (found.block_size, found.kv_cache_tokens, found.prefix_caching) == (16, 320_000, True)
    stated = PAGE.replace('block_size="16"', 'block_size="16",kv_cache_size_tokens="319999"')
    assert text_engines(stated, "x")[0].kv_cache_tokens == 319_999
    unset = PAGE.replace('block_size="16"', 'block_size="None"')
    assert text_engines(unset, "x")[0].kv_cache_tokens is None


def test_each_data_parallel_rank_is_an_engine() -> None:
    """A page with two ranks gives two engines; what the page states once (syncs) belongs to both."""
    first, second = saved_page(str(PAGES / "two_ranks.prom"))
    assert (first.rank, second.rank) == ("0", "1")
    assert (first.generation_tokens, second.generation_tokens) == (1_000_000, 900_000)
    assert (second.requests_waiting, second.requests_waiting_for_capacity) == (2, 0)
    assert first.weight_syncs == second.weight_syncs == 5


@pytest.mark.parametrize("name", ["legacy_names.prom", "without_rank.prom", "underscores_without_total.prom"])
def test_other_names_give_the_same_numbers(name: str) -> None:
    """Older names, no rank, and Ray's underscores without `_total` say the same as today's page."""
    today, other = counters("engine_first.prom"), counters(name)
    for field in ("generation_tokens", "prefix_cache_hits", "preemptions", "kv_cache_usage_fraction", "step_tokens"):
        assert getattr(other, field) == getattr(today, field), field
    assert other.inter_token_seconds == today.inter_token_seconds


def test_two_workers_on_a_page_of_ray_are_two_engines() -> None:
    """Ray's own page tells processes that call themselves engine 0 both by their WorkerId alone."""
    first, second = saved_page(str(PAGES / "ray_two_workers.prom"))
    assert first.rank != second.rank
    assert {one.rank.partition("=")[0] for one in (first, second)} == {"WorkerId"}
    for one in (first, second):
        assert (one.generation_tokens, one.requests_running, one.finished_requests) == (900, 7, 9)
        assert one.response_tokens == Totals(sum=450, count=9)


def test_an_older_name_beside_todays_is_not_added() -> None:
    """A page that shows a counter under its old and its new name counts it once."""
    old = 'vllm:gpu_prefix_cache_hits_total{engine="0",model_name="my-org/policy-7b"} 240000.0\n'
    assert text_engines(PAGE + old, "x")[0].prefix_cache_hits == 240_000


def test_openmetrics_is_read() -> None:
    """The OpenMetrics form, with its end mark, timestamps and no line break behind it, is a whole page."""
    text = f"# TYPE vllm:generation_tokens counter\n{TOKENS.rstrip()} 1700000000\n# EOF"
    assert text_engines(text, "x")[0].generation_tokens == 5


def test_replicas_under_one_rank_are_told_apart() -> None:
    """Where a gathering page adds a label, two engines of the same rank stay two."""
    text = "".join(
        f'vllm:{metric}{{engine="0",pod="{pod}"}} {value}\n'
        for pod, tokens in (("a", 5), ("b", 7))
        for metric, value in (("generation_tokens_total", tokens), ("num_requests_running", 1))
    )
    found = text_engines(text, "x")
    assert [(entry.rank, entry.generation_tokens, entry.requests_running) for entry in found] == [
        ("pod=a", 5, 1),
        ("pod=b", 7, 1),
    ]


def test_a_series_of_nobody_is_not_guessed() -> None:
    """A counter without the rank, on a page of two ranks, is given to neither."""
    text = TOKENS + TOKENS.replace('"0"', '"1"') + 'vllm:num_preemptions_total{model_name="m"} 9\n'
    assert [entry.preemptions for entry in text_engines(text, "x")] == [None, None]


def test_labels_cannot_drive_a_terminal() -> None:
    """A model name with an escape sequence is shown without it."""
    text = 'vllm:generation_tokens_total{model_name="\x1b[31mred"} 1\n'
    assert text_engines(text, "x")[0].model == "?[31mred"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        (" \n\n", "is empty"),
        ("<!DOCTYPE html>\n<html></html>\n", "is an HTML page"),
        ('{"detail": "Not Found"}', "is JSON"),
        ("hello\n", "engine-0:8000:1: is not a metrics page"),
        (b"\xff\xfe\x00", "is not UTF-8 text (byte 0)"),
        (b"# a\0b\n", "holds NUL characters"),
        (TOKENS[:-5], "was cut: it ends in the middle of line 1"),
        ("# HELP a b\n" + TOKENS + TOKENS, "stands twice with the same labels, first on line 2"),
        (TOKENS.replace("5.0", "NaN"), "vllm:generation_tokens_total is nan"),
        (TOKENS.replace("5.0", "+Inf"), "is inf"),
        (TOKENS.replace("5.0", "-1"), "is -1, which no engine can count"),
        (TOKENS.replace("5.0", "1e30"), "is 1e+30"),
        (TOKENS.replace("5.0", "9" * 5000), "is inf"),
        (TOKENS.replace("5.0", "many"), "cannot be read"),
        (TOKENS.replace('"0"', '"0'), "cannot be read"),
        ("sglang:num_running_reqs 1\n", "generation_tokens_total; of SGLang it holds only sglang:num_r"),
        ("trtllm_e2e_request_latency_seconds_sum 1\n", "lacks generation_tokens_total; of TensorRT-LLM it holds only"),
        ("tgi_request_count 1\n", "is a page of TGI; TGI pages are not read"),
        ("node_load1 0.5\n", "holds no metrics of vLLM, SGLang and TensorRT-LLM, but node_load1"),
        ("vllm:num_requests_running 1\n", "lacks generation_tokens; of vLLM it holds only vllm:num_requests_running"),
        ("# nothing here\n", "but no series at all"),
    ],
)  # fmt: skip
def test_a_damaged_page_is_refused_with_its_reason(text: str | bytes, message: str) -> None:
    """Each kind of damage has its own message, which names the place."""
    assert message in fault(text)


def test_a_page_cut_anywhere_is_refused_or_read_as_far_as_it_goes() -> None:
    """Cut inside a line, a page is refused with the line it ends in; cut between lines, nothing is invented."""
    for cut in range(1, len(PAGE), 97):
        piece = PAGE[:cut]
        if piece.endswith("\n"):
            continue
        assert f"line {piece.count(chr(10)) + 1}" in fault(piece)


@pytest.mark.long
def test_a_page_of_a_hundred_thousand_series_is_bounded() -> None:
    """Series that nobody wants are skipped; too many engines, or too many wanted series, are refused."""
    unwanted = "".join(f'vllm:e2e_request_latency_seconds_bucket{{le="{index}"}} 1\n' for index in range(100_000))
    assert text_engines(unwanted + TOKENS, "x")[0].generation_tokens == 5
    engines = "".join(f'vllm:generation_tokens_total{{engine="{index}"}} 1\n' for index in range(MOST_ENGINES + 1))
    assert "engines; at most" in fault(engines)
    series = "".join(f'vllm:num_requests_running{{engine="{index}"}} 1\n' for index in range(100_000))
    assert "holds too many engine series" in fault(series)


def test_a_long_line_and_a_large_page_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """No line and no page can take more than a bounded share of memory and time."""
    assert "longer than" in fault('vllm:generation_tokens_total{engine="' + "x" * exposition.LONGEST_LINE + '"} 1\n')
    monkeypatch.setattr(exposition, "LARGEST_PAGE", 100)
    assert "is larger than" in fault(PAGE)


@given(st.binary(max_size=300))
def test_junk_is_an_input_error(content: bytes) -> None:
    """Whatever bytes come, the answer is counters or an InputError."""
    with suppress(InputError):
        page_counters(content, "x")


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["vllm:generation_tokens_total", "vllm:request_success_total", "vllm:cache_config_info"]),
            st.text(alphabet='{}",=\\ \nabengine01 #', max_size=30),
            st.sampled_from(["1", "NaN", "1e999", "", "-0", "0x1", "1 2", "1_0"]),
        ),
        max_size=6,
    )
)  # fmt: skip
def test_almost_pages_are_an_input_error(lines: list[tuple[str, str, str]]) -> None:
    """Lines that nearly are series give counters or an InputError, never anything else."""
    text = "".join(f"{name}{labels} {value}\n" for name, labels, value in lines)
    with suppress(InputError):
        page_counters(text.encode(), "x")
