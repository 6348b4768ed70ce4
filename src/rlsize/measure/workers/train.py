"""
The trainer that is measured: one process per GPU, started by torchrun with the path of a job in JSON.

It says `ready`, `plan`, then for each step `progress` and `step`, at last `memory` and `done`.
Rank 0 speaks for all; only `failed` and `out_of_memory` are said by whichever rank it happens to. The latter ends it
with code 70.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
import traceback
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import transformers
from torch import distributed
from torch.distributed.device_mesh import init_device_mesh

from rlsize.measure.workers import train_attention
from rlsize.measure.workers.events import OUT_OF_MEMORY, say, say_why
from rlsize.measure.workers.train_attention import Packing
from rlsize.measure.workers.train_model import built, decoder_layers, sharded
from rlsize.measure.workers.train_plan import ENOUGH_STEPS, affordable, another, group_advantages, step_plan

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlsize.measure.workers.train_model import LogProbs
    from rlsize.measure.workers.train_plan import Lengths, MicroBatch, Plan

PHASES = ("logprob", "forward", "backward", "optimizer")
CLIP = 0.2  # of the ratio to the old policy, both ways
LARGEST_GRADIENT = 1.0  # norm to which gradients are clipped
LEARNING_RATE_TIMES_WIDTH = 0.02  # Adam moves each weight by its rate, so each layer moves a logit by about as much
COMPANY = ((1, 1),)  # what a rank trains, at no weight, while others have a micro-batch and it has none


@dataclass(frozen=True)
class Place:
    """
    This process among the others.

    Args:
        rank: Its number over all nodes.
        ranks: How many there are.
        device: Where it computes.
    """

    rank: int
    ranks: int
    device: torch.device

    def say(self, event: str, **fields: Any) -> None:
        """Tell an event, for all ranks."""
        if self.rank == 0:
            say(event, **fields)


def main(path: str) -> None:
    """Run a job: train for the time it gives, and tell how long each step took."""
    job = json.loads(Path(path).read_text(encoding="utf-8"))
    place = _joined(job["device"])
    try:
        _run(job, place)
    except Exception as error:
        if say_why(error, rank=place.rank) != OUT_OF_MEMORY:
            raise
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(OUT_OF_MEMORY)  # the others wait for this rank, and a process group is not left in order alone
    distributed.destroy_process_group()


def _joined(wanted: str) -> Place:
    """Find the device and the other ranks."""
    cuda = wanted == "cuda" or (wanted == "auto" and torch.cuda.is_available())
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    distributed.init_process_group("cpu:gloo,cuda:nccl" if cuda else "gloo")
    return Place(distributed.get_rank(), distributed.get_world_size(), device)


def _run(job: dict[str, Any], place: Place) -> None:
    model = built(job["model"], job["recompute"])
    params = sum(param.numel() for param in model.parameters())
    mesh = init_device_mesh(place.device.type, (place.ranks,))
    trainer = Trainer(sharded(model, mesh, place.device, job["seed"] + place.rank), place.device)
    _say_ready(place, trainer, params)
    lengths = [(prompt, response) for prompt, response in job["lengths"]]
    work = Work(
        lengths=lengths,
        advantages=group_advantages(len(lengths), job["group_size"], job["seed"]),
        vocabulary=trainer.model.causal.config.get_text_config().vocab_size,
        seed=job["seed"],
        recompute=job["recompute"],
    )
    plan = step_plan(lengths, place.ranks, job["micro_batch_tokens"])
    _train(job, place, trainer, work, plan)
    place.say("memory", bytes=slowest([_peak_bytes(place.device)])[0])
    place.say("done", left_out=sorted(train_attention.left_out), fell_back=sorted(train_attention.fell_back))


def _train(job: dict[str, Any], place: Place, trainer: Trainer, work: Work, whole: Plan) -> None:
    steps, warm_up, seconds = job["steps"], job["warm_up"], job["seconds"]
    first = work.batch(whole.ranks[place.rank][0], place.device, scale=0.0)
    _probe(trainer, first)  # the first run loads kernels and opens connections, for as long as that takes
    begun = time.perf_counter()
    each = _probe(trainer, first)
    count = affordable(seconds - each, each, whole.micro_batches, warm_up + min(steps, ENOUGH_STEPS))
    plan = whole.every(int(agreed(count)))
    samples = plan.samples()
    place.say(
        "plan",
        micro_batches=whole.micro_batches,
        micro_batches_timed=plan.micro_batches,
        tokens_timed=sum(sum(work.lengths[sample]) for sample in samples),
    )
    scale = loss_scale(work.lengths, samples, place.ranks)
    batches = [work.batch(batch, place.device, scale) for batch in plan.ranks[place.rank]]
    old, done, going = None, -warm_up, True
    while going:
        old, step_seconds = _step(place, trainer, batches, old, warm_up=done < 0)
        done += 1
        elapsed = time.perf_counter() - begun
        place.say("progress", step=done, of=steps, seconds=elapsed)
        going = bool(agreed(done < 1 or another(done, steps, elapsed, step_seconds, seconds)))


def _probe(trainer: Trainer, batch: Batch) -> float:
    """Seconds of one micro-batch; it has no weight, so that nothing is learned from it."""
    trainer.forward_backward(batch, trainer.log_probs(batch))
    trainer.optimizer.zero_grad()
    return slowest([sum(trainer.clock.read().values())])[0]


def _step(
    place: Place, trainer: Trainer, batches: Sequence[Batch], old: Sequence[torch.Tensor] | None, *, warm_up: bool
) -> tuple[Sequence[torch.Tensor], float]:
    """One step, told; returns the log-probs of the old policy and how long it took."""
    synchronize(place.device)
    slowest([0.0])  # all begin together
    begun = time.perf_counter()
    old, loss = trainer.step(batches, old)
    phases = trainer.clock.read()
    *each, whole = slowest([*(phases[name] for name in PHASES), time.perf_counter() - begun])
    place.say("step", warm_up=warm_up, loss=loss, seconds=whole, phases=dict(zip(PHASES, each, strict=True)))
    return old, whole


def _say_ready(place: Place, trainer: Trainer, params: int) -> None:
    cuda = place.device.type == "cuda"
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    if cuda:
        versions["cuda"] = torch.version.cuda or ""
        versions["nccl"] = ".".join(str(part) for part in torch.cuda.nccl.version())
    causal = trainer.model.causal
    names: list[str | None] = [None] * place.ranks
    distributed.all_gather_object(names, torch.cuda.get_device_name(place.device) if cuda else "")
    place.say(
        "ready",
        versions=versions,
        gpus=[name for name in names if name],
        world=place.ranks,
        params=params,
        layers=len(decoder_layers(trainer.model)),
        attention=train_attention.kernel(place.device),
        experts=getattr(causal.config, "_experts_implementation", None) if _fused_experts(trainer.model) else None,
    )


def _fused_experts(model: torch.nn.Module) -> bool:
    """Whether the weights of a layer's experts lie in one tensor, as transformers 5 has them."""
    return any(param.ndim == 3 for param in model.parameters())  # noqa: PLR2004 (expert, row, column)


