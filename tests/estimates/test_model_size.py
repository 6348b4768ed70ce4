"""The size of a model, against counts of released weights and against itself."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.estimates.model_size import BF16_BYTES, model_size, with_computed
from rlsize.facts.model import (
    Architecture,
    Attention,
    FeedForward,
    LinearAttention,
    Mamba,
    Model,
    Moe,
    Sliding,
)
from rlsize.readers.profiles import Catalogue

if TYPE_CHECKING:
    from rlsize.facts.figure import Figure

# Parameters in the safetensors files of the repository, as Hugging Face counts them.
RELEASED = {
    "qwen2.5-0.5b": 494_032_768,
    "qwen2.5-1.5b": 1_543_714_304,
    "qwen2.5-7b": 7_615_616_512,
    "qwen2.5-14b": 14_770_033_664,
    "qwen2.5-32b": 32_763_876_352,
    "qwen2.5-72b": 72_706_203_648,
    "qwen3-8b": 8_190_735_360,
    "qwen3-14b": 14_768_307_200,
    "qwen3-32b": 32_762_123_264,
    "qwen3-30b-a3b": 30_532_122_624,
    "qwen3-235b-a22b": 235_093_634_560,
    "llama3.1-8b": 8_030_261_248,
    "llama3.1-70b": 70_553_706_496,
    "llama3.1-405b": 405_853_388_800,
    "llama3.2-1b": 1_235_814_400,
    "llama3.2-3b": 3_212_749_824,
    "mistral-7b-v0.3": 7_248_023_552,
    "gemma3-1b": 999_885_952,
    "deepseek-v3": 671_026_419_200,
    "kimi-k2": 1_026_408_232_448,
    "gpt-oss-20b": 20_914_757_184,
    "gpt-oss-120b": 116_829_156_672,
    "phi-4": 14_659_507_200,
    "phi-4-mini": 3_836_021_760,
    "smollm2-1.7b": 1_711_376_384,
    "smollm3-3b": 3_075_098_624,
}


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    """The shipped profiles."""
    return Catalogue()


def named(shape: Architecture) -> Model:
    """A model of that shape."""
    return Model(name="m", title="M", family="llama", architecture=shape, sources={"config": "a test"})


def small(**changed: object) -> Architecture:
    """A dense model of four layers, some of its fields changed."""
    fields: dict[str, object] = {
        "source": "config",
        "layers": 4,
        "hidden_size": 8,
        "vocab_size": 100,
        "tied_embeddings": False,
        "max_context": 64,
        "attention": Attention(layers=4, heads=4, kv_heads=2, head_dim=2),
        "feed_forward": FeedForward(layers=4, intermediate_size=16),
    }
    return Architecture(**{**fields, **changed})  # type: ignore[arg-type]  # fields of many types


@pytest.mark.parametrize("name", sorted(RELEASED))
def test_totals_are_those_of_the_released_weights(name: str, catalogue: Catalogue) -> None:
    """The count is exact to the last parameter (without multi-token-prediction layers and vision towers)."""
    assert model_size(catalogue.get("model", name)).params.value == RELEASED[name]


def test_a_model_small_enough_to_count_by_hand() -> None:
    """4 x (192 attention + 384 MLP + 16 norms), a norm of 8, two embeddings of 800; one of them is only looked up."""
    size = model_size(named(small()))
    assert size.params.value == 4 * (192 + 384 + 16) + 8 + 1600
    assert size.active_params.value == 4 * (192 + 384 + 16) + 8 + 800
    assert size.kv_bytes_per_token.value == 2 * 4 * 2 * 2 * 2


def test_tied_embeddings_count_once_and_work_on_every_token() -> None:
    """The tied matrix is the output head, so total and active are the same."""
    size = model_size(named(small(tied_embeddings=True)))
    assert size.params.value == size.active_params.value == 4 * (192 + 384 + 16) + 8 + 800


def test_every_extra_of_attention_is_counted() -> None:
    """Biases, norms, gate and sinks add their own entries to each of the four layers."""
    plain = model_size(named(small())).params.number
    extras: dict[str, tuple[object, int]] = {
        "qkv_bias": (True, 16),
        "output_bias": (True, 8),
        "output_gate": (True, 64),
        "sinks": (True, 4),
    }
    for field, (value, entries) in extras.items():
        attention = dataclasses.replace(Attention(layers=4, heads=4, kv_heads=2, head_dim=2), **{field: value})  # type: ignore[arg-type]  # one field of many
        assert model_size(named(small(attention=attention))).params.number - plain == 4 * entries, field
    for norm, entries in (("head", 4), ("full", 12)):
        attention = Attention(layers=4, heads=4, kv_heads=2, head_dim=2, qk_norm=norm)  # type: ignore[arg-type]  # a literal
        assert model_size(named(small(attention=attention))).params.number - plain == 4 * entries, norm


def test_biases_of_norms_and_mlps_are_counted() -> None:
    """LayerNorm doubles the norms; an MLP's biases are its two inner widths and its outer one."""
    plain = model_size(named(small())).params.number
    assert model_size(named(small(norm_bias=True))).params.number - plain == 4 * 16 + 8
    biased = FeedForward(layers=4, intermediate_size=16, bias=True)
    assert model_size(named(small(feed_forward=biased))).params.number - plain == 4 * 40


