"""Same loop, same answer: whatever command is asked, one key has one value, one band, and one verdict."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.effort import NIGHTLY
from tests.loop.one_answer import (
    COMMANDS,
    HEAD,
    NEAR,
    SEARCHES,
    Answer,
    Desk,
    disagreements,
    file_of,
    leaves,
    numbers,
    of_plan,
    random_loop,
    same,
    verdicts,
)

import rlsize.commands

EXAMPLES = int(os.environ.get("RLSIZE_ONE_ANSWER", "20" if NIGHTLY else "2"))
"""Random loops to ask about; more find more."""

ASYNC = """\
model: qwen3-32b
cluster: {gpu: h100-sxm, gpus: 64}
workload: {prompts_per_step: 64, group_size: 8, prompt_tokens: 300, response_tokens: {mean: 4096}}
placement: {mode: async, rollout_gpus: 32, trainer_gpus: 32}
prices: {gpu_hour: 2.5}
"""
SHARED = """\
model: llama3.1-8b
cluster: {gpu: h200-sxm, gpus: 8}
workload: {prompts_per_step: 64, group_size: 8, prompt_tokens: 400, response_tokens: {mean: 1000, max: 4096}}
placement: {mode: colocated}
prices: {gpu_hour: 3}
"""
LORA = """\
model: qwen2.5-14b
cluster: {gpu: a100-80-sxm, gpus: 8}
workload: {prompts_per_step: 32, group_size: 8, prompt_tokens: 400, response_tokens: {mean: 800}}
placement: {mode: colocated}
trainer: {lora_rank: 32}
prices: {gpu_hour: 1.5}
"""
UNEVEN = """\
model: qwen3-8b
cluster: {gpu: h100-sxm, gpus: 13}
workload: {prompts_per_step: 64, group_size: 8, prompt_tokens: 300, response_tokens: {mean: 1536}}
placement: {mode: async, rollout_gpus: 5, trainer_gpus: 8}
prices: {gpu_hour: 2.5}
"""
GIVEN_SPLIT = """\
cluster: {gpu: h100-sxm, gpus: 32}
model: qwen3-8b
workload: {prompts_per_step: 32, group_size: 8, prompt_tokens: 300, response_tokens: {mean: 2048, cv: 0.8, max: 8192}}
placement: {mode: async, rollout_gpus: 24, trainer_gpus: 8}
rollout: {tensor_parallel: 1}
prices: {gpu_hour: 2.5}
"""
NO_GROUPS = """\
model: qwen3-8b
cluster: {gpu: h100-sxm}
workload: {response_tokens: {mean: 1000}}
rollout: {concurrency: 32}
"""
AGENTS = """\
agents: {turns: 4, tool_seconds: 20}
rates: {instance_tokens_per_second: 4000}
rollout: {tensor_parallel: 1}
"""
BUSY = ("backlog", "fleet", "iteration", "simulate", "split")
"""Commands that take busy trainer seconds, and no wall clock."""
APPLIED = ("check", "predict step", "cost", "report")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """Where commands are asked; each question once for all tests of this file."""
    return Desk(tmp_path_factory.mktemp("desk"))


def _listed(found: Sequence[object]) -> str:
    return "\n".join(map(str, found))


def _one(desk: Desk, text: str, key: str, *commands: str) -> Any:
    """The only value of a key for a scenario; these commands are among those that tell it."""
    told = desk.told(HEAD + text, key)
    silent = [command for command in commands if not any(where.startswith(command) for where in told)]
    assert not silent, f"{key} is not told by {silent}"
    first = next(iter(told.values()))
    assert all(same(value, first) for value in told.values()), f"{key}: {told}"
    return first


def test_every_command_about_a_loop_is_asked() -> None:
    """Whoever resolves one is among those compared; others answer about two files, or what was measured, or write."""
    others = {"alerts", "calibrate", "diagnose", "diff", "init", "validate"}
    folder = Path(rlsize.commands.__file__).parent
    road = re.compile(r"from rlsize\.(loop\.(resolve|answer|sides|search)|shell\.planning) import")
    asking = {
        file.relative_to(folder).with_suffix("")
        for file in folder.rglob("*.py")
        if road.search(file.read_text("utf-8"))
    }
    told = {" ".join(file.parts[: 2 if file.parts[0] == "predict" else 1]).replace("_", "-") for file in asking}
    differing = sorted((told - others) ^ set(COMMANDS))
    assert not differing, f"COMMANDS of tests/loop/one_answer.py has what each of them needs: {differing}"


@pytest.mark.long
@pytest.mark.parametrize("number", range(EXAMPLES))
def test_the_same_loop_has_the_same_numbers_under_every_command(desk: Desk, number: int) -> None:
    """Values, bands, verdicts and their words agree, and each key of the scenario is used or named as not used."""
    loop = random_loop(number)
    found = disagreements(desk, file_of(desk, loop))
    assert not found, f"{loop.text}{'as a saved plan' if loop.saved else ''}\n{_listed(found)}"


def test_most_random_loops_can_be(desk: Desk) -> None:
    """Agreement means little where all refuse."""
    codes = [desk.ask("predict step", desk.file(random_loop(number).text)).code for number in range(EXAMPLES)]
    assert codes.count(0) > len(codes) / 2


@pytest.mark.long
@pytest.mark.parametrize("text", [ASYNC, SHARED, LORA, UNEVEN, GIVEN_SPLIT] if NIGHTLY else [SHARED, UNEVEN])
def test_the_same_named_loop_has_the_same_numbers_under_every_command(desk: Desk, text: str) -> None:
    """Loops that gave several answers once."""
    assert not (found := disagreements(desk, desk.file(HEAD + text))), _listed(found)


@pytest.mark.long
@pytest.mark.parametrize("text", [LORA, GIVEN_SPLIT, ASYNC, SHARED] if NIGHTLY else [LORA])
def test_a_saved_plan_is_asked_as_a_scenario_is(desk: Desk, text: str) -> None:
    """Every command takes it, and gives the numbers that stand in it."""
    plan = desk.saved_plan(desk.file(HEAD + text))
    assert plan is not None
    assert not (found := disagreements(desk, plan)), _listed(found)


@pytest.mark.long
@pytest.mark.parametrize("text", [ASYNC, SHARED, LORA, UNEVEN] if NIGHTLY else [UNEVEN])
def test_a_plan_that_is_applied_keeps_its_numbers(desk: Desk, text: str) -> None:
    """`plan --apply` writes a scenario of the chosen loop: the same step, cost and GPUs, whoever is asked about it."""
    path = desk.file(HEAD + text)
    applied = Path(path).with_name("applied.yaml")
    ran = desk.ask("plan", path, "--apply", str(applied))
    assert ran.code == 0, ran.told
    assert yaml.safe_load(applied.read_text("utf-8"))["rlsize"]["kind"] == "scenario"
    plan = desk.saved_plan(path)
    assert plan is not None
    chosen = [told for told in of_plan(Path(plan).read_text("utf-8")) if told[0] in {
        "step_seconds", "cost_per_step_usd", "gpus", "rollout_gpus", "trainer_gpus"
    }]  # fmt: skip
    answers = [desk.ask(command, str(applied)) for command in APPLIED]
    assert [answer.fault for answer in answers] == [""] * len(answers)
    differing = [found for found in numbers(answers, chosen) if found.what.split()[-1] in {key for key, *_ in chosen}]
    assert not differing, _listed(differing)
    assert {"step_seconds", "cost_per_step_usd", "gpus"} <= {key for key, *_ in chosen}
    assert not (found := disagreements(desk, str(applied))), _listed(found)


@pytest.mark.long
def test_the_spread_of_lengths_that_nobody_says_is_one_number(desk: Desk) -> None:
    """Without `cv`, training, generation and memory are worked out with the same one."""
    _one(desk, ASYNC, "response_cv", "predict step", "predict train", "predict rollout", "memory", "simulate")


@pytest.mark.parametrize("key", ["step_seconds", "train_seconds", "sync_seconds", "generation_seconds"])
def test_the_parts_of_a_step_are_one_number(desk: Desk, key: str) -> None:
    """Whoever tells them, without `cv` in the scenario."""
    _one(desk, ASYNC, key, "predict step")


def test_the_staleness_that_nobody_caps_is_one_number(desk: Desk) -> None:
    """`plan` and `check` go by the cap that `predict step` goes by."""
    _one(desk, ASYNC, "max_staleness", "predict step", "check", "simulate", "backlog")


@pytest.mark.long
def test_a_trainer_that_cannot_hold_its_states_is_refused_by_every_command(desk: Desk) -> None:
    """32B over tensor 4 and data 8 without ZeRO: 131 GB a GPU."""
    answers = desk.ask_all(desk.file(HEAD + ASYNC + "trainer: {parallelism: {tensor: 4, data: 8}}\n"))
    assert {answer.command for answer in answers if answer.code == 0} <= SEARCHES
    assert all("cannot run" in answer.prose for answer in answers if answer.command == "plan")
    assert not (found := list(verdicts(answers))), _listed(found)


def test_degrees_that_do_not_multiply_to_the_trainer_are_refused_by_every_command(desk: Desk) -> None:
    """Tensor 4 and data 4 are 16 ranks, and the trainer has 32 GPUs."""
    answers = desk.ask_all(desk.file(HEAD + ASYNC + "trainer: {parallelism: {tensor: 4, data: 4}}\n"))
    assert [answer.command for answer in answers if answer.code == 0] == []
    assert not (found := list(verdicts(answers))), _listed(found)


def test_pools_that_are_more_than_the_cluster_are_refused_by_every_command(desk: Desk) -> None:
    """40 and 32 GPUs of 64."""
    answers = desk.ask_all(desk.file(HEAD + ASYNC.replace("rollout_gpus: 32", "rollout_gpus: 40")))
    assert [answer.command for answer in answers if answer.code == 0] == []
    assert not (found := list(verdicts(answers))), _listed(found)


def test_a_side_of_shared_gpus_that_has_others_is_refused_by_every_command(desk: Desk) -> None:
    """Colocated on 8 GPUs, and a trainer of 4."""
    assert "\nplacement: {mode: colocated}" in SHARED
    text = SHARED.replace("{mode: colocated}", "{mode: colocated, trainer_gpus: 4}")
    answers = desk.ask_all(desk.file(HEAD + text))
    assert [answer.command for answer in answers if answer.code == 0] == []
    assert not (found := list(verdicts(answers))), _listed(found)


@pytest.mark.long
def test_responses_beyond_the_context_of_the_model_are_told_by_every_command(desk: Desk) -> None:
    """300 + 40,960 tokens are more than the model's own 40,960; runs that stretch its positions have such caps."""
    answers = desk.ask_all(desk.file(HEAD + ASYNC.replace("mean: 4096", "mean: 4096, max: 40960")))
    assert [answer.command for answer in answers if "qwen3-32b's own 40,960" not in answer.prose] == []
    assert not (found := list(verdicts(answers))), _listed(found)


