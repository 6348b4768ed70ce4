"""An engine's memory at start-up: published logs, limits, and directions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.estimates.belief import interval, prior
from rlsize.estimates.constants_memory import STAGE
from rlsize.estimates.engine_memory import KvCapacity, kv_capacity
from rlsize.estimates.engine_work import EngineQuestion
from rlsize.estimates.figures import apply, numbers
from rlsize.facts.layout import Layout
from rlsize.facts.quantisation import WIDE_ATTENTION_FP8, uniform
from rlsize.readers.profiles import Catalogue

CATALOGUE = Catalogue()
VALUES = prior(STAGE).central()
GIB = 2.0**30


def asked(model: str = "llama3.1-8b", gpu: str = "h100-sxm", **changed: object) -> EngineQuestion:
    """A question about shipped profiles."""
    question = EngineQuestion(model=CATALOGUE.get("model", model), gpu=CATALOGUE.get("gpu", gpu))
    return replace(question, **changed)  # type: ignore[arg-type]  # fields of a question


def found(question: EngineQuestion, tokens: object = None) -> KvCapacity:
    """The answer at the central constants, for sequences of so many tokens."""
    return kv_capacity(numbers, question, VALUES, tokens)


def test_a_published_log_is_met() -> None:
    """Two RTX 4090 with Qwen2.5-14B at 0.98 logged 81,536 tokens and 13.95 GiB of weights (vLLM issue 13061)."""
    question = asked(
        "qwen2.5-14b", "rtx-4090", layout=Layout(tensor=2), memory_fraction=0.98, max_sequences=256.0,
        graphs_counted=False,
    )  # fmt: skip
    answer = found(question)
    assert answer.kv_tokens == pytest.approx(81536, rel=0.06)
    assert answer.weight_bytes / GIB == pytest.approx(13.9476, rel=0.01)


def test_weights_of_a_checkpoint_that_mixes_types() -> None:
    """Llama-3.1-405B-FP8 on 8 GPUs logged 57.75 GiB on each: its attention stays in bf16 (vLLM issue 6746)."""
    question = asked("llama3.1-405b", layout=Layout(tensor=8), weights=WIDE_ATTENTION_FP8)
    assert found(question).weight_bytes / GIB == pytest.approx(57.752, rel=0.025)


def test_the_band_holds_the_published_tokens() -> None:
    """The same log lies inside the 80 % band."""
    question = asked(
        "qwen2.5-14b", "rtx-4090", layout=Layout(tensor=2), memory_fraction=0.98, max_sequences=256.0,
        graphs_counted=False,
    )  # fmt: skip
    low, high = interval(kv_capacity(numbers, question, prior(STAGE).drawn(1)).kv_tokens)
    assert low < 81536 < high


def test_figures_and_numbers_agree() -> None:
    """The explained answer has the same tokens, and says which equation gave them."""
    question = asked("qwen3-30b-a3b", "h200-sxm", layout=Layout(tensor=2))
    explained = kv_capacity(apply, question, VALUES)
    assert explained.kv_tokens.value == found(question).kv_tokens
    assert explained.kv_tokens.equation == "engine_cache.cache_tokens"


def test_a_model_that_does_not_fit_has_no_cache() -> None:
    """70B in bf16 on one GPU of 80 GB leaves nothing, not less than nothing."""
    answer = found(asked("llama3.1-70b"))
    assert answer.kv_bytes == 0
    assert answer.kv_tokens == 0


def test_heads_are_copied_beyond_their_number() -> None:
    """Four KV heads on eight ranks take as much cache on each GPU as on four ranks, and their projections grow."""
    four, eight = (found(asked("qwen3-30b-a3b", layout=Layout(tensor=ranks))) for ranks in (4, 8))
    assert eight.sequence_bytes == four.sequence_bytes
    assert eight.weight_bytes > four.weight_bytes / 2


def test_a_latent_is_whole_on_every_rank() -> None:
    """MLA's cache is not divided by tensor parallelism; attention data parallelism gives each rank its own."""
    question = asked("deepseek-v3", "h200-sxm", layout=Layout(tensor=8))
    tensor, longest = found(question), question.model.architecture.max_context
    data = found(asked("deepseek-v3", "h200-sxm", layout=Layout(tensor=1, data=8)))
    assert tensor.sequence_bytes == 61 * 576 * 2 * longest
    assert data.sequence_bytes == tensor.sequence_bytes
    assert data.kv_tokens > 4 * tensor.kv_tokens


