"""Questions to those parts of the trainer that need torch: run by the engine's Python, answered as JSON."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoConfig, AutoModelForCausalLM

from rlsize.measure.workers import train_model
from rlsize.measure.workers.train import Work
from rlsize.measure.workers.train_attention import NAME, Packing, register
from rlsize.measure.workers.train_model import LogProbs, built, decoder_layers

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlsize.measure.workers.train import Batch

CPU = torch.device("cpu")
LENGTHS = [(5, 40), (17, 3), (1, 60), (30, 30)]


def log_probs(model: LogProbs, batch: Batch) -> torch.Tensor:
    """What the model says about a micro-batch."""
    with torch.no_grad():
        found: torch.Tensor = model(batch.tokens, batch.positions, batch.targets, batch.packing)
    return found


def work() -> Work:
    """Four samples of different lengths."""
    return Work(lengths=LENGTHS, advantages=[1.0] * len(LENGTHS), vocabulary=512, seed=3)


def models(path: str, window: int | None) -> tuple[LogProbs, torch.nn.Module]:
    """The same fp32 model with packed attention, and with the attention of transformers."""
    found = []
    for attention in (register(), "sdpa"):
        config = AutoConfig.from_pretrained(path)
        if window:
            config.sliding_window = window
            config.layer_types = ["sliding_attention", "full_attention"]
        torch.manual_seed(0)
        causal = AutoModelForCausalLM.from_config(config, attn_implementation=attention).float().eval()
        found.append(causal)
    assert found[0].config._attn_implementation == NAME
    return LogProbs(found[0]), found[1]


def packing(path: str, window: int | None = None) -> dict[str, float]:
    """The largest difference of log-probs: in the pack against alone, and against transformers' own attention."""
    ours, theirs = models(path, window)
    packed = log_probs(ours, work().batch((0, 1, 2, 3), CPU)).split([sum(length) for length in LENGTHS])
    alone, reference = 0.0, 0.0
    for sample, inside in enumerate(packed):
        batch = work().batch((sample,), CPU)
        alone = max(alone, float((log_probs(ours, batch) - inside)[:-1].abs().max()))  # the last token has no target
        with torch.no_grad():
            logits = theirs(input_ids=batch.tokens[None]).logits[0].float()
        expected = logits.log_softmax(-1).gather(1, batch.targets[:, None])[:, 0]
        reference = max(reference, float((expected - inside)[:-1].abs().max()))
    return {"alone": alone, "reference": reference, "spread": float(torch.cat(packed).std())}


def sliding(path: str) -> dict[str, float]:
    """The same with a window shorter than the sequences."""
    return packing(path, window=8)


def gradients(path: str) -> dict[str, float]:
    """The largest difference of gradients between one chunk of logits and many, and between packed and alone."""
    ours, _ = models(path, None)
    found = []
    whole_pack = [(0, 1, 2, 3)]
    for bytes_at_a_time, packs in ((2**30, whole_pack), (2**15, whole_pack), (2**30, [(0,), (1, 2), (3,)])):
        train_model.CHUNK_BYTES = bytes_at_a_time
        ours.zero_grad()
        for pack in packs:
            batch = work().batch(pack, CPU)
            (ours(batch.tokens, batch.positions, batch.targets, batch.packing) * batch.weights).sum().backward()
        found.append(torch.cat([param.grad.flatten() for param in ours.parameters()]))
    whole, chunked, apart = found
    size = float(whole.abs().max())
    return {"chunked": float((chunked - whole).abs().max()) / size, "apart": float((apart - whole).abs().max()) / size}


def meta(path: str) -> dict[str, float]:
    """Parameters have no memory, buffers hold what a model that was built in memory has."""
    model = built(path, "none")
    real = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(path))
    buffers = dict(real.named_buffers())
    same = all(torch.equal(buffer, buffers[name]) for name, buffer in model.causal.named_buffers())
    return {
        "on_meta": float(all(param.is_meta for param in model.parameters())),
        "fp32": float(all(param.dtype == torch.float32 for param in model.parameters())),
        "buffers": float(len(buffers)),
        "buffers_same": float(same),
        "params_same": float(sum(p.numel() for p in model.parameters()) == sum(p.numel() for p in real.parameters())),
        "layers": float(len(decoder_layers(model))),
    }


def masked(path: str) -> dict[str, float]:
    """A mask over the whole micro-batch is refused."""
    ours, _ = models(path, None)
    batch = work().batch((0,), CPU)
    packing = Packing(lengths=batch.packing.lengths, offsets=batch.packing.offsets)
    mask = torch.zeros(1, 1, len(batch.tokens), len(batch.tokens))
    try:
        ours.causal.base_model(input_ids=batch.tokens[None], attention_mask=mask, packing=packing)
    except RuntimeError:
        return {"refused": 1.0}
    return {"refused": 0.0}


class Keeping(LogProbs):
    """One that keeps its logits: nothing is worked out again."""

    def _chunk(self, hidden: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return self._log_probs(hidden, targets)


def flops(path: str, recompute: str) -> int:
    """
    FLOPs of forward and backward as torch counts them: by the shapes that go into products, so attention is made of
    plain ones here, experts run one by one, and logits are kept.
    """
    model = Keeping(models(path, None)[0].causal.train())
    with suppress(AttributeError, ValueError):  # dense models and transformers before 5 have no choice of experts
        model.causal.set_experts_implementation("eager")
    if recompute == "full":
        model.causal.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    batch = replace(work(), recompute=recompute).batch((0, 1, 2, 3), CPU)
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        model(batch.tokens, batch.positions, batch.targets, batch.packing).sum().backward()
    return int(counter.get_total_flops())


def recomputed(path: str) -> dict[str, float]:
    """FLOPs of forward and backward with recomputation, over those without."""
    return {name: flops(path, name) / flops(path, "none") for name in ("none", "selective", "full")}


def counted(path: str) -> dict[str, float]:
    """FLOPs per token, and the lengths of the sequences that they were counted on."""
    lengths = [float(sum(length)) for length in LENGTHS]
    return {"per_token": flops(path, "none") / sum(lengths), **dict(zip("abcd", lengths, strict=True))}


PROBES: dict[str, Callable[[str], dict[str, float]]] = {
    "packing": packing,
    "sliding": sliding,
    "gradients": gradients,
    "meta": meta,
    "masked": masked,
    "recomputed": recomputed,
    "counted": counted,
}

if __name__ == "__main__":
    sys.stdout.write(json.dumps({name: probe(sys.argv[1]) for name, probe in PROBES.items()}) + "\n")
