"""The flags of `rlsize snippet` that `rlsize manifest` does not have."""

from __future__ import annotations

from typing import Annotated

from rlsize.shell.command import quantity

Framework = Annotated[
    str | None,
    quantity(
        "--framework|-f",
        "verl, nemo-rl, openrlhf, trl, slime, prime-rl, areal, skyrl, roll, pipeline-rl or rlinf.",
        metavar="NAME",
    ),
]
Variant = Annotated[
    str | None, quantity("--variant", "Which of its trainers; goes by the mode when not given.", metavar="NAME")
]
Mode = Annotated[
    str | None,
    quantity("--mode", "colocated, sync, one-step-off or async; what the file says when not given.", metavar="NAME"),
]
RolloutTensor = Annotated[str | None, quantity("--rollout-tensor-parallel", "GPUs that share each layer.")]
MaxStaleness = Annotated[str | None, quantity("--max-staleness", "Staleness cap in optimizer steps, k.")]
SyncEvery = Annotated[str | None, quantity("--sync-every", "Optimizer steps between weight syncs, m.")]
MiniBatches = Annotated[str | None, quantity("--mini-batches", "Weight updates that a batch is split into.")]
