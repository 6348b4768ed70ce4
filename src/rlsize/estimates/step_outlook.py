"""The stages that an optimizer step is predicted from."""

from __future__ import annotations

from rlsize.estimates import constants_memory, constants_rollout, constants_step, constants_sync, constants_train

STAGES = (
    constants_step.STAGE,
    constants_rollout.STAGE,
    constants_train.STAGE,
    constants_sync.STAGE,
    constants_memory.STAGE,
)
"""The stages whose constants a step is predicted from."""
