"""Where profiles lie: the folder that ships, the user's folders, and one folder in each for every kind."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from rlsize.errors import Fault, InputError
from rlsize.readers.kinds import FOLDERS

if TYPE_CHECKING:
    from collections.abc import Iterable

VARIABLE = "RLSIZE_PROFILES"
SUFFIX = ".yaml"


def shipped_folder() -> Path:
    """The profiles inside an installed package, else those of the checkout."""
    package = Path(__file__).parents[1]
    return package / "profiles" if (package / "profiles").is_dir() else package.parents[1] / "profiles"


def user_folders(given: Iterable[str | Path] = (), environment: str | None = None) -> list[Path]:
    """
    The folders of RLSIZE_PROFILES, then the given ones; later folders win.

    >>> [str(folder) for folder in user_folders(["b"], environment="a")]
    ['a', 'b']
    """
    listed = os.environ.get(VARIABLE, "") if environment is None else environment
    return [Path(text) for text in (*listed.split(os.pathsep), *given) if str(text)]


def profile_files(folder: Path, kind: str) -> list[Path]:
    """
    The files of the profiles of a kind in one folder, sorted; none where it has no folder of that kind.

    Raises:
        InputError: The folder cannot be listed.
    """
    try:
        return sorted(path for path in (folder / FOLDERS[kind]).iterdir() if path.suffix == SUFFIX)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise InputError(unlistable(folder, error)) from None


def unlistable(folder: Path, error: OSError) -> Fault:
    """The fault of a folder whose content cannot be seen."""
    return Fault(f"cannot be listed: {error.strerror or error}", str(folder), "check its permissions")


def is_folder(path: Path) -> bool:
    """Whether there is such a folder and one may look."""
    try:
        return path.is_dir()
    except OSError:  # a parent that may not be entered, a name too long
        return False
