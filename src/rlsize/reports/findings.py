"""What a check found, one entry for each thing that it looked at: for annotations and test reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["error", "failure", "warning", "pass"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """
    One thing that was looked at.

    Args:
        name: What it is called in a list.
        level: `failure` where the answer is no, `error` where there is none; `warning` and `pass`.
        title: The verdict in a few words.
        message: The verdict with its numbers.
        file: The file that it is about; empty where there is none.
        line: Its line there.
    """

    name: str
    level: Level
    title: str
    message: str
    file: str = ""
    line: int | None = None
