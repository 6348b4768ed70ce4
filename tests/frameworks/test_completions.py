"""OpenRLHF, TRL, open-r1, ms-swift and open-instruct: what their launches say, and that what is written is read so."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.errors import DoesNotFitError, InputError
from rlsize.facts.launch import Setting, Span
from rlsize.frameworks.abilities import runs_layout
from rlsize.frameworks.expressions import Plain, evaluate
from rlsize.frameworks.told import Reading
from rlsize.frameworks.wanted import changes
from rlsize.readers.frameworks import frameworks
from rlsize.readers.launch.launch import read_launch
from rlsize.readers.profiles import Catalogue
from rlsize.writers.launch.written_back import written_back

if TYPE_CHECKING:
    from pathlib import Path

    from rlsize.facts.framework import Framework
    from rlsize.readers.launch.launch import Launch


@cache
def known() -> dict[str, Framework]:
    """The frameworks that ship."""
    return frameworks(Catalogue())


def launch(folder: Path, text: str, name: str = "run.sh", framework: str = "", **beside: str) -> Launch:
    """A launch, with files beside it whose names have _dot_ for a dot."""
    for one, content in beside.items():
        (folder / one.replace("_dot_", ".")).write_text(content)
    (folder / name).write_text(text)
    return read_launch(str(folder / name), known(), framework=framework)


def said(read: Launch, *keys: str) -> tuple[Any, ...]:
    """Values of quantities."""
    told = [read.reading.quantity(key) for key in keys]
    return tuple(None if one is None else one.value for one in told)


# OpenRLHF

PPO = "python3 -m openrlhf.cli.train_ppo_ray --actor.model_name_or_path a/b --actor.num_gpus_per_node 4 "


def test_flags_with_dots_and_with_underscores_mean_the_same(tmp_path: Path) -> None:
    """The flags changed their form with 0.10.2, and some of them their name."""
    pairs = {
        "actor.model_name_or_path a/b": "pretrain a/b",
        "actor.num_nodes 2": "actor_num_nodes 2",
        "rollout.batch_size 64": "rollout_batch_size 64",
        "rollout.n_samples_per_prompt 8": "n_samples_per_prompt 8",
        "train.batch_size 128": "train_batch_size 128",
        "train.colocate_all": "colocate_all_models",
        "vllm.num_engines 8": "vllm_num_engines 8",
        "vllm.tensor_parallel_size 2": "vllm_tensor_parallel_size 2",
        "vllm.enable_sleep": "vllm_enable_sleep",
        "ds.enable_sleep": "deepspeed_enable_sleep",
        "ds.zero_stage 3": "zero_stage 3",
        "ds.ring_attn_size 4": "ring_attn_size 4",
        "ds.lora.rank 32": "lora_rank 32",
        "train.dynamic_batch_enable": "use_dynamic_batch",
        "train.max_tokens_per_gpu 9000": "train_max_tokens_per_gpu 9000",
        "rollout.max_new_tokens 700": "generate_max_len 700",
        "algo.advantage.estimator group_norm": "advantage_estimator group_norm",
        "algo.kl.init_coef 0": "init_kl_coef 0",
        "actor.gradient_checkpointing_enable": "gradient_checkpointing",
    }
    program = "python3 -m openrlhf.cli.train_ppo_ray"
    new = launch(tmp_path, f"{program} {' '.join(f'--{key}' for key in pairs)}").reading.all()
    old = launch(tmp_path, f"{program} {' '.join(f'--{key}' for key in pairs.values())}").reading.all()
    lengths = {"max_prompt_tokens", "max_total_tokens", "max_model_len"}  # one cap for both today
    assert {key: one.value for key, one in new.items() if key not in lengths} == {
        key: one.value for key, one in old.items() if key not in lengths
    }
    assert (new["gpus"].value, new["mini_batches"].value, new["instances"].value) == (16, 4, 8)


@pytest.mark.parametrize(
    ("flags", "others"),
    [
        ("", 8 + 8 + 8),
        ("--algo.kl.init_coef 0", 8 + 8),
        ("--train.colocate_actor_ref --ref.num_gpus_per_node 4", 8 + 8),
        ("--algo.advantage.estimator rloo", 8 + 8),
        ("--train.colocate_critic_reward", 8 + 8),
        ("--algo.advantage.estimator rloo --train.colocate_critic_reward", 8 + 8),
        ("--reward.remote_url http://localhost:1", 8 + 8),
        ("--train.agent_func_path agent.py --algo.kl.init_coef 0 --algo.advantage.estimator rloo", 0),
        ("--train.async_enable --train.colocate_all", 0),
    ],
)
def test_roles_have_gpus_of_their_own_unless_they_share(tmp_path: Path, flags: str, others: int) -> None:
    """Reference, critic and reward model take 8 GPUs each by default; engines are never among them."""
    read = launch(tmp_path, f"{PPO} --vllm.num_engines 3 --vllm.tensor_parallel_size 2 {flags}")
    assert said(read, "trainer_gpus", "rollout_gpus", "other_gpus", "gpus") == (4, 6, others, 10 + others)


def test_token_batching_puts_sample_counts_out_of_action(tmp_path: Path) -> None:
    """Both may be set; tokens win, in the forward passes too."""
    read = launch(
        tmp_path, f"{PPO} --train.micro_batch_size 4 --rollout.micro_batch_size 8 --train.dynamic_batch_enable"
    )
    keys = ("micro_batch_tokens", "micro_batch_samples", "logprob_micro_batch_tokens", "logprob_micro_batch_samples")
    assert said(read, *keys) == (16192, None, 16192, None)
    assert not read.reading.unread()


@pytest.mark.parametrize(("version", "share"), [("0.5.4", 0.9), ("0.6.3", 0.9), ("0.8.1", 0.95), ("", 0.95)])
def test_the_engines_share_hangs_on_the_version(tmp_path: Path, version: str, share: float) -> None:
    """There was no flag in 0.5, where that of vLLM holds; its default rose from 0.9 to 0.95."""
    text = "python3 -m openrlhf.cli.train_ppo_ray --pretrain a/b --vllm_num_engines 2"
    assert said(launch(tmp_path, text, framework="@".join(filter(None, ("openrlhf", version)))), "memory_fraction") == (
        share,
    )


def test_without_engines_all_models_are_in_each_process(tmp_path: Path) -> None:
    """The trainer of 2024 is started by deepspeed, generates itself, and has no roles with GPUs of their own."""
    read = launch(tmp_path, "deepspeed --num_gpus 4 --module openrlhf.cli.train_ppo --pretrain a/b --zero_stage 2")
    assert said(read, "mode", "engine", "trainer_gpus", "gpus") == ("colocated", None, 4, 4)


def test_defaults_that_hang_on_a_version_nobody_said_are_told(tmp_path: Path) -> None:
    """Those of older versions, where nothing in the script is set in their place."""
    text = "python3 -m openrlhf.cli.train_ppo_ray --pretrain a/b --vllm_num_engines 2"
    note = (
        "Read as OpenRLHF before 0.10.2, by its keys; before 0.5.8: ds.grad_accum_dtype fp32; before 0.6: "
        "vllm.gpu_memory_utilization None; before 0.8: vllm.gpu_memory_utilization 0.9; before 0.9.8: prompt_max_len "
        "1024, rollout.max_new_tokens 1024, data.max_len None (--framework openrlhf@VERSION)."
    )
    assert launch(tmp_path, text).notes == (note,)
    lengths = "--prompt_max_len 512 --generate_max_len 512"
    short = "Read as OpenRLHF before 0.9.8, by its keys (--framework openrlhf@VERSION)."
    told = f"{text} --vllm_gpu_memory_utilization 0.5 --grad_accum_dtype bf16 {lengths}"
    assert launch(tmp_path, told).notes == (short,)
    assert launch(tmp_path, text, framework="openrlhf@0.6.1").notes == ()
    assert launch(tmp_path, f"{PPO} --vllm.num_engines 2").notes == ()  # no older version takes such flags


def test_a_sleeping_engine_needs_the_gpus_of_the_trainer(tmp_path: Path) -> None:
    """Apart or asynchronous, engines do not sleep whatever the flag says."""
    engines = "--vllm.num_engines 2 --vllm.tensor_parallel_size 2 --vllm.enable_sleep"
    assert said(launch(tmp_path, f"{PPO} {engines} --train.colocate_all"), "mode", "engine_sleep") == (
        "colocated",
        "weights",
    )
    assert said(launch(tmp_path, f"{PPO} {engines}"), "mode", "engine_sleep") == ("sync", "none")
    assert said(
        launch(tmp_path, f"{PPO} {engines} --train.colocate_all --train.async_enable --train.async_queue_size 3"),
        "mode",
        "engine_sleep",
        "max_staleness",
    ) == ("async", "none", 3)


# TRL and open-r1

TRL = "grpo.py --model_name_or_path a/b --use_vllm --per_device_train_batch_size 4 --gradient_accumulation_steps 2"
ZERO = "distributed_type: DEEPSPEED\nnum_processes: 4\nnum_machines: 1\ndeepspeed_config: {zero_stage: 2}\n"


def test_a_batch_counts_completions_and_prompts_to_0_14(tmp_path: Path) -> None:
    """The same flags are eight times as many samples in old versions."""
    text = f"torchrun --nproc_per_node 4 {TRL} --num_generations 8"
    keys = ("samples_per_step", "prompts_per_step", "micro_batch_samples")
    assert said(launch(tmp_path, text), *keys) == (32, 4, 4)
    assert said(launch(tmp_path, text, framework="trl@0.14.0"), *keys) == (256, 32, 32)


def test_one_generation_may_feed_several_updates(tmp_path: Path) -> None:
    """Micro steps of a generation over those of an update."""
    text = f"accelerate launch --num_processes 4 {TRL} --steps_per_generation 8 --num_iterations 2"
    keys = ("samples_per_step", "mini_batches", "minibatch_samples", "updates")
    assert said(launch(tmp_path, text), *keys) == (128, 4, 32, 2)
    by_size = text.replace("--steps_per_generation 8", "--generation_batch_size 128")
    assert said(launch(tmp_path, by_size), *keys) == (128, 4, 32, 2)


def test_processes_on_the_line_win_over_those_of_the_file(tmp_path: Path) -> None:
    """The file of accelerate says how states are sharded, and how many processes unless the line does."""
    text = f"accelerate launch --config_file zero.yaml {{}} {TRL}"
    read = launch(tmp_path, text.format(""), zero_dot_yaml=ZERO)
    assert said(read, "trainer_gpus", "backend", "zero_stage") == (4, "deepspeed-zero2", 2)
    assert read.reading.all()["trainer_gpus"].provenance == "inherited"
    read = launch(tmp_path, text.format("--num_processes 6"), zero_dot_yaml=ZERO)
    assert said(read, "trainer_gpus", "data_parallel", "fsdp") == (6, 6, None)


def test_files_of_deepspeed_say_what_lives_on_the_host(tmp_path: Path) -> None:
    """A JSON file that a recipe names, and the keys of accelerate's file."""
    json = '{"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}}}'
    recipe = "model_name_or_path: a/b\nnum_generations: 8\nuse_vllm: true\nvllm_mode: colocate\ndeepspeed: ds.json\n"
    read = launch(tmp_path, recipe, "recipe.yaml", "trl", ds_dot_json=json)
    assert said(read, "backend", "offload", "params_on_cpu") == ("deepspeed-zero3", True, False)
    lines = "distributed_type: FSDP\nnum_processes: 2\nfsdp_config: {fsdp_version: 2, fsdp_offload_params: true}\n"
    read = launch(tmp_path, lines, "fsdp.yaml")
    assert said(read, "backend", "offload", "params_on_cpu", "fsdp") == ("fsdp2", True, True, 2)


