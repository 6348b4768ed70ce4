"""
Run the examples and compare what they print with what is written down.

Each `NAME.cmd` holds one command, with comments above it; `NAME.out` beside it is what it prints on stdout. A line
`# exit code 1` says that the command ends so.

    python examples/run.py            # compare
    python examples/run.py --write    # write the .out files anew
"""
# ruff: noqa: INP001 (a script, not a package)

from __future__ import annotations

import re
import shlex
import sys
from contextlib import chdir
from pathlib import Path
from typing import NamedTuple

EXAMPLES = Path(__file__).resolve().parent
PLAIN = {"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb", "RLSIZE_PROFILES": None}
PLAIN |= dict.fromkeys(("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"))  # unset, or rich takes a pipe for a screen
_EXIT_CODE = re.compile(r"# exit code (\d+)")
_LONG = re.compile(r"-?\d+\.\d{9,}(?:e[-+]?\d+)?")  # a float in full, whose last digits are the processor's
_CHANGING = re.compile(r'("(?:facts_digest|rlsize_version)": )"[^"]*"')


class Example(NamedTuple):
    """One command, and the exit code that it must have."""

    line: str
    exit_code: int


class Outcome(NamedTuple):
    """What a command printed on stdout and on stderr, and its exit code."""

    stdout: str
    stderr: str
    exit_code: int


def files() -> list[Path]:
    """The `.cmd` files, sorted."""
    return sorted(EXAMPLES.glob("*.cmd"))


def example(file: Path) -> Example:
    """The command of a `.cmd` file; it may run over several lines that end in a backslash."""
    lines = file.read_text(encoding="utf-8").splitlines()
    codes = [int(found[1]) for line in lines if (found := _EXIT_CODE.fullmatch(line))]
    words = " ".join(line.rstrip("\\").strip() for line in lines if line and not line.startswith("#"))
    return Example(words, codes[0] if codes else 0)


def outcome(line: str) -> Outcome:
    """What a command does, run in this process from the root of the checkout, 80 columns wide and without colour."""
    from typer.testing import CliRunner  # noqa: PLC0415 (only who runs an example needs it)

    from rlsize.shell.app import app  # noqa: PLC0415 (as above)

    program, *arguments = shlex.split(line)
    with chdir(EXAMPLES.parent):
        result = CliRunner().invoke(app, arguments, env=PLAIN, prog_name=program)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Outcome(masked(result.stdout), result.stderr, result.exit_code)


def masked(text: str) -> str:
    """The text without what changes with every release, version and digest of the facts, and with every processor."""
    return _CHANGING.sub(r'\1"..."', _LONG.sub(lambda found: f"{float(found[0]):.10g}", text))


def expected(file: Path) -> str:
    """What is written down beside a `.cmd` file."""
    return file.with_suffix(".out").read_text(encoding="utf-8")


def main() -> int:
    """Compare or write; 1 where something differs."""
    differing = []
    for file in files():
        wanted, found = example(file), outcome(example(file).line)
        if "--write" in sys.argv[1:]:
            file.with_suffix(".out").write_text(found.stdout, encoding="utf-8", newline="\n")
        if found.exit_code != wanted.exit_code:
            sys.stderr.write(f"{file.name}: exit code {found.exit_code}, not {wanted.exit_code}\n{found.stderr}")
            differing.append(file)
        elif found.stdout != expected(file):
            sys.stderr.write(f"{file.name}: prints something else than {file.with_suffix('.out').name}\n")
            differing.append(file)
    sys.stdout.write(f"{len(files()) - len(differing)} of {len(files())} examples as written down\n")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
