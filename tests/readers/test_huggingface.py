"""A Hugging Face configuration becomes the profile that ships, or a message that says what is wrong with it."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.errors import InputError
from rlsize.facts.model import Model, Sliding
from rlsize.readers.huggingface import read_model
from rlsize.readers.profiles import Catalogue
from rlsize.readers.validation import opened, validated
from rlsize.readers.yaml_documents import parse_document
from rlsize.writers.model_profile import model_profile_text

if TYPE_CHECKING:
    from collections.abc import Callable

CONFIGS = Path(__file__).parent / "data" / "huggingface"

# The same model as a shipped profile. Two configurations say more than their profile: see the tests below.
SHIPPED = [
    "deepseek-v3",
    "deepseek-v3.2",
    "gemma3-1b",
    "glm-4.5",
    "glm-4.5-air",
    "glm-5",
    "gpt-oss-20b",
    "kimi-k2",
    "llama3.1-8b",
    "llama3.2-1b",
    "minimax-m2",
    "mistral-7b-v0.3",
    "nemotron-3-nano-30b-a3b",
    "olmo2-7b",
    "olmo3-7b",
    "phi-4",
    "phi-4-mini",
    "qwen2.5-7b",
    "qwen3-30b-a3b",
    "qwen3-8b",
    "qwen3-next-80b-a3b",
    "qwen3.5-27b",
    "qwen3.5-35b-a3b",
    "smollm2-1.7b",
    "smollm3-3b",
]
# No profile ships: the parameters in the safetensors files of the repository, as Hugging Face counts them.
RELEASED = {
    "deepseek-v2-lite": 15_706_484_224,
    "gemma2-9b": 9_241_705_984,
    "mistral-7b-v0.1": 7_241_732_096,
    "mixtral-8x7b": 46_702_792_704,
    "olmoe-1b-7b": 6_919_161_856,
    "pythia-6.9b": 6_857_302_016,
    "seed-oss-36b": 36_151_104_512,
    "starcoder2-15b": 15_957_889_024,
}

# Model types with parameters that no profile counts.
NEARLY = {
    "apertus", "bitnet", "deepseek_v32", "glm_moe_dsa", "kimi_linear", "lfm2_moe", "llama4_text", "nanochat",
    "nemotron_h", "olmo", "phi",
}  # fmt: skip


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    """The shipped profiles."""
    return Catalogue()


@pytest.fixture
def config(tmp_path: Path) -> Callable[..., Path]:
    """Writes a known configuration with some keys changed; a key set to `...` is removed."""

    def write(name: str, **changed: Any) -> Path:
        data = json.loads((CONFIGS / f"{name}.json").read_text(encoding="utf-8"))
        data = {key: value for key, value in {**data, **changed}.items() if value is not ...}
        path = tmp_path / "config.json"
        path.write_text(json.dumps(data), encoding="utf-8")
        return path

    return write


def counted() -> list[tuple[dict[str, Any], int]]:
    """Configurations of model types, and their parameters as their modelling code has them."""
    lines = (CONFIGS.parent / "transformers_counts.jsonl").read_text(encoding="utf-8").splitlines()
    return [(known["config"], known["params"]) for known in map(json.loads, lines)]


def complaint(path: Path) -> str:
    """What reading says is wrong."""
    with pytest.raises(InputError) as caught:
        read_model(path)
    return str(caught.value)


@pytest.mark.parametrize("name", SHIPPED)
def test_a_configuration_gives_the_shipped_profile(name: str, catalogue: Catalogue) -> None:
    """Architecture, family and counts are those of the profile, whatever the family calls its keys."""
    read, shipped = read_model(CONFIGS / f"{name}.json"), catalogue.get("model", name)
    assert replace(read.architecture, verified=shipped.architecture.verified) == shipped.architecture
    assert read.computed == shipped.computed
    assert read.family == shipped.family


@pytest.mark.parametrize("name", sorted(RELEASED))
def test_a_configuration_gives_the_released_count(name: str) -> None:
    """Families without a shipped profile come out exact as well."""
    computed = read_model(CONFIGS / f"{name}.json").computed
    assert computed is not None
    assert computed.params == RELEASED[name]


def test_families_count_as_their_modelling_code_does(tmp_path: Path) -> None:
    """
    Defaults of model types of Transformers 5.24.0, counted there on the meta device.

    Exact but for what no profile counts, at most a part in ten thousand: corrections of routers, which are buffers
    there, and single vectors.
    """
    assert len(counted()) == 39
    for known, params in counted():
        path = tmp_path / "config.json"
        path.write_text(json.dumps(known), encoding="utf-8")
        kind, computed = known["model_type"], read_model(path).computed
        nearly = kind in NEARLY or {"top_k_experts", "num_kv_shared_layers"} & {*known}
        assert computed is not None
        off = abs(computed.params - params)
        assert off == 0 if not nearly else 0 < off <= 1.5e-4 * params, (kind, off)


_ODD: tuple[Any, ...] = (None, -1, 0, "x", [], [{}], {}, {"a": 1}, {"kda_layers": [[]], "num_heads": "x"}, True, 1e300)
_RARE = (
    "full_attn_idxs", "linear_attn_config", "per_layer_config", "layers_block_type", "block_ffn_dim_multiplier",
    "block_auto_adjust_ff_dim", "num_kv_shared_layers", "use_double_wide_mlp", "moe_layer_end_index", "text_config",
)  # fmt: skip


@pytest.mark.long
def test_no_odd_value_of_any_key_ends_in_a_traceback(tmp_path: Path) -> None:
    """A configuration is read, or refused with a reason."""
    path = tmp_path / "config.json"
    for known, _ in counted():
        for key, value in product([*known, *_RARE], _ODD):
            path.write_text(json.dumps({**known, key: value}), encoding="utf-8")
            with suppress(InputError):
                read_model(path)


def test_full_layers_of_gemma_4_have_heads_of_their_own(tmp_path: Path) -> None:
    """Layer by layer, as Transformers 5 writes it, or once for all, as it was before; their keys are their values."""
    known = next(config for config, _ in counted() if '"top_k_experts"' in json.dumps(config))
    now, before = tmp_path / "now.json", tmp_path / "before.json"
    now.write_text(json.dumps(known), encoding="utf-8")
    once = {"per_layer_config": None, "global_head_dim": 512, "num_global_key_value_heads": 2}
    before.write_text(json.dumps({**known, **once}), encoding="utf-8")
    shape = read_model(now).architecture
    assert shape == read_model(before).architecture
    assert shape.attention is not None
    assert shape.sliding is not None
    assert (shape.attention.kv_heads, shape.attention.head_dim, shape.attention.kv_projections) == (2, 512, 1)
    assert (shape.sliding.kv_heads, shape.sliding.head_dim) == (4, 256)
    assert shape.moe is not None
    assert shape.moe.shared_intermediate_size == known["intermediate_size"]
    uneven = {key: {"head_dim": 512} for key in known["per_layer_config"]} | {"05": {"head_dim": 128}}
    now.write_text(json.dumps({**known, "per_layer_config": uneven}), encoding="utf-8")
    assert "layers of many shapes are not read" in complaint(now)


def test_layers_that_share_a_cache_keep_none(tmp_path: Path) -> None:
    """Gemma 4's small models: the last third of the layers read the cache of others, and each layer has embeddings."""
    known = next(config for config, _ in counted() if '"num_kv_shared_layers"' in json.dumps(config))
    path = tmp_path / "config.json"
    path.write_text(json.dumps(known), encoding="utf-8")
    sharing = read_model(path)
    path.write_text(json.dumps({**known, "num_kv_shared_layers": 0, "use_double_wide_mlp": False}), encoding="utf-8")
    own = read_model(path)
    assert sharing.computed is not None
    assert own.computed is not None
    assert sharing.computed.sliding_cap_bytes == own.computed.sliding_cap_bytes * 17 // 25
    assert sharing.computed.kv_bytes_per_token == own.computed.kv_bytes_per_token * 3 // 5
    looked_up = sharing.architecture.vocab_size * sharing.architecture.layers * 256
    assert sharing.computed.params - sharing.computed.active_params == looked_up


