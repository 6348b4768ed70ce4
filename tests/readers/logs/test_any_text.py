"""Records of no framework that is known, in every way in which people paste them."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest

from rlsize.errors import InputError
from rlsize.estimates.run_summary import run_summary
from rlsize.readers.logs.reading import read_log
from rlsize.readers.logs.said import said_figures

if TYPE_CHECKING:
    from pathlib import Path

    from rlsize.facts.run_log import RunLog

FIGURES = {"step_seconds": 60.0, "generation_seconds": 30.5, "update_seconds": 20.25}
ONE = "step {n} gen_time: 30.5s train_time: 20.25s step_time: 60.0s\n"
WAYS = {
    "one line": ONE,
    "key=value": "[trainer] iter={n} generate_secs=30.5 train_secs=20.25 iter_secs=60.0 loss=0.25\n",
    "milliseconds": "iter {n}: t_gen_ms: 30500 t_train_ms: 20250 t_step_ms: 60000\n",
    "took": "Step {n}\nRollout took 30.5 seconds\nTraining took 20.25 seconds\nWhole step took 1m0s\n",
    "by hand": "[step {n}/9] rollout 30.5s, train 20.25 s, whole step 60s\n",
    "by hand, a line each": "Step {n}:\n  - rollout 30.5s\n  - train 20250ms\n  - total 60.0s\n",
    "bullets": (
        "=== Step {n}/9 ===\n  • Total step time: 60.00s\n  • generation: 30.50s (51%)\n"
        "  • policy_training: 20.25s (34%)\n"
    ),
    "a table": "Step {n} done\n│ secs/rollout │ 30.5 │ secs/update │ 20.25 │\n│ secs/step │ 6.0e+01 │ kl │ 0.1 │\n",
    "a printed dict": "{{'step': {n}, 'time/gen': 30.5, 'time/train': np.float64(20.25), 'time/step': '60.0'}}\n",
    "nested JSON": '{{"step": {n}, "metrics": {{"timing": {{"gen": 30.5, "train": 20.25, "step": 60.0}}}}}}\n',
    "a logger's JSON": (
        '{{"ts": 1700000000.5, "line": 55, "msg": "step {n} gen_time: 30.5s train_time: 20.25s step_time: 60.0s"}}\n'
    ),
    "journald's JSON": (
        '{{"MESSAGE": "step={n} gen_time=30.5 train_time=20.25 step_time=60.0", "_PID": "7", "PRIORITY": "6"}}\n'
    ),
    "behind a bar": "10%|#| {n}/9 [01:00<07:20, 5.0s/it, generate_time=30.5, train_time=20.25, step_time=60.0]\n",
    "paths of timers": (
        "METRICS STEP {n}\n  perf/loop/total_duration_avg_s: 60.0\n  perf/loop/generate/duration_avg_s: 30.5\n"
        "  perf/loop/train_step/duration_avg_s: 20.25\n"
    ),
    "logger's places": "10:00:00.1 | INFO | run:step:55 - step={n} gen_time=30.5s train_time=20.25s step_time=60s\n",
    "logger's bars": "10:00:00.1 | INFO | run:55 - step {n} | gen_time: 30.5s | train_time: 20.25s | step_time: 60s\n",
}


def read(folder: Path, text: str | bytes, name: str = "log", **more: Any) -> RunLog:
    """The log of a text."""
    file = folder / name
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_log(str(file), **more)


def figures(log: RunLog) -> dict[str, float | None]:
    """The figures of the first step."""
    return {name: getattr(log.steps[0], name) for name in FIGURES}


@pytest.mark.parametrize("way", sorted(WAYS))
def test_a_way_of_writing_changes_no_figure(tmp_path: Path, way: str) -> None:
    """Step, generation and update are read of three records, and each says that it was guessed."""
    log = read(tmp_path, "".join(WAYS[way].format(n=n) for n in (1, 2, 3)))
    assert len(log.steps) == 3
    assert figures(log) == FIGURES
    assert FIGURES.keys() <= log.guessed.keys()
    assert figures(read(tmp_path, WAYS[way].format(n=1).encode("utf-16"))) == FIGURES


def test_exports_are_read_as_tables(tmp_path: Path) -> None:
    """W&B's CSV and summary, a table for people, JSON by rows and by columns."""
    names = '"Step","a - time/gen","a - time/gen__MIN","a - time/train","a - time/step"'
    csv = f"{names}\n1,30.5,1,20.25,60\n2,30.5,1,20.25,60\n"
    table = "| step | gen_time (s) | train_time (s) | step_time (s) |\n|---|---|---|---|\n| 1 | 30.5 | 20.25 | 60 |\n"
    row = {"time/gen": 30.5, "time/train": 20.25, "time/step": 60.0}
    rows = json.dumps([{"step": 1, **row}, {"step": 2, **row}], indent=1)
    columns = json.dumps({"step": [1, 2], **{key: [value, value] for key, value in row.items()}})
    summary = json.dumps({"_step": 7, "_runtime": 900, **row})
    for text in (csv, table, rows, columns, summary):
        assert figures(read(tmp_path, text)) == FIGURES, text
    assert read(tmp_path, summary).steps[0].step == 7


