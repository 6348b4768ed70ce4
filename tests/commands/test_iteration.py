"""`rlsize iteration`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import tries

Run = Callable[..., Any]
GROUPS = ("iteration", "--instances", "8", "--group", "8", "--group-seconds", "3", "--train-seconds", "5")
RATE = (
    "iteration", "--instances", "8", "--per-instance", "4000", "--response-tokens", "1500", "--prompts", "64",
    "--group", "8", "--train-seconds", "20",
)  # fmt: skip


def flat(text: str) -> str:
    """Text on one line, as it was before the terminal wrapped it."""
    return " ".join(text.split())


def test_the_lessons_throughput_math(rlsize: Run) -> None:
    """256 samples in 12 s, 17 s an iteration, 5082 a day; kept continuous."""
    results = rlsize(*GROUPS, "--samples", "256", "--json").results
    assert results["completions_per_second"] == pytest.approx(64 / 3)
    assert results["rollout_seconds"] == pytest.approx(12)
    assert results["iteration_seconds"] == pytest.approx(17)
    assert results["iterations_per_day"] == pytest.approx(86400 / 17)
    assert results["rollout_fraction"] == pytest.approx(12 / 17)


def test_samples_are_no_prompts(rlsize: Run) -> None:
    """The note says what 256 prompts of 8 would be, and --prompts takes them so."""
    note = " ".join(rlsize(*GROUPS, "--samples", "256", "--json").document["notes"])
    for part in ("32 prompts of 8", "2,048 samples", "96 s", "--prompts 256"):
        assert part in note
    results = rlsize(*GROUPS, "--prompts", "256", "--json").results
    assert results["rollout_seconds"] == pytest.approx(96)


@pytest.mark.parametrize(
    ("mode", "seconds"), [("sync", 18), ("overlapped", 13), ("disaggregated", 18), ("one-step-off", 13), ("async", 13)]
)
def test_the_mode_that_is_asked_for_answers(rlsize: Run, mode: str, seconds: float) -> None:
    """Also by the names that scenarios use; the table has all three."""
    ran = rlsize(*GROUPS, "--samples", "256", "--sync-seconds", "1", "--mode", mode, "--json")
    assert ran.results["iteration_seconds"] == pytest.approx(seconds)
    assert [row["mode"] for row in ran.document["rows"]["modes"]] == ["sync", "overlapped", "colocated"]


def test_swap_seconds_are_both_ways_together(rlsize: Run) -> None:
    """As in `rlsize split`: 12 s and 5 s on shared GPUs and 3 s of changing over are 20 s."""
    flags = ("--samples", "256", "--mode", "colocated", "--swap-seconds", "3")
    assert rlsize(*GROUPS, *flags, "--json").results["iteration_seconds"] == pytest.approx(20)


def test_colocated_against_disaggregated(rlsize: Run) -> None:
    """On 32 + 32 GPUs 12 s and 5 s become 6 s and 2.5 s; the swap may take 3.5 s to be as quick as overlapped."""
    pools = ("--rollout-gpus", "32", "--trainer-gpus", "32", "--swap-seconds", "3")
    ran = rlsize(*GROUPS, "--samples", "256", *pools, "--json")
    rows = {row["mode"]: row["iteration_seconds"] for row in ran.document["rows"]["modes"]}
    assert rows == pytest.approx({"sync": 17, "overlapped": 12, "colocated": 11.5})
    assert ran.results["break_even_swap_seconds"] == pytest.approx(3.5)


def test_a_token_rate_is_derated(rlsize: Run) -> None:
    """Headroom 0.8 for a typed one; shown beside nameplate."""
    results = rlsize(*RATE, "--json").results
    assert results["rollout_seconds"] == pytest.approx(24)
    assert results["expected_rollout_seconds"] == pytest.approx(30)
    assert results["expected_iteration_seconds"] == pytest.approx(50)


def test_a_rollout_time_is_taken_as_it_is(rlsize: Run) -> None:
    """Without any fleet."""
    results = rlsize("iteration", "--rollout-seconds", "12", "--train-seconds", "5", "--json").results
    assert results["iteration_seconds"] == 17
    assert results["completions_per_second"] is None


def test_what_is_thrown_away_is_generated_too(rlsize: Run, tmp_path: Path) -> None:
    """Half as many tokens again take half as long again, by flag or scenario; a said rollout time holds them."""
    waste = ("--tokens-per-trained-token", "1.5")
    assert rlsize(*GROUPS, "--samples", "256", *waste, "--json").results["rollout_seconds"] == pytest.approx(18)
    file = tmp_path / "scenario.yaml"
    file.write_text(
        "rlsize: {kind: scenario, version: 1}\nalgorithm: {name: grpo, tokens_generated_per_trained_token: 1.5}\n"
    )
    ran = rlsize("iteration", str(file), *GROUPS[1:], "--samples", "256", "--verify-seconds", "2", "--json")
    assert ran.results["rollout_seconds"] == pytest.approx(18)
    assert ran.results["verifier_workers"] == 43
    refused = rlsize("iteration", "--rollout-seconds", "12", "--train-seconds", "5", *waste)
    assert refused.code == 2
    assert "--tokens-per-trained-token" in refused.stderr


def test_verifiers_are_counted(rlsize: Run) -> None:
    """21.33 samples a second of 2 s each: 43 workers."""
    assert rlsize(*GROUPS, "--samples", "256", "--verify-seconds", "2", "--json").results["verifier_workers"] == 43


def test_headroom_and_sync_seconds_count_sync_pauses_twice(rlsize: Run) -> None:
    """Which a note says, where both are there."""
    assert any("twice" in note for note in rlsize(*RATE, "--sync-seconds", "3", "--json").document["notes"])
    assert not any("twice" in note for note in rlsize(*RATE, "--json").document["notes"])


def test_a_scenario_and_a_flag_that_overrides_it(rlsize: Run, tmp_path: Path) -> None:
    """Workload, placement and rates come from the file; the flag wins, and its way to give the rollout time."""
    file = tmp_path / "scenario.yaml"
    file.write_text(
        "rlsize: {kind: scenario, version: 1}\n"
        "workload: {prompts_per_step: 32, group_size: 8}\n"
        "placement: {mode: async, instances: 8}\n"
        "weight_sync: {every: 4}\n"
        "rates: {group_seconds: 3, train_seconds: 5 +- 1, sync_seconds: 1}\n"
    )
    ran = rlsize("iteration", str(file), "--json")
    assert ran.results["iteration_seconds"] == pytest.approx(13)
    assert any("every 4 steps" in note for note in ran.document["notes"])
    assert ran.document["explain"]["trainer_idle_fraction"]["band"]
    flagged = rlsize("iteration", str(file), "--rollout-seconds", "20", "--mode", "sync", "--json")
    assert flagged.results["iteration_seconds"] == pytest.approx(26)


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--samples", "0"), "more than 0"),
        (("--samples", "256", "--prompts", "32"), "batch once"),
        (("--samples", "256", "--rollout-seconds", "3"), "rollout time once"),
        (("--samples", "256", "--headroom", "0.8"), "--per-instance"),
        (("--samples", "256", "--mode", "asynk"), "async"),
        (("--samples", "256", "--rollout-gpus", "1.5"), "whole number"),
        (("--samples", "256", "--swap-seconds", "-1"), "at least 0"),
        ((), "--samples"),
    ],
)
def test_bad_input_is_named_with_its_flag(rlsize: Run, flags: tuple[str, ...], says: str) -> None:
    """Exit code 2, nothing on stdout, no traceback."""
    ran = rlsize(*GROUPS, *flags)
    assert (ran.code, ran.stdout) == (2, "")
    assert says in ran.stderr


def test_all_that_is_missing_is_told_at_once(rlsize: Run) -> None:
    """Five flags, in one go."""
    ran = rlsize("iteration")
    assert ran.code == 2
    for flag in ("--train-seconds", "--samples", "--instances", "--group", "--group-seconds", "--rollout-seconds"):
        assert flag in ran.stderr


@pytest.mark.parametrize("form", ["--csv", "--markdown", "--explain"])
def test_every_form_names_the_modes(rlsize: Run, form: str) -> None:
    """CSV carries every cell."""
    ran = rlsize(*GROUPS, "--samples", "256", form)
    assert ran.code == 0
    assert "overlapped" in ran.stdout


def test_a_plot_stacks_the_phases_of_each_mode(rlsize: Run, tmp_path: Path) -> None:
    """In the terminal and as a picture."""
    ran = rlsize(*GROUPS, "--samples", "256", "--plot")
    assert "both at once" in ran.stdout
    assert "overlapped takes 12 s per iteration where sync takes 17 s" in flat(ran.stdout)
    target = tmp_path / "iteration.png"
    assert rlsize(*GROUPS, "--samples", "256", "--plot", str(target)).code == 0
    assert target.read_bytes().startswith(b"\x89PNG")


FLAGS = {
    "--samples": "256", "--prompts": "32", "--group": "8", "--train-seconds": "20.0",
    "--mode": "sync|overlapped|colocated|async", "--instances": "8", "--response-tokens": "1500.0", "--headroom": "0.8",
    "--rollout-seconds": "12.0", "--group-seconds": "3.0", "--per-instance": "4000.0", "--sync-seconds": "1.0",
    "--swap-seconds": "3.0", "--rollout-gpus": "32", "--trainer-gpus": "32", "--verify-seconds": "2.0",
    "--tokens-per-trained-token": "1.5", "--seed": "3",
}  # fmt: skip
GOOD = tuple(
    dict(zip(line[1::2], line[2::2], strict=True))
    for line in (
        (*GROUPS, "--samples", "256"),
        (*RATE, "--verify-seconds", "2"),
        (*RATE, "--mode", "colocated", "--rollout-gpus", "32", "--trainer-gpus", "32", "--swap-seconds", "3 ± 1"),
    )
)


@pytest.mark.long
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=tries(30))
@given(data=st.data(), form=st.sampled_from(["", "--json", "--csv", "--markdown", "--explain", "--plot"]))
def test_junk_ends_in_an_answer_or_in_exit_code_2(
    rlsize: Run, spoilt: Run, checked: Run, data: st.DataObject, form: str
) -> None:
    """Whatever is typed, there is no traceback, and JSON is JSON."""
    line = data.draw(
        spoilt(GOOD, FLAGS, {"--samples", "--prompts"}, {"--rollout-seconds", "--group-seconds", "--per-instance"})
    )
    ran = rlsize("iteration", *(f"{flag}={value}" for flag, value in line.items()), *([form] if form else []))
    checked(ran, "iteration", form)
