"""Configurations are written back with only what changes: YAML, TOML, JSON, Python, scripts inside YAML."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from rlsize.errors import DoesNotFitError
from rlsize.frameworks.told import Reading
from rlsize.readers.frameworks import frameworks
from rlsize.readers.launch.launch import read_launch
from rlsize.readers.profiles import Catalogue
from rlsize.writers.launch.written_back import Written, written_back

NEMO = """\
# recipe
grpo:
  num_prompts_per_step: 32   # prompts
  num_generations_per_prompt: 8

policy:
  model_name: "Qwen/Qwen3-8B"
  generation:
    backend: vllm
    vllm_cfg: {tensor_parallel_size: 2}
cluster:
  num_nodes: 1
  gpus_per_node: 8
"""
PRIME = """\
[trainer.model]
name = "Qwen/Qwen3-8B"

[orchestrator]
batch_size = 128  # rollouts
group_size = 8
[inference.vllm]
tensor_parallel_size = 1
"""
TRL = """\
from trl import GRPOConfig, GRPOTrainer

args = GRPOConfig(
    output_dir="out",  # here
    num_generations=8,
)
trainer = GRPOTrainer(model="Qwen/Qwen3-8B", args=args)
"""
SKY = """\
num_nodes: 2
resources: {accelerators: "H100:8"}
run: |
  set -e
  python3 -m verl.trainer.main_ppo \\
    trainer.nnodes=$SKYPILOT_NUM_NODES \\
    actor_rollout_ref.rollout.n=8
"""
POD = """\
apiVersion: batch/v1
kind: Job
spec:
  template:
    spec:
      containers:
        - name: train
          command: ["python3", "-m", "verl.trainer.main_ppo"]
          args:
            - trainer.nnodes=1
            # group
            - actor_rollout_ref.rollout.n=8
"""


@cache
def known() -> Any:
    """All frameworks."""
    return frameworks(Catalogue())


def back(text: str, name: str, **wanted: Any) -> Written:
    """A file with quantities written into it."""

    def again(changed: str) -> Reading:
        return read_launch(name, known(), text=changed).reading

    return written_back(text.encode(), name, again(text), wanted, again)


def content(text: str, name: str, **wanted: Any) -> str:
    """The file."""
    return back(text, name, **wanted).content.decode()


def test_yaml_keeps_comments_and_order() -> None:
    """A value is replaced as it stands, a new key goes behind its kin, missing parents are made."""
    assert content(NEMO, "x.yaml", prompts_per_step=64) == NEMO.replace("step: 32 ", "step: 64 ")
    assert content(NEMO, "x.yaml", rollout_tensor_parallel=4) == NEMO.replace("size: 2}", "size: 4}")
    assert content(NEMO, "x.yaml", memory_fraction=0.7) == NEMO.replace(
        "size: 2}", "size: 2, gpu_memory_utilization: 0.7}"
    )
    both = content(NEMO, "x.yaml", recompute="full", context_parallel=2)
    assert both == NEMO.replace(
        "cluster:\n", "  dtensor_cfg:\n    activation_checkpointing: true\n    context_parallel_size: 2\ncluster:\n"
    )
    assert content(NEMO, "x.yaml", recompute="full") == NEMO.replace(
        "cluster:\n", "  dtensor_cfg:\n    activation_checkpointing: true\ncluster:\n"
    )


def test_what_a_parent_says_is_overridden_in_the_file(tmp_path: Path) -> None:
    """A parent is never edited."""
    (tmp_path / "base.yaml").write_text(NEMO, encoding="utf-8")
    path = tmp_path / "child.yaml"
    path.write_text("defaults: base.yaml\ngrpo:\n  num_generations_per_prompt: 16\n", encoding="utf-8")

    def again(text: str) -> Reading:
        return read_launch(str(path), known(), text=text).reading

    reading = again(path.read_text(encoding="utf-8"))
    written = written_back(
        path.read_bytes(), str(path), reading, {"prompts_per_step": 64, "memory_fraction": 0.7}, again
    )
    assert yaml.safe_load(written.content) == {
        "defaults": "base.yaml",
        "grpo": {"num_generations_per_prompt": 16, "num_prompts_per_step": 64},
        "policy": {"generation": {"vllm_cfg": {"gpu_memory_utilization": 0.7}}},
    }


def test_what_follows_in_yaml_keeps_its_value() -> None:
    """Only the key that was asked for changes; one that stands for it is written out."""
    text = NEMO.replace("per_prompt: 8\n", "per_prompt: 8\n  val_batch_size: ${grpo.num_prompts_per_step}\n")
    assert content(text, "x.yaml", prompts_per_step=64) == text.replace("step: 32 ", "step: 64 ").replace(
        "${grpo.num_prompts_per_step}", "32"
    )


def test_toml_keeps_comments_and_tables() -> None:
    """A new key goes into its table, a new table to the end."""
    whole = content(PRIME, "x.toml", group_size=16, prompts_per_step=8)
    assert whole == PRIME.replace("group_size = 8", "group_size = 16")
    assert content(PRIME, "x.toml", rollout_tensor_parallel=2) == PRIME.replace(
        "parallel_size = 1", "parallel_size = 2"
    )
    assert content(PRIME, "x.toml", memory_fraction=0.7) == PRIME + "gpu_memory_utilization = 0.7\n"
    assert content(PRIME, "x.toml", trainer_gpus=2, rollout_gpus=4).endswith(
        "\n[deployment]\nnum_train_gpus = 2\nnum_infer_gpus = 4\n"
    )
    assert content(PRIME, "x.toml", max_response_tokens=4096) == (
        PRIME + "\n[orchestrator.train.sampling]\nmax_completion_tokens = 4096\n"
    )


def test_json_keeps_its_layout() -> None:
    """Values, and new keys behind their kin."""
    text = json.dumps(yaml.safe_load(NEMO), indent=2)
    assert content(text, "x.json", prompts_per_step=64) == text.replace('step": 32', 'step": 64')
    written = content(text, "x.json", memory_fraction=0.7)
    assert json.loads(written)["policy"]["generation"]["vllm_cfg"]["gpu_memory_utilization"] == 0.7
    assert written.count("\n") == text.count("\n") + 1


def test_keyword_arguments_of_python() -> None:
    """A value as it stands, a new one on a line of its own."""
    assert content(TRL, "x.py", group_size=16) == TRL.replace("=8,", "=16,")
    assert content(TRL, "x.py", max_response_tokens=4096) == TRL.replace("=8,", "=8,\n    max_completion_length=4096,")


def test_a_new_argument_goes_into_the_call_of_its_kin() -> None:
    """Adapters have a call of their own, and a key that other files have as the others'."""
    text = TRL + "peft = LoraConfig(r=16, lora_alpha=32)\n"
    assert content(text, "x.py", max_response_tokens=4096) == text.replace(
        "=8,", "=8,\n    max_completion_length=4096,"
    )


