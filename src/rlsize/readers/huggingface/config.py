"""
A `config.json` as data, typed look-ups in it; and what the modelling code of a family fixes.

JSON only, bounded in size, without duplicate keys and without numbers that are none. Look-ups know aliases, defaults
and limits; faults are noted, keys asked for are remembered.
"""

from __future__ import annotations

import json
import math
from dataclasses import field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from rlsize.errors import Fault, InputError
from rlsize.frozen import dataclass
from rlsize.readers.validation import unique_keys
from rlsize.readers.yaml_documents import read_text
from rlsize.units import cut

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rlsize.facts.model import LinearKind, QkNorm

T = TypeVar("T")
FILE_NAME = "config.json"
DEEPEST = 20
LARGEST_FILE = 2**20  # the configurations of models with a thousand listed layers have 100 kB
LARGEST_WIDTH = 10**8  # no vocabulary or matrix is wider
_LONGEST_SHOWN = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """
    A family of models.

    Args:
        known: False for a model_type that is not listed.
        qkv_bias: Whether query, key and value have biases unless the configuration says otherwise.
        output_bias: Whether the output projection has a bias where query, key and value have one.
        qk_norm: Norm of queries and keys.
        output_gate: Whether attention has an output gate unless the configuration says otherwise.
        sinks: Whether heads learn attention sinks.
        norms_per_layer: Norms of a block.
        norm_bias: Whether norms have biases.
        tied: Whether embeddings are tied unless the configuration says otherwise; None where it must say.
        matrices: Weight matrices of an MLP: 3 gated, 2 plain.
        mlp_bias: Whether MLPs have biases unless the configuration says otherwise.
        window: Which layers slide where sliding_window is set and layer_types is not: none, all, those from
            max_window_layers on (upper), or all but one in so many (pattern).
        period: One layer in so many attends to everything, or is no linear-attention layer.
        linear: Recurrence of its linear-attention layers; mamba where they are Mamba-2 blocks.
        mamba: Whether blocks hold one thing each: attention, Mamba or MLP.
        global_heads: Whether layers that attend to everything have heads of a size of their own (global_head_dim).
        dense_beside: Whether a dense MLP of intermediate_size works beside the experts of a layer.
        wide_experts: Whether intermediate_size is the width of an expert.
        dense_width: Key of the width of dense MLPs.
        expert_bias: Whether routed experts have biases.
        router_bias: Whether routers have a bias, or a correction, per expert.
        shared_gate: Whether a gate scales the shared expert.
        defaults: Keys that the code fills in.
        reads: Keys that are understood here and refused elsewhere.
    """

    known: bool = True
    qkv_bias: bool = False
    output_bias: bool = True
    qk_norm: QkNorm = "none"
    output_gate: bool = False
    sinks: bool = False
    norms_per_layer: int = 2
    norm_bias: bool = False
    tied: bool | None = False
    matrices: int = 3
    mlp_bias: bool = False
    window: Literal["none", "all", "upper", "pattern"] = "none"
    period: int = 0
    linear: LinearKind | Literal["mamba"] | None = None
    mamba: bool = False
    global_heads: bool = False
    dense_beside: bool = False
    wide_experts: bool = False
    dense_width: str = "intermediate_size"
    expert_bias: bool = False
    router_bias: bool = False
    shared_gate: bool = False
    defaults: Mapping[str, int] = field(default_factory=dict)
    reads: tuple[str, ...] = ()


UNKNOWN = Family(known=False, tied=None)
GATED = 3  # matrices of a gated MLP
UNGATED = frozenset({"relu2", "xielu"})
"""Activations that no MLP gates."""

_HEADS_OF_128 = {"head_dim": 128}
_HEADS_OF_256 = {"head_dim": 256}
_GEMMA3 = {
    "vocab_size": 262208, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
    "max_position_embeddings": 131072, "sliding_window": 4096,
}  # fmt: skip