def test_names_of_files_that_are_missing_say_how_states_are_sharded(tmp_path: Path) -> None:
    """People name them by ZeRO stage; what else they hold is not known."""
    text = (
        "torchrun --nproc_per_node 8 --nnodes 2 src/open_r1/grpo_rec.py --deepspeed scripts/zero3.json --use_vllm false"
    )
    read = launch(tmp_path, text)
    assert (read.framework.name, *said(read, "backend", "trainer_gpus", "mode")) == (
        "open-r1",
        "deepspeed-zero3",
        16,
        "colocated",
    )
    assert any("scripts/zero3.json is missing" in note for note in read.notes)


def test_names_of_files_that_ship_with_trl_tell_what_they_say(tmp_path: Path) -> None:
    """They are for 8 GPUs, and their names say how states are sharded."""
    read = launch(tmp_path, "trl grpo --accelerate_config zero3 --model_name_or_path a/b --use_vllm")
    assert said(read, "backend", "trainer_gpus", "mode", "instances") == ("deepspeed-zero3", 8, "colocated", 8)
    assert not [note for note in read.notes if "missing" in note]


def test_a_server_in_the_script_is_the_rollout_fleet(tmp_path: Path) -> None:
    """Its own arguments count, not those of the trainer's colocated engine."""
    text = f"trl vllm-serve --model a/b --tensor-parallel-size 2 --data-parallel-size 2 &\naccelerate launch {TRL}"
    read = launch(tmp_path, f"{text} --vllm_mode server --vllm_gpu_memory_utilization 0.2")
    keys = ("mode", "rollout_gpus", "rollout_tensor_parallel", "instances", "memory_fraction")
    assert said(read, *keys) == ("sync", 4, 2, 2, 0.9)


