"""What makes a loop fit that does not: every single change, what it costs, and whether it changes the training."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rlsize.errors import InputError, Refused
from rlsize.frozen import dataclass
from rlsize.loop.knobs import KINDS, Knob, saving
from rlsize.loop.moves import moved_seconds
from rlsize.loop.phases import phases_of
from rlsize.loop.resolve import resolve
from rlsize.planner.evaluation import worked
from rlsize.planner.rounding import WITHIN
from rlsize.quantities.table import QUANTITIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rlsize.loop.knobs import Kind
    from rlsize.loop.phases import PhaseMemory, Phases
    from rlsize.loop.resolve import Loop
    from rlsize.loop.said import Said

_MOST_PAIRED = 6  # changes of which pairs are tried
_BETTER: Mapping[str, frozenset[str]] = MappingProxyType(
    {"dies": frozenset({"fits", "not sure"}), "not sure": frozenset({"fits"})}
)
"""Verdicts that are better than one."""


@dataclass(frozen=True, slots=True)
class Saver:
    """
    A change that helps.

    Args:
        values: What is changed, by quantity.
        kind: What that does to the training.
        phases: The memory of the loop with it.
        gpu_seconds_per_token: What a trained token takes then; None where that is not known. [GPU s/token]
    """

    values: dict[str, Any]
    kind: Kind
    phases: Phases
    gpu_seconds_per_token: float | None = None

    @property
    def rank(self) -> tuple[int, int, float]:
        """The kind first, then whether it surely fits, then what it costs."""
        cost = float("inf") if self.gpu_seconds_per_token is None else self.gpu_seconds_per_token
        return KINDS.index(self.kind), int(self.phases.verdict != "fits"), cost


def savers(
    said: Said, loop: Loop, can: Callable[[Mapping[str, Any]], bool], tell: Callable[[float], None]
) -> tuple[Saver, ...]:
    """
    The changes that make a loop fit, or fit more surely, the best first: single ones, and pairs where none surely does.

    Args:
        said: What was said.
        loop: The loop that does not fit, or not surely.
        can: Whether values of quantities can be set where the loop runs.
        tell: Hears which share of the work is done. [1]
    """
    before = phases_of(loop)
    if before is None or before.verdict == "fits":
        return ()
    enough = _BETTER[before.verdict]
    possible = (Knob(tuple(filter(can, knob.tries))) for knob in saving(said, loop))
    knobs = [knob for knob in possible if knob.tries]
    found: list[Saver] = []
    helpful: list[tuple[Knob, Saver]] = []
    for index, knob in enumerate(knobs):
        tell(index / len(knobs))
        mildest, strongest = _turned(said, knob, enough)
        found += [mildest] if mildest is not None else []
        sure = mildest is not None and mildest.phases.verdict == "fits"
        helpful += [(knob, strongest)] if strongest is not None and not sure else []
    verdicts = {saver.phases.verdict for saver in found if saver.kind == KINDS[0]}
    if "fits" not in verdicts:
        found += _pairs(said, helpful, frozenset({"fits"}) if verdicts else enough)
    return tuple(_ranked(found, before.dying or before.worst))


def _ranked(found: list[Saver], full: PhaseMemory) -> Iterator[Saver]:
    """
    The best first; of those whose cost is the same, as far as can be told, what leaves the full phase most room.

    Another layout of the trainer comes last of these: checkpoints and conversions hang on it.
    """

    def fill(saver: Saver) -> tuple[bool, float]:
        left = (one.fill for one in saver.phases.phases if (one.name, one.pool) == (full.name, full.pool))
        return any(key.endswith("_parallel") and "rollout" not in key for key in saver.values), next(left, 0.0)

    found.sort(key=lambda saver: saver.rank)
    while found:
        *kind, least = found[0].rank
        alike = [one for one in found if [*one.rank[:2]] == kind and one.rank[2] <= least * (1 + WITHIN)]
        yield from sorted(alike, key=fill)
        del found[: len(alike)]


def _turned(
    said: Said, knob: Knob, enough: frozenset[str], beside: Mapping[str, Any] = MappingProxyType({})
) -> tuple[Saver | None, Saver | None]:
    """
    The mildest way to turn a knob with which it surely fits, else that is enough; and the strongest that can be.

    The first is None where none is enough. What is changed besides is the same in all.
    """
    made: dict[int, Saver | None] = {}

    def at(index: int) -> Saver | None:
        if index not in made:
            made[index] = _with(said, {**beside, **knob.tries[index]}, knob.kind)
        return made[index]

    last = len(knob.tries) - 1
    strongest = next((one for index in range(last, -1, -1) if (one := at(index)) is not None), None)
    if strongest is None or strongest.phases.verdict not in enough:
        return None, strongest
    enough = frozenset({"fits"}) if strongest.phases.verdict == "fits" else enough
    low, high = 0, max(index for index, one in made.items() if one is not None)
    while low < high:  # turned further, it never needs more memory
        middle = (low + high) // 2
        tried = at(middle)
        low, high = (low, middle) if tried is not None and tried.phases.verdict in enough else (middle + 1, high)
    return at(high), strongest


def _pairs(said: Said, helpful: Sequence[tuple[Knob, Saver]], enough: frozenset[str]) -> Iterator[Saver]:
    """Pairs of changes of which none is enough alone, of those that help most, each turned no further than it must."""
    plain = [one for one in helpful if one[1].kind == KINDS[0]]
    plain.sort(key=lambda one: one[1].phases.worst.fill)
    for (one, strong), (two, _) in combinations(plain[:_MOST_PAIRED], 2):
        if strong.values.keys().isdisjoint(two.tries[0]):
            made = _turned(said, two, enough, strong.values)[0]
            milder = made and _turned(said, one, enough, {key: made.values[key] for key in two.tries[0]})[0]
            yield from [milder] if milder else []


def _with(said: Said, values: dict[str, Any], kind: Kind) -> Saver | None:
    """The loop with a change; None where it cannot be, or nobody can say."""
    try:
        other = said.changed({QUANTITIES[key].scenario: value for key, value in values.items()})
        loop = resolve(other)
        phases = phases_of(loop)
    except (InputError, Refused):
        return None
    if phases is None or any(phase.starved for phase in phases.phases):
        return None
    if loop.refused and phases.verdict != "dies":  # it fits, and cannot be for another reason
        return None
    found = Saver(values, kind, phases)
    if loop.place is None:
        return found
    tokens = loop.problem.samples.number * loop.problem.response_tokens.number
    step = float(worked(loop.outlook.central, loop.place)["step_seconds"]) + moved_seconds(loop, phases)
    return replace(found, gpu_seconds_per_token=step * float(loop.place.gpus) / tokens) if tokens else found
