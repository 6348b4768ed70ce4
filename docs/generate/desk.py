"""A folder in which the commands of a page run one after the other, each on what those before it wrote."""

from __future__ import annotations

from difflib import unified_diff
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from weakref import finalize

from generate import commands
from generate.files import fenced


class Desk:
    """
    An empty folder that lasts as long as its page is written.

    Its methods return code blocks: commands with what they print, and files as they are written and changed.
    """

    def __init__(self) -> None:
        self._folder = Path(mkdtemp())
        finalize(self, rmtree, self._folder)

    def run(self, line: str, exit_code: int = 0) -> str:
        """A command and its whole output."""
        return commands.run(line, exit_code, self._folder)

    def excerpt(self, line: str, first: str, last: str = "", exit_code: int = 0) -> str:
        """A command and part of its output, as `commands.excerpt` has it."""
        return commands.excerpt(line, first, last, exit_code, self._folder)

    def copy(self, name: str, text: str) -> None:
        """A file that is there without a word."""
        (self._folder / name).write_text(text, encoding="utf-8")

    def write(self, name: str, text: str) -> str:
        """A file, as its reader writes it."""
        self.copy(name, text.strip() + "\n")
        return fenced(text, "yaml")

    def shown(self, name: str) -> str:
        """A file that a command wrote."""
        return fenced((self._folder / name).read_text(encoding="utf-8"), "yaml")

    def change(self, name: str, old: str, new: str, as_name: str = "") -> str:
        """
        A file with some text replaced, as a diff.

        Args:
            name: The file.
            old: What is replaced; it must stand there once.
            new: What stands there instead.
            as_name: The file that takes the change; the same one where it is not given.

        Raises:
            RuntimeError: The text is not there, or more than once.
        """
        before = (self._folder / name).read_text(encoding="utf-8")
        if before.count(old) != 1:
            raise RuntimeError(f"{name} has {before.count(old)} times, not once: {old}")
        after = before.replace(old, new)
        self.copy(as_name or name, after)
        lines = unified_diff(before.splitlines(), after.splitlines(), name, as_name or name, n=1, lineterm="")
        return fenced("\n".join(line for line in lines if not line.startswith("@@")), "diff")