def test_kimi_linears_own_configuration_is_read_as_other_hybrids(tmp_path: Path) -> None:
    """Its linear layers are nested and numbered from one; its full layers have latent attention."""
    known = next(config for config, _ in counted() if '"kimi_linear"' in json.dumps(config))
    path = tmp_path / "config.json"
    path.write_text(json.dumps(known), encoding="utf-8")
    nested = {
        "kda_layers": [index + 1 for index, kind in enumerate(known["layer_types"]) if kind == "linear_attention"],
        "num_heads": known.pop("linear_num_heads"),
        "head_dim": known.pop("linear_head_dim"),
        "short_conv_kernel_size": known.pop("linear_conv_kernel_dim"),
    }
    own = tmp_path / "own.json"
    own.write_text(json.dumps({**known, "layer_types": None, "linear_attn_config": nested}), encoding="utf-8")
    assert read_model(own).architecture == read_model(path).architecture
    assert read_model(own).architecture.latent_attention is not None


def test_an_unknown_type_that_speaks_of_experts_otherwise_is_refused(config: Callable[..., Path]) -> None:
    """It would be counted as a dense model, at a seventh of its weights."""
    said = complaint(config("llama3.2-1b", model_type="brandnew", moe_hidden_size=512))
    assert "moe_hidden_size: says something of experts that is not known of brandnew" in said


