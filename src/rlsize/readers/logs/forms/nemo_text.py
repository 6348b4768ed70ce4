"""
NeMo-RL's console: blocks of results, timing and performance, one bullet for each figure.

Source: nemo_rl/algorithms/grpo.py and utils.py (print_performance_metrics), v0.7.0. A block is whole when its last
line is there, or when the log goes on behind it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rlsize.readers.logs.cursor import Cursor
from rlsize.readers.logs.forms import Form
from rlsize.readers.logs.rows import Row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlsize.readers.logs.cursor import Line
    from rlsize.readers.logs.rows import Skips
    from rlsize.readers.logs.source import Blocks

_BEGIN = "Training Results:"
_STEP = re.compile(r"={3,} *Step +(\d{1,15})(?:/\d+)? *=*")
_BULLET = re.compile(r"(?:•|(?:^|\s)-) +([A-Za-z][^:]*?) *: +(-?\d[\d,]*\.?\d*(?:e[-+]?\d+)?|nan|inf)(s|%)?(?= |$)")
_HEADING = re.compile(
    r"(Validation|Training Results|Timing|Performance Metrics|Throughputs)[\w ()]*:? *$", re.IGNORECASE
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
    from rlsize.readers.logs.merging import finished

    cursor = Cursor(blocks, skips)
    step: float | None = None
    line = cursor.find(b"Step ", b"Training Results:")
    while line is not None:
        header = _STEP.search(line.text)
        if header is not None and line.ended:
            step = float(header[1])
        if _BEGIN not in line.text:
            line = cursor.find(b"Step ", b"Training Results:")
            continue
        row, line = _block(cursor, line, step)
        step = None
        if row.sure:
            yield row
        else:
            yield from finished([row], (), skips)


def _block(cursor: Cursor, begin: Line, step: float | None) -> tuple[Row, Line | None]:
    """The block that a line begins, and the line that follows it."""
    values: dict[str, float] = {}
    training = True
    sure = False
    line = cursor.line()
    while line is not None:
        if _BEGIN in line.text or _STEP.search(line.text):
            return Row(step, values, begin.place), line
        heading = _HEADING.search(line.text)
        bullet = _BULLET.search(line.text)
        if heading is not None and bullet is None:
            training = not heading[1].lower().startswith("validation")
        elif bullet is not None and training and line.ended:
            _note(values, bullet)
            sure = sure or bullet[1] == _LAST
        elif bullet is None and sure:
            return Row(step, values, begin.place), line
        line = cursor.line()
    return Row(step, values, begin.place, sure=sure), None


def _note(values: dict[str, float], bullet: re.Match[str]) -> None:
    """Add a figure under the key that the other loggers have for it; the first one of a block counts."""
    name, text, unit = bullet.groups()
    value = float(text.replace(",", ""))
    if unit == "%":
        value /= 100.0
    key = _NAMES.get(name) or (f"timing/train/{name}" if unit == "s" else name)
    values.setdefault(key, value)


FORM = Form(name="text blocks", rows=rows, marks=(b"Training Results:",), framework="nemo-rl")