def test_commands_in_comments_of_python_files_tell_how_they_are_run(tmp_path: Path) -> None:
    """Its calls say the rest; words of a comment have their place in the file."""
    text = (
        "# CUDA_VISIBLE_DEVICES=2,3 vllm serve a/b --tensor-parallel-size 2 --max-model-len 4096\n"
        "# accelerate launch is what starts it:\n"
        "#   accelerate launch --num_processes 2 \\\n"
        "#     train.py --beta 0.1\n"
        "from trl import AsyncGRPOConfig, AsyncGRPOTrainer\n"
        'AsyncGRPOTrainer(model="a/b", args=AsyncGRPOConfig(per_device_train_batch_size=4, max_completion_length=99))\n'
    )
    read = launch(tmp_path, text, "train.py")
    keys = ("model", "mode", "trainer_gpus", "rollout_gpus", "max_model_len", "max_response_tokens", "max_staleness")
    assert said(read, *keys) == ("a/b", "async", 2, 2, 4096, 99, 4)
    beta = read.reading.settings["beta"]
    assert (beta.span.line, text.encode()[beta.span.start : beta.span.end]) == (4, b"0.1")


def test_sentences_in_comments_are_no_commands(tmp_path: Path) -> None:
    """However they begin, and whatever they would make of quotes; nothing that they say is run."""
    quoted = f"# python isn't needed: $(touch {tmp_path}/canary) \"\n# swift `touch {tmp_path}/canary` (\n"
    comments = f"{quoted}# trl {'(' * 50000}\n"
    read = launch(tmp_path, f"{comments}accelerate launch --num_processes 2 {TRL}")
    assert said(read, "mode", "trainer_gpus") == ("colocated", 2)
    assert not (tmp_path / "canary").exists()


def test_a_python_file_that_a_script_runs_is_read(tmp_path: Path) -> None:
    """Arguments of its GRPOConfig are inherited; they tell the framework where the command does not."""
    code = (
        "from trl import GRPOConfig\nargs = GRPOConfig(num_generations=6, max_completion_length=123, use_vllm=True)\n"
    )
    read = launch(tmp_path, "accelerate launch --num_processes 3 mine.py", mine_dot_py=code)
    assert read.framework.name == "trl"
    assert said(read, "group_size", "max_response_tokens", "trainer_gpus") == (6, 123, 3)
    assert read.reading.all()["group_size"].provenance == "inherited"


def test_a_server_beside_a_python_file_is_the_rollout_fleet(tmp_path: Path) -> None:
    """Neither of the commands names a framework; the file does, and its model is the one that it loads."""
    text = "trl vllm-serve --model a/b --tensor-parallel-size 2 &\nCUDA_VISIBLE_DEVICES=2,3,4 accelerate launch mine.py"
    code = (
        'model = AutoModelForCausalLM.from_pretrained("a/b", torch_dtype="bfloat16")\n'
        'args = GRPOConfig(num_generations=6, use_vllm=True, vllm_mode="server")\n'
        "GRPOTrainer(model=model, args=args, peft_config=LoraConfig(r=4))\n"
    )
    read = launch(tmp_path, text, mine_dot_py=code)
    keys = ("model", "mode", "trainer_gpus", "rollout_gpus", "instances", "lora_rank", "precision")
    assert said(read, *keys) == ("a/b", "sync", 3, 2, 1, 4, "bf16")


def test_the_program_of_a_fork_is_named_more_closely(tmp_path: Path) -> None:
    """open-r1's file is called as that of TRL; naming a place for the engine means that there is one."""
    read = launch(tmp_path, "accelerate launch --num_processes 7 src/open_r1/grpo.py --vllm_mode colocate")
    assert (read.framework.name, *said(read, "mode", "engine", "trainer_gpus")) == ("open-r1", "colocated", "vllm", 7)


def test_a_recipe_alone_tells_no_totals(tmp_path: Path) -> None:
    """How many processes there are stands elsewhere; what each of them has is known: all, where no file shards it."""
    recipe = (
        "model_name_or_path: a/b\ntorch_dtype: bfloat16\nuse_vllm: true\nnum_generations: 4\nmax_prompt_length: 9\n"
        "max_completion_length: 33\nper_device_train_batch_size: 2\ngradient_accumulation_steps: 8\n"
    )
    read = launch(tmp_path, recipe, "recipe.yaml")
    assert read.framework.name == "open-r1"
    keys = ("samples_per_step_per_gpu", "samples_per_step", "prompts_per_step", "trainer_gpus", "mode", "backend")
    assert said(read, *keys) == (16, None, None, None, None, "ddp")
    assert said(read, "reference", "precision", "max_response_tokens") == (True, "bf16", 33)


def test_an_engine_on_a_device_of_its_own_is_one_gpu(tmp_path: Path) -> None:
    """Versions that take vllm_device put the engine beside the trainer's GPUs."""
    read = launch(tmp_path, f"accelerate launch --num_processes 7 {TRL} --vllm_device auto")
    keys = ("mode", "trainer_gpus", "rollout_gpus", "gpus", "memory_fraction", "reference")
    assert said(read, *keys) == ("sync", 7, 1, 8, 0.9, True)


