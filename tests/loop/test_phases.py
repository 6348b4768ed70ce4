"""A loop's memory phase by phase: published minima, where a loop dies first, and what refuses it."""

from __future__ import annotations

from typing import Any

import pytest

from rlsize.loop.answer import answer_of
from rlsize.loop.moves import moved_seconds
from rlsize.loop.phases import Phases, phases_of
from rlsize.loop.resolve import Loop, resolve
from rlsize.loop.unsaid import phases_as_said
from rlsize.shell.inputs import Inputs

SMALLEST = {
    "model": "qwen2-7b", "cluster.gpu": "h800-sxm", "cluster.gpus": "2", "workload.prompts_per_step": "1024",
    "workload.group_size": "5", "workload.mini_batches": "4", "workload.prompt_tokens": "105",
    "workload.max_prompt_tokens": "1024", "workload.response_tokens.mean": "220",
    "workload.response_tokens.max": "1024",
    "placement.mode": "colocated", "rollout.tensor_parallel": "2", "rollout.memory_fraction": "0.6",
    "rollout.sleep": "weights", "rollout.staged_wake_up": "false", "trainer.backend": "fsdp",
    "trainer.micro_batch_samples": "16", "trainer.logprob_micro_batch_samples": "16", "trainer.fused_loss": "true",
    "trainer.offloaded_between": "[params, gradients, optimizer]", "trainer.reference_offload": "true",
}  # fmt: skip
"""GRPO of Qwen2-7B on two H800, which verl publishes as its minimum (docs/perf/device_tuning.rst at 1dda039b)."""

LARGEST = SMALLEST | {
    "model": "qwen2-72b", "cluster.gpus": "32", "rollout.tensor_parallel": "16", "trainer.micro_batch_tokens": "24000",
    "workload.max_prompt_tokens": "512", "workload.response_tokens.max": "512",
}  # fmt: skip
"""The same of Qwen2-72B on 32."""


def loop(said: dict[str, str], **changed: str) -> Loop:
    """The loop that was said; underscores twice stand for dots."""
    changes = {key.replace("__", "."): value for key, value in changed.items()}
    return resolve(Inputs(changes=[f"{key}={value}" for key, value in (said | changes).items()]))


def phases(said: dict[str, str], **changed: str) -> Phases:
    """Its phases."""
    found = phases_of(loop(said, **changed))
    assert found is not None
    return found


@pytest.mark.parametrize(("said", "fullest"), [(SMALLEST, "update"), (LARGEST, "update")], ids=["7B", "72B"])
def test_published_minima_fit(said: dict[str, str], fullest: str) -> None:
    """On the GPUs that verl names, nearly full."""
    found = phases(said)
    assert found.dying is None
    assert found.worst.name == fullest
    assert found.worst.held.number > 0.85 * found.worst.memory
    assert loop(said).refused == ""


@pytest.mark.parametrize(
    ("said", "changed"),
    [(SMALLEST, {"cluster__gpus": "1", "rollout__tensor_parallel": "1"}), (LARGEST, {"cluster__gpus": "16"})],
    ids=["7B", "72B"],
)
def test_half_of_a_published_minimum_dies_in_training(said: dict[str, str], changed: dict[str, str]) -> None:
    """And says so in the words that every command uses."""
    dying = phases(said, **changed).dying
    assert dying is not None
    assert dying.name in {"update", "optimizer"}
    assert f"it dies at {dying.name}: needs " in loop(said, **changed).refused


def test_an_engine_that_never_sleeps_takes_its_share_from_the_trainer() -> None:
    """47 GiB of vLLM beside the policy and the copy that a sync makes of it, 4 bytes a parameter over two GPUs each."""
    found = phases(SMALLEST, rollout__sleep="none", trainer__offloaded_between="[]")
    assert found.dying is not None
    assert found.dying.name == "weight_sync"


@pytest.mark.parametrize(("staged", "survives"), [("true", True), ("false", False)])
def test_a_cache_that_wakes_up_with_the_weights_may_not_fit(staged: str, *, survives: bool) -> None:
    """72B on eight GPUs ran out at wake-up until vLLM woke its cache after the sync (verl-project/verl#987)."""
    found = phases(LARGEST, cluster__gpus="8", rollout__tensor_parallel="8", rollout__staged_wake_up=staged)
    verdicts = {phase.name: phase.verdict for phase in found.phases}
    assert (verdicts["wake_up"] != "dies") is survives
    assert verdicts["generation"] == "fits"


