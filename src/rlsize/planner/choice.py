"""
What to choose of what a search found: a shortlist on the same draws, and why the runner-up lost.

A search ranks on central numbers; bands are drawn for the shortlist only.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache, cached_property
from typing import TYPE_CHECKING

import numpy as np

from rlsize.equations import rl_step
from rlsize.estimates.figures import DRAWS, ends, quantile
from rlsize.facts.figure import Figure
from rlsize.frozen import dataclass
from rlsize.planner.evaluation import PLACED, central_results, evaluation, worked
from rlsize.planner.families import SAME, Family
from rlsize.planner.outlook import band_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from rlsize.planner.evaluation import Evaluation
    from rlsize.planner.families import Found, Order
    from rlsize.planner.options import Placement
    from rlsize.planner.outlook import Outlook

    Array = NDArray[np.float64]
    Takes = Callable[[Placement], bool]

METRICS: dict[str, str] = {"time": "step_seconds", "cost": "cost_per_step_usd", "gpus": "gpus"}
"""The result that each objective makes small."""
PARTS = ("generation_seconds", "train_seconds", "sync_exposed_seconds", "overhead_seconds")
_SAME = 1e-9  # relative: what differs by less differs by rounding
AS_GOOD = 0.03
"""Of what is made small: what a plan may be worse by and still do as well, where draws do not tell them apart."""
_MOST_DRAWN = 16  # plans that are held against the best on draws
_MOST_REFUSED = 16  # of the best of a mode, before it is given up
SHOWN = 4
"""Alternatives that a plan tells, the best of each mode apart."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Alternative:
    """
    A plan beside the best one; draws are made where they are asked for.

    Args:
        family: Its candidate.
        results: What it gives, in central numbers.
        drawn: What the objective is on joint draws.
        best: The best one; None for itself.
    """

    family: Family
    results: dict[str, float]
    drawn: Callable[[], Array]
    best: Alternative | None = None

    @property
    def band(self) -> tuple[float, float] | None:
        """The 80 % interval of the objective; None for a point."""
        return band_of(self.drawn())

    @cached_property
    def times(self) -> Figure | None:
        """How many times the best one's metric, with the interval of common draws; None for the best."""
        if self.best is None:
            return None
        draws, least = self.drawn(), self.best.drawn()
        if not least.all():  # GPUs that cost nothing
            ratio = np.full_like(least, np.inf if draws.any() else 1.0)
        else:
            ratio = np.asarray(rl_step.times_longer(step_seconds=draws, least_seconds=least))
        band, source = band_of(ratio), "median over the same draws"
        central = float(ratio[0]) if band is None else quantile(np.sort(ratio).tolist(), 0.5)
        return Figure(key="times_longer", value=central, provenance="predicted", source=source, band=band)

    @property
    def why(self) -> list[tuple[str, float]]:
        """What of its step is longer or shorter than that of the best, most important first. [s]"""
        least = (self.best or self).results
        return sorted(((part, self.results[part] - least[part]) for part in PARTS), key=lambda entry: -abs(entry[1]))

    @property
    def place(self) -> Placement:
        """Where it runs."""
        return self.family.place

    @property
    def equal(self) -> bool:
        """Whether it does as well as the best, but for rounding."""
        times = self.times
        return times is not None and times.band is None and abs(times.number - 1.0) < _SAME

    @property
    def close(self) -> bool:
        """Whether the best is no clear winner over it."""
        band = self.times.band if self.times is not None else None
        return band is not None and band[0] <= 1.0 <= band[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """
    What was chosen.

    Args:
        objective: What is made small.
        metric: The result that says it; GPU-hours in place of dollars where nobody says a price.
        best: The best plan.
        evaluation: It in figures.
        others: The next best, then the best of each mode that is not among them.
        written: The plan as the scenario has it; None where it says none, or it cannot run.
        fresher: The best plan with less staleness, all else alike; None where there is none.
        rare: The best plan of a layout that few run, where it is better; None where there is none.
        doubted: Whether its memory may not be enough.
    """

    objective: Order
    metric: str
    best: Alternative
    evaluation: Evaluation
    others: tuple[Alternative, ...]
    written: Alternative | None = None
    fresher: Family | None = None
    rare: Alternative | None = None
    doubted: bool = False

    @property
    def rare_is_better(self) -> bool:
        """Whether a layout that few run is better for sure."""
        return self.rare is not None and self.rare.times is not None and ends(self.rare.times)[1] < 1.0

    @property
    def runner_up(self) -> Alternative | None:
        """The next best plan that differs in mode or split."""
        return self.others[0] if self.others else None

    def best_of(self, loop: str) -> Alternative | None:
        """The best plan of a mode."""
        return next((one for one in (self.best, *self.others) if one.place.loop == loop), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """
    What else a space has that is as good as a plan.

    Args:
        alike: Plans that are worse than one by a share at most, those of the fewest GPUs and the plainest first.
        own: Whether one plan is in the space, and worse than another by a share at most.
    """

    alike: Callable[[Family, float], list[Family]]
    own: Callable[[Family, Family, float], bool]


def choice(
    outlook: Outlook,
    found: Found,
    written: Placement | None = None,
    shown: int = SHOWN,
    takes: Takes | None = None,
    around: Around | None = None,
    fits: Takes | None = None,
    *,
    brief: bool = False,
) -> Choice | None:
    """
    The best plan and what stands beside it.

    Args:
        outlook: How placements are worked out.
        found: What a search found.
        written: The plan as the scenario has it.
        shown: How many alternatives are told.
        takes: Whether what runs the loop takes a placement; None for all.
        around: What is as good as the best; None where only the best counts.
        fits: Whether its memory is enough for sure; None where nobody knows.
        brief: Whether nothing is told beside a plan whose memory may not be enough.

    Returns:
        None where nothing was found.

    Raises:
        Refused: The plan as written cannot run.
    """
    families = list(_shortlist(found, shown, takes or (lambda _: True)))
    if not families:
        return None
    metric = METRICS[found.objective]
    metric = metric if metric != "cost_per_step_usd" or found.priced else "gpu_hours_per_step"
    able = [_alternative(outlook, families[0], metric)]
    own = None if written is None else _alternative(outlook, family_of(outlook, written, priced=found.priced), metric)
    if around is not None:
        least = able[0]
        share = AS_GOOD if least.band is not None or metric == "gpus" else SAME
        plainest = _plainest(outlook, least, metric, around.alike(least.family, share), takes)
        kept = own is not None and around.own(own.family, least.family, share) and (takes is None or takes(own.place))
        able = [*([own] if own is not None and kept else []), plainest, *able]
    best = able[0]
    rare = found.rare if found.rare is None or takes is None or takes(found.rare.place) else None
    chosen = Choice(
        objective=found.objective,
        metric=metric,
        best=best,
        evaluation=_chosen(evaluation(outlook, best.place)),
        others=(),
        written=None if own is None else _beside(own, best),
        fresher=_fresher(outlook, best.place, priced=found.priced),
        rare=None if rare is None else _beside(_alternative(outlook, rare, metric), best),
        doubted=fits is not None and not fits(best.place),
    )
    if brief and chosen.doubted:
        return chosen
    apart: dict[tuple[object, ...], Alternative | Family] = {}
    told: list[Alternative | Family] = [*able, *families[1:]]
    for one in told:
        apart.setdefault(split_key(one.place), one)
    others = [one if isinstance(one, Alternative) else _alternative(outlook, one, metric) for one in apart.values()]
    return replace(chosen, others=tuple(_beside(one, best) for one in others[1:]))


def _chosen(found: Evaluation) -> Evaluation:
    """The same, where GPUs and staleness are what a plan chose and nobody gave."""
    own = {key: figure for key, figure in found.results.items() if figure.source == PLACED}
    chosen = {key: replace(figure, provenance="predicted", source="the plan") for key, figure in own.items()}
    return replace(found, results={**found.results, **chosen})


def as_good(one: Alternative, best: Alternative, share: float = SAME) -> bool:
    """Whether draws do not tell a plan from the best, or it is worse by a share at most whatever they say."""
    told = _beside(one, best)
    return told.close or told.equal or (told.times is not None and told.times.number <= 1.0 + share)


def _plainest(
    outlook: Outlook,
    best: Alternative,
    metric: str,
    alike: list[Family],
    takes: Takes | None,
) -> Alternative:
    """The first of the plans that are as good as the best by a step, which draws do not tell from it either."""
    refused = 0
    for family in alike[:_MOST_DRAWN]:
        if family.place == best.place:
            break
        if takes is not None and not takes(family.place):
            refused += 1
            if refused == _MOST_DRAWN // 2:
                break
            continue
        one = _alternative(outlook, family, metric)
        if as_good(one, best):
            return one
    return best


def _fresher(outlook: Outlook, place: Placement, *, priced: bool) -> Family | None:
    """The same plan with one step of staleness less."""
    if place.loop not in {"async", "hybrid"} or place.staleness <= 1:
        return None
    return family_of(outlook, replace(place, max_staleness=place.staleness - 1), priced=priced)


def family_of(outlook: Outlook, place: Placement, *, priced: bool) -> Family:
    """
    A placement beside those that a search found.

    Raises:
        Refused: It cannot run.
    """
    found = central_results(outlook, place)
    cost = found["cost_per_step_usd" if priced else "gpu_hours_per_step"]
    return Family(place=place, step_seconds=found["step_seconds"], cost=cost, gpus=found["gpus"])


def split_key(place: Placement) -> tuple[object, ...]:
    """What makes a plan another one: mode and split, and the kinds of GPUs; layouts and staleness alone do not."""
    return (place.loop, place.fleet.gpu, place.trainer.gpu, float(place.rollout_gpus), float(place.trainer_gpus))


def _shortlist(found: Found, shown: int, takes: Takes) -> Iterator[Family]:
    """The best plans that differ in mode or split, then the best of each mode that is not among them."""
    seen: set[tuple[object, ...]] = set()
    loops: set[str] = set()
    refused: Counter[str] = Counter()
    for family in found.best:
        key, loop = split_key(family.place), family.place.loop
        if refused[loop] == _MOST_REFUSED:
            continue
        if key in seen or (len(seen) >= shown and loop in loops) or _lends_for_nothing(key, seen):
            continue
        if not takes(family.place):
            refused[loop] += 1
            continue
        seen.add(key)
        loops.add(loop)
        yield family
    left = (family for loop, family in found.modes.items() if loop not in loops)  # the best of all had no room for them
    for family in sorted(left, key=lambda family: family.score(found.objective)):
        if not _lends_for_nothing(split_key(family.place), seen) and takes(family.place):
            yield family


def _lends_for_nothing(key: tuple[object, ...], seen: set[tuple[object, ...]]) -> bool:
    """Whether it is a hybrid plan that is no better than the same split without lending."""
    return key[0] == "hybrid" and ("async", *key[1:]) in seen


def _alternative(outlook: Outlook, family: Family, metric: str) -> Alternative:
    results = central_results(outlook, family.place)

    def drawn() -> Array:
        found = worked(outlook.drawn, family.place, outlook.noise(family.place))
        return np.broadcast_to(np.asarray(found[metric], dtype=np.float64), (DRAWS,))

    return Alternative(family=family, results=results, drawn=cache(drawn))


def _beside(one: Alternative, best: Alternative) -> Alternative:
    """The same, compared with the best."""
    return replace(one, best=best)
