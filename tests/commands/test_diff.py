"""`rlsize diff`: two scenarios, plans or rates files, what changed in them and what that did."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from rlsize.loop.answer import answer_of
from rlsize.loop.resolve import resolve
from rlsize.readers.saved_files import read_plan
from rlsize.shell.inputs import Inputs

Diff = Callable[..., Any]
Edit = Callable[..., str]
PRICED = ("--gpu-hour", "2.5")


@pytest.fixture
def edit(checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Edit:
    """Writes an example with some text replaced into an empty folder: `edit("rates.yaml", "b.yaml", ("13", "9"))`."""
    monkeypatch.chdir(tmp_path)

    def edited(example: str, name: str, *changes: tuple[str, str]) -> str:
        text = (checkout / "examples" / example).read_text(encoding="utf-8")
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")
        return name

    return edited


@pytest.fixture
def diff(rlsize: Any) -> Diff:
    """Runs the command."""
    return lambda *args: rlsize("diff", *args)


def _row(ran: Any, table: str, **having: object) -> dict[str, Any]:
    """The one row that has these cells."""
    (found,) = (row for row in ran.document["rows"][table] if all(row[key] == value for key, value in having.items()))
    return dict(found)


def _effects(ran: Any, quantity: str) -> Mapping[str, float]:
    return {row["cause"]: row["change"] for row in ran.document["rows"]["effects"] if row["quantity"] == quantity}


def _worked_out(inputs: Inputs) -> Any:
    return answer_of(resolve(inputs))


LONGER = ("mean: 1536", "mean: 2048")
RATE = ("instance_tokens_per_second: 4000", "instance_tokens_per_second: 4400")
STALE = ("max_staleness: 2", "max_staleness: 1")


# ---- scenarios ----


def test_the_answer_fits_a_pull_request(diff: Diff, edit: Edit) -> None:
    """What happened, why, and what was changed with its lines; 80 columns, exit code 0."""
    ran = diff(edit("grpo-32b.yaml", "a.yaml"), edit("grpo-32b.yaml", "b.yaml", LONGER, RATE), *PRICED, "--full")
    assert ran.code == 0
    assert max(len(line.rstrip()) for line in ran.stdout.splitlines()) <= 80
    told = " ".join(ran.stdout.split())
    assert told.startswith("Cost per step ")
    assert "workload.response_tokens.mean by itself makes +" in told
    assert "before: a.yaml; after: b.yaml" in told
    assert "workload.response_tokens.mean 1536 2048 18" in told
    assert "rates.instance_tokens_per_second 4000 4400 41" in told


def test_both_sides_are_the_loops_as_they_are_written(diff: Diff, edit: Edit) -> None:
    """Before and after are what each file gives by itself, bands and all."""
    files = [edit("grpo-32b.yaml", "a.yaml"), edit("grpo-32b.yaml", "b.yaml", LONGER, STALE)]
    ran = diff(*files, "--json")
    for name, file in zip(("before", "after"), files, strict=True):
        for key, figure in _worked_out(Inputs(file)).results.items():
            if figure.known and not isinstance(figure.value, str):
                row = _row(ran, "results", quantity=key)
                assert row[name] == pytest.approx(figure.value)
                assert (row[f"{name}_low"], row[f"{name}_high"]) == pytest.approx(figure.band or (None, None))
    assert ran.results["step_seconds"] == _row(ran, "results", quantity="step_seconds")["after"]


def test_causes_are_worked_out_by_themselves_and_together(diff: Diff, edit: Edit) -> None:
    """Each effect is that of a file with this change alone; together is the second file; the rest is unexplained."""
    base = edit("grpo-32b.yaml", "a.yaml")
    ran = diff(base, edit("grpo-32b.yaml", "b.yaml", LONGER, RATE), "--json")
    effects = _effects(ran, "step_seconds")
    changes = {"workload.response_tokens.mean": LONGER, "rates.instance_tokens_per_second": RATE}
    start = _worked_out(Inputs(base)).results["step_seconds"].number
    for cause, change in changes.items():
        alone = _worked_out(Inputs(edit("grpo-32b.yaml", "one.yaml", change))).results["step_seconds"].number
        assert effects[cause] == pytest.approx(alone - start)
    row = _row(ran, "results", quantity="step_seconds")
    assert effects["all together"] == pytest.approx(row["change"]) == pytest.approx(row["after"] - row["before"])
    parts = math.fsum(effects[cause] for cause in changes)
    assert effects["unexplained"] == pytest.approx(effects["all together"] - parts)


def test_the_other_way_round_is_minus_the_change(diff: Diff, edit: Edit) -> None:
    """`diff a b` and `diff b a` agree on all that the changes do together."""
    files = [edit("grpo-32b.yaml", "a.yaml"), edit("grpo-32b.yaml", "b.yaml", LONGER, RATE, STALE)]
    there, back = diff(*files, "--json", *PRICED), diff(*files[::-1], "--json", *PRICED)
    for row in there.document["rows"]["results"]:
        other = _row(back, "results", quantity=row["quantity"])
        assert other["change"] == pytest.approx(-row["change"])
        assert {row["verdict"], other["verdict"]} in ({"higher", "lower"}, {"unchanged"}, {"too close to call"})


def test_changes_that_cannot_stand_alone_are_taken_together(diff: Diff, edit: Edit) -> None:
    """More rollout GPUs need a larger cluster: the row says why, and both have the effect together."""
    larger = (("gpus: 32", "gpus: 40"), ("rollout_gpus: 16", "rollout_gpus: 24"), ("every: 1", "every: 2"))
    files = [edit("unmeasured-8b.yaml", "a.yaml"), edit("unmeasured-8b.yaml", "b.yaml", *larger)]
    ran = diff(*files, "--json")
    assert _row(ran, "inputs", input="placement.rollout_gpus")["refused"] == "24 + 16 GPUs are more than 32"
    assert _row(ran, "inputs", input="weight_sync.every")["refused"] is None
    group = _row(ran, "causes", cause="cluster.gpus + placement.rollout_gpus")
    both = _worked_out(Inputs(edit("unmeasured-8b.yaml", "c.yaml", *larger[:2]))).results["step_seconds"].number
    assert group["change"] == pytest.approx(both - _row(ran, "results", quantity="step_seconds")["before"])
    told = " ".join(diff(*files).stdout.split())
    assert "placement.rollout_gpus by itself cannot be worked out (24 + 16 GPUs are more than 32), so it is" in told


def test_a_loop_that_cannot_run_is_an_answer(diff: Diff, edit: Edit) -> None:
    """The reason, what each other change does, and exit code 0; the other way round there is nothing to split."""
    files = [
        edit("unmeasured-8b.yaml", "a.yaml"),
        edit("unmeasured-8b.yaml", "b.yaml", ("model: qwen3-8b", "model: llama3.1-70b"), ("every: 1", "every: 2")),
    ]
    there, back = diff(*files), diff(*files[::-1])
    assert (there.code, back.code) == (0, 0)
    assert "The loop of b.yaml cannot run: Llama3.1-70b does not fit" in " ".join(there.stdout.split())
    assert "Step time is known only before the change" in " ".join(there.stdout.split())
    assert "cannot run" in there.stdout.partition("Causes")[2].partition("Inputs")[0]
    assert "Causes" not in back.stdout
    assert _row(diff(*files, "--json"), "causes", cause="model")["refused"].startswith("llama3.1-70b does not fit")


def test_what_is_uncertain_in_both_does_not_blur_a_change(diff: Diff, edit: Edit) -> None:
    """A spread that both share leaves a price's effect exact; a spread that changed is drawn anew."""
    spread = ("train_seconds: 20 ", "train_seconds: 20 ± 4 ")
    base = edit("grpo-32b.yaml", "a.yaml", spread)
    dearer = edit("grpo-32b.yaml", "b.yaml", spread, ("# prices:", "prices: {gpu_hour: 3}"))
    row = _row(diff(base, dearer, "--json", "--gpu-hour", "2"), "results", quantity="step_seconds")
    assert (row["verdict"], row["change_low"]) == ("unchanged", None)
    wider = edit("grpo-32b.yaml", "c.yaml", ("train_seconds: 20 ", "train_seconds: 20 ± 6 "))
    found = _row(diff(base, wider, "--json"), "results", quantity="train_seconds")
    assert (found["change"], found["verdict"]) == (0.0, "too close to call")
    assert found["after_high"] - found["after_low"] > 1.3 * (found["before_high"] - found["before_low"])


