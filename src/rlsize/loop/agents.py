"""What samples wait for outside the GPUs: as it was said, and the pool that holds a step up."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from rlsize.estimates.figures import numbers, predicted
from rlsize.facts.algorithm import Agents
from rlsize.facts.figure import Figure
from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from rlsize.loop.said import Said
    from rlsize.planner.options import Placement
    from rlsize.planner.outlook import Outlook

POOLS = {"environments": "environments", "verify_workers": "verifiers"}
"""Pools of limited size, by their field, in words."""
_BINDS, _ENOUGH = 0.05, 0.02  # of a step without the limit


def agents_of(said: Said, group_size: float) -> Agents | None:
    """
    What samples wait for; None where they do not.

    Args:
        said: What was said; too few environments are noted: none of the groups that wait for as many would ever begin.
        group_size: Samples of a group. [1]
    """
    plain = asdict(Agents())
    if not any(map(said.gives, plain)):
        return None
    told: dict[str, Any] = {}
    for key, none in plain.items():
        figure = said.ask(key) if said.gives(key) or none is not None else None
        value = none if figure is None or not figure.known else figure.number
        told[key] = round(value) if value is not None and (none is None or isinstance(none, int)) else value
    found = Agents(**told)
    begun = round(group_size) + found.redundant_samples
    if found.environments is not None and found.environments < begun:
        what = f"{found.environments} environments are too few for the {begun} samples of a group"
        said.fault(what, said.place("environments"), f"give {begun} or more")
    if found.turns > 1 and not said.gives("tool_seconds"):
        key = said.flag("tool_seconds")
        note = f"{said.place('turns')}: nobody says how long tools take ({key}), so nothing waits for them."
        said.notes += [note] if note not in said.notes else []
    return (
        None
        if found
        == Agents(**{key: told[key] for key in ("tool_cv", "verify_cv", "verify_failed_fraction", "verify_workers")})
        else found
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Bottleneck:
    """
    The pool without whose limit a step is most quickened.

    Args:
        pool: Its key.
        size: Places that it has. [1]
        enough: As many as would do. [1]
        seconds: A step with so many. [s]
    """

    pool: str
    size: int
    enough: int
    seconds: float

    @property
    def words(self) -> str:
        """What to say of it."""
        return f"{self.size:,} {POOLS[self.pool]} are the bottleneck: {self.enough:,} would do"

    @property
    def figures(self) -> tuple[Figure, ...]:
        """The same, by key."""
        why = "the smallest pool whose step is within 2 % of one without a limit"
        return (
            Figure(key="binding_pool", value=POOLS[self.pool], provenance="predicted", source="quickens a step most"),
            Figure(key="binding_places", value=self.size, source=f"agents.{self.pool}"),
            predicted("enough_places", self.enough, why),
            predicted("step_with_enough_seconds", self.seconds, why),
        )


def say_bottleneck(said: Said, outlook: Outlook, place: Placement | None) -> tuple[Figure, ...]:
    """Warn of the pool that holds a placed loop up; what there is to say of it, nothing where there is none."""
    found = None if place is None else bottleneck(outlook, place)
    if found is None:
        return ()
    said.warnings.append(f"{found.words} ({found.seconds:,.0f} s a step)")
    return found.figures


def _sized(agents: Agents, pool: str, size: int | None) -> Agents:
    """The same with a pool of another size."""
    sizes: dict[str, Any] = {pool: size}
    return replace(agents, **sizes)


def bottleneck(outlook: Outlook, place: Placement) -> Bottleneck | None:
    """The pool that holds a step up; None where none makes it longer by 5 % or more."""
    agents = outlook.problem.agents
    if agents is None or place.fleet.rate.known:
        return None
    from rlsize.estimates.step_assembly import assembled
    from rlsize.planner.step_parts import loop_parts

    def step(pool: str, size: int | None) -> float:
        """A step with so many places. [s]"""
        problem = replace(outlook.problem, agents=_sized(agents, pool, size))
        terms = replace(outlook, problem=problem).central
        return float(assembled(numbers, loop_parts(terms, place)).seconds)

    limited = [pool for pool in POOLS if getattr(agents, pool) is not None]
    without = {pool: step(pool, None) for pool in limited}
    if not without:
        return None
    pool = min(without, key=without.__getitem__)
    size, free = getattr(agents, pool), without[pool]
    if step(pool, size) < (1.0 + _BINDS) * free:
        return None
    low = high = size
    while step(pool, high) > (1.0 + _ENOUGH) * free:
        low, high = high, 2 * high
    while high - low > max(1, low // 50):
        middle = (low + high) // 2
        low, high = (low, middle) if step(pool, middle) <= (1.0 + _ENOUGH) * free else (middle, high)
    return Bottleneck(pool=pool, size=size, enough=high, seconds=step(pool, high))
