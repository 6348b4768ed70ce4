"""What a rollout instance holds: a copy of the weights, and a cache for each sample in flight."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlsize.equations import kv_cache, memory, memory_fit
from rlsize.estimates.figures import apply, total
from rlsize.facts.figure import Figure, absent
from rlsize.facts.quantisation import BYTES_PER_PARAM, WIDTHS

if TYPE_CHECKING:
    from rlsize.estimates.memory_shape import MemoryShape

_FLAG = "--model"
_WIDE = BYTES_PER_PARAM["bf16"]


def _width(dtype: str) -> float:
    """Bytes of a weight; block formats of published checkpoints come with their scales."""
    return BYTES_PER_PARAM[dtype] if dtype in BYTES_PER_PARAM else WIDTHS[dtype]


QUANTISED = frozenset({"fp8", "int8", "fp4", "int4", "nf4"})
"""Formats of weight matrices only: embeddings, output head and norms stay in bf16."""


def rollout_weights(
    key: str, shape: MemoryShape, dtype: Figure, tensor: Figure | int = 1, pipeline: Figure | int = 1
) -> Figure:
    """
    Weights of one rollout instance, or of one of its GPUs.

    Args:
        key: The result's name.
        shape: The policy.
        dtype: Number format of its matrices.
        tensor: Tensor-parallel ranks to divide by. [1]
        pipeline: Pipeline stages to divide by. [1]
    """
    width = replace(
        dtype, key="bytes_per_param", value=_width(str(dtype.value)), source=f"{dtype.value}: {dtype.source}"
    )
    quantised = dtype.value in QUANTISED
    alike = Figure(key="unquantised_params", value=0, provenance="default", source="all alike")
    unquantised = shape.wide_params if quantised else alike
    return apply(
        key,
        memory.inference_weight_bytes,
        params=_share(shape.params, tensor, pipeline),
        bytes_per_param=width,
        unquantised_params=_share(unquantised, tensor, pipeline),
        bytes_per_unquantised_param=_WIDE if quantised else width,
    )


def _share(params: Figure, tensor: Figure | int, pipeline: Figure | int) -> Figure:
    if tensor == 1 and pipeline == 1:
        return params
    return apply(
        params.key,
        memory.params_per_gpu,
        dense_params=params,
        routed_params=0,
        tensor_parallel=tensor,
        pipeline_parallel=pipeline,
        expert_parallel=1,
        expert_tensor_parallel=1,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleCache:
    """
    What one sample keeps on its instance, by how tensor parallelism divides it.

    Args:
        attention: Keys and values. [B/sample]
        index: Indexer keys, one for all heads. [B/sample]
        state: Recurrent and convolution states. [B/sample]
    """

    attention: Figure
    index: Figure
    state: Figure

    @property
    def parts(self) -> tuple[Figure, Figure, Figure]:
        """All three."""
        return self.attention, self.index, self.state

    @property
    def whole(self) -> Figure:
        """The cache of a sample over all GPUs of its instance; absent where a part is."""
        return _sum("sample_kv_cache_bytes", self.parts)

    def per_gpu(self, shape: MemoryShape, tensor: Figure, pipeline: Figure) -> Figure:
        """The cache of a sample on each GPU of its instance; what cannot be divided is held by all."""
        heads = (shape.kv_heads, 1, shape.state_heads)
        shares = [
            apply(part.key, kv_cache.kv_bytes_per_gpu, kv_bytes=part, tensor_parallel=tensor, kv_heads=count)
            for part, count in zip(self.parts, heads, strict=True)
        ]
        key = "sample_kv_cache_bytes_per_gpu"
        return apply(key, memory_fit.stage_bytes, held_bytes=_sum(key, shares), pipeline_parallel=pipeline)


def _sum(key: str, parts: tuple[Figure, ...] | list[Figure]) -> Figure:
    lacking = next((part for part in parts if not part.known), None)
    return absent(key, lacking.missing) if lacking else total(key, [part for part in parts if part.number])


def sample_cache(shape: MemoryShape, context_tokens: Figure) -> SampleCache:
    """
    The cache of a sample in flight.

    Args:
        shape: The policy.
        context_tokens: Tokens of a sample, prompt and mean live response. [token]
    """
    size = shape.size
    if size is None:
        lacking = _FLAG if context_tokens.known else f"{_FLAG}, {context_tokens.missing}"
        nothing = absent("sample_kv_cache_bytes", lacking)
        return SampleCache(attention=nothing, index=nothing, state=nothing)

    def cached(key: str, per_token: Figure, sliding: Figure | float = 0, window: Figure | float = 0) -> Figure:
        return apply(
            key,
            kv_cache.sequence_kv_bytes,
            kv_bytes_per_token=per_token,
            sliding_bytes_per_token=sliding,
            window=window,
            tokens=context_tokens,
            state_bytes=0,
        )

    return SampleCache(
        attention=cached(
            "attention_kv_bytes", size.kv_bytes_per_token, size.sliding_bytes_per_token, size.window_tokens
        ),
        index=cached("index_kv_bytes", size.index_bytes_per_token),
        state=total("state_bytes", [size.recurrent_state_bytes, size.convolution_state_bytes]),
    )
