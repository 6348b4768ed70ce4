"""Where logs come from, how large they may be, and what is said of what was not used."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path

import pytest
from tests.effort import tries

from rlsize.errors import InputError
from rlsize.readers.logs import reading, source
from rlsize.readers.logs.reading import read_log
from rlsize.readers.logs.recognising import is_log

DATA = Path(__file__).parent / "data"
CONSOLE = DATA / "verl_console.log"
LINE = (
    "step:{step} - perf/total_num_tokens:51200 - perf/time_per_step:64.0 - perf/throughput:100.0 - "
    "response_length/mean:300.0 - prompt_length/mean:100.0 - timing_s/gen:20.0 - timing_s/step:{seconds}\n"
)


def lines(*steps: int, seconds: object = 64.0) -> str:
    """A verl console log of these steps."""
    return "".join(LINE.format(step=step, seconds=seconds) for step in steps)


def written(folder: Path, content: str | bytes, name: str = "run.log") -> str:
    """The path of a file with this content."""
    file = folder / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(file)


def test_packed_logs_and_standard_input_read_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log packed by gzip or zstd, whatever it is called, and one that comes through a pipe."""
    zstandard = pytest.importorskip("zstandard")
    plain = read_log(str(CONSOLE))
    content = CONSOLE.read_bytes()
    packed = (
        gzip.compress(content, mtime=0),
        zstandard.compress(content),
        gzip.compress(content[:2000], mtime=0) + gzip.compress(content[2000:], mtime=0),
    )
    for index, data in enumerate(packed):
        path = written(tmp_path, data, f"packed{index}")
        assert is_log(path)
        assert read_log(path).steps == plain.steps
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        assert read_log("-").steps == plain.steps


def test_a_packed_log_that_ends_early_gives_what_it_has(tmp_path: Path) -> None:
    """What can be unpacked is used, and the rest is counted."""
    data = gzip.compress(CONSOLE.read_bytes() + lines(*range(4, 400)).encode(), mtime=0)
    log = read_log(written(tmp_path, data[: len(data) // 2], "run.log.gz"))
    assert 3 < len(log.steps) < 399
    assert log.steps == read_log(written(tmp_path, gzip.decompress(data))).steps[: len(log.steps)]
    assert any("cannot be unpacked" in skipped.why for skipped in log.skipped)


def test_what_was_not_used_is_counted_with_its_first_place(tmp_path: Path) -> None:
    """Damaged, headless, impossible and cut records: each with reason, count and line."""
    text = (
        "tail of a record - timing_s/gen:20.0 - timing_s/step:64.0\n"
        + lines(1)
        + lines(2).replace("gen:20.0", "gen:2x.0")
        + lines(3, seconds="nan")
        + lines(4, seconds="-1.0")
        + lines(5).rstrip("\n")  # glued to the next
        + lines(6)
        + lines(7).rstrip("\n")
    )
    log = read_log(written(tmp_path, text))
    assert [step.step for step in log.steps] == [1, 6]
    assert {(skipped.why, skipped.count, skipped.first) for skipped in log.skipped} == {
        ("its beginning is missing", 1, "line 1"),
        ("damaged or mixed with other text", 2, "line 3"),
        ("timing_s/step is not finite, or negative", 2, "line 4"),
        ("the file ends before the record does", 1, "line 7"),
    }


def test_an_unimportant_value_spoils_nothing(tmp_path: Path) -> None:
    """NaN, words and lists among keys that no figure needs leave the record as it is."""
    odd = " - a/b:nan - c:None - d:[1, 2] - e:inf - f:'x' - g:tensor(1.0, device='cuda:0')"
    log = read_log(written(tmp_path, lines(1).rstrip("\n") + odd + "\n"))
    assert log.steps == read_log(written(tmp_path, lines(1), "plain")).steps
    assert not log.skipped


def test_a_restart_is_told_and_all_rows_are_kept(tmp_path: Path) -> None:
    """Step numbers that go back stay, with a warning that names the place."""
    log = read_log(written(tmp_path, lines(1, 2, 3, 2, 3)))
    assert [step.step for step in log.steps] == [1, 2, 3, 2, 3]
    assert any("goes back once, first at line 4" in warning for warning in log.warnings)


def test_only_the_newest_steps_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log with more steps than are kept says so."""
    monkeypatch.setattr(reading, "MOST_STEPS", 3)
    log = read_log(written(tmp_path, lines(*range(1, 9))))
    assert [step.step for step in log.steps] == [6, 7, 8]
    assert any(warning.startswith("8 steps in the log: only the newest 3") for warning in log.warnings)


def test_a_line_that_is_too_long_is_skipped_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a line without end nor one with a record inside stops the reading."""
    monkeypatch.setattr(source, "LONGEST", 4096)
    long = "x" * 3_000_000
    text = lines(1) + long + "\n" + lines(2) + long + lines(3) + lines(4)
    log = read_log(written(tmp_path, text))
    assert [step.step for step in log.steps] == [1, 2, 4]
    assert [(skipped.why, skipped.count) for skipped in log.skipped] == [("a line of more than 4 MiB", 2)]


def test_a_record_after_much_text_is_found(tmp_path: Path) -> None:
    """Startup text longer than the head hides no log, and places count from the true start."""
    text = "INFO loading shard\n" * 200_000 + lines(1, 3, 2)
    log = read_log(written(tmp_path, text))
    assert log.framework == "verl"
    assert any("line 200,003" in warning for warning in log.warnings)


def test_progress_is_told_up_to_the_whole(tmp_path: Path) -> None:
    """The share that is read grows to one."""
    told: list[float] = []
    read_log(written(tmp_path, "INFO loading\n" * 300_000 + lines(1)), tell=told.append)
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert len(told) > 2


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"nothing to see\n", "training logs are read of"),
        (b"\x00" * 5_000_000, "training logs are read of"),
        (b"step 1: reward 0.5, response_length 300\n" * 3, "training logs are read of"),
        (gzip.compress(b"text", mtime=0)[:12], "cannot be unpacked"),
        (b'{"log_history": [{"step": 1, "loss": 2, "completions/clipped_ratio": 0.5}]}', "training logs are read of"),
    ],
)
def test_what_cannot_be_used_is_refused_with_what_was_looked_for(tmp_path: Path, content: bytes, says: str) -> None:
    """A fault that names the file and what would be read."""
    path = written(tmp_path, content)
    with pytest.raises(InputError) as raised:
        read_log(path)
    assert says in str(raised.value)
    assert path in str(raised.value)


