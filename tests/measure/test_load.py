"""The load: concurrency held by groups that leave, prompts that repeat within a group only, streams counted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rlsize.measure.workers.load import Group, Phase, Tale, needed
from rlsize.measure.workers.rollout_online import ServerGoneError, Stream


def phase(**changes: Any) -> Phase:
    """A phase of two groups of four, refilled with groups of four."""
    command: dict[str, Any] = {
        "phase": "p", "groups": [["a", 8, 4, 5], ["b", 8, 4, 5]], "refill": [["r", 8, 4, 5], ["s", 8, 4, 5]],
        "concurrency": 8, "page_seconds": 1.0,
    }  # fmt: skip
    return Phase(command | changes)


def test_a_phase_with_refill_holds_its_concurrency() -> None:
    """A group is let in as soon as another has left, for ever, and its prompt is a fresh one each time."""
    running = phase()
    current = list(running.admit())
    keys = [group.key for group in current]
    for _ in range(6):
        assert running.in_flight == 8
        assert not list(running.admit())
        running.ended(current.pop(0))
        fresh = list(running.admit())
        current += fresh
        keys += [group.key for group in fresh]
    assert keys == ["a", "b", "r.0", "s.0", "r.1", "s.1", "r.2", "s.2"]
    assert running.endless


def test_a_finite_batch_is_sent_at_once_whatever_its_size() -> None:
    """Under a barrier everything starts together."""
    batch = phase(refill=[], concurrency=1)
    assert len(list(batch.admit())) == 2
    assert batch.asked == 2 * 4 * 5
    assert not batch.endless


def test_a_group_larger_than_the_concurrency_runs_alone() -> None:
    """Nothing waits for room that can never come."""
    assert len(list(phase(concurrency=1).admit())) == 1


def test_samples_of_a_group_share_their_prompt_and_nothing_else() -> None:
    """Aged samples of one group have one prompt in front and tokens of their own behind."""
    first, second = (Group("k", 40, 1, 9, 20, salt) for salt in ("0", "1"))
    ids = [group.token_ids(1024) for group in (first, second)]
    assert ids[0][:40] == ids[1][:40] == Group("k", 40, 4, 9).token_ids(1024)
    assert ids[0][40:] != ids[1][40:]
    assert Group("other", 40, 4, 9).token_ids(1024) != ids[0][:40]
    assert all(10 <= token < 1024 for token in ids[0])
    assert len(ids[0]) == 60


def test_only_lines_that_are_read_are_handed_on() -> None:
    """Buckets and helpers cost time beside the load."""
    page = (
        '# HELP x\nvllm:generation_tokens_total{engine="0"} 5.0\nvllm:request_generation_tokens_bucket{le="1"} 2\n'
        'vllm:generation_tokens_created{engine="0"} 1\nvllm:num_requests_running{engine="0"} 3\npython_info{a="b"} 1\n'
    )  # fmt: skip
    assert needed(page).splitlines() == [
        'vllm:generation_tokens_total{engine="0"} 5.0',
        'vllm:num_requests_running{engine="0"} 3',
    ]


def test_the_turns_of_a_trace_follow_with_what_was_made() -> None:
    """Each sample goes on alone, behind its own tokens; the concurrency stays, and the last turn is told as such."""
    entry = ["k", 3, 2, 2, 0, "", [[11, 12, 13]], [[[21], 5], [4, 6]], 1]
    running = phase(groups=[entry], refill=[["r", 8, 4, 5]], concurrency=4)
    tale = Tale(running)
    [first] = [group for group in running.admit() if group.parts]
    assert first.cache_salt == "1."
    assert first.token_ids(1024) == [11, 12, 13]
    second = running.ended(first, [[1, 2], [3, 4]])
    assert [group.token_ids(1024) for group in second] == [[11, 12, 13, 1, 2, 21], [11, 12, 13, 3, 4, 21]]
    assert (running.in_flight, len(running.sent), running.asked) == (2, 2, 4 + 10)
    [third] = running.ended(second[1], [[5] * 5])
    assert third.token_ids(1024)[:12] == [11, 12, 13, 3, 4, 21, *[5] * 5, *third.token_ids(1024)[11:12]]
    assert len(third.token_ids(1024)) == 15  # four that are drawn
    assert third.token_ids(1024) == third.token_ids(1024)
    tale.finish(second[0], 1, 5, None)
    tale.finish(third, 1, 6, None)
    assert [told[-1] for told in tale._finished] == [False, True]
    assert running.ended(third, [[6] * 6]) == []


def streamed(*events: Any, samples: int = 2, tokens: int = 3, cut: int = 7) -> Tale:
    """What a tale was told of a stream that arrives in small pieces."""
    tale = Tale(phase())
    stream = Stream(Group("k", 8, samples, tokens), tale)
    content = "".join(
        f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n" for event in events
    ).encode()
    for start in range(0, len(content), cut):
        stream.take(content[start : start + cut])
    stream.close()
    return tale


def chunk(index: int, finish: str | None = None) -> dict[str, Any]:
    """One token of one sample."""
    return {"choices": [{"index": index, "text": "w", "finish_reason": finish}], "usage": None}


def total(tokens: int) -> dict[str, Any]:
    """What a server says at the end."""
    return {"choices": [], "usage": {"completion_tokens": tokens, "prompt_tokens": 8}}


WHOLE = [*(chunk(i % 2) for i in range(4)), chunk(0, "length"), chunk(1, "length")]


def test_a_stream_is_counted_however_it_is_cut() -> None:
    """Six tokens of two samples, each of which ends once."""
    for cut in (1, 7, 100_000):
        assert streamed(*WHOLE, total(6), "[DONE]", cut=cut).streamed == 6


@pytest.mark.parametrize(
    ("events", "told"),
    [
        ((*WHOLE[:5], "[DONE]"), "after 1 of 2 samples"),
        ((*WHOLE, total(4), "[DONE]"), "generated 4 tokens where 6 were asked for"),
        (({"error": {"message": "engine died"}},), "engine died"),
        (("x" * 2_000_000,), "far more than was asked for"),
    ],
)
def test_a_stream_that_is_not_what_was_asked_for_is_refused(events: tuple[Any, ...], told: str) -> None:
    """Too few samples, too few tokens, an error in the middle, or an endless one."""
    with pytest.raises(ServerGoneError, match=told):
        streamed(*events, cut=100_000)


def test_a_phase_ends_by_order() -> None:
    """A finite batch ends when it is done."""

    class Orders:
        halt = False

        def halted(self) -> bool:
            return self.halt

    orders: Any = Orders()
    assert not phase().over(orders)
    orders.halt = True
    assert phase().over(orders)
    assert not phase(refill=[]).over(orders)


def test_what_keeps_a_stream_alive_is_no_token() -> None:
    """Comments and empty events are passed over; the first token opens the samples of its request."""
    assert streamed(": ping", {}, {"choices": []}, *WHOLE, total(6)).streamed == 6
    tale = Tale(phase())
    stream = Stream(Group("k", 8, 4, 5), tale)
    stream.take(b': ping\n\ndata: {"choices": []}\n\n')
    assert (tale.streamed, tale.opened) == (0, None)
    stream.take(b'data: {"choices": [{"text": "w"}]}\n\n')
    assert (tale.streamed, tale.opened) == (1, 4)
