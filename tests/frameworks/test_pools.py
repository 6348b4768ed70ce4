"""NeMo-RL, slime, SkyRL, AReaL, prime-rl, ROLL, PipelineRL and torchforge: what their launches say."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from rlsize.frameworks.told import keys_of
from rlsize.frameworks.wanted import changes
from rlsize.readers.frameworks import frameworks
from rlsize.readers.launch.launch import read_launch
from rlsize.readers.launch.scenario import doubts
from rlsize.readers.profiles import Catalogue

if TYPE_CHECKING:
    from pathlib import Path

    from rlsize.facts.framework import Framework
    from rlsize.readers.launch.launch import Launch

SLIME = "python3 train.py --actor-num-nodes 2 --rollout-batch-size 32 --n-samples-per-prompt 8 --global-batch-size 64 "
SKYRL = "uv run -m skyrl.train.entrypoints.main_base trainer.policy.model.path=a/b "


@cache
def known() -> dict[str, Framework]:
    """The frameworks that ship."""
    return frameworks(Catalogue())


def launch(folder: Path, text: str, name: str = "run.sh", **beside: str) -> Launch:
    """A launch, with files beside it whose names have _dot_ for a dot."""
    for one, content in beside.items():
        (folder / one.replace("_dot_", ".")).write_text(content)
    (folder / name).write_text(text)
    return read_launch(str(folder / name), known())


def said(read: Launch, *keys: str) -> tuple[Any, ...]:
    """Values of quantities."""
    told = [read.reading.quantity(key) for key in keys]
    return tuple(None if one is None else one.value for one in told)


# NeMo-RL

NEMO = """
grpo: {num_prompts_per_step: 16, num_generations_per_prompt: 4}
policy:
  model_name: a/b
  max_total_sequence_length: 1000
  train_global_batch_size: 32
  train_micro_batch_size: 2
  sequence_packing: {enabled: true, train_mb_tokens: "${mul:${policy.max_total_sequence_length}, 3}"}
  dtensor_cfg: {enabled: true, tensor_parallel_size: 2, activation_checkpointing: true}
  megatron_cfg: {enabled: false, tensor_model_parallel_size: 8, pipeline_model_parallel_size: 4}
  generation: {vllm_cfg: {tensor_parallel_size: 4}}
cluster: {num_nodes: 2, gpus_per_node: 8}
"""


def test_nemo_rl_only_the_trainer_that_is_enabled_counts(tmp_path: Path) -> None:
    """Both blocks stand in every recipe."""
    read = launch(tmp_path, NEMO, "x.yaml")
    assert said(read, "trainer_backend", "tensor_parallel", "pipeline_parallel", "fsdp", "recompute") == (
        "fsdp2", 2, 1, 8, "full",
    )  # fmt: skip
    other = NEMO.replace("megatron_cfg: {enabled: false", "megatron_cfg: {enabled: true")
    read = launch(tmp_path, other, "y.yaml")
    assert said(read, "trainer_backend", "tensor_parallel", "pipeline_parallel", "fsdp", "recompute") == (
        "megatron", 8, 4, None, "none",
    )  # fmt: skip


def test_nemo_rl_a_change_keeps_the_trainer_that_it_has(tmp_path: Path) -> None:
    """Keys that the profile writes go before what arithmetic backwards would do to the expression."""
    read = launch(tmp_path, NEMO, "x.yaml").reading
    assert changes(read, {"recompute": "none"}).keys == {"policy.dtensor_cfg.activation_checkpointing": False}
    none_of_it = "megatron_cfg: {enabled: true, optimizer: {optimizer_offload_fraction: 0}"
    megatron = launch(tmp_path, NEMO.replace("megatron_cfg: {enabled: false", none_of_it), "y.yaml")
    assert changes(megatron.reading, {"offload": True}).keys == {
        "policy.megatron_cfg.optimizer.optimizer_cpu_offload": True,
        "policy.megatron_cfg.optimizer.optimizer_offload_fraction": 1.0,
    }


def test_nemo_rl_tokens_of_a_micro_batch_replace_its_samples(tmp_path: Path) -> None:
    """Packing counts tokens; without it samples count."""
    assert said(launch(tmp_path, NEMO, "x.yaml"), "micro_batch_tokens", "micro_batch_samples") == (3000, None)
    plain = NEMO.replace("sequence_packing: {enabled: true", "sequence_packing: {enabled: false")
    assert said(launch(tmp_path, plain, "y.yaml"), "micro_batch_tokens", "micro_batch_samples") == (None, 2)


def test_nemo_rl_overrides_reach_what_its_configuration_derives(tmp_path: Path) -> None:
    """An interpolation takes the value that the command line gives, and stays the file's."""
    script = "uv run examples/run_grpo.py --config base.yaml policy.max_total_sequence_length=2000"
    read = launch(tmp_path, script, base_dot_yaml=NEMO)
    told = read.reading.quantity("micro_batch_tokens")
    assert told is not None
    assert (told.value, told.provenance) == (6000, "inherited")


