"""Launch scripts in place of scenarios: asked, judged, planned, written back, and never run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

SCRIPT = """\
#!/usr/bin/env bash
# one node of 8 x H100
export WANDB_API_KEY=0123456789abcdef0123456789abcdef01234567
ANSWER=$((1024 * 3))
python3 -m verl.trainer.main_ppo \\
  algorithm.adv_estimator=grpo \\
  actor_rollout_ref.model.path=Qwen/Qwen2.5-14B-Instruct \\
  data.train_batch_size=256 data.max_prompt_length=1024 data.max_response_length=$ANSWER \\
  actor_rollout_ref.actor.ppo_mini_batch_size=64 \\
  actor_rollout_ref.actor.fsdp_config.param_offload=True \\
  actor_rollout_ref.actor.fsdp_config.optimizer_offload=True \\
  actor_rollout_ref.actor.use_dynamic_bsz=True \\
  actor_rollout_ref.actor.ppo_max_token_len_per_gpu=65536 \\
  actor_rollout_ref.rollout.n=8 \\
  actor_rollout_ref.rollout.tensor_model_parallel_size=2 \\
  actor_rollout_ref.rollout.gpu_memory_utilization=0.7 \\
  trainer.nnodes=1 trainer.n_gpus_per_node=8
"""
LENGTH = ("--response-tokens", "900")


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A script that runs out of memory, in a folder that takes what commands write beside it."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "train.sh"
    file.write_text(SCRIPT, encoding="utf-8")
    file.chmod(0o755)
    return str(file)


@pytest.mark.long(by_day=1)
@pytest.mark.parametrize(
    "command",
    [
        ("memory",),
        ("predict", "step"),
        ("fleet",),
        ("cost", "--gpu-hour", "2.5"),
        ("iteration",),
        ("plan",),
        ("report",),
    ],
    ids=" ".join,
)
def test_every_command_that_takes_a_scenario_takes_a_launch(rlsize: Run, script: str, command: tuple[str, ...]) -> None:
    """The same inputs, each with the key that said it."""
    at = 2 if command[0] == "predict" else 1
    ran = rlsize(*command[:at], script, *command[at:], *LENGTH, "--json")
    assert ran.code in {0, 1}, ran.stderr
    assert ran.document["inputs"]["group_size"] == 8


@pytest.mark.long
def test_a_mean_length_that_the_script_does_not_tell_is_assumed_by_its_cap(rlsize: Run, script: str) -> None:
    """The answer says so and how to say it; a length that is told narrows the band."""
    Path(script).write_text(SCRIPT.replace("65536", "16384"), encoding="utf-8")
    ran, told = rlsize("predict", "step", script), rlsize("predict", "step", script, *LENGTH, "--json")
    assert ran.code == 0, ran.stderr
    assert "assumed:  --response-tokens" in ran.stdout
    document = rlsize("predict", "step", script, "--json").document
    assert document["explain"]["response_tokens"]["source"].startswith("usual under a cap of")
    wide, narrow = (one["explain"]["step_seconds"]["band"] for one in (document, told.document))
    assert wide[1] / wide[0] > narrow[1] / narrow[0]


def test_a_default_of_the_framework_is_known_not_assumed(rlsize: Run, script: str) -> None:
    """Also where rlsize would take the same: verl goes over a batch once and recomputes, unless a launch says more."""
    ran = rlsize("predict", "step", script, *LENGTH, "--json", "--full")
    assert "default of verl" in ran.document["explain"]["updates"]["source"]
    assert "--updates" not in rlsize("predict", "step", script, *LENGTH).stdout


@pytest.mark.long
def test_memory_needs_no_mean_length_where_a_cap_is_told(rlsize: Run, script: str) -> None:
    """What decides is the longest sample."""
    assert "what nobody says" not in rlsize("memory", script).stderr


TRL = """\
from trl import GRPOConfig, GRPOTrainer
args = GRPOConfig(per_device_train_batch_size=4, gradient_accumulation_steps=8, num_generations=8, use_vllm=True)
GRPOTrainer(model="Qwen/Qwen2.5-1.5B-Instruct", args=args)
"""


@pytest.mark.long(by_day=1)
@pytest.mark.parametrize("command", [("memory",), ("predict", "step"), ("plan",)], ids=" ".join)
def test_what_follows_from_the_number_of_gpus_is_not_asked_for(
    rlsize: Run, tmp_path: Path, command: tuple[str, ...]
) -> None:
    """Samples are counted for each of them; all else is asked for at once, whatever the command."""
    file = tmp_path / "train.py"
    file.write_text(TRL, encoding="utf-8")
    asked = {word.strip(",.:") for word in rlsize(*command, str(file)).stderr.split() if word.startswith("--")}
    assert asked - {"--rollout-gpus", "--trainer-gpus"} == {"--gpu", "--gpus"}
    answered = rlsize(*command, str(file), "--gpu", "h100-sxm", "--gpus", "8", "--response-tokens", "100", "--json")
    assert answered.document["inputs"]["prompts_per_step"] == 32


SLIME = (
    "python3 train.py --hf-checkpoint a/Qwen3-8B --actor-num-nodes 2 --actor-num-gpus-per-node 8 --colocate "
    "--rollout-batch-size 32 --n-samples-per-prompt 8 --rollout-max-response-len 2048 --tensor-model-parallel-size 2"
)
SKYRL = "uv run -m skyrl.train.entrypoints.main_base trainer.policy.model.path=Qwen/Qwen3-8B"


@pytest.mark.parametrize(("text", "ranks"), [(SLIME, "DP16 ZeRO-1 TP2 on 32 GPUs"), (SKYRL, "FSDP32 on 32 GPUs")])
def test_other_gpus_than_a_launch_has_take_its_data_parallel_ranks_along(
    rlsize: Run, tmp_path: Path, text: str, ranks: str
) -> None:
    """They were refused, or sharded over as few as before."""
    (tmp_path / "run.sh").write_text(text)
    ran = rlsize("memory", str(tmp_path / "run.sh"), "--gpu", "h100-sxm", "--gpus", "32", "--full")
    assert f"trainer: {ranks}" in ran.stdout


@pytest.mark.long
def test_memory_of_a_launch_without_a_gpu_says_where_it_fits(rlsize: Run, tmp_path: Path) -> None:
    """As it says of each of them; the GPU is asked for all the same."""
    (tmp_path / "run.sh").write_text(SLIME, encoding="utf-8")
    asked = ("memory", str(tmp_path / "run.sh"), *LENGTH, "--json")
    ran = rlsize(*asked)
    found = {row["gpu"]: row["verdict"] for row in ran.document["rows"]["gpus"]}
    assert (found["rtx-4090"], found["h200-sxm"]) == ("no", "yes")
    fits = [gpu for gpu, verdict in found.items() if verdict == "yes"]
    assert all(gpu in ran.document["headline"] for gpu in fits)
    assert "give --gpu" in " ".join(ran.document["warnings"])
    said = {"dies": "no", "fits": "yes"}
    for gpu, verdict in found.items():
        own = str(rlsize(*asked, "--gpu", gpu).results["memory_verdict"])
        assert said.get(own, own) == verdict


@pytest.mark.long
def test_keys_that_save_a_loop_can_be_copied(rlsize: Run, script: str) -> None:
    """No key is broken by the width of the table."""
    Path(script).write_text(SCRIPT.replace("optimizer_offload=True", "optimizer_offload=False"), encoding="utf-8")
    lines = [line.strip() for line in rlsize("memory", script, *LENGTH).stdout.splitlines()]
    changes = lines[lines.index("What makes it fit") :]
    assert any(line.startswith("actor_rollout_ref.") and "=" in line for line in changes)
    assert not any(line.startswith("actor_rollout_ref.") and "=" not in line for line in changes)


@pytest.mark.long
def test_a_micro_batch_of_the_reference_pass_is_read_and_is_what_saves(rlsize: Run, script: str) -> None:
    """Logits of its pass are the larger ones, and no other key needs to change."""
    own = " actor_rollout_ref.ref.log_prob_max_token_len_per_gpu=262144 actor_rollout_ref.actor.use_kl_loss=True"
    Path(script).write_text(SCRIPT.replace("65536", "16384").rstrip() + own + "\n", encoding="utf-8")
    ran = rlsize("memory", script, *LENGTH, "--json")
    assert ran.document["inputs"]["logprob_micro_batch_tokens"] == 262144
    assert not any("Not understood" in one for one in ran.document["warnings"])
    saved = [row["change"] for row in ran.document["rows"]["savers"]]
    assert saved[0] == "actor_rollout_ref.ref.log_prob_max_token_len_per_gpu=65536"


@pytest.mark.long
def test_a_knob_is_turned_until_the_loop_surely_fits(rlsize: Run, script: str) -> None:
    """Not only until its centre does, where turning it further helps."""
    own = " actor_rollout_ref.rollout.log_prob_max_token_len_per_gpu=262144"
    Path(script).write_text(SCRIPT.replace("65536", "16384").rstrip() + own + "\n", encoding="utf-8")
    ran = rlsize("memory", script, *LENGTH, "--json")
    rows = ran.document["rows"]["savers"]
    verdicts = [row["verdict"] for row in rows if row["change"].startswith(own.strip().partition("=")[0])]
    assert verdicts == ["yes"]


@pytest.mark.long
def test_a_loop_that_dies_is_told_with_what_saves_it_in_the_frameworks_keys(rlsize: Run, script: str) -> None:
    """The phase, and the micro-batch as the cheapest change that leaves the training as it is."""
    ran = rlsize("memory", script, *LENGTH, "--json")
    assert ran.code == 1
    assert ran.document["results"]["first_dying_phase"] == "update"
    saver, *_ = ran.document["rows"]["savers"]
    assert "ppo_max_token_len_per_gpu" in saver["change"]
    assert saver["training"] == "unchanged"


@pytest.mark.long
def test_what_saves_a_megatron_run_may_be_its_layout(rlsize: Run, script: str) -> None:
    """Where weights are what is too large, experts over more of the ranks; a layout comes after what costs the same."""
    Path(script).write_text(
        """uv run -m skyrl.train.entrypoints.main_base trainer.strategy=megatron \\
  trainer.policy.model.path=Qwen/Qwen3-235B-A22B trainer.placement.policy_num_nodes=2 \\
  trainer.policy.megatron_config.tensor_model_parallel_size=4 \\
  trainer.policy.megatron_config.expert_model_parallel_size=8 trainer.policy.model.lora.rank=32 \\
  generator.inference_engine.num_engines=1 generator.inference_engine.tensor_parallel_size=16 \\
  generator.inference_engine.gpu_memory_utilization=0.6 trainer.train_batch_size=128 \\
  generator.sampling_params.max_generate_length=8192 trainer.placement.policy_num_gpus_per_node=8