@pytest.mark.parametrize(
    ("said", "new"),
    [("sglang.d4p1t1+d4p1t1", "sglang.d2p1t1+d4p1t1"), ("sglang:d4+fsdp:d4", "sglang:d2p1t1+fsdp:d4p1t1c1")],
)
def test_an_old_layout_of_areal_stays_an_old_one(said: str, new: str) -> None:
    """Versions that read dots do not know the words of later ones."""
    text = f"allocation_mode: {said}\ngconfig: {{n_samples: 4}}\ntrain_dataset: {{batch_size: 8}}\n"
    written = yaml.safe_load(content(text, "x.yaml", rollout_gpus=2, gpus=6, instances=2))
    assert written["allocation_mode"] == new


def test_what_a_program_sets_in_its_code_is_set_by_no_flag(tmp_path: Path) -> None:
    """Flags were written that the program does not read."""
    (tmp_path / "train.py").write_text(TRL, encoding="utf-8")
    file = tmp_path / "run.sh"
    file.write_text("accelerate launch --num_processes 4 train.py\n", encoding="utf-8")
    known = frameworks(Catalogue())
    launch = read_launch(str(file), known)
    with pytest.raises(DoesNotFitError, match=r"train\.py sets its arguments itself"):
        written_back(file.read_bytes(), str(file), launch.reading, {"group_size": 16}, lambda _: launch.reading)


def test_a_key_that_stands_as_another_one_follows_it() -> None:
    """A reference with the actor's layout keeps the words that say so."""
    text = (
        "rollout: {backend: 'sglang:d4'}\nactor:\n  backend: megatron:d4\n  path: a/b\n  kl_ctl: 0.1\n"
        "ref:\n  backend: ${actor.backend}\ngconfig: {n_samples: 4}\ntrain_dataset: {batch_size: 8}\n"
    )
    written = content(text, "x.yaml", tensor_parallel=2)
    assert "backend: ${actor.backend}" in written
    assert "d2p1t2" in written


