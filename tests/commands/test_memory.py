"""`rlsize memory` from the outside: the lesson's bill, what fits, wrong input, the picture."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.effort import NIGHTLY, tries

from rlsize.readers.profiles import Catalogue

Run = Callable[..., Any]
LESSON = ("--params", "70e9", "--algorithm", "grpo", "--reward-model")


def scenario(folder: Path, text: str) -> str:
    """A scenario file of those lines."""
    path = folder / "scenario.yaml"
    path.write_text(f"rlsize: {{kind: scenario, version: 1}}\n{text}", encoding="utf-8")
    return str(path)


def test_the_lessons_bill(rlsize: Run) -> None:
    """1,120 + 140 + 140 + 140 GB make 1,540 GB without KV cache, which needs the model's shape."""
    ran = rlsize("memory", *LESSON, "--json")
    assert ran.code == 0
    expected = {"trainer": 1120e9, "reference": 140e9, "reward": 140e9, "rollout_weights": 140e9, "total": 1540e9}
    assert {key: ran.results[f"{key}_bytes"] for key in expected} == expected
    assert ran.results["kv_cache_bytes"] is None
    assert "--model" in ran.document["explain"]["kv_cache_bytes"]["reason"]
    assert "critic_bytes" not in ran.results


def test_the_lessons_bill_with_a_critic(rlsize: Run) -> None:
    """PPO trains a second model of the same size: 2,660 GB."""
    ran = rlsize("memory", "--params", "70e9", "--algorithm", "ppo", "--reward-model", "--json")
    assert ran.results["critic_bytes"] == 1120e9
    assert ran.results["total_bytes"] == 2660e9


def test_the_answer_reads_at_80_columns(rlsize: Run) -> None:
    """The headline has the sum, the tenants and their rules stand below it, and nothing is wider than a terminal."""
    ran = rlsize("memory", "--model", "llama3.1-70b", "--gpu", "h100", "--fsdp", "96", "--micro-batch-tokens", "8k")
    assert ran.code == 0
    assert ran.stdout.startswith("1,412")
    assert "On h100-sxm the trainer fits as stated" in " ".join(ran.stdout.split())
    assert "16 N" in ran.stdout
    assert max(map(len, ran.stdout.splitlines())) <= 80


def test_per_gpu_results_come_with_a_sharding(rlsize: Run) -> None:
    """1,120 GB over 16 ranks are 70 GB on each, the reference takes 8.75."""
    results = rlsize("memory", "--params", "70B", "--fsdp", "16", "--rollout-tensor-parallel", "2", "--json").results
    assert results["trainer_bytes_per_gpu"] == 70e9
    assert results["reference_bytes_per_gpu"] == 8.75e9
    assert results["trainer_pool_bytes_per_gpu"] == pytest.approx(1.05 * 78.75e9)
    assert results["rollout_weights_bytes_per_gpu"] == 70e9
    assert "trainer_bytes_per_gpu" not in rlsize("memory", "--params", "70B", "--json").results


def test_a_sharding_that_does_not_fit_is_a_no(rlsize: Run) -> None:
    """Exit code 1, the tenant that binds, and what would do."""
    ran = rlsize("memory", *LESSON, "--fsdp", "16", "--gpu", "h100-sxm", "--json")
    assert ran.code == 1
    assert ran.results["trainer_fits"] is False
    assert ran.results["trainer_first_fit_gpus"] == 24
    headline = ran.document["headline"]
    assert headline.startswith("The trainer does not fit on h100-sxm")
    assert "most of it the training state" in headline
    assert "first fits: 24 GPUs" in headline


def test_without_a_sharding_the_first_fit_is_told(rlsize: Run) -> None:
    """Nothing was claimed, so nothing is refused."""
    ran = rlsize("memory", *LESSON, "--gpu", "h100-sxm", "--json")
    assert ran.code == 0
    assert ran.results["trainer_first_fit_gpus"] == 24
    assert ran.results["rollout_first_fit_gpus"] == 2
    rows = ran.document["rows"]["fit"]
    assert [row["gpus"] for row in rows if row["verdict"] == "first"] == [24, 2]
    assert {row["pool"] for row in rows} == {"trainer", "rollout"}