@pytest.mark.long
def test_no_gpu_is_dropped(desk: Desk) -> None:
    """Five rollout GPUs stay five, or every command refuses them in the same words."""
    answers = desk.ask_all(desk.file(HEAD + UNEVEN))
    assert not (found := list(verdicts(answers))), _listed(found)
    if any(answer.code == 0 for answer in answers):
        assert _one(desk, UNEVEN, "rollout_gpus", "predict step", "check", "cost") == 5
        assert _one(desk, UNEVEN, "gpus", "predict step", "check") == 13


@pytest.mark.long
@pytest.mark.parametrize("said", ["hit_ratio: 0", "routing: random", "concurrency: 8", "block_size: 256"])
def test_what_is_said_of_cache_and_load_is_in_the_step(desk: Desk, said: str) -> None:
    """Fewer hits or fewer samples in flight make generation longer, for every command that tells of it."""
    text = ASYNC.replace("prompt_tokens: 300", "prompt_tokens: 3000") + "rollout: {tensor_parallel: 2}\n"
    held = text.replace("tensor_parallel: 2", f"tensor_parallel: 2, {said}")
    plain, longer = (
        [
            desk.ask(command, desk.file(HEAD + one)).document["results"]["generation_seconds"]
            for command in ("predict step", "predict rollout")
        ]
        for one in (text, held)
    )
    assert plain[0] == pytest.approx(plain[1])
    assert longer == pytest.approx([longer[0]] * 2)
    assert longer[0] > plain[0]


