"""`rlsize check`: the verdict, its exit code, and where it goes beside the table."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import tries

from rlsize.errors import DoesNotFitError, UnfinishedError
from rlsize.facts.budget import BOUNDS, quantities
from rlsize.readers.saved_files import read_plan

SCENARIO = """\
rlsize: {kind: scenario, version: 1}
model: qwen3-8b
cluster: {gpu: h100-sxm, gpus: 32, gpus_per_node: 8, interconnect: infiniband-400g}
algorithm: {name: grpo, reference: false}
workload: {prompts_per_step: 64, group_size: 8, prompt_tokens: 300, response_tokens: {mean: 3200, cv: 0.8, max: 8k}}
placement: {mode: async, max_staleness: 2, rollout_gpus: 16, trainer_gpus: 16}
rollout: {tensor_parallel: 1}
"""
HEADER = "rlsize: {kind: budget, version: 1}\n"
EASY = f"{HEADER}gpus: 64\nsteps_per_day: 10\n"
HARD = f"{HEADER}gpus: 16\n\nsteps_per_day: 10\n"
DOUBTFUL = f"{HEADER}steps_per_day: {{min: 1400}}\n"
CHANGES = f"{HEADER}cost_per_step_usd: {{max: 2.5, max_increase: 5%}}\n"
GITHUB = ("GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE")


@pytest.fixture
def check(rlsize: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Runs the command in an empty folder that holds a scenario: first the text of a budget, then flags."""
    monkeypatch.chdir(tmp_path)
    for name in GITHUB:
        monkeypatch.delenv(name, raising=False)
    Path("s.yaml").write_text(SCENARIO, encoding="utf-8")

    def run(budget: str, *args: str) -> Any:
        Path("b.yaml").write_text(budget, encoding="utf-8")
        return rlsize("check", "s.yaml", "--budget", "b.yaml", *args)

    return run


@pytest.fixture
def baseline(check: Callable[..., Any]) -> Path:
    """The loop at $2.40 a GPU-hour, saved."""
    assert check(CHANGES, "--gpu-hour", "2.40", "--save", "base.yaml").code == 0
    return Path("base.yaml")


# ---- verdicts and exit codes ----


@pytest.mark.long(by_day=1)
@pytest.mark.parametrize(
    ("budget", "flags", "code", "begins"),
    [
        (EASY, [], 0, "Within budget: 2 limits kept"),
        (HARD, [], 1, "Over budget: 1 of 2 limits is broken. GPUs: 32; the budget allows at most 16"),
        (DOUBTFUL, [], 0, "Within budget, but in doubt: 1 of 1 limit"),
        (DOUBTFUL, ["--strict"], 1, "Over budget, as --strict takes doubt for no"),
        (EASY, ["--strict"], 0, "Within budget: 2 limits kept"),
    ],
)
def test_the_exit_code_is_the_verdict(
    check: Callable[..., Any], budget: str, flags: list[str], code: int, begins: str
) -> None:
    """0 within the budget, 1 over it; what is in doubt passes unless that is not wanted."""
    ran = check(budget, *flags)
    assert ran.code == code
    assert " ".join(ran.stdout.split()).startswith(begins)
    assert max(map(len, ran.stdout.splitlines())) <= 80


def test_a_loop_that_cannot_run_is_an_answer(check: Callable[..., Any]) -> None:
    """More GPUs for an instance than there are is a no: exit code 1, and the reason."""
    text = SCENARIO.replace("tensor_parallel: 1", "tensor_parallel: 4").replace("rollout_gpus: 16", "rollout_gpus: 2")
    Path("s.yaml").write_text(text, encoding="utf-8")
    ran = check(EASY)
    assert ran.code == 1
    assert "the loop cannot run" in ran.stdout
    assert "rlsize memory s.yaml has what makes it fit" in " ".join(ran.stdout.split())
    assert "do not hold an instance" in " ".join(ran.stdout.split())


def test_a_trainer_that_does_not_fit_is_an_answer(check: Callable[..., Any]) -> None:
    """A 70B model on 8 trainer GPUs breaks a budget that says nothing of memory."""
    text = SCENARIO.replace("qwen3-8b", "llama3.1-70b").replace("trainer_gpus: 16", "trainer_gpus: 8")
    Path("s.yaml").write_text(text.replace("tensor_parallel: 1", "tensor_parallel: 8"), encoding="utf-8")
    ran = check(EASY)
    assert ran.code == 1
    assert "the loop cannot run: it dies at optimizer: needs 139.0 of 79.0 GiB" in " ".join(ran.stdout.split())


