"""Files written whole or not at all, and never over another without being told to."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rlsize.errors import Fault, InputError

if TYPE_CHECKING:
    from collections.abc import Iterator


def check_target(path: str | Path, force: bool) -> Path:
    """
    The file to write, checked before any work is done for it.

    Args:
        path: Where to write; a link stands for what it points at.
        force: Whether a file that exists may be replaced.

    Raises:
        InputError: It cannot be written there, or exists and may not be replaced.
    """
    try:
        target = Path(path).resolve()
        if target.is_dir():
            raise InputError(Fault("is a directory, not a file", str(path), "name a file inside it"))
        if target.exists() and not target.is_file():
            raise InputError(Fault("is a device or a pipe, not a file", str(path), "name a file on disk"))
        if target.exists() and not force:
            raise InputError(Fault("exists already", str(path), "--force replaces it"))
        if not target.parent.is_dir():
            raise InputError(Fault(f"the folder {target.parent} does not exist", str(path), "make it first"))
    except (OSError, ValueError, RuntimeError) as error:  # too long a name, a NUL in it, a loop of links
        raise _unwritable(path, error) from None
    return target


def write_whole(path: str | Path, content: str | bytes, force: bool = False) -> None:
    """
    Write a file whole, or leave what was there as it was.

    Args:
        path: Where.
        content: Text (written as UTF-8) or bytes.
        force: Whether a file that exists may be replaced.

    Raises:
        InputError: As `check_target`, or the disk refused.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    file = FileBeside(path, force)
    try:
        file.write(data)
        file.put_in_place()
    finally:
        file.give_up()


class FileBeside:
    """
    A new file beside the one that it is to replace, until it is whole.

    Args:
        path: Where it belongs in the end.
        force: Whether a file that exists may be replaced.

    Raises:
        InputError: As `check_target`, or the disk refused; so do all methods but `give_up`.
    """

    def __init__(self, path: str | Path, force: bool = False) -> None:
        self._path, self._target = path, check_target(path, force)
        self._beside = self._target.with_name(f".{self._target.name[:40]}.{os.urandom(6).hex()}.tmp")
        with _told(path):
            mode = self._target.stat().st_mode & 0o777 if self._target.exists() else 0o666
            self._stream = os.fdopen(os.open(self._beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb")

    def write(self, data: bytes) -> None:
        """Write on."""
        with _told(self._path):
            self._stream.write(data)

    def put_in_place(self, size: int | None = None) -> None:
        """
        Close it, and have it replace what is there.

        Args:
            size: Bytes after which it is cut; None for all of it.
        """
        with _told(self._path):
            self._stream.flush()
            if size is not None:
                self._stream.truncate(size)
            os.fsync(self._stream.fileno())
            self._stream.close()
            self._beside.replace(self._target)

    def give_up(self) -> None:
        """Close and remove it; without effect once it is in its place."""
        with suppress(OSError, ValueError):
            self._stream.close()
        with suppress(OSError):
            self._beside.unlink()


def make_folder(path: str | Path) -> None:
    """
    A folder and its parents, where they are missing.

    Raises:
        InputError: It cannot be made, or a file stands there.
    """
    with _told(path):
        Path(path).mkdir(parents=True, exist_ok=True)


@contextmanager
def _told(path: str | Path) -> Iterator[None]:
    """Say it as a fault where the disk refuses."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise _unwritable(path, error) from None


def _unwritable(path: str | Path, error: Exception) -> InputError:
    reason = getattr(error, "strerror", None) or str(error)
    return InputError(Fault(f"cannot be written: {reason}", str(path), "check the path, its permissions and the disk"))
