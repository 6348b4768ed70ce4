"""A launch, whatever it is written in: whose it is, what counts where it is said twice, and what is refused."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest

from rlsize.errors import InputError
from rlsize.frameworks.wanted import changes, spelled
from rlsize.readers.frameworks import framework, frameworks
from rlsize.readers.launch.launch import Launch, read_launch
from rlsize.readers.launch.scenario import doubts, model_name, scenario_of_launch
from rlsize.readers.profiles import Catalogue

CATALOGUE = Catalogue()
KNOWN = frameworks(CATALOGUE)
WORKFLOW = """\
spec:
  arguments: {{parameters: [{{name: n, value: "7"}}, {{name: m, value: "9"}}]}}
  templates:
  - container:
      command: [bash, -c]
      args:
      - python3 -m verl.trainer.main_ppo {1} actor_rollout_ref.rollout.n={{{{workflow.parameters.n}}}} \
        data.seed={{{{ item.seed }}}}
"""
VERL = "python3 -m verl.trainer.main_ppo trainer.nnodes=2 "


def _launch(folder: Path, text: str, name: str = "run.sh", framework: str = "") -> Launch:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return read_launch(str(file), KNOWN, framework=framework)


def test_every_framework_that_ships_can_be_read() -> None:
    """Each names what it can run, and forks have what holds for their parents."""
    assert {"verl", "openrlhf", "trl", "nemo-rl", "slime"} <= KNOWN.keys()
    fork = framework(CATALOGUE, "easyr1")
    assert fork.quantities["group_size"] == KNOWN["verl"].quantities["group_size"]
    assert fork.runs is not None
    assert (fork.runs.engines, [*fork.runs.modes]) == (("vllm", "sglang", "tensorrt-llm"), ["colocated"])


@pytest.mark.parametrize(
    "wrapped",
    [
        "{}",
        "ray job submit --address=http://h:8265 --runtime-env-json='{{\"a\": 1}}' -- {}",
        'docker run --gpus all -v /a:/b image bash -c "{}"',
        "srun --nodes=2 --ntasks-per-node=1 {}",
        "sbatch -N 2 --wrap='{}'",
        'dlc create job --workers=2 --command="cd /x && {}"',
        "gcloud run --command 'set -x; {}' --quiet",
        "uv run --frozen {}",
        "CUDA_VISIBLE_DEVICES=0,1 nohup {} > log.txt 2>&1 &",
        'if [ -n "$X" ]; then\n  echo no\nelse\n  {}\nfi',
    ],
)
def test_a_program_is_found_in_what_it_is_wrapped_in(tmp_path: Path, wrapped: str) -> None:
    """Submission, containers, schedulers, redirections and conditions change nothing of what it is told."""
    launch = _launch(tmp_path, "#!/bin/bash\n" + wrapped.format(VERL + "actor_rollout_ref.rollout.n=7"))
    assert launch.framework.name == "verl"
    assert launch.reading.value("loop.group_size") == 7
    assert launch.reading.value("loop.trainer_gpus") == 16


def test_what_is_said_last_counts_and_says_where(tmp_path: Path) -> None:
    """An override goes before an earlier one; a quantity names file, line and key."""
    launch = _launch(tmp_path, VERL + "\\\n data.train_batch_size=8 \\\n data.train_batch_size=16\n")
    told = launch.reading.quantity("prompts_per_step")
    assert told is not None
    assert (told.value, told.provenance) == (16, "said")
    assert launch.said_by(told) == "run.sh:3: data.train_batch_size"


def test_the_command_line_goes_before_the_file_that_it_names(tmp_path: Path) -> None:
    """What only the file says is inherited, from the folder of the script or one above it."""
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "one.yaml").write_text(
        "grpo: {num_prompts_per_step: 32, num_generations_per_prompt: 4}\ncluster: {num_nodes: 2, gpus_per_node: 8}\n",
        encoding="utf-8",
    )
    text = "uv run examples/run_grpo.py --config recipes/one.yaml grpo.num_prompts_per_step=64\n"
    launch = _launch(tmp_path, text, "scripts/run.sh")
    assert launch.framework.name == "nemo-rl"
    prompts, group = (launch.reading.quantity(key) for key in ("prompts_per_step", "group_size"))
    assert prompts is not None
    assert group is not None
    assert (prompts.value, prompts.provenance) == (64, "said")
    assert (group.value, group.provenance) == (4, "inherited")


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    """And the framework's defaults stand in."""
    launch = _launch(tmp_path, "python -m verl.trainer.main_ppo --config-name other_trainer data.train_batch_size=8")
    assert any("other_trainer" in note for note in launch.notes)


@pytest.mark.parametrize("path", ["/etc/hostname.yaml", "../../../../../../etc/x.yaml", "~/x.yaml", "/dev/zero"])
def test_files_elsewhere_are_not_read(tmp_path: Path, path: str) -> None:
    """Absolute names, devices, homes, and names that climb out of the script's folders are told as missing."""
    launch = _launch(tmp_path, f"uv run examples/run_grpo.py --config {path} grpo.num_prompts_per_step=64")
    assert set(launch.texts) == {str(tmp_path / "run.sh")}
    assert launch.reading.value("loop.prompts_per_step") == 64


def test_nothing_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in a substitution, not in eval, not in a value, not in a configuration's tag."""
    monkeypatch.chdir(tmp_path)
    text = (
        "N=$(touch CANARY; echo 8)\neval 'touch CANARY'\n`touch CANARY`\n"
        + VERL
        + "data.train_batch_size=$N x=`touch CANARY`\n"
    )
    launch = _launch(tmp_path, text)
    assert launch.reading.value("loop.prompts_per_step") is None
    for name, content in (
        (
            "a.yaml",
            "actor_rollout_ref: !!python/object/apply:os.system ['touch CANARY']\ndata: {train_batch_size: 4}\n",
        ),
        (
            "a.py",
            "import os\nos.system('touch CANARY')\nconfig = GRPOConfig(num_generations=os.system('touch CANARY'))\n",
        ),
    ):
        try:
            _launch(tmp_path, content, name)
        except InputError:
            continue
    assert not (tmp_path / "CANARY").exists()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("echo hello\n", "run.sh"),
        ("a: 1\n", "a.yaml"),
        ("x = 3\n", "a.py"),
        ("{}", "a.json"),
        ("", "run.sh"),
        ("a = 1\n", "a.toml"),
        ("((((\n", "run.sh"),
        ("\x00\x01", "run.sh"),
    ],
)
def test_what_launches_nothing_is_refused_with_its_name(tmp_path: Path, text: str, name: str) -> None:
    """By file, and with what could be done."""
    with pytest.raises(InputError) as raised:
        _launch(tmp_path, text, name)
    assert any(name in fault.where for fault in raised.value.faults)


def test_another_framework_can_be_said_and_must_be_known(tmp_path: Path) -> None:
    """With its version, which decides about defaults."""
    old = _launch(tmp_path, VERL, framework="verl@0.4")
    assert old.reading.value("loop.max_num_seqs") == 1024
    assert _launch(tmp_path, VERL, framework="verl@0.9").reading.value("loop.max_num_seqs") == 256
    with pytest.raises(InputError, match="no framework 'vrel'"):
        _launch(tmp_path, VERL, framework="vrel")


@pytest.mark.parametrize(
    ("version", "engine_seqs"),
    [
        *((one, 256) for one in ("0.9.1", "v0.8", "1.0rc1", "0.9.0.dev", "0.8.0.dev20251010+gabc", "2025-05", "<0.9")),
        *((one, 1024) for one in ("0.7", "v0.5", "<0.5", "<0.5.0", "0.3.0.post1", "0.4.1")),
    ],
)
def test_a_version_is_read_as_releases_are_written(tmp_path: Path, version: str, engine_seqs: int) -> None:
    """What comes after the release, and whether it is out yet, decides nothing."""
    launch = _launch(tmp_path, VERL, framework=f"verl@{version}")
    assert launch.reading.value("loop.max_num_seqs") == engine_seqs


@pytest.mark.parametrize("name", ["README.md", "pasted.txt"])
def test_a_command_between_the_fences_of_markdown_is_read(tmp_path: Path, name: str) -> None:
    """As people paste it, with words around it and blocks in other languages; backticks are no command there."""
    around = "# How\nWe ran `touch x`:\n" if name.endswith(".md") else ""
    text = f"{around}```bash\n{VERL}data.train_batch_size=8\n```\n```python\nx = '`\n```\n"
    told = _launch(tmp_path, text, name).reading.quantity("prompts_per_step")
    assert told is not None
    assert (told.value, told.settings[0].span.line) == (8, around.count("\n") + 2)


@pytest.mark.parametrize("name", ["skyrl-train@0.2", "skyrl-train", "skyrl@<0.1", "SkyRL_Train@0.3.1"])
def test_a_package_of_its_own_counts_versions_by_itself(tmp_path: Path, name: str) -> None:
    """skyrl-train 0.2 came before skyrl 0.1, and has other defaults."""
    run = "uv run -m skyrl.train.entrypoints.main_base trainer.policy.model.path=a/b"
    read = _launch(tmp_path, run, framework=name)
    assert (read.dated, read.reading.value("loop.rollout_tensor_parallel")) == ("skyrl@<0.1", 4)


@pytest.mark.parametrize(
    "version", ["", "nan", "inf", "-1", "<", "<<0.5", "abc", "main", "0.9.x", ">0.5", "0 9", "1." * 9]
)
def test_what_is_no_version_is_refused(tmp_path: Path, version: str) -> None:
    """It would be taken for the oldest one."""
    with pytest.raises(InputError, match="is no version of verl") as raised:
        _launch(tmp_path, VERL, framework=f"verl@{version}")
    assert [fault.where for fault in raised.value.faults] == ["--framework"]


def test_a_note_on_a_script_within_a_configuration_names_the_line_of_the_file(tmp_path: Path) -> None:
    """And so do the words of its programs."""
    launch = _launch(tmp_path, f"num_nodes: 1\nrun: |\n  set -e\n  eval x\n  {VERL}data.train_batch_size=8\n", "a.yaml")
    assert "line 4: eval is not followed: what it would run is not known" in launch.notes
    told = launch.reading.quantity("prompts_per_step")
    assert told is not None
    assert launch.said_by(told) == "a.yaml:5: data.train_batch_size"


