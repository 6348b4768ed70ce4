"""The numbers of a model that the time of a training step depends on, as figures or bare."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rlsize.estimates.figures import total
from rlsize.estimates.model_parts import model_parts, stated, working_width
from rlsize.estimates.model_size import model_size
from rlsize.estimates.remembered import remembered
from rlsize.facts.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlsize.equations._ops import Real
    from rlsize.facts.model import Architecture, Model

_HEADS = ("embedding", "output_head")
_EXPERTS = "moe"
_NORMS = "norms"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attending:
    """
    Layers that attend in one way.

    Args:
        name: Which way.
        layers: How many. [1]
        heads: Query heads. [1]
        query_key_dim: Width of a head's query and key. [1]
        value_dim: Width of a head's value. [1]
        window: Tokens that a query sees at most; 0 where it sees all before it. [token]
    """

    name: str
    layers: Real
    heads: Real
    query_key_dim: Real
    value_dim: Real
    window: float = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainShape:
    """
    What a model brings to a training step; figures, or bare numbers.

    Args:
        params: Parameters in total.
        active_params: Parameters that work on each token.
        linear_params: Of which in linear layers that every token uses, the output head left out.
        head_params: Of which in the output head.
        expert_active_params: Of which in experts and their routers.
        expert_params: Parameters in experts and their routers in total.
        dense_params: All other parameters.
        layers: Layers.
        hidden_size: Width of the residual stream.
        vocab_size: Rows of the output head.
        attention_width: Width of all query heads; 0 without attention.
        dense_layers: Layers with a dense MLP.
        dense_width: Width inside it.
        mlp_width: Width inside the MLP of the usual layer, dense or experts.
        expert_layers: Layers with experts.
        expert_width: Width inside the experts that work on a token.
        experts_per_token: Routed experts that work on a token.
        mlp_copies: Times that the width inside is read or written: 3 with a gate, 2 without.
        kv_bytes_per_token: Keys and values of all layers.
        attending: The ways in which layers attend.
        has_experts: Whether it is a mixture of experts.
    """

    params: Real
    active_params: Real
    linear_params: Real
    head_params: Real
    expert_active_params: Real
    expert_params: Real
    dense_params: Real
    layers: Real
    hidden_size: Real
    vocab_size: Real
    attention_width: Real
    dense_layers: Real
    dense_width: Real
    mlp_width: Real
    expert_layers: Real
    expert_width: Real
    experts_per_token: Real
    mlp_copies: Real
    kv_bytes_per_token: Real
    attending: tuple[Attending, ...]
    has_experts: bool


def bare(facts: Any) -> Any:  # noqa: ANN401 (a dataclass of figures in, the same of numbers out)
    """A dataclass of figures with their bare numbers in their place."""
    found = {name: getattr(facts, name) for name in facts.__slots__}
    changed: dict[str, Any] = {name: value.number for name, value in found.items() if isinstance(value, Figure)}
    if "attending" in found:
        changed["attending"] = tuple(bare(kind) for kind in found["attending"])
    return replace(facts, **changed)


@remembered
def bare_train_shape(model: Model) -> TrainShape:
    """The numbers of a model, bare."""
    found: TrainShape = bare(train_shape(model))
    return found


@remembered
def train_shape(model: Model) -> TrainShape:
    """The numbers of a model, as figures."""
    shape, says = model.architecture, stated(model)
    parts, size = {part.name: part for part in model_parts(model)}, model_size(model)
    head = parts["output_head" if "output_head" in parts else "embedding"].params
    linear = [part.active_params for name, part in parts.items() if name not in {*_HEADS, _EXPERTS, _NORMS}]
    dense = [part.params for name, part in parts.items() if name != _EXPERTS]
    none = says.figure("expert_params", 0)
    routed, feeder, attention = shape.moe, shape.feed_forward, shape.attention or shape.latent_attention
    width = working_width(routed, says) if routed else none
    return TrainShape(
        params=size.params,
        active_params=size.active_params,
        linear_params=total("linear_params", linear),
        head_params=replace(head, key="head_params"),
        expert_active_params=parts[_EXPERTS].active_params if routed else none,
        expert_params=parts[_EXPERTS].params if routed else none,
        dense_params=total("dense_params", dense),
        layers=says.figure("layers", shape.layers),
        hidden_size=says.figure("hidden_size", shape.hidden_size),
        vocab_size=says.figure("vocab_size", shape.vocab_size),
        attention_width=says.figure("attention_width", _attention_width(shape)) if attention else none,
        dense_layers=says.figure("dense_layers", feeder.layers if feeder else 0),
        dense_width=says.figure("dense_width", feeder.intermediate_size if feeder else 0),
        mlp_width=width if routed else says.figure("mlp_width", feeder.intermediate_size if feeder else 0),
        expert_layers=says.figure("expert_layers", routed.layers if routed else 0),
        expert_width=width,
        experts_per_token=says.figure("experts_per_token", routed.experts_per_token if routed else 0),
        mlp_copies=says.figure("mlp_copies", (routed or feeder).matrices if (routed or feeder) else 0),  # type: ignore[union-attr]  # one of both is there
        kv_bytes_per_token=total("kv_bytes_per_token", [size.kv_bytes_per_token, size.sliding_bytes_per_token]),
        attending=tuple(_attending(shape, says)),
        has_experts=routed is not None,
    )


def _attention_width(shape: Architecture) -> int:
    if shape.attention:
        return shape.attention.heads * shape.attention.head_dim
    latent = shape.latent_attention
    return latent.heads * latent.v_head_dim if latent else 0


def _attending(shape: Architecture, says: Any) -> Iterator[Attending]:  # noqa: ANN401 (estimates.model_parts.Stated)
    def kind(name: str, layers: int, heads: int, dims: tuple[int, int], window: int = 0) -> Attending:
        return Attending(
            name=name,
            layers=says.figure("attending_layers", layers),
            heads=says.figure("heads", heads),
            query_key_dim=says.figure("query_key_dim", dims[0]),
            value_dim=says.figure("value_dim", dims[1]),
            window=window,
        )

    attention, latent = shape.attention, shape.latent_attention
    if attention and attention.layers:
        yield kind("full", attention.layers, attention.heads, (attention.head_dim, attention.head_dim))
    if attention and shape.sliding:
        dims = (attention.head_dim, attention.head_dim)
        yield kind("sliding", shape.sliding.layers, attention.heads, dims, shape.sliding.window)
    if latent:
        dims = (latent.qk_nope_head_dim + latent.qk_rope_head_dim, latent.v_head_dim)
        yield kind("latent", latent.layers, latent.heads, dims, latent.index_topk)