def test_active_parameters_of_experts() -> None:
    """Of 8 experts 2 work on a token; shared experts, gate and router work on all."""
    moe = Moe(
        layers=3,
        experts=8,
        experts_per_token=2,
        intermediate_size=4,
        shared_experts=2,
        shared_intermediate_size=4,
        shared_gate=True,
        router_bias=True,
        expert_bias=True,
    )
    size = model_size(named(small(feed_forward=FeedForward(layers=1, intermediate_size=16), moe=moe)))
    expert, shared, router = 3 * 8 * 4 + 2 * 4 + 8, 2 * 3 * 8 * 4 + 8, 8 * 8 + 8
    outside = 4 * (192 + 16) + 8 + 384
    assert size.params.value == outside + 1600 + 3 * (8 * expert + shared + router)
    assert size.active_params.value == outside + 800 + 3 * (2 * expert + shared + router)


def test_sliding_layers_are_capped() -> None:
    """They count their parameters like others, but keep no more tokens than the window."""
    attention = Attention(layers=1, heads=4, kv_heads=2, head_dim=2)
    shape = small(attention=attention, sliding=Sliding(layers=3, window=10))
    size = model_size(named(shape))
    assert size.params.value == model_size(named(small())).params.value
    assert size.kv_bytes_per_token.value == 16
    assert size.sliding_bytes_per_token.value == 48
    assert size.sliding_cap_bytes.value == 480
    assert size.window_tokens.value == 10


def test_recurrent_layers_keep_a_state() -> None:
    """Linear attention and Mamba keep states and convolution inputs of constant size, and no tokens."""
    linear = LinearAttention(
        layers=2, kind="gated_deltanet", key_heads=2, value_heads=4, key_head_dim=3, value_head_dim=5, conv_kernel=4
    )
    mamba = Mamba(layers=1, heads=2, head_dim=3, state_size=7, groups=1, conv_kernel=4)
    attention = Attention(layers=1, heads=4, kv_heads=2, head_dim=2)
    size = model_size(named(small(attention=attention, linear_attention=linear, mamba=mamba)))
    assert size.recurrent_state_bytes.value == 2 * 4 * 3 * 5 * 4 + 2 * 3 * 7 * 4
    assert size.convolution_state_bytes.value == (2 * (2 * 6 + 20) + (6 + 14)) * 3 * BF16_BYTES
    assert size.kv_bytes_per_token.value == 16


def test_a_narrower_cache_is_half(catalogue: Catalogue) -> None:
    """In fp8 every cache is half of what it is in bf16; states have a width of their own."""
    for name in ("qwen3-next-80b-a3b", "deepseek-v3.2", "gpt-oss-20b"):
        model = catalogue.get("model", name)
        wide, narrow = model_size(model), model_size(model, bytes_per_kv_value=1.0)
        for key in ("kv_bytes_per_token", "index_bytes_per_token", "sliding_cap_bytes"):
            assert getattr(narrow, key).number == getattr(wide, key).number / 2
        assert narrow.recurrent_state_bytes == wide.recurrent_state_bytes


def test_the_parts_are_all_of_it(catalogue: Catalogue) -> None:
    """The bill adds up, total and active, for every shipped model."""
    for name in catalogue.names("model"):
        size = model_size(catalogue.get("model", name))
        assert sum(part.params.number for part in size.parts) == size.params.number
        assert sum(part.active_params.number for part in size.parts) == size.active_params.number


def leaves(figure: Figure) -> list[Figure]:
    """The inputs behind a figure that nothing was worked out from."""
    return [leaf for inner in figure.inputs.values() for leaf in leaves(inner)] if figure.inputs else [figure]


def test_every_number_leads_back_to_the_profile(catalogue: Catalogue) -> None:
    """Behind the count stand figures with an equation, or a source that names the profile."""
    size = model_size(catalogue.get("model", "qwen3-30b-a3b"))
    for leaf in leaves(size.params):
        assert leaf.source.startswith("model profile qwen3-30b-a3b: ai-dynamo/aiconfigurator"), leaf
    assert size.params.provenance == "predicted"


def test_an_unverified_architecture_shows(catalogue: Catalogue) -> None:
    """What nobody read in a stored configuration marks the counts made from it."""
    assert not model_size(catalogue.get("model", "olmo2-32b")).params.verified
    assert model_size(catalogue.get("model", "olmo2-7b")).params.verified


@given(layers=st.integers(1, 100), hidden=st.integers(1, 512), vocab=st.integers(1, 10**6), width=st.integers(1, 4096))
def test_computing_twice_changes_nothing(layers: int, hidden: int, vocab: int, width: int) -> None:
    """Counts are whole, active is at most total, and a profile that was computed is computed alike again."""
    shape = small(
        layers=layers,
        hidden_size=hidden,
        vocab_size=vocab,
        attention=Attention(layers=layers, heads=4, kv_heads=2, head_dim=2),
        feed_forward=FeedForward(layers=layers, intermediate_size=width),
    )
    once = with_computed(named(shape))
    assert once.computed is not None
    assert once.computed.active_params <= once.computed.params
    assert with_computed(once) == once
