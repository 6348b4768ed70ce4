"""Models by their kind and their parameter counts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlsize.errors import InputError
from rlsize.estimates.model_size import model_size
from rlsize.estimates.scaled_model import scaled
from rlsize.readers.profiles import Catalogue

CATALOGUE = Catalogue()


@settings(max_examples=60)
@given(st.sampled_from(CATALOGUE.names("model")), st.floats(0.3, 8.0))
def test_a_scaled_model_has_the_parameters_that_it_is_asked_for(name: str, times: float) -> None:
    """Within what widths of whole lanes leave, and with blocks that agree, for every profile."""
    model = CATALOGUE.get("model", name)
    wanted = times * model_size(model).params.number
    if wanted > 3e9:  # smaller ones are all embedding
        found = scaled(model, wanted)
        assert model_size(found).params.number == pytest.approx(wanted, rel=0.06)
        assert (found.architecture.moe is None, found.family) == (model.architecture.moe is None, model.family)
        if model.architecture.attention and found.architecture.attention:  # ranks that share one share the other
            heads = found.architecture.attention.heads / model.architecture.attention.heads
            assert heads in {0.5, 1.0, 2.0}


@pytest.mark.parametrize(
    ("like", "true"), [("qwen3-32b", "qwen3-8b"), ("llama3.1-70b", "llama3.1-8b"), ("glm-4.5-air", "glm-4.5")]
)
def test_a_sibling_is_told_from_another(like: str, true: str) -> None:
    """Active parameters and cache come out near those that its own file gives."""
    own: Any = model_size(CATALOGUE.get("model", true))
    moe = CATALOGUE.get("model", true).architecture.moe is not None
    params, active = own.params.number, own.active_params.number
    found: Any = model_size(scaled(CATALOGUE.get("model", like), params, active if moe else 0.0))
    assert found.active_params.number == pytest.approx(active, rel=0.1)
    assert found.kv_bytes_per_token.number == pytest.approx(own.kv_bytes_per_token.number, rel=0.25)


def test_a_profile_can_be_named_with_other_parameters() -> None:
    """The same object each time, with dimensions that nobody verified; far from home it is refused."""
    found = CATALOGUE.get("model", "Qwen3.5-27B@9B")
    assert found is CATALOGUE.get("model", "qwen3.5-27b@9b")
    assert (found.name, found.architecture.verified) == ("qwen3.5-27b@9B", False)
    assert CATALOGUE.get("model", "qwen3-30b-a3b@61B-A5B").name == "qwen3-30b-a3b@61B-A5B"
    for wrong in ("qwen3-8b@900B", "qwen3-30b-a3b@30B-A40B", "no-such@9B"):
        with pytest.raises(InputError):
            CATALOGUE.get("model", wrong)
