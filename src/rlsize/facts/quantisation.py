"""Widths of number types: of weights as they are kept, sent and loaded, of caches; and how checkpoints mix them."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from rlsize.frozen import dataclass

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

CHANGED_FRACTION = 0.02
"""
Share of weights that a step changes, an upper one: published runs report less than 0.01 (arXiv:2602.03839,
arXiv:2605.07330), an estimate at a learning rate of 1e-6 gives 0.015 to 0.04.
"""

WIDTHS: Mapping[str, float] = MappingProxyType(
    {
        "fp32": 4.0,
        "bf16": 2.0,
        "fp16": 2.0,
        "fp8": 1.0 + 4.0 / 128**2,  # fp32 scale for each block of 128 x 128 (DeepSeek-V3, arXiv:2412.19437)
        "int8": 1.0,
        "mxfp8": 1.0 + 1.0 / 32,  # one 8-bit scale for 32 (Open Compute Project, microscaling formats 1.0)
        "mxfp4": 0.5 + 1.0 / 32,
        "nvfp4": 0.5 + 1.0 / 16,  # one fp8 scale for 16 (NVIDIA Blackwell)
        "fp4": 0.5 + 1.0 / 16,
        "int4": 0.5 + 2.5 / 128,  # groups of 128 with an fp16 scale and a 4-bit zero (GPTQ, AWQ)
        "nf4": 0.5 + 1.0 / 64,  # one 8-bit scale for 64 (QLoRA, arXiv:2305.14314)
    }
)
"""
Bytes of a weight as engines load it, scaling factors included, in a linear layer; embeddings, output head, norms and
routers stay in 16 bits.
"""

KV_WIDTHS: Mapping[str, float] = MappingProxyType(
    {"fp32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0, "fp4": 0.5625, "int4": 0.5625}
)
"""Bytes of one cached value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightTypes:
    """
    Number types of a checkpoint's weights.

    Args:
        dense: Of the MLPs that every token uses.
        attention: Of attention and other token mixing.
        experts: Of routed experts.
    """

    dense: str = "bf16"
    attention: str = "bf16"
    experts: str = "bf16"


def uniform(dtype: str) -> WeightTypes:
    """The same type for all linear layers."""
    return WeightTypes(dense=dtype, attention=dtype, experts=dtype)


MXFP4_EXPERTS = WeightTypes(experts="mxfp4")
"""gpt-oss as published: experts in mxfp4, the rest in bf16 (model card, arXiv:2508.10925)."""

FP4_EXPERTS = WeightTypes(dense="bf16", attention="bf16", experts="nvfp4")
"""NVIDIA's nvfp4 checkpoints of mixtures of experts: attention stays in bf16."""

WIDE_ATTENTION_FP8 = WeightTypes(dense="fp8", experts="fp8")
"""Meta's Llama-3.1-405B-FP8: attention stays in bf16 (model card)."""

NATIVE: Mapping[str, WeightTypes] = MappingProxyType(
    {
        "gpt-oss": MXFP4_EXPERTS,
        "deepseek-v3": uniform("fp8"),
        "deepseek-r1": uniform("fp8"),
        "kimi-k2": uniform("fp8"),
        "minimax-m2": uniform("fp8"),
    }
)
"""Types in which a family's weights are published, by how its profile's name begins; bf16 for all others."""


def native(model: str) -> WeightTypes:
    """The types in which a model's weights are published."""
    return next((types for start, types in NATIVE.items() if model.startswith(start)), WeightTypes())


def published(model: str, *, moe: bool) -> str:
    """The type that these are called by: that of the experts, where a model has them."""
    types = native(model)
    return types.experts if moe else types.dense


def loaded(model: str, dtype: str, *, moe: bool) -> WeightTypes:
    """The types of a model's weights as engines load them: as published, or all linear layers in another type."""
    return native(model) if dtype == published(model, moe=moe) else uniform(dtype)
