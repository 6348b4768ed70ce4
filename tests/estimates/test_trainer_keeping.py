"""What backends and options change about a trainer's memory: widths, and the tokens of its largest micro-batch."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.estimates.figures import numbers
from rlsize.estimates.memory_shape import memory_shape
from rlsize.estimates.model_size import model_size
from rlsize.estimates.trainer_keeping import Keeping, RankStep, as_kept, micro_batch
from rlsize.estimates.trainer_memory import ModelBeside, TrainerLoad
from rlsize.facts.inference_engines import TRAINER_BACKENDS
from rlsize.readers.profiles import Catalogue

MODEL = Catalogue().get("model", "qwen2.5-7b")
LOAD = TrainerLoad(shape=memory_shape(MODEL, model_size(MODEL).params), tokens=8192.0)
STEP = RankStep(
    mean_tokens=340.0,
    tokens_cv=0.0,
    longest_tokens=1024.0,
    sequences=5120.0,
    ranks=32.0,
    optimizer_steps=4.0,
    context=1.0,
)


@pytest.mark.parametrize(
    ("keeps", "widths"),
    [
        (Keeping(), (2.0, 2.0, 12.0)),
        (Keeping(backend="deepspeed"), (2.0, 2.0, 12.0)),
        (Keeping(backend="megatron"), (2.0, 2.0, 12.0)),
        (Keeping(backend="fsdp"), (4.0, 4.0, 8.0)),
        (Keeping(backend="fsdp2", master_dtype="bf16"), (2.0, 2.0, 4.0)),
        (Keeping(backend="ddp", master_dtype="fp32"), (4.0, 4.0, 8.0)),
    ],
)
def test_adamw_keeps_sixteen_bytes_of_a_parameter_or_eight_without_fp32(
    keeps: Keeping, widths: tuple[float, float, float]
) -> None:
    """Weight, gradient, and master copy with moments: FSDP's parameters are the master copy themselves."""
    found = as_kept(LOAD, keeps)
    assert (found.weight_width, found.gradient_width, found.optimizer_width) == widths


@pytest.mark.parametrize("backend", ["", *TRAINER_BACKENDS])
def test_states_on_the_host_take_nothing(backend: str) -> None:
    """Whatever the backend, an optimizer that lives on the host has no moments on the GPU."""
    assert as_kept(replace(LOAD, optimizer_width=0.0), Keeping(backend=backend)).optimizer_width == 0


def test_a_reference_on_the_host_is_not_beside_the_policy() -> None:
    """The critic and the reward model stay."""
    beside = tuple(ModelBeside(name=name, params=(1e9, 0.0)) for name in ("critic", "reference", "reward"))
    kept = as_kept(replace(LOAD, beside=beside), Keeping(reference_offload=True))
    assert [one.name for one in kept.beside] == ["critic", "reward"]


def test_a_micro_batch_holds_no_more_than_a_rank_has_for_a_step() -> None:
    """5120 samples of 340 over 32 ranks and 4 steps are 13,600 tokens, less than 24,000, and one pass."""
    keeps = Keeping(backend="fsdp")
    assert micro_batch(numbers, keeps, STEP, 24000.0, None) == (13600.0, True)
    assert micro_batch(numbers, keeps, STEP, 8192.0, None) == (8192.0, False)
    assert micro_batch(numbers, keeps, STEP, 0.0, 16.0) == (5440.0, False)


def test_micro_batches_are_as_large_as_said_where_they_are_padded_or_nobody_names_the_backend() -> None:
    """Tokens that are said are filled up; counted samples are padded to the longest."""
    assert micro_batch(numbers, Keeping(), STEP, 24000.0, None) == (24000.0, False)
    assert micro_batch(numbers, Keeping(backend="fsdp", padded=True), STEP, 24000.0, None) == (24000.0, False)
    assert micro_batch(numbers, Keeping(padded=True), STEP, 0.0, 16.0) == (16384.0, False)


def test_gradients_outlive_a_pass_only_where_a_step_has_several_or_they_have_a_buffer() -> None:
    """FSDP sets them free after its only pass; Megatron and DeepSpeed keep their buffer."""
    held = {
        name: as_kept(LOAD, Keeping(backend=name), whole=True).gradients_held
        for name in ("fsdp", "megatron", "deepspeed")
    }
    assert held == {"fsdp": False, "megatron": True, "deepspeed": True}
    assert as_kept(LOAD, Keeping(backend="fsdp")).gradients_held


@given(
    samples=st.floats(1.0, 512.0),
    more=st.floats(0.0, 512.0),
    cv=st.floats(0.0, 2.0),
    cap=st.floats(400.0, 1e4),
    longer=st.floats(0.0, 1e5),
    padded=st.booleans(),
)
def test_more_samples_and_a_longer_cap_never_make_a_micro_batch_smaller(
    samples: float, more: float, cv: float, cap: float, longer: float, *, padded: bool
) -> None:
    """Packed or padded; and it is never more than all of its samples at the cap."""
    keeps, step = Keeping(backend="fsdp", padded=padded), replace(STEP, tokens_cv=cv, longest_tokens=cap)
    own, _ = micro_batch(numbers, keeps, step, 0.0, samples)
    assert own <= samples * cap * (1 + 1e-9)
    assert micro_batch(numbers, keeps, replace(step, longest_tokens=cap + longer), 0.0, samples)[0] >= own
    assert micro_batch(numbers, keeps, step, 0.0, samples + more)[0] >= own * (1 - 1e-9)
