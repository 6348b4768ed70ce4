"""The memory of a trainer: published peaks, what its parts add up to, adapters, and what fits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.estimates.belief import prior
from rlsize.estimates.constants_memory import STAGE
from rlsize.estimates.figures import apply, numbers
from rlsize.estimates.loop_memory import bare_trainer_memory, headroom_at, leaves_margin, trainer_load
from rlsize.estimates.memory_shape import MemoryShape, memory_shape
from rlsize.estimates.model_size import model_size
from rlsize.estimates.train_prediction import TrainQuestion
from rlsize.estimates.trainer_memory import TrainerLoad, trainer_memory
from rlsize.facts.headroom import MEMORY_MARGIN
from rlsize.readers.profiles import Catalogue

CATALOGUE = Catalogue()
VALUES = prior(STAGE).central()
GIB = 2.0**30


def shape(model: str) -> MemoryShape:
    """The shape of a shipped model."""
    profile = CATALOGUE.get("model", model)
    return memory_shape(profile, model_size(profile).params)


TORCHTUNE = TrainerLoad(
    shape=shape("llama3.2-3b"),
    tokens=8192.0,
    gathered=False,
    recompute="none",
    optimizer_width=4.0,
    gradients_held=False,
)
TORCHTITAN = TrainerLoad(
    shape=shape("llama3.1-8b"),
    shards=8.0,
    tokens=32768.0,
    weight_width=4.0,
    gradient_width=4.0,
    optimizer_width=8.0,
    gradients_held=False,
    compiled=True,
)


def peak(load: TrainerLoad) -> float:
    """GiB at the central constants."""
    return float(trainer_memory(numbers, load, VALUES).peak) / GIB


@pytest.mark.parametrize(
    ("load", "published"),
    [
        (TORCHTUNE, 60.0),
        (replace(TORCHTUNE, recompute="full", compiled=True, chunked_loss=True), 24.9),
        (replace(TORCHTUNE, recompute="full", compiled=True, chunked_loss=True, gradient_width=0.0), 23.1),
        (TORCHTITAN, 83.9),
        (replace(TORCHTITAN, shards=1.0, context=8.0), 84.5),
    ],
)
def test_published_peaks(load: TrainerLoad, published: float) -> None:
    """Within 15 % of what torchtune and torchtitan report."""
    assert peak(load) == pytest.approx(published, rel=0.15)


@given(tokens=st.floats(1.0, 1e5), more=st.floats(0.0, 1e5))
def test_more_tokens_never_take_less(tokens: float, more: float) -> None:
    """Monotone in the micro batch."""
    small, large = (peak(replace(TORCHTITAN, tokens=length)) for length in (tokens, tokens + more))
    assert large >= small


def test_recomputation_saves() -> None:
    """Full keeps less than selective, and selective less than none."""
    full, some, none = (peak(replace(TORCHTITAN, recompute=name)) for name in ("full", "selective", "none"))
    assert full < some < none


def test_more_ranks_hold_less() -> None:
    """States shrink with the ranks that share them; experts with theirs."""
    few, many = (
        peak(replace(TORCHTITAN, shape=shape("qwen3-30b-a3b"), shards=ranks, expert=8.0, recompute="full"))
        for ranks in (8.0, 64.0)
    )
    assert many < few


def test_gradients_hide_behind_activations() -> None:
    """Where activations are larger than gradients, freeing gradients early saves nothing."""
    kept, freed = (peak(replace(TORCHTUNE, gradient_width=width)) for width in (2.0, 0.0))
    assert kept == freed


def question(**changed: Any) -> TrainQuestion:
    """Qwen3-32B on H100s, with a reference beside it."""
    said: dict[str, Any] = {
        "model": CATALOGUE.get("model", "qwen3-32b"),
        "gpu": CATALOGUE.get("gpu", "h100-sxm"),
        "gpus": 32.0,
        "sequences": 512.0,
        "tokens": 2000.0,
        "micro_batch_tokens": 16384.0,
        "gradient_bytes": 2.0,
        "passes": ("old_logprob", "reference"),
    }
    return TrainQuestion(**(said | changed))


SPREADS = st.fixed_dictionaries(
    {
        "model": st.sampled_from(["qwen3-8b", "qwen3-30b-a3b"]).map(lambda name: CATALOGUE.get("model", name)),
        "tensor": st.sampled_from([1, 2, 4]),
        "pipeline": st.sampled_from([1, 2]),
        "context": st.sampled_from([1, 2]),
        "sharding": st.sampled_from(["full", "gradients", "optimizer", "none"]),
        "recompute": st.sampled_from(["none", "selective", "full"]),
        "lora_rank": st.sampled_from([None, 16]),
        "gpus": st.sampled_from([32.0, 64.0]),
        "passes": st.sampled_from([(), ("reference", "reward"), ("old_logprob", "critic")]),
    }
)


@given(SPREADS)
def test_figures_are_the_numbers(said: dict[str, Any]) -> None:
    """What is explained is what is searched, and the parts add up to the peak."""
    load = trainer_load(question(**said), 20_000.0)
    bare, told = (trainer_memory(work, load, VALUES) for work in (numbers, apply))
    for name in ("weights", "gradients", "optimizer", "adapters", "states", "gathered", "logits", "overhead", "peak"):
        assert getattr(told, name).number == pytest.approx(float(getattr(bare, name)), rel=1e-12), name
    parts = [bare.policy, *bare.beside.values(), bare.gathered, bare.activations, bare.logits, bare.overhead]
    assert bare.peak == pytest.approx(sum(float(part) for part in parts))


def test_adapters_leave_frozen_weights_and_no_reference() -> None:
    """2 bytes for each of 32.76B parameters and 16 for each of 134M; the reference is the policy without them."""
    held = bare_trainer_memory(question(lora_rank=16), 1.0, VALUES)
    assert held.beside == {}
    assert held.weights == pytest.approx(2 * 32.76e9 / 32, rel=1e-3)
    assert held.gradients == held.optimizer == 0
    assert held.adapters == pytest.approx(16 * 134.2e6 / 32, rel=1e-3)
    own = CATALOGUE.get("model", "qwen3-8b")
    assert list(bare_trainer_memory(question(lora_rank=16, pass_models={"reference": own}), 1.0, VALUES).beside) == [
        "reference"
    ]


def test_four_bit_frozen_weights_save_what_torchtune_saves_by_them() -> None:
    """Llama-3.1-8B on an RTX 4090 takes 16.2 GiB with LoRA and 7.4 with QLoRA (README, memory and speed table)."""
    lora = replace(TORCHTUNE, shape=shape("llama3.1-8b"), tokens=4096.0, recompute="full", compiled=True)
    lora = replace(lora, chunked_loss=True, adapter_params=20e6)
    assert peak(replace(lora, frozen_dtype="nf4")) / peak(lora) == pytest.approx(7.4 / 16.2, rel=0.03)
    widths = [peak(replace(lora, frozen_dtype=dtype)) for dtype in ("nf4", "int8", "bf16", "")]
    assert widths == sorted(widths)
    assert widths[2] == widths[3]


def test_adapters_fit_where_full_training_does_not() -> None:
    """Qwen3-32B on four H100: adapters fit, and all parameters do not."""
    assert leaves_margin(question(gpus=4.0, lora_rank=16), 2000.0, VALUES)
    assert not leaves_margin(question(gpus=4.0), 2000.0, VALUES)


def test_context_parallelism_without_sharded_weights_gathers_none() -> None:
    """Layers are gathered where weights are sharded, and nowhere else."""
    some = [bare_trainer_memory(question(context=2, sharding=name), 1.0, VALUES) for name in ("optimizer", "full")]
    assert some[0].gathered == 0
    assert some[1].gathered > 0


def test_a_trainer_is_chosen_that_leaves_the_margin() -> None:
    """On 16 GPUs it does not, on 64 it does."""
    for gpus, chosen in ((16.0, False), (64.0, True)):
        asked = question(gpus=gpus)
        left = headroom_at(asked, bare_trainer_memory(asked, 2000.0, VALUES).peak)
        assert (left >= MEMORY_MARGIN) is leaves_margin(asked, 2000.0, VALUES) is chosen


@pytest.mark.parametrize("gpus", [8, 16])
def test_sharded_states_shrink_with_gpus(gpus: int) -> None:
    """18 bytes a parameter with gradients in fp32, over all GPUs."""
    profile, gpu = CATALOGUE.get("model", "qwen3-8b"), CATALOGUE.get("gpu", "h100-sxm")
    asked = TrainQuestion(
        model=profile,
        gpu=gpu,
        gpus=float(gpus),
        sequences=512.0,
        tokens=2300.0,
        micro_batch_tokens=16384.0,
        passes=("old_logprob",),
    )
    params = model_size(profile).params.number

    def state_bytes(**changed: Any) -> float:
        return float(bare_trainer_memory(replace(asked, **changed), 1.0, VALUES).states)

    assert state_bytes() == pytest.approx(18 * params / gpus)
    assert state_bytes(sharding="none") == pytest.approx(18 * params)
    assert state_bytes(sharding="optimizer") == pytest.approx((6 + 12 / gpus) * params)
    assert state_bytes(offload=True) == pytest.approx(6 * params / gpus)