def test_a_configuration_that_nobody_names_takes_no_default(tmp_path: Path) -> None:
    """A script that takes the recipe as its argument says little, and so does its reading."""
    read = launch(tmp_path, "accelerate launch --num_processes 8 grpo.py --config $1 --beta 0")
    assert said(read, "trainer_gpus", "group_size", "max_response_tokens", "reference") == (8, None, None, False)
    assert any("$1" in note and "no default" in note for note in read.notes)


def test_slurm_says_gpus_in_several_ways(tmp_path: Path) -> None:
    """With their kind, without it, and by two options."""
    for header, kind in (("--gres=gpu:h100:4", "h100"), ("--gres=gpu:4", None), ("--gpus-per-node=4", None)):
        text = f"#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH {header}\n{PPO} --vllm.num_engines 2\n"
        assert said(launch(tmp_path, text), "nodes", "gpus_per_node", "gpu") == (2, 4, kind)


# ms-swift

SWIFT = "--rlhf_type grpo --model a/b --use_vllm true --max_length 512"


def test_swift_trains_adapters_and_megatron_all_weights(tmp_path: Path) -> None:
    """Each has its own default; both take the other's."""
    swift, megatron = f"NPROC_PER_NODE=4 swift rlhf {SWIFT}", f"NPROC_PER_NODE=4 megatron rlhf {SWIFT}"
    assert said(launch(tmp_path, swift), "lora_rank", "backend", "recompute") == (8, "ddp", "full")
    assert said(launch(tmp_path, megatron), "lora_rank", "backend", "recompute") == (0, "megatron", "selective")
    assert said(launch(tmp_path, f"{swift} --train_type full"), "lora_rank") == (0,)
    assert said(launch(tmp_path, f"{megatron} --tuner_type lora --lora_rank 4"), "lora_rank") == (4,)


def test_the_engine_owns_gpus_that_no_process_uses(tmp_path: Path) -> None:
    """Seven processes of eight GPUs that can be seen, as in early 2025."""
    eight = "CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 NPROC_PER_NODE=7"
    read = launch(tmp_path, f"{eight} swift rlhf {SWIFT} --vllm_device auto")
    assert said(read, "mode", "trainer_gpus", "rollout_gpus", "gpus") == ("sync", 7, 1, 8)
    read = launch(tmp_path, f"{eight.replace('=7', '=8')} swift rlhf {SWIFT} --vllm_mode colocate")
    assert said(read, "mode", "gpus") == ("colocated", 8)


def test_a_server_in_a_comment_is_the_rollout_fleet(tmp_path: Path) -> None:
    """Its GPUs count; the note says where the command stands."""
    served = "# CUDA_VISIBLE_DEVICES=4,5 swift rollout --model a/b --data_parallel_size 2"
    text = f"{served}\nNPROC_PER_NODE=4 swift rlhf {SWIFT} --vllm_mode server"
    read = launch(tmp_path, text)
    assert said(read, "mode", "trainer_gpus", "rollout_gpus", "gpus") == ("sync", 4, 2, 6)
    assert "line 1: a command in a comment is taken as what is run." in read.notes


def test_batches_of_megatron_are_samples_of_an_update(tmp_path: Path) -> None:
    """A generation feeds several of them."""
    text = f"NPROC_PER_NODE=8 megatron rlhf {SWIFT} --global_batch_size 32 --steps_per_generation 4 --num_generations 8"
    keys = ("samples_per_step", "prompts_per_step", "minibatch_samples", "mini_batches")
    assert said(launch(tmp_path, text), *keys) == (128, 16, 32, 4)


def test_roles_of_a_ray_file_have_gpus_of_their_own_unless_grouped(tmp_path: Path) -> None:
    """Keys of a role hold for that role."""
    text = (
        "rlhf_type: grpo\nmodel: a/b\nnum_generations: 8\nglobal_batch_size: 16\n"
        "train: {gpus: 4, tensor_model_parallel_size: 2}\nrollout: {gpus: 4, vllm_tensor_parallel_size: 2}\n"
    )
    keys = ("mode", "gpus", "tensor_parallel", "instances", "backend")
    assert said(launch(tmp_path, text, "ray.yaml"), *keys) == ("sync", 8, 2, 2, "megatron")
    grouped = text + "colocate_groups: [[train, rollout]]\n"
    assert said(launch(tmp_path, grouped, "ray.yaml"), *keys) == ("colocated", 4, 2, 2, "megatron")


@pytest.mark.parametrize(
    ("stage", "expected"),
    [
        ("zero2", ("deepspeed-zero2", False, False)),
        ("zero2_offload", ("deepspeed-zero2", True, False)),
        ("zero3_offload", ("deepspeed-zero3", True, True)),
    ],
)
def test_names_of_stages_say_what_lives_on_the_host(
    tmp_path: Path, stage: str, expected: tuple[str, bool, bool]
) -> None:
    """They ship with ms-swift, so no file is missing."""
    read = launch(tmp_path, f"NPROC_PER_NODE=4 swift rlhf {SWIFT} --deepspeed {stage}")
    assert said(read, "backend", "offload", "params_on_cpu") == expected
    assert not read.notes


# open-instruct


def test_learners_are_listed_by_node_and_rented_gpus_are_not_used_ones(tmp_path: Path) -> None:
    """mason.py rents three nodes; learners and engines take 12 + 8 GPUs. A micro batch is rows of packed tokens."""
    text = (
        "python mason.py --num_nodes 3 --gpus 8 -- source up.sh \\&\\& python open_instruct/grpo_fast.py "
        "--num_learners_per_node 8 4 --vllm_num_engines 4 --vllm_tensor_parallel_size 2 --deepspeed_stage 3 "
        "--num_unique_prompts_rollout 32 --num_samples_per_prompt_rollout 4 --num_mini_batches 2 "
        "--pack_length 1000 --per_device_train_batch_size 3"
    )
    read = launch(tmp_path, text)
    assert said(read, "trainer_gpus", "rollout_gpus", "gpus", "nodes", "gpus_per_node") == (12, 8, 20, 3, 8)
    assert said(read, "samples_per_step", "mini_batches", "micro_batch_tokens", "fsdp") == (128, 2, 3000, 12)
    assert said(read, "mode", "max_staleness") == ("async", 8)