def test_nemo_rl_engines_take_their_share_of_the_cluster(tmp_path: Path) -> None:
    """Apart, the trainer has what generation leaves: nodes, or GPUs of the only one."""
    pool = "policy.generation.colocated"
    begin = f"python examples/run_grpo.py --config base.yaml {pool}.enabled=false {pool}.resources.gpus_per_node"
    two = f"{begin}=8 {pool}.resources.num_nodes=1"
    read = launch(tmp_path, two, base_dot_yaml=NEMO)
    assert said(read, "mode", "gpus", "rollout_gpus", "trainer_gpus", "instances") == ("sync", 16, 8, 8, 2)
    read = launch(tmp_path, f"{begin}=4 cluster.num_nodes=1 grpo.async_grpo.enabled=true", base_dot_yaml=NEMO)
    assert said(read, "mode", "rollout_gpus", "trainer_gpus", "max_staleness") == ("async", 4, 4, 1)


def test_nemo_rl_a_command_that_slurm_hands_on_is_read(tmp_path: Path) -> None:
    """The recipe of many nodes: the command in a variable, the nodes with sbatch."""
    script = 'COMMAND="uv run ./examples/run_grpo.py --config base.yaml cluster.num_nodes=4" sbatch --nodes=4 ray.sub'
    assert said(launch(tmp_path, script, base_dot_yaml=NEMO), "gpus", "model") == (32, "a/b")
    script = script.replace("ray.sub", "--gres=gpu:h100:8 ray.sub")
    without = NEMO.replace(", gpus_per_node: 8", "")
    assert said(launch(tmp_path, script, base_dot_yaml=without), "gpus", "gpus_per_node") == (32, 8)


# slime


def test_slime_a_trainer_that_shares_its_gpus_leaves_them(tmp_path: Path) -> None:
    """Colocation pauses all that a side holds, unless a flag forbids it."""
    keys = ("mode", "gpus", "rollout_gpus", "offload_params", "offloaded_between", "engine_sleep")
    assert said(launch(tmp_path, f"{SLIME} --colocate"), *keys) == (
        "colocated", 16, 16, True, ("params", "gradients", "optimizer"), "weights",
    )  # fmt: skip
    kept = launch(tmp_path, f"{SLIME} --colocate --no-offload-train --no-offload-rollout")
    assert said(kept, *keys) == ("colocated", 16, 16, False, (), "none")


@pytest.mark.parametrize(
    ("program", "more", "mode", "staleness"),
    [
        ("train.py", "", "sync", 0),
        ("train_async.py", "", "one-step-off", 1),
        ("train_async.py", "--rollout-function-path x.fully_async_rollout.y", "async", None),
    ],
)
def test_slime_the_program_says_the_mode(
    tmp_path: Path, program: str, more: str, mode: str, staleness: int | None
) -> None:
    """A rollout function of its own has no bound on staleness."""
    read = launch(tmp_path, f"{SLIME.replace('train.py', program)} --rollout-num-gpus 8 {more}")
    assert said(read, "mode", "max_staleness", "gpus", "trainer_gpus") == (mode, staleness, 24, 16)


