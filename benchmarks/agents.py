"""
Steps of loops with tools, environments and verifiers beside the simulator's, and the pool that binds.

    python -m benchmarks.agents [LOOPS [FIRST_SEED]]

Prints by mode: loops, the median of simulated over predicted steps, their 10th and 90th percentile, and the share
within 10 %; then in how many loops prediction and simulator name the same pool: the one without whose limit a step is
most quickened, by 10 % or more (by 5 to 15 % neither is right or wrong); then the loops that are farther apart.

A loop is run, each time with what chance has for it alone, until the standard error of its mean step is below 3 %: a
step that waits for the longest of heavy-tailed tool calls varies by half from one to the next, so the mean over 48 of
them still errs by 7 %. Steps of an async loop are counted in whole rounds of its cap, as long ones follow short ones.
Loops are shared out over all cores; the time is the simulator's, which has no compiled kernel for tools.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
from benchmarks.closed_form import LOOPS, MOST, asked, print_far, print_ratios, random_loop, surely

from rlsize.errors import Refused
from rlsize.estimates.belief import prior
from rlsize.estimates.step_assembly import assembled
from rlsize.estimates.step_prediction import STAGES
from rlsize.facts.algorithm import Agents
from rlsize.planner.outlook import Draws, Outlook
from rlsize.planner.simulation import simulation_of
from rlsize.planner.step_parts import loop_parts
from rlsize.simulator.run import simulate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rlsize.planner.options import LoopProblem, Placement
    from rlsize.planner.outlook import Terms

STEPS = 24
WARM_UP, BEGUN = 8, 2  # of an async loop, and of one with a barrier
SURE = 0.03  # standard error of the mean
POOLS = ("environments", "verify_workers")
BINDS = 0.1


@dataclass(frozen=True, slots=True)
class Pair:
    """A random loop: its kind, its step as predicted and as simulated [s], and the pools that these name."""

    seed: int
    kind: str
    predicted: float
    simulated: float
    named: str
    binding: str
    sure: bool
    limited: bool


def main() -> None:
    """Print how far both are apart."""
    loops, first = asked(100)
    with ProcessPoolExecutor() as cores:
        found = list(chain.from_iterable(cores.map(_pairs_of, range(first, first + loops))))
    print_ratios([(pair.kind, pair.simulated / pair.predicted) for pair in found])
    pooled = [pair for pair in found if pair.sure]
    right = sum(pair.named == pair.binding for pair in pooled)
    print(f"the pool that binds: {right} of {len(pooled)}; of those with a limited pool:", end=" ")
    limited = [pair for pair in pooled if pair.limited]
    print(f"{sum(pair.named == pair.binding for pair in limited)} of {len(limited)}, of which", end=" ")
    print(f"{sum(bool(pair.binding) for pair in limited)} have one that binds")
    print_far((pair.seed, pair.kind, pair.predicted, pair.simulated) for pair in found)


def _pairs_of(seed: int) -> list[Pair]:
    """The loop of a seed, if it can run."""
    return list(pairs(range(seed, seed + 1)))


def pairs(seeds: range) -> Iterator[Pair]:
    """The loops that can run."""
    for seed in seeds:
        random = Random(seed)  # noqa: S311 (made-up loops, not a secret)
        problem, place, kind = random_loop(random, random.choice(LOOPS))
        problem = replace(problem, agents=random_agents(random, problem))
        try:
            predicted, named, _ = _named(planned, problem, place)
            _, binding, margin = _named(played, problem, place)
            simulated = surely(partial(_run, problem, place, seed), SURE)
        except Refused:
            continue
        if np.isfinite(simulated):
            limited = any(getattr(problem.agents, pool) is not None for pool in POOLS)
            yield Pair(seed, kind, predicted, simulated, named, binding, abs(margin - BINDS) > BINDS / 2, limited)


def _named(
    step: Callable[[LoopProblem, Placement], float], problem: LoopProblem, place: Placement
) -> tuple[float, str, float]:
    """A step, the pool that binds, and by how much."""
    whole = step(problem, place)
    gains = {
        pool: 1 - step(replace(problem, agents=_without(problem.agents, pool)), place) / whole
        for pool in POOLS
        if getattr(problem.agents, pool) is not None
    }
    best = max(gains, key=gains.__getitem__, default="")
    gain = gains.get(best, 0.0)
    return whole, best if gain >= BINDS else "", gain


def _without(agents: Agents | None, pool: str) -> Agents:
    """The same with a pool that has no limit."""
    none: dict[str, Any] = {pool: None}
    return replace(agents or Agents(), **none)


def planned(problem: LoopProblem, place: Placement) -> float:
    """The predicted step. [s]"""
    terms = _terms(problem)
    return float(assembled(terms.work, loop_parts(terms, place)).seconds)


def played(problem: LoopProblem, place: Placement, seed: int = 0) -> float:
    """The simulated step of one run; none where the loop stands still. [s]"""
    return float(np.mean(_rounds(problem, place, seed)))


def _run(problem: LoopProblem, place: Placement, loop: int, run: int) -> list[float]:
    """Those of one of the runs of a loop. [s]"""
    return _rounds(problem, place, loop * MOST + run)


def _rounds(problem: LoopProblem, place: Placement, seed: int) -> list[float]:
    """Mean steps of whole rounds of the cap, as few as one step, once the loop has begun. [s]"""
    setting, _ = simulation_of(_terms(problem), place)
    ends = np.frombuffer(simulate(setting, STEPS, seed, partly=True).columns["end_seconds"])
    if len(ends) < STEPS:
        return [float("nan")]
    barrier = place.loop != "async"
    size = 1 if barrier else int(place.max_staleness) + 1
    first = BEGUN if barrier else WARM_UP
    return list(np.diff(ends[::-size][: (STEPS - first) // size + 1][::-1]) / size)


def _terms(problem: LoopProblem) -> Terms:
    """In central numbers."""
    return Outlook(problem=problem, belief=prior(*STAGES), seed=0, joint=Draws(0)).central


def random_agents(random: Random, problem: LoopProblem) -> Agents:
    """Turns, tools, environments and verifiers; each in about every other loop."""
    turns = random.choice((2, 4, 8, 16))
    samples, group = problem.samples.number, problem.group_size.number
    pool = random.choice((None, 2 ** random.uniform(-3, 1.5)))
    scores = random.choice((0.0, 2 ** random.uniform(0, 6)))
    return Agents(
        turns=turns,
        turn_end_fraction=random.choice((0.0, 0.1, 0.3)),
        tool_seconds=random.choice((0.5, 2.0, 10.0, 30.0)),
        tool_cv=random.choice((0.0, 1.0, 2.0)),
        tool_tokens=random.choice((0, 100, 500)),
        verify_seconds=scores,
        verify_cv=random.choice((0.0, 1.0)),
        verify_workers=random.choice((None, round(2 ** random.uniform(2, 7)))) if scores else None,
        environments=None if pool is None else max(2 * round(group), round(samples * pool)),
        environment_seconds=random.choice((0.0, 5.0, 30.0)),
        failed_fraction=random.choice((0.0, 0.0, 0.1)),
        redundant_samples=random.choice((0, 0, round(group / 4))),
    )


if __name__ == "__main__":
    main()