def test_the_head_is_tied_as_the_outer_model_says(config: Callable[..., Path]) -> None:
    """A language model inside another may say otherwise, and has no head of its own."""
    outer = json.loads((CONFIGS / "qwen2.5-7b.json").read_text(encoding="utf-8"))
    inner = outer | {"tie_word_embeddings": False}
    read = read_model(config("qwen2.5-7b", text_config=inner, tie_word_embeddings=True)).architecture
    assert read.tied_embeddings


def test_every_configuration_is_tested() -> None:
    """No file in the folder goes unread by a test."""
    named = {*SHIPPED, *RELEASED, "gemma3-4b", "minimax-m1", "qwen2-57b-a14b"}
    assert {path.stem for path in CONFIGS.glob("*.json")} == named


def test_a_gated_shared_expert_is_counted() -> None:
    """Qwen2-57B-A14B: 57.4B in total, and 14.2B active with the input embedding, as its authors count."""
    model = read_model(CONFIGS / "qwen2-57b-a14b.json")
    assert model.computed is not None
    assert model.architecture.moe is not None
    assert model.architecture.moe.shared_gate
    embedding = model.architecture.vocab_size * model.architecture.hidden_size
    assert round(model.computed.params / 1e9, 1) == 57.4
    assert round((model.computed.active_params + embedding) / 1e9, 1) == 14.2


def test_defaults_of_a_family_are_filled_in_and_named(catalogue: Catalogue) -> None:
    """Gemma 3's nested configuration leaves out heads and vocabulary; its code has them, with 64 rows for images."""
    model, shipped = read_model(CONFIGS / "gemma3-4b.json"), catalogue.get("model", "gemma3-4b")
    assert replace(model.architecture, vocab_size=262144) == shipped.architecture
    assert model.architecture.vocab_size == 262208
    assert "num_attention_heads is missing; 8 is the default of its family." in model.notes


def test_a_longer_context_changes_no_count(catalogue: Catalogue) -> None:
    """MiniMax-M1's configuration allows ten million positions; the profile has the million its authors support."""
    model, shipped = read_model(CONFIGS / "minimax-m1.json"), catalogue.get("model", "minimax-m1")
    assert model.architecture.max_context == 10_240_000
    assert model.computed == shipped.computed


def test_real_configurations_hold_no_surprise() -> None:
    """Hardly a key of a known family is left over; what is left over is named."""
    left = [note for path in CONFIGS.glob("*.json") for note in read_model(path).notes if "not understood" in note]
    assert left == ["Keys that were not understood, and may add parameters: mlp_type."]  # of starcoder2


