"""How many parameters LoRA adapters train."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.equations import memory_fit, mixture_of_experts, parameters
from rlsize.estimates.figures import apply, total
from rlsize.facts.figure import Figure, absent

if TYPE_CHECKING:
    from rlsize.facts.model import Architecture


def lora_params(layers: Architecture | None, rank: Figure) -> Figure:
    """
    Trained parameters of adapters on attention, dense MLPs and shared experts; routed experts carry none.

    Args:
        layers: The model's layers; None where only a parameter count is known.
        rank: Rank of the adapters. [1]
    """
    if layers is None:
        return absent("lora_params", "--model")
    found = []
    for name, count, widths in _adapted(layers):
        each = apply(f"{name}_adapter_params", parameters.lora_params, rank=rank, adapted_widths=widths)
        found.append(apply(f"{name}_adapters", parameters.stacked_params, layers=count, layer_params=each))
    return total("lora_params", found)


def _adapted(shape: Architecture) -> list[tuple[str, int, Figure]]:
    """Kinds of layers that carry adapters, how many there are, and the widths of their matrices."""
    hidden, found = shape.hidden_size, []
    if shape.attention:
        heads = {"heads": shape.attention.heads, "kv_heads": shape.attention.kv_heads}
        widths = apply(
            "adapted_widths",
            memory_fit.attention_adapted_widths,
            hidden_size=hidden,
            head_dim=shape.attention.head_dim,
            **heads,
        )
        found.append(("attention", shape.attention.layers + (shape.sliding.layers if shape.sliding else 0), widths))
    latent = shape.latent_attention
    if latent:
        names = ("heads", "q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
        sizes = {name: float(getattr(latent, name)) for name in names}
        widths = apply("adapted_widths", memory_fit.latent_attention_adapted_widths, hidden_size=hidden, **sizes)
        found.append(("latent_attention", latent.layers, widths))
    dense = shape.feed_forward
    if dense:
        found.append(("mlp", dense.layers, _mlp_widths(hidden, dense.intermediate_size, dense.matrices)))
    moe = shape.moe
    if moe and moe.shared_experts:
        width = apply(
            "shared_width",
            mixture_of_experts.working_width,
            experts_per_token=0,  # routed experts carry no adapters
            intermediate_size=moe.intermediate_size,
            shared_experts=moe.shared_experts,
            shared_intermediate_size=moe.shared_intermediate_size,
        )
        found.append(("shared_expert", moe.layers, _mlp_widths(hidden, width, moe.matrices)))
    return found


def _mlp_widths(hidden: int, intermediate: Figure | int, matrices: int) -> Figure:
    return apply(
        "adapted_widths",
        memory_fit.mlp_adapted_widths,
        hidden_size=hidden,
        intermediate_size=intermediate,
        matrices=matrices,
    )
