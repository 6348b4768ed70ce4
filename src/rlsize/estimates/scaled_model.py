"""A model whose dimensions nobody has read, by its kind and its parameter counts."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rlsize.estimates.model_size import model_size, with_computed

if TYPE_CHECKING:
    from rlsize.facts.model import Architecture, Model

SCALED_SPREAD = 0.15
"""Standard deviation of the logarithm of a step whose model is scaled: nobody knows how deep it is, and how wide."""

_WIDER = 0.25  # exponent: widths grow with the fourth root of the parameters, depth with the rest
_LANE, _NARROW_LANE = 64, 16  # widths are multiples of it, and of the other one where 64 is too coarse
_WIDE = 1024
_MIXING = ("attention", "sliding", "latent_attention", "linear_attention", "mamba")
_FEEDING = ("feed_forward", "moe")
_ROUNDS = 3  # after which the parameters agree to the rounding of widths


def scaled(model: Model, params: float, active_params: float = 0.0) -> Model:
    """
    A model of another one's kind with other parameter counts.

    Depth and widths are scaled together; heads keep their width, and their number up to a power of two, so that ranks
    share them as they do the other's; experts stand for what is not active, and the MLPs take up what rounding leaves.

    Args:
        model: The nearest of its kind.
        params: Parameters in total. [param]
        active_params: Those that work on each token; in proportion where 0. [param]

    Source: own rule. Depths of Qwen2.5, Qwen3 and Llama 3 profiles come out within a factor of 1.6 of their files.
    """
    own, shape = model_size(model), model.architecture
    ratio = active_params / own.active_params.number if active_params else params / own.params.number
    width = ratio**_WIDER
    changed: dict[str, Any] = {}
    for names in (_MIXING, _FEEDING):
        for name in names:
            block = getattr(shape, name)
            if block is not None:
                changed[name] = replace(block, layers=max(min(1, block.layers), round(block.layers * ratio / width**2)))
    mixed, fed = (sum(changed[name].layers for name in names if name in changed) for names in (_MIXING, _FEEDING))
    last = next(name for name in reversed(_FEEDING) if name in changed)
    together = shape.layers < sum(getattr(shape, name).layers for name in changed)
    if together:  # each block has one of both, so that rounding must agree
        changed[last] = replace(changed[last], layers=changed[last].layers + mixed - fed)
    if shape.attention is not None:
        each, times = shape.attention.kv_heads, 2.0 ** round(math.log2(width))
        heads = max(1, round(times * shape.attention.heads / each)) * each
        changed["attention"] = replace(changed["attention"], heads=heads)
    if shape.moe is not None:
        spare = params / own.params.number / ratio
        experts = max(shape.moe.experts_per_token, round(shape.moe.experts * spare))
        changed["moe"] = replace(changed["moe"], experts=experts)
    changed |= {"layers": mixed if together else mixed + fed, "hidden_size": _laned(width * shape.hidden_size)}
    found = replace(shape, **changed)
    for _ in range(_ROUNDS):
        found = _filled(replace(model, architecture=found), last, params)
    name = f"{model.name}@{params / 1e9:g}B" + (f"-A{active_params / 1e9:g}B" if active_params else "")
    said: dict[str, Any] = {
        "name": name,
        "title": f"{model.title}, scaled",
        "architecture": replace(found, verified=False),
    }
    lost: dict[str, Any] = {"published_params": None, "published_active_params": None, "aliases": (), "hf_repo": ""}
    return with_computed(replace(model, **said, **lost))


def _filled(model: Model, last: str, params: float) -> Architecture:
    """The shape with MLPs as wide as its parameters ask for."""
    size, block = model_size(model), getattr(model.architecture, last)
    inside = next(part.params.number for part in size.parts if part.name == last)
    wider = max(0.1, 1 + (params - size.params.number) / inside)
    return replace(
        model.architecture, **{last: replace(block, intermediate_size=_laned(wider * block.intermediate_size))}
    )


def _laned(width: float) -> int:
    lane = _LANE if width >= _WIDE else _NARROW_LANE
    return max(1, round(width / lane)) * lane