@pytest.mark.parametrize(("program", "mode"), [("", "sync"), (', train_script="train_async.py"', "one-step-off")])
def test_slime_a_python_launcher_runs_what_its_arguments_say(tmp_path: Path, program: str, mode: str) -> None:
    """As its own scripts of late have it: flags in strings, handed to execute_train."""
    text = f"""
import slime.utils.external_utils.command_utils as U
MODEL = "Qwen3-4B"
def execute():
    rollout = "--rollout-batch-size 32 --n-samples-per-prompt 8 "
    gpus = "--actor-num-nodes 1 --actor-num-gpus-per-node 8 --rollout-num-gpus 4"
    args = f"--hf-checkpoint /root/{{MODEL}} {{rollout}} {{gpus}}"
    U.execute_train(train_args=args, num_gpus_per_node=8{program})
"""
    read = launch(tmp_path, text, "run.py")
    values = [read.reading.value(f"loop.{key}") for key in ("model", "mode", "samples_per_step", "gpus")]
    assert values == ["/root/Qwen3-4B", mode, 256, 12]


@pytest.mark.parametrize(
    ("wanted", "beside"),
    [
        ({"recompute": "full"}, {"recompute_method": "uniform", "recompute_num_layers": 1}),
        ({"offload": True}, {"use_precision_aware_optimizer": True, "overlap_cpu_optimizer_d2h_h2d": True}),
        ({"draft_tokens": 3}, {"sglang_speculative_eagle_topk": 1, "sglang_speculative_num_draft_tokens": 4}),
        ({"tensor_parallel": 2}, {"sequence_parallel": True}),
    ],
)
def test_slime_keys_that_are_asked_for_beside_others_are_written(
    tmp_path: Path, wanted: dict[str, Any], beside: dict[str, Any]
) -> None:
    """Megatron and SGLang stop without them, and no quantity hangs on them; what is there already stays."""
    read = launch(tmp_path, SLIME + "--hf-checkpoint a/b --colocate").reading
    found = changes(read, wanted)
    assert beside.items() <= found.keys.items()
    assert changes(read.changed(found.keys), wanted).keys == {}


def test_slime_stages_of_an_engine_are_among_its_gpus(tmp_path: Path) -> None:
    """What rollout-num-gpus-per-engine counts is all of an engine."""
    said = "--hf-checkpoint a/b --colocate --rollout-num-gpus-per-engine 8 --sglang-pp-size 2"
    read = launch(tmp_path, SLIME + said).reading
    assert [read.value(f"loop.{key}") for key in ("rollout_tensor_parallel", "instances")] == [4, 2]
    assert changes(read, {"rollout_tensor_parallel": 8}).keys == {"rollout_num_gpus_per_engine": 16}


def test_slime_attention_that_is_dealt_out_is_told_with_what_is_assumed(tmp_path: Path) -> None:
    """Which weights and which cache are counted otherwise than they are."""
    said = "--hf-checkpoint a/b --colocate --sglang-enable-dp-attention --sglang-dp-size 4"
    told = " ".join(doubts(launch(tmp_path, SLIME + said)))
    assert "4 data-parallel ranks" in told
    assert "assumed is tensor parallelism" in told


def test_slime_updates_of_a_step_are_counted_or_said(tmp_path: Path) -> None:
    """256 samples in batches of 64 are four updates; num-steps-per-rollout says them at once."""
    assert said(launch(tmp_path, SLIME), "mini_batches", "minibatch_samples") == (4, 64)
    direct = SLIME.replace("--global-batch-size 64", "--num-steps-per-rollout 2")
    assert said(launch(tmp_path, direct), "mini_batches", "minibatch_samples") == (2, None)


