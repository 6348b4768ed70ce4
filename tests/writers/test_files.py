"""Files are written whole or not at all, and never over another unless told to."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from rlsize.errors import InputError
from rlsize.writers.files import check_target, make_folder, write_whole


def test_text_and_bytes_are_written(tmp_path: Path) -> None:
    """Text goes out as UTF-8, bytes as they are, and nothing else is left in the folder."""
    write_whole(tmp_path / "a.txt", "±\n")
    write_whole(tmp_path / "b.bin", b"\x00\xff")
    assert (tmp_path / "a.txt").read_bytes() == "±\n".encode()
    assert (tmp_path / "b.bin").read_bytes() == b"\x00\xff"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "b.bin"]


def test_a_file_is_not_replaced_without_force(tmp_path: Path) -> None:
    """A file that exists stays as it was, unless force says otherwise."""
    file = tmp_path / "a.txt"
    write_whole(file, "first")
    with pytest.raises(InputError, match="exists already") as caught:
        write_whole(file, "second")
    assert caught.value.exit_code == 2
    assert file.read_text() == "first"
    write_whole(file, "second", force=True)
    assert file.read_text() == "second"


def test_a_replaced_file_keeps_its_permissions(tmp_path: Path) -> None:
    """Replacing keeps the mode of the old file; a new one takes the user's."""
    file = tmp_path / "a.txt"
    file.write_text("first")
    file.chmod(0o600)
    write_whole(file, "second", force=True)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_link_stands_for_its_goal(tmp_path: Path) -> None:
    """Writing through a link replaces what it points at, not the link."""
    goal, link = tmp_path / "goal", tmp_path / "link"
    goal.write_text("first")
    link.symlink_to(goal)
    write_whole(link, "second", force=True)
    assert link.is_symlink()
    assert goal.read_text() == "second"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "is a directory"),
        ("missing/a", "does not exist"),
        ("a\0b", "cannot be written"),
        ("x" * 300, "cannot be written"),
    ],
)
def test_impossible_places_are_refused(tmp_path: Path, name: str, message: str) -> None:
    """A folder, a missing parent, and names that no disk takes are told before anything is written."""
    with pytest.raises(InputError, match=message):
        write_whole(f"{tmp_path}/{name}", "text")


def test_devices_are_refused_even_with_force() -> None:
    """A device is never replaced by a file."""
    with pytest.raises(InputError, match="is a device or a pipe"):
        check_target(os.devnull, force=True)


def test_folders_are_made_with_their_parents(tmp_path: Path) -> None:
    """A missing folder is made, one that exists is left alone, and a file in its place is a fault."""
    make_folder(tmp_path / "a" / "b")
    make_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="cannot be written: File exists"):
        make_folder(tmp_path / "file")


def test_a_failure_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the last step fails, the old content stands and no rest is left behind."""
    file = tmp_path / "a.txt"
    file.write_text("first")

    def fail(*_: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(InputError, match="No space left"):
        write_whole(file, "second", force=True)
    assert file.read_text() == "first"
    assert list(tmp_path.iterdir()) == [file]
