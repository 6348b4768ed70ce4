"""How something is spread over GPUs."""

from __future__ import annotations

from rlsize.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """
    How one replica is spread over GPUs.

    Args:
        tensor: Tensor-parallel ranks. [1]
        pipeline: Pipeline stages. [1]
        expert: Expert-parallel ranks. [1]
        data: Data-parallel ranks: of attention within one engine, or of a trainer. [1]
        context: Context-parallel ranks. [1]
    """

    tensor: int = 1
    pipeline: int = 1
    expert: int = 1
    data: int = 1
    context: int = 1