def test_a_script_called_train_belongs_to_whom_its_arguments_do(tmp_path: Path) -> None:
    """Both slime and AReaL run train.py."""
    assert launch(tmp_path, SLIME).framework.name == "slime"
    assert (
        launch(tmp_path, "python3 train.py --config x.yaml actor.path=a/b gconfig.n_samples=4").framework.name
        == "areal"
    )


@pytest.mark.parametrize("shape", ["${MODEL_ARGS[@]}", '"${NET[@]}"', "$MODEL_ARGS", "${NET[*]}"])
def test_arguments_from_a_file_that_is_missing_are_no_value_of_the_flag_before_them(tmp_path: Path, shape: str) -> None:
    """The shape of a model stands in a file of its own; slime's own scripts name it behind --colocate."""
    read = launch(
        tmp_path, f"source models/x.sh\n{SLIME} --colocate {shape} --max-tokens-per-gpu $TOKENS --rollout-seed 1\n"
    )
    assert said(read, "mode", "micro_batch_tokens") == ("colocated", None)


def test_slime_a_script_is_read_for_the_first_node(tmp_path: Path) -> None:
    """Only there does SkyPilot's job start the trainer."""
    run = f"  if [ $SKYPILOT_NODE_RANK == 0 ]; then\n    {SLIME} --colocate\n  fi\n"
    job = f"num_nodes: 2\nresources: {{accelerators: H100:8}}\nrun: |\n{run}"
    assert said(launch(tmp_path, job, "job.yaml"), "gpus", "gpu") == (16, "H100")


# SkyRL


def test_skyrl_older_names_of_engine_keys_mean_the_same(tmp_path: Path) -> None:
    """Keys of engines moved under inference_engine in March 2026."""
    new = "generator.inference_engine.num_engines=2 generator.inference_engine.tensor_parallel_size=2"
    old = "generator.num_inference_engines=2 generator.inference_engine_tensor_parallel_size=2"
    keys = ("instances", "rollout_tensor_parallel", "rollout_gpus", "memory_fraction")
    four = f"{SKYRL} trainer.placement.policy_num_gpus_per_node=4 "
    assert said(launch(tmp_path, four + new), *keys) == said(launch(tmp_path, four + old), *keys) == (2, 2, 4, 0.8)


def test_skyrl_has_other_defaults_than_skyrl_train(tmp_path: Path) -> None:
    """One GPU for the trainer, and one for an engine; four of each in skyrl-train, which older names of keys tell."""
    keys = ("trainer_gpus", "rollout_tensor_parallel", "trainer_backend")
    assert said(launch(tmp_path, SKYRL), *keys) == (1, 1, "fsdp")
    assert said(launch(tmp_path, f"{SKYRL} generator.num_inference_engines=1"), *keys) == (4, 4, "fsdp2")


def test_skyrl_prompts_of_a_mini_batch_are_counted(tmp_path: Path) -> None:
    """The group does not change how many updates a step has."""
    read = launch(tmp_path, f"{SKYRL} trainer.train_batch_size=64 trainer.policy_mini_batch_size=16")
    assert said(read, "mini_batches", "samples_per_step", "minibatch_prompts") == (4, 320, 16)


def test_skyrl_a_critic_and_a_reference_apart_have_gpus_of_their_own(tmp_path: Path) -> None:
    """One each by default; in one pool they share."""
    ppo = f"{SKYRL} trainer.algorithm.advantage_estimator=gae trainer.placement.colocate_policy_ref=false"
    assert said(launch(tmp_path, ppo), "gpus", "other_gpus", "critic", "algorithm") == (1, 0, True, "ppo")
    apart = f"{ppo} trainer.placement.colocate_all=false"
    assert said(launch(tmp_path, apart), "mode", "gpus", "other_gpus") == ("sync", 4, 2)


# AReaL

