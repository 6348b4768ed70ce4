"""`rlsize init` without a terminal: flags and usual answers decide."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.effort import tries

from rlsize.commands.init.questions import LIMITS, QUESTIONS
from rlsize.facts.budget import Limit
from rlsize.facts.fields import Uncertain
from rlsize.quantities.table import PLACES
from rlsize.readers.profiles import Catalogue
from rlsize.readers.scenarios import ScenarioFile, read_scenario
from rlsize.shell.app import COMMANDS

Run = Callable[..., Any]
CONFIG = Path(__file__).parents[1] / "readers" / "data" / "huggingface" / "llama3.1-8b.json"
RATES = """\
rlsize: {kind: rates, version: 1}
measured_at: 2026-11-20T16:12:00+00:00
source: {method: typed}
conditions: {}
"""


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test runs in an empty folder."""
    monkeypatch.chdir(tmp_path)


def _here() -> list[str]:
    """The files of the folder."""
    return sorted(path.name for path in Path().iterdir())


def test_without_flags_a_starter_is_written_that_works_as_it_stands(rlsize: Run) -> None:
    """`fleet` and `predict step` answer from it; the schema lies beside it."""
    ran = rlsize("init")
    assert (ran.code, ran.stderr) == (0, "")
    assert _here() == ["scenario.schema.json", "scenario.yaml"]
    assert rlsize("fleet", "scenario.yaml", "--json").results["matched_instances"] == 13
    assert rlsize("predict", "step", "scenario.yaml").code == 0


def test_the_next_commands_are_there_and_take_the_file(rlsize: Run) -> None:
    """What is to be pasted is a command of this program with the file's name, quoted for a shell."""
    name = "my plan's.yaml"
    lines = [line for line in rlsize("init", name).stdout.splitlines() if "rlsize " in line]
    assert lines
    for line in lines:
        program, command, *rest = shlex.split(line.removeprefix("next:"), comments=True)
        assert (program, rest[-1]) == ("rlsize", name)
        assert command in COMMANDS
    assert any("rlsize fleet" in line for line in lines)
    assert rlsize("fleet", name).code == 0


def test_rates_that_nobody_typed_are_not_made_up(rlsize: Run) -> None:
    """One flag, and what is measured is off, as are prices; `fleet` is not what comes next."""
    ran = rlsize("init", "--model", "qwen3-8b", "--yes")
    assert ran.code == 0
    assert "rlsize fleet" not in ran.stdout
    found = read_scenario("scenario.yaml")
    assert (found.value("model"), found.value("cluster.gpus"), found.value("workload.group_size")) == (
        "qwen3-8b",
        64,
        8,
    )
    assert [found.value(key) for key in ("rates.instance_tokens_per_second", "rates.train_seconds")] == [None, None]
    assert [found.value(f"prices.{key}") for key in ("gpu_hour", "as_of", "region")] == [None, None, None]
    assert (found.value("placement.mode"), found.value("placement.max_staleness")) == (None, None)


