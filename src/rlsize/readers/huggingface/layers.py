"""Which layer is what: the kind of attention and of MLP of every layer, however the configuration puts it."""

from __future__ import annotations

from collections import Counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from rlsize.readers.huggingface.keys import shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.readers.huggingface.families import Family
    from rlsize.readers.huggingface.keys import Keys

Kind: TypeAlias = Literal["full", "sliding", "linear", "mamba", "dense", "moe"]

MOST_LAYERS = 2000
_LAYER_TYPES: Mapping[str, Kind] = MappingProxyType({
    "full_attention": "full", "attention": "full", "sliding_attention": "sliding", "linear_attention": "linear",
})  # fmt: skip
_BLOCK_TYPES: Mapping[str, Kind] = MappingProxyType({
    "attention": "full", "mamba": "mamba", "moe": "moe", "mlp": "dense",
    "*": "full", "M": "mamba", "E": "moe", "-": "dense",
})  # fmt: skip
_MLP_TYPES: Mapping[str, Kind] = MappingProxyType({"dense": "dense", "sparse": "moe"})
_ATTENTION_NUMBERS: Mapping[int, Kind] = MappingProxyType({0: "linear", 1: "full"})
_MOE_NUMBERS: Mapping[int, Kind] = MappingProxyType({0: "dense", 1: "moe"})


def layer_kinds(keys: Keys, family: Family, layers: int, *, experts: bool) -> Counter[Kind]:
    """
    How many layers of each kind there are.

    Args:
        keys: The configuration.
        family: What its family fixes.
        layers: Blocks of the stack.
        experts: Whether there are experts at all.
    """
    if family.mamba:
        return Counter(_blocks(keys, layers))
    feeders = Counter(_feeders(keys, layers)) if experts else Counter[Kind]({"dense": layers})
    return Counter(_mixers(keys, family, layers)) + feeders


def window_tokens(keys: Keys, family: Family) -> int:
    """Tokens that sliding layers keep; 0 where none slide."""
    window = keys.whole("sliding_window", default=0, least=0, most=10**9)
    if family.window == "upper" and not keys.flag("use_sliding_window"):
        return 0
    return window


def _blocks(keys: Keys, layers: int) -> list[Kind]:
    listed = keys.entries("layers_block_type")
    if listed is not None:
        return _kinds(keys, "layers_block_type", listed, _BLOCK_TYPES, layers)
    pattern = keys.word("hybrid_override_pattern")
    if not pattern:
        keys.fault("hybrid_override_pattern", "is missing", "add it (or layers_block_type)")
        return []
    return _kinds(keys, "hybrid_override_pattern", list(pattern), _BLOCK_TYPES, layers)


def _mixers(keys: Keys, family: Family, layers: int) -> list[Kind]:
    listed, numbered = keys.entries("layer_types"), keys.entries("attn_type_list")
    window = window_tokens(keys, family)
    keys.skip(("max_window_layers", "sliding_window_pattern", "_sliding_window_pattern", "full_attention_interval"))
    if listed is not None:
        found = _kinds(keys, "layer_types", listed, _LAYER_TYPES, layers)
    elif numbered is not None:
        found = _kinds(keys, "attn_type_list", numbered, _ATTENTION_NUMBERS, layers)
    elif family.linear:
        found = _linear(keys, family, layers)
    else:
        found = _sliding(keys, family, layers, window)
    if "linear" in found and family.linear is None:
        keys.fault(
            "layer_types", "names linear_attention, which is not known of this model_type", "write the profile by hand"
        )
    if "sliding" in found and not window:
        keys.fault("sliding_window", "is missing, but some layers slide", "add it")
    return found


def _linear(keys: Keys, family: Family, layers: int) -> list[Kind]:
    if not family.period:
        keys.fault("layer_types", "is missing", "add it (or attn_type_list)")
        return []
    interval = keys.whole("full_attention_interval", default=family.period, most=MOST_LAYERS)
    return ["linear" if (index + 1) % interval else "full" for index in range(layers)]


def _sliding(keys: Keys, family: Family, layers: int, window: int) -> list[Kind]:
    if not window:
        return ["full"] * layers
    if family.window == "all":
        return ["sliding"] * layers
    if family.window == "upper":
        first = keys.whole("max_window_layers", least=0, most=MOST_LAYERS)
        return ["sliding" if index >= first else "full" for index in range(layers)]
    if family.window == "pattern":
        period = keys.whole(
            "sliding_window_pattern", "_sliding_window_pattern", default=family.period, most=MOST_LAYERS
        )
        return ["sliding" if (index + 1) % period else "full" for index in range(layers)]
    keys.fault("sliding_window", "is set, but nothing says which layers slide", "add layer_types")
    return []


def _feeders(keys: Keys, layers: int) -> list[Kind]:
    """Where the experts are: listed, or every so many layers after so many dense ones."""
    listed = keys.entries("mlp_layer_types")
    if listed is not None:
        keys.skip(("first_k_dense_replace", "moe_layer_freq", "decoder_sparse_step", "mlp_only_layers"))
        return _kinds(keys, "mlp_layer_types", listed, _MLP_TYPES, layers)
    frequency = keys.data.get("moe_layer_freq")
    if isinstance(frequency, list):
        keys.skip(("moe_layer_freq", "first_k_dense_replace"))
        return _kinds(keys, "moe_layer_freq", frequency, _MOE_NUMBERS, layers)
    first = keys.whole("first_k_dense_replace", default=0, least=0, most=MOST_LAYERS)
    every = keys.whole("moe_layer_freq", default=1, most=MOST_LAYERS)
    step = keys.whole("decoder_sparse_step", default=1, most=MOST_LAYERS)
    dense = [index for index in keys.entries("mlp_only_layers") or [] if isinstance(index, int)]
    moe = [
        index >= first and index % every == 0 and (index + 1) % step == 0 and index not in dense
        for index in range(layers)
    ]
    return ["moe" if here else "dense" for here in moe]


def _kinds(keys: Keys, name: str, listed: list[Any], known: Mapping[Any, Kind], layers: int) -> list[Kind]:
    """The kinds that a list names, one for each layer."""
    strange = {shown(entry) for entry in listed if isinstance(entry, (list, dict)) or entry not in known}
    if strange:
        readable = ", ".join(str(entry) for entry in known)
        keys.fault(name, f"names {', '.join(sorted(strange)[:3])}", f"what is read: {readable}")
        return []
    if len(listed) != layers:
        keys.fault(name, f"has {len(listed)} entries for {layers} layers", "give one for each layer")
        return []
    return [known[entry] for entry in listed]
