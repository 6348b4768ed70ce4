"""`rlsize calibrate` takes whatever is known; what it saves is believed by every command that predicts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

SCENARIO = """\
rlsize: {kind: scenario, version: 1}
model: qwen3-32b
cluster: {gpu: h100-sxm, gpus: 64}
workload: {prompts_per_step: 64, group_size: 8, prompt_tokens: 300, response_tokens: {mean: 1536, cv: 0.8, max: 8k}}
placement: {mode: async, trainer_gpus: 32}
rollout: {engine: vllm, tensor_parallel: 2}
trainer: {parallelism: {fsdp: 32}}
"""
RUNS = """\
- {id: a, source_id: mine, model: qwen3-8b, gpu: H100, gpus: 1, framework: vllm, parallel: TP1, input_len: 1000,
   output_len: 1000, concurrency: 64, output_tok_s_total: 2600}
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """An asynchronous loop."""
    path = tmp_path / "plan.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


def rows(ran: Any, table: str = "points") -> dict[str, Any]:
    """The rows of a table by what they are about."""
    assert ran.code == 0, ran.stderr
    return {row["what"]: row for row in ran.document["rows"][table]}


@pytest.mark.long
def test_what_is_known_by_heart_moves_its_own_prediction(rlsize: Any, scenario: Path) -> None:
    """Each value stands between prediction and measurement after it."""
    said = ("--rate", "64=2400", "--train-seconds", "20", "--step-seconds", "45", "--generation-seconds", "20")
    found = rows(rlsize("calibrate", str(scenario), *said, "--sync-seconds", "2", "--json"))
    assert set(found) == {
        "rate with 64 in flight", "step, async", "generation of a step, async", "training of a step, async",
        "weight sync of a step, async",
    }  # fmt: skip
    for row in found.values():
        assert row["low"] < row["predicted"] < row["high"]
    assert found["rate with 64 in flight"]["measured"] < found["rate with 64 in flight"]["calibrated"]


def test_it_says_what_to_measure_next(rlsize: Any, scenario: Path) -> None:
    """The best comes first, nothing widens, and what was measured is not offered again."""
    ran = rlsize("calibrate", str(scenario), "--rate", "64=2400", "--json")
    further = ran.document["rows"]["further"]
    widths = [row["then_fraction"] for row in further]
    assert widths == sorted(widths)
    assert all(row["now_fraction"] >= row["then_fraction"] for row in further)
    names = {row["what"] for row in further}
    assert {"step, async", "step, synchronous", "training of a step, async"} <= names
    assert "rate with 64 in flight" not in names
    assert further[0]["what"] in " ".join(ran.document["headline"].split())


@pytest.mark.long
def test_a_saved_calibration_is_believed_elsewhere(rlsize: Any, scenario: Path, tmp_path: Path) -> None:
    """A trainer that was slower than predicted makes the fleet smaller, and the note says whose word it is."""
    file = tmp_path / "calibration.yaml"
    before = rlsize("fleet", str(scenario), "--json")
    slow = str(2 * before.document["inputs"]["train_seconds"])
    assert rlsize("calibrate", str(scenario), "--train-seconds", slow, "--save", str(file)).code == 0
    after = rlsize("fleet", str(scenario), "--calibration", str(file), "--json")
    assert after.results["required_tokens_per_second"] < 0.7 * before.results["required_tokens_per_second"]
    assert str(file) in after.document["explain"]["train_seconds"]["source"]
    assert "uncalibrated" in before.document["explain"]["train_seconds"]["source"]
    again = rlsize("calibrate", str(scenario), "--train-seconds", slow, "--save", str(file))
    assert again.code == 2
    assert "exists already" in again.stderr


def test_another_model_is_warned_about(rlsize: Any, scenario: Path, tmp_path: Path) -> None:
    """Constants go over to it, with the spread of software back."""
    file = tmp_path / "calibration.yaml"
    assert rlsize("calibrate", str(scenario), "--rate", "64=2400", "--save", str(file)).code == 0
    other = tmp_path / "other.yaml"
    other.write_text(SCENARIO.replace("qwen3-32b", "qwen3-14b").replace("tensor_parallel: 2", "tensor_parallel: 1"))
    ran = rlsize("fleet", str(other), "--consume", "20000", "--calibration", str(file))
    assert ran.code == 0
    said = " ".join(ran.stderr.split())
    assert "made for the model qwen3-32b, and here it is qwen3-14b" in said
    assert "layout of an instance TP2 PP1 DP1" in said


@pytest.mark.parametrize(("degree", "warned"), [("2", False), ("4", True)])
def test_another_instance_is_warned_about(
    rlsize: Any, scenario: Path, tmp_path: Path, degree: str, *, warned: bool
) -> None:
    """A rate that is asked by itself is of an instance too, and its layout is compared with that of the calibration."""
    file = tmp_path / "calibration.yaml"
    assert rlsize("calibrate", str(scenario), "--rate", "64=2400", "--save", str(file)).code == 0
    asked = ("--model", "qwen3-32b", "--gpu", "h100-sxm", "--response-tokens", "1536")
    ran = rlsize("predict", "rollout", *asked, "--rollout-tensor-parallel", degree, "--calibration", str(file))
    assert ran.code == 0
    said = " ".join(ran.stderr.split())
    assert ("layout of an instance TP2 PP1 DP1, and here it is TP4 PP1 DP1" in said) == warned


