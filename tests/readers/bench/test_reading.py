"""Result files of benchmarks: read to the right figures, whole or not at all, whatever was done to them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rlsize.errors import InputError
from rlsize.facts.benchmark_result import BenchmarkResult
from rlsize.readers.bench.reading import benchmark_results, read_benchmark
from rlsize.readers.bench.record import FORMATS, MOST_PARTS, MOST_RECORDS, recognised

DATA = Path(__file__).parent / "data"
EXPECTED: dict[str, list[dict[str, Any]]] = yaml.safe_load((DATA / "expected.yaml").read_text(encoding="utf-8"))
FORMAT = {
    "serve.json": "vllm-bench-serve",
    "serve_detailed.json": "vllm-bench-serve",
    "serve_appended.json": "vllm-bench-serve",
    "throughput.json": "vllm-bench-throughput",
    "throughput.txt": "vllm-bench-throughput",
    "latency.json": "vllm-bench-latency",
    "sglang_serving.jsonl": "sglang-bench-serving",
    "sglang_offline.jsonl": "sglang-bench-offline",
    "guidellm.json": "guidellm",
    "aiperf.json": "aiperf",
    "genai_perf.json": "aiperf",
    "stage_0_lifecycle_metrics.json": "inference-perf",
    "stage_0_prometheus_metrics.json": "inference-perf",
    "inferencex.json": "inferencex",
    "trtllm.txt": "trtllm-bench",
    "prime_rl.json": "prime-rl-bench",
}
PRINTED = {"throughput.txt", "trtllm.txt"}


def content(name: str) -> bytes:
    """A file of the data folder."""
    return (DATA / name).read_bytes()


def figures(result: BenchmarkResult) -> BenchmarkResult:
    """A run without what depends on where it stands and what stands beside it."""
    return replace(result, source="", keys={}, warnings=())


@pytest.mark.parametrize("name", EXPECTED)
def test_every_figure_is_the_one_worked_out_by_hand(name: str) -> None:
    """Each run of each file, against the table beside the files."""
    results = read_benchmark(str(DATA / name))
    assert len(results) == len(EXPECTED[name])
    for result, expected in zip(results, EXPECTED[name], strict=True):
        found = {key: getattr(result, key) for key in expected}
        assert found == {
            key: pytest.approx(tuple(value) if isinstance(value, list) else value)
            if isinstance(value, (int, float, list)) and not isinstance(value, bool)
            else value
            for key, value in expected.items()
        }


@pytest.mark.parametrize("name", EXPECTED)
def test_a_file_is_recognised_by_content_and_says_its_keys(name: str) -> None:
    """Its first bytes tell the tool, the named format gives the same runs, and each rate has the key behind it."""
    assert set(FORMAT) == set(EXPECTED)
    assert set(FORMAT.values()) == set(FORMATS)
    assert recognised(content(name)) == FORMAT[name]
    assert recognised(content("serve_detailed.json")[:400]) == "vllm-bench-serve"
    named = read_benchmark(str(DATA / name), FORMAT[name])
    assert named == read_benchmark(str(DATA / name))
    for result in named:
        for key in ("response_tokens_per_second", "total_tokens_per_second", "trainer_tokens_per_second", "requests"):
            assert (getattr(result, key) is not None) == (key in result.keys)


@pytest.mark.long(by_day=1)
@pytest.mark.parametrize("name", EXPECTED)
def test_a_file_cut_at_any_byte_gives_whole_runs_or_none(name: str) -> None:
    """A run that was cut is never used; lines that a benchmark prints are used whole or not at all."""
    whole = content(name)
    results = [figures(result) for result in benchmark_results(whole, name)]
    for cut in range(0, len(whole), 1 if len(whole) < 2000 else 7):
        try:
            found = [figures(result) for result in benchmark_results(whole[:cut], name)]
        except InputError as error:
            assert error.faults
            continue
        if name not in PRINTED:
            assert found == results[: len(found)]
            continue
        for key in ("response_tokens_per_second", "requests", "prompt_tokens", "response_tokens", "tensor_parallel"):
            assert getattr(found[0], key) in {None, getattr(results[0], key)}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_byte_order_mark_and_carriage_returns_change_nothing(name: str) -> None:
    """As files have them that went through Windows."""
    changed = b"\xef\xbb\xbf" + content(name).replace(b"\n", b"\r\n")
    assert benchmark_results(changed, name) == benchmark_results(content(name), name)


@given(
    name=st.sampled_from(sorted(EXPECTED)),
    at=st.floats(0, 1, exclude_max=True),
    put=st.binary(max_size=3) | st.sampled_from([b"-", b"1e999", b"null", b"[", b'"x"', b"NaN", b"true"]),
    gone=st.integers(0, 3),
)
def test_a_damaged_file_is_read_or_refused(name: str, at: float, put: bytes, gone: int) -> None:
    """Whatever stands in it: runs whose figures are numbers, or a fault that says something."""
    whole = content(name)
    place = int(at * len(whole))
    try:
        found = benchmark_results(whole[:place] + put + whole[place + gone :], name)
    except InputError as error:
        assert all(fault.what for fault in error.faults)
        return
    for result in found:
        for key in ("response_tokens_per_second", "requests", "duration_seconds", "concurrency", "request_rate"):
            value = getattr(result, key)
            assert value is None or 0 <= value < 1e16


ODD = ["null", "true", '"x"', "[]", "{}", "-1", "1e308", "1e999", "NaN", '""', '[1, "a"]', '{"a": 1}', '"inf"', "0"]


@given(name=st.sampled_from(sorted(set(EXPECTED) - PRINTED)), odd=st.sampled_from(ODD), at=st.floats(0, 1))
def test_a_value_of_another_kind_is_read_or_refused(name: str, odd: str, at: float) -> None:
    """Any value of a file replaced by something else, as another version of a tool may write it."""
    text = content(name).decode()
    values = list(re.finditer(r':\s*("[^"]*"|[-\w.]+)', text))
    value = values[round(at * (len(values) - 1))]
    try:
        found = benchmark_results((text[: value.start(1)] + odd + text[value.end(1) :]).encode(), name)
    except InputError as error:
        assert all(fault.what for fault in error.faults)
        return
    assert 1 <= len(found) <= len(EXPECTED[name])


@pytest.mark.parametrize(
    ("value", "read"),
    [("6400", 6400.0), (" 6.4e3 ", 6400.0), ("inf", None), (-1, None), (True, None), ("6400 tok/s", None), ([1], None)],
)
def test_a_rate_is_a_finite_number_quoted_or_not(value: Any, read: float | None) -> None:
    """What is no such number is refused, with the key."""
    data = json.loads(content("serve.json")) | {"output_throughput": value}
    if read is not None:
        assert benchmark_results(json.dumps(data).encode(), "f")[0].response_tokens_per_second == read
        return
    with pytest.raises(InputError, match=r"f: output_throughput.*is not a number"):
        benchmark_results(json.dumps(data).encode(), "f")


@pytest.mark.parametrize("number", ["1e400", "NaN", "Infinity", "9" * 400])
def test_numbers_that_json_takes_and_nobody_measures_are_refused(number: str) -> None:
    """Bare words, and numbers beyond all floats."""
    text = content("serve.json").decode().replace('"duration": 200.0', f'"duration": {number}')
    with pytest.raises(InputError, match=r"duration.*is not a number"):
        benchmark_results(text.encode(), "f")


def test_all_that_is_missing_is_told_at_once() -> None:
    """Every key without which there is no result."""
    data = json.loads(content("serve.json"))
    for key in ("duration", "output_throughput", "total_output_tokens"):
        del data[key]
    with pytest.raises(InputError) as caught:
        benchmark_results(json.dumps(data).encode(), "f")
    assert [fault.what.split()[-1] for fault in caught.value.faults] == [
        "duration",
        "total_output_tokens",
        "output_throughput",
    ]


def test_a_latency_that_is_none_is_left_out_with_a_warning() -> None:
    """It is only shown; the rate stands without it."""
    data = json.loads(content("serve.json")) | {"mean_itl_ms": float("nan")}
    result = benchmark_results(json.dumps(data).encode(), "f")[0]
    assert (result.seconds_per_token, result.response_tokens_per_second) == (None, 6400)
    assert "mean_itl_ms is nan, so it is left out" in result.warnings


def test_what_a_file_says_twice_and_differently_is_told() -> None:
    """The rate is not tokens over seconds."""
    data = json.loads(content("serve.json")) | {"output_throughput": 7040.0}
    assert "says 7,040.0 response tokens/s" in benchmark_results(json.dumps(data).encode(), "f")[0].warnings[0]


def test_a_mean_that_its_own_rate_contradicts_is_not_used() -> None:
    """The server's counters may reach back beyond the stage; 2,505 tokens a second in 20 requests are 125.25 each."""
    text = content("stage_0_prometheus_metrics.json").replace(b'"mean": 125.25', b'"mean": 367.0')
    result = benchmark_results(text, "f")[0]
    assert (result.mean_response_tokens, result.mean_prompt_tokens) == (None, 200)
    assert any("over that of requests is 125.25" in warning for warning in result.warnings)


