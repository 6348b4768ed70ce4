"""The default answers of the commands that decide: a decision that fits on a screen, all of the rest under `--full`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from tests.effort import NIGHTLY

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

GRPO = "examples/grpo-32b.yaml"
UNMEASURED = "examples/unmeasured-8b.yaml"
LOOP = ("--model", "qwen3-8b", "--gpu", "h100-sxm", "--prompts", "64", "--group", "16", "--response-tokens", "2k")
RATES = (
    *("simulate", "--mode", "async", "--max-staleness", "4", "--instances", "13", "--per-instance", "4000"),
    *("--concurrency", "64", "--prompts", "16", "--group", "8", "--response-tokens", "1536"),
    *("--train-seconds", "20", "--sync-seconds", "2", "--steps", "20"),
)
QUICK: tuple[Sequence[str], ...] = (
    ("plan", "--gpus", "64", "--rollout-tps", "2000", "--trainer-tps", "6000", "--batch-tokens", "786432"),
    ("plan", *LOOP, "--gpus", "16"),
    ("plan", *LOOP, "--model", "llama3.1-70b", "--gpus", "8"),
    ("predict", "step", *LOOP, "--mode", "async", "--rollout-gpus", "8", "--trainer-gpus", "8"),
    ("predict", "step", *LOOP, "--gpus", "1"),
    ("check", UNMEASURED, "--budget", "examples/budget.yaml", "--gpu-hour", "2.5", "--baseline",
     "examples/baseline.yaml"),
    ("diagnose", "examples/operate/starving.jsonl", "--instances", "8", "--per-instance", "4000"),
    ("diagnose", "examples/operate/slow.jsonl", "--set", "model=qwen2.5-3b", "--set", "cluster.gpu=a800-sxm", "--set",
     "cluster.gpus=4", "--set", "placement.mode=colocated", "--set", "workload.prompts_per_step=64"),
    RATES,
    (*RATES, "--sweep", "max_staleness=0:9"),
)  # fmt: skip
LONG: tuple[Sequence[str], ...] = (
    ("plan", UNMEASURED, "--gpu-hour", "2.5"),
    ("plan", GRPO, "--gpu-hour", "2.5", "--steps", "500"),
    ("plan", *LOOP, "--gpus", "64", "--max-staleness", "4", "--simulate", "2"),
    ("predict", "step", UNMEASURED),
    ("predict", "step", "examples/longer-8b.yaml"),
    (
        "check",
        GRPO,
        "--budget",
        "examples/budget.yaml",
        "--gpu-hour",
        "2.5",
        "--strict",
        "--set",
        "budget.gpus=8",
        "--baseline",
        "examples/baseline.yaml",
    ),
    ("simulate", GRPO, "--steps", "20"),
    ("simulate", UNMEASURED, "--steps", "20", "--seeds", "2"),
)


@pytest.mark.long(by_day=1)
@pytest.mark.parametrize("asked", [*QUICK, *(LONG if NIGHTLY else ())], ids=lambda asked: " ".join(asked[:4]))
def test_a_decision_fits_on_a_screen_and_full_has_the_rest(
    rlsize: Any, asked: Sequence[str], checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """25 lines of 80 columns with warnings and all; `--full` has each figure of it, and what JSON has in its tables."""
    monkeypatch.chdir(checkout)
    ran = rlsize(*asked)
    whole = rlsize(*asked, "--full")
    document = rlsize(*asked, "--json").document
    shown = [*ran.stdout.splitlines(), *(line for line in ran.stderr.splitlines() if " of " not in line[:12])]
    assert ran.code == whole.code in {0, 1}
    assert len(shown) <= 25, ran.stdout + ran.stderr
    assert max(map(len, shown)) <= 80
    assert "next:" in ran.stdout
    assert "--full shows all" in " ".join(ran.stdout.split())
    said = " ".join(whole.stdout.split())
    assert " ".join(document["headline"].split()) in said
    for note in document["notes"]:
        assert " ".join(note.split()) in said
    figures = re.search(r"^figures: (.*?)^\w+:", ran.stdout, re.DOTALL | re.MULTILINE)
    for number in re.findall(r"[\d.,]+ (?:s|min|%)(?= )", figures[1]) if figures else ():
        assert number in said


BRIEF: tuple[Sequence[str], ...] = (
    ("fleet", "--consume", "39321", "--per-instance", "4000"),
    ("split", GRPO),
    ("backlog", GRPO),
    ("sync", GRPO),
    ("memory", "examples/launch/verl-14b.sh", "--response-tokens", "1500"),
    ("memory", "--params", "70e9", "--algorithm", "grpo", "--reward-model"),
    ("iteration", GRPO),
    ("cost", GRPO, "--gpu-hour", "2.5"),
    ("predict", "rollout", UNMEASURED),
    ("predict", "train", UNMEASURED),
    ("predict", "sync", UNMEASURED),
    ("whatif", UNMEASURED),
    ("observe", "examples/operate/starving.jsonl"),
    ("diff", UNMEASURED, "examples/longer-8b.yaml"),
    ("validate", "examples/my-runs.yaml"),
    ("measure", "--show", "examples/measured-cpu.yaml"),
)


@pytest.mark.long(by_day=4)
@pytest.mark.parametrize("asked", BRIEF, ids=lambda asked: " ".join(asked[:3]))
def test_every_other_answer_is_cut_to_a_screen_and_full_has_the_rest(
    rlsize: Any, asked: Sequence[str], checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Figures and the first table, as many of each as there is room for; `--full` has all notes and headlines."""
    monkeypatch.chdir(checkout)
    ran, whole = rlsize(*asked), rlsize(*asked, "--full")
    document = rlsize(*asked, "--json").document
    warned = [line for line in ran.stderr.splitlines() if line.startswith("warning: ")]
    assert ran.code == whole.code in {0, 1}
    assert len(ran.stdout.splitlines()) + len(warned) <= 25, ran.stdout
    assert " ".join(document["headline"].split()) in " ".join(ran.stdout.split())
    if ran.stdout != whole.stdout:
        assert ran.stdout.splitlines()[-1].split() == ["next:", "--full", "shows", "all"]
    said = " ".join(whole.stdout.split())
    for note in document["notes"]:
        assert " ".join(note.split()) in said


