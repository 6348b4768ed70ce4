"""Random weights of a model that an engine can tell apart: on disk as checkpoints, or in the memory of a GPU."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import torch
from transformers import AutoConfig, AutoModelForCausalLM

if TYPE_CHECKING:
    from pathlib import Path

ROOM = 1.05  # free disk over the bytes that are written


def built(source: str, dtype: str, device: str = "cpu") -> torch.nn.Module:
    """
    A model from its configuration; its weights are not set.

    Args:
        source: A directory with a `config.json`, or a Hugging Face id.
        dtype: By torch's name.
        device: Where it lies.
    """
    config = AutoConfig.from_pretrained(source)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, dtype=getattr(torch, dtype))
    model.to_empty(device=device)
    model.tie_weights()
    found: torch.nn.Module = model
    return found


def fill(model: torch.nn.Module, seed: int) -> None:
    """
    Weights that keep signals at their size, other ones for each seed, the same on every device.

    Matrices are normal with the inverse of their inputs as variance, norms are one, biases zero.
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1:
                drawn = torch.empty(parameter.shape, dtype=parameter.dtype)
                parameter.copy_(drawn.normal_(std=parameter.shape[-1] ** -0.5, generator=generator))
            else:
                parameter.fill_(0.0 if name.endswith("bias") else 1.0)


def weight_bytes(model: torch.nn.Module) -> int:
    """Bytes of all parameters, tied ones once."""
    return sum(parameter.numel() * parameter.element_size() for parameter in model.parameters())


def checkpoints(model: torch.nn.Module, seeds: tuple[int, ...], folder: Path) -> dict[int, Path]:
    """
    A directory with configuration and safetensors for each seed.

    Raises:
        OSError: The disk has too little room.
    """
    needed, free = int(weight_bytes(model) * len(seeds) * ROOM), shutil.disk_usage(folder).free
    if needed > free:
        raise OSError(f"{len(seeds)} checkpoints need {needed / 1e9:.1f} GB in {folder}, which has {free / 1e9:.1f} GB")
    found = {}
    for seed in seeds:
        fill(model, seed)
        found[seed] = folder / f"weights{seed}"
        model.save_pretrained(found[seed])
    return found
