"""Commands as they run, in this process, with the same width and colours everywhere."""

from __future__ import annotations

import json
import shlex
import tempfile
from contextlib import chdir
from pathlib import Path
from shutil import copy
from typing import TYPE_CHECKING
from unittest.mock import patch

from typer.testing import CliRunner

from generate.files import ROOT, fenced
from rlsize.shell.app import app

if TYPE_CHECKING:
    from rlsize.shell.progress import Say

PLAIN = {"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb", "RLSIZE_PROFILES": None}
PLAIN |= dict.fromkeys(("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"))  # unset, or rich takes a pipe for a screen
_ANSWERED = {0, 1}


def output(line: str, folder: Path = ROOT, exit_code: int | None = 0) -> str:
    """
    What one command prints, answer and warnings together as on a terminal.

    Args:
        line: The command, as typed.
        folder: Where it runs.
        exit_code: The exit code that it must have; None for an answer, whether it is yes or no.

    Raises:
        RuntimeError: It ended otherwise.
    """
    program, *arguments = shlex.split(line)
    if program != "rlsize":
        raise RuntimeError(f"not a rlsize command: {line}")
    with chdir(folder), patch("rlsize.shell.progress._lines", _silent):
        result = CliRunner().invoke(app, arguments, env=PLAIN, prog_name=program)
    if result.exit_code not in (_ANSWERED if exit_code is None else {exit_code}):
        raise RuntimeError(
            f"exit code {result.exit_code}, not {exit_code or 0}: {line}\n{result.output}"
        ) from result.exception
    return result.output


def _silent() -> Say:
    """What long work says when it takes long, which a page must not depend on."""
    return lambda _text, _share: None


def run(line: str, exit_code: int = 0, folder: Path = ROOT) -> str:
    """A command and its whole output, as a code block."""
    return fenced(f"$ {_wrapped(line)}\n{output(line, folder, exit_code)}", "console")


def excerpt(line: str, first: str, last: str = "", exit_code: int = 0, folder: Path = ROOT) -> str:
    """
    A command and part of its output, as a code block.

    Args:
        line: The command, as typed.
        first: How the first line that is shown begins.
        last: How the last one begins; without it, up to the next empty line.
        exit_code: The exit code that it must have.
        folder: Where it runs.
    """
    lines = [text.rstrip() for text in output(line, folder, exit_code).splitlines()]
    start = next((index for index, text in enumerate(lines) if text.startswith(first)), None)
    if start is None:
        raise RuntimeError(f"no line begins with {first!r}: {line}")
    after = lines[start:]
    end = next((index for index, text in enumerate(after) if (text.startswith(last) if last else not text)), None)
    if last and end is None:
        raise RuntimeError(f"no line begins with {last!r}: {line}")
    kept = after if end is None else after[: end + bool(last)]
    dots = [["..."] if start else [], ["..."] if len(kept) < len(after) else []]
    return fenced("\n".join([f"$ {_wrapped(line)}", *dots[0], *kept, *dots[1]]), "console")


def results(line: str, *keys: str) -> str:
    """A command with `--json` and some of its results, as a code block; what changes with every release is left out."""
    found = json.loads(output(line))["results"]
    chosen = json.dumps({"results": {key: found[key] for key in keys}}, indent=2)
    return fenced(f"$ {_wrapped(line)}", "console") + "\nAn excerpt:\n\n" + fenced(chosen, "json")


def session(
    *lines: str, files: tuple[str, ...] = (), folders: tuple[str, ...] = (), hidden: int = 0, exit_code: int = 0
) -> str:
    """
    Several commands, one after the other in an empty folder, as a code block.

    Args:
        lines: The commands, as typed; `cat FILE` shows a file that one of them wrote.
        files: Files of the checkout that are copied there first.
        folders: Folders that are made there first.
        hidden: How many of the first commands run without being shown.
        exit_code: The exit code that the last one must have.
    """
    shown = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for made in folders:
            (folder / made).mkdir()
        for file in files:
            copy(ROOT / file, folder)
        for line in lines:
            program, *arguments = shlex.split(line)
            code = exit_code if line == lines[-1] else 0
            text = (folder / arguments[0]).read_text("utf-8") if program == "cat" else output(line, folder, code)
            shown.append(f"$ {_wrapped(line)}\n{text.rstrip()}")
    return fenced("\n\n".join(shown[hidden:]), "console")


def _wrapped(line: str, width: int = 98) -> str:
    """A long command over several lines, as a shell takes it."""
    lines, rest = [], line
    while len(rest) > width:
        cut = rest.rfind(" --", 0, width)
        if cut <= 0:
            break
        lines.append(rest[:cut] + " \\")
        rest = "    " + rest[cut + 1 :]
    return "\n".join([*lines, rest])
