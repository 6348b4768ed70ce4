"""What of a model's shape decides the memory of an engine's GPU: how its weights divide, and what a sequence keeps."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING

from rlsize.equations import engine_memory, memory_fit, mixture_of_experts, parameters
from rlsize.estimates.figures import added, apply, total
from rlsize.estimates.memory_shape import memory_shape
from rlsize.estimates.model_size import stated, working_width
from rlsize.estimates.remembered import remembered
from rlsize.facts.figure import Figure
from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlsize.estimates.figures import Work, Worked
    from rlsize.estimates.memory_shape import MemoryShape
    from rlsize.estimates.model_size import ModelSize, Stated
    from rlsize.facts.model import Architecture, Model

_ATTENTIONS = ("attention", "sliding_attention", "sharing_attention", "sharing_sliding_attention")
_MIXERS = (*_ATTENTIONS, "layer_inputs", "latent_attention", "linear_attention", "mamba")
_WIDE = ("embedding", "layer_embedding", "output_head", "norms")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineShape:
    """
    A model as its engine's memory sees it.

    Args:
        mixers: Parameters of attention and other token mixing. [param]
        kv_projections: Of these, the projections to keys and values. [param]
        latents: Of these, the projections into latents. [param]
        dense: Parameters of MLPs that every token uses, shared experts included. [param]
        routed: Parameters of routed experts. [param]
        routers: Parameters of routers. [param]
        wide: Embedding, output head and norms. [param]
        kv_heads: KV heads; 1 for a latent.
        state_heads: Heads of recurrent states.
        experts_per_token: Routed experts that work on a token; 0 for a dense model.
        mlp_width: Inner width that works on a token in the widest kind of layer.
        hidden_size: Width of the residual stream.
        vocab_size: Entries of the vocabulary.
        max_context: Longest sequence that the model is made for. [token]
        size: Its caches.
    """

    mixers: Figure
    kv_projections: Figure
    latents: Figure
    dense: Figure
    routed: Figure
    routers: Figure
    wide: Figure
    kv_heads: Figure
    state_heads: Figure
    experts_per_token: Figure
    mlp_width: Figure
    hidden_size: Figure
    vocab_size: Figure
    max_context: Figure
    size: ModelSize


@remembered
def engine_shape(model: Model, bytes_per_kv_value: float = 2.0) -> EngineShape:
    """
    The shape of a model for an engine.

    Args:
        model: Its profile.
        bytes_per_kv_value: Width of a cached value. [B]
    """
    says, shape = stated(model), model.architecture
    seen = memory_shape(model, Figure(key="params", value=0), bytes_per_kv_value)
    if seen.size is None:
        raise ValueError(f"{model.name} has no size")
    parts = {part.name: replace(part.params, key=part.name) for part in seen.size.parts}
    routers = _routers(shape, says)
    moe = shape.moe
    return EngineShape(
        mixers=total("mixer_params", [parts[name] for name in _MIXERS if name in parts]),
        kv_projections=_kv_projections(shape, says),
        latents=_latents(shape, says),
        dense=_dense(parts, seen, routers),
        routed=seen.routed_params,
        routers=routers,
        wide=total("wide_params", [parts[name] for name in _WIDE if name in parts]),
        kv_heads=says.figure("kv_heads", seen.kv_heads),
        state_heads=says.figure("state_heads", seen.state_heads),
        experts_per_token=says.figure("experts_per_token", moe.experts_per_token if moe else 0),
        mlp_width=_mlp_width(shape, says),
        hidden_size=seen.hidden_size,
        vocab_size=seen.vocab_size,
        max_context=says.figure("max_context", shape.max_context),
        size=seen.size,
    )


def _dense(parts: dict[str, Figure], seen: MemoryShape, routers: Figure) -> Figure:
    """MLPs that every token uses: dense layers, and what a layer of experts holds beside routed experts and router."""
    found = [parts["feed_forward"]] if "feed_forward" in parts else []
    if "moe" in parts:
        outside = memory_fit.params_outside_experts
        beside = apply("beside_experts_params", outside, params=parts["moe"], routed_params=seen.routed_params)
        found.append(apply("shared_params", outside, params=beside, routed_params=routers))
    return total("dense_mlp_params", found)


def _routers(shape: Architecture, says: Stated) -> Figure:
    if shape.moe is None:
        return says.figure("router_params", 0)
    layer = says.apply("router_layer_params", mixture_of_experts.router_params, shape.moe, shape)
    return says.apply("router_params", parameters.stacked_params, layers=shape.moe.layers, layer_params=layer)


def _kv_projections(shape: Architecture, says: Stated) -> Figure:
    key, equation = "kv_projection_params", engine_memory.kv_projection_params
    found = [says.apply(key, equation, shape, one, layers=one.layers) for one in shape.attentions.values()]
    return added(apply, key, found) if found else says.figure(key, 0)


def _latents(shape: Architecture, says: Stated) -> Figure:
    latent = shape.latent_attention
    if latent is None:
        return says.figure("latent_projection_params", 0)
    return says.apply("latent_projection_params", engine_memory.latent_projection_params, latent, shape)


def _mlp_width(shape: Architecture, says: Stated) -> Figure:
    """The wider of a dense layer and of the experts of a token."""
    dense = says.figure("mlp_width", shape.feed_forward.intermediate_size if shape.feed_forward else 0)
    if shape.moe is None:
        return dense
    return max(dense, replace(working_width(shape.moe, says), key="mlp_width"), key=lambda figure: figure.number)


def plainly(work: Work) -> Callable[[Figure], Worked]:
    """Figures as `work` takes them: as they are where the answer is explained, else their numbers."""
    return (lambda figure: figure) if work is apply else attrgetter("number")
