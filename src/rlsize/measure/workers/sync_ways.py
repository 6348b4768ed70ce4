"""Two ways to send all weights: one broadcast per tensor, or tensors packed into buckets of one size."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

if TYPE_CHECKING:
    from rlsize.measure.workers.sync_weights import Weights


class PerTensor:
    """Gather a tensor, broadcast it, and go on to the next."""

    name = "per-tensor"
    bucket_bytes = None

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.messages = len(weights.sizes)

    def __call__(self) -> None:
        """Send everything once."""
        for index in range(self.messages):
            self.send(index)

    def send(self, index: int) -> None:
        """Send one tensor."""
        ranks = self.weights.ranks
        with ranks.gathering():
            whole = self.weights.whole(index)
        if ranks.wired:
            ranks.broadcast(whole)


class Piece(NamedTuple):
    """
    A part of one tensor in a bucket; all in bytes.

    Args:
        tensor: Which tensor.
        start: Where the part begins in the tensor.
        at: Where it begins in the bucket.
        size: How long it is.
    """

    tensor: int
    start: int
    at: int
    size: int


def packed(sizes: list[int], bucket_bytes: int) -> list[list[Piece]]:
    """
    What goes into which bucket: tensors one after the other, cut where a bucket is full.

    >>> [[tuple(piece) for piece in bucket] for bucket in packed([3, 4], 5)]
    [[(0, 0, 0, 3), (1, 0, 3, 2)], [(1, 2, 0, 2)]]
    """
    buckets: list[list[Piece]] = [[]]
    used = 0
    for tensor, size in enumerate(sizes):
        start = 0
        while start < size:
            if used == bucket_bytes:
                buckets.append([])
                used = 0
            piece = Piece(tensor, start, used, min(size - start, bucket_bytes - used))
            buckets[-1].append(piece)
            used += piece.size
            start += piece.size
    return buckets


class Bucketed:
    """
    Gather tensors, copy them into a bucket, broadcast it when it is full, and copy out of it on the other side.

    There is one bucket, so packing waits for the broadcast before it.

    Args:
        weights: What is sent.
        bucket_bytes: Size of the bucket. [B]
    """

    name = "bucketed"

    def __init__(self, weights: Weights, bucket_bytes: int) -> None:
        self.weights = weights
        self.bucket_bytes = bucket_bytes
        self._plan = packed(weights.sizes, bucket_bytes)
        self.messages = len(self._plan)
        room = bucket_bytes if weights.ranks.wired else 0
        self._bucket = torch.empty(room, dtype=torch.uint8, device=weights.ranks.device)

    def __call__(self) -> None:
        """Send everything once."""
        ranks = self.weights.ranks
        if ranks.rank == 0:
            self._send()
        elif ranks.trains:
            for index in range(len(self.weights.sizes)):
                self.weights.whole(index)
        else:
            self._receive()

    def _send(self) -> None:
        ranks, at_hand, whole = self.weights.ranks, -1, self._bucket
        for pieces in self._plan:
            for tensor, start, at, size in pieces:
                if tensor != at_hand:
                    with ranks.gathering():
                        whole = self.weights.whole(tensor)
                    at_hand = tensor
                self._bucket[at : at + size].copy_(whole[start : start + size])
            ranks.broadcast(self._filled(pieces))

    def _receive(self) -> None:
        for pieces in self._plan:
            self.weights.ranks.broadcast(self._filled(pieces))
            for tensor, start, at, size in pieces:
                self.weights.own[tensor][start : start + size].copy_(self._bucket[at : at + size])

    def _filled(self, pieces: list[Piece]) -> torch.Tensor:
        return self._bucket[: pieces[-1].at + pieces[-1].size]