def test_missing_files_folders_and_formats_are_refused(tmp_path: Path) -> None:
    """Nothing there, a folder without event files, a format that nobody knows, one that is not this log's."""
    for path, format_, says in (
        (str(tmp_path / "none"), None, "cannot be read"),
        (str(tmp_path), None, "without event files"),
        (str(CONSOLE), "verle", "did you mean verl?"),
        (str(CONSOLE), "trl", "looked for a record of trl"),
        (str(CONSOLE), "tensorboard", "looked for a record of tensorboard"),
    ):
        with pytest.raises(InputError, match=says.replace("?", r"\?")):
            read_log(path, format=format_)


def test_an_entry_that_is_nested_without_end_is_no_traceback(tmp_path: Path) -> None:
    """Deep lists and huge numbers are damage like any other."""
    deep = '{"step": 1, "timing_s/gen": ' + "[" * 200_000 + "\n"
    huge = (
        json.dumps({"step": 10**5000, "timing_s/step": 1.0})
        if sys.version_info < (3, 11)
        else '{"step": ' + "9" * 5000 + "}"
    )
    good = (DATA / "verl_file.jsonl").read_text(encoding="utf-8")
    log = read_log(written(tmp_path, deep + huge + "\n" + good))
    assert len(log.steps) == 2
    assert sum(skipped.count for skipped in log.skipped) == 2


@pytest.mark.parametrize("entry", ["verl", "openrlhf", "prime-rl", "nemo-rl", "skyrl", "areal", "torchtitan", "other"])
def test_long_runs_take_no_longer_than_their_length(tmp_path: Path, entry: str) -> None:
    """Runs of blanks, digits, bars and heads, on which a careless pattern would work for hours."""
    heads = {
        "verl": "step:1 - ",
        "openrlhf": "Global step 1: {'a': ",
        "prime-rl": "SUCCESS Step 1 | 1m | Loss ",
        "nemo-rl": "Training Results:\n",
        "skyrl": "Step 1:\n{'a': 1,\n",
        "areal": "Train step 1/2 done\n╒\n│",
        "torchtitan": "step: 1  loss: ",
        "other": "value: 5, '",
    }
    runs = (
        " ",
        "1",
        "=",
        "- a ",
        "a",
        "'a/",
        "np.",
        "│",
        "{'",
        ", ",
        "SUCCESS ",
        "\\",
        "1 - ",
        "step:1 - ",
        "x: 1 ",
        "iter",
        "%|",
    )
    size = tries(60_000)  # four times as long is sixteen times the work where a pattern is careless
    text = "".join(f"{heads[entry]}{run * (size // len(run))}!\n" for run in runs)
    with pytest.raises(InputError):
        read_log(written(tmp_path, text), format=entry)
