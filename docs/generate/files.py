"""Where the checkout is, and its files as code blocks."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_LANGUAGES = {".yaml": "yaml", ".yml": "yaml", ".json": "json", ".py": "python", ".sh": "bash"}


def fenced(text: str, language: str) -> str:
    """Text as a code block, trailing spaces taken off."""
    lines = [line.rstrip() for line in text.strip("\n").splitlines()]
    return "\n".join([f"```{language}", *lines, "```"]) + "\n"


def shown_file(path: str) -> str:
    """
    A file of the checkout as a code block.

    Args:
        path: Where it is, from the root of the checkout.
    """
    file = ROOT / path
    return fenced(file.read_text(encoding="utf-8"), _LANGUAGES.get(file.suffix, "text"))
