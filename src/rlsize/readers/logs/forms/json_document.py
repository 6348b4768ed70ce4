"""
One JSON document with the rows of a run: the `log_history` of transformers' `trainer_state.json`, histories and
summaries of W&B, and NeMo-RL's dump (`{"timing/train/total_step_time": {"1": 67.5, "2": 68.1}}`).

Of a document that breaks off, the flat objects before count, each of which proves by its brace that it is whole.
Source: transformers/trainer_callback.py (TrainerState), NeMo-RL tests/json_dump_tb_logs.py, v0.7.0.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rlsize.readers.byte_sources import json_of
from rlsize.readers.logs.figures import CUT, Row
from rlsize.readers.logs.forms import Form
from rlsize.readers.logs.numbers import flat_numbers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlsize.readers.logs.figures import Skips
    from rlsize.readers.logs.source import Blocks

_LARGEST = 64 * 2**20
_LOOKED_AT = 200
_KEY = re.compile(rb'"([^"\n]{1,200})"\s*:')
_START = re.compile(rb'(?:\xef\xbb\xbf)?\s*(?:\[\s*)?\{\s*"')
_FLAT = re.compile(r"\{[^{}]*\}")
_STEP = re.compile(r"\d{1,15}")


def rows(blocks: Blocks, skips: Skips) -> Iterator[Row]:
    """The rows of a document."""
    content = b""
    for block in blocks:
        content += block
        if len(content) > _LARGEST:
            skips.add("the file has more than 64 MiB", "the whole file")
            return
    text = content.decode("utf-8-sig", "replace")
    found = json_of(text)
    if found is None:
        skips.add(CUT, "the end of the document")
        found = [entry for each in _FLAT.finditer(text) if (entry := json_of(each[0])) is not None]
    for place, (step, record) in enumerate(_records(found), 1):
        yield Row(step, flat_numbers(record), f"entry {place:,}")


def _records(found: object) -> list[tuple[float | None, dict[str, object]]]:
    """The objects that are rows: the longest list of objects, columns put together, else the document itself."""
    if isinstance(found, list):
        return [(None, entry) for entry in found if isinstance(entry, dict)]
    if not isinstance(found, dict):
        return []
    lists = {key: inner for key, inner in found.items() if isinstance(inner, list)}
    tables = [inner for inner in lists.values() if inner and all(isinstance(entry, dict) for entry in inner)]
    if tables:
        return _records(max(tables, key=len))
    steps: dict[float, dict[str, object]] = {}
    for key, inner in found.items():
        if isinstance(inner, dict) and inner and all(_STEP.fullmatch(at) for at in inner):
            for at, value in inner.items():
                steps.setdefault(float(at), {})[key] = value
    if steps:
        return [(step, steps[step]) for step in sorted(steps)]
    count = max(map(len, lists.values()), default=0)
    columns = [{key: inner[at] for key, inner in lists.items() if at < len(inner)} for at in range(count)]
    return [(None, column) for column in columns] or [(None, found)]


def head_keys(head: bytes) -> list[str]:
    """The keys of a document, or of its start where that is all there is; none of objects on lines of their own."""
    found = json_of(head.decode("utf-8-sig", "replace"))
    if found is not None:
        return [key for _, record in _records(found)[:_LOOKED_AT] for key in flat_numbers(record)]
    lines = b"\n{" in head.rstrip() or not _START.match(head)
    return [] if lines else [key.decode("utf-8", "replace") for key in _KEY.findall(head)]


FORM = Form(name="JSON document", rows=rows, marks=(b"{", b"["), whole_file=True, head_keys=head_keys)
