"""Files written whole or not at all, and never over another without being told to."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from rlsize.errors import Fault, InputError


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
    target = check_target(path, force)
    data = content.encode("utf-8") if isinstance(content, str) else content
    beside = target.with_name(f".{target.name[:40]}.{secrets.token_hex(6)}.tmp")
    try:
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o666
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(target)
    except (OSError, ValueError) as error:
        raise _unwritable(path, error) from None
    finally:
        with suppress(OSError):
            beside.unlink()


def make_folder(path: str | Path) -> None:
    """
    A folder and its parents, where they are missing.

    Raises:
        InputError: It cannot be made, or a file stands there.
    """
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise _unwritable(path, error) from None


def _unwritable(path: str | Path, error: Exception) -> InputError:
    reason = getattr(error, "strerror", None) or str(error)
    return InputError(Fault(f"cannot be written: {reason}", str(path), "check the path, its permissions and the disk"))