""",
        encoding="utf-8",
    )
    savers = rlsize("memory", script, "--gpu", "h100", "--json").document["rows"]["savers"]
    assert any("expert_model_parallel_size=16" in one["change"] for one in savers)


@pytest.mark.long
def test_the_saved_script_differs_in_the_saving_key_alone_and_fits(rlsize: Run, script: str, tmp_path: Path) -> None:
    """A diff is shown without secrets; mode bits stay; the new script no longer dies."""
    target = tmp_path / "new.sh"
    ran = rlsize("memory", script, *LENGTH, "--write", str(target))
    shown = [line for line in ran.stderr.splitlines() if line[:1] in "+-" and line[:3] not in {"+++", "---"}]
    assert [line[:1] for line in shown] == ["-", "+"]
    assert "0123456789abcdef" not in ran.stdout + ran.stderr
    old, new = SCRIPT.splitlines(), target.read_text(encoding="utf-8").splitlines()
    (changed,) = (index for index, (before, after) in enumerate(zip(old, new, strict=True)) if before != after)
    assert "ppo_max_token_len_per_gpu" in new[changed]
    assert target.stat().st_mode & 0o777 == 0o755
    again = rlsize("memory", str(target), *LENGTH, "--json")
    assert again.document["results"]["memory_verdict"] != "dies"


@pytest.mark.long
def test_a_plan_is_written_into_the_script_and_read_back(rlsize: Run, script: str, tmp_path: Path) -> None:
    """What the plan chose is what the new script tells, and what was set over it."""
    target = tmp_path / "planned.sh"
    agents = ("--set", "agents.turns=4", "--set", "agents.tool_seconds=1")
    ran = rlsize("plan", script, *LENGTH, *agents, "--write", str(target), "--json")
    assert ran.code == 0, ran.stderr
    read = rlsize("predict", "step", str(target), *LENGTH, "--json")
    layout = ran.document["results"]["best_rollout_layout"]
    assert f"tp{read.document['inputs']['rollout_tensor_parallel']}" in str(layout).lower()
    assert read.document["inputs"]["turns"] == 4
    assert read.code == 0, read.stderr


@pytest.mark.long
def test_a_plan_that_the_launch_has_no_room_for_is_written_with_what_makes_it_fit(
    rlsize: Run, script: str, tmp_path: Path
) -> None:
    """Without offload the states stay beside the engine: the written script has some, or is refused."""
    Path(script).write_text(SCRIPT.replace("_offload=True", "_offload=False"), encoding="utf-8")
    target = tmp_path / "planned.sh"
    ran = rlsize("plan", script, *LENGTH, "--write", str(target))
    if ran.code == 0:
        assert rlsize("predict", "step", str(target), *LENGTH).code == 0
    else:
        assert "what the launch says of its memory" in ran.stderr
        assert not target.exists()


def test_nothing_is_written_where_nothing_must_change(rlsize: Run, tmp_path: Path) -> None:
    """A script that fits is refused a saver, and a scenario has no script to write."""
    file = tmp_path / "small.sh"
    file.write_text(SCRIPT.replace("65536", "8192").replace("14B", "0.5B"), encoding="utf-8")
    ran = rlsize("memory", str(file), *LENGTH, "--write", str(tmp_path / "x.sh"))
    assert ran.code == 1
    assert "nothing to write" in ran.stderr
    assert not (tmp_path / "x.sh").exists()


@pytest.mark.long
def test_init_writes_the_scenario_of_a_launch(rlsize: Run, script: str, tmp_path: Path) -> None:
    """It gives the same answers as the script, and says which line said what; JSON has every quantity."""
    target = tmp_path / "s.yaml"
    ran = rlsize("init", str(target), "--from", script, "--json")
    assert ran.code == 0, ran.stderr
    document = json.loads(ran.stdout)
    rows = {row["quantity"]: row for row in document["rows"]["quantities"]}
    assert (rows["group_size"]["value"], rows["group_size"]["provenance"]) == (8, "said")
    assert rows["group_size"]["said_by"] == "train.sh:14: actor_rollout_ref.rollout.n"
    assert document["results"]["missing"] == ""
    assert any("without --response-tokens" in note for note in document["notes"])
    answers = [rlsize("memory", file, *LENGTH, "--json").document["results"] for file in (script, str(target))]
    assert answers[0]["worst_phase_bytes_per_gpu"] == answers[1]["worst_phase_bytes_per_gpu"]


@pytest.mark.long
def test_set_and_flags_go_before_the_script(rlsize: Run, script: str) -> None:
    """A value that is said otherwise no longer names the script."""
    ran = rlsize("memory", script, *LENGTH, "--set", "workload.group_size=4", "--json")
    assert ran.document["inputs"]["group_size"] in (4, 4.0)


def test_a_typed_waste_goes_before_what_a_launch_filters(rlsize: Run, script: str) -> None:
    """Dynamic sampling generates twice the batch; who knows better may say so."""
    own = "data.train_batch_size=256 data.gen_batch_size=512 algorithm.filter_groups.enable=True"
    Path(script).write_text(SCRIPT.replace("data.train_batch_size=256", own).replace("14B", "1.5B"), encoding="utf-8")
    for typed, waste in (((), 2.0), (("--tokens-per-trained-token", "1.5"), 1.5)):
        ran = rlsize("fleet", script, *LENGTH, *typed, "--json")
        assert ran.code < 2, ran.stderr
        assert ran.document["inputs"]["tokens_generated_per_trained_token"] == pytest.approx(waste)


def test_a_framework_that_cannot_run_a_mode_is_not_planned_so(rlsize: Run, script: str) -> None:
    """Asked for by name, it is refused with what the framework runs."""
    ran = rlsize("plan", script, *LENGTH, "--framework", "verl", "--mode", "synchronous")
    assert ran.code == 2
    assert "verl cannot run a loop that is synchronous" in ran.stderr


@pytest.mark.long(by_day=1)
def test_a_deepspeed_run_is_saved_by_its_sleep_and_by_a_higher_stage(rlsize: Run, tmp_path: Path) -> None:
    """Both in OpenRLHF's own keys; its sleep moves gradients and optimizer states at once."""
    text = (
        "python3 -m openrlhf.cli.train_ppo_ray --actor_num_nodes 1 --actor_num_gpus_per_node 8 --vllm_num_engines 8 "
        "--colocate_all_models --vllm_gpu_memory_utilization 0.6 --init_kl_coef 0 --advantage_estimator group_norm "
        "--pretrain Qwen/Qwen2.5-7B --micro_train_batch_size 2 --micro_rollout_batch_size 4 --rollout_batch_size 128 "
        "--n_samples_per_prompt 8 --generate_max_len 2048 --zero_stage 2 --bf16 --gradient_checkpointing "
        "--vllm_enable_sleep"
    )
    (tmp_path / "run.sh").write_text(text)
    ran = rlsize("memory", str(tmp_path / "run.sh"), "--gpu", "a100-80-sxm", "--json")
    changes = {row["change"] for row in ran.document["rows"]["savers"]}
    assert {"deepspeed_enable_sleep=True", "zero_stage=3"} <= changes


