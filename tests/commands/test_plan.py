"""`rlsize plan`: from flags and from scenarios, in every form, and what it refuses before any work."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.effort import tries

from rlsize.loop.search import searched
from rlsize.readers.saved_files import read_plan
from rlsize.reports.plan import plan_report
from rlsize.shell.inputs import Inputs

FLAGS = ("plan", "--gpus", "64", "--rollout-tps", "2000", "--trainer-tps", "6000", "--batch-tokens", "786432")
MODEL = ("plan", "--model", "qwen3-8b", "--gpu", "h100-sxm", "--prompts", "64", "--group", "16",
         "--prompt-tokens", "300", "--response-tokens", "2k")  # fmt: skip
RESULTS = {
    "mode", "rollout_layout", "trainer_layout", "bottleneck", "step_seconds", "steps_per_day", "cost_per_step_usd",
    "gpu_hours_per_step", "run_seconds", "cost_per_run_usd", "trainer_idle_fraction", "rollout_idle_fraction",
    "staleness_steps", "sync_fraction", "gpus", "rollout_gpus", "trainer_gpus", "loop_tokens_per_second",
    "loop_tokens_per_gpu_second", "generation_seconds", "tail_seconds", "train_seconds", "sync_seconds",
    "sync_exposed_seconds", "overhead_seconds", "rollout_memory_headroom_fraction", "trainer_memory_headroom_fraction",
}  # fmt: skip
BEST = {f"best_{key}" for key in RESULTS}
ROWS = {
    "candidates": {
        "mode", "rollout_gpus", "trainer_gpus", "max_staleness", "rollout_layout", "trainer_layout", "step_seconds",
        "cost_per_step_usd", "gpu_hours_per_step", "trainer_idle_fraction", "rollout_idle_fraction", "times_best",
        "times_best_low", "times_best_high", "verdict",
    },
    "next_gpus": {
        "side", "gpus_change", "split", "step_seconds", "step_change_seconds", "step_change_per_gpu_seconds",
        "cost_change_usd", "trainer_idle_fraction", "rollout_idle_fraction",
    },
    "sensitivity": {"input", "low_factor", "high_factor", "basis", "low", "high", "better_plan"},
    "front": {"mode", "split", "gpus", "step_seconds"},
}  # fmt: skip
NODE = """\
rlsize: {kind: scenario, version: 1}
model: qwen3-8b
cluster: {gpu: h100-sxm, gpus: 64}
workload: {prompts_per_step: 64, group_size: 8, prompt_tokens: 300, response_tokens: {mean: 1000}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def no_constant(name: str) -> None:
    """JSON has neither NaN nor infinity."""
    raise AssertionError(f"{name} is no JSON")


# ---- from flags only ----


def test_given_rates_need_nothing_else(rlsize: Any) -> None:
    """The split of the lesson, and all modes beside it; what cannot be known says what it lacks."""
    document = rlsize(*FLAGS, "--json").document
    results = document["results"]
    assert results["best_step_seconds"] == pytest.approx(786_432 / 96_000)
    modes = {row["mode"] for row in document["rows"]["candidates"]}
    assert modes == {"colocated", "synchronous", "one-step-off", "async"}
    pools = next(row for row in document["rows"]["candidates"] if row["mode"] == "async")
    assert (pools["rollout_gpus"], pools["trainer_gpus"]) == (48, 16)
    lacking = {key for key, value in results.items() if value is None}
    assert lacking == {
        "best_cost_per_step_usd",
        "best_cost_per_run_usd",
        "best_run_seconds",
        "best_rollout_memory_headroom_fraction",
        "best_trainer_memory_headroom_fraction",
    }
    assert all(document["explain"][key]["reason"].startswith("needs --") for key in lacking)


def test_modes_and_numbers_of_gpus_are_narrowed(rlsize: Any) -> None:
    """Only what was asked for is searched."""
    asked = ("--mode", "async,one-step-off", "--rollout-gpus", "40,44", "--trainer-gpus", "20,24", "--json")
    rows = rlsize(*FLAGS, *asked).document["rows"]["candidates"]
    assert {row["mode"] for row in rows} == {"async", "one-step-off"}
    assert {(row["rollout_gpus"], row["trainer_gpus"]) for row in rows} <= {(40, 20), (40, 24), (44, 20)}
    assert (rows[0]["rollout_gpus"], rows[0]["trainer_gpus"]) == (44, 20)
    other = ("--mode", "async,overlapped", *asked[2:])
    assert rlsize(*FLAGS, *other).document["rows"]["candidates"] == rows


def test_a_price_turns_gpu_hours_into_dollars(rlsize: Any) -> None:
    """A step of 8.192 s on 64 GPUs at $3 an hour; a run of 1,000 of them."""
    results = rlsize(*FLAGS, "--gpu-hour", "3", "--steps", "1000", "--json").results
    assert results["best_cost_per_step_usd"] == pytest.approx(64 * 8.192 / 3600 * 3)
    assert results["best_cost_per_run_usd"] == pytest.approx(1000 * results["best_cost_per_step_usd"])
    assert results["best_run_seconds"] == pytest.approx(8192.0)


@pytest.mark.parametrize(
    ("asked", "gpus"),
    [
        (("--steps-per-day", "5000", "--mode", "async"), 31),  # 45,511 tok/s: 22.8 and 7.6 GPUs, so 23 + 8
        (("--finish-by", "24 h", "--steps", "5000", "--mode", "async"), 31),
        (("--steps-per-day", "5000", "--objective", "time", "--mode", "async"), 64),
    ],
)
def test_a_deadline_asks_for_the_fewest_gpus_unless_said_otherwise(
    rlsize: Any, asked: tuple[str, ...], gpus: int
) -> None:
    """5,000 steps of 786,432 tokens a day."""
    results = rlsize(*FLAGS, *asked, "--json").results
    assert results["best_gpus"] == gpus
    assert results["best_steps_per_day"] >= 5000


@pytest.mark.long
def test_a_model_needs_no_rates(rlsize: Any) -> None:
    """All of a predicted plan has bands, memory included."""
    ran = rlsize(*MODEL, "--gpus", "16", "--gpu-hour", "2", "--json")
    results, explain = ran.results, ran.document["explain"]
    assert all(results[key] is not None for key in BEST - {"best_run_seconds", "best_cost_per_run_usd"})
    for key in ("step_seconds", "cost_per_step_usd", "train_seconds", "generation_seconds"):
        low, high = explain[f"best_{key}"]["band"]
        assert low < results[f"best_{key}"] < high
    assert results["best_trainer_memory_headroom_fraction"] >= 0.05
    assert results["best_rollout_memory_headroom_fraction"] >= 0.05


def test_a_given_rate_has_no_layout_that_contradicts_its_gpus(rlsize: Any, folder: Path) -> None:
    """Instances of one GPU are not tp2, in words and in the file."""
    given = ("--per-instance", "4000", "--gpus-per-instance", "1", "--train-seconds", "40")
    work = (*MODEL, "--gpus", "32", "--mode", "async", "--measured-trainer-gpus", "16")
    told = rlsize(*work, *given, "--save", "p.yaml")
    assert "h100-sxm tp1" in told.stdout
    assert read_plan(str(folder / "p.yaml")).placement["rollout_tensor_parallel"].value == 1


@pytest.mark.long
def test_an_engine_that_sets_memory_aside_is_planned_like_one_with_a_share(rlsize: Any, folder: Path) -> None:
    """SGLang has no default share of the memory: what its largest step leaves is about that of vLLM, prompts apart."""
    steps = {}
    for engine in ("vllm", "sglang"):
        (folder / "s.yaml").write_text(f"{NODE}rollout: {{engine: {engine}}}\n", encoding="utf-8")
        steps[engine] = rlsize("plan", "s.yaml", "--mode", "async", "--json").results["best_step_seconds"]
    assert steps["sglang"] == pytest.approx(steps["vllm"], rel=0.25)


@pytest.mark.long
def test_pools_of_two_kinds_are_split_by_price(rlsize: Any) -> None:
    """Cheap GPUs generate, dear ones train; no plan shares or lends GPUs of different kinds."""
    pools = ("--rollout-pool", "l40s:32:0.9", "--trainer-pool", "h100-sxm:16:3")
    ran = rlsize(*MODEL, *pools, "--objective", "cost", "--json")
    rows = ran.document["rows"]["candidates"]
    assert {row["mode"] for row in rows} <= {"synchronous", "one-step-off", "async"}
    for row in rows:
        assert row["rollout_gpus"] <= 32
        assert row["trainer_gpus"] <= 16
        hours = row["step_seconds"] / 3600
        expected = hours * (row["rollout_gpus"] * 0.9 + row["trainer_gpus"] * 3.0)
        assert row["cost_per_step_usd"] == pytest.approx(expected)


def test_one_price_of_two_compares_gpu_hours(rlsize: Any) -> None:
    """Dollars of plans that need one price only are not compared with GPU-hours of the others."""
    ran = rlsize(*FLAGS, "--trainer-gpu-hour", "2.5", "--objective", "cost", "--json")
    assert ran.code == 0
    assert all(row.keys() >= {"gpu_hours_per_step"} for row in ran.document["rows"]["front"])


@pytest.mark.parametrize("prices", [("--gpu-hour", "0"), ("--trainer-gpu-hour", "0", "--rollout-gpu-hour", "2")])
def test_gpus_that_cost_nothing_are_no_trouble(rlsize: Any, prices: tuple[str, ...]) -> None:
    """A step for nothing: what costs something is beyond every ratio, and no number is made up for it."""
    ran = rlsize(*FLAGS, *prices, "--objective", "cost", "--json")
    assert ran.code == 0
    assert ran.results["best_cost_per_step_usd"] == 0.0
    rows = json.loads(ran.stdout, parse_constant=no_constant)["rows"]["candidates"]
    assert all((row["times_best"] is None) == (row["cost_per_step_usd"] > 0) for row in rows)


# ---- from scenarios ----


def test_measured_rates_of_a_scenario_go_before_predictions(rlsize: Any, checkout: Path) -> None:
    """Instances of 4,000 tokens/s and 20 s of 32 trainer GPUs; the scenario's own plan stands beside the best."""
    document = rlsize("plan", str(checkout / "examples/grpo-32b.yaml"), "--json").document
    rows = document["rows"]["candidates"]
    yours = rows[-1]
    assert yours["verdict"].startswith("yours")
    assert (yours["mode"], yours["rollout_gpus"], yours["trainer_gpus"]) == ("async", 32, 32)
    assert yours["step_seconds"] > 20.0
    assert document["inputs"]["instance_tokens_per_second"] == 4000
    assert document["results"]["best_step_seconds"] <= yours["step_seconds"]
    assert all(row["rollout_layout"].endswith("tp2") for row in rows)


@pytest.mark.long
def test_what_nobody_measured_is_predicted(rlsize: Any, checkout: Path) -> None:
    """A scenario without rates: the best plan takes no more time than the one that it has."""
    document = rlsize("plan", str(checkout / "examples/unmeasured-8b.yaml"), "--json").document
    rows = document["rows"]["candidates"]
    assert rows[-1]["verdict"].startswith("yours")
    assert rows[0]["step_seconds"] <= rows[-1]["step_seconds"]
    assert document["explain"]["best_gpus"]["provenance"] == "predicted"
    assert document["results"]["best_micro_batch_tokens"] % 1 == 0
    assert document["results"]["best_gpus"] <= 32
    assert document["results"]["best_staleness_steps"] <= 8


def test_a_scenarios_budget_is_kept(rlsize: Any, folder: Path) -> None:
    """Limits of the scenario hold without a flag, and another file takes their place."""
    rates = "rates: {instance_tokens_per_second: 2000, train_seconds: 20}\n"
    more = "placement: {trainer_gpus: 16}\nrollout: {tensor_parallel: 1}\nbudget: {gpus: 24, staleness_steps: 0}\n"
    (folder / "s.yaml").write_text(NODE + rates + more, encoding="utf-8")
    (folder / "b.yaml").write_text("rlsize: {kind: budget, version: 1}\ngpus: 32\n", encoding="utf-8")
    own = rlsize("plan", "s.yaml", "--json").document
    assert all(row["max_staleness"] == 0 for row in own["rows"]["candidates"] if row["verdict"][:5] != "yours")
    assert own["results"]["best_gpus"] <= 24
    other = rlsize("plan", "s.yaml", "--budget", "b.yaml", "--json").results
    assert 24 < other["best_gpus"] <= 32


# ---- forms ----


@pytest.mark.long(by_day=1)
@pytest.mark.parametrize("asked", [FLAGS, (*MODEL, "--gpus", "16", "--gpu-hour", "2")])
def test_json_has_all_rows_and_no_number_that_is_none(rlsize: Any, asked: tuple[str, ...]) -> None:
    """Every key of every row, null where nobody knows, and neither NaN nor infinity."""
    ran = rlsize(*asked, "--json")
    document = json.loads(ran.stdout, parse_constant=no_constant)
    assert document["command"] == "plan"
    assert document["results"].keys() >= BEST
    for name, keys in ROWS.items():
        assert document["rows"][name]
        for row in document["rows"][name]:
            assert row.keys() >= keys
            assert not [key for key in row if key.startswith("_")]
    best, *others = document["rows"]["candidates"]
    assert (best["verdict"], best["times_best"], best["times_best_low"]) == ("best", 1.0, None)
    assert all(row["times_best"] is not None for row in others)
    priced = "--gpu-hour" in asked
    assert all((row["cost_per_step_usd"] is not None) == priced for row in document["rows"]["candidates"])
    steps = [row["step_seconds"] for row in document["rows"]["front"]]
    assert steps == sorted(steps)


def test_csv_has_the_candidates(rlsize: Any) -> None:
    """One row a plan, with the columns of the JSON rows."""
    asked = rlsize(*FLAGS, "--json").document["rows"]["candidates"]
    rows = list(csv.DictReader(io.StringIO(rlsize(*FLAGS, "--csv").stdout)))
    assert [row["mode"] for row in rows] == [row["mode"] for row in asked]
    assert set(rows[0]) == set(asked[0])
    assert float(rows[0]["step_seconds"]) == asked[0]["step_seconds"]


def test_markdown_is_tables(rlsize: Any) -> None:
    """Headings for each table, and as many cells in each row."""
    text = rlsize(*FLAGS, "--markdown").stdout
    for title in ("The best plans", "The next GPUs on each side", "What the answer is most sensitive to"):
        assert title in text
    rows = [line for line in text.splitlines() if line.startswith("| async")]
    assert {row.count("|") for row in rows} == {8}


@pytest.mark.long(by_day=1)
@pytest.mark.parametrize("name", ["plan.svg", "plan.png"])
def test_a_picture_goes_to_a_file(rlsize: Any, folder: Path, name: str) -> None:
    """Step against cost, splits and sensitivity; not over a file that is there."""
    assert rlsize(*FLAGS, "--mode", "async", "--plot", name).code == 0
    drawn = (folder / name).read_bytes()
    assert drawn[:5] in {b"<?xml", b"\x89PNG\r"}
    if name.endswith("svg"):
        assert b"48 + 16" in drawn
        assert b"step time" in drawn


@pytest.mark.long(by_day=1)
@pytest.mark.parametrize(
    "asked",
    [
        FLAGS,
        (*FLAGS, "--gpu-hour", "3", "--steps", "100"),
        (*MODEL, "--gpus", "32"),
        (*FLAGS, "--steps-per-day", "1e9"),
    ],
)
def test_every_line_fits_80_columns(rlsize: Any, asked: tuple[str, ...]) -> None:
    """Tables, headlines and notes, whether there is a plan or not."""
    ran = rlsize(*asked)
    assert not [line for line in (ran.stdout + ran.stderr).splitlines() if len(line) > 80]


# ---- saved plans ----


@pytest.mark.long
def test_a_saved_plan_reads_back(rlsize: Any, folder: Path) -> None:
    """What was saved is what was told: results with their bands, placement, and who said the inputs."""
    ran = rlsize(*MODEL, "--gpus", "16", "--save", "p.yaml", "--json")
    saved = read_plan("p.yaml")
    assert (folder / "p.yaml").exists()
    for best, value in ran.results.items():
        key = best.removeprefix("best_")
        if isinstance(value, float) and key in saved.results:
            assert saved.results[key].value == pytest.approx(value, rel=1e-6)
    band = ran.document["explain"]["best_step_seconds"]["band"]
    assert [saved.results["step_seconds"].low, saved.results["step_seconds"].high] == pytest.approx(band, rel=1e-6)
    assert saved.placement["mode"].value == ran.results["best_mode"]
    assert saved.placement["trainer_gpus"].value == ran.results["best_trainer_gpus"]
    assert saved.inputs["model"].value == "qwen3-8b"
    assert "cost_per_step_usd" not in saved.results  # nobody said a price
    assert saved.command.startswith("rlsize plan")


def test_a_saved_plan_is_not_overwritten_unless_forced(rlsize: Any, folder: Path) -> None:
    """A second run is refused before any work, and --force replaces the file."""
    assert rlsize(*FLAGS, "--save", "p.yaml").code == 0
    before = (folder / "p.yaml").read_bytes()
    ran = rlsize(*FLAGS, "--gpus", "32", "--save", "p.yaml")
    assert ran.code == 2
    assert "--force" in ran.stderr
    assert (folder / "p.yaml").read_bytes() == before
    assert rlsize(*FLAGS[:1], *FLAGS[3:], "--gpus", "32", "--save", "p.yaml", "--force").code == 0
    assert (folder / "p.yaml").read_bytes() != before


@pytest.fixture
def unworked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that must not be reached."""

    def reached(*_: object, **__: object) -> None:
        raise AssertionError("there was work before the refusal")

    monkeypatch.setattr("rlsize.planner.plan.planned", reached)


@pytest.mark.parametrize("path", ["missing/p.yaml", "."])
@pytest.mark.usefixtures("unworked", "folder")
def test_where_nothing_can_be_saved_no_work_is_done(rlsize: Any, path: str) -> None:
    """A folder that is not there, or a folder in place of a file."""
    ran = rlsize(*FLAGS, "--save", path)
    assert ran.code == 2
    assert path.split("/", maxsplit=1)[0] in ran.stderr


# ---- no plan ----


def test_where_no_plan_exists_the_answer_is_no(rlsize: Any, folder: Path) -> None:
    """Exit code 1, the least change, what was left out and by how little; nothing is saved."""
    asked = (*FLAGS, "--mode", "async", "--steps-per-day", "12000")
    ran = rlsize(*asked, "--json", "--save", "p.yaml")
    assert ran.code == 1
    assert ran.results == {"plan_exists": False}
    assert "No plan" in ran.document["headline"]
    assert "10,547" in ran.document["headline"]  # steps of 8.192 s
    assert any("74 GPUs, not 64" in note for note in ran.document["notes"])  # 109,227 tok/s: 54.6 and 18.2, so 55 + 19
    (row,) = ran.document["rows"]["rejected"]
    assert row["constraint"] == "steps_per_day"
    assert row["nearest"] == "async, 48 + 16 GPUs"
    assert row["short_fraction"] == pytest.approx(1 - 96_000 / (12_000 * 786_432 / 86_400))
    assert not list(folder.iterdir())
    assert ran.document["warnings"] == ["p.yaml is not written, as there is no plan"]


def test_the_change_that_is_told_is_enough(rlsize: Any) -> None:
    """The GPUs that the answer names make a plan."""
    asked = (*FLAGS, "--mode", "async", "--steps-per-day", "12000")
    assert rlsize(*asked, "--gpus", "74").code == 0
    assert rlsize(*asked, "--gpus", "73").code == 1


# ---- bad input ----


def faults(ran: Any) -> str:
    """What a refused command line said; it printed nothing else."""
    assert ran.code == 2
    assert ran.stdout == ""
    assert "Traceback" not in ran.stderr
    told: str = ran.stderr
    return told


def test_all_that_is_wrong_with_a_search_is_told_at_once(rlsize: Any) -> None:
    """An unknown mode, a deadline without steps, numbers that are none, a pool that is none."""
    told = faults(
        rlsize(*FLAGS, "--mode", "asinc", "--finish-by", "7 days", "--rollout-gpus", "four", "--memory-margin", "2",
               "--objective", "speed", "--max-staleness", "1000")
    )  # fmt: skip
    for part in ("'asinc'", "async", "--steps", "four", "--memory-margin", "speed", "1000"):
        assert part in told


@pytest.mark.parametrize(
    ("pool", "part"),
    [
        ("h100-sxm:8:2:1", "is no pool"),
        (":8:2", "is no pool"),
        ("h100-smx:8:2", "h100-sxm"),
        ("h100-sxm:many:2", "many"),
        ("h100-sxm:8:free", "free"),
        ("h100-sxm", "how many"),
        ("h100-sxm:1e9:2", "32,768"),
    ],
)
def test_a_pool_that_is_none_is_refused(rlsize: Any, pool: str, part: str) -> None:
    """With what it should be."""
    assert part in faults(rlsize(*MODEL, "--rollout-pool", pool, "--trainer-pool", "h100-sxm:8:2"))


def test_a_pool_for_one_side_needs_gpus_for_the_other(rlsize: Any) -> None:
    """Nobody said what the trainer runs on."""
    assert "--trainer-pool" in faults(rlsize(*MODEL, "--rollout-pool", "l40s:64"))


def test_gpus_that_contradict_the_cluster_are_refused(rlsize: Any, folder: Path) -> None:
    """40 rollout and 40 trainer GPUs of 64."""
    (folder / "s.yaml").write_text(NODE + "placement: {rollout_gpus: 40, trainer_gpus: 40}\n", encoding="utf-8")
    told = faults(rlsize("plan", "s.yaml"))
    assert "40" in told
    assert "64" in told


@pytest.mark.long
def test_a_space_without_end_is_refused_before_it_is_searched(rlsize: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many GPUs, or too many ways to use them: with what would narrow it."""
    assert "32,768" in faults(rlsize(*FLAGS, "--gpus", "1e6"))
    from rlsize.planner import search

    monkeypatch.setattr(search, "BLOCK", 2**10)
    monkeypatch.setattr(search, "WORTH_TELLING", 1000)
    long = rlsize(*FLAGS, "--gpus", "512")
    assert long.code == 0
    assert long.stderr == "searching\n"
    monkeypatch.setattr(search, "MOST_CANDIDATES", 100_000)
    assert "--whole-nodes" in faults(rlsize(*FLAGS, "--gpus", "512"))
    assert rlsize(*FLAGS, "--gpus", "64").code == 0


def test_without_gpus_there_is_nothing_to_plan(rlsize: Any) -> None:
    """Nobody says how many there are."""
    assert "--gpus" in faults(rlsize(*MODEL))


def test_limits_that_need_a_price_or_steps_say_so(rlsize: Any, folder: Path) -> None:
    """A budget in dollars without a price, and one for a run of unknown length."""
    text = "rlsize: {kind: budget, version: 1}\ncost_per_step_usd: 1\nrun_seconds: 7 days\n"
    (folder / "b.yaml").write_text(text, encoding="utf-8")
    told = faults(rlsize(*FLAGS, "--budget", "b.yaml"))
    assert "--gpu-hour" in told
    assert "--steps" in told


FIELDS: dict[str, str] = {
    "--gpus": "64", "--rollout-tps": "2000 tok/s", "--trainer-tps": "6000 tok/s", "--batch-tokens": "786432",
    "--mode": "async|colocated,async|all", "--max-staleness": "2", "--objective": "time|cost|gpus",
    "--steps-per-day": "100", "--finish-by": "7 days", "--steps": "1000", "--memory-margin": "0.1",
    "--rollout-gpus": "8,16|48", "--trainer-gpus": "8|16", "--gpu-hour": "2.5", "--sync-seconds": "3",
    "--gpus-per-instance": "2", "--headroom": "0.8", "--seed": "1", "--budget": "/|rates.yaml", "--save": "/",
    "--rollout-pool": "h100-sxm:8:2|h100-sxm:8", "--tensor-parallel": "1,2", "--simulate": "2",
}  # fmt: skip


def test_spoilt_flags_are_answered_or_refused(
    rlsize: Any, spoilt: Callable[..., Any], checked: Callable[[Any, str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Junk in any flag ends in an answer or in a refusal, never in a traceback."""
    from hypothesis import given, settings

    from rlsize.planner import least_change

    monkeypatch.setattr(least_change, "_MOST_WORK", 100_000)
    good = {"--gpus": "12", "--rollout-tps": "2000", "--trainer-tps": "6000", "--batch-tokens": "786432"}
    small = {key: value for key, value in FIELDS.items() if key != "--gpus"} | {"--gpus": "3|12|0|-1|1.5|many"}

    @given(spoilt([good, good | {"--gpu-hour": "2"}], small))
    @settings(max_examples=tries(50))
    def run(line: dict[str, str]) -> None:
        ran = rlsize("plan", *[part for pair in line.items() for part in pair], "--json")
        checked(ran, "plan", "--json")

    run()


@pytest.mark.long
def test_no_plan_that_can_be_launched_is_told_with_the_true_reason() -> None:
    """Not with a margin that is in nobody's way: what the framework says against the plans that were found."""
    flags = {"model": "qwen3-8b", "gpu": "h100-sxm", "gpus": "8", "prompts_per_step": "64", "group_size": "8"}
    inputs = Inputs(None, texts={**flags, "prompt_tokens": "300", "response_tokens": "500"})
    found = searched(inputs, (None, ""), takes=lambda _, place: f"{place.loop} is not for it").planned
    report = plan_report(found, inputs.told())
    assert found.changes == ()
    assert report.headline.startswith("No plan can be launched: ")
    assert report.headline.endswith(" is not for it.")
    assert any("refused otherwise" in note for note in report.notes)


def test_a_micro_batch_that_batch_and_group_make_is_planned_as_it_is(rlsize: Any, folder: Path) -> None:
    """A T4 holds four samples, not surely; two would fit surely, which its batch and group cannot be cut into."""
    run = folder / "run.py"
    run.write_text(
        "from unsloth import FastLanguageModel\nfrom trl import GRPOConfig, GRPOTrainer\n"
        'model, _ = FastLanguageModel.from_pretrained(model_name="unsloth/Qwen3-4B-Base", max_seq_length=2048, '
        "load_in_4bit=True, fast_inference=True, max_lora_rank=32, gpu_memory_utilization=0.6)\n"
        "model = FastLanguageModel.get_peft_model(model, r=32)\n"
        'args = GRPOConfig(optim="adamw_8bit", per_device_train_batch_size=1, num_generations=4, '
        "max_prompt_length=512, max_completion_length=1536)\n"
        "GRPOTrainer(model=model, args=args).train()\n"
    )
    ran = rlsize("plan", str(run), "--gpu", "t4", "--gpus", "1", "--response-tokens", "500")
    said = " ".join(ran.stdout.split())
    assert ran.code == 0
    assert said.startswith("1 t4, colocated: a step takes")


@pytest.mark.long
def test_experts_of_a_searched_instance_lie_over_all_of_its_ranks(rlsize: Any, folder: Path) -> None:
    """Whatever degree the launch has; its plan is one that can be said."""
    run = folder / "train.sh"
    run.write_text(
        "python3 train.py --hf-checkpoint Qwen/Qwen3-30B-A3B --actor-num-nodes 2 --actor-num-gpus-per-node 8 "
        "--colocate --rollout-batch-size 64 --n-samples-per-prompt 8 --rollout-max-response-len 8192 "
        "--global-batch-size 512 "
        "--rollout-num-gpus-per-engine 8 --sglang-mem-fraction-static 0.6 --sglang-expert-parallel-size 8 "
        "--tensor-model-parallel-size 4 --expert-model-parallel-size 8 --use-dynamic-batch-size "
        "--max-tokens-per-gpu 20480 --recompute-granularity full\n"
    )
    ran = rlsize("plan", "train.sh", "--gpu", "h100-sxm", "--response-tokens", "1000", "--write", "new.sh")
    assert ran.code == 0, ran.stderr
    assert "share experts" not in ran.stderr


def test_a_plan_of_one_instance_on_all_gpus_has_no_split(rlsize: Any, tmp_path: Path) -> None:
    """`split` says so, with the rate of the shared GPUs that the plan has, and refuses nothing."""
    saved = str(tmp_path / "plan.yaml")
    shared = ("--gpus", "4", "--set", "placement.mode=colocated", "--rollout-tensor-parallel", "4")
    planned = rlsize(*MODEL, *shared, "--save", saved, "--json")
    assert planned.results["best_mode"] == "colocated"
    ran = rlsize("split", saved, "--json")
    assert ran.code == 0
    assert ran.document["headline"].startswith("No split")
    assert ran.results["step_seconds"] == planned.results["best_step_seconds"]


def test_gpus_without_a_layout_are_no_loop_that_cannot_run(rlsize: Any) -> None:
    """30B of experts fits 8 GPUs by offloading, which the search finds: nobody has said a loop that would not."""
    ran = rlsize(*MODEL, "--model", "qwen3-30b-a3b", "--gpus", "8")
    assert ran.code == 0
    assert "annot run" not in ran.stdout + ran.stderr


@pytest.mark.long(by_day=1)
@pytest.mark.parametrize(
    ("framework", "mode"),
    [("slime", "one-step-off"), ("prime-rl", "async")],
    ids=["no async launch", "no key for a chunked loss"],
)
def test_what_a_framework_cannot_be_told_is_not_searched(rlsize: Any, framework: str, mode: str) -> None:
    """A mode without a launch, and a switch that it has no key for, hide no plan that it can be told."""
    asked = ("--model", "qwen3-8b", "--gpu", "h100-sxm", "--gpus", "16", "--prompts", "64", "--group", "16")
    answer = rlsize("plan", *asked, "--response-tokens", "2k", "--framework", framework, "--json")
    assert answer.code == 0, answer.stderr
    assert answer.results["best_mode"] == mode


def test_a_split_that_a_framework_counts_over_both_sides_is_searched_so(rlsize: Any, folder: Path) -> None:
    """AReaL's GPUs fill nodes together: the best of other sums hid all that do, and the launch was quicker."""
    run = folder / "grpo.yaml"
    run.write_text(
        "experiment_name: x\ncluster: {n_nodes: 2, n_gpus_per_node: 8}\n"
        'rollout: {backend: "sglang:d8", max_head_offpolicyness: 2, max_concurrent_rollouts: 256}\n'
        "gconfig: {n_samples: 4, max_new_tokens: 1024}\n"
        'actor: {backend: "fsdp:d8", path: Qwen/Qwen2.5-7B-Instruct, gradient_checkpointing: true, '
        "ppo_n_minibatches: 1, mb_spec: {max_tokens_per_mb: 10240}}\n"
        "train_dataset: {batch_size: 256, max_length: 1024}\n"
    )
    ran = rlsize("plan", str(run), "--gpu", "h100", "--mode", "async")
    assert ran.code == 0
    gpus = [int(part) for part in ran.stdout.split(" h100")[0].split(" + ")]
    assert sum(gpus) in {1, 2, 4, 8, 16}


FORGE = """
group_size: 16
local_batch_size: 16
max_req_tokens: 1024
max_res_tokens: 2048
model: qwen3-8b
off_by_n: 1
policy: {engine_args: {tensor_parallel_size: 2}}
trainer:
  training: {seq_len: 3072}
  activation_checkpoint: {mode: full}
services:
  policy: {procs: 2, num_replicas: 1}
actors:
  trainer: {procs: 4}
"""


def test_a_micro_batch_that_is_a_ranks_share_is_planned_so(rlsize: Any, tmp_path: Path) -> None:
    """As torchforge has it: with smaller ones plans came out that it cannot run, and none that it can was found."""
    path = tmp_path / "forge.yaml"
    path.write_text(FORGE, encoding="utf-8")
    lengths = ("--gpu", "h100-sxm", "--response-tokens", "900", "--prompt-tokens", "300", "--mode", "async")
    best = rlsize("plan", str(path), *lengths, "--json").results
    replicas = best["best_trainer_gpus"]
    for degree in re.findall(r"[tpc]p(\d+)", best["best_trainer_layout"]):
        replicas //= int(degree)
    assert best["best_micro_batch_tokens"] == 64 // replicas * 3072


def test_a_looser_cap_on_staleness_never_loses_a_plan_that_starts(rlsize: Callable[..., Any]) -> None:
    """Engines that die of all the samples that it lets in are run with fewer of them in flight."""
    loop = ("plan", "--model", "gemma3-1b", "--gpu", "rtx-pro-6000-server", "--gpus", "16", "--prompts", "256",
            "--group", "16", "--response-tokens", "512", "--prompt-tokens", "128", "--engine", "sglang")  # fmt: skip
    tight, loose = (rlsize(*loop, "--max-staleness", cap, "--json").results["best_step_seconds"] for cap in ("1", "4"))
    assert loose <= tight


def test_a_better_mode_that_cannot_be_launched_is_told(rlsize: Callable[..., Any]) -> None:
    """AReaL counts staleness in whole steps; what is compared then can be launched."""
    told = rlsize(*MODEL, "--gpus", "32", "--framework", "areal", "--max-staleness", "0.5", "--json").document
    assert "nothing else is possible" not in told["headline"]
    (note,) = [one for one in told["notes"] if "cannot be launched" in one]
    assert re.match(r"Async \d+ \+ \d+ would take .* AReaL takes whole steps of staleness here, not 0.5", note)
    modes = {row["mode"] for row in told["rows"]["candidates"]}
    assert "async" not in modes
    assert len(told["rows"]["candidates"]) > 1


def test_a_plan_for_an_old_version_has_no_parallelism_that_it_cannot_be_told(rlsize: Callable[..., Any]) -> None:
    """OpenRLHF 0.5 has no ring attention, and engines on GPUs of their own."""
    told = rlsize(*MODEL, "--gpus", "16", "--framework", "openrlhf@0.5", "--json").document
    layouts = {row["trainer_layout"] for row in told["rows"]["candidates"]}
    assert layouts
    assert not [layout for layout in layouts if "cp" in layout or "tp" in layout]


def test_a_plan_for_a_framework_stands_where_only_a_launch_lacks_the_prompts(rlsize: Any) -> None:
    """Samples are enough for the step; that no launch can be written without prompts and group is told once."""
    said = ("--model", "qwen2.5-1.5b", "--gpu", "h100-sxm", "--gpus", "4", "--samples", "256", "--framework", "verl")
    ran = rlsize("plan", *said, "--response-tokens", "1k", "--json")
    assert ran.code == 0
    assert ran.document["results"]["best_step_seconds"] > 0
    told = [one for one in ran.document["warnings"] if one.startswith("prompts_per_step is missing")]
    assert len(told) == 1