def test_instances_that_the_gpus_do_not_make_up_are_refused_where_no_count_is_judged(desk: Desk) -> None:
    """`iteration` tells of the loop as it stands."""
    answer = desk.ask("iteration", desk.file(HEAD + ASYNC), "--instances", "5")
    assert answer.code == 2
    assert "5 instances" in answer.fault


def test_a_key_that_a_flag_goes_before_is_not_called_unused(desk: Desk) -> None:
    """The flag says it."""
    answer = desk.ask("cost", desk.file(HEAD + ASYNC), "--response-tokens", "2000")
    assert answer.code == 0, answer.told
    assert "workload.response_tokens.mean" not in answer.prose


@pytest.mark.long
def test_lora_fits_for_memory_and_plan_alike(desk: Desk) -> None:
    """Adapters on four GPUs: both have the rank among their inputs, and both say that it fits."""
    path = desk.file(HEAD + LORA)
    for answer in (desk.ask(command, path) for command in ("memory", "predict step", "check", "plan")):
        assert answer.code == 0, answer.prose
        assert answer.uses("trainer.lora_rank", 32), answer.command


@pytest.mark.long(by_day=1)
@pytest.mark.parametrize("command", ["predict step", "cost", "iteration"])
def test_tools_that_are_not_in_a_step_make_it_a_bound(desk: Desk, command: str) -> None:
    """At least so long: the headline says so."""
    answer = desk.ask(command, desk.file(HEAD + ASYNC + AGENTS))
    assert answer.code == 0, answer.told
    assert "at least" in answer.document["headline"]