def test_what_is_not_counted_is_said() -> None:
    """Multi-token-prediction layers and the parts outside the language model are named in a note."""
    notes = " ".join(read_model(CONFIGS / "qwen3.5-27b.json").notes)
    assert "multi-token-prediction layers (1), which are not counted" in notes
    assert "see or hear are not counted" in notes


def test_a_folder_stands_for_its_configuration(config: Callable[..., Path]) -> None:
    """A model's directory does as well as the file, and names the model where the file does not."""
    path = config("llama3.2-1b")
    assert read_model(path.parent) == read_model(path)


def test_names_come_from_the_repository(config: Callable[..., Path]) -> None:
    """A repository in the configuration gives name, title and aliases; a name given wins."""
    path = config("llama3.2-1b", _name_or_path="meta-llama/Llama-3.2-1B")
    model = read_model(path)
    assert (model.name, model.title, model.hf_repo) == ("llama-3.2-1b", "Llama-3.2-1B", "meta-llama/Llama-3.2-1B")
    assert model.aliases == ("meta-llama/Llama-3.2-1B", "Llama-3.2-1B")
    assert read_model(path, "mine").name == "mine"


@pytest.mark.parametrize("said", ["/home/me/out", "../../x/y", "a/b/c", "a b/c", 7, None, "\ud800/x"])
def test_other_paths_are_no_repository(said: object, config: Callable[..., Path]) -> None:
    """A path on somebody's disk is not taken for a repository."""
    assert read_model(config("llama3.2-1b", _name_or_path=said)).hf_repo == ""


@pytest.mark.parametrize("name", ["../x", "A", "a/b", ".x", "x" * 101, "a b"])
def test_a_name_that_is_no_file_name_is_refused(name: str) -> None:
    """A profile's name is the name of its file."""
    with pytest.raises(InputError, match="no name for a profile"):
        read_model(CONFIGS / "llama3.2-1b.json", name)


def test_the_source_tells_one_configuration_from_another(config: Callable[..., Path]) -> None:
    """The profile keeps a digest of the file it came from."""
    one = read_model(config("llama3.2-1b")).sources["config"]
    other = read_model(config("llama3.2-1b", hidden_size=2112)).sources["config"]
    assert one.startswith("config.json, sha256 ")
    assert one != other


UPPER = {"use_sliding_window": True, "sliding_window": 4096}


@pytest.mark.parametrize(
    ("name", "changed", "expected"),
    [
        ("mistral-7b-v0.1", {}, (0, Sliding(layers=32, window=4096))),
        ("mistral-7b-v0.1", {"sliding_window": 32768}, (32, None)),
        ("qwen2.5-7b", {**UPPER, "max_window_layers": 20}, (20, Sliding(layers=8, window=4096))),
        ("qwen2.5-7b", {**UPPER, "max_window_layers": 28}, (28, None)),
        ("gemma2-9b", {}, (21, Sliding(layers=21, window=4096))),
        ("gemma3-1b", {"sliding_window_pattern": ...}, (4, Sliding(layers=22, window=512))),
        ("gemma3-1b", {"sliding_window_pattern": 2}, (13, Sliding(layers=13, window=512))),
        ("gpt-oss-20b", {"layer_types": ...}, (12, Sliding(layers=12, window=128))),
        ("olmo3-7b", {"layer_types": ...}, (8, Sliding(layers=24, window=4096))),
    ],
)  # fmt: skip
def test_which_layers_slide(
    name: str, changed: dict[str, Any], expected: tuple[int, Sliding | None], config: Callable[..., Path]
) -> None:
    """Listed, by a pattern, from a layer on, or all; a window as long as the context is none."""
    shape = read_model(config(name, **changed)).architecture
    assert shape.attention is not None
    assert (shape.attention.layers, shape.sliding) == expected