@pytest.mark.long
def test_a_launch_of_thousands_of_words_is_not_searched_over_and_over(tmp_path: Path) -> None:
    """Its words are compared with those of a framework's programs once each."""
    seconds = []
    for words in (900, 9000):
        keys = " ".join(f"a.b{index}=1" for index in range(words))
        start = time.process_time()
        assert _launch(tmp_path, VERL + keys).framework.name == "verl"
        seconds.append(time.process_time() - start)
    assert seconds[1] < 40 * seconds[0]  # ten times the words; it was a hundred times the work


@pytest.mark.parametrize(("said", "graphs"), [("True", False), ("False", True)])
def test_engines_without_cuda_graphs_are_a_quantity(tmp_path: Path, said: str, graphs: bool | None) -> None:
    """The scenario has them as the launch says it."""
    launch = _launch(tmp_path, VERL + f"actor_rollout_ref.rollout.enforce_eager={said}")
    document, places = scenario_of_launch(launch, Catalogue())
    assert document.data.get("rollout", {}).get("cuda_graphs") is graphs
    assert "enforce_eager" in places["rollout.cuda_graphs"]


@pytest.mark.parametrize(
    ("said", "moved"), [("", True), ("actor.strategy=fsdp2", True), ("actor.strategy=megatron", False)]
)
def test_verl_keeps_a_reference_on_the_host(tmp_path: Path, said: str, moved: bool) -> None:
    """Whatever its keys say, under FSDP: its source forces it."""
    own = f"actor_rollout_ref.{said} " if said else ""
    text = VERL + own + "actor_rollout_ref.actor.use_kl_loss=True actor_rollout_ref.ref.fsdp_config.param_offload=False"
    assert _launch(tmp_path, text).reading.value("loop.reference_offload") is moved


@pytest.mark.parametrize(("size", "shards"), [(-1, 4), (8, 2), (32, 4), (2, 1)])
def test_verl_counts_gpus_that_share_a_sequence_in_its_shards(tmp_path: Path, size: int, shards: int) -> None:
    """8 of 16 GPUs that share sequences by four have two data-parallel ranks; more than there are is all of them."""
    actor = "actor_rollout_ref.actor."
    text = VERL + f"{actor}ulysses_sequence_parallel_size=4 {actor}fsdp_config.fsdp_size={size}"
    launch = _launch(tmp_path, text)
    assert launch.reading.value("loop.fsdp") == shards
    assert any("2 GPUs, and 4 share a sequence" in one for one in doubts(launch)) is (size == 2)


def test_a_batch_that_is_generated_to_be_filtered_is_generated_whole(tmp_path: Path) -> None:
    """DAPO of verl trains a third of it; without the filter nothing is thrown away."""
    keys = "data.train_batch_size=512 data.gen_batch_size=1536 algorithm.filter_groups.enable="
    kept = [_launch(tmp_path, VERL + keys + said).reading.value("loop.kept_fraction") for said in ("True", "False")]
    assert kept == [pytest.approx(1 / 3), None]
    text = "uv run examples/run_grpo.py grpo.use_dynamic_sampling=true grpo.batch_multiplier=2"
    assert _launch(tmp_path, text).reading.value("loop.kept_fraction") == 0.5


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("run.sh", "torchrun -m verl.trainer.fsdp_sft_trainer data.micro_batch_size=4 trainer.total_epochs=4"),
        ("run.sh", "deepspeed --module openrlhf.cli.train_dpo --train_batch_size 256 --micro_train_batch_size 2"),
        ("run.sh", "swift sft --model Qwen/Qwen3-8B --per_device_train_batch_size 1 --deepspeed zero3"),
        ("run.sh", "swift rlhf --rlhf_type dpo --model Qwen/Qwen3-8B --per_device_train_batch_size 1"),
        ("run.sh", "accelerate launch --num_processes 8 trl/scripts/sft.py --per_device_train_batch_size 2"),
        ("run.py", "args = SFTConfig(output_dir='x', per_device_train_batch_size=4)"),
        ("run.yaml", "stage: sft\nfinetuning_type: lora\nper_device_train_batch_size: 2"),
    ],
)
def test_training_without_a_rollout_is_no_loop(tmp_path: Path, name: str, text: str) -> None:
    """It was read as one, with an engine that it has not."""
    with pytest.raises(InputError, match="nothing is generated here"):
        _launch(tmp_path, text, name)


def test_a_rollout_beside_a_program_without_one_is_read(tmp_path: Path) -> None:
    """Data made for a supervised run, then the loop, told by its keys."""
    text = "python make_sft.py\npython train.py actor_rollout_ref.rollout.n=8 data.train_batch_size=512"
    assert _launch(tmp_path, text).framework.name == "verl"


def test_what_llama_factory_runs_is_not_taken_for_trl(tmp_path: Path) -> None:
    """Its LoRA was full training there."""
    text = "stage: ppo\nfinetuning_type: lora\nlora_rank: 8\nper_device_train_batch_size: 1\nreward_model: x"
    with pytest.raises(InputError, match="LLaMA-Factory"):
        _launch(tmp_path, text, "ppo.yaml")


def test_a_script_that_a_script_calls_is_read_with_what_it_exports(tmp_path: Path) -> None:
    """As TinyZero and others are started: the sizes outside, the program inside; once, however often it is called."""
    (tmp_path / "scripts").mkdir()
    inner = VERL + "actor_rollout_ref.rollout.tensor_model_parallel_size=$TP actor_rollout_ref.rollout.n=$1\n"
    (tmp_path / "scripts" / "train.sh").write_text(inner, encoding="utf-8")
    text = "export TP=4\n" + "bash ./scripts/train.sh 7\n" * 3 + "bash run.sh\n"
    reading = _launch(tmp_path, text).reading
    assert (reading.value("loop.rollout_tensor_parallel"), reading.value("loop.group_size")) == (4, 7)


def test_a_parent_without_a_folder_is_beside_its_configuration_or_nowhere(tmp_path: Path) -> None:
    """Whatever lies above it with such a name has nothing to do with it."""
    (tmp_path / "base.yaml").write_text("attempts: 9\n", encoding="utf-8")
    text = "defaults: [base, _self_]\nfinetune: {seq_length: 16000}\nworld: {actor_fraction: 4}\n"
    launch = _launch(tmp_path, text, "conf/math.yaml")
    assert launch.reading.value("attempts") != 9
    assert any("base.yaml is missing" in note for note in launch.notes)


def test_tokens_that_an_engine_drafts_are_a_quantity(tmp_path: Path) -> None:
    """Steps of the drafter, where an algorithm for them is named."""
    text = "python3 train.py --hf-checkpoint Qwen/Qwen3-8B --rollout-batch-size 32 --sglang-speculative-num-steps 3"
    for own, drafts in (("", None), (" --sglang-speculative-algorithm EAGLE", 3)):
        document, _ = scenario_of_launch(_launch(tmp_path, text + own), Catalogue())
        assert document.data.get("rollout", {}).get("draft_tokens") == drafts


def test_a_plan_for_a_launch_without_an_engine_switches_one_on(tmp_path: Path) -> None:
    """Its key, and where the engine is, as a plan's step time has it; one that has an engine keeps its keys."""
    text = "accelerate launch grpo.py --model_name_or_path Qwen/Qwen3-8B --num_generations 8"
    wanted = {"engine": "vllm", "mode": "colocated"}
    assert changes(_launch(tmp_path, text).reading, wanted).keys == {"use_vllm": True}
    assert not changes(_launch(tmp_path, text + " --use_vllm true").reading, wanted).keys
    server = text + " --vllm_mode server --max_prompt_length 512"
    assert changes(_launch(tmp_path, server).reading, wanted).keys == {"use_vllm": True, "vllm_mode": "colocate"}


def test_a_key_that_is_not_understood_and_could_matter_is_named(tmp_path: Path) -> None:
    """One that bears on nothing here is not."""
    launch = _launch(tmp_path, VERL + "actor_rollout_ref.actor.new_micro_batch=3 trainer.logger=wandb")
    (told,) = doubts(launch)
    assert "actor_rollout_ref.actor.new_micro_batch (" in told
    assert "logger" not in told


def _named(launch: Launch) -> str:
    """What is named as not understood."""
    return "; ".join(one for one in doubts(launch) if one.startswith("Not understood"))


def test_what_stands_under_a_switch_that_is_off_is_not_named(tmp_path: Path) -> None:
    """It has no effect; on, or with another switch, it is named."""
    told = {
        switch: _named(_launch(tmp_path, f"{VERL}+trainer.tower.enable={switch} +trainer.tower.batch_size=8"))
        for switch in ("False", "True")
    }
    assert not told["False"]
    assert "trainer.tower.batch_size" in told["True"]


def test_what_is_set_to_nothing_is_not_named(tmp_path: Path) -> None:
    """Null and empty text leave a key to its framework; so does `???`, which marks what has to be given."""
    assert not _named(_launch(tmp_path, f"{VERL}+trainer.tower_batch_size=null +trainer.tower_batch_tokens=''"))
    launch = _launch(tmp_path, f"{VERL}actor_rollout_ref.rollout.name='???'")
    assert launch.reading.value("loop.engine") == "vllm"


def test_what_is_off_in_a_configuration_printed_whole_is_not_named(tmp_path: Path) -> None:
    """It says all that could be said, with what is usual; in a script whoever writes a key means something by it."""
    keys = "+trainer.tower_batch_size=0 +trainer.tower_batch_tokens=7"
    few, many = (
        _named(_launch(tmp_path, f"{VERL}{keys} {' '.join(f'+trainer.own.k{one}=1' for one in range(count))}"))
        for count in (2, 300)
    )
    assert "tower_batch_size" in few
    assert "tower_batch_size" not in many
    assert "tower_batch_tokens" in many


def test_what_swift_prints_as_it_starts_is_its_launch(tmp_path: Path) -> None:
    """Its logs open with an object of all its arguments."""
    said = "rlhf_type='grpo', model='Qwen/Qwen3-8B', num_generations=6, tuner_type='full'"
    launch = _launch(tmp_path, f"[INFO:swift] args: RLHFArguments({said})\n", "run.log")
    assert launch.framework.name == "ms-swift"
    assert launch.reading.value("loop.group_size") == 6


