"""
Try an installed wheel, with the checkout's src/ and profiles/ out of reach.

Usage: python tests/run_on_wheel.py PYTHON, where PYTHON is the interpreter of an environment that holds the wheel and
what it depends on, and nothing else. The examples are copied to an empty folder, and there every module is imported,
every example is compared with what is written down, and some commands are run as a user types them. What a wheel cannot
change, the checkout has tested.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

COPIED = ("examples", "benchmarks")
IMPORTS = """
import importlib, pkgutil, rlsize
names = [found.name for found in pkgutil.walk_packages(rlsize.__path__, "rlsize.") if found.name != "rlsize.__main__"]
for name in names:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as missing:  # workers run under a foreign Python, which has these
        if not name.startswith("rlsize.measure.workers.") or missing.name not in {"torch", "transformers", "vllm"}:
            raise
print(f"{len(names)} modules of {rlsize.__path__[0]}")
"""
COMMANDS = (
    "rlsize --version",
    "rlsize --help",
    "rlsize profiles check",
    "rlsize schema scenario",
    "rlsize explain weight_sync_time",
    "rlsize init --yes --model qwen3-8b --gpu h100-sxm --gpus 16 made.yaml",
    "rlsize plan made.yaml --plot plan.png",
    "rlsize report made.yaml -o review.html",
)


def main() -> int:
    """Import, compare, run; 1 where something fails, 2 where the wheel is not what would be tried."""
    python = str(Path(sys.argv[1]).absolute())
    root = Path(__file__).absolute().parents[1]
    hidden = {"PYTHONPATH", "RLSIZE_PROFILES"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    with tempfile.TemporaryDirectory() as folder:

        def done(*argv: str) -> bool:
            """Whether a program ends well; what it printed is shown where it does not."""
            ran = subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, check=False)
            last = (ran.stdout.splitlines() or [""])[-1]
            sys.stderr.write(f"{'ok' if ran.returncode == 0 else 'FAILED'}  {' '.join(argv[1:])[:60]!r}  {last[:80]}\n")
            if ran.returncode:
                sys.stderr.write(ran.stdout + ran.stderr)
            return ran.returncode == 0

        for name in COPIED:
            shutil.copytree(root / name, Path(folder, name), ignore=shutil.ignore_patterns("__pycache__"))
        asked = [python, "-c", "import rlsize; print(rlsize.__file__)"]
        where = subprocess.check_output(asked, cwd=folder, env=environment, text=True).strip()
        if Path(where).is_relative_to(root / "src"):
            sys.stderr.write(f"the checkout would be tried, not the wheel: {where}\n")
            return 2
        program = str(Path(python).with_name("rlsize"))
        tried = [done(python, "-c", IMPORTS), done(python, "examples/run.py")]
        tried += [done(program, *line.split()[1:]) for line in COMMANDS]
    return 0 if all(tried) else 1


if __name__ == "__main__":
    raise SystemExit(main())
