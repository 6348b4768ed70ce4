"""A profile written as a config.json and read again is the same shape."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rlsize.errors import InputError
from rlsize.facts.model import Architecture, Attention, FeedForward, Mamba, Model, Moe, Sliding
from rlsize.readers.huggingface import read_model
from rlsize.readers.profiles import Catalogue
from rlsize.writers.model_profile import config_of

WRITABLE = {
    "llama", "mistral", "mixtral", "phi3", "qwen2", "qwen3", "qwen3_moe", "smollm3", "olmo2", "olmo3", "gemma3_text",
}  # fmt: skip
CATALOGUE = Catalogue()
SHIPPED = [CATALOGUE.get("model", name) for name in CATALOGUE.names("model")]

ATTENTION = Attention(layers=4, heads=4, kv_heads=2, head_dim=16)
DENSE = FeedForward(layers=4, intermediate_size=128)
PLAIN = Architecture(
    source="config",
    layers=4,
    hidden_size=64,
    vocab_size=256,
    tied_embeddings=False,
    max_context=512,
    attention=ATTENTION,
    feed_forward=DENSE,
)
EXPERTS = Moe(layers=4, experts=8, experts_per_token=2, intermediate_size=32)


def model(family: str, **changed: Any) -> Model:
    """A small model of a family."""
    return Model(
        name="small",
        title="Small",
        family=family,
        architecture=replace(PLAIN, **changed),
        sources={"config": "made up"},
    )


def read(config: dict[str, Any], folder: Path) -> Model:
    """What the reader makes of it; nothing is assumed, and every key is understood."""
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    found = read_model(folder, "again")
    assert not found.notes
    return found


@pytest.mark.parametrize("profile", [each for each in SHIPPED if each.family in WRITABLE], ids=lambda each: each.name)
def test_shipped_profiles_come_back_as_they_were(profile: Model, tmp_path: Path) -> None:
    """The same architecture, and so the same counts."""
    found = read(config_of(profile), tmp_path)
    shape = profile.architecture
    assert found.architecture == replace(shape, source="config", verified=True)
    assert found.computed == profile.computed


def test_enough_of_the_catalogue_is_covered() -> None:
    """Every family that can be written is shipped, except Mixtral."""
    assert {each.family for each in SHIPPED} >= WRITABLE - {"mixtral"}


@pytest.mark.parametrize(
    ("family", "changed"),
    [
        ("mixtral", {"feed_forward": None, "moe": EXPERTS}),
        ("mixtral", {
            "feed_forward": None, "moe": EXPERTS,
            "attention": replace(ATTENTION, layers=0), "sliding": Sliding(layers=4, window=64),
        }),
        ("mistral", {"attention": replace(ATTENTION, layers=0), "sliding": Sliding(layers=4, window=64)}),
        ("llama", {
            "attention": replace(ATTENTION, qkv_bias=True, output_bias=True),
            "feed_forward": replace(DENSE, bias=True),
        }),
        ("qwen3_moe", {
            "attention": replace(ATTENTION, qk_norm="head"),
            "feed_forward": replace(DENSE, layers=1), "moe": replace(EXPERTS, layers=3),
        }),
        ("olmo3", {
            "attention": replace(ATTENTION, layers=0, qk_norm="full"), "sliding": Sliding(layers=4, window=64),
        }),
        ("gemma3_text", {
            "attention": replace(ATTENTION, layers=3, qk_norm="head"), "sliding": Sliding(layers=1, window=64),
            "norms_per_layer": 4,
        }),
    ],
)  # fmt: skip
def test_what_no_shipped_profile_has(family: str, changed: dict[str, Any], tmp_path: Path) -> None:
    """Biases, windows on all layers, dense layers among experts."""
    small = model(family, **changed)
    assert read(config_of(small), tmp_path).architecture == small.architecture


@pytest.mark.parametrize(
    "profile", [each for each in SHIPPED if each.family not in WRITABLE], ids=lambda each: each.name
)
def test_other_families_are_refused(profile: Model) -> None:
    """The error says which can be written, and what works instead."""
    with pytest.raises(InputError, match=f"family {profile.family} .*qwen3_moe") as caught:
        config_of(profile)
    assert "config.json" in caught.value.faults[0].todo


@pytest.mark.parametrize(
    ("family", "changed", "said"),
    [
        ("llama", {"attention": replace(ATTENTION, qk_norm="head")}, "kind head"),
        ("llama", {"attention": replace(ATTENTION, qkv_bias=True)}, "biases"),
        ("llama", {"attention": replace(ATTENTION, sinks=True)}, "sinks"),
        ("llama", {"norm_bias": True}, "with biases"),
        ("llama", {"feed_forward": None, "moe": EXPERTS}, "experts"),
        ("llama", {"feed_forward": replace(DENSE, matrices=2)}, "2 matrices"),
        ("olmo2", {"attention": replace(ATTENTION, qk_norm="full"), "feed_forward": replace(DENSE, bias=True)}, "bias"),
        ("mixtral", {}, "no experts"),
        ("mixtral", {"feed_forward": replace(DENSE, layers=1), "moe": replace(EXPERTS, layers=3)}, "dense layers"),
        ("qwen3_moe", {
            "attention": replace(ATTENTION, qk_norm="head"), "feed_forward": None,
            "moe": replace(EXPERTS, shared_experts=1, shared_intermediate_size=32),
        }, "shared experts"),
        ("mistral", {
            "attention": replace(ATTENTION, layers=2), "sliding": Sliding(layers=2, window=64),
        }, "2 sliding layers"),
        ("qwen2", {
            "attention": replace(ATTENTION, layers=0, qkv_bias=True), "sliding": Sliding(layers=4, window=64),
        }, "4 sliding layers"),
        ("llama", {
            "attention": None,
            "mamba": Mamba(layers=4, heads=4, head_dim=16, state_size=16, groups=1, conv_kernel=4),
        }, "mamba, no attention"),
    ],
)  # fmt: skip
def test_what_a_family_cannot_say_is_refused(family: str, changed: dict[str, Any], said: str) -> None:
    """Nothing is left out in silence."""
    with pytest.raises(InputError, match=said):
        config_of(model(family, **changed))