def test_what_cannot_be_judged_is_no_pass(check: Callable[..., Any]) -> None:
    """A price that nobody gave is a broken input that names the flag, the line and the key."""
    ran = check(f"{HEADER}gpus: 64\ncost_per_step_usd: 2.5\nrun_seconds: 3 d\n")
    assert (ran.code, ran.stdout) == (2, "")
    assert "b.yaml:3: cost_per_step_usd.max: not judged: cost_per_step_usd is not known" in ran.stderr
    assert "give --gpu-hour" in ran.stderr
    assert "give --steps" in ran.stderr
    filled = check(f"{HEADER}cost_per_step_usd: 2.5\nrun_seconds: 3 d\n", "--gpu-hour", "2", "--steps", "1000")
    assert filled.code == 0


def test_memory_of_an_unknown_model_is_asked_for_in_the_scenario(check: Callable[..., Any]) -> None:
    """From rates alone nobody can tell what fits; this command has no flag for a model."""
    rates = "rates: {rollout_gpu_tokens_per_second: 2000, trainer_gpu_tokens_per_second: 4000}\n"
    Path("s.yaml").write_text(SCENARIO.replace("model: qwen3-8b\n", rates), encoding="utf-8")
    assert check(EASY).code == 0
    ran = check(f"{HEADER}trainer_memory_headroom_fraction: 5%\n")
    assert ran.code == 2
    assert "give model and cluster.gpu in the scenario" in ran.stderr


@pytest.mark.parametrize(
    ("error", "code", "level"), [(UnfinishedError("gone"), 3, "error"), (DoesNotFitError("needs 90 GB"), 1, "failure")]
)
def test_an_end_without_answer_keeps_its_exit_code(
    check: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, error: Exception, code: int, level: str
) -> None:
    """What cannot be reached is neither over budget nor broken input; what does not fit is an answer."""

    def raising(*_: Any) -> Any:
        raise error

    monkeypatch.setattr("rlsize.loop.answer.answer_of", raising)
    ran = check(EASY, "--github", "--junit", "j.xml")
    assert ran.code == code
    assert str(error) in ran.stderr
    assert ran.stderr.startswith("::error title=rlsize%3A")
    assert [child.tag for child in ET.parse("j.xml").iter("testcase") for child in child] == [level]  # noqa: S314 (made here)


# ---- baselines ----


@pytest.mark.long
def test_a_baseline_is_saved_and_compared_with(check: Callable[..., Any], baseline: Path) -> None:
    """A change within its limit passes, one beyond it fails, and the same again is no change."""
    assert read_plan(str(baseline)).results["cost_per_step_usd"].low is not None
    against = ("--baseline", str(baseline), "--gpu-hour")
    assert check(CHANGES, *against, "2.50").code == 0
    over = check(CHANGES, *against, "2.60", "--json")
    assert over.code == 1
    rows = {row["bound"]: row for row in over.document["rows"]["limits"]}
    assert (rows["max"]["status"], rows["max_increase"]["status"]) == ("pass", "fail")
    assert rows["max_increase"]["change_fraction"] == pytest.approx(2.6 / 2.4 - 1)
    assert rows["max_increase"]["limit"] == pytest.approx(1.05 * rows["max_increase"]["baseline"])
    same = check(f"{HEADER}step_seconds: {{max_increase: 0, max_decrease: 0}}\n", *against, "2.40", "--strict")
    assert same.code == 0


def test_limits_on_a_change_wait_for_a_baseline(check: Callable[..., Any]) -> None:
    """Without one they are not judged, which is a broken input; the run that makes it says so instead."""
    ran = check(CHANGES, "--gpu-hour", "2.40")
    assert (ran.code, ran.stdout) == (2, "")
    assert "b.yaml:2: cost_per_step_usd.max_increase: not judged: a change needs a baseline" in ran.stderr
    saving = check(CHANGES, "--gpu-hour", "2.40", "--save", "base.yaml")
    assert saving.code == 0
    said = " ".join(saving.stdout.split())
    assert "Not judged, as this run makes the baseline: cost_per_step_usd max_increase." in said
    assert check(CHANGES, "--gpu-hour", "2.40", "--save", "base.yaml").code == 2


def test_a_baseline_that_lacks_a_quantity_is_told(check: Callable[..., Any]) -> None:
    """It was saved without a price."""
    check(EASY, "--save", "base.yaml")
    ran = check(CHANGES, "--gpu-hour", "2.40", "--baseline", "base.yaml")
    assert ran.code == 2
    assert "not judged: the baseline base.yaml lacks it" in ran.stderr