def test_a_cache_that_does_not_fit_is_a_no(rlsize: Run) -> None:
    """Four H100s hold Llama-3.1-70B and so many samples of 3000 tokens beside it, and not one more."""
    flags = ("--model", "llama3.1-70b", "--gpu", "h100", "--rollout-tensor-parallel", "4", "--context", "3000")
    most = int(rlsize("memory", *flags, "--json").results["max_concurrency"])
    assert rlsize("memory", *flags, "--concurrency", str(most)).code == 0
    ran = rlsize("memory", *flags, "--concurrency", str(most + 1))
    assert ran.code == 1
    assert f"its cache holds {most} samples at once" in " ".join(ran.stdout.split())


def test_lower_memory_fraction_leaves_less(rlsize: Run) -> None:
    """Half of the memory holds half of it, less what the runtime keeps."""
    flags = ("--model", "qwen3-8b", "--gpu", "h100", "--rollout-tensor-parallel", "1", "--context", "4096", "--json")
    most = [rlsize("memory", *flags, "--memory-fraction", share).results["max_concurrency"] for share in ("0.9", "0.5")]
    assert most[1] < most[0] / 1.5


def test_unverified_memory_is_warned_about(rlsize: Run) -> None:
    """Nobody has read the memory of an RTX 5090 in its source."""
    ran = rlsize("memory", "--params", "8B", "--gpu", "rtx-5090")
    assert ran.code == 0
    assert "memory of rtx-5090 is unverified" in ran.stderr
    assert "unverified" in ran.stdout


def test_a_format_without_matrix_units_is_warned_about(rlsize: Run) -> None:
    """An A100 stores fp8 weights, but has no fp8 units."""
    ran = rlsize("memory", "--params", "8B", "--gpu", "a100-80-sxm", "--rollout-dtype", "fp8")
    assert "no fp8 matrix units" in ran.stderr


def test_adapters_need_no_reference_of_their_own(rlsize: Run) -> None:
    """With LoRA the reference is the policy with adapters off, unless it is another model."""
    flags = ("--model", "llama3.1-8b", "--lora-rank", "16", "--json")
    ran = rlsize("memory", *flags)
    assert ran.results["trainer_bytes"] == 2 * 8030261248 + 16 * 41943040
    assert "reference_bytes" not in ran.results
    assert any("adapters off" in note for note in ran.document["notes"])
    assert "reference_bytes" not in rlsize("memory", *flags, "--reference").results
    assert rlsize("memory", *flags, "--reference-params", "1e9").results["reference_bytes"] == 2e9


def test_models_are_switched_on_and_off(rlsize: Run) -> None:
    """A size says that a model is kept; a switch overrides the algorithm's habit."""
    results = rlsize("memory", "--params", "70B", "--critic-params", "7B", "--no-reference", "--json").results
    assert results["critic_bytes"] == 16 * 7e9
    assert "reference_bytes" not in results
    assert rlsize("memory", "--params", "70B", "--algorithm", "dapo", "--json").results["total_bytes"] == 1260e9


def test_a_scenario_says_it_all(rlsize: Run, tmp_path: Path) -> None:
    """Every key that bears on memory is read, and flags override it."""
    path = scenario(
        tmp_path,
        "model: {params: 70B}\n"
        "cluster: {gpu: h100-sxm, gpus_per_node: 4}\n"
        "algorithm: {name: ppo, critic: false, reference: false, reward_model: true}\n"
        "trainer: {optimizer: adam-8bit, gradients: fp32, parallelism: {data: 8, zero: 2, tensor: 4}}\n"
        "rollout: {tensor_parallel: 4, dtype: fp8, memory_fraction: 0.5}\n"
        "placement: {instances: 3, mode: colocated}\n",
    )
    ran = rlsize("memory", path, "--json")
    results = ran.results
    assert results["trainer_bytes"] == (2 + 4 + 4 + 2) * 70e9
    assert results["reward_bytes"] == 140e9
    assert results["rollout_weights_bytes"] == 3 * 70e9 * (1 + 4 / 128**2)
    assert "critic_bytes" not in results
    assert "reference_bytes" not in results
    assert results["trainer_bytes_per_gpu"] == pytest.approx(70e9 / 4 * (2 + 10 / 8))
    assert results["rollout_weights_bytes_per_gpu"] == 70e9 / 4 * (1 + 4 / 128**2)
    assert any("Colocated" in note for note in ran.document["notes"])
    assert rlsize("memory", path, "--params", "7B", "--json").results["trainer_bytes"] == 12 * 7e9


