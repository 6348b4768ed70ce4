"""
Speed and memory of the planner.

1. CPU of a cold start, as times of that of `python -c "import numpy, pydantic"`: both run in turn, A B A B ..., so that
   a machine that slows down slows both; compiled modules are kept, as an installed program has them. `rlsize plan` from
   given rates and predicted, which search 100,000 candidates or more, `predict step` and `memory`. The target of `plan`
   is at most 2.5 times.
2. Candidates a second on one core as the space grows; the target is a million.
3. Peak memory as the space grows.

    python -m benchmarks.planner_speed [--full]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING

from benchmarks.pairs import PAIRS, interval

if TYPE_CHECKING:
    from collections.abc import Sequence

TARGET = 2.5  # times the imports alone
RATE = 1_000_000.0  # candidates a second
LEAST = 100_000  # candidates of a cold start
STARTS = 3 * PAIRS
COMPILED = tempfile.TemporaryDirectory()
INSTALLED = {key: text for key, text in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
INSTALLED["PYTHONPYCACHEPREFIX"] = COMPILED.name
BESIDE = [sys.executable, "-c", "import numpy, pydantic"]
RLSIZE = [sys.executable, "-m", "rlsize"]
GIVEN = ["plan", "--gpus", "232", "--rollout-tps", "2000", "--trainer-tps", "6000", "--batch-tokens", "786432",
         "--max-staleness", "2"]  # fmt: skip
LOOP = ["--model", "qwen3-8b", "--gpu", "h100-sxm", "--prompts", "64", "--group", "16", "--prompt-tokens", "300",
        "--response-tokens", "2000"]  # fmt: skip
PREDICTED = ["plan", *LOOP, "--gpus", "40"]
PLACED = [*LOOP, "--rollout-gpus", "16", "--trainer-gpus", "24"]
SCALES = {"given": (200, 600, 1_900), "predicted": (32, 128, 640)}
"""GPUs that make some 10^5, 10^6 and 10^7 candidates."""


def seconds(command: Sequence[str]) -> float:
    """CPU of one run, of user and system."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True, env=INSTALLED)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def cold(case: str, words: Sequence[str], least: int = 0) -> bool:
    """Print pairs of cold starts; whether as much was searched as the case wants."""
    ours = [*RLSIZE, *words]
    told = subprocess.run([*ours, "--json"], check=True, capture_output=True, text=True).stdout
    counted = re.search(r"Searched: ([0-9,]+) candidates", told)
    candidates = int(counted[1].replace(",", "")) if counted else 0
    seconds(ours)
    seconds(BESIDE)  # one run of each warms the file cache
    pairs = [(seconds(ours), seconds(BESIDE)) for _ in range(STARTS)]
    ratios = [plan / imports for plan, imports in pairs]
    low, high = interval(ratios)
    say(
        case=f"cold start, {case}",
        pairs=STARTS,
        candidates=candidates,
        rlsize_median_cpu_seconds=round(statistics.median(plan for plan, _ in pairs), 4),
        imports_median_cpu_seconds=round(statistics.median(imports for _, imports in pairs), 4),
        median_of_ratios=round(statistics.median(ratios), 3),
        interval_95_percent=[round(low, 3), round(high, 3)],
        target=TARGET,
        reaches_target=statistics.median(ratios) <= TARGET,
    )
    return candidates >= least


def scaling(repeats: int) -> None:
    """Print candidates a second and peak memory, scale by scale, each run in a process of its own."""
    for name, scales in SCALES.items():
        for gpus in scales:
            runs = [alone(name, gpus) for _ in range(repeats)]
            spent = statistics.median(run["seconds"] for run in runs)
            candidates = runs[0]["candidates"]
            say(
                case=f"search, {name}",
                gpus=gpus,
                candidates=candidates,
                runs=repeats,
                cpu_seconds=round(spent, 3),
                candidates_per_second=round(candidates / spent),
                peak_mib=round(max(run["peak_bytes"] for run in runs) / 2**20, 1),
                target_per_second=RATE,
                reaches_target=candidates / spent >= RATE,
            )


def alone(name: str, gpus: int) -> dict[str, float]:
    """What a search in a process of its own prints."""
    command = [sys.executable, "-m", "benchmarks.planned_loops", name, str(gpus)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    told: dict[str, float] = json.loads(done.stdout)
    return told


def say(**told: object) -> None:
    """Print a line of JSON."""
    print(json.dumps(told), flush=True)


def main() -> int:
    """Print lines of JSON; exit code 1 where a cold start searches fewer candidates than it should."""
    parser = argparse.ArgumentParser(description="Speed and memory of the planner.")
    parser.add_argument("--full", action="store_true", help="every search as often as there are pairs")
    asked = parser.parse_args()
    enough = cold("plan from given rates", GIVEN, LEAST)
    enough &= cold("plan predicted", PREDICTED, LEAST)
    cold("predict step", ["predict", "step", *PLACED])
    cold("memory", ["memory", *PLACED])
    scaling(PAIRS if asked.full else 3)
    return int(not enough)


if __name__ == "__main__":
    raise SystemExit(main())
