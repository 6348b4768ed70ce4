"""Trainer backends: in which widths each keeps a parameter, and which of its states are there from the start."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerBackend:
    """
    One backend.

    Args:
        name: The name that a scenario uses.
        own_master: Whether the parameters that it shards are the optimizer's master copy themselves, so that gradients
            and moments have their width, and a narrow copy exists only while a layer is gathered.
        states_at_start: Whether optimizer states are allocated when the trainer is built, not by its first step.
        gradient_buffer: Whether gradients have a buffer of their own that outlives a step.
        step_copies: Copies of a parameter, in the width of its master, that the optimizer's step holds at once. [1]
        sync_copies: Copies of the shard, as it is kept, that a weight sync holds beside it. [1]
        source: Who says so.
    """

    name: str
    own_master: bool
    states_at_start: bool = False
    gradient_buffer: bool = False
    step_copies: float = 0.0
    sync_copies: float = 0.0
    source: str


_FOREACH = "torch.optim.AdamW takes foreach kernels on GPUs, which hold one more copy of the parameters"
_BACKENDS = (
    TrainerBackend(name="fsdp", own_master=True, step_copies=1.0, sync_copies=1.0,
                   source=f"PyTorch FSDP (arXiv:2304.11277); {_FOREACH}; its sharded state_dict copies the parameters"),
    TrainerBackend(name="fsdp2", own_master=True, step_copies=1.0,
                   source=f"PyTorch documentation, fully_shard; {_FOREACH}"),
    TrainerBackend(name="ddp", own_master=True, step_copies=1.0,
                   source=f"PyTorch documentation, DistributedDataParallel; {_FOREACH}"),
    TrainerBackend(name="deepspeed", own_master=False, states_at_start=True, gradient_buffer=True,
                   source="DeepSpeed, stage_1_and_2.py and stage3.py: fp32 partitions, and moments by a first empty "
                          "step"),
    TrainerBackend(name="megatron", own_master=False, states_at_start=True, gradient_buffer=True,
                   source="Megatron Core, distrib_optimizer.py and param_and_grad_buffer.py"),
)  # fmt: skip

TRAINER_BACKENDS: Mapping[str, TrainerBackend] = MappingProxyType({entry.name: entry for entry in _BACKENDS})
"""The backends by name."""

UNSAID = TrainerBackend(name="", own_master=False, source="nobody says: bf16 weights beside an fp32 copy")
"""What is taken where nobody says."""