NEMO = """
grpo: {num_prompts_per_step: 64, num_generations_per_prompt: 16}
policy:
  model_name: Qwen/Qwen3-8B
  max_total_sequence_length: 4096
  train_global_batch_size: 512
  train_micro_batch_size: 4
  dtensor_cfg: {enabled: true, tensor_parallel_size: 1, activation_checkpointing: true}
  megatron_cfg: {enabled: false}
  generation: {vllm_cfg: {tensor_parallel_size: 2}}
cluster: {num_nodes: 4, gpus_per_node: 8}
"""


@pytest.mark.long
@pytest.mark.parametrize(("text", "name", "mode"), [(NEMO, "run.yaml", "async"), (SLIME, "run.sh", "one-step-off")])
def test_another_mode_of_a_launch_can_be_planned(rlsize: Run, tmp_path: Path, text: str, name: str, mode: str) -> None:
    """What sides that share GPUs move out, and samples of a micro batch, stand in no other mode's way."""
    (tmp_path / name).write_text(text)
    ran = rlsize(
        "plan", str(tmp_path / name), "--gpu", "h100-sxm", "--gpus", "32", "--response-tokens", "900", "--json"
    )
    assert {mode, "colocated"} <= {row["mode"] for row in ran.document["rows"]["candidates"]}