def test_recomputing_under_its_newer_name_is_read(tmp_path: Path) -> None:
    """Transformers 5.24 calls it `activation_checkpointing`."""
    text = "from trl import GRPOConfig\nargs = GRPOConfig(num_generations=8, activation_checkpointing={})\n"
    told = [_launch(tmp_path, text.format(on), "run.py").reading.value("loop.recompute") for on in (True, False)]
    assert told == ["full", "none"]


def test_secrets_stay_in_the_script(tmp_path: Path) -> None:
    """No note, no scenario, no quantity repeats what looks like a token."""
    secret = "hf_" + "q" * 30
    text = f"export HF_TOKEN={secret}\nexport WANDB_API_KEY={secret}\n{VERL} trainer.hub_token={secret} data.seed=8\n"
    launch = _launch(tmp_path, text)
    document, places = scenario_of_launch(launch, CATALOGUE)
    told = [str(one.value) for one in launch.reading.all().values()]
    assert secret not in json.dumps([document.data, places, launch.notes, told, list(doubts(launch))])


@pytest.mark.parametrize(
    ("written", "profile"),
    [
        ("Qwen/Qwen3-8B", "qwen3-8b"),
        ("/mnt/models/Qwen2.5-7B-Instruct", "qwen2.5-7b"),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "r1-distill-qwen-7b"),
        ("meta-llama/Llama-3.1-8B-Instruct/", "llama3.1-8b"),
        ("OpenRLHF/Llama-3-8b-sft-mixture", "llama3-8b"),
        ("Qwen/Qwen3-30B-A3B-Instruct-2507", "qwen3-30b-a3b"),
        ("ckpt/Qwen2.5-32B-Instruct/global_step_372/actor/huggingface", "qwen2.5-32b"),
        ("/hub/models--Qwen--Qwen2.5-7B/snapshots/0a1b2c", "qwen2.5-7b"),
        ("somebody/unheard-of-9b", "qwen3-8b@9B"),
        ("somebody/unheard-of", "somebody/unheard-of"),
    ],
)
def test_a_model_is_known_by_its_repository_path_or_tuned_name(written: str, profile: str) -> None:
    """One of another family is a model scaled to the size in its name; without one it stays as it was written."""
    assert model_name(written, CATALOGUE) == profile


def test_a_size_that_no_dense_model_has_is_one_with_experts() -> None:
    """`dpsk-v3-671B-BF16` was Llama 405B, scaled."""
    assert model_name("/root/dpsk-v3-671B-BF16", CATALOGUE).startswith("deepseek-")
    assert model_name("/root/acme-300B", CATALOGUE).startswith("llama")
    assert model_name("PRIME-RL/Eurus-2-7B-SFT", CATALOGUE) == "qwen2.5-math-7b"  # not Mistral, as Eurus 1 is


@pytest.mark.parametrize(
    ("written", "profile"),
    [
        ("/x/qwen25-7b", "qwen2.5-7b"),
        ("/x/qwen2_5_7b_sft", "qwen2.5-7b"),
        ("/x/llama31-8b-it", "llama3.1-8b"),
        ("/x/Llama-3-3-70B", "llama3.3-70b"),
        ("/x/qwen2-72b", "qwen2-72b"),
        ("/x/llama3-8b", "llama3-8b"),
        ("agentica-org/DeepCoder-14B-Preview", "qwen2.5-14b"),
        ("allenai/Llama-3.1-Tulu-3-8B-SFT", "llama3.1-8b"),
    ],
)
def test_a_generation_without_its_point_is_one(written: str, profile: str) -> None:
    """As people name folders; `qwen25_7b` was Mistral's size. What was tuned from another has its shape."""
    assert model_name(written, CATALOGUE) == profile


def test_keys_tell_a_framework_before_a_name_that_any_script_may_have(tmp_path: Path) -> None:
    """`train.py` is AReaL's and slime's, and anybody's; the engine's server beside it is of the same launch."""
    (tmp_path / "run.sh").write_text(
        "CUDA_VISIBLE_DEVICES=0 trl vllm-serve --model a/b &\n"
        "CUDA_VISIBLE_DEVICES=1,2,3 accelerate launch --num_processes 3 --config_file configs/zero3.yaml train.py "
        "--model_name_or_path a/b --per_device_train_batch_size 4 --num_generations 8 --use_vllm\n"
    )
    read = read_launch(str(tmp_path / "run.sh"), frameworks(Catalogue()))
    values = {key: told.value for key, told in read.reading.all().items()}
    assert read.framework.name == "trl"
    assert [values[key] for key in ("mode", "trainer_gpus", "rollout_gpus")] == ["sync", 3, 1]


def test_engines_on_some_of_the_gpus_that_they_share_are_told(tmp_path: Path) -> None:
    """The loop has no such split, so a reader must know."""
    text = (
        "rollout_batch_size: 64\nnum_return_sequences_in_group: 8\npretrain: Qwen/Qwen2.5-7B\n"
        "actor_train: {device_mapping: 'list(range(0,16))', strategy_args: {strategy_name: megatron_train}}\n"
        "actor_infer: {device_mapping: 'list(range(0,12))', strategy_args: {strategy_name: vllm}}\n"
    )
    assert any("12 of the 16 GPUs" in one for one in doubts(_launch(tmp_path, text, "roll.yaml")))
    assert not any("GPUs" in one for one in doubts(_launch(tmp_path, text.replace("12", "16"), "same.yaml")))


@pytest.mark.parametrize(
    ("keys", "late"),
    [("", "wait"), ("++grpo.async_grpo.in_flight_weight_updates=true", "continue")],
)
def test_in_flight_updates_decide_about_late_samples(tmp_path: Path, keys: str, late: str) -> None:
    """NeMo-RL waits for what is under way before a sync, unless weights change in flight."""
    program = (
        "uv run examples/run_grpo.py grpo.async_grpo.enabled=true grpo.num_prompts_per_step=64 "
        "policy.generation.colocated.enabled=false policy.generation.colocated.resources.gpus_per_node=4 "
        "cluster.num_nodes=1 cluster.gpus_per_node=8 "
    )
    assert _launch(tmp_path, program + keys).reading.value("loop.late_samples") == late


def test_oversampling_of_slime_is_read_with_its_rule(tmp_path: Path) -> None:
    """A batch closes with the first groups that are whole; the others are dropped, or go on in the next batch."""
    program = "python3 train.py --colocate --rollout-batch-size 32 --over-sampling-batch-size 64 --actor-num-nodes 1"
    told = _launch(tmp_path, program).reading
    assert (told.value("loop.oversampling"), told.value("loop.late_samples")) == (2, "drop")
    told = _launch(tmp_path, f"{program} --partial-rollout").reading
    assert told.value("loop.late_samples") == "continue"


def test_a_bare_name_that_a_framework_ships_is_no_file_beside_the_script(tmp_path: Path) -> None:
    """`--deepspeed zero3` is ms-swift's own, whatever else lies there."""
    (tmp_path / "zero3.yaml").write_text("deepspeed_config: {zero_stage: 2}\n")
    text = "swift rlhf --rlhf_type grpo --model Qwen/Qwen2.5-7B-Instruct --num_generations 8 --deepspeed zero3\n"
    told = _launch(tmp_path, text, "train.sh").reading
    assert told.value("loop.zero_stage") == 3
    assert not any(key.startswith("deepspeed.") for key in told.settings)


@pytest.mark.parametrize(
    ("text", "turns"),
    [
        (VERL + "actor_rollout_ref.rollout.n=4", None),
        (VERL + "{0}max_assistant_turns=5", None),  # no tools are called
        (VERL + "{0}enable=True", None),
        (VERL + "{0}enable=True {0}max_assistant_turns=5", 5),
        (VERL + "{0}enable=True {0}max_user_turns=5", 6),
        (VERL + "{0}max_assistant_turns=5 actor_rollout_ref.rollout.agent.agent_loop_config_path=a.yaml", 5),
        ("python examples/start_agentic_pipeline.py max_actions_per_traj=10 train_env_manager.group_size=8", 10),
        (VERL + "{0}enable=True {0}max_user_turns=3 {0}max_assistant_turns=5", 4),
        (VERL + "{0}enable=True {0}max_user_turns=8 {0}max_assistant_turns=5", 5),
        ("python -m skyrl.train.entrypoints.main_base trainer.policy.model.path=m", 1),
        ("python -m skyrl.train.entrypoints.main_base trainer.policy.model.path=m generator.max_turns=4", 4),
        ("python examples/run_grpo.py grpo.num_prompts_per_step=8 grpo.max_rollout_turns=3", 3),
        ("trl grpo --model_name_or_path m --num_generations 4", None),
        ("trl grpo --model_name_or_path m --num_generations 4 --max_tool_calling_iterations 4", 5),
        ("swift rlhf --rlhf_type grpo --model m --multi_turn_scheduler gym_scheduler --max_turns 4", 4),
        ("python3 -m verl.trainer.main_ppo max_turns=4 actor_rollout_ref.rollout.n_agent=5 do_search=true", 5),
    ],
)
def test_turns_of_an_agent_are_the_most_that_its_keys_allow(tmp_path: Path, text: str, turns: int | None) -> None:
    """One more than answers of tools; nothing where no key bounds them. Others are written into the same keys."""
    reading = _launch(tmp_path, text.format("actor_rollout_ref.rollout.multi_turn.")).reading
    assert reading.value("loop.turns") == turns
    if turns is not None:
        asked = changes(reading, {"turns": turns + 2})
        assert not asked.refused
        assert reading.changed(asked.keys).value("loop.turns") == turns + 2


@pytest.mark.parametrize(
    "said",
    [
        "8xH100",
        "one node of H100s",
        "4 H100 GPUs",
        "nvidia-h100-80gb",
        "an 8*H100 box",
        "8x H100 and H100-only images",
        "tags: [h100x8]",
        "a3-highgpu-8g of NVIDIA_H100_80GB",
    ],
)
def test_a_kind_of_gpu_is_read_as_people_count_it(tmp_path: Path, said: str) -> None:
    """`8xH100` and `H100s` are H100; a longer word with those letters is none."""
    told = _launch(tmp_path, f"# {said}, not oH100k\n{VERL}").reading
    assert str(told.value("loop.gpu")).upper() == "H100"


