"""The predicted training step: which way it moves, its limits, what it refuses, and that all its forms agree."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlsize.errors import Refused
from rlsize.estimates.belief import prior
from rlsize.estimates.constants_train import STAGE
from rlsize.estimates.figures import apply, numbers
from rlsize.estimates.train_outlook import predicted_train_step
from rlsize.estimates.train_prediction import (
    EXTRA_PASSES,
    TRAINING,
    TrainQuestion,
    TrainStep,
    objections,
    train_gpu,
    train_step,
)
from rlsize.estimates.trainer_keeping import Keeping
from rlsize.estimates.trainer_layout import SHARDINGS
from rlsize.facts.fields import Sourced
from rlsize.facts.figure import Figure
from rlsize.readers.profiles import Catalogue

CATALOGUE = Catalogue()
VALUES = prior(STAGE).central()
GPUS = ("a100-80-sxm", "h100-sxm", "h200-sxm", "b200-sxm", "gb200", "mi300x", "h20")
MODELS = ("qwen3-0.6b", "llama3.1-8b", "qwen3-32b", "qwen3-30b-a3b", "deepseek-v3", "gemma3-27b", "qwen3-next-80b-a3b")


def question(model: str = "llama3.1-8b", gpu: str = "h100-sxm", **changed: Any) -> TrainQuestion:
    """A step of 512 sequences of 2048 tokens on 32 GPUs."""
    plain = TrainQuestion(
        model=CATALOGUE.get("model", model),
        gpu=CATALOGUE.get("gpu", gpu),
        gpus=32,
        sequences=512,
        tokens=2048.0,
        micro_batch_tokens=16384.0,
    )
    return replace(plain, **changed)


def seconds(asked: TrainQuestion, values: Any = VALUES) -> TrainStep:
    """The step in bare numbers."""
    return train_step(numbers, asked, values)


def with_gpu(asked: TrainQuestion, **changed: float) -> TrainQuestion:
    """The question for a GPU of another specification."""
    stated: dict[str, Any] = {name: Sourced(value=value, source="made up") for name, value in changed.items()}
    return replace(asked, gpu=replace(asked.gpu, specification=replace(asked.gpu.specification, **stated)))


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("model", MODELS)
def test_parts_add_up_and_no_peak_is_passed(model: str, gpu: str) -> None:
    """On every GPU, for dense models and experts, full, sliding, latent and linear attention."""
    step = seconds(question(model, gpu, passes=tuple(EXTRA_PASSES)))
    assert sum(step.parts.values()) == pytest.approx(step.update_seconds)
    assert step.train_seconds == pytest.approx(step.update_seconds + sum(step.forward_seconds.values()))
    assert 0 < step.mfu < 1
    assert step.tokens_per_second == pytest.approx(512 * 2048 / step.train_seconds)
    assert step.tokens_per_second_per_gpu == pytest.approx(step.tokens_per_second / 32)


@pytest.mark.parametrize("model", MODELS)
def test_figures_give_the_numbers(model: str) -> None:
    """What explains itself and what runs on arrays are the same prediction."""
    asked = question(model, passes=("old_logprob", "critic"), context=2, tensor=2)
    explained, bare = train_step(apply, asked, VALUES), seconds(asked)
    assert explained.train_seconds.value == pytest.approx(bare.train_seconds)
    assert explained.mfu.value == pytest.approx(bare.mfu)
    assert explained.train_seconds.equation == "train_step.trainer_busy_time"


def test_arrays_of_questions_are_their_single_answers() -> None:
    """GPUs, sequences and lengths may be arrays."""
    counts, lengths = np.array([8.0, 64.0, 256.0]), np.array([512.0, 4096.0, 32768.0])
    together = seconds(question(gpus=counts, tokens=lengths)).train_seconds
    assert together == pytest.approx(
        [seconds(question(gpus=n, tokens=s)).train_seconds for n, s in zip(counts, lengths, strict=True)]
    )


@given(
    name=st.sampled_from(["bf16_dense", "memory_bandwidth", "nic", "power"]),
    factor=st.floats(1.0, 4.0),
    model=st.sampled_from(["llama3.1-8b", "qwen3-30b-a3b"]),
    gpus=st.sampled_from([8, 32, 256]),
)
def test_a_better_gpu_is_never_slower(name: str, factor: float, model: str, gpus: int) -> None:
    """More FLOPs, bandwidth or power never lengthen a step."""
    asked = question(model, gpus=gpus)
    usual = getattr(asked.gpu.specification, name).value
    better = with_gpu(asked, **{name: usual * factor})
    assert seconds(better).train_seconds <= seconds(asked).train_seconds * (1 + 1e-12)


@given(sequences=st.integers(8, 4096), more=st.integers(1, 4096), tokens=st.floats(64, 1e5), longer=st.floats(1, 8))
def test_more_tokens_take_longer(sequences: int, more: int, tokens: float, longer: float) -> None:
    """More sequences, and longer ones."""
    asked = question(sequences=sequences, tokens=tokens)
    plain = seconds(asked).train_seconds
    assert seconds(replace(asked, sequences=sequences + more)).train_seconds >= plain
    assert seconds(replace(asked, tokens=tokens * longer)).train_seconds >= plain * (1 - 1e-12)


@settings(max_examples=30)
@given(gpus=st.integers(1, 64), factor=st.integers(2, 8))
def test_more_gpus_shorten_a_large_step(gpus: int, factor: int) -> None:
    """But by less than their number."""
    asked = question(sequences=65536, gpus=8 * gpus)
    few, many = seconds(asked).train_seconds, seconds(replace(asked, gpus=8 * gpus * factor)).train_seconds
    assert many < few <= many * factor * 1.05


def test_uneven_lengths_cost_attention() -> None:
    """Long sequences hold most of the pairs; nothing else changes."""
    even, uneven = seconds(question()), seconds(question(tokens_cv=1.0))
    assert uneven.parts["attention"] > even.parts["attention"]
    assert uneven.parts["matmul"] == even.parts["matmul"]


def test_recomputation_is_paid_in_time_and_not_in_mfu() -> None:
    """None, attention only, every other product, all: each takes longer, and MFU falls with it."""
    steps = [seconds(question(recompute=name)) for name in TRAINING]
    assert list(TRAINING) == ["none", "selective", "alternate", "full"]
    assert sorted(step.update_seconds for step in steps) == [step.update_seconds for step in steps]
    assert sorted((step.mfu for step in steps), reverse=True) == [step.mfu for step in steps]
    assert steps[-1].parts["matmul"] < steps[0].parts["matmul"] * 4 / 3


@given(
    gpu=st.sampled_from(["h100-sxm", "l40s", "rtx-4090"]),
    model=st.sampled_from(["llama3.1-8b", "gemma3-1b", "qwen3-30b-a3b"]),
    context=st.sampled_from([1, 2, 4, 8]),
    tokens=st.floats(512.0, 1e5),
)
def test_recomputing_never_saves_time(gpu: str, model: str, context: int, tokens: float) -> None:
    """Keys and values go round again for attention that is computed again, which hides no more than it sends."""
    asked = question(model, gpu, context=context, tokens=tokens, recompute="none")
    plain = seconds(asked).update_seconds
    for name in TRAINING:
        assert seconds(replace(asked, recompute=name)).update_seconds >= plain * (1 - 1e-9)


def test_fp8_speeds_up_linear_layers_alone() -> None:
    """Attention stays, quantisation is paid, and the whole is less than twice as fast."""
    plain, narrow = (seconds(question("llama3.1-70b", dtype=name, fused=True)) for name in ("bf16", "fp8"))
    assert narrow.parts["attention"] == plain.parts["attention"]
    assert narrow.parts["elementwise"] > plain.parts["elementwise"]
    assert plain.update_seconds / 2 < narrow.update_seconds < plain.update_seconds


def test_adapters_spare_the_gradients_of_frozen_weights() -> None:
    """One product of three, and two thirds of what sharding moves; both forms agree, on experts and in fp4 too."""
    full = question("llama3.1-70b", "gb200", recompute="none", fused=True, dtype="fp4")
    adapted = replace(full, lora_rank=16)
    spared = seconds(adapted).parts["matmul"] / seconds(full).parts["matmul"]
    assert spared == pytest.approx(2 / 3, abs=0.01)
    assert seconds(adapted).parts["gathering"] < 0.7 * seconds(full).parts["gathering"]
    moe = question("qwen3-30b-a3b", dtype="fp8", lora_rank=16)
    assert train_step(apply, moe, VALUES).train_seconds.value == pytest.approx(seconds(moe).train_seconds)


def test_a_reference_is_the_frozen_model_without_adapters() -> None:
    """Its pass takes what it takes without any; that of the policy has them."""
    passes: dict[str, Any] = {"passes": ("old_logprob", "reference"), "gpus": 8}
    plain, adapted = (seconds(question(lora_rank=rank, **passes)).forward_seconds for rank in (None, 32))
    assert adapted["reference"] == plain["reference"] == plain["old_logprob"]
    assert adapted["old_logprob"] > 1.1 * adapted["reference"]


def test_narrow_frozen_weights_are_widened_for_each_micro_batch() -> None:
    """Four bits and a scale are read, and 16 bits written; forward, recomputation and backward of 7B on a 4090."""
    adapted = question("llama3.1-8b", "rtx-4090", gpus=1, lora_rank=16, micro_batch_tokens=4096.0, sequences=8)
    narrow = replace(adapted, keeps=Keeping(frozen_dtype="nf4"))
    micro_batches = 8 * float(adapted.tokens) / 4096
    widened = 3 * micro_batches * 6.98e9 * (0.516 + 2) / 1.008e12
    more = seconds(narrow).parts["elementwise"] - seconds(adapted).parts["elementwise"]
    assert widened < more < 1.5 * widened
    assert seconds(replace(narrow, lora_rank=None)).parts == seconds(replace(adapted, lora_rank=None)).parts


def test_narrow_experts_of_small_micro_batches_wait_for_their_host() -> None:
    """Megatron launches each by itself, so fewer wait less; one product for all, bf16 and large batches do not."""
    small = question(
        "qwen3-30b-a3b", "b200-sxm", gpus=8, expert=8, dtype="fp8", micro_batch_tokens=4096.0, sharding="optimizer"
    )
    waits = seconds(small).parts["host_wait"]
    assert waits > 0.3 * seconds(small).update_seconds
    assert seconds(replace(small, gpus=32, expert=32, sequences=2048)).parts.get("host_wait", 0.0) < 0.3 * waits
    assert seconds(replace(small, keeps=Keeping(backend="megatron"))).parts["host_wait"] > 0.5 * waits
    for quick in (
        {"dropping": True},
        {"dtype": "bf16"},
        {"micro_batch_tokens": 65536.0},
        {"sharding": "full"},
        {"keeps": Keeping(backend="fsdp2")},
    ):
        assert seconds(replace(small, **quick)).parts.get("host_wait", 0.0) < 0.1 * waits


def test_tensors_with_one_scale_each_take_more_launches_than_blocks() -> None:
    """Their largest value is sought before they are scaled, so a host that the GPU waits for takes longer."""
    small = question("qwen3-30b-a3b", gpus=8, expert=8, dtype="fp8", micro_batch_tokens=2048.0, sharding="optimizer")
    blocks, tensors = (seconds(replace(small, scaling=scaling)) for scaling in ("block", "tensor"))
    assert tensors.parts["host_wait"] > 1.2 * blocks.parts["host_wait"]


def test_fp8_without_expert_parallelism_is_no_slower_where_experts_share_a_product() -> None:
    """All experts of a sharded model are on each GPU; launched one by one, 128 of them kept it waiting."""
    narrow, wide = (
        seconds(question("qwen3-30b-a3b", gpus=32, dtype=dtype)).update_seconds for dtype in ("fp8", "bf16")
    )
    assert narrow < wide


def test_bands_of_cards_hold_what_hosts_differ_by() -> None:
    """Only where cards send to each other, and more the more of the time that takes."""

    def width(gpu: str, gpus: int) -> float:
        asked = question("qwen3-1.7b", gpu, gpus=gpus, sequences=8 * gpus, micro_batch_tokens=2048.0)
        low, high = np.quantile(seconds(asked, prior(STAGE).drawn(0)).update_seconds, (0.1, 0.9))
        return float(high / low)

    assert width("l40s", 8) > 1.3 * width("l40s", 1)
    assert width("h100-sxm", 8) < 1.1 * width("h100-sxm", 1)


@pytest.mark.parametrize("gpu", ["a10", "a6000", "l40s", "t4", "rtx-4090", "h100-pcie", "rtx-pro-6000-server"])
def test_cards_of_a_node_gather_over_the_host(gpu: str) -> None:
    """They need no network, share what PCIe gives, and send nothing over an adapter quicker than over PCIe."""
    spec = (profile := CATALOGUE.get("gpu", gpu)).specification
    assert spec.pcie is not None
    brings = [train_gpu(profile, "bf16", ranks, 1, 1) for ranks in (2, 4, 8)]
    shares = [one["gather_fraction"].number for one in brings]
    assert sorted(shares, reverse=True) == shares
    assert shares[2] < 0.4
    assert brings[0]["domain_gpus"].number == spec.gpus_per_node.value
    assert brings[0]["nic"].number <= spec.pcie.value


def test_experts_that_drop_tokens_are_sent_a_copy_each() -> None:
    """8 experts of a token on 8 GPUs: 7 copies leave it, 4.6 where who gets one hands it on to all of its experts."""
    asked = question("qwen3-30b-a3b", gpus=8, expert=8)
    once, each = (seconds(replace(asked, dropping=dropping)).parts["exchanged"] for dropping in (False, True))
    assert each / once == pytest.approx(7 / 4.595, rel=0.01)


def test_kernels_of_another_generation_gain_nothing_on_blackwell() -> None:
    """Attention of FlashAttention-2 takes about as long on B200 as on H200; native kernels are far quicker there."""

    def scores(gpu: str, **changed: Any) -> float:
        return float(seconds(question("qwen3-8b", gpu, tokens=16384.0, **changed)).parts["attention"])

    assert scores("b200-sxm") == pytest.approx(scores("h200-sxm"), rel=0.3)
    assert scores("b200-sxm", native_attention=True) < 0.5 * scores("b200-sxm")


@pytest.mark.parametrize("gpu", ["a100-80-sxm", "a6000", "a10g", "l40s", "rtx-4090", "rtx-5090", "h200-sxm", "gb300"])
def test_native_attention_gains_only_where_the_common_kernels_are_not_those_made_for_the_gpu(gpu: str) -> None:
    """FlashAttention-2 is what Ampere and cards have; Hopper and Blackwell have instructions that it does not use."""
    common, native = (
        float(seconds(question("qwen3-8b", gpu, tokens=16384.0, native_attention=said)).parts["attention"])
        for said in (False, True)
    )
    assert native == common if gpu not in {"h200-sxm", "gb300"} else native < 0.7 * common


def test_what_nvidias_older_kernels_lose_is_no_loss_of_others() -> None:
    """MI355X has twice the peak of MI300X, and kernels that reach more of it."""
    old, new = (seconds(question("qwen3-8b", gpu, tokens=16384.0)).parts["attention"] for gpu in ("mi300x", "mi355x"))
    assert new < 0.6 * old


def test_layers_of_megatron_are_fused_and_have_kernels_made_for_the_gpu() -> None:
    """As a launch that names the backend has them, whoever reads it."""
    said = seconds(question("qwen3-30b-a3b", fused=True, native_attention=True))
    assert seconds(question("qwen3-30b-a3b", keeps=Keeping(backend="megatron"))) == said
    assert seconds(question("qwen3-30b-a3b", keeps=Keeping(backend="fsdp"))).update_seconds > said.update_seconds


def test_extra_passes_cost_about_a_forward_pass_each() -> None:
    """A third of forward and backward; the critic trains too."""
    step = seconds(question(recompute="none", workload="pretraining", passes=("old_logprob", "critic")))
    assert step.forward_seconds["old_logprob"] == pytest.approx(step.update_seconds / 3, rel=0.15)
    assert step.forward_seconds["critic"] == pytest.approx(
        step.update_seconds + step.forward_seconds["old_logprob"], rel=1e-9
    )


def test_a_smaller_reward_model_costs_less() -> None:
    """A pass may have a model of its own."""
    own = {"reward": CATALOGUE.get("model", "qwen3-0.6b")}
    large, small = (seconds(question(passes=("reward",), pass_models=models)) for models in ({}, own))
    assert small.forward_seconds["reward"] < large.forward_seconds["reward"] / 3


def test_a_pipeline_waits_less_with_more_micro_batches_and_interleaving() -> None:
    """The bubble is (p - 1) / (v M) of the work."""
    asked = question("llama3.1-70b", pipeline=4, micro_batch_tokens=32768.0)
    bubble = seconds(asked).parts["bubble"]
    assert seconds(replace(asked, micro_batch_tokens=8192.0)).parts["bubble"] == pytest.approx(bubble / 4, rel=0.05)
    assert seconds(replace(asked, virtual_stages=2)).parts["bubble"] == pytest.approx(bubble / 2)


@pytest.mark.parametrize("sharding", SHARDINGS)
def test_small_micro_batches_gather_weights_more_often(sharding: str) -> None:
    """Only where weights or gradients are sharded: states and plain data parallelism pay once a step."""
    asked = question(sharding=sharding)
    few, many = (seconds(replace(asked, micro_batch_tokens=size)).parts["gathering"] for size in (16384.0, 2048.0))
    assert many > 2 * few if sharding in {"full", "gradients"} else many == pytest.approx(few, rel=0.2)


def test_experts_beyond_the_node_are_slow() -> None:
    """Each token goes to a GPU of its own over one network adapter, which is slower than the links inside."""
    inside = seconds(question("qwen3-30b-a3b", expert=8)).parts["exchanged"]
    assert seconds(question("qwen3-30b-a3b", expert=16)).parts["exchanged"] > 1.5 * inside


def test_expert_parallelism_exchanges_tokens_and_spares_weights() -> None:
    """Each rank reads its own experts only, and tokens travel."""
    alone, spread = (seconds(question("qwen3-30b-a3b", expert=count, micro_batch_tokens=4096.0)) for count in (1, 8))
    assert "exchanged" not in alone.parts or alone.parts["exchanged"] == 0
    assert spread.parts["exchanged"] > 0
    assert spread.parts["matmul"] < alone.parts["matmul"]


def test_rl_is_slower_than_pretraining_by_its_own_constants() -> None:
    """Nothing of RL is in the constants that pre-training fitted."""
    rl, plain = seconds(question()), seconds(question(workload="pretraining"))
    assert rl.update_seconds > plain.update_seconds
    assert "loss" not in plain.parts
    even = {**VALUES, "rl_train_slowdown": 1.0, "rl_attention": 1.0}
    assert seconds(question(), even).update_seconds == pytest.approx(plain.update_seconds)


def test_states_on_the_host_come_and_go_at_the_rate_of_copies() -> None:
    """By hand: 12 bytes of each of 7.505 billion parameters (8.03 less a table) over 32 GPUs, both ways."""
    here, host = seconds(question()), seconds(question(offload=True))
    longer = host.update_seconds - here.update_seconds
    assert longer == pytest.approx(2 * 12 * 7.505e9 / 32 / VALUES["train_host_copy"], rel=1e-3)
    assert host.parts["offload"] == pytest.approx(longer)
    assert seconds(question(returning=True)).update_seconds == host.update_seconds


def test_extra_passes_have_micro_batches_moves_and_hand_overs_of_their_own() -> None:
    """Small ones wait for their host, weights that return are copied twice, and a controller hands every place over."""
    plain = question(passes=("old_logprob", "reference"))
    before = seconds(plain)
    small = seconds(replace(plain, forward_micro_batch_tokens=512.0))
    assert small.update_seconds == before.update_seconds
    assert small.forward_seconds["reference"] > 2 * before.forward_seconds["reference"]
    moved, handed = seconds(replace(plain, weights_returning=True)), seconds(replace(plain, longest_tokens=8192.0))
    more = {name: moved.forward_seconds[name] - taken for name, taken in before.forward_seconds.items()}
    assert more["old_logprob"] == pytest.approx(2 * 8.03e9 / 32 * 2 / VALUES["train_host_copy"], rel=0.1)
    assert more["reference"] == 0
    extra = handed.forward_seconds["reference"] - before.forward_seconds["reference"]
    assert extra == pytest.approx(512 * 8192 * VALUES["rl_handling_seconds"])


def test_padding_is_worked_and_trains_nothing() -> None:
    """Sequences padded to twice their length take twice the time, at half the rate of tokens that count."""
    plain = question(longest_tokens=4096.0)
    before, after = seconds(plain), seconds(replace(plain, keeps=Keeping(padded=True)))
    assert 1.8 < after.update_seconds / before.update_seconds < 2.3
    assert after.mfu / before.mfu == pytest.approx(before.update_seconds / after.update_seconds, rel=0.05)


def test_passes_of_another_model_have_a_constant_of_their_own() -> None:
    """So that a measured sum does not tell what of it is the policy's."""
    larger = question(passes=("old_logprob", "reward"), pass_models={"reward": CATALOGUE.get("model", "qwen3-32b")})
    before, after = (seconds(larger, VALUES | {"rl_other_model": times}).forward_seconds for times in (1.0, 2.0))
    assert after["reward"] == pytest.approx(2 * before["reward"])
    assert after["old_logprob"] == before["old_logprob"]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"gpu": "a100-80-sxm", "dtype": "fp8"}, "a100-80-sxm has no fp8"),
        ({"dtype": "int4"}, "h100-sxm trains in bf16, fp8 or fp4; int4"),
        ({"tensor": 8, "gpus": 12}, "12 GPUs cannot be dealt out to model replicas of 8"),
        ({"expert": 4}, "has no experts"),
        ({"pipeline": 32, "gpus": 64, "model": "qwen3-0.6b"}, "32 stages are more than the 28"),
        ({"passes": ("juggling",)}, "there is no pass 'juggling'"),
    ],
)
def test_what_cannot_be_is_refused_in_words(changed: dict[str, Any], words: str) -> None:
    """The message names what is wrong."""
    with pytest.raises(Refused, match=words):
        seconds(question(**changed))