def test_without_backward_logits_of_long_samples_die_first() -> None:
    """Four samples of 16k tokens and 152k entries in one pass, unfused (NVIDIA-NeMo/RL#456)."""
    found = phases(
        SMALLEST,
        model="r1-distill-qwen-1.5b",
        cluster__gpus="8",
        workload__max_prompt_tokens="4096",
        workload__response_tokens__max="12288",
        trainer__fused_loss="false",
        trainer__padded="true",
        trainer__micro_batch_samples="1",
        trainer__logprob_micro_batch_samples="4",
    )
    assert found.dying is not None
    assert found.dying.name == "logprob"


def test_what_only_the_optimizers_states_overfill_dies_from_the_second_step_on() -> None:
    """They are made by its first step, and stay while engines generate."""
    found = phases(SMALLEST, trainer__offloaded_between="[params]", rollout__memory_fraction="0.7")
    generation = next(phase for phase in found.phases if phase.name == "generation")
    assert generation.first <= generation.memory < generation.held.number
    assert generation.later


def test_nothing_said_of_memory_means_what_each_side_takes_by_itself() -> None:
    """The engine sleeps, the trainer moves out, and no phase refuses the loop."""
    bare: dict[str, Any] = {key: value for key, value in SMALLEST.items() if not key.startswith("trainer.")}
    bare |= {"cluster.gpus": "8", "trainer.micro_batch_tokens": "8192"}
    for key in ("rollout.sleep", "rollout.staged_wake_up"):
        del bare[key]
    found = phases(bare)
    parts = {phase.name: set(phase.parts) for phase in found.phases}
    assert not {"trainer_weights", "optimizer", "reference"} & parts["generation"]
    assert not {"engine_weights", "kv_cache"} & parts["update"]
    assert "kv_cache" not in parts["weight_sync"]


def test_bands_hold_their_centre_and_the_same_seed_gives_them_again() -> None:
    """The 80 % interval of the draws, which training passes scatter more."""
    one, other = phases(SMALLEST), phases(SMALLEST)
    for phase, again in zip(one.phases, other.phases, strict=True):
        assert phase.held.band is not None
        assert phase.held.band == again.held.band
        assert phase.held.band[0] <= phase.held.number <= phase.held.band[1]


def test_rates_alone_have_no_phases() -> None:
    """Without a model nobody knows what is held."""
    texts = {
        "rollout_gpus": "8", "trainer_gpus": "8", "instance_tokens_per_second": "4000", "train_seconds": "20",
        "gpus_per_instance": "2", "prompts_per_step": "64", "group_size": "8", "response_tokens": "1000",
    }  # fmt: skip
    assert phases_of(resolve(Inputs(texts=texts))) is None


def test_a_reference_that_is_parked_has_the_gpus_to_itself_where_the_policy_moves_out() -> None:
    """In its own pass; where the policy stays, both are there."""
    apart = {one.name: one for one in phases(SMALLEST).phases}["reference"].parts
    beside = {one.name: one for one in phases(SMALLEST, trainer__offloaded_between="[optimizer]").phases}["reference"]
    assert {"reference", "trainer_weights"} & apart.keys() == {"reference"}
    assert {"reference", "trainer_weights"} <= beside.parts.keys()


def test_weights_that_both_sides_share_are_there_once() -> None:
    """As the engine's wherever it has them, and as the trainer's before it starts; all else is as it was."""
    adapted = SMALLEST | {"trainer.lora_rank": "16", "rollout.sleep": "kv", "trainer.offloaded_between": "[]"}
    apart = {one.name: one.parts for one in phases(adapted).phases}
    shared = {one.name: one.parts for one in phases(adapted, rollout__shares_weights="true").phases}
    grown = {"kv_cache", "reserved"}  # there is more room for a cache, and less for the allocator to round
    for name, parts in apart.items():
        gone = {"trainer_weights"} if name != "load" else set()
        assert parts.keys() - shared[name].keys() == gone & parts.keys()
        for key in shared[name].keys() - grown:
            assert shared[name][key] == pytest.approx(parts[key])


def test_logits_of_responses_alone_spare_those_of_prompts() -> None:
    """A cap of 1,024 tokens beside prompts of as many: half of the logits, and of nothing else; the step is shorter."""
    all_of_them, half = (
        {"trainer.response_logits": said, "trainer.fused_loss": "false", "trainer.micro_batch_samples": "8"}
        for said in ("no", "yes")
    )
    whole, own = (
        {one.name: one.parts for one in phases(SMALLEST | said).phases}["update"] for said in (all_of_them, half)
    )
    assert own["logits"] == pytest.approx(whole["logits"] * 220 / 325, rel=1e-6)  # of mean samples it is more
    assert {key for key in whole if own[key] != pytest.approx(whole[key])} == {"logits", "reserved"}
    longer, shorter = (answer_of(loop(SMALLEST | said)).results["step_seconds"].number for said in (all_of_them, half))
    assert shorter < longer