@pytest.mark.parametrize(
    ("name", "changed", "dense", "moe"),
    [
        ("qwen3-30b-a3b", {"mlp_only_layers": [0, 5]}, 2, 46),
        ("qwen3-30b-a3b", {"decoder_sparse_step": 2}, 24, 24),
        ("deepseek-v3", {"moe_layer_freq": 2}, 32, 29),
        ("deepseek-v3", {"moe_layer_freq": [0] * 11 + [1] * 50}, 11, 50),
        ("deepseek-v3", {"mlp_layer_types": ["dense"] * 4 + ["sparse"] * 57}, 4, 57),
        ("qwen3-30b-a3b", {"num_experts": 0}, 48, 0),
    ],
)
def test_which_layers_have_experts(
    name: str, changed: dict[str, Any], dense: int, moe: int, config: Callable[..., Path]
) -> None:
    """After so many dense layers, every so many, listed, or none at all."""
    shape = read_model(config(name, **changed)).architecture
    assert (shape.feed_forward.layers if shape.feed_forward else 0) == dense
    assert (shape.moe.layers if shape.moe else 0) == moe


def test_biases_follow_the_family(config: Callable[..., Path]) -> None:
    """attention_bias means four biases in Llama, three in GLM-4.5; attention_out_bias decides on its own."""
    llama = read_model(config("llama3.2-1b", attention_bias=True)).architecture.attention
    glm = read_model(config("glm-4.5")).architecture.attention
    seed = read_model(config("seed-oss-36b", attention_out_bias=True)).architecture.attention
    assert llama is not None
    assert glm is not None
    assert seed is not None
    assert (llama.qkv_bias, llama.output_bias) == (True, True)
    assert (glm.qkv_bias, glm.output_bias) == (True, False)
    assert (seed.qkv_bias, seed.output_bias) == (True, True)


def test_linear_layers_without_a_list_come_by_their_interval(config: Callable[..., Path]) -> None:
    """Qwen3-Next's configuration of old has no layer_types: every fourth layer attends."""
    shape = read_model(config("qwen3-next-80b-a3b", full_attention_interval=...)).architecture
    assert shape.attention is not None
    assert shape.attention.layers == 12


def test_nemotron_blocks_may_be_listed(config: Callable[..., Path]) -> None:
    """The newer layers_block_type says the same as the pattern of letters."""
    words = {"M": "mamba", "*": "attention", "E": "moe"}
    plain = config("nemotron-3-nano-30b-a3b")
    pattern = json.loads(plain.read_text(encoding="utf-8"))["hybrid_override_pattern"]
    before = read_model(plain).architecture
    listed = [words[letter] for letter in pattern]
    after = read_model(
        config("nemotron-3-nano-30b-a3b", hybrid_override_pattern=..., layers_block_type=listed)
    ).architecture
    assert after == before


def test_minimax_m2_is_told_by_its_class(config: Callable[..., Path]) -> None:
    """Its first release shared the model_type of its predecessor."""
    assert (
        read_model(config("minimax-m2", model_type="minimax")).architecture
        == read_model(config("minimax-m2")).architecture
    )


def test_aliases_of_keys_are_read(config: Callable[..., Path]) -> None:
    """GPT-style names stand for the usual ones."""
    usual = read_model(config("llama3.2-1b")).computed
    older = {"n_embd": 2048, "n_layer": 16, "n_head": 32, "n_positions": 131072}
    newer = dict.fromkeys(("hidden_size", "num_hidden_layers", "num_attention_heads", "max_position_embeddings"), ...)
    assert read_model(config("llama3.2-1b", **older, **newer)).computed == usual


def test_an_unknown_family_is_read_by_the_usual_keys_and_says_so(config: Callable[..., Path]) -> None:
    """Counts are those of a plain decoder; the note names the family and every key that was passed over."""
    model = read_model(config("llama3.2-1b", model_type="brandnew", extra_tower_width=77))
    assert model.computed == read_model(config("llama3.2-1b")).computed
    assert (
        "The model_type brandnew is not known: gated MLPs, two norms a block and no biases were assumed." in model.notes
    )
    assert "Keys that were not understood, and may add parameters: extra_tower_width." in model.notes


def test_an_unknown_key_of_a_known_family_is_named(config: Callable[..., Path]) -> None:
    """What may add parameters is never passed over; what is empty or off is."""
    model = read_model(config("qwen3-8b", altup_layers=3, another=None, third=False, fourth=[]))
    assert model.notes == ("Keys that were not understood, and may add parameters: altup_layers.",)