AREAL = """
train_dataset: {batch_size: 8, max_length: 512}
gconfig: {n_samples: 4, max_new_tokens: 1024}
rollout: {backend: "vllm:d2t2", max_head_offpolicyness: 2, max_concurrent_rollouts: 32}
actor: {path: a/b, backend: "megatron:(attn:d1p2t2c2|ffn:d1p2e4)", mb_spec: {max_tokens_per_mb: 4096}}
sglang: {mem_fraction_static: 0.7}
vllm: {gpu_memory_utilization: 0.6}
cluster: {n_nodes: 2, n_gpus_per_node: 8}
"""


def test_areal_the_layout_is_read_out_of_its_words(tmp_path: Path) -> None:
    """GPUs are those of both sides; the block of the other engine says nothing."""
    read = launch(tmp_path, AREAL, "x.yaml")
    assert said(read, "instances", "rollout_tensor_parallel", "rollout_gpus", "memory_fraction") == (2, 2, 4, 0.6)
    assert said(read, "pipeline_parallel", "tensor_parallel", "context_parallel", "expert_parallel") == (2, 2, 2, 4)
    assert said(read, "trainer_gpus", "gpus", "trainer_backend", "data_parallel") == (8, 12, "megatron", 1)


def test_areal_nodes_follow_from_the_layout_unless_they_are_said(tmp_path: Path) -> None:
    """Its default of 32 is the size of a cluster, for host names alone (areal 1.0.4, api/cli_args.py)."""
    layout = "rollout:\n  backend: sglang:d16\nactor:\n  backend: fsdp:d8\n  path: a/b\n"
    counted = launch(tmp_path, layout + "gconfig:\n  n_samples: 8\n", "areal.yaml")
    stated = launch(tmp_path, layout + "cluster:\n  n_nodes: 4\n", "other.yaml")
    assert [one.reading.value("loop.nodes") for one in (counted, stated)] == [3, 4]


def test_areal_one_word_for_both_sides_means_the_same(tmp_path: Path) -> None:
    """allocation_mode, to 1.0.1."""
    one = AREAL.replace('backend: "vllm:d2t2", ', "").replace('backend: "megatron:(attn:d1p2t2c2|ffn:d1p2e4)", ', "")
    keys = ("instances", "rollout_gpus", "trainer_gpus", "expert_parallel", "engine", "trainer_backend")
    word = "vllm:d2t2+megatron:(attn:d1p2t2c2|ffn:d1p2e4)"
    assert said(launch(tmp_path, f'{one}allocation_mode: "{word}"', "y.yaml"), *keys) == said(
        launch(tmp_path, AREAL, "x.yaml"), *keys
    )


def test_areal_a_configuration_that_the_script_writes_to_a_file_of_the_moment_is_read(tmp_path: Path) -> None:
    """`mktemp` gives a name that nobody knows, and what is written there is known."""
    script = f'file=$(mktemp)\ncat > "$file" <<EOF\n{AREAL}EOF\npython3 train.py --config "$file" actor.path=c/d\n'
    assert said(launch(tmp_path, script), "model", "gpus", "max_staleness") == ("c/d", 12, 2)


# prime-rl


def test_prime_rl_parts_are_told_apart_by_their_programs(tmp_path: Path) -> None:
    """Each part has a file of its own, whose keys say nothing of whose they are."""
    script = "uv run inference @ i.toml &\nuv run orchestrator @ o.toml --batch-size 64 &\nuv run trainer @ t.toml\n"
    read = launch(
        tmp_path, script, i_dot_toml='[model]\nname = "a/b"\n[vllm]\ntensor_parallel_size = 2\n',
        o_dot_toml="batch_size = 128\ngroup_size = 8\nseq_len = 4096\n", t_dot_toml="[model]\ncp = 2\n",
    )  # fmt: skip
    assert said(read, "model", "rollout_tensor_parallel", "context_parallel") == ("a/b", 2, 2)
    assert said(read, "samples_per_step", "prompts_per_step", "max_total_tokens") == (64, 8, 4096)
    assert said(read, "rollout_gpus", "trainer_gpus", "gpus") == (2, None, None)