@pytest.mark.parametrize(("columns", "widest"), [("0", 80), ("1", 40), ("40", 40), ("60", 60), ("abc", 80)])
def test_a_terminal_of_any_width_has_an_answer(
    rlsize: Any, monkeypatch: pytest.MonkeyPatch, columns: str, widest: int
) -> None:
    """One that is too narrow for labels and words is taken for a wider one, and 0 columns for none that is known."""
    monkeypatch.setenv("COLUMNS", columns)
    for asked in (QUICK[0], BRIEF[0]):
        ran = rlsize(*asked)
        assert ran.code == 0
        labelled = [line.rstrip() for line in ran.stdout.splitlines() if re.match("[a-z]+: ", line)]
        assert labelled
        assert max(map(len, labelled)) <= widest


@pytest.mark.long
def test_what_was_written_is_told_before_other_notes(rlsize: Any, tmp_path: Path) -> None:
    """However long the answer is."""
    kept = tmp_path / "rates.yaml"
    told = "".join(rlsize("observe", "examples/operate/starving.jsonl", "--save", str(kept)).stdout.split())
    assert f"done:Wrote{kept}" in told


@pytest.mark.long
def test_what_is_assumed_is_told_with_the_flag_that_says_it(rlsize: Any) -> None:
    """Saying it takes it out of the line, and the answer becomes the one that the line foretold."""
    asked = ("predict", "step", *LOOP, "--mode", "async", "--rollout-gpus", "8", "--trainer-gpus", "8")
    told = " ".join(rlsize(*asked).stdout.split())
    found = re.search(r"--response-cv 0\.6 \(1: x ([\d.]+)\)", told)
    assert found is not None
    usual, other = (rlsize(*asked, *more, "--json").results["step_seconds"] for more in ((), ("--response-cv", "1")))
    assert other / usual == pytest.approx(float(found[1]), abs=0.005)
    assert "--response-cv" not in " ".join(rlsize(*asked, "--response-cv", "1").stdout.split())


def test_what_has_no_bearing_is_told_by_default(rlsize: Any) -> None:
    """A flag that does nothing here, and one that does nothing in this mode."""
    told = " ".join(rlsize(*RATES[:1], *RATES[1:], "--mode", "sync").stdout.split())
    assert "Without effect where the mode is sync: --max-staleness" in told
    other = ("plan", "--gpus", "64", "--rollout-tps", "2000", "--trainer-tps", "6000", "--batch-tokens", "786432")
    assert "Not used here: --kv-dtype" in " ".join(rlsize(*other, "--kv-dtype", "fp8").stdout.split())


@pytest.mark.long
def test_a_plan_says_how_the_loop_as_it_was_said_does_beside_it(rlsize: Any) -> None:
    """Whether there is need to change, in a line of its own; a plan of what nobody has placed has none."""
    starved = ("rollout_gpus=4", "trainer_gpus=28")
    said = [part for place in starved for part in ("--set", f"placement.{place}")]
    told = rlsize("plan", UNMEASURED, *said, "--set", "trainer.parallelism.fsdp=28").stdout
    assert re.search(r"^yours: +As the scenario has it \(async 4 \+ 28\), a step takes", told, re.MULTILINE)
    assert "yours:" not in rlsize("plan", *LOOP, "--gpus", "16").stdout