def test_a_cluster_profile_names_the_gpu_and_its_node(rlsize: Run, tmp_path: Path) -> None:
    """`cluster: {profile: gb200-nvl72}` is enough to be judged: its GPU, and nodes as the profile has them."""
    path = scenario(tmp_path, "model: {params: 70B}\ncluster: {profile: gb200-nvl72}\n")
    ran = rlsize("memory", path, "--json")
    assert ran.results["trainer_first_fit_gpus"] == 8
    node = Catalogue().get("cluster", "gb200-nvl72").gpus_per_node.value
    assert f"whole nodes of {node:g}" in ran.document["explain"]["trainer_first_fit_gpus"]["source"]
    assert "fit" in ran.document["rows"]
    other = rlsize("memory", path, "--gpu", "h100", "--json")
    assert other.results["trainer_first_fit_gpus"] == 24
    assert "whole nodes of 8" in other.document["explain"]["trainer_first_fit_gpus"]["source"]
    stated = scenario(tmp_path, "model: {params: 70B}\ncluster: {profile: gb200-nvl72, gpus_per_node: 3}\n")
    assert rlsize("memory", stated, "--json").results["trainer_first_fit_gpus"] == 9


def test_an_unknown_cluster_profile_is_a_fault(rlsize: Run, tmp_path: Path) -> None:
    """Told once, with its line and the nearest names."""
    ran = rlsize("memory", scenario(tmp_path, "model: {params: 70B}\ncluster: {profile: aws-p6}\n"))
    assert ran.code == 2
    assert ran.stderr.count("error:") == 1
    assert "scenario.yaml:3: cluster.profile" in ran.stderr
    assert "aws-p5" in ran.stderr


def test_recomputation_decides_what_layers_keep(rlsize: Run) -> None:
    """None keeps all, selective what its operators do not compute again, full the inputs of layers."""
    flags = ("--model", "llama3.1-8b", "--fsdp", "8", "--micro-batch-tokens", "16k", "--json", "--recompute")
    held = [
        rlsize("memory", *flags, policy).results["activation_bytes_per_gpu"] for policy in ("none", "selective", "full")
    ]
    assert held[0] > 2 * held[1] > 4 * held[2]


def test_a_micro_batch_that_nobody_gave_is_counted(rlsize: Run) -> None:
    """As large as predictions take it, and among the inputs as a default."""
    flags = ("--model", "llama3.1-8b", "--fsdp", "8", "--gpu", "h100", "--json")
    silent, said = (rlsize("memory", *flags, *more) for more in ((), ("--micro-batch-tokens", "16384")))
    assert silent.results == said.results


def test_what_nobody_wrote_is_a_default(rlsize: Run, tmp_path: Path) -> None:
    """An algorithm that the scenario leaves out is not called given."""
    for said, provenance in (("reward_model: true", "default"), ("name: grpo", "given")):
        path = scenario(tmp_path, f"model: {{params: 70B}}\nalgorithm: {{{said}}}\n")
        assert f"algorithm grpo ({provenance})" in " ".join(rlsize("memory", path).stdout.split())


@pytest.mark.parametrize(
    ("said", "gigabytes"),
    [("true", 140.0), ("false", None), ("none", None), ("no", None), ("llama3.1-8b", 2 * 8.030261248)],
)
def test_a_scenario_names_the_reward_model(rlsize: Run, tmp_path: Path, said: str, gigabytes: float | None) -> None:
    """True is one of the policy's size, a name is a profile, none is none."""
    path = scenario(tmp_path, f"model: {{params: 70B}}\nalgorithm: {{name: grpo, reward_model: {said}}}\n")
    found = rlsize("memory", path, "--json").results.get("reward_bytes")
    assert found == (None if gigabytes is None else pytest.approx(gigabytes * 1e9))


def test_the_trainers_gpus_give_the_data_parallel_ranks(rlsize: Run, tmp_path: Path) -> None:
    """32 GPUs with TP 4 leave 8 ranks, all states sharded over them."""
    path = scenario(tmp_path, "placement: {trainer_gpus: 32}\ntrainer: {parallelism: {tensor: 4}}\n")
    results = rlsize("memory", path, "--params", "70B", "--json").results
    assert results["trainer_bytes_per_gpu"] == 1120e9 / 32


