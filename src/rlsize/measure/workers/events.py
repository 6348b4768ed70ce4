"""What a worker tells rlsize: one JSON object per line, in the file that the environment names."""

from __future__ import annotations

import json
import os
import sys
from typing import Any


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
