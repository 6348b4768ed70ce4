"""`rlsize snippet`: a framework's own keys for the split of a plan, a scenario or flags."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import tries

Run = Callable[..., Any]
SCENARIO = """\
rlsize: {kind: scenario, version: 1}
model: qwen3-32b
cluster: {gpu: h100-sxm, gpus: 32}
algorithm: {reference: false}
workload: {prompts_per_step: 64, group_size: 8}
placement: {mode: async, max_staleness: 2, rollout_gpus: 16, trainer_gpus: 16}
rollout: {engine: vllm, tensor_parallel: 2, memory_fraction: 0.85}
trainer: {parallelism: {tensor: 2}}
"""
SHARED = """\
rlsize: {kind: scenario, version: 1}
model: qwen2.5-7b
cluster: {gpu: h100-sxm, gpus: 8}
workload: {prompts_per_step: 64, group_size: 8, prompt_tokens: 300, response_tokens: {mean: 1000, max: 4096}}
placement: {mode: colocated}
rollout: {tensor_parallel: 2}
trainer: {parallelism: {tensor: 2}}
"""
FLAGS = {
    "--mode": "async", "--instances": "8", "--rollout-tensor-parallel": "2", "--trainer-gpus": "16",
    "--gpus-per-node": "8", "--max-staleness": "2", "--prompts": "64", "--group": "8", "--engine": "vllm",
}  # fmt: skip


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    """A scenario with a placement."""
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    return str(path)


def lines(said: dict[str, str]) -> list[str]:
    """Flags as words."""
    return [word for flag, value in said.items() for word in (flag, value)]


def body(text: str) -> str:
    """What is printed, comments aside."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#"))


def test_scenario_and_flags_that_say_the_same_make_the_same_snippet(rlsize: Run, scenario: str) -> None:
    """Nothing is taken from anywhere else; the header says version and split; a file adds what flags do not say."""
    ran = rlsize("snippet", scenario, "--framework", "verl")
    assert ran.code == 0
    assert ran.stderr == ""
    assert "verl-project/verl@1dda039b" in ran.stdout
    said = ran.stdout.replace("\n#  ", "")
    assert "16 rollout GPUs (8 instances of 2 GPUs, tensor parallel 2), 16 trainer GPUs; async" in said
    assert all(len(line) <= 80 for line in ran.stdout.splitlines() if scenario not in line)
    flagged = rlsize("snippet", "-f", "verl", *lines(FLAGS))
    more = set(body(ran.stdout).replace(" \\", "").split()) - set(body(flagged.stdout).replace(" \\", "").split())
    assert more == {
        "actor_rollout_ref.rollout.gpu_memory_utilization=0.85", "actor_rollout_ref.model.path=Qwen/Qwen3-32B",
        "actor_rollout_ref.actor.megatron.tensor_model_parallel_size=2", "model_engine=megatron",
        "actor_rollout_ref.actor.use_kl_loss=false", "algorithm.use_kl_in_reward=false",
    }  # fmt: skip


def test_a_flag_goes_before_the_file(rlsize: Run, scenario: str) -> None:
    """TOML that a parser reads: more GPUs, less staleness."""
    said = ("--rollout-gpus", "32", "--max-staleness", "1", "--set", "trainer.parallelism.tensor=1")
    ran = rlsize("snippet", scenario, "-f", "prime_rl", *said)
    keys = tomllib.loads(ran.stdout)
    assert keys["deployment"]["num_infer_nodes"] == 4
    assert keys["orchestrator"]["max_off_policy_steps"] == 1


