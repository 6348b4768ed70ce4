"""
New weights for a vLLM that generates, as RL gives them: pause, keep what runs, update, resume.

The job is a JSON file: model, dtype, engine (arguments of `LLM`), requests, prompt_tokens, seed, seconds, served
(through the routes of a server). What it tells: `ready`, an `update` for each repeat and `done`; `failed` or
`out_of_memory` where it cannot go on.

Updates alternate between two sets of weights. After each one, a greedy answer must be the one of those weights: the
first set's is known from the start, and the second one's must differ from it and stay the same.

Without the pause, engine steps would run on weights that are half there, and recent versions die of it.
"""

from __future__ import annotations

import http.client
import inspect
import json
import os
import queue
import subprocess
import sys
import threading
import time
import traceback
from contextlib import suppress
from itertools import count, pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from rlsize.measure.workers.engine_ways import free_port
from rlsize.measure.workers.events import say, say_why

if TYPE_CHECKING:
    from rlsize.measure.workers.engine_ways import FromDisk, OverNccl

LEAST_REPEATS = 5
STEADY_STEPS = 12  # engine steps before an update, from which the normal step is taken
AFTER_STEPS = 4  # engine steps after it, so that the gap is closed
ANSWER_TOKENS = 16
PROBE = tuple(range(3, 35))

SILENT_SECONDS = 120.0  # longest gap between two tokens, and longest call
INTERFACE = "POST /pause?mode=keep, /collective_rpc reload_weights, /resume"


class BusyEngine:
    """
    vLLM with a constant number of requests in flight.

    Args:
        llm: vLLM's `LLM`, whose engine runs in a process of its own.
        job: The job.
    """

    def __init__(self, llm: Any, job: dict[str, Any]) -> None:
        self.llm = llm
        self._engine = llm.llm_engine
        config = self._engine.vllm_config.model_config
        self._vocabulary: int = config.get_vocab_size()
        self._prompt: int = job["prompt_tokens"]
        self._length: int = config.max_model_len - self._prompt
        self._requests: int = job["requests"]
        self.pauses = "mode" in inspect.signature(llm.sleep).parameters  # versions before have no pause that keeps
        self._added = 0
        self._running: set[str] = set()

    def answer(self) -> list[int]:
        """A greedy answer of the weights as they are; nothing else runs, and no cache of older weights helps."""
        from vllm import SamplingParams

        self._stop()
        self.llm.reset_prefix_cache()
        params = SamplingParams(temperature=0.0, max_tokens=ANSWER_TOKENS, ignore_eos=True, detokenize=False)
        probe = {"prompt_token_ids": [token % self._vocabulary for token in PROBE]}
        [output] = self.llm.generate([probe], params, use_tqdm=False)
        return list(output.outputs[0].token_ids)

    def steps(self, count: int) -> list[float]:
        """Run steps that bring tokens; the moments at which they came. [s]"""
        moments: list[float] = []
        while len(moments) < count:
            self._fill()
            outputs = self._engine.step()
            self._running.difference_update(output.request_id for output in outputs if output.finished)
            if outputs:
                moments.append(time.perf_counter())
        return moments

    def pause(self) -> None:
        """Freeze what runs; it keeps its place and its KV cache."""
        if self.pauses:
            self.llm.sleep(level=0, mode="keep")

    def resume(self) -> None:
        """Go on where it was."""
        if self.pauses:
            self.llm.wake_up(tags=["scheduling"])

    def _fill(self) -> None:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        while len(self._running) < self._requests:
            name = f"load {self._added}"
            params = SamplingParams(
                max_tokens=self._length, ignore_eos=True, detokenize=False, output_kind=RequestOutputKind.DELTA
            )
            prompt = [(self._added * 31 + place) % self._vocabulary for place in range(self._prompt)]
            self._engine.add_request(name, {"prompt_token_ids": prompt}, params)
            self._running.add(name)
            self._added += 1

    def _stop(self) -> None:
        self._engine.abort_request(list(self._running))
        while self._engine.has_unfinished_requests():
            self._engine.step()
        self._running.clear()


