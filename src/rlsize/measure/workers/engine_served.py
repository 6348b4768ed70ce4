"""
A vLLM server of our own on loopback, updated through its own routes: /pause, /collective_rpc or the like, /resume.

A server has them in its development mode, which is how frameworks start one for RL. Requests are streamed by threads;
the tokens of the first one tell when the engine makes any.
"""

from __future__ import annotations

import http.client
import json
import os
import queue
import subprocess
import sys
import threading
import time
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any

from rlsize.measure.workers.engine_ways import free_port

if TYPE_CHECKING:
    from pathlib import Path

SILENT_SECONDS = 120.0  # longest gap between two tokens, and longest call
INTERFACE = "POST /pause?mode=keep, /collective_rpc reload_weights, /resume"


class ServedEngine:
    """
    A server with a constant number of streams.

    Args:
        checkpoints: Folders of weights, by seed.
        job: The job.
        options: Arguments of the engine.
        probe: Tokens of the prompt whose greedy answer is asked for, and how many tokens that has.

    Raises:
        OSError: It did not start.
    """

    interface, pauses = INTERFACE, True

    def __init__(
        self, checkpoints: dict[int, Path], job: dict[str, Any], options: dict[str, Any], probe: tuple[list[int], int]
    ) -> None:
        self._checkpoints, self._probe, self._port = checkpoints, probe, free_port()
        self._requests: int = job["requests"]
        self._prompt: int = job["prompt_tokens"]
        self._length: int = options["max_model_len"] - self._prompt
        self._moments: queue.SimpleQueue[float] = queue.SimpleQueue()
        self._streams: list[threading.Thread] = []
        self._ended = threading.Event()
        self._numbers = count()
        argv = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--host", "127.0.0.1"]
        argv += ["--port", str(self._port), "--served-model-name", "m", "--skip-tokenizer-init", *flags(options)]
        process = subprocess.Popen(argv, env={**os.environ, "VLLM_SERVER_DEV_MODE": "1"})  # noqa: S603 (vLLM's own)
        until = time.monotonic() + job["start_seconds"]
        while True:
            with suppress(OSError, http.client.HTTPException):
                self._call("GET", "/health")
                return
            if process.poll() is not None or time.monotonic() > until:
                raise OSError("the server did not start")
            time.sleep(0.2)

    def answer(self) -> list[int]:
        """A greedy answer of the weights as they are; nothing else runs, and no cache of older weights helps."""
        self._ended.set()
        for stream in self._streams:
            stream.join()
        self._streams = []
        self._call("POST", "/reset_prefix_cache")
        prompt, tokens = self._probe
        asked = self._asked(prompt, tokens) | {"temperature": 0.0, "return_token_ids": True}
        found: list[int] = json.loads(self._call("POST", "/v1/completions", asked))["choices"][0]["token_ids"]
        return found

    def steps(self, number: int) -> list[float]:
        """Wait for so many tokens of the first stream; the moments at which they came. [s]"""
        if not self._streams:
            self._ended = threading.Event()
            self._moments = queue.SimpleQueue()
            self._streams = [threading.Thread(target=self._stream, args=(place,)) for place in range(self._requests)]
            for stream in self._streams:
                stream.daemon = True
                stream.start()
        return [self._moments.get(timeout=SILENT_SECONDS) for _ in range(number)]

    def pause(self) -> None:
        """Freeze what runs; it keeps its place and its KV cache."""
        self._call("POST", "/pause?mode=keep")

    def resume(self) -> None:
        """Go on where it was."""
        self._call("POST", "/resume")

    def prepare(self, seed: int) -> None:
        """Nothing: the checkpoints are written."""

    def update(self, seed: int) -> None:
        """Give the engine the weights of a seed."""
        told = {"method": "reload_weights", "kwargs": {"weights_path": str(self._checkpoints[seed])}}
        self._call("POST", "/collective_rpc", told)

    def _asked(self, prompt: list[int], tokens: int) -> dict[str, Any]:
        return {"model": "m", "prompt": prompt, "max_tokens": tokens, "ignore_eos": True, "detokenize": False}

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> bytes:
        connection = self._sent(method, path, body)
        try:
            with connection.getresponse() as answer:
                content = answer.read()
                if answer.status != http.client.OK:
                    raise OSError(f"{path} answers {answer.status}: {content[:300].decode('utf-8', 'replace')}")
                return content
        finally:
            connection.close()

    def _sent(self, method: str, path: str, body: dict[str, Any] | None) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=SILENT_SECONDS)
        connection.request(method, path, json.dumps(body or {}), {"Content-Type": "application/json"})
        return connection

    def _stream(self, place: int) -> None:
        """Keep one request running."""
        ended, moments = self._ended, self._moments
        while not ended.is_set():
            number = next(self._numbers)
            prompt = [10 + (number * 31 + place_) % 500 for place_ in range(self._prompt)]
            asked = self._asked(prompt, self._length) | {"stream": True}
            connection = self._sent("POST", "/v1/completions", asked)
            try:
                for line in connection.getresponse():
                    if ended.is_set():
                        break
                    if place == 0 and b'"choices"' in line:
                        moments.put(time.perf_counter())
            finally:
                connection.close()


def flags(options: dict[str, Any]) -> list[str]:
    """
    Arguments of `LLM` as flags of a server.

    >>> flags({"max_model_len": 512, "enforce_eager": True, "swap": None, "a": {"b": 1}})
    ['--max-model-len', '512', '--enforce-eager', '--a', '{"b": 1}']
    """
    found = []
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        if value is True:
            found.append(flag)
        elif value is not None and value is not False:
            found += [flag, value if isinstance(value, str) else json.dumps(value)]
    return found