def test_a_config_json_is_a_model(rlsize: Run, tmp_path: Path) -> None:
    """The path of a configuration, or of its folder, beside the scenario or on the command line."""
    config = {
        "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": False,
        "max_position_embeddings": 131072,
    }  # fmt: skip
    folder = tmp_path / "my-model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    path = scenario(tmp_path, "model: my-model\n")
    for args in ((str(folder),), (str(folder / "config.json"),)):
        assert rlsize("memory", "--model", *args, "--json").results["trainer_bytes"] == 16 * 8030261248
    assert rlsize("memory", path, "--json").results["trainer_bytes"] == 16 * 8030261248


def test_a_number_from_a_profile_names_its_source(rlsize: Run) -> None:
    """The count of a shipped model says which document its dimensions come from."""
    explained = rlsize("memory", "--model", "llama3.1-8b", "--json").document["explain"]["params"]
    assert "llama3.1-8b" in explained["source"]
    assert explained["provenance"] == "predicted"


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ((), "--params"),
        (("--params", "70B", "--model", "qwen3-32b"), "leave one of them out"),
        (("--model", "qwen3-23b"), "qwen3-32b"),
        (("--model", "missing/config.json"), "no such file"),
        (("--params", "8B", "--algorithm", "grop"), "grpo"),
        (("--params", "8B", "--optimizer", "adamm"), "adamw"),
        (("--params", "8B", "--gradients", "bf61"), "bf16"),
        (("--params", "8B", "--recompute", "ful"), "full"),
        (("--params", "8B", "--gpu", "h100-smx"), "h100-sxm"),
        (("--params", "8B", "--zero", "4"), "at most 3"),
        (("--params", "8B", "--zero", "2"), "--data-parallel"),
        (("--params", "8B", "--fsdp", "8", "--zero", "1"), "contradicts"),
        (("--params", "8B", "--fsdp", "16", "--data-parallel", "24"), "divide"),
        (("--params", "8B", "--trainer-gpus", "12", "--tensor-parallel", "8"), "cannot be dealt out"),
        (("--params", "8B", "--trainer-gpus", "16", "--data-parallel", "4"), "the layout takes 4"),
        (("--params", "8B", "--expert-parallel", "2", "--fsdp", "8"), "--model"),
        (("--model", "qwen3-8b", "--expert-parallel", "2", "--fsdp", "8"), "no experts"),
        (("--model", "qwen3-30b-a3b", "--expert-parallel", "3", "--fsdp", "9"), "128 experts"),
        (("--model", "qwen3-30b-a3b", "--expert-parallel", "16", "--fsdp", "8"), "cannot be dealt out"),
        (("--model", "qwen2.5-7b", "--tensor-parallel", "8"), "28 heads"),
        (("--model", "qwen2.5-7b", "--rollout-tensor-parallel", "8"), "28 heads"),
        (("--model", "qwen3-8b", "--pipeline-parallel", "64"), "layers"),
        (("--params", "8B", "--lora-rank", "16"), "--model"),
        (("--params", "8B", "--no-critic", "--critic-params", "8B"), "--no-critic"),
        (("--params", "8B", "--no-reward-model", "--reward-params", "8B"), "--no-reward-model"),
        (("--params", "8B", "--memory-fraction", "1.5"), "at most 1"),
        (("--params", "8B", "--context", "80 GB"), "not one of its units"),
        (("--params", "8B", "--seed", "x"), "whole number"),
    ],
)
def test_wrong_input_says_what_to_do(rlsize: Run, flags: tuple[str, ...], says: str) -> None:
    """Exit code 2, one message, nothing on stdout."""
    ran = rlsize("memory", *flags)
    assert ran.code == 2
    assert says in " ".join(ran.stderr.split())
    assert ran.stderr.count("error:") == 1
    assert ran.stdout == ""


def test_all_faults_are_told_at_once(rlsize: Run) -> None:
    """Models, trainer, rollout and GPU are all read before anything is refused."""
    ran = rlsize("memory", "--params", "0", "--algorithm", "x", "--optimizer", "y", "--kv-dtype", "z", "--fsdp", "-1",
                 "--gpu", "nope", "--concurrency", "inf")  # fmt: skip
    assert ran.code == 2
    assert ran.stderr.count("error:") == 7