@pytest.mark.parametrize("command", ["plan", "check"])
def test_a_choice_or_verdict_is_not_made_of_bounds(desk: Desk, command: str) -> None:
    """A plan or a check of a loop with tools is refused, by naming them."""
    answer = desk.ask(command, desk.file(HEAD + ASYNC + AGENTS))
    assert answer.code != 0
    assert "agents" in answer.fault


@pytest.mark.parametrize("command", BUSY)
def test_the_wall_clock_of_a_step_is_not_taken_for_busy_time(desk: Desk, command: str) -> None:
    """--step-seconds is refused where busy seconds are asked for, in a sentence that names their flag."""
    answer = desk.ask(command, desk.file(HEAD + GIVEN_SPLIT), "--step-seconds", "30")
    assert answer.code == 2
    assert "--step-seconds" in answer.told
    assert "--train-seconds" in answer.told
    assert "No such option" not in answer.told


def test_the_wall_clock_of_a_step_is_what_cost_bills(desk: Desk) -> None:
    """There, --step-seconds is the step."""
    answer = desk.ask("cost", desk.file(HEAD + GIVEN_SPLIT), "--step-seconds", "30")
    assert answer.code == 0, answer.told
    assert {said.value for key, _, said in answer.figures if key == "step_seconds"} == {30}


@pytest.mark.parametrize(
    "flag", ["--block-size", "--hit-ratio", "--routing", "--instances", "--max-num-seqs", "--memory-fraction"]
)
@pytest.mark.parametrize("text", [NO_GROUPS, GIVEN_SPLIT], ids=["no groups", "groups"])
def test_nonsense_in_a_flag_is_refused_whether_or_not_it_is_used(desk: Desk, text: str, flag: str) -> None:
    """No flag that is taken goes unread: blocks matter to prompts that a group shares, and nonsense always."""
    answer = desk.ask("predict rollout", desk.file(HEAD + text), flag, "banana")
    assert answer.code == 2
    assert flag in answer.told


@pytest.mark.long(by_day=1)
@pytest.mark.parametrize("command", ["cost", "iteration", "predict step", "predict train", "backlog", "fleet"])
def test_a_colocated_loop_needs_no_more_than_the_gpus_of_its_cluster(desk: Desk, command: str) -> None:
    """Both sides have all of them."""
    answer = desk.ask(command, desk.file(HEAD + SHARED))
    assert answer.code == 0, answer.told


def test_shared_gpus_that_each_side_says_are_the_same_ones(desk: Desk) -> None:
    """8 of each where nobody counts the cluster's are 8, and not 16; two pools that a flag turns into one are both."""
    each = SHARED.replace(", gpus: 8", "").replace(
        "{mode: colocated}", "{mode: colocated, rollout_gpus: 8, trainer_gpus: 8}"
    )
    assert "on 8 GPUs" in desk.ask("cost", desk.file(HEAD + each)).prose
    two = each.replace("mode: colocated", "mode: async")
    assert "on 16 GPUs" in desk.ask("cost", desk.file(HEAD + two), "--mode", "colocated").prose


@pytest.mark.long
@pytest.mark.parametrize("command", ["check", "simulate", "predict step", "report", "cost", "memory"])
def test_a_command_takes_a_saved_plan(desk: Desk, command: str) -> None:
    """As it takes a scenario."""
    plan = desk.saved_plan(desk.file(HEAD + GIVEN_SPLIT))
    assert plan is not None
    answer = desk.ask(command, plan)
    assert answer.code == 0, answer.told


@pytest.mark.long
@pytest.mark.parametrize(
    ("key", "value"), [("rollout_gpus", 24), ("trainer_gpus", 8), ("instances", 24), ("step_seconds", None)]
)
def test_split_judges_the_split_that_is_given(desk: Desk, key: str, value: float | None) -> None:
    """24 + 8 is what it reports on, and the best split has keys of its own."""
    found = _one(desk, GIVEN_SPLIT, key, "split", "check")
    assert value is None or found == value