def test_every_flag_reaches_the_file(rlsize: Run) -> None:
    """Each question's flag, with units and spreads as they are typed."""
    ran = rlsize(
        "init", "--model", "Qwen3-8B", "--gpu", "h100", "--gpus", "32", "--gpus-per-node", "4", "--algorithm", "PPO",
        "--prompts", "128", "--group", "4", "--prompt-tokens", "1k", "--response-tokens", "3.2k",
        "--max-response-tokens", "16k", "--mode", "async", "--max-staleness", "1", "--trainer-gpus", "16",
        "--rollout-gpus", "8", "--per-instance", "4 ± 0.2 ktok/s", "--rollout-tensor-parallel", "2",
        "--train-seconds", "20 ± 10 %", "--measured-trainer-gpus", "16", "--gpu-hour",
        "$2.50", "--as-of", "2026-11-20", "--region", "eu # 1: x", "--budget", "cost_per_step_usd=2.5", "--budget",
        "trainer_idle_fraction 5%", "--budget", "steps_per_day: 1800", "--yes",
    )  # fmt: skip
    assert (ran.code, ran.stderr) == (0, "")
    found = read_scenario("scenario.yaml")
    assert {key: found.value(key) for key in [question.key for question in QUESTIONS]} == {
        "model": "qwen3-8b",
        "cluster.gpu": "h100-sxm",
        "cluster.gpus": 32,
        "cluster.gpus_per_node": 4,
        "algorithm.name": "ppo",
        "workload.prompts_per_step": 128.0,
        "workload.group_size": 4.0,
        "workload.prompt_tokens": 1000.0,
        "workload.response_tokens.mean": 3200.0,
        "workload.response_tokens.max": 16000.0,
        "placement.mode": "async",
        "placement.max_staleness": 1.0,
        "placement.trainer_gpus": 16,
        "placement.rollout_gpus": 8,
        "rates.instance_tokens_per_second": Uncertain(value=4000.0, deviation=200.0),
        "rollout.tensor_parallel": 2,
        "rates.measured_trainer_gpus": 16,
        "rates.train_seconds": Uncertain(value=20.0, deviation=2.0),
        "prices.gpu_hour": Uncertain(value=2.5),
        "prices.as_of": "2026-11-20",
        "prices.region": "eu # 1: x",
    }
    assert found.scenario.budget.limits == {
        "cost_per_step_usd": Limit(max=2.5),
        "trainer_idle_fraction": Limit(max=0.05),
        "steps_per_day": Limit(min=1800.0),
    }


def test_all_that_is_wrong_is_told_at_once_and_nothing_is_written(rlsize: Run) -> None:
    """Names, numbers, words, dates, limits, files and contradictions, each with its flag and the way out."""
    ran = rlsize(
        "init", "--model", "qwen3-23b", "--gpu", "h100-sxn", "--gpus", "nine", "--prompts", "20 ± 2", "--mode",
        "asinc", "--rates", "no.yaml", "--as-of", "today", "--region", "", "--budget", "cost_per_stp_usd=1",
        "--budget", "gpus", "--response-tokens", "20k", "--max-response-tokens", "1k",
    )  # fmt: skip
    assert (ran.code, ran.stdout, _here()) == (2, "", [])
    for told in (
        "--model: there is no model profile 'qwen3-23b'", "qwen3-32b", "--gpu: there is no gpu profile 'h100-sxn'",
        "h100-sxm", "--gpus: 'nine' is not a count", "--prompts: 20 ± 2 has a ±", "--mode: 'asinc' is unknown",
        "async", "no.yaml: no such file", "--as-of: 'today' is no date", "--region: is empty",
        "'cost_per_stp_usd' cannot be limited", "did you mean cost_per_step_usd", "gpus has no limit",
        "a mean of 20000 tokens lies above the cap of 1000",
    ):  # fmt: skip
        assert told in ran.stderr


@pytest.mark.parametrize(
    ("flags", "values"),
    [
        (["--gpus", "64", "--trainer-gpus", "48", "--rollout-gpus", "32"], ["48", "32", "64"]),
        (["--gpus", "16", "--trainer-gpus", "16"], ["16 of 16", "leave none"]),
        (["--gpus", "16", "--rollout-gpus", "20"], ["20 of 16", "leave none"]),
        (["--mode", "colocated", "--gpus", "16", "--trainer-gpus", "8"], ["colocated", "16", "8"]),
        (["--mode", "colocated", "--max-staleness", "2"], ["2", "colocated"]),
        (["--mode", "one-step-off", "--max-staleness", "2"], ["2", "one-step-off"]),
        (["--response-tokens", "4k", "--max-response-tokens", "2k"], ["2000", "4000"]),
        (["--as-of", "2026-11-20"], ["2026-11-20", "--gpu-hour"]),
        (["--region", "moon"], ["moon", "--gpu-hour"]),
        (["--trainer-gpus", "32", "--budget", "trainer_gpus=16"], ["32", "16"]),
        (["--budget", "gpus=16", "--budget", "gpus=32"], ["gpus", "two limits"]),
    ],
    ids=" ".join,
)
def test_a_contradiction_names_both_values(rlsize: Run, flags: list[str], values: list[str]) -> None:
    """And nothing is written."""
    ran = rlsize("init", *flags)
    assert (ran.code, _here()) == (2, [])
    assert ran.stderr.count("error:") == 1
    assert all(value in ran.stderr for value in values)


