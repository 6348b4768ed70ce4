"""The memory bill against sums done by hand and against published measurements."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from rlsize.estimates.memory import MemoryQuestion, bill_memory
from rlsize.estimates.model_size import model_size
from rlsize.estimates.trainer_layout import TrainerLayout
from rlsize.estimates.trainer_memory import lora_params
from rlsize.facts.algorithm import ALGORITHMS, OPTIMIZERS, RECOMPUTATIONS
from rlsize.facts.figure import Figure, absent
from rlsize.readers.profiles import Catalogue

GB = 1e9


def figure(key: str, value: float, deviation: float = 0.0) -> Figure:
    """A given number."""
    return Figure(key=key, value=value, deviation=deviation)


def question(name: str = "grpo", params: float = 70e9, *, reward: bool = True) -> MemoryQuestion:
    """The lesson's 70B policy."""
    algorithm = ALGORITHMS[name]
    kept = {"critic": algorithm.critic, "reference": algorithm.reference, "reward": reward}
    return MemoryQuestion(
        algorithm=algorithm,
        beside={key: absent(key, "its size") for key, there in kept.items() if there},
        params=figure("params", params),
        optimizer=OPTIMIZERS["adamw"],
    )


def about(model: str, name: str = "grpo", kv_dtype: str = "bf16") -> MemoryQuestion:
    """A question about a shipped model."""
    profile = Catalogue().get("model", model)
    asked = replace(question(name, reward=False), params=model_size(profile).params)
    return replace(asked, model=profile, kv_dtype=kv_dtype)


def spread(**degrees: int) -> TrainerLayout:
    """A layout of the given degrees."""
    return TrainerLayout(**{key: figure(key, value) for key, value in degrees.items()})


def found(asked: MemoryQuestion) -> dict[str, Figure]:
    """The bill's figures by key."""
    return {entry.key: entry for entry in bill_memory(asked).results}


def test_grpo_holds_the_lessons_bill() -> None:
    """16N for the trainer and 2N for each frozen copy: 1,540 GB for a 70B policy with a reward model."""
    bill = found(question())
    assert bill["trainer_bytes"].value == 1120 * GB
    assert [bill[f"{name}_bytes"].value for name in ("reference", "reward", "rollout_weights")] == [140 * GB] * 3
    assert bill["total_bytes"].value == 1540 * GB
    assert "critic_bytes" not in bill
    assert bill["kv_cache_bytes"].missing == "--model, --context, --concurrency"


def test_ppo_adds_a_whole_trained_critic() -> None:
    """A critic of the policy's size costs another 16N: 2,660 GB in all."""
    bill = found(question("ppo"))
    assert bill["critic_bytes"].value == 1120 * GB
    assert bill["total_bytes"].value == 2660 * GB


@pytest.mark.parametrize(
    ("optimizer", "gradient", "per_param"),
    [("adamw", 2, 16), ("adamw", 4, 18), ("adam-8bit", 2, 10), ("adamw-bf16-states", 2, 12), ("muon", 4, 14)],
)
def test_the_training_state_is_the_sum_of_its_parts(optimizer: str, gradient: float, per_param: float) -> None:
    """Weights, gradients, master copy and moments add up to the rule, and the parts to the whole."""
    asked = replace(
        question(), optimizer=OPTIMIZERS[optimizer], bytes_per_gradient=figure("bytes_per_gradient", gradient)
    )
    answer = bill_memory(asked)
    assert found(asked)["trainer_bytes"].value == per_param * 70 * GB
    assert sum(width.number for _, width, _ in answer.trainer_parts) == per_param
    assert sum(held.number for _, _, held in answer.trainer_parts) == per_param * 70 * GB


def test_models_of_another_size_are_counted_with_their_own() -> None:
    """A 7B critic and reward model beside a 70B policy."""
    asked = replace(
        question("ppo"),
        beside={
            "critic": figure("critic_params", 7e9),
            "reference": absent("reference", "its size"),
            "reward": figure("reward_params", 7e9),
        },
    )
    bill = found(asked)
    assert bill["critic_bytes"].value == 112 * GB
    assert bill["reward_bytes"].value == 14 * GB
    assert bill["reference_bytes"].value == 140 * GB


def test_every_instance_has_a_copy_of_the_weights() -> None:
    """Four instances in fp8 hold 4 x 1N and scales where nothing says which parameters stay wide."""
    asked = replace(
        question(), instances=figure("instances", 4), rollout_dtype=Figure(key="rollout_dtype", value="fp8")
    )
    assert found(asked)["rollout_weights_bytes"].value == 280 * GB * (1 + 4 / 128**2)


