"""
Tokens per second of a train step: as rlsize measures them, paired with a loop that was written by hand.

The loop shares no code with rlsize: transformers' own model and attention on a rectangle of tokens, FSDP2, AdamW, the
clock around each step. Both train the same tiny dense model on the same shapes, in one process on a CPU, with logits
computed again in backward. They run in turn, A B A B ..., so that a machine that slows down slows both. rlsize is
expected to be some per cent slower here: off GPUs it runs attention sequence by sequence, as packs are ragged, while
the loop's rectangle is one call.

    python -m benchmarks.train_rate PYTHON        # one that has torch and transformers; `make bench-engine` does this
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.pairs import PAIRS, show

from rlsize.measure.train import TrainJob, measure_train

LOOP = """
import json
import sys
import time

import torch
from torch import distributed, nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.utils.checkpoint import checkpoint
from transformers import AutoConfig, AutoModelForCausalLM

told = json.loads(sys.argv[1])
distributed.init_process_group("gloo")
config = AutoConfig.from_pretrained(told["model"])


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.causal = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa").float()

    def head(self, hidden, wanted):
        return self.causal.lm_head(hidden).float().log_softmax(-1).gather(-1, wanted[..., None])[..., 0]

    def forward(self, ids):
        hidden = self.causal.model(input_ids=ids, use_cache=False).last_hidden_state
        return checkpoint(self.head, hidden[:, :-1], ids[:, 1:], use_reentrant=False)


policy = Policy()
precision = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
for layer in policy.causal.model.layers:
    fully_shard(layer, mp_policy=precision)
fully_shard(policy, mp_policy=precision)
optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-4, weight_decay=0.0)
samples, length, rows = told["samples"], told["length"], told["rows"]
tokens = torch.randint(config.vocab_size, (samples, length)).split(rows)
advantages = torch.randn(samples, 1).split(rows)
total, update = [], []
for step in range(told["warm_up"] + told["steps"]):
    begun = time.perf_counter()
    with torch.no_grad():
        old = [policy(ids) for ids in tokens]
    trained = time.perf_counter()
    for ids, before, advantage in zip(tokens, old, advantages):
        ratio = (policy(ids) - before).exp()
        loss = -torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).sum() / (samples * length)
        loss.backward()
    nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    ended = time.perf_counter()
    if step >= told["warm_up"]:
        total.append(ended - begun)
        update.append(ended - trained)
count = samples * length
print(json.dumps({"total": count * len(total) / sum(total), "update": count * len(update) / sum(update)}))
distributed.destroy_process_group()
"""
TINY = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "vocab_size": 2048,
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
    "hidden_act": "silu",
}
PROMPT, RESPONSE, SAMPLES, ROWS = 64, 192, 32, 8  # ROWS sequences in each micro-batch
WARM_UP, STEPS = 1, 4

Rates = dict[str, float]


def by_rlsize(python: str, model: Path) -> Rates:
    """What rlsize says."""
    length = PROMPT + RESPONSE
    job = TrainJob(
        model=str(model),
        lengths=((PROMPT, RESPONSE),) * SAMPLES,
        group_size=8,
        micro_batch_tokens=ROWS * length,
        warm_up=WARM_UP,
        steps=STEPS,
        device="cpu",
    )
    with tempfile.TemporaryDirectory() as folder:
        found = measure_train(job, python, Path(folder), seconds=600.0, say=lambda _, __: None).measured
    if (found.micro_batches, found.micro_batches_timed, found.steps_timed) != (SAMPLES // ROWS, SAMPLES // ROWS, STEPS):
        raise SystemExit("rlsize did not do the work that the loop does")
    return {"total": found.gpu_total_tokens_per_second, "update": found.update_total_tokens_per_second}


def by_hand(python: str, model: Path, script: Path) -> Rates:
    """What the loop says."""
    told = {"samples": SAMPLES, "length": PROMPT + RESPONSE, "rows": ROWS, "warm_up": WARM_UP, "steps": STEPS}
    run = [python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "1", str(script)]
    done = subprocess.run([*run, json.dumps({"model": str(model), **told})], check=True, capture_output=True, text=True)
    rates: Rates = json.loads(done.stdout.splitlines()[-1])
    return rates


def main() -> int:
    """Measure the pairs and print medians and ratios."""
    python = sys.argv[1]
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # as torchrun sets it for several ranks
    with tempfile.TemporaryDirectory() as folder:
        model, script = Path(folder), Path(folder, "loop.py")
        (model / "config.json").write_text(json.dumps(TINY), encoding="utf-8")
        script.write_text(LOOP, encoding="utf-8")
        pairs = [(by_rlsize(python, model), by_hand(python, model, script)) for _ in range(PAIRS)]
    for rate in ("update", "total"):
        without = " without log-probs" if rate == "update" else ""
        show(f"train step, {rate}{without}", "loop", [(ours[rate], theirs[rate]) for ours, theirs in pairs])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
