"""
Run the tests against an installed wheel, with the checkout's src/ and profiles/ out of reach.

Usage: python tests/run_on_wheel.py PYTHON, where PYTHON is the interpreter of an environment that holds the wheel.
Tests, documentation and examples are copied to an empty folder and run there, so no code and no profile of the checkout
can be imported or read. Tests that need one of these two are skipped and say so. Left out is what a wheel cannot change
and the checkout has tested: the pure layers, which read no file, and the commands, each of which the examples run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

COPIED = ("tests", "docs", "examples", "benchmarks", "pyproject.toml", "Makefile", "LICENSE", "profiles/README.md")
PURE = ("equations", "estimates", "simulator", "planner", "verdicts", "reports", "measure", "cli")
DRAWN = ("junk", "answered_or_refused", "any_valid_flags")
"""Parts of the names of tests that try hundreds of drawn inputs, which a wheel does not change either."""


def main() -> int:
    """Copy, run, and pass pytest's exit code on."""
    python = str(Path(sys.argv[1]).absolute())
    root = Path(__file__).absolute().parents[1]
    with tempfile.TemporaryDirectory() as folder:
        for name in (*COPIED, *(page.name for page in root.glob("*.md"))):
            source, target = root / name, Path(folder, name)
            target.parent.mkdir(exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, target)
        hidden = {"PYTHONPATH", "RLSIZE_PROFILES"}
        environment = {name: value for name, value in os.environ.items() if name not in hidden}
        asked = [python, "-c", "import rlsize; print(rlsize.__file__)"]
        where = subprocess.check_output(asked, cwd=folder, env=environment, text=True).strip()
        if Path(where).is_relative_to(root / "src"):
            sys.stderr.write(f"the tests would run on the checkout, not on the wheel: {where}\n")
            return 2
        sys.stderr.write(f"testing {where}\n")
        command = [python, "-m", "pytest", "-q", "-n", "auto", "-p", "no:cacheprovider"]
        left_out = [*(f"--ignore=tests/{name}" for name in PURE), "-k", f"not ({' or '.join(DRAWN)})"]
        return subprocess.run([*command, *left_out], cwd=folder, env=environment, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())