@pytest.mark.parametrize(
    ("name", "changed", "what"),
    [
        ("llama3.2-1b", {"hidden_size": ...}, "hidden_size: is missing"),
        ("llama3.2-1b", {"model_type": ...}, "model_type: is missing"),
        ("llama3.2-1b", {"model_type": 3}, "model_type: 3 is not text"),
        ("llama3.2-1b", {"model_type": "brandnew", "tie_word_embeddings": ...}, "tie_word_embeddings: is missing"),
        ("llama3.2-1b", {"hidden_size": "2048"}, "hidden_size: 2048 is not a whole number"),
        ("llama3.2-1b", {"hidden_size": 2048.5}, "hidden_size: 2048.5 is not a whole number"),
        ("llama3.2-1b", {"hidden_size": True}, "hidden_size: True is not a whole number"),
        ("llama3.2-1b", {"hidden_size": 0}, "hidden_size: 0 is not between 1 and"),
        ("llama3.2-1b", {"hidden_size": -5}, "hidden_size: -5 is not between 1 and"),
        ("llama3.2-1b", {"hidden_size": 10**30}, "is not between 1 and"),
        ("llama3.2-1b", {"num_hidden_layers": [16]}, "num_hidden_layers: a list of 1 is not a whole number"),
        ("llama3.2-1b", {"num_hidden_layers": 10**6}, "is not between 1 and 2000"),
        ("llama3.2-1b", {"head_dim": ..., "hidden_size": 2050}, "head_dim: is missing, and 2050 over 32 heads"),
        ("llama3.2-1b", {"num_key_value_heads": 5}, "32 heads cannot share 5 kv_heads"),
        ("llama3.2-1b", {"tie_word_embeddings": "yes"}, "tie_word_embeddings: yes is neither true nor false"),
        ("llama3.2-1b", {"n_layer": 15}, "n_layer: says 15, but num_hidden_layers says 16"),
        ("llama3.2-1b", {"hidden_size": 10**7, "intermediate_size": 10**8, "head_dim": 64}, "beyond anything built"),
        ("llama3.2-1b", {"model_type": "brandnew", "sliding_window": 512}, "nothing says which layers slide"),
        ("gpt-oss-20b", {"layer_types": ["full_attention"] * 23}, "layer_types: has 23 entries for 24 layers"),
        ("gpt-oss-20b", {"layer_types": ["folded_attention"] * 24}, "layer_types: names folded_attention"),
        ("gpt-oss-20b", {"layer_types": [[]] * 24}, "layer_types: names a list of 0"),
        ("gpt-oss-20b", {"sliding_window": None}, "sliding_window: is missing, but some layers slide"),
        ("llama3.2-1b", {"layer_types": ["linear_attention"] * 16}, "names linear_attention, which is not known of"),
        ("nemotron-3-nano-30b-a3b", {"hybrid_override_pattern": ...}, "hybrid_override_pattern: is missing"),
        ("nemotron-3-nano-30b-a3b", {"hybrid_override_pattern": "MX"}, "hybrid_override_pattern: names X"),
        ("nemotron-3-nano-30b-a3b", {"mamba_proj_bias": True}, "biases of Mamba projections are not read"),
        ("minimax-m1", {"attn_type_list": ...}, "layer_types: is missing"),
        ("minimax-m1", {"attn_type_list": [2] * 80}, "attn_type_list: names 2"),
        ("qwen3-30b-a3b", {"num_experts_per_tok": 200}, "200 experts_per_token are more than 128 experts"),
        ("qwen3-30b-a3b", {"moe_intermediate_size": ...}, "moe_intermediate_size: is missing"),
        ("qwen3-30b-a3b", {"num_local_experts": 64}, "num_local_experts: says 64, but num_experts says 128"),
        ("deepseek-v3", {"attention_bias": True}, "biases of latent attention are not read"),
        ("deepseek-v3.2", {"index_topk": ...}, "index_topk: is missing"),
        ("llama3.2-1b", {"is_encoder_decoder": True}, "encoder-decoder models are not read"),
        ("llama3.2-1b", {"block_configs": [{}]}, "layers of many shapes are not read"),
        ("llama3.2-1b", {"v_head_dim": 32}, "is 32 beside keys of 64; values of another width are not read"),
        ("llama3.2-1b", {"num_kv_shared_layers": 4}, "layers that share a cache are not read"),
        ("llama3.2-1b", {"model_type": "gpt2"}, "gpt2 is older than the layouts that are read"),
        ("llama3.2-1b", {"model_type": "jamba"}, "jamba has recurrent layers of a kind that is not read"),
    ],
)
def test_a_configuration_that_cannot_be_counted_says_why(
    name: str, changed: dict[str, Any], what: str, config: Callable[..., Path]
) -> None:
    """The message names the key and the value; nothing is guessed."""
    path = config(name, **changed)
    said = complaint(path)
    assert what in said
    assert str(path) in said