def test_embeddings_and_norms_stay_wide_in_a_quantised_copy() -> None:
    """
    Llama-3.1-8B in fp8: one byte a parameter and a scale for each 16,384, two for the two 525M matrices and 65 norms of
    4096; 0.9 % more as loaded.
    """
    asked = replace(about("llama3.1-8b"), rollout_dtype=Figure(key="rollout_dtype", value="fp8"))
    wide = 2 * 525336576 + 65 * 4096
    expected = 1.009 * ((8030261248 - wide) * (1 + 4 / 128**2) + 2 * wide)
    assert found(asked)["rollout_weights_bytes"].number == pytest.approx(expected)


def test_the_cache_of_llama_70b() -> None:
    """80 layers x 8 KV heads x 128 x 2 x 2 B = 327,680 B a token; 64 samples of 3000 tokens take 62.9 GB."""
    asked = replace(
        about("llama3.1-70b"), context_tokens=figure("context_tokens", 3000), concurrency=figure("concurrency", 64)
    )
    bill = found(asked)
    assert bill["kv_bytes_per_token"].value == 327680
    assert bill["kv_cache_bytes"].value == 64 * 3000 * 327680
    halved = replace(
        about("llama3.1-70b", kv_dtype="fp8"),
        context_tokens=figure("context_tokens", 3000),
        concurrency=figure("concurrency", 64),
    )
    assert found(halved)["kv_cache_bytes"].value == 32 * 3000 * 327680


def test_the_mean_live_length_stands_for_the_context() -> None:
    """A prompt of 300 and responses of 3200 with a spread of 0.8 are 300 + 1600 x 1.64 tokens at a random moment."""
    asked = replace(
        about("qwen3-32b"),
        prompt_tokens=figure("prompt_tokens", 300),
        response_tokens=figure("response_tokens", 3200),
        response_cv=figure("response_cv", 0.8),
    )
    assert found(asked)["context_tokens"].number == pytest.approx(2924)


def test_sliding_layers_keep_a_window_only() -> None:
    """gpt-oss-20b: 12 layers keep all tokens, 12 keep 128, each 2 x 8 heads x 64 x 2 B a token."""
    asked = replace(
        about("gpt-oss-20b"), context_tokens=figure("context_tokens", 10_000), concurrency=figure("concurrency", 1)
    )
    assert found(asked)["kv_cache_bytes"].value == 12 * 2048 * (10_000 + 128)


def test_a_latent_cache_is_held_whole_by_every_gpu() -> None:
    """Tensor parallelism divides keys and values, but not the latent of DeepSeek-V3: 61 x 576 x 2 B a token."""
    asked = replace(
        about("deepseek-v3"),
        context_tokens=figure("context_tokens", 1000),
        concurrency=figure("concurrency", 8),
        rollout_tensor_parallel=figure("rollout_tensor_parallel", 8),
    )
    bill = found(asked)
    assert bill["kv_cache_bytes"].value == 8 * 1000 * 61 * 576 * 2
    assert bill["kv_cache_bytes_per_gpu"].value == bill["kv_cache_bytes"].value


def test_more_gpus_than_kv_heads_keep_copies() -> None:
    """Llama-3.1-70B has 8 KV heads: TP 8 divides the cache by 8, and TP 16 does no better."""
    asked = replace(
        about("llama3.1-70b"), context_tokens=figure("context_tokens", 1000), concurrency=figure("concurrency", 8)
    )
    shares = [
        found(replace(asked, rollout_tensor_parallel=figure("rollout_tensor_parallel", degree)))[
            "kv_cache_bytes_per_gpu"
        ].value
        for degree in (1, 8, 16)
    ]
    assert shares == [8e3 * 327680, 1e3 * 327680, 1e3 * 327680]


@pytest.mark.parametrize(("stage", "per_gpu"), [(0, 120.0), (1, 31.40625), (2, 16.640625), (3, 1.875)])
def test_zero_stages_shard_as_its_paper_says(stage: int, per_gpu: float) -> None:
    """The 7.5B model on 64 GPUs of ZeRO's figure 1: 120, 31.4, 16.6 and 1.9 GB a GPU."""
    layout = spread(data_parallel=64, shards=64, zero_stage=stage)
    bill = found(replace(question(params=7.5e9), layout=layout))
    assert bill["trainer_bytes_per_gpu"].number == pytest.approx(per_gpu * GB)


