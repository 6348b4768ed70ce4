"""Bytes of files and stdin, compressed or not: whole, bounded, or refused."""

from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import zstandard

from rlsize.errors import InputError
from rlsize.readers.byte_sources import opened_bytes
from rlsize.readers.logs.figures import Skips
from rlsize.readers.logs.source import opened

CONTENT = bytes(range(256)) * 20
CHECKED = zstandard.ZstdCompressor(write_checksum=True)  # as the program `zstd` does it


def written(folder: Path, content: bytes) -> str:
    """A file with this content."""
    path = folder / "file"
    path.write_bytes(content)
    return str(path)


@pytest.mark.parametrize("packed", [CONTENT, gzip.compress(CONTENT, mtime=0), zstandard.compress(CONTENT)])
def test_a_file_is_uncompressed_by_what_it_holds(tmp_path: Path, packed: bytes) -> None:
    """Its name does not matter, nor whether it is stdin."""
    assert opened_bytes(written(tmp_path, packed), 10_000) == CONTENT


def test_without_the_library_of_zstd_its_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For small files and for logs; gzip needs nothing."""
    path = written(tmp_path, zstandard.compress(CONTENT))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(InputError, match=r"rlsize\[zstd\]"):
        opened_bytes(path, 10_000)
    with pytest.raises(InputError, match=r"rlsize\[zstd\]"), opened(path, Skips()) as source:
        assert not source
    assert opened_bytes(written(tmp_path, gzip.compress(CONTENT)), 10_000) == CONTENT


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_members_one_after_the_other_are_one_content(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    """As `cat a.gz b.gz` makes them."""
    packed = b"".join(pack(part) for part in (CONTENT, b"", b"end"))
    assert opened_bytes(written(tmp_path, packed), 10_000) == CONTENT + b"end"


@pytest.mark.parametrize("packed", [gzip.compress(CONTENT, mtime=0), zstandard.compress(CONTENT)])
def test_compressed_content_cut_at_any_byte_is_refused(tmp_path: Path, packed: bytes) -> None:
    """Whether within its header, its data or its check sum."""
    for cut in (*range(4, 40), len(packed) // 2, len(packed) - 5, len(packed) - 1):
        with pytest.raises(InputError, match="was cut"):
            opened_bytes(written(tmp_path, packed[:cut]), 10_000)


@pytest.mark.parametrize("packed", [gzip.compress(CONTENT, mtime=0), CHECKED.compress(CONTENT)])
def test_damaged_content_is_refused(tmp_path: Path, packed: bytes) -> None:
    """Something in the middle, and something behind it."""
    middle = len(packed) // 2
    for broken in (packed[:middle] + b"\xff" * 20 + packed[middle + 20 :], packed + b"something else"):
        with pytest.raises(InputError, match=r"damaged|behind|was cut"):
            opened_bytes(written(tmp_path, broken), 10_000)


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress, bytes])
def test_what_is_too_large_is_refused_without_unpacking_it(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    """64 MiB of zeros are a few kilobytes when they are packed."""
    packed = pack(bytes(2**26))
    with pytest.raises(InputError, match="is larger than 1 MiB"):
        opened_bytes(written(tmp_path, packed), 2**20)


def test_stdin_is_a_dash(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be compressed too, and is bounded too."""
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(gzip.compress(CONTENT, mtime=0))))
    assert opened_bytes("-", 10_000) == CONTENT
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(bytes(2**20 + 1))))
    with pytest.raises(InputError, match="stdin: is larger than 1 MiB"):
        opened_bytes("-", 2**20)


def test_a_missing_file_is_told() -> None:
    """As other readers tell it."""
    with pytest.raises(InputError, match="no such file"):
        opened_bytes("nowhere", 10)
