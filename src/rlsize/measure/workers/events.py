"""What a worker tells rlsize: one JSON object per line, in the file that the environment names."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

OUT_OF_MEMORY = 70  # exit code
MOST_TOLD = 400  # characters of an error
NO_MEMORY = ("out of memory", "allocate memory", "bad_alloc")  # as torch and the system say it


def say(event: str, **fields: Any) -> None:
    """Tell one event; without a file, as when a worker is run by hand, it is printed."""
    line = json.dumps({"event": event, **fields}) + "\n"
    path = os.environ.get("RLSIZE_EVENTS")
    if path is None:
        sys.stdout.write(line)
        sys.stdout.flush()
        return
    with open(path, "a", encoding="utf-8") as events:  # noqa: PTH123 (one write of one line, so that lines stay whole)
        events.write(line)


def say_why(error: Exception, **fields: Any) -> int:
    """Tell what a worker cannot go on for, as `out_of_memory` or `failed`; returns the exit code that it ends with."""
    told = str(error).lower()
    memory = isinstance(error, MemoryError) or any(words in told for words in NO_MEMORY)
    text = " ".join(f"{type(error).__name__}: {error}".split())[:MOST_TOLD]
    say("out_of_memory" if memory else "failed", text=text, **fields)
    return OUT_OF_MEMORY if memory else 1
