"""A model profile as text is what the catalogue reads back."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.facts.fields import Sourced
from rlsize.facts.model import Architecture, Attention, FeedForward, Model
from rlsize.readers.validation import opened, validated
from rlsize.readers.yaml_documents import parse_document
from rlsize.writers.model_profile import HEADER, model_profile_text

TINY = Model(
    name="tiny",
    title="Tiny",
    family="llama",
    architecture=Architecture(
        source="config",
        layers=2,
        hidden_size=8,
        vocab_size=100,
        tied_embeddings=True,
        max_context=64,
        attention=Attention(layers=2, heads=4, kv_heads=2, head_dim=2),
        feed_forward=FeedForward(layers=2, intermediate_size=16),
    ),
    sources={"config": "made up"},
)


def read(text: str) -> Model:
    """A profile as the catalogue reads it."""
    return validated(Model, opened(parse_document(text, "tiny.yaml"), "model"))


def test_the_header_comes_first() -> None:
    """The first line says kind and version."""
    assert model_profile_text(TINY).startswith(HEADER)


def test_defaults_are_left_out() -> None:
    """What is as always is not written; what is required is."""
    text = model_profile_text(TINY)
    assert "qkv_bias" not in text
    assert "verified" not in text
    assert "notes" not in text
    assert "tied_embeddings: true" in text


def test_what_nobody_verified_says_so() -> None:
    """An unverified architecture and an unverified number carry the word into the file."""
    model = replace(
        TINY,
        architecture=replace(TINY.architecture, verified=False),
        published_params=Sourced(value=2e9, source="config", verified=False, note="from memory"),
    )
    assert model_profile_text(model).count("verified: false") == 2


@pytest.mark.parametrize(
    "title", ["no", "1e9", "a: b", "- x", "#", "'", '"', "\\", "{", "null", "~", " x ", "é", "\x07", "\u2028"]
)
def test_awkward_text_comes_back_as_it_was(title: str) -> None:
    """What YAML might take for something else is quoted."""
    assert read(model_profile_text(replace(TINY, title=title))).title == title


@given(title=st.text(min_size=1), note=st.text(min_size=1), key=st.text(min_size=1), alias=st.text(min_size=1))
def test_any_text_comes_back_as_it_was(title: str, note: str, key: str, alias: str) -> None:
    """Titles, notes, aliases and sources survive writing and reading, whatever stands in them."""
    model = replace(TINY, title=title, notes=(note,), aliases=(alias,), sources={"config": note, key: title})
    assert read(model_profile_text(model)) == model
