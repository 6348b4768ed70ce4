"""
The step of a plan beside the simulator's, over random loops in all modes: caps, tails, splits, groups and late samples.

    python -m benchmarks.closed_form [LOOPS [FIRST_SEED]]

Prints by mode: loops, the median of simulated over planned steps, their 10th and 90th percentile, and the share of
plans within 10 %; then how far the modes' medians lie apart, and which share of all pairs of modes of the same problem
plan and simulator put in the same order; then the loops that are farther apart.

A loop is run, each time with what chance has for it alone, until the standard error of its mean step is below 2 %: a
step that waits for the longest of heavy-tailed responses varies by half from one to the next.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import dataclass
from functools import cache, partial
from itertools import combinations, product
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from rlsize.errors import Refused
from rlsize.estimates.belief import prior
from rlsize.estimates.engine_work import EngineQuestion
from rlsize.estimates.step_assembly import USUAL_LATE, assembled
from rlsize.estimates.step_prediction import STAGES
from rlsize.estimates.train_prediction import TrainQuestion
from rlsize.facts.figure import Figure, absent
from rlsize.facts.layout import Layout
from rlsize.planner.choices import fleet_options, trainer_options
from rlsize.planner.options import FleetOption, LoopProblem, Offer, Placement, TriedDegrees
from rlsize.planner.outlook import Draws, Outlook
from rlsize.planner.simulation import simulation_of
from rlsize.planner.step_parts import loop_parts
from rlsize.planner.tables import Rejections
from rlsize.readers.profiles import Catalogue
from rlsize.simulator.run import simulate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rlsize.estimates.generation import Late
    from rlsize.estimates.step_assembly import Loop
    from rlsize.facts.model import Model
    from rlsize.simulator.setting import Setting

MODELS = ("qwen3-1.7b", "qwen3-8b", "qwen3-14b", "qwen3-30b-a3b")
GPU = "h100-sxm"
LOOPS: tuple[Loop, ...] = ("colocated", "synchronous", "one-step-off", "async")
LATE: tuple[Late, ...] = ("wait", "continue", "drop")
STEPS, WARM_UP = 40, 10
SURE, FEWEST, MOST = 0.02, 2, 16  # standard error of the mean, and runs
NEAR = 0.1
NODE = 8


@dataclass(frozen=True, slots=True)
class Pair:
    """A random loop: its problem, its kind, and its step as planned and as simulated. [s]"""

    problem: int
    kind: str
    planned: float
    simulated: float

    @property
    def ratio(self) -> float:
        """Simulated over planned."""
        return self.simulated / self.planned


def main() -> None:
    """Print how far both are apart."""
    loops, first = asked(500)
    found = list(pairs(range(first, first + loops // len(LOOPS))))
    print_ratios((pair.kind, pair.ratio) for pair in found)
    print(f"medians of modes lie {apart(found):.1%} apart; {ordered(found):.1%} of pairs of modes in the same order")
    print_far((pair.problem, pair.kind, pair.planned, pair.simulated) for pair in found)


def asked(usual: int) -> tuple[int, int]:
    """How many loops the command line asks for, and from which seed on."""
    said = [int(one) for one in sys.argv[1:]]
    return said[0] if said else usual, said[1] if len(said) > 1 else 0


def print_ratios(found: Iterable[tuple[str, float]]) -> None:
    """Print ratios by kind."""
    by: dict[str, list[float]] = defaultdict(list)
    for kind, ratio in found:
        by[kind].append(ratio)
    for kind, ratios in [*sorted(by.items()), ("all", [one for some in by.values() for one in some])]:
        low, middle, high = np.quantile(ratios, (0.1, 0.5, 0.9))
        near = f"{within(ratios):.0%} within {NEAR:.0%}"
        print(f"{kind:16} {len(ratios):4}  {middle:.3f}  {low:.3f} to {high:.3f}  {near}")


def print_far(found: Iterable[tuple[int, str, float, float]]) -> None:
    """Print loops whose plan is not near the simulator: seed, kind, and steps."""
    for seed, kind, planned, simulated in found:
        if within([simulated / planned]) < 1:
            print(f"{seed}: {kind}, {planned:.1f} s predicted, {simulated:.1f} s simulated")


def apart(found: list[Pair]) -> float:
    """How far the medians of the modes lie apart."""
    modes = {pair.kind.partition(",")[0] for pair in found}
    middles = [float(np.median([pair.ratio for pair in found if pair.kind.startswith(mode)])) for mode in modes]
    return max(middles) - min(middles)


def ordered(found: list[Pair]) -> float:
    """Share of pairs of modes of the same problem that plan and simulator put in the same order."""
    two = [(one, other) for one, other in combinations(found, 2) if one.problem == other.problem]
    return float(np.mean([(a.planned < b.planned) == (a.simulated < b.simulated) for a, b in two]))


def within(ratios: list[float]) -> float:
    """Share of loops whose plan is near the simulator."""
    return float(np.mean(np.abs(1 / np.array(ratios) - 1) <= NEAR))


def pairs(seeds: range) -> Iterator[Pair]:
    """The loops that can run."""
    for number, loop in product(seeds, LOOPS):
        problem, place, kind = random_loop(Random(number), loop)  # noqa: S311 (made-up loops, not a secret)
        terms = Outlook(problem=problem, belief=prior(*STAGES), seed=0, joint=Draws(0)).central
        try:
            planned = float(assembled(terms.work, loop_parts(terms, place)).seconds)
            setting, _ = simulation_of(terms, place)
        except Refused:
            continue
        simulated = surely(partial(_steps, setting))
        if np.isfinite(simulated):
            yield Pair(number, kind, planned, simulated)


def _steps(setting: Setting, seed: int) -> list[float]:
    """Times of the steps of one run, once the loop has begun; none where it stands still. [s]"""
    ends = np.frombuffer(simulate(setting, STEPS, seed, compiled=True, partly=True).columns["end_seconds"])
    return list(np.diff(ends[WARM_UP - 1 :])) if len(ends) == STEPS else [float("nan")]


def surely(steps: Callable[[int], list[float]], sure: float = SURE) -> float:
    """The mean of the steps of as many runs, by their numbers, as it takes to know it. [s]"""
    found: list[float] = []
    for run in range(MOST):
        found += steps(run)
        mean, error = np.mean(found), np.std(found) / len(found) ** 0.5
        if not np.isfinite(mean) or (run + 1 >= FEWEST and error < sure * mean):
            break
    return float(np.mean(found))


def random_loop(random: Random, loop: Loop) -> tuple[LoopProblem, Placement, str]:
    """What is asked, how it is laid out in a mode, and what to call it."""
    model, fleets = fleets_of(random.choice(MODELS))
    samples, group = float(random.choice((128, 256, 512))), float(random.choice((1, 4, 8, 16)))
    mean, cv = float(round(2 ** random.uniform(8.5, 12.5))), random.uniform(0.2, 1.3)
    cap = random.choice((None, mean * random.uniform(1.5, 3), mean * random.uniform(3, 8)))
    prompt, late = float(random.choice((100, 300, 1000))), random.choice(LATE)
    staleness = float(random.choice((1, 1, 2, 4)))
    gpu = Catalogue().get("gpu", GPU)
    asked = TrainQuestion(
        model=model, gpu=gpu, gpus=1, sequences=samples, tokens=mean + prompt, micro_batch_tokens=16384.0
    )
    ways = [one for one in trainer_options(asked, Offer(gpu=gpu), TriedDegrees(), Rejections()) if one.replica <= NODE]
    fleet, trainer = random.choice(fleets), random.choice(ways)
    trainer_gpus = float(trainer.replica * random.choice((1, 2, 4)))
    instances = float(random.choice((1, 2, 4, 8)))
    said = {"samples_per_step": samples, "group_size": group, "prompt_tokens": prompt, "response_tokens": mean}
    said |= {"response_cv": cv} | ({} if cap is None else {"max_response_tokens": float(round(cap))})
    told = {key: Figure(key=key, value=value) for key, value in said.items()}
    problem = LoopProblem(
        model=model,
        samples=told["samples_per_step"],
        group_size=told["group_size"],
        prompt_tokens=told["prompt_tokens"],
        response_tokens=told["response_tokens"],
        response_cv=told["response_cv"],
        max_tokens=told.get("max_response_tokens", absent("max_response_tokens", "a cap")),
        late={**USUAL_LATE, "async": late},
        gpus_per_node=8.0,
    )
    place = Placement(
        loop=loop,
        fleet=fleet,
        instances=max(1.0, trainer_gpus // fleet.gpus) if loop == "colocated" else instances,
        trainer=trainer,
        trainer_gpus=trainer_gpus,
        max_staleness=staleness,
    )
    return problem, place, f"{loop}, {late}" if loop == "async" else loop


@cache
def fleets_of(name: str) -> tuple[Model, tuple[FleetOption, ...]]:
    """A model, and instances of up to half a node that hold it."""
    catalogue = Catalogue()
    model, gpu = catalogue.get("model", name), catalogue.get("gpu", GPU)
    engine = EngineQuestion(model=model, gpu=gpu, layout=Layout())
    found = fleet_options(engine, 0.85, Offer(gpu=gpu), TriedDegrees(), Rejections())
    return model, tuple(one for one in found if one.gpus <= NODE / 2 and one.ready(shared=False) is not None)


if __name__ == "__main__":
    main()
