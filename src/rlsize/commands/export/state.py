"""The counts of an exporter on disk, written whole after each change."""

from __future__ import annotations

import json
import math
from pathlib import Path

from rlsize.errors import Fault, InputError
from rlsize.estimates.run_counts import Counters
from rlsize.readers.yaml_documents import read_text
from rlsize.writers.files import check_target, write_whole


def read_counters(path: str | None) -> Counters:
    """
    The counters as an earlier process left them; new ones where there is no file.

    Raises:
        InputError: The file is none of ours, or cannot be written.
    """
    if path is None:
        return Counters({}, {}, "")
    check_target(path, force=True)
    if not Path(path).exists():
        return Counters({}, {}, "")
    text = read_text(path)
    try:
        found = json.loads(text)
        totals, sums = ({str(key): float(value) for key, value in found[name].items()} for name in ("totals", "sums"))
        first = str(found["first"])
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError):
        raise InputError(Fault("holds no counts of `rlsize export`", path, "name another --state")) from None
    if not all(math.isfinite(value) and value >= 0 for value in (*totals.values(), *sums.values())):
        raise InputError(Fault("holds counts that are no counts", path, "name another --state"))
    return Counters(totals, sums, first)


def write_counters(path: str | None, counters: Counters) -> None:
    """
    Keep them; nothing where no file is named.

    Raises:
        InputError: The disk refused.
    """
    if path is not None:
        content = {"first": counters.first, "sums": counters.sums, "totals": counters.totals}
        write_whole(path, json.dumps(content) + "\n", force=True)
