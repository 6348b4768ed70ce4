"""One run: a setting, a seed, so many optimizer steps."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

from rlsize.simulator.draws import SeededOutcomes
from rlsize.simulator.modes import Asynchronous, OneStepOff, Synchronous

if TYPE_CHECKING:
    from rlsize.simulator.conductor import Conductor
    from rlsize.simulator.draws import Outcomes
    from rlsize.simulator.history import Recorder
    from rlsize.simulator.ledger import Ledger
    from rlsize.simulator.setting import Setting


def conductor_of(setting: Setting, outcomes: Outcomes, recorder: Recorder | None = None) -> Conductor:
    """
    The loop of a setting, before its first instant.

    Args:
        setting: What is simulated.
        outcomes: What chance brings.
        recorder: What notes spans and events, if anything does.
    """
    if setting.rules.mode == "async":
        return Asynchronous(setting, outcomes, recorder)
    if setting.rules.mode == "one-step-off":
        return OneStepOff(setting, outcomes, recorder)
    return Synchronous(setting, outcomes, recorder)


def simulate(setting: Setting, steps: int, seed: int = 0, recorder: Recorder | None = None) -> Ledger:
    """
    Run a loop for so many optimizer steps.

    Args:
        setting: What is simulated.
        steps: Optimizer steps. [1]
        seed: Of all randomness; the same seed gives the same history.
        recorder: What notes spans and events, if anything does.

    Returns:
        The accounts of each step.
    """
    conductor = conductor_of(setting, SeededOutcomes(setting.work, seed), recorder)
    collects = gc.isenabled()
    gc.disable()  # samples are freed without it (`Group.release`), and looking for cycles costs a quarter of the time
    try:
        conductor.run(steps)
    finally:
        if collects:
            gc.enable()
    return conductor.ledger
