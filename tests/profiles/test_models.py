"""The shipped model profiles: their counts, against counts made elsewhere and against what the authors publish."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlsize.estimates.model_size import with_computed
from rlsize.writers.model_profile import model_profile_text

if TYPE_CHECKING:
    from rlsize.facts.sourced import Sourced
    from rlsize.readers.profiles import Catalogue

# Counted once from the same dimensions by a script that shares no code with rlsize: billions of parameters in total and
# active, bytes per token (bf16), cap of the sliding layers (bf16), recurrent state (fp32).
COUNTS = {
    "qwen2.5-0.5b": (0.494, 0.494, 12288, 0, 0),
    "qwen2.5-1.5b": (1.5437, 1.5437, 28672, 0, 0),
    "qwen2.5-3b": (3.0859, 3.0859, 36864, 0, 0),
    "qwen2.5-7b": (7.6156, 7.0706, 57344, 0, 0),
    "qwen2.5-14b": (14.77, 13.9915, 196608, 0, 0),
    "qwen2.5-32b": (32.7639, 31.9853, 262144, 0, 0),
    "qwen2.5-72b": (72.7062, 71.4605, 327680, 0, 0),
    "qwen3-0.6b": (0.596, 0.596, 114688, 0, 0),
    "qwen3-1.7b": (1.7206, 1.7206, 114688, 0, 0),
    "qwen3-4b": (4.0225, 4.0225, 147456, 0, 0),
    "qwen3-8b": (8.1907, 7.5684, 147456, 0, 0),
    "qwen3-14b": (14.7683, 13.9904, 163840, 0, 0),
    "qwen3-32b": (32.7621, 31.9842, 262144, 0, 0),
    "qwen3-30b-a3b": (30.5321, 3.0419, 98304, 0, 0),
    "qwen3-235b-a22b": (235.0936, 21.5684, 192512, 0, 0),
    "qwen3-coder-480b-a35b": (480.1549, 34.5413, 253952, 0, 0),
    "qwen3-next-80b-a3b": (79.6744, 3.5638, 24576, 0, 75497472),
    "qwen3.5-27b": (26.896, 25.6246, 65536, 0, 150994944),
    "qwen3.5-35b-a3b": (34.6606, 2.9464, 20480, 0, 62914560),
    "qwen3.5-122b-a10b": (122.1115, 9.0084, 24576, 0, 150994944),
    "qwen3.5-397b-a17b": (396.3464, 16.3319, 30720, 0, 188743680),
    "llama3.1-8b": (8.0303, 7.5049, 131072, 0, 0),
    "llama3.1-70b": (70.5537, 69.503, 327680, 0, 0),
    "llama3.1-405b": (405.8534, 403.752, 516096, 0, 0),
    "llama3.2-1b": (1.2358, 1.2358, 32768, 0, 0),
    "llama3.2-3b": (3.2127, 3.2127, 114688, 0, 0),
    "llama3.3-70b": (70.5537, 69.503, 327680, 0, 0),
    "mistral-7b-v0.3": (7.248, 7.1138, 131072, 0, 0),
    "mistral-small-24b": (23.5724, 22.9013, 163840, 0, 0),
    "gemma3-1b": (0.9999, 0.9999, 4096, 11534336, 0),
    "gemma3-4b": (3.8801, 3.8801, 20480, 121634816, 0),
    "gemma3-12b": (11.7658, 11.7658, 65536, 335544320, 0),
    "gemma3-27b": (27.009, 27.009, 81920, 436207616, 0),
    "deepseek-v3": (671.0264, 36.6256, 70272, 0, 0),
    "deepseek-r1": (671.0264, 36.6256, 70272, 0, 0),
    "deepseek-v3.2": (671.8779, 37.4771, 70272, 0, 0),
    "kimi-k2": (1026.4082, 31.6871, 70272, 0, 0),
    "glm-4.5": (352.7978, 32.8563, 376832, 0, 0),
    "glm-4.6": (352.7978, 32.8563, 376832, 0, 0),
    "glm-4.5-air": (106.8522, 12.8034, 188416, 0, 0),
    "glm-5": (743.9112, 40.8331, 89856, 0, 0),
    "gpt-oss-20b": (20.9148, 3.6083, 24576, 3145728, 0),
    "gpt-oss-120b": (116.8292, 5.1328, 36864, 4718592, 0),
    "minimax-m2": (228.6893, 10.4155, 253952, 0, 0),
    "minimax-m1": (456.0897, 47.1741, 40960, 0, 293601280),
    "phi-4": (14.6595, 14.1457, 204800, 0, 0),
    "phi-4-mini": (3.836, 3.836, 131072, 0, 0),
    "olmo2-7b": (7.2986, 6.8876, 524288, 0, 0),
    "olmo2-13b": (13.7162, 13.2024, 819200, 0, 0),
    "olmo2-32b": (32.2343, 31.7205, 262144, 0, 0),
    "olmo3-7b": (7.298, 6.8873, 131072, 1610612736, 0),
    "olmo3-32b": (32.2335, 31.7201, 65536, 805306368, 0),
    "smollm3-3b": (3.0751, 3.0751, 73728, 0, 0),
    "smollm2-1.7b": (1.7114, 1.7114, 196608, 0, 0),
    "nemotron-3-nano-30b-a3b": (31.5779, 3.2278, 6144, 0, 48234496),
}  # fmt: skip
LARGEST_DIFFERENCE = 0.01  # from what the authors publish, without a word of explanation
ROUNDING = 0.00005  # the counts above have four decimals
SMALL_CHANGE = 5e-6  # router corrections and the wide norms of minimax-m2, which the script left out


def test_every_model_has_been_counted_elsewhere(catalogue: Catalogue) -> None:
    """No shipped profile is missing from the table, and none of the table from the profiles."""
    assert catalogue.names("model") == sorted(COUNTS)


@pytest.mark.parametrize("name", sorted(COUNTS))
def test_the_computed_block_is_what_the_architecture_gives(name: str, catalogue: Catalogue) -> None:
    """Nobody typed a computed number: working it out again gives the same profile."""
    model = catalogue.get("model", name)
    assert model.computed is not None
    assert with_computed(model).computed == model.computed


@pytest.mark.parametrize("name", sorted(COUNTS))
def test_counts_agree_with_the_other_script(name: str, catalogue: Catalogue) -> None:
    """Total, active, cache per token, sliding cap and state agree with a count by other code."""
    computed = catalogue.get("model", name).computed
    assert computed is not None
    total, active, per_token, cap, state = COUNTS[name]
    assert computed.params / 1e9 == pytest.approx(total, abs=ROUNDING + SMALL_CHANGE * total)
    assert computed.active_params / 1e9 == pytest.approx(active, abs=ROUNDING + 10 * SMALL_CHANGE * active)
    assert (computed.kv_bytes_per_token, computed.sliding_cap_bytes, computed.recurrent_state_bytes) == (
        per_token,
        cap,
        state,
    )


def agrees(published: Sourced | None, computed: int) -> bool:
    """Whether a published count is the computed one to a hundredth, or says why not."""
    if published is None:
        return True
    return abs(computed / published.value - 1.0) <= LARGEST_DIFFERENCE or len(published.note) > len("rounded")


@pytest.mark.parametrize("name", sorted(COUNTS))
def test_published_counts_agree_or_the_file_says_why(name: str, catalogue: Catalogue) -> None:
    """More than 1 % between the computed and the published count, total or active, needs a note."""
    model = catalogue.get("model", name)
    assert model.computed is not None
    assert model.published_params is not None
    assert agrees(model.published_params, model.computed.params)
    assert agrees(model.published_active_params, model.computed.active_params)


def test_only_one_published_total_is_off(catalogue: Catalogue) -> None:
    """Of all totals, that of kimi-k2 alone differs by more than 1 %, and its profile says so."""
    off = []
    for name in COUNTS:
        model = catalogue.get("model", name)
        assert model.computed is not None
        assert model.published_params is not None
        if abs(model.computed.params / model.published_params.value - 1.0) > LARGEST_DIFFERENCE:
            off.append(name)
    assert off == ["kimi-k2"]


@pytest.mark.parametrize("name", sorted(COUNTS))
def test_a_profile_is_what_the_writer_writes(name: str, catalogue: Catalogue) -> None:
    """Reading a shipped file and writing it again gives the same text."""
    assert model_profile_text(catalogue.get("model", name)) == catalogue.path_of("model", name).read_text(
        encoding="utf-8"
    )


@pytest.mark.parametrize("name", sorted(COUNTS))
def test_a_model_is_found_by_its_repository(name: str, catalogue: Catalogue) -> None:
    """The Hugging Face name, with and without its owner, leads to the profile."""
    model = catalogue.get("model", name)
    assert catalogue.get("model", model.hf_repo) is model
    assert catalogue.get("model", model.hf_repo.partition("/")[2]) is model


def test_what_was_recalled_says_so(catalogue: Catalogue) -> None:
    """The architectures that nobody read in a stored configuration are marked, and no others."""
    unread = [name for name in COUNTS if not catalogue.get("model", name).architecture.verified]
    assert sorted(unread) == ["minimax-m1", "mistral-small-24b", "olmo2-32b", "olmo3-32b", "olmo3-7b"]
