"""What a plan may try: degrees of parallelism, and GPUs that are offered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlsize.facts.figure import Figure, absent

if TYPE_CHECKING:
    from rlsize.facts.gpu import Gpu


@dataclass(frozen=True, slots=True, kw_only=True)
class Degrees:
    """
    Degrees of parallelism that are tried; empty for what is usual.

    Args:
        rollout_tensor: Of instances. [1]
        rollout_data: Attention ranks of instances, over which experts lie. [1]
        tensor: Of the trainer. [1]
        pipeline: Its stages. [1]
        context: Its context-parallel ranks. [1]
        expert: Its expert-parallel ranks. [1]
        recompute: What backward may compute again.
    """

    rollout_tensor: tuple[int, ...] = ()
    rollout_data: tuple[int, ...] = ()
    tensor: tuple[int, ...] = ()
    pipeline: tuple[int, ...] = ()
    context: tuple[int, ...] = ()
    expert: tuple[int, ...] = ()
    recompute: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """
    GPUs of one kind that a pool may take.

    Args:
        gpu: The GPU.
        gpu_hour: Its price; absent where nobody says. [usd]
        most: How many there are; None for as many as the cluster has. [1]
    """

    gpu: Gpu
    gpu_hour: Figure = absent("gpu_hour_usd", "--gpu-hour")
    most: float | None = None
