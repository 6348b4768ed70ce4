"""
A Python for `--engine-python` that has all libraries, by its word: engines are stubs, and torchrun starts a rank.

Its rank has a session of its own, as those of torchrun have, and hears no polite request; an engine that loads has a
process without an environment.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

RANK = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
FACTS = {
    "versions": {}, "gpus": [], "world": 1, "params": 1e6, "layers": 1, "attention": "none", "config": {},
}  # fmt: skip


def say(event: str, **fields: object) -> None:
    """Tell one event."""
    with Path(os.environ["RLSIZE_EVENTS"]).open("a", encoding="utf-8") as out:
        out.write(json.dumps({"event": event, **fields}) + "\n")


def main(words: list[str]) -> None:
    """Be whoever is asked for."""
    if words[0] == "-c":
        sys.stdout.write(json.dumps(words[2:]))
    elif "rlsize.measure.workers.rollout_offline" in words:
        if os.environ.get("STUB_LOADS"):
            told = [sys.executable, "-c", RANK, os.environ["RLSIZE_CASE"]]
            subprocess.run(told, check=False, env={})  # as one that writes a title over its environment
        stub = Path(__file__).with_name("engine_stub.py")
        os.execv(sys.executable, [sys.executable, str(stub), "64"])  # noqa: S606 (the stub)
    elif "torch.distributed.run" in words:
        say("ready", **FACTS)
        subprocess.run([sys.executable, "-c", RANK], check=False, start_new_session=True)


if __name__ == "__main__":
    main(sys.argv[1:])
