"""
A JSON file of metrics, each with its values by step: `{"timing/train/total_step_time": {"1": 67.5, "2": 68.1}}`.

Source: NeMo-RL tests/json_dump_tb_logs.py, v0.7.0. Every step is spread over the whole file: if that is not whole, no
step is.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rlsize.readers.logs.forms import Form
from rlsize.readers.logs.objects import json_object, numbers_of
from rlsize.readers.logs.rows import CUT, Row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlsize.readers.logs.rows import Skips
    from rlsize.readers.logs.source import Blocks

_METRIC = re.compile(rb'"([^"\n]{1,200})"\s*:\s*\{\s*"\d{1,15}"\s*:')
_LARGEST = 64 * 2**20


def rows(blocks: Blocks, skips: Skips) -> Iterator[Row]:
    """The steps of a dump, in the order of their numbers."""
    content = b""
    for block in blocks:
        content += block
        if len(content) > _LARGEST:
            skips.add("the file has more than 64 MiB", "the whole file")
            return
    try:
        text = content.decode("utf-8-sig", "replace").lstrip()
        found, _ = json_object(text, 0)
    except ValueError:
        skips.add(CUT, "the whole file")
        return
    steps: dict[float, dict[str, float]] = {}
    for key, values in found.items():
        for step, value in numbers_of(values if isinstance(values, dict) else {}).items():
            if step.isdecimal():
                steps.setdefault(float(step), {})[key] = value
    for number in sorted(steps):
        yield Row(number, steps[number], f"step {number:.0f}")


def head_keys(head: bytes) -> list[str]:
    """The metrics at the start of a file."""
    return [key.decode("utf-8", "replace") for key in _METRIC.findall(head)]


FORM = Form(name="metric dump", rows=rows, marks=(b"{",), whole_file=True, head_keys=head_keys)