def test_a_key_with_a_slip_of_the_pen_is_named_with_the_one_that_is_meant(rlsize: Run, tmp_path: Path) -> None:
    """It names nothing of sizes as it stands, and was passed over in silence."""
    run = tmp_path / "run.sh"
    run.write_text(
        "python3 -m verl.trainer.main_ppo data.train_batch_size=512 data.max_response_length=4096 "
        "actor_rollout_ref.model.path=Qwen/Qwen3-8B actor_rollout_ref.rollout.tensor_model_paralel_size=4 "
        "actor_rollout_ref.rollout.n=8 trainer.n_gpus_per_node=8 trainer.nnodes=1\n"
    )
    said = rlsize("predict", "step", str(run), "--gpu", "h100", "--json").stdout
    assert "did you mean actor_rollout_ref.rollout.tensor_model_parallel_size?" in said


def test_a_batch_that_is_no_multiple_of_the_group_is_told(rlsize: Run, tmp_path: Path) -> None:
    """15 samples in groups of 7 were sized as 2.14 prompts without a word."""
    run = tmp_path / "run.sh"
    run.write_text(
        "accelerate launch --num_processes 3 train.py --per_device_train_batch_size 5 --num_generations 7 --use_vllm "
        "--model_name_or_path Qwen/Qwen2.5-0.5B-Instruct --max_completion_length 2048 --vllm_mode colocate\n"
    )
    said = rlsize("predict", "step", str(run), "--gpu", "h100", "--json").stdout
    assert "A step has 2.14 groups of 7 samples" in said


