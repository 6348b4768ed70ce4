"""Pages of SGLang and TensorRT-LLM as they are seen by `observe`: ranks, priorities, what is counted when."""

from __future__ import annotations

import pytest

from rlsize.facts.counters import Buckets, EngineCounters, Totals
from rlsize.readers.metrics.pages import page_counters

MODEL = 'model_name="policy"'


def only(*lines: str) -> EngineCounters:
    """The only engine of a page."""
    (found,) = page_counters(("\n".join(lines) + "\n").encode(), "e")
    return found


def scheduler(name: str, value: float, **labels: str) -> str:
    """A line that a SGLang scheduler writes."""
    own = {"engine_type": "unified", "pp_rank": "0", "tp_rank": "0", **labels}
    return f"sglang:{name}{{{MODEL}," + ",".join(f'{key}="{text}"' for key, text in own.items()) + f"}} {value}"


def test_data_parallel_ranks_add_up_whatever_their_tensor_rank() -> None:
    """Under data-parallel attention each of them has a tensor rank of its own; the share of the cache is a mean."""
    found = only(
        *(
            scheduler("realtime_tokens_total", 1000, mode="decode", tp_rank=rank, dp_rank=rank, moe_ep_rank=rank)
            for rank in "0123"
        ),
        *(scheduler("num_running_reqs", 10, tp_rank=rank, dp_rank=rank) for rank in "0123"),
        *(
            scheduler("token_usage", usage, tp_rank=rank, dp_rank=rank)
            for rank, usage in zip("01", (0.2, 0.6), strict=True)
        ),
    )
    assert (found.generation_tokens, found.requests_running, found.kv_cache_usage_fraction) == (4000, 40, 0.4)


def test_ranks_of_one_engine_and_priorities_count_once() -> None:
    """Where all schedulers tell, they tell the same; with priorities the total stands beside its parts."""
    found = only(
        *(
            scheduler("realtime_tokens_total", 1000, mode="decode", tp_rank=tp, pp_rank=pp)
            for tp in "10"
            for pp in "10"
        ),
        *(scheduler("num_queue_reqs", 7, priority=priority) for priority in ("", "1", "2")),
    )
    assert (found.generation_tokens, found.requests_waiting) == (1000, 7)


def test_effective_prefill_tokens_tell_the_hits() -> None:
    """What a retracted sample prefills a second time is no hit; all modes together are what was asked for."""
    found = only(
        scheduler("realtime_tokens_total", 5, mode="decode"),
        scheduler("realtime_tokens_total", 300, mode="prefill_compute"),
        scheduler("realtime_tokens_total", 900, mode="prefill_cache"),
        scheduler("prefill_effective_tokens_total", 200, mode="input"),
        scheduler("prefill_effective_tokens_total", 500, mode="device_hit"),
        scheduler("prefill_effective_tokens_total", 100, mode="host_hit"),
        scheduler("num_retracted_requests_total", 3),
    )
    assert (found.prefix_cache_queries, found.prefix_cache_hits, found.preemptions) == (800, 600, 3)
    assert found.keys["prefix_cache_hits"] == "sglang:prefill_effective_tokens_total"


def test_an_older_sglang_counts_at_the_end_of_a_request() -> None:
    """Tokens of streamed and other requests add up; no cached tokens yet is no hit; the lengths have their buckets."""
    found = only(
        f'sglang:generation_tokens_total{{{MODEL},is_streaming="true"}} 400',
        f'sglang:generation_tokens_total{{{MODEL},is_streaming="false"}} 600',
        f"sglang:prompt_tokens_total{{{MODEL}}} 50",
        f'sglang:generation_tokens_histogram_bucket{{{MODEL},le="100.0"}} 2',
        f'sglang:generation_tokens_histogram_bucket{{{MODEL},le="1e+03"}} 5',
        f'sglang:generation_tokens_histogram_bucket{{{MODEL},le="+Inf"}} 6',
        f"sglang:generation_tokens_histogram_sum{{{MODEL}}} 1000",
        f"sglang:generation_tokens_histogram_count{{{MODEL}}} 6",
    )
    assert (found.generation_tokens, found.at_finish, found.prefix_cache_hits) == (1000, True, 0)
    assert found.response_tokens == Totals(sum=1000, count=6)
    assert found.response_buckets == Buckets(bounds=(100.0, 1000.0), counts=(2, 5, 6))


def test_tensorrt_llm_tells_its_gpus_and_counts_at_the_end() -> None:
    """GPUs are tensor times pipeline ranks, the cache is blocks times their tokens."""
    labels = f'{{engine_type="trtllm",{MODEL}}}'
    found = only(
        f"trtllm_generation_tokens_total{labels} 4000",
        f"trtllm_prompt_tokens_total{labels} 900",
        f"trtllm_prompt_cached_tokens_total{labels} 600",
        *(
            f'trtllm_request_success_total{{engine_type="trtllm",finished_reason="{why}",{MODEL}}} {count}'
            for why, count in (("stop", 7), ("length", 2))
        ),
        f"trtllm_num_requests_running{labels} 12",
        f"trtllm_num_requests_waiting{labels} 1",
        f"trtllm_kv_cache_max_blocks{labels} 100",
        f"trtllm_kv_cache_tokens_per_block{labels} 32",
        f'trtllm_parallel_config_info{{engine_type="trtllm",{MODEL},tp_size="4",pp_size="2",gpus_per_node="8"}} 1',
    )
    assert (found.engine, found.at_finish, found.gpus, found.kv_cache_tokens) == ("tensorrt-llm", True, 8, 3200)
    assert (found.finished_requests, found.length_ended, found.prefix_cache_queries) == (9, 2, 900)


@pytest.mark.parametrize("lines", [('le="x"', 'le="+Inf"'), ('le="1"', 'le="2"'), ('le="1"',)])
def test_buckets_that_make_no_sense_are_no_buckets(lines: tuple[str, ...]) -> None:
    """A bound that is no number, or none without an end, leaves the other numbers alone."""
    buckets = [f"vllm:request_generation_tokens_bucket{{{line}}} 1" for line in lines]
    found = only("vllm:generation_tokens_total 5", *buckets)
    assert (found.generation_tokens, found.response_buckets) == (5, None)
