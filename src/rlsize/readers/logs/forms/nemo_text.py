"""
NeMo-RL's console: blocks of results, timing and performance, one bullet for each figure.

Source: nemo_rl/algorithms/grpo.py and utils.py (print_performance_metrics), v0.7.0. A block is whole when its last
line is there, or when the log goes on behind it.
"""

from __future__ import annotations

import re
from dataclasses import field
from typing import TYPE_CHECKING

from rlsize.dataclass import dataclass
from rlsize.readers.logs.figures import COMMA, CUT, Row
from rlsize.readers.logs.forms import Form
from rlsize.readers.logs.numbers import decimal
from rlsize.readers.logs.source import Cursor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlsize.readers.logs.figures import Skips
    from rlsize.readers.logs.source import Blocks, Line

_BEGIN = "Training Results:"
_MARKS = (b"Step ", b"Training Results:")
_STEP = re.compile(r"(?<!=)={3,}+ {0,8}Step {1,8}(\d{1,15})")
_BULLET = re.compile(
    r"(?:•|(?:^|\s)-) {1,8}([A-Za-z][^:]{0,100}?) {0,8}: {1,8}"
    r"(-?\d[\d,]*+(?:\.\d*+)?(?:e[-+]?\d++)?|nan|inf)(s|%)?(?= |$)"
)
_HEADING = re.compile(
    r"(Validation|Training Results|Timing|Performance Metrics|Throughputs)[\w ()]{0,60}:? {0,8}$", re.IGNORECASE
)
_LAST = "Generation Worker Group (Tokens/sec)"
_NAMES = {
    "Total step time": "timing/train/total_step_time",
    "Mean Generation Length": "train/mean_gen_tokens_per_sample",
    "Mean Total Tokens per Sample": "train/mean_total_tokens_per_sample",
    "Avg Trajectory Age": "train/avg_trajectory_age",
    "Average Trajectory Age": "train/avg_trajectory_age",
    "E2E (Samples/sec)": "performance/samples_per_sec",
    "E2E (Tokens/sec)": "performance/tokens_per_sec",
    "E2E (Samples/sec/gpu)": "performance/samples_per_sec_per_gpu",
    "E2E (Tokens/sec/gpu)": "performance/tokens_per_sec_per_gpu",
    "Policy Training (Tokens/sec/gpu)": "performance/policy_training_tokens_per_sec_per_gpu",
    "Policy and Reference Logprobs (Tokens/sec/gpu)": (
        "performance/policy_and_reference_logprobs_tokens_per_sec_per_gpu"
    ),
    "Training Worker Group (Tokens/sec)": "performance/training_worker_group_tokens_per_sec",
    "Training Worker Group (Tokens/sec/gpu)": "performance/training_worker_group_tokens_per_sec_per_gpu",
    "Generation Worker Group (Tokens/sec)": "performance/generation_tokens_per_sec",
    "Generation Worker Group (Tokens/sec/gpu)": "performance/generation_tokens_per_sec_per_gpu",
    "Training Model Floating Point Utilization": "performance/train_fp_utilization",
}
"""What the console calls the keys of the other loggers."""


def rows(blocks: Blocks, skips: Skips) -> Iterator[Row]:
    """The blocks of a log."""
    cursor = Cursor(blocks, skips)
    step: float | None = None
    after: set[str] = set()
    ends = False
    line = cursor.find(*_MARKS)
    while line is not None:
        header = _STEP.search(line.text)
        if header is not None and line.ended:
            step = float(header[1])
        if _BEGIN not in line.text:
            line = cursor.find(*_MARKS)
            continue
        block = _Block()
        follows = _read(block, cursor, skips)
        ends = ends or block.last
        if block.last == ends and (follows is not None or (block.last and after <= block.after)):
            yield Row(step, block.values, line.place)
        else:
            skips.add(CUT, line.place)
        line, step, after = follows, None, block.after


@dataclass(slots=True)
class _Block:
    """
    What a block says.

    Args:
        values: Its figures.
        after: The keys of those behind the line that is the last one in most versions.
        last: Whether that line is there.
    """

    values: dict[str, float] = field(default_factory=dict)
    after: set[str] = field(default_factory=set)
    last: bool = False


def _read(block: _Block, cursor: Cursor, skips: Skips) -> Line | None:
    """Fill a block with the lines that follow its first one, and give the line behind it."""
    training = True
    while (line := cursor.line()) is not None:
        if _BEGIN in line.text or _STEP.search(line.text):
            return line
        heading = _HEADING.search(line.text)
        bullet = _BULLET.search(line.text)
        if bullet is not None and training and line.ended:
            if not _note(block, bullet):
                skips.add(COMMA, line.place)
        elif heading is not None and bullet is None:
            training = not heading[1].lower().startswith("validation")
        elif bullet is None and block.last and line.ended:
            return line
    return None


def _note(block: _Block, bullet: re.Match[str]) -> bool:
    """Add a figure under the key that the other loggers have for it, the first one of a block; False if it is none."""
    name, text, unit = bullet.groups()
    number = decimal(text)
    if number is None:
        return False
    key = _NAMES.get(name) or (f"timing/train/{name}" if unit == "s" else name)
    block.values.setdefault(key, number * (0.01 if unit == "%" else 1.0))
    if block.last:
        block.after.add(key)
    block.last = block.last or name == _LAST
    return True


FORM = Form(name="text blocks", rows=rows, marks=(b"Training Results:",), framework="nemo-rl")