@pytest.mark.parametrize(("learners", "gpus", "nodes"), [("8", 24, 3), ("8 8", 32, 4), ("8 8 8", 40, 5)])
def test_learners_of_several_nodes_are_written_as_words_of_one_flag(
    tmp_path: Path, learners: str, gpus: int, nodes: int
) -> None:
    """And mason.py rents the nodes that they and the engines take."""
    text = (
        "python mason.py --num_nodes 4 --gpus 8 -- python open_instruct/grpo_fast.py --vllm_num_engines 8 "
        "--vllm_tensor_parallel_size 2 --num_learners_per_node 8 8 --deepspeed_stage 3"
    )
    read = launch(tmp_path, text)
    path = tmp_path / "run.sh"
    wanted = {"trainer_gpus": gpus - 16, "gpus": gpus, "fsdp": gpus - 16}

    def again(other: str) -> Reading:
        return read_launch(str(path), known(), text=other).reading

    made = written_back(path.read_bytes(), str(path), read.reading, wanted, again)
    expected = text.replace("8 8 --deep", f"{learners} --deep").replace("nodes 4", f"nodes {nodes}")
    assert made.content.decode() == expected


# what is written is read so

PROGRAMS = {"trl": "trl grpo", "ms-swift": "swift rlhf", "openrlhf": "-m openrlhf.cli.train_ppo_ray"}
_KEY = re.compile(r"(?!loop\.)[A-Za-z_][\w.]*")


def written(framework: Framework, loop: dict[str, Any], program: str) -> list[Setting]:
    """A loop in the keys of a framework: by `writes`, else by plain keys; the programs stand there already."""
    values = Plain({f"loop.{key}": value for key, value in loop.items()}.get)
    keys: dict[str, Any] = {key: evaluate(text, values) for key, text in framework.writes.items()}
    for quantity, text in framework.quantities.items():
        if _KEY.fullmatch(text) and text not in keys:
            keys[text] = loop.get(quantity)
    keys["launcher.program"] = program
    keys["server.program"] = "serve" if loop["mode"] != "colocated" else None
    return [Setting(key, value, Span("-", 1)) for key, value in keys.items() if value is not None]


@st.composite
def loops(draw: st.DrawFn, framework: Framework) -> dict[str, Any]:
    """A loop that a framework can run, on whole nodes or part of one."""
    assert framework.runs is not None
    mode = draw(st.sampled_from(sorted(framework.runs.modes)))
    trainer = draw(st.sampled_from([2, 4, 8, 16]))
    tensor = draw(st.sampled_from([1, 2]))
    rollout = trainer if mode == "colocated" else tensor * draw(st.integers(1, 4))
    micro = draw(st.integers(1, 4))
    updates = 1 if mode == "async" else draw(st.integers(1, 4))
    reference = draw(st.booleans()) and (framework.name, mode) != ("trl", "async")  # whose class has no beta
    late = {"async": draw(st.integers(1, 4)), "one-step-off": 1}.get(mode, 0)
    sleeps = ["weights"] if framework.name == "open-instruct" else ["none", "weights"]  # as its single_gpu_mode does
    return {
        "mode": mode, "model": "a/b", "trainer_gpus": trainer, "rollout_gpus": rollout, "gpus_per_node": 8,
        "rollout_tensor_parallel": tensor, "instances": rollout // tensor, "micro_batch_samples": micro,
        "mini_batches": updates, "group_size": draw(st.integers(2, 8)),
        "prompts_per_step": trainer * micro * updates * draw(st.integers(1, 4)), "max_staleness": late,
        "max_response_tokens": draw(st.integers(1, 99999)), "memory_fraction": draw(st.floats(0.1, 0.9)),
        "recompute": draw(st.sampled_from(["none", "full"])), "trainer_backend": "deepspeed",
        "zero_stage": draw(st.sampled_from([2, 3])), "offload": draw(st.booleans()), "reference": reference,
        "engine_sleep": draw(st.sampled_from(sleeps)) if mode == "colocated" else "none",
        "offload_optimizer": False, "context_parallel": 1,
    }  # fmt: skip


@pytest.mark.parametrize("name", ["openrlhf", "trl", "ms-swift", "open-instruct"])
@given(data=st.data())
def test_what_is_written_is_read_so(name: str, data: st.DataObject) -> None:
    """A loop in the keys of a framework has the same quantities when it is read."""
    framework = known()[name]
    loop = data.draw(loops(framework))
    settings = written(framework, loop, PROGRAMS.get(name, "open_instruct/grpo_fast.py"))
    told = Reading(framework, settings).all()
    read = {key: told[key].value for key in loop if key in told and key != "gpus_per_node"}
    asked = {key: value for key, value in loop.items() if key != "gpus_per_node" and key in framework.quantities}
    assert read == asked


@pytest.mark.parametrize("dynamic", [None, 12000])
def test_tokens_of_a_micro_batch_are_written_with_their_switch(dynamic: int | None) -> None:
    """OpenRLHF counts tokens only where the switch is set."""
    loop = {
        "mode": "colocated",
        "trainer_gpus": 8,
        "rollout_gpus": 8,
        "gpus_per_node": 8,
        "micro_batch_tokens": dynamic,
    }
    told = Reading(known()["openrlhf"], written(known()["openrlhf"], loop, PROGRAMS["openrlhf"])).all()
    assert (told["micro_batch_tokens"].value if "micro_batch_tokens" in told else None) == dynamic


def test_layouts_of_megatron_are_written_for_megatron_alone() -> None:
    """The same quantities are other keys with DeepSpeed."""
    framework = known()["ms-swift"]
    loop = {
        "mode": "colocated", "trainer_gpus": 16, "rollout_gpus": 16, "gpus_per_node": 8, "trainer_backend": "megatron",
        "tensor_parallel": 2, "pipeline_parallel": 2, "context_parallel": 2, "expert_parallel": 4, "mini_batches": 2,
        "prompts_per_step": 32, "group_size": 8, "micro_batch_samples": 1, "recompute": "selective", "offload": True,
    }  # fmt: skip
    told = Reading(framework, written(framework, loop, "megatron rlhf")).all()
    assert {key: told[key].value for key in loop if key != "gpus_per_node"} == {
        key: value for key, value in loop.items() if key != "gpus_per_node"
    }
    keys = {one.key for one in written(framework, loop | {"trainer_backend": "deepspeed"}, "swift rlhf")}
    assert not keys & {"tensor_model_parallel_size", "global_batch_size", "recompute_granularity"}


