"""`rlsize plan --apply` and `--save`: what they write is a scenario that every command answers alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.effort import NIGHTLY

WORK = ("--prompts", "64", "--group", "16", "--prompt-tokens", "300", "--response-tokens", "2k")
MODEL = ("--model", "qwen3-8b", "--gpu", "h100-sxm", *WORK)
POOLS = ("--rollout-pool", "l40s:32:0.9", "--trainer-pool", "h100-sxm:16:3")
RATES = ("--gpus", "64", "--rollout-tps", "2000 ± 100", "--trainer-tps", "6000", "--batch-tokens", "786432")
LOOPS = {
    "one pool": (*MODEL, "--gpus", "16", "--mode", "colocated", "--gpu-hour", "2"),
    "two pools": (*MODEL, "--gpus", "16", "--mode", "async", "--gpu-hour", "2", "--max-staleness", "3"),
    "two prices": (
        *MODEL, "--gpus", "16", "--mode", "async", "--rollout-gpu-hour", "1", "--trainer-gpu-hour", "3 ± 0.2",
    ),
    "one step off": (*MODEL, "--gpus", "16", "--mode", "one-step-off", "--gpu-hour", "2", "--engine", "sglang"),
    "two kinds": (*MODEL, *POOLS, "--objective", "cost"),
    "a known instance": (
        *MODEL, "--gpus", "16", "--mode", "async", "--per-instance", "4000 ± 200", "--gpus-per-instance", "2",
    ),
    "a known trainer": (
        *MODEL, "--gpus", "16", "--mode", "synchronous", "--train-seconds", "40", "--measured-trainer-gpus", "8",
    ),
    "both rates": (*RATES, "--mode", "async", "--gpu-hour", "2"),
    "both rates, one pool": (*RATES, "--mode", "colocated", "--gpu-hour", "2"),
    "a large model": (
        "--model", "qwen3-30b-a3b", "--gpu", "h100-sxm", *WORK, "--gpus", "32", "--mode", "async", "--no-old-logprob",
        "--optimizer", "adamw-bf16-states",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def plans() -> dict[str, tuple[Path, Any]]:
    """Each plan that was made, with the folder of its files."""
    return {}


@pytest.fixture(params=[*LOOPS][:: 1 if NIGHTLY else 2])
def planned(
    request: pytest.FixtureRequest,
    rlsize: Any,
    plans: dict[str, tuple[Path, Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Any:
    """A plan, applied to a file and saved to another one, in the folder where the test runs; made once."""
    folder, _ = plans.get(request.param, (tmp_path, None))
    monkeypatch.chdir(folder)
    if folder == tmp_path:
        ran = rlsize("plan", *LOOPS[request.param], "--apply", "s.yaml", "--save", "p.yaml", "--json")
        assert ran.code == 0, ran.stderr
        plans[request.param] = folder, ran.document
    return plans[request.param][1]


@pytest.mark.long
@pytest.mark.parametrize("file", ["s.yaml", "p.yaml"])
def test_an_applied_plan_is_the_plan(rlsize: Any, planned: Any, file: str) -> None:
    """The very numbers and bands of the plan, by a check and by a plan that finds it in the scenario as yours."""
    checked = rlsize("check", file, "--set", "budget.gpus=100000", "--json").document
    for best, value in planned["results"].items():
        key = best.removeprefix("best_")
        if key in checked["results"] and isinstance(value, float):
            assert checked["results"][key] == value, key
            assert checked["explain"][key].get("band") == planned["explain"][best].get("band"), key
    for key, value in checked["inputs"].items():
        if key in planned["inputs"] and key not in {"gpus", "max_staleness", "measured_trainer_gpus"}:
            assert value == planned["inputs"][key], key
    assert not checked["warnings"]


@pytest.mark.long
def test_an_applied_plan_is_predicted_and_reviewed_alike(rlsize: Any, planned: Any) -> None:
    """`predict step` has the same parts, and a review of it finds it again."""
    if "model" in planned["inputs"] and not {"train_seconds", "instance_tokens_per_second"} & planned["inputs"].keys():
        step = rlsize("predict", "step", "s.yaml", "--json").results
        for key in ("step_seconds", "generation_seconds", "train_seconds", "sync_seconds"):
            assert step[key] == pytest.approx(planned["results"][f"best_{key}"], rel=1e-9)
    asked = ("--mode", planned["results"]["best_mode"], "--objective", planned["inputs"]["objective"])
    reviewed = rlsize("report", "s.yaml", "-o", "r.md", *asked, "--json")
    assert reviewed.code == 0
    for key in ("step_seconds", "cost_per_step_usd", "gpus"):
        before = planned["results"][f"best_{key}"]
        assert before is None or reviewed.results[f"best_{key}"] == pytest.approx(before, rel=1e-9)
    assert not [one for one in reviewed.document["warnings"] if "cannot run" in one]


@pytest.mark.long
def test_an_applied_plan_names_its_command(planned: Any) -> None:
    """The first line, and what was planned is no default of a later rlsize."""
    assert planned["command"] == "plan"
    text = Path("s.yaml").read_text(encoding="utf-8")
    assert text.startswith("# rlsize plan --")
    assert "--apply s.yaml" in text.splitlines()[0]
    saved = yaml.safe_load(Path("p.yaml").read_text(encoding="utf-8"))
    assert saved["scenario"]["placement"] == yaml.safe_load(text)["placement"]
    assert saved["command"] == text.splitlines()[0].removeprefix("# ").removesuffix(" --apply s.yaml")


@pytest.mark.long
def test_what_a_scenario_says_is_kept(
    rlsize: Any, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sections that no plan touches, and flags over them; the plan of an example stands in its file."""
    monkeypatch.chdir(tmp_path)
    example = str(checkout / "examples" / "unmeasured-8b.yaml")
    ran = rlsize("plan", example, "--mode", "async", "--response-tokens", "1k", "--apply", "s.yaml", "--json")
    assert ran.code == 0
    found = yaml.safe_load(Path("s.yaml").read_text(encoding="utf-8"))
    before = yaml.safe_load(Path(example).read_text(encoding="utf-8"))
    assert found["workload"]["response_tokens"]["mean"] == "1k"
    assert found["workload"]["prompts_per_step"] == before["workload"]["prompts_per_step"]
    assert found["model"] == before["model"]
    assert example in Path("s.yaml").read_text(encoding="utf-8").splitlines()[0]