def test_a_command_that_python_starts_is_read(tmp_path: Path) -> None:
    """Lists that are joined, mappings that a comprehension turns into words, and words that are appended."""
    text = """import subprocess, sys
over = {"trainer.nnodes": 2, "actor_rollout_ref.rollout.n": 8, "data.seed": pick()}
cmd = [sys.executable, "-m", "verl.trainer.main_ppo"] + [f"{k}={v}" for k, v in over.items()]
cmd += ["data.train_batch_size=64"]
cmd.append("trainer.n_gpus_per_node=4")
subprocess.run(cmd, check=True)
"""
    launch = _launch(tmp_path, text, "go.py")
    assert [launch.reading.value(f"loop.{key}") for key in ("gpus", "group_size", "prompts_per_step")] == [8, 8, 64]
    assert launch.reading.settings["data.seed"].unknown == "pick"
    shell = 'import os\nN = 2\nos.system(f"python3 -m verl.trainer.main_ppo trainer.nnodes={N}")\n'
    assert _launch(tmp_path, shell, "sh.py").reading.value("loop.nodes") == 2


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("$(cat args.txt) data.train_batch_size=8", "line 2: $(cat ...)"),
        ('"${A[@]}"', "line 1: what is read from outside"),
        ("$@ $EXTRA trainer.experiment_name=$(date)", ""),
    ],
)
def test_arguments_that_only_a_command_would_print_are_named(tmp_path: Path, words: str, named: str) -> None:
    """What they set is not known; the script's own arguments and empty variables set nothing."""
    launch = _launch(tmp_path, f"mapfile -t A < <(other)\n{VERL} {words}\n")
    assert launch.gaps == ((f"{named} is missing: what it sets is not known",) if named else ())


@pytest.mark.parametrize(
    ("installed", "dated"),
    [
        ("uv pip install 'verl[vllm]==0.5.0' vllm==0.10.0", "verl@0.5.0"),
        ("pip install verl==0.3.0.post1", "verl@0.3.0.post1"),
        ("pip install verl", "verl"),
        ("pip install my-verl==0.1 verl==0.5 || pip install verl==0.6", "verl"),
        ("# verl 0.5.0, vllm 0.9.1", "verl@0.5.0"),
        ("# with verl v0.6", "verl@0.6"),
        ("pip install git+https://github.com/volcengine/verl@v0.4.1", "verl@0.4.1"),
        ("# verl 8 GPUs, verl v1, verl 0.6 or so", "verl"),
        ("# verl v0.6.x", "verl@0.6"),
    ],
)
def test_a_version_is_the_one_that_a_launch_installs_or_names(tmp_path: Path, installed: str, dated: str) -> None:
    """Where it is one alone; what is said beside it goes before. Two numbers without a mark may be of anything."""
    launch = _launch(tmp_path, f"{installed}\n{VERL}\n")
    assert launch.dated == dated
    how = "installed" if "==" in installed else "named"
    assert any(f"is {how} there" in note for note in launch.notes) is ("@" in dated)
    assert _launch(tmp_path, f"{installed}\n{VERL}\n", framework="verl@0.9").dated == "verl@0.9"


def test_a_configuration_alone_says_no_number_of_gpus(tmp_path: Path) -> None:
    """What starts it does: one process where a command says none."""
    text = (
        "rlhf_type: grpo\nmodel: a/b\nnum_generations: 8\nper_device_train_batch_size: 4\ntarget_modules: all-linear\n"
    )
    assert _launch(tmp_path, text, "x.yaml").reading.value("loop.gpus") is None
    command = _launch(tmp_path, "swift rlhf x.yaml\n").reading
    assert [command.value(f"loop.{key}") for key in ("gpus", "group_size")] == [1, 8]


def test_variables_of_a_container_are_those_that_its_manifest_sets(tmp_path: Path) -> None:
    """`$(NAME)` is Kubernetes' own, and the shell's where the container has none of that name."""
    text = """kind: Job
containers:
- env: [{name: NODES, value: "3"}, {name: SECRET, valueFrom: {secretKeyRef: {key: x}}}]
  args: [python3, -m, verl.trainer.main_ppo, trainer.nnodes=$(NODES), actor_rollout_ref.rollout.n=$(GROUP)]
"""
    launch = _launch(tmp_path, text, "job.yaml")
    assert launch.reading.value("loop.nodes") == 3
    assert launch.reading.value("loop.group_size") != 1
    script = (
        text.replace("[python3, -m, ", "[bash, -c, 'python3 -m ").replace("(GROUP)]", "(GROUP)']").replace(", t", " t")
    )
    assert _launch(tmp_path, script.replace(", a", " a"), "job.yaml").reading.value("loop.nodes") == 3


def test_interleaved_stages_of_verls_megatron_are_read(tmp_path: Path) -> None:
    """FSDP has none."""
    key = "actor_rollout_ref.actor.megatron.virtual_pipeline_model_parallel_size=2"
    assert _launch(tmp_path, f"{VERL}{key}").reading.value("loop.virtual_stages") is None
    assert _launch(tmp_path, f"{VERL}{key} model_engine=megatron").reading.value("loop.virtual_stages") == 2


def test_a_configuration_of_swift_is_not_trls(tmp_path: Path) -> None:
    """They share most keys; those of the tuner are swift's alone."""
    shared = "num_generations: 8\nmax_completion_length: 512\nper_device_train_batch_size: 2\nuse_vllm: true\n"
    assert _launch(tmp_path, shared + "rlhf_type: grpo\n", "a.yaml").framework.name == "ms-swift"
    assert _launch(tmp_path, shared + "model_name_or_path: x/y\n", "b.yaml").framework.name == "trl"


@pytest.mark.parametrize(
    ("said", "backend"),
    [
        ("--config examples/grpo_math_8B_megatron.yaml", "megatron"),
        ("policy.megatron_cfg.tensor_model_parallel_size=4", "megatron"),
        ("policy.dtensor_cfg.tensor_parallel_size=4", "fsdp2"),
        ("policy.megatron_cfg.tensor_model_parallel_size=4 policy.megatron_cfg.enabled=false", "fsdp2"),
    ],
)
def test_the_trainer_of_a_nemo_launch_without_its_base_is_the_one_that_it_sets(
    tmp_path: Path, said: str, backend: str
) -> None:
    """Layouts of Megatron mean Megatron where nobody enables one or the other."""
    launch = _launch(tmp_path, f"uv run examples/run_grpo.py grpo.num_prompts_per_step=8 {said}")
    assert launch.reading.value("loop.backend") == backend


@pytest.mark.parametrize(("name", "known"), [("grpo_math_8B", False), ("grpo_math_1B", True)])
def test_sizes_of_a_base_that_is_missing_are_not_those_of_a_smaller_models(
    tmp_path: Path, name: str, *, known: bool
) -> None:
    """The defaults of NeMo-RL are a configuration of 1B: another's batch, lengths and layout are asked for."""
    launch = _launch(tmp_path, f"uv run examples/run_grpo.py --config examples/configs/{name}.yaml")
    told = [launch.reading.value(f"loop.{key}") for key in ("prompts_per_step", "max_total_tokens", "recompute")]
    assert told == ([32, 512, "none"] if known else [None, None, None])
    assert launch.reading.value("loop.memory_fraction") == 0.6
    assert any("are not taken from there" in note for note in launch.notes) is not known


def test_what_verl_checks_as_it_starts_is_told_in_its_words(tmp_path: Path) -> None:
    """A mini batch above the batch, with the keys and both values; token budgets lift that check."""
    key = "actor_rollout_ref.actor."
    text = f"{VERL}data.train_batch_size=64 {key}ppo_mini_batch_size=256"
    says = f"verl stops as it starts: data.train_batch_size (64) must be >= {key}ppo_mini_batch_size (256)."
    assert says in doubts(_launch(tmp_path, text))
    assert says not in doubts(_launch(tmp_path, f"{text} {key}use_dynamic_bsz=True"))


def test_what_is_named_like_a_size_by_chance_is_not_listed(tmp_path: Path) -> None:
    """`steps` holds `ep` and `ppo` `pp`, which are no expert or pipeline parallelism."""
    listed = " ".join(doubts(_launch(tmp_path, f"{VERL}foo.max_steps=3 foo.ppo_kind=x foo.ep=4 foo.tp_size=2")))
    assert all(key in listed for key in ("foo.ep ", "foo.tp_size "))
    assert not any(key in listed for key in ("max_steps", "ppo_kind"))


def test_an_optimizer_that_is_partly_on_the_host_is_told(tmp_path: Path) -> None:
    """The rest of its states stays on the GPUs, and is not counted."""
    key = "actor_rollout_ref.actor.optim.override_optimizer_config.optimizer"
    text = f"{VERL}model_engine=megatron +{key}_cpu_offload=True +{key}_offload_fraction="
    assert any("60%" in note for note in doubts(_launch(tmp_path, text + "0.6")))
    assert not any("live on the host" in note for note in doubts(_launch(tmp_path, text + "1")))


def test_a_value_that_the_script_does_not_tell_takes_no_default(tmp_path: Path) -> None:
    """A batch of 1,024 stood in for `$(python calc.py)`, and nobody was told."""
    launch = _launch(tmp_path, VERL + "data.train_batch_size=$(python calc.py) actor_rollout_ref.rollout.n=$N")
    told = [launch.reading.value(f"loop.{key}") for key in ("prompts_per_step", "group_size", "max_prompt_tokens")]
    assert told == [None, None, 512]
    noted = " ".join(doubts(launch))
    assert "data.train_batch_size ($(python ...)), actor_rollout_ref.rollout.n (N)" in noted
    assert "stops as it starts" not in noted


def test_what_is_found_in_between_adds_to_a_sample_of_search_r1(tmp_path: Path) -> None:
    """Up to max_obs_length tokens a call; its reference works whatever KL is for; a cap that is a turn's is told."""
    keys = "data.max_obs_length=500 data.max_response_length=400 max_turns=2 actor_rollout_ref.rollout.n_agent=1"
    launch = _launch(tmp_path, f"{VERL} data.max_start_length=2048 {keys}")
    told = [launch.reading.value(f"loop.{key}") for key in ("tool_tokens", "turns", "reference", "critic")]
    assert told == [500, 3, True, True]
    assert any("400 response tokens are the most of a turn" in note for note in doubts(launch))
    assert not any("max_obs_length" in note or "max_start_length" in note for note in doubts(launch))


