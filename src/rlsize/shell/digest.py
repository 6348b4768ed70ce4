"""A short digest of all facts and equations, so that a CI job can tell when one moved under its numbers."""

from __future__ import annotations

import hashlib
from pathlib import Path


def facts_digest(folders: list[str]) -> str:
    """
    First 16 hex digits of a SHA-256 over every profile and over the files of facts and equations.

    Args:
        folders: The user's own profile folders.
    """
    import rlsize.equations
    import rlsize.facts
    from rlsize.readers.profiles import Catalogue, user_folders

    digest = hashlib.sha256(Catalogue(user_folders(folders)).digest().encode())
    for folder in (*rlsize.equations.__path__, *rlsize.facts.__path__):
        for file in sorted(Path(folder).glob("*.py")):
            digest.update(file.name.encode())
            digest.update(file.read_bytes().replace(b"\r\n", b"\n"))
    return digest.hexdigest()[:16]
