"""Widths of the number types that weights are kept and sent in."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

BYTES_PER_PARAM: Mapping[str, float] = MappingProxyType(
    {"fp32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0, "fp4": 0.5, "int4": 0.5}
)
"""Bytes of one weight, by the type's name; scaling factors of narrow types are counted apart."""

FP8_BYTES = 1.0

BYTES_PER_SCALE = 4.0
"""An fp32 scaling factor, one for each block of a weight quantised to fp8 (DeepSeek-V3, arXiv:2412.19437)."""

PARAMS_PER_SCALE = 128.0 * 128.0
"""Weights that share a scaling factor: blocks of 128 x 128 (DeepSeek-V3, arXiv:2412.19437)."""

BYTES_PER_INDEX = 4.0
"""The position of a changed weight in its tensor, as a 32-bit integer."""