def test_a_context_beyond_the_model_is_warned_about(rlsize: Run) -> None:
    """Qwen3-32B is made for 40,960 tokens."""
    assert "40,960" in rlsize("memory", "--model", "qwen3-32b", "--context", "100k").stderr


def test_the_picture_stacks_the_bill(rlsize: Run, tmp_path: Path) -> None:
    """GRPO and PPO side by side, as tall as their bills, in the terminal and in a file."""
    ran = rlsize("memory", *LESSON, "--plot")
    assert "grpo (asked)" in ran.stdout
    assert "1.54T" in ran.stdout
    assert "2.66T" in ran.stdout
    target = tmp_path / "memory.svg"
    assert rlsize("memory", *LESSON, "--plot", str(target)).code == 0
    assert target.read_text(encoding="utf-8").startswith("<?xml")


def test_other_forms_of_the_answer(rlsize: Run) -> None:
    """CSV has the tenants, Markdown the headline, and explanations name formula and source."""
    assert "rollout weights,140000000000.0" in rlsize("memory", *LESSON, "--csv").stdout
    assert "1,540 GB in all" in rlsize("memory", *LESSON, "--markdown").stdout
    explained = rlsize("memory", *LESSON, "--explain").stdout
    assert "S = k N" in explained
    assert "section 1 (16N)" in explained


VALUES = st.one_of(
    st.sampled_from(
        [
            "1",
            "2",
            "8",
            "64",
            "1e9",
            "0",
            "-1",
            "nan",
            "inf",
            "1e30",
            "1e-13",
            "1e-300",
            "0.5",
            "70B",
            "16k",
            "",
            "fp8",
            "±",
            "0 ± 1",
            "8 ± 2",
            "0.5 ± 0.4",
            "1e9 ± 1e9",
            "70B ± 10B",
        ]
    ),
    st.text(max_size=12).filter(lambda text: not text.startswith("-")),
    st.integers(-5, 10**12).map(str),
)
FLAGS = [
    "--params", "--model", "--algorithm", "--critic-params", "--reference-params", "--reward-params", "--optimizer",
    "--gradients", "--lora-rank", "--fsdp", "--zero", "--data-parallel", "--tensor-parallel", "--pipeline-parallel",
    "--context-parallel", "--expert-parallel", "--trainer-gpus", "--micro-batch-tokens", "--recompute", "--instances",
    "--rollout-tensor-parallel", "--rollout-pipeline-parallel", "--rollout-dtype", "--kv-dtype", "--concurrency",
    "--context", "--prompt-tokens", "--response-tokens", "--response-cv", "--gpu", "--memory-fraction", "--seed",
]  # fmt: skip
MODELS = st.sampled_from(
    ["qwen3-30b-a3b", "deepseek-v3.2", "gpt-oss-20b", "qwen3-next-80b-a3b", "minimax-m1", "nemotron-3-nano-30b-a3b"]
)


def answered(ran: Any) -> bool:
    """Whether a command ended as it should: an answer with finite numbers, or faults on stderr."""
    if ran.code == 2:
        return bool(ran.stderr) and not ran.stdout
    text = ran.stdout
    return ran.code in {0, 1} and "NaN" not in text and "Infinity" not in text and bool(json.loads(text))


GOOD = {
    "--algorithm": "ppo", "--optimizer": "adamw", "--gradients": "bf16", "--fsdp": "16", "--tensor-parallel": "2",
    "--pipeline-parallel": "2", "--context-parallel": "1", "--micro-batch-tokens": "4k", "--recompute": "full",
    "--instances": "4", "--rollout-tensor-parallel": "2", "--rollout-dtype": "bf16", "--kv-dtype": "bf16",
    "--concurrency": "16", "--prompt-tokens": "300", "--response-tokens": "2000", "--response-cv": "0.8",
    "--gpu": "h200", "--memory-fraction": "0.9", "--reward-params": "7B", "--seed": "0",
}  # fmt: skip
NAMED = [{"--params": "8B"}, {"--model": "qwen3-8b"}]
BEYOND = {"--params": "1e15", "--fsdp": "1e9", "--tensor-parallel": "1e9", "--pipeline-parallel": "1e9", "--gpu": "l4"}