def test_a_script_inside_a_job_file_is_edited_where_it_stands() -> None:
    """SkyPilot: nodes change with it; Kubernetes: an argument is an item of its list."""
    written = back(SKY, "x.yaml", gpus=32, group_size=16, memory_fraction=0.7)
    new = "rollout.n=16 \\\n    actor_rollout_ref.rollout.gpu_memory_utilization=0.7"
    after = SKY.replace("num_nodes: 2", "num_nodes: 4").replace("$SKYPILOT_NUM_NODES", "4").replace("rollout.n=8", new)
    assert written.content.decode() == after
    assert content(POD, "x.yaml", group_size=16, memory_fraction=0.7) == POD.replace("rollout.n=8", "rollout.n=16") + (
        "            - actor_rollout_ref.rollout.gpu_memory_utilization=0.7\n"
    )


def test_a_log_has_no_place_to_write_to() -> None:
    """It is refused, with what is to be changed."""
    lines = ["{'actor_rollout_ref': {'rollout': {'n': 8,", "'name': 'vllm'}},", "'data': {'train_batch_size': 64},"]
    lines += ["'algorithm': {'adv_estimator': 'grpo'},", "'trainer': {'n_gpus_per_node': 8, 'nnodes': 1}}"]
    log = "".join(f"(TaskRunner pid=1) {line}\n" for line in lines)
    with pytest.raises(DoesNotFitError, match=r"rollout\.n cannot be set here"):
        back(log, "run.log", group_size=16)


@pytest.mark.long
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_yaml_read_changed_and_read_again_has_exactly_the_change(data: st.DataObject) -> None:
    """Whatever is changed: the rest of the file parses to what it was."""
    said = {
        "prompts_per_step": data.draw(st.sampled_from([None, 32, 64])),
        "group_size": data.draw(st.sampled_from([None, 8, 16])),
        "memory_fraction": data.draw(st.sampled_from([None, 0.4, 0.7])),
        "max_response_tokens": data.draw(st.sampled_from([None, 1024])),
        "rollout_tensor_parallel": data.draw(st.sampled_from([None, 2, 4])),
    }
    wanted = {key: value for key, value in said.items() if value is not None}
    ending = data.draw(st.sampled_from(["\n", "\r\n"]))
    text = NEMO.replace("\n", ending)
    written = content(text, "x.yaml", **wanted)
    told = read_launch("x.yaml", known(), text=written).reading
    assert {key: told.value(f"loop.{key}") for key in wanted} == wanted
    assert written.count("\n") == written.count(ending)
    if not wanted:
        assert written == text


@pytest.mark.parametrize(
    ("config", "after"),
    [
        ("{recompute_granularity: full, a: 1}", "{a: 1}"),
        ("{a: 1, recompute_granularity: full}", "{a: 1}"),
        ("{a: 1, recompute_granularity: full, b: 2}", "{a: 1, b: 2}"),
    ],
)
def test_a_key_goes_from_between_braces_with_its_comma(config: str, after: str) -> None:
    """And nothing else of the mapping does."""
    text = (
        "rollout_batch_size: 64\nnum_return_sequences_in_group: 8\nactor_train:\n  device_mapping: list(range(0,8))\n"
        f"  strategy_args: {{strategy_name: megatron_train, strategy_config: {config}}}\n"
        "actor_infer: {device_mapping: 'list(range(0,8))', strategy_args: {strategy_name: vllm}}\n"
    )
    written = back(text, "roll.yaml", recompute="none").content.decode()
    assert written == text.replace(config, after)


LISTED = """\
import os, subprocess
tp = 4
cmd = ["swift", "rlhf", "--rlhf_type", "grpo", "--model", "Qwen/Qwen3-8B", "--use_vllm", "true"]
cmd += [
    "--vllm_mode", "colocate",  # on the same GPUs
    "--vllm_tensor_parallel_size", str(tp),
    '--num_generations', '8',
]
cmd.extend(["--per_device_train_batch_size=2", f"--max_completion_length={2 * 1024}"])
subprocess.run(cmd, env={**os.environ, "NPROC_PER_NODE": "8"})
"""
FLOW = """\
spec:
  containers:
    - name: t
      env: [{name: NPROC_PER_NODE, value: "8"}]
      command: [swift, rlhf]
      args: ["--rlhf_type", "grpo", "--vllm_mode", "colocate", '--use_vllm', 'true',  # grpo
             "--model", "Qwen/Qwen3-8B", "--num_generations", "8", "--deepspeed=zero3"]
"""
ROWS = """\
spec:
  containers:
    - name: t
      command: [swift, rlhf]
      args:
        - --rlhf_type
        - grpo
        - --use_vllm
        - "true"
        - --num_generations
        - "8"  # of each prompt
        - --model=Qwen/Qwen3-8B
      env:
        - name: NPROC_PER_NODE
          value: "8"
"""