def test_a_result_that_only_one_side_has_is_told(diff: Diff, edit: Edit) -> None:
    """Prices that came with the change: cost is new, and the time of a step is told first."""
    files = [edit("grpo-32b.yaml", "a.yaml"), edit("grpo-32b.yaml", "b.yaml", ("# prices:", "prices: {gpu_hour: 3}"))]
    ran = diff(*files, "--json")
    assert _row(ran, "results", quantity="cost_per_step_usd")["verdict"] == "only after"
    assert _row(ran, "results", quantity="cost_per_step_usd")["before"] is None
    told = diff(*files, "--of", "cost_per_step_usd")
    assert " ".join(told.stdout.split()).startswith("Cost per step is known only after the change: $")
    assert "new" in told.stdout


@pytest.mark.parametrize("change", [(), (("64, gpus_per_node", "64,  gpus_per_node"), ("mean: 1536", "mean: 1.536k"))])
def test_nothing_changed_is_an_answer(diff: Diff, edit: Edit, change: tuple[tuple[str, str], ...]) -> None:
    """The same file, or one that only says it otherwise."""
    ran = diff(edit("grpo-32b.yaml", "a.yaml"), edit("grpo-32b.yaml", "b.yaml", *change))
    assert (ran.code, ran.stdout, ran.stderr) == (0, "Nothing changed: a.yaml and b.yaml say the same.\n", "")
    assert diff("a.yaml", "a.yaml").stdout == "Nothing changed: a.yaml and a.yaml say the same.\n"