@pytest.mark.parametrize(
    ("keys", "name", "told"),
    [
        ("env.env_name=x env.rollout.n=8 algorithm.adv_estimator=gigpo", "verl-agent", (8, 128, False)),
        ("rollout_manager.n_trajectory=8 algorithm.adv_estimator=masked_gae", "vagen", (8, 128, True)),
        (
            (
                "es_manager.train.env_groups=32 es_manager.train.group_size=8 algorithm.adv_estimator=opo "
                "actor_rollout_ref.rollout.rollout_filter_ratio=0.5"
            ),
            "ragen",
            (8, 128, False),
        ),
    ],
)
def test_forks_of_verl_with_environments_count_groups_in_keys_of_their_own(
    tmp_path: Path, keys: str, name: str, told: tuple[int, int, bool]
) -> None:
    """They were read as verl with one sample a prompt, and verl's check of its batch was held against them."""
    launch = _launch(tmp_path, f"{VERL}data.train_batch_size=16 {keys}")
    assert launch.framework.name == name
    assert tuple(launch.reading.value(f"loop.{key}") for key in ("group_size", "samples_per_step", "critic")) == told
    assert not any("stops as it starts" in note for note in doubts(launch))


def test_a_deepspeed_file_that_a_file_of_accelerate_names_counts(tmp_path: Path) -> None:
    """It said how states are sharded, and the trainer was read as plain data parallelism."""
    config = "distributed_type: DEEPSPEED\nnum_processes: 16\ndeepspeed_config:\n  deepspeed_config_file: ds.json\n"
    (tmp_path / "accel.yaml").write_text(config)
    stage = {"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}}}
    (tmp_path / "ds.json").write_text(json.dumps(stage))
    launch = _launch(tmp_path, "accelerate launch --config_file accel.yaml -m trl.scripts.grpo --num_generations 8")
    assert [launch.reading.value(f"loop.{key}") for key in ("zero_stage", "offload")] == [3, True]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "Makefile",
            (
                "MODEL ?= Qwen/Qwen3-8B\nBSZ = 256\n"
                "ARGS := data.train_batch_size=$(BSZ) actor_rollout_ref.rollout.n=8\n"
                ".PHONY: train\ntrain:\n\t@python3 -m verl.trainer.main_ppo $(ARGS) \\\n"
                "\t\tactor_rollout_ref.model.path=$(MODEL)\n"
            ),
        ),
        (
            "justfile",
            (
                'model := "Qwen/Qwen3-8B"\n\ntrain n="8" bsz="256":\n    python3 -m verl.trainer.main_ppo \\\n'
                "        data.train_batch_size={{bsz}} actor_rollout_ref.rollout.n={{ n }} \\\n"
                "        actor_rollout_ref.model.path={{model}}\n"
            ),
        ),
    ],
)
def test_recipes_of_make_and_just_are_read_with_their_variables(tmp_path: Path, name: str, text: str) -> None:
    """And a change is written into them as they are."""
    launch = _launch(tmp_path, text, name)
    told = [launch.reading.value(f"loop.{key}") for key in ("model", "prompts_per_step", "group_size")]
    assert told == ["Qwen/Qwen3-8B", 256, 8]
    batch = launch.reading.settings["data.train_batch_size"].span
    assert re.search(r"train_batch_size=|\(ARGS\)", text[batch.start : batch.end])


def test_a_command_that_a_loop_over_a_mapping_builds_is_read(tmp_path: Path) -> None:
    """Keys that are set later or taken in from another mapping among them, and the default of an option."""
    text = """import argparse, subprocess, sys
CONFIG = {"data.train_batch_size": 64, "actor_rollout_ref.rollout.n": 4, "trainer.nnodes": 1}
def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=2)
    args = parser.parse_args()
    CONFIG["trainer.nnodes"] = args.nodes
    CONFIG.update({"actor_rollout_ref.rollout.n": 8})
    command = [sys.executable, "-m", "verl.trainer.main_ppo"]
    for key, value in CONFIG.items():
        command.append(f"{key}={value}")
    for word in ["data.max_prompt_length=256"]:
        command += [word]
    subprocess.run(command, check=True)
"""
    reading = _launch(tmp_path, text, "run.py").reading
    told = [reading.value(f"loop.{key}") for key in ("prompts_per_step", "group_size", "nodes", "max_prompt_tokens")]
    assert told == [64, 8, 2, 256]


def test_attributes_that_python_sets_later_count(tmp_path: Path) -> None:
    """`args.num_generations = 16` after `args = GRPOConfig(...)`."""
    text = (
        "args = GRPOConfig(per_device_train_batch_size=4, use_vllm=True)\nargs.num_generations = 16\nargs.beta = 0.1\n"
    )
    reading = _launch(tmp_path, text, "run.py").reading
    assert [reading.value(f"loop.{key}") for key in ("group_size", "reference")] == [16, True]


def test_a_service_beside_a_trainers_is_its_engines_server(tmp_path: Path) -> None:
    """As docker compose has them."""
    text = """services:
  vllm:
    command: trl vllm-serve --model Qwen/Qwen3-8B --tensor-parallel-size 2
  trainer:
    command: >
      accelerate launch --num_processes 6 -m trl.scripts.grpo --use_vllm --vllm_mode server --num_generations 8
"""
    reading = _launch(tmp_path, text, "compose.yaml").reading
    assert [reading.value(f"loop.{key}") for key in ("trainer_gpus", "rollout_gpus", "gpus")] == [6, 2, 8]


@pytest.mark.parametrize(
    ("name", "text", "trainer"),
    [
        ("a.yaml", "base_model: x\nrl: grpo\ntrl: {num_generations: 8}\nmicro_batch_size: 1", "axolotl"),
        ("a.sh", "CUDA_VISIBLE_DEVICES=0 axolotl train grpo.yaml", "axolotl"),
        ("a.yaml", "model:\n  _component_: torchtune.models.x\ngrpo_samples: 4", "torchtune"),
        (
            "a.sh",
            "tune run --nproc_per_node 8 dev/grpo_full_finetune_distributed --config dev/3B_full_grpo",
            "torchtune",
        ),
        ("a.toml", 'model = "x"\n[env]\nid = "y"\n[trainer]\ngpus = 1\n[trainer.args]\nbatch_size = 512', "verifiers"),
        ("a.py", "import verifiers as vf\nargs = vf.grpo_defaults(run_name='x')\nargs.max_tokens = 9", "verifiers"),
        ("a.sh", "uv run vf-rl @ configs/rl.toml", "verifiers"),
    ],
)
def test_trainers_that_are_not_read_are_refused_by_name(tmp_path: Path, name: str, text: str, trainer: str) -> None:
    """With what can be asked in their place."""
    with pytest.raises(InputError, match=f"is of {trainer}, which is not read") as raised:
        _launch(tmp_path, text, name)
    assert "rlsize init" in raised.value.faults[0].todo


def test_a_sweep_is_read_with_the_first_of_its_values(tmp_path: Path) -> None:
    """And says so; `256,512` prompts were read as 256,512."""
    launch = _launch(tmp_path, f"{VERL} --multirun data.train_batch_size=256,512 'data.seed=choice(1,2)' a.b=[1,2]\n")
    assert launch.reading.value("loop.prompts_per_step") == 256
    assert sum("is swept: read with the first value" in note for note in launch.notes) == 2
    sweep = """program: verl.trainer.main_ppo
method: grid
parameters:
  data.train_batch_size: {values: [64, 128]}
  actor_rollout_ref.rollout.n: {value: 8}
command: ["${env}", python3, -m, "${program}", algorithm.adv_estimator=grpo, "${args_no_hyphens}"]
"""
    launch = _launch(tmp_path, sweep, "sweep.yaml")
    asked = [launch.reading.value(f"loop.{key}") for key in ("prompts_per_step", "group_size", "critic", "mode")]
    assert asked == [64, 8, False, "colocated"]
    assert any("data.train_batch_size is swept" in note for note in launch.notes)


def test_lines_of_a_job_and_its_variables_are_a_script(tmp_path: Path) -> None:
    """As dstack has them; `$$` of docker compose is a `$`, and its variables may be a list."""
    dstack = """type: task
nodes: 2
env: [HF_TOKEN, M=Qwen/Qwen3-8B]
commands:
  - pip install x
  - |
    if [ $DSTACK_NODE_RANK = 0 ]; then
      python3 -m verl.trainer.main_ppo trainer.nnodes=$DSTACK_NODES_NUM actor_rollout_ref.model.path=$M
    fi
resources: {gpu: "H200:8"}
"""
    reading = _launch(tmp_path, dstack, ".dstack.yml").reading
    assert [reading.value(f"loop.{key}") for key in ("gpus", "gpu", "model")] == [16, "H200", "Qwen/Qwen3-8B"]
    compose = """services:
  a:
    environment: [M=Qwen/Qwen3-4B]
    command: >
      bash -c "python3 -m verl.trainer.main_ppo trainer.nnodes=1 actor_rollout_ref.model.path=$${M}"
"""
    assert _launch(tmp_path, compose, "compose.yaml").reading.value("loop.model") == "Qwen/Qwen3-4B"


def test_gpus_of_a_task_and_commands_typed_into_tmux_are_read(tmp_path: Path) -> None:
    """Slurm tells both to the script."""
    text = """#!/bin/bash
#SBATCH --nodes=2 --gpus-per-task=h100:8
tmux send-keys -t x "python3 -m verl.trainer.main_ppo trainer.nnodes=$SLURM_NNODES trainer.n_gpus_per_node=\\
$SLURM_GPUS_PER_TASK" C-m
"""
    assert _launch(tmp_path, text).reading.value("loop.gpus") == 16


@pytest.mark.parametrize(
    "code",
    [
        'PyTorch(hyperparameters={"actor_rollout_ref.rollout.n": 6, "trainer.n_gpus_per_node": 2})',
        'client.submit_job(entrypoint="python -m verl.trainer.main_ppo actor_rollout_ref.rollout.n=6")',
        'task = sky.Task(run=f"python -m verl.trainer.main_ppo actor_rollout_ref.rollout.n={3 + 3}")',
    ],
)
def test_what_a_job_hands_on_in_python_is_read(tmp_path: Path, code: str) -> None:
    """SageMaker's hyperparameters, and the commands of Ray's, Azure's and SkyPilot's jobs."""
    assert _launch(tmp_path, code, "job.py").reading.value("loop.group_size") == 6


