"""
What is wrong with a running loop: the runbook's flow, from evidence to an ordered list of things to do.

Trainer first, then weight sync, then what is free (lost instances, stragglers, prefix cache, routing, preemptions), and
only then the number of instances; where the fleet is too large already, its size comes before what is free.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from rlsize.equations import budget, imbalance, matching, money, rollout_batch
from rlsize.estimates.figures import apply, known
from rlsize.facts.evidence import Diagnosis, Finding
from rlsize.facts.figure import Figure, absent
from rlsize.verdicts import diagnosis_checks as checks
from rlsize.verdicts import diagnosis_rates as rates
from rlsize.verdicts.usual_phases import causes_of, first_look, hides_update, judged_phases

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np

    from rlsize.facts.evidence import Evidence, Status, Verdict

_VERDICTS: Mapping[str, Verdict] = MappingProxyType({
    "grow": "starving trainer",
    "tail": "starving trainer",
    "backlog": "growing backlog",
    "held_back": "oversized and held back",
    "limbo": "neither side at its limit",
    "in_turn": "in turn",
    "matched": "matched",
})  # fmt: skip
_STATES: Mapping[str, Status] = MappingProxyType({
    **dict.fromkeys(("grow", "tail", "backlog", "held_back"), "fault"),
    **dict.fromkeys(("", "in_turn"), "unknown"),
    "limbo": "note",
})  # fmt: skip
_FIRST = frozenset({"phases", "trainer_health", "weight_sync", "fleet_size"})  # even where the fleet is too large
_MARGIN = 0.05  # a fleet that makes this much more than is used is said to pile up

_OF_THE_STEP = frozenset({"phases", "trainer_health", "weight_sync", "fleet_size"})
"""Checks whose gain is a share of the step."""


def diagnosis(evidence: Evidence, random: np.random.Generator) -> Diagnosis:
    """
    The diagnosis of a loop.

    Args:
        evidence: Everything that is known.
        random: Generator of the bootstrap draws.
    """
    size = fleet_size(evidence, random)
    free = (
        checks.missing_instances(evidence),
        checks.stragglers(evidence),
        *_cache(checks.prefix_cache(evidence)),
        checks.preemptions(evidence),
    )
    phases = judged_phases(evidence)
    look = first_look(evidence, phases)
    told = look.status != "unknown" or hides_update(evidence)
    health = (checks.trainer_health(evidence, random), checks.weight_sync(evidence))
    findings = (*health, look, checks.idle_ratio(evidence), *free, lost_in_turn(evidence), size)
    return Diagnosis(
        verdict=_verdict(look, health, size),
        findings=findings,
        steps=_ordered(findings, size),
        trainer_idle=rates.trainer_idle_of(evidence),
        consumption=rates.consumption_of(evidence),
        fleet_rate=rates.fleet_rate_of(evidence),
        required=rates.required_of(evidence),
        matched=rates.matched_of(evidence),
        phases=phases if told or len(phases) > 1 else (),
        causes=causes_of(evidence, phases) if told else (),
    )


def _cache(found: Finding) -> tuple[Finding, Finding]:
    """Caches and routing are two questions with one piece of evidence; a cold cache says nothing of routing."""
    if found.kind == "random":
        return (
            Finding(check="prefix_cache", status="fine", figures=found.figures),
            Finding(check="routing", status="fault", kind="random", figures=found.figures),
        )
    status: Status = "unknown" if found.status == "unknown" or found.kind in {"cold", "off"} else "fine"
    return found, Finding(check="routing", status=status, kind=found.kind, figures=found.figures)


def lost_in_turn(evidence: Evidence) -> Finding:
    """Whether both sides wait for each other by design: in turn, each stands still while the other works."""
    run = evidence.run
    if run.mode not in rates.IN_TURN:
        return Finding(check="lost_in_turn", status="fine" if run.mode == "async" else "unknown")
    part, whole = run.figure("generation_seconds"), run.figure("step_seconds")
    generation = apply("generation_fraction", rollout_batch.share_of, part=part, whole=whole)
    figures = known(run.figure("trainer_idle_fraction"), generation)
    return Finding(check="lost_in_turn", status="note", kind=run.mode, figures=figures)


def fleet_size(evidence: Evidence, random: np.random.Generator) -> Finding:
    """Which side starves, and how many instances match."""
    matched, instances = rates.matched_of(evidence), rates.instances_of(evidence)
    idle, growth = rates.trainer_idle_of(evidence), checks.backlog_grows(evidence, random)
    kind = _size_kind(evidence, growth)
    supply, key = rates.fleet_rate_of(evidence), "backlog_growth_tokens_per_second"
    supply = supply if rates.saturated(evidence) else absent(key, "saturated engines")
    backlog = growth or apply(key, imbalance.backlog_growth, supply=supply, required_supply=rates.required_of(evidence))
    if kind in {"grow", "tail", "limbo"}:  # a trainer that waits has nothing in front of it, whatever the rates say
        backlog = growth or absent("backlog", "")
    tail, capacity = rates.waits_of(evidence)
    figures = known(
        trainer_idle_fraction=idle,
        tail_wait_fraction=tail,
        capacity_wait_fraction=capacity,
        matched_instances=matched,
        instances=instances,
        instance_tokens_per_second=rates.capacity_of(evidence),
        required_tokens_per_second=rates.required_of(evidence),
        fleet_tokens_per_second=rates.fleet_rate_of(evidence),
        backlog=backlog,
        said_tokens_per_second=evidence.nameplate if rates.outdone(evidence) else absent("", ""),
    )
    part = {"grow": capacity, "tail": tail}.get(kind, absent("gain_fraction", "the surplus"))
    gain = part if part.known or kind not in {"grow", "tail"} else idle
    return Finding(check="fleet_size", status=_STATES.get(kind, "fine"), kind=kind, figures=figures, gain=gain)


def _size_kind(evidence: Evidence, growth: Figure | None) -> str:
    """
    What the number of instances needs.

    in_turn: no number lets neither side wait. grow: the trainer waits and the fleet gives all it can, or nothing says
    that it could give more. tail: it waits for a few long samples, which more GPUs make no shorter, for most of the
    time that it waits. backlog: samples
    pile up. held_back: the fleet could make more and need not. limbo: the trainer waits for a fleet that has room.
    """
    if evidence.run.mode in rates.IN_TURN:
        return "in_turn"  # each side waits for the other, whatever their sizes
    starves, room = checks.starves(evidence), rates.has_room(evidence)
    if starves:
        return "tail" if rates.long_tail(evidence) else "limbo" if room else "grow"
    if growth is not None:
        return "backlog"
    # The same, of a fleet beside a trainer that is not seen to wait
    rate, required = rates.fleet_rate_of(evidence), rates.required_of(evidence)
    compared = rate.known and required.known
    enough = rates.trainer_idle_of(evidence).known or (compared and rates.keeps_up(evidence))
    if room:
        return "held_back" if enough else "limbo" if compared else ""
    if rates.saturated(evidence) and compared and rate.number > (1.0 + _MARGIN) * required.number:
        return "backlog"
    return "matched" if enough else ""


def _verdict(look: Finding, health: Sequence[Finding], size: Finding) -> Verdict:
    trainer, sync = health
    if trainer.status == "fault":
        return "trainer regressed"
    if look.kind == "slow" and look.names != ("sync",):
        return "slow phase"
    if sync.status == "fault":
        return "sync stall"
    if look.kind == "most" and size.kind in {"in_turn", ""}:
        return "one phase takes most"
    return "slow phase" if look.kind == "slow" else _VERDICTS.get(size.kind, "unclear")


def _ordered(findings: Sequence[Finding], size: Finding) -> tuple[Finding, ...]:
    """What is to be done, first things first."""
    haste = {"trainer_health": 0, "phases": 1}  # what is looked at before all else
    todo = sorted((one for one in findings if one.status == "fault"), key=lambda one: haste.get(one.check, len(haste)))
    if size.kind not in {"backlog", "held_back"}:
        return tuple(todo)
    first = [found for found in todo if found.check in _FIRST]
    return (*first, *(found for found in todo if found not in first))


def step_costs(found: Diagnosis, evidence: Evidence, pools: Mapping[str, Figure]) -> tuple[Figure, ...]:
    """
    Dollars of a step as it is, and after the first thing to do; nothing where GPUs, prices or the step are not known.

    Args:
        found: The diagnosis.
        evidence: What it was made of.
        pools: `rollout_gpus` (0 where both sides share theirs), `trainer_gpus`, `rollout_gpu_hour`,
            `trainer_gpu_hour`.
    """
    step = evidence.run.figure("step_seconds")
    now = apply("cost_per_step_usd", money.cost_per_step, **pools, step_seconds=step)
    if not now.known:
        return ()
    first = found.steps[0] if found.steps else None
    if first is None or first.check not in _OF_THE_STEP:
        return (now,)
    after = dict(pools)
    if first.check == "fleet_size" and found.matched.known:
        fleet = {"instances": found.matched, "gpus_per_instance": evidence.gpus_per_instance}
        after["rollout_gpus"] = apply("rollout_gpus", matching.fleet_gpus, **fleet)
    if first.gain.known:
        saved = apply("saved_seconds", budget.allowed_change, baseline=step, change_fraction=first.gain)
        step = apply("step_seconds", budget.lowest_after_change, baseline=step, change=saved)
    then = apply("cost_per_step_after_usd", money.cost_per_step, **after, step_seconds=step)
    return (now, then) if then.known and then.value != now.value else (now,)