def test_all_faults_are_told_at_once(config: Callable[..., Path]) -> None:
    """Three mistakes, three messages, each once."""
    said = complaint(config("gpt-oss-20b", hidden_size=..., vocab_size="many", sliding_window=[]))
    assert said.count("is missing") == 1
    assert said.count("vocab_size: many is not a whole number") == 1
    assert said.count("sliding_window: a list of 0") == 1


def test_a_fault_inside_a_nested_configuration_names_its_place(config: Callable[..., Path]) -> None:
    """The path goes through text_config."""
    assert "text_config.hidden_size: is missing" in complaint(
        config("gemma3-4b", text_config={"model_type": "gemma3_text"})
    )


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("", "is not valid JSON"),
        ("{", "is not valid JSON"),
        ("[1]", "is not a JSON object"),
        ("null", "is not a JSON object"),
        ('{"hidden_size": NaN}', "NaN is not a finite number"),
        ('{"hidden_size": -Infinity}', "-Infinity is not a finite number"),
        ('{"rope_theta": 1e999}', "1e999 is not a finite number"),
        ('{"a": 1, "a": 2}', "the key 'a' stands twice"),
        ('{"a": ' + "9" * 5000 + "}", "Exceeds the limit"),
        ('{"a": ' + "[" * 30 + "]" * 30 + "}", "is nested too deeply"),
        ("[" * 100_000, "is nested too deeply"),
        ("{" + ", ".join(f'"k{n}": {n}' for n in range(3000)) + "}", "holds 3000 keys"),
        (" " * (2**20 + 1), "is larger than 1 MiB"),
        ('{"a": "\x00"}', "NUL"),
    ],
)
def test_junk_is_refused(content: str, what: str, tmp_path: Path) -> None:
    """What is not a bounded JSON object of finite numbers is refused with the file's name."""
    path = tmp_path / "config.json"
    path.write_text(content, encoding="utf-8")
    said = complaint(path)
    assert what in said
    assert "config.json" in said


def test_files_that_are_none_are_refused(tmp_path: Path) -> None:
    """A missing file, a folder without a configuration, a binary file, a name that no file can have."""
    assert "no such file" in complaint(tmp_path / "config.json")
    assert "is a directory" in complaint(tmp_path)
    (tmp_path / "config.json").write_bytes(b"\x80\x81\x82")
    assert "is not UTF-8 text" in complaint(tmp_path)
    with pytest.raises(InputError):
        read_model("a\0b")


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(0, 5000)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=6,
)
LOADED = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(CONFIGS.glob("*.json"))}


@given(data=st.data(), name=st.sampled_from(sorted(LOADED)))
def test_a_spoilt_configuration_is_read_or_refused(
    data: st.DataObject, name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Junk under any keys ends in a profile that its own reader takes, or in an InputError; in no other exception."""
    spoilt = dict(LOADED[name])
    for key in data.draw(st.lists(st.sampled_from(sorted(spoilt)), max_size=3)):
        spoilt[key] = data.draw(JUNK)
    path = tmp_path_factory.mktemp("spoilt") / "config.json"
    path.write_text(json.dumps(spoilt), encoding="utf-8")
    try:
        model = read_model(path)
    except InputError:
        return
    text = model_profile_text(model)
    assert validated(Model, opened(parse_document(text, "m.yaml"), "model")) == model
