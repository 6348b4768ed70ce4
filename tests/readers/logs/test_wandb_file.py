"""W&B's own files: pieces put together, damage counted, configuration and summary read."""

from __future__ import annotations

import json
import random
import zlib
from pathlib import Path

import pytest
from tests.effort import tries

from rlsize.errors import InputError
from rlsize.loop.resolve import resolve
from rlsize.readers.logs.forms.wandb_file import MAGIC, config_text
from rlsize.readers.logs.reading import read_log
from rlsize.shell.inputs import Inputs

SAMPLE = Path(__file__).parent / "data" / "run-sample.wandb"
BLOCK = 32 * 2**10
HISTORY, SUMMARY = 2, 3


def size(count: int) -> bytes:
    """A number of variable length."""
    return bytes((count,)) if count < 128 else bytes((count % 128 + 128,)) + size(count // 128)


def field(number: int, content: bytes) -> bytes:
    """A field of bytes."""
    return size(number * 8 + 2) + size(len(content)) + content


def record(number: int, values: dict[str, object]) -> bytes:
    """A record of values: the second part of a path is nested."""
    items = b""
    for key, value in values.items():
        names = b"".join(field(2, part.encode()) for part in key.split("."))
        items += field(1, names + field(16, json.dumps(value).encode()))
    return field(number, items)


def history(step: int, **more: object) -> bytes:
    """What a run logs at a step."""
    timed = {"timing_s/step": 50.0, "timing_s/gen": 30.0, "timing_s/update_actor": 15.0, "response_length/mean": 9.0}
    return record(HISTORY, {"_step": step, **timed, **more})


def file_of(*records: bytes) -> bytes:
    """The records in blocks, as LevelDB lays them out."""
    found = MAGIC
    for data in records:
        rest, first = data, True
        while rest or first:
            left = BLOCK - len(found) % BLOCK
            if left < 7:
                found += bytes(left)
                continue
            piece, rest = rest[: left - 7], rest[left - 7 :]
            kind = bytes((({(True, True): 1, (True, False): 2, (False, False): 3, (False, True): 4})[first, not rest],))
            found += zlib.crc32(kind + piece).to_bytes(4, "little") + len(piece).to_bytes(2, "little") + kind + piece
            first = False
    return found


def read(folder: Path, content: bytes) -> list[int]:
    """The numbers of the steps of a file."""
    path = folder / "run-x.wandb"
    path.write_bytes(content)
    return [step.step for step in read_log(str(path)).steps]


def test_records_larger_than_a_block_are_put_together(tmp_path: Path) -> None:
    """Texts of 20 to 100 kB beside the figures; one beyond a mebibyte is passed over."""
    long = [history(step, text="x" * (20_000 * step)) for step in range(1, 6)]
    assert read(tmp_path, file_of(*long)) == [1, 2, 3, 4, 5]
    assert read(tmp_path, file_of(history(1), history(2, text="x" * 2**21), history(3))) == [1, 3]


@pytest.mark.parametrize("more", range(-9, 2))
def test_a_block_may_end_anywhere(tmp_path: Path, more: int) -> None:
    """A record that ends close to its block, whose last bytes hold no header."""
    base = len(file_of(history(1, text="")))
    assert read(tmp_path, file_of(history(1, text="x" * (BLOCK - base + more - 4)), history(2))) == [1, 2]


def test_damage_costs_its_block_and_a_cut_its_record(tmp_path: Path) -> None:
    """Both are counted; what was laid out and not written is no damage."""
    path = tmp_path / "run-x.wandb"
    whole = file_of(*(history(step, text="x" * 15_000) for step in range(1, 9)))
    path.write_bytes(whole[:100] + b"?" + whole[101:])
    damaged = read_log(str(path))
    assert [step.step for step in damaged.steps][-1] == 8
    assert [(one.why, one.count) for one in damaged.skipped] == [("damaged or mixed with other text", 1)]
    path.write_bytes(whole[:-9])
    cut = read_log(str(path))
    assert [step.step for step in cut.steps] == [1, 2, 3, 4, 5, 6, 7]
    assert "the file ends before the record does" in [one.why for one in cut.skipped]
    path.write_bytes(whole + bytes(3 * BLOCK))
    assert not read_log(str(path)).skipped


def test_a_run_without_history_has_its_summary(tmp_path: Path) -> None:
    """The last figures of a run are one step."""
    values: dict[str, object] = {"timing_s/step": 50.0, "timing_s/gen": 30.0, "actor/loss": 1.0, "val.acc": 0.5}
    assert len(read(tmp_path, file_of(record(SUMMARY, values)))) == 1
    assert read(tmp_path, file_of(record(SUMMARY, values), history(1), history(2))) == [1, 2]


def test_the_configuration_of_a_run_is_a_launch() -> None:
    """It says the loop without a script; what is no such file has none."""
    said = Inputs(str(SAMPLE), changes=("cluster.gpu=h100-sxm", "workload.response_tokens=900"))
    loop = resolve(said)
    assert loop.stages is not None
    assert loop.stages.train.model.name == "qwen2.5-3b"
    assert loop.problem.samples.number == 512
    assert config_text(SAMPLE.parent / "verl_console.log") is None
    assert config_text(SAMPLE.parent) is None


def test_a_folder_of_a_run_is_read_by_its_file(tmp_path: Path) -> None:
    """As W&B leaves it, the console beside it."""
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "output.log").write_text("hello\n", encoding="utf-8")
    (tmp_path / "run-4et98o3a.wandb").write_bytes(SAMPLE.read_bytes())
    assert [step.step for step in read_log(str(tmp_path)).steps] == [1, 2, 3]


@pytest.mark.parametrize("seed", range(tries(200)))
def test_no_damage_is_more_than_a_fault(tmp_path: Path, seed: int) -> None:
    """Bytes changed, missing, doubled: whole steps or a fault, never another figure, as long as its mark is there."""
    chance, content = random.Random(seed), bytearray(SAMPLE.read_bytes())
    for _ in range(chance.randrange(1, 8)):
        start = chance.randrange(len(content))
        end = start + chance.randrange(1, 60)
        content[start:end] = chance.choice([b"", bytes(content[start:end]) * 2, chance.randbytes(end - start)])
    path = tmp_path / "run-x.wandb"
    path.write_bytes(content)
    try:
        log = read_log(str(path))
    except InputError:
        return
    if content.startswith(MAGIC):
        assert {step.step_seconds for step in log.steps} <= {101.0, 102.0, 103.0}