GRPO_CONFIG = "GRPOConfig(per_device_train_batch_size=4, gradient_accumulation_steps=2, {}num_generations=8)"
VERL_RUN = "python -m verl.{} data.train_batch_size=64 "


@pytest.mark.parametrize(
    ("text", "name", "framework", "old"),
    [
        (GRPO_CONFIG.format("use_vllm=True, "), "run.py", "trl", True),
        (GRPO_CONFIG.format("use_vllm=True, "), "run.py", "trl@0.22", False),
        (GRPO_CONFIG.format("use_vllm=True, vllm_importance_sampling_correction=False, "), "run.py", "trl", False),
        (GRPO_CONFIG.format("num_iterations=2, "), "run.py", "trl@0.22", True),
        (VERL_RUN.format("trainer.main_ppo"), "run.sh", "", True),
        (VERL_RUN.format("trainer.main_ppo") + "algorithm.rollout_correction.bypass_mode=True", "run.sh", "", False),
        (VERL_RUN.format("experimental.one_step_off_policy.main_ppo"), "run.sh", "", False),
        (VERL_RUN.format("experimental.one_step_off_policy.main_ppo"), "run.sh", "verl@0.7", True),
        (VERL_RUN.format("experimental.fully_async_policy.fully_async_main"), "run.sh", "", False),
        ("actor: {path: a/b, recompute_logprob: true}\ngconfig: {n_samples: 4}", "run.yaml", "areal", True),
        ("actor: {path: a/b}\ngconfig: {n_samples: 4}", "run.yaml", "areal", False),
        ("python3 train.py --rollout-batch-size 32 --use-rollout-logprobs", "run.sh", "slime", False),
    ],
)
def test_whether_old_log_probabilities_are_worked_out_is_read(
    tmp_path: Path, text: str, name: str, framework: str, old: bool
) -> None:
    """A pass over all tokens that some trainers do without, as engines return them or as one update needs none."""
    told = launch(tmp_path, text, name, framework).reading.quantity("logprob_passes")
    assert told is not None
    assert ("old" in told.value) is old


def test_a_critic_that_says_what_the_policy_says_is_understood_and_changes_with_it(tmp_path: Path) -> None:
    """Of its keys only those that differ are named as not understood."""
    common = "python -m verl.trainer.main_ppo algorithm.adv_estimator=gae actor_rollout_ref.model.path=a/b "
    both = "actor_rollout_ref.actor.fsdp_config.optimizer_offload=True critic.model.fsdp_config.optimizer_offload="
    same, other = (launch(tmp_path, common + both + end, f"{end}.sh").reading for end in ("True", "False"))
    key = "critic.model.fsdp_config.optimizer_offload"
    assert key not in {setting.key for setting in same.unread()}
    assert key in {setting.key for setting in other.unread()}
    assert changes(same, {"offload_optimizer": False}).keys[key] is False


def test_devices_of_a_server_and_of_its_trainer_are_named_where_their_numbers_change(tmp_path: Path) -> None:
    """Which of them go to whom is not written."""
    text = (
        "CUDA_VISIBLE_DEVICES=0 trl vllm-serve --model a/b --tensor-parallel-size 1 &\nCUDA_VISIBLE_DEVICES=1,2,3 "
        "accelerate launch --num_processes 3 trl/scripts/grpo.py --use_vllm --vllm_mode server --num_generations 6\n"
    )
    asked = changes(
        launch(tmp_path, text).reading, {"rollout_tensor_parallel": 2, "rollout_gpus": 2, "trainer_gpus": 2}
    )
    assert [note for note in asked.notes if "CUDA_VISIBLE_DEVICES is 0, and rollout_gpus changes from 1 to 2" in note]
    assert [note for note in asked.notes if "is 1,2,3, and trainer_gpus changes from 3 to 2" in note]


def test_unsloth_loads_its_model_and_adapters_by_calls_of_its_own(tmp_path: Path) -> None:
    """On one GPU, with an engine beside the trainer where it says so."""
    text = """
from unsloth import FastLanguageModel
model, tokenizer = FastLanguageModel.from_pretrained(model_name="a/b", max_seq_length=2048, fast_inference=True,
                                                     gpu_memory_utilization=0.7, load_in_4bit=True)
model = FastLanguageModel.get_peft_model(model, r=32, use_gradient_checkpointing="unsloth")
args = GRPOConfig(per_device_train_batch_size=4, num_generations=4, max_prompt_length=256, optim="adamw_8bit")
trainer = GRPOTrainer(model=model, args=args)
"""
    read = launch(tmp_path, text, "run.py")
    keys = (
        "model",
        "lora_rank",
        "mode",
        "engine",
        "gpus",
        "memory_fraction",
        "optimizer",
        "recompute",
        "max_model_len",
    )
    assert said(read, *keys) == ("a/b", 32, "colocated", "vllm", 1, 0.7, "adam-8bit", "full", 2048)
    assert said(read, "frozen_dtype", "rollout_dtype", "shares_weights", "chunked_loss") == ("nf4", "nf4", True, True)
    assert not read.reading.unread()
    wide = launch(tmp_path, text.replace("4bit=True", "4bit=False"), "run.py")
    assert said(wide, "frozen_dtype", "rollout_dtype", "shares_weights") == (None, "bf16", True)
    assert changes(wide.reading, {"frozen_dtype": "nf4"}).keys == {"unsloth.load_in_4bit": True}
    less = launch(
        tmp_path, text.replace("batch_size=4, num_generations=4", "batch_size=1, num_generations=6"), "run.py"
    )
    assert said(less, "micro_batch_samples", "prompts_per_step") == (6, 1)


