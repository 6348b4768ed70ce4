"""What a real shell makes of a written launch, and what a framework's own code makes of that."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = ("python", "python3", "accelerate", "torchrun", "trl", "vllm", "swift", "megatron", "ray")
RECORD = """\
#!/bin/sh
own="$LAUNCHED.$$"
printf "%s\\0" "${0##*/}" "$@" > "$own"
printf "\\001" >> "$own"
cat "$own" >> "$LAUNCHED"  # at once, as a server writes at the same time
"""


@pytest.fixture
def launched(tmp_path: Path) -> Callable[[str], list[list[str]]]:
    """Runs a script with programs that only note the words which they were given; gives those of each."""
    programs, record = tmp_path / "programs", tmp_path / "launched"
    programs.mkdir()
    for name in PROGRAMS:
        (programs / name).write_text(RECORD, encoding="utf-8")
        (programs / name).chmod(0o755)

    def run(script: str) -> list[list[str]]:
        record.unlink(missing_ok=True)
        around = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "LAUNCHED": str(record)}
        subprocess.run(["bash", "-eu", "-c", f"{script}\nwait\n"], check=True, env=around, timeout=60)
        told = record.read_text(encoding="utf-8").split("\001")
        return [one.removesuffix("\0").split("\0") for one in told if one]

    return run


@pytest.fixture
def loaded() -> Callable[..., list[dict[str, Any]]]:
    """Loads cases by the code of a release; skips where it cannot be had."""
    said = os.environ.get("RLSIZE_FRAMEWORKS_FOLDER")
    if not said:
        pytest.skip("no framework can be loaded here: `make test-frameworks` installs what does")
    folder = Path(said)

    def load(name: str, release: str, cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if not (folder / f"{name}-{release}").is_dir():
            pytest.skip(f"the package index has no {name} {release}, or could not be reached")
        program = [str(folder / "env" / "bin" / "python"), str(Path(__file__).with_name("load.py"))]
        program.append(str(folder / f"{name}-{release}"))
        done = subprocess.run(
            program, input=json.dumps(cases), capture_output=True, text=True, check=False, timeout=240
        )
        assert done.returncode == 0, done.stderr
        results: list[dict[str, Any]] = json.loads(done.stdout)
        return results

    return load