def test_a_change_that_does_nothing_says_so(diff: Diff, edit: Edit) -> None:
    """A budget limits, and moves no result."""
    ran = diff(edit("grpo-32b.yaml", "a.yaml"), edit("grpo-32b.yaml", "b.yaml", ("# budget: ", "budget: ")), "--plot")
    assert ran.code == 0
    assert ran.stdout.startswith("3 inputs changed; no result moves, and step time stays at ")
    assert "there is nothing to draw" in ran.stderr


def test_scenarios_of_two_folders_find_their_own_files(diff: Diff, edit: Edit) -> None:
    """One name, two rates files beside the scenarios: the contents differ, and that is the change."""
    names = ("instance_tokens_per_second: 4000", "instance_tokens_per_second: rates.yaml")
    files = [edit("grpo-32b.yaml", f"{folder}/s.yaml", names) for folder in ("old", "new")]
    edit("rates.yaml", "old/rates.yaml")
    edit("rates.yaml", "new/rates.yaml", ("mean: 3620.0", "mean: 4344.0"))
    ran = diff(*files, "--json")
    (row,) = ran.document["rows"]["inputs"]
    assert (row["input"], row["before"], row["after"]) == (
        "rates.instance_tokens_per_second", "old/rates.yaml", "new/rates.yaml",
    )  # fmt: skip
    generated = _row(ran, "results", quantity="generation_seconds")
    assert generated["after"] == pytest.approx(generated["before"] / 1.2)


# ---- forms ----


def test_every_form_carries_the_comparison(diff: Diff, edit: Edit, tmp_path: Path) -> None:
    """JSON, CSV and Markdown; a picture in the terminal and in a file."""
    files = [edit("grpo-32b.yaml", "a.yaml"), edit("grpo-32b.yaml", "b.yaml", LONGER, RATE)]
    table = list(csv.DictReader(io.StringIO(diff(*files, "--csv").stdout)))
    assert {"quantity", "before", "after", "change", "change_fraction", "verdict"} <= set(table[0])
    assert table[0]["quantity"] == "step_seconds"
    assert "| step time |" in diff(*files, "--markdown").stdout
    assert "How the changes lead from" in diff(*files, "--plot").stdout
    assert diff(*files, "--plot", str(tmp_path / "p.svg")).code == 0
    assert "workload.response_tokens.mean" in (tmp_path / "p.svg").read_text(encoding="utf-8")


def test_the_main_result_can_be_chosen(diff: Diff, edit: Edit) -> None:
    """Cost where it is known, else the time of a step, else what was asked for."""
    files = [edit("grpo-32b.yaml", "a.yaml"), edit("grpo-32b.yaml", "b.yaml", LONGER)]
    assert diff(*files).stdout.startswith("Step time ")
    assert diff(*files, *PRICED).stdout.startswith("Cost per step ")
    assert diff(*files, "--of", "rollout_idle_fraction").stdout.startswith("Rollout idle ")


# ---- plans ----


