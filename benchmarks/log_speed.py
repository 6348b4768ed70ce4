"""
Speed and memory of reading a training log, next to `grep -c`.

A verl console log is written to a temporary folder, in which one line in fifty has metrics (about 3.4 kB) and the rest
are progress bars and text. `grep -c` and rlsize's reader, each in a process of its own, read it in turn, A B A B, so
that a machine that slows down slows both. The target is 100 MB/s of processor time; wall clock is printed beside it.

    python -m benchmarks.log_speed [--gigabytes 1] [--pairs 5]
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.pairs import interval

from rlsize.readers.logs.reading import read_log

if TYPE_CHECKING:
    from collections.abc import Iterator

TARGET = 100.0  # MB/s of processor time
MEGABYTE = 1e6
EVERY = 50  # lines for one with metrics
KINDS = 64  # different groups of lines, which repeat: making numbers takes longer than writing them
KEYS = (
    *("actor/entropy", "actor/pg_loss", "actor/kl_loss", "actor/kl_coef", "actor/pg_clipfrac", "actor/ppo_kl"),
    *("actor/pg_clipfrac_lower", "actor/grad_norm", "actor/lr", "perf/mfu/actor", "perf/mfu/actor_infer"),
    *("perf/max_memory_allocated_gb", "perf/max_memory_reserved_gb", "perf/cpu_memory_used_gb", "training/epoch"),
    *(f"critic/{name}/{of}" for name in ("score", "rewards", "advantages", "returns") for of in ("mean", "max", "min")),
    *(f"{name}/{of}" for name in ("response_length", "response_length_non_aborted", "prompt_length")
      for of in ("mean", "max", "min", "clip_ratio")),
    *("response/aborted_ratio", "num_turns/min", "num_turns/max", "num_turns/mean"),
    *(f"timing_s/agent_loop/{name}/{of}" for name in ("generate_sequences", "tool_calls") for of in ("mean", "max")),
    *(f"timing_s/agent_loop/slowest/{name}" for name in ("generate_sequences", "tool_calls", "prompt_length")),
    *(f"timing_s/{name}" for name in ("start_profile", "gen", "reward", "old_log_prob", "ref", "adv", "update_actor")),
    *("timing_s/step", "timing_s/stop_profile", "timing_per_token_ms/gen", "timing_per_token_ms/update_actor"),
    *("timing_per_token_ms/adv", "timing_per_token_ms/ref", "perf/total_num_tokens", "perf/time_per_step"),
    *("perf/throughput", "perf/tgs/gen", "perf/tgs/actor", "global_seqlen/min", "global_seqlen/max"),
    *("global_seqlen/minmax_diff", "global_seqlen/balanced_min", "global_seqlen/balanced_max", "global_seqlen/mean"),
)  # fmt: skip
TEXT = (
    "(WorkerDict pid={pid}) INFO 03-01 10:{minute:02d}:07 block_pool.py:378] Successfully reset prefix cache",
    "(TaskRunner pid=4101) local_global_step_folder: None, test_gen_batch meta info: {{'eos_token_id': {pid}}}",
    "Training Progress:  {share:2d}%|{bar:<10}| {pid}/9000 [{minute:02d}:49<1:53:43, 49.09s/it]",
    "(WorkerDict pid={pid}) Processed prompts:  {share:2d}%|{bar:<10}| {minute}/512 [00:11<00:30, 12.1it/s]",
)


def group(draw: random.Random) -> bytes:
    """A metrics line behind the number of its step, and what stands between two of them."""
    pairs = " - ".join(f"{key}:{draw.random() * 10 ** draw.randint(-2, 4)!r}" for key in KEYS)
    lines = [pairs]
    for _ in range(EVERY - 1):
        share = draw.randint(0, 99)
        text = draw.choice(TEXT)
        lines.append(
            text.format(pid=draw.randint(1000, 9999), minute=draw.randint(0, 59), share=share, bar="#" * (share // 10))
        )
    return ("\n".join(lines) + "\n").encode()


def write(file: Path, size: float) -> int:
    """Write a log of so many bytes; how many metrics lines it has."""
    draw = random.Random(7)  # noqa: S311 (numbers of a benchmark, not secrets)
    groups = [group(draw) for _ in range(KINDS)]
    written = rows = 0
    with file.open("wb") as stream:
        while written < size:
            rows += 1
            head = f"(TaskRunner pid=4101) step:{rows} - training/global_step:{rows} - "
            written += stream.write(head.encode() + groups[rows % KINDS])
    return rows


def reading(file: str) -> None:
    """Read a log in this process, and print what it took."""
    log = read_log(file)
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"steps": len(log.steps), "skipped": len(log.skipped), "peak_mib": used.ru_maxrss / 2**10}))


def timed(command: list[str]) -> tuple[float, float, str]:
    """Wall clock and processor seconds of a process, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    spent = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def pairs(file: Path, count: int) -> Iterator[tuple[tuple[float, float, str], tuple[float, float, str]]]:
    """Runs of grep and of rlsize in turn, after one of each that warms the file cache."""
    grep = [shutil.which("grep") or "grep", "-c", "step:", str(file)]
    rlsize = [sys.executable, "-m", "benchmarks.log_speed", "--read", str(file)]
    timed(grep)
    for _ in range(count):
        yield timed(grep), timed(rlsize)


def main() -> int:
    """Print a line of JSON; exit code 1 where not every step was read."""
    parser = argparse.ArgumentParser(description="Speed and memory of reading a training log.")
    parser.add_argument("--gigabytes", type=float, default=1.0, help="size of the log")
    parser.add_argument("--pairs", type=int, default=5, help="how often both read it")
    parser.add_argument("--read", help="read this log in this process, and print what it took")
    asked = parser.parse_args()
    if asked.read:
        reading(asked.read)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "verl.log"
        rows = write(file, asked.gigabytes * 1e9)
        megabytes = file.stat().st_size / MEGABYTE
        runs = list(pairs(file, asked.pairs))
    told = [json.loads(ours[2]) for _, ours in runs]
    ratios = [ours[0] / grep[0] for grep, ours in runs]
    low, high = interval(ratios)
    processor = megabytes / statistics.median(ours[1] for _, ours in runs)
    print(
        json.dumps(
            {
                "megabytes": round(megabytes, 1),
                "metrics_lines": rows,
                "steps_read": told[0]["steps"],
                "pairs": asked.pairs,
                "grep_median_seconds": round(statistics.median(grep[0] for grep, _ in runs), 3),
                "rlsize_median_seconds": round(statistics.median(ours[0] for _, ours in runs), 3),
                "rlsize_megabytes_per_second": round(megabytes / statistics.median(ours[0] for _, ours in runs), 1),
                "rlsize_megabytes_per_processor_second": round(processor, 1),
                "median_of_ratios": round(statistics.median(ratios), 2),
                "interval_95_percent": [round(low, 2), round(high, 2)],
                "peak_mib": round(max(entry["peak_mib"] for entry in told), 1),
                "target_megabytes_per_second": TARGET,
                "reaches_target": processor >= TARGET,
            }
        ),
        flush=True,
    )
    return int(any(entry["steps"] != rows or entry["skipped"] for entry in told))


if __name__ == "__main__":
    raise SystemExit(main())
