"""
The trainer that is measured: one process per GPU, started by torchrun with the path of a job in JSON.

It says `ready`, `plan`, then for each step `progress` and `step`, at last `memory`, `flops` if asked for, and `done`.
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
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import transformers
from torch import distributed
from torch.distributed.device_mesh import init_device_mesh

from rlsize.measure.workers import train_attention
from rlsize.measure.workers.events import OUT_OF_MEMORY, say, say_why
from rlsize.measure.workers.train_model import built, decoder_layers, sharded
from rlsize.measure.workers.train_plan import ENOUGH_STEPS, affordable, another, group_advantages, step_plan
from rlsize.measure.workers.train_step import PHASES, Trainer, Work, agreed, counted, loss_scale, slowest, synchronize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.measure.workers.train_plan import Plan
    from rlsize.measure.workers.train_step import Batch


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
    if job["count_flops"]:
        place.say("flops", **counted(trainer, work, plan, place.rank))
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
        config=json.loads(json.dumps(causal.config.to_dict(), default=str)),
    )


def _fused_experts(model: torch.nn.Module) -> bool:
    """Whether the weights of a layer's experts lie in one tensor, as transformers 5 has them."""
    return any(param.ndim == 3 for param in model.parameters())  # noqa: PLR2004 (expert, row, column)


def _peak_bytes(device: torch.device) -> float:
    if device.type == "cuda":
        return float(torch.cuda.max_memory_allocated(device))
    kibibytes = 1 if sys.platform == "darwin" else 1024  # macOS tells bytes
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * kibibytes)


if __name__ == "__main__":
    main(sys.argv[1])