def test_records_and_flags_go_together(rlsize: Any, scenario: Path, tmp_path: Path) -> None:
    """A record is read as `validate` reads it; what cannot be used is told with its reason."""
    runs = tmp_path / "runs.yaml"
    runs.write_text(RUNS + "- {id: b, model: nobody-knows, gpu: H100, output_tok_s_total: 5}\n", encoding="utf-8")
    ran = rlsize("calibrate", str(scenario), str(runs), "--train-seconds", "25", "--json")
    assert {"a: output_tok_s_total", "training of a step, async"} <= set(rows(ran))
    assert "b" in rows(ran, "unused")


LOOP = """\
- {id: loop, source_id: mine, model: qwen3-8b, framework: verl (vLLM rollout), gpu: h100-sxm, gpus_total: 16,
   placement: colocated, gpus_shared: 16, prompts_per_step: 64, group_size: 8, prompt_len_mean: 300,
   response_len_mean: 2000, seq_len_max: 8192, rollout_parallel: TP1, precision: BF16, trust: high,
   step_time_s: 140, generation_time_s: 90, train_time_s: 18}
"""


@pytest.mark.long
def test_a_loop_gives_its_phases_and_what_is_left_to_measure(rlsize: Any, tmp_path: Path) -> None:
    """Step, generation and training are points; of the loop only the rest is offered, and the other mode."""
    runs = tmp_path / "loop.yaml"
    runs.write_text(LOOP, encoding="utf-8")
    ran = rlsize("calibrate", str(runs), "--json")
    assert set(rows(ran)) == {"loop: step_time_s", "loop: generation_time_s", "loop: train_time_s"}
    names = set(rows(ran, "further"))
    assert {"weight sync of a step, colocated", "step, async"} <= names
    assert not names & {"step, colocated", "generation of a step, colocated", "training of a step, colocated"}


def test_the_order_of_arguments_does_not_matter(rlsize: Any, scenario: Path, tmp_path: Path) -> None:
    """A scenario is known by its header, wherever it stands."""
    runs = tmp_path / "runs.yaml"
    runs.write_text(RUNS, encoding="utf-8")
    one = rows(rlsize("calibrate", str(scenario), str(runs), "--json"))
    other = rows(rlsize("calibrate", str(runs), str(scenario), "--json"))
    assert one["a: output_tok_s_total"]["calibrated"] == pytest.approx(other["a: output_tok_s_total"]["calibrated"])


def test_a_rate_that_falls_is_refused_by_name(rlsize: Any, scenario: Path) -> None:
    """With its value and its neighbours; nothing is saved."""
    said = ("--rate", "16=900", "--rate", "64=2600", "--rate", "128=1500", "--rate", "256=5000")
    ran = rlsize("calibrate", str(scenario), *said)
    assert ran.code == 2
    text = " ".join(ran.stderr.split())
    assert "rate with 128 in flight: 1500 token/s does not fit its neighbours" in text
    assert "2600 token/s" in text
    assert "5000 token/s" in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "nothing was measured"),
        (("--train-seconds", "20"), "the model is missing"),
        (("--rate", "64"), "write 64=2100"),
        (("--rate", "x=2"), "--rate"),
        (("{scenario}", "{scenario}", "--train-seconds", "20"), "second scenario"),
        (("{scenario}",), "nothing was measured"),
        (("no-such-file.yaml",), "no such file"),
    ],
)
def test_what_cannot_be_calibrated_says_why(rlsize: Any, scenario: Path, arguments: tuple[str, ...], said: str) -> None:
    """A fault with what to do, and exit code 2."""
    ran = rlsize("calibrate", *(text.format(scenario=scenario) for text in arguments))
    assert ran.code == 2
    assert said in " ".join(ran.stderr.split())


def test_another_kind_of_file_is_no_calibration(rlsize: Any, scenario: Path, tmp_path: Path) -> None:
    """Neither as a source nor as what is believed."""
    assert "not a calibration file" in rlsize("fleet", str(scenario), "--calibration", str(scenario)).stderr
    file = tmp_path / "calibration.yaml"
    assert rlsize("calibrate", str(scenario), "--train-seconds", "25", "--save", str(file)).code == 0
    assert "is a calibration file" in " ".join(rlsize("calibrate", str(file)).stderr.split())


def test_a_value_with_a_wide_spread_moves_less(rlsize: Any, scenario: Path) -> None:
    """40 ± 40 says little."""
    name = "training of a step, async"
    sure = rows(rlsize("calibrate", str(scenario), "--train-seconds", "40", "--json"))[name]
    vague = rows(rlsize("calibrate", str(scenario), "--train-seconds", "40 ± 40", "--json"))[name]
    assert sure["predicted"] < vague["calibrated"] < sure["calibrated"]
