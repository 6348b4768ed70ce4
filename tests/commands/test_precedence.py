"""Who is heard: flags before the scenario, in whatever way they say it; then the scenario; a rates file last."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
SCENARIO = """\
rlsize: {kind: scenario, version: 1}
cluster: {gpus: 64}
workload: {prompts_per_step: 64, group_size: 8, response_tokens: {mean: 1536}}
placement: {trainer_gpus: 16}
rollout: {tensor_parallel: 2}
rates: {instance_tokens_per_second: 4000, train_seconds: 20}
prices: {gpu_hour: 1.0, as_of: 2026-11, region: any}
"""
RATES = """\
rlsize: {kind: rates, version: 1}
measured_at: "2026-11-20T12:00:00+00:00"
source: {method: observe, engine: vllm}
instance_tokens_per_second: {mean: 4000, spread: 300, instances: 9}
includes: []
gpus_per_instance: 4
train_seconds: 20
"""


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    """A scenario file."""
    file = tmp_path / "s.yaml"
    file.write_text(SCENARIO, encoding="utf-8")
    return str(file)


@pytest.fixture
def rates(tmp_path: Path) -> str:
    """A rates file that says more than the rate."""
    file = tmp_path / "rates.yaml"
    file.write_text(RATES, encoding="utf-8")
    return str(file)


def test_a_flag_overrides_what_the_scenario_derives(rlsize: Run, scenario: str) -> None:
    """A typed consumption is not refused for disagreeing with the scenario's batch and time."""
    assert rlsize("fleet", scenario, "--json").results["matched_instances"] == 13
    assert rlsize("fleet", scenario, "--consume", "50000", "--json").results["matched_instances"] == 16


def test_a_flag_that_derives_overrides_what_the_scenario_says(rlsize: Run, scenario: str) -> None:
    """A typed train time counts, though the scenario states a consumption."""
    text = Path(scenario).read_text("utf-8").replace("train_seconds: 20", "consumption_tokens_per_second: 39321.6")
    Path(scenario).write_text(text, "utf-8")
    assert rlsize("fleet", scenario, "--json").results["matched_instances"] == 13
    assert rlsize("fleet", scenario, "--train-seconds", "10", "--json").results["matched_instances"] == 25


def test_two_ways_of_the_same_rank_must_agree(rlsize: Run, scenario: str) -> None:
    """Flags that contradict each other are refused, and so is a scenario that contradicts itself."""
    ran = rlsize(
        "fleet", "--consume", "50000", "--batch-tokens", "786432", "--train-seconds", "20", "--per-instance", "4000"
    )
    assert ran.code == 2
    text = (
        Path(scenario)
        .read_text("utf-8")
        .replace("train_seconds: 20", "train_seconds: 20, consumption_tokens_per_second: 1000")
    )
    Path(scenario).write_text(text, "utf-8")
    ran = rlsize("fleet", scenario)
    assert ran.code == 2
    assert "disagrees" in ran.stderr


def test_a_typed_price_profile_overrides_the_scenario_price(rlsize: Run, scenario: str) -> None:
    """--price is heard, and two typed prices are refused."""
    inputs = rlsize("fleet", scenario, "--price", "nebius-h100-sxm-8x", "--json").document["inputs"]
    assert inputs["gpu_hour_usd"] == 2.95
    assert rlsize("fleet", scenario, "--price", "nebius-h100-sxm-8x", "--gpu-hour", "2").code == 2


def test_split_hears_an_instance_rate_and_a_consumption(rlsize: Run, scenario: str) -> None:
    """Per-GPU rates of the scenario give way to flags that say the rates in another way."""
    text = (
        Path(scenario)
        .read_text("utf-8")
        .replace("rates: {", "rates: {rollout_gpu_tokens_per_second: 1, trainer_gpu_tokens_per_second: 1, ")
    )
    Path(scenario).write_text(text, "utf-8")
    inputs = rlsize("split", scenario, "--per-instance", "4000", "--consume", "39321.6", "--json").document["inputs"]
    assert inputs["rollout_gpu_tokens_per_second"] == 2000
    assert inputs["trainer_gpu_tokens_per_second"] == pytest.approx(2457.6)


def test_a_rates_file_says_more_than_the_rate(rlsize: Run, rates: str) -> None:
    """GPUs of an instance and train seconds of the file are used, as measured, unless a flag says otherwise."""
    document = rlsize("fleet", "--per-instance", rates, "--batch-tokens", "786432", "--json").document
    assert document["results"]["matched_instances"] == 13
    assert document["results"]["rollout_gpus"] == 52
    assert document["explain"]["gpus_per_instance"]["provenance"] == "measured"
    over = rlsize("fleet", "--per-instance", rates, "--batch-tokens", "786432", "--gpus-per-instance", "1", "--json")
    assert over.results["rollout_gpus"] == 13


def test_the_same_rate_gives_the_same_split_and_backlog_however_it_is_given(rlsize: Run, rates: str) -> None:
    """A file that includes nothing, and a typed number: split and backlog take the rate as it is."""
    shared = ("--instances", "15", "--consume", "39321.6", "--json")
    typed = rlsize("backlog", "--per-instance", "4000", *shared).results["backlog_tokens_per_second"]
    filed = rlsize("backlog", "--per-instance", rates, *shared).results["backlog_tokens_per_second"]
    assert typed == filed == pytest.approx(20678.4)