def test_a_cut_file_says_how_far_it_came() -> None:
    """The last key that stands in it."""
    cut = content("throughput.json")[:120]
    with pytest.raises(InputError, match=r"was cut.*behind the key total_num_tokens"):
        benchmark_results(cut, "f")


def test_whole_lines_are_used_and_the_others_counted() -> None:
    """A line cut in the middle, one of something else, one with a key twice."""
    first, second = content("sglang_serving.jsonl").splitlines()
    lines = [first, second[:300], b'{"step": 3}', first.replace(b'"tag": null', b'"backend": "x"'), second]
    found = benchmark_results(b"\n".join(lines), "f")
    assert [result.request_rate for result in found] == [None, 3.5]
    assert found[0].warnings[-1].startswith("3 records were not used: f:2: was cut")
    assert "f:4: the key 'backend' stands twice" in found[0].warnings[-1]


def test_the_first_line_may_be_the_cut_one() -> None:
    """The runs behind it are whole."""
    first, second = content("sglang_serving.jsonl").splitlines()
    found = benchmark_results(first[:100] + b"\n" + second, "f")
    assert [result.source for result in found] == ["f:2"]


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"\0\1", "NUL"),
        (b"step:1 - perf/throughput:3.0", "is no benchmark's result"),
        (b'{"step": 1}\n{"step": 2}', "is no benchmark's result"),
        (b"[1, 2]", "is no benchmark's result"),
        (b'{"model_id": "a", "model_id": "b"}', "stands twice"),
        (b'{"a":' * 20_000, "nested too deeply"),
        (b"[" * (MOST_PARTS + 1), "no benchmark|lists and objects"),
        (b'{"a": [' + b"[]," * MOST_PARTS, "lists and objects"),
        (b'{"step": 1}\n' * (MOST_RECORDS + 1), "more than 1,000 runs"),
        (b'{"model_id": ' + b"9" * 5000 + b"}", "digits"),
    ],
)
def test_what_is_no_result_is_refused(text: bytes, match: str) -> None:
    """With a reason, and in bounded time and memory."""
    with pytest.raises(InputError, match=match):
        benchmark_results(text, "f")


def test_the_copy_for_a_dashboard_is_no_second_run() -> None:
    """It says so, and names the file to take."""
    with pytest.raises(InputError, match="same run once more"):
        read_benchmark(str(DATA / "throughput.pytorch.json"))


def test_the_printed_block_is_found_behind_a_long_log() -> None:
    """The engine's own log comes first, and progress bars on the same line."""
    log = b"INFO 03-02 10:15:00 [x.py:1] a line\n" * 4000 + b"Processed: 99%\rProcessed: 100%\r"
    assert benchmark_results(log + content("throughput.txt"), "f")[0].response_tokens_per_second == 12500


def test_an_old_rate_of_all_tokens_is_not_taken_for_responses() -> None:
    """Requests per second and mean lengths show what trtllm-bench counted."""
    text = content("trtllm.txt").replace(b"20010.0000", b"26010.0000")
    with pytest.raises(InputError, match="counts prompt tokens too"):
        benchmark_results(text, "f")


def test_an_unknown_format_is_told_with_those_that_are_known() -> None:
    """A word that nearly is one."""
    with pytest.raises(InputError, match="did you mean guidellm"):
        read_benchmark("x", "guide-llm")