@pytest.mark.parametrize(
    ("text", "name", "wanted", "old", "new"),
    [
        (LISTED, "x.py", {"group_size": 16}, "'--num_generations', '8'", "'--num_generations', '16'"),
        (LISTED, "x.py", {"rollout_tensor_parallel": 2}, "str(tp)", '"2"'),
        (LISTED, "x.py", {"max_response_tokens": 4096}, "{2 * 1024}", "4096"),
        (LISTED, "x.py", {"memory_fraction": 0.5}, "str(tp),", 'str(tp),\n    "--vllm_gpu_memory_utilization", "0.5",'),
        (LISTED, "x.py", {"trainer_gpus": 4}, '"NPROC_PER_NODE": "8"', '"NPROC_PER_NODE": "4"'),
        (FLOW, "x.yaml", {"group_size": 16}, '"8", "--deep', '"16", "--deep'),
        (FLOW, "x.yaml", {"zero_stage": 2}, "=zero3", "=zero2"),
        (FLOW, "x.yaml", {"engine_sleep_level": 1}, '"8", "--deep', '"8", "--sleep_level", "1", "--deep'),
        (FLOW, "x.yaml", {"trainer_gpus": 4}, 'value: "8"', 'value: "4"'),
        (ROWS, "x.yaml", {"group_size": 16}, '- "8"  # of', '- "16"  # of'),
        (ROWS, "x.yaml", {"rollout_tensor_parallel": 2}, "x", "x"),
    ],
)  # fmt: skip
def test_a_command_that_is_a_list_is_edited_item_by_item(
    text: str, name: str, wanted: dict[str, Any], old: str, new: str
) -> None:
    """Items are replaced whole or behind their `=`, and new ones stand behind their kin as these stand."""
    if old == new:
        new_rows = '        - --vllm_tensor_parallel_size\n        - "2"\n'
        assert content(text, name, **wanted).replace(new_rows, "") == text
        return
    assert text.count(old) == 1
    assert content(text, name, **wanted) == text.replace(old, new)


def test_a_word_that_a_loop_makes_is_set_behind_it_or_told_with_its_line() -> None:
    """The last word counts; where none can stand behind it, it is changed by hand."""
    loop = 'more = {"beta": 0.1}\ncmd += [f"--{k}={v}" for k, v in more.items()]\n'
    before, after = (
        LISTED.replace("cmd.extend", f"{loop}cmd.extend"),
        LISTED.replace("subprocess.run", f"{loop}subprocess.run"),
    )
    assert content(before, "x.py", reference=False) == before.replace('1024}"', '1024}", "--beta=0"')
    with pytest.raises(DoesNotFitError, match=r"x\.py:11: beta is worked out here from what stands elsewhere"):
        content(after, "x.py", reference=False)


def test_a_command_whose_words_a_loop_makes_takes_new_ones_behind_its_program() -> None:
    """They were put behind a backslash, as in a script, and refused as what cannot be set here."""
    text = (
        'import subprocess\nsaid = {"algorithm.adv_estimator": "grpo", "actor_rollout_ref.rollout.n": 8}\n'
        'subprocess.run(["python", "-m", "verl.trainer.main_ppo", *[f"{k}={v}" for k, v in said.items()]])\n'
    )
    new = 'main_ppo", "actor_rollout_ref.rollout.tensor_model_parallel_size=4",'
    assert content(text, "x.py", rollout_tensor_parallel=4) == text.replace('main_ppo",', new)


def test_the_batch_that_torchforge_fetches_for_a_rank_follows_what_the_rank_trains() -> None:
    """`${local_batch_size}` was replaced by what it had been: ranks would have been handed more than they train."""
    text = (
        "model: Qwen/Qwen3-8B\nlocal_batch_size: 12\ngroup_size: 8\noff_by_n: 1\nmax_req_tokens: 512\n"
        "max_res_tokens: 512\nservices: {policy: {procs: 1, num_replicas: 2}}\nactors: {trainer: {procs: 2}}\n"
        "replay_buffer: {batch_size: '${local_batch_size}', max_policy_age: 1, dp_size: 2}\n"
    )
    wanted = {"trainer_gpus": 8, "prompts_per_step": 3, "group_size": 8}
    assert content(text, "x.yaml", **wanted) == (
        text.replace("size: 12", "size: 3")
        .replace("trainer: {procs: 2}", "trainer: {procs: 8}")
        .replace("e: 2}\n", "e: 8}\n")
    )