def test_trackers_are_read_from_disk(tmp_path: Path) -> None:
    """MLflow's folder and database, Trackio's database; several runs are refused by name."""
    row = {"time/gen": 30.5, "time/train": 20.25, "time/step": 60.0}
    for key, value in row.items():
        file = tmp_path / "mlruns" / "0" / "abc" / "metrics" / key
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"17000000{n} {value} {n}\n" for n in (1, 2)), encoding="utf-8")
    log = read_log(str(tmp_path / "mlruns"))
    assert (figures(log), log.form, len(log.steps)) == (FIGURES, "tracker", 2)
    for name, column in (("mlflow.db", "run_uuid"), ("trackio.db", "run_name")):
        base = sqlite3.connect(tmp_path / name)
        if column == "run_uuid":
            base.execute("create table metrics (key text, value real, timestamp int, run_uuid text, step int)")
            entries = [(key, value, 0, "abc", n) for key, value in row.items() for n in (1, 2)]
            base.executemany("insert into metrics values (?, ?, ?, ?, ?)", entries)
        else:
            base.execute("create table metrics (id int, timestamp text, run_name text, step int, metrics text)")
            base.executemany("insert into metrics values (0, '', 'a', ?, ?)", [(n, json.dumps(row)) for n in (1, 2)])
        base.commit()
        assert figures(read_log(str(tmp_path / name))) == FIGURES
        base.execute("update metrics set run_uuid = 'b' where step = 2".replace("run_uuid", column))
        base.commit()
        base.close()
        with pytest.raises(InputError, match="has 2 runs"):
            read_log(str(tmp_path / name))


def test_what_a_user_says_goes_before_names(tmp_path: Path) -> None:
    """A key, a sum, a factor, a product and a file; and each fault of them at once."""
    text = "".join(f"step={n} a_secs=30.5 b_secs=20.0 c_ms=250 whole_secs=60 n=4 len=5\n" for n in (1, 2))
    said = ["step_seconds=whole_secs", "generation_seconds=a_secs", "update_seconds=b_secs", "response_tokens=n x len"]
    log = read(tmp_path, text, said=said_figures([*said, "sync_seconds=c_ms", "total_tokens=n + len", "samples=n * 3"]))
    step = log.steps[0]
    assert (step.step_seconds, step.generation_seconds, step.update_seconds, step.sync_seconds) == (60, 30.5, 20, 0.25)
    assert (step.response_tokens, step.total_tokens, step.samples, dict(log.guessed)) == (20, 9, 12, {})
    known = "".join(f"step:{n} - actor/lr:0.0 - timing_s/gen:30.0 - timing_s/step:60.0\n" for n in (1, 2))
    log = read(tmp_path, known, said=said_figures(["generation_seconds=timing_s/step", "sync_seconds=none"]))
    assert (log.framework, log.steps[0].generation_seconds) == ("verl", 60)
    assert "no record has the key none, which --map names" in log.warnings
    file = tmp_path / "map.yaml"
    file.write_text("rlsize: {kind: mapping, version: 1}\nquantities: {step_seconds: a_secs * 2}\n", encoding="utf-8")
    assert read(tmp_path, text, said=said_figures([str(file)])).steps[0].step_seconds == 61
    with pytest.raises(InputError) as raised:
        said_figures(["stepseconds=a", "step_seconds=", "samples=n * 0", str(tmp_path / "none.yaml")])
    assert [fault.what.partition(" ")[0] for fault in raised.value.faults] == ["'stepseconds'", "''", "'n", "no"]


def test_what_is_not_understood_is_listed(tmp_path: Path) -> None:
    """Keys that look like times: beside others, and where there is nothing else."""
    log = read(tmp_path, "".join(f"step={n} step_secs=60 phase_a_secs=12\n" for n in (1, 2)))
    assert log.unread == ("phase_a_secs",)
    with pytest.raises(InputError, match="--map 'step_seconds=phase_a_secs'"):
        read(tmp_path, "phase_a_secs=12 x=2\n")


