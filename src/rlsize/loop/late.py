"""What becomes of samples that are not finished when a batch is due: as said, as the framework does it, or as usual."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.estimates.step_assembly import REFILLING, USUAL_LATE
from rlsize.frameworks.abilities import framework_mode

if TYPE_CHECKING:
    from rlsize.estimates.generation import Late
    from rlsize.estimates.step_assembly import Loop
    from rlsize.facts.framework import Framework
    from rlsize.loop.said import Said

_WORDS: tuple[Late, ...] = ("continue", "wait", "drop")
_PARTIAL_OVERSAMPLING = 1.25
_WHY = {
    "wait": "a batch with a barrier waits for its last sample",
    "continue": "samples go on over a sync",
    "drop": "over-sampling: a batch closes when enough groups are whole",
}


def oversampling(said: Said) -> float:
    """Samples started for each that a batch with a barrier needs."""
    if _partial(said):
        why = "partial rollouts start more groups than a batch closes with, and nobody says how many"
        return said.ask("oversampling", default=_PARTIAL_OVERSAMPLING, why=why).number
    return said.ask("oversampling").number if said.gives("oversampling") else 1.0


def late_samples(said: Said, loop: Loop) -> dict[Loop, Late]:
    """
    What becomes of late samples, by how a loop is laid out; the one of this loop is among the inputs.

    Args:
        said: What was said.
        loop: How the loop is laid out.
    """
    framework, more = said.framework(), oversampling(said) > 1.0
    found: dict[Loop, Late] = {}
    for one in USUAL_LATE:
        usual, why = _usual(said, one, framework, more=more)
        word = (said if one == loop else said.apart()).choose("late_samples", default=usual, why=why)
        found[one] = next(late for late in _WORDS if late == word)
    if loop in REFILLING or more:
        return found
    if not said.gives("late_samples"):
        said.used.pop("late_samples", None)  # nothing is late where no more is started than a batch needs
    elif found[loop] != "wait":
        where, key = said.place("late_samples"), said.flag("oversampling")
        said.notes.append(f"{where}: nothing is late where a batch starts no more samples than it needs ({key}).")
    return found


def _partial(said: Said) -> bool:
    return said.name("mode")[0] == "partial"


def _usual(said: Said, loop: Loop, framework: Framework | None, *, more: bool) -> tuple[str, str]:
    """What becomes of late samples where nobody says, and why."""
    if loop not in REFILLING and _partial(said):
        return "continue", "partial rollouts: samples go on in the next batch"
    modes = {} if framework is None or framework.runs is None else framework.runs.modes
    own = modes.get(framework_mode(loop))
    if framework is not None and own is not None and not (more and own == "wait" and loop not in REFILLING):
        return own, f"as {framework.title} does it"
    usual = "drop" if more and loop not in REFILLING else USUAL_LATE[loop]
    return usual, _WHY[usual]