@pytest.mark.parametrize("named", NAMED, ids=["params", "model"])
def test_the_good_command_line_is_answered(rlsize: Run, named: dict[str, str]) -> None:
    """The line that the next test spoils is a sound one."""
    assert rlsize("memory", *(f"{flag}={value}" for flag, value in (named | GOOD).items())).code == 0


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=tries(30))
@given(st.sampled_from(NAMED), st.dictionaries(st.sampled_from(FLAGS), VALUES, min_size=1, max_size=3))
@example({"--params": "8B"}, BEYOND)
def test_junk_gives_an_answer_or_a_message(rlsize: Run, named: dict[str, str], said: dict[str, str]) -> None:
    """A good command line with one to three flags replaced: no traceback, and the exit code is 0, 1 or 2."""
    flags = [f"{flag}={value}" for flag, value in (named | GOOD | said).items()]
    assert answered(rlsize("memory", *flags, "--json"))


@pytest.mark.parametrize("value", ["0 ± 1", "1e-300", "1e-13", "nan"])
@pytest.mark.parametrize(
    "flag", ["--params", "--reward-params", "--concurrency", "--response-tokens", "--prompt-tokens"]
)
def test_numbers_that_no_equation_can_take_are_refused(rlsize: Run, flag: str, value: str) -> None:
    """Zero, with a spread or not, and what is smaller than anything measured."""
    ran = rlsize("memory", *(f"{name}={text}" for name, text in ({"--params": "8B"} | GOOD | {flag: value}).items()))
    assert ran.code == 2
    assert flag in ran.stderr


@pytest.mark.parametrize("flag", ["--params", "--reward-params", "--concurrency", "--response-tokens"])
def test_minus_zero_is_refused_where_zero_is(rlsize: Run, flag: str) -> None:
    """Only a prompt may have no tokens."""
    ran = rlsize("memory", *(f"{name}={text}" for name, text in ({"--params": "8B"} | GOOD | {flag: "-0"}).items()))
    assert ran.code == 2
    assert flag in ran.stderr


DEGREES = [
    "--fsdp", "--data-parallel", "--tensor-parallel", "--pipeline-parallel", "--context-parallel", "--expert-parallel",
    "--rollout-tensor-parallel", "--rollout-pipeline-parallel", "--lora-rank", "--instances",
]  # fmt: skip
SOUND = {
    **dict.fromkeys(DEGREES, st.sampled_from(["1", "2", "4", "8"])),
    "--zero": st.sampled_from(["0", "1", "2", "3"]),
    "--rollout-dtype": st.sampled_from(["bf16", "fp8", "int4"]),
    "--kv-dtype": st.sampled_from(["bf16", "fp8"]),
    "--context": st.sampled_from(["1", "4k", "100k"]),
    "--concurrency": st.sampled_from(["1", "0.5", "256"]),
    "--micro-batch-tokens": st.sampled_from(["1", "16k"]),
    "--recompute": st.sampled_from(["none", "selective", "full"]),
    "--algorithm": st.sampled_from(["grpo", "ppo", "sft"]),
    "--gpu": st.sampled_from(["h200", "l4", "mi300x"]),
}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(MODELS, st.fixed_dictionaries({}, optional=SOUND))
def test_shapes_of_all_kinds_are_answered(rlsize: Run, model: str, said: dict[str, str]) -> None:
    """Dense, latent, sliding, hybrid: every model gets a bill, a fit, or a message."""
    assert answered(rlsize("memory", "--model", model, *(f"{flag}={value}" for flag, value in said.items()), "--json"))


@pytest.mark.parametrize("model", Catalogue().names("model")[:: 1 if NIGHTLY else 4])
def test_every_shipped_model_has_a_bill_and_a_fit(rlsize: Run, model: str) -> None:
    """Each fits on some number of H200s, with room for a sample of 2,000 tokens."""
    ran = rlsize(
        "memory", "--model", model, "--gpu", "h200", "--context", "2000", "--micro-batch-tokens", "4k", "--json"
    )
    assert ran.code == 0
    assert ran.results["trainer_first_fit_gpus"] >= 1
    assert ran.results["max_concurrency"] >= 1