@pytest.mark.parametrize(
    ("name", "text", "gpu"),
    [
        ("x.sh", f"# on p4de.24xlarge\n{VERL}", "a100-80-sxm"),
        ("x.ipynb", json.dumps({"cells": [], "metadata": {"gpuType": "T4"}}), "t4"),
    ],
)
def test_a_machine_of_a_cloud_names_its_gpu(tmp_path: Path, name: str, text: str, gpu: str) -> None:
    """And so does a notebook of Colab."""
    if name.endswith("ipynb"):
        cell = {"cell_type": "code", "source": ["GRPOConfig(num_generations=4, beta=0)"]}
        text = json.dumps({**json.loads(text), "cells": [cell]})
    launch = _launch(tmp_path, text, name)
    assert scenario_of_launch(launch, CATALOGUE)[0].data["cluster"]["gpu"] == gpu


def test_recipes_of_verl_are_read_as_they_train(tmp_path: Path) -> None:
    """SPPO and SPIN have no critic, SPIN a reference, PRIME a reward model, and batches that it cuts."""
    sppo, spin, prime = (
        _launch(tmp_path, f"python3 -m recipe.{name}.main_{name} trainer.nnodes=1 {more}")
        for name, more in (("sppo", ""), ("spin", ""), ("prime", "data.oversample_factor=4"))
    )
    assert [one.reading.value("loop.critic") for one in (sppo, spin)] == [False, False]
    assert [one.reading.value("loop.reference") for one in (sppo, spin)] == [False, True]
    assert prime.reading.value("loop.kept_fraction") == 0.25
    assert any("A reward model" in one for one in doubts(prime))
    assert not any("A reward model" in one for one in doubts(sppo))


@pytest.mark.parametrize(
    ("keys", "said"),
    [("trainer.device=npu", "NPUs"), ("reward_model.enable=True", "reward model"), ("trainer.device=cuda", "")],
)
def test_what_a_launch_does_and_is_not_counted_is_told(tmp_path: Path, keys: str, said: str) -> None:
    """By the framework's own expressions."""
    told = [*_launch(tmp_path, VERL + keys).reading.uncounted()]
    assert len(told) == bool(said)
    assert all(said in one for one in told)


def test_gradients_of_megatron_leave_with_its_weights(tmp_path: Path) -> None:
    """In verl and ms-swift, whatever verl's grad_offload says: their code frees both buffers."""
    megatron = "actor_rollout_ref.actor.strategy=megatron actor_rollout_ref.actor.megatron."
    for keys, moved in (("param_offload=True", ("params", "gradients")), ("grad_offload=True", ())):
        assert _launch(tmp_path, VERL + megatron + keys).reading.value("loop.offloaded_between") == moved
    swift = "swift rlhf --rlhf_type grpo --model a/b --offload_model true --vllm_mode colocate --use_vllm true"
    commands = (f"megatron{swift[5:]}", swift)
    told = [_launch(tmp_path, command).reading.value("loop.offloaded_between") for command in commands]
    assert told == [("params", "gradients"), ("params",)]


def test_the_longest_sample_of_skyrls_agent_is_its_context(tmp_path: Path) -> None:
    """What it reads between turns counts; it was taken to end with one turn's answer."""
    text = (
        "uv run -m skyrl_train.entrypoints.main_base generator.n_samples_per_prompt=5 trainer.max_prompt_length=6000 "
        "generator.max_input_length=29000 generator.sampling_params.max_generate_length=3000 generator.max_turns="
    )
    agent, single = _launch(tmp_path, f"{text}6").reading, _launch(tmp_path, f"{text}1").reading
    assert [one.value("loop.max_response_tokens") for one in (agent, single)] == [26000, 3000]
    asked = changes(agent, {"max_response_tokens": 20000})
    assert agent.changed(asked.keys).value("loop.max_response_tokens") == 20000
    assert asked.keys == {"generator.max_input_length": 23000}


def test_areal_before_its_launchers_is_read(tmp_path: Path) -> None:
    """Its keys had other names, and tensors the letter m."""
    text = (
        "python3 training/main_async_ppo.py n_nodes=24 n_gpus_per_node=8 allocation_mode=sglang.d144p1m1+d12p2m2 "
        "dataset.train_bs_n_seqs=512 group_size=16 ppo.gen.max_new_tokens=30720 max_head_offpolicyness=4"
    )
    reading = _launch(tmp_path, text).reading
    keys = ("gpus", "trainer_gpus", "tensor_parallel", "trainer_backend", "prompts_per_step", "group_size")
    assert [reading.value(f"loop.{key}") for key in keys] == [192, 48, 2, "megatron", 512, 16]
    assert [reading.value(f"loop.{key}") for key in ("max_response_tokens", "max_staleness")] == [30720, 4]


def test_easyr1_has_a_reference_unless_kl_is_off(tmp_path: Path) -> None:
    """By its own key."""
    text = "python3 -m verl.trainer.main worker.rollout.n=5 algorithm.disable_kl="
    assert [_launch(tmp_path, text + said).reading.value("loop.reference") for said in ("true", "false")] == [
        False,
        True,
    ]


def test_a_new_key_has_no_name_that_its_program_lacks(tmp_path: Path) -> None:
    """Beside an older name (`torch_dtype`), TRL's recomputing was written by the one of newer libraries."""
    text = "accelerate launch --num_processes 8 -m trl.scripts.grpo --model_name_or_path a/b --torch_dtype bfloat16"
    reading = _launch(tmp_path, f"{text} --use_peft --num_generations 8").reading
    names = ("gradient_checkpointing", "lora_r", "vllm_gpu_memory_utilization")
    assert [spelled(reading, key) for key in names] == [*names]


def test_shards_of_pipelinerl_are_those_of_deepspeeds_third_stage() -> None:
    """They were read as plain data parallelism, and a plan for them gave GPUs of the trainer away."""
    text = "python -m pipelinerl.launch world.actor_fraction=8 world.finetune_fraction=8 attempts=16 deepspeed_config="
    for stage, shards, ranks in (("deepspeed_stage3_bf16", 8, None), ("deepspeed_stage1_bf16", None, 8)):
        reading = read_launch("-", KNOWN, text=text + stage, given={"gpus": 16}).reading
        assert [reading.value(f"loop.{key}") for key in ("fsdp", "data_parallel")] == [shards, ranks]


def test_variables_of_a_file_that_is_printed_into_export_are_read(tmp_path: Path) -> None:
    """`export $(grep -v '^#' .env | xargs)`, and `$(cat FILE)`: of files beside the script alone."""
    (tmp_path / ".env").write_text("# sizes\nN=8\nTP=2\n", encoding="utf-8")
    (tmp_path / "model.txt").write_text("Qwen/Qwen3-8B\n", encoding="utf-8")
    rollout = "actor_rollout_ref.rollout."
    text = (
        f"export $(grep -v '^#' .env | xargs)\n{VERL} {rollout}n=$N {rollout}tensor_model_parallel_size=$TP "
        "actor_rollout_ref.model.path=$(cat model.txt) data.seed=$(cat /etc/hostname)\n"
    )
    reading = _launch(tmp_path, text).reading
    asked = [reading.value(f"loop.{key}") for key in ("group_size", "rollout_tensor_parallel", "model")]
    assert asked == [8, 2, "Qwen/Qwen3-8B"]
    assert reading.settings["data.seed"].unknown


def test_a_sum_within_a_text_of_python_is_a_number(tmp_path: Path) -> None:
    """`f"{512 + 1024}"` was read as 5121024."""
    code = 'import os\nA = 512\nos.system(f"python -m verl.trainer.main_ppo data.max_response_length={A + 1024}")\n'
    assert _launch(tmp_path, code, "x.py").reading.value("loop.max_response_tokens") == 1536


def test_objects_that_a_log_prints_side_by_side_are_read_together(tmp_path: Path) -> None:
    """TRL's programs print what trains, and which model."""
    log = "INFO args: GRPOConfig(\nnum_generations=8,\nuse_vllm=True,\nvllm_mode=colocate,\nbeta=0.0,\n)\n"
    log += "ModelConfig(model_name_or_path='Qwen/Qwen3-8B', use_peft=False)\n{'loss': 0.1}\n"
    reading = _launch(tmp_path, log, "log.txt").reading
    assert [reading.value(f"loop.{key}") for key in ("model", "group_size")] == ["Qwen/Qwen3-8B", 8]


def test_options_of_a_recipe_that_goes_on_keep_their_dashes(tmp_path: Path) -> None:
    """What make does not echo begins with a sign; `--num_generations` at the begin of a line is no such command."""
    text = "train:\n\t-@swift rlhf --rlhf_type grpo --model a/b \\\n\t  --num_generations 16 \\\n\t  --use_vllm true\n"
    reading = _launch(tmp_path, text, "Makefile").reading
    assert [reading.value(f"loop.{key}") for key in ("group_size", "model")] == [16, "a/b"]


def test_gpus_that_a_critic_has_beside_shared_ones_are_not_the_trainers(tmp_path: Path) -> None:
    """Slime's critic has its own; its launch was refused, as a layout that does not fill them."""
    text = (
        "python3 train.py --colocate --actor-num-nodes 1 --actor-num-gpus-per-node 4 --critic-num-gpus-per-node 4 "
        "--advantage-estimator ppo --rollout-batch-size 32 --hf-checkpoint Qwen/Qwen3-4B"
    )
    launch = _launch(tmp_path, text)
    data = scenario_of_launch(launch, CATALOGUE)[0].data
    assert (launch.reading.value("loop.gpus"), data["placement"]["trainer_gpus"]) == (8, 4)
    assert "gpus" not in data["cluster"]


