"""
The output rate of a rollout: as rlsize measures it, paired with vLLM's own benchmarks on identical work.

Offline against what `vllm bench throughput` prints (its JSON holds prompt and output tokens together), online against
`vllm bench serve`, through one server. Lengths are fixed, n and limits the same, everything is sent at once. The two
run in turn, A B A B ..., so that a machine that slows down slows both. Both ratios should lie within 5 % of 1.

    python -m benchmarks.rollout_rate PYTHON        # one that has vLLM; `make bench-engine` does this
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.pairs import PAIRS, show

from rlsize.commands.measure.rollout import scrape_as
from rlsize.estimates.rollout_rate import finite_batch
from rlsize.measure.instances import Instance, Launch, started
from rlsize.measure.jobs import command
from rlsize.measure.rollout import RolloutPlan, measure_rollout

if TYPE_CHECKING:
    from collections.abc import Iterator

PROMPT, RESPONSE, PROMPTS, GROUP = 128, 192, 32, 8
SERVED = 384  # requests of one sample each, through the server
SEQS, BLOCK, CONTEXT = 64, 32, 1024
TINY = {
    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 128, "intermediate_size": 256,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "vocab_size": 1024,
    "max_position_embeddings": 4096, "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": False,
    "hidden_act": "silu", "torch_dtype": "bfloat16", "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
TOKENIZER = """
import sys
from tokenizers import Tokenizer, models, pre_tokenizers
words = {"<unk>": 0, "<s>": 1, "</s>": 2} | {f"w{i}": i for i in range(3, 1024)}
tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer.save(sys.argv[1])
"""
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "0", "OMP_NUM_THREADS": "1",
}  # fmt: skip
LIMITS = (
    "--load-format", "dummy", "--dtype", "bfloat16", "--max-model-len", str(CONTEXT), "--max-num-seqs", str(SEQS),
    "--enforce-eager", "--block-size", str(BLOCK),
)  # fmt: skip
_OUTPUT = re.compile(r"([\d.,]+) output tokens/s")


def made_model(python: str, folder: Path) -> Path:
    """A tiny model: its configuration and a tokenizer, as vLLM's benchmarks want one."""
    model = folder / "model"
    model.mkdir()
    (model / "config.json").write_text(json.dumps(TINY), encoding="utf-8")
    words = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<s>",
        "eos_token": "</s>",
        "unk_token": "<unk>",
    }
    (model / "tokenizer_config.json").write_text(json.dumps(words), encoding="utf-8")
    subprocess.run([python, "-c", TOKENIZER, str(model / "tokenizer.json")], check=True)
    return model


def by_rlsize(instance: Instance, group: int, prompts: int, seed: int, *, fresh: bool) -> float:
    """Output rate of one batch that is waited for to its end, after a warm-up. [token/s]"""
    plan = RolloutPlan(
        prompts=prompts, group_size=group, prompt_tokens=PROMPT, mean=RESPONSE, cv=0.0, cap=float(RESPONSE),
        concurrencies=(), most=SEQS, seed=seed,
    )  # fmt: skip
    if fresh:  # as a sweep does before the batch, and the warm-up of vLLM's benchmarks
        measure_rollout([instance], replace(plan, seed=seed + 1000), lambda *_: None)
    record = measure_rollout([instance], plan, lambda *_: None)
    batch = finite_batch(record.batch, record.batch_prompts, record.batch_fraction)
    if batch is None or batch.prompts != prompts:
        raise SystemExit("rlsize did not run the whole batch")
    return batch.tokens_per_second


def by_bench_throughput(program: str, model: Path) -> float:
    """What `vllm bench throughput` prints. [token/s]"""
    argv = [
        program, "bench", "throughput", "--model", str(model), "--dataset-name", "random", "--random-input-len",
        str(PROMPT), "--random-output-len", str(RESPONSE), "--num-prompts", str(PROMPTS), "--n", str(GROUP),
        "--num-warmups", str(PROMPTS), "--disable-detokenize", *LIMITS,
    ]  # fmt: skip
    done = subprocess.run(argv, check=True, capture_output=True, text=True)
    found = _OUTPUT.search(done.stdout)
    if found is None:
        raise SystemExit(f"vllm bench throughput printed no output rate: {done.stdout[-500:]}")
    return float(found[1].replace(",", ""))


