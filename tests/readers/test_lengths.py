"""Files of response lengths: what is read, in which forms, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlsize.errors import InputError
from rlsize.readers.lengths import read_lengths


def file(folder: Path, content: str | bytes) -> Path:
    """A file with that in it."""
    path = folder / "lengths.txt"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    "content",
    [
        "300\n100\n200\n200\n",
        "tokens\n300\n100\n200\n200",
        "# of last week\n\n100,1\n200,2\n300,1\n",
        "length;count\n100;1\n200;2\n300;1\n",
        "[300, 100, 200, 200]",
        "[[100, 1], [200, 2], [300, 1]]",
        '["300", [100, 1], 200, 200.0]',
    ],
)
def test_all_forms_say_the_same(tmp_path: Path, content: str) -> None:
    """One a line, with counts, with a heading, with comments, and JSON of either; sorted."""
    assert read_lengths(file(tmp_path, content)) == (100.0, 200.0, 200.0, 300.0)


def test_a_long_list_is_kept_by_its_quantiles(tmp_path: Path) -> None:
    """Ten million samples become 10,000 that have the same mean and the same ends, but for half a thousandth."""
    found = read_lengths(file(tmp_path, "100,7000000\n1000,3000000\n"))
    assert len(found) == 10_000
    assert sum(found) / len(found) == pytest.approx(370, rel=5e-4)
    assert (found[0], found[-1]) == (100, 1000)


def test_counts_may_be_shares(tmp_path: Path) -> None:
    """At least one length is left of them, the median."""
    assert read_lengths(file(tmp_path, "100,0.1\n200,0.5\n300,0.1\n")) == (200.0,)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "holds no lengths"),
        ("tokens\n", "holds no lengths"),
        ("# nothing\n\n", "holds no lengths"),
        ("100,0\n", "holds no lengths"),
        ("[]", "holds no lengths"),
        (b"\x00\xff\xfe", "not UTF-8"),
        ("1e30\n5\n", "line 1: '1e30' is no length"),
        ("nan\n5\n", "line 1"),
        ("-5\n", "line 1"),
        ("0.5\n", "line 1"),
        ("1,2,3\n", "line 1"),
        ("100,-1\n", "line 1"),
        ("100\ntwo hundred\n300\n", "line 2: 'two hundred' is no length"),
        ("tokens\nlengths\n100\n", "line 2"),
        ("[100, 0]", "entry 1: 0 is no length"),
        ("[100", "is no JSON"),
        ("[NaN]", "entry 0"),
        ("[true]", "entry 0"),
        ("[null]", "entry 0"),
        ("[[]]", "entry 0"),
        ("[[1, 2, 3]]", "entry 0"),
        ('[{"tokens": 5}]', "entry 0"),
        (f"[1{'0' * 400}]", "entry 0"),
        (f"[1{'0' * 5000}]", "is no JSON"),
        ("[" * 100_000, "is no JSON"),
    ],
    ids=lambda value: repr(value[:20]),
)
def test_what_is_no_length_is_refused(tmp_path: Path, content: str | bytes, says: str) -> None:
    """With its place."""
    with pytest.raises(InputError) as caught:
        read_lengths(file(tmp_path, content))
    assert says in str(caught.value)
    assert "lengths.txt" in str(caught.value)


def test_the_first_faults_are_told_together(tmp_path: Path) -> None:
    """Five of them; a whole file of faults is no list to read."""
    with pytest.raises(InputError) as caught:
        read_lengths(file(tmp_path, "100\n" + "x\n" * 50))
    assert [fault.where.rpartition(" ")[2] for fault in caught.value.faults] == ["2", "3", "4", "5", "6"]


def test_a_folder_or_nothing_is_no_file(tmp_path: Path) -> None:
    """Said in a word."""
    for path in (tmp_path, tmp_path / "missing.txt"):
        with pytest.raises(InputError):
            read_lengths(path)


lengths = st.lists(st.integers(1, 100_000), min_size=1, max_size=300)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lengths)
def test_what_is_written_is_read(tmp_path: Path, values: list[int]) -> None:
    """As text and as JSON, whatever their order."""
    expected = tuple(float(value) for value in sorted(values))
    assert read_lengths(file(tmp_path, "\n".join(map(str, values)))) == expected
    assert read_lengths(file(tmp_path, json.dumps(values))) == expected


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(st.text(max_size=40), st.binary(max_size=40)))
def test_any_file_is_read_or_refused(tmp_path: Path, content: str | bytes) -> None:
    """Lengths of 1 token and more, or a fault that names the file."""
    try:
        found = read_lengths(
            file(tmp_path, content if isinstance(content, bytes) else content.encode("utf-8", "replace"))
        )
    except InputError as error:
        assert "lengths.txt" in str(error)
    else:
        assert found
        assert min(found) >= 1