@pytest.mark.parametrize(
    "flags",
    [
        ["--mode", "colocated", "--gpus", "16", "--trainer-gpus", "16"],
        ["--max-staleness", "2"],
        ["--gpus", "16", "--trainer-gpus", "8", "--rollout-gpus", "8"],
        ["--gpu-hour", "none"],
        ["--mode", "plan", "--trainer-gpus", "plan"],
        ["--response-tokens", "2k", "--max-response-tokens", "2k"],
    ],
    ids=" ".join,
)
def test_what_only_looks_like_a_contradiction_is_taken(rlsize: Run, flags: list[str]) -> None:
    """All GPUs of a colocated loop, a cap for whatever `plan` chooses, words that leave it open."""
    assert rlsize("init", *flags).code == 0
    assert read_scenario("scenario.yaml").value("model") == "qwen3-32b"


def test_gpus_of_both_sides_add_up_to_no_usual_number(rlsize: Run) -> None:
    """A file that says 8 and 8 says no 64, of which the rest would be in neither pool."""
    rlsize("init", "x.yaml", "--rollout-gpus", "8", "--trainer-gpus", "8")
    assert "# gpus: 64" in Path("x.yaml").read_text(encoding="utf-8")


def test_the_usual_cut_off_is_beyond_the_mean_and_within_the_context(rlsize: Run) -> None:
    """Long means have a longer one; a short context a shorter one."""
    for flags, longest in (
        (["--response-tokens", "10k", "--model", "llama3.1-8b"], 64_000),
        (["--model", "llama2-7b", "--prompt-tokens", "96"], 4_000),
        ([], 8_000),
    ):
        assert rlsize("init", *flags, "--yes", "--force").code == 0
        assert read_scenario("scenario.yaml").value("workload.response_tokens.max") == longest


@pytest.mark.long
def test_files_are_named_as_the_scenario_s_folder_sees_them(rlsize: Run) -> None:
    """A scenario elsewhere finds the config.json and the rates that were named from here."""
    Path("plans").mkdir()
    Path("config.json").write_bytes(CONFIG.read_bytes())
    Path("rates.yaml").write_text(
        f"{RATES}instance_tokens_per_second: {{mean: 4000, instances: 1}}\ntrain_seconds: 20\n"
        "gpus_per_instance: 1\ntrainer_gpus: 16\n",
        encoding="utf-8",
    )
    ran = rlsize("init", "plans/own.yaml", "--model", "config.json", "--rates", "rates.yaml")
    assert (ran.code, ran.stderr) == (0, "")
    assert "rlsize fleet plans/own.yaml" in ran.stdout
    found = read_scenario("plans/own.yaml")
    assert found.value("model") == "../config.json"
    assert found.value("rates.instance_tokens_per_second") == "../rates.yaml"
    assert rlsize("memory", "plans/own.yaml").code == 0
    assert rlsize("fleet", "plans/own.yaml").code == 0
    assert rlsize("init", "here.yaml", "--model", str(Path("config.json").resolve())).code == 0
    assert read_scenario("here.yaml").value("model") == str(Path("config.json").resolve())


def test_a_folder_called_like_a_model_stays_a_folder(rlsize: Run) -> None:
    """`./qwen3-8b` is not written as the profile of that name."""
    Path("qwen3-8b").mkdir()
    Path("qwen3-8b/config.json").write_bytes(CONFIG.read_bytes())
    assert rlsize("init", "--model", "./qwen3-8b").code == 0
    assert read_scenario("scenario.yaml").value("model") == "./qwen3-8b"


