"""The largest micro batch, and what binds."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

Run = Callable[..., Any]
ASK = ("memory", "--model", "llama3.1-8b", "--gpu", "h100", "--fsdp", "8", "--no-reference")


def test_the_largest_micro_batch_just_fits(rlsize: Run) -> None:
    """A micro batch of that many tokens fits, and one a per cent larger does not."""
    most = rlsize(*ASK, "--json").results["max_micro_batch_tokens"]
    assert most > 1000
    fits, over = (rlsize(*ASK, "--micro-batch-tokens", str(int(most * factor)), "--json") for factor in (1.0, 1.01))
    assert fits.results["trainer_fits"]
    assert not over.results["trainer_fits"]


def test_it_does_not_depend_on_the_asked_micro_batch(rlsize: Run) -> None:
    """Counted activations are given back before the room is measured."""
    asked, unasked = (
        rlsize(*ASK, *more, "--json").results["max_micro_batch_tokens"] for more in ((), ("--micro-batch-tokens", "8k"))
    )
    assert asked == pytest.approx(unasked, rel=1e-3)


def test_recomputation_makes_room(rlsize: Run) -> None:
    """Full recomputation leaves room for more tokens than none."""
    full, none = (
        rlsize(*ASK, "--micro-batch-tokens", "1k", "--recompute", name, "--json").results["max_micro_batch_tokens"]
        for name in ("full", "none")
    )
    assert full > 1.3 * none


def test_a_70b_trainer_does_not_fit_on_eight_gpus(rlsize: Run) -> None:
    """141 GB of states on each of 8, activations apart; the answer says what binds and what would fit."""
    ran = rlsize("memory", "--model", "llama3.1-70b", "--gpu", "h100", "--trainer-gpus", "8", "--no-reference")
    said = " ".join(ran.stdout.split())
    assert ran.code == 1
    assert "The trainer does not fit on h100-sxm: each of its 8 GPUs holds" in said
    assert "most of it the training state; first fits: 88 GPUs as FSDP88" in said
    assert "What binds: the trainer by the training state" in said


def test_an_engine_at_start_up_is_predicted_with_a_band(rlsize: Run) -> None:
    """Tokens of the KV cache that vLLM would log, beside the bill."""
    ran = rlsize("memory", "--model", "qwen3-32b", "--gpu", "h200", "--rollout-tensor-parallel", "2", "--json")
    document = json.loads(ran.stdout)
    tokens = document["results"]["engine_kv_cache_tokens"]
    low, high = document["explain"]["engine_kv_cache_tokens"]["band"]
    assert low < tokens < high
    assert 0.6e6 < tokens < 0.8e6


def test_an_engine_without_room_is_told(rlsize: Run) -> None:
    """70B in bf16 on two GPUs of 80 GB leaves nothing once the engine has profiled its largest step."""
    ran = rlsize("memory", "--model", "llama3.1-70b", "--gpu", "h100", "--rollout-tensor-parallel", "2")
    assert "not expected to find room for its KV cache" in " ".join(ran.stdout.split())
