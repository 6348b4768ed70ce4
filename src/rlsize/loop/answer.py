"""What a loop gives: step, cost, idle shares and memory, with bands; the one answer of all commands."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rlsize.dataclass import replace
from rlsize.equations import rl_step, rollout_batch
from rlsize.estimates.figures import apply, predicted
from rlsize.estimates.step_assembly import REFILLING
from rlsize.facts.figure import Figure
from rlsize.planner.evaluation import Evaluation, evaluation

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rlsize.estimates.generation import Generation
    from rlsize.estimates.rollout_prediction import Replica
    from rlsize.estimates.step_assembly import Step
    from rlsize.loop.resolve import Loop
    from rlsize.planner.options import Placement
    from rlsize.planner.outlook import Terms

_SOURCES = {
    "longest_response_tokens": "mean of the longest",
    "longest_response_seconds": "rollout_batch.cycle_time: its tokens at the rate of a full batch",
    "samples_in_flight": "offered, as far as cache and engine allow",
    "cache_concurrency": "samples that the KV cache holds",
}
LIMITS = {
    "offered": "as many as are offered",
    "samples": "as many as the step has",
    "environments": "as many as there are environments for",
    "staleness": "as many as the staleness cap lets be in flight",
    "cache": "as many as its KV cache holds",
    "engine": "as many as the engine's limit lets through",
}
"""What limits the samples that an instance works on at once, in words."""


def answer_of(loop: Loop, *, batches: bool = True) -> Evaluation:
    """
    What a loop gives; why it cannot run where it cannot.

    Args:
        loop: The loop; one that is placed.
        batches: Whether the samples that an instance works on are told too, which takes as long as the rest.
    """
    if loop.place is None:
        return Evaluation(placement={}, results={}, refused=loop.refused)
    found = evaluation(loop.outlook, loop.place, _details if batches else _phases)
    word = loop.pools.mode  # several words say one way to lay a loop out, and the answer has the one that was said
    if not word:
        return found
    mode = replace(found.placement["mode"], value=word)
    return replace(found, placement={**found.placement, "mode": mode})


def agreed(
    figures: Iterable[Figure], found: Evaluation, called: Mapping[str, str] = MappingProxyType({})
) -> tuple[Figure, ...]:
    """
    Figures of one stage, where the whole loop tells of the same quantity as the loop has them.

    Args:
        figures: The figures.
        found: What the loop gives.
        called: Keys of the loop, by those of figures that are called otherwise.
    """
    pairs = [(own, found.results.get(called.get(own.key, own.key))) for own in figures]
    return tuple(own if whole is None or not whole.known else replace(whole, key=own.key) for own, whole in pairs)


def _phases(_terms: Terms, place: Placement, step: Step) -> dict[str, Any]:
    """Parts of phases, which the results do not tell."""
    found = {"generation_exposed_seconds": step.generation_exposed_seconds}
    if place.trainer.question is not None and not place.trainer.seconds.known:
        found |= {"update_seconds": step.update_seconds, "logprob_seconds": step.logprob_seconds}
    return found


def _details(terms: Terms, place: Placement, step: Step) -> dict[str, Any]:
    """What a command about one stage tells of the loop's step beside its results."""
    engine = place.fleet.engines.get(place.shared)
    batches = {} if engine is None or isinstance(engine, str) else _in_flight(terms, place, engine)
    return _phases(terms, place, step) | batches


def _in_flight(terms: Terms, place: Placement, ready: Replica) -> dict[str, Any]:
    """Samples that an instance of the loop works on, what limits them, and the longest of them."""
    from rlsize.planner.predicted_parts import generation_of

    explained = terms.work is apply
    fleet = generation_of(terms.bare if explained else terms, place, ready)
    found: dict[str, Any] = {
        "longest_response_tokens": fleet.longest_tokens,
        "samples_in_flight": fleet.batch,
        "cache_concurrency": fleet.capacity,
    }
    if place.loop in REFILLING:  # where a batch drains, its last samples run in ever shorter steps
        found["longest_response_seconds"] = rollout_batch.cycle_time(
            batch=fleet.batch, response_tokens=fleet.longest_tokens, rate=fleet.rate
        )
    if not explained:
        return found
    told = {key: predicted(key, value, _SOURCES[key]) for key, value in found.items()}
    limit = _limited_by(terms.bare, place, ready, fleet)
    return told | {"limited_by": Figure(key="limited_by", value=limit, provenance="predicted", source=LIMITS[limit])}


def _limited_by(terms: Terms, place: Placement, ready: Replica, fleet: Generation) -> str:
    """What the batch of an instance ran into."""
    from rlsize.estimates.rollout_prediction import engine_limit

    batch = float(fleet.batch)
    if batch >= engine_limit(ready.question):
        return "engine"
    if batch >= float(fleet.capacity):
        return "cache"
    offered = terms.problem.concurrency
    if offered.known and batch >= offered.number:
        return "offered"
    agents = terms.problem.agents
    if agents is not None and agents.environments is not None:
        within = place.max_staleness if place.loop in REFILLING else 0.0
        allowed = rl_step.allowed_in_flight(terms.problem.samples.number, within)
        if agents.environments < allowed:
            return "environments"
    return "staleness" if place.loop in REFILLING else "samples"
