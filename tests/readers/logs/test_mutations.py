"""Logs as versions, terminals and people leave them: renamed, wrapped, halved, damaged; read rightly, or told."""

from __future__ import annotations

import random
import re
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import pytest
from tests.effort import NIGHTLY

from rlsize.errors import InputError
from rlsize.readers.logs.reading import read_log

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlsize.facts.run_log import RunLog

DATA = Path(__file__).parent / "data"
LOGS = sorted(path for path in DATA.iterdir() if path.suffix in {".log", ".jsonl"})
MUTATIONS = 5_000 if NIGHTLY else 400
RATES = ("step_seconds", "generation_seconds", "update_seconds", "sync_seconds", "response_tokens", "total_tokens")


def _lines(chance: random.Random, text: str) -> tuple[list[str], int, int]:
    lines = text.splitlines(keepends=True)
    start = chance.randrange(len(lines))
    return lines, start, min(len(lines), start + chance.randrange(1, 6))


def dropped(chance: random.Random, text: str) -> str:
    """Some lines are missing."""
    lines, start, end = _lines(chance, text)
    return "".join(lines[:start] + lines[end:])


def doubled(chance: random.Random, text: str) -> str:
    """Some lines stand twice, as where logs of two files are joined."""
    lines, start, end = _lines(chance, text)
    return "".join(lines[:end] + lines[start:])


def wrapped(chance: random.Random, text: str) -> str:
    """A terminal broke long lines."""
    width = chance.randrange(40, 200)
    return "\n".join(line[at : at + width] for line in text.split("\n") for at in range(0, max(1, len(line)), width))


def cut(chance: random.Random, text: str) -> str:
    """Beginning or end is missing."""
    at = chance.randrange(len(text)) + 1
    return text[at:] if chance.random() < 0.5 else text[:at]


def stamped(chance: random.Random, text: str) -> str:
    """Another logger's stamp before each line."""
    stamp = chance.choice(
        ["2026-03-01 10:00:00,123 INFO ", "[rank0]: ", "(Main pid=9, ip=10.0.0.1) ", "I0301 10:00:00.1 9 a.py:1] "]
    )
    return re.sub(r"(?m)^(?=.)", stamp, text)


def renamed(chance: random.Random, text: str) -> str:
    """Another version's names."""
    old, new = chance.choice(
        [("timing_s/", "timing/"), ("perf/", "metrics/"), ("time/", "timer/"), ("_time", "_secs"), ("gen", "rollout")]
    )
    return text.replace(old, new)


def odd(chance: random.Random, text: str) -> str:
    """One number is none, far too large, or written with a comma."""
    numbers = [*re.finditer(r"(?<=[:=] )\d+\.\d+|(?<=:)\d+\.\d+", text)]
    if not numbers:
        return text
    found = chance.choice(numbers)
    return (
        text[: found.start()] + chance.choice(["nan", "1e20", "-5", found[0].replace(".", ",")]) + text[found.end() :]
    )


def damaged(chance: random.Random, text: str) -> str:
    """Foreign characters stand in it."""
    at = chance.randrange(len(text))
    return (
        text[:at] + "".join(chance.choice("{}[]'\":|,-\0\r\n\tžx=") for _ in range(chance.randrange(1, 9))) + text[at:]
    )


def shuffled(chance: random.Random, text: str) -> str:
    """Lines of several processes come in another order."""
    lines, start, end = _lines(chance, text)
    some = lines[start:end]
    chance.shuffle(some)
    return "".join(lines[:start] + some + lines[end:])


CHANGES: tuple[Callable[[random.Random, str], str], ...] = (
    *(dropped, doubled, wrapped, cut, stamped, renamed, odd, damaged, shuffled),
)


def _typical(log: RunLog, name: str) -> float | None:
    found = [value / (log.steps[0].updates or 1.0) for step in log.steps if (value := getattr(step, name))]
    return median(found) if found else None


@pytest.mark.long
def test_no_mutation_is_a_traceback_or_silently_wrong(tmp_path: Path) -> None:
    """Each is refused by name, or its rates are those of the log within a factor of two, or it says why."""
    whole = {path: (path.read_text("utf-8"), read_log(str(path))) for path in LOGS}
    file = tmp_path / "log"
    for seed in range(MUTATIONS):
        chance = random.Random(seed)
        path = chance.choice(LOGS)
        text, log = whole[path]
        for change in chance.sample(CHANGES, chance.randrange(1, 4)):
            text = change(chance, text).strip(" ") or "-"
        file.write_text(text, "utf-16" if chance.random() < 0.1 else "utf-8", newline="")
        try:
            found = read_log(str(file))
        except InputError as error:
            assert str(file) in str(error), seed
            continue
        if found.skipped or found.guessed or {*found.warnings} - {*log.warnings}:
            continue
        for name in RATES:
            before, after = _typical(log, name), _typical(found, name)
            assert before is None or after is None or 0.5 <= after / before <= 2.0, (seed, path.name, name)


OLD_AND_NEW = {  # how the frameworks' own histories renamed keys: prefixes, units, words
    "verl_file.jsonl": ((("timing_s/", "timing/"),), (("timing_s/", "time/"), ('/gen"', '/generate_sequences"'))),
    "slime.log": (
        (("perf/rollout_time", "rollout/time"),),
        (("perf/step_time", "perf/step_secs"), ("perf/update_weights_time", "perf/weight_sync_secs")),
    ),
    "openrlhf.log": ((("timing/", "time/"),), (("timing/ppo_train", "timing/policy_train"),)),
    "skyrl.log": (
        (("timing/train_critic_and_policy", "timing/policy_train"),),
        (("timing/step", "timing/step_total"),),
    ),
    "pipeline_rl.jsonl": ((("throughput/sec_per_step", "throughput/step_time_sec"),),),
    "nemo_rl_console.log": ((("Total step time", "Step time"), ("policy_training", "policy_train")),),
    "roll.log": ((("time/step_generate", "time/generate"),), (("time/step_train", "time/train_step"),)),
    "rlinf.jsonl": ((("time/rollout", "time/rollout_generate"),),),
    "trl_stdout.log": ((("'step_time'", "'step_time_s'"),),),
}


@pytest.mark.parametrize("name", sorted(OLD_AND_NEW))
def test_keys_that_a_version_renames_are_still_read(tmp_path: Path, name: str) -> None:
    """Each renaming leaves the figures as they were, and says that it guessed."""
    text = (DATA / name).read_text("utf-8")
    whole = read_log(str(DATA / name))
    file = tmp_path / name
    for renaming in OLD_AND_NEW[name]:
        new = text
        for old, now in renaming:
            assert old in new
            new = new.replace(old, now)
        file.write_text(new, "utf-8")
        found = read_log(str(file))
        assert found.guessed, renaming
        for field in ("step_seconds", "generation_seconds", "update_seconds"):
            assert _typical(found, field) == _typical(whole, field), (renaming, field)