def test_windows_hold_longer_sequences() -> None:
    """A model with sliding layers caches more tokens of long sequences than one whose windows keep all."""
    question = asked("gpt-oss-20b")
    assert found(question).kv_tokens > 1.9 * found(replace(question, windows_whole=True)).kv_tokens


def test_a_recurrent_state_limits_short_sequences() -> None:
    """A hybrid model's cache in tokens shrinks with the sequence, since each keeps its state."""
    question = asked("qwen3-next-80b-a3b", "h200-sxm", layout=Layout(tensor=4))
    short, long = (found(question, length).kv_tokens for length in (256.0, 65536.0))
    assert short < 0.2 * long


def test_a_narrow_cache_holds_twice_the_tokens() -> None:
    """fp8 halves the bytes of a token."""
    wide, narrow = (found(asked(kv_dtype=dtype)).kv_tokens for dtype in ("bf16", "fp8"))
    assert narrow == pytest.approx(2 * wide, rel=1e-3)


@pytest.mark.parametrize("engine", ["vllm", "sglang", "TensorRT-LLM 1.0"])
def test_every_engine_leaves_room_for_a_small_model(engine: str) -> None:
    """8B on 80 GB leaves between half and nine tenths of the memory to the cache."""
    answer = found(asked(engine=engine))
    assert 0.5 < answer.kv_bytes / answer.memory < 0.9


@given(low=st.floats(0.5, 0.9), more=st.floats(0.0, 0.1))
def test_a_larger_share_never_caches_less(low: float, more: float) -> None:
    """Monotone in the memory fraction."""
    small, large = (found(asked(memory_fraction=share)).kv_tokens for share in (low, low + more))
    assert large >= small


@given(context=st.floats(1.0, 131072.0), longer=st.floats(0.0, 131072.0))
def test_longer_sequences_never_take_less_cache(context: float, longer: float) -> None:
    """Monotone in the length of a sequence, which leaves the cache itself as large as it is."""
    short, long = (found(asked(), length) for length in (context, context + longer))
    assert long.sequence_bytes >= short.sequence_bytes
    assert long.kv_bytes == short.kv_bytes


def test_arrays_of_lengths() -> None:
    """Lengths as an array give an array of what each takes, as the planner asks for them."""
    lengths = np.array([512.0, 4096.0, 131072.0])
    answer = found(asked(), lengths)
    each = [found(asked(), float(length)) for length in lengths]
    assert answer.sequence_bytes.tolist() == [one.sequence_bytes for one in each]
    assert answer.kv_tokens.tolist() == [one.kv_tokens for one in each]


def test_fp8_halves_the_linear_layers_only() -> None:
    """Embedding and head stay wide: 8B in fp8 takes more than half of bf16."""
    wide, narrow = (found(asked(weights=uniform(dtype))).weight_bytes for dtype in ("bf16", "fp8"))
    assert 0.5 < narrow / wide < 0.6


def test_expert_parallelism_implies_attention_ranks() -> None:
    """Experts over eight GPUs without tensor parallelism: each GPU has attention, a cache, and an eighth of them."""
    stated = found(asked("qwen3-30b-a3b", layout=Layout(data=8, expert=8)))
    implied = found(asked("qwen3-30b-a3b", layout=Layout(expert=8)))
    assert implied == stated
    assert implied.weight_bytes < 0.3 * found(asked("qwen3-30b-a3b")).weight_bytes