def test_an_engine_that_profiles_nothing_holds_what_the_loop_offers_it() -> None:
    """SGLang samples 512 and 1,024 prompts of five, never its 2,048 sequences; vLLM reserves for all of its own."""
    held = {
        (engine, prompts): {one.name: one.parts for one in found.phases}["generation"]["engine_runtime"]
        for engine in ("sglang", "vllm")
        for prompts in ("64", "128", "1024")
        for found in (phases(SMALLEST, rollout__engine=engine, workload__prompts_per_step=prompts),)
    }
    assert held["sglang", "64"] < held["sglang", "128"] < held["sglang", "1024"]
    assert held["vllm", "64"] == held["vllm", "1024"]


def test_a_model_with_gpus_of_its_own_is_not_on_the_trainers() -> None:
    """Neither in its memory nor among its passes."""
    both = {"algorithm__critic": "true", "algorithm__reference": "true", "trainer__offloaded_between": "[]"}
    held = {name for one in phases(SMALLEST, **both).phases for name in one.parts}
    apart = {name for one in phases(SMALLEST, **both, algorithm__models_apart="[critic]").phases for name in one.parts}
    assert held - apart == {"critic"}


def test_a_critic_takes_turns_with_a_policy_that_leaves() -> None:
    """Where weights and states move to the host between uses it is beside no pass of the policy; else beside all."""
    critic = {"algorithm__critic": "true", "algorithm__reference": "false"}
    alone, beside = (
        phases(SMALLEST, **critic, trainer__offloaded_between=moved)
        for moved in ("[params, gradients, optimizer]", "[gradients, optimizer]")
    )
    assert not any("critic" in one.parts for one in alone.phases)
    assert all("critic" in one.parts for one in beside.phases if one.name in {"logprob", "update", "optimizer"})


def test_an_engine_whose_share_has_no_room_dies_at_its_start_and_says_of_what() -> None:
    """What it needs is held against its share, not against the GPU."""
    found = phases(SMALLEST, rollout__memory_fraction="0.1").dying
    assert found is not None
    assert (found.name, found.starved) == ("engine_start", True)
    assert found.held.number > found.memory == pytest.approx(0.1 * phases(SMALLEST).worst.memory)


def test_a_weight_sync_of_fsdp_copies_the_shard_of_weights_that_stay() -> None:
    """
    Its sharded state_dict cuts parameters anew, from units that it gathers: embedding and head at once.

    The parameters of fully_shard are cut as they are kept.
    """
    old = {name: phases(SMALLEST, trainer__offloaded_between="[]", trainer__backend=name) for name in ("fsdp", "fsdp2")}
    held = {name: next(one for one in found.phases if one.name == "wake_up") for name, found in old.items()}
    loaded = next(one for one in old["fsdp"].phases if one.name == "load").parts["gathered"]  # one of the two
    assert held["fsdp"].parts["gathered"] == pytest.approx(held["fsdp"].parts["trainer_weights"] + 2 * loaded)
    assert "gathered" not in held["fsdp2"].parts
    moved = next(one for one in phases(SMALLEST).phases if one.name == "wake_up")
    assert "gathered" not in moved.parts


@pytest.mark.parametrize(
    ("said", "key"),
    [
        ({"rollout.memory_fraction": "0.5", "trainer.recompute": "full"}, None),
        ({"rollout.memory_fraction": "0.5"}, "trainer.recompute"),
        ({"trainer.recompute": "full"}, "rollout.memory_fraction"),
    ],
)
def test_what_nobody_says_of_a_described_run_widens_its_memory(said: dict[str, str], key: str | None) -> None:
    """A share that may be vLLM's own, or a trainer that may keep all activations: it fits, but nobody can be sure."""
    unsaid = {"rollout.memory_fraction", "trainer.recompute"}
    told = {name: value for name, value in SMALLEST.items() if name not in unsaid} | {
        "cluster.gpus": "8", "trainer.offloaded_between": "[]",
    }  # fmt: skip
    inputs = Inputs(changes=[f"{name}={value}" for name, value in (told | said).items()])
    found = phases_as_said(inputs, resolve(inputs))
    assert found is not None
    assert found.verdict == ("not sure" if key else "fits")
    assert found.unsaid == ((key,) if key else ())


def test_what_moves_to_the_host_takes_time_by_its_bytes() -> None:
    """Weights of the policy over two GPUs, the reference and the engine, there and back over PCIe 5; states are not."""
    asked = loop(SMALLEST)
    params = 7.615e9
    moved = params * (4 + 2) / 2 + params * 2 / 2
    assert moved_seconds(asked, phases_of(asked)) == pytest.approx(2 * moved / 64e9, rel=0.03)
    stays = loop(SMALLEST, trainer__offloaded_between="[]")
    assert moved_seconds(stays, phases_of(stays)) < moved_seconds(asked, phases_of(asked))