def test_prime_rl_parts_that_flags_name_are_read(tmp_path: Path) -> None:
    """`--trainer @ FILE` puts a file below that key."""
    script = "uv run rl --trainer @ t.toml --orchestrator @ o.toml --inference @ i.toml --deployment.num-train-gpus 2"
    read = launch(
        tmp_path, script, t_dot_toml='[model]\nname = "a/b"\ncp = 4\n', o_dot_toml="batch_size = 256\n", i_dot_toml="",
    )  # fmt: skip
    assert said(read, "model", "context_parallel", "samples_per_step", "trainer_gpus") == ("a/b", 4, 256, 2)


def test_prime_rl_ranks_that_share_experts_are_one_engine(tmp_path: Path) -> None:
    """Data-parallel ranks of a dense model are engines of their own."""
    text = """
model.name = "a/b"
orchestrator.batch_size = 64
[deployment]
num_infer_gpus = 16
[inference]
enable_expert_parallel = {}
[inference.parallel]
tp = 2
dp = 4
"""
    keys = ("rollout_data_parallel", "rollout_expert_parallel", "instances")
    assert said(launch(tmp_path, text.format("true"), "x.toml"), *keys) == (4, 8, 2)
    assert said(launch(tmp_path, text.format("false"), "x.toml"), *keys) == (1, 1, 8)


@pytest.mark.parametrize(
    ("line", "chunked"),
    [
        ("fused_lm_head_chunk_size = 2048", True),
        ('fused_lm_head_token_chunk_size = "auto"', True),
        ('fused_lm_head_token_chunk_size = "disabled"', False),
        ("cp = 1", False),
    ],
)
def test_prime_rl_the_heads_chunks_are_told_by_both_names(tmp_path: Path, line: str, *, chunked: bool) -> None:
    """As the key was called before it counted tokens; a word may switch it off."""
    text = f'model.name = "a/b"\n[orchestrator]\nbatch_size = 64\n[trainer.model]\n{line}\n'
    assert said(launch(tmp_path, text, "x.toml"), "chunked_loss") == (chunked,)


def test_prime_rl_defaults_of_2025_are_others(tmp_path: Path) -> None:
    """Then an empty table switched recomputation on, and nothing was moved to the host."""
    new = 'model.name = "a/b"\n[orchestrator]\nbatch_size = 64\n[inference]\n[trainer.model]\ncp = 1\n'
    keys = ("recompute", "activation_offload", "optimizer_on_cpu")
    assert said(launch(tmp_path, new, "x.toml"), *keys) == ("full", True, True)
    old = f"trainer_gpu_ids = [0, 1]\ninference_gpu_ids = [2]\n{new}"
    assert said(launch(tmp_path, old, "y.toml"), *keys, "trainer_gpus", "gpus") == ("none", False, False, 2, 3)
    assert said(launch(tmp_path, f"{old}[trainer.model.ac]\n", "z.toml"), "recompute") == ("full",)


# ROLL

ROLL = """
pretrain: a/b
num_gpus_per_node: 8
rollout_batch_size: 32
num_return_sequences_in_group: 4
prompt_length: 512
response_length: 1024
actor_train:
  device_mapping: list(range(0,16))
  training_args: {per_device_train_batch_size: 2, gradient_accumulation_steps: 4}
  strategy_args: {strategy_name: megatron_train, strategy_config: {tensor_model_parallel_size: 2}}
actor_infer:
  device_mapping: list(range(0,8))
  strategy_args: {strategy_name: vllm, strategy_config: {tensor_parallel_size: 2}}
rewards: {llm_judge: {device_mapping: "list(range(8,16))"}}
"""


def test_roll_roles_share_the_gpus_that_both_name(tmp_path: Path) -> None:
    """A judge inside the trainer's range adds none; engines behind it make a loop apart."""
    read = launch(tmp_path, ROLL, "x.yaml")
    keys = ("mode", "gpus", "trainer_gpus", "rollout_gpus", "reward_model_gpus", "other_gpus", "nodes")
    assert said(read, *keys) == ("colocated", 16, 16, 8, 8, 0, 2)
    apart = ROLL.replace("list(range(0,8))", "list(range(16,24))")
    assert said(launch(tmp_path, apart, "y.yaml"), *keys) == ("sync", 24, 16, 8, 8, 0, 3)