@pytest.fixture
def plans(rlsize: Any, edit: Edit) -> Callable[..., str]:
    """Saves a scenario as a plan."""

    def saved(name: str, *changes: tuple[str, str], price: str = "2.5") -> str:
        scenario = edit("unmeasured-8b.yaml", f"{name}-scenario.yaml", *changes)
        Path("budget.yaml").write_text("rlsize: {kind: budget, version: 1}\ngpus: 999\n", encoding="utf-8")
        ran = rlsize("check", scenario, "--budget", "budget.yaml", "--gpu-hour", price, "--save", name)
        assert ran.code == 0
        return name

    return saved


def test_saved_plans_are_compared_as_the_loops_they_hold(diff: Diff, plans: Callable[..., str]) -> None:
    """On the same draws, with the causes, and a price that a flag gave; a plan that holds no loop is named."""
    longer = ("mean: 3200", "mean: 4096")
    files = plans("a.yaml"), plans("b.yaml", longer, ("max_staleness: 8", "max_staleness: 4"), price="2.6")
    ran = diff(*files, "--json")
    row = _row(ran, "results", quantity="cost_per_step_usd")
    saved = [read_plan(file).results["cost_per_step_usd"].value for file in files]
    assert [row["before"], row["after"]] == pytest.approx(saved)
    assert row["change_low"] < row["change"] < row["change_high"]
    inputs = {row["input"]: (row["before"], row["after"]) for row in ran.document["rows"]["inputs"]}
    assert inputs["placement.max_staleness"] == ("8", "4")
    assert inputs["prices.gpu_hour"] == ("2.5", "2.6")
    assert {"prices.gpu_hour", "placement.max_staleness"} <= {row["cause"] for row in ran.document["rows"]["causes"]}
    text = Path(files[1]).read_text(encoding="utf-8")
    Path(files[1]).write_text(text.partition("scenario:")[0], encoding="utf-8")
    lacking = diff(*files)
    assert (lacking.code, lacking.stdout) == (2, "")
    assert "b.yaml: is a plan without a scenario" in " ".join(lacking.stderr.split())


def test_a_plan_of_a_calibration_asks_for_it(diff: Diff, plans: Callable[..., str]) -> None:
    """The file does not hold it, and its loop is worked out anew."""
    first, second = plans("a.yaml"), plans("b.yaml", price="2.6")
    text = Path(second).read_text(encoding="utf-8")
    assert "was planned with" not in diff(first, second).stderr
    Path(second).write_text(text.replace("command: rlsize", "command: rlsize --calibration c.yaml"), encoding="utf-8")
    assert "b.yaml was planned with a calibration" in " ".join(diff(first, second).stderr.split())


def test_the_same_plan_is_no_change(diff: Diff, plans: Callable[..., str]) -> None:
    """Saved twice from one scenario."""
    file = plans("a.yaml")
    assert diff(file, file).stdout == "Nothing changed: a.yaml and a.yaml say the same.\n"


# ---- rates files ----


FASTER = (("mean: 3620.0", "mean: 3810.0"), ("2026-11-20", "2026-12-01"), ("ramp, tail]", "ramp, tail, drift]"))


def test_rates_files_are_compared_with_their_spread(diff: Diff, edit: Edit) -> None:
    """The rate with its band, what it includes, and how long lies between."""
    files = [edit("rates.yaml", "a.yaml"), edit("rates.yaml", "b.yaml", *FASTER)]
    ran = diff(*files, "--json")
    (row,) = ran.document["rows"]["results"]
    assert (row["quantity"], row["verdict"], row["change"]) == ("instance_tokens_per_second", "higher", 190.0)
    assert {row["input"] for row in ran.document["rows"]["inputs"]} == {
        "measured_at", "instance_tokens_per_second.mean", "includes",
    }  # fmt: skip
    assert ran.document["notes"][0].endswith(": 11 days later.")
    text = diff(*files).stdout
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80
    assert "[..., drift]" in text


def test_rates_that_differ_by_chance_are_too_close(diff: Diff, edit: Edit) -> None:
    """Two measurements of 13 instances with a spread of 140 may differ by ten."""
    ran = diff(edit("rates.yaml", "a.yaml"), edit("rates.yaml", "b.yaml", ("mean: 3620.0", "mean: 3630.0")))
    assert "is too close to call" in " ".join(ran.stdout.split())


def test_a_rate_that_is_the_same_stays(diff: Diff, edit: Edit) -> None:
    """Only a condition was corrected: that is no second measurement."""
    ran = diff(edit("rates.yaml", "a.yaml"), edit("rates.yaml", "b.yaml", ("fraction: 0.84", "fraction: 0.85")))
    assert ran.stdout.startswith("1 input changed; no result moves, and instance rate stays at 3,620 tok/s.")


