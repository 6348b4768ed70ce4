"""
The shape of a model from the keys of its configuration and what its family fixes.

Of every layer the kind of attention and of MLP is found, however the configuration puts it.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from rlsize.facts.model import (
    Architecture,
    Attention,
    FeedForward,
    LatentAttention,
    LinearAttention,
    Mamba,
    Moe,
    QkNorm,
    Sliding,
)
from rlsize.readers.huggingface.config import shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.readers.huggingface.config import Family, Keys

LayerKind: TypeAlias = Literal["full", "sliding", "linear", "mamba", "dense", "moe"]

MOST_LAYERS = 2000
LONGEST_CONTEXT = 10**9
_LARGEST_FACTOR = 100.0
_EXPERTS = ("num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts")
_CHOSEN = ("num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_topk", "moe_k", "top_k_experts")
_LAYER_TYPES: Mapping[str, LayerKind] = {
    "full_attention": "full", "attention": "full", "sliding_attention": "sliding", "linear_attention": "linear",
    "indexed_attention": "full", "chunked_attention": "sliding", "mamba": "linear",
    "conv": "linear",
}  # fmt: skip
_BLOCK_TYPES: Mapping[str, LayerKind] = {
    "attention": "full", "mamba": "mamba", "moe": "moe", "mlp": "dense",
    "full_attention": "full", "linear_attention": "mamba", "*": "full", "M": "mamba", "E": "moe", "-": "dense",
}  # fmt: skip
_MLP_TYPES: Mapping[str, LayerKind] = {"dense": "dense", "sparse": "moe"}
_ATTENTION_NUMBERS: Mapping[int, LayerKind] = {0: "linear", 1: "full"}
_MOE_NUMBERS: Mapping[int, LayerKind] = {0: "dense", 1: "moe"}


def layer_kinds(keys: Keys, family: Family, layers: int, *, experts: bool) -> Counter[LayerKind]:
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
    feeders = Counter(_feeders(keys, layers)) if experts else Counter[LayerKind]({"dense": layers})
    return Counter(_mixers(keys, family, layers)) + feeders


def window_tokens(keys: Keys, family: Family) -> int:
    """Tokens that sliding layers keep; 0 where none slide."""
    window = keys.whole("sliding_window", "attention_chunk_size", default=0, least=0, most=10**9)
    if family.window == "upper" and not keys.flag("use_sliding_window"):
        return 0
    return window


def _blocks(keys: Keys, layers: int) -> list[LayerKind]:
    listed = keys.entries("layers_block_type")
    if listed is not None:
        return _kinds(keys, "layers_block_type", listed, _BLOCK_TYPES, layers)
    pattern = keys.word("hybrid_override_pattern")
    if not pattern:
        keys.fault("hybrid_override_pattern", "is missing", "add it (or layers_block_type)")
        return []
    return _kinds(keys, "hybrid_override_pattern", list(pattern), _BLOCK_TYPES, layers)


def _mixers(keys: Keys, family: Family, layers: int) -> list[LayerKind]:
    listed, numbered = keys.entries("layer_types"), keys.entries("attn_type_list")
    window = window_tokens(keys, family)
    keys.skip(("max_window_layers", "sliding_window_pattern", "_sliding_window_pattern", "full_attention_interval"))
    if listed is not None:
        found = _kinds(keys, "layer_types", listed, _LAYER_TYPES, layers)
    elif numbered is not None:
        found = _kinds(keys, "attn_type_list", numbered, _ATTENTION_NUMBERS, layers)
    elif family.linear and not family.period:
        keys.fault("layer_types", "is missing", "add it (or attn_type_list)")
        return []
    elif family.linear:
        interval = keys.whole("full_attention_interval", default=family.period, most=MOST_LAYERS)
        found = ["linear" if (index + 1) % interval else "full" for index in range(layers)]
    else:
        found = _sliding(keys, family, layers, window)
    if "linear" in found and family.linear is None:
        keys.fault(
            "layer_types", "names linear_attention, which is not known of this model_type", "write the profile by hand"
        )
    if "sliding" in found and not window:
        keys.fault("sliding_window", "is missing, but some layers slide", "add it")
    return found


def _sliding(keys: Keys, family: Family, layers: int, window: int) -> list[LayerKind]:
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


def _feeders(keys: Keys, layers: int) -> list[LayerKind]:
    """Where the experts are: listed, or every so many layers after so many dense ones."""
    listed = keys.entries("mlp_layer_types")
    if listed is not None:
        keys.skip(("first_k_dense_replace", "moe_layer_freq", "decoder_sparse_step", "mlp_only_layers"))
        return _kinds(keys, "mlp_layer_types", listed, _MLP_TYPES, layers)
    frequency = keys.data.get("moe_layer_freq")
    if isinstance(frequency, list):
        keys.skip(("moe_layer_freq", "first_k_dense_replace"))
        return _kinds(keys, "moe_layer_freq", frequency, _MOE_NUMBERS, layers)
    starts = "first_k_dense_replace", "num_dense_layers", "moe_layer_start_index"
    first = keys.whole(*starts, default=0, least=0, most=MOST_LAYERS)
    last = keys.whole("moe_layer_end_index", default=-1, least=-1, most=MOST_LAYERS) % layers
    every = keys.whole("moe_layer_freq", default=1, most=MOST_LAYERS)
    steps = "decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_interval"
    step = keys.whole(*steps, default=1, most=MOST_LAYERS)
    keys.skip(("moe_layers",))  # repeats the step
    dense = [index for index in keys.entries("mlp_only_layers") or [] if isinstance(index, int)]
    beyond = (first <= index <= last and index not in dense for index in range(layers))
    moe = (here and index % every == 0 and (index + 1) % step == 0 for index, here in enumerate(beyond))
    return ["moe" if here else "dense" for here in moe]


def _kinds(keys: Keys, name: str, listed: list[Any], known: Mapping[Any, LayerKind], layers: int) -> list[LayerKind]:
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


def read_architecture(keys: Keys, family: Family, source: str) -> Architecture | None:
    """
    The shape of a model, or None where the configuration has faults, which are noted in `keys`.

    Args:
        keys: The configuration.
        family: What its family fixes.
        source: The key of the profile's `sources` that names the configuration.
    """
    blocks_listed = len(keys.entries("layers_block_type") or ()) or None
    counts = "num_hidden_layers", "n_layer", "num_layers", "n_layers"
    layers = keys.whole(*counts, default=blocks_listed, most=MOST_LAYERS)
    hidden = keys.whole("hidden_size", "n_embd", "d_model")
    vocab = keys.whole("vocab_size", "padded_vocab_size")
    contexts = "max_position_embeddings", "n_positions", "max_sequence_length", "model_max_length"
    context = keys.whole(*contexts, most=LONGEST_CONTEXT)
    experts = keys.whole(*_EXPERTS, default=0, least=0)
    kinds = layer_kinds(keys, family, layers, experts=experts > 0)
    if family.linear == "mamba":
        kinds["mamba"] = kinds.pop("linear", 0)
    window = window_tokens(keys, family)
    if window >= context:  # such a layer never drops a token
        kinds["full"] += kinds.pop("sliding", 0)
    latent = keys.found("kv_lora_rank")[1] is not None
    attending = kinds["full"] + kinds["sliding"]
    blocks = {
        "attention": _attention(keys, family, hidden, kinds["full"]) if attending and not latent else None,
        "latent_attention": _latent_attention(keys, kinds["full"]) if latent else None,
        "sliding": _windows(keys, family, kinds["sliding"], window) if kinds["sliding"] else None,
        "linear_attention": _linear_attention(keys, family, kinds["linear"]) if kinds["linear"] else None,
        "mamba": _mamba(keys, kinds["mamba"]) if kinds["mamba"] else None,
        "feed_forward": _feed_forward(keys, family, kinds["dense"]) if kinds["dense"] else None,
        "moe": _moe(keys, family, experts, kinds) if kinds["moe"] else None,
    }
    tied = keys.flag("tie_word_embeddings", default=bool(family.tied))
    if family.tied is None and keys.data.get("tie_word_embeddings") is None:
        keys.fault("tie_word_embeddings", "is missing, and this model_type is not known", "add it: true or false")
    if keys.faults:
        return None
    try:
        return Architecture(
            source=source,
            layers=layers,
            hidden_size=hidden,
            vocab_size=vocab,
            tied_embeddings=tied,
            max_context=context,
            layer_embedding_size=keys.whole("hidden_size_per_layer_input", default=0, least=0),
            norms_per_layer=family.norms_per_layer,
            norm_bias=family.norm_bias,
            **blocks,  # type: ignore[arg-type]  # each block under its own name
        )
    except ValueError as error:
        keys.fault("", str(error), "check the dimensions")
        return None


def _attention(keys: Keys, family: Family, hidden: int, layers: int) -> Attention:
    heads = keys.whole("num_attention_heads", "n_head", "n_heads")
    kv_heads = keys.whole("num_key_value_heads", "num_kv_heads", default=heads)
    head_dim = keys.whole("head_dim", "attention_head_dim", default=hidden // heads)
    if hidden % heads and keys.found("head_dim", "attention_head_dim")[1] is None and "head_dim" not in keys.assumed:
        keys.fault("head_dim", f"is missing, and {hidden} over {heads} heads is no whole number", "add it")
    keys_are_values = keys.flag("attention_k_eq_v")
    if family.global_heads:
        head_dim = keys.whole("global_head_dim")
        of_their_own = keys.whole("num_global_key_value_heads", default=kv_heads)
        kv_heads = of_their_own if keys_are_values else kv_heads
    if (width := keys.whole("v_head_dim", default=head_dim)) != head_dim:
        what = f"is {width} beside keys of {head_dim}; values of another width are not read"
        keys.fault("v_head_dim", what, "write the profile by hand, or give the parameter count instead")
    biased = keys.flag("attention_bias", "qkv_bias", "use_qkv_bias", "use_bias", default=family.qkv_bias)
    return Attention(
        layers=layers,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        qkv_bias=biased,
        output_bias=keys.flag("attention_out_bias", default=biased and family.output_bias),
        qk_norm=_qk_norm(keys, family),
        output_gate=keys.flag("attn_output_gate", default=family.output_gate),
        sinks=family.sinks,
        kv_projections=1 if keys_are_values else 2,
        sharing=_sharing(keys, family)["full"],
    )


def _windows(keys: Keys, family: Family, layers: int, window: int) -> Sliding:
    """Sliding layers; where the others have heads of a size of their own, theirs are the usual ones."""
    if not family.global_heads:
        return Sliding(layers=layers, window=window)
    heads = keys.whole("num_key_value_heads", "num_kv_heads", default=keys.whole("num_attention_heads"))
    return Sliding(
        layers=layers,
        window=window,
        kv_heads=heads,
        head_dim=keys.whole("head_dim"),
        sharing=_sharing(keys, family)["sliding"],
    )


def _sharing(keys: Keys, family: Family) -> Counter[LayerKind]:
    """Layers of each kind that read the cache of another: the last ones of the stack."""
    shared = keys.whole("num_kv_shared_layers", default=0, least=0, most=MOST_LAYERS)
    layers = keys.whole("num_hidden_layers", default=0, least=0, most=MOST_LAYERS)
    return Counter(_mixers(keys, family, layers)[layers - shared :] if 0 < shared < layers else ())


def _qk_norm(keys: Keys, family: Family) -> QkNorm:
    over_all: QkNorm = "full" if keys.word("qk_norm_type") == "per_layer" else "head"
    wanted = keys.flag("use_qk_norm", "qk_norm", "qk_layernorm", default=family.qk_norm != "none")
    if not wanted:
        return "none"
    return family.qk_norm if family.qk_norm != "none" else over_all


def _latent_attention(keys: Keys, layers: int) -> LatentAttention:
    keys.skip(("head_dim", "qk_head_dim", "num_key_value_heads"))  # they repeat what the widths below say
    if keys.flag("attention_bias"):
        keys.fault("attention_bias", "is true; biases of latent attention are not read", "write the profile by hand")
    index_heads = keys.whole("index_n_heads", default=0, least=0)
    return LatentAttention(
        layers=layers,
        heads=keys.whole("num_attention_heads"),
        q_lora_rank=keys.whole("q_lora_rank", default=0, least=0),
        kv_lora_rank=keys.whole("kv_lora_rank"),
        qk_nope_head_dim=keys.whole("qk_nope_head_dim"),
        qk_rope_head_dim=keys.whole("qk_rope_head_dim"),
        v_head_dim=keys.whole("v_head_dim"),
        index_heads=index_heads,
        index_head_dim=keys.whole("index_head_dim", default=None if index_heads else 0, least=0),
        index_topk=keys.whole("index_topk", default=None if index_heads else 0, least=0),
    )


def _linear_attention(keys: Keys, family: Family, layers: int) -> LinearAttention:
    if family.linear == "short_conv":  # what it keeps is as wide as the residual stream, shared out as heads are
        heads = keys.whole("num_attention_heads")
        return LinearAttention(
            layers=layers,
            kind="short_conv",
            key_heads=1,
            value_heads=heads,
            key_head_dim=1,
            value_head_dim=keys.whole("hidden_size") // heads,
            conv_kernel=keys.whole("conv_L_cache"),
        )
    if family.linear in {"lightning", "kda"}:  # as many heads, of one width, for keys and values
        kda = family.linear == "kda"
        heads = keys.whole("linear_num_heads" if kda else "num_attention_heads")
        width = keys.whole("linear_head_dim" if kda else "head_dim")
        return LinearAttention(
            layers=layers,
            kind="kda" if kda else "lightning",
            key_heads=heads,
            value_heads=heads,
            key_head_dim=width,
            value_head_dim=width,
            conv_kernel=keys.whole("linear_conv_kernel_dim") if kda else 0,
        )
    return LinearAttention(
        layers=layers,
        kind="gated_deltanet",
        key_heads=keys.whole("linear_num_key_heads"),
        value_heads=keys.whole("linear_num_value_heads"),
        key_head_dim=keys.whole("linear_key_head_dim"),
        value_head_dim=keys.whole("linear_value_head_dim"),
        conv_kernel=keys.whole("linear_conv_kernel_dim"),
    )


def _mamba(keys: Keys, layers: int) -> Mamba:
    return Mamba(
        layers=layers,
        heads=keys.whole("mamba_num_heads", "mamba_n_heads"),
        head_dim=keys.whole("mamba_head_dim", "mamba_d_head"),
        state_size=keys.whole("ssm_state_size", "mamba_d_state"),
        groups=keys.whole("n_groups", "mamba_n_groups"),
        conv_kernel=keys.whole("conv_kernel", "mamba_d_conv"),
        conv_bias=keys.flag("use_conv_bias", "mamba_conv_bias", default=True),
    )


def _feed_forward(keys: Keys, family: Family, layers: int) -> FeedForward:
    width = keys.whole(family.dense_width, "ffn_hidden_size", "n_inner", "block_ff_dim")
    if keys.flag("block_auto_adjust_ff_dim"):  # LFM2: two thirds, rounded up
        name, factor = keys.found("block_ffn_dim_multiplier")
        multiple = keys.whole("block_multiple_of", default=256)
        if factor is not None and (not isinstance(factor, (int, float)) or not 0 < factor <= _LARGEST_FACTOR):
            keys.fault(name, f"{shown(factor)} is no factor of a width")
            factor = None
        width = multiple * math.ceil(int((factor or 1) * int(2 * width / 3)) / multiple)
    if keys.flag("use_double_wide_mlp"):  # in layers that share a cache; the mean has as many weights
        width = round(width * (1 + sum(_sharing(keys, family).values()) / layers))
    return FeedForward(
        layers=layers,
        intermediate_size=width,
        matrices=family.matrices,
        bias=keys.flag("mlp_bias", "use_mlp_bias", default=family.mlp_bias),
    )


def _moe(keys: Keys, family: Family, experts: int, kinds: Counter[LayerKind]) -> Moe:
    if family.wide_experts:
        width = keys.whole("intermediate_size")
        keys.skip((family.dense_width,))
    else:
        width = keys.whole("moe_intermediate_size", "expert_intermediate_size")
        keys.skip(("intermediate_size",))  # of the dense layers, where there are any
    # how many shared experts there are, and how wide one is
    one = keys.whole("shared_expert_intermediate_size", "shared_intermediate_size", default=0, least=0)
    counts = "n_shared_experts", "num_shared_experts", "moe_num_shared_experts"
    count = keys.whole(*counts, default=1 if one else 0, least=0)
    wide = keys.whole("moe_shared_expert_intermediate_size", default=one or width, least=0)
    shared, shared_width = (count, wide) if count and wide else (0, 0)
    if family.dense_beside:
        shared, shared_width = 1, keys.whole("intermediate_size")
    corrected = keys.word("topk_method") == "noaux_tc"
    return Moe(
        layers=kinds["moe"],
        experts=experts,
        experts_per_token=keys.whole(*_CHOSEN),
        intermediate_size=width,
        shared_experts=shared,
        shared_intermediate_size=shared_width,
        shared_gate=family.shared_gate and shared > 0,
        matrices=family.matrices,
        expert_bias=family.expert_bias,
        router_bias=keys.flag("use_routing_bias", "use_expert_bias", default=family.router_bias or corrected),
    )
