"""Names of models and GPUs as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.errors import Refused
from rlsize.readers.names import gpu_named, model_named, model_of_size
from rlsize.readers.profiles import Catalogue

CATALOGUE = Catalogue()
MODELS = {
    "LLAMA3.1_8B": "llama3.1-8b",
    "Llama-3.3-70B": "llama3.3-70b",
    "meta-llama/Llama-3.1-8B-Instruct": "llama3.1-8b",
    "meta-llama/Llama-3.1-8B-Instruct-FP8": "llama3.1-8b",
    "meta-llama/Meta-Llama-3-70B-Instruct": "llama3-70b",
    "Llama-3.1-405B-FP8": "llama3.1-405b",
    "Llama2-34B": "codellama-34b",
    "llama2_70b": "llama2-70b",
    "Llama-4-Maverick-17B-128E": "llama4-maverick",
    "DeepSeek V3": "deepseek-v3",
    "DeepSeek-V3.1": "deepseek-v3",
    "DeepSeek-R1-0528": "deepseek-r1",
    "nvidia/DeepSeek-R1-0528-FP4": "deepseek-r1",
    "DeepSeek-R1-Distill-Qwen-7B": "r1-distill-qwen-7b",
    "R1-Distill-Qwen-1.5B": "r1-distill-qwen-1.5b",
    "DeepSeek-R1-Distill-Qwen-14B": "qwen2.5-14b",
    "Qwen3-30B3A": "qwen3-30b-a3b",
    "Qwen3-235B": "qwen3-235b-a22b",
    "Qwen3-235B-A22B-Instruct-2507": "qwen3-235b-a22b",
    "Qwen2.5-7B quantised": "qwen2.5-7b",
    "Kimi-K2-Instruct": "kimi-k2",
    "Kimi-K2 FP8": "kimi-k2",
    "GLM-4.5-355B-A32B": "glm-4.5",
    "Nemotron-3-Nano": "nemotron-3-nano-30b-a3b",
    "Mixtral 8x7B Instruct": "mixtral-8x7b",
    "gemma-2-9b-it": "gemma2-9b",
    "MPT-70b": "mpt-70b",
    "openai/gpt-oss-120b": "gpt-oss-120b",
    "MiniMaxAI/MiniMax-M2.5": "minimax-m2",
    "Qwen/Qwen3-8B-Base": "qwen3-8b",
    "/data/checkpoints/Qwen3-8B-sft-v2/": "qwen3-8b",
}
ASSUMED_MODELS = {
    "Qwen2.5-VL-72B": "qwen2.5-72b",
    "Nemotron Nano 3.5 30B-A3B": "nemotron-3-nano-30b-a3b",
    "DAPO-Qwen-32B": "qwen3-32b",
    "~30B MoE": "qwen3-30b-a3b",
    "~30B dense": "qwen3-32b",
    "30B-A3B class MoE (published as 30b)": "qwen3-30b-a3b",
    "14B": "qwen3-14b",
    "9B dense": "glm-4-9b-0414",
}
GPUS = {
    "h100_sxm": "h100-sxm",
    "h100_80gb": "h100-sxm",
    "H100-80GB-SXM": "h100-sxm",
    "H100-80GB-SXM (DGX)": "h100-sxm",
    "8x H100": "h100-sxm",
    "DGX H100": "h100-sxm",
    "NVIDIA H100 80GB HBM3": "h100-sxm",
    "H100 SXM 96GB HBM2e 500 W": "h100-96gb",
    "H100 PCIe": "h100-pcie",
    "H100 NVL": "h100-nvl",
    "H200-141GB-SXM": "h200-sxm",
    "B200-180GB": "b200-sxm",
    "GB200-192GB": "gb200",
    "GB300 NVL72": "gb300",
    "a100_40gb": "a100-40-sxm",
    "NVIDIA A100-SXM4-40GB": "a100-40-sxm",
    "A100": "a100-80-sxm",
    "A800-80GB": "a800-sxm",
    "H800": "h800-sxm",
    "H20": "h20",
    "A6000": "a6000",
    "RTX 4090": "rtx-4090",
    "NVIDIA GeForce RTX 3090": "rtx-3090",
    "NVIDIA A10G": "a10g",
    "NVIDIA A10": "a10",
    "Tesla T4": "t4",
    "AMD Instinct MI300X": "mi300x",
    "MI300X-192GB": "mi300x",
    "TPU v5p": "tpu-v5p",
}


@pytest.mark.parametrize("text", MODELS)
def test_a_model_is_found_under_the_names_that_people_give_it(text: str) -> None:
    """Owner, case, dates and words on tuning or rounding do not matter, and nothing is assumed."""
    assert model_named(text, CATALOGUE) == (MODELS[text], "")


@pytest.mark.parametrize("text", ASSUMED_MODELS)
def test_a_model_of_the_same_family_or_size_is_taken_and_said(text: str) -> None:
    """A model without a profile is taken for one of its size, which the note says."""
    name, note = model_named(text, CATALOGUE)
    assert name == ASSUMED_MODELS[text]
    assert f"taken for {name}" in note


@pytest.mark.parametrize("text", GPUS)
def test_a_gpu_is_found_under_the_names_that_people_give_it(text: str) -> None:
    """Maker, case, memory, form and remarks in brackets are understood."""
    assert gpu_named(text, CATALOGUE) == (GPUS[text], "")


def test_a_card_that_has_no_profile_is_taken_for_its_sister_and_said() -> None:
    """Another form, or another memory."""
    assert gpu_named("A100 PCIe 80GB", CATALOGUE) == ("a100-80-sxm", "the PCIE card is taken for a100-80-sxm")
    assert gpu_named("H20-141GB", CATALOGUE) == ("h20", "a 141 GB card is taken for h20 of 96 GB")


@pytest.mark.parametrize("text", ["", None, 7, [], "V100", "RTX 4060 8GB", "Tesla P100", "x" * 5000])
def test_an_unknown_gpu_is_refused_in_one_line(text: object) -> None:
    """Nothing is guessed."""
    with pytest.raises(Refused) as refusal:
        gpu_named(text, CATALOGUE)
    assert "GPU" in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 200


@pytest.mark.parametrize(
    "text", ["", None, {}, "Llama-3.3-Nemotron-Super-49B-v1", "a model of ours", "900T", "y" * 5000]
)
def test_an_unknown_model_is_refused_in_one_line(text: object) -> None:
    """Neither family nor size leads anywhere."""
    with pytest.raises(Refused, match="model"):
        model_named(text, CATALOGUE)


def test_a_refusal_names_the_nearest_profile() -> None:
    """So that a slip is seen at once."""
    with pytest.raises(Refused, match="the nearest is qwen3-"):
        model_named("qwen3-xl", CATALOGUE)


def test_every_profile_is_found_by_its_own_name_and_aliases() -> None:
    """Whatever the catalogue knows is known here too."""
    for kind, named in (("model", model_named), ("gpu", gpu_named)):
        for text, name in CATALOGUE.known(kind).items():
            assert named(text.upper(), CATALOGUE) == (name, ""), text


@given(
    text=st.text(max_size=60) | st.from_regex(r"[A-Za-z]{1,9}[- _]?[0-9.]{0,4}[- _]?[0-9]{0,3}[bB]?", fullmatch=True)
)
def test_any_text_gives_a_profile_or_a_refusal(text: str) -> None:
    """Never another error."""
    for kind, find in (("model", model_named), ("gpu", gpu_named)):
        try:
            name, _ = find(text, CATALOGUE)
        except Refused:
            continue
        assert name in CATALOGUE.names(kind)


@pytest.mark.parametrize(
    ("text", "profile"),
    [("Qwen/Qwen3.5-4B", "qwen3.5-9b@4B"), ("Qwen3-72B", "qwen3-32b@72B")]
    + [(name, "") for name in ("meta-llama/Llama-4-8B", "Mistral-Small-5-24B", "gpt-oss-2-20b", "GLM-6-9B")]
    + [("Qwen-3.5-4B", ""), ("Qwen3-Next-8B", ""), ("my-qwen2.5-7b-run-3", "qwen2.5-7b")],
)
def test_no_model_of_another_generation_is_taken_because_its_size_agrees(text: str, profile: str) -> None:
    """Qwen3.5 has layers without attention, and Qwen3 has not: one of its generation is scaled, or none taken."""
    if profile:
        assert model_named(text, CATALOGUE)[0] == profile
        return
    with pytest.raises(Refused):
        model_named(text, CATALOGUE)


@pytest.mark.parametrize(
    ("text", "profile"),
    [
        ("Open-Reasoner-Zero-7B", "qwen2.5-7b@7B"), ("Skywork-OR1-32B", "qwen3-32b@32B"), ("my-qwen-9b", "qwen3-8b@9B"),
        ("acme-30b-a3b", "qwen3-30b-a3b@30B-A3B"), ("acme", ""), ("my-7b/config.json", ""),
        *((name, "") for name in ("Llama-4-8B", "gpt-oss-2-20b", "Qwen-3.5-4B", "Qwen3-Next-8B")),
    ],
)  # fmt: skip
def test_a_name_that_says_its_size_alone_is_of_the_models_that_most_runs_begin_with(text: str, profile: str) -> None:
    """One of a known family and another generation is not: it may be built otherwise."""
    assert model_of_size(text, CATALOGUE) == profile