@pytest.mark.parametrize(
    ("text", "field", "told"),
    [
        ("step={n} step_secs=60 mfu=1.7\n", "mfu", "mfu is more than 1"),
        ("step={n} step_secs=60 response_length/mean: 2e7\n", "mean_response_tokens", "is more than 1e+07"),
        ("step={n} step_secs=60 gen_secs=30,5\n", "generation_seconds", "may be the decimal one"),
        ("step={n} step_secs=60 gen_secs=1e20\n", "generation_seconds", ""),
        ("step={n} step_secs=60 gen_secs=nan\n", "generation_seconds", ""),
    ],
)
def test_what_no_step_can_have_is_left_out_and_told(tmp_path: Path, text: str, field: str, told: str) -> None:
    """The figure is missing, its step is not, and the log says why."""
    log = read(tmp_path, "".join(text.format(n=n) for n in (1, 2)))
    assert (log.steps[0].step_seconds, getattr(log.steps[0], field)) == (60.0, None)
    assert any(told in skipped.why for skipped in log.skipped) if told else log.unread == ("gen_secs",)


def test_a_time_that_is_none_spoils_only_itself(tmp_path: Path) -> None:
    """A framework's own key that is no number in every record: the others of its record count."""
    for wrong in ("nan", "1e20", "-3"):
        text = "".join(f"step:{n} - actor/lr:0.0 - timing_s/gen:{wrong} - timing_s/step:60.0\n" for n in (1, 2))
        log = read(tmp_path, text)
        assert (log.framework, log.steps[0].step_seconds, log.steps[0].generation_seconds) == ("verl", 60.0, None)
        assert any("timing_s/gen is" in skipped.why for skipped in log.skipped)


@pytest.mark.parametrize(("end", "step"), [("60.0s", 60.0), ("60.0\n", 60.0), ("60.0", None), ("60", None)])
def test_a_line_that_was_pasted_without_its_break_counts_as_far_as_it_is_sure(
    tmp_path: Path, end: str, step: float | None
) -> None:
    """A unit or a line break follows the last number; else it may go on, which is told."""
    log = read(tmp_path, f"step:1 - timing_s/gen:30.0 - timing_s/step:{end}")
    assert (log.steps[0].generation_seconds, log.steps[0].step_seconds) == (30.0, step)
    assert any("may go on" in skipped.why for skipped in log.skipped) == (step is None)


def test_decimal_commas_are_told_where_nothing_else_is_read(tmp_path: Path) -> None:
    """A line with many of them is no table."""
    with pytest.raises(InputError, match="may be the decimal one"):
        read(tmp_path, "".join(f"step: {n} loss: 8,01 memory: 47,12GiB(33,81%) mfu: 51,80%\n" for n in (1, 2, 3)))


def test_commas_between_thousands_are_read_where_they_can_be_nothing_else(tmp_path: Path) -> None:
    """A point follows, or another comma: in times too."""
    line = "step: {n} - timing_s/gen: 1,060.5 - timing_s/step: 1,095.25 - perf/total_num_tokens: 2,400,000\n"
    step = read(tmp_path, "".join(line.format(n=n) for n in (1, 2))).steps[0]
    assert (step.generation_seconds, step.step_seconds, step.total_tokens) == (1060.5, 1095.25, 2_400_000.0)


def test_a_phase_that_outlasts_its_step_is_told(tmp_path: Path) -> None:
    """Of a framework's own keys too, where phases follow each other."""
    log = read(tmp_path, "".join(f"step:{n} - timing_s/gen:90.0 - timing_s/step:60.0\n" for n in (1, 2)))
    assert any("longer than the step" in text and "timing_s/gen" in text for text in run_summary(log).warnings)


def test_times_that_add_up_to_more_than_the_step_run_beside_each_other(tmp_path: Path) -> None:
    """Such a loop is asynchronous; what would outlast the step alone is no part of it."""
    both = "step={n} gen_secs=50 train_secs=55 step_secs=60\n"
    assert read(tmp_path, "".join(both.format(n=n) for n in (1, 2))).mode == "async"
    total = "step={n} gen_secs=5000 train_secs=55 step_secs=60\n"
    assert read(tmp_path, "".join(total.format(n=n) for n in (1, 2))).steps[0].generation_seconds is None


def test_a_nemo_rl_block_with_nan_is_read_without_it(tmp_path: Path) -> None:
    """A length that is no number spoils neither the times nor the answer."""
    text = (
        "===== Step 2/50 =====\n📊 Training Results:\n  • Mean Generation Length: nan\n⏱️  Timing:\n"
        "  • Total step time: 43.31s\n  • generation: 33.22s (76.7%)\n🔍 Performance Metrics:\n"
        "    - E2E (Samples/sec): 11.82\n    - Generation Worker Group (Tokens/sec): 13396.53\ndone\n"
    )
    log = read(tmp_path, text)
    assert (log.steps[0].step_seconds, log.steps[0].response_tokens) == (43.31, None)
    assert any("not finite" in skipped.why for skipped in log.skipped)
