"""One run: a setting, a seed, so many optimizer steps."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

from rlsize.errors import Fault, UnfinishedError
from rlsize.simulator.draws import SeededOutcomes
from rlsize.simulator.modes import Asynchronous, OneStepOff, Synchronous
from rlsize.simulator.played import covers, installed

if TYPE_CHECKING:
    from rlsize.simulator.conductor import Conductor
    from rlsize.simulator.draws import Outcomes
    from rlsize.simulator.ledger import Ledger, Recorder
    from rlsize.simulator.setting import Setting

WORTH = 50_000.0
"""Samples from which on loading the kernel takes less time than it saves. [1]"""


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


def stands_still(steps: int) -> UnfinishedError:
    """
    What to say of a loop that makes no more optimizer steps.

    Args:
        steps: How many it made. [1]
    """
    what = f"the loop stands still after {steps:,} optimizer step{'' if steps == 1 else 's'}"
    todo = "loosen the cap, the queue or the cache, or let less go wrong; if they look right, report this"
    return UnfinishedError(Fault(f"{what}: what it waits for does not come", "", todo))


def simulate(
    setting: Setting,
    steps: int,
    seed: int = 0,
    recorder: Recorder | None = None,
    *,
    compiled: bool | None = None,
    partly: bool = False,
) -> Ledger:
    """
    Run a loop for so many optimizer steps: by the compiled kernel if it is installed, knows the loop and pays, else by
    the modules of this folder, which give the same to the last bit.

    Args:
        setting: What is simulated.
        steps: Optimizer steps. [1]
        seed: Of all randomness; the same seed gives the same history.
        recorder: What notes spans and events, if anything does; the kernel does not.
        compiled: Whether the kernel pays; None for where this run alone is worth loading it.
        partly: Whether a loop that stands still gives the steps that it made.

    Returns:
        The accounts of each step.

    Raises:
        UnfinishedError: The loop stands still before it has made as many steps, and `partly` does not ask for those.
    """
    pays = steps * setting.work.samples >= WORTH if compiled is None else compiled
    collects = gc.isenabled()
    gc.disable()  # samples are freed without it (`Group.release`), and looking for cycles costs a quarter of the time
    try:
        if pays and recorder is None and installed() and covers(setting):
            from rlsize.simulator.played import played  # and numba with it

            ledger = played(setting, steps, seed)
            if ledger is not None:
                return ledger
        conductor = conductor_of(setting, SeededOutcomes(setting.work, seed), recorder)
        conductor.run(steps)
        if len(conductor.ledger) < steps and not partly:
            raise stands_still(len(conductor.ledger))
        return conductor.ledger
    finally:
        if collects:
            gc.enable()