def test_frozen_models_are_sharded_only_where_weights_are() -> None:
    """The reference takes 2N on every rank under ZeRO-2, and 2N / 64 under ZeRO-3."""
    shares = [
        found(replace(question(params=7.5e9), layout=spread(data_parallel=64, shards=64, zero_stage=stage)))
        for stage in (2, 3)
    ]
    assert [bill["reference_bytes_per_gpu"].number for bill in shares] == [15 * GB, 15 * GB / 64]


def test_full_sharding_leaves_nothing_twice() -> None:
    """Under ZeRO-3 all GPUs together hold one copy, whatever the model parallelism."""
    asked = about("qwen3-30b-a3b")
    for layout in (
        spread(data_parallel=64, shards=64),
        spread(data_parallel=8, shards=8, tensor_parallel=4, pipeline_parallel=2),
        spread(data_parallel=16, shards=16, tensor_parallel=4, expert_parallel=32),
        spread(data_parallel=8, shards=8, context_parallel=2, tensor_parallel=4, expert_parallel=8),
    ):
        bill = found(replace(asked, layout=layout))
        assert layout.gpus.number == 64
        assert 64 * bill["trainer_bytes_per_gpu"].number == pytest.approx(bill["trainer_bytes"].number)


def test_experts_are_dealt_out_by_expert_parallelism() -> None:
    """
    Qwen3-30B-A3B, DP 8, TP 2, EP 8, ZeRO-1.

    Its 29.0B expert parameters lie on 8 ranks and their optimizer on the 2 ranks with the same slice; the other 1.54B
    lie on 2 ranks, their optimizer on 8.
    """
    layout = spread(data_parallel=8, shards=8, tensor_parallel=2, expert_parallel=8, zero_stage=1)
    asked = replace(about("qwen3-30b-a3b"), layout=layout)
    experts = 48 * 128 * 3 * 2048 * 768
    dense = asked.params.number - experts
    expected = experts / 8 * (4 + 12 / 2) + dense / 2 * (4 + 12 / 8)
    assert found(asked)["trainer_bytes_per_gpu"].number == pytest.approx(expected)


def test_hybrid_sharding_repeats_the_state() -> None:
    """HSDP of 4 groups of 8 holds an eighth on each of 32 GPUs."""
    layout = spread(data_parallel=32, shards=8)
    assert found(replace(question(), layout=layout))["trainer_bytes_per_gpu"].value == 140 * GB
    assert layout.gpus.value == 32


def test_adapters_on_all_linear_layers_of_llama_8b() -> None:
    """Rank 16 on the seven matrices of 32 layers trains 41,943,040 parameters, as PEFT prints it."""
    profile = Catalogue().get("model", "llama3.1-8b")
    assert lora_params(profile.architecture, figure("rank", 16)).value == 41_943_040


def test_a_lora_trainer_holds_frozen_weights_and_small_states() -> None:
    """2N and 16 bytes for each adapter parameter; sharded over 4 GPUs each holds a quarter."""
    asked = replace(about("llama3.1-8b"), lora_rank=figure("lora_rank", 16), layout=spread(data_parallel=4, shards=4))
    bill = found(asked)
    expected = 2 * 8030261248 + 16 * 41_943_040
    assert bill["trainer_bytes"].value == expected
    assert bill["trainer_bytes_per_gpu"].number == pytest.approx(expected / 4)
    assert sum(held.number for _, _, held in bill_memory(asked).trainer_parts) == expected


def test_fsdp_gathers_the_largest_unit_and_prefetches_another() -> None:
    """Llama-3.1-8B: its head of 525,336,576 parameters is larger than a layer; two in bf16 and the gradients of one."""
    bill = found(replace(about("llama3.1-8b"), layout=spread(data_parallel=8, shards=8)))
    assert bill["gathered_layer_bytes_per_gpu"].number == pytest.approx(6 * 525_336_576, rel=1e-5)
    plain = found(replace(about("llama3.1-8b"), layout=spread(data_parallel=8, shards=8, zero_stage=2)))
    assert plain["gathered_layer_bytes_per_gpu"].value == 0