def test_a_sync_by_files_is_read_and_written(tmp_path: Path) -> None:
    """AReaL has it for LoRA; a plan of such a launch was refused, as its keys said nothing."""
    text = (
        "actor: {path: a/b, weight_update_mode: disk}\nallocation_mode: 'sglang:d2+fsdp:d2'\ngconfig: {n_samples: 4}\n"
    )
    reading = _launch(tmp_path, text, "x.yaml").reading
    assert reading.value("loop.transport") == "store"
    assert not changes(reading, {"transport": "store"}).refused


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("slack.txt", "it dies here:\nme@n1:~$ python3 -m verl.trainer.main_ppo \\\n>   {0} \\\n>   {1}\n"),
        ("mail.md", "```\n> python3 -m verl.trainer.main_ppo \\\n>   {0} {1}\n```\n"),
        ("Dockerfile", 'FROM a/b\nENV N=7\nCMD ["python3", "-m", "verl.trainer.main_ppo", \\\n "{0}", "{1}"]\n'),
        ("train.Dockerfile", "FROM a/b\nENV N=7\nENTRYPOINT python3 -m verl.trainer.main_ppo {0} {1}\n"),
        ("overrides.yaml", "# of a run\n- algorithm.adv_estimator=grpo\n- {0}\n- {1}\n"),
        ("srun.sh", "srun --export=ALL,N={0} bash -c 'python3 -m verl.trainer.main_ppo {1} $N'\n"),
        ("workflow.yaml", WORKFLOW),
        (
            "config.yaml",
            "data: {{value: {{train_batch_size: 64}}}}\nactor_rollout_ref: {{value: {{rollout: {{n: 7}}}}}}\n",
        ),
    ],
)
def test_what_holds_a_launch_changes_nothing_of_it(tmp_path: Path, name: str, text: str) -> None:
    """Pastes with prompts, images, Hydra's overrides, srun's variables, workflows, what Weights & Biases keeps."""
    launch = _launch(tmp_path, text.format("actor_rollout_ref.rollout.n=7", "data.train_batch_size=64"), name)
    assert [launch.reading.value(f"loop.{key}") for key in ("group_size", "prompts_per_step")] == [7, 64]
    untold = [one.key for one in launch.reading.settings.values() if one.unknown]
    assert untold == (["data.seed"] if name == "workflow.yaml" else [])


def test_a_parameter_among_the_words_of_a_list_is_filled_in(tmp_path: Path) -> None:
    """Argo's, and what nobody tells stays unknown."""
    command = [
        "python3",
        "-m",
        "verl.trainer.main_ppo",
        "data.train_batch_size={{inputs.parameters.n}}",
        "a.b={{item}}",
    ]
    text = json.dumps({"parameters": [{"name": "n", "value": 64}], "container": {"command": command}})
    reading = _launch(tmp_path, text, "x.yaml").reading
    assert (reading.value("loop.prompts_per_step"), reading.settings["a.b"].unknown) == (64, "item")


def test_output_that_a_script_sends_to_a_file_is_no_quotation(tmp_path: Path) -> None:
    """A redirection at the margin is none of the marks of a prompt."""
    launch = _launch(tmp_path, VERL + "data.train_batch_size=64 \\\n> python.log 2>&1\n")
    assert launch.reading.value("loop.prompts_per_step") == 64


def test_ranks_of_torchx_are_nodes_and_processes(tmp_path: Path) -> None:
    """`-j 2x8`: the launch had no number of GPUs."""
    text = "torchx run dist.ddp -j 2x8 --script train_grpo.py -- --model_name_or_path a/b --num_generations 8\n"
    reading = _launch(tmp_path, text).reading
    assert [reading.value(f"loop.{key}") for key in ("gpus", "gpus_per_node")] == [16, 8]


def test_ranks_that_nobody_tells_are_not_those_of_a_file(tmp_path: Path) -> None:
    """A file named zero3 stands for eight processes, unless the launch says another number that is not known."""
    flags = "train_grpo.py --num_generations 8 --use_vllm true --vllm_mode colocate"
    known = _launch(tmp_path, f"accelerate launch --config_file zero3.yaml {flags}").reading
    untold = _launch(tmp_path, f"accelerate launch --config_file zero3.yaml --num_processes $N {flags}").reading
    assert [one.value("loop.gpus") for one in (known, untold)] == [8, None]


def test_a_file_beside_a_script_is_there(tmp_path: Path) -> None:
    """open-r1's script looks into the recipe whether a node is to be the engines'."""
    (tmp_path / "recipe.yaml").write_text("# a/b\nuse_vllm: true\nnum_generations: 4\n", encoding="utf-8")
    text = (
        "N=16; if [[ -f recipe.yaml ]] && grep -qE '^\\s*use_vllm:\\s*{}' recipe.yaml; then N=8; fi\n"
        "accelerate launch --num_processes $N src/open_r1/grpo.py --config recipe.yaml\n"
    )
    found = [_launch(tmp_path, text.format(word)).reading.value("loop.trainer_gpus") for word in ("true", "false")]
    assert found == [8, 16]


def test_the_trainer_of_prime_rl_by_its_path_is_its_own(tmp_path: Path) -> None:
    """`*/train.py` is of others too, whose defaults stood in: no GPUs at all."""
    (tmp_path / "t.toml").write_text('[model]\nname = "a/b"\nseq_len = 4096\n', encoding="utf-8")
    text = "uv run inference @ t.toml\nuv run torchrun --nproc-per-node 2 src/prime_rl/trainer/rl/train.py @ t.toml\n"
    launch = _launch(tmp_path, text)
    assert launch.framework.name == "prime-rl"
    assert launch.reading.value("trainer.model.name") == "a/b"


def test_easyr1_without_its_configuration_has_its_lengths(tmp_path: Path) -> None:
    """They were verl's; where another file is missing, none are taken."""
    text = "python3 -m verl.trainer.main config={} worker.actor.model.model_path=a/b trainer.n_gpus_per_node=8\n"
    own, other = (_launch(tmp_path, text.format(name)).reading for name in ("examples/config.yaml", "mine.yaml"))
    keys = ("prompts_per_step", "group_size", "max_prompt_tokens", "max_response_tokens", "offload_params")
    assert [own.value(f"loop.{key}") for key in keys] == [512, 5, 2048, 2048, True]
    assert [other.value(f"loop.{key}") for key in keys] == [None] * len(keys)


def test_what_only_older_engines_needed_dates_verl(tmp_path: Path) -> None:
    """Before 0.4 verl has a reference whatever its keys say, as TinyZero does."""
    readings = [_launch(tmp_path, before + VERL).reading for before in ("VLLM_ATTENTION_BACKEND=XFORMERS ", "")]
    assert [one.value("loop.reference") for one in readings] == [True, False]


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ("actor_rollout_ref.actor.ppo_micro_batch_size=2", True),
        ("actor_rollout_ref.actor.ppo_micro_batch_size=2 actor_rollout_ref.actor.use_dynamic_bsz=True", False),
        ("actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2", False),
    ],
)
def test_a_micro_batch_of_less_than_a_sample_is_told(tmp_path: Path, keys: str, told: bool) -> None:
    """Over 16 GPUs verl has none; forks that count it for each GPU say so nowhere."""
    assert any("less than a sample" in one for one in doubts(_launch(tmp_path, VERL + keys))) is told


def test_checkpoints_that_unsloth_moves_are_on_the_host(tmp_path: Path) -> None:
    """`use_gradient_checkpointing="unsloth"` was full recomputation alone, so that a T4 had no room by 2 %."""
    text = "from unsloth import FastModel\nm = FastModel.from_pretrained('a/b')\n"
    text += "m = FastModel.get_peft_model(m, r=4, use_gradient_checkpointing={})\ng = GRPOConfig(num_generations=4)\n"
    said = [_launch(tmp_path, text.format(word), "x.py").reading for word in ("'unsloth'", "True")]
    assert [one.value("loop.activation_offload") for one in said] == [True, False]


def test_the_name_of_a_missing_deepspeed_file_tells_of_offload(tmp_path: Path) -> None:
    """Its stage was read from the name, and its offload was not."""
    text = "torchrun --nproc_per_node 8 src/open_r1/grpo.py --num_generations 8 --deepspeed conf/{}.json\n"
    said = [_launch(tmp_path, text.format(name)).reading for name in ("zero3_offload", "zero2_offload", "zero3")]
    keys = ("zero_stage", "offload", "params_on_cpu")
    assert [[one.value(f"loop.{key}") for key in keys] for one in said] == [
        [3, True, True],
        [2, True, False],
        [3, False, False],
    ]


def test_share_on_the_host_of_fsdp_is_not_megatrons(tmp_path: Path) -> None:
    """FSDP2's policy was told as an optimizer of which 0 % live on the host."""
    keys = "actor_rollout_ref.actor.strategy=fsdp2 actor_rollout_ref.actor.fsdp_config.offload_policy=True"
    assert not any("live on the host" in one for one in doubts(_launch(tmp_path, VERL + keys)))


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("run.sh", "python3 train_async.py --actor-num-nodes 1 --rollout-batch-size 8 --loss-type sft_loss", "sft"),
        ("x.yaml", "model: {partial_pretrain: a/b}\ndata: {train_batch_size: 8}\ntrainer: {n_gpus_per_node: 8}", "sft"),
        ("sft.toml", '[data]\ntype = "sft"\nseq_len = 4096', "sft"),
        ("run.sh", "python examples/start_dpo_pipeline.py --config_path x --config_name y", "start_dpo_pipeline"),
        ("x.yaml", "allocation_mode: d8\ntrain_dataset: {type: sft, batch_size: 8}\ncluster: {n_nodes: 1}", "sft"),
        ("x.yaml", "dpo: {max_num_steps: 9}\npolicy: {model_name: a/b}\ncluster: {num_nodes: 1}", "dpo"),
        ("x.yaml", "model_name_or_path: a/b\nper_device_train_batch_size: 8\npacking: true", "sft"),
        ("run.sh", "uv run -m skyrl.train.entrypoints.main_sft model.path=a/b data.batch_size=8", "main_sft"),
        ("x.yaml", "distillation: {num_prompts_per_step: 8}\npolicy: {model_name: a/b}", "distillation"),
        ("run.sh", "swift rlhf --rlhf_type gkd --model a/b --use_vllm true --num_generations 8", "distillation"),
        ("run.sh", VERL + "trainer.val_only=True actor_rollout_ref.rollout.n=4", "validation"),
    ],
)
def test_training_that_is_no_loop_is_no_loop_with_defaults(tmp_path: Path, name: str, text: str, says: str) -> None:
    """Each was one, of groups and lengths that a framework sets by default."""
    with pytest.raises(InputError, match=f"{says}.*: (nothing is|a teacher)"):
        _launch(tmp_path, text, name)