@pytest.mark.long
def test_rates_change_the_fleet_and_the_loop_of_a_scenario(rlsize: Any, diff: Diff, edit: Edit) -> None:
    """The match as `fleet` says it, and the loop as it is placed."""
    files = [edit("rates.yaml", "a.yaml"), edit("rates.yaml", "b.yaml", *FASTER)]
    scenario = edit("grpo-32b.yaml", "s.yaml")
    ran = diff(*files, "--scenario", scenario, "--json", *PRICED)
    for name, file in zip(("before", "after"), files, strict=True):
        matched = rlsize("fleet", scenario, "--per-instance", file, "--json").results["matched_instances"]
        assert _row(ran, "results", quantity="matched_instances")[name] == matched
    assert _row(ran, "results", quantity="generation_seconds")["verdict"] == "lower"
    assert _row(ran, "results", quantity="cost_per_step_usd")["verdict"] == "lower"
    assert ran.results["step_seconds"] > 0


@pytest.mark.long
def test_the_match_of_a_predicted_trainer_is_that_of_fleet(rlsize: Any, diff: Diff, edit: Edit) -> None:
    """Nobody measured the trainer of the loop: its time is the loop's own, for `diff` as for `fleet`."""
    files = [edit("rates.yaml", "a.yaml"), edit("rates.yaml", "b.yaml", *FASTER)]
    scenario = edit("unmeasured-8b.yaml", "s.yaml")
    ran = diff(*files, "--scenario", scenario, "--json")
    for name, file in zip(("before", "after"), files, strict=True):
        matched = rlsize("fleet", scenario, "--per-instance", file, "--json").results["matched_instances"]
        assert _row(ran, "results", quantity="matched_instances")[name] == matched


def test_without_a_whole_loop_the_match_is_told(diff: Diff, edit: Edit) -> None:
    """A scenario that says no GPUs of the trainer still has a fleet that matches."""
    files = [edit("rates.yaml", "a.yaml"), edit("rates.yaml", "b.yaml", *FASTER)]
    small = "rlsize: {kind: scenario, version: 1}\nrates: {consumption_tokens_per_second: 39321}\n"
    Path("s.yaml").write_text(small, encoding="utf-8")
    ran = diff(*files, "--scenario", "s.yaml", "--json")
    assert ran.code == 0
    assert _row(ran, "results", quantity="matched_instances")["before"] == 12
    assert any(note.startswith("The loop is not worked out: ") for note in ran.document["notes"])
    Path("s.yaml").write_text("rlsize: {kind: scenario, version: 1}\n", encoding="utf-8")
    neither = diff(*files, "--scenario", "s.yaml")
    assert (neither.code, neither.stdout) == (2, "")
    assert "s.yaml" in neither.stderr


def test_a_lower_bound_is_refused_until_it_is_accepted(diff: Diff, edit: Edit) -> None:
    """As a size from demand ratchets the fleet upwards; without a scenario nothing is sized, and it is only told."""
    files = [edit("rates.yaml", "a.yaml"), edit("rates.yaml", "b.yaml", ("lower_bound: false", "lower_bound: true"))]
    scenario = edit("unmeasured-8b.yaml", "s.yaml")
    assert "The rate in b.yaml is a lower bound" in " ".join(diff(*files).stdout.split())
    ran = diff(*files, "--scenario", scenario)
    assert ran.code == 2
    assert "--accept-lower-bound" in ran.stderr
    assert diff(*files, "--scenario", scenario, "--accept-lower-bound").code == 0


# ---- bad input ----


def test_all_faults_of_both_files_are_told_at_once(diff: Diff, edit: Edit) -> None:
    """Each with its file and line, once."""
    good = edit("grpo-32b.yaml", "a.yaml")
    bad = edit("grpo-32b.yaml", "b.yaml", ("group_size: 8", "group_sise: 8"), ("gpus: 64", "gpus: many"))
    for files in ((good, bad), (bad, good), (bad, bad)):
        ran = diff(*files)
        assert (ran.code, ran.stdout) == (2, "")
        assert ran.stderr.count("b.yaml:16: workload.group_sise: the key group_sise is unknown") == 1
        assert ran.stderr.count("b.yaml:6: cluster.gpus") == 1
    missing = diff("nowhere.yaml", "neither.yaml")
    assert missing.code == 2
    assert "nowhere.yaml: no such file" in missing.stderr
    assert "neither.yaml: no such file" in missing.stderr