def test_a_hybrid_plan_is_refused_by_apply_and_saved_without_a_scenario(
    rlsize: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scenario cannot say that trainer GPUs are lent; the saved plan still serves as a baseline."""
    monkeypatch.chdir(tmp_path)
    asked = ("plan", *RATES, "--mode", "hybrid")
    refused = rlsize(*asked, "--apply", "s.yaml")
    assert refused.code == 2
    assert "hybrid" in refused.stderr
    assert not Path("s.yaml").exists()
    assert rlsize(*asked, "--save", "p.yaml").code == 0
    told = rlsize("check", "p.yaml", "--set", "budget.gpus=64")
    assert told.code == 2
    assert "without a scenario" in told.stderr


@pytest.mark.long
def test_a_loop_that_cannot_exist_is_refused(rlsize: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain data parallelism of a model that does not fit: not ranked by a plan, and no for a check."""
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text(
        "rlsize: {kind: scenario, version: 1}\nmodel: qwen3-32b\ncluster: {gpu: h100-sxm, gpus: 64}\n"
        "workload: {prompts_per_step: 64, group_size: 8, prompt_tokens: 300, response_tokens: 1000}\n"
        "placement: {mode: async, rollout_gpus: 32, trainer_gpus: 32}\n"
        "trainer: {parallelism: {tensor: 4, data: 8}}\nbudget: {gpus: 64}\n",
        encoding="utf-8",
    )
    planned = rlsize("plan", "s.yaml", "--mode", "async", "--json")
    assert planned.code == 0
    assert any("The loop cannot run" in one and "it dies at" in one for one in planned.document["warnings"])
    assert not [row for row in planned.document["rows"]["candidates"] if row["verdict"].startswith("yours")]
    checked = rlsize("check", "s.yaml")
    assert checked.code == 1
    assert "dies at" in checked.stdout


@pytest.mark.long
@pytest.mark.parametrize("command", ["plan", "check"])
def test_tools_beside_a_known_rate_are_left_to_the_simulator(
    rlsize: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """A rate that may not hold them is no ground for a plan or a verdict; predicted ones hold them, and name a pool."""
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text(
        "rlsize: {kind: scenario, version: 1}\nmodel: qwen3-8b\ncluster: {gpu: h100-sxm, gpus: 16}\n"
        "workload: {prompts_per_step: 64, group_size: 8, prompt_tokens: 300, response_tokens: 1000}\n"
        "placement: {mode: async, rollout_gpus: 8, trainer_gpus: 8}\n"
        "agents: {turns: 4, tool_seconds: 20, environments: 64}\nbudget: {gpus: 64}\n",
        encoding="utf-8",
    )
    ran = rlsize(command, "s.yaml", "--json")
    assert ran.code == 0
    assert any("64 environments are the bottleneck" in one for one in ran.document["warnings"])
    known = ("--set", "rates.instance_tokens_per_second=4000", "--set", "rollout.tensor_parallel=1")
    ran = rlsize(command, "s.yaml", *known)
    assert ran.code == 2
    assert "rlsize simulate" in ran.stderr


@pytest.mark.long
def test_gpus_that_make_no_whole_instance_are_told(
    rlsize: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loop of five rollout GPUs whose instances nobody sized: check and plan have the same one."""
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text(
        "rlsize: {kind: scenario, version: 1}\nmodel: qwen3-8b\ncluster: {gpu: h100-sxm}\n"
        "workload: {prompts_per_step: 64, group_size: 8, prompt_tokens: 300, response_tokens: 1000}\n"
        "placement: {mode: async, rollout_gpus: 5, trainer_gpus: 8}\nprices: {gpu_hour: 2}\nbudget: {gpus: 64}\n",
        encoding="utf-8",
    )
    checked = rlsize("check", "s.yaml", "--json")
    yours = rlsize("plan", "s.yaml", "--json").document["rows"]["candidates"][-1]
    assert yours["verdict"].startswith("yours")
    for key in ("step_seconds", "cost_per_step_usd", "rollout_gpus", "trainer_gpus"):
        assert yours[key] == checked.results[key]
    idle = 5 - checked.results["rollout_gpus"]
    told = [one for one in checked.document["warnings"] if "stay idle" in one]
    assert bool(told) == bool(idle)
    sized = rlsize("check", "s.yaml", "--set", "rollout.tensor_parallel=4", "--json").document
    assert any("1 rollout GPUs make no whole instance of 4" in one for one in sized["warnings"])


def test_files_are_named_from_where_the_scenario_lies(
    rlsize: Any, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rates file of a flag, and a scenario written into another folder."""
    monkeypatch.chdir(tmp_path)
    Path("rates.yaml").write_bytes((checkout / "examples" / "rates.yaml").read_bytes())
    Path("sub").mkdir()
    asked = ("plan", str(checkout / "examples" / "grpo-32b.yaml"), "--per-instance", "rates.yaml", "--mode", "async")
    planned = rlsize(*asked, "--apply", "sub/s.yaml", "--json").results
    checked = rlsize("check", "sub/s.yaml", "--set", "budget.gpus=100000", "--json").results
    assert checked["step_seconds"] == planned["best_step_seconds"]
    assert "../rates.yaml" in Path("sub/s.yaml").read_text(encoding="utf-8")


KINDS = """\
rlsize: {kind: scenario, version: 1}
model: qwen3-8b
cluster: {rollout_gpu: l40s, trainer_gpu: h100-sxm}
workload: {prompts_per_step: 64, group_size: 8, prompt_tokens: 300, response_tokens: 1000}
prices: {rollout_gpu_hour: 0.9, trainer_gpu_hour: 3}
budget: {gpus: 64}
"""


@pytest.mark.long
def test_pools_of_two_kinds_can_be_said(rlsize: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each side on its own kind, at its own price; a search keeps to what there is of each."""
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text(f"{KINDS}placement: {{mode: async, rollout_gpus: 16, trainer_gpus: 8}}\n", "utf-8")
    checked = rlsize("check", "s.yaml", "--json").results
    assert (checked["rollout_gpu"], checked["trainer_gpu"]) == ("l40s", "h100-sxm")
    hours = checked["step_seconds"] / 3600
    assert checked["cost_per_step_usd"] == pytest.approx(
        hours * (0.9 * checked["rollout_gpus"] + 3 * checked["trainer_gpus"])
    )
    rows = rlsize("plan", "s.yaml", "--json").document["rows"]["candidates"]
    assert rows[-1]["verdict"].startswith("yours")
    assert rows[-1]["step_seconds"] == checked["step_seconds"]
    assert all(row["rollout_gpus"] <= 16 and row["trainer_gpus"] <= 8 for row in rows)
    assert not {row["mode"] for row in rows} & {"colocated", "hybrid"}


def test_two_kinds_need_a_number_of_each(rlsize: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum of two kinds says nothing, and what shares its GPUs has one kind."""
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text(KINDS.replace("cluster: {", "cluster: {gpus: 24, "), "utf-8")
    ran = rlsize("plan", "s.yaml")
    assert ran.code == 2
    assert "two kinds of GPUs" in ran.stderr
    for command in ("plan", "check"):
        shared = rlsize(command, "s.yaml", "--set", "placement.mode=colocated")
        assert shared.code == 2
        assert "colocated sides share" in shared.stderr


def test_a_review_needs_two_rates_and_no_more(rlsize: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan of the same flags, as a page."""
    monkeypatch.chdir(tmp_path)
    asked = (*RATES, "--mode", "async")
    reviewed = rlsize("report", *asked, "-o", "r.md", "--json").results
    planned = rlsize("plan", *asked, "--json").results
    assert reviewed["best_step_seconds"] == planned["best_step_seconds"]
    assert "rlsize report --gpus 64" in Path("r.md").read_text(encoding="utf-8")


@pytest.mark.long
def test_a_review_is_a_decision(rlsize: Any, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What waiting costs beside the loop of today, from which worth of an hour on GPUs pay, and a ladder of GPUs."""
    monkeypatch.chdir(tmp_path)
    own = ("placement.rollout_gpus=24", "placement.trainer_gpus=8", "trainer.parallelism.fsdp=8")
    asked = ("--gpu-hour", "2", *(part for one in own for part in ("--set", one)))
    assert rlsize("report", str(checkout / "examples" / "unmeasured-8b.yaml"), *asked, "-o", "r.md").code == 0
    page = Path("r.md").read_text("utf-8")
    decision = page.partition("## The decision")[2].partition("## Try other numbers")[0]
    assert "Today's loop, async 24 + 8, takes" in decision
    assert "where an hour sooner is worth $" in decision
    rows = [row for row in decision.splitlines() if " + " in row and row[0] == "|"]
    rungs = [row.strip("| *").split("|")[0].strip(" *") for row in rows]
    assert rungs == sorted(set(rungs), key=float)
    assert decision.count("| **") > 0
    risks = page.partition("## Risks, and what would show them")[2].partition("## How to verify")[0]
    assert "taken by default. What nobody said moves a step so: --updates 1" in risks
    assert "| response tokens 3,840 |" in risks  # a fifth more than 3,200
    assert all(case in risks for case in ("responses twice as long", "a model twice the size"))
