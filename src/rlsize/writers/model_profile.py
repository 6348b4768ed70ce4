"""A model profile as text: what `profiles add-model` writes and the catalogue reads."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from rlsize.errors import Fault, InputError
from rlsize.writers.files import make_folder, write_whole
from rlsize.writers.yaml_file import scalar, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rlsize.facts.model import Architecture, Attention, Model, QkNorm

HEADER = "rlsize: {kind: model, version: 1}\n"
_COMPUTED = "# Worked out from the architecture by rlsize, never by hand; caches in bf16, recurrent states in fp32.\n"

_GATED = 3  # weight matrices of an MLP with a gate: all that these families have
_SILU = ("hidden_act", "silu")
_GELU = ("hidden_activation", "gelu_pytorch_tanh")


def write_model_profile(model: Model, folder: str | Path, force: bool = False) -> Path:
    """
    Write a profile under its name, whole or not at all; the folder is made where there is none.

    Args:
        model: The profile.
        folder: The folder of model profiles.
        force: Whether a profile that exists may be replaced.

    Returns:
        The file.

    Raises:
        InputError: The profile exists and may not be replaced, or the disk refused.
    """
    target = Path(folder) / f"{model.name}.yaml"
    make_folder(target.parent)
    write_whole(target, model_profile_text(model), force=force)
    return target


def model_profile_text(model: Model) -> str:
    """The YAML of a model profile; fields that hold their default are left out."""
    lines = [HEADER]
    for entry in dataclasses.fields(model):
        value = getattr(model, entry.name)
        if value is None or value in ("", (), {}):
            continue
        if entry.name == "computed":
            lines.append(_COMPUTED)
        lines.append(_section(entry.name, value))
    return "".join(lines)


def _section(key: str, value: Any) -> str:  # noqa: ANN401 (any field of a profile)
    """A top-level key: blocks get a line for each entry, and stay on one line below that."""
    content = _stated(value) if dataclasses.is_dataclass(value) else value
    if isinstance(content, dict) and not key.startswith("published"):
        return f"{key}:\n" + "".join(f"  {text(name)}: {_inline(part)}\n" for name, part in content.items())
    if key == "notes":
        return f"{key}:\n" + "".join(f"  - {_inline(part)}\n" for part in value)
    return f"{key}: {_inline(content)}\n"


def _stated(block: Any) -> dict[str, Any]:  # noqa: ANN401 (any dataclass)
    """The fields of a block that differ from their default, those with a unit that must be written as text."""
    found = {}
    for entry in dataclasses.fields(block):
        value = getattr(block, entry.name)
        if value != entry.default:
            in_bytes = entry.name.endswith(("_bytes", "_bytes_per_token"))
            found[entry.name] = _Bytes(value) if in_bytes else value
    return found


@dataclasses.dataclass(frozen=True, slots=True)
class _Bytes:
    """A whole number of bytes, which is written with its unit."""

    value: int


def _inline(value: Any) -> str:  # noqa: ANN401 (any part of a profile)
    if isinstance(value, _Bytes):
        return f"{value.value} B"
    if dataclasses.is_dataclass(value):
        return _inline(_stated(value))
    if isinstance(value, dict):
        return "{" + ", ".join(f"{text(key)}: {_inline(part)}" for key, part in value.items()) + "}"
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(_inline(part) for part in value) + "]"
    return scalar(value)


class _Family(NamedTuple):
    """
    What the modelling code of a family has, whatever its configuration says.

    Args:
        model: The class.
        qkv_bias: Whether query, key and value have biases; None where `attention_bias` says so, for the output too.
        qk_norm: Norm of queries and keys.
        norms_per_layer: Norms of a block.
        sliding: Whether no layer slides, either none or all, or those that `layer_types` lists.
        experts: The key that counts the experts; empty in a dense family.
        mlp_bias: Whether `mlp_bias` gives biases to the MLP.
        activation: The key of the activation, and the only one that its engines take.
    """

    model: str
    qkv_bias: bool | None = False
    qk_norm: QkNorm = "none"
    norms_per_layer: int = 2
    sliding: Literal["none", "all", "listed"] = "none"
    experts: str = ""
    mlp_bias: bool = False
    activation: tuple[str, str] = _SILU


_FAMILIES: Mapping[str, _Family] = MappingProxyType({
    "llama": _Family(model="LlamaForCausalLM", qkv_bias=None, mlp_bias=True),
    "mistral": _Family(model="MistralForCausalLM", sliding="all"),
    "mixtral": _Family(model="MixtralForCausalLM", sliding="all", experts="num_local_experts"),
    "phi3": _Family(model="Phi3ForCausalLM", sliding="all"),
    "qwen2": _Family(model="Qwen2ForCausalLM", qkv_bias=True),
    "qwen3": _Family(model="Qwen3ForCausalLM", qk_norm="head"),
    "qwen3_moe": _Family(model="Qwen3MoeForCausalLM", qk_norm="head", experts="num_experts"),
    "smollm3": _Family(model="SmolLM3ForCausalLM"),
    "olmo2": _Family(model="Olmo2ForCausalLM", qk_norm="full"),
    "olmo3": _Family(model="Olmo3ForCausalLM", qk_norm="full", sliding="listed"),
    "gemma3_text": _Family(
        model="Gemma3ForCausalLM", qk_norm="head", norms_per_layer=4, sliding="listed", activation=_GELU
    ),
})  # fmt: skip


def config_of(model: Model) -> dict[str, Any]:
    """
    The content of a `config.json` with the shape of a profile.

    Args:
        model: The profile.

    Raises:
        InputError: Its family, or something in its shape, is not built from plain dimensions.
    """
    family = _FAMILIES.get(model.family)
    todo = "name a directory with its config.json, or its Hugging Face id"
    if family is None:
        known = ", ".join(_FAMILIES)
        what = f"no config.json can be written for the family {model.family} (only for {known})"
        raise InputError(Fault(what, model.name, todo))
    shape = model.architecture
    strange = list(_strange(shape, family))
    if strange or shape.attention is None:
        what = f"{', '.join(strange)}: the family {model.family} has no keys for that"
        raise InputError(Fault(what, model.name, todo))
    return {
        "architectures": [family.model],
        "model_type": model.family,
        "hidden_size": shape.hidden_size,
        "num_hidden_layers": shape.layers,
        "vocab_size": shape.vocab_size,
        "tie_word_embeddings": shape.tied_embeddings,
        "max_position_embeddings": shape.max_context,
        **_attention(shape, shape.attention, family),
        **_feeding(shape, family),
        **dict([family.activation]),
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "torch_dtype": "bfloat16",
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": None,  # the family's own may lie outside a small vocabulary
    }


def _attention(shape: Architecture, attention: Attention, family: _Family) -> dict[str, Any]:
    found: dict[str, Any] = {
        "num_attention_heads": attention.heads,
        "num_key_value_heads": attention.kv_heads,
        "head_dim": attention.head_dim,
    }
    if family.qkv_bias is None:
        found["attention_bias"] = attention.qkv_bias
    if family.sliding != "none":
        found["sliding_window"] = shape.sliding.window if shape.sliding else None
    if family.sliding == "listed" and shape.sliding:
        found["layer_types"] = _layer_types(shape.layers, attention.layers)
    return found


def _layer_types(layers: int, full: int) -> list[str]:
    """Layers that attend to everything, evenly among those that slide: the last of so many each time."""
    period = layers // full if full else layers + 1
    whole = [(index + 1) % period == 0 and (index + 1) // period <= full for index in range(layers)]
    return ["full_attention" if here else "sliding_attention" for here in whole]


def _feeding(shape: Architecture, family: _Family) -> dict[str, Any]:
    """The MLPs and experts; dense layers among those with experts come first."""
    dense, moe = shape.feed_forward, shape.moe
    width = dense.intermediate_size if dense else 0
    if moe is None:
        return {"intermediate_size": width, **({"mlp_bias": bool(dense and dense.bias)} if family.mlp_bias else {})}
    found: dict[str, Any] = {family.experts: moe.experts, "num_experts_per_tok": moe.experts_per_token}
    if family.experts == "num_local_experts":  # its only width is that of an expert
        return {**found, "intermediate_size": moe.intermediate_size}
    return {
        **found,
        "moe_intermediate_size": moe.intermediate_size,
        "intermediate_size": width or moe.intermediate_size,
        "mlp_only_layers": list(range(dense.layers if dense else 0)),
        "decoder_sparse_step": 1,
        "norm_topk_prob": True,
    }


def _strange(shape: Architecture, family: _Family) -> Iterator[str]:
    """What the family cannot say, in words."""
    blocks = ("latent_attention", "linear_attention", "mamba")
    yield from (f"{name.replace('_', ' ')}" for name in blocks if getattr(shape, name))
    if shape.norms_per_layer != family.norms_per_layer or shape.norm_bias:
        yield f"{shape.norms_per_layer} norms a layer{' with biases' if shape.norm_bias else ''}"
    if shape.attention is None:
        yield "no attention"
    else:
        yield from _strange_attention(shape, shape.attention, family)
    dense, moe = shape.feed_forward, shape.moe
    if dense and (dense.matrices != _GATED or (dense.bias and not family.mlp_bias)):
        yield f"MLPs of {dense.matrices} matrices{' with biases' if dense.bias else ''}"
    if bool(moe) != bool(family.experts):
        yield "experts" if moe else "no experts"
    if moe and (moe.shared_experts or moe.expert_bias or moe.router_bias or moe.matrices != _GATED):
        yield "shared experts, biases of experts or router, or experts that are not gated"
    if moe and dense and family.experts == "num_local_experts":
        yield "dense layers among those with experts"


def _strange_attention(shape: Architecture, attention: Attention, family: _Family) -> Iterator[str]:
    if attention.qk_norm != family.qk_norm:
        yield f"a norm of queries and keys of the kind {attention.qk_norm}"
    said = attention.qkv_bias == attention.output_bias  # one key for both
    fixed = (attention.qkv_bias, attention.output_bias) == (family.qkv_bias, False)
    if not (said if family.qkv_bias is None else fixed):
        yield f"biases of attention (qkv {attention.qkv_bias}, output {attention.output_bias})"
    if attention.output_gate or attention.sinks:
        yield "output gates or sinks"
    if len(shape.attentions) > 1 or attention.kv_projections == 1:
        yield "heads of two sizes, keys that are values, or layers that share a cache"
    mixed = shape.sliding is not None and attention.layers > 0
    if shape.sliding and (family.sliding == "none" or (family.sliding == "all" and mixed)):
        yield f"{shape.sliding.layers} sliding layers"
