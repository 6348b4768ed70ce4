"""
Two ways to give a running vLLM new weights: over NCCL from another GPU, and from a checkpoint on disk.

The first is the weight-update API of recent versions, with this process as the trainer. It takes one GPU more than the
engine has. The second is what every version with `reload_weights` can do, on a CPU too.
"""

from __future__ import annotations

import importlib
import shutil
import socket
from typing import TYPE_CHECKING, Any

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


class FromDisk:
    """The workers of the engine read a checkpoint; its files are in the page cache, as they were just written."""

    interface = "LLM.collective_rpc('reload_weights', weights_path=...), safetensors in the page cache"

    def __init__(self, llm: Any, checkpoints: dict[int, Path]) -> None:
        self._llm = llm
        self._checkpoints = checkpoints

    def prepare(self, seed: int) -> None:
        """Nothing: the checkpoints are written."""

    def update(self, seed: int) -> None:
        """Give the engine the weights of a seed."""
        self._llm.collective_rpc("reload_weights", kwargs={"weights_path": str(self._checkpoints[seed])})


class OverNccl:
    """This process sends from a GPU of its own, packed in buckets, with vLLM's own trainer side."""

    interface = "LLM.start_weight_update, update_weights (nccl, packed), finish_weight_update"

    def __init__(self, llm: Any, job: dict[str, Any], engine_gpus: int) -> None:
        nccl = importlib.import_module("vllm.distributed.weight_transfer.nccl_engine")
        transfer = importlib.import_module("vllm.distributed.weight_transfer")
        self._gpu = engine_gpus  # the engine has those before it
        torch.cuda.set_device(self._gpu)
        self._model = built(job["model"], job["dtype"], f"cuda:{self._gpu}")
        info = nccl.NCCLTrainerInitInfo(
            master_address="127.0.0.1", master_port=free_port(), world_size=engine_gpus + 1, rank=0
        )
        source = transfer.ModuleSource(self._model)
        self._trainer = nccl.NCCLTrainerWeightTransferEngine.trainer_init(info, client=_Client(llm), source=source)

    def prepare(self, seed: int) -> None:
        """Train, so to speak: the weights of a seed."""
        fill(self._model, seed)
        torch.cuda.synchronize(self._gpu)

    def update(self, _seed: int) -> None:
        """Give the engine the weights that are prepared."""
        torch.cuda.set_device(self._gpu)  # each thread has a current device
        self._trainer.send_weights()
        torch.cuda.synchronize(self._gpu)


class _Client:
    """How vLLM's trainer side reaches an `LLM` in its own process."""

    def __init__(self, llm: Any) -> None:
        self._llm = llm
        self.start_weight_update = llm.start_weight_update
        self.finish_weight_update = llm.finish_weight_update

    def init_weight_transfer_engine(self, init_info: dict[str, Any]) -> None:
        """Join the trainer's group."""
        self._llm.init_weight_transfer_engine({"init_info": init_info})

    def update_weights(self, update_info: dict[str, Any]) -> None:
        """Receive."""
        self._llm.update_weights({"update_info": update_info})


def nccl_possible(engine_gpus: int) -> bool:
    """Whether the installed vLLM has both sides of the weight-update API, and a GPU is left for the trainer."""
    if torch.cuda.device_count() <= engine_gpus:
        return False
    try:
        nccl = importlib.import_module("vllm.distributed.weight_transfer.nccl_engine")
        llm = importlib.import_module("vllm").LLM
    except ImportError:
        return False
    both = hasattr(nccl, "NCCLTrainerInitInfo") and hasattr(nccl, "NCCLTrainerWeightTransferEngine")
    return both and hasattr(llm, "start_weight_update")


def free_port() -> int:
    """A port of loopback that nobody listens on."""
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        port: int = chosen.getsockname()[1]
    return port