_LLAMA = Family()
_QWEN2 = Family(qkv_bias=True, output_bias=False, window="upper")
_QWEN2_MOE = Family(qkv_bias=True, output_bias=False, window="upper", shared_gate=True)
_QWEN3 = Family(qk_norm="head", window="upper", defaults=_HEADS_OF_128)
_QWEN3_MOE = Family(qk_norm="head", window="upper")
_QWEN3_NEXT = Family(
    qk_norm="head",
    output_gate=True,
    linear="gated_deltanet",
    period=4,
    shared_gate=True,
    defaults=_HEADS_OF_256,
)
_MISTRAL = Family(window="all")
_GEMMA3_TEXT = Family(qk_norm="head", norms_per_layer=4, tied=True, window="pattern", period=6, defaults=_GEMMA3)
_GEMMA4_TEXT = Family(
    qk_norm="head",
    norms_per_layer=4,
    tied=True,
    window="pattern",
    period=6,
    global_heads=True,
    dense_beside=True,
    defaults={"head_dim": 256, "global_head_dim": 512},
    reads=(
        "global_head_dim",
        "num_global_key_value_heads",
        "num_kv_shared_layers",
        "hidden_size_per_layer_input",
    ),
)
_LATENT = Family()
_LATENT_ROUTED = Family(router_bias=True)

FAMILIES: Mapping[str, Family] = {
    **dict.fromkeys(("llama", "granite", "bitnet"), _LLAMA),
    **dict.fromkeys(("mistral", "ministral", "phi3"), _MISTRAL),
    "mixtral": Family(window="all", wide_experts=True),
    **dict.fromkeys(("qwen2", "qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text"), _QWEN2),
    "qwen2_5_omni_text": _QWEN2,
    "qwen2_moe": _QWEN2_MOE,
    **dict.fromkeys(("qwen3", "qwen3_vl_text"), _QWEN3),
    **dict.fromkeys(("qwen3_moe", "qwen3_vl_moe_text"), _QWEN3_MOE),
    **dict.fromkeys(("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"), _QWEN3_NEXT),
    "gemma": Family(tied=True, defaults=_HEADS_OF_256),
    "gemma2": Family(norms_per_layer=4, tied=True, window="pattern", period=2, defaults=_HEADS_OF_256),
    "gemma3_text": _GEMMA3_TEXT,
    **dict.fromkeys(("gemma4_text", "gemma4_unified_text"), _GEMMA4_TEXT),
    "deepseek_v2": _LATENT,
    **dict.fromkeys(("deepseek_v3", "deepseek_v32", "kimi_k2", "glm_moe_dsa"), _LATENT_ROUTED),
    "glm": Family(output_bias=False, defaults=_HEADS_OF_128),
    "glm4": Family(output_bias=False, norms_per_layer=4, defaults=_HEADS_OF_128),
    "glm4v_text": Family(qkv_bias=True, output_bias=False, norms_per_layer=4),
    **dict.fromkeys(
        ("glm4_moe", "glm4v_moe_text"), Family(output_bias=False, router_bias=True, defaults=_HEADS_OF_128)
    ),
    "gpt_oss": Family(
        qkv_bias=True,
        sinks=True,
        window="pattern",
        period=2,
        wide_experts=True,
        expert_bias=True,
        router_bias=True,
        defaults={"head_dim": 64},
    ),
    **dict.fromkeys(("minimax", "minimax_text_01", "minimax_m1"), Family(linear="lightning", wide_experts=True)),
    "minimax_m2": Family(qk_norm="full", wide_experts=True, router_bias=True),
    "olmo": Family(norms_per_layer=0),
    "olmo2": Family(qk_norm="full"),
    "olmo_hybrid": Family(qk_norm="full", linear="gated_deltanet", period=4),
    "flex_olmo": Family(qk_norm="full", wide_experts=True),
    "olmo3": Family(qk_norm="full", window="pattern", period=4),
    "olmoe": Family(qk_norm="full", wide_experts=True),
    "smollm3": Family(tied=True, window="upper"),
    "seed_oss": Family(qkv_bias=True, output_bias=False, defaults=_HEADS_OF_128),
    "llama4_text": Family(
        window="pattern",
        period=4,
        wide_experts=True,
        dense_width="intermediate_size_mlp",
        defaults={"n_shared_experts": 1},
        reads=("attention_chunk_size", "intermediate_size_mlp"),
    ),
    "lfm2": Family(qk_norm="head", tied=True, linear="short_conv"),
    "lfm2_moe": Family(qk_norm="head", tied=True, linear="short_conv", router_bias=True),
    "kimi_linear": Family(linear="kda", router_bias=True),
    "granitemoehybrid": Family(
        linear="mamba", wide_experts=True, dense_width="shared_intermediate_size", reads=("mamba_d_state",)
    ),
    **dict.fromkeys(("granitemoe", "granitemoeshared"), Family(wide_experts=True)),
    "granitemoe_swa": Family(wide_experts=True, sinks=True),
    "granite_swa": Family(sinks=True),
    "phimoe": Family(wide_experts=True, norm_bias=True),
    "ernie4_5_moe": Family(router_bias=True),
    "aria_text": Family(wide_experts=True),
    "afmoe": Family(qk_norm="head", output_gate=True, norms_per_layer=4, router_bias=True),
    "dots1": Family(qk_norm="head", router_bias=True, window="upper"),
    **dict.fromkeys(("exaone4", "exaone_moe"), Family(qk_norm="head", window="pattern", period=4)),
    **dict.fromkeys(("hy_v3", "mellum", "hunyuan_v1_dense"), Family(qk_norm="head")),
    **dict.fromkeys(("cohere", "cohere2"), Family(norms_per_layer=1, tied=True, window="pattern", period=4)),
    "cohere2_moe": Family(norms_per_layer=1, tied=True, window="pattern", period=4, wide_experts=True),
    "stablelm": Family(norm_bias=True),
    "apertus": Family(qk_norm="head", matrices=2),
    "arcee": Family(matrices=2),
    **dict.fromkeys(("jais2", "nemotron"), Family(norm_bias=True, matrices=2)),
    "phi": Family(qkv_bias=True, norms_per_layer=1, norm_bias=True, matrices=2, mlp_bias=True),
    "nemotron_h": Family(mamba=True, norms_per_layer=1, matrices=2, router_bias=True),
    "gpt_neox": Family(qkv_bias=True, norm_bias=True, matrices=2, mlp_bias=True),
    "starcoder2": Family(
        qkv_bias=True, norm_bias=True, tied=True, matrices=2, mlp_bias=True, window="all"
    ),
}  # fmt: skip

