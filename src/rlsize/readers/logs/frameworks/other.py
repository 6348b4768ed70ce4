"""A log of no framework that is known: what its keys mean is told by their names."""

from __future__ import annotations

from rlsize.readers.logs.mapping import Framework

FRAMEWORK = Framework(
    name="other",
    figures=(),
    mode="unknown",
    by_name=True,
    steps=(
        *("step", "_step", "global_step", "training_step", "trainer/global_step", "training/global_step"),
        *("iteration", "iter", "Step", "rollout/step", "train/step", "train/global_step"),
    ),
)
