"""How many rollout instances match a trainer, and what one more or one fewer does."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rlsize.equations import matching
from rlsize.errors import Fault, InputError
from rlsize.estimates.figures import rounded, with_bands
from rlsize.estimates.flow import flow_of
from rlsize.estimates.prefix_cache import routed_hits
from rlsize.facts.figure import Figure, absent
from rlsize.frozen import dataclass
from rlsize.planner.rounding import rounded_up
from rlsize.rules.match import CACHING, FLEET

if TYPE_CHECKING:
    from collections.abc import Mapping
    from random import Random

    from rlsize.estimates.figures import Draw

_NAMEPLATE = Figure(key="headroom", value=1.0, provenance="default", source="nameplate: the rate as it is")
_MET = 0.99  # of the demand: a window's edges and rounding hide the last per cent
MOST_INSTANCES = 1_000_000
NEIGHBOURS = 3  # instance counts shown on either side of the match
_AT_COUNT = (
    "instances", "nameplate_supply_tokens_per_second", "trainer_idle_fraction", "backlog_tokens_per_second",
    "fleet_utilisation_fraction", "step_seconds", "rollout_gpus", "cost_per_step_usd",
    "expected_supply_tokens_per_second", "expected_trainer_idle_fraction", "expected_backlog_tokens_per_second",
    "expected_fleet_utilisation_fraction", "expected_step_seconds", "expected_cost_per_step_usd",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetQuestion:
    """
    What is known about a trainer and its rollout instances.

    Args:
        consumption: Response tokens trained per second. [token/s]
        instance_rate: Response tokens per second of one instance. [token/s]
        headroom: Derating for what the rate does not yet contain. [1]
        tokens_generated_per_trained_token: Waste factor. [1]
        instances: An instance count to judge; the matched one when None.
        observed_instances: Instances whose observed rate is a lower bound; where together they met the demand, no more
            are needed.
        batch_tokens: Response tokens per optimizer step. [token]
        gpus_per_instance: GPUs of one instance. [gpu]
        trainer_gpus: GPUs of the trainer. [gpu]
        rollout_gpu_hour: Price of a rollout GPU. [usd/gpu/hour]
        trainer_gpu_hour: Price of a trainer GPU. [usd/gpu/hour]
    """

    consumption: Figure
    instance_rate: Figure
    headroom: Figure
    tokens_generated_per_trained_token: Figure
    instances: Figure | None = None
    observed_instances: Figure | None = None
    batch_tokens: Figure = absent("batch_tokens", "--batch-tokens")
    gpus_per_instance: Figure = absent("gpus_per_instance", "--gpus-per-instance")
    trainer_gpus: Figure = absent("trainer_gpus", "--trainer-gpus")
    rollout_gpu_hour: Figure = absent("rollout_gpu_hour_usd", "--gpu-hour")
    trainer_gpu_hour: Figure = absent("trainer_gpu_hour_usd", "--gpu-hour")


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetAnswer:
    """
    The match and its neighbours.

    Args:
        results: Figures about the match and about the judged instance count.
        neighbours: Rows of figures, one for each instance count around the match.
        matched: Instances of the match.
        judged: Instances that the idle and backlog figures are about.
        held_back: Whether the match is an observed fleet that met the demand though it was held back.
    """

    results: tuple[Figure, ...]
    neighbours: tuple[dict[str, Figure], ...]
    matched: int
    judged: int
    held_back: bool = False


def size_fleet(question: FleetQuestion, random: Random | tuple[Draw, ...] | None = None) -> FleetAnswer:
    """
    The fleet that matches, judged with and without headroom.

    Args:
        question: What is known.
        random: Generator for the bands of uncertain inputs; None for central values only.

    Returns:
        The answer; figures whose inputs are missing say which.
    """
    match, _, exact, _ = found = _match(question)
    matched = int(match.number)
    if matched > MOST_INSTANCES:
        rate = f"{question.instance_rate.number:g} tok/s an instance"
        what = f"{matched:,} instances would match at {rate}: no such fleet can be built"
        raise InputError(Fault(what, question.instance_rate.source, "check the rate and its unit"))
    # Without a count of the user's, every draw judges the central match: its own match would always be "matched".
    count = question.instances or Figure(key="instances", value=matched, provenance="predicted", source="the match")
    judged, observed = int(count.number), question.observed_instances
    results = with_bands([*found, *_at_count(question, count)], random)
    nameplate = int(next(one for one in results if one.key == "nameplate_matched_instances").number)
    near = {count for count in (judged - 1, judged, judged + 1) if count > 0}
    shown = sorted({*range(max(1, matched - NEIGHBOURS), matched + NEIGHBOURS + 1), *near, nameplate})
    others = (count if one == judged else Figure(key="instances", value=one, provenance="predicted") for one in shown)
    return FleetAnswer(
        results=results,
        neighbours=tuple({figure.key: figure for figure in _at_count(question, other)} for other in others),
        matched=matched,
        judged=judged,
        held_back=observed is not None and matched == observed.value and exact.number > observed.number,
    )


def _match(question: FleetQuestion) -> list[Figure]:
    flow = flow_of(question, FLEET)
    required, exact, nameplate = (
        flow[key] for key in ("required_tokens_per_second", "matched_instances_exact", "nameplate_matched_instances")
    )
    match, observed = rounded(exact, "matched_instances", rounded_up), question.observed_instances
    return [
        match if observed is None else _no_more_than_observed(match, observed),
        rounded(nameplate, "nameplate_matched_instances", rounded_up),
        exact,
        required,
    ]


def _no_more_than_observed(match: Figure, observed: Figure) -> Figure:
    """
    The match, but never more than a held-back fleet that met the demand.

    Its instances show what they were asked for; sizing from that with headroom would ask for more of them every time.
    """

    def limited(required_supply: float, instance_rate: float, headroom: float) -> int:
        whole = rounded_up(matching.matched_instances(required_supply, instance_rate, headroom))
        met = matching.fleet_supply(observed.number, instance_rate, 1.0) >= _MET * required_supply
        return min(whole, int(observed.number)) if met else whole

    value = limited(**{name: figure.number for name, figure in match.inputs.items()})
    source = match.source if value == match.value else "the observed fleet met the demand with so many"
    return replace(match, value=value, source=source, function=limited)


def _at_count(question: FleetQuestion, instances: Figure) -> list[Figure]:
    """What happens with so many instances, nameplate and expected."""
    flow = flow_of(question, FLEET, instances=instances, nameplate_headroom=_NAMEPLATE)
    return [flow[key] for key in _AT_COUNT]


def caching_savings(known: Mapping[str, Figure], routing: str) -> list[Figure]:
    """
    The hit ratio to expect, the prefill it saves, and the match once caches work as they should.

    Args:
        known: Lengths, group size, block size, instances and rates, by key.
        routing: How the samples of a group reach instances: a key of `SPREADS`, or affine.

    Returns:
        Figures; those whose inputs are missing say which.
    """
    expected = routed_hits(
        routing,
        group_size=known["group_size"],
        instances=known["instances"],
        prompt_tokens=known["prompt_tokens"],
        block_tokens=known["block_tokens"],
    )
    flow = flow_of(known, CACHING, expected_prefix_cache_hit_fraction=expected)
    *savings, match = (flow[one.result] for one in CACHING)
    return [expected, *savings, rounded(match, match.key, rounded_up)]
