"""
FLOPs of a forward and a backward pass as torch's own FlopCounterMode counts them, to set beside the equations.

FlopCounterMode counts matrix products (mm, addmm, bmm, baddbmm), convolutions and the fused attention kernels of GPUs,
by the shapes that go in. It does not count the attention kernel of CPUs, products grouped over experts
(aten._grouped_mm) nor anything done element by element: norms, softmax, rotary positions, activation functions, the
loss, the optimizer. So attention is made of plain products here (the math backend, where a mask saves nothing and each
sequence is a full square), experts run one by one, and nothing is recomputed.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

if TYPE_CHECKING:
    from rlsize.measure.workers.train_plan import Plan
    from rlsize.measure.workers.train_step import Trainer, Work

LONGEST = 256  # tokens of a sequence that is counted: the square of scores is kept, so it has to be short
SEQUENCES = 4


def counted(trainer: Trainer, work: Work, plan: Plan, rank: int) -> dict[str, Any]:
    """
    Count one small micro-batch, made of the first samples of each rank's first one, cut short.

    All ranks must call it.

    Args:
        trainer: The trainer; it is not to be timed any more.
        work: The samples.
        plan: The micro-batches.
        rank: This one.

    Returns:
        FLOPs, those of each operation, and the lengths that were counted.
    """
    lengths = [(1, min(prompt + response, LONGEST) - 1) for prompt, response in work.lengths]
    short = replace(work, lengths=lengths, recompute="none")
    batch = short.batch(plan.ranks[rank][0][:SEQUENCES], trainer.device)
    batch = replace(batch, packing=replace(batch.packing, countable=True))
    causal = trainer.model.causal
    causal.gradient_checkpointing_disable()
    trainer.model.keep_logits = True
    with suppress(AttributeError, ValueError):  # dense models and transformers before 5 have no choice of experts
        causal.set_experts_implementation("eager")
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        trainer.forward_backward(batch, batch.weights)
    by_operation = counter.get_flop_counts()["Global"]
    return {
        "flops": counter.get_total_flops(),
        "operations": {str(operation): count for operation, count in by_operation.items()},
        "lengths": list(batch.packing.lengths),
    }