def by_bench_serve(program: str, model: Path, port: int, folder: Path) -> float:
    """What `vllm bench serve` saves. [token/s]"""
    argv = [
        program, "bench", "serve", "--backend", "openai", "--endpoint", "/v1/completions", "--host", "127.0.0.1",
        "--port", str(port), "--model", "tiny", "--tokenizer", str(model), "--dataset-name", "random",
        "--random-input-len", str(PROMPT), "--random-output-len", str(RESPONSE), "--num-prompts", str(SERVED),
        "--ignore-eos", "--temperature", "1", "--num-warmups", "8", "--save-result", "--result-dir", str(folder),
        "--result-filename", "served.json",
    ]  # fmt: skip
    subprocess.run(argv, check=True, capture_output=True)
    return float(json.loads((folder / "served.json").read_text(encoding="utf-8"))["output_throughput"])


@contextmanager
def served(program: str, model: Path, folder: Path) -> Iterator[int]:
    """A server on a port of loopback."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    argv = [program, "serve", str(model), "--served-model-name", "tiny", *LIMITS, "--host", "127.0.0.1"]
    with (folder / "serve.log").open("wb") as log:
        server = subprocess.Popen([*argv, "--port", str(port)], stdout=log, stderr=log, start_new_session=True)
    try:
        for _ in range(240):
            with (
                suppress(urllib.error.URLError, OSError),
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health"),
            ):
                break
            time.sleep(1.0)
        yield port
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def compare_offline(python: str, program: str, model: Path, folder: Path) -> None:
    """One engine of ours, and one of theirs for each run."""
    engine = {
        "model": str(model), "load_format": "dummy", "dtype": "bfloat16", "max_model_len": CONTEXT,
        "max_num_seqs": SEQS, "enforce_eager": True, "block_size": BLOCK,
    }  # fmt: skip
    pairs = []
    for turn in range(PAIRS):
        job = {"engine": engine, "temperature": 1.0, "seed": 0}
        place = folder / f"engine-{turn}"
        place.mkdir()
        argv = command(python, "rollout_offline", job, place)
        [instance] = started([Launch("engine", argv, place, scrape_as("engine"))], 300.0)
        try:
            ours = by_rlsize(instance, GROUP, PROMPTS, turn, fresh=True)
        finally:
            instance.child.end()
        pairs.append((ours, by_bench_throughput(program, model)))
    show("rollout, offline", "vllm_bench_throughput", pairs)


def compare_online(program: str, model: Path, folder: Path) -> None:
    """Both through one server."""
    with served(program, model, folder) as port:
        job = {
            "base": f"http://127.0.0.1:{port}", "login": None, "temperature": 1.0, "vocabulary": 1000,
            "timeout_seconds": 30.0, "authority": None, "insecure": False,
        }  # fmt: skip
        place = folder / "client"
        place.mkdir()
        argv = command(sys.executable, "rollout_online", job, place)
        [instance] = started([Launch("server", argv, place, scrape_as("server"))], 300.0)
        try:
            pairs = [
                (by_rlsize(instance, 1, SERVED, turn, fresh=turn == 0), by_bench_serve(program, model, port, folder))
                for turn in range(PAIRS)
            ]
        finally:
            instance.child.end()
    show("rollout, online", "vllm_bench_serve", pairs)


def main() -> int:
    """Run both comparisons, or the one that is named."""
    python, *only = sys.argv[1:]
    program = str(Path(python).parent / "vllm")
    os.environ.update(ENVIRONMENT)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        model = made_model(python, folder)
        if "offline" not in only:
            compare_online(program, model, folder)
        if "online" not in only:
            compare_offline(python, program, model, folder)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
