"""FLOPs of training against the sums that one does by hand, matrix by matrix."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.estimates.model_size import model_size
from rlsize.estimates.training_flops import training_flops_per_token
from rlsize.facts.model import Architecture, Attention, FeedForward, LatentAttention, Mamba, Model, Moe, Sliding
from rlsize.readers.profiles import Catalogue

DENSE = Attention(layers=4, heads=4, kv_heads=2, head_dim=2)
LINEAR_MATRICES = 4 * (192 + 384) + 800  # attention and MLP of each layer, and the head


def model(**changed: object) -> Model:
    """A dense model of four layers, some of its fields changed."""
    fields: dict[str, object] = {
        "source": "config",
        "layers": 4,
        "hidden_size": 8,
        "vocab_size": 100,
        "tied_embeddings": False,
        "max_context": 64,
        "attention": DENSE,
        "feed_forward": FeedForward(layers=4, intermediate_size=16),
    }
    shape = Architecture(**{**fields, **changed})  # type: ignore[arg-type]  # fields of many types
    return Model(name="m", title="M", family="llama", architecture=shape, sources={"config": "a test"})


def test_six_for_each_entry_of_a_matrix() -> None:
    """Neither the looked-up embedding nor norms take part."""
    assert training_flops_per_token(model(), [10]).flops_per_token.value == 6 * LINEAR_MATRICES


def test_a_tied_embedding_is_multiplied_once() -> None:
    """As the output head, not as the embedding."""
    assert training_flops_per_token(model(tied_embeddings=True), [10]).flops_per_token.value == 6 * LINEAR_MATRICES


@pytest.mark.parametrize(
    "changed",
    [
        {"norm_bias": True},
        {"attention": Attention(layers=4, heads=4, kv_heads=2, head_dim=2, qkv_bias=True, output_bias=True)},
        {"attention": Attention(layers=4, heads=4, kv_heads=2, head_dim=2, qk_norm="full", sinks=True)},
        {"attention": Attention(layers=4, heads=4, kv_heads=2, head_dim=2, qk_norm="head")},
        {"feed_forward": FeedForward(layers=4, intermediate_size=16, bias=True)},
    ],
)
def test_vectors_cost_nothing(changed: dict[str, object]) -> None:
    """Norms, biases and sinks add parameters, and no products."""
    with_vectors = model(**changed)
    assert model_size(with_vectors).active_params.number > model_size(model()).active_params.number
    assert training_flops_per_token(with_vectors, [10]).flops_per_token.value == 6 * LINEAR_MATRICES


def test_only_the_experts_that_work_count() -> None:
    """Two of eight experts of 3 x 8 x 16, and the router of 8 x 8; biases of all kinds cost nothing."""
    moe = Moe(layers=4, experts=8, experts_per_token=2, intermediate_size=16, expert_bias=True, router_bias=True)
    sparse = model(feed_forward=None, moe=moe)
    assert training_flops_per_token(sparse, [10]).flops_per_token.value == 6 * (4 * (192 + 2 * 384 + 64) + 800)


def test_causal_attention_is_half_of_the_square() -> None:
    """6 L n d s, where the square would be 12 L n d s; s is the sum of squares over the sum."""
    found = training_flops_per_token(model(), [10, 30])
    length = (10**2 + 30**2) / 40
    assert found.attention_flops_per_token.value == pytest.approx(6 * 4 * 4 * 2 * length)


def test_windows_save_work() -> None:
    """Three sliding layers see four tokens of twenty."""
    attention = Attention(layers=1, heads=4, kv_heads=2, head_dim=2)
    found = training_flops_per_token(model(attention=attention, sliding=Sliding(layers=3, window=4)), [20])
    pairs = 1 * 20**2 / 2 + 3 * (4 * 20 - 8)
    assert found.attention_flops_per_token.value == pytest.approx(12 * 4 * 2 * pairs / 20)


def test_latent_attention_has_widths_of_its_own() -> None:
    """Scores are as wide as both parts of the key, values as wide as values; the norms of the ranks cost nothing."""
    latent = LatentAttention(
        layers=4, heads=4, q_lora_rank=6, kv_lora_rank=5, qk_nope_head_dim=3, qk_rope_head_dim=2, v_head_dim=4
    )
    found = training_flops_per_token(model(attention=None, latent_attention=latent), [10])
    assert found.attention_flops_per_token.value == pytest.approx(6 * 4 * 4 * (5 + 4) * 10 / 2)
    each = 8 * 6 + 6 * 4 * 5 + 8 * (5 + 2) + 5 * 4 * (3 + 4) + 4 * 4 * 8
    assert found.flops_per_token.value == 6 * (4 * (each + 384) + 800)


def test_layers_without_scores_are_named() -> None:
    """A recurrence is in no attention FLOPs, and a note says so."""
    mamba = Mamba(layers=4, heads=4, head_dim=4, state_size=8, groups=1, conv_kernel=4)
    found = training_flops_per_token(model(attention=None, mamba=mamba), [10])
    assert found.attention_flops_per_token.value == 0
    assert "Mamba" in " ".join(found.notes)
    assert training_flops_per_token(model(), [10]).notes == ()


@given(lengths=st.lists(st.integers(1, 5000), min_size=1, max_size=20))
def test_a_mix_costs_at_least_what_its_mean_length_does(lengths: list[int]) -> None:
    """Squares are convex, so long sequences outweigh short ones; matrices do not care."""
    mean = sum(lengths) / len(lengths)
    mixed, even = training_flops_per_token(model(), lengths), training_flops_per_token(model(), [round(mean)])
    assert mixed.flops_per_token.value == even.flops_per_token.value
    assert mixed.attention_flops_per_token.number >= 6 * 4 * 4 * 2 * mean * (1 - 1e-9)


def test_every_shipped_model_has_an_answer() -> None:
    """Six for each active parameter, less what norms and biases are of it: never more, and hardly less."""
    catalogue = Catalogue()
    for name in catalogue.names("model"):
        profile = catalogue.get("model", name)
        matrices = training_flops_per_token(profile, [2048]).flops_per_token.number
        assert 0.99 < matrices / (6 * model_size(profile).active_params.number) <= 1.0, name
