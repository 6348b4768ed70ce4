"""What inference engines take where nobody says otherwise: share of the memory, sizes of a step, blocks."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Budget = Literal["profiled", "static", "leftover"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineDefaults:
    """
    Defaults of one engine.

    Args:
        name: The engine, in lower case.
        budget: How it sizes its KV cache: from a profiling run, as a share fixed in advance, or from what is left.
        memory_fraction: Share of the memory that it plans with; 0 where it sets aside what a step needs. [1]
        block_tokens: Tokens of a cache block. [token]
        large_memory: Memory from which it takes the larger sizes. [B]
        batched_tokens: Most tokens of a step, on small and on large GPUs. [token]
        sequences: Most sequences of a step, on small and on large GPUs. [1]
        aside: Bytes set aside whatever the step, and for each of its tokens. [B]
        counted_small: GPUs that it takes for small whatever their memory.
        source: Who says so.
    """

    name: str
    budget: Budget
    memory_fraction: float
    block_tokens: int
    large_memory: float
    batched_tokens: tuple[int, int]
    sequences: tuple[int, int]
    source: str
    aside: tuple[float, float] = (0.0, 0.0)
    counted_small: str = ""


_LARGE = 70.0 * 2**30
_ENGINES = (
    EngineDefaults(
        name="vllm",
        budget="profiled",
        memory_fraction=0.9,
        block_tokens=16,
        large_memory=_LARGE,
        batched_tokens=(2048, 8192),
        sequences=(256, 1024),
        counted_small="a100",
        source="vLLM 0.32, engine/arg_utils.py (API server; an A100 counts as small); 0.9 until it became 0.92",
    ),
    EngineDefaults(
        name="sglang",
        budget="static",
        memory_fraction=0.0,
        block_tokens=1,
        large_memory=60.0 * 2**30,
        batched_tokens=(2048, 8192),
        sequences=(1024, 2048),
        aside=(1.125 * 2**30, 1.5 * 2**20),
        source="SGLang, server_args.py, as recalled: mem_fraction_static from prefill chunk and CUDA graphs",
    ),
    EngineDefaults(
        name="tensorrt-llm",
        budget="leftover",
        memory_fraction=0.9,
        block_tokens=32,
        large_memory=_LARGE,
        batched_tokens=(8192, 8192),
        sequences=(2048, 2048),
        source="TensorRT-LLM, as recalled: 0.9 of the free memory, max_num_tokens 8192, max_batch_size 2048",
    ),
)

ENGINES: Mapping[str, EngineDefaults] = MappingProxyType({engine.name: engine for engine in _ENGINES})
"""The engines by name."""

_ALIASES = (("vllm", "vllm"), ("sgl", "sglang"), ("tensorrt", "tensorrt-llm"), ("trt", "tensorrt-llm"))


def engine_defaults(name: str) -> EngineDefaults:
    """The defaults of an engine by how its name reads; those of vLLM where it is none of them."""
    text = name.lower()
    return ENGINES[next((engine for part, engine in _ALIASES if part in text), "vllm")]