def test_a_gpu_without_kernels_is_refused() -> None:
    """A profile that was made by hand may have none."""
    bare = replace(question(), gpu=replace(question().gpu, kernels=None))
    assert list(objections(bare)) == ["the profile of h100-sxm says nothing about its kernels"]


def test_h100_pretraining_reaches_forty_percent() -> None:
    """A 7B model with full micro-batches and nothing recomputed; in RL, less."""
    usual = question(
        "mpt-7b", recompute="none", workload="pretraining", micro_batch_tokens=12288.0, gpus=8, early_attention=True
    )
    assert 0.36 < seconds(usual).mfu < 0.48
    assert seconds(replace(usual, workload="rl")).mfu < 0.9 * seconds(usual).mfu


def test_bands_enclose_and_widen() -> None:
    """The answer lies in its band; an uncertain input widens it; the same seed gives the same band."""
    figures: dict[str, Any] = {
        "gpus": Figure(key="trainer_gpus", value=32),
        "sequences": Figure(key="samples_per_step", value=512),
        "tokens": Figure(key="sequence_tokens", value=2048.0),
    }
    belief = prior(STAGE)
    asked = question(**figures)
    answer = predicted_train_step(asked, belief, 0)
    low, high = answer.results[0].band or (0.0, 0.0)
    assert low < answer.results[0].number < high
    assert predicted_train_step(asked, belief, 0).results[0].band == (low, high)
    loose = replace(asked, tokens=Figure(key="sequence_tokens", value=2048.0, deviation=1024.0, least=1.0))
    wide = predicted_train_step(loose, belief, 0).results[0].band or (0.0, 0.0)
    assert wide[1] / wide[0] > high / low
    assert sum(part.share.number for part in answer.parts) == pytest.approx(1.0)
    assert answer.doubts


