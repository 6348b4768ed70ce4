"""
Plays a rollout engine for the tests of those who drive one: counters that grow at a rate, samples that finish in turn.

It is no engine, and nothing that is measured on it is shown as a measurement. `python engine_stub.py LIMIT RATE` runs
out of memory, as an engine says it, when more than LIMIT samples are to run. `STUB_FILL` has it read so many prompt
tokens a second before a level's batch is full, while its rate rises; `STUB_HANG` has it make no token in phases of
that name, though its pages come.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

PAGE = (
    'vllm:generation_tokens_total{{engine="0"}} {tokens}\nvllm:num_requests_running{{engine="0"}} {running}\n'
    'vllm:num_requests_waiting{{engine="0"}} 0\nvllm:iteration_tokens_total_count{{engine="0"}} {steps}\n'
    'vllm:iteration_tokens_total_sum{{engine="0"}} {tokens}\nvllm:kv_cache_usage_perc{{engine="0"}} 0.5\n'
    'vllm:cache_config_info{{engine="0",block_size="16",num_gpu_blocks="100000"}} 1\n'
    'vllm:prompt_tokens_total{{engine="0"}} {prompts}\n'
    'vllm:request_success_total{{engine="0"}} {finished}\n'
)
STEP = 0.002  # seconds
commands: list[dict[str, Any]] = []
read = [0.0, 0.0]  # prompt tokens before this phase, and after its start


def say(event: str, **fields: Any) -> None:
    """Tell one event."""
    with Path(os.environ["RLSIZE_EVENTS"]).open("a", encoding="utf-8") as out:
        out.write(json.dumps({"event": event, **fields}) + "\n")


def listen() -> None:
    """Take commands as they come."""
    commands.extend(json.loads(line) for line in iter(sys.stdin.readline, ""))


def phase(command: dict[str, Any], begun: float, tokens: float) -> float:
    """Generate `concurrency` tokens in each step, until told to halt or done; the counter at the end."""
    running = command["concurrency"]
    todo = sum(samples * length for _, _, samples, length, *_ in command["groups"])
    asked = sum((prompt + sum(rest[1:2])) * samples for _, prompt, samples, *rest in command["groups"])
    pace = float(os.environ.get("STUB_FILL", "inf"))
    hangs = command["phase"].startswith(os.environ.get("STUB_HANG", "-"))
    start = tokens
    finished: list[tuple[float, int, int]] = []
    read[1] = read[0] + asked
    while True:
        now = time.perf_counter()
        done = bool(command["refill"]) is False and tokens - start >= todo
        spent = time.perf_counter() - begun
        full = min(1.0, spent * (pace if command["refill"] else 1e9) / asked) if finished else 0.0
        prompts = read[1] - asked * (1.0 - full)
        text = PAGE.format(tokens=tokens, running=running, steps=tokens / running, finished=0, prompts=prompts)
        say("page", phase=command["phase"], seconds=now, text=text, finished=finished, in_flight=running, streamed=0)
        if done or (command["refill"] and any(each["do"] == "halt" for each in commands)):
            read[0] = read[1]
            return tokens
        time.sleep(0.05)
        tokens += 0 if hangs else full * running * round((time.perf_counter() - now) / STEP)
        finished = [(time.perf_counter(), running, running)]


def main() -> None:
    """Be ready, and do what is asked."""
    limit = int(sys.argv[1])
    threading.Thread(target=listen, daemon=True).start()
    tokens = 0.0
    say("ready", page="", max_num_seqs=64, block_size=16, gpus=[], versions={})
    while True:
        while not commands:
            time.sleep(0.01)
        command = commands.pop(0)
        if command["do"] != "load":
            continue
        if command["concurrency"] > limit and command["phase"].startswith("level"):
            sys.stderr.write("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n")
            sys.exit(1)
        begun = time.perf_counter()
        say("begun", phase=command["phase"], seconds=begun)
        tokens = phase(command, begun, tokens)
        commands.clear()
        say("idle", phase=command["phase"], seconds=time.perf_counter(), asked=1)


if __name__ == "__main__":
    main()