def test_numbers_that_moved_under_a_baseline_are_told(check: Callable[..., Any], baseline: Path) -> None:
    """Another version, or other facts: the verdict stands, with a warning."""
    against = ("--gpu-hour", "2.4", "--baseline", str(baseline))
    assert check(CHANGES, *against).stderr == ""
    text = baseline.read_text(encoding="utf-8")
    digest = read_plan(str(baseline)).facts_digest
    baseline.write_text(text.replace(digest, "0123456789abcdef").replace("rlsize_version: ", "rlsize_version: 9."))
    ran = check(CHANGES, *against)
    told = " ".join(ran.stderr.split())
    assert ran.code == 0
    assert f"(facts_digest 0123456789abcdef then, {digest} now)" in told
    assert "base.yaml is of rlsize 9." in told


def test_a_loop_that_cannot_run_is_no_baseline(check: Callable[..., Any]) -> None:
    """Nothing is written, and the answer says so."""
    text = SCENARIO.replace("tensor_parallel: 1", "tensor_parallel: 4").replace("rollout_gpus: 16", "rollout_gpus: 2")
    Path("s.yaml").write_text(text, encoding="utf-8")
    ran = check(EASY, "--save", "base.yaml")
    assert ran.code == 1
    assert "base.yaml is not written" in ran.stdout
    assert not Path("base.yaml").exists()


# ---- budgets ----


def test_the_scenario_s_own_budget_is_judged(rlsize: Any, check: Callable[..., Any]) -> None:
    """Without --budget; with one, the file goes first line by line, and the answer says so."""
    Path("s.yaml").write_text(f"{SCENARIO}budget: {{gpus: 16, steps_per_day: 10}}\n", encoding="utf-8")
    alone = rlsize("check", "s.yaml", "--json")
    assert alone.code == 1
    assert [(row["quantity"], row["status"], row["file"], row["line"]) for row in alone.document["rows"]["limits"]] == [
        ("gpus", "fail", "s.yaml", 8),
        ("steps_per_day", "pass", "s.yaml", 8),
    ]
    both = check(f"{HEADER}gpus: 64\n")
    assert both.code == 0
    whole = " ".join(rlsize("check", "s.yaml", "--budget", "b.yaml", "--full").stdout.split())
    assert "b.yaml goes before budget.gpus.max" in whole
    assert "steps per day" in whole


def test_without_any_budget_there_is_nothing_to_check(rlsize: Any, check: Callable[..., Any]) -> None:
    """Which is no pass."""
    assert callable(check)
    ran = rlsize("check", "s.yaml")
    assert (ran.code, ran.stdout) == (2, "")
    assert "there is no budget to check" in ran.stderr


@pytest.mark.parametrize(
    ("budget", "flags", "says"),
    [
        (f"{HEADER}costs: 2\n", [], "b.yaml:2: costs: the key costs is unknown"),
        (f"{HEADER}step_second: 2\n", [], "did you mean step_seconds"),
        (HEADER, [], "sets no limit"),
        (f"{HEADER}gpus: .nan\n", [], "not a finite number"),
        (f"{HEADER}gpus: -1\n", [], "-1 must be more than 0"),
        (f"{HEADER}gpus: {{max_increase: 5}}\n", [], "5 has no unit; write 5%"),
        (EASY, ["--baseline", "s.yaml"], "is a scenario file, not a plan file"),
        (EASY, ["--baseline", "no.yaml"], "no.yaml: no such file"),
        (EASY, ["--json", "--markdown"], "--json --markdown: only one"),
        (EASY, ["--junit", "no/j.xml"], "does not exist"),
        (EASY, ["--junit", "."], "is a directory"),
        (EASY, ["--junit", "b.yaml"], "--force replaces it"),
        (EASY, ["--save", "s.yaml"], "--force replaces it"),
        (EASY, ["--calibration", "b.yaml"], "is a budget file, not a calibration file"),
        (EASY, ["--seed", "x"], "--seed"),
        (EASY, ["--gpu-hour", "much"], "--gpu-hour"),
        (EASY, ["--plot", "x.png"], "nothing to draw"),
    ],
)
def test_bad_input_is_told_with_its_place(check: Callable[..., Any], budget: str, flags: list[str], says: str) -> None:
    """Exit code 2, nothing on stdout, nothing written."""
    before = sorted(Path().iterdir())
    ran = check(budget, *flags)
    assert (ran.code, ran.stdout) == (2, "")
    assert says in ran.stderr
    assert {path.name for path in Path().iterdir()} <= {path.name for path in before} | {"b.yaml"}


