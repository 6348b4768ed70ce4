"""
Start-up of `rlsize`, paired with a minimal Typer program of the same environment.

Both programs run in turn, A B A B ..., so that a machine that slows down slows both. What counts is the ratio of the
medians: at most 1.3 for `--help` against `--help`, and for `rlsize fleet ...` against a command that prints a table of
one row. Exit code 1 when a ratio is above its limit.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

MINIMAL = '''
import typer

app = typer.Typer()


@app.command()
def table() -> None:
    """Print a table of one row."""
    from rich.console import Console
    from rich.table import Table

    shown = Table("name", "value")
    shown.add_row("one", "1")
    Console().print(shown)


@app.command()
def hello(name: str = "world") -> None:
    """Say hello."""
    print(f"hello {name}")


app()
'''
LIMIT = 1.3
RUNS = 21


def seconds(command: list[str]) -> float:
    """Processor time of one run, which other work on the machine changes least."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def paired(first: list[str], second: list[str]) -> tuple[list[float], list[float]]:
    """Both commands in turn, after one run of each to warm the file cache."""
    seconds(first), seconds(second)
    pairs = [(seconds(first), seconds(second)) for _ in range(RUNS)]
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def main() -> int:
    """Measure both pairs and print medians and ratios."""
    with tempfile.TemporaryDirectory() as folder:
        minimal = Path(folder, "minimal.py")
        minimal.write_text(MINIMAL, encoding="utf-8")
        rlsize = [sys.executable, "-m", "rlsize"]
        cases = {
            "--help": ([*rlsize, "--help"], [sys.executable, str(minimal), "--help"]),
            "fleet": (
                [*rlsize, "fleet", "--consume", "39321", "--per-instance", "4000"],
                [sys.executable, str(minimal), "table"],
            ),
        }
        failed = False
        for name, (ours, theirs) in cases.items():
            a, b = paired(ours, theirs)
            ratio = statistics.median(a) / statistics.median(b)
            pairwise = statistics.median(x / y for x, y in zip(a, b, strict=True))
            failed |= ratio > LIMIT
            print(
                json.dumps(
                    {
                        "case": name,
                        "runs": RUNS,
                        "rlsize_median_seconds": round(statistics.median(a), 4),
                        "minimal_median_seconds": round(statistics.median(b), 4),
                        "ratio_of_medians": round(ratio, 3),
                        "median_of_ratios": round(pairwise, 3),
                        "limit": LIMIT,
                    }
                )
            )
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
