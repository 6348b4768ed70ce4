"""What is measured survives its file, and the commands that size take it from there."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rlsize.facts.rates import Rates
from rlsize.readers.saved_files import read_calibration, read_rates
from rlsize.writers.yaml_file import rates_text


@pytest.fixture
def file(measured: Rates, tmp_path: Path) -> Path:
    """The rates on disk."""
    path = tmp_path / "rates.yaml"
    path.write_text(rates_text(measured), encoding="utf-8")
    return path


def test_a_rates_file_holds_all_that_was_measured(measured: Rates, file: Path) -> None:
    """Written and read, every field is what it was; bytes carry their unit."""
    assert read_rates(str(file)) == measured
    assert "bytes: 16000000000 B" in file.read_text(encoding="utf-8")


def test_show_prints_what_measure_printed(rlsize: Any, file: Path) -> None:
    """Headline, levels, tail, phases, ways to sync, and the doubts as warnings."""
    shown = rlsize("measure", "--show", str(file))
    assert shown.code == 0
    for text in (
        "4,000 tok/s per instance with 64 in flight",
        "20 s per train step on 8 GPUs",
        "0.64 s per weight sync",
    ):
        assert text in " ".join(shown.stdout.split())
    assert "a doubt" in shown.stderr
    document = rlsize("measure", "--show", str(file), "--json").document
    assert set(document["rows"]) == {"levels", "batch", "crosschecks", "phases", "sync_methods"}
    assert document["results"]["engine_pause_seconds"] == 0.6


def test_the_picture_shows_the_curve(rlsize: Any, file: Path, tmp_path: Path) -> None:
    """--plot draws rate against concurrency."""
    assert rlsize("measure", "--show", str(file), "--plot", str(tmp_path / "curve.png")).code == 0
    assert (tmp_path / "curve.png").stat().st_size > 10_000


def test_a_single_instance_s_error_over_time_becomes_a_band(rlsize: Any, file: Path) -> None:
    """± 63 of 4000 tokens per second reaches the matched count."""
    sized = rlsize("fleet", "--consume", "393216", "--per-instance", str(file), "--json").document
    explained = sized["explain"]["matched_instances"]
    assert sized["explain"]["required_tokens_per_second"]["provenance"] == "predicted"
    assert any(entry.get("band") for entry in sized["explain"].values()), explained


def test_a_measured_trainer_is_used_where_it_is_the_planned_one(rlsize: Any, file: Path, tmp_path: Path) -> None:
    """Its consumption sizes the fleet; for another number of GPUs it is refused."""
    alone = rlsize("fleet", "--per-instance", str(file), "--json")
    assert alone.results["required_tokens_per_second"] == pytest.approx(39321.6)
    scenario = tmp_path / "scenario.yaml"
    text = "rlsize: {kind: scenario, version: 1}\nplacement: {trainer_gpus: %d}\n"
    scenario.write_text(text % 8, encoding="utf-8")
    assert rlsize("fleet", str(scenario), "--per-instance", str(file)).code == 0
    scenario.write_text(text % 32, encoding="utf-8")
    other = rlsize("fleet", str(scenario), "--per-instance", str(file))
    assert other.code == 2
    assert "measured on 8 GPUs, and the trainer has 32" in other.stderr
    flagged = rlsize("fleet", "--per-instance", str(file), "--trainer-gpus", "32")
    assert flagged.code == 2
    assert rlsize("fleet", str(scenario), "--per-instance", str(file), "--consume", "39321").code == 0


def test_calibrate_compares_what_is_predicted_and_says_what_is_not(rlsize: Any, file: Path, tmp_path: Path) -> None:
    """The sync is compared with its bytes over what transfers reach of the link; what lacks a profile is not."""
    target = tmp_path / "calibration.yaml"
    found = rlsize("calibrate", str(file), "--bandwidth", "50 GB/s", "--save", str(target), "--json")
    assert found.code == 0
    (sync,) = [row for row in found.document["rows"]["points"] if "sync" in row["what"]]
    assert sync["measured"] == pytest.approx(0.64)
    assert sync["predicted"] == pytest.approx(0.32 / 0.75)
    assert sync["predicted"] < sync["calibrated"] < sync["measured"]
    assert read_calibration(str(target)).points[-1].measured == pytest.approx(0.64)
    again = rlsize("calibrate", str(file), "--save", str(target))
    assert again.code == 2
    assert "exists already" in again.stderr


def on_gpus(measured: Rates) -> Rates:
    """The same of a model and a GPU that have profiles."""
    conditions = replace(
        measured.conditions,
        model="Qwen/Qwen3-8B",
        mean_prompt_tokens=300.0,
        mean_response_tokens=1536.0,
        tensor_parallel=2,
    )
    assert measured.machine is not None
    return replace(
        measured, conditions=conditions, machine=replace(measured.machine, gpus=["NVIDIA H100 80GB HBM3"] * 8)
    )


def test_calibrate_takes_all_that_was_measured_on_gpus(rlsize: Any, measured: Rates, tmp_path: Path) -> None:
    """Each level, and the train step, from the conditions in the file alone; the sync waits for its link."""
    path = tmp_path / "rates.yaml"
    path.write_text(rates_text(on_gpus(measured)), encoding="utf-8")
    found = rlsize("calibrate", str(path), "--json")
    assert found.code == 0, found.stderr
    rows = {row["what"]: row for row in found.document["rows"]["points"]}
    assert set(rows) == {"rate with 8 in flight", "rate with 64 in flight", "train step on 8 GPUs"}
    for row in rows.values():
        off = {name: abs(math.log(row[name] / row["measured"])) for name in ("predicted", "calibrated")}
        assert off["calibrated"] < off["predicted"]
    assert "--link" in found.document["rows"]["unused"][0]["reason"]
    assert "rate with as many in flight as fit" in {row["what"] for row in found.document["rows"]["further"]}


def test_calibrate_refuses_levels_that_fall(rlsize: Any, measured: Rates, tmp_path: Path) -> None:
    """A rate that halves while concurrency rises is named with its neighbour."""
    whole = on_gpus(measured)
    assert whole.rollout is not None
    few, many = whole.rollout.levels
    path = tmp_path / "rates.yaml"
    odd = replace(whole, rollout=replace(whole.rollout, levels=[few, replace(many, tokens_per_second=450.0)]))
    path.write_text(rates_text(odd), encoding="utf-8")
    refused = rlsize("calibrate", str(path))
    assert refused.code == 2
    assert "rate with 64 in flight: 450 token/s does not fit" in " ".join(refused.stderr.split())


def test_a_partial_measurement_says_so_wherever_it_goes(rlsize: Any, measured: Rates, tmp_path: Path) -> None:
    """`--show` and `calibrate` repeat it."""
    path = tmp_path / "partial.yaml"
    path.write_text(rates_text(replace(measured, partial="interrupted")), encoding="utf-8")
    assert "partial: interrupted" in rlsize("measure", "--show", str(path)).stderr
    assert "partial: interrupted" in " ".join(rlsize("calibrate", str(path), "--bandwidth", "50 GB/s").stderr.split())
