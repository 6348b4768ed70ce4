"""The processes that rlsize has started, and those that they have: what a GPU may be used by during a measurement."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")


def descendants(root: int | None = None, proc: Path = _PROC) -> set[int]:
    """
    A process and all that descend from it, now; only itself where the system has no /proc.

    Args:
        root: Process id; this process without it.
        proc: Where Linux lists processes.
    """
    root = os.getpid() if root is None else root
    children: dict[int, list[int]] = {}
    for stat in proc.glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):  # it ended meanwhile
            text = stat.read_text(encoding="utf-8", errors="replace")
            parent = int(text.rpartition(")")[2].split()[1])  # the name, in parentheses, may hold anything
            children.setdefault(parent, []).append(int(stat.parent.name))
    found, fresh = {root}, [root]
    while fresh:
        fresh = [child for parent in fresh for child in children.get(parent, []) if child not in found]
        found.update(fresh)
    return found