def test_a_fleet_whose_sides_take_turns_piles_nothing_up(rlsize: Run, tmp_path: Path) -> None:
    """`fleet` told a backlog of a colocated loop where `backlog` says that there is none."""
    run = tmp_path / "run.sh"
    run.write_text(
        "python3 -m verl.trainer.main_ppo data.train_batch_size=512 data.max_response_length=4096 "
        "actor_rollout_ref.model.path=Qwen/Qwen3-8B actor_rollout_ref.rollout.tensor_model_parallel_size=2 "
        "actor_rollout_ref.rollout.n=8 trainer.n_gpus_per_node=8 trainer.nnodes=1\n"
    )
    said = " ".join(rlsize("fleet", str(run), "--gpu", "h100").stdout.split())
    assert "The sides of a loop that is colocated take turns; where both ran all the time:" in said


AWAKE = """\
accelerate launch --num_processes 8 --mixed_precision bf16 --use_deepspeed --zero_stage 3 grpo.py \\
  --model_name_or_path Qwen/Qwen2.5-7B-Instruct --use_vllm true --vllm_mode colocate \\
  --vllm_gpu_memory_utilization 0.4 --num_generations 8 --per_device_train_batch_size 8 \\
  --gradient_accumulation_steps 2 --max_prompt_length 512 --max_completion_length 1024
"""