def test_json_has_every_key_and_whether_it_was_read(rlsize: Run, scenario: str) -> None:
    """Settings as rows, and the text as it is printed."""
    printed = rlsize("snippet", scenario, "-f", "nemo-rl")
    answer = rlsize("snippet", scenario, "-f", "nemo-rl", "--json")
    assert answer.results["snippet"] == printed.stdout
    rows = {row["key"]: row for row in answer.document["rows"]["settings"]}
    assert rows["grpo.async_grpo.max_trajectory_age_steps"]["value"] == 2
    assert rows["grpo.num_prompts_per_step"]["read"]
    said = ("snippet", scenario, "-f", "areal", "--set", "rollout.max_num_seqs=64")
    assert "Not read in the source of that version, so check: vllm.max_num_seqs." in rlsize(*said).stdout
    unread = {row["key"] for row in rlsize(*said, "--json").document["rows"]["settings"] if not row["read"]}
    assert unread == {"vllm.max_num_seqs"}
    assert yaml.safe_load(printed.stdout)["cluster"] == {"num_nodes": 4, "gpus_per_node": 8}


def test_a_file_is_written_whole_and_never_over_another(rlsize: Run, scenario: str, tmp_path: Path) -> None:
    """With --output the answer shows the keys; a second time needs --force."""
    target = tmp_path / "keys.yaml"
    line = ("snippet", scenario, "-f", "skyrl", "-o", str(target))
    assert "SkyRL, fully-async: 16 rollout and 16 trainer GPUs." in " ".join(rlsize(*line).stdout.split())
    assert "trainer.fully_async.max_staleness_steps=2" in target.read_text(encoding="utf-8")
    assert rlsize(*line).code == 2
    assert rlsize(*line, "--force").code == 0


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (("-f", "slime"), ("slime cannot run a loop that is async", "nearest: --mode one-step-off")),
        (("-f", "slime", "--mode", "hybrid"), ("trainer GPUs that generate while", "nearest: --mode one-step-off")),
        (
            ("-f", "trl", "--rollout-tensor-parallel", "16", "--rollout-gpus", "32"),
            ("nearest: --rollout-gpus 8", "nearest: --rollout-tensor-parallel 8"),
        ),
        (("-f", "verl", "--mode", "partial"), ("long samples go on in the next step", "--mode sync")),
        (("-f", "verl", "--variant", "sync"), ("verl's sync cannot run a loop that is async", "--mode colocated")),
        (
            ("-f", "areal", "--max-staleness", "1.5"),
            ("takes whole steps", "not 1.5", "--max-staleness 1 or 2"),
        ),
        (
            ("-f", "trl@0.17", "--mode", "colocated", "--rollout-gpus", "8", "--trainer-gpus", "8"),
            ("before 0.18", "nearest: --framework"),
        ),
        (
            ("-f", "trl@0.15", "--mode", "sync", "--max-staleness", "0"),
            ("before 0.16 vLLM runs on one GPU", "nearest: --framework trl@0.16"),
        ),
        (("-f", "verl", "--rollout-gpus", "12"), ("12 rollout GPUs do not fill whole nodes of 8", "8 or 16")),
        (
            ("-f", "nemo-rl", "--engine", "tensorrt-llm", "--mini-batches", "3"),
            ("NeMo-RL runs vllm", "no multiple of 3"),
        ),
    ],
)
def test_what_cannot_be_expressed_is_answered_with_no(
    rlsize: Run, scenario: str, line: tuple[str, ...], says: tuple[str, ...]
) -> None:
    """Exit code 1, the reason, and what comes nearest; nothing on stdout."""
    ran = rlsize("snippet", scenario, *line)
    assert (ran.code, ran.stdout) == (1, "")
    for text in says:
        assert text in ran.stderr


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ((), ("--framework", "areal, ms-swift, nemo-rl")),
        (("-f", "velr"), ("'velr'", "did you mean verl?")),
        (("-f", "verl", "--variant", "seperate-async"), ("did you mean separate-async?",)),
        (("-f", "verl", "--max-staleness", "0"), ("samples that are from before", "give more than 0")),
        (("-f", "verl", "--rollout-gpus", "15"), ("nearest: 14 or 16 rollout GPUs",)),
        (("-f", "verl", "--prompts", "x", "--group", "0"), ("--prompts", "--group")),
        (("-f", "verl", "--gpus-per-instance", "4"), ("--rollout-tensor-parallel",)),
    ],
)
def test_what_is_wrong_is_told_at_once(
    rlsize: Run, scenario: str, line: tuple[str, ...], says: tuple[str, ...]
) -> None:
    """What, where, what to do; exit code 2; nothing on stdout."""
    ran = rlsize("snippet", scenario, *line)
    assert (ran.code, ran.stdout) == (2, "")
    for text in says:
        assert text in ran.stderr