def test_trl_freezes_a_quantised_model_by_the_call_of_transformers(tmp_path: Path) -> None:
    """Without an engine the trainer's own model generates; a vLLM beside it loads the weights as published."""
    text = """
config = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4")
model = AutoModelForCausalLM.from_pretrained("a/b", quantization_config=config)
args = GRPOConfig(per_device_train_batch_size=4, num_generations=4{more})
trainer = GRPOTrainer(model=model, args=args, peft_config=LoraConfig(r=16))
"""
    keys = ("frozen_dtype", "rollout_dtype", "shares_weights", "engine_sleep")
    read = launch(tmp_path, text.format(more=""), "run.py")
    assert said(read, *keys) == ("nf4", "nf4", True, "kv")
    assert said(read, "response_logits", "chunked_loss") == (True, False)
    vllm = launch(tmp_path, text.format(more=', use_vllm=True, vllm_mode="colocate"'), "run.py")
    assert said(vllm, *keys) == ("nf4", "bf16", False, "none")


@pytest.mark.parametrize("indent", [1, 2, None])
def test_a_notebook_reads_as_the_python_of_its_cells(tmp_path: Path, indent: int | None) -> None:
    """Magics, shell lines, text and cells of other languages are not Python; variables of the environment count."""
    cells = [
        ("markdown", ["# GRPOConfig(num_generations=2)\n"]),
        ("code", ["%%capture\n", "!pip install unsloth\n", "import os\n", 'os.environ["UNSLOTH_VLLM_STANDBY"] = "1"']),
        ("code", ["%%bash\n", "echo 'not Python'\n"]),
        ("code", ['model = FastLanguageModel.from_pretrained(model_name="a/b", fast_inference=True)\n']),
        ("code", "args = GRPOConfig(per_device_train_batch_size=4,\n  num_generations=4)\nGRPOTrainer(args=args)"),
    ]
    book = {"cells": [{"cell_type": kind, "metadata": {}, "source": said} for kind, said in cells], "nbformat": 4}
    read = launch(tmp_path, json.dumps(book, indent=indent), "run.ipynb")
    assert said(read, "model", "group_size", "engine_sleep") == ("a/b", 4, "kv")
    if indent:
        line = read.reading.settings["unsloth.model_name"].span.line
        assert "from_pretrained" in json.dumps(book, indent=indent).split("\n")[line - 1]
    path = tmp_path / "run.ipynb"
    with pytest.raises(DoesNotFitError, match="a notebook is not written into"):
        written_back(path.read_bytes(), str(path), read.reading, {"group_size": 8}, lambda _: read.reading)


def test_a_command_of_an_image_that_is_a_list_is_not_written_into(tmp_path: Path) -> None:
    """A key that is added would stand there without quotes."""
    words = [*VERL_RUN.format("trainer.main_ppo").split(), "actor_rollout_ref.rollout.n=4"]
    read = launch(tmp_path, f"FROM a/b\nCMD {json.dumps(words)}\n", "Dockerfile")
    assert said(read, "group_size") == (4,)
    path = tmp_path / "Dockerfile"
    with pytest.raises(DoesNotFitError, match="that is a list is not written into"):
        written_back(path.read_bytes(), str(path), read.reading, {"group_size": 8}, lambda _: read.reading)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"cells": 3}', '{"cells": [1]}', '{"cells": [{"source": 4}]}'])
def test_what_is_no_notebook_is_refused(tmp_path: Path, text: str) -> None:
    """In a line with what to do."""
    with pytest.raises(InputError, match="is not a notebook that can be read"):
        launch(tmp_path, text, "run.ipynb")


def test_fused_kernels_of_verl_never_hold_all_logits(tmp_path: Path) -> None:
    """What the loss holds is a chunk then."""
    common = VERL_RUN.format("trainer.main_ppo")
    assert said(launch(tmp_path, common), "chunked_loss") == (False,)
    assert said(launch(tmp_path, f"{common} actor_rollout_ref.model.use_fused_kernels=True"), "chunked_loss") == (True,)


def test_a_micro_batch_of_all_gpus_is_halved_for_all(tmp_path: Path) -> None:
    """Verl's key of old, which counts over the trainer."""
    text = (
        VERL_RUN.format("trainer.main_ppo")
        + "actor_rollout_ref.actor.ppo_micro_batch_size=64 trainer.n_gpus_per_node=8"
    )
    read = launch(tmp_path, text).reading
    assert changes(read, {"micro_batch_samples": 4}).keys == {"actor_rollout_ref.actor.ppo_micro_batch_size": 32}


def test_deepspeed_slices_no_tensors_of_weights_that_it_shards() -> None:
    """Its engine asserts that tensor parallelism comes with ZeRO 2 at most."""
    runs = known()["openrlhf"].runs
    assert runs is not None
    assert [runs_layout(runs, sharding, {"tensor": 2}) for sharding in ("gradients", "full")] == [True, False]


def test_a_sequence_parallel_reference_goes_on_to_agree_with_the_policy(tmp_path: Path) -> None:
    """Its Ulysses size is the policy's in verl, and was left behind."""
    key = "ulysses_sequence_parallel_size"
    text = f"python3 -m verl.trainer.main_ppo actor_rollout_ref.actor.{key}=4 actor_rollout_ref.ref.{key}=4"
    found = changes(launch(tmp_path, text).reading, {"context_parallel": 2})
    assert found.keys[f"actor_rollout_ref.ref.{key}"] == 2


def test_lengths_of_nemo_rl_go_on_to_be_multiples_of_its_layout(tmp_path: Path) -> None:
    """As its attention over context ranks asks for."""
    key = "policy.megatron_cfg"
    text = f"uv run examples/run_grpo.py {key}.enabled=true {key}.tensor_model_parallel_size=2 "
    text += f"{key}.context_parallel_size=1 policy.make_sequence_length_divisible_by=2"
    found = changes(launch(tmp_path, text).reading, {"context_parallel": 4})
    assert found.keys["policy.make_sequence_length_divisible_by"] == 16


