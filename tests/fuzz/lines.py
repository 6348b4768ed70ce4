"""
Command lines that are born valid: a random loop, more of its declared quantities said, and what always holds after.

What is drawn comes from the rows of `rlsize.quantities`, so a new quantity is tried without a word here.

    python -m tests.fuzz.lines 20000 [FIRST]

The nightly run tries 20,000, CI 2,000.
"""

from __future__ import annotations

import math
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

from tests.loop.one_answer import COMMANDS, CRASH, HEAD, Answer, Desk, random_loop

from rlsize.facts.fields import Quantity
from rlsize.quantities.row import Row, Switch, Word
from rlsize.quantities.table import PLACES
from rlsize.shell.progress import INTERRUPTED

ROWS = [PLACES[place] for place in sorted(PLACES)]
SLOW = 40.0
"""
Seconds of a processor after which an answer counts as hanging.

Most take one or two. A plan that drops late samples of a full cache takes up to 20, as it looks for the length that a
batch has got to when it is too late, for each candidate.
"""

# A signed figure: what is gained, or lost, against something else, and correlations.
SIGNED = (
    "_change", "_growth", "correlation", "_saved", "_difference", "_gain", "_gap", "slope", "_drift", "_error",
    "_left_", "headroom",
)  # fmt: skip
KNOWN = (
    HEAD
    + """\
model: qwen3-8b
cluster: {gpu: h100-sxm, gpus: 32}
workload: {prompts_per_step: 64, group_size: 8, prompt_tokens: 300, response_tokens: {mean: 1536, cv: 0.8, max: 8192}}
placement: {mode: MODE, rollout_gpus: 16, trainer_gpus: 16}
rollout: {tensor_parallel: 2}
trainer: {parallelism: {fsdp: 16}}
rates: {instance_tokens_per_second: 4000 ± 200, train_seconds: 20, sync_seconds: 4}
prices: {gpu_hour: 2.5}
"""
)
"""A loop of measured rates: its answers take a tenth of the time of predicted ones, and as many things can be said."""
PREDICTED_ONE_IN = 20
DIRECTIONS = (
    ("prices.gpu_hour", 5.0, "cost_per_step_usd", 1),
    ("rates.train_seconds", 40, "step_seconds", 1),
    ("rates.train_seconds", 40, "steps_per_day", -1),
    ("rates.sync_seconds", 8, "step_seconds", 1),
    ("rates.instance_tokens_per_second", 8000, "step_seconds", -1),
)
"""Quantities of that loop, twice what they are there, and the way in which a figure can only go."""
TURNED_ONE_IN = 8
LIGHT = tuple(command for command in COMMANDS if command not in {"plan", "report", "whatif", "simulate", "check"})
SEARCHES_ONE_IN = 100
"""How seldom a command is asked that searches or plays, which takes a hundred times as long as the others."""


def value_of(row: Row, random: Random) -> str | None:
    """A value that a row's kind and limits allow: near its default, across its range, or at an end of it."""
    kind = row.kind
    if isinstance(kind, Word):
        return random.choice(kind.known)
    if isinstance(kind, Switch):
        return random.choice(("true", "false"))
    if not isinstance(kind, Quantity):
        return None  # a name or a path: what may stand there is no matter of limits
    low = kind.least if kind.least is not None else (kind.above or 0.0)
    high = kind.most if kind.most is not None else math.inf
    near = row.default if isinstance(row.default, (int, float)) and row.default > 0 else 10 ** random.uniform(-1, 4)
    drawn = random.choice((near * 2 ** random.uniform(-2, 2), near * 10 ** random.uniform(-6, 6), low, high))
    drawn = min(max(drawn, low), high if math.isfinite(high) else 1e12)
    if kind.whole:
        drawn = round(drawn)
    return repr(drawn) if drawn > (kind.above if kind.above is not None else -math.inf) else None


