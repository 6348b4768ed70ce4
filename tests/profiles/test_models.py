"""The shipped model profiles: their counts, against counts made elsewhere and against what the authors publish."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlsize.estimates.model_size import with_computed
from rlsize.readers.profiles import Catalogue
from rlsize.writers.model_profile import model_profile_text

if TYPE_CHECKING:
    from rlsize.facts.fields import Sourced

NAMES = Catalogue().names("model")
# Counted once from the same dimensions by a script that shares no code with rlsize: billions of parameters in total and
# active, bytes per token (bf16), cap of the sliding layers (bf16), recurrent state (fp32). A model that came later has
# its published count to agree with.
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
    "codellama-34b": (33.744, 33.4818, 196608, 0, 0),
    "dbrx": (131.5965, 35.8531, 163840, 0, 0),
    "deepseek-v2-lite": (15.7065, 2.4514, 31104, 0, 0),
    "deepseek-v2": (235.7414, 20.8515, 69120, 0, 0),
    "falcon-180b": (179.5226, 178.5571, 163840, 0, 0),
    "gemma-2b": (2.5062, 2.5062, 18432, 0, 0),
    "gemma-7b": (8.5377, 8.5377, 458752, 0, 0),
    "gemma2-27b": (27.2271, 27.2271, 188416, 771751936, 0),
    "gemma2-2b": (2.6143, 2.6143, 53248, 218103808, 0),
    "gemma2-9b": (9.2417, 9.2417, 172032, 704643072, 0),
    "gpt-j-6b": (6.0508, 5.8444, 458752, 0, 0),
    "gpt3-175b": (174.5907, 174.5907, 4718592, 0, 0),
    "gpt3-20b": (20.2494, 20.2494, 1081344, 0, 0),
    "gpt3-5b": (5.0428, 5.0428, 393216, 0, 0),
    "llama2-13b": (13.0159, 12.852, 819200, 0, 0),
    "llama2-70b": (68.9766, 68.7145, 327680, 0, 0),
    "llama2-7b": (6.7384, 6.6073, 524288, 0, 0),
    "llama3-70b": (70.5537, 69.503, 327680, 0, 0),
    "llama3-8b": (8.0303, 7.5049, 131072, 0, 0),
    "llama4-maverick": (400.7118, 16.1502, 49152, 1207959552, 0),
    "llama4-scout": (107.7699, 16.1384, 49152, 1207959552, 0),
    "mistral-7b-v0.1": (7.2417, 7.1107, 0, 536870912, 0),
    "mistral-large-2": (122.6101, 122.2074, 360448, 0, 0),
    "mistral-nemo-12b": (12.2478, 11.5767, 163840, 0, 0),
    "mixtral-8x22b": (140.6301, 38.9601, 229376, 0, 0),
    "mixtral-8x7b": (46.7028, 12.7489, 131072, 0, 0),
    "moonlight-16b-a3b": (15.9601, 2.5792, 31104, 0, 0),
    "mpt-13b": (12.8435, 12.8435, 819200, 0, 0),
    "mpt-1b": (1.3118, 1.3118, 196608, 0, 0),
    "mpt-30b": (29.9605, 29.9605, 1376256, 0, 0),
    "mpt-3b": (2.6466, 2.6466, 327680, 0, 0),
    "mpt-70b": (64.8457, 64.8457, 2621440, 0, 0),
    "mpt-7b": (6.6505, 6.6505, 524288, 0, 0),
    "nemotron-4-15b": (15.6288, 14.0559, 131072, 0, 0),
    "nemotron-4-340b": (341.0292, 336.3106, 589824, 0, 0),
    "olmoe-1b-7b": (6.9192, 1.179, 131072, 0, 0),
    "phi-3-mini": (3.8211, 3.7226, 393216, 0, 0),
    "qwen2-0.5b": (0.494, 0.494, 12288, 0, 0),
    "qwen2-1.5b": (1.5437, 1.5437, 28672, 0, 0),
    "qwen2-57b-a14b": (57.4087, 13.7047, 57344, 0, 0),
    "qwen2-72b": (72.7062, 71.4605, 327680, 0, 0),
    "qwen2-7b": (7.6156, 7.0706, 57344, 0, 0),
    "qwen2.5-math-1.5b": (1.5437, 1.5437, 28672, 0, 0),
    "qwen2.5-math-7b": (7.6156, 7.0706, 57344, 0, 0),
    "r1-distill-qwen-1.5b": (1.7771, 1.5437, 28672, 0, 0),
    "r1-distill-qwen-7b": (7.6156, 7.0706, 57344, 0, 0),
    "seed-oss-36b": (36.1511, 35.3568, 262144, 0, 0),
    "yi-34b": (34.3889, 33.9302, 245760, 0, 0),
}  # fmt: skip
# Shapes that published benchmarks use, written from memory and checked by their counts.
RECALLED = {
    "codellama-34b", "dbrx", "deepseek-v2", "deepseek-v2-lite", "falcon-180b", "gemma-2b", "gemma-7b",
    "gemma2-27b", "gemma2-2b", "gemma2-9b", "gpt-j-6b", "gpt3-175b", "gpt3-20b", "gpt3-5b", "llama2-13b",
    "llama2-70b", "llama2-7b", "llama3-70b", "llama3-8b", "llama4-maverick", "llama4-scout", "mistral-7b-v0.1",
    "mistral-large-2", "mistral-nemo-12b", "mixtral-8x22b", "mixtral-8x7b", "moonlight-16b-a3b", "mpt-13b",
    "mpt-1b", "mpt-30b", "mpt-3b", "mpt-70b", "mpt-7b", "nemotron-4-15b", "nemotron-4-340b", "olmoe-1b-7b",
    "phi-3-mini", "qwen2-0.5b", "qwen2-1.5b", "qwen2-57b-a14b", "qwen2-72b", "qwen2-7b", "qwen2.5-math-1.5b",
    "qwen2.5-math-7b", "r1-distill-qwen-1.5b", "r1-distill-qwen-7b", "seed-oss-36b", "yi-34b",
}  # fmt: skip
LARGEST_DIFFERENCE = 0.01  # from what the authors publish, without a word of explanation
ROUNDING = 0.00005  # the counts above have four decimals
SMALL_CHANGE = 5e-6  # router corrections and the wide norms of minimax-m2, which the script left out


@pytest.mark.parametrize("name", NAMES)
def test_the_computed_block_is_what_the_architecture_gives(name: str, catalogue: Catalogue) -> None:
    """Nobody typed a computed number: working it out again gives the same profile."""
    model = catalogue.get("model", name)
    assert model.computed is not None, f"{name}.yaml has no computed block: see the how-to page Add a model"
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


@pytest.mark.parametrize("name", NAMES)
def test_published_counts_agree_or_the_file_says_why(name: str, catalogue: Catalogue) -> None:
    """More than 1 % between the computed and the published count, total or active, needs a note."""
    model = catalogue.get("model", name)
    assert model.computed is not None
    assert model.published_params is not None, f"{name}.yaml has nothing to check its count by: add published_params"
    say = f"more than 1 % off: mend the architecture of {name}.yaml, or add a note that explains it to"
    assert agrees(model.published_params, model.computed.params), f"{say} published_params"
    assert agrees(model.published_active_params, model.computed.active_params), f"{say} published_active_params"


def test_only_two_published_totals_are_off(catalogue: Catalogue) -> None:
    """Of all totals, those of kimi-k2 and llama4-scout alone differ by more than 1 %, and their profiles say so."""
    off = []
    for name in COUNTS:
        model = catalogue.get("model", name)
        assert model.computed is not None
        assert model.published_params is not None
        if abs(model.computed.params / model.published_params.value - 1.0) > LARGEST_DIFFERENCE:
            off.append(name)
    assert off == ["kimi-k2", "llama4-scout"]


@pytest.mark.parametrize("name", NAMES)
def test_a_profile_is_what_the_writer_writes(name: str, catalogue: Catalogue) -> None:
    """Reading a shipped file and writing it again gives the same text."""
    written = model_profile_text(catalogue.get("model", name))
    same = catalogue.path_of("model", name).read_text(encoding="utf-8") == written
    assert same, f"{name}.yaml has its keys in another order, or quotes more; make it\n{written}"


@pytest.mark.parametrize("name", NAMES)
def test_a_model_is_found_by_its_repository(name: str, catalogue: Catalogue) -> None:
    """The Hugging Face name, with and without its owner, leads to the profile."""
    model = catalogue.get("model", name)
    if not model.hf_repo:
        pytest.skip("its file names no repository")
    assert catalogue.get("model", model.hf_repo) is model
    assert catalogue.get("model", model.hf_repo.partition("/")[2]) is model


def test_what_was_recalled_says_so(catalogue: Catalogue) -> None:
    """The architectures that nobody read in a stored configuration are marked, and no others."""
    unread = [name for name in COUNTS if not catalogue.get("model", name).architecture.verified]
    assert {"minimax-m1", "mistral-small-24b", "olmo2-32b", "olmo3-32b", "olmo3-7b"} | RECALLED == set(unread)