def test_roll_a_mini_batch_is_what_all_data_ranks_accumulate(tmp_path: Path) -> None:
    """2 samples x 4 passes x 8 ranks of a step of 128."""
    assert said(launch(tmp_path, ROLL, "x.yaml"), "minibatch_samples", "mini_batches", "data_parallel") == (64, 2, 8)


def test_roll_a_configuration_that_is_missing_leaves_the_gpus_unknown(tmp_path: Path) -> None:
    """No list of devices is not a list of none."""
    read = launch(tmp_path, "python examples/start_rlvr_pipeline.py --config_path x --config_name y")
    assert said(read, "gpus", "trainer_gpus", "rollout_gpus", "nodes") == (None, None, None, None)


def test_roll_agents_count_trajectories(tmp_path: Path) -> None:
    """rollout_batch_size counts prompts, but in agentic pipelines what groups of environments return."""
    agents = f"{ROLL}train_env_manager: {{num_env_groups: 8, group_size: 4}}\n"
    keys = ("prompts_per_step", "group_size", "samples_per_step")
    assert said(launch(tmp_path, ROLL, "x.yaml"), *keys) == (32, 4, 128)
    assert said(launch(tmp_path, agents, "y.yaml"), *keys) == (8, 4, 32)


# PipelineRL and torchforge


def test_pipeline_rl_fractions_share_out_the_gpus_of_the_job(tmp_path: Path) -> None:
    """Where nobody says how many there are, only the shares are known."""
    shares = "world: {actor_fraction: 2, preprocessor_fraction: 1, finetune_fraction: 5}\n"
    text = f"{shares}max_lag: 2048\npop_old_data: true\n"
    read = launch(tmp_path, text, "x.yaml")
    assert said(read, "gpus", "actor_share", "trainer_share", "max_staleness") == (None, 0.25, 0.625, 2)
    script = "#SBATCH --nodes=2\n#SBATCH --gpus-per-node=8\npython -m pipelinerl.launch --config-name=x\n"
    assert said(launch(tmp_path, script), "gpus", "rollout_gpus", "trainer_gpus", "other_gpus") == (16, 4, 10, 2)


@pytest.mark.parametrize(("dtype", "kept"), [("", "fp32"), ("dtype: float32", "fp32"), ("dtype: bfloat16", "bf16")])
def test_torchforge_trains_in_the_type_that_it_says(tmp_path: Path, dtype: str, kept: str) -> None:
    """Parameters, gradients and states have it, without a copy in fp32 (torchtitan, training.dtype)."""
    text = "off_by_n: 1\nservices:\n  policy: {procs: 1}\nactors:\n  trainer: {procs: 1}\n"
    text += f"trainer: {{training: {{{dtype}}}}}\n"
    assert launch(tmp_path, text, "forge.yaml").reading.value("loop.master_dtype") == kept


def test_torchforge_the_reference_model_has_gpus_of_its_own(tmp_path: Path) -> None:
    """A step has the batch of each data-parallel rank."""
    text = """
    group_size: 4
    local_batch_size: 8
    off_by_n: 0
    services: {policy: {procs: 2, num_replicas: 3}, ref_model: {procs: 1, with_gpus: true}}
    actors: {trainer: {procs: 4}}
    """
    read = launch(tmp_path, text, "x.yaml")
    assert said(read, "trainer_gpus", "rollout_gpus", "other_gpus", "gpus") == (4, 6, 1, 11)
    assert said(read, "samples_per_step", "prompts_per_step", "mode", "fsdp") == (32, 8, "sync", 4)