@pytest.mark.parametrize("recompute", ["none", "full"])
def test_what_lives_on_the_host_takes_the_time_that_its_bytes_take(recompute: str) -> None:
    """States for each optimizer step, at the rate of unpinned copies, and weights for each micro-batch add up."""
    apart = {
        "offload": question(recompute=recompute, offload=True, optimizer_steps=4.0),
        "param_offload": question(recompute=recompute, optimizer_steps=4.0, keeps=Keeping(param_offload=True)),
    }
    moved = {name: seconds(asked).parts["offload"] for name, asked in apart.items()}
    shard, link, host = 7.505e9 / 32, 64e9, 6e9  # without the embedding, whose update is counted nowhere
    assert moved["offload"] == pytest.approx(4 * 2 * 12 * shard / host, rel=0.01)
    micro_batches = 512 * 2048 / 32 / 16384
    assert moved["param_offload"] == pytest.approx(micro_batches * (2 * 2 + 4) * shard / link, rel=0.01)
    both = replace(apart["param_offload"], offload=True)
    assert seconds(both).parts["offload"] == pytest.approx(sum(moved.values()))
    quicker = moved["offload"] + moved["param_offload"] / 2
    assert seconds(with_gpu(both, pcie=2 * link)).parts["offload"] == pytest.approx(quicker)


def test_activations_on_the_host_take_less_where_only_inputs_are_kept() -> None:
    """And nothing where none go there."""
    keeps = Keeping(activation_offload=True)
    inputs, all_of_them = (seconds(question(recompute=word, keeps=keeps)).parts["offload"] for word in ("full", "none"))
    assert 0 < inputs < all_of_them / 10
    assert "offload" not in seconds(question()).parts


@pytest.mark.parametrize("gpu", ["mi300x", "gaudi3", "tpu-v6e", "l40s", "rtx-4090"])
@pytest.mark.parametrize("workload", ["pretraining", "rl"])
def test_bands_are_wider_on_gpus_of_which_no_record_was_seen(gpu: str, workload: Any) -> None:
    """Other makers, and cards without a fast network; all passes of a step have it."""
    asked = question(gpu=gpu, workload=workload, passes=("old_logprob",) if workload == "rl" else ())
    draws = prior(STAGE).drawn(0)
    seen = draws | {"train_unseen_slowdown": np.ones_like(draws["train_unseen_slowdown"])}
    found, plain = (np.log(seconds(asked, values).train_seconds) for values in (draws, seen))
    assert np.std(found) > 1.03 * np.std(plain)
