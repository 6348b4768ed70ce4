"""
The model under FSDP: built on the meta device, sharded layer by layer, then given memory and random weights.

At no time does a rank hold more than its own shard and the layers that it works on.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.utils.checkpoint import checkpoint
from transformers import AutoConfig, AutoModelForCausalLM

from rlsize.measure.workers import train_attention

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlsize.measure.workers.train_attention import Packing

WEIGHT_DEVIATION = 0.02  # of the normal distribution that weights are drawn from
DROPOUTS = ("dropout", "pdrop", "dropout_prob")  # how keys of configurations end that say one
CHUNK_BYTES = 512 * 2**20  # of fp32 logits that exist at a time


class LogProbs(nn.Module):  # type: ignore[misc]  # torch is untyped where it is not installed
    """
    A causal language model that answers with the log-probability of each next token.

    It is the root of FSDP, so that the output head is called where its weights are gathered. Logits of a micro-batch
    never exist as a whole: they are computed for a chunk of tokens at a time, and again in backward.

    Args:
        causal: The model as transformers builds it.
    """

    def __init__(self, causal: nn.Module) -> None:
        super().__init__()
        self.causal = causal

    def forward(
        self, tokens: torch.Tensor, positions: torch.Tensor, targets: torch.Tensor, packing: Packing
    ) -> torch.Tensor:
        """
        Log-probability of each target, in fp32.

        Args:
            tokens: Token ids of all sequences, one after the other.
            positions: Place of each token in its sequence.
            targets: The token that follows each.
            packing: Where sequences begin and end.
        """
        hidden = self.causal.base_model(
            input_ids=tokens[None],
            position_ids=positions[None],
            use_cache=False,
            packing=packing,
            cu_seq_lens_q=packing.offsets,
            cu_seq_lens_k=packing.offsets,
            max_length_q=packing.longest,
            max_length_k=packing.longest,
        ).last_hidden_state[0]
        size = max(1, CHUNK_BYTES // (4 * self.causal.config.get_text_config().vocab_size))
        parts = zip(hidden.split(size), targets.split(size), strict=True)
        return torch.cat([self._chunk(part, wanted) for part, wanted in parts])

    def _chunk(self, hidden: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        if not torch.is_grad_enabled():
            return self._log_probs(hidden, targets)
        found: torch.Tensor = checkpoint(self._log_probs, hidden, targets, use_reentrant=False)
        return found

    def _log_probs(self, hidden: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        logits = self.causal.get_output_embeddings()(hidden).float()
        return -nn.functional.cross_entropy(logits, targets, reduction="none")


def built(source: str, recompute: str) -> LogProbs:
    """
    The model with fp32 parameters that have no memory yet.

    Args:
        source: A directory with a config.json, or a Hugging Face id.
        recompute: `full` if backward computes each layer again.
    """
    config = AutoConfig.from_pretrained(source, trust_remote_code=False)
    if getattr(config.get_text_config(), "index_topk", None):
        raise ValueError("sparse attention with an indexer needs masks that packed sequences do not have")
    _without_dropout(config.get_text_config())
    with _parameters_on_meta():
        causal = AutoModelForCausalLM.from_config(config, attn_implementation=train_attention.register())
    causal = causal.float()
    if recompute == "full":
        causal.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return LogProbs(causal.train())


def _without_dropout(config: Any) -> None:
    """RL trains without: old and new log-probs would differ by chance."""
    for name, value in config.to_dict().items():
        if name.endswith(DROPOUTS) and isinstance(value, float):
            setattr(config, name, 0.0)


@contextmanager
def _parameters_on_meta() -> Iterator[None]:
    """
    Register parameters on the meta device, and leave buffers where they are.

    `torch.device("meta")` would take buffers along, and those that are not saved (the frequencies of rotary positions)
    are computed when the model is built and nowhere else.
    """
    register = nn.Module.register_parameter

    def on_meta(module: nn.Module, name: str, param: nn.Parameter | None) -> None:
        if param is not None and not param.is_meta:  # one that is comes from tied weights and must stay the same
            param = nn.Parameter(param.to("meta"), requires_grad=param.requires_grad)
        register(module, name, param)

    nn.Module.register_parameter = on_meta
    try:
        yield
    finally:
        nn.Module.register_parameter = register


def sharded(model: LogProbs, mesh: Any, device: torch.device, seed: int) -> LogProbs:
    """
    The model in shards over all ranks, with memory and random weights.

    Args:
        model: As built.
        mesh: All ranks.
        device: Where this rank computes.
        seed: Of the weights; each rank draws its own shards.
    """
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in decoder_layers(model):
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    _materialise(model, device)
    generator = torch.Generator(device).manual_seed(seed)
    with torch.no_grad():
        for name, param in model.named_parameters():
            shard = param.to_local()
            if param.ndim > 1:
                shard.normal_(0.0, WEIGHT_DEVIATION, generator=generator)
            else:  # vectors are biases or norms
                shard.fill_(0.0 if name.endswith("bias") else 1.0)
    return model


def decoder_layers(model: nn.Module) -> nn.ModuleList:
    """The stack of layers: of all lists of modules the one that holds the most parameters."""
    lists = [module for module in model.modules() if isinstance(module, nn.ModuleList)]
    return max(lists, key=lambda layers: sum(param.numel() for param in layers.parameters()))


def _materialise(model: nn.Module, device: torch.device) -> None:
    """Give parameters memory, tied ones once, and move buffers; `to_empty` would wipe the buffers and cut the ties."""
    placed: dict[int, nn.Parameter] = {}  # by identity: parameters compare element by element
    for module in model.modules():
        for name, param in module.named_parameters(recurse=False, remove_duplicate=False):
            if id(param) not in placed:
                empty = torch.empty_like(param, device=device)
                placed[id(param)] = nn.Parameter(empty, requires_grad=param.requires_grad)
            setattr(module, name, placed[id(param)])
        for name, buffer in module.named_buffers(recurse=False):
            module._buffers[name] = buffer.to(device)  # noqa: SLF001 (assigning would turn a plain buffer persistent)
