"""`rlsize cost`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import tries

from rlsize.readers.profiles import Catalogue

Run = Callable[..., Any]
POOLS = ("cost", "--rollout-gpus", "32", "--trainer-gpus", "32", "--step-seconds", "36")
SPOT = """rlsize: {kind: price, version: 1}
name: my-cloud
cloud: My Cloud
gpu_listed: H100
gpus: {value: 8, source: list}
usd_per_gpu_hour: {value: 2 usd/h, source: list}
spot_usd_per_gpu_hour: {value: 1 usd/h, source: list}
region: here
commitment: on demand
as_of: 2026-11-01
as_of_meaning: read
trust: high
sources: {list: "https://example.com/prices"}
"""


def flat(text: str) -> str:
    """Text on one line, as it was before the terminal wrapped it."""
    return " ".join(text.split())


def test_a_price_per_pool(rlsize: Run) -> None:
    """0.32 GPU-hours at 2 dollars and as many at 3."""
    results = rlsize(*POOLS, "--rollout-gpu-hour", "2", "--trainer-gpu-hour", "3", "--json").results
    assert results["cost_per_step_usd"] == pytest.approx(1.6)
    assert results["rollout_cost_per_step_usd"] == pytest.approx(0.64)


def test_without_a_price_the_rest_is_told(rlsize: Run) -> None:
    """GPU-hours, goodput, and the flag that would give dollars; exit code 0."""
    ran = rlsize(*POOLS, "--batch-tokens", "786432")
    assert ran.code == 0
    assert "needs --gpu-hour" in ran.stdout
    results = rlsize(*POOLS, "--batch-tokens", "786432", "--json").results
    assert results["cost_per_step_usd"] is None
    assert results["gpu_hours_per_step"] == pytest.approx(0.64)
    assert results["goodput_tokens_per_gpu_second"] == pytest.approx(786432 / (36 * 64))


def test_a_price_profile_brings_its_date_and_region(rlsize: Run) -> None:
    """Beside the price."""
    profile = Catalogue().get("price", "lambda-h100-sxm-8x")
    ran = rlsize(*POOLS, "--price", "lambda-h100-sxm-8x", "--json")
    assert ran.results["cost_per_step_usd"] == pytest.approx(0.64 * profile.usd_per_gpu_hour.value)
    note = next(note for note in ran.document["notes"] if "lambda-h100-sxm-8x" in note)
    assert profile.as_of in note
    assert profile.region in note


def test_a_profiles_spot_price_is_that_of_preemptible_gpus(rlsize: Run, tmp_path: Path) -> None:
    """Half of the fleet at 1 dollar, half at 2."""
    (tmp_path / "prices").mkdir()
    (tmp_path / "prices" / "my-cloud.yaml").write_text(SPOT)
    flags = ("--price", "my-cloud", "--profiles", str(tmp_path), "--preemptible-fraction", "0.5", "--json")
    ran = rlsize(*POOLS, *flags)
    assert ran.code == 0, ran.stderr
    assert ran.results["rollout_cost_per_step_usd"] == pytest.approx(0.32 * 1.5)
    assert ran.results["trainer_cost_per_step_usd"] == pytest.approx(0.32 * 2)


def test_preemptible_rollouts(rlsize: Run) -> None:
    """Three quarters at 0.9 dollars with a tenth lost, a quarter at 2."""
    flags = (
        "--gpu-hour",
        "2",
        "--preemptible-fraction",
        "0.75",
        "--preemptible-gpu-hour",
        "0.9",
        "--lost-fraction",
        "0.1",
    )
    assert rlsize(*POOLS, *flags, "--json").results["rollout_cost_per_step_usd"] == pytest.approx(0.32 * 1.25)
    assert "price over 1 - lost share" in flat(rlsize(*POOLS, *flags, "--full").stdout)


def test_a_preemptible_share_without_its_price_is_missing(rlsize: Run) -> None:
    """The flag is named; no price is ever assumed."""
    ran = rlsize(*POOLS, "--gpu-hour", "2", "--preemptible-fraction", "0.5", "--json")
    assert ran.results["cost_per_step_usd"] is None
    assert "--preemptible-gpu-hour" in ran.document["explain"]["cost_per_step_usd"]["reason"]


def test_train_seconds_and_idle_stand_in_for_the_wall_clock(rlsize: Run) -> None:
    """27 s at a quarter idle are 36 s; what the wait costs stands beside it."""
    flags = ("cost", "--rollout-gpus", "32", "--trainer-gpus", "32", "--train-seconds", "27", "--trainer-idle", "0.25")
    results = rlsize(*flags, "--gpu-hour", "2", "--json").results
    assert results["step_seconds"] == pytest.approx(36)
    assert results["trainer_idle_cost_per_step_usd"] == pytest.approx(0.16)


def test_a_run(rlsize: Run) -> None:
    """1000 steps of 36 s: ten hours, 640 GPU-hours."""
    results = rlsize(*POOLS, "--gpu-hour", "2", "--steps", "1000", "--json").results
    assert results["cost_per_run_usd"] == pytest.approx(1280)
    assert results["run_seconds"] == 36000
    assert results["gpu_hours_per_run"] == pytest.approx(640)


def test_a_scenario_and_a_flag_that_overrides_it(rlsize: Run, tmp_path: Path) -> None:
    """Placement, workload and prices come from the file, with the date of the prices; the flag wins."""
    file = tmp_path / "scenario.yaml"
    file.write_text(
        "rlsize: {kind: scenario, version: 1}\n"
        "workload: {prompts_per_step: 64, group_size: 8, response_tokens: {mean: 1536}}\n"
        "placement: {rollout_gpus: 32, trainer_gpus: 32}\n"
        "rates: {train_seconds: 27}\n"
        "prices: {gpu_hour: 2, as_of: 2026-11, region: any}\n"
    )
    ran = rlsize("cost", str(file), "--trainer-idle", "0.25", "--json")
    assert ran.results["cost_per_sample_usd"] == pytest.approx(1.28 / 512)
    assert ran.results["cost_per_million_trained_tokens_usd"] == pytest.approx(1.28 / 0.786432)
    assert any("2026-11" in note and "region any" in note for note in ran.document["notes"])
    flagged = rlsize("cost", str(file), "--step-seconds", "72", "--rollout-gpu-hour", "1", "--json")
    assert flagged.results["cost_per_step_usd"] == pytest.approx(0.64 * 1 + 0.64 * 2)


def test_a_colocated_scenario_has_no_fleet_of_its_own(rlsize: Run, tmp_path: Path) -> None:
    """Its 64 GPUs are the trainer's."""
    file = tmp_path / "scenario.yaml"
    file.write_text("rlsize: {kind: scenario, version: 1}\nplacement: {mode: colocated, trainer_gpus: 64}\n")
    results = rlsize("cost", str(file), "--step-seconds", "36", "--gpu-hour", "2", "--json").results
    assert results["cost_per_step_usd"] == pytest.approx(1.28)


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--gpu-hour", "-1"), "at least 0"),
        (("--trainer-gpus", "0"), "more than 0"),
        (("--rollout-gpus", "1.5"), "whole number"),
        (("--step-seconds", "0"), "more than 0"),
        (("--train-seconds", "20"), "once"),
        (("--trainer-idle", "1"), "at most 0.9999"),
        (("--lost-fraction", "0.1"), "--preemptible-fraction"),
        (("--price", "lamda-h100-sxm-8x"), "lambda-h100-sxm-8x"),
        (("--preemptible-fraction", "1.5"), "at most 1"),
    ],
)
def test_bad_input_is_named_with_its_flag(rlsize: Run, flags: tuple[str, ...], says: str) -> None:
    """Exit code 2, nothing on stdout, no traceback."""
    ran = rlsize(*POOLS, *flags)
    assert (ran.code, ran.stdout) == (2, "")
    assert says in ran.stderr


