"""What a change would do to a loop: every single step and the best pairs, ranked by trained tokens for their cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from rlsize.equations import planning
from rlsize.errors import InputError, Refused
from rlsize.facts.figure import Figure
from rlsize.loop.answer import answer_of
from rlsize.loop.knobs import KINDS, Change
from rlsize.loop.moves import moved_seconds
from rlsize.loop.phases import phases_of
from rlsize.loop.resolve import resolve
from rlsize.loop.seed import seed_of
from rlsize.planner.outlook import band_of
from rlsize.quantities.table import QUANTITIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rlsize.loop.knobs import Kind
    from rlsize.loop.phases import Phases, Verdict
    from rlsize.loop.resolve import Loop
    from rlsize.loop.said import Said
    from rlsize.planner.evaluation import Evaluation
    from rlsize.planner.options import Placement

_MOST_PAIRED = 4  # single steps of which pairs are tried, of each kind
_LEAST_GAIN = 1.001  # below which a change brings nothing worth a line
_COSTS = ("cost_per_step_usd", "gpu_hours_per_step")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """
    A loop with a change.

    Args:
        change: The change; none of it for the loop as it is.
        loop: The loop; None where none can be made of it.
        found: What it gives; None where there is none.
        refused: Why it cannot run; empty where it can.
        phases: Its memory; None where nobody can say.
        ran: Whether it was measured, so that it fits.
        gain: Trained tokens for what they cost, over those of the loop as it is, with its band.
        doubts: Why its band is wide: what it is that nobody measured.
    """

    change: Change
    loop: Loop | None = None
    found: Evaluation | None = None
    refused: str = ""
    phases: Phases | None = None
    ran: bool = False
    gain: Figure | None = None
    doubts: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """Whether its memory fits in all phases, as far as anybody can say."""
        return "fits" if self.ran or self.phases is None else self.phases.verdict

    @property
    def other_gpu(self) -> bool:
        """Whether it runs on another kind of GPU, an hour of which costs something else."""
        return "gpu" in self.change.values

    @property
    def runs(self) -> bool:
        """Whether it can run and does not run out of memory."""
        return self.found is not None and not self.refused and self.verdict != "dies"

    @property
    def rank(self) -> tuple[int, bool, bool, float]:
        """The kind first, then whether it runs, and at a price that is known, then what it brings."""
        gain = 0.0 if self.gain is None else self.gain.number
        return KINDS.index(self.change.kind), not self.runs, self.other_gpu, -gain

    @property
    def helps(self) -> bool:
        """Whether a trained token costs less with it."""
        return self.runs and not self.other_gpu and self.gain is not None and self.gain.number > _LEAST_GAIN


def outcome_of(said: Said, change: Change, base: Outcome | None = None) -> Outcome:
    """
    What a loop gives with a change.

    Args:
        said: What was said.
        change: The change.
        base: The loop as it is; None to work that out.
    """
    try:
        other = said.changed({QUANTITIES[key].scenario: value for key, value in change.all.items()})
        return outcome_in(other, change, base)
    except InputError as error:
        return Outcome(change=change, refused="; ".join(fault.what for fault in error.faults))


def outcome_in(other: Said, change: Change, base: Outcome | None = None) -> Outcome:
    """
    What the loop of a scenario gives that has a change in it.

    Args:
        other: What is said then.
        change: What that changes.
        base: The loop as it is; None to work that out.

    Raises:
        InputError: All that is wrong with it.
    """
    try:
        loop = resolve(other)
        found = answer_of(loop)
        phases = phases_of(loop, seed_of(other))
    except Refused as refusal:
        return Outcome(change=change, refused=str(refusal))
    if loop.place is None:
        return Outcome(change=change, loop=loop, refused=loop.refused)
    run = loop.problem.run
    return Outcome(
        change=_placed(change, loop.place),
        loop=loop,
        found=found,
        phases=phases,
        ran=run is not None and (base is None or (phases is not None and run.holds(phases.worst.fill))),
        gain=None if base is None or base.found is None else _gain(change, loop, found, base, phases),
        doubts=tuple(dict.fromkeys(other.warnings)),
    )


def _placed(change: Change, place: Placement) -> Change:
    """A change of mode with the split that was chosen for it, which has to be said where it runs."""
    if "mode" not in change.values or place.shared:
        return change
    stale = {"max_staleness": place.max_staleness} if place.loop == "async" else {}
    split = {"gpus": place.gpus, "rollout_gpus": place.rollout_gpus, "trainer_gpus": place.trainer_gpus}
    return replace(change, values={**change.values, **split, **stale})


def _gain(change: Change, loop: Loop, found: Evaluation, base: Outcome, phases: Phases | None) -> Figure | None:
    """Trained tokens for what they cost, over those of the loop as it is, on the same draws."""
    if base.loop is None or base.found is None:
        return None
    costs = (key for key in _COSTS if found.results[key].if_known and base.found.results[key].if_known)
    key = next(costs, None)  # what costs nothing is compared by its hours
    if key is None:
        return None
    key = _COSTS[1] if "gpu" in change.values else key
    tokens, usual = (one.problem.samples.number * one.problem.response_tokens.number for one in (loop, base.loop))
    step = found.results["step_seconds"].number
    moved = moved_seconds(loop, phases) - moved_seconds(base.loop, base.phases)

    def ratio(cost: Any, usual_cost: Any) -> Any:  # noqa: ANN401 (numbers or arrays of draws)
        now = planning.lengthened_cost(cost, step_seconds=step, added_seconds=moved)
        return planning.relative_yield(tokens=tokens, cost=now, usual_tokens=usual, usual_cost=usual_cost)

    value = ratio(found.results[key].number, base.found.results[key].number)
    band = band_of(np.asarray(ratio(found.draws[key], base.found.draws[key])))
    return Figure(
        key="relative_yield",
        value=value,
        provenance="predicted",
        source=f"planning.relative_yield, by {key}",
        band=band
        and (min(band[0], value), max(band[1], value)),  # of a side that waits in few draws the value is an end
    )


def outcomes(
    said: Said, base: Outcome, changes: Iterable[Change], tell: Callable[[float], None] = lambda _share: None
) -> list[Outcome]:
    """
    What each change would do, by kind, the best first.

    Args:
        said: What was said.
        base: The loop as it is.
        changes: The changes.
        tell: Hears which share of the work is done. [1]
    """
    every = list(changes)
    found = []
    for index, change in enumerate(every):
        tell(index / len(every))
        found.append(outcome_of(said, change, base))
    return sorted(found, key=lambda one: one.rank)


def pairs(found: Sequence[Outcome]) -> Iterator[Change]:
    """Two changes at once, of those of each kind that bring most alone and change different things."""
    for kind in KINDS:
        best = [one.change for one in found if one.change.kind == kind and one.helps][:_MOST_PAIRED]
        for one, two in combinations(best, 2):
            if one.all.keys().isdisjoint(two.all):
                yield Change(one.values | two.values, one.follows | two.follows)


def best_of(found: Sequence[Outcome], kind: Kind) -> Outcome | None:
    """The change of a kind that brings most; None where none helps."""
    return next((one for one in found if one.change.kind == kind and one.helps), None)