def test_full_recomputation_keeps_layer_inputs() -> None:
    """Llama-3.1-8B, 32,768 tokens: 32 inputs of 4096 in bf16, one layer with 28 copies and 8 of gradients, logits."""
    asked = replace(
        about("llama3.1-8b"),
        layout=spread(data_parallel=8, shards=8),
        micro_batch_tokens=figure("micro_batch_tokens", 32768),
    )
    bill = found(asked)
    hidden = 32768 * 4096 * 2
    assert bill["activation_bytes_per_gpu"].number == pytest.approx(hidden * (32 + 36))
    assert bill["logits_bytes_per_gpu"].number == pytest.approx(32768 * 128256 * 11)
    some, none = (found(replace(asked, recompute=RECOMPUTATIONS[name])) for name in ("selective", "none"))
    assert none["activation_bytes_per_gpu"].number == pytest.approx(hidden * 32 * 28)
    assert some["activation_bytes_per_gpu"].number == pytest.approx(hidden * (32 * 28 * 0.34 + 36))


def test_a_published_training_peak_is_met() -> None:
    """
    Llama-3.1-8B in torchtitan, 8 GPUs, FSDP, 32,768 tokens, full recomputation, peaks at 83.9 GiB.

    The bill with what the allocator reserves comes within a tenth of it.
    """
    asked = replace(
        about("llama3.1-8b", "sft"),
        layout=spread(data_parallel=8, shards=8),
        micro_batch_tokens=figure("micro_batch_tokens", 32768),
    )
    assert found(asked)["trainer_pool_bytes_per_gpu"].number == pytest.approx(83.9 * 2**30, rel=0.1)


def test_pipelines_hold_several_micro_batches_on_the_first_stage() -> None:
    """With 8 stages the first keeps 8 micro batches of an eighth of the layers: as much as all layers of one."""
    asked = replace(
        about("llama3.1-405b"),
        layout=spread(data_parallel=8, shards=8, tensor_parallel=8, pipeline_parallel=8),
        micro_batch_tokens=figure("micro_batch_tokens", 32768),
    )
    assert found(asked)["activation_bytes_per_gpu"].number > 32768 * 16384 * 2 * 126 / 8


def test_adapters_gather_no_gradients_of_frozen_weights() -> None:
    """Two units in bf16, and nothing for gradients that nobody needs."""
    asked = replace(about("llama3.1-8b"), lora_rank=figure("lora_rank", 16), layout=spread(data_parallel=8, shards=8))
    assert found(asked)["gathered_layer_bytes_per_gpu"].number == pytest.approx(4 * 525_336_576, rel=1e-5)


def test_context_parallelism_deals_out_the_tokens() -> None:
    """Twice the context-parallel ranks halve activations and logits."""
    asked = replace(about("llama3.1-8b"), micro_batch_tokens=figure("micro_batch_tokens", 32768))
    bills = [
        found(replace(asked, layout=spread(data_parallel=4, shards=4, context_parallel=ranks))) for ranks in (1, 2)
    ]
    for key in ("activation_bytes_per_gpu", "logits_bytes_per_gpu"):
        assert bills[0][key].number == pytest.approx(2 * bills[1][key].number)


def test_an_uncertain_size_gives_every_tenant_a_band() -> None:
    """70B ± 5B: the trainer's interval is 16 times that of the reference's half."""
    bill = {
        entry.key: entry
        for entry in bill_memory(replace(question(), params=figure("params", 70e9, 5e9)), Random(0)).results
    }
    low, high = bill["trainer_bytes"].band or (0.0, 0.0)
    assert low < 1120 * GB < high
    assert bill["reference_bytes"].band == pytest.approx((low / 8, high / 8))


def test_the_usual_algorithms_stand_beside_the_asked_one() -> None:
    """GRPO and PPO for the picture, and DAPO where it was asked."""
    bills = dict(bill_memory(question("dapo")).alternatives)
    assert list(bills) == ["grpo", "ppo", "dapo"]
    assert [tenant.name for tenant in bills["dapo"]] == ["trainer", "reward", "rollout_weights", "kv_cache"]
    assert [tenant.name for tenant in bills["ppo"]][:3] == ["trainer", "critic", "reference"]


def test_every_figure_says_where_it_comes_from() -> None:
    """Predicted results name their equation or the figures that they add up."""
    asked = replace(about("qwen3-32b"), layout=spread(data_parallel=16, shards=16))
    for entry in bill_memory(asked).results:
        if entry.known and entry.provenance == "predicted":
            assert entry.equation or entry.inputs or entry.source, entry.key