def test_a_rates_file_without_a_rate_of_instances_is_refused(rlsize: Run) -> None:
    """No command could take it for one; so is one whose name no scenario takes."""
    Path("rates.yaml").write_text(f"{RATES}train_seconds: 20\n", encoding="utf-8")
    Path("rates.txt").write_text("", encoding="utf-8")
    ran = rlsize("init", "--per-instance", "rates.yaml")
    assert (ran.code, "holds no instance_tokens_per_second" in ran.stderr) == (2, True)
    ran = rlsize("init", "--rates", "rates.txt")
    assert (ran.code, "does not end in .yaml" in ran.stderr) == (2, True)
    assert rlsize("init", "--rates", "rates.yaml", "--per-instance", "4000").stderr.count("error:") == 2


def test_what_commands_will_stumble_over_is_told(rlsize: Run) -> None:
    """A lower bound, and dollars without a price: the file is written all the same."""
    Path("rates.yaml").write_text(
        f"{RATES}instance_tokens_per_second: {{mean: 4000, instances: 1, lower_bound: true}}\n", encoding="utf-8"
    )
    ran = rlsize("init", "--rates", "rates.yaml", "--budget", "cost_per_run_usd=100")
    assert ran.code == 0
    assert "4,000.0 tok/s is a lower bound" in ran.stderr
    assert "no price" in ran.stderr
    assert rlsize("init", "b.yaml", "--gpu-hour", "2", "--budget", "cost_per_run_usd=100").stderr == ""


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--per-instance", "4000", "--mode", "async", "--trainer-gpus", "16"], "gpus_per_instance is missing"),
        (["--model", "qwen3-32b", "--mode", "async", "--trainer-gpus", "8"], "it dies at"),
    ],
    ids=" ".join,
)
def test_a_loop_that_cannot_be_is_told_as_commands_tell_it(rlsize: Run, flags: list[str], told: str) -> None:
    """The file is written all the same, as it can be changed; what `predict step` will say is said."""
    ran = rlsize("init", *flags, "--yes")
    assert (ran.code, told in ran.stderr) == (0, True)
    later = rlsize("predict", "step", "scenario.yaml")
    assert later.code in {1, 2}
    assert told in " ".join((later.stdout + later.stderr).split())


def test_nothing_is_overwritten_without_force(rlsize: Run) -> None:
    """Refused at once, and what is there stays; --force replaces scenario and schema."""
    Path("scenario.yaml").write_text("kept\n", encoding="utf-8")
    ran = rlsize("init", "--gpus", "8")
    assert (ran.code, "--force replaces it" in ran.stderr) == (2, True)
    assert (Path("scenario.yaml").read_text(encoding="utf-8"), _here()) == ("kept\n", ["scenario.yaml"])
    Path("scenario.schema.json").write_text("{}", encoding="utf-8")
    assert rlsize("init", "--gpus", "8", "--force").code == 0
    assert read_scenario("scenario.yaml").value("cluster.gpus") == 8
    assert '"rlsize scenario file"' in Path("scenario.schema.json").read_text(encoding="utf-8")


def test_a_schema_of_the_folder_is_left_as_it_is(rlsize: Run) -> None:
    """It serves every scenario beside it; one of another version, or one that is no text, is told."""
    assert rlsize("init", "a.yaml").code == 0
    again = rlsize("init", "b.yaml")
    assert (again.code, again.stderr, "left scenario.schema.json" in again.stdout) == (0, "", True)
    Path("scenario.schema.json").write_bytes(b"\xff")
    other = rlsize("init", "c.yaml")
    assert (other.code, "is not the schema of this rlsize" in other.stderr) == (0, True)


@pytest.mark.parametrize("name", ["", ".", "no/such/a.yaml", "a\0b", "scenario.schema.json", "x" * 300, "/proc/a.yaml"])
def test_a_place_that_takes_no_file_is_refused_with_the_other_faults(rlsize: Run, name: str) -> None:
    """Folders, missing ones, impossible names, the schema's own, a folder of no disk."""
    if name.startswith("/proc") and not Path("/proc/self").is_dir():
        pytest.skip("needs /proc")
    ran = rlsize("init", name, "--gpus", "nine")
    assert (ran.code, ran.stdout, ran.stderr.count("error:"), _here()) == (2, "", 2, [])