@pytest.mark.long
def test_a_bare_response_length_is_its_mean(desk: Desk) -> None:
    """`response_tokens: 1536` says as much as `{mean: 1536}`."""
    long = HEAD + GIVEN_SPLIT.replace("{mean: 2048, cv: 0.8, max: 8192}", "{mean: 1536}")
    short = long.replace("{mean: 1536}", "1536")
    one, other = (desk.ask("predict step", desk.file(text)) for text in (long, short))
    assert (other.code, other.told) == (one.code, one.told)
    assert other.document["results"] == one.document["results"]
    assert other.document["inputs"] == one.document["inputs"]


@pytest.mark.parametrize(
    "line",
    [
        "workload: {response_tokens: banana}",
        "workload: {response_tokens: [1, 2]}",
        "workload: {response_tokens: {cv: 1}}",
        "workload: 3",
        "trainer: {parallelism: 8}",
        "rollout: {step_time: 1}",
        "model: [1]",
        "model: {size: 8B}",
        "budget: {cost_per_step_usd: [1]}",
    ],
)
def test_no_error_names_a_class(desk: Desk, line: str) -> None:
    """What is wrong is said in words of the file."""
    answer = desk.ask("predict step", desk.file(f"{HEAD}{line}\n"))
    assert answer.code == 2
    assert not re.search(r"\b[A-Z][a-z]+[A-Z]\w*", answer.told), answer.told


TWO_KINDS = ASYNC.replace("gpus: 64}", "gpus: 64, rollout_gpu: a100-80-sxm}")
OFFLOAD = "trainer: {offload: true}\n"


@pytest.mark.long
@pytest.mark.parametrize("text", [TWO_KINDS, ASYNC + OFFLOAD] if NIGHTLY else [TWO_KINDS + OFFLOAD])
def test_what_a_flag_or_a_plan_says_of_a_loop_a_scenario_says_too(desk: Desk, text: str) -> None:
    """Pools of two kinds, and optimizer states on the host: known keys, that every command uses or names."""
    answers = desk.ask_all(desk.file(HEAD + text))
    assert {answer.command: answer.fault for answer in answers if answer.fault} == {}
    assert not (found := disagreements(desk, desk.file(HEAD + text))), _listed(found)


def _answer(command: str, results: dict[str, float], **more: object) -> Answer:
    bare = {"inputs": {}, "results": results, "rows": {}, "explain": {}, "headline": "", "warnings": [], "notes": []}
    document = {**bare, **more}
    return Answer(command, 0, document, "")


def test_what_finds_disagreements_finds_them() -> None:
    """Values and bands apart by more than a millionth; a loop that one refuses; a key that goes unmentioned."""
    near, far = 60 * (1 + NEAR / 2), 60 * (1 + NEAR * 3)
    assert not [*numbers([_answer("cost", {"step_seconds": 60}), _answer("check", {"step_seconds": near})])]
    (value,) = numbers([_answer("cost", {"step_seconds": 60}), _answer("check", {"step_seconds": far})])
    assert value.what == "value of step_seconds"
    banded = _answer("check", {"step_seconds": 60}, explain={"step_seconds": {"band": [50, 70]}})
    (band,) = numbers([_answer("cost", {"step_seconds": 60}), banded])
    assert band.what == "band of step_seconds"
    refusal = Answer("memory", 1, {}, "error: loop.yaml:3: cluster.gpus: does not fit\n       use more\n")
    assert refusal.words == "does not fit"
    (verdict,) = verdicts([_answer("cost", {}), refusal])
    assert verdict.what == "whether the loop can be"
    other = Answer("plan", 1, {}, "error: loop.yaml:3: cluster.gpus: is too small\n")
    (words,) = verdicts([other, refusal])
    assert words.what == "words of the refusal"
    no = Answer("memory", 1, {**_answer("memory", {}).document, "headline": "Nothing else."}, "")
    saying = Answer("check", 1, {**no.document, "headline": "Over budget.", "notes": ["Nothing else."]}, "")
    assert not [*verdicts([no, saying])]
    (unsaid,) = verdicts([saying, no])
    assert unsaid.what == "words of the refusal"
    assert leaves(f"{HEAD}cluster: {{gpus: 8}}\nmodel: x\n") == {"cluster.gpus": 8, "model": "x"}
    named = _answer("cost", {}, notes=["model and cluster.gpus_per_node have no bearing on this"])
    assert (named.uses("model", "x"), named.uses("cluster.gpus", 8)) == (True, False)
