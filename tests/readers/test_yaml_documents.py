"""YAML as data: safe, bounded, with line numbers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.errors import InputError
from rlsize.readers.yaml_documents import LARGEST_FILE, parse_document, read_document


def test_lines_are_kept_for_every_key() -> None:
    """A message can name the line on which a key stands."""
    document = parse_document("a: 1\nb:\n  c: [x, y]\n", "s.yaml")
    assert document.where(("b", "c")) == "s.yaml:3: b.c"
    assert document.where(("b", "missing")) == "s.yaml:2: b.missing"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e9", 1e9),
        ("no", "no"),
        ("on", "on"),
        ("1:30", "1:30"),
        ("true", True),
        ("~", None),
        ("0o17", "0o17"),
        ("'12'", "12"),
        ("12", 12),
        ("1_000", 1000),
        ("2026-11-20", "2026-11-20"),
        ("80 GB", "80 GB"),
        ("-.5", -0.5),
    ],
)
def test_scalars_mean_what_they_look_like(text: str, value: object) -> None:
    """None of the surprises of YAML 1.1: no booleans from `no`, no sexagesimal times, no dates."""
    assert parse_document(f"a: {text}", "s.yaml").data == {"a": value}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: 1\na: 2\nb: 1\nb: 2", "stands twice"),
        ("a: &x 1\nb: *x", "anchors"),
        ("a: !!python/object/apply:os.system ['true']", "tag"),
        ("[" * 60 + "]" * 60, "nested more than 40 levels"),
        ("[" * 100_000, "nested more than 40 levels"),  # more than PyYAML itself takes in some versions
        ("- " * 2000, "nested more than 40 levels"),
        ("a: 1\n---\nb: 2", "more than one document"),
        ("a: b: c", "not valid YAML"),
        ("? [1, 2]\n: 3", "key must be a word"),
        ("a: '\n", "not valid YAML"),
        ("\x01", "not valid YAML"),
    ],
)
def test_what_is_not_plain_data_is_refused(text: str, says: str) -> None:
    """Aliases, tags, depth and duplicate keys are refused with their line."""
    with pytest.raises(InputError, match=says):
        parse_document(text, "s.yaml")


def test_both_duplicate_keys_are_told_at_once() -> None:
    """Every duplicate key of a file is a fault of its own."""
    with pytest.raises(InputError) as caught:
        parse_document("a: 1\na: 2\nb: 1\nb: 2", "s.yaml")
    assert [fault.where for fault in caught.value.faults] == ["s.yaml:2", "s.yaml:4"]


def test_an_alias_bomb_costs_nothing() -> None:
    """Billion laughs: refused at the first anchor, before anything expands."""
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    lines += [f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 9)}]" for n in range(9)]
    with pytest.raises(InputError, match="anchors"):
        parse_document("\n".join(lines), "bomb.yaml")


def test_a_directory_a_missing_file_and_a_binary_are_named(tmp_path: Path) -> None:
    """What cannot be a document says what it is instead."""
    binary = tmp_path / "b.yaml"
    binary.write_bytes(bytes(range(256)))
    null = tmp_path / "n.yaml"
    null.write_bytes(b"a: \0")
    for path, says in (
        (tmp_path, "directory"),
        (tmp_path / "no.yaml", "no such file"),
        (binary, "not UTF-8"),
        (null, "NUL"),
    ):
        with pytest.raises(InputError, match=says):
            read_document(path)


def test_a_huge_file_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    """Reading is bounded."""
    huge = tmp_path / "huge.yaml"
    with huge.open("wb") as stream:
        stream.truncate(LARGEST_FILE + 10)
    with pytest.raises(InputError, match="larger than"):
        read_document(huge)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes are made on POSIX only")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """A named pipe would block for ever; it is refused."""
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    with pytest.raises(InputError, match="not a regular file"):
        read_document(pipe)


@given(st.text(max_size=200))
def test_junk_is_a_document_or_a_fault(text: str) -> None:
    """No text makes the reader fail in another way."""
    try:
        parse_document(text, "junk.yaml")
    except InputError as error:
        assert error.faults
