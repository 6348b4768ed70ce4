"""The rate of an instance out of benchmark runs: the right run, with what it holds and what is doubtful about it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.errors import InputError
from rlsize.estimates.bench_rates import benchmark_rates, joined
from rlsize.facts.benchmark_result import BenchmarkResult
from rlsize.facts.rates import Rates

NOW = "2026-03-02T10:15:00+00:00"


def run(concurrency: float | None = 64, rate: float | None = 6400.5, **fields: Any) -> BenchmarkResult:
    """A run of 200 s with ten turns of the batch, of which nothing is doubtful but the sharing of prompts."""
    requests = 10.0 * (concurrency or 64.0)
    known = {
        "source": f"c{concurrency}",
        "tool": "vllm bench serve",
        "model": "m",
        "requests": requests,
        "failed_requests": 0.0,
        "duration_seconds": 200.0,
        "prompt_tokens": 200.0 * requests,
        "response_tokens": None if rate is None else 200.0 * rate,
        "response_tokens_per_second": rate,
        "concurrency": concurrency,
        "sent_at_once": True,
        "holds_ramp": True,
        "holds_tail": True,
    }
    return BenchmarkResult(**{**known, **fields})


def rates(*runs: BenchmarkResult, concurrency: float | None = None, **given: Any) -> Rates:
    """What these runs say of an instance."""
    return benchmark_rates(runs, concurrency, given.pop("gpus", None), NOW, "observe", **given)


def found(*runs: BenchmarkResult, **given: Any) -> tuple[float, bool]:
    """The rate and whether it is a lower bound."""
    rate = rates(*runs, **given).instance_tokens_per_second
    assert rate is not None
    return rate.mean, rate.lower_bound


LEVELS = (run(16, 2400.5), run(32, 4100.5), run(64, 4200.5), run(128, 3900.5))


def test_the_best_rate_counts_where_no_concurrency_is_asked_for() -> None:
    """More in flight may give less: the engine throws samples out."""
    assert found(*LEVELS) == (4200.5, False)
    assert not [doubt for doubt in rates(*LEVELS).doubts if "flight" in doubt]


def test_the_rate_at_the_asked_concurrency_counts() -> None:
    """Not the best one."""
    assert found(*LEVELS, concurrency=32) == (4100.5, False)


def test_the_nearest_concurrency_is_not_taken_silently() -> None:
    """The list of those that were run is told."""
    with pytest.raises(
        InputError, match=r"no run had 48 requests in flight(.|\n)*16, 32, 64, 128, no known limit \(1\)"
    ):
        rates(*LEVELS, run(None, 5000.5), concurrency=48)


def test_repeats_are_averaged_with_their_error() -> None:
    """Two runs of 6,000.5 and 6,400.5: a standard deviation of 282.8 over the root of two."""
    tokens = 1_280_100.0
    slower, faster = run(rate=6000.5, response_tokens=tokens), run(rate=6400.5, response_tokens=tokens)
    rate = rates(slower, faster).instance_tokens_per_second
    assert rate is not None
    assert rate.mean == 6200.5
    assert rate.standard_error == pytest.approx(200.0)
    assert "mean of 2 runs" in rate.why
    far = rates(faster, replace(slower, response_tokens_per_second=3000.5)).doubts
    assert "the 2 runs range from 3,000 to 6,400 tok/s; the rate is their mean" in far


def test_the_same_file_twice_is_one_run() -> None:
    """A copy is no repeat, so it says nothing about the scatter."""
    rate = rates(run(), run(source="copy")).instance_tokens_per_second
    assert rate is not None
    assert (rate.mean, rate.standard_error) == (6400.5, None)


def test_runs_of_other_lengths_at_one_concurrency_must_be_told_apart() -> None:
    """Which one is meant is open, and the messages name both."""
    long = run(rate=3000.5, response_tokens=2_000_000.0, source="long")
    with pytest.raises(InputError, match=r"2 runs had 64 requests in flight and differ.*c64.*long"):
        rates(run(), long, concurrency=64)
    assert found(run(), long) == (6400.5, False)
    assert any("the runs differ in lengths" in doubt for doubt in rates(run(), long).doubts)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"failed_requests": 2.0}, "2 requests failed"),
        ({"request_rate": 3.5, "sent_at_once": False}, "requests were sent at 3.5/s and 3.2/s were served"),
        ({"sent_at_once": None}, "does not say how requests were sent"),
        ({"cut_short": "the run was cancelled"}, "the run was cancelled"),
    ],
)
def test_a_run_that_was_held_back_gives_a_lower_bound(fields: dict[str, Any], reason: str) -> None:
    """What it was asked for, not what it can do; the reason stands with the rate and among the doubts."""
    result = rates(run(**fields))
    rate = result.instance_tokens_per_second
    assert rate is not None
    assert rate.lower_bound
    assert reason in rate.why
    assert any(doubt.startswith("the rate is a lower bound") and reason in doubt for doubt in result.doubts)


def test_a_run_holds_its_ramp_and_its_tail_and_nothing_else() -> None:
    """It is counted from the first request to the last response, against one instance, without weight syncs."""
    assert rates(run()).includes == ["ramp", "tail"]
    assert rates(run(holds_ramp=False)).includes == ["tail"]


def test_equal_lengths_have_no_long_tail() -> None:
    """Listed, or told by a mean that is a whole number over many requests."""
    for fields in ({"response_lengths": (2000.0,) * 640}, {"response_tokens": 640 * 2000.0}):
        result = rates(run(**fields))
        assert result.includes == ["ramp"]
        assert any("2,000 tokens long" in doubt for doubt in result.doubts)
    assert rates(run(response_tokens=640 * 2000.0, response_cv=0.4)).includes == ["ramp", "tail"]
    assert rates(run(response_cv=0.0)).includes == ["ramp"]


def test_few_turns_of_the_batch_are_told() -> None:
    """Two of them are mostly filling and draining."""
    assert any("turn the batch over 2 times" in doubt for doubt in rates(run(requests=128.0)).doubts)
    assert not any("turn the batch over" in doubt for doubt in rates(run()).doubts)


def test_one_load_or_a_rate_that_still_rises_may_not_be_the_best() -> None:
    """Nobody has seen the plateau."""
    assert any("all that was tried" in doubt for doubt in rates(run()).doubts)
    assert any("still rises at 32" in doubt for doubt in rates(*LEVELS[:2]).doubts)
    assert not any("rises" in doubt or "tried" in doubt for doubt in rates(*LEVELS[:2], concurrency=32).doubts)


def test_a_rate_of_all_tokens_is_converted_only_where_the_split_is_known() -> None:
    """By the file's own counts, or by the caller's share; without either it is refused with what to do."""
    total = run(None, None, total_tokens_per_second=1000.0)
    with pytest.raises(InputError, match=r"prompt and response tokens together(.|\n)*output tokens/s"):
        rates(total)
    assert found(replace(total, prompt_tokens=100.0, response_tokens=300.0)) == (750.0, False)
    assert found(total, prompt_share=0.2) == (800.0, False)


def test_what_a_benchmark_printed_belongs_to_its_file() -> None:
    """The text has the rate of responses, the file the model and the prompts; another run stays another run."""
    text = run(None, 12500.0, tool="t", model="", requests=None, total_tokens_per_second=12750.0, source="b.txt")
    data = run(None, None, tool="t", requests=100.0, total_tokens_per_second=12750.004, source="a.json")
    for both in ([text, data], [data, text]):
        (one,) = joined(both)
        assert (one.source, one.response_tokens_per_second, one.model, one.requests) == (
            "a.json and b.txt",
            12500.0,
            "m",
            100.0,
        )
    assert len(joined([text, replace(data, total_tokens_per_second=12760.0)])) == 2


def test_prompts_of_unknown_samples_leave_the_length_open() -> None:
    """With --n the same number of prompts makes more responses."""
    seen = rates(run(requests_are_prompts=True))
    assert seen.conditions.mean_response_tokens is None
    assert (
        rates(run(requests_are_prompts=True, samples_per_request=8.0)).conditions.mean_response_tokens
        == 6400.5 * 200 / 640 / 8
    )
    assert any("counts prompts" in doubt for doubt in seen.doubts)


def test_conditions_are_those_of_the_run() -> None:
    """Lengths, spread of the lengths, parallelism and when it ran."""
    lengths = (100.0, 200.0, 300.0, 400.0)
    seen = rates(run(response_lengths=lengths, tensor_parallel=4.0, measured_at="2026-01-01T00:00:00"), gpus=4.0)
    assert (seen.conditions.mean_response_tokens, seen.conditions.max_response_tokens) == (250.0, 400.0)
    assert seen.conditions.response_cv == pytest.approx(129.0994 / 250)
    assert (seen.conditions.tensor_parallel, seen.gpus_per_instance, seen.window_seconds) == (4, 4.0, 200.0)
    assert seen.measured_at == "2026-01-01T00:00:00"
    assert rates(run()).measured_at == NOW
    assert rates(run(response_lengths=(100.0, 400.0, 400.0))).conditions.response_cv is None


def test_fewer_gpus_than_the_file_says_are_doubted() -> None:
    """The file names its parallelism, and the caller something else."""
    assert any(
        "says that 4 GPUs served, and 2 are given" in d for d in rates(run(tensor_parallel=4.0), gpus=2.0).doubts
    )


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"trainer_tokens_per_second": 1e4}, "trainer's benchmark"),
        ({"batch_seconds": 2.0}, "seconds of a batch"),
        ({"response_tokens_per_second": 0.0}, "no response token"),
    ],
)
def test_runs_without_a_rate_are_refused_alone_and_told_beside_others(fields: dict[str, Any], match: str) -> None:
    """Each with what it is."""
    without = run(None, None, **fields)
    with pytest.raises(InputError, match=match):
        rates(without)
    assert any("is not used" in doubt and match in doubt for doubt in rates(run(), without).doubts)


def test_two_models_have_no_common_rate() -> None:
    """Nor is the faster one the answer."""
    with pytest.raises(InputError, match=r"2 models \(m, other\)"):
        rates(run(), run(model="other"))
    with pytest.raises(InputError, match="no run"):
        rates()


@given(st.lists(st.tuples(st.sampled_from([8.0, 16.0, 32.0, None]), st.floats(1.0, 1e5)), min_size=1, max_size=6))
def test_the_rate_lies_among_those_of_the_runs(levels: list[tuple[float | None, float]]) -> None:
    """Whatever the runs: no more than the best, and the best alone where its load was tried once."""
    mean, _ = found(*(run(each, rate, response_tokens=None) for each, rate in levels))
    best = max(rate for _, rate in levels)
    assert min(rate for _, rate in levels) <= mean <= best * (1 + 1e-12)
    if len({each for each, _ in levels}) == len(levels):
        assert mean == best