def main(job: dict[str, Any], folder: Path) -> None:
    """Start the engine from the first weights, then update it again and again."""
    engine, way, total = _started(job, folder)
    known = {job["seed"]: engine.answer()}
    began = time.perf_counter()
    count = 0
    while count < LEAST_REPEATS or time.perf_counter() - began < job["seconds"]:
        count += 1
        seed = job["seed"] + count % 2
        way.prepare(seed)
        found = timed_update(engine, way, seed)
        answer = engine.answer()
        others = [tokens for other, tokens in known.items() if other != seed]
        loaded = known.setdefault(seed, answer) == answer and answer not in others
        say("update", **found, bytes=total, loaded=loaded)
    say("done")


def _started(
    job: dict[str, Any], folder: Path
) -> tuple[BusyEngine | ServedEngine, FromDisk | OverNccl | ServedEngine, int]:
    import torch
    import transformers
    import vllm

    from rlsize.measure.workers.engine_ways import FromDisk, OverNccl, built, checkpoints, nccl_possible, weight_bytes

    gpus = int(job["engine"].get("tensor_parallel_size", 1))
    nccl = not job["served"] and nccl_possible(gpus)
    seeds = (job["seed"],) if nccl else (job["seed"], job["seed"] + 1)
    model = built(job["model"], job["dtype"])
    written, total = checkpoints(model, seeds, folder), weight_bytes(model)
    del model
    options = {**job["engine"], "model": str(written[job["seed"]]), "dtype": job["dtype"], "seed": job["seed"]}
    if nccl:
        options["weight_transfer_config"] = {"backend": "nccl"}
    engine: BusyEngine | ServedEngine
    way: FromDisk | OverNccl | ServedEngine
    if job["served"]:
        engine = way = ServedEngine(written, job, options, (list(PROBE), ANSWER_TOKENS))
    else:
        llm = vllm.LLM(skip_tokenizer_init=True, **options)
        way = OverNccl(llm, job, gpus) if nccl else FromDisk(llm, written)
        engine = BusyEngine(llm, job)
    cuda = torch.cuda.is_available()
    paused = engine.pauses and engine is not way
    say(
        "ready",
        interface=f"LLM.sleep(0, keep), {way.interface}, wake_up" if paused else way.interface,
        pauses=engine.pauses,
        versions={"vllm": vllm.__version__, "torch": torch.__version__, "transformers": transformers.__version__},
        gpus=[torch.cuda.get_device_name(index) for index in range(gpus)] if cuda else [],
    )
    return engine, way, total


def timed_update(
    engine: BusyEngine | ServedEngine, way: FromDisk | OverNccl | ServedEngine, seed: int
) -> dict[str, float]:
    """
    One update while requests are in flight: the seconds of the update itself, and for how long no token came.

    The latter is the longest gap between tokens, less a normal step: pause and resume are in it. All three are called
    from a thread, as a trainer would call them, so that tokens are seen when they come.
    """
    before = engine.steps(STEADY_STEPS)
    normal = median(later - earlier for earlier, later in pairwise(before[1:]))
    spent: list[float] = []
    failed: list[BaseException] = []

    def update() -> None:
        try:
            engine.pause()
            start = time.perf_counter()
            way.update(seed)
            spent.append(time.perf_counter() - start)
            engine.resume()
        except BaseException as error:  # noqa: BLE001 (it is raised again in the main thread)
            failed.append(error)

    thread = threading.Thread(target=update)
    thread.start()
    moments = before[-1:]
    while thread.is_alive():
        moments += engine.steps(1)
    thread.join()
    if failed:
        raise failed[0]
    moments += engine.steps(AFTER_STEPS)
    longest = max(later - earlier for earlier, later in pairwise(moments))
    return {"seconds": spent[0], "pause_seconds": max(0.0, longest - normal), "step_seconds": normal}


def _run() -> None:
    path = Path(sys.argv[1])
    job = json.loads(path.read_text(encoding="utf-8"))
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "1"  # in one process, nothing could be seen while it updates
    try:
        main(job, path.parent)
    except Exception as error:  # noqa: BLE001 (whatever it is, it is told)
        code = say_why(error)
        traceback.print_exc()
        sys.exit(code)


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


if __name__ == "__main__":
    _run()
