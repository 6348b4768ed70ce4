"""Rows of RL steps: what is read, what is assumed in words, what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlsize.errors import Refused
from rlsize.facts.layout import Layout
from rlsize.facts.records import StepRecord
from rlsize.readers.profiles import Catalogue
from rlsize.readers.records.rl_step import matches, record

CATALOGUE = Catalogue()
ROW: dict[str, Any] = {
    "id": "a-1", "source_id": "a", "trust": "high", "model": "Qwen3-32B", "algorithm": "GRPO",
    "framework": "NeMo-RL v0.5 (Megatron-Core train, vLLM rollout)", "gpu": "H100-80GB-SXM", "gpus_total": 64,
    "placement": "disaggregated", "gpus_rollout": 32, "gpus_train": 32, "async_mode": "async", "staleness_steps": 1,
    "prompts_per_step": 64, "group_size": 32, "train_batch_samples": 512, "seq_len_max": 4096,
    "prompt_len_mean": 100, "response_len_mean": 3200, "rollout_parallel": "[TP,PP]=[4,1]",
    "train_parallel": "[TP,CP,EP,PP,VPP]=[4,1,1,4,n/a]", "precision": "BF16 generation and training",
    "step_time_s": 215, "tokens_per_s_per_gpu": 494,
}  # fmt: skip
RATE = "tokens_per_s_per_gpu"
ODD = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30) | st.lists(st.integers(), max_size=2)
)


def read(**changed: Any) -> StepRecord:
    """The row with some fields changed; None takes one away."""
    return record({key: value for key, value in (ROW | changed).items() if value is not None}, CATALOGUE)


def test_a_row_is_read_as_it_stands() -> None:
    """Mode, GPUs, layouts, samples and lengths."""
    found = read()
    assert (found.model, found.gpu, found.version) == ("qwen3-32b", "h100-sxm", "0.5")
    assert (found.placement, found.loop, found.max_staleness) == ("disaggregated", "async", 1)
    assert (found.rollout_gpus, found.trainer_gpus, found.gpus) == (32, 32, 64)
    assert (found.rollout, found.trainer) == (Layout(tensor=4), Layout(tensor=4, pipeline=4))
    assert (found.samples, found.group_size, found.train_batch) == (2048, 32, 512)
    assert (found.prompt_tokens, found.response_tokens, found.max_tokens) == (100, 3200, 4096)
    assert (found.engine, found.megatron, found.rollout_dtype, found.train_dtype) == ("vllm", True, "bf16", "bf16")
    assert found.measured == {"step_time_s": 215, "tokens_per_s_per_gpu": 494}
    assert found.assumed == ("log-probabilities of policy and reference each step",)


@pytest.mark.parametrize(
    ("changed", "field", "value"),
    [
        ({"async_mode": "one-step off-policy"}, "loop", "one-step-off"),
        ({"async_mode": "sync on-policy"}, "loop", "synchronous"),
        ({"placement": "colocated"}, "rollout_gpus", 64),
        ({"placement": "colocated", "gpus_shared": 32}, "gpus", 32),
        ({"placement": "Colocate (hybrid engine)"}, "loop", "synchronous"),
        ({"framework": "verl 0.6 (FSDP train, SGLang rollout)"}, "engine", "sglang"),
        ({"framework": "verl 0.6 (FSDP train, SGLang rollout)"}, "megatron", False),
        ({"framework": "verl 0.6"}, "megatron", False),
        ({"framework": "verl 0.6 (vLLM + Megatron)"}, "megatron", True),
        ({"framework": "slime 0.1"}, "megatron", True),
        ({"framework": "Optimized DSChat (Hybrid Engine)"}, "megatron", False),
        ({"framework": "NeMo-RL v0.5", "train_backend": "FSDP2 (DTensor)"}, "megatron", False),
        ({"precision": "FP8 generation, BF16 training"}, "rollout_dtype", "fp8"),
        ({"precision": "FP8 generation, BF16 training"}, "train_dtype", "bf16"),
        ({"prompt_len_mean": None}, "prompt_tokens", 120),
        ({"group_size": None, "samples_per_step": 1024}, "group_size", 16),
        ({"gpu_memory_utilization": 0.7}, "memory_fraction", 0.7),
        ({"algorithm": "PPO"}, "passes", ("old_logprob", "reference", "reward", "critic")),
        ({"algorithm": "DAPO"}, "passes", ("old_logprob",)),  # it has no KL term
        ({"passes": ["reference", "tea"]}, "passes", ("reference",)),
            ({"updates_per_step": 8, "train_batch_samples": None}, "train_batch", 256),
            ({"ref_model": "32B teacher (Our-Qwen2.5-32B), frozen"}, "reference", "qwen2.5-32b"),
            ({"ref_model": "somebody's"}, "reference", ""),
            ({"model": "Qwen/Qwen3.5-4B"}, "model", "qwen3.5-9b@4B"),
            ({"model": "MoE 61.0B-A5.0B"}, "model", "glm-4.5-air@61B-A5B"),
            ({"rollout_engine": "HF generate"}, "synced", False),
            ({"framework": "Optimized DSChat (Hybrid Engine)"}, "graphs", False),
            ({"micro_batch": "dynamic, 10,144 tokens per GPU"}, "micro_batch_tokens", 10144),
            ({"micro_batch": "dynamic, 3000 tokens (actor), 4096/8192 (log-prob)"}, "forward_micro_batch_tokens", 4096),
            ({"micro_batch": "2 per device"}, "micro_batch_tokens", 6600),
            ({"micro_batch": "4096 tokens", "train_parallel": "ulysses SP=4"}, "micro_batch_tokens", 16384),
            ({"offload": "param+optimizer"}, "offload", ("optimizer", "params")),
            ({"offload": "off (ref params offloaded)"}, "offload", ()),
            ({"lora": "rank 64"}, "lora", True),
            ({"algorithm": "DAPO", "prompts_per_step": None}, "samples", 8192),  # its recipe
            ({"framework": "verl (FSDP2)", "async_mode": "fully async, partial rollout"}, "passes", ()),
            ({"rollout_engine": "vLLM, eager"}, "graphs", False),
            ({"step_time_s": "unknown", "generation_time_s": 90}, "measured", {"generation_time_s": 90, RATE: 494}),
    ],
)  # fmt: skip
def test_spellings_are_understood(changed: dict[str, Any], field: str, value: Any) -> None:
    """Modes, placements, engines, number types; what is missing has a stated stand-in."""
    assert getattr(read(**changed), field) == value


def test_a_stated_rate_says_how_long_prompts_are() -> None:
    """Tokens per second x step x GPUs holds prompts and responses; the responses are known."""
    changed = {"prompt_len_mean": None, "response_len_mean": None, "seq_len_mean": 3200, "consistency_ratio": 1.03}
    assert read(**changed).prompt_tokens == pytest.approx(96)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"step_time_s": None, "tokens_per_s_per_gpu": 5}, "states no time of a step or of a phase"),
        ({"gpu": None}, "names no GPU"),
        ({"gpus_rollout": None}, "does not say how its GPUs are split"),
        ({"placement": "colocated", "gpus_total": None}, "states no number of GPUs"),
        ({"prompts_per_step": 1e10}, "states no samples of a step"),
        ({"response_len_mean": -1}, "states no mean length"),
        ({"model": "no such model"}, "no such model"),
        (
            {"prompt_len_mean": None, "response_len_mean": None, "seq_len_mean": 3200, "consistency_ratio": 1.4},
            "contradicts itself",
        ),
    ],
)
def test_rows_that_lack_something_are_refused(changed: dict[str, Any], reason: str) -> None:
    """With the reason, in a line."""
    with pytest.raises(Refused, match=reason) as refused:
        read(**changed)
    assert "\n" not in str(refused.value)


def test_what_nobody_states_is_assumed_and_makes_the_step_unsure() -> None:
    """A mean length by its cap, and by the model's context where the cap is longer; samples of a usual step."""
    capped = {"response_len_mean": None, "response_len_max": 4096}
    assert read(**capped).response_tokens == pytest.approx(1470)
    longer = read(**capped | {"response_len_max": 1e6})
    assert longer.response_tokens == pytest.approx(1470 * 10**0.6)
    bare = read(response_len_mean=None, seq_len_max=None, prompts_per_step=None)
    assert (bare.response_tokens, bare.samples) == (1024, 1024)
    assert 0 == read().unsure < longer.unsure < bare.unsure
    assert len(bare.assumed) == len(read().assumed) + 2


def test_rows_are_recognised_by_their_fields() -> None:
    """A placement, or the time of a step; not a row of another class."""
    assert matches({"placement": "colocated"})
    assert matches({"step_time_s": 3})
    assert not matches({"ttft_ms": 3, "model": "x"})


@settings(max_examples=200)
@given(st.dictionaries(st.sampled_from(sorted(ROW)), ODD, max_size=6))
def test_odd_values_are_read_or_refused(changed: dict[str, Any]) -> None:
    """No field breaks the reader, whatever stands in it."""
    try:
        found = record(ROW | changed, CATALOGUE)
    except Refused as reason:
        assert str(reason)
    else:
        assert found.rollout_gpus > 0
        assert found.samples > 0
        assert found.response_tokens > 0