def test_all_that_is_missing_is_told_at_once(rlsize: Run) -> None:
    """Both pools and the step."""
    ran = rlsize("cost", "--gpu-hour", "2")
    assert ran.code == 2
    for flag in ("--rollout-gpus", "--trainer-gpus", "--step-seconds"):
        assert flag in ran.stderr


@pytest.mark.parametrize("form", ["--csv", "--markdown", "--explain"])
def test_every_form_names_the_pools(rlsize: Run, form: str) -> None:
    """CSV carries every cell."""
    ran = rlsize(*POOLS, "--gpu-hour", "2", form)
    assert ran.code == 0
    assert "trainer" in ran.stdout


@pytest.mark.long
def test_a_plot_stacks_the_pools(rlsize: Run, tmp_path: Path) -> None:
    """In dollars, or in GPU-hours where no price is known."""
    priced = rlsize(*POOLS, "--gpu-hour", "2", "--trainer-idle", "0.25", "--plot")
    assert "dollars per optimizer step" in priced.stdout
    assert "of it waiting" in priced.stdout
    assert "GPU-hours per optimizer step" in rlsize(*POOLS, "--plot").stdout
    target = tmp_path / "cost.svg"
    assert rlsize(*POOLS, "--gpu-hour", "2", "--plot", str(target)).code == 0
    assert b"<svg" in target.read_bytes()


FLAGS = {
    "--rollout-gpus": "32", "--trainer-gpus": "32", "--step-seconds": "36.0", "--train-seconds": "27.0",
    "--trainer-idle": "0.25", "--rollout-idle": "0.25", "--samples": "512", "--batch-tokens": "786432.0",
    "--prompts": "64", "--group": "8", "--response-tokens": "1536.0", "--steps": "1000", "--gpu-hour": "2.5",
    "--rollout-gpu-hour": "1.25", "--trainer-gpu-hour": "3.0", "--price": "lambda-h100-sxm-8x",
    "--preemptible-fraction": "0.5", "--preemptible-gpu-hour": "1.0", "--lost-fraction": "0.1", "--seed": "3",
}  # fmt: skip
GOOD = tuple(
    dict(zip(line[1::2], line[2::2], strict=True))
    for line in (
        (*POOLS, "--gpu-hour", "2", "--batch-tokens", "786432", "--steps", "1000"),
        (*POOLS, "--gpu-hour", "2", "--preemptible-fraction", "0.5", "--preemptible-gpu-hour", "1"),
        (*POOLS[:5], "--train-seconds", "27 ± 3", "--trainer-idle", "0.25", "--gpu-hour", "2"),
    )
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=tries(30))
@given(data=st.data(), form=st.sampled_from(["", "--json", "--csv", "--markdown", "--explain", "--plot"]))
def test_junk_ends_in_an_answer_or_in_exit_code_2(
    rlsize: Run, spoilt: Run, checked: Run, data: st.DataObject, form: str
) -> None:
    """Whatever is typed, there is no traceback, and JSON is JSON."""
    line = data.draw(spoilt(GOOD, FLAGS, {"--step-seconds", "--train-seconds"}, {"--gpu-hour", "--price"}))
    ran = rlsize("cost", *(f"{flag}={value}" for flag, value in line.items()), *([form] if form else []))
    checked(ran, "cost", form)