def test_faults_of_all_files_are_told_at_once(rlsize: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scenario, budget and baseline."""
    monkeypatch.chdir(tmp_path)
    for name in ("s", "b", "p"):
        Path(f"{name}.yaml").write_text("a: 1\n", encoding="utf-8")
    ran = rlsize("check", "s.yaml", "--budget", "b.yaml", "--baseline", "p.yaml")
    assert ran.code == 2
    assert "s.yaml: is neither a scenario nor a launch" in ran.stderr
    for kind in ("budget", "plan"):
        assert f"does not say that it is a {kind} file" in ran.stderr


def test_what_a_scenario_lacks_is_asked_for_in_the_scenario(check: Callable[..., Any]) -> None:
    """This command has no flags for it."""
    Path("s.yaml").write_text(SCENARIO.replace("model: qwen3-8b\n", ""), encoding="utf-8")
    ran = check(EASY)
    assert ran.code == 2
    assert "s.yaml: the model is missing" in ran.stderr
    assert "give --set model=..., or say it in the file" in ran.stderr


# ---- where it goes ----


def test_json_has_every_number(check: Callable[..., Any]) -> None:
    """Counts, the loop, what is expected of it, and each limit in base units."""
    document = check(HARD, "--json").document
    assert document["command"] == "check"
    counted = {key: document["results"][key] for key in ("limits", "broken_limits", "doubtful_limits")}
    assert counted == {"limits": 2, "broken_limits": 1, "doubtful_limits": 0}
    assert document["results"]["mode"] == "async"
    assert document["results"]["step_seconds"] > 0
    row = document["rows"]["limits"][0]
    assert (row["quantity"], row["value"], row["limit"], row["margin"], row["margin_fraction"]) == (
        "gpus",
        32,
        16,
        -16,
        -1,
    )
    assert (row["file"], row["line"], row["status"]) == ("b.yaml", 2, "fail")
    assert "baseline" in row


def test_csv_and_markdown_have_a_row_for_each_limit(check: Callable[..., Any]) -> None:
    """As every command's."""
    lines = check(HARD, "--csv").stdout.splitlines()
    assert lines[0].startswith("status,quantity,bound,value,low,high,limit,margin")
    assert [line.split(",")[:3] for line in lines[1:]] == [["fail", "gpus", "max"], ["pass", "steps_per_day", "min"]]
    assert "| fail | GPUs | 32 |" in check(HARD, "--markdown").stdout


def test_github_is_told_of_what_is_not_kept(
    check: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Annotations on stderr, at the line of the budget file, by its path in the repository; a summary is appended."""
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path.parent))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    Path("summary.md").write_text("before\n", encoding="utf-8")
    ran = check(HARD, "--github", "--json")
    assert ran.code == 1
    assert ran.document["command"] == "check"
    (command,) = [line for line in ran.stderr.splitlines() if line.startswith("::")]
    assert command.startswith(
        f"::error file={tmp_path.name}/b.yaml,line=2,title=rlsize%3A over budget%3A gpus::GPUs: 32"
    )
    summary = Path("summary.md").read_text(encoding="utf-8")
    assert summary.startswith("before\n\n### rlsize check\n\n**Over budget")
    assert "| fail | GPUs | 32 |" in summary


def test_github_hears_nothing_of_what_passes(check: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A kept budget is quiet: a summary, and no annotation; without a summary a note."""
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    ran = check(EASY, "--github")
    assert (ran.code, ran.stderr) == (0, "")
    assert "Within budget" in Path("summary.md").read_text(encoding="utf-8")
    monkeypatch.delenv("GITHUB_STEP_SUMMARY")
    ran = check(EASY, "--github")
    assert (ran.code, ran.stderr) == (0, "note: GITHUB_STEP_SUMMARY is not set, so there is no step summary\n")


def test_doubt_is_a_warning_on_github(check: Callable[..., Any]) -> None:
    """And an error where it is a no."""
    assert "::warning file=b.yaml,line=2," in check(DOUBTFUL, "--github").stderr
    assert "::error file=b.yaml,line=2," in check(DOUBTFUL, "--github", "--strict").stderr


def test_broken_input_is_annotated_and_summed_up(check: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """At its own line; the summary and the test report say that there is no verdict."""
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    ran = check(f"{HEADER}gpus: lots\n", "--github", "--junit", "j.xml")
    assert ran.code == 2
    assert "::error file=b.yaml,line=2,title=rlsize%3A the budget cannot be checked::" in ran.stderr
    assert "The budget cannot be checked" in Path("summary.md").read_text(encoding="utf-8")
    root = ET.parse("j.xml").getroot()  # noqa: S314 (made here)
    assert (root.get("tests"), root.get("errors"), root.get("failures")) == ("1", "1", "0")


@pytest.mark.parametrize("target", [".", "no/summary.md", "x" * 5000])
def test_a_summary_that_cannot_be_written_changes_no_verdict(
    check: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    """A warning, and the exit code of the verdict."""
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", target)
    ran = check(EASY, "--github")
    assert ran.code == 0
    assert "cannot be written" in ran.stderr


def test_a_full_summary_is_left_as_it_is(check: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """GitHub would show none of it if it grew beyond its limit."""
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    full = "x" * (2**20 - 10)
    Path("summary.md").write_text(full, encoding="utf-8")
    assert check(EASY, "--github").code == 0
    assert Path("summary.md").read_text(encoding="utf-8") == full


def test_junit_has_a_case_for_each_limit(check: Callable[..., Any]) -> None:
    """Written whole, over another only with --force."""
    assert check(HARD, "--junit", "j.xml").code == 1
    cases = {case.get("name"): [child.tag for child in case] for case in ET.parse("j.xml").iter("testcase")}  # noqa: S314 (made here)
    assert cases == {"gpus max": ["failure"], "steps_per_day min": ["system-out"]}
    assert check(EASY, "--junit", "j.xml").code == 2
    assert check(EASY, "--junit", "j.xml", "--force").code == 0
    assert ET.parse("j.xml").getroot().get("failures") == "0"  # noqa: S314 (made here)


@pytest.mark.parametrize("flags", [["--json", "--markdown"], ["--plot", "x.png"]])
def test_an_answer_that_cannot_be_shown_is_no_verdict_anywhere(check: Callable[..., Any], flags: list[str]) -> None:
    """Neither annotations nor the test report say that all is well, or that it is not."""
    ran = check(HARD, *flags, "--github", "--junit", "j.xml")
    assert ran.code == 2
    assert "the budget cannot be checked" in ran.stderr
    assert "over budget" not in ran.stderr
    assert ET.parse("j.xml").getroot().get("errors") == "1"  # noqa: S314 (made here)


@pytest.mark.parametrize("flag", ["--junit", "--save"])
def test_what_cannot_be_written_is_told_before_the_work(
    check: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, flag: str
) -> None:
    """Nothing is worked out first, and GitHub is told too."""

    def working(*_: Any) -> Any:
        raise AssertionError("worked before it was known whether the answer can be kept")

    monkeypatch.setattr("rlsize.loop.answer.answer_of", working)
    ran = check(EASY, flag, "no/such/file", "--github")
    assert ran.code == 2
    assert "::error title=rlsize%3A the budget cannot be checked::no/such/file: the folder" in ran.stderr


def test_names_that_mean_harm_stay_names(rlsize: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file whose name looks like a workflow command makes one annotation, and no markup in the summary."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    name = "b,line=1::x%0A\n::error::<script>.yaml"
    Path("s.yaml").write_text(SCENARIO, encoding="utf-8")
    Path(tmp_path, name.replace("/", "")).write_text(HARD, encoding="utf-8")
    ran = rlsize("check", "s.yaml", "--budget", name, "--github", "--junit", "j.xml")
    assert ran.code == 1
    commands = [line for line in ran.stderr.splitlines() if line.startswith("::")]
    assert len(commands) == 1
    assert commands[0].startswith("::error file=b%2Cline=1%3A%3Ax%250A%0A%3A%3Aerror%3A%3A<script>.yaml,line=2,")
    assert "<script>" not in Path("summary.md").read_text(encoding="utf-8")
    assert next(ET.parse("j.xml").iter("testcase")).get("file") == name  # noqa: S314 (made here)


junk = st.sampled_from(
    ["5%", "0", "1", "1e6", "-1", "nan", "{max: 1}", "{max_increase: 5%}", "{}", "", "[1]", "5 pp", "1 s"]
)


@settings(max_examples=tries(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.sampled_from([*quantities(), *BOUNDS]), junk, max_size=3), st.booleans())
def test_junk_is_answered_or_refused(check: Callable[..., Any], limits: dict[str, str], strict: bool) -> None:
    """Any budget ends in a verdict or in a message, never in anything else."""
    text = HEADER + "".join(f"{key}: {value}\n" for key, value in limits.items())
    ran = check(text, "--json", *(["--strict"] if strict else []))
    assert ran.code in {0, 1, 2}
    if ran.code == 2:
        assert (ran.stdout, bool(ran.stderr)) == ("", True)
        return
    statuses = [row["status"] for row in json.loads(ran.stdout)["rows"]["limits"]]
    assert (ran.code == 1) == ("fail" in statuses or (strict and "warn" in statuses))
