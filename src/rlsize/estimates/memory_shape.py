"""What of a model's shape decides memory: its layers, its experts, what stays wide in a quantised copy, its cache."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rlsize.equations import activations, memory_fit, mixture_of_experts, parameters
from rlsize.estimates.figures import apply, total
from rlsize.estimates.model_size import model_size, stated, working_width
from rlsize.estimates.remembered import remembered
from rlsize.facts.figure import Figure, absent
from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from rlsize.estimates.model_size import ModelSize, Stated
    from rlsize.facts.model import Architecture, Model

_OUTER = ("embedding", "layer_embedding", "output_head")  # parts that no layer holds
_WIDE = (*_OUTER, "norms")  # parts that quantisation leaves as they are
_FLAG = "--model"
_GATED = 3  # weight matrices of a gated MLP; any number would do where there are no such layers


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryShape:
    """
    A model as memory sees it; where only a parameter count is known, the rest says that it needs the model.

    Args:
        params: Parameters in total. [param]
        routed_params: Parameters of all routed experts; 0 for a dense model. [param]
        dense_params: All others. [param]
        outer_params: Embedding and output head. [param]
        wide_params: What stays wide in a quantised copy: those and the norms. [param]
        layers: Layers. [layer]
        hidden_size: Width of the residual stream. [1]
        vocab_size: Entries of the vocabulary. [1]
        mlp_width: Inner width of the MLP that works on a token, averaged over the layers. [1]
        heads: Query heads; 0 where unknown.
        kv_heads: Key and value heads; 1 for a latent cache, 0 where unknown.
        state_heads: Heads of recurrent states, which tensor parallelism divides.
        experts: Routed experts per layer; 0 for a dense model.
        architecture: The layers themselves.
        size: Its caches per token and per sequence.
    """

    params: Figure
    routed_params: Figure
    dense_params: Figure
    outer_params: Figure
    wide_params: Figure
    layers: Figure
    hidden_size: Figure
    vocab_size: Figure
    mlp_width: Figure
    heads: int = 0
    kv_heads: int = 0
    state_heads: int = 1
    experts: int = 0
    architecture: Architecture | None = None
    size: ModelSize | None = None


@remembered
def memory_shape(model: Model, params: Figure, bytes_per_kv_value: float = 2.0) -> MemoryShape:
    """
    The shape of a model.

    Args:
        model: Its profile.
        params: Its parameters. [param]
        bytes_per_kv_value: Width of a cached key or value. [B]
    """
    says, shape, size = stated(model), model.architecture, model_size(model, bytes_per_kv_value)
    routed = _routed(shape, says)
    attention = shape.latent_attention or shape.attention
    recurrent = [block.value_heads for block in (shape.linear_attention,) if block]
    recurrent += [block.heads for block in (shape.mamba,) if block]
    return MemoryShape(
        params=params,
        routed_params=routed,
        dense_params=apply("dense_params", memory_fit.params_outside_experts, params=params, routed_params=routed),
        outer_params=_sum("outer_params", size, _OUTER),
        wide_params=_sum("wide_params", size, _WIDE),
        layers=says.figure("layers", shape.layers),
        hidden_size=says.figure("hidden_size", shape.hidden_size),
        vocab_size=says.figure("vocab_size", shape.vocab_size),
        mlp_width=_mlp_width(shape, says),
        heads=attention.heads if attention else 0,
        kv_heads=1 if shape.latent_attention or not shape.attention else shape.attention.kv_heads,
        state_heads=min(recurrent, default=1),
        experts=shape.moe.experts if shape.moe else 0,
        architecture=shape,
        size=size,
    )


def _sum(key: str, size: ModelSize, names: tuple[str, ...]) -> Figure:
    return total(key, [replace(part.params, key=part.name) for part in size.parts if part.name in names])


def shapeless(params: Figure) -> MemoryShape:
    """The shape of nothing but a number of parameters."""
    none = Figure(key="routed_params", value=0, provenance="default", source="taken for a dense model")
    return MemoryShape(
        params=params,
        routed_params=none,
        dense_params=replace(params, key="dense_params"),
        outer_params=absent("outer_params", _FLAG),
        wide_params=Figure(key="wide_params", value=0, provenance="default", source="all weights alike"),
        layers=absent("layers", _FLAG),
        hidden_size=absent("hidden_size", _FLAG),
        vocab_size=absent("vocab_size", _FLAG),
        mlp_width=absent("mlp_width", _FLAG),
    )


def _routed(shape: Architecture, says: Stated) -> Figure:
    moe = shape.moe
    if moe is None:
        return says.figure("routed_params", 0)
    each = [says.apply("expert_weight_params", parameters.mlp_params, moe, shape)]
    if moe.expert_bias:
        each.append(says.apply("expert_bias_params", parameters.mlp_bias_params, moe, shape))
    layer = says.apply(
        "routed_layer_params",
        mixture_of_experts.moe_layer_params,
        moe,
        expert_params=total("expert_params", each),
        shared_params=0,
        router_params=0,
    )
    return says.apply("routed_params", parameters.stacked_params, moe, layer_params=layer)


def _mlp_width(shape: Architecture, says: Stated) -> Figure:
    """Inner width that works on a token, as of gated MLPs: wide dense layers and narrow experts averaged."""
    dense, moe = shape.feed_forward, shape.moe
    return says.apply(
        "mlp_width",
        activations.mean_mlp_width,
        shape,
        dense_layers=dense.layers if dense else 0,
        dense_width=dense.intermediate_size if dense else 0,
        dense_matrices=dense.matrices if dense else _GATED,
        moe_layers=moe.layers if moe else 0,
        working_width=working_width(moe, says) if moe else 0,
        moe_matrices=moe.matrices if moe else _GATED,
    )