def _peak_bytes(device: torch.device) -> float:
    if device.type == "cuda":
        return float(torch.cuda.max_memory_allocated(device))
    kibibytes = 1 if sys.platform == "darwin" else 1024  # macOS tells bytes
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * kibibytes)


class Clock:
    """
    Seconds of each phase, summed over a step.

    Args:
        device: Where the work is done.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._marks: list[tuple[str, Any, Any]] = []

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time what is done inside; on a GPU it may still run when this ends."""
        begun = self._mark()
        yield
        self._marks.append((name, begun, self._mark()))

    def read(self) -> dict[str, float]:
        """Seconds of each phase since the last reading; waits for the device."""
        synchronize(self._device)
        found = dict.fromkeys(PHASES, 0.0)
        for name, begun, ended in self._marks:
            found[name] += begun.elapsed_time(ended) / 1e3 if self._device.type == "cuda" else ended - begun
        self._marks.clear()
        return found

    def _mark(self) -> Any:
        if self._device.type != "cuda":
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event


def synchronize(device: torch.device) -> None:
    """Wait until the device has done all that it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def slowest(values: list[float]) -> list[float]:
    """The largest of each value over all ranks; the slowest rank decides how long a step takes."""
    found = torch.tensor(values, dtype=torch.float64)
    distributed.all_reduce(found, op=distributed.ReduceOp.MAX)
    return list(found.tolist())


def summed(value: float) -> float:
    """The sum of a value over all ranks."""
    found = torch.tensor(value, dtype=torch.float64)
    distributed.all_reduce(found)
    return float(found.item())


def agreed(decision: float) -> float:
    """What rank 0 has decided; clocks differ, and ranks that disagree would wait for each other for ever."""
    found = torch.tensor(decision, dtype=torch.float64)
    distributed.broadcast(found, src=0)
    return float(found.item())


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


if __name__ == "__main__":
    main(sys.argv[1])
