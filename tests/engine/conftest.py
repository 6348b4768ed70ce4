"""
Fixtures for tests against real engines: a Python with torch and vLLM, tiny models, a server on loopback.

`make test-engine` builds that Python and names it in RLSIZE_ENGINE_PYTHON; without it these tests are skipped. Engines
are started here, listen on loopback only, and are ended with all that they started.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

BLOCK = 32  # the smallest KV block of vLLM's CPU backend
MAX_NUM_SEQS = 32
START_SECONDS = 600.0  # no test waits for it
REASON = "needs a Python with torch and vLLM: run `make test-engine`"
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
    "VLLM_CPU_OMP_THREADS_BIND": "0",  # one core for the engine, the rest for whoever measures it
    "OMP_NUM_THREADS": "1",
}
DTYPE = "float16"  # bfloat16 takes AMX, whose decode some virtual machines that list it cannot run
QWEN3 = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "vocab_size": 1024,
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
    "hidden_act": "silu",
    "torch_dtype": DTYPE,
    "attention_bias": False,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
QWEN3_MOE = {
    **QWEN3,
    "architectures": ["Qwen3MoeForCausalLM"],
    "model_type": "qwen3_moe",
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 64,
    "norm_topk_prob": True,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
}
_TOKENIZER = """
import sys
from tokenizers import Tokenizer, models, pre_tokenizers
words = {"<unk>": 0, "<s>": 1, "</s>": 2} | {f"w{i}": i for i in range(3, 1024)}
tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer.save(sys.argv[1])
"""
_TOKENIZER_CONFIG = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "bos_token": "<s>",
    "eos_token": "</s>",
    "unk_token": "<unk>",
    "model_max_length": 4096,
}


def pytest_runtest_setup() -> None:
    """Skip what needs an engine where there is none, with the way to get one."""
    if not os.environ.get("RLSIZE_ENGINE_PYTHON"):
        pytest.skip(REASON)


@pytest.fixture(scope="session", autouse=True)
def _plain_environment() -> Iterator[None]:
    """Engines see the same environment in every test, whoever starts them."""
    before = {name: os.environ.get(name) for name in ENVIRONMENT}
    os.environ.update(ENVIRONMENT)
    yield
    for name, value in before.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value


@pytest.fixture(scope="session")
def engine_python() -> str:
    """A Python with torch, transformers and vLLM."""
    return os.environ["RLSIZE_ENGINE_PYTHON"]


@pytest.fixture(scope="session")
def tiny_models(tmp_path_factory: pytest.TempPathFactory, engine_python: str) -> dict[str, Path]:
    """Folders of tiny models, dense and MoE: a config.json and a tokenizer, no weights."""
    found = {}
    for name, config in (("qwen3", QWEN3), ("qwen3_moe", QWEN3_MOE)):
        folder = tmp_path_factory.mktemp("models") / name
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
        (folder / "tokenizer_config.json").write_text(json.dumps(_TOKENIZER_CONFIG), encoding="utf-8")
        subprocess.run([engine_python, "-c", _TOKENIZER, str(folder / "tokenizer.json")], check=True)
        found[name] = folder
    return found


@dataclass(frozen=True)
class Server:
    """A running vLLM server."""

    url: str
    process: subprocess.Popen[bytes]

    def kill(self) -> None:
        """End it at once, with all that it started."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(120)


@pytest.fixture(scope="session")
def serve(engine_python: str, tiny_models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A context that serves the tiny dense model on a port of loopback."""

    @contextmanager
    def serving() -> Iterator[Server]:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        log = tmp_path_factory.mktemp("server") / "log"
        program = str(Path(engine_python).parent / "vllm")
        argv = [
            program, "serve", str(tiny_models["qwen3"]), "--served-model-name", "tiny", "--load-format", "dummy",
            "--dtype", DTYPE, "--max-model-len", "1024", "--max-num-seqs", str(MAX_NUM_SEQS), "--enforce-eager",
            "--block-size", str(BLOCK), "--host", "127.0.0.1", "--port", str(port),
        ]  # fmt: skip
        with log.open("wb") as out:
            process = subprocess.Popen(argv, stdout=out, stderr=out, start_new_session=True)
        server = Server(f"http://127.0.0.1:{port}", process)
        try:
            _await_health(server, log)
            yield server
        finally:
            server.kill()

    return serving


def _await_health(server: Server, log: Path) -> None:
    until = time.monotonic() + START_SECONDS
    while True:
        with (
            suppress(urllib.error.URLError, OSError),
            urllib.request.urlopen(  # noqa: S310 (a server of our own, on loopback)
                f"{server.url}/health", timeout=60
            ),
        ):
            return
        if server.process.poll() is not None or time.monotonic() > until:
            pytest.fail(f"the server did not start: {log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.5)


@pytest.fixture(scope="session")
def server(serve: Any) -> Iterator[Server]:
    """One server for all tests that leave it alive."""
    with serve() as running:
        yield running


@pytest.fixture(scope="session")
def start_measure(
    engine_python: str, start_rlsize: Callable[..., subprocess.Popen[str]]
) -> Callable[..., subprocess.Popen[str]]:
    """Starts `rlsize measure` as a process of its own, with small engines."""
    return lambda *args: start_rlsize("measure", *args, "--engine-python", engine_python)