def test_what_is_missing_names_the_file_that_lacks_it(diff: Diff, edit: Edit) -> None:
    """A model that only one side forgot, and a profile that does not exist, on the right line."""
    good = edit("unmeasured-8b.yaml", "a.yaml")
    without = edit("unmeasured-8b.yaml", "b.yaml", ("model: qwen3-8b", ""))
    misspelt = edit("unmeasured-8b.yaml", "c.yaml", ("model: qwen3-8b", "\nmodel: qwen3-8x"))
    for files in ((good, without), (without, good)):
        ran = diff(*files)
        assert ran.code == 2
        assert "b.yaml: the model is missing" in ran.stderr
    assert "c.yaml:6: model: there is no model profile 'qwen3-8x'" in diff(good, misspelt).stderr
    assert "c.yaml:6: model: there is no model profile 'qwen3-8x'" in diff(misspelt, good).stderr


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("s.yaml", "r.yaml"), "r.yaml: is a rates file, and s.yaml is a scenario file"),
        (("budget.yaml", "budget.yaml"), "budget.yaml: is a budget file, which cannot be compared"),
        (("list.yaml", "s.yaml"), "list.yaml: does not say what kind of file it is"),
        (("s.yaml", "t.yaml", "--of", "step_secs"), "did you mean step_seconds?"),
        (("s.yaml", "t.yaml", "--of", "cost_per_step_usd"), "it needs --gpu-hour"),
        (("s.yaml", "t.yaml", "--scenario", "s.yaml"), "--scenario: says nothing about two scenario files"),
        (("s.yaml", "t.yaml", "--seed", "x"), "--seed: 'x' is not a whole number"),
        (("u.yaml", "v.yaml", "--price", "none-such"), "there is no price profile 'none-such'"),
        (("s.yaml", "t.yaml", "--calibration", "s.yaml"), "is a scenario file, not a calibration file"),
        (("r.yaml", "q.yaml", "--gpu-hour", "2"), "name one with --scenario FILE"),
        (("r.yaml", "q.yaml", "--seed", "1.5"), "--seed: '1.5' is not a whole number"),
        (("r.yaml", "q.yaml", "--scenario", "none.yaml"), "none.yaml: no such file"),
    ],
)
def test_bad_input_is_told_with_the_way_out(diff: Diff, edit: Edit, args: tuple[str, ...], said: str) -> None:
    """Exit code 2, nothing on stdout."""
    edit("grpo-32b.yaml", "s.yaml")
    edit("grpo-32b.yaml", "t.yaml", LONGER)
    edit("unmeasured-8b.yaml", "u.yaml")
    edit("unmeasured-8b.yaml", "v.yaml", ("every: 1", "every: 2"))
    edit("rates.yaml", "r.yaml")
    edit("rates.yaml", "q.yaml", *FASTER)
    Path("budget.yaml").write_text("rlsize: {kind: budget, version: 1}\ngpus: 1\n", encoding="utf-8")
    Path("list.yaml").write_text("[1, 2]\n", encoding="utf-8")
    ran = diff(*args)
    assert (ran.code, ran.stdout) == (2, "")
    assert said in ran.stderr


@pytest.mark.parametrize("form", [(), ("--markdown",), ("--json",)])
def test_hostile_text_stays_text(diff: Diff, edit: Edit, form: tuple[str, ...]) -> None:
    """Markup and escapes in values, keys and file names are shown, and drive nothing."""
    value = r'"\e[31m|<script>alert(1)</script>` [l](u)"'
    files = [
        edit("rates.yaml", "a.yaml"),
        edit("rates.yaml", "b|<b>.yaml", ("my-org/policy-32b", value), ("generation_tokens:", '"x|<i>\\e[0m":')),
    ]
    ran = diff(*files, *form)
    assert ran.code == 0
    assert "\x1b" not in ran.stdout
    assert "conditions.model" in ran.stdout
    if form == ("--json",):
        assert "source.keys.x|<i>[0m" in {row["input"] for row in ran.document["rows"]["inputs"]}
    if form == ("--markdown",):
        assert not any(tag in ran.stdout for tag in ("<script>", "<b>", "<i>"))
        assert len({line.count(" | ") for line in ran.stdout.splitlines() if line.startswith("| ")}) == 2