def line_of(number: int, desk: Desk) -> tuple[str, str, tuple[str, ...]]:
    """One of many command lines, the same for the same number: the command, its file, its flags."""
    random = Random(number)
    searches = number % SEARCHES_ONE_IN == 0
    command = random.choice([name for name in COMMANDS if name not in LIGHT] if searches else LIGHT)
    known = KNOWN.replace("MODE", random.choice(("async", "disaggregated", "one-step-off")))
    text = known if number % PREDICTED_ONE_IN else random_loop(number).text
    flags: list[str] = []
    for row in random.sample(ROWS, random.choice((1, 1, 2, 3))):
        value = value_of(row, random)
        if value is not None:
            by_flag = row.flag and not isinstance(row.kind, Switch) and random.random() < 0.5
            flags += [f"{random.choice(row.flags)}={value}"] if by_flag else ["--set", f"{row.scenario}={value}"]
    return command, desk.file(text), tuple(flags)


def broken(answer: Answer, seconds: float) -> Iterator[str]:
    """What does not hold of an answer, and always must."""
    if answer.code == CRASH:
        yield answer.fault
    elif answer.code not in {0, 1, 2}:
        yield f"exit code {answer.code}"
    elif answer.code == 2 and not answer.told.strip():
        yield "refused without a word"
    if seconds > SLOW:
        yield f"took {seconds:.0f} s"
    for part in ("inputs", "results"):
        figures: Mapping[str, Any] = answer.document.get(part, {})
        yield from (f"{part}.{key} = {value}: {why}" for key, value in figures.items() for why in _unsound(key, value))
    bands = {key: entry.get("band") for key, entry in answer.document.get("explain", {}).items()}
    yield from (f"band of {key}: {band}" for key, band in bands.items() if band and not band[0] <= band[1])


def turned(before: Answer, after: Answer, key: str, way: int) -> Iterator[str]:
    """A figure that went the wrong way when a quantity was doubled that can only raise it, or only lower it."""
    was, became = (answer.document.get("results", {}).get(key) for answer in (before, after))
    if before.code == after.code == 0 and was and became and (became - was) * way < -1e-6 * was:
        yield f"{key} went from {was} to {became}"


def _unsound(key: str, value: object) -> Iterator[str]:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return
    if not math.isfinite(value):
        yield "no finite number"
    if value < -1e-9 and not any(word in key for word in SIGNED):  # less is rounding
        yield "negative"
    impossible = key == "achieved_link_fraction"  # of a sync that is said to be quicker than its link, with a warning
    if key.endswith(("_fraction", "_share")) and value > 1 + 1e-9 and not impossible:
        yield "a share above 1"


def faults(numbers: range) -> Iterator[str]:
    """Each broken promise with the line that shows it, ready to be pasted."""
    with tempfile.TemporaryDirectory() as folder:
        desk = Desk(Path(folder))
        for number in numbers:
            command, path, flags = line_of(number, desk)
            began = time.process_time()
            answer = desk.ask(command, path, *flags)
            if answer.code == INTERRUPTED:  # the command took a signal that was for this program
                raise KeyboardInterrupt
            found = [*broken(answer, time.process_time() - began)]
            if number % TURNED_ONE_IN == 0 and number % PREDICTED_ONE_IN and command in LIGHT:
                place, twice, key, way = DIRECTIONS[number // TURNED_ONE_IN % len(DIRECTIONS)]
                after = desk.ask(command, path, *flags, "--set", f"{place}={twice}")
                found += turned(answer, after, key, way)
            desk.asked.clear()
            yield from (f"{number}: {fault}\n    {command} {' '.join(flags)}" for fault in found)


def main(args: list[str]) -> int:
    """Print what breaks; the exit code is 1 where something does."""
    first = int(args[1]) if len(args) > 1 else 0
    bad = 0
    for fault in faults(range(first, first + int(args[0] if args else 200))):
        bad += 1
        sys.stdout.write(f"{fault}\n")
        sys.stdout.flush()
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
