"""SGLang's page, constructed from the names of its metrics collector: no SGLang was at hand to serve a real one."""

from __future__ import annotations

import pytest

from rlsize.commands.measure.rollout import scrape_as
from rlsize.errors import InputError
from rlsize.measure.workers.load import needed
from rlsize.readers.metrics.kinds import text_engines

TOKENS = "realtime_tokens_total"
LABELS = 'model_name="m",tp_rank="{rank}"'


def page(*, realtime: bool = True) -> str:
    """A server of two tensor-parallel ranks, both of which tell."""
    counts = {"generation_tokens_total": 500, "num_requests_total": 7}
    lines = ["# HELP x", *(f'sglang:{name}{{model_name="m"}} {count}' for name, count in counts.items())]
    for rank in (0, 1):
        labels = LABELS.format(rank=rank)
        lines += [f"sglang:num_running_reqs{{{labels}}} 12", f"sglang:num_queue_reqs{{{labels}}} 3"]
        lines += [f"sglang:token_usage{{{labels}}} 0.25", f"sglang:max_total_num_tokens{{{labels}}} 40000"]
        if realtime:
            modes = {"decode": 900, "prefill_compute": 100, "prefill_cache": 300}
            lines += [f'sglang:{TOKENS}{{{labels},mode="{mode}"}} {count}' for mode, count in modes.items()]
    return "\n".join(lines) + "\n"


def test_tokens_are_those_of_each_step_and_ranks_count_once() -> None:
    """Realtime tokens grow while requests run; both tensor-parallel ranks see the same ones."""
    (found,) = text_engines(page(), "e")
    assert (found.generation_tokens, found.requests_running, found.requests_waiting) == (900, 12, 3)
    assert (found.prompt_tokens, found.computed_prompt_tokens, found.prefix_cache_hits) == (400, 100, 300)
    assert (found.kv_cache_tokens, found.kv_cache_usage_fraction, found.finished_requests) == (40_000, 0.25, 7)
    assert found.step_tokens is None


def test_an_older_page_has_finished_tokens_only() -> None:
    """They are taken, and the key says which."""
    (found,) = text_engines(page(realtime=False), "e")
    assert found.generation_tokens == 500
    assert found.keys["generation_tokens"] == "sglang:generation_tokens_total"
    assert found.prefix_cache_hits is None


def test_a_client_reads_what_it_keeps_of_the_page() -> None:
    """The lines that a worker hands on are enough, and another engine's page is not taken for one of SGLang."""
    scrape = scrape_as("e")
    found = scrape(needed(page()))
    assert [found] == text_engines(page(), "e")
    assert scrape("tgi_request_count 1\n") is None
    with pytest.raises(InputError, match=r"lacks realtime_tokens_total .* of SGLang it holds only"):
        text_engines('sglang:num_running_reqs{tp_rank="0"} 1\n', "e")
