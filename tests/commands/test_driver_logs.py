"""One log of everything: the trainer's records and the lines of its engines, told apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rlsize.shell.app import app

RATES = (5200.0, 5210.0, 5220.0, 5230.0)
ORIGINS = {
    "Ray": "(vLLMHttpServer pid=10{n}, ip=10.0.0.{n}) ",
    "kubectl": "[pod/rollout-{n}/vllm] ",
    "compose": "engine-{n}  | ",
    "journald": "Nov 12 10:15:02 node{n} vllm[77]: ",
}
STEP = (
    "(TaskRunner pid=9) step:{n} - actor/lr:0.0 - perf/total_num_tokens:2048000 - response_length/mean:900.0 - "
    "prompt_length/mean:100.0 - timing_s/gen:60.0 - timing_s/update_actor:36.0 - timing_s/step:100.0\n"
)


def engine(origin: str, number: int, second: int, more: str = "") -> str:
    """A line of an engine."""
    clock = f"10:{second // 60:02}:{second % 60:02}"
    return (
        f"{ORIGINS[origin].format(n=number)}INFO 11-12 {clock} [loggers.py:248] Engine 000: "
        f"Avg prompt throughput: 20.0 tokens/s, Avg generation throughput: {RATES[number]} tokens/s, "
        f"Running: 64 reqs, Waiting: 3 reqs, GPU KV cache usage: 50.0%, Prefix cache hit rate: 10.0%{more}\n"
    )


def driver(origin: str, more: str = "") -> str:
    """A log in which four engines and a trainer talk."""
    lines = [engine(origin, number, second, more) for second in range(0, 300, 10) for number in range(4)]
    return "".join(lines) + "".join(STEP.format(n=n) for n in range(1, 4))


def ask(*arguments: str, piped: str | None = None) -> tuple[int, dict[str, Any], str]:
    """Exit code, answer and talk of a command, which may read what is piped into it."""
    found = CliRunner().invoke(app, [*arguments, "--json"], input=piped)
    return found.exit_code, json.loads(found.stdout) if found.stdout else {}, found.stderr


@pytest.mark.parametrize("origin", sorted(ORIGINS))
def test_both_pools_are_read_of_one_log(tmp_path: Path, origin: str) -> None:
    """Each engine has its own rate, the trainer its steps, and no flag is needed."""
    file = tmp_path / "driver.log"
    file.write_text(driver(origin), encoding="utf-8")
    code, answer, _ = ask("observe", str(file))
    assert code == 0
    assert [row["tokens_per_second"] for row in answer["rows"]["instances"]] == pytest.approx(RATES, rel=1e-3)
    assert answer["results"]["step_seconds"] == 100.0
    assert ask("diagnose", str(file))[1]["results"]["train_seconds"] == 36.0


def test_an_engine_that_sleeps_in_between_is_not_busy_then(tmp_path: Path) -> None:
    """Half of a window in which it says nothing lowers its rate by the clock, and not that while requests ran."""
    file = tmp_path / "engines.log"
    awake = (second for second in range(0, 300, 10) if second % 100 < 50)
    file.write_text("".join(engine("Ray", number, second) for second in awake for number in range(4)), encoding="utf-8")
    rows = ask("observe", str(file))[1]["rows"]["instances"]
    assert [row["busy_tokens_per_second"] for row in rows] == pytest.approx(RATES, rel=1e-3)
    assert all(row["tokens_per_second"] < 0.7 * row["busy_tokens_per_second"] for row in rows)


def test_a_pipe_tells_what_a_file_does(tmp_path: Path) -> None:
    """Both pools of a driver's log, engines alone, and a fault for what is neither."""
    file = tmp_path / "driver.log"
    file.write_text(driver("Ray"), encoding="utf-8")
    for command in ("observe", "diagnose"):
        answer, piped = (ask(command, name, piped=driver("Ray"))[1] for name in (str(file), "-"))
        assert (piped["results"], piped["rows"].keys()) == (answer["results"], answer["rows"].keys())
        assert len(piped["rows"]["instances"]) == len(RATES)
    alone = ask("observe", "-", piped="".join(engine("Ray", 1, second) for second in range(0, 300, 10)))[1]
    assert alone["results"]["instance_tokens_per_second"] == pytest.approx(RATES[1])
    code, _, said = ask("observe", "-", piped="hello\n")
    assert (code, "stdin: has not one whole record" in said) == (2, True)


def test_a_trainer_behind_much_of_its_engines_is_found(tmp_path: Path) -> None:
    """More than a mebibyte of engine lines hides no step; lines that Ray left out are told."""
    file = tmp_path / "driver.log"
    file.write_text(driver("Ray", " [repeated 3x across cluster]") * 30, encoding="utf-8")
    assert file.stat().st_size > 2**20
    code, answer, _ = ask("observe", str(file))
    assert (code, answer["results"]["step_seconds"]) == (0, 100.0)
    assert any("Ray left 10,800 lines" in warning for warning in answer["warnings"])


def test_the_engines_own_pages_go_before_their_lines(tmp_path: Path) -> None:
    """Beside saved pages only the trainer's half of a driver's log counts; one line of an engine is no rate."""
    file = tmp_path / "driver.log"
    file.write_text(engine("Ray", 1, 0) + STEP.format(n=1) + STEP.format(n=2), encoding="utf-8")
    code, answer, _ = ask("observe", str(file))
    assert (code, "instances" in answer["rows"], answer["results"]["step_seconds"]) == (0, False, 100.0)
    file.write_text(driver("Ray"), encoding="utf-8")
    pages = sorted(map(str, (Path(__file__).parents[1] / "readers" / "data" / "vllm_metrics").glob("engine_*.prom")))
    _, answer, _ = ask("observe", str(file), "--pages", *pages[:2], "--seconds", "60")
    assert (len(answer["rows"]["instances"]), answer["results"]["step_seconds"]) == (1, 100.0)


def test_what_was_guessed_is_written_read_and_corrected(tmp_path: Path) -> None:
    """`--learn` writes what `--map` reads: the same figures, none of them guessed any more."""
    log, learned = tmp_path / "own.log", tmp_path / "keys.yaml"
    log.write_text("".join(f"step={n} gen_secs=30 learn_secs=20 step_secs=60\n" for n in range(4)), encoding="utf-8")
    code, answer, _ = ask("observe", str(log), "--learn", str(learned))
    assert (code, answer["results"]["step_seconds"]) == (0, 60.0)
    assert all(row["guessed"] for row in answer["rows"]["keys"])
    again = ask("observe", str(log), "--map", str(learned))[1]
    assert again["results"] == answer["results"]
    assert not any(row["guessed"] for row in again["rows"]["keys"])
    other = ask("observe", str(log), "--map", "update_seconds=gen_secs")[1]
    assert other["results"]["train_seconds"] == 30.0
    for wrong in (("--map", "nothing=gen_secs"), ("--map", str(log))):
        code, _, said = ask("observe", str(log), *wrong)
        assert (code, "Traceback" in said) == (2, False)
