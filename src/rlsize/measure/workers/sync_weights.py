"""
The weights that a sync sends: shards on the trainer's ranks, whole tensors on the receivers'.

They are kept as raw bytes. A broadcast only copies, so its speed does not depend on the type, and the comparison of
sender and receiver is one of bytes anyway.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

if TYPE_CHECKING:
    from rlsize.measure.workers.sync_ranks import Ranks

HASHED_AT_ONCE = 2**26  # bytes copied to the host in one piece


def tensor_counts(source: str) -> list[int]:
    """
    Elements of every parameter of a model, in its order; tied ones once. Nothing is allocated.

    Args:
        source: A directory with a `config.json`, or a Hugging Face id.
    """
    from transformers import AutoConfig, AutoModelForCausalLM

    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(source))
    return [parameter.numel() for _, parameter in model.named_parameters()]


class Weights:
    """
    What one rank holds.

    A trainer rank keeps an equal part of every tensor, the last ones padded, as FSDP does; with several of them, room
    to gather the largest tensor comes on top. A receiver keeps everything.

    Args:
        counts: Elements of each tensor.
        width: Bytes of an element.
        ranks: Who is who.
    """

    def __init__(self, counts: list[int], width: int, ranks: Ranks) -> None:
        self.ranks = ranks
        self.sizes = [count * width for count in counts]
        self.total = sum(self.sizes)
        shards = ranks.trainers if ranks.trains else 1
        held = [-(-count // shards) * width for count in counts]
        self.own = [torch.zeros(size, dtype=torch.uint8, device=ranks.device) for size in held]
        room = max(held) * shards if shards > 1 else 0
        self._room = torch.empty(room, dtype=torch.uint8, device=ranks.device)

    def fill(self, seed: int) -> None:
        """New weights on the trainer's ranks, other ones for each seed; the receivers keep what they have."""
        if self.ranks.trains:
            generator = torch.Generator(self.ranks.device).manual_seed(seed * self.ranks.world + self.ranks.rank)
            for shard in self.own:
                shard.random_(0, 256, generator=generator)

    def whole(self, index: int) -> torch.Tensor:
        """One tensor: gathered from the shards on a trainer rank (all of them have to call), at hand on a receiver."""
        shard = self.own[index]
        if not self.ranks.trains or self.ranks.trainers == 1:
            return shard
        room = self._room[: len(shard) * self.ranks.trainers]
        dist.all_gather_into_tensor(room, shard, group=self.ranks.training)
        return room[: self.sizes[index]]

    def digest(self) -> torch.Tensor:
        """SHA-256 over all bytes of all tensors, as 32 bytes on this rank's device."""
        sha = hashlib.sha256()
        for index in range(len(self.sizes)):
            for piece in self.whole(index).split(HASHED_AT_ONCE):
                sha.update(piece.cpu().numpy())
        return torch.frombuffer(bytearray(sha.digest()), dtype=torch.uint8).to(self.ranks.device)

    def identical(self) -> bool:
        """Whether every receiver holds the sender's bytes; the same answer on all ranks, which all have to ask."""
        own = self.digest()
        every = [torch.empty_like(own) for _ in range(self.ranks.world)]
        dist.all_gather(every, own)
        return all(torch.equal(every[0], every[rank]) for rank in range(self.ranks.trainers, self.ranks.world))