@pytest.mark.long
def test_a_plan_counts_engines_that_stay_on_the_gpus_while_the_trainer_works(rlsize: Run, tmp_path: Path) -> None:
    """TRL's engines do not sleep unless they are told to: no plan was found for this launch, which runs as it is."""
    script, new = tmp_path / "train.sh", tmp_path / "new.sh"
    script.write_text(AWAKE, encoding="utf-8")
    ran = rlsize("plan", str(script), "--gpu", "h100-sxm", "--write", str(new), "--json")
    assert ran.code == 0, ran.stderr
    plan = ran.document["results"]
    assert plan["best_gpus"] == 8
    stated = rlsize("predict", "step", str(script), "--gpu", "h100-sxm", "--json").document["results"]
    assert plan["best_step_seconds"] <= stated["step_seconds"]
    assert rlsize("memory", str(new), "--gpu", "h100-sxm").code == 0


def test_what_saves_memory_is_searched_whatever_a_launch_or_its_framework_has(rlsize: Run, script: str) -> None:
    """32B on eight GPUs needs the optimizer on the host, which verl does not have by default; what is typed stays."""
    text = Path(script).read_text(encoding="utf-8").replace("Qwen2.5-14B-Instruct", "Qwen2.5-32B")
    lines = [line for line in text.splitlines(keepends=True) if "offload" not in line]
    Path(script).write_text("".join(lines).replace("65536", "16384"), encoding="utf-8")
    said = ("plan", script, *LENGTH, "--gpu", "h100-sxm")
    found = rlsize(*said, "--json")
    assert found.code == 0
    assert found.document["results"]["best_offload"] is True
    assert rlsize(*said, "--set", "trainer.offload=no").code == 1


def test_what_a_fork_has_no_key_for_is_not_searched(rlsize: Run, script: str) -> None:
    """Search-R1 lacks verl's fused loss and its optimizer on the host: its plan has neither, and there is one."""
    text = Path(script).read_text(encoding="utf-8")
    agents = "python3 -m verl.trainer.main_ppo \\\n  actor_rollout_ref.rollout.n_agent=5 max_turns=2 \\\n"
    text = text.replace("python3 -m verl.trainer.main_ppo \\\n", agents).replace("Qwen2.5-14B-Instruct", "Qwen2.5-3B")
    Path(script).write_text(text.replace("rollout.n=8", "rollout.n=1"), encoding="utf-8")
    found = rlsize("plan", script, *LENGTH, "--gpu", "h100-sxm", "--json").document["results"]
    assert (found["best_mode"], found.get("best_offload"), found.get("best_chunked_loss")) == ("colocated", None, None)