def test_the_spread_of_a_rates_file_reaches_the_match(rlsize: Run, rates: str) -> None:
    """300 tok/s over nine instances: a standard error of 100 on the mean."""
    document = rlsize("fleet", "--per-instance", rates, "--batch-tokens", "786432", "--json").document
    assert document["explain"]["instance_tokens_per_second"]["deviation"] == pytest.approx(100)
    low, high = document["explain"]["matched_instances"]["band"]
    assert low <= 13 <= high
    assert low < high


def test_a_derived_consumption_keeps_its_spread(rlsize: Run) -> None:
    """An uncertain train time gives the match a band, and the step time follows the same draws."""
    document = rlsize(
        "fleet", "--batch-tokens", "786432", "--train-seconds", "20 ± 2", "--per-instance", "4000", "--json"
    ).document
    low, high = document["explain"]["matched_instances"]["band"]
    assert low < high


def test_one_price_for_both_pools_is_one_draw(rlsize: Run) -> None:
    """The relative band of the cost is that of the price, however the GPUs are divided."""
    base = (
        "fleet",
        "--consume",
        "39321.6",
        "--per-instance",
        "4000",
        "--batch-tokens",
        "786432",
        "--gpu-hour",
        "2.5 ± 0.5",
        "--json",
    )
    even = rlsize(*base, "--gpus-per-instance", "1", "--trainer-gpus", "13").document
    lopsided = rlsize(*base, "--gpus-per-instance", "1", "--trainer-gpus", "1").document
    widths = []
    for document in (even, lopsided):
        low, high = document["explain"]["expected_cost_per_step_usd"]["band"]
        widths.append(high / low)
    assert widths[0] == pytest.approx(widths[1])


def test_what_a_profile_says_is_not_called_the_user_s(rlsize: Run, scenario: str) -> None:
    """The table says profile where a price profile gave the number."""
    out = rlsize("fleet", scenario, "--price", "nebius-h100-sxm-8x", "--full").stdout.replace("\n", " ")
    assert "$2.95 (profile)" in out


@pytest.mark.parametrize("text", ["0 ± 1", "1e-300"])
def test_a_spread_around_zero_and_a_vanishing_rate_are_refused(rlsize: Run, text: str) -> None:
    """Neither can be sized from."""
    ran = rlsize("fleet", "--consume", "1", "--per-instance", "1", "--gpu-hour", text)
    assert ran.code == 2
    assert "--gpu-hour" in ran.stderr


def test_waste_is_worked_out_of_its_causes(rlsize: Run) -> None:
    """20 % over-sampling with 80 % of groups kept: 1.5 tokens generated per trained one, so 19 instances."""
    base = ("fleet", "--consume", "39321", "--per-instance", "4000", "--json")
    assert rlsize(*base, "--oversampling", "1.2", "--kept-fraction", "0.8").results["matched_instances"] == 19
    assert rlsize(*base, "--oversampling", "1.2", "--tokens-per-trained-token", "2").code == 2


def test_what_set_says_is_told_as_its_own(rlsize: Run, scenario: str) -> None:
    """Not as the line of the scenario that it stands for; nor what is a flag of other commands, which it becomes."""
    key = "rates.instance_tokens_per_second"
    figures = rlsize("fleet", scenario, "--set", f"{key}=5000", "--json").document["explain"]
    assert figures["instance_tokens_per_second"]["source"] == f"--set {key}"
    for flags in (("--set", f"{key}=-1"), ("--per-instance=-1",)):
        assert f"--set {key}: -1 must be more than 0" in rlsize("cost", scenario, *flags).stderr


@pytest.mark.parametrize(
    ("line", "flag", "told"),
    [
        ("sync --params 70e9 --bandwidth 50GB/s", "--group 8", "workload.group_size"),
        ("sync examples/unmeasured-8b.yaml", "--steps 100", "workload.steps"),
        ("split examples/unmeasured-8b.yaml", "--gpu-hour 2", "prices.gpu_hour"),
        ("snippet examples/baseline.yaml --framework verl", "--steps 100", "workload.steps"),
        ("predict step examples/unmeasured-8b.yaml", "--headroom 0.5", "rates.headroom"),
        ("fleet examples/unmeasured-8b.yaml", "--headroom 0.5", "--headroom"),
        ("fleet examples/grpo-32b.yaml --rollout-gpu-hour 2 --trainer-gpu-hour 3", "--gpu-hour 2", "--gpu-hour"),
    ],
)
def test_what_is_typed_and_has_no_bearing_is_named(rlsize: Run, line: str, flag: str, told: str) -> None:
    """The answer is the same with it, and says that it is not used."""
    without, typed = (rlsize(*line.split(), *more.split(), "--json").document for more in ("", flag))
    assert typed["results"] == without["results"]
    (note,) = (note for note in typed["notes"] if note.startswith("Not used here: "))
    assert told in note.removeprefix("Not used here: ").split(", ")
