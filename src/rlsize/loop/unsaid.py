"""What nobody says of a loop's memory: how much more each phase may hold than by what is assumed in its place."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rlsize.errors import InputError, Refused
from rlsize.loop.phases import PHASE_KEYS, phases_of
from rlsize.loop.resolve import resolve

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.facts.figure import Value
    from rlsize.loop.phases import PhaseMemory, Phases
    from rlsize.loop.resolve import Loop
    from rlsize.loop.said import Said

_SHARE = 0.9  # that vLLM takes by itself
_LONGER = 2.0  # times the mean prompt


def phases_as_said(said: Said, loop: Loop, seed: int = 0) -> Phases | None:
    """
    The phases of a loop, as far up as what nobody says may lift them, where somebody says how it keeps its memory.

    Args:
        said: What was said.
        loop: The loop of it.
        seed: Of the draws behind the bands.
    """
    others: dict[str, Value] = {}
    if any(map(said.gives, PHASE_KEYS)):
        prompt, own = loop.problem.prompt_tokens, said.gives("framework")  # whose defaults are known
        others |= {} if own or said.gives("recompute") else {"trainer.recompute": "none"}
        if prompt.known and not said.gives("max_prompt_tokens"):
            others["workload.max_prompt_tokens"] = float(int(prompt.number * _LONGER))
        if loop.pools.shared and not own and not said.gives("memory_fraction"):
            others["rollout.memory_fraction"] = _SHARE
    return doubted(said, loop, others, seed)


def doubted(said: Said, loop: Loop, others: Mapping[str, Value], seed: int = 0) -> Phases | None:
    """
    The phases of a loop, each as far up as it would come if one thing were otherwise.

    Args:
        said: What was said.
        loop: The loop of it.
        others: What may be otherwise, by its key in a scenario.
        seed: Of the draws behind the bands.

    Returns:
        The phases; None where models or GPUs are not known.
    """
    found = phases_of(loop, seed)
    for key, value in others.items() if found is not None else ():
        try:
            other = phases_of(resolve(said.changed({key: value})), seed)
        except (InputError, Refused):  # it cannot be
            continue
        if found is not None and other is not None:
            found = _lifted(found, other, key)
    return found


def _lifted(found: Phases, other: Phases, key: str) -> Phases:
    """Phases whose bands end where those of another loop do, if that is higher; and the key, if it may not fit then."""
    fills = {(one.pool, one.name): one.fill for one in other.phases}
    lifted = tuple(_up_to(one, fills.get((one.pool, one.name), 0.0)) for one in found.phases)
    unsaid = () if other.verdict == "fits" else (key,)
    return replace(found, phases=lifted, unsaid=(*found.unsaid, *unsaid))


def _up_to(phase: PhaseMemory, fill: float) -> PhaseMemory:
    """A phase that may fill so much of the GPU."""
    if fill <= phase.fill:
        return phase
    low = phase.held.band[0] if phase.held.band else phase.held.number
    return replace(phase, held=replace(phase.held, band=(low, fill * phase.memory)))
