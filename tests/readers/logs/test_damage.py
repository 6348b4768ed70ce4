"""Logs as they lie about: cut, coloured, prefixed, with foreign line ends; no figure may come out other than it is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.effort import tries

from rlsize.errors import InputError
from rlsize.readers.logs.reading import read_log

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlsize.facts.run_log import RunLog

DATA = Path(__file__).parent / "data"
FILES = sorted(path for path in DATA.rglob("*") if path.is_file() and path.suffix != ".yaml")
LINES = [path for path in FILES if path.suffix in {".log", ".jsonl"}]
BAR = b" 12%|#2        | 12/100 [01:00<07:20,  5.0s/it]\r"
RECORD = re.compile(
    rb"step:\d+ - |Global step \d+: \{|perf \d+: \{|SUCCESS Step \d+ \| +|^\{\"|^\{'loss'", re.MULTILINE
)
UNWHOLE = ("the file ends before the record does", "the last step may not be written out yet")


def coloured(content: bytes) -> bytes:
    """Every line as Ray shows it on a terminal."""
    return re.sub(rb"(?m)^(?=.)", b"\x1b[36m(Runner pid=7, ip=10.0.0.3)\x1b[0m ", content)


def windows(content: bytes) -> bytes:
    """Line ends and byte order mark of another system."""
    return b"\xef\xbb\xbf" + content.replace(b"\n", b"\r\n")


def barred(content: bytes) -> bytes:
    """A progress bar before every line."""
    return re.sub(rb"(?m)^(?=.)", BAR.replace(b"\\", b""), content)


def noisy(content: bytes) -> bytes:
    """Other programs' lines between all lines."""
    return content.replace(b"\n", b"\n(EngineCore pid=9) INFO step: done, {'a': 1} {\"b\": perf\xff\n")


def wrapped(content: bytes) -> bytes:
    """Bare numbers as numpy prints them."""
    return re.sub(rb"(?<=[ :])(\d+\.\d+)(?=[,}\s])", rb"np.float64(\1)", content)


def quoted(content: bytes) -> bytes:
    """Numbers as text."""
    return re.sub(rb"(?<=: )(\d+\.\d+)(?=[,}])", rb"'\1'", content)


def read(folder: Path, content: bytes, name: str = "log") -> RunLog | None:
    """What a content gives; None where it is refused."""
    file = folder / name
    file.write_bytes(content)
    try:
        return read_log(str(file))
    except InputError as error:
        assert str(file) in str(error)
        return None


def agrees(cut: RunLog | None, whole: RunLog) -> bool:
    """
    Whether a part of a log says nothing other than the whole.

    Where no record is whole, the lines of the first one count for what they say, and sums for no more than they can.
    """
    marks = ("put together from lines", "only one side of the loop")
    said = cut is not None and any(mark in warning for warning in cut.warnings for mark in marks)
    if cut is None or not said:
        return cut is None or cut.steps == whole.steps[: len(cut.steps)]
    plain = [name for name, keys in cut.keys.items() if " " not in keys and name in whole.keys]
    return all(
        getattr(one, name) in {None, getattr(other, name)}
        for one, other in zip(cut.steps, whole.steps, strict=False)
        for name in plain
        if whole.keys[name] == cut.keys[name]
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where contents are written."""
    return tmp_path_factory.mktemp("logs")


@pytest.mark.parametrize("file", LINES, ids=lambda file: file.name)
@pytest.mark.parametrize("change", [coloured, windows, barred, noisy])
def test_dress_changes_no_figure(file: Path, change: Callable[[bytes], bytes], folder: Path) -> None:
    """Colours, prefixes, bars, line ends and other text leave every step as it is."""
    content = file.read_bytes()
    plain, dressed = read(folder, content), read(folder, change(content))
    assert plain is not None
    assert dressed is not None
    assert dressed.steps == plain.steps
    assert dressed.framework == plain.framework


@pytest.mark.parametrize("change", [wrapped, quoted])
@pytest.mark.parametrize("name", ["openrlhf.log", "slime.log", "trl_stdout.log", "verl_fully_async.log"])
def test_a_number_in_a_wrapper_is_that_number(name: str, change: Callable[[bytes], bytes], folder: Path) -> None:
    """np.float64(1.0) and '1.0' count as 1.0."""
    content = (DATA / name).read_bytes()
    changed = change(content)
    assert changed != content or name.startswith("verl")
    plain, dressed = read(folder, content), read(folder, changed)
    assert plain is not None
    assert dressed is not None
    assert dressed.steps == plain.steps


@settings(max_examples=tries(250), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(FILES), st.floats(0, 1), st.sampled_from([bytes, coloured, windows, barred]))
@example(DATA / "slime.log", 0.75, bytes)
def test_a_cut_log_gives_the_steps_before_the_cut(
    folder: Path, file: Path, share: float, change: Callable[[bytes], bytes]
) -> None:
    """Whatever the place, a cut log is refused or gives steps of the whole log, unchanged and in order."""
    content = change(file.read_bytes()) if file in LINES else file.read_bytes()
    whole = read(folder, content)
    assert whole is not None
    assert agrees(read(folder, content[: int(share * len(content))]), whole)


@pytest.mark.parametrize("file", LINES, ids=lambda file: file.name)
def test_a_log_may_end_at_any_line(file: Path, folder: Path) -> None:
    """Before and behind every line break, where heads stand without their records."""
    content = file.read_bytes()
    whole = read(folder, content)
    assert whole is not None
    for match in re.finditer(b"\n", content):
        for end in match.span():
            assert agrees(read(folder, content[:end]), whole), end


@settings(max_examples=tries(120), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(LINES), st.data())
def test_a_cut_record_is_counted(folder: Path, file: Path, data: st.DataObject) -> None:
    """A cut inside a record is in the answer, or the log is refused."""
    content = file.read_bytes()
    heads = [match.end() for match in RECORD.finditer(content) if b"\n" in content[match.end() :]]
    if not heads:
        return
    start = data.draw(st.sampled_from(heads))
    end = content.index(b"\n", start)
    cut = read(folder, content[: data.draw(st.integers(start, end - 1))])
    if cut is not None:
        pieced = any("put together from lines" in warning for warning in cut.warnings)
        assert pieced or [skipped for skipped in cut.skipped if skipped.why in UNWHOLE]


@settings(max_examples=tries(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(FILES), st.floats(0, 1), st.binary(min_size=1, max_size=40))
def test_damage_is_never_a_traceback(folder: Path, file: Path, share: float, damage: bytes) -> None:
    """Foreign bytes anywhere: the log is refused, or read without them."""
    content = file.read_bytes()
    at = int(share * len(content))
    read(folder, content[:at] + damage + content[at + len(damage) :])


@settings(max_examples=tries(40), deadline=None)
@given(st.sampled_from(FILES), st.sampled_from([1, 3, 17, 64, 1000]))
def test_blocks_do_not_matter(file: Path, size: int) -> None:
    """However a stream is chopped into blocks, its rows are the same."""
    from rlsize.readers.logs.figures import Skips
    from rlsize.readers.logs.recognising import Asked, kind_of
    from rlsize.readers.logs.source import Blocks

    content = file.read_bytes()
    kind = kind_of(content, Asked(loose=file.name == "other.log"))
    assert kind is not None

    def rows(blocks: list[bytes]) -> list[tuple[object, ...]]:
        found = kind.form.rows(Blocks(blocks), Skips())
        return [(row.step, sorted(row.values), row.place) for row in found]

    assert rows([content[at : at + size] for at in range(0, len(content), size)]) == rows([content])