SHARED = """
model: qwen2.5-7b
cluster: {gpu: h100-sxm, gpus: 2}
workload:
  prompts_per_step: 1024
  group_size: 5
  mini_batches: 4
  prompt_tokens: 105
  max_prompt_tokens: 1024
  response_tokens: {mean: 220, max: 1024}
placement: {mode: colocated}
rollout: {engine: vllm, tensor_parallel: 2, memory_fraction: 0.6}
trainer: {backend: fsdp, micro_batch_samples: 24, fused_loss: true, reference_offload: true, parallelism: {fsdp: 2}}
"""


def test_a_loop_has_its_phases_told(rlsize: Run, tmp_path: Path) -> None:
    """Each with parts that add up to what it holds; nearly full is no bill that refuses a loop."""
    ran = rlsize("memory", scenario(tmp_path, SHARED), "--json")
    assert ran.code == 0
    assert ran.results["memory_verdict"] == "not sure"
    phases = {row["phase"]: row for row in ran.document["rows"]["phases"]}
    assert next(iter(phases)) == "load"
    for row in phases.values():
        own = {"held_bytes", "low_bytes", "high_bytes", "first_step_bytes", "visible_memory_bytes"}
        parts = sum(value for key, value in row.items() if key.endswith("_bytes") and key not in own)
        assert parts == pytest.approx(row["held_bytes"])
    worst = phases[ran.results["worst_phase"]]
    assert ran.results["worst_phase_bytes_per_gpu"] == worst["held_bytes"]
    assert ran.results["trainer_fits"] is True


@pytest.mark.long
def test_a_phase_that_does_not_fit_refuses_the_loop_under_every_command(rlsize: Run, tmp_path: Path) -> None:
    """An engine that never sleeps: the same phase and bytes in `memory` and `predict step`, and exit code 1."""
    awake = ("--set", "rollout.sleep=none")
    ran = rlsize("memory", scenario(tmp_path, SHARED), *awake, "--json")
    assert ran.code == 1
    assert ran.results["memory_verdict"] == "dies"
    assert ran.results["short_bytes_per_gpu"] > 0
    words = ran.document["headline"].partition(" GiB")[0]
    assert words.startswith(f"Dies at {ran.results['first_dying_phase']}: needs ")
    step = rlsize("predict", "step", scenario(tmp_path, SHARED), *awake, "--json")
    assert step.code == 1
    assert f"it d{words.removeprefix('D')} GiB" in step.document["headline"]


def test_a_bill_without_a_loop_has_no_phases(rlsize: Run) -> None:
    """Nobody says what runs beside what."""
    assert "phases" not in rlsize("memory", *LESSON, "--json").document["rows"]


@pytest.mark.parametrize(("model", "gpu"), [("qwen2.5-1.5b", "rtx-4090"), ("qwen3-32b", "l4"), ("qwen3-8b", "l4")])
def test_what_a_trainer_needs_that_fits_nowhere_makes_it_fit(rlsize: Run, model: str, gpu: str) -> None:
    """Of its defaults the micro-batches are too large, or their logits: the flag that is named helps."""
    asked = ("memory", "--model", model, "--gpu", gpu)
    reason = rlsize(*asked, "--json").document["explain"]["trainer_first_fit_gpus"]["reason"]
    flags = reason.removeprefix("needs ").split()
    assert flags[0] in {"--micro-batch-tokens", "--set"}
    assert rlsize(*asked, *flags, "--json").results["trainer_first_fit_gpus"] is not None


def test_a_trainer_that_nothing_helps_needs_a_larger_gpu(rlsize: Run) -> None:
    """A layer of 405B does not fit a T4, however few tokens there are."""
    assert "a larger GPU" in rlsize("memory", "--model", "llama3.1-405b", "--gpu", "t4").stdout


@pytest.mark.parametrize("said", ["trainer.master_dtype=bf16", "trainer.master_dtype=fp32", "trainer.backend=fsdp"])
def test_the_rule_of_frozen_weights_says_their_width(rlsize: Run, said: str) -> None:
    """Where the trainer says how it keeps weights; a width that is only stated stopped the command."""
    adapters = ("--model", "llama3.1-8b", "--lora-rank", "16", "--set", said)
    rules = [row["rule"] for row in rlsize("memory", *adapters, "--json").document["rows"]["tenants"]]
    assert any("N frozen +" in rule for rule in rules)
