"""A model's shape holds together, or says what contradicts what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rlsize.errors import InputError
from rlsize.facts.model import (
    Architecture,
    Attention,
    FeedForward,
    LatentAttention,
    Mamba,
    Model,
    Moe,
    Sliding,
    attending_layers,
)
from rlsize.readers.validation import opened, validated
from rlsize.readers.yaml_documents import parse_document

if TYPE_CHECKING:
    from collections.abc import Mapping

PROFILE = """rlsize: {kind: model, version: 1}
name: tiny
title: Tiny
family: llama
architecture:
  source: config
  layers: 2
  hidden_size: 8
  vocab_size: 100
  tied_embeddings: true
  max_context: 64
  attention: {layers: 2, heads: 4, kv_heads: 2, head_dim: 2}
  feed_forward: {layers: 2, intermediate_size: 16}
published_params: {value: 2k, source: config}
sources: {config: made up for this test}
"""


def shape(**changed: object) -> Architecture:
    """A dense shape of four layers, some of its fields changed."""
    fields: dict[str, Any] = {
        "source": "config",
        "layers": 4,
        "hidden_size": 8,
        "vocab_size": 100,
        "tied_embeddings": False,
        "max_context": 64,
        "attention": Attention(layers=4, heads=4, kv_heads=2, head_dim=2),
        "feed_forward": FeedForward(layers=4, intermediate_size=16),
    }
    return Architecture(**{**fields, **changed})


def read(text: str) -> Model:
    """A profile as the catalogue reads it."""
    return validated(Model, opened(parse_document(text, "tiny.yaml"), "model"))


MOE: dict[str, Any] = {"layers": 4, "experts": 4, "experts_per_token": 2, "intermediate_size": 4}


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"attention": Attention(layers=4, heads=4, kv_heads=3, head_dim=2)}, "4 heads cannot share 3 kv_heads"),
        ({"attention": Attention(layers=3, heads=4, kv_heads=2, head_dim=2)}, "4 layers do not agree with 3"),
        ({"attention": None}, "there is no attention, linear_attention or mamba"),
        ({"attention": Attention(layers=0, heads=4, kv_heads=2, head_dim=2)}, "attention has no layers"),
        ({"sliding": Sliding(layers=1, window=4)}, "4 layers do not agree with 5"),
        ({"sliding": Sliding(layers=4, window=4), "attention": None}, "sliding layers need attention"),
        ({"feed_forward": None, "moe": Moe(**{**MOE, "experts_per_token": 5})}, "5 experts_per_token are more than 4"),
        ({"feed_forward": None, "moe": Moe(**MOE, shared_experts=1)}, "go together"),
        ({"moe": Moe(**MOE)}, "8 feed_forward and moe layers"),
        (
            {
                "latent_attention": LatentAttention(
                    layers=4,
                    heads=2,
                    q_lora_rank=0,
                    kv_lora_rank=4,
                    qk_nope_head_dim=2,
                    qk_rope_head_dim=2,
                    v_head_dim=2,
                )
            },
            "exclude each other",
        ),
    ],
)
def test_a_shape_that_contradicts_itself_is_refused(changed: Mapping[str, object], what: str) -> None:
    """The message names the numbers that do not go together."""
    with pytest.raises(ValueError, match=what):
        shape(**changed)


def test_all_contradictions_are_told_at_once() -> None:
    """Two mistakes make one message."""
    with pytest.raises(ValueError, match=r"cannot share .*; 4 layers do not agree"):
        shape(attention=Attention(layers=3, heads=4, kv_heads=3, head_dim=2))


def test_blocks_of_one_thing_each_are_a_shape() -> None:
    """Where a block holds attention, Mamba or an MLP, the kinds add up to the layers."""
    mixed = shape(
        attention=Attention(layers=1, heads=4, kv_heads=2, head_dim=2),
        mamba=Mamba(layers=1, heads=2, head_dim=2, state_size=2, groups=1, conv_kernel=2),
        feed_forward=FeedForward(layers=2, intermediate_size=16),
    )
    assert attending_layers(mixed) == 1


def test_sliding_layers_attend_too() -> None:
    """Full and sliding layers together keep keys and values."""
    attention = Attention(layers=1, heads=4, kv_heads=2, head_dim=2)
    assert attending_layers(shape(attention=attention, sliding=Sliding(layers=3, window=4))) == 4


def test_a_profile_is_read() -> None:
    """Quantities are read with their units, blocks as dataclasses."""
    model = read(PROFILE)
    assert model.published_params is not None
    assert model.published_params.value == 2000
    assert model.architecture.attention == Attention(layers=2, heads=4, kv_heads=2, head_dim=2)
    assert model.computed is None


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("layers: 2\n", "layers: 3\n", "3 layers do not agree with 2"),
        ("hidden_size: 8", "hidden_size: 0", "0 must be more than 0"),
        ("hidden_size: 8", "hidden_size: 8.5", "8.5 must be a whole number"),
        ("hidden_size: 8", "hidden_size: wide", "is not a count"),
        ("hidden_size: 8", "hiden_size: 8", "did you mean hidden_size"),
        ("kv_heads: 2", "kv_heads: -2", "-2 must be more than 0"),
        ("source: config\n  layers", "source: paper\n  layers", "names the source 'paper'"),
        ("head_dim: 2}", "head_dim: 2, qk_norm: some}", "'none', 'head' or 'full'"),
        ("intermediate_size: 16", "intermediate_size: 16, matrices: 4", "4 is too large"),
        ("  vocab_size: 100\n", "", "is missing"),
    ],
)
def test_a_wrong_profile_says_what_and_where(old: str, new: str, what: str) -> None:
    """The file, the line and the key of the mistake stand in the message."""
    assert old in PROFILE
    with pytest.raises(InputError) as caught:
        read(PROFILE.replace(old, new, 1))
    assert what in str(caught.value)
    assert "tiny.yaml" in str(caught.value)
