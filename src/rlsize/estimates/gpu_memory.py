"""What processes see of a GPU's memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.equations import engine_cache

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlsize.equations._ops import Real
    from rlsize.facts.gpu import Gpu

_EXACT = 1.0
_BINARY_GIGABYTE = 2.0**30 / 1e9  # over a decimal one: memory of binary size is sold by the GB


def visible_memory(work: Callable[..., Real], gpu: Gpu, values: Mapping[str, Real]) -> Real:
    """Memory of the GPU that a process sees; a size that nobody verified is taken as sold, in binary gigabytes."""
    stated = gpu.specification.memory_usable
    exact = stated is not None and stated.verified
    found = stated if stated is not None and exact else gpu.specification.memory
    return work(
        "visible_memory_bytes",
        engine_cache.visible_memory,
        memory=found.value,
        binary_share=_EXACT if exact else _BINARY_GIGABYTE,
        visible_share=values["memory_visible_share"],
    )