def test_of_runs_one_after_the_other_none_has_keys_of_another(tmp_path: Path) -> None:
    """A second stage had the first's reference; the one that says most counts, of equal ones the last."""
    stages = "actor_rollout_ref.actor.use_kl_loss=True data.train_batch_size=64", "data.train_batch_size=128 a.b=1"
    launch = _launch(tmp_path, "".join(f"{VERL} {stage}\n" for stage in stages))
    assert [launch.reading.value(f"loop.{key}") for key in ("reference", "prompts_per_step")] == [True, 64]
    launch = _launch(tmp_path, "".join(f"{VERL} actor_rollout_ref.rollout.n=4 {stage}\n" for stage in stages[::-1]))
    assert [launch.reading.value(f"loop.{key}") for key in ("reference", "prompts_per_step")] == [True, 64]
    assert any("of 2 commands that start verl this one is read" in note for note in launch.notes)
    equal = _launch(tmp_path, f"{VERL} data.train_batch_size=8\n{VERL} data.train_batch_size=16\n").reading
    assert equal.value("loop.prompts_per_step") == 16
    again = _launch(tmp_path, f"{VERL} actor_rollout_ref.rollout.n=4\n" * 2)
    assert not any("commands that start" in note for note in again.notes)


def test_an_element_by_its_word_is_a_number(tmp_path: Path) -> None:
    """`$((CFG[bs] / 2))` of an associative array was not known."""
    text = f"declare -A CFG=([bs]=128)\nA=(3 5); i=1\n{VERL} data.train_batch_size=$((CFG[bs] / 2 + A[i]))\n"
    assert _launch(tmp_path, text).reading.value("loop.prompts_per_step") == 69


def test_a_command_that_python_adds_up_as_a_text_is_read(tmp_path: Path) -> None:
    """`"python ..." + " ".join(f"--{k} {shlex.quote(str(v))}" ...)` was no launch at all."""
    code = (
        "import os, shlex\nargs = {'rollout.batch_size': 64, 'rollout.n_samples_per_prompt': 4}\nflags = ['ds.x']\n"
        'os.system("python -m openrlhf.cli.train_ppo_ray " + " ".join(f"--{k} {shlex.quote(str(v))}" '
        'for k, v in args.items()) + " " + " ".join("--" + f for f in flags))\n'
    )
    reading = _launch(tmp_path, code, "x.py").reading
    assert [reading.value(f"loop.{key}") for key in ("prompts_per_step", "group_size")] == [64, 4]
    assert reading.value("ds.x") is True


def test_a_model_that_unsloth_is_handed_by_its_place_is_the_model(tmp_path: Path) -> None:
    """Without its name it was none of Unsloth's, whose engine shares the trainer's weights."""
    code = "from unsloth import FastLanguageModel\nm = FastLanguageModel.from_pretrained('a/b', fast_inference=True)\n"
    reading = _launch(tmp_path, code + "GRPOConfig(use_vllm=True, num_generations=4)\n", "x.py").reading
    asked = [reading.value(f"loop.{key}") for key in ("model", "mode", "shares_weights")]
    assert asked == ["a/b", "colocated", True]


def test_files_that_a_manifest_holds_are_those_that_its_command_names(tmp_path: Path) -> None:
    """A ConfigMap's recipe was missing, and TRL's lengths stood in."""
    text = (
        "kind: ConfigMap\ndata:\n  grpo.yaml: |\n    num_generations: 16\n    max_completion_length: 2048\n---\n"
        "spec: {containers: [{command: [accelerate, launch, --num_processes, '8', -m, trl.scripts.grpo, --config, "
        "/cfg/grpo.yaml]}]}\n"
    )
    launch = _launch(tmp_path, text, "job.yaml")
    asked = [launch.reading.value(f"loop.{key}") for key in ("group_size", "max_response_tokens", "trainer_gpus")]
    assert (asked, launch.gaps) == ([16, 2048, 8], ())


def test_a_script_that_slurm_is_handed_has_what_the_command_says(tmp_path: Path) -> None:
    """Its variables and its nodes, which go before those of the script's own headers."""
    inner = "#!/bin/bash\n#SBATCH --nodes=2 --gpus-per-node=4\npython3 -m verl.trainer.main_ppo "
    inner += (
        "data.train_batch_size=${BSZ:-128} trainer.nnodes=$SLURM_NNODES trainer.n_gpus_per_node=$SLURM_GPUS_ON_NODE"
    )
    (tmp_path / "train.slurm").write_text(inner, encoding="utf-8")
    reading = _launch(tmp_path, "sbatch -N 4 --export=ALL,BSZ=512 train.slurm\n").reading
    assert [reading.value(f"loop.{key}") for key in ("prompts_per_step", "trainer_gpus")] == [512, 16]


def test_names_that_python_assigns_side_by_side_are_known(tmp_path: Path) -> None:
    """`A, B = 1, 2`; what a call gives stays unknown."""
    code = "import os\nN, BSZ = 4, 64\nT, M = f()\n"
    code += 'os.system(f"python -m verl.trainer.main_ppo trainer.nnodes={N} data.train_batch_size={BSZ} data.x={T}")\n'
    reading = _launch(tmp_path, code, "x.py").reading
    assert [reading.value(f"loop.{key}") for key in ("trainer_gpus", "prompts_per_step")] == [32, 64]
    assert reading.settings["data.x"].unknown


@pytest.mark.parametrize(
    "cell",
    [
        [
            "N = 8\n",
            "!python3 -m verl.trainer.main_ppo \\\n",
            "  actor_rollout_ref.rollout.n={N} \\\n",
            "  a.b={0}\n",
            "x = 1",
        ],
        ["%%bash\n", "N=8\n", "python3 -m verl.trainer.main_ppo actor_rollout_ref.rollout.n=$N\n"],
        ["if True:\n", "    !ray job submit -- python3 -m verl.trainer.main_ppo actor_rollout_ref.rollout.n=8"],
        ["!echo '{\"a\": 1}' && python3 -m verl.trainer.main_ppo actor_rollout_ref.rollout.n=8"],
    ],
)
def test_commands_in_cells_of_a_notebook_are_launches(tmp_path: Path, cell: list[str]) -> None:
    """One over several lines was no valid Python."""
    cells = [{"cell_type": "code", "source": ["!pip install \\\n", "  verl"]}, {"cell_type": "code", "source": cell}]
    launch = _launch(tmp_path, json.dumps({"cells": cells}, indent=1), "x.ipynb")
    assert (launch.framework.name, launch.reading.value("loop.group_size")) == ("verl", 8)


def test_a_module_names_its_framework_before_keys_of_others(tmp_path: Path) -> None:
    """`apps.grpo.main` is torchforge's, and was AReaL's on no GPU at all where its file is missing."""
    launch = _launch(tmp_path, "python -m apps.grpo.main --config x.yaml group_size=8 trainer.training.steps=1")
    assert launch.framework.name == "torchforge"
    areal = _launch(tmp_path, "python3 -m areal.launcher.ray x.py --config x.yaml gconfig.n_samples=8").reading
    assert [areal.value(f"loop.{key}") for key in ("trainer_gpus", "rollout_gpus", "group_size")] == [None, None, 8]


def test_a_file_of_ranks_alone_is_told(tmp_path: Path) -> None:
    """What accelerate is given says no batch, and TRL's defaults are nobody's."""
    text = "distributed_type: FSDP\nnum_processes: 16\nfsdp_config: {fsdp_version: 2}\n"
    assert any("ranks alone" in one for one in doubts(_launch(tmp_path, text, "fsdp.yaml")))
    more = text + "model_name_or_path: a/b\nnum_generations: 8\n"
    assert not any("ranks alone" in one for one in doubts(_launch(tmp_path, more, "more.yaml")))


def test_a_mapping_that_python_makes_of_others_is_read(tmp_path: Path) -> None:
    """Of `dict(**{...}, a=1)` and `{...} | more` only later keys were, and defaults stood silently for the rest."""
    code = (
        "import subprocess\nmore = {'data.train_batch_size': 64}\n"
        "said = dict(**{'actor_rollout_ref.rollout.n': 8}, seed=1) | more\nsaid['trainer.nnodes'] = 2\n"
        "subprocess.run(['python3', '-m', 'verl.trainer.main_ppo'] + [f'{k}={v}' for k, v in said.items()])\n"
    )
    launch = _launch(tmp_path, code, "x.py")
    asked = [launch.reading.value(f"loop.{key}") for key in ("group_size", "prompts_per_step", "trainer_gpus")]
    assert (asked, launch.gaps) == ([8, 64, 16], ())


@pytest.mark.parametrize(
    "command",
    ["[*COMMAND, *[f'{k}={v}' for k, v in load('x').items()]]", "COMMAND + made(1)", "[*COMMAND, *made(1)]"],
)
def test_a_part_of_a_command_that_only_a_run_would_tell_is_named(tmp_path: Path, command: str) -> None:
    """Keys of a file that Python reads were left out, and nothing said so."""
    code = f"import subprocess\nCOMMAND = {[*VERL.split()]}\nsubprocess.run({command})\n"
    assert len(_launch(tmp_path, code, "x.py").gaps) == 1


@pytest.mark.parametrize(
    "text",
    [
        'if [ "$RANK" = "0" ]; then\n  {}\nelse\n  ray start --address=$HEAD --block\nfi\n',
        "[ $OMPI_COMM_WORLD_RANK -eq 0 ] && {}\n",
        'case "$NODE_RANK" in\n 0) {};;\n 1) ray start --block;;\nesac\n',
    ],
)
def test_a_script_for_all_nodes_is_read_as_the_first_runs_it(tmp_path: Path, text: str) -> None:
    """Only it starts the training, and the script was no launch."""
    reading = _launch(tmp_path, text.format(VERL + "data.train_batch_size=64")).reading
    assert reading.value("loop.prompts_per_step") == 64


def test_a_rank_that_is_loras_stays_unknown(tmp_path: Path) -> None:
    """What starts without the node's rank is read without it."""
    reading = _launch(tmp_path, VERL + "actor_rollout_ref.model.lora_rank=${RANK:-64}").reading
    assert reading.value("loop.lora_rank") == 64


def test_r1_v_counts_prompts(tmp_path: Path) -> None:
    """Its trainer generates a group for each sample of a device, as TRL did before 0.15; it was an eighth of a step."""
    text = "torchrun --nproc_per_node 8 src/open_r1/grpo.py --per_device_train_batch_size 1 --num_generations 8 {}\n"
    said = [_launch(tmp_path, text.format(more)).reading for more in ("--max_pixels 401408", "")]
    assert [(one.value("loop.prompts_per_step"), one.value("loop.micro_batch_samples")) for one in said] == [
        (8, 8),
        (1, 1),
    ]