_OLDER = "is older than the layouts that are read"
_NO_DECODER = "is not a decoder"
_RECURRENT = "has recurrent layers of a kind that is not read"
_TWO_SIZES = "heads of two sizes are not read"
_ENCODER = "encoders are not read"

# Read by the usual keys, these would come out wrong.
UNREADABLE: Mapping[str, str] = {
    **dict.fromkeys(("gpt2", "gptj", "gpt_neo", "opt", "bloom", "mpt", "falcon", "gpt_bigcode"), _OLDER),
    **dict.fromkeys(("persimmon", "fuyu"), _OLDER),
    **dict.fromkeys(("t5", "bart", "bert", "roberta", "whisper"), _NO_DECODER),
    **dict.fromkeys(("jamba", "falcon_h1", "zamba", "zamba2", "bamba"), _RECURRENT),
    **dict.fromkeys(("recurrent_gemma", "mamba", "mamba2", "rwkv"), _RECURRENT),
    **dict.fromkeys(("minimax_m3", "minimax_m3_vl_text"), "picks blocks of its cache in a way that is not read"),
    "mimo_v2_flash": "has values of another width than keys, and twice the cache heads where layers slide",
    "hrm_text": "runs its layers several times",
    **dict.fromkeys(("gemma3n", "gemma3n_text"), "has embeddings in every layer and layers that share a cache"),
    "nemotron-nas": "has layers of many shapes",
    "deepseek_v4": "compresses its cache in a way that is not read",
    "longcat_flash": "has experts without weights",
}  # fmt: skip


# Keys that change counts in a way that is not modelled, whatever the family.
REFUSED: Mapping[str, str] = {
    "is_encoder_decoder": "encoder-decoder models are not read",
    **dict.fromkeys(("attention_probs_dropout_prob", "type_vocab_size"), _ENCODER),
    "block_configs": "layers of many shapes are not read",
    "num_kv_shared_layers": "layers that share a cache are not read",
    "hidden_size_per_layer_input": "embeddings in every layer are not read",
    "per_layer_config": "layers of many shapes are not read",
    **dict.fromkeys(("global_head_dim", "num_global_key_value_heads"), _TWO_SIZES),
    **dict.fromkeys(("swa_num_attention_heads", "swa_num_key_value_heads", "swa_head_dim"), _TWO_SIZES),
    "attn_layer_period": "this mix of attention and recurrent layers is not read",
    **dict.fromkeys(("mamba_d_state", "ssm_cfg", "linear_attn_config"), "this kind of recurrent layer is not read"),
    "moe_latent_size": "experts of a reduced width are not read",
    "zero_expert_num": "experts without weights are not read",
    "compress_ratios": "a compressed cache is not read",
    "attention_chunk_size": "attention in chunks is not read",
    "intermediate_size_mlp": "dense layers of another width beside the experts are not read",
    "mamba_proj_bias": "biases of Mamba projections are not read",
}  # fmt: skip

