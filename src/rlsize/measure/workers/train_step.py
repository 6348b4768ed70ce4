"""
An optimizer step as an RL trainer does it: old log-probs, then forward and backward by micro-batch, then AdamW.

The same step is repeated. The log-probs of its first pass stand for those of the rollout, and the ratio is taken
against them each time, so that the loss falls as it does over the epochs of PPO; later passes are computed and timed
all the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from rlsize.measure.workers.train_attention import Packing
from rlsize.measure.workers.train_clock import Clock, summed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.measure.workers.train_model import LogProbs
    from rlsize.measure.workers.train_plan import Lengths, MicroBatch

CLIP = 0.2  # of the ratio to the old policy, both ways
LARGEST_GRADIENT = 1.0  # norm to which gradients are clipped
LEARNING_RATE_TIMES_WIDTH = 0.02  # Adam moves each weight by its rate, so each layer moves a logit by about as much
COMPANY = ((1, 1),)  # what a rank trains, at no weight, while others have a micro-batch and it has none


@dataclass(frozen=True)
class Batch:
    """
    A micro-batch on its device.

    Args:
        tokens: Token ids of all sequences, one after the other.
        positions: Place of each token in its sequence.
        targets: The token that follows each; the last of a sequence has none, and any will do.
        weights: Advantage over all response tokens of the step where the target is a response token, else zero.
        packing: Where sequences begin and end.
    """

    tokens: torch.Tensor
    positions: torch.Tensor
    targets: torch.Tensor
    weights: torch.Tensor
    packing: Packing


@dataclass(frozen=True)
class Work:
    """
    The samples of a step.

    Args:
        lengths: Prompt and response of each. [token]
        advantages: Of each.
        vocabulary: Token ids to draw from.
        seed: Of token ids; a sample has the same ones wherever it is packed.
        recompute: `selective` if backward computes attention again.
    """

    lengths: Sequence[Lengths]
    advantages: Sequence[float]
    vocabulary: int
    seed: int
    recompute: str = "none"

    def batch(self, samples: MicroBatch, device: torch.device, scale: float = 1.0) -> Batch:
        """
        Some of the samples, packed.

        Args:
            samples: Which; none for a batch that keeps other ranks company.
            device: Where to.
            scale: What advantages are multiplied with.
        """
        lengths = [self.lengths[sample] for sample in samples] or list(COMPANY)
        totals = [prompt + response for prompt, response in lengths]
        tokens = torch.cat(
            [self._tokens(sample, total) for sample, total in zip(samples or (-1,), totals, strict=True)]
        )
        weights = torch.zeros(sum(totals))
        starts = [sum(totals[:place]) for place in range(len(totals) + 1)]
        for sample, (prompt, _), start, end in zip(samples, lengths, starts, starts[1:], strict=False):
            weights[start + max(prompt - 1, 0) : end - 1] = scale * self.advantages[sample]
        return Batch(
            tokens=tokens.to(device),
            positions=torch.cat([torch.arange(total) for total in totals]).to(device),
            targets=tokens.roll(-1).to(device),
            weights=weights.to(device),
            packing=Packing(
                lengths=tuple(totals),
                offsets=torch.tensor(starts, dtype=torch.int32).to(device),
                recompute=self.recompute == "selective",
            ),
        )

    def _tokens(self, sample: int, count: int) -> torch.Tensor:
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + sample + 1)
        return torch.randint(self.vocabulary, (count,), generator=generator)


class Trainer:
    """
    A sharded model that is trained.

    Args:
        model: The model.
        device: Where this rank computes.
    """

    def __init__(self, model: LogProbs, device: torch.device) -> None:
        self.model = model
        self.device = device
        self.clock = Clock(device)
        rate = LEARNING_RATE_TIMES_WIDTH / model.causal.config.get_text_config().hidden_size
        fused = True if device.type == "cuda" else None
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.0, fused=fused)

    def step(self, batches: Sequence[Batch], old: Sequence[torch.Tensor] | None) -> tuple[list[torch.Tensor], float]:
        """
        One optimizer step.

        Args:
            batches: Micro-batches of this rank.
            old: Log-probs under the policy that made the samples; those of this step if None.

        Returns:
            Those log-probs, and the loss over all ranks.
        """
        now = [self.log_probs(batch) for batch in batches]
        against = list(old) if old is not None else now
        loss = torch.zeros((), device=self.device)
        for batch, before in zip(batches, against, strict=True):
            loss += self.forward_backward(batch, before)
        with self.clock.phase("optimizer"):
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), LARGEST_GRADIENT)
            self.optimizer.step()
            self.optimizer.zero_grad()
        return against, summed(loss.item()) / torch.distributed.get_world_size()

    def log_probs(self, batch: Batch) -> torch.Tensor:
        """Log-probs of a micro-batch, nothing kept for backward."""
        with self.clock.phase("logprob"), torch.no_grad():
            return self._log_probs(batch)

    def forward_backward(self, batch: Batch, old: torch.Tensor) -> torch.Tensor:
        """Add the gradients of a micro-batch to those of the step; returns its part of the loss."""
        with self.clock.phase("forward"):
            loss = clipped_loss(self._log_probs(batch), old, batch.weights)
        with self.clock.phase("backward"):
            loss.backward()
        return loss.detach()

    def _log_probs(self, batch: Batch) -> torch.Tensor:
        found: torch.Tensor = self.model(batch.tokens, batch.positions, batch.targets, batch.packing)
        return found


def clipped_loss(new: torch.Tensor, old: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """The clipped surrogate of PPO and GRPO, to be minimised: -min(r A, clip(r) A), weighted and summed over tokens."""
    ratio = (new - old).exp()
    return -torch.minimum(ratio * weights, ratio.clamp(1 - CLIP, 1 + CLIP) * weights).sum()


def loss_scale(lengths: Sequence[Lengths], samples: Sequence[int], ranks: int) -> float:
    """What makes the mean over ranks, which FSDP takes of gradients, the mean over all response tokens of the step."""
    return ranks / sum(lengths[sample][1] for sample in samples)