@pytest.mark.parametrize(
    ("key", "version", "bucket"),
    [
        ("", "verl@0.9.1", None),
        ("actor_rollout_ref.rollout.checkpoint_engine.update_weights_bucket_megabytes=4096", "verl", "4096 MiB"),
        ("actor_rollout_ref.rollout.update_weights_bucket_megabytes=1024", "", "1024 MiB"),
    ],
)
def test_the_bucket_of_a_weight_sync_is_read(tmp_path: Path, key: str, version: str, bucket: str | None) -> None:
    """By its two names: 0.5 to 0.7 had it beside the engine's keys (trainer/config/rollout/rollout.yaml)."""
    read = launch(tmp_path, f"{VERL_RUN.format('trainer.main_ppo')} {key}", framework=version)
    assert said(read, "bucket_bytes") == (bucket,)
    assert read.version == ("" if version == "verl" else version.partition("@")[2] or "<0.8")


@pytest.mark.parametrize(("version", "packs"), [("verl@0.3.0.post1", False), ("verl@0.4.1", True)])
def test_megatron_packed_no_micro_batches_at_first(tmp_path: Path, version: str, *, packs: bool) -> None:
    """As of 0.3 it splits its batch into samples, whatever use_dynamic_bsz says (workers/actor/megatron_actor.py)."""
    keys = "actor.strategy=megatron", "actor.use_dynamic_bsz=true", "actor.ppo_micro_batch_size_per_gpu=2"
    run = " ".join([VERL_RUN.format("trainer.main_ppo"), *(f"actor_rollout_ref.{key}" for key in keys)])
    found = said(launch(tmp_path, run, framework=version), "micro_batch_tokens", "micro_batch_samples")
    assert found == ((16384, None) if packs else (None, 2))


def test_tokens_of_a_gpu_count_for_all_that_share_a_sequence(tmp_path: Path) -> None:
    """OpenRLHF multiplies them by its ring and by DeepSpeed's tensor parallelism (utils/seqlen_balancing.py)."""
    text = "python3 -m openrlhf.cli.train_ppo_ray --actor.model_name_or_path a/b --train.dynamic_batch_enable "
    text += "--train.max_tokens_per_gpu 8192 --rollout.max_tokens_per_gpu 16384 --ds.ring_attn_size 2"
    read = launch(tmp_path, text).reading
    assert [read.value(f"loop.{key}") for key in ("micro_batch_tokens", "logprob_micro_batch_tokens")] == [16384, 32768]
    assert changes(read, {"micro_batch_tokens": 8192}).keys == {"train.max_tokens_per_gpu": 4096}


def test_nodes_of_two_pools_are_counted_once_where_they_share_them(tmp_path: Path) -> None:
    """Rollout nodes are others than the trainer's, unless both fit on one."""
    run = VERL_RUN.format("experimental.one_step_off_policy.main_ppo")
    pools = "trainer.nnodes={0} rollout.nnodes={0} trainer.n_gpus_per_node={1} rollout.n_gpus_per_node={2}"
    apart, shared = (launch(tmp_path, f"{run} {pools.format(*one)}") for one in ((4, 8, 8), (2, 6, 2)))
    assert [one.reading.value("loop.nodes") for one in (apart, shared)] == [8, 2]


def test_stages_that_were_said_go_with_the_pipeline_that_they_were_for(tmp_path: Path) -> None:
    """Layers of a first stage that stay behind would not add up."""
    keys = "first_pipeline_stage=3", "last_pipeline_stage=6"
    place = "+actor_rollout_ref.actor.megatron.override_transformer_config.num_layers_in_"
    run = VERL_RUN.format("trainer.main_ppo") + " ".join(place + key for key in keys)
    read = launch(
        tmp_path, f"{run} actor_rollout_ref.actor.megatron.pipeline_model_parallel_size=12 model_engine=megatron"
    )
    found = changes(read.reading, {"pipeline_parallel": 8, "_first_stage_layers": None, "_last_stage_layers": None})
    assert sorted(key.rpartition(".")[2] for key, value in found.keys.items() if value is None) == [
        "num_layers_in_first_pipeline_stage", "num_layers_in_last_pipeline_stage",
    ]  # fmt: skip


def test_models_that_share_the_actors_gpus_have_as_many(tmp_path: Path) -> None:
    """OpenRLHF asserts it, and nobody may say how many GPUs a node has (cli/train_ppo_ray.py)."""
    text = "python3 -m openrlhf.cli.train_ppo_ray --pretrain a/b --vllm_num_engines 2 --colocate_actor_ref "
    roles = (f"--{role}_num_nodes 1 --{role}_num_gpus_per_node 4" for role in ("actor", "ref"))
    found = changes(launch(tmp_path, text + " ".join(roles)).reading, {"trainer_gpus": 8}).keys
    assert (found["actor.num_nodes"], found["ref.num_nodes"]) == (2, 2)


@pytest.mark.parametrize(("share", "moved"), [("", False), (" {}.optimizer_offload_fraction=1", True)])
def test_an_optimizer_is_on_the_cpu_as_far_as_its_share_says(tmp_path: Path, share: str, *, moved: bool) -> None:
    """Megatron's OptimizerConfig has none of it there where nobody says (core/optimizer/optimizer_config.py)."""
    place = "+actor_rollout_ref.actor.optim.override_optimizer_config"
    run = f"{VERL_RUN.format('trainer.main_ppo')} model_engine=megatron {place}.optimizer_cpu_offload=True"
    read = launch(tmp_path, run + share.format(place)).reading
    assert read.value("loop.offload") is moved
    untold = launch(tmp_path, f"{VERL_RUN.format('trainer.main_ppo')} model_engine=megatron").reading
    assert untold.value("loop.offload") is None  # so that plans may choose it
    written = changes(read, {"offload": True}).keys
    assert {key.rpartition(".")[2] for key in written} == (
        set() if moved else {
            "optimizer_offload_fraction", "use_precision_aware_optimizer", "overlap_cpu_optimizer_d2h_h2d",
        }
    )  # fmt: skip


def test_megatron_of_ms_swift_has_no_kernels_of_liger(tmp_path: Path) -> None:
    """So that nobody is told to add a flag that its parser refuses (4.6.0, megatron/arguments)."""
    text = "megatron rlhf --rlhf_type grpo --model a/b --use_vllm true --vllm_mode colocate"
    assert changes(launch(tmp_path, text).reading, {"chunked_loss": True}).refused