# Keys that change neither parameters nor cache; `*` stands for anything.
_IGNORED = (
    "_*", "*_act", "*_activation", "*_alpha", "architectures", "attn_implementation", "attn_logit_*", "attn_scale",
    "attn_temperature_tuning", "attn_type_list_*", "auto_map", "bos_token", "cache_implementation", "chunk_size",
    "chunk_size_feed_forward", "classifier_dropout", "clip_qkv", "*_coef", "compression_config", "*_dropout",
    "dropout", "*_dtype", "dtype", "enable_moe_block", "eos_token", "ep_size", "*_eps", "*_epsilon", "expand",
    "*_factor", "finetuning_task", "floor_scale", "full_attn_idxs", "full_attn_mod", "hidden_act", "id2label",
    "indexer_rope_interleave", "*_init*", "initial_context_length", "initializer_*", "interleaved", "label2id",
    "layernorm_*_beta", "*_limit", "logits_scaling", "*_loss_*", "mamba_chunk_size", "mamba_hidden_act",
    "mamba_ssm_cache_dtype", "max_seq_len", "mlp_hidden_act", "model_type", "moe_permute_fusion", "moe_renormalize",
    "moe_router_*", "moe_shared_expert_overlap", "mrope_*", "mtp_*", "*_multiplier", "n_group",
    "no_rope_layer_interval", "no_rope_layers", "norm_topk_prob", "norm_type", "num_expert_group",
    "num_logits_to_keep", "original_max_position_embeddings", "output_attentions", "output_hidden_states",
    "output_router_logits", "*_pdrop", "position_embedding_type", "postnorm", "pretraining_tp", "problem_type",
    "quantization_config", "rescale_prenorm_residual", "residual_in_fp32", "return_dict", "rope_*", "*_rope_*",
    "rope", "*rotary*", "router_*", "*_scalar", "scale_embeddings", "scoring_func", "seq_aux", "shared_moe_mode",
    "sliding_window_size*", "*softcapping", "swiglu_limit", "task_specific_params", "time_step_*", "*_token_id",
    "*_token_index", "tokenizer_class", "topk_group", "torch_dtype", "transformers_version",
    "use_bidirectional_attention", "use_cache", "use_flash_attn", "use_grouped_mm", "use_mamba_kernels", "use_mtp",
    "use_parallel_residual", "vocab_size_per_layer_input",
)  # fmt: skip


def changes_nothing(key: str) -> bool:
    """
    Whether a key is known to change neither parameters nor cache.

    >>> changes_nothing("rope_theta"), changes_nothing("num_attention_heads")
    (True, False)
    """
    return any(fnmatchcase(key, pattern) for pattern in _IGNORED)


def config_path(path: str | Path) -> Path:
    """The configuration itself, where a model's directory is named."""
    given = Path(path)
    try:
        inside = given / FILE_NAME
        return inside if given.is_dir() and inside.exists() else given
    except (OSError, ValueError):
        return given  # reading it will say what is wrong


def read_config(path: Path) -> dict[str, Any]:
    """
    The content of a configuration.

    Raises:
        InputError: It cannot be read, is no JSON object, repeats a key, or holds NaN or Infinity.
    """
    text = read_text(path, LARGEST_FILE)
    try:
        data = json.loads(text, object_pairs_hook=unique_keys, parse_constant=_finite, parse_float=_finite)
    except json.JSONDecodeError as error:
        where = f"{path}:{error.lineno}"
        raise InputError(Fault(f"is not valid JSON: {error.msg}", where, "is it the config.json of a model?")) from None
    except RecursionError:
        raise InputError(Fault("is nested too deeply", str(path), "is it the config.json of a model?")) from None
    except ValueError as error:  # the two hooks, and whole numbers of thousands of digits
        raise InputError(Fault(str(error).partition(";")[0], str(path), "mend the file")) from None
    if _depth(data) > DEEPEST:
        raise InputError(Fault("is nested too deeply", str(path), "is it the config.json of a model?"))
    if not isinstance(data, dict):
        raise InputError(Fault("is not a JSON object", str(path), "is it the config.json of a model?"))
    return data