def test_the_terminal_takes_no_scenario(rlsize: Run) -> None:
    """`-` is no name of a file: a schema is to lie beside it."""
    ran = rlsize("init", "-")
    assert (ran.code, _here()) == (2, [])
    assert "-: is the terminal" in ran.stderr


def test_a_folder_where_the_schema_belongs_is_refused(rlsize: Run) -> None:
    """Neither file is written."""
    Path("scenario.schema.json").mkdir()
    ran = rlsize("init")
    assert (ran.code, "is a directory" in ran.stderr, _here()) == (2, True, ["scenario.schema.json"])


def test_profiles_of_one_s_own_can_be_named(rlsize: Run) -> None:
    """`--profiles` as in other commands."""
    Path("own").mkdir()
    add = rlsize("profiles", "add-model", str(CONFIG), "--name", "mine", "--output", "own")
    assert add.code == 0
    assert rlsize("init", "--model", "mine").code == 2
    assert rlsize("init", "--model", "mine", "--profiles", "own").code == 0
    assert read_scenario("scenario.yaml").value("model") == "mine"


MODELS = sorted(Catalogue().names("model"))
GPUS = sorted(Catalogue().names("gpu"))
NUMBERS = ("1", "2", "8", "64", "300", "1.5k", "0.5", "1e3")
SPREADS = ("4000", "20 ± 2", "20 ± 10 %", "0.5")


def _said(key: str) -> st.SearchStrategy[str]:
    """Valid texts for the flag of a question."""
    fixed = {
        "model": st.sampled_from(MODELS),
        "cluster.gpu": st.sampled_from(GPUS),
        "prices.as_of": st.dates().map(str),
        "prices.region": st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20).filter(str.strip),
    }
    if key in fixed:
        return fixed[key]
    if key in {"algorithm.name", "placement.mode"}:
        return st.sampled_from(PLACES[key].words)
    kind = PLACES[key].quantity
    return st.sampled_from(SPREADS if kind.spread else [n for n in NUMBERS if not (kind.whole and n == "0.5")])


@st.composite
def flag_lines(draw: st.DrawFn) -> dict[str, tuple[str, str]]:
    """Key to flag and text, for any of the questions; a day and a region come with a price."""
    chosen = draw(st.lists(st.sampled_from(QUESTIONS), unique=True, max_size=12))
    if {question.flag for question in chosen} & {"--as-of", "--region"}:
        chosen += [question for question in QUESTIONS if question.flag == "--gpu-hour" and question not in chosen]
    return {question.key: (question.flag, draw(_said(question.key))) for question in chosen}


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much], max_examples=tries(20)
)
@given(said=flag_lines(), limits=st.dictionaries(st.sampled_from(LIMITS), st.sampled_from(["0.5", "1"]), max_size=3))
def test_any_valid_flags_make_a_file_that_says_the_same(
    rlsize: Run, said: dict[str, tuple[str, str]], limits: dict[str, str]
) -> None:
    """What was typed is what the file loads with; the only refusals are contradictions, which leave no file."""
    Path("scenario.yaml").unlink(missing_ok=True)
    words = [f"{flag}={text}" for flag, text in said.values()]
    ran = rlsize("init", *words, *(f"--budget={name}={text}" for name, text in limits.items()), "--yes")
    if ran.code == 2:
        assert not Path("scenario.yaml").exists()
        assert " not a " not in ran.stderr
        assume(False)
    assert ran.code == 0
    found = read_scenario("scenario.yaml")
    for key, (_, text) in said.items():
        assert found.value(key) == _meant(found, key, text)
    assert set(found.scenario.budget.limits) == set(limits)


def _meant(found: ScenarioFile, key: str, text: str) -> Any:
    """What a flag's text means, by the reader of quantities alone."""
    if isinstance(found.value(key), str):
        return text
    from rlsize.units import uncertain

    kind = PLACES[key].quantity
    value, deviation = uncertain(text, kind.unit)
    return Uncertain(value=value, deviation=deviation) if kind.spread else value