def test_a_mode_by_flag_turns_two_pools_into_one_as_in_a_step(rlsize: Run, scenario: str) -> None:
    """Both sides together, as `plan` and `predict step` take them; the file's count of instances no longer holds."""
    line = ("snippet", scenario, "-f", "verl", "--mode", "colocated", "--set", "placement.instances=8")
    ran = rlsize(*line, "--json")
    assert ran.code == 0, ran.stderr
    assert {key: ran.results[key] for key in ("instances", "rollout_gpus", "trainer_gpus")} == {
        "instances": 16, "rollout_gpus": 32, "trainer_gpus": 32,
    }  # fmt: skip


def test_flags_alone_say_all_that_they_lack(rlsize: Run) -> None:
    """No number is assumed."""
    ran = rlsize("snippet", "-f", "verl")
    assert ran.code == 2
    for flag in ("--mode", "--instances", "--gpus-per-instance", "--trainer-gpus", "--gpus-per-node", "--prompts"):
        assert flag in ran.stderr


@given(data=st.data())
@settings(max_examples=tries(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_junk_is_a_traceback(rlsize: Run, spoilt: Run, checked: Run, data: st.DataObject) -> None:
    """Whatever is typed, there is an answer, a no or a fault."""
    names = "verl|nemo-rl|openrlhf|trl|prime-rl|areal|skyrl|roll|pipeline-rl"
    examples = {
        **FLAGS, "--mode": "async|sync|one-step-off|colocated", "--framework": names, "--variant": "sync|async",
        "--sync-every": "2", "--mini-batches": "2", "--rollout-gpus": "16", "--gpus-per-instance": "2",
        "--engine": "vllm|sglang",
    }  # fmt: skip
    line = data.draw(spoilt([{**FLAGS, "--framework": "verl"}], examples))
    ran = rlsize("snippet", *(f"{flag}={value}" for flag, value in line.items()), "--json")
    if ran.code == 1:
        assert (ran.stdout, "nearest" in ran.stderr or "it runs" in ran.stderr) == ("", True)
    else:
        checked(ran, "snippet", "--json")


def test_keys_of_an_older_version_have_their_older_names(rlsize: Run, scenario: str) -> None:
    """OpenRLHF had no dots in its flags until 0.10.2; an unknown version is today's."""
    line = ("snippet", scenario, "--set", "trainer.parallelism.tensor=1", "-f")
    older, newer = (rlsize(*line, name).stdout for name in ("openrlhf@0.9.7", "openrlhf@0.11"))
    assert "--vllm_num_engines 8" in older
    assert "--vllm.num_engines 8" in newer
    assert rlsize(*line, "openrlhf").stdout == newer


@pytest.mark.parametrize(("version", "sleeps"), [("0.22", False), ("0.23", True), ("1.0", True)])
def test_a_key_is_written_from_its_first_version_on(rlsize: Run, scenario: str, version: str, *, sleeps: bool) -> None:
    """TRL's engine sleeps since 0.23 (trl/trainer/grpo_config.py of 0.22.2 and 0.23.0)."""
    line = ("--mode", "colocated", "--rollout-gpus", "8", "--trainer-gpus", "8", "--set", "rollout.memory_fraction=0.3")
    ran = rlsize("snippet", scenario, "-f", f"trl@{version}", *line, "--set", "trainer.parallelism.tensor=1")
    assert ("--vllm_mode colocate" in ran.stdout, "--vllm_enable_sleep_mode" in ran.stdout) == (True, sleeps), (
        ran.stderr
    )


@pytest.mark.parametrize(
    ("version", "has", "lacks"),
    [
        ("verl@0.5", ("--config-name=ppo_megatron_trainer.yaml",), ("use_v1", "model_engine")),
        ("verl@0.8", ("model_engine=megatron",), ("use_v1", "--config-name")),
        ("verl@0.9.1", ("trainer.use_v1=true", "model_engine=megatron"), ("--config-name",)),
        ("openrlhf@0.9.7", ("--generate_max_len", "--use_dynamic_batch"), ("--max_new_tokens", "--rollout.")),
        ("openrlhf@0.10.1", ("--max_new_tokens", "--max_len"), ("--generate_max_len", "--rollout.")),
        ("openrlhf@0.7.5", ("--generate_max_len", "--micro_train_batch_size"), ("--use_dynamic_batch",)),
        ("skyrl@0.1", ("inference_engine.num_engines", "micro_train_batch_size_per_gpu"), ("per_microbatch",)),
        ("skyrl-train@0.3.1", ("generator.num_inference_engines",), ("generator.inference_engine.num",)),
        ("skyrl@0.3", ("inference_engine.num_engines", "max_tokens_per_microbatch"), ()),
    ],
)
def test_a_snippet_has_the_keys_of_its_version(
    rlsize: Run, tmp_path: Path, version: str, has: tuple[str, ...], lacks: tuple[str, ...]
) -> None:
    """By the packages of these releases; what one of them lacks ends its start."""
    path = tmp_path / "shared.yaml"
    path.write_text(SHARED, encoding="utf-8")
    said = rlsize("snippet", str(path), "-f", version)
    words = "".join(word for word in said.stdout.splitlines(keepends=True) if not word.startswith("#"))
    assert [one for one in has if one not in words] == [], said.stderr or words
    assert [one for one in lacks if one in words] == [], words


@pytest.mark.parametrize(("version", "mode"), [("verl@0.4", "async"), ("trl@0.29", "async"), ("openrlhf@0.7", "async")])
def test_no_plan_is_in_a_mode_that_a_version_lacks(rlsize: Run, scenario: str, version: str, mode: str) -> None:
    """Asked for it is refused, with what the version runs."""
    lengths = ("--response-tokens", "500", "--prompt-tokens", "200")
    ran = rlsize("plan", scenario, "--framework", version, "--mode", mode, *lengths)
    assert (ran.code, f"cannot run a loop that is {mode}" in ran.stderr) == (2, True), ran.stderr


@pytest.mark.parametrize("name", ["verl@nan", "trl@-1", "slime@<", "openrlhf@", "areal@abc"])
@pytest.mark.parametrize("command", [("snippet",), ("memory",), ("plan",), ("fleet",), ("predict", "step")])
def test_what_is_no_version_is_refused_by_every_command(
    rlsize: Run, tmp_path: Path, command: tuple[str, ...], name: str
) -> None:
    """By the flag, and by the key of a scenario."""
    path = tmp_path / "shared.yaml"
    path.write_text(SHARED, encoding="utf-8")
    flag = rlsize(*command, str(path), "--framework", name)
    key = rlsize(*command, str(path), "--set", f"framework={name}")
    for ran in (flag, key):
        assert (ran.code, ran.stderr.count("is no version of")) == (2, 1), ran.stderr


def test_a_fork_has_no_new_launch(rlsize: Run, scenario: str) -> None:
    """Its keys are not its parent's; what is known of it is a framework all the same."""
    ran = rlsize("snippet", scenario, "-f", "easyr1")
    assert (ran.code, "no new launch of EasyR1 is written" in ran.stderr) == (2, True)


@pytest.mark.parametrize(("cap", "every", "threshold"), [(0.5, 1, "0.5"), (1, 2, "0.5"), (2, 1, "2")])
def test_a_part_of_a_step_is_begun_ahead_where_a_framework_has_a_key_for_it(
    rlsize: Run, scenario: str, cap: float, every: int, threshold: str
) -> None:
    """A staleness_threshold is a share of what lies between two syncs; its other trainer takes whole versions."""
    line = ("-f", "verl", "--max-staleness", f"{cap:g}", "--sync-every", f"{every}")
    ran = rlsize("snippet", scenario, *line, "--variant", "fully-async")
    assert f"async_training.staleness_threshold={threshold} " in ran.stdout, ran.stderr
    other = rlsize("snippet", scenario, *line, "--variant", "separate-async")
    assert other.code == (0 if threshold == "2" else 1)


def test_a_loop_that_dies_is_not_written(rlsize: Run, scenario: str) -> None:
    """Exit code 1, the phase and what it needs; with more GPUs it is written."""
    lengths = ("--set", "workload.response_tokens.mean=2000", "--set", "workload.response_tokens.max=8192")
    line = ("snippet", scenario, *lengths, "--set", "trainer.parallelism.tensor=1", "-f", "nemo-rl")
    few = rlsize(*line, "--rollout-gpus", "4", "--trainer-gpus", "4")
    assert (few.code, few.stdout) == (1, "")
    assert "as NeMo-RL keeps its memory" in " ".join(few.stderr.split())
    assert rlsize(*line).code == 0


def test_a_layout_that_a_framework_has_no_key_for_is_refused(rlsize: Run, scenario: str) -> None:
    """The degree, and the one that it takes."""
    ran = rlsize("snippet", scenario, "-f", "prime-rl")
    assert ran.code == 1
    assert "prime-rl takes tensor_parallel = 1, not 2" in ran.stderr


def test_uneven_stages_are_told_to_a_framework_that_has_a_key_for_them(rlsize: Run, scenario: str) -> None:
    """36 layers in eight stages: seven of five and one of one; in four, nothing is to be told."""
    line = ("snippet", scenario, "--model", "qwen3-8b", "--set", "trainer.parallelism.tensor=1")
    uneven = ("--set", "trainer.parallelism.pipeline=8")
    told = "num_layers_in_last_pipeline_stage"
    assert f"{told}=1\n" in rlsize(*line, *uneven, "-f", "verl").stdout
    assert told not in rlsize(*line, "--set", "trainer.parallelism.pipeline=4", "-f", "verl").stdout
    refused = rlsize(*line, *uneven, "-f", "roll")
    assert (refused.code, refused.stdout) == (1, "")
    assert "no key that was read for 8 stages of unlike many layers" in refused.stderr


def test_a_micro_batch_in_tokens_is_written_in_samples_where_these_count(rlsize: Run, scenario: str) -> None:
    """As many as fit if all are as long as they can be, a prompt twice the usual, and as divide an update."""
    said = ("trainer.micro_batch_tokens=16384", "workload.response_tokens=2000", "workload.response_tokens.max=4000")
    line = [word for one in (*said[::2], "trainer.parallelism.tensor=1") for word in ("--set", one)]
    ran = rlsize("snippet", scenario, *line, "-f", "roll")
    assert ran.code == 0, ran.stderr
    training = yaml.safe_load(ran.stdout)["actor_train"]["training_args"]
    assert training["per_device_train_batch_size"] == 2


def test_no_server_is_started_where_none_is_asked_for(rlsize: Run, scenario: str) -> None:
    """TRL has no key for the sequences of an engine inside its trainer: they are named as not set."""
    line = ("--mode", "colocated", "--rollout-gpus", "8", "--trainer-gpus", "8", "--set", "rollout.max_num_seqs=64")
    ran = rlsize("snippet", scenario, "-f", "trl", *line, "--set", "trainer.parallelism.tensor=1")
    assert ran.code == 0, ran.stderr
    assert "max-num-seqs" not in ran.stdout
    assert "no key for it was read: max_num_seqs" in ran.stdout.replace("\n#  ", "")


@pytest.mark.parametrize(
    ("framework", "late", "key"),
    [
        ("verl", "continue", "async_training.partial_rollout=true"),
        ("verl", "drop", "trainer.v1.sampler.max_off_policy_strategy=drop"),
        ("verl", "wait", "async_training.partial_rollout=false"),
        ("nemo-rl", "continue", "in_flight_weight_updates: true"),
        ("nemo-rl", "wait", "async_grpo:"),
        ("openrlhf", "continue", "--train.partial_rollout_enable"),
        ("openrlhf", "wait", "--train.async_enable"),
    ],
)
def test_late_samples_are_treated_as_they_were_priced(
    rlsize: Run, scenario: str, framework: str, late: str, key: str
) -> None:
    """The framework's key for the rule is among those that are set, and nothing need be said then."""
    changes = ("--set", f"policies.late_samples={late}", "--set", "rollout.memory_fraction=0.9")
    ran = rlsize("snippet", scenario, "-f", framework, *changes)
    assert key in ran.stdout
    assert "was planned as if" not in ran.stdout


def test_a_framework_that_treats_late_samples_otherwise_says_so(rlsize: Run, scenario: str) -> None:
    """ROLL drops what the step was planned to go on with; a plan for ROLL has its rule."""
    said = rlsize("snippet", scenario, "-f", "roll").stdout.replace("\n#   ", " ").replace("\n# ", " ")
    assert "ROLL drops late samples; the step was planned as if it lets late samples go on." in said
    assert "--set framework=roll" in said
    priced = rlsize("snippet", scenario, "-f", "roll", "--set", "framework=roll").stdout
    assert "was planned as if" not in priced
    forced = rlsize("snippet", scenario, "-f", "verl", "--variant", "separate-async").stdout
    assert "verl drops late samples" in forced


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("--global_batch_size 128", "megatron rlhf --rlhf_type grpo"),
        ("--global_batch_size 32 --steps_per_generation 4", "--steps_per_generation 4"),
        ("--global_batch_size 32 --steps_per_generation 4", "--global_batch_size 32"),
    ],
)
def test_a_megatron_trainer_of_swift_is_written_as_it_is_launched(
    rlsize: Run, tmp_path: Path, said: str, written: str
) -> None:
    """By its own program, as `swift rlhf` takes none of its flags; with the updates of a batch that it had."""
    run = tmp_path / "run.sh"
    run.write_text(
        f"NPROC_PER_NODE=8 megatron rlhf --rlhf_type grpo --model Qwen/Qwen3-8B --tensor_model_parallel_size 4 {said} "
        "--micro_batch_size 1 --num_generations 8 --use_vllm true --vllm_mode colocate "
        "--vllm_gpu_memory_utilization 0.4 --max_length 1024 --max_completion_length 2048 --offload_model true "
        "--offload_optimizer true --optimizer_cpu_offload true --sleep_level 2\n"
    )
    ran = rlsize("snippet", str(run), "--gpu", "h100")
    assert ran.code == 0, ran.stderr
    assert written in ran.stdout


def test_a_launch_of_a_framework_without_new_launches_says_so(rlsize: Run, tmp_path: Path) -> None:
    """It asked for a framework as if none were told."""
    run = tmp_path / "run.yaml"
    run.write_text(
        "model: Qwen/Qwen3-8B\nlocal_batch_size: 4\ngroup_size: 8\noff_by_n: 1\nmax_req_tokens: 512\n"
        "max_res_tokens: 512\nservices: {policy: {procs: 1, num_replicas: 2}}\n"
        "actors: {trainer: {procs: 2}}\nreplay_buffer: {batch_size: 4, max_policy_age: 1, dp_size: 2}\n"
    )
    assert "no new launch of torchforge is written" in rlsize("snippet", str(run), "--gpu", "h100").stderr