def _depth(data: Any) -> int:  # noqa: ANN401 (any JSON value)
    """How deep lists and objects are nested, found without recursion."""
    depth, level = 0, [data]
    while level := [each for each in level if isinstance(each, (list, dict))]:
        depth += 1
        level = [part for each in level for part in (each.values() if isinstance(each, dict) else each)]
    return depth


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is not a finite number")
    return number


class Keys:
    """
    The keys of one configuration.

    Args:
        data: Keys and values, as the file has them.
        where: The file, and the path inside it, for messages.
        defaults: Values that the family's code fills in where a key is missing.
    """

    def __init__(self, data: Mapping[str, Any], where: str, defaults: Mapping[str, int] | None = None) -> None:
        self.data = data
        self.where = where
        self.defaults = defaults or {}
        self.faults: list[Fault] = []
        self.assumed: dict[str, int] = {}
        self._asked: set[str] = set()

    def fault(self, key: str, what: str, todo: str = "") -> None:
        """Note that something is wrong with a key."""
        place = f"{self.where}{shown(key)}" if key else self.where.rstrip(" .:")
        self.faults.append(Fault(what, place, todo))

    def found(self, *names: str) -> tuple[str, Any]:
        """The first of several names for one thing that has a value, and the value; None where none has."""
        self._asked.update(names)
        present = [(name, self.data[name]) for name in names if self.data.get(name) is not None]
        if not present:
            return names[0], None
        for name, value in present[1:]:
            if value != present[0][1]:
                other = f"{present[0][0]} says {shown(present[0][1])}"
                self.fault(name, f"says {shown(value)}, but {other}", "both mean the same; keep one")
        return present[0]

    def whole(self, *names: str, default: int | None = None, least: int = 1, most: int = LARGEST_WIDTH) -> int:
        """
        A whole number.

        Args:
            names: What the key is called; the first name is the usual one.
            default: The value where it is missing and the family's code has none; without it the key is required.
            least: The smallest value that makes sense.
            most: The largest.
        """
        name, value = self.found(*names)
        if value is None and name in self.defaults:
            value = self.assumed[name] = self.defaults[name]
        if value is None:
            if default is None:
                also = f" (or {', '.join(names[1:])})" if names[1:] else ""
                self.fault(name, "is missing", f"add it{also}")
                return max(least, 1)
            return default
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value != int(value):
            self.fault(name, f"{shown(value)} is not a whole number")
        elif not least <= value <= most:
            self.fault(name, f"{shown(value)} is not between {least} and {most}")
        else:
            return int(value)
        return max(least, 1)

    def flag(self, *names: str, default: bool = False) -> bool:
        """A yes or no."""
        found = self._typed(bool, "neither true nor false", names)
        return default if found is None else found

    def word(self, *names: str) -> str:
        """A piece of text; empty where there is none."""
        return self._typed(str, "not text", names) or ""

    def entries(self, *names: str) -> list[Any] | None:
        """A list; None where there is none."""
        return self._typed(list, "not a list", names)

    def _typed(self, kind: type[T], otherwise: str, names: tuple[str, ...]) -> T | None:
        """A value of one type; None where there is none, and where it is of another, which is a fault."""
        name, value = self.found(*names)
        if value is None or isinstance(value, kind):
            return value
        self.fault(name, f"{shown(value)} is {otherwise}")
        return None

    def skip(self, names: Iterable[str]) -> None:
        """Note that keys have been taken care of."""
        self._asked.update(names)

    def unread(self) -> list[str]:
        """The keys that carry a value and that nobody has asked for."""
        empty: tuple[Any, ...] = (None, False, 0, "", [], {})
        return sorted(key for key, value in self.data.items() if key not in self._asked and value not in empty)


def shown(value: object) -> str:
    """A value from a file, short and harmless."""
    if isinstance(value, str) and value.isprintable() and value.isascii() and len(value) <= _LONGEST_SHOWN:
        return value
    if isinstance(value, (list, dict)):
        return f"a {'list' if isinstance(value, list) else 'mapping'} of {len(value)}"
    return cut(ascii(value), _LONGEST_SHOWN)