@pytest.mark.parametrize(
    "name", ["nemo-rl", "slime", "skyrl", "areal", "prime-rl", "roll", "pipeline-rl", "torchforge"]
)
def test_every_default_and_every_older_name_is_of_a_key_that_counts(name: str) -> None:
    """A key that nothing reads would be a slip of the pen."""
    framework = known()[name]
    counts = keys_of(framework)
    kinds = [*framework.silent, *(f"{key}.*" for key in counts)]
    assert set(framework.defaults) <= counts
    assert set(framework.unread) <= counts
    for new in framework.renamed.values():
        assert new.endswith("*") or new in counts or any(fnmatchcase(new, kind) for kind in kinds), new


# What a launch leaves to whoever starts it


def test_gpus_said_beside_a_trl_recipe_tell_its_trainer_and_its_batch(tmp_path: Path) -> None:
    """One of four is the engine's; each of three others trains on 1 x 8 samples. They are no facts of the recipe."""
    recipe = (
        "model_name_or_path: a/b\nuse_vllm: true\nvllm_device: auto\nper_device_train_batch_size: 1\n"
        "gradient_accumulation_steps: 8\nnum_generations: 3\nmax_completion_length: 1024\n"
    )
    (tmp_path / "recipe.yaml").write_text(recipe)
    alone = read_launch(str(tmp_path / "recipe.yaml"), known())
    told = read_launch(str(tmp_path / "recipe.yaml"), known(), given={"gpus": 4})
    keys = ("rollout_gpus", "trainer_gpus", "samples_per_step")
    assert said(alone, *keys) == (1, None, None)
    assert said(told, *keys) == (1, 3, 24)
    assert "gpus" not in told.reading.all()


# RLinf and EasyR1

RLINF = """
cluster: {num_nodes: 2, component_placement: {"actor,rollout,reward": PLACED}}
data: {rollout_batch_size: 64, max_prompt_length: 1024}
algorithm: {group_size: 8, recompute_logprobs: true, kl_beta: 0.0, logprob_forward_micro_batch_size: 4}
rollout: {tensor_parallel_size: 2, pipeline_parallel_size: 2, enforce_eager: true, model: {precision: fp16}}
"""


def test_rlinf_all_gpus_are_a_number_that_nobody_says(tmp_path: Path) -> None:
    """`all` was read as none: a fault where one number more would do."""
    keys = ("gpus", "instances", "rollout_pipeline_parallel", "logprob_micro_batch_samples")
    assert said(launch(tmp_path, RLINF.replace("PLACED", "all"), "x.yaml"), *keys) == (None, None, 2, 4)
    read = launch(tmp_path, RLINF.replace("PLACED", "0-15"), "x.yaml")
    assert said(read, *keys, "cuda_graphs", "rollout_dtype", "logprob_passes") == (16, 4, 2, 4, False, "fp16", ("old",))


EASYR1 = """
data: {rollout_batch_size: 64, max_prompt_length: 1024, max_response_length: 2048}
worker:
  actor: {global_batch_size: 32, ulysses_size: 2, padding_free: false, model: {model_path: a/b}, fsdp: FSDP}
  rollout: {n: 4, tensor_parallel_size: 2}
trainer: {nnodes: 1, n_gpus_per_node: 8}
"""


def test_easyr1_keys_of_its_own_trainer_are_read(tmp_path: Path) -> None:
    """Its names for what verl calls otherwise; shards of gradients and states alone; all of the trainer on the host."""
    keys = ("context_parallel", "padded", "zero_stage", "offload", "params_on_cpu", "fsdp")
    read = launch(tmp_path, EASYR1.replace("FSDP", "{enable_full_shard: false}"), "x.yaml")
    assert (read.framework.name, said(read, *keys)) == ("easyr1", (2, True, 2, False, False, 4))
    read = launch(tmp_path, EASYR1.replace("FSDP", "{enable_cpu_offload: true}"), "x.yaml")
    assert said(read, *keys) == (2, True, 3, True, True, 4)
    assert not [text for text in doubts(read) if "Not understood" in text]
